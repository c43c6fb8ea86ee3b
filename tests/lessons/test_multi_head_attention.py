"""A place has two targets, and a head is told by what it looks at."""

import pytest
import torch

from course_lib.lessons.multi_head_attention import preference, two_relations, word_patterns


def test_the_neighbour_and_the_place_opposite():
    symbols, targets = two_relations(torch.Generator().manual_seed(0), 3, 6)
    for guest in range(6):
        assert torch.equal(targets[:, guest, 0], symbols[:, guest - 1])
        assert torch.equal(targets[:, guest, 1], symbols[:, guest - 3])
    with pytest.raises(ValueError, match="even number of guests"):
        two_relations(torch.Generator(), 3, 5)


def test_word_patterns():
    """[CLS] a b c [SEP], and [CLS] a [SEP] with filling."""
    found = word_patterns(torch.zeros(2, 5, dtype=torch.long), torch.tensor([5, 3]))

    def links(name: str) -> list[list[int]]:
        return found[name].nonzero().tolist()

    assert links("previous word") == [[0, 2, 1], [0, 3, 2]]
    assert links("next word") == [[0, 1, 2], [0, 2, 3]]
    assert links("[CLS]") == [[0, 1, 0], [0, 2, 0], [0, 3, 0], [1, 1, 0]]
    assert links("[SEP]") == [[0, 1, 4], [0, 2, 4], [0, 3, 4], [1, 1, 2]]


def test_preference():
    weights = torch.zeros(2, 3, 4, 4)
    weights[0, 0, 3, 1], weights[0, 1, 3, 2], weights[1, 0, 2, 0], weights[1, 1, 2, 0] = 0.4, 0.5, 0.6, 0.2
    often, much = preference(weights, torch.tensor([3, 2]), torch.tensor([1, 0]), torch.tensor([2, 1]))
    torch.testing.assert_close(often, torch.tensor([1.0, 0.5, 0.0]))
    torch.testing.assert_close(much, torch.tensor([0.5, 0.1, 0.0]))
