"""Sentences in two languages with their links: what they mark is so."""

import collections
import re

import pytest

from course_lib.data import load


def links(row: dict) -> list[tuple[int, str, int]]:
    found = [re.fullmatch(r"(\d+)([-?])(\d+)", link).groups() for link in row["links"].split()]
    return [(int(english), mark, int(spanish)) for english, mark, spanish in found]


@pytest.fixture(scope="module")
def aligned() -> dict[str, list[dict]]:
    return {split: load("aligned", split, quiet=True).to_list() for split in ("train", "validation", "test")}


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
