"""What is asked for stands some places before."""

import pytest
import torch

from course_lib.data.batches import IGNORED
from course_lib.lessons.positional_encoding import look_back


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_look_back_asks_for_what_stood_some_places_before():
    inputs, targets = look_back(generator(), 20, 7, 2)
    assert torch.equal(targets[:, 2:], inputs[:, :-2])
    assert (targets[:, :2] == IGNORED).all()
    with pytest.raises(ValueError, match="distance within 0 … 6; got 7"):
        look_back(generator(), 1, 7, 7)
