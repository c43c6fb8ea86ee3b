"""The experiments of lesson 02 that take too long for it: other seeds, longer training, memory networks many times.

    python benchmarks/attention.py translators longer scores scores_longer hops replaced

trains and writes its rows of ``benchmarks/attention.csv``, which the lesson draws. About ten minutes on
one core.
"""

from collections.abc import Iterator

import torch
from torch import nn

from course_lib import data, runtime
from course_lib.data.batches import Pairs, with_replacement
from course_lib.lessons import attention as lesson
from course_lib.measure import metrics
from course_lib.measure.stored import Rows, run_and_store
from course_lib.models import memory_network
from course_lib.models.attention import Alignment, context_vector
from course_lib.models.translator import RNNTranslator
from course_lib.training import cosine, fit

STEPS = 1200  # of each memory network
LAST = "last state at every step"
TRANSLATORS = ("source-blind", "RNN", LAST, "even look", "attention", "attention, bidirectional")


class Blind(nn.Module):
    """A translator that has not read the source."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.model(*lesson.source_blind(*inputs))


def load_pairs(longest: int = 24) -> tuple[Pairs, Pairs, list[str]]:
    """Pairs to train on and to test on, and the links of the latter."""
    splits = {split: data.load("aligned", split, quiet=True)[:] for split in ("train", "test")}
    full = Pairs(*([text.split() for text in splits["train"][side]] for side in ("en", "es")))
    made, links = [], []
    for columns in splits.values():
        rows = list(zip(columns["en"], columns["es"], columns["links"], strict=True))
        rows = [row for row in rows if len(row[0].split()) <= longest]
        made.append(Pairs([en.split() for en, _, _ in rows], [es.split() for _, es, _ in rows], like=full))
        links = [row[2] for row in rows]
    return *made, links


def trained(model: nn.Module, pairs: Pairs, steps: int, seed: int, lr: float = 1e-2) -> nn.Module:
    fit(model, pairs.batches(64), steps=steps, lr=lr, schedule=cosine, seed=seed, progress=False)
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


def translators() -> Rows:
    """Wrong next words by construction and length, and by the Spanish word's place; three seeds, as in the lesson."""
    train, test, _ = load_pairs()
    words = len(train.source_words), len(train.target_words)
    passive = lesson.has_passive(test)
    for seed in (100, 101, 102):
        for name in TRANSLATORS:
            score = lesson.EvenLook() if name in ("even look", LAST) else False
            look = lesson.last_look if name == LAST else context_vector
            runtime.seed(seed)
            if "attention" in name:
                score = Alignment("additive", 64, longest=24)
            model = RNNTranslator(*words, 64, attention=score, look=look, bidirectional="bidirectional" in name)
            model = trained(Blind(model) if name == "source-blind" else model, train, 300, seed)
            for construction, rows in (("actives", ~passive), ("passives", passive), ("all", passive | ~passive)):
                for length, share in by_length(model, test, rows):
                    yield name, 300, seed, f"{construction} {length}", share
            if name in ("source-blind", "RNN"):
                yield from by_place(model, test, name, 300, seed)


def longer() -> Rows:
    """Ten times the steps, once: wrong next words by length in actives, of the test set and of the training set, and
    without attention by the Spanish word's place, in all sentences of the test set."""
    train, test, _ = load_pairs()
    words = len(train.source_words), len(train.target_words)
    for name in ("RNN", "attention", "source-blind"):
        runtime.seed(100)
        model = RNNTranslator(*words, 64, attention=name == "attention" and Alignment("additive", 64, longest=24))
        model = trained(Blind(model) if name == "source-blind" else model, train, 3000, 100, lr=3e-3)
        for split, pairs in (("test", test), ("train", train)):
            for length, share in by_length(model, pairs, ~lesson.has_passive(pairs)):
                yield name, 3000, 100, f"{split} {length}", share
        if name != "attention":
            yield from by_place(model, test, name, 3000, 100)


def scores() -> Rows:
    """Each score, and none, on sentences of up to 9 words: wrong words and alignment error."""
    train, test, links = load_pairs(longest=9)
    words = len(train.source_words), len(train.target_words)
    for seed in (100, 101, 102):
        for name in lesson.SCORES:
            score = lesson.named_score(name, 64, longest=24)
            runtime.seed(seed)  # after the score, so that all else starts alike
            model = trained(RNNTranslator(*words, 64, attention=score), train, 200, seed)
            wrong = 1 - metrics.accuracy(model, test.inputs, test.after)[lesson.word_mask(test)].float().mean()
            yield name, 200, seed, "wrong", wrong.item()
            if name not in ("even", "none"):  # these two do not choose
                with torch.no_grad():
                    places = model.decode(test.before, model.encode(test.source, test.lengths))[1].argmax(dim=-1)
                    yield name, 200, seed, "alignment error", alignment_error(places, test, links)


def scores_longer() -> Rows:
    """Range, or only speed? Two cosine scores and the even look after eight times the steps, once: wrong words."""
    train, test, _ = load_pairs(longest=9)
    words = len(train.source_words), len(train.target_words)
    for name in ("cosine", "even", "cosine × 8"):
        score = lesson.named_score(name, 64, longest=24)
        runtime.seed(100)
        model = trained(RNNTranslator(*words, 64, attention=score), train, 1600, 100)
        wrong = 1 - metrics.accuracy(model, test.inputs, test.after)[lesson.word_mask(test)].float().mean()
        yield name, 1600, 100, "wrong", wrong.item()


def alignment_error(places: torch.Tensor, pairs: Pairs, links: list[str]) -> float:
    sets: tuple[set, set, set] = set(), set(), set()
    for row, (target, text) in enumerate(zip(pairs.targets, links, strict=True)):
        found = {(int(places[row, j]), j) for j in range(len(target))}
        for whole, part in zip(sets, (*lesson.gold_links(text), found), strict=True):
            whole |= {(row, *link) for link in part}
    return metrics.alignment_error_rate(*sets)


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


def replaced_question(
    q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """A hop after which the question is gone: what was read takes its place, instead of being added."""
    added, weights = memory_network.hop(q, keys, values, mask)
    return added - q, weights


def replaced() -> Rows:
    """Two hops on two facts, where what was read is added to the question and where it replaces it."""
    train, test, words, answers = lesson.load_stories()
    batches = with_replacement(train.inputs, train.targets, train.of_kind("two facts"), 64)
    asked = test.some(test.of_kind("two facts"))
    for name, hop in (("added", memory_network.hop), ("replaced", replaced_question)):
        for seed in (100, 101, 102):
            network = lesson.trained_memory(batches, len(words), len(answers), 2, "softmax", STEPS, seed, hop=hop)
            right = metrics.accuracy(network, asked.inputs, asked.targets).float().mean().item()
            yield name, STEPS, seed, "two facts", right


if __name__ == "__main__":
    run_and_store(
        "attention",
        {
            "translators": translators,
            "longer": longer,
            "scores": scores,
            "scores_longer": scores_longer,
            "hops": hops,
            "replaced": replaced,
        },
    )
