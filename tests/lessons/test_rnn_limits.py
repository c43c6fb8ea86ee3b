"""A clue stands where it is asked for."""

import pytest
import torch

from course_lib.data.tasks import SYMBOLS
from course_lib.lessons.rnn_limits import clue


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_clue_stands_at_the_places_asked_for_and_nowhere_else():
    inputs, targets = clue(generator(), 200, 7, [1, 4])
    rows, places = (inputs < SYMBOLS).nonzero(as_tuple=True)
    assert rows.tolist() == list(range(200))
    assert set(places.tolist()) == {1, 4}
    assert torch.equal(inputs[rows, places], targets)


@pytest.mark.parametrize("places", [[], [7], [-1, 2]])
def test_clue_outside_the_sequence_is_refused(places):
    with pytest.raises(ValueError, match="Expected places within 0 … 6"):
        clue(generator(), 2, 7, places)
