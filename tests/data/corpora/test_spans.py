"""Questions whose answers stand in passages: dealt so that nothing leaks, and not to be solved by a rule."""

import collections
import random
import re
from pathlib import Path

import make_spans
import pytest

from course_lib.data import load

DATA = Path(__file__).parents[3] / "data"
SPLITS = ("train", "validation")


@pytest.fixture(scope="module")
def spans() -> dict[str, list[dict]]:
    return {split: load("spans", split, quiet=True).to_list() for split in SPLITS}


def test_sizes(spans):
    assert {split: len(part) for split, part in spans.items()} == make_spans.SIZES
    assert DATA.joinpath("spans.csv").stat().st_size < 3_000_000


def test_answers_stand_where_they_are_said_to_stand_and_only_there(spans):
    for row in spans["train"] + spans["validation"]:
        assert row["passage"][row["start"] :].startswith(row["answer"])
        assert row["passage"].lower().count(row["answer"].lower()) == 1
        assert row["answer"].lower() not in row["question"].lower().split()


def test_passages_and_questions_are_whole(spans):
    for row in spans["train"] + spans["validation"]:
        assert 3 <= len(re.findall(r"[.](?= [A-Z0-9]|$)", row["passage"].replace("St. ", ""))) <= 9
        assert row["question"][0].isupper()
        assert row["question"].endswith("?")
        assert not re.search(r"[{}\[\]|@<>]|  ", row["passage"] + row["question"])


def test_two_questions_to_each_passage_with_different_answers(spans):
    """So whoever does not read the question is right in half of the cases at most."""
    for part in spans.values():
        for one, other in zip(part[::2], part[1::2], strict=True):
            assert one["passage"] == other["passage"]
            assert one["answer"] != other["answer"]
        assert len({row["passage"] for row in part}) == len(part) / 2


def test_nothing_leaks_between_the_splits(spans):
    assert not {row["passage"] for row in spans["train"]} & {row["passage"] for row in spans["validation"]}
    names = {split: make_spans.Names(split) for split in SPLITS}
    for kind in ("city", "country", "village", "firm", "school", "club", "beast", "mineral", "work", "ship", "prize"):
        assert names["validation"].lists[kind]
        assert not {*names["train"].lists[kind]} & {*names["validation"].lists[kind]}
    assert not {*names["train"].last} & {*names["validation"].last}
    full = re.compile(r"\b[A-Z]\w+ (?:de |van (?:den )?|al-)?[A-Z]\w+\b")
    answers = {split: {row["answer"] for row in spans[split] if full.fullmatch(row["answer"])} for split in SPLITS}
    assert len(answers["validation"]) > 100
    assert not answers["train"] & answers["validation"]


def test_questions_are_of_many_kinds(spans):
    first = collections.Counter(row["question"].split()[0].strip(",") for row in spans["train"])
    assert all(
        first[word] > 0.02 * len(spans["train"]) for word in ("Who", "What", "When", "Where", "How", "Which", "In")
    )
    assert first["Why"] > 50
    assert sum(bool(re.search(r"which \w+\?$|whom\?$", row["question"])) for row in spans["train"]) > 50


def test_about_a_fifth_has_a_slip_of_the_tongue(spans):
    repairs = "|".join(repair.replace("_", " ") for repair in make_spans.REPAIRS)
    for part in spans.values():
        assert 0.15 < sum(bool(re.search(rf",? ({repairs}),? ", row["question"])) for row in part) / len(part) < 0.25


def test_the_first_candidate_is_seldom_right():
    """Whoever takes the first year for a year, the first person for a person … is wrong in most cases."""
    draw, listed = random.Random(1), make_spans.Names("train")
    topics, right, asked = make_spans.topics(), 0, 0
    for _ in range(500):
        passage = make_spans.Passage(make_spans.one_of(draw, topics), listed, draw)
        for slot, question in passage.questions():
            candidates = passage.candidates(slot, question)
            assert len(candidates) > 1
            right, asked = right + (candidates[0] == slot), asked + 1
    assert asked > 2000
    assert right / asked < 0.5


def test_the_first_year_is_seldom_the_right_one(spans):
    """The same on the file itself, for questions that a year answers."""
    years = [row for row in spans["train"] if re.fullmatch(r"1\d\d\d", row["answer"])]
    first = [re.search(r"\b1\d\d\d\b", row["passage"]).start() == row["start"] for row in years]
    assert len(years) > 500
    assert sum(first) / len(first) < 0.5
