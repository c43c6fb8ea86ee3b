"""BLEU equals sacrebleu's; the other measures equal what one counts by hand."""

import math
import random

import pytest
import sacrebleu
from comparing import close, seeds

from course_lib.data import load
from course_lib.measure import metrics

SEEDS = seeds(60)


def theirs(candidates, references) -> float:
    """sacrebleu wants strings, and the first references of all sentences, then the second, …; absent ones are None."""
    most = max(map(len, references))
    streams = [[" ".join(r[i]) if i < len(r) else None for r in references] for i in range(most)]
    texts = [" ".join(candidate) for candidate in candidates]
    return sacrebleu.corpus_bleu(texts, streams, tokenize="none", smooth_method="none", force=True).score


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.compares("bleu, corpus_bleu, random sentences", "sacrebleu")
def test_corpus_bleu_equals_sacrebleu_on_random_sentences(seed):
    """Few words, so that matches are many; some candidates empty or shorter than four words, 1 to 4 references."""
    draw = random.Random(seed)
    words = "abcdefgh"[: draw.randint(2, 8)]
    longest = draw.choice([3, 8, 25])

    def sentence(shortest: int) -> list[str]:
        return draw.choices(words, k=draw.randint(shortest, longest))

    candidates = [sentence(0) for _ in range(draw.randint(1, 12))]
    references = [[sentence(1) for _ in range(draw.randint(1, 4))] for _ in candidates]
    close(metrics.corpus_bleu(candidates, references), theirs(candidates, references), "corpus BLEU", 1e-6)
    for candidate, its_own in zip(candidates, references, strict=True):
        close(metrics.bleu(candidate, its_own), theirs([candidate], [its_own]), f"{candidate} and {its_own}", 1e-6)


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.compares("corpus_bleu, Shakespeare", "sacrebleu")
def test_corpus_bleu_equals_sacrebleu_on_real_text(seed):
    """Lines of Shakespeare against themselves with words dropped, doubled and exchanged."""
    draw = random.Random(seed)
    lines = [line.split() for line in load("tiny_shakespeare", quiet=True)["text"][0].splitlines() if line]

    def damaged(line: list[str]) -> list[str]:
        changes = (draw.choice([[word], [word], [word], [word], [], [word, word], ["the"]]) for word in line)
        return [word for change in changes for word in change]

    chosen = draw.sample(lines, 500)
    candidates = [damaged(line) for line in chosen]
    references = [[line, damaged(line)][: draw.randint(1, 2)] for line in chosen]
    ours, other = metrics.corpus_bleu(candidates, references), theirs(candidates, references)
    assert 5 < ours < 95, f"seed {seed}"
    close(ours, other, "corpus BLEU", 1e-6)


def test_bleu_step_by_step():
    """The example of Papineni et al. (2002), and each part by hand."""
    references = [["the", "cat", "is", "on", "the", "mat"], ["there", "is", "a", "cat", "on", "the", "mat"]]
    seven = ["the"] * 7
    assert metrics.ngrams(["a", "b", "a", "b"], 2) == {("a", "b"): 2, ("b", "a"): 1}
    assert metrics.clipped_matches(seven, references, 1) == (2, 7)
    assert metrics.clipped_matches(seven, references, 2) == (0, 6)
    assert metrics.clipped_matches([], references, 1) == (0, 0)
    assert metrics.brevity_penalty(7, 6) == metrics.brevity_penalty(6, 6) == 1
    assert metrics.brevity_penalty(5, 10) == pytest.approx(math.exp(-1))
    assert metrics.brevity_penalty(0, 3) == 0
    assert metrics.closest_length(["a"] * 5, [["a"] * 6, ["a"] * 4]) == 4  # of two as near, the shorter
    assert metrics.bleu(references[0], references) == pytest.approx(100)
    assert metrics.bleu(["the", "cat"], references) == 0  # no 4-gram
    assert metrics.bleu(["the", "cat"], references[:1], n=2) == pytest.approx(100 * math.exp(1 - 6 / 2))


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("", set()),
        ("O O", set()),
        ("O B-PER I-PER O", {("PER", 1, 3)}),
        ("B-PER B-PER", {("PER", 0, 1), ("PER", 1, 2)}),
        ("B-PER I-LOC", {("PER", 0, 1), ("LOC", 1, 2)}),
        ("I-PER I-PER O I-LOC", {("PER", 0, 2), ("LOC", 3, 4)}),
        ("B-X-Y I-X-Y I-X", {("X-Y", 0, 2), ("X", 2, 3)}),
    ],
)
def test_entities_by_hand(tags, found):
    assert metrics.entities(tags.split()) == found


def test_entity_f1_by_hand():
    actual = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG", "O"], ["O"]]
    predicted = [["B-PER", "I-PER", "O", "B-ORG"], ["O", "B-ORG", "I-ORG"], ["B-LOC"]]
    assert metrics.entity_f1(actual, actual) == 1
    assert metrics.entity_f1(predicted, actual) == pytest.approx(2 * 1 / (4 + 3))  # PER; a wrong kind; too long; extra
    assert metrics.entity_f1([["O", "O"]], [["O", "B-PER"]]) == 0


def test_alignment_error_rate_by_hand():
    sure, possible = {(0, 0), (1, 1)}, {(0, 0), (1, 1), (2, 1), (2, 2)}
    assert metrics.alignment_error_rate(sure, possible, sure) == 0
    assert metrics.alignment_error_rate(sure, possible, possible) == 0  # possible links cost nothing
    assert metrics.alignment_error_rate(sure, possible, {(5, 5)}) == 1
    assert metrics.alignment_error_rate(sure, possible, {(0, 0), (2, 2), (3, 3)}) == pytest.approx(
        1 - (1 + 2) / (3 + 2)
    )
    assert metrics.alignment_error_rate(sure, set(), [(0, 0), (0, 0)]) == pytest.approx(1 - 2 / 3)  # sure is possible


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: metrics.ngrams("a string", 2), "Expected a list of tokens"),
        (lambda: metrics.ngrams(["a"], 0), "at least one token; got n = 0"),
        (lambda: metrics.bleu(["a"], []), "at least one reference"),
        (lambda: metrics.corpus_bleu([["a"]], []), "1 candidates, but references for 0"),
        (lambda: metrics.corpus_bleu([], []), "at least one sentence"),
        (lambda: metrics.entity_f1([["O"]], [["O"], ["O"]]), "1 predictions for 2 answers"),
        (lambda: metrics.answer_f1([], []), "nothing to score"),
        (lambda: metrics.entity_f1([["O"]], [["O", "O"]]), "has 2 tags, but 1 were predicted"),
        (lambda: metrics.entities(["X-PER"]), "Expected a tag O, B-kind or I-kind; got 'X-PER'"),
        (lambda: metrics.entities(["B"]), "Expected a tag"),
        (lambda: metrics.alignment_error_rate([], [(0, 0)], []), "no links"),
    ],
)
def test_errors_are_one_clear_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
