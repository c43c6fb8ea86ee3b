"""Drawings of recurrent networks: unrolled in time, the cells of LSTM and GRU, two directions, the bottleneck."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch, Rectangle

from course_lib.viz.diagrams import ATTENTION, LOOK, OTHER, arrow
from course_lib.viz.figures import PALETTE

STATE, BELT, GATE = ATTENTION, LOOK, PALETTE[3]  # the state h, the cell state c, what lies between 0 and 1


def unrolled(ax: Axes, words: Sequence[str]) -> None:
    """An Elman network over some words: the same cell at each step, and the state handed on to the right."""
    ax.set(xlim=(-1.9, 2.2 * len(words) + 0.2), ylim=(-1.75, 2.5))
    ax.axis("off")
    _label(ax, -1.45, 0, "$h_0 = 0$", STATE)
    for place, word in enumerate(words):
        x, step = 2.2 * place, place + 1
        _cell(ax, (x, 0), (1.1, 0.9), "tanh")
        _line(ax, [(x - 1.1 if place else x - 0.95, 0), (x - 0.57, 0)], STATE)
        ax.text(x - 0.76, 0.16, "$U$", ha="center", fontsize=11)
        _line(ax, [(x, -1.05), (x, -0.47)])
        ax.text(x + 0.12, -0.8, "$W$", va="center", fontsize=11)
        ax.text(x, -1.2, f"$x_{{{step}}}$", ha="center", va="center")
        ax.text(x, -1.6, word, ha="center", va="center", style="italic")
        _line(ax, [(x, 0.47), (x, 1.1)])
        ax.text(x + 0.12, 0.78, "$V$", va="center", fontsize=11)
        ax.text(x, 1.28, f"$y_{{{step}}}$", ha="center", va="center")
        ax.plot([x + 0.57, x + 1.1], [0, 0], color=STATE, linewidth=1.8)
        ax.text(x + 0.85, 0.17, f"$h_{{{step}}}$", ha="center", color=STATE)
    title = "one network, drawn once for each step: $W$, $U$ and $V$ are the same everywhere"
    ax.text(-1.8, 2.15, title, weight="bold")


def lstm_cell(ax: Axes) -> None:
    """One step of an LSTM: the cell state runs straight through on its belt, and gates act on it."""
    ax.set(xlim=(-1.0, 10.7), ylim=(-1.0, 6.0))
    ax.axis("off")
    _frame(ax, (0.9, 0.0), (8.2, 5.3))
    ax.plot([0.2, 9.3], [4.6, 4.6], color=BELT, linewidth=5, alpha=0.55, solid_capstyle="butt")
    _line(ax, [(9.2, 4.6), (9.9, 4.6)], BELT)
    _label(ax, -0.45, 4.6, "$c_{t-1}$", BELT)
    _label(ax, 10.2, 4.6, "$c_t$", BELT)
    _label(ax, -0.45, 0.6, "$h_{t-1}$", STATE)
    _label(ax, 10.2, 0.6, "$h_t$", STATE)
    ax.text(1.3, -0.7, "$x_t$", ha="center", va="center")
    ax.plot([0.2, 6.75], [0.6, 0.6], color=STATE, linewidth=1.8)  # h and x go to all four
    _line(ax, [(1.3, -0.45), (1.3, 0.55)])
    for x, name, letter in ((2.2, "σ", "f"), (3.55, "σ", "i"), (5.1, "tanh", "g"), (6.75, "σ", "o")):
        colour = GATE if name == "σ" else OTHER
        _line(ax, [(x, 0.6), (x, 1.25)])
        _cell(ax, (x, 1.6), (1.2 if name == "tanh" else 1.0, 0.65), name, colour)
        ax.text(x + 0.14, 2.1, f"${letter}$", va="center", color=colour)
    _line(ax, [(2.2, 1.95), (2.2, 4.35)], GATE)
    _sign(ax, 2.2, 4.6, "×")
    _line(ax, [(3.55, 1.95), (3.55, 3.0), (4.15, 3.0)], GATE)
    _line(ax, [(5.1, 1.95), (5.1, 3.0), (4.65, 3.0)])
    _sign(ax, 4.4, 3.0, "×")
    _line(ax, [(4.4, 3.25), (4.4, 4.35)])
    _sign(ax, 4.4, 4.6, "+")
    _line(ax, [(7.9, 4.6), (7.9, 3.95)], BELT)
    _cell(ax, (7.9, 3.6), (1.2, 0.65), "tanh")
    _line(ax, [(7.9, 3.25), (7.9, 2.75)])
    _line(ax, [(6.75, 1.95), (6.75, 2.5), (7.65, 2.5)], GATE)
    _sign(ax, 7.9, 2.5, "×")
    _line(ax, [(7.9, 2.25), (7.9, 0.6), (9.9, 0.6)], STATE)
    for x, name in ((2.2, "forget"), (3.55, "input"), (5.1, "candidate"), (6.75, "output")):
        ax.text(x, 0.2, name, ha="center", va="center", fontsize=9, color=OTHER if name == "candidate" else GATE)
    ax.text(5.0, 5.65, "LSTM: the belt of the cell state", ha="center", weight="bold")


def gru_cell(ax: Axes) -> None:
    """One step of a GRU: one state; what z does not keep of it comes from the candidate n."""
    ax.set(xlim=(-1.0, 10.7), ylim=(-1.0, 6.0))
    ax.axis("off")
    _frame(ax, (0.9, 0.0), (8.2, 5.3))
    ax.plot([0.2, 9.3], [4.6, 4.6], color=STATE, linewidth=5, alpha=0.55, solid_capstyle="butt")
    _line(ax, [(9.2, 4.6), (9.9, 4.6)], STATE)
    _label(ax, -0.45, 4.6, "$h_{t-1}$", STATE)
    _label(ax, 10.2, 4.6, "$h_t$", STATE)
    ax.text(1.9, -0.7, "$x_t$", ha="center", va="center")
    ax.plot([1.3, 1.3, 7.2], [4.6, 0.6, 0.6], color=STATE, linewidth=1.8)  # h and x go to all three
    _line(ax, [(1.9, -0.45), (1.9, 0.55)])
    for x, letter in ((2.7, "z"), (4.4, "r")):
        _line(ax, [(x, 0.6), (x, 1.25)])
        _cell(ax, (x, 1.6), (1.0, 0.65), "σ", GATE)
        ax.text(x + 0.14, 2.1, f"${letter}$", va="center", color=GATE)
    _line(ax, [(2.7, 1.95), (2.7, 4.35)], GATE)
    _sign(ax, 2.7, 4.6, "×")
    _line(ax, [(2.7, 3.5), (6.95, 3.5)], GATE)
    ax.text(4.9, 3.75, "$1 - z$", ha="center", va="center", color=GATE)
    _line(ax, [(4.4, 1.95), (4.4, 2.45), (5.4, 2.45)], GATE)
    _line(ax, [(5.65, 0.6), (5.65, 2.2)])
    ax.text(5.75, 1.0, "$U_n h$", va="center", fontsize=10, color=OTHER)
    _sign(ax, 5.65, 2.45, "×")
    _line(ax, [(5.9, 2.45), (6.57, 2.45)])
    _line(ax, [(7.2, 0.6), (7.2, 2.1)])
    ax.text(7.3, 1.0, "$W_n x$", va="center", fontsize=10, color=OTHER)
    _cell(ax, (7.2, 2.45), (1.2, 0.65), "tanh")
    _line(ax, [(7.2, 2.8), (7.2, 3.25)])
    ax.text(7.38, 3.0, "$n$", va="center", color=OTHER)
    _sign(ax, 7.2, 3.5, "×")
    _line(ax, [(7.2, 3.75), (7.2, 4.35)])
    _sign(ax, 7.2, 4.6, "+")
    for x, name in ((2.7, "update"), (4.4, "reset"), (7.2, "candidate")):
        ax.text(x, 0.2, name, ha="center", va="center", fontsize=9, color=OTHER if name == "candidate" else GATE)
    ax.text(5.0, 5.65, "GRU: one state, two gates", ha="center", weight="bold")


def both_ends(ax: Axes, words: Sequence[str], layers: int = 2) -> None:
    """Stacked bidirectional layers: in each, one row of states from the left and one from the right, then combined."""
    ax.set(xlim=(-3.1, 2.0 * len(words) - 0.6), ylim=(-0.9, 3.3 * layers + 0.4))
    ax.axis("off")
    for place, word in enumerate(words):
        ax.text(2.0 * place, -0.6, word, ha="center", va="center", style="italic")
    for layer in range(layers):
        low = 3.3 * layer
        rows = ((low + 0.55, "from the left", STATE), (low + 1.45, "from the right", LOOK))
        for y, name, colour in rows:
            ax.text(-0.95, y, name, ha="right", va="center", color=colour, fontsize=11)
        ax.text(-0.95, low + 2.4, "combined", ha="right", va="center", color=OTHER, fontsize=11)
        ax.text(-3.0, low + 1.45, f"layer {layer + 1}", rotation=90, ha="center", va="center", weight="bold")
        for place in range(len(words)):
            x = 2.0 * place
            _line(ax, [(x, low - 0.62 if layer else low - 0.35), (x, low + 0.22)])  # from what is below
            _line(ax, [(x - 0.5, low - 0.1), (x - 0.5, low + 1.1)], head=False)
            ax.plot([x - 0.5, x], [low - 0.1, low - 0.1], color=OTHER, linewidth=1.5)
            _line(ax, [(x - 0.5, low + 1.1), (x - 0.38, low + 1.25)])
            _cell(ax, (x, low + 0.55), (0.8, 0.6), "", STATE)
            _cell(ax, (x, low + 1.45), (0.8, 0.6), "", LOOK)
            ax.plot([x + 0.42, x + 0.6, x + 0.6], [low + 0.55, low + 0.55, low + 1.9], color=STATE, linewidth=1.5)
            _line(ax, [(x + 0.6, low + 1.9), (x + 0.3, low + 2.1)], STATE)
            _line(ax, [(x, low + 1.77), (x, low + 2.1)], LOOK)
            _cell(ax, (x, low + 2.4), (0.8, 0.55), "", OTHER)
            if place + 1 < len(words):
                _line(ax, [(x + 0.42, low + 0.42), (x + 1.58, low + 0.42)], STATE)
                _line(ax, [(x + 1.58, low + 1.45), (x + 0.42, low + 1.45)], LOOK)


def bottleneck(ax: Axes, source: Sequence[str], target: Sequence[str]) -> None:
    """An encoder reads a sentence into its last state; a decoder writes from that state alone."""
    width = 1.5
    ax.set(xlim=(-0.9, width * (len(source) + len(target)) + 1.6), ylim=(-1.3, 2.6))
    ax.axis("off")
    for place, word in enumerate(source):
        x = width * place
        _cell(ax, (x, 0.4), (0.9, 0.7), "", STATE)
        _line(ax, [(x, -0.55), (x, 0.02)])
        ax.text(x, -0.85, word, ha="center", va="center", style="italic")
        if place + 1 < len(source):
            _line(ax, [(x + 0.47, 0.4), (x + width - 0.47, 0.4)], STATE)
    left = width * (len(source) - 1)
    start = left + width + 1.6
    _line(ax, [(left + 0.47, 0.4), (left + 1.1, 0.4)], LOOK)
    style = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": LOOK, "linewidth": 2.2}
    ax.text(left + 1.55, 0.4, "z", ha="center", va="center", bbox=style, zorder=3)
    _line(ax, [(left + 1.95, 0.4), (start - 0.47, 0.4)], LOOK)
    ax.text(left + 1.55, 1.15, "everything\nmust pass", ha="center", va="bottom", color=LOOK, fontsize=11)
    for place, (word, before) in enumerate(zip(target, ["⟨start⟩", *target], strict=False)):
        x = start + width * place
        _line(ax, [(x, -0.55), (x, 0.02)])
        ax.text(x, -0.85, before, ha="center", va="center", style="italic")
        _cell(ax, (x, 0.4), (0.9, 0.7), "", OTHER)
        _line(ax, [(x, 0.78), (x, 1.35)])
        ax.text(x, 1.6, word, ha="center", va="center", style="italic")
        if place + 1 < len(target):
            _line(ax, [(x + 0.47, 0.4), (x + width - 0.47, 0.4)], OTHER)
    ax.text(left / 2, 2.3, "encoder", ha="center", weight="bold")
    ax.text(start + width * (len(target) - 1) / 2, 2.3, "decoder", ha="center", weight="bold")


def _cell(ax: Axes, middle: tuple[float, float], size: tuple[float, float], name: str, colour: str = OTHER) -> None:
    """A box of a given size around ``middle``."""
    (x, y), (width, height) = middle, size
    corner = (x - width / 2, y - height / 2)
    box = Rectangle(corner, width, height, facecolor="white", edgecolor=colour, linewidth=1.8, zorder=2)
    ax.add_patch(box)
    ax.text(x, y, name, ha="center", va="center", fontsize=11, color=colour, zorder=3)


def _frame(ax: Axes, corner: tuple[float, float], size: tuple[float, float]) -> None:
    style = {"boxstyle": "round,pad=0.1", "facecolor": "#f6f6f6", "edgecolor": "#bbbbbb"}
    ax.add_patch(FancyBboxPatch(corner, *size, zorder=0, **style))


def _sign(ax: Axes, x: float, y: float, sign: str) -> None:
    """An operation entry by entry, in a circle."""
    style = {"boxstyle": "circle,pad=0.12", "facecolor": "white", "edgecolor": OTHER}
    ax.text(x, y, sign, ha="center", va="center", fontsize=12, bbox=style, zorder=3)


def _label(ax: Axes, x: float, y: float, text: str, colour: str) -> None:
    ax.text(x, y, text, ha="center", va="center", color=colour, fontsize=13)


def _line(ax: Axes, points: Sequence[tuple[float, float]], colour: str = OTHER, head: bool = True) -> None:
    """A line through some points, with an arrow's head at the end."""
    xs, ys = zip(*points, strict=True)
    ax.plot(xs, ys, color=colour, linewidth=1.5)
    if head:
        arrow(ax, points[-2], points[-1], colour)
