"""Sentences with a blank, tables of counts, weights set by hand."""

from itertools import product

import pytest
import torch

from course_lib import viz
from course_lib.data import tasks
from course_lib.lessons import rnn_limits as lesson
from course_lib.measure.stored import stored_runs
from course_lib.models.recurrent import Classifier, lstm_step
from course_lib.tokenizers import Vocabulary


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def told(words: torch.Tensor, lengths: torch.Tensor) -> list[str]:
    return [
        " ".join(lesson.BLANK_WORDS.decode(row[:length].tolist())) for row, length in zip(words, lengths, strict=True)
    ]


def test_the_question_of_s2_is_kept_for_the_test():
    question = "ate the cake ⟨M⟩ the fork"
    (words, lengths), _ = lesson.blanks(generator(), 4000, [0])
    assert not any(question in sentence for sentence in told(words, lengths))
    (words, lengths), missing = lesson.new_blanks(generator(), 0)
    answers = {
        lesson.PREPOSITIONS[m]
        for sentence, m in zip(told(words, lengths), missing, strict=True)
        if question in sentence
    }
    assert answers == {"with"}


def test_no_single_word_settles_the_blank():
    words, answers = (torch.cat(parts) for parts in zip(lesson.ENCODED[False], lesson.ENCODED[True], strict=True))
    for place in range(7):
        best = 0
        for word in words[:, place].unique():
            best += answers[words[:, place] == word].bincount().max().item()
        assert best / len(words) <= 0.75
    assert lesson.last_word_alone() == 0.75


def test_sentences_begin_where_they_are_asked_to():
    (words, lengths), missing = lesson.blanks(generator(), 500, [2, 5])
    assert set(lengths.tolist()) == {9, 12}
    rows, places = (words == lesson.BLANK).nonzero(as_tuple=True)
    assert rows.tolist() == list(range(500))
    assert torch.equal(places, lengths - 3)
    assert (words[torch.arange(lesson.SENTENCE) >= lengths[:, None]] == lesson.PADDING).all()
    assert missing.bincount(minlength=4).min() > 90


def test_the_order_alone_tells_on_from_under():
    answers = {}
    for sentence, answer, _ in lesson.SENTENCES:
        answers.setdefault(tuple(sorted(sentence.split())), set()).add(answer)
    assert {frozenset(found) for found in answers.values()} == {
        frozenset({"with"}),
        frozenset({"in"}),
        frozenset({"on", "under"}),
    }


def test_new_blanks_are_all_of_them_after_the_same_words():
    (words, lengths), missing = lesson.new_blanks(generator(), 2)
    assert words.shape == (128, lesson.SENTENCE)
    assert set(lengths.tolist()) == {9}
    assert missing.bincount(minlength=4).tolist() == [32, 32, 32, 32]
    assert len(words[:, :2].unique(dim=0)) == 1
    assert len(words.unique(dim=0)) == 128


def test_one_sentence_is_filled_up():
    words, lengths = lesson.one_blank("he ate the cake ⟨M⟩ the fork")
    assert told(words, lengths) == ["he ate the cake ⟨M⟩ the fork"]
    assert words.shape == (1, lesson.SENTENCE)


def by_hand(train: list[int], context: list[int], word: int, letters: int) -> float:
    """Witten and Bell's formula, one context at a time."""
    shorter = by_hand(train, context[1:], word, letters) if context else 1 / letters
    n = len(context)
    after = [train[i + n] for i in range(len(train) - n) if train[i : i + n] == context]
    return (after.count(word) + len(set(after)) * shorter) / (len(after) + len(set(after))) if after else shorter


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_witten_bell(n):
    train, test = (torch.randint(5, (length,), generator=generator(length)) for length in (60, 30))
    p = lesson.witten_bell(train, test, n, 6)
    wanted = [by_hand(train.tolist(), test[i - n + 1 : i].tolist(), test[i].item(), 6) for i in range(n - 1, 30)]
    torch.testing.assert_close(p, torch.tensor(wanted))


def test_what_follows_a_context_sums_to_one():
    train = torch.randint(5, (60,), generator=generator())
    total = sum(lesson.witten_bell(train, torch.tensor([1, 2, letter]), 3, 6) for letter in range(6))
    torch.testing.assert_close(total, torch.ones(1))


def test_a_letter_model_knows_only_what_came_before():
    model = lesson.LetterModel(torch.nn.RNN, 6, d=8)
    ids = torch.randint(6, (2, 5), generator=generator())
    logits = model(ids)
    assert logits.shape == (2, 5, 6)
    torch.testing.assert_close(model(ids[:, :3]), logits[:, :3])


def test_the_latch_keeps_what_was_written_last():
    W, U, b = lesson.latch_weights(3)
    h = c = torch.zeros(1, 3)
    for values, write in (([1.0, -1.0, 1.0], 1.0), ([-1.0, -1.0, 1.0], 1.0), *[([1.0, 1.0, -1.0], 0.0)] * 500):
        h, c = lstm_step(torch.tensor([[*values, write]]), h, c, W, U, b)
    assert h.sign().tolist() == [[-1, -1, 1]]
    assert h.abs().min() > 0.7


def test_scaled_to_keep():
    U = lesson.scaled_to_keep(torch.randn(7, 7, generator=generator()), 0.3, 40)
    assert torch.linalg.eigvals(U).abs().max().item() ** 40 == pytest.approx(0.3, rel=1e-4)


def test_far_over_near_of_a_network_that_forgets_by_half():
    rnn = torch.nn.RNN(4, 4, batch_first=True)
    for name, weight in rnn.named_parameters():
        weight.data = {"weight_ih_l0": torch.eye(4), "weight_hh_l0": torch.eye(4) / 2}.get(name, torch.zeros(4))
    reader = Classifier(rnn, 4, 3, 2)
    reader.embed.weight.data *= 1e-3  # so that tanh is all but linear
    found = lesson.far_over_near(reader, torch.tensor([[0, 1, 2, 1, 2, 0]]))
    near = (0.5**3 + 0.5**2 + 0.5) / 3
    assert found == pytest.approx(0.5**5 / near, rel=1e-3)


def test_log_axis_has_the_ticks_asked_for():
    _, ax = viz.figure()
    lesson.log_axis(ax, (1, 2, 32))
    assert ax.get_xscale() == "log"
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "2", "32"]
    assert len(ax.get_xticks(minor=True)) == 0


def test_rivals_look_at_all_places():
    x = torch.randn(3, 5, 4, generator=generator())
    total, _ = lesson.AddUp()(x)
    torch.testing.assert_close(total[:, -1], x.sum(dim=1))
    torch.testing.assert_close(total[:, 1], x[:, :2].sum(dim=1))
    looked, _ = lesson.LookBack(4, num_heads=1, batch_first=True)(x)
    assert (looked.shape, total.shape) == ((3, 1, 4), (3, 5, 4))


@pytest.mark.parametrize(("attends", "same"), [(False, True), (True, False)])
def test_a_copier_whose_state_does_not_pass_knows_the_source_by_attention_alone(attends, same):
    symbols = torch.randint(tasks.SYMBOLS, (2, 6), generator=generator())
    other = symbols.clone()
    other[:, 3] = (symbols[:, 3] + 1) % tasks.SYMBOLS  # the decoder is told it from the fifth symbol on
    model = lesson.Copier(0, attends)
    assert model(symbols).shape == (2, 6, tasks.SYMBOLS)
    assert torch.equal(model(symbols)[:, :4], model(other)[:, :4]) == same
    wide = lesson.Copier(64)
    assert not torch.equal(wide(symbols)[:, :4], wide(other)[:, :4])


@pytest.mark.parametrize("layers", [1, 2])
def test_at_the_blank_only_both_ends_see_what_follows(layers):
    words, lengths = lesson.one_blank("he ate the cake ⟨M⟩ the fork")
    other, _ = lesson.one_blank("he ate the cake ⟨M⟩ the park")
    for how in ("left to right", "concatenated", "summed", "learned"):
        model = lesson.AtTheBlank(how, layers)
        same = torch.equal(model(words, lengths), model(other, lengths))
        assert same == (how == "left to right")


def test_from_the_right_only_what_follows_is_seen():
    model = lesson.AtTheBlank("right to left")
    ate, put, park = (
        model(*lesson.one_blank(f"he {verb} the cake ⟨M⟩ the {noun}"))
        for verb, noun in (("ate", "fork"), ("put", "fork"), ("ate", "park"))
    )
    assert torch.equal(ate, put)
    assert not torch.equal(ate, park)


def test_opened_and_orthogonal():
    network = lesson.opened(torch.nn.LSTM(32, 64, batch_first=True))
    assert (network.bias_ih_l0.reshape(4, 64) == 5).all(dim=1).tolist() == [False, True, False, False]
    U = lesson.orthogonal(torch.nn.RNN(8, 8, batch_first=True)).weight_hh_l0.detach()
    torch.testing.assert_close(U @ U.T, torch.eye(8))


def test_agreement_rows():
    rows = {"sentence": ["the cow", "the old cows"], "number": [0, 1], "distance": [3, 4]}
    (words, lengths), plural, distance = lesson.agreement_rows(rows, Vocabulary(["cow", "cows", "old", "the"]))
    assert lengths.tolist() == [2, 3]
    assert words.tolist() == [[3, 0, 0], [3, 2, 1]]
    assert (plural.tolist(), distance.tolist()) == ([0, 1], [3, 4])


def test_bits_that_pass_are_three_less_the_cross_entropy():
    symbols = torch.randint(tasks.SYMBOLS, (6, 4), generator=generator())
    knows = torch.nn.functional.one_hot(symbols, tasks.SYMBOLS) * 50.0
    knows[:, 2:] = 0.0  # of the last two places nothing
    assert lesson.bits_that_pass(lambda _: knows, symbols) == pytest.approx(6.0)


def test_longer_runs_are_those_of_the_script():
    copiers = stored_runs("recurrent", "copiers")
    sizes = ("4 + 4", "64 + 64")
    assert {(name, steps) for name, steps, _ in copiers} == {(name, steps) for name in sizes for steps in (400, 1600)}
    for name, length in product(sizes, (6, 8, 12, 16, 20)):  # as the lesson says: four times the training brings more
        short, long = (copiers[name, steps, f"{length} symbols"] for steps in (400, 1600))
        assert max(short) < min(long)
    ranges = {name: [f(copiers[name, 400, "20 symbols"]) for f in (len, min, max)] for name in sizes}
    assert {name: [round(value) for value in found] for name, found in ranges.items()} == {
        "4 + 4": [5, 6, 14],
        "64 + 64": [5, 30, 32],
    }
    assert max(max(values) for values in stored_runs("recurrent", "rates").values()) < 0.16  # as the lesson says


def test_what_the_lesson_quotes_of_more_beginnings_is_stored():
    starts = stored_runs("recurrent", "starts")
    assert sum(value > 0.5 for value in starts["Elman", 800, "accuracy"]) == 7
    assert max(starts["LSTM", 800, "accuracy"]) < 0.2
    reach = {distance: lesson.stored_reach(distance) for distance in (60, 120)}
    assert min(reach[60]["GRU, gate opened"] + reach[120]["GRU, gate opened"]) > 0.8
    learned = {
        distance: {name: sum(value > 0.5 for value in values) for name, values in rows.items()}
        for distance, rows in reach.items()
    }
    assert learned[60] == {
        "Elman": 0,
        "LSTM": 0,
        "GRU": 0,
        "Elman, random U, ρ = 1": 4,
        "Elman, U orthogonal": 7,
        "LSTM, gate opened": 6,
        "GRU, gate opened": 10,
    }
    assert list(learned[120].values()) == [0, 0, 0, 0, 2, 1, 5]
    wide = stored_runs("recurrent", "wide")
    learned = {name: (sum(value > 0.5 for value in values), len(values)) for (name, _, _), values in wide.items()}
    assert learned.pop("GRU, gate opened") == (10, 10)
    assert learned == dict.fromkeys(("Elman", "LSTM", "Elman, U orthogonal"), (0, 10))
    clipping = stored_runs("recurrent", "clipping")
    ended = {name: sum(loss < 0.1 for loss in clipping[name, 300, "final loss"]) for name, _, _ in clipping}
    assert ended == {"free": 0, "clipped": 28, "matched rate": 26}
    assert [len(losses) for losses in clipping.values()] == [28] * 6
    assert [round(loss, 1) for loss in sorted(clipping["matched rate", 300, "final loss"])[-2:]] == [0.2, 1.4]
    steps = [torch.tensor(clipping[name, 300, "mean step"]) for name in ("matched rate", "clipped")]
    ratios = steps[0] / steps[1]
    assert [round(ratios.min().item(), 2), round(ratios.max().item(), 1)] == [0.58, 1.6]
    assert ((ratios - 1).abs() < 0.1).sum() == 11


def test_drawings_show_every_run():
    _, ax = viz.figure()
    lesson.draw_dots(ax, {"two": torch.tensor([0.1, 0.9]), "one": torch.tensor([0.5])}, 0.125)
    assert [len(line.get_xdata()) for line in ax.get_lines()] == [2, 1, 2]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["two", "one"]
    _, ax = viz.figure()
    lesson.draw_bits(ax, (2, 20), {"4 + 4 and attention": [6, 59], "64 + 64": [6, 30], "4 + 4": [5, 14]})
    assert len(ax.get_lines()) == 6
    assert len(ax.collections) == 2
    _, ax = viz.figure()
    lesson.draw_stored_trainings(ax, 60)
    assert [text.get_text() for text in ax.texts][-2:] == ["6 of 10", "10 of 10"]


def test_what_is_watched_is_drawn():
    tokens, answers = tasks.recall(generator(), 6, 4)
    reader = Classifier(torch.nn.RNN(4, 4, batch_first=True), 4, tasks.VOCABULARY, tasks.SYMBOLS)
    found = lesson.watch(reader, tokens, answers)
    assert found["ratio"] == lesson.far_over_near(reader, tokens)
    assert 0 <= found["accuracy"] <= 1
    _, axes = viz.figure(columns=2)
    lesson.draw_watched(axes, {"Elman": {key: ([0], [value]) for key, value in found.items()}})
    assert [len(ax.get_lines()) for ax in axes] == [2, 2]


def test_milliseconds():
    taken = lesson.milliseconds((4, 8), torch.device("cpu"))
    assert {name: len(times) for name, times in taken.items()} == {"Elman": 2, "attention": 2}
