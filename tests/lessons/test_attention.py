"""A control that lets nothing through, vectors that find their places, links, stories as numbers."""

import csv

import pytest
import torch

from course_lib import viz
from course_lib.data.batches import Pairs
from course_lib.lessons import attention as lesson
from course_lib.measure.stored import TABLES, stored_runs
from course_lib.models.attention import Alignment


def some_pairs() -> Pairs:
    return Pairs(
        [["the", "hat", "was", "painted", "by", "her"], ["she", "saw", "the", "hat"]],
        [["ella", "pintó", "el", "sombrero"], ["vio", "el", "sombrero"]],
    )


def test_blind_inputs_are_the_same_for_every_sentence():
    source, lengths, before = lesson.source_blind(*some_pairs().inputs)
    assert source.tolist() == [[0], [0]]
    assert lengths.tolist() == [1, 1]
    assert torch.equal(before, some_pairs().before)


def test_the_reversing_vectors_lead_by_the_margin():
    q, keys = lesson.reversing_vectors(torch.tensor([3, 5]), 5, 4.0)
    for row, n in enumerate((3, 5)):
        scores = (q[row] @ keys.T)[:n, :n]
        best = scores.topk(2, dim=-1)
        assert best.indices[:, 0].tolist() == list(range(n))[::-1]
        torch.testing.assert_close(best.values[:, 0] - best.values[:, 1], torch.full((n,), 4.0))


def test_links_as_masks():
    gold = [({(0, 2), (1, 3), (3, 1), (5, 0)}, {(4, 0)}), ({(2, 1), (3, 2)}, set())]
    sure, either = lesson.link_masks(some_pairs(), gold)
    assert sure.shape == (2, 5, 6)
    assert {(x, y) for y, x in sure[0].nonzero().tolist()} == gold[0][0]
    assert {(x, y) for y, x in either[0].nonzero().tolist()} == gold[0][0] | gold[0][1]
    assert torch.equal(sure[1], either[1])


def test_what_is_left_of_a_look_keeps_its_proportions():
    weights = torch.tensor([[[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]])
    seen = torch.tensor([[[False, True, True], [True, True, False]]])
    torch.testing.assert_close(lesson.only(weights, seen), torch.tensor([[[0.0, 0.6, 0.4], [0.5, 0.5, 0.0]]]))
    assert weights[0, 0, 0] == 0.5
    assert not lesson.only(weights, torch.zeros(1, 2, 3, dtype=torch.bool)).any()


def test_the_last_state_alone_is_seen():
    states = torch.randn(2, 4, 3)
    mask = torch.tensor([[[True, True, False, False]], [[True] * 4]])
    context, weights = lesson.last_look(torch.randn(2, 5, 3), states, mask, None)
    torch.testing.assert_close(context, torch.stack([states[0, 1], states[1, 3]])[:, None].expand(2, 5, 3))
    assert weights.shape == (2, 5, 4)


def test_links():
    assert lesson.gold_links("0-1 2?0 10-11") == ({(0, 1), (10, 11)}, {(2, 0)})


def test_passives_and_shares_by_length():
    pairs = some_pairs()
    assert lesson.has_passive(pairs).tolist() == [True, False]
    wrong = torch.tensor([[1.0, 1, 0, 0, 0], [1, 1, 1, 1, 0]])
    shares = lesson.shares_by_length(wrong, pairs, torch.tensor([True, True]))
    assert shares[0] == pytest.approx(5 / 7)  # both have 4 to 6 words; neither the end counts nor what comes after it


def test_a_sharp_cosine_is_a_cosine_times_a_number():
    q, keys = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    cosine = Alignment("cosine", 4, longest=5)(q, keys)
    torch.testing.assert_close(lesson.SharpCosine(4, longest=5, sharpness=8.0)(q, keys), 8 * cosine)


def test_shares_by_place():
    pairs = Pairs([["she", "saw", "the", "hat"]] * 20, [["vio", "el", "sombrero"]] * 19 + [["ella"] * 4])
    wrong = torch.zeros(20, 5)
    wrong[:, 1] = 1
    found = lesson.shares_by_place(wrong, pairs)
    assert found[5] == [0, 1, 0]  # one sentence alone has a fourth word; the end does not count
    assert found[8] == []
    gains = lesson.gains_by_place({"RNN": wrong, "source-blind": torch.ones(20, 5)}, pairs)
    assert gains[5] == [1, 0, 1]


def test_short_pairs():
    short = lesson.up_to(4, some_pairs(), some_pairs())
    assert short.sources == [["she", "saw", "the", "hat"]]
    assert torch.equal(short.source[0], some_pairs().source[1, :4])


def test_an_even_look_gives_all_words_the_same_score():
    assert lesson.EvenLook()(torch.randn(2, 3, 4), torch.randn(2, 5, 4)).tolist() == torch.zeros(2, 3, 5).tolist()


def test_links_by_counting():
    """*hat* stands with *sombrero* in both sentences; *the hat* alone with *el sombrero* tells the two apart."""
    pairs = Pairs([["the", "hat"], ["the", "cup"], ["a", "hat"]], [["el", "gorro"], ["el", "vaso"], ["un", "gorro"]])
    assert lesson.links_by_counting(pairs, pairs) == [[0, 1], [0, 1], [0, 1]]


@pytest.mark.parametrize("name", lesson.SCORES)
def test_named_scores(name):
    score = lesson.named_score(name, 4, longest=5)
    assert score(torch.randn(2, 3, 4), torch.randn(2, 5, 4)).shape == (2, 3, 5)
    if name in ("even", "cosine × 8"):
        assert not list(score.parameters())


def test_what_is_stored_is_complete():
    longer = stored_runs("attention", "longer")
    for name in ("source-blind", "RNN", "last state at every step", "even look", "attention", "location score"):
        assert all(mean == mean for mean in lesson.stored_means(longer, name, "actives", steps=3000))
        assert len(lesson.stored_gains(longer, (23,), steps=3000, run=2, name=name)[23]) == lesson.LAST_PLACE
    scores = stored_runs("attention", "scores")
    assert {name for name, _, _ in scores} == set(lesson.SCORES)
    assert {group for _, _, group in scores} == {"wrong"}
    assert all(0 <= value <= 1 for values in scores.values() for value in values)
    assert len(stored_runs("attention", "hops")) == 12
    starts = stored_runs("attention", "translators")
    assert len(lesson.stored_gains(starts, (14,), steps=300, run=2)[14]) == lesson.LAST_PLACE
    last = lesson.stored_means(starts, "last state at every step", "passives", steps=300)
    assert [mean == mean for mean in last] == [False] + 6 * [True]  # no passive has 4 to 6 words
    with (TABLES / "attention.csv").open(encoding="utf-8") as file:
        assert {row["experiment"] for row in csv.DictReader(file)} == {"translators", "longer", "scores", "hops"}


def test_gains_drawn():
    _, ax = viz.figure()
    lesson.draw_gains(ax, {5: [0.6, 0.5], 23: [0.4, 0.3, 0.1]}, [{5: [0.5, 0.4], 23: [0.3, 0.2, 0.1]}])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["4–6 words", "22–24 words"]
    assert len(ax.get_lines()) == 5  # with the line at 0


def test_pictures():
    _, ax = viz.figure()
    viz.curves(ax, {"RNN": (lesson.LENGTHS, [0.5] * 7)}, legend=None)
    stored = {("RNN", 3, f"actives {length}"): [0.4, 0.6] for length in lesson.LENGTHS}
    lesson.thin_lines(ax, stored, "actives", 3)
    assert len(ax.get_lines()) == 3
    lesson.name_lines(ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["RNN"]
    lesson.name_lines(ax, thin="other starts")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["RNN", "other starts"]
    lesson.draw_alignment(ax, torch.rand(5, 6), some_pairs(), 0, ({(0, 2)}, {(4, 0)}), "title")
    assert len(ax.collections) == 2
    lesson.name_links(ax)
    assert "sure link" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_lines_that_would_look_alike_are_marked_apart():
    _, ax = viz.figure()
    for name in ("attention", "even look", "attention, bidirectional"):
        ax.plot([1, 2], [1, 2], label=name, marker="D")
    lesson.mark_apart(ax)
    assert [line.get_marker() for line in ax.get_lines()] == ["D", "X", "P"]


def test_thin_lines_have_the_colour_of_their_name():
    _, ax = viz.figure()
    viz.curves(ax, {name: (lesson.LENGTHS, [0.5] * 7) for name in ("attention", "RNN")}, legend=None)
    lesson.thin_lines(ax, {("RNN", 3, f"actives {length}"): [0.4] for length in lesson.LENGTHS}, "actives", 3)
    thick, thin = ax.get_lines()[1:]
    assert thick.get_label() == "RNN"
    assert thin.get_color() == thick.get_color()


def test_pictures_of_scores_and_starts():
    _, (left, right) = viz.figure(columns=2)
    lesson.draw_scores(left, {"dot": 0.1, "cosine": 0.3}, {("dot", 200, "wrong"): [0.1, 0.2]})
    assert [label.get_text() for label in left.get_yticklabels()] == ["dot", "cosine"]
    lesson.name_scores(left)
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["here", "three other starts, a mark each"]
    lesson.draw_starts(right, {("2 hops, softmax", 1200, "two facts"): [0.4, 0.9]}, "two facts", guess=0.4)
    assert sum(len(dots.get_offsets()) for dots in right.collections) == 2


def test_stories():
    train, test, words, answers = lesson.load_stories()
    assert train.inputs[0].shape[1:] == (11, 6)
    two = test.some(test.of_kind("two facts"))
    assert set(two.texts["kind"]) == {"two facts"}
    assert len(two.targets) == len(two.texts["story"]) == len(two.inputs[1])
    assert answers.decode(two.targets[:1]) == two.texts["answer"][:1]
    told, asked = lesson.encode_story(["joe went to the office", "joe took the milk"], "where is the milk", words)
    assert (told[0, :2] > 0).any(dim=-1).all()
    assert (asked > 0).sum() == 4
    assert lesson.newest_place("joe went to the office. anna moved to the garden. joe took the milk") == "garden"
    assert lesson.newest_movement("joe went to the office. anna moved to the garden. joe took the milk") == 1
    assert lesson.newest_movement("joe went to the office. anna moved to the garden. joe took the milk", but=1) == 0
    assert lesson.newest_with(["joe took the milk", "joe put down the milk", "joe took the apple"], "milk") == 1
    assert lesson.newest_movement_of("joe went to the office. anna moved to the garden. joe took the milk", 2) == 0
    assert lesson.newest_movement_of("joe went to the office. anna took the milk", 1) == -1
    needed, newest, of_person = lesson.fact_numbers(two)
    assert needed.shape == (len(two.targets), 2)
    assert 0 < (newest == needed[:, 1]).float().mean() < (of_person == needed[:, 1]).float().mean() < 1
    assert lesson.newest_place_right(two.texts) == pytest.approx(0.44, abs=0.01)


@pytest.mark.parametrize("start", ["softmax", "linear start"])
def test_a_memory_is_trained(start):
    train, _, words, answers = lesson.load_stories()
    seen = []

    def draw(generator):
        rows = torch.randint(len(train.targets), (4,), generator=generator)
        seen.append(rows)
        return tuple(x[rows] for x in train.inputs), train.targets[rows]

    network = lesson.trained_memory(draw, len(words), len(answers), 2, start, steps=5, seed=0)
    assert network.hops == 2
    assert len(seen) == 5
