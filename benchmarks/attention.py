"""The experiments of lesson 02 that take too long for it: other seeds, longer training, memory networks many times.

    python benchmarks/attention.py translators longer scores hops

trains and writes its rows of ``benchmarks/attention.csv``, which the lesson draws.
"""

import functools
from collections.abc import Iterator

import torch
from torch import nn

from course_lib import data, runtime
from course_lib.data.batches import Pairs, with_replacement
from course_lib.lessons import attention as lesson
from course_lib.measure import metrics
from course_lib.measure.stored import Rows, run_and_store
from course_lib.models.attention import Alignment, context_vector
from course_lib.models.translator import RNNTranslator
from course_lib.training import cosine, fit

STEPS = 1200  # of each memory network
FALLING = functools.partial(cosine, warmup=0.0, final=0.0)  # the translators' learning rate, as in the lesson
LAST = "last state at every step"
LOCATION = "location score"
TRANSLATORS = ("source-blind", "RNN", LAST, "even look", "attention", "attention, bidirectional")


class Blind(nn.Module):
    """A translator that has not read the source."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.model(*lesson.source_blind(*inputs))


def load_pairs(longest: int = 24) -> tuple[Pairs, Pairs]:
    """Pairs to train on and to test on, of at most so many English words."""
    splits = {split: data.load("aligned", split, quiet=True)[:] for split in ("train", "test")}
    full = Pairs(*([text.split() for text in splits["train"][side]] for side in ("en", "es")))
    made = []
    for columns in splits.values():
        rows = [(en.split(), es.split()) for en, es in zip(columns["en"], columns["es"], strict=True)]
        rows = [row for row in rows if len(row[0]) <= longest]
        made.append(Pairs([en for en, _ in rows], [es for _, es in rows], like=full))
    return made[0], made[1]


def trained(model: nn.Module, pairs: Pairs, steps: int, seed: int) -> nn.Module:
    """As `train` in the lesson."""
    how = {"schedule": FALLING, "mixed_precision": False, "progress": False}
    fit(model, pairs.batches(64), steps=steps, lr=1e-2, seed=seed, **how)
    return model


def by_length(model: nn.Module, pairs: Pairs, rows: torch.Tensor) -> Iterator[tuple[int, float]]:
    """The middle of each group of lengths and the share of wrong next words; no passive is as short as the first."""
    wrong = 1 - metrics.accuracy(model, pairs.inputs, pairs.after)
    for length, share in zip(lesson.LENGTHS, lesson.shares_by_length(wrong, pairs, rows), strict=True):
        if share == share:
            yield length, share


def by_place(model: nn.Module, pairs: Pairs, name: str, steps: int, seed: int) -> Rows:
    """The share of wrong first, second, … Spanish words, for some lengths of the English sentence."""
    shares = lesson.shares_by_place(1 - metrics.accuracy(model, pairs.inputs, pairs.after), pairs)
    for length in (5, 14, 23):
        for place, share in enumerate(shares[length]):
            yield name, steps, seed, f"{length} words, Spanish word {place + 1}", share


def translator(name: str, words: tuple[int, int], seed: int) -> nn.Module:
    """One of the `TRANSLATORS`, or with a location score, untrained."""
    score = lesson.EvenLook() if name in ("even look", LAST) else False
    look = lesson.last_look if name == LAST else context_vector
    runtime.seed(seed)
    if name == LOCATION or "attention" in name:
        score = Alignment("location" if name == LOCATION else "additive", 64, longest=24)
    model = RNNTranslator(*words, 64, attention=score, look=look, bidirectional="bidirectional" in name)
    return Blind(model) if name == "source-blind" else model


def translators() -> Rows:
    """Wrong next words by construction and length, and by the Spanish word's place; three seeds, as in the lesson."""
    train, test = load_pairs()
    words = len(train.source_words), len(train.target_words)
    passive = lesson.has_passive(test)
    for seed in (100, 101, 102):
        for name in TRANSLATORS:
            model = trained(translator(name, words, seed), train, 300, seed)
            for construction, rows in (("actives", ~passive), ("passives", passive), ("all", passive | ~passive)):
                for length, share in by_length(model, test, rows):
                    yield name, 300, seed, f"{construction} {length}", share
            if name in ("source-blind", "RNN"):
                yield from by_place(model, test, name, 300, seed)


def longer() -> Rows:
    """Ten times the steps: wrong next words by construction and length, and by the Spanish word's place."""
    train, test = load_pairs()
    words = len(train.source_words), len(train.target_words)
    passive = lesson.has_passive(test)
    for name in ("source-blind", "RNN", LAST, "even look", "attention", LOCATION):
        for seed in (100, 101, 102):
            model = trained(translator(name, words, seed), train, 3000, seed)
            for construction, rows in (("actives", ~passive), ("passives", passive)):
                for length, share in by_length(model, test, rows):
                    yield name, 3000, seed, f"{construction} {length}", share
            yield from by_place(model, test, name, 3000, seed)


def scores() -> Rows:
    """Each score, and the even look, on sentences of up to 9 words: wrong words."""
    train, test = load_pairs(longest=9)
    words = len(train.source_words), len(train.target_words)
    how = {"schedule": cosine, "mixed_precision": False, "progress": False}
    for seed in (100, 101, 102):
        for name in lesson.SCORES:
            score = lesson.named_score(name, 64, longest=24)
            runtime.seed(seed)  # after the score, so that all else starts alike
            model = RNNTranslator(*words, 64, attention=score)
            fit(model, train.batches(64), steps=200, lr=1e-2, seed=seed, **how)
            wrong = 1 - metrics.accuracy(model, test.inputs, test.after)[lesson.word_mask(test)].float().mean()
            yield name, 200, seed, "wrong", wrong.item()


def hops() -> Rows:
    """Right answers of memory networks: hops, with and without a linear start, three starts of as many steps each."""
    train, test, words, answers = lesson.load_stories()
    for kind in ("three facts", "two facts"):
        batches = with_replacement(train.inputs, train.targets, train.of_kind(kind), 64)
        asked = test.some(test.of_kind(kind))
        for start in ("linear start", "softmax"):
            for count in (3, 2, 1):
                for seed in (100, 101, 102):
                    network = lesson.trained_memory(batches, len(words), len(answers), count, start, STEPS, seed)
                    right = metrics.accuracy(network, asked.inputs, asked.targets).float().mean().item()
                    yield f"{count} hops, {start}", STEPS, seed, kind, right


if __name__ == "__main__":
    run_and_store("attention", {"translators": translators, "longer": longer, "scores": scores, "hops": hops})
