"""The corpora written by hand: each sentence has its word once, each sense as many sentences as the others."""

import collections

import pytest

from course_lib.data import load
from course_lib.tokenizers.wordpiece import basic_words


@pytest.mark.parametrize(
    ("name", "split", "columns", "groups", "each"),
    [
        ("broke", "train", ["sense"], 6, 1),
        ("broke", "test", ["sense"], 5, 12),
        ("senses", "train", ["word", "sense"], 20, 6),
        ("senses", "test", ["word", "sense"], 8, 6),
        ("speakers", "train", ["word", "speaker"], 16, 2),
        ("speakers", "test", ["word", "speaker"], 16, 1),
    ],
)
def test_each_sentence_has_its_word_once(name, split, columns, groups, each):
    rows = load(name, split, quiet=True).to_list()
    for row in rows:
        assert basic_words(row["sentence"], True).count(row.get("word", "broke")) == 1, row["sentence"]
    counts = collections.Counter(tuple(row[column] for column in columns) for row in rows)
    assert counts == dict.fromkeys(counts, each)
    assert len(counts) == groups


def test_what_stands_before_the_sense_is_matched():
    """Each name says *broke the* once in each sense, and no sentence stands twice."""
    rows = load("broke", "test", quiet=True).to_list()
    before = collections.Counter(tuple(row["sentence"].split()[:3]) for row in rows)
    assert before == {(name, "broke", "the"): 5 for name, *_ in before}
    assert len({row["sentence"] for row in rows}) == len(rows)


@pytest.mark.parametrize("name", ["broke", "senses", "speakers"])
def test_no_sentence_is_in_both_splits(name):
    train, test = (set(load(name, split, quiet=True)["sentence"]) for split in ("train", "test"))
    assert not train & test


def test_both_speakers_say_every_word():
    senses = {split: load("speakers", split, quiet=True).to_list() for split in ("train", "test")}
    pairs = [{(row["word"], row["speaker"]) for row in rows} for rows in senses.values()]
    assert pairs[0] == pairs[1]


def test_word_pairs_are_single_words_and_different():
    rows = load("word_pairs", quiet=True).to_list()
    assert collections.Counter(row["task"] for row in rows) == dict.fromkeys(("capitals", "opposites", "Spanish"), 28)
    assert len({(row["task"], row["word"]) for row in rows}) == len(rows)
    assert all(len(row[side].split()) == 1 for row in rows for side in ("word", "answer"))


def test_no_noun_or_verb_is_in_both_splits():
    train, test = (load("nouns_and_verbs", split, quiet=True)["word"][:] for split in ("train", "test"))
    assert (len(train), len(test)) == (27, 14)
    assert len({*train, *test}) == 41
