"""The corpora with gold structure: what they mark is so. (Their bytes: test_agreement.py.)"""

import collections
import itertools
import re

import pytest

from course_lib.data import load
from course_lib.readers import babi


def links(row: dict) -> list[tuple[int, str, int]]:
    found = [re.fullmatch(r"(\d+)([-?])(\d+)", link).groups() for link in row["links"].split()]
    return [(int(english), mark, int(spanish)) for english, mark, spanish in found]


@pytest.fixture(scope="module")
def aligned() -> dict[str, list[dict]]:
    return {split: load("aligned", split, quiet=True).to_list() for split in ("train", "validation", "test")}


@pytest.fixture(scope="module")
def stories() -> dict[str, list[dict]]:
    return {split: load("stories", split, quiet=True).to_list() for split in ("train", "test")}


def test_as_many_sentences_of_each_length(aligned):
    for split, count in (("train", 240), ("validation", 15), ("test", 40)):
        lengths = collections.Counter(len(row["en"].split()) for row in aligned[split])
        assert lengths == dict.fromkeys(range(4, 25), count)


def test_no_sentence_twice_and_no_new_word_in_the_test(aligned):
    sentences = [row["en"] for part in aligned.values() for row in part]
    assert len(sentences) == len(set(sentences))
    for side in ("en", "es"):
        seen = {word for row in aligned["train"] for word in row[side].split()}
        for split in ("validation", "test"):
            assert {word for row in aligned[split] for word in row[side].split()} <= seen


def test_every_link_points_to_words_and_every_spanish_word_has_one(aligned):
    for row in aligned["train"] + aligned["test"]:
        english, spanish, found = row["en"].split(), row["es"].split(), links(row)
        assert all(i < len(english) and j < len(spanish) for i, _, j in found)
        assert {j for _, _, j in found} == set(range(len(spanish)))
        assert len({(i, j) for i, _, j in found}) == len(found)


def test_links_join_words_that_mean_the_same(aligned):
    wanted = {"dog": {"perro"}, "dogs": {"perros"}, "red": {"rojo", "roja", "rojos", "rojas"}, "house": {"casa"}}
    wanted |= {"and": {"y"}, "not": {"no"}, "saw": {"vio", "vieron"}, "yesterday": {"ayer"}, "very": {"muy"}}
    met = collections.defaultdict(set)
    for row in aligned["train"]:
        english, spanish = row["en"].split(), row["es"].split()
        for i, mark, j in links(row):
            if mark == "-":
                met[english[i]].add(spanish[j])
    assert {word: met[word] for word in wanted} == wanted


def test_adjectives_change_places_and_passives_become_active(aligned):
    adjectives = passives = 0
    for row in aligned["test"]:
        english = row["en"].split()
        place = {i: j for i, mark, j in links(row) if mark == "-"}
        for i, word in enumerate(english):
            if word in ("red", "tired", "quiet"):
                assert place[i] > place[i + 1]
                adjectives += 1
            if word == "by":  # what follows comes first in Spanish
                assert place[i + 1] < place[i - 1]
                passives += 1
    assert adjectives > 30
    assert passives > 100


def test_articles_agree_and_contract(aligned):
    for row in aligned["train"]:
        assert not re.search(r"\b(a|de) el\b", row["es"])
        assert not re.search(r"\ba [aeiou]", row["en"])
        assert not re.search(r"\b(el|un|este) (casa|mujer|niña|vaca)\b|\b(la|una|esta) (libro|perro|rey)\b", row["es"])


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


def test_the_public_format_is_read():
    text = "1 Mary moved to the bathroom.\n2 Where is Mary? \tbathroom\t1\n"
    text += "3 John got the milk.\n4 Who has it?\tjohn\t3 1\n"
    assert babi(text + "1 Joe slept.\n2 Where is Joe?\tbed\t1\n") == {
        "story": ["mary moved to the bathroom", "mary moved to the bathroom. john got the milk", "joe slept"],
        "question": ["where is mary", "who has it", "where is joe"],
        "answer": ["bathroom", "john", "bed"],
        "facts": ["0", "1 0", "0"],
    }
    with pytest.raises(ValueError, match="begin with its number"):
        babi("Mary moved to the bathroom.\n")
