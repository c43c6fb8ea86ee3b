"""Subjects and verbs: as balanced as the data card says, and nothing but the subject tells."""

import collections

import pytest

from course_lib.data import load


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict]]:
    return {split: load("agreement", split, quiet=True).to_list() for split in ("train", "test")}


def test_distances(rows: dict[str, list[dict]]) -> None:
    for row in rows["train"] + rows["test"]:
        words = row["sentence"].split()
        assert len(words) - 1 - words.index(row["subject"]) == row["distance"]
    for split, count in (("train", 200), ("test", 100)):
        assert collections.Counter(row["distance"] for row in rows[split]) == dict.fromkeys(range(1, 41), count)


def test_labels(rows: dict[str, list[dict]]) -> None:
    """Each verb form goes with one number only, each noun form too, and the subject's decides."""
    forms = collections.defaultdict(set)
    for row in rows["train"] + rows["test"]:
        forms[row["verb"]].add(row["number"])
        forms[row["wrong_verb"]].add(1 - row["number"])
        forms[row["subject"]].add(row["number"])
        assert row["verb"].endswith("s") == (row["number"] == 0)
    assert all(len(numbers) == 1 for numbers in forms.values())


def test_nothing_but_the_subject_tells(rows: dict[str, list[dict]]) -> None:
    """What stands between subject and verb occurs equally often with both numbers, at each distance, in each split."""
    for part in rows.values():
        clauses, nearest = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
        for row in part:
            words = row["sentence"].split()
            between = " ".join(words[words.index(row["subject"]) + 1 :])
            clauses[between, row["verb"].removesuffix("s")][row["number"]] += 1
            nearest[row["distance"], row["nearest"]][row["number"]] += 1
        for counts in [*clauses.values(), *nearest.values()]:
            assert counts[0] == counts[1]
        hard = [row for row in part if row["nearest"] == ("plural", "singular")[row["number"]]]
        easy = [row for row in part if row["nearest"] == ("singular", "plural")[row["number"]]]
        assert len(hard) == len(easy), "the noun next to the verb misleads as often as it helps"


def test_attractors(rows: dict[str, list[dict]]) -> None:
    assert all(row["attractors"] == 0 for row in rows["train"] if row["nearest"] == "none")
    numbers = ("singular", "plural")
    assert all(row["attractors"] > 0 for row in rows["test"] if row["nearest"] == numbers[1 - row["number"]])
    assert max(row["attractors"] for row in rows["test"]) >= 6


def test_no_sentence_twice(rows: dict[str, list[dict]]) -> None:
    sentences = [row["sentence"] for part in rows.values() for row in part]
    assert len(sentences) == len(set(sentences)) == 12_000


def test_every_word_of_the_test_is_in_training(rows: dict[str, list[dict]]) -> None:
    vocabulary = {split: {word for row in part for word in row["sentence"].split()} for split, part in rows.items()}
    assert vocabulary["test"] <= vocabulary["train"]
