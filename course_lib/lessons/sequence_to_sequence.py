"""Lesson 07: from sentence pairs to translations and back to a score: choosing pairs, writing all at once, links."""

from collections import Counter
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from course_lib import decoding
from course_lib.data.batches import END, START, Pairs
from course_lib.tokenizers import words_and_marks

Pair = tuple[list[str], list[str]]  # a sentence in two languages


def short_pairs(sources: Iterable[str], targets: Iterable[str], longest: int) -> list[Pair]:
    """The pairs with at most ``longest`` words and marks in the source, and one more in the target."""
    near = [(en, es) for en, es in zip(sources, targets, strict=True) if en.count(" ") < longest]  # a quick look first
    pairs = [(words_and_marks(en), words_and_marks(es)) for en, es in near]
    return [(en, es) for en, es in pairs if 2 <= len(en) <= longest and len(es) <= longest + 1]


def of_frequent_words(splits: dict[str, list[Pair]], counts: tuple[int, int]) -> dict[str, list[Pair]]:
    """Only pairs made of the so many most frequent words of the training pairs, on either side."""
    for side, count in enumerate(counts):
        found = Counter(word for pair in splits["train"] for word in pair[side])
        frequent = {word for word, _ in found.most_common(count)}
        splits = {split: [p for p in pairs if frequent.issuperset(p[side])] for split, pairs in splits.items()}
    return splits


def with_references(pairs: Iterable[Pair], like: Pairs) -> tuple[Pairs, list[list[list[str]]]]:
    """Each different source once, in the numbers of ``like``, and all its translations. Unknown words: left out."""
    found: dict[tuple, list] = {}
    for source, target in pairs:
        if like.source_words.ids.keys() >= {*source} and like.target_words.ids.keys() >= {*target}:
            found.setdefault(tuple(source), []).append(target)
    return Pairs([[*source] for source in found], [targets[0] for targets in found.values()], like), [*found.values()]


@torch.no_grad()
def translate(model: nn.Module, pairs: Pairs, longest: int) -> list[list[str]]:
    """All sources at once: the most probable next word again and again, until every sentence has its end token."""
    device, vocabulary = next(model.parameters()).device, pairs.target_words
    read = model.encode(pairs.source.to(device), pairs.lengths.to(device))
    start = torch.full((len(pairs), 1), vocabulary.ids[START], device=device)
    ids = decoding.greedy(lambda ids: model.decode(ids, read)[0], start, longest, end=vocabulary.ids[END])
    texts = (vocabulary.decode(row) for row in ids[:, 1:])
    return [text[: text.index(END)] if END in text else text for text in texts]


def links(text: str, mark: str) -> set[tuple[int, int]]:
    """The sure (mark "-") or possible ("?") links of a sentence of `aligned`: (English place, Spanish place)."""
    return {tuple(map(int, link.split(mark))) for link in text.split() if mark in link}


def strongest_links(weights: Tensor, pairs: Pairs) -> list[set[tuple[int, int]]]:
    """Of each sentence: each target word with the source word that it looks at most. weights (pairs, target, source)"""
    best = weights.argmax(dim=-1).tolist()
    return [{(best[row][j], j) for j in range(len(target))} for row, target in enumerate(pairs.targets)]


def in_corpus(sentences: Iterable[set[tuple[int, int]]]) -> set[tuple[int, int, int]]:
    """Links of many sentences as one set: (sentence, source place, target place)."""
    return {(row, *link) for row, found in enumerate(sentences) for link in found}
