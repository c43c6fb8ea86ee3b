"""Named entities and answers in passages: marked right, dealt so that nothing leaks, and not to be solved by a rule.

(Their bytes, like those of all embedded corpora: test_agreement.py.)
"""

import collections
import random
import re
import sys

import pytest
from test_agreement import DATA

from course_lib.data import load
from course_lib.metrics import entities, entity_f1
from course_lib.readers import CONLL_TAGS, tagged

sys.path.insert(0, str(DATA))
import make_entities
import make_spans

SPLITS = ("train", "validation")
KINDS = ("PER", "ORG", "LOC", "MISC")


@pytest.fixture(scope="module")
def sentences() -> dict[str, list[tuple[list[str], list[str]]]]:
    """Split → (words, tags)."""
    made = {split: [tagged(row) for row in load("entities", split, quiet=True)] for split in SPLITS}
    return {s: [(row["tokens"], [CONLL_TAGS[tag] for tag in row["tags"]]) for row in made[s]] for s in SPLITS}


@pytest.fixture(scope="module")
def spans() -> dict[str, list[dict]]:
    return {split: load("spans", split, quiet=True).to_list() for split in SPLITS}


def names(part: list[tuple[list[str], list[str]]]) -> set[str]:
    return {" ".join(words[i:j]).lower() for words, tags in part for _, i, j in entities(tags)}


# --- entities -------------------------------------------------------------------------------------------------------


def test_sizes(sentences, spans):
    assert {split: len(part) for split, part in sentences.items()} == make_entities.SIZES
    assert {split: len(part) for split, part in spans.items()} == make_spans.SIZES
    assert max(DATA.joinpath(f"{name}.csv").stat().st_size for name in ("entities", "spans")) < 3_000_000


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


# --- spans ----------------------------------------------------------------------------------------------------------


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
