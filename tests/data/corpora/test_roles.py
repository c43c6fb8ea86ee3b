"""Agents and patients: neither the noun nor the voice tells, and the place three of four."""

import collections

import pytest

from course_lib.data import load

SPLITS = ("train", "test")


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict]]:
    return {split: load("roles", split, quiet=True).to_list() for split in SPLITS}


def test_roles_follow_from_the_sentence(rows):
    for row in rows["train"] + rows["test"]:
        words = row["sentence"].split()
        assert words[row["place"]] == row["word"]
        assert words.count(row["word"]) == 1
        first, passive = row["place"] == 1, "by" in words
        assert row["role"] == int(first != passive)


def test_neither_noun_nor_voice_tells(rows):
    for split, size in zip(SPLITS, (336, 240), strict=True):
        part = rows[split]
        assert len(part) == len({(row["sentence"], row["word"]) for row in part}) == size
        for cue in (lambda row: row["word"], lambda row: "by" in row["sentence"]):
            counts = collections.Counter((cue(row), row["role"]) for row in part)
            assert all(counts[value, 0] == counts[value, 1] for value, _ in counts)
        places = collections.Counter((row["place"], row["role"]) for row in part)
        best = sum(max(places[place, 0], places[place, 1]) for place in (1, 4, 6))
        assert best == 3 * size / 4


def test_no_person_is_in_both_splits(rows):
    people = [{row["word"] for row in rows[split]} for split in SPLITS]
    assert [len(found) for found in people] == [7, 5]
    assert not people[0] & people[1]
