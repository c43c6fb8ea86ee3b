"""Lesson 02: a control that has not read the source, vectors that look at chosen places, links, stories as numbers."""

import csv
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

from course_lib import data, runtime, tokenizers, viz
from course_lib.data.batches import IGNORED, Pairs, encode_stories
from course_lib.lab.budgets import Budget
from course_lib.models import memory_network
from course_lib.models.attention import Alignment
from course_lib.training import cosine, fit

BUDGETS = {
    "steps": Budget("steps of training of each translator", cpu=300, gpu=1500, smoke=3),
    "score_steps": Budget("steps of training for each of the six scores", cpu=200, gpu=600, smoke=3),
    "hop_steps": Budget("steps of training of each memory network", cpu=600, gpu=1000, smoke=4),
}


def source_blind(source: Tensor, lengths: Tensor, before: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What a translator is called with when it must not know the source: one and the same word for every sentence.

    source (batch, longest), lengths (batch), before (batch, target length) → (batch, 1), (batch), and ``before``

    The number of words has to go too, and the width of the batch, which is that of its longest sentence.
    """
    nothing = torch.zeros_like(source[:, :1])
    return nothing, torch.ones_like(lengths), before


def reversing_vectors(lengths: Tensor, longest: int, margin: float) -> tuple[Tensor, Tensor]:
    r"""Queries (batch, longest, 2) and keys (longest, 2) that make a decoder look from the last word to the first.

    lengths (batch). Step t of a sentence of n words looks at place $p = n - 1 - t$: the product of query and key is
    $-(j - p)^2$ for place j, times ``margin``, up to a part that is the same for all places.
    """
    place = torch.arange(longest).float()
    wanted = lengths[:, None] - 1 - place  # (batch, longest): where each step looks
    keys = torch.stack([place, -(place**2)], dim=-1)
    return margin * torch.stack([2 * wanted, torch.ones_like(wanted)], dim=-1), keys


def gold_links(text: str) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """The sure and the possible links of a sentence of the corpus ``aligned``, as (English place, Spanish place).

    ``"0-1 2?0"``: English word 0 and Spanish word 1 belong together, 2 and 0 perhaps.
    """
    found = {"-": set(), "?": set()}
    for english, mark, spanish in re.findall(r"(\d+)([-?])(\d+)", text):
        found[mark].add((int(english), int(spanish)))
    return found["-"], found["?"]


LENGTHS = (5, 8, 11, 14, 17, 20, 23)  # the middles of seven groups: 4–6, 7–9, …, 22–24 words


def has_passive(pairs: Pairs) -> Tensor:
    """True at the English sentences with a passive, *the hat was painted by …*: (pairs)."""
    return torch.tensor(["by" in words for words in pairs.sources])


def shares_by_length(wrong: Tensor, pairs: Pairs, rows: Tensor) -> list[float]:
    """The share of wrong next words for each group of lengths, among the pairs chosen by ``rows`` (a mask).

    wrong (pairs, target length): 1 where the next word is wrong
    """
    counted = (pairs.after != IGNORED) & rows[:, None]
    groups = [((pairs.lengths - middle).abs() <= 1)[:, None] for middle in LENGTHS]
    return [wrong[counted & group].float().mean().item() for group in groups]


class SharpCosine(Alignment):
    """The cosine score times a learned sharpness, as Graves et al. (2014) have it; it starts at √d."""

    def __init__(self, d: int, longest: int):
        super().__init__("cosine", d, longest)
        self.log_sharpness = nn.Parameter(torch.tensor(math.log(d) / 2))

    def forward(self, q: Tensor, keys: Tensor) -> Tensor:
        return self.log_sharpness.exp() * super().forward(q, keys)


STORED = Path(__file__).parents[2] / "benchmarks" / "attention.csv"


def stored_runs(experiment: str) -> dict[tuple[str, int, str], list[float]]:
    """What ``benchmarks/attention.py`` has found: (name, steps, group) → a value for each of its seeds."""
    found: dict[tuple[str, int, str], list[float]] = {}
    with STORED.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["experiment"] == experiment:
                key = row["name"], int(row["steps"]), row["group"]
                found.setdefault(key, []).append(float(row["value"]))
    return found


@dataclass(frozen=True)
class StorySet:
    """One split of the corpus ``stories``: texts, and what a `MemoryNetwork` reads."""

    texts: dict[str, list[str]]  # story, question, answer, facts, kind
    inputs: tuple[Tensor, Tensor]  # facts (stories, 11, 6) and questions (stories, 6)
    targets: Tensor  # (stories)

    def of_kind(self, kind: str) -> Tensor:
        """True at the stories with this kind of question: ``"one fact"``, ``"two facts"``, ``"three facts"``."""
        return torch.tensor([other == kind for other in self.texts["kind"]])

    def some(self, chosen: Tensor) -> "StorySet":
        """The stories chosen by a mask."""
        texts = {name: [column[i] for i in chosen.nonzero()[:, 0]] for name, column in self.texts.items()}
        return StorySet(texts, tuple(x[chosen] for x in self.inputs), self.targets[chosen])


FACTS, LONGEST = 11, 6  # the most sentences of a story, the most words of a sentence


def load_stories() -> tuple[StorySet, StorySet, tokenizers.Vocabulary, tokenizers.Vocabulary]:
    """The stories to train on and to test on, the words of stories, the words of answers."""
    texts = {split: data.load("stories", split, quiet=True)[:] for split in ("train", "test")}
    words = tokenizers.Vocabulary(re.findall(r"\w+", " ".join(texts["train"]["story"] + texts["train"]["question"])))
    answers = tokenizers.Vocabulary(texts["train"]["answer"])
    train, test = (
        StorySet(
            columns,
            encode_stories(columns["story"], columns["question"], words, FACTS, LONGEST),
            answers.encode(columns["answer"]),
        )
        for columns in texts.values()
    )
    return train, test, words, answers


def encode_story(facts: Sequence[str], question: str, words: tokenizers.Vocabulary) -> tuple[Tensor, Tensor]:
    """One story of your own as a `MemoryNetwork` reads it: facts (1, 11, 6) and the question (1, 6)."""
    return encode_stories([". ".join(facts)], [question], words, FACTS, LONGEST)


def newest_place(story: str) -> str:
    """The place that the last movement of a story names: the guess of a reader who follows nobody."""
    return re.findall(r"(?:went|moved|walked) to the (\w+)", story)[-1]


def trained_memory(
    batches: Callable, words: int, answers: int, hops: int, start: str, steps: int, seed: int
) -> memory_network.MemoryNetwork:
    """A memory network after so many steps; with ``"linear start"`` its hops have no softmax in the first half."""
    runtime.seed(seed)
    network = memory_network.MemoryNetwork(words + 1, answers, 32, hops, FACTS, LONGEST, std=0.3)
    how = {"lr": 0.02, "mixed_precision": False, "progress": False}
    if start == "linear start":
        with memory_network.linear_start(network):
            fit(network, batches, steps=steps // 2, seed=seed, **how | {"lr": 0.01})
        steps -= steps // 2
    fit(network, batches, steps=steps, schedule=cosine, seed=seed + 1000, **how)
    return network


# --- pictures -------------------------------------------------------------------------------------------------------


def thin_lines(ax: Axes, stored: dict, construction: str, steps: int) -> None:
    """The stored runs of each translator as thin lines, in the colours that `viz.curves` gives them."""
    names = list(dict.fromkeys(name for name, count, _ in stored if count == steps))
    for line, name in zip(list(ax.get_lines()), names, strict=False):
        keys = {length: stored.get((name, steps, f"{construction} {length}"), []) for length in LENGTHS}
        for run in range(max(map(len, keys.values()))):
            shares = [keys[length][run] if run < len(keys[length]) else math.nan for length in LENGTHS]
            ax.plot(LENGTHS, shares, color=line.get_color(), linewidth=0.8, alpha=0.6)


def name_lines(ax: Axes) -> None:
    """A legend to the right of the axes, for the thick lines."""
    lines = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    ax.legend(
        lines, [line.get_label() for line in lines], loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=2.6
    )


def stored_lines(stored: dict, construction: str) -> dict[str, tuple[list[int], list[float]]]:
    """The first stored run of the two translators after each number of steps: name → (lengths, shares), for a plot."""
    found = {}
    for name in ("RNN", "attention"):
        for steps in sorted({count for other, count, _ in stored if other == name}):
            shares = [stored[name, steps, f"{construction} {length}"][0] for length in LENGTHS]
            found[f"{name}, {steps} steps"] = (list(LENGTHS), shares)
    return found


def draw_scores(ax: Axes, here: dict[str, float], stored: dict, group: str) -> None:
    """A row for each score: a large dot for the value measured here, small ones for the stored seeds."""
    names = list(here)
    for y, name in enumerate(names):
        ax.scatter(here[name], y, s=70, color=viz.PALETTE[0], zorder=3)
        values = stored.get((name, 200, group), [])
        ax.scatter(values, [y] * len(values), s=18, color="#222222", zorder=4)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(left=0)


def draw_starts(ax: Axes, stored: dict, kind: str, guess: float) -> None:
    """Right answers to questions of a kind by the number of hops, a mark for each stored start; dashed: ``guess``."""
    for shift, start, marker, colour in (
        (-0.12, "softmax", "o", viz.PALETTE[0]),
        (0.12, "linear start", "^", viz.PALETTE[1]),
    ):
        for hops in (1, 2, 3):
            values = [
                value
                for key, values in stored.items()
                if (key[0], key[2]) == (f"{hops} hops, {start}", kind)
                for value in values
            ]
            name = start if hops == 1 else None
            ax.scatter([hops + shift] * len(values), values, s=45, marker=marker, color=colour, alpha=0.8, label=name)
    ax.axhline(guess, color="#808080", linestyle="--")
    ax.set(xlim=(0.6, 3.4), ylim=(0, 1.05), xticks=(1, 2, 3), xlabel="hops", title=kind)


def draw_alignment(ax: Axes, weights: Tensor, pairs: Pairs, row: int, links: tuple[set, set], title: str = "") -> None:
    """The weights of one pair with its true links: squares are sure, circles possible. weights (m, n) or larger"""
    source, target = pairs.sources[row], pairs.targets[row]
    viz.heatmap(ax, weights[: len(target), : len(source)], target, source, title, largest=1, bar=False, numbers=False)
    for places, marker in zip(links, "so", strict=True):
        x, y = [i for i, _ in places], [j for _, j in places]
        ax.scatter(x, y, 80, marker=marker, facecolors="none", edgecolors=viz.PALETTE[1], linewidths=1.5)


# --- what the looks miss ---------------------------------------------------------------------------------------------

ARTICLES = {"el", "la", "los", "las", "un", "una", "unos", "unas"}
MISSES = ("articles: miss", "articles: on noun", "others: miss", "others: beside")


def misses(places: Sequence[Sequence[int]], pairs: Pairs, gold: Sequence[tuple[set, set]]) -> dict[str, float]:
    """Of the articles: the share that looks at no link of theirs, and the share that looks at their noun instead. Of
    all other words: the share that looks at no link of theirs, and the share that looks one place beside a link. Only
    words with a sure link count.

    places[row][j]: where Spanish word j of a pair looks most. In Spanish the noun comes next to its article.
    """
    counts = {"articles": 0, "others": 0} | dict.fromkeys(MISSES, 0)
    for row, (target, (sure, possible)) in enumerate(zip(pairs.targets, gold, strict=True)):
        for j in {spanish for _, spanish in sure}:
            kind = "articles" if target[j] in ARTICLES else "others"
            counts[kind] += 1
            if (places[row][j], j) not in sure | possible:
                counts[f"{kind}: miss"] += 1
                if kind == "articles":
                    counts["articles: on noun"] += (places[row][j], j + 1) in sure
                else:
                    counts["others: beside"] += bool({(places[row][j] + i, j) for i in (-1, 1)} & (sure | possible))
    return {name: counts[name] / max(1, counts[name.split(":")[0]]) for name in MISSES}
