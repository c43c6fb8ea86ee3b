"""Invented villages: every answer stands in its passage, and in the passage alone."""

import collections

from course_lib.data import load


def test_answers_stand_in_the_passages():
    rows = load("villages", quiet=True).to_list()
    assert len(rows) == len({row["question"] for row in rows}) == 960
    assert all(row["passage"].count(row["answer"]) == 1 for row in rows)
    assert not any(row["answer"] in row["question"] for row in rows)


def test_four_questions_a_village_and_twelve_villages_a_name():
    rows = load("villages", quiet=True)
    passages = collections.Counter(rows["passage"][:])
    assert set(passages.values()) == {4}
    names = [passage.split(" lies ")[0].split() for passage in passages]
    assert len(set(map(tuple, names))) == 240
    assert set(collections.Counter(name for _, name in names).values()) == {12}
