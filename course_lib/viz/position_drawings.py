"""Drawings of positions: a block with its residual path, a counter, a pair that turns, a bias, accuracy by place."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from matplotlib.axes import Axes
from matplotlib.patches import Arc, Circle
from torch import Tensor

from course_lib.viz.diagrams import ATTENTION, LOOK, OTHER, arrow, box
from course_lib.viz.figures import PALETTE, heatmap, look


def residual_block(ax: Axes) -> None:
    """A pre-norm block from left to right: the residual path runs through, two layers read from it and add to it."""
    ax.set(xlim=(-0.6, 15.4), ylim=(-0.9, 3.1))
    ax.axis("off")
    ax.plot([0.5, 14.2], [0, 0], color=PALETTE[3], linewidth=4, solid_capstyle="butt")
    arrow(ax, (14.0, 0), (14.7, 0), PALETTE[3])
    ax.text(-0.05, 0, "x", ha="center", va="center", fontsize=14)
    path = "our small models (pre-norm): nothing but additions on the residual path"
    ax.text(7.4, -0.72, path, ha="center", color=PALETTE[3])
    for left, layer in ((1.2, "attention"), (7.9, "feed-forward")):
        arrow(ax, (left, 0.1), (left, 1.65))
        box(ax, left + 0.2, 2.0, "LayerNorm")
        arrow(ax, (left + 1.35, 2.0), (left + 2.35, 2.0))
        box(ax, left + 3.5, 2.0, layer)
        arrow(ax, (left + 3.7, 1.65), (left + 3.7, 0.32))
        ax.add_patch(Circle((left + 3.7, 0), 0.3, facecolor="white", edgecolor=OTHER, zorder=3))
        ax.text(left + 3.7, 0, "+", ha="center", va="center", fontsize=14, zorder=4)
    ax.text(3.2, 2.75, "the only place where words meet", ha="center", fontsize=10, color=ATTENTION)
    ax.text(9.9, 2.75, "each word on its own", ha="center", fontsize=10, color=OTHER)


def counter(axes: Sequence[Axes], positions: int = 16) -> None:
    """Positions counted in binary digits, and the same as waves: the last digit turns fastest, each next one slower."""
    digits = [[(p >> bit) & 1 for p in range(positions)] for bit in range(4)]
    heatmap(axes[0], digits, ["ones", "twos", "fours", "eights"], title="binary digits", x="position", bar=False)
    fine = torch.linspace(0, positions - 1, 16 * (positions - 1) + 1)
    for bit in range(4):
        colour = PALETTE[bit]
        wave = -torch.sin(math.pi * (fine + 0.5) / 2**bit) / 2.6
        axes[1].plot(fine, wave - bit, color=colour)
    axes[1].set(title="the same as waves", xlabel="position", yticks=[0, -1, -2, -3])
    axes[1].set_yticklabels([f"a turn in {2 ** (bit + 1)}" for bit in range(4)])
    axes[1].set_xticks(range(0, positions, 2))
    axes[1].grid(axis="y", visible=False)


def _circle(ax: Axes, title: str) -> None:
    ax.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal", title=title)
    ax.axis("off")
    ax.add_patch(Circle((0, 0), 1, facecolor="none", edgecolor="#cccccc"))


def _hand(ax: Axes, angle: float, colour: str, name: str = "", length: float = 1.0, width: float = 2.0) -> None:
    """An arrow from the middle at an angle, its name outside the circle."""
    end = (length * math.cos(angle), length * math.sin(angle))
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, (0, 0), arrowprops=style)
    ax.text(1.18 * math.cos(angle), 1.18 * math.sin(angle), name, ha="center", va="center", fontsize=10, color=colour)


def turning_pair(ax: Axes, step: float = math.pi / 6, positions: int = 8) -> None:
    """One pair of numbers at positions 0, 1, 2, …: the same arrow, turned a step further each time."""
    _circle(ax, "positions 0 … 7")
    for p in range(positions):
        _hand(ax, p * step, ATTENTION, str(p), width=1.4)


def query_and_key(ax: Axes, key_at: int, offset: int, step: float = math.pi / 6) -> None:
    """The same arrow as a key, and ``offset`` positions later as a query; the arc is the angle between them."""
    query_at = key_at + offset
    _circle(ax, f"key at {key_at}, query at {query_at}")
    key, query = key_at * step, query_at * step
    _hand(ax, key, LOOK, "k")
    _hand(ax, query, ATTENTION, "q")
    ax.add_patch(Arc((0, 0), 0.8, 0.8, theta1=math.degrees(key), theta2=math.degrees(query), color=OTHER, linewidth=2))
    middle = (key + query) / 2
    angle = round(math.degrees(query - key))
    ax.text(0.62 * math.cos(middle), 0.62 * math.sin(middle), f"{angle}°", ha="center", va="center", fontsize=10)


def fading_bias(ax: Axes, slopes: Sequence[float], longest: int = 32) -> None:
    """What each head of ALiBi adds to the score of a key, against its distance; a label at each line's end."""
    distance = range(longest + 1)
    line = 0.14 * max(slopes) * longest  # the height of a line of text, about
    for h, slope in enumerate(slopes, 1):
        kind = look("", h - 1) | {"marker": ""}
        ax.plot(distance, [-slope * d for d in distance], **kind)
        lower = sum(other < slope for other in slopes)  # how many labels stand above this one
        ax.text(
            longest + 0.5,
            min(-slope * longest, -lower * line),
            f"head {h}: slope 1/{round(1 / slope)}",
            va="center",
            fontsize=10,
            color=kind["color"],
        )
    ax.set(xlabel="distance from query back to key", ylabel="added to the score", xlim=(0, 1.35 * longest))
    ax.set_xticks(range(0, longest + 1, 8))


def accuracy_by_place(
    axes: Sequence[Axes], accuracies: Mapping[str, Tensor], distances: Sequence[int], trained: int
) -> None:
    """A panel for each distance, from half of the training length on; broken where that ends.

    accuracies: name → (models, places, distances). A line is one model, a point the mean of the places p to √2 p.
    """
    longest = next(iter(accuracies.values())).shape[1]
    starts = [round(trained / 2 * 2 ** (n / 2)) for n in range(1 + int(2 * math.log2(2 * longest / trained)))]
    spans = [(start, end) for start, end in pairwise(starts) if end <= longest]
    middles = [math.sqrt(start * end) for start, end in spans]
    inside = sum(end <= trained for _, end in spans)
    middles.insert(inside, trained)
    for i, (ax, distance) in enumerate(zip(axes, distances, strict=True)):
        for index, (kind, by_place) in enumerate(accuracies.items()):
            means = torch.stack([by_place[:, start:end, i].mean(dim=1) for start, end in spans], dim=1)
            gap = torch.full((len(means), 1), math.nan)
            means = torch.cat([means[:, :inside], gap, means[:, inside:]], dim=1)
            width = 1 + 0.6 * (len(accuracies) - 1 - index)  # what lies under another line can be seen
            style = look(kind, index) | {"linewidth": width, "markersize": 3 + width}
            ax.plot(middles, means.T, label=[kind] + ["_"] * (len(means) - 1), **style)
        ax.axhline(1 / 8, label="chance", **look("chance"))
        ax.axvline(trained, label="training length", color="#808080", linestyle=":")
        ax.set(xscale="log", ylim=(0, 1.05), xlabel="position in the text (log scale)")
        ax.set_title(f"{distance} back")
        ticks = [trained // 2, *[trained * 2**n for n in range(4) if trained * 2**n <= longest]]
        ax.set_xticks(ticks, ticks)
        ax.minorticks_off()
    axes[0].set_ylabel("accuracy")
    handles, labels = axes[0].get_legend_handles_labels()
    title = "a line for each training"
    axes[0].figure.legend(
        handles, labels, loc="outside upper center", ncols=7, fontsize=9, columnspacing=1, title=title
    )


def ring(ax: Axes, rows: Tensor, start: int = 0, numbered: int = 7) -> None:
    """Neighbouring rows of a table in its two strongest directions, joined in order, the first few with their number.

    rows (rows, ≥ 2); the first is row ``start`` of the table
    """
    ax.plot(rows[:, 0], rows[:, 1], marker="o", markersize=3, linewidth=0.4, color=PALETTE[0], alpha=0.5)
    edge = 1.4 * rows[:, :2].abs().max().item()
    for place, row in enumerate(rows[:numbered], start):
        at = (1.17 * row[:2] / row[:2].norm() * rows[:, :2].norm(dim=1).max()).tolist()
        ax.text(*at, str(place), ha="center", va="center", fontsize=8)
    ax.set(xlim=(-edge, edge), ylim=(-edge, edge), aspect="equal", xticks=[], yticks=[])
    ax.set(xlabel="direction 1", ylabel="direction 2", title=f"MiniLM, places {start} to {start + len(rows) - 1}")


def turns(ax: Axes, learned: tuple[Tensor, Tensor], random: Sequence[tuple[Tensor, Tensor]]) -> None:
    """The turns of a step: places for a whole turn, and modulus, of a learned table and of random ones beside it.

    Dotted: the bounds of a fast turn, 60 places, that does not shrink, 0.98.
    """
    ax.scatter(*learned, facecolors="none", edgecolors=PALETTE[0], linewidths=2, s=90, label="MiniLM", zorder=3)
    for i, table in enumerate(random):
        ax.scatter(
            *table, color=PALETTE[1], marker="s", alpha=0.5, s=10, linewidths=0, label="_" if i else "random tables"
        )
    ax.axhline(0.98, color="#808080", linestyle=":")
    ax.axvline(60, color="#808080", linestyle=":")
    ax.set_yscale("function", functions=(lambda y: y**6, lambda y: y.clip(0) ** (1 / 6)))  # most of it near 1
    ax.set(xscale="log", xlim=(4, 5000), ylim=(0, 1.02), xlabel="places for one turn (dotted: bounds)")
    ax.set(ylabel="modulus (top enlarged)")
    ax.set_yticks([0, 0.7, 0.8, 0.9, 0.98, 1], ["0", "0.7", "0.8", "0.9", "0.98", "1"])
    ax.set_xticks([6, 20, 60, 200, 600, 2000], ["6", "20", "60", "200", "600", "2000"])
    ax.minorticks_off()
    ax.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=2, fontsize=9, columnspacing=0.6)


def unexplained_by_step(ax: Axes, steps: Sequence[int], learned: Tensor, random: Tensor) -> None:
    """What steps leave unexplained: of a learned table (steps), and the range of random ones (tables, steps).

    Colours are those of ``turns``.
    """
    ax.plot(steps, learned, color=PALETTE[0], marker="o", markersize=4)
    ax.fill_between(
        steps, random.min(dim=0).values, random.max(dim=0).values, color=PALETTE[1], alpha=0.35, linewidth=0
    )
    ax.axhline(1, **look("chance"))
    ax.set(xlabel="steps", ylabel="unexplained share of variance", xticks=[1, 5, 10, 15, 20], ylim=(0, None))
    ax.set_title("colours as in the middle;\ndashed: always the mean", fontsize=9)


def distances_looked_at(ax: Axes, beyond: Tensor, within: Tensor, back: int, trained: int) -> None:
    """A head's weight by distance; thin lines where a hand of frequency 1 comes back."""
    longest = len(beyond) - 1
    returns = [back + 2 * math.pi * n for n in range(longest) if back + 2 * math.pi * n <= longest]
    ax.vlines(returns, -0.03, 1.05, color="#808080", linewidth=0.5, label="the fastest hand is back")
    ax.axvline(trained, color="#808080", linestyle=":", label="training length")
    ax.plot(range(len(beyond)), beyond, color=PALETTE[0], label="places 192 to 207")
    ax.plot(range(len(within)), within, color=PALETTE[1], linestyle="--", label="places 24 to 31")
    ax.set(xlim=(-2, longest + 2), ylim=(-0.03, 1.05), xlabel="distance from query back to key")
    ax.set_ylabel("attention weight")
    ax.grid(visible=False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, fontsize=9)
