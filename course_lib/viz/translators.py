"""Drawings of recurrent translators, with and without looking back; one look in numbers; the hops of a memory."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from course_lib.viz.diagrams import ATTENTION, LOOK, OTHER, arrow


def recurrent_translator(
    ax: Axes, source: Sequence[str], target: Sequence[str], looks_back: bool, step: int = 1
) -> None:
    """An encoder that reads ``source`` and a decoder that writes ``target``, from left to right.

    Without ``looks_back`` the encoder's last state is all that gets through. With it the state of one ``step``
    (the first is 0) is drawn with its lines to all states of the encoder; the other steps do the same.
    """
    n, m = len(source), len(target)
    ax.set(xlim=(-0.8, n + m + 0.9), ylim=(-1.9, 3.9 if looks_back else 2.7))
    ax.axis("off")
    first = n + 1  # where the decoder begins
    for j, word in enumerate(source):
        _state(ax, j, f"$h_{j + 1}$", ATTENTION)
        ax.text(j, -1.5, word, ha="center", va="center")
        arrow(ax, (j, -1.2), (j, -0.45))
        if j:
            arrow(ax, (j - 0.58, 0), (j - 0.42, 0), ATTENTION)
    for t, word in enumerate(target):
        x = first + t
        _state(ax, x, f"$s_{t + 1}$", OTHER)
        ax.text(x, -1.5, target[t - 1] if t else "⟨s⟩", ha="center", va="center", color=OTHER)
        arrow(ax, (x, -1.2), (x, -0.45))
        if t:
            arrow(ax, (x - 0.58, 0), (x - 0.42, 0))
        if not looks_back:
            arrow(ax, (x, 0.45), (x, 1.15))
            ax.text(x, 1.45, word, ha="center", va="center", weight="bold")
    arrow(ax, (n - 1 + 0.45, 0), (first - 0.45, 0), LOOK)
    middle = n
    if looks_back:
        x, top = first + step, 2.35
        for j in range(n):
            ax.plot([j, middle], [0.45, top - 0.28], color=LOOK, linewidth=1.4)
        style = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": LOOK, "linewidth": 1.8}
        ax.text(middle, top, f"context $c_{step + 1}$", ha="center", va="center", bbox=style, zorder=3)
        ax.text((n - 1) / 2 - 0.3, 1.9, f"weights $α_{{{step + 1}j}}$", ha="right", va="center", color=LOOK)
        arrow(ax, (middle + 0.75, top), (x - 0.12, 2.75), LOOK)
        ax.plot([x - 0.3, middle + 0.6], [0.45, top - 0.32], color=OTHER, linewidth=1.2, linestyle="--")
        ax.text(first + 0.4, 1.3, "query", ha="right", va="center", color=OTHER)
        arrow(ax, (x, 0.45), (x, 2.6))
        ax.text(x, 2.95, target[step], ha="center", va="center", weight="bold")
    else:
        ax.text(middle, 0.55, "all that\ngets through", ha="center", va="bottom", color=LOOK)
    height = 3.6 if looks_back else 2.3
    ax.text((n - 1) / 2, height, "encoder", ha="center", va="center", color=ATTENTION)
    ax.text(first + (m - 1) / 2, height, "decoder", ha="center", va="center", color=OTHER)


def _state(ax: Axes, x: float, name: str, colour: str) -> None:
    ax.add_patch(Rectangle((x - 0.4, -0.42), 0.8, 0.84, facecolor="white", edgecolor=colour, linewidth=1.8))
    ax.text(x, 0, name, ha="center", va="center", color=colour)


def look_in_numbers(
    ax: Axes, words: Sequence[str], states: Any, query: Any, scores: Any, weights: Any, context: Any
) -> None:
    """One look as a table, a column for each source word: its state, its score, its weight; the context to the right.

    states (words, d), query and context (d), scores and weights (words)
    """
    n = len(words)
    ax.set(xlim=(-2.6, n + 2.1), ylim=(-0.65, 4.6))
    ax.axis("off")
    rows = {3.2: ("state $h_j$", OTHER), 1.9: ("score $s · h_j$", ATTENTION), 0.6: ("weight $α_j$", LOOK)}
    for y, (name, colour) in rows.items():
        ax.text(-0.75, y, name, ha="right", va="center", color=colour)
    for j, word in enumerate(words):
        ax.text(j, 4.25, word, ha="center", va="center", weight="bold")
        ax.text(j, 3.2, _vector(states[j]), ha="center", va="center")
        arrow(ax, (j, 2.8), (j, 2.25))
        ax.text(j, 1.9, _number(scores[j]), ha="center", va="center", color=ATTENTION)
        arrow(ax, (j, 1.55), (j, 1.2))
        height = float(weights[j])
        ax.add_patch(Rectangle((j - 0.3, -0.6), 0.6, 0.9 * height, facecolor=LOOK, alpha=0.6))
        ax.text(j, 0.6, f"{height:.2f}", ha="center", va="center", color=LOOK)
    ax.text(n - 0.5, 1.38, "softmax", ha="left", va="center", fontsize=10, color=OTHER)
    ax.text(n + 0.75, 3.2, f"query\n$s$ = {_vector(query)}", ha="center", va="center", color=ATTENTION)
    ax.text(n + 0.75, 0.6, f"context\n$c$ = {_vector(context)}", ha="center", va="center", color=LOOK)


def _vector(numbers: Any) -> str:
    return "(" + ", ".join(map(_number, numbers)) + ")"


def _number(x: Any) -> str:
    return f"{float(x):.2g}".replace("-", "−")


def memory_hops(ax: Axes, facts: Sequence[str], question: str, answer: str, looked: Sequence[int]) -> None:
    """A question that is asked again after each hop: facts on the left, the question's vector goes up on the right.

    ``looked``: the fact that each hop finds, counted from 0.
    """
    levels = [0.2 + 2.2 * i for i in range(len(looked) + 1)]
    top = max(len(facts) - 1, levels[-1])
    ax.set(xlim=(-0.2, 11), ylim=(-0.5, max(top + 1.3, levels[-1] + 1.6)))
    ax.axis("off")
    heights = [top - place * top / (len(facts) - 1) for place in range(len(facts))]
    for fact, y in zip(facts, heights, strict=True):
        ax.text(0, y, fact, ha="left", va="center")
    style = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": OTHER, "linewidth": 1.5}
    for i, y in enumerate(levels):
        name = f"$q_{i}$: {question}" if i == 0 else f"$q_{i} = q_{i - 1} + \\sum_j a_j v_j$"
        ax.text(8.6, y, name, ha="center", va="center", bbox=style, zorder=3)
        if i:
            arrow(ax, (8.6, levels[i - 1] + 0.4), (8.6, y - 0.45))
    for i, place in enumerate(looked):
        y = (levels[i] + levels[i + 1]) / 2
        arrow(ax, (3.9, heights[place]), (8.45, y), LOOK)
        ax.text(8.75, y, f"hop {i + 1}", ha="left", va="center", color=LOOK)
    arrow(ax, (8.6, levels[-1] + 0.4), (8.6, levels[-1] + 1.0))
    ax.text(8.6, levels[-1] + 1.25, answer, ha="center", va="center", weight="bold")
    ax.text(0, top + 0.9, "the facts: keys and values", color=LOOK)
