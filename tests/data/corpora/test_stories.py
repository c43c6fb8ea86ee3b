"""Stories with questions: every answer follows, and the facts marked are enough."""

import itertools

import pytest

from course_lib.data import load


@pytest.fixture(scope="module")
def stories() -> dict[str, list[dict]]:
    return {split: load("stories", split, quiet=True).to_list() for split in ("train", "test")}


def replay(row: dict) -> tuple[dict, dict, dict]:
    """Who is where, who has what, and what is in what, by reading the story."""
    place, holder, inside, where_left = {}, {}, {}, {}
    for sentence in row["story"].split(". "):
        who, *middle, last = sentence.split()
        if who == "the":
            inside[middle[0]] = last
        elif "to" in middle:
            place[who] = last
        elif middle[0] in ("picked", "took"):
            holder[last] = who
        else:
            assert holder.pop(last) == who
            where_left[last] = place[who]
    return place, inside, {**where_left, **{thing: place[who] for thing, who in holder.items()}}


def test_answers_follow_from_the_stories(stories):
    for row in stories["train"] + stories["test"]:
        place, inside, where = replay(row)
        words = row["question"].split()
        if row["kind"] == "one fact":
            assert row["answer"] == place[words[-1]]
        elif row["kind"] in ("two facts", "three facts"):
            assert row["answer"] == where[inside.get(words[-1], words[-1])]
        elif row["kind"] == "yes or no":
            assert row["answer"] == ("yes" if place[words[1]] == words[-1] else "no")


def test_supporting_facts_are_enough(stories):
    for row in stories["test"]:
        sentences = row["story"].split(". ")
        facts = [sentences[int(i)] for i in row["facts"].split()]
        if row["kind"] in ("one fact", "two facts", "three facts"):
            assert len(facts) == ("one fact", "two facts", "three facts").index(row["kind"]) + 1
            assert row["question"].split()[-1] in facts[0].split()
            assert facts[-1].split()[-1] == row["answer"]
            for one, other in itertools.pairwise(facts):  # each shares a name with the next
                assert set(one.split()) & set(other.split()) - {"the"}


def test_no_story_twice(stories):
    told = [row["story"] for part in stories.values() for row in part]
    assert len(told) == len(set(told))


def test_yes_and_no_are_balanced(stories):
    answers = [row["answer"] for row in stories["train"] if row["kind"] == "yes or no"]
    assert 0.45 < answers.count("yes") / len(answers) < 0.55
