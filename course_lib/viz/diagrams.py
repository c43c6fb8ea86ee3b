"""Drawings of architectures: boxes and arrows, in the look of the course."""

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

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
            _box(ax, x, y, name)
        for low, high in zip(heights[x], heights[x][1:], strict=False):
            _arrow(ax, (x, low + 0.33), (x, high - 0.33))
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
    _arrow(ax, (4.1, 4.5), (5.32, 4.5), LOOK)
    ax.text(1.75, 6.2, "memory: keys and values", color=LOOK)
    ax.text(1.6, 7.2, "encoder\nonce for each sentence", ha="center")
    ax.text(7.9, 4.7, "decoder\nwhen it writes:\nonce for each word", ha="left", va="center")


def _box(ax: Axes, x: float, y: float, name: str) -> None:
    colour = LOOK if "cross" in name else ATTENTION if "attention" in name else OTHER
    style = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": colour, "linewidth": 1.8}
    ax.text(x, y, name, ha="center", va="center", bbox=style, zorder=3)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = OTHER) -> None:
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
            _arrow(ax, (place, 0.35), (place, 0.95))
            if place in answers:
                _arrow(ax, (place, 1.85), (place, 2.5))
                ax.text(place, 2.6, answers[place], ha="center" if place else "left", va="bottom", fontsize=10)
