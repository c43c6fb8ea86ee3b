"""Tasks, text windows, vocabulary, metrics and instruments on cases whose truth is known."""

import itertools

import pytest
import torch
from torch import nn

from course_lib import measure, tasks
from course_lib.metrics import accuracy, chance_of_counts, consecutive_windows, distinct, perplexity, perplexity_of
from course_lib.tokenizers import Vocabulary
from course_lib.training import next_token_loss


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_recall_holds_one_symbol_the_fillers_and_the_cue():
    inputs, targets = tasks.recall(generator(), 50, distance=6)
    assert inputs.shape == (50, 8)
    assert torch.equal(inputs[:, 0], targets)
    assert targets.unique().tolist() == list(range(tasks.SYMBOLS))
    assert ((inputs[:, 1:-1] >= tasks.SYMBOLS) & (inputs[:, 1:-1] < tasks.CUE)).all()
    assert (inputs[:, -1] == tasks.CUE).all()


def test_clue_stands_at_the_places_asked_for_and_nowhere_else():
    inputs, targets = tasks.clue(generator(), 200, 7, [1, 4])
    rows, places = (inputs < tasks.SYMBOLS).nonzero(as_tuple=True)
    assert rows.tolist() == list(range(200))
    assert set(places.tolist()) == {1, 4}
    assert torch.equal(inputs[rows, places], targets)


@pytest.mark.parametrize("places", [[], [7], [-1, 2]])
def test_clue_outside_the_sequence_is_refused(places):
    with pytest.raises(ValueError, match="Expected places within 0 … 6"):
        tasks.clue(generator(), 2, 7, places)


def test_copy_has_one_length_from_the_range():
    lengths = {tasks.copy(generator(seed), 3, range(2, 5))[0].shape[1] for seed in range(30)}
    assert lengths == {2, 3, 4}
    inputs, targets = tasks.copy(generator(), 3, range(4, 5))
    assert torch.equal(inputs, targets)
    assert inputs.max() < tasks.SYMBOLS


def test_windows_are_pieces_of_the_text_and_targets_come_one_later():
    text = torch.arange(100)
    inputs, targets = tasks.windows(text, 64, 10)(generator())
    assert inputs.shape == targets.shape == (64, 10)
    assert torch.equal(inputs + 1, targets)
    last = {int(t) for seed in range(80) for t in tasks.windows(torch.arange(12), 8, 10)(generator(seed))[1][:, -1]}
    assert last == {10, 11}  # the end of the text is reached


def test_too_short_a_text_is_refused():
    with pytest.raises(ValueError, match="windows of 10 need at least 11"):
        tasks.windows(torch.arange(10), 1, 10)


def test_sample_draws_from_the_chosen_rows_only():
    rows = torch.tensor([True, False, True, False])
    (values,), targets = tasks.sample((torch.arange(4),), torch.arange(4), rows, 40)(generator())
    assert set(values.tolist()) == {0, 2}
    assert torch.equal(values, targets)
    with pytest.raises(ValueError, match="no example to draw from"):
        tasks.sample((torch.arange(4),), torch.arange(4), torch.zeros(4, dtype=torch.bool), 2)


def test_vocabulary_round_trip_and_padding():
    letters = Vocabulary("banana")
    assert letters.tokens == ["a", "b", "n"]
    assert "".join(letters.decode(letters.encode("nab"))) == "nab"
    ids, lengths = letters.encode_all(["ban", "a"])
    assert ids.tolist() == [[1, 0, 2], [0, 0, 0]]
    assert lengths.tolist() == [3, 1]
    with pytest.raises(ValueError, match="The token 'x' is not among the 3"):
        letters.encode("ax")
    with pytest.raises(ValueError, match="at least one token"):
        Vocabulary([])


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


def test_windows_follow_one_another_and_their_targets_come_one_token_later():
    inputs, targets = consecutive_windows(torch.arange(12), 4)
    assert inputs.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert torch.equal(targets, inputs + 1)


def test_perplexity_is_measured_without_dropout_and_the_mode_is_kept():
    model = nn.Sequential(Fixed([0.0, 3.0, -1.0]), nn.Dropout(0.5))
    windows = consecutive_windows(torch.randint(3, (200,), generator=generator()), 9)
    for training in (True, False):
        model.train(training)
        assert perplexity_of(model, *windows) == perplexity_of(model[0], *windows)
        assert model.training == model[1].training == training


def test_the_loss_of_a_language_model_is_about_the_token_after():
    sure = 50 * torch.nn.functional.one_hot(torch.tensor([[1, 2, 0, 0]]), 3).float()
    assert next_token_loss(sure, torch.tensor([[0, 1, 2, 0]])) < 1e-6
    assert next_token_loss(sure, torch.tensor([[1, 2, 0, 0]])) > 10


def test_accuracy_says_which_are_right():
    assert accuracy(Fixed([0.0, 1.0]), torch.zeros(4).long(), torch.tensor([1, 0, 1, 1])).tolist() == [1, 0, 1, 1]


def test_influence_of_a_known_map():
    A = torch.tensor([[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 4.0]])
    assert torch.allclose(measure.influence(lambda x: (A @ x[0])[None], torch.randn(3, 1)), A)


def test_serial_depth_counts_what_must_wait():
    x = torch.randn(4, requires_grad=True)
    chain = x
    depths = []
    for _ in range(20):
        chain = chain.sin()
        depths.append(measure.serial_depth(chain))
    assert [b - a for a, b in itertools.pairwise(depths)] == [1] * 19
    wide = sum(x.sin() for _ in range(1)) * 1
    assert measure.serial_depth(torch.stack([x.sin() for _ in range(50)])) <= measure.serial_depth(wide)


def test_seconds_counts_runs_and_leaves_the_first_out():
    calls = []
    assert measure.seconds(lambda: calls.append(1), repeats=4) >= 0
    assert len(calls) == 5


def test_distinct_counts_different_ngrams_over_all_texts():
    assert distinct([["a", "b", "a", "b"]], 2) == pytest.approx(2 / 3)  # ab, ba, ab
    assert distinct([[1, 2, 3], [1, 2, 4]], 2) == pytest.approx(3 / 4)
    assert distinct([[5], [1, 2]], 2) == 1
    with pytest.raises(ValueError, match="no text of 3 tokens"):
        distinct([[1, 2]], 3)


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
