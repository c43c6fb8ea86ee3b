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
    ax.set(xlim=(-0.8, n + m + 0.9), ylim=(-2.4 if looks_back else -1.9, 5.7 if looks_back else 2.7))
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
        _look_back(ax, n, first + step, step + 1, target[step])
    else:
        ax.text(middle, 0.55, "all that\ngets through", ha="center", va="bottom", color=LOOK)
    height = -2.1 if looks_back else 2.3
    ax.text((n - 1) / 2, height, "encoder", ha="center", va="center", color=ATTENTION)
    ax.text(first + (m - 1) / 2, height, "decoder", ha="center", va="center", color=OTHER)


def _look_back(ax: Axes, n: int, x: float, t: int, word: str) -> None:
    """From the query of step ``t``, at ``x``, to its word: scores, softmax, weighted states, context."""
    left, right, bar = -0.4, n - 0.6, 1.35
    for j in range(n):
        arrow(ax, (j, 0.45), (j, bar - 0.3), ATTENTION)
        arrow(ax, (j, bar + 0.3), (j, bar + 1.0), LOOK)
        ax.text(j + 0.08, bar + 0.62, f"$α_{{{t}{j + 1}}}$", ha="left", va="center", color=LOOK)
        arrow(ax, (j, bar + 1.6), (j, bar + 2.3), LOOK)
        ax.text(j, bar + 1.3, f"× $h_{j + 1}$", ha="center", va="center", color=ATTENTION)
    for y, name, colour in ((bar, "scores, then softmax", ATTENTION), (bar + 2.6, "sum", LOOK)):
        ax.add_patch(Rectangle((left, y - 0.3), right - left, 0.6, facecolor="white", edgecolor=colour, linewidth=1.8))
        ax.text((left + right) / 2, y, name, ha="center", va="center", color=colour)
    ax.plot([x - 0.2, x - 0.2], [0.45, bar], color=ATTENTION, linewidth=1.2)
    arrow(ax, (x - 0.2, bar), (right, bar), ATTENTION)
    ax.text((right + x) / 2, bar + 0.12, f"query $s_{t}$", ha="center", va="bottom", color=ATTENTION)
    arrow(ax, (right, bar + 2.6), (x - 1.0, bar + 2.6), LOOK)
    ax.text((right + x - 1.0) / 2, bar + 2.72, f"context $c_{t}$", ha="center", va="bottom", color=LOOK)
    arrow(ax, (x, 0.45), (x, bar + 2.3))
    ax.add_patch(Rectangle((x - 1, bar + 2.3), 2.0, 0.6, facecolor="white", edgecolor=OTHER, linewidth=1.8))
    ax.text(x, bar + 2.6, f"tanh(W[$s_{t}$; $c_{t}$])", ha="center", va="center", fontsize=11, color=OTHER)
    arrow(ax, (x, bar + 2.9), (x, bar + 3.6))
    ax.text(x + 0.12, bar + 3.22, "output layer", ha="left", va="center", fontsize=11, color=OTHER)
    ax.text(x, bar + 3.9, word, ha="center", va="center", weight="bold")


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
    ax.text(n - 0.7, 1.38, "softmax", ha="left", va="center", fontsize=10, color=OTHER)
    x = n + 0.95
    ax.text(x, 3.2, f"query\n$s$ = {_vector(query)}", ha="center", va="center", color=ATTENTION)
    ax.plot([x, x], [2.65, 1.9], color=ATTENTION, linewidth=1.2)
    arrow(ax, (x, 1.9), (n - 0.55, 1.9), ATTENTION)
    arrow(ax, (n - 0.65, 0.6), (n + 0.05, 0.6), LOOK)
    ax.text(x, 0.6, f"context\n$\\sum_j α_j h_j$ = {_vector(context)}", ha="center", va="center", color=LOOK)


def _vector(numbers: Any) -> str:
    return "(" + ", ".join(map(_number, numbers)) + ")"


def _number(x: Any) -> str:
    return f"{float(x):.2g}".replace("-", "−")


def memory_hops(ax: Axes, facts: Sequence[str], question: str, answer: str, looked: Sequence[int]) -> None:
    """A question that is asked again after each hop: from left to right, the facts, and a column for each hop.

    ``looked``: the fact that each hop finds, counted from 0. Each hop compares with keys and takes values of its own.
    """
    n, hops = len(facts), len(looked)
    width = 4.6  # of a hop
    ax.set(xlim=(-4.3, width * hops + 2.6), ylim=(-2.1, n + 0.3))
    ax.axis("off")
    for j, fact in enumerate(facts):
        ax.text(-0.3, n - 1 - j, fact, ha="right", va="center")
    style = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": OTHER, "linewidth": 1.5}
    ax.text(-1.6, -1.6, f"$q_0$: {question}", ha="center", va="center", bbox=style, zorder=3)
    ends = [0.02]  # where each question's box ends
    for i, place in enumerate(looked):
        x = 0.3 + width * i
        for left, name, colour in ((x, f"keys {i + 1}", ATTENTION), (x + 2.1, f"values {i + 1}", LOOK)):
            ax.text(left + 0.55, n - 0.1, name, ha="center", va="center", color=colour)
            for j in range(n):
                face = colour if j == place else "white"
                ax.add_patch(
                    Rectangle((left, n - 1.3 - j), 1.1, 0.6, facecolor=face, alpha=0.5, edgecolor="none", zorder=1)
                )
                ax.add_patch(Rectangle((left, n - 1.3 - j), 1.1, 0.6, fill=False, edgecolor=colour, linewidth=1.2))
        y = n - 1 - place
        arrow(ax, (x + 1.12, y), (x + 2.08, y), LOOK)
        ax.text(x + 1.6, y + 0.12, "$a_j$", ha="center", va="bottom", color=LOOK)
        arrow(ax, (x + 0.55, -1.6), (x + 0.55, -0.35), ATTENTION)  # the question goes to all keys
        ax.text(x + 0.65, -0.9, "asks", ha="left", va="center", color=ATTENTION)
        arrow(ax, (x + 2.65, -0.35), (x + 2.65, -1.38), LOOK)  # what was read is added
        ax.text(x + 2.65, -1.6, "+", ha="center", va="center", fontsize=14, color=LOOK)
        arrow(ax, (ends[-1], -1.6), (x + 2.45, -1.6))
        ax.text(x + 3.85, -1.6, f"$q_{i + 1}$", ha="center", va="center", bbox=style, zorder=3)
        arrow(ax, (x + 2.85, -1.6), (x + 3.5, -1.6))
        ends.append(x + 4.2)
    arrow(ax, (ends[-1], -1.6), (ends[-1] + 0.7, -1.6))
    ax.text(ends[-1] + 0.8, -1.6, answer, ha="left", va="center", weight="bold")
