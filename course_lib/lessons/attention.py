"""Lesson 02: a control that has not read the source, vectors that look at chosen places, links, stories as numbers."""

import contextlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from torch import Tensor, nn

from course_lib import data, runtime, tokenizers, viz
from course_lib.data.batches import END, IGNORED, Pairs, encode_stories
from course_lib.lab.budgets import Budget
from course_lib.models import memory_network
from course_lib.models.attention import Alignment, additive_score
from course_lib.training import cosine, fit

BUDGETS = {  # the first two also on a GPU: stored runs of as many steps are drawn beside
    "steps": Budget("steps of training of each translator", cpu=300, smoke=3),
    "score_steps": Budget("steps of training for each of the scores", cpu=200, smoke=3),
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


def word_mask(pairs: Pairs) -> Tensor:
    """True where the next word is a Spanish word, and neither padding nor the end: (pairs, target length).

    A decoder that has read nothing gets nearly every end right, and a short sentence has a larger share of ends.
    """
    return (pairs.after != IGNORED) & (pairs.after != pairs.target_words.encode([END]))


def shares_by_length(wrong: Tensor, pairs: Pairs, rows: Tensor) -> list[float]:
    """The share of wrong next words for each group of lengths, among the pairs chosen by ``rows`` (a mask).

    wrong (pairs, target length): 1 where the next word is wrong. The end of a sentence does not count.
    """
    counted = word_mask(pairs) & rows[:, None]
    return [wrong[counted & group[:, None]].float().mean().item() for group in _groups(pairs)]


LAST_PLACE = 12  # so many words of a Spanish sentence are told apart, where it is asked which of them are right


def shares_by_place(wrong: Tensor, pairs: Pairs) -> dict[int, list[float]]:
    """For each group of lengths the share of wrong first, second, … Spanish words; ``wrong`` as above.

    A place that fewer than 20 sentences of the group have is left out.
    """
    counted = word_mask(pairs)[:, :LAST_PLACE]
    wrong = wrong[:, :LAST_PLACE]
    found = {}
    for middle, group in zip(LENGTHS, _groups(pairs), strict=True):
        there = counted & group[:, None]
        enough = [place for place in range(there.shape[1]) if there[:, place].sum() >= 20]
        found[middle] = [wrong[there[:, place], place].float().mean().item() for place in enough]
    return found


def gains_by_place(wrong: dict[str, Tensor], pairs: Pairs) -> dict[int, list[float]]:
    """For each group of lengths, the RNN's gain on the source-blind decoder at the first, second, … Spanish word."""
    blind, plain = (shares_by_place(wrong[name], pairs) for name in ("source-blind", "RNN"))
    return {n: [b - p for b, p in zip(blind[n], plain[n], strict=True)] for n in LENGTHS}


def _groups(pairs: Pairs) -> list[Tensor]:
    return [(pairs.lengths - middle).abs() <= 1 for middle in LENGTHS]  # masks (pairs)


def up_to(longest: int, pairs: Pairs, like: Pairs) -> Pairs:
    """The pairs of at most so many English words, with the word numbers of ``like``."""
    rows = [row for row, words in enumerate(pairs.sources) if len(words) <= longest]
    return Pairs([pairs.sources[row] for row in rows], [pairs.targets[row] for row in rows], like=like)


class SharpCosine(Alignment):
    """The cosine score times a constant, its sharpness."""

    def __init__(self, d: int, longest: int, sharpness: float):
        super().__init__("cosine", d, longest)
        self.sharpness = sharpness

    def forward(self, q: Tensor, keys: Tensor) -> Tensor:
        return self.sharpness * super().forward(q, keys)


def last_look(q: Tensor, states: Tensor, mask: Tensor, score: Callable) -> tuple[Tensor, Tensor]:
    """A look at the last state alone, whatever the score: the one vector of the plain decoder, at every step again.

    q (batch, queries, d), states (batch, keys, d), mask (batch, 1, keys) → as `context_vector`
    """
    last = mask.sum(dim=-1) - 1  # (batch, 1)
    weights = nn.functional.one_hot(last, states.shape[1]).to(states.dtype).expand(-1, q.shape[1], -1)
    return weights @ states, weights


class EvenLook(nn.Module):
    """A score that is 0 for every key, so that all weights of a sentence are alike: a look that cannot choose."""

    def forward(self, q: Tensor, keys: Tensor) -> Tensor:
        return q.new_zeros(len(q), q.shape[1], keys.shape[1])


SCORES = (*Alignment.KINDS, "cosine × 8", "even")


def named_score(name: str, d: int, longest: int, additive: Callable = additive_score) -> nn.Module:
    """One of the `SCORES`."""
    if name == "even":
        return EvenLook()
    if name in Alignment.KINDS:
        return Alignment(name, d, longest, additive=additive)
    return SharpCosine(d, longest, sharpness=8.0)


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


def newest_movement(story: str, but: int = -1) -> int:
    """The number of the last fact of a story in which somebody moves, counted from 0; the fact ``but`` is left out."""
    moves = [i for i, fact in enumerate(story.split(". ")) if re.search(r"(?:went|moved|walked) to", fact)]
    return max(i for i in moves if i != but)


def newest_with(facts: Sequence[str], word: str) -> int:
    """The number of the last fact that has this word, counted from 0."""
    return max(i for i, fact in enumerate(facts) if word in fact.split())


def newest_movement_of(story: str, fact: int) -> int:
    """The number of the last fact in which the person moves with whom this fact begins, counted from 0; −1 if none."""
    facts = story.split(". ")
    person = facts[fact].split()[0]
    moves = [i for i, text in enumerate(facts) if re.match(rf"{person} (?:went|moved|walked) to", text)]
    return max(moves, default=-1)


def fact_numbers(stories: StorySet) -> tuple[Tensor, Tensor, Tensor]:
    """Of each story: the facts that are needed, in their order (stories, 2); the newest movement of anybody; and the
    newest of the person with whom the first needed fact begins, (stories) each."""
    told = stories.texts["story"]
    needed = torch.tensor([[int(fact) for fact in facts.split()] for facts in stories.texts["facts"]])
    of_person = [newest_movement_of(story, fact) for story, fact in zip(told, needed[:, 0].tolist(), strict=True)]
    return needed, torch.tensor([newest_movement(story) for story in told]), torch.tensor(of_person)


def newest_place_right(texts: dict[str, list[str]]) -> float:
    """How often the newest place of a story is the answer."""
    found = [newest_place(story) == answer for story, answer in zip(texts["story"], texts["answer"], strict=True)]
    return sum(found) / len(found)


def newest_place(story: str) -> str:
    """The place that the last movement of a story names: the guess of a reader who follows nobody."""
    return re.findall(r"(?:went|moved|walked) to the (\w+)", story)[-1]


def trained_memory(
    batches: Callable,
    words: int,
    answers: int,
    hops: int,
    start: str,
    steps: int,
    seed: int,
    d: int = 32,
    hop: Callable = memory_network.hop,
) -> memory_network.MemoryNetwork:
    """A memory network after so many steps; with ``"linear start"`` its hops have no softmax in the first half."""
    runtime.seed(seed)
    network = memory_network.MemoryNetwork(words + 1, answers, d, hops, FACTS, LONGEST, std=0.3, hop=hop)
    first_half = memory_network.linear_start(network) if start == "linear start" else contextlib.nullcontext()
    how = {"mixed_precision": False, "progress": False}
    with first_half:
        fit(network, batches, steps=steps // 2, lr=0.01, seed=seed, **how)
    fit(network, batches, steps=steps - steps // 2, lr=0.02, schedule=cosine, seed=seed + 1000, **how)
    return network


# --- pictures -------------------------------------------------------------------------------------------------------


def thin_lines(ax: Axes, stored: dict, construction: str, steps: int) -> None:
    """The stored runs of each translator as thin lines, in the colour of the line with its name."""
    for line in list(ax.get_lines()):
        name = line.get_label()
        keys = {length: stored.get((name, steps, f"{construction} {length}"), []) for length in LENGTHS}
        for run in range(max(map(len, keys.values()))):
            shares = [keys[length][run] if run < len(keys[length]) else math.nan for length in LENGTHS]
            ax.plot(LENGTHS, shares, color=line.get_color(), linewidth=0.8, alpha=0.6)


def mark_apart(ax: Axes) -> None:
    """Looks of their own for translators that would share marker and dashes with others."""
    for line in ax.get_lines():
        if line.get_label() == "even look":
            line.set(color=viz.PALETTE[3], marker="X", linestyle=(0, (1, 1.5)))
        elif line.get_label() == "attention, bidirectional":
            line.set(color=viz.PALETTE[6], marker="P", linestyle=(0, (6, 1.5)))
        elif line.get_label() == "location score":
            line.set(marker="s", linestyle=(0, (3, 1, 1, 1)))


def name_lines(ax: Axes, thin: str = "") -> None:
    """A legend to the right of the axes, for the thick lines, and a word for the thin ones."""
    lines = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
    names = [line.get_label() for line in lines]
    if thin:
        lines.append(Line2D([], [], color="#808080", linewidth=0.8))
        names.append(thin)
    ax.legend(lines, names, loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=2.6)


def stored_gains(
    stored: dict, lengths: Sequence[int], steps: int, run: int = 0, name: str = "RNN"
) -> dict[int, list[float]]:
    """`gains_by_place` of one stored start of a network, for some lengths of the English sentence."""
    found: dict[int, list[float]] = {length: [] for length in lengths}
    for length, gained in found.items():
        while (name, steps, group := f"{length} words, Spanish word {len(gained) + 1}") in stored:
            gained.append(stored["source-blind", steps, group][run] - stored[name, steps, group][run])
    return found


def stored_means(stored: dict, name: str, construction: str, steps: int) -> list[float]:
    """The mean of a stored network's starts for each group of lengths; NaN where a group has no sentence."""
    runs = [stored.get((name, steps, f"{construction} {length}"), []) for length in LENGTHS]
    return [sum(run) / len(run) if run else math.nan for run in runs]


def draw_gains(ax: Axes, gains: dict[int, Sequence[float]], others: Sequence[dict[int, Sequence[float]]] = ()) -> None:
    """What the RNN gains by the Spanish word's place, a line for each length; ``others``: more starts, thin."""
    for number, (length, gained) in enumerate(gains.items()):
        colour = viz.PALETTE[(3, 2, 6)[number]]  # blue is the source-blind decoder, ochre the RNN
        marker = ("s", "^", "o")[number]
        name = f"{length - 1}–{length + 1} words"
        ax.plot(range(1, len(gained) + 1), gained, color=colour, marker=marker, label=name)
        for other in others:
            ax.plot(range(1, len(other[length]) + 1), other[length], color=colour, linewidth=0.8, alpha=0.6)
    ax.axhline(0, color="#808080", linewidth=0.8)
    ax.set(xlabel="place of the Spanish word", ylabel="gain on source-blind")
    ax.set(ylim=(-0.1, 1), xticks=range(1, LAST_PLACE + 1, 2))
    ax.legend(loc="upper right")


START_MARKS = ("s", "^", "x")  # a start has the same mark in every row


def name_scores(ax: Axes) -> None:
    """What the marks of `draw_scores` mean, above the axes."""
    large = Line2D([], [], color=viz.PALETTE[0], marker="o", markersize=8, linestyle="")
    small = [Line2D([], [], color="#222222", marker=marker, markersize=4, linestyle="") for marker in START_MARKS]
    ax.legend(
        [large, tuple(small)],
        ["here", "three other starts, a mark each"],
        handler_map={tuple: HandlerTuple(ndivide=None)},
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=2,
    )


def draw_scores(ax: Axes, here: dict[str, float], stored: dict) -> None:
    """A row for each score: large dots are measured here, small marks are stored starts."""
    for y, name in enumerate(here):
        ax.scatter(here[name], y, s=70, color=viz.PALETTE[0], zorder=3)
        for value, marker in zip(stored.get((name, 200, "wrong"), []), START_MARKS, strict=False):
            ax.scatter(value, y, s=18, marker=marker, color="#222222", zorder=4)
    ax.set_yticks(range(len(here)), list(here))
    ax.set_ylim(len(here) - 0.5, -0.5)
    ax.set_xlim(left=0)


def draw_starts(ax: Axes, stored: dict, kind: str, guess: float) -> None:
    """Right answers to questions of a kind by the number of hops, a mark for each stored start; dashed: ``guess``."""
    for shift, start, marker, colour in (
        (-0.16, "softmax", "o", viz.PALETTE[0]),
        (0.16, "linear start", "^", viz.PALETTE[1]),
    ):
        for hops in (1, 2, 3):
            values = [
                value
                for key, values in stored.items()
                if (key[0], key[2]) == (f"{hops} hops, {start}", kind)
                for value in values
            ]
            name = start if hops == 1 else None
            places = [hops + shift + 0.06 * (run - (len(values) - 1) / 2) for run in range(len(values))]
            ax.scatter(places, values, s=36, marker=marker, facecolors="none", edgecolors=colour, label=name)
    ax.axhline(guess, color="#808080", linestyle="--", label="newest place")
    ax.set(xlim=(0.6, 3.4), ylim=(0, 1.05), xticks=(1, 2, 3), xlabel="hops", title=kind)


def draw_alignment(ax: Axes, weights: Tensor, pairs: Pairs, row: int, links: tuple[set, set], title: str = "") -> None:
    """The weights of one pair with its true links: squares are sure, circles possible. weights (m, n) or larger"""
    source, target = pairs.sources[row], pairs.targets[row]
    weights = weights[: len(target), : len(source)]
    viz.heatmap(ax, weights, target, source, title, "English", "right Spanish word", 1, bar=False, numbers=False)
    for places, marker in zip(links, LINK_MARKS.values(), strict=True):
        x, y = [i for i, _ in places], [j for _, j in places]
        ax.scatter(x, y, 80, marker=marker, facecolors="none", edgecolors=viz.PALETTE[1], linewidths=1.5)


LINK_MARKS = {"sure link": "s", "possible link": "o"}


def name_links(ax: Axes) -> None:
    """The marks of `draw_alignment`, and its scale, to the right of the axes."""
    look = {"linestyle": "", "markersize": 9, "markerfacecolor": "none", "markeredgecolor": viz.PALETTE[1]}
    handles = [Line2D([], [], marker=marker, label=name, **look) for name, marker in LINK_MARKS.items()]
    handles += [
        Patch(facecolor=colour, edgecolor="#808080", label=f"weight {weight:g}")
        for weight, colour in ((0, "#f7fbff"), (0.5, "#6aaed6"), (1, "#08306b"))  # of the colours of `viz.heatmap`
    ]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0))


# --- alignments -------------------------------------------------------------------------------------------------------


def links_by_counting(train: Pairs, test: Pairs, rounds: int = 5) -> list[list[int]]:
    """IBM model 1 (Brown et al. 1993): the English place that fits each Spanish word best, from counts of pairs alone.

    It knows no order and no context: $p(f | e)$ is all, and each round shares every Spanish word out among the English
    words of its sentence in proportion to it.
    """
    fits = torch.ones(len(train.source_words), len(train.target_words))  # p(Spanish | English)
    english = train.source[:, :, None]
    spanish = train.after.clamp(min=0)[:, None]
    there = (torch.arange(train.source.shape[1]) < train.lengths[:, None])[:, :, None] & (train.after != IGNORED)[
        :, None
    ]
    for _ in range(rounds):
        shared = fits[english, spanish] * there  # (pairs, n, m)
        shared = shared / shared.sum(dim=1, keepdim=True).clamp(min=1e-9)
        counts = torch.zeros_like(fits).index_put((english, spanish), shared, accumulate=True)
        fits = counts / counts.sum(dim=1, keepdim=True).clamp(min=1e-9)
    rows = zip(test.source, test.lengths, test.targets, strict=True)
    return [fits[x[:n]][:, test.target_words.encode(words)].argmax(dim=0).tolist() for x, n, words in rows]


def link_masks(pairs: Pairs, gold: Sequence[tuple[set, set]]) -> tuple[Tensor, Tensor]:
    """The sure links, and the sure or possible ones, as masks: (pairs, target length, source length) each."""
    sure, either = torch.zeros(2, *pairs.after.shape, pairs.source.shape[1], dtype=torch.bool)
    for row, (of_row, possible) in enumerate(gold):
        for english, spanish in of_row:
            sure[row, spanish, english] = True
        for english, spanish in of_row | possible:
            either[row, spanish, english] = True
    return sure, either


def only(weights: Tensor, seen: Tensor) -> Tensor:
    """The weights that are left if each step sees some places only: in proportion to what they were, with the sum 1.

    weights and ``seen`` (pairs, target length, source length); where nothing is seen, all is 0
    """
    kept = weights.double() * seen
    return (kept / kept.sum(dim=-1, keepdim=True).clamp(min=1e-300)).to(weights.dtype)
