"""Pronouns and whom they mean: balanced so that nothing but the agreement of pronoun and noun tells."""

import collections

import pytest

from course_lib.data import load

SPLITS = ("train", "test")


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict]]:
    return {split: load("coreference", split, quiet=True).to_list() for split in SPLITS}


def test_places(rows: dict[str, list[dict]]) -> None:
    for row in rows["train"] + rows["test"]:
        words = row["sentence"].split()
        assert [words.count(row[name]) for name in ("pronoun", "antecedent", "other")] == [1, 1, 1]
        for name in ("pronoun", "antecedent", "other"):
            assert words[row[f"{name}_place"]] == row[name]
        assert max(row["antecedent_place"], row["other_place"]) < row["pronoun_place"]


def test_each_noun_has_one_pronoun(rows: dict[str, list[dict]]) -> None:
    pronouns = collections.defaultdict(set)
    for row in rows["train"] + rows["test"]:
        pronouns[row["antecedent"]].add(row["pronoun"])
    assert all(len(found) == 1 for found in pronouns.values())
    for row in rows["train"] + rows["test"]:
        assert pronouns[row["other"]] != pronouns[row["antecedent"]]
    assert set.union(*pronouns.values()) == {"he", "she", "it"}


def test_groups_of_four(rows: dict[str, list[dict]]) -> None:
    """Both orders, both pronouns: the nearest noun, the first noun and the frame are right exactly half of the time."""
    for part in rows.values():
        for start in range(0, len(part), 4):
            four = part[start : start + 4]
            assert len({row["sentence"] for row in four}) == 4
            assert len({frozenset((row["antecedent"], row["other"])) for row in four}) == 1
            frames = set()
            for row in four:
                words = row["sentence"].split()
                for name in ("pronoun", "antecedent", "other"):
                    words[row[f"{name}_place"]] = "…"
                frames.add(" ".join(words))
            assert len(frames) == 1
            first = [row["antecedent_place"] < row["other_place"] for row in four]
            assert sorted(first) == [False, False, True, True]
            assert len({(row["pronoun"], place) for row, place in zip(four, first, strict=True)}) == 4


def test_sizes_and_splits(rows: dict[str, list[dict]]) -> None:
    assert [len(rows[split]) for split in SPLITS] == [1200, 1200]
    sentences = [row["sentence"] for part in rows.values() for row in part]
    assert len(set(sentences)) == len(sentences)
    nouns = [{row["antecedent"] for row in rows[split]} for split in SPLITS]
    assert not nouns[0] & nouns[1], "no noun is in both splits"
    for part in rows.values():
        assert collections.Counter(row["pronoun"] for row in part) == dict.fromkeys(("he", "she", "it"), 400)


def test_every_word_is_one_piece_for_minilm(rows: dict[str, list[dict]]) -> None:
    """So that a word's place is its token's, one later for [CLS]."""
    from course_lib import pretrained, tokenizers

    tokenizer = tokenizers.load(pretrained.weights("minilm"))
    words = {word for part in rows.values() for row in part for word in row["sentence"].split()}
    assert [word for word in words if tokenizer.tokenise(word) != [word]] == []
