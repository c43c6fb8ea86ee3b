"""How good is it? Accuracy, perplexity, BLEU, F1 of entities and answers, alignment error."""

import math
import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.data.batches import consecutive_windows


@torch.no_grad()
def accuracy(model: nn.Module, inputs: Tensor | tuple[Tensor, ...], targets: Tensor) -> Tensor:
    """1 where the model's first choice is the target, else 0; of the targets' shape, on the CPU."""
    device = next(model.parameters()).device
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return (model(*(x.to(device) for x in inputs)).argmax(dim=-1).cpu() == targets).float()


def perplexity(model: nn.Module, ids: Tensor, length: int) -> float:
    r"""$\exp(-\frac{1}{N} \sum_t \log p(x_t \mid x_{<t}))$ over a long text, read in windows of ``length`` tokens.

    ids (tokens of the text); the model: (batch, length) → logits (batch, length, vocabulary).
    """
    return perplexity_of(model, *consecutive_windows(ids, length))


def perplexity_of(model: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    r"""$\exp(-\frac{1}{N} \sum \log p(\text{target}))$ over all N targets, in evaluation mode: without dropout.

    inputs and targets (windows, length). Afterwards the model is in the mode in which it was.
    """
    device, training, total = next(model.parameters()).device, model.training, 0.0
    model.eval()
    with torch.no_grad():
        for x, y in zip(inputs.split(256), targets.split(256), strict=True):  # in parts, to spare memory
            logits = model(x.to(device)).flatten(0, 1).float()  # (tokens, vocabulary)
            total += F.cross_entropy(logits, y.to(device).flatten(), reduction="sum").item()
    model.train(training)
    return math.exp(total / targets.numel())


def spearman(x: Tensor, y: Tensor) -> float:
    """Do two rows of numbers rank things alike? The correlation of their ranks: 1 the same order, 0 none, −1 reversed.

    Equal numbers share the mean of their ranks.
    """
    if x.shape != y.shape or x.dim() != 1 or len(x) < 2:
        raise ValueError(f"Expected two rows of the same length, 2 or more; got {tuple(x.shape)} and {tuple(y.shape)}.")
    ranks = torch.stack([_ranks(x), _ranks(y)])
    return float(torch.corrcoef(ranks)[0, 1])


def _ranks(x: Tensor) -> Tensor:
    _, group, counts = x.cpu().double().unique(return_inverse=True, return_counts=True)
    return (counts.cumsum(0) - (counts - 1) / 2)[group].double()


def chance_of_counts(counts: Tensor, p: Tensor) -> float:
    r"""Pearson's test: with which chance draws from p stray at least as far from it as these counts do; both (cells).

    $\chi^2 = \sum (\text{counted} - \text{expected})^2 / \text{expected}$. Cells that expect fewer than 5 are taken
    together; if that leaves one cell, there is nothing to tell, and the chance is 1. Something that p never gives has
    the chance 0.
    """
    if counts.shape != p.shape or counts.dim() != 1 or counts.sum() <= 0:
        raise ValueError(f"Expected counts and probabilities in rows; got {tuple(counts.shape)} and {tuple(p.shape)}.")
    counts, p = counts.cpu().double(), p.cpu().double()  # first to the CPU: Apple's GPUs have no float64
    expected = p / p.sum() * counts.sum()
    if counts[expected == 0].sum() > 0:
        return 0.0
    common = expected >= 5
    counts, expected = (torch.cat([x[common], x[~common].sum()[None]]) for x in (counts, expected))
    if expected[-1] < 5 and common.any():  # too few to stand alone: to the rarest of the others
        rarest = expected[:-1].argmin()
        for x in (counts, expected):
            x[rarest] += x[-1]
        counts, expected = counts[:-1], expected[:-1]
    if len(expected) < 2:
        return 1.0
    chi2 = ((counts - expected) ** 2 / expected).sum()
    return float(torch.special.gammaincc(torch.tensor((len(expected) - 1) / 2, dtype=chi2.dtype), chi2 / 2))


# --- BLEU ---


def ngrams(tokens: Sequence[str], n: int) -> Counter:
    """Each row of n neighbours, and how often it occurs: a b a b, n = 2 → ab twice, ba once."""
    if isinstance(tokens, str):
        raise ValueError("Expected a list of tokens, such as text.split(); got one string.")
    if n < 1:
        raise ValueError(f"An n-gram has at least one token; got n = {n}.")
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def distinct(texts: Iterable[Sequence], n: int) -> float:
    """How varied texts (lists of tokens) are: different n-grams / all n-grams, over all of them; 1 if none comes twice.

    Of a single text it tells how little it repeats itself.
    """
    counts = sum((ngrams(text, n) for text in texts), Counter())
    if not counts:
        raise ValueError(f"There is no text of {n} tokens or more.")
    return len(counts) / counts.total()


def clipped_matches(candidate: list[str], references: list[list[str]], n: int) -> tuple[int, int]:
    """How many n-grams of the candidate are right, and how many it has.

    An n-gram counts as right at most as often as the reference that has it most often: "the the the" has one right
    word if no reference has more than one "the".
    """
    if not references:
        raise ValueError("BLEU needs at least one reference for each candidate; got none.")
    ours = ngrams(candidate, n)
    most = Counter()
    for reference in references:
        most |= ngrams(reference, n)  # | takes the larger of two counts
    return (ours & most).total(), ours.total()  # & takes the smaller one


def closest_length(candidate: Sequence[str], references: Sequence[Sequence[str]]) -> int:
    """The length of the reference nearest in length to the candidate; of two as near, the shorter."""
    return min((abs(len(reference) - len(candidate)), len(reference)) for reference in references)[1]


def brevity_penalty(candidate: int, reference: int) -> float:
    r"""$\min(1, e^{1 - r / c})$ for lengths c and r: what is too short has high precision, and pays for it here."""
    if candidate >= reference:
        return 1.0
    return math.exp(1 - reference / candidate) if candidate else 0.0


def bleu(candidate: Sequence[str], references: Sequence[Sequence[str]], n: int = 4) -> float:
    r"""BLEU of one sentence, in points: $100 \cdot BP \cdot (p_1 p_2 \cdots p_n)^{1/n}$ (Papineni et al. 2002).

    The geometric mean is 0 as soon as one precision is: no common 4-gram, no points. So BLEU is a measure for corpora.
    """
    return corpus_bleu([candidate], [references], n)


def corpus_bleu(candidates: list[list[str]], references: list[list[list[str]]], n: int = 4) -> float:
    """BLEU of a corpus, in points: matches and lengths are summed over all sentences first, then divided.

    candidates[i] is a list of tokens, references[i] the list of its references. Not the mean of the sentences' BLEU.
    """
    if len(candidates) != len(references):
        raise ValueError(f"There are {len(candidates)} candidates, but references for {len(references)}.")
    if not candidates or n < 1:
        raise ValueError(f"BLEU needs at least one sentence and n ≥ 1; got {len(candidates)} and n = {n}.")
    pairs = list(zip(candidates, references, strict=True))
    logarithms = []
    for size in range(1, n + 1):
        right, all_of_them = map(sum, zip(*(clipped_matches(*pair, size) for pair in pairs), strict=True))
        if not right:
            return 0.0
        logarithms.append(math.log(right / all_of_them))
    penalty = brevity_penalty(sum(map(len, candidates)), sum(closest_length(*pair) for pair in pairs))
    return 100 * penalty * math.exp(sum(logarithms) / n)


# --- Labels, entities, answers, alignments ---


def harmonic(right: int, predicted: int, actual: int) -> float:
    r"""$F_1 = \frac{2 P R}{P + R}$ of the precision P = right / predicted and the recall R = right / actual."""
    return 2 * right / (predicted + actual) if right else 0.0


def entities(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """The entities (kind, start, end) in BIO tags: O B-PER I-PER O → (PER, 1, 3).

    B-X begins an entity, I-X continues one of its kind; with nothing to continue it begins one, as for CoNLL.
    """
    found, kind, start = set(), "", 0
    for place, tag in enumerate([*tags, "O"]):
        letter, _, name = tag.partition("-")
        if letter not in ("B", "I", "O") or (letter == "O") == bool(name):
            raise ValueError(f"Expected a tag O, B-kind or I-kind; got {tag!r}.")
        if kind and (letter != "I" or name != kind):
            found.add((kind, start, place))
            kind = ""
        if name and not kind:
            kind, start = name, place
    return found


def entity_f1(predicted: Sequence[Sequence[str]], actual: Sequence[Sequence[str]]) -> float:
    """F1 over the entities of all sentences (lists of tags); an entity is right if kind, start and end are."""
    predicted, actual = _labels(predicted, actual)
    right = ours = theirs = 0
    for p, a in zip(predicted, actual, strict=True):
        if len(p) != len(a):
            raise ValueError(f"A sentence has {len(a)} tags, but {len(p)} were predicted.")
        found, wanted = entities(p), entities(a)
        right, ours, theirs = right + len(found & wanted), ours + len(found), theirs + len(wanted)
    return harmonic(right, ours, theirs)


def answer_words(text: str) -> list[str]:
    """What SQuAD's script compares: small letters, no punctuation, no a, an, the. "The U.S. army!" → us army."""
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()


def answer_f1(answers: Sequence[str | Sequence], references: Sequence[Sequence[str | Sequence]]) -> float:
    """The mean F1 of the answers' tokens, in any order: an answer with a word too many is still half right.

    references[i] is the list of right answers to question i; the best of them counts. An answer is a text, of which
    the `answer_words` count, or a list of tokens. That there is none (no token) is right or wrong as a whole.
    """
    answers, references = _labels(answers, references)
    return sum(map(_best_f1, answers, references)) / len(answers)


def _best_f1(answer: str | Sequence, references: Sequence[str | Sequence]) -> float:
    kind = str if isinstance(answer, str) else list | tuple
    if isinstance(references, str) or not references or not all(isinstance(x, kind) for x in (answer, *references)):
        raise ValueError(
            "Expected for each answer the list of its references, all of them texts or all of them lists of tokens; "
            f"got {references!r} for the answer {answer!r}."
        )
    ours, *wanted = (Counter(answer_words(x) if isinstance(x, str) else x) for x in (answer, *references))
    return max(
        harmonic((ours & right).total(), ours.total(), right.total()) if ours or right else 1.0 for right in wanted
    )


def alignment_error_rate(sure: Iterable[tuple], possible: Iterable[tuple], predicted: Iterable[tuple]) -> float:
    r"""$1 - \frac{|A \cap S| + |A \cap P|}{|A| + |S|}$ (Och and Ney 2003): 0 is perfect, 1 is all wrong.

    Links are pairs (place in the source, place in the target), for a corpus (sentence, place, place). What is sure is
    possible too. All sure links must be found, and only possible ones.
    """
    A, S = set(predicted), set(sure)
    if not A and not S:
        raise ValueError("There are no links: neither sure nor predicted ones.")
    return 1 - (len(A & S) + len(A & (S | set(possible)))) / (len(A) + len(S))


def _labels(predicted: Sequence, actual: Sequence) -> tuple[list, list]:
    """Both as lists, of the same length, not empty."""
    predicted, actual = (x.tolist() if isinstance(x, Tensor) else list(x) for x in (predicted, actual))
    if len(predicted) != len(actual):
        raise ValueError(f"There are {len(predicted)} predictions for {len(actual)} answers.")
    if not actual:
        raise ValueError("There is nothing to score.")
    return predicted, actual
