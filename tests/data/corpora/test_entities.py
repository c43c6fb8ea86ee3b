"""Named entities: marked right, dealt so that nothing leaks, and not to be solved by a rule."""

import collections
import random
import re
from pathlib import Path

import make_entities
import pytest

from course_lib.data import load
from course_lib.data.readers import CONLL_TAGS, tagged
from course_lib.measure.metrics import entities, entity_f1

DATA = Path(__file__).parents[3] / "data"
SPLITS = ("train", "validation")
KINDS = ("PER", "ORG", "LOC", "MISC")


@pytest.fixture(scope="module")
def sentences() -> dict[str, list[tuple[list[str], list[str]]]]:
    """Split → (words, tags)."""
    made = {split: [tagged(row) for row in load("entities", split, quiet=True)] for split in SPLITS}
    return {s: [(row["tokens"], [CONLL_TAGS[tag] for tag in row["tags"]]) for row in made[s]] for s in SPLITS}


def names(part: list[tuple[list[str], list[str]]]) -> set[str]:
    return {" ".join(words[i:j]).lower() for words, tags in part for _, i, j in entities(tags)}


def test_sizes(sentences):
    assert {split: len(part) for split, part in sentences.items()} == make_entities.SIZES
    assert DATA.joinpath("entities.csv").stat().st_size < 3_000_000


def test_every_word_has_a_tag_and_entities_begin_with_b(sentences):
    for words, tags in sentences["train"] + sentences["validation"]:
        assert len(words) == len(tags) > 0
        for before, tag in zip(["O", *tags], tags, strict=False):
            if tag.startswith("I-"):
                assert before[2:] == tag[2:]


def test_all_kinds_are_frequent_and_some_sentences_have_none(sentences):
    for part in sentences.values():
        counts = collections.Counter(kind for _, tags in part for kind, _, _ in entities(tags))
        assert all(counts[kind] > 0.1 * counts.total() for kind in KINDS)
        assert 0.05 < sum(not entities(tags) for _, tags in part) / len(part) < 0.25


def test_days_months_and_titles_are_no_entities(sentences):
    plain = {*make_entities.DAYS, *make_entities.MONTHS, "President", "Minister", "Mr", "The"} - {"March", "May"}
    met = collections.Counter()
    for words, tags in sentences["train"]:
        for place, (word, tag) in enumerate(zip(words, tags, strict=True)):
            if word in plain and tag != "O":  # but as a part: The Magic Flute, Good Friday
                assert "I" in (tag[0], [*tags, "O"][place + 1][0]), (words, place)
            elif word in plain:
                met[word] += 1
    assert all(met[word] > 20 for word in ("Monday", "July", "President", "The"))


def test_the_same_name_may_be_of_two_kinds(sentences):
    """A person or a place, a place or its team: only the sentence tells."""
    kinds = collections.defaultdict(set)
    for words, tags in sentences["train"]:
        for kind, i, j in entities(tags):
            kinds[" ".join(words[i:j]).lower()].add(kind)
    for name, wanted in {
        "washington": {"PER", "LOC", "ORG"},
        "chelsea": {"LOC", "ORG"},
        "boston": {"LOC", "ORG"},
    }.items():
        assert kinds[name] >= wanted
    assert sum(len(found) > 1 for found in kinds.values()) > 100


def test_no_sentence_twice_and_no_name_in_both_splits(sentences):
    texts = [" ".join(words).lower() for part in sentences.values() for words, _ in part]
    assert len(texts) == len(set(texts))
    assert not names(sentences["train"]) & names(sentences["validation"])


def test_no_template_in_both_splits(sentences):
    """What is left of a sentence without its names, numbers, days and months."""

    def frame(words: list[str], tags: list[str]) -> str:
        plain = {*make_entities.DAYS, *make_entities.MONTHS}
        kept = [w if t == "O" else t for w, t in zip(words, tags, strict=True) if not t.startswith("I-")]
        kept = ["<day>" if w in plain else re.sub(r"\d+", "0", w).lower() for w in kept]
        return " ".join(kept)

    seen = {frame(*sentence) for sentence in sentences["train"]}
    again = [sentence for sentence in sentences["validation"] if frame(*sentence) in seen]
    assert len(again) < 0.03 * len(sentences["validation"])  # bare ones: "Feyenoord v Ajax", "By Maria Keller"
    templates = [make_entities.Writer(split, random.Random(0)).templates for split in SPLITS]
    train, validation = ({line for lines in part.values() for line in lines} for part in templates)
    assert not train & validation
    assert len(train | validation) > 400


def test_a_list_of_the_names_seen_does_not_solve_it(sentences):
    """Not for names never seen; and taking every run of capitals for a place does little better."""
    kinds = collections.defaultdict(collections.Counter)
    for words, tags in sentences["train"]:
        for word, tag in zip(words, tags, strict=True):
            kinds[word.lower()][tag] += 1
    actual = [tags for _, tags in sentences["validation"]]
    looked_up = [
        [kinds[w.lower()].most_common(1)[0][0] if w.lower() in kinds else "O" for w in words]
        for words, _ in sentences["validation"]
    ]
    assert entity_f1(looked_up, actual) < 0.3
    capitals = [["O" if not w[0].isupper() else "I-LOC" for w in words] for words, _ in sentences["validation"]]
    assert entity_f1(capitals, actual) < 0.4
