"""Accuracy, perplexity, variety, chances and F1 on cases whose truth is known."""

import pytest
import torch
from torch import nn
from without_double import WithoutDouble

from course_lib.data.batches import consecutive_windows
from course_lib.measure.metrics import (
    accuracy,
    answer_f1,
    chance_of_counts,
    distinct,
    perplexity,
    perplexity_of,
    spearman,
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Fixed(nn.Module):
    """Gives the same logits whatever it reads."""

    def __init__(self, logits: list[float]):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits))

    def forward(self, ids):
        return self.logits.expand(*ids.shape, -1)


def test_perplexity_of_a_uniform_model_is_the_size_of_the_vocabulary():
    assert perplexity(Fixed([0.0] * 5), torch.randint(5, (1000,), generator=generator()), 16) == pytest.approx(
        5, rel=1e-5
    )


def test_perplexity_by_hand():
    model, ids = Fixed([0.0, 1.0]), torch.tensor([0, 1, 1, 0, 1])  # predicted: 1, 1, 0, 1
    p = torch.tensor([0.0, 1.0]).softmax(0)
    expected = (-(3 * p[1].log() + p[0].log()) / 4).exp().item()
    assert perplexity(model, ids, 2) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match="needs at least 6"):
        perplexity(model, ids, 5)


def test_perplexity_is_measured_without_dropout_and_the_mode_is_kept():
    model = nn.Sequential(Fixed([0.0, 3.0, -1.0]), nn.Dropout(0.5))
    windows = consecutive_windows(torch.randint(3, (200,), generator=generator()), 9)
    for training in (True, False):
        model.train(training)
        assert perplexity_of(model, *windows) == perplexity_of(model[0], *windows)
        assert model.training == model[1].training == training


def test_accuracy_says_which_are_right():
    assert accuracy(Fixed([0.0, 1.0]), torch.zeros(4).long(), torch.tensor([1, 0, 1, 1])).tolist() == [1, 0, 1, 1]


def test_distinct_counts_different_ngrams_over_all_texts():
    assert distinct([["a", "b", "a", "b"]], 2) == pytest.approx(2 / 3)  # ab, ba, ab
    assert distinct([[1, 2, 3], [1, 2, 4]], 2) == pytest.approx(3 / 4)
    assert distinct([[5], [1, 2]], 2) == 1
    with pytest.raises(ValueError, match="no text of 3 tokens"):
        distinct([[1, 2]], 3)


def test_on_a_gpu_without_float64():
    counts, p = torch.tensor([55, 45]), torch.tensor([0.5, 0.5])
    far = [x.as_subclass(WithoutDouble) for x in (counts, p)]
    assert chance_of_counts(*far) == chance_of_counts(counts, p)
    assert spearman(far[0], torch.tensor([2.0, 1.0])) == spearman(counts, torch.tensor([2.0, 1.0]))


def test_chance_of_counts_tells_a_fair_die_from_a_loaded_one():
    fair, loaded = torch.full((6,), 1 / 6), torch.tensor([1, 1, 1, 1, 1, 3]) / 8
    rolls = [torch.multinomial(p, 600, True, generator=generator(1)).bincount(minlength=6) for p in (fair, loaded)]
    assert chance_of_counts(rolls[0], fair) > 0.01
    assert chance_of_counts(rolls[1], fair) < 1e-6
    assert chance_of_counts(torch.tensor([50, 50]), torch.tensor([0.5, 0.5])) == 1
    # χ² of 1 with one degree of freedom: 0.3173
    assert chance_of_counts(torch.tensor([55, 45]), torch.tensor([0.5, 0.5])) == pytest.approx(0.3173, abs=1e-4)
    rare = torch.tensor([0.5, 0.499, 0.001])  # the last one expects 0.1: it goes to its neighbour
    assert chance_of_counts(torch.tensor([50, 49, 1]), rare) == pytest.approx(1, abs=0.02)
    assert chance_of_counts(torch.tensor([50, 49, 1]), torch.tensor([0.5, 0.5, 0.0])) == 0
    assert chance_of_counts(torch.tensor([1, 2]), torch.tensor([0.5, 0.5])) == 1  # too few draws to tell
    for counts, p in ((torch.ones(2), torch.ones(3)), (torch.zeros(2), torch.ones(2))):
        with pytest.raises(ValueError, match="Expected counts"):
            chance_of_counts(counts, p)


def test_chances_of_right_draws_are_spread_evenly():
    p = torch.rand(12, generator=generator(3))
    draws = [torch.multinomial(p, 500, True, generator=generator(seed)).bincount(minlength=12) for seed in range(400)]
    below = sum(chance_of_counts(counts, p) < 0.1 for counts in draws) / 400
    assert 0.05 < below < 0.16


def test_answer_f1():
    assert answer_f1([[1, 2, 3, 4], [5]], [[[1, 2]], [[6]]]) == pytest.approx((2 * 2 / 6 + 0) / 2)
    assert answer_f1([[1, 2, 3, 4]], [[[1, 2], [4, 3, 1], [7]]]) == pytest.approx(2 * 3 / 7)  # the best of three
    assert answer_f1([[1, 1, 1]], [[[1]]]) == pytest.approx(2 * 1 / 4)  # as often as in the reference


@pytest.mark.parametrize(
    ("answer", "references", "f1"),
    [
        ("", [""], 1),  # SQuAD 2: there is no answer, and that is said
        ("", ["cat"], 0),
        ("cat", [""], 0),
        ("the", [""], 1),  # nothing is left of it
        ("The Cat!", ["a cat"], 1),
        ("U.S.", ["us", "the United States"], 1),
        ("on the mat", ["cat"], 0),  # characters in common are nothing
        ("the black cat", ["cat"], 2 / 3),
        ("black cat sat", ["red cat", "the black cat lay"], 2 * 2 / 6),
        ("another theory", ["another"], 2 / 3),  # articles are whole words
        ("well-known", ["wellknown"], 1),
        ("“Ⅳ”", ["“ⅳ”"], 1),  # string.punctuation is ASCII's alone
    ],
)
def test_texts_are_scored_as_by_the_script_of_squad(answer, references, f1):
    assert answer_f1([answer], [references]) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("answer", "references"),
    [("cat", "cat"), ("cat", []), ("cat", [["cat"]]), (["cat"], ["cat"]), ([], []), ([1], [1]), (1, [[1]])],
)
def test_an_answer_needs_a_list_of_references_of_its_kind(answer, references):
    with pytest.raises(ValueError, match="Expected for each answer the list of its references"):
        answer_f1([answer], [references])


def test_spearman():
    x = torch.tensor([3.0, 1.0, 2.0, 2.0, 5.0])
    assert spearman(x, x.exp()) == pytest.approx(1)
    assert spearman(x, -x) == pytest.approx(-1)
    # by hand: ranks 4 1 2.5 2.5 5 and 1 2 3 4 5
    assert spearman(x, torch.arange(5.0)) == pytest.approx(3.5 / (9.5 * 10) ** 0.5)
    with pytest.raises(ValueError, match="Expected two rows of the same length"):
        spearman(x, x[:3])
