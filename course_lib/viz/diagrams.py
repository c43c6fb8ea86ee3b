"""Drawings of architectures: boxes and arrows, in the look of the course."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Circle, Rectangle

from course_lib.viz.figures import PALETTE

ATTENTION, LOOK, OTHER = PALETTE[0], PALETTE[1], "#666666"  # a look at oneself, a look at the source, the rest


def encoder_decoder(ax: Axes) -> None:
    """The Transformer of 2017: what is read goes up on the left, what is written goes up on the right."""
    ax.set(xlim=(0, 10), ylim=(-0.5, 8.8))
    ax.axis("off")
    columns = {
        1.6: ["the source's words", "+ places", "self-attention", "feed-forward"],
        6.2: [
            "the target so far",
            "+ places",
            "masked self-attention",
            "cross-attention",
            "feed-forward",
            "linear, softmax: next word",
        ],
    }
    heights = {1.6: [0, 1.1, 2.9, 4.5], 6.2: [0, 1.1, 2.9, 4.5, 6.1, 8.3]}
    for x, names in columns.items():
        for name, y in zip(names, heights[x], strict=True):
            box(ax, x, y, name)
        for low, high in zip(heights[x], heights[x][1:], strict=False):
            arrow(ax, (x, low + 0.33), (x, high - 0.33))
    for x, bottom, top in ((1.6, 2.15, 5.6), (6.2, 2.15, 7.2)):
        ax.plot([x - 1.55, x + 1.55, x + 1.55, x - 1.55, x - 1.55], [bottom, bottom, top, top, bottom], color="#999999")
        ax.text(x - 1.45, top - 0.12, "6 ×", va="top")
    for x, names in columns.items():  # the path around each layer, and the norm where it comes back
        for name, y in zip(names, heights[x], strict=True):
            if "attention" in name or "feed" in name:
                ax.plot([x, x + 1.42, x + 1.42, x], [y - 0.5, y - 0.5, y + 0.62, y + 0.62], color=OTHER, linewidth=1)
                style = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": OTHER, "linewidth": 0.8}
                ax.text(x, y + 0.62, "+ norm", ha="center", va="center", fontsize=9, color=OTHER, bbox=style, zorder=3)
    ax.plot([1.6, 1.6], [4.8, 5.1], color=OTHER, linewidth=1)
    ax.plot([1.6, 1.6, 4.1, 4.1], [5.3, 6.05, 6.05, 4.5], color=LOOK)
    arrow(ax, (4.1, 4.5), (5.32, 4.5), LOOK)
    ax.text(1.75, 6.2, "memory: keys and values", color=LOOK)
    ax.text(1.6, 7.2, "encoder\nonce for each sentence", ha="center")
    ax.text(7.9, 4.7, "decoder\nwhen it writes:\nonce for each word", ha="left", va="center")


def box(ax: Axes, x: float, y: float, name: str) -> None:
    """A layer: its name in a frame, coloured by what it looks at."""
    colour = LOOK if "cross" in name else ATTENTION if "attention" in name else OTHER
    style = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": colour, "linewidth": 1.8}
    ax.text(x, y, name, ha="center", va="center", bbox=style, zorder=3)


def arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = OTHER) -> None:
    """What flows from ``start`` to ``end``."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0})


_TASKS = {  # title: (tokens below, what is read off above {place: text})
    "a sentence: which class?": (["[CLS]", "a", "gripping", "film", ".", "[SEP]"], {0: "class"}),
    "a pair: how similar?": (["[CLS]", "first", "…", "[SEP]", "second", "…", "[SEP]"], {0: "class or score"}),
    "each word: which tag?": (
        ["[CLS]", "Tom", "lives", "in", "Rome", "[SEP]"],
        dict(zip(range(1, 5), ["B-PER", "O", "O", "B-LOC"], strict=True)),
    ),
    "a question: where is the answer?": (
        ["[CLS]", "who", "…", "[SEP]", "the", "text", "…", "[SEP]"],
        {4: "start?\nend?", 5: "start?\nend?", 6: "start?\nend?"},
    ),
}


def four_tasks(axes: Iterable[Axes]) -> None:
    """One encoder, four new layers: where each task of BERT's paper reads off its answer."""
    for ax, (title, (tokens, answers)) in zip(axes, _TASKS.items(), strict=True):
        ax.set(xlim=(-0.7, len(tokens) - 0.3), ylim=(-0.5, 3.6), title=title)
        ax.axis("off")
        middle = (len(tokens) - 1) / 2
        ax.add_patch(Rectangle((-0.5, 1.0), len(tokens), 0.8, facecolor="white", edgecolor=ATTENTION, linewidth=1.8))
        ax.text(middle, 1.4, "BERT", ha="center", va="center", color=ATTENTION)
        for place, token in enumerate(tokens):
            second = "[SEP]" in tokens[:place] and tokens.count("[SEP]") == 2
            ax.text(place, 0, token, ha="center", va="center", fontsize=10, color=LOOK if second else "#222222")
            arrow(ax, (place, 0.35), (place, 0.95))
            if place in answers:
                arrow(ax, (place, 1.85), (place, 2.5))
                ax.text(place, 2.6, answers[place], ha="center" if place else "left", va="bottom", fontsize=10)


def one_look(
    ax: Axes,
    words: Sequence[str],
    vectors: Any,
    features: Sequence[str],
    weights: Any,
    output: Any,
    title: str = "",
) -> None:
    """One word looks at all words: the vectors below as bars, its weights as the breadth of the lines, the mean above.

    vectors (words, features), weights (words), output (features). The word that looks is the last one.
    """
    middle = (len(words) - 1) / 2
    ax.set(xlim=(-0.75, len(words) - 0.25), ylim=(-0.8, 4.75), title=title)
    ax.axis("off")
    for place, (word, vector, weight) in enumerate(zip(words, vectors, weights, strict=True)):
        _feature_bars(ax, place, 0, vector, features)
        ax.text(place, -0.62, word, ha="center", va="center")
        ends = ([place, middle], [1.55, 3.05])
        ax.plot(*ends, color=OTHER, linewidth=0.6 + 12 * float(weight), alpha=0.75, solid_capstyle="butt")
        side = "right" if place < middle else "left"
        near = [0.8 * start + 0.2 * end for start, end in ends]
        ax.text(near[0] + (-0.14 if side == "right" else 0.14), near[1], f"{weight:.2f}", ha=side, va="center")
    _feature_bars(ax, middle, 3.35, output, features)
    ax.text(middle - 0.55, 3.75, f"{words[-1]}, mixed", ha="right", va="center")


def _feature_bars(ax: Axes, x: float, y: float, vector: Any, features: Sequence[str]) -> None:
    """A vector as bars around ``x`` that stand on ``y``, each with the first letter of its feature."""
    for i, (value, feature) in enumerate(zip(vector, features, strict=True)):
        left = x + 0.19 * (i - len(features) / 2)
        ax.add_patch(Rectangle((left, y), 0.16, 0.85 * float(value), facecolor=PALETTE[i % len(PALETTE)]))
        ax.text(left + 0.08, y - 0.04, feature[0], ha="center", va="top", fontsize=9, color=OTHER)
    ax.plot([x - 0.1 * len(features), x + 0.1 * len(features)], [y, y], color=OTHER, linewidth=0.8)


def self_attention(ax: Axes) -> None:
    """One head, from left to right, as matrices: L words of d_x numbers, queries and keys of d, values of d_v."""
    ax.set(xlim=(-0.3, 16.9), ylim=(-4.5, 4.1))
    ax.axis("off")
    matrices = {  # name: (left, bottom, width, height, colour, shape)
        "X": (0.0, -1.0, 1.7, 2.0, OTHER, "(L, d_x)"),
        "Q": (3.6, 1.9, 0.9, 2.0, ATTENTION, "(L, d)"),
        "K": (3.6, -1.0, 0.9, 2.0, ATTENTION, "(L, d)"),
        "V": (3.6, -3.9, 0.9, 2.0, LOOK, "(L, d_v)"),
        "scores": (6.6, 0.45, 2.0, 2.0, ATTENTION, "(L, L)"),
        "weights": (11.6, 0.45, 2.0, 2.0, ATTENTION, "(L, L)"),
        "output": (15.1, -1.0, 1.3, 2.0, LOOK, "(L, d_v)"),
    }
    for name, (left, bottom, width, height, colour, shape) in matrices.items():
        box = Rectangle((left, bottom), width, height, facecolor="white", edgecolor=colour, linewidth=1.8)
        ax.add_patch(box)
        ax.text(left + width / 2, bottom + height / 2, name, ha="center", va="center", color=colour)
        ax.text(left + width / 2, bottom - 0.12, shape, ha="center", va="top", fontsize=10, color=OTHER)
    for y, x_label, y_label, name in ((2.9, 2.3, 2.0, "W_Q"), (0.0, 2.6, 0.3, "W_K"), (-2.9, 2.3, -2.0, "W_V")):
        arrow(ax, (1.75, y / 6), (3.55, y))
        ax.text(x_label, y_label, name, ha="center", va="center")
    arrow(ax, (4.55, 2.9), (6.55, 1.75), ATTENTION)
    arrow(ax, (4.55, 0.0), (6.55, 1.15), ATTENTION)
    ax.text(7.6, 2.6, "Q Kᵀ / √d", ha="center", va="bottom", fontsize=11)
    ax.plot([8.65, 9.15], [1.45, 1.45], color=ATTENTION, linewidth=1)
    ax.add_patch(Rectangle((9.15, 1.15), 1.0, 0.6, facecolor="white", edgecolor=OTHER, linestyle="--"))
    ax.text(9.65, 1.45, "mask", ha="center", va="center", fontsize=9, color=OTHER)
    arrow(ax, (10.15, 1.45), (11.55, 1.45), ATTENTION)
    ax.text(10.8, 1.6, "softmax", ha="center", va="bottom", fontsize=10)
    ax.text(12.6, 2.6, "each row sums to 1", ha="center", va="bottom", fontsize=11)
    arrow(ax, (13.65, 1.2), (15.05, 0.3), LOOK)
    arrow(ax, (4.55, -2.9), (15.05, -0.45), LOOK)
    ax.text(15.75, 1.15, "weights · V", ha="center", va="bottom", fontsize=11)


def leak_in_two_steps(ax: Axes) -> None:
    """Three words in two layers: what t must not see of t + 1 comes to it by way of a third word."""
    ax.set(xlim=(-0.9, 2.6), ylim=(-0.75, 2.5))
    ax.axis("off")
    for x, word in enumerate(("s", "t", "t + 1")):
        ax.text(x, -0.45, word, ha="center", va="center")
        ax.plot([x] * 3, range(3), "o", color=OTHER, markersize=7)
    for y, name in enumerate(("input", "layer 1", "layer 2")):
        ax.text(-0.25, y, name, ha="right", va="center", fontsize=9, color=OTHER)
    for start, end in (((2, 0), (0, 1)), ((0, 1), (1, 2))):
        style = {"arrowstyle": "-|>", "color": LOOK, "linewidth": 2, "shrinkA": 5, "shrinkB": 5}
        ax.annotate("", end, start, arrowprops=style)
    for y in (0, 1):
        ax.plot([2, 1], [y, y + 1], color=OTHER, linestyle=":", linewidth=1)
        ax.text(1.5, y + 0.5, "✗", ha="center", va="center")


def _strips(ax: Axes, corner: tuple[float, float], size: tuple[float, float], colours: Iterable[str]) -> None:
    """A matrix as a rectangle of strips side by side, one for each head."""
    colours = list(colours)
    (x, y), (width, height) = corner, size
    for i, colour in enumerate(colours):
        strip = (x + i * width / len(colours), y)
        ax.add_patch(
            Rectangle(
                strip, width / len(colours), height, facecolor=colour, edgecolor="white", linewidth=1.2, alpha=0.8
            )
        )
    ax.add_patch(Rectangle((x, y), width, height, facecolor="none", edgecolor=OTHER, linewidth=1))


HEADS = (PALETTE[0], PALETTE[1], PALETTE[2])  # a colour for each head of a drawing


_LOOKS = (  # of the heads of a drawing: where each of four queries looks
    ((1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)),
    ((0.5, 0.5, 0.0, 0.0), (0.0, 0.5, 0.5, 0.0), (0.0, 0.0, 0.5, 0.5), (0.2, 0.0, 0.0, 0.8)),
    ((0.7, 0.1, 0.1, 0.1), (0.7, 0.1, 0.1, 0.1), (0.7, 0.1, 0.1, 0.1), (0.7, 0.1, 0.1, 0.1)),
)


def _grid(ax: Axes, corner: tuple[float, float], size: float, weights: Sequence[Sequence[float]], colour: str) -> None:
    """Attention weights as a square of cells, the first query on top; the darker, the more."""
    side = size / len(weights)
    for i, row in enumerate(weights):
        for j, weight in enumerate(row):
            place = (corner[0] + j * side, corner[1] + size - (i + 1) * side)
            ax.add_patch(Rectangle(place, side, side, facecolor="white", edgecolor="#bbbbbb", linewidth=0.6))
            ax.add_patch(Rectangle(place, side, side, facecolor=colour, alpha=0.8 * weight))
    ax.add_patch(Rectangle(corner, size, size, facecolor="none", edgecolor=OTHER, linewidth=1))


def multi_head_attention(ax: Axes) -> None:
    """The layer from left to right with its shapes: project, split, attend in each head, merge, mix."""
    ax.set(xlim=(0, 16.6), ylim=(-1.5, 7.4))
    ax.axis("off")
    _strips(ax, (0.2, 2.4), (1.2, 1.5), ["#cccccc"])
    ax.text(0.8, 4.1, "x", ha="center")
    ax.text(0.8, 1.7, "(L, d)", ha="center", fontsize=10, color=OTHER)
    rows = (4.9, 2.4, -0.1)
    for name, y in zip("qkv", rows, strict=True):
        _strips(ax, (3.3, y), (1.2, 1.5), HEADS)
        ax.text(3.9, y + 1.62, name, ha="center")
        arrow(ax, (1.5, 3.15), (3.2, y + 0.75))
    ax.text(2.25, 5.1, "$W^Q$", ha="center", color=OTHER)
    ax.text(2.45, 3.35, "$W^K$", ha="center", color=OTHER)
    ax.text(2.25, 0.95, "$W^V$", ha="center", color=OTHER)
    ax.text(3.9, -0.75, "(L, d) each", ha="center", fontsize=10, color=OTHER)
    ax.plot([4.6, 4.75, 4.75, 4.6], [6.4, 6.4, -0.1, -0.1], color=OTHER, linewidth=1)  # of q, k and v alike
    ends = ((13.0, 3.95), (13.4, 2.3), (13.8, 2.3))  # where the strips of the merged matrix are
    for i, (colour, y) in enumerate(zip(HEADS, rows, strict=True)):
        middle = y + 0.75
        arrow(ax, (4.8, 3.15), (5.9, middle), colour)
        ax.text(6.0, middle, f"head {i}", ha="left", va="center", fontsize=10, color=colour)
        _grid(ax, (7.4, y), 1.5, _LOOKS[i], colour)
        ax.text(9.15, middle, "·", ha="center", va="center", fontsize=16)
        _strips(ax, (9.4, y), (0.4, 1.5), [colour])
        ax.text(9.6, y + 1.62, "v", ha="center", fontsize=10)
        ax.text(10.15, middle, "=", ha="center", va="center", fontsize=14)
        _strips(ax, (10.5, y), (0.4, 1.5), [colour])
        bend = {"arrowstyle": "-|>", "color": colour, "connectionstyle": f"arc3,rad={0.35 * (i == 1)}"}
        ax.annotate("", ends[i], (11.05, middle), arrowprops=bend)
    ax.text(3.9, -1.4, "each head takes its own columns", ha="center", fontsize=10, color=OTHER)
    ax.text(8.15, -0.75, "weights (L, L)", ha="center", fontsize=10, color=OTHER)
    ax.text(8.7, -1.4, "= softmax$(q k^\\top / \\sqrt{d_{head}})$", ha="center", fontsize=10, color=OTHER)
    ax.text(10.15, -0.75, "(L, d/H)", ha="center", fontsize=10, color=OTHER)
    _strips(ax, (12.8, 2.4), (1.2, 1.5), HEADS)
    ax.text(13.9, 4.1, "(L, d)", ha="center", fontsize=10, color=OTHER)
    arrow(ax, (14.1, 3.15), (15.2, 3.15))
    ax.text(14.6, 3.4, "$W^O$", ha="center", color=OTHER)
    _strips(ax, (15.3, 2.4), (1.2, 1.5), ["#cccccc"])
    ax.text(15.9, 1.7, "(L, d)", ha="center", fontsize=10, color=OTHER)
    steps = {0.8: "tokens", 3.9: "project", 5.4: "split", 8.9: "attend", 13.4: "merge", 15.9: "mix"}
    for x, step in steps.items():
        ax.text(x, 7.05, step, ha="center", weight="bold")


def heads_add(ax: Axes) -> None:
    """Heads side by side times a matrix = the sum of each head times its own rows of the matrix."""
    ax.set(xlim=(0, 18.6), ylim=(-0.9, 3.7))
    ax.axis("off")
    _strips(ax, (0.2, 0.6), (1.8, 1.2), HEADS)
    ax.text(1.1, 2.0, "heads", ha="center", fontsize=10)
    ax.text(1.1, 0.1, "(L, d)", ha="center", fontsize=10, color=OTHER)
    for i, colour in enumerate(HEADS):
        _strips(ax, (2.6, 1.5 - 0.6 * i), (1.8, 0.6), [colour])
    ax.text(3.5, 2.3, "$W^O$", ha="center")
    ax.text(3.5, -0.2, "(d, d)", ha="center", fontsize=10, color=OTHER)
    ax.text(2.3, 1.2, "·", ha="center", va="center", fontsize=16)
    for i, colour in enumerate(HEADS):
        x = 5.4 + 3.6 * i
        ax.text(x - 0.45, 1.2, "=" if i == 0 else "+", ha="center", va="center", fontsize=16)
        _strips(ax, (x, 0.6), (0.6, 1.2), [colour])
        ax.text(x + 0.8, 1.2, "·", ha="center", va="center", fontsize=16)
        _strips(ax, (x + 1.0, 0.9), (1.8, 0.6), [colour])
        ax.text(x + 1.4, 2.0, f"head {i}", ha="center", fontsize=10, color=OTHER)
        ax.text(x + 1.35, 0.1, "(L, d/H) · (d/H, d)", ha="center", fontsize=10, color=OTHER)
    ax.text(15.85, 1.2, "=", ha="center", va="center", fontsize=16)
    _strips(ax, (16.4, 0.6), (1.8, 1.2), ["#cccccc"])
    ax.text(17.3, 2.0, "output", ha="center", fontsize=10)
    ax.text(17.3, 0.1, "(L, d)", ha="center", fontsize=10, color=OTHER)
    ax.text(0.2, 3.25, "Each head writes into the full width; the layer adds up what they write.", weight="bold")


def round_table(ax: Axes, worn: str = "♠●▲♣▲★♦■") -> None:
    """Guests around a table, the symbol that each has ``worn``, and the two whom guest 2 is asked about."""
    ax.set(xlim=(-2.1, 5.6), ylim=(-1.75, 1.75), aspect="equal")
    ax.axis("off")
    angles = [math.pi / 2 - 2 * math.pi * place / len(worn) for place in range(len(worn))]
    places = [(1.2 * math.cos(angle), 1.2 * math.sin(angle)) for angle in angles]
    ax.add_patch(Circle((0, 0), 0.85, facecolor="#eeeeee", edgecolor=OTHER))
    before, who, opposite = 1, 2, 2 + len(worn) // 2
    colours = {before: ATTENTION, opposite: LOOK}
    for target, colour in colours.items():
        style = {"arrowstyle": "-|>", "color": colour, "linewidth": 2, "shrinkA": 12, "shrinkB": 12}
        ax.annotate("", places[target], places[who], arrowprops=style)
    for place, (x, y) in enumerate(places):
        style = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": OTHER}
        ax.text(x, y, str(place), ha="center", va="center", bbox=style)
        colour = colours.get(place, OTHER)
        ax.text(1.32 * x, 1.32 * y, worn[place], ha="center", va="center", fontsize=15, color=colour)
    ax.text(2.3, 0.7, f"guest {who} names two symbols:", va="center")
    ax.text(2.3, 0.2, f"{worn[before]}  of guest {before}, before", va="center", color=ATTENTION)
    ax.text(2.3, -0.3, f"{worn[opposite]}  of guest {opposite}, opposite", va="center", color=LOOK)
