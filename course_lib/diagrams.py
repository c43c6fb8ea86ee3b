"""Drawings of architectures: boxes and arrows, in the look of the course."""

from matplotlib.axes import Axes

from course_lib.viz import PALETTE

ATTENTION, LOOK, OTHER = PALETTE[0], PALETTE[1], "#666666"  # a look at oneself, a look at the source, the rest


def encoder_decoder(ax: Axes, layers: int = 6) -> None:
    """The Transformer of 2017: what is read goes up on the left, what is written goes up on the right."""
    ax.set(xlim=(0, 10), ylim=(-0.3, 9.3))
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
    heights = {1.6: [0, 1.1, 2.9, 4.4], 6.2: [0, 1.1, 2.9, 4.4, 5.9, 8.0]}
    for x, names in columns.items():
        for name, y in zip(names, heights[x], strict=True):
            _box(ax, x, y, name)
        for low, high in zip(heights[x], heights[x][1:], strict=False):
            _arrow(ax, (x, low + 0.33), (x, high - 0.33))
    for x, bottom, top in ((1.6, 2.2, 5.3), (6.2, 2.2, 6.8)):
        ax.plot([x - 1.55, x + 1.55, x + 1.55, x - 1.55, x - 1.55], [bottom, bottom, top, top, bottom], color="#999999")
        ax.text(x - 1.45, top - 0.12, f"{layers} ×", va="top")
    for x, names in columns.items():  # the path around each layer, and the norm where it comes back
        for name, y in zip(names, heights[x], strict=True):
            if "attention" in name or "feed" in name:
                ax.plot([x, x + 1.42, x + 1.42, x], [y - 0.5, y - 0.5, y + 0.5, y + 0.5], color=OTHER, linewidth=1)
                ax.text(x + 1.65, y + 0.5, "+ norm", va="center", fontsize=9, color=OTHER)
    ax.plot([1.6, 1.6, 4.1, 4.1], [4.73, 5.75, 5.75, 4.4], color=LOOK)
    _arrow(ax, (4.1, 4.4), (5.32, 4.4), LOOK)
    ax.text(1.75, 5.9, "memory: keys and values", color=LOOK)
    ax.text(1.6, 6.9, "encoder\nonce for each sentence", ha="center")
    ax.text(8.3, 8.0, "decoder\nonce for each word", ha="left", va="center")


def _box(ax: Axes, x: float, y: float, name: str) -> None:
    colour = LOOK if "cross" in name else ATTENTION if "attention" in name else OTHER
    style = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": colour, "linewidth": 1.8}
    ax.text(x, y, name, ha="center", va="center", bbox=style, zorder=3)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = OTHER) -> None:
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0})
