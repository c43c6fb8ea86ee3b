"""Made-up tasks: what is asked for stands where the docstrings say."""

import pytest
import torch

from course_lib.data import tasks


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_recall_holds_one_symbol_the_fillers_and_the_cue():
    inputs, targets = tasks.recall(generator(), 50, distance=6)
    assert inputs.shape == (50, 8)
    assert torch.equal(inputs[:, 0], targets)
    assert targets.unique().tolist() == list(range(tasks.SYMBOLS))
    assert ((inputs[:, 1:-1] >= tasks.SYMBOLS) & (inputs[:, 1:-1] < tasks.CUE)).all()
    assert (inputs[:, -1] == tasks.CUE).all()


def test_copy_has_one_length_from_the_range():
    lengths = {tasks.copy(generator(seed), 3, range(2, 5))[0].shape[1] for seed in range(30)}
    assert lengths == {2, 3, 4}
    inputs, targets = tasks.copy(generator(), 3, range(4, 5))
    assert torch.equal(inputs, targets)
    assert inputs.max() < tasks.SYMBOLS


def test_first_has_two_symbols_and_asks_for_the_earlier():
    inputs, targets = tasks.first(generator(), 300, 9)
    assert (inputs[:, -1] == tasks.CUE).all()
    rows, places = (inputs < tasks.SYMBOLS).nonzero(as_tuple=True)
    assert rows.tolist() == [i for i in range(300) for _ in range(2)]
    assert torch.equal(inputs[range(300), places.view(300, 2)[:, 0]], targets[:, -1])
    assert (inputs[range(300), places.view(300, 2)[:, 1]] != targets[:, -1]).all()
    assert (targets[:, :-1] == -100).all()
    assert set(places.tolist()) == set(range(8))
    with pytest.raises(ValueError, match="length of 3 or more; got 2"):
        tasks.first(generator(), 1, 2)
