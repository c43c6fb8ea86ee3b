"""Batches: windows of a text, examples, pairs, stories, drawn as the docstrings say."""

from itertools import pairwise

import pytest
import torch

from course_lib.data.batches import (
    Examples,
    Pairs,
    by_epoch,
    consecutive_windows,
    encode_stories,
    pad_rows,
    pair_batches,
    pair_inputs,
    windows,
    with_replacement,
)
from course_lib.tokenizers import Vocabulary, WordPiece


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def row(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers)


def test_windows_are_pieces_of_the_text_and_targets_come_one_later():
    text = torch.arange(100)
    inputs, targets = windows(text, 64, 10)(generator())
    assert inputs.shape == targets.shape == (64, 10)
    assert torch.equal(inputs + 1, targets)
    last = {int(t) for seed in range(80) for t in windows(torch.arange(12), 8, 10)(generator(seed))[1][:, -1]}
    assert last == {10, 11}  # the end of the text is reached


def test_too_short_a_text_is_refused():
    with pytest.raises(ValueError, match="windows of 10 need at least 11"):
        windows(torch.arange(10), 1, 10)


def test_windows_follow_one_another_and_their_targets_come_one_token_later():
    inputs, targets = consecutive_windows(torch.arange(12), 4)
    assert inputs.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert torch.equal(targets, inputs + 1)


def test_sample_draws_from_the_chosen_rows_only():
    rows = torch.tensor([True, False, True, False])
    (values,), targets = with_replacement((torch.arange(4),), torch.arange(4), rows, 40)(generator())
    assert set(values.tolist()) == {0, 2}
    assert torch.equal(values, targets)
    with pytest.raises(ValueError, match="no example to draw from"):
        with_replacement((torch.arange(4),), torch.arange(4), torch.zeros(4, dtype=torch.bool), 2)


def test_a_pair_equals_the_tokenizers_and_is_filled_up():
    ids, mask, segments = pair_inputs([row(6, 7), row(8)], [row(9), row(6, 7, 9)], 2, 3)
    assert ids.tolist() == [[2, 6, 7, 3, 9, 3, 0], [2, 8, 3, 6, 7, 9, 3]]
    assert mask.tolist() == [[True] * 6 + [False], [True] * 7]
    assert segments.tolist() == [[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1, 1]]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "the", "cat", "dog", "sleep"]
    tokenizer = WordPiece({word: i for i, word in enumerate(words)})
    assert torch.equal(ids[0, :6], tokenizer.encode("the cat", "sleep"))


def test_examples_are_cut_at_their_longest_and_drawn_by_length():
    rows = [torch.full((n,), 6) for n in (9, 2, 5, 2, 9, 3)]
    examples = Examples(pad_rows(rows), torch.arange(6))
    (ids, mask, segments), targets = examples.rows(torch.tensor([1, 5]))
    assert ids.shape == mask.shape == segments.shape == (2, 3)
    assert targets.tolist() == [1, 5]
    assert len(examples.some(torch.tensor([0, 2]))) == 2
    (ids, mask, _), targets = examples.batches(2)(torch.Generator().manual_seed(0))
    assert len(ids) == len(targets) == 2
    assert mask.any(dim=0).all()
    with pytest.raises(ValueError, match="Expected a target for each text; got 6 texts, 5 targets"):
        Examples(pad_rows(rows), torch.arange(5))


def test_every_text_comes_once_before_any_comes_again():
    lengths = [5, 1, 9, 2, 8, 3, 7, 4, 6, 9]
    draw, generator = by_epoch(torch.tensor(lengths), 3), torch.Generator().manual_seed(0)
    for _ in range(4):  # an epoch: three batches, one text is left over
        epoch = [draw(generator).tolist() for _ in range(3)]
        assert len({i for rows in epoch for i in rows}) == 9
        spans = sorted((min(lengths[i] for i in rows), max(lengths[i] for i in rows)) for rows in epoch)
        assert all(longest <= shortest for (_, longest), (shortest, _) in pairwise(spans))  # by length
    runs = [torch.Generator().manual_seed(5) for _ in range(2)]
    first, again = ([draw(run).tolist() for _ in range(4)] for run in runs)  # the first run stops within an epoch
    assert first == again
    with pytest.raises(ValueError, match="Batches of 11 need at least as many texts; there are 10"):
        by_epoch(torch.tensor(lengths), 11)


def test_pairs_are_read_in_one_go():
    sides = [
        Examples(pad_rows([torch.full((n,), i) for i, n in enumerate(lengths, 1)]), torch.arange(4))
        for lengths in ((2, 9, 3, 8), (3, 2, 2, 9))
    ]
    draw, generator = pair_batches(*sides, 2), torch.Generator().manual_seed(0)
    batches = [draw(generator) for _ in range(2)]
    assert sorted(sorted(targets.tolist()) for _, targets in batches) == [[0, 2], [1, 3]]  # by the longer text
    for (ids, mask, segments), targets in batches:
        assert ids.shape == mask.shape == segments.shape == (4, ids.shape[1])
        assert (ids[:, 0] - 1).tolist() == [*targets, *targets]  # the firsts, then the seconds
        assert torch.equal(mask, ids > 0)
        assert mask.any(dim=0).all()


def test_pairs_are_shifted_and_filled_up():
    pairs = Pairs([["a", "b", "c"], ["a"]], [["x"], ["y", "x"]])
    words = pairs.target_words
    assert [words.decode(row) for row in pairs.before] == [["<s>", "x", "</s>"], ["<s>", "y", "x"]]
    assert pairs.after.tolist() == [[*words.encode(["x", "</s>"]), -100], [*words.encode(["y", "x", "</s>"])]]
    assert pairs.lengths.tolist() == [3, 1]
    other = Pairs([["c"]], [["x", "x", "x"]], like=pairs)
    assert other.source.tolist() == [[pairs.source_words.ids["c"]]]
    with pytest.raises(ValueError, match="'z'"):
        Pairs([["z"]], [["x"]], like=pairs)


def test_batches_hold_pairs_of_about_one_length():
    sources = [["a"] * n for n in (1, 2, 3, 4, 9)]
    draw, generator = Pairs(sources, [["x"] * len(s) for s in sources]).batches(6), torch.Generator().manual_seed(0)
    met = set()
    for _ in range(40):
        (source, lengths, before), after = draw(generator)
        assert lengths.max() - lengths.min() <= 1
        assert source.shape == (6, lengths.max())
        assert before.shape == after.shape == (6, lengths.max() + 1)
        met |= set(lengths.tolist())
    assert met == {1, 2, 3, 4, 9}


def test_stories_are_encoded_from_1_on_and_the_newest_facts_are_kept():
    words = Vocabulary(["joe", "went", "home", "slept", "where", "is"])
    story = "joe slept. joe went home. joe slept"
    told, asked = encode_stories([story], ["where is joe"], words, facts=2, longest=4)
    home, is_, joe, slept, went, where = range(1, 7)
    assert told.tolist() == [[[joe, went, home, 0], [joe, slept, 0, 0]]]
    assert asked.tolist() == [[where, is_, joe, 0]]
