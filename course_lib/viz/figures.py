"""One look for all figures of the course.

>>> fig, ax = viz.figure()
>>> viz.curves(ax, {"LSTM": (steps, loss), "Transformer": (steps, other_loss)}, x="step", y="loss")
>>> viz.show(fig, alt="Loss of both models falls; the Transformer's falls faster.")

A model keeps its colour, marker and line all course long (`COLOURS`, `look`), so a reader who cannot tell the colours
apart still can tell the curves apart.
"""

import base64
import io
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image, PngImagePlugin

WIDTH = 9.0  # inches; 900 pixels: the width of a notebook's output on a laptop
DPI = 100  # pixels an inch as shown
SHARPNESS = 1.5  # stored pixels for each shown one: sharp text on dense screens, small files

# Every pair stays apart (≥ 0.07 in OKLab) for normal sight and simulated protanopia, deuteranopia and tritanopia, and
# every colour has a contrast ≥ 3 on white: tests/viz/test_figures.py measures both.
PALETTE = ("#086fba", "#d47c07", "#729f68", "#b4229b", "#90680f", "#448cff", "#332255", "#808080")

_LOOKS = {  # name: (colour, marker, line style)
    "Elman": ("#90680f", "v", (0, (5, 1.5))),
    "LSTM": ("#086fba", "o", "-"),
    "GRU": ("#729f68", "s", (0, (8, 2))),
    "attention": ("#d47c07", "D", (0, (4, 1.5, 1, 1.5))),
    "Transformer": ("#b4229b", "^", "-"),
    "feed-forward": ("#448cff", "P", (0, (2, 1))),
    "bigram": ("#332255", "X", (0, (1, 1.5))),
    "chance": ("#808080", "", "--"),
}
# Relatives share a colour and differ in marker and line: they seldom meet in one figure.
_LOOKS |= {
    "RNN": _LOOKS["Elman"],
    "LSTM, gate opened": ("#448cff", "^", (0, (2, 1))),
    "GRU, gate opened": ("#332255", "P", (0, (2, 1))),
    "memory network": ("#332255", "h", "-"),
    "GPT": ("#b4229b", ">", "-"),
    "BERT": ("#b4229b", "<", (0, (5, 1.5))),
    "unigram": ("#808080", "X", (0, (1, 1.5))),
    "library": ("#086fba", "o", "-"),
    "yours": ("#d47c07", "D", (0, (5, 1.5))),
    "pre-norm": ("#086fba", "^", (0, (8, 2))),
    "post-norm": ("#d47c07", "s", (0, (8, 2))),
    "post-norm, 2 blocks": ("#d47c07", "v", (0, (2, 1))),
}
_SPARE = (("o", "-"), ("s", (0, (5, 1.5))), ("^", (0, (2, 1))), ("D", (0, (4, 1.5, 1, 1.5))), ("v", (0, (1, 1.5))))

COLOURS: dict[str, str] = {name: colour for name, (colour, _, _) in _LOOKS.items()}


def style() -> None:
    """Set matplotlib's defaults to the course's look; ``Lab`` calls it once at start-up."""
    plt.rcParams.update(
        {
            "figure.dpi": DPI,
            "figure.figsize": (WIDTH, 3.6),
            "figure.facecolor": "white",  # also on a dark notebook theme
            "savefig.facecolor": "white",
            "font.size": 12,
            "axes.titlesize": 13,
            "axes.titlelocation": "left",
            "axes.labelsize": 12,
            "xtick.labelsize": 11,
            "ytick.labelsize": 11,
            "legend.fontsize": 11,
            "legend.frameon": False,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.edgecolor": "#555555",
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.formatter.useoffset": False,
            "grid.color": "#e6e6e6",
            "grid.linewidth": 0.8,
            "lines.linewidth": 2.0,
            "lines.markersize": 6,
            "axes.prop_cycle": plt.cycler(color=PALETTE),
            "image.interpolation": "nearest",
        }
    )


def look(name: str, index: int = 0) -> dict[str, Any]:
    """Colour, marker and line of a model, as keywords for ``ax.plot``; an unknown name takes the index-th spare."""
    spare = (PALETTE[index % len(PALETTE)], *_SPARE[index % len(_SPARE)])
    colour, marker, line = _LOOKS.get(name, spare)
    return {"color": colour, "marker": marker, "linestyle": line}


def figure(rows: int = 1, columns: int = 1, height: float = 3.6, width: float = WIDTH, **options) -> tuple[Figure, Any]:
    """A figure of ``rows × columns`` axes, ``height`` inches for each row, laid out so that no label is cut off."""
    return plt.subplots(rows, columns, figsize=(width, height * rows), layout="constrained", **options)


def show(fig: Figure, alt: str) -> None:
    """Display the figure as a PNG that carries ``alt``, a sentence that says what is to be seen; then close it.

    The sentence is stored as the image's ``alt`` metadata (read by nbconvert and others), in the PNG itself and as the
    plain-text output. Write no measured number into it: plain text is compared when the notebooks are tested.
    """
    sentence = " ".join(alt.split()) if isinstance(alt, str) else ""
    if not sentence:
        raise ValueError("viz.show needs alt=…: one sentence that says what is to be seen in the figure.")
    image, width = _png(fig, sentence)
    plt.close(fig)
    display(
        {"image/png": base64.b64encode(image).decode("ascii"), "text/plain": f"Figure: {sentence}"},
        metadata={"image/png": {"alt": sentence, "width": width}},
        raw=True,
    )
    # JupyterLab (4.6) reads no alt metadata: its <img> says nothing to a screen reader unless a script sets the text.
    text = json.dumps(sentence, ensure_ascii=False).replace("</", r"<\/")
    display({"text/html": _SET_ALT.replace("ALT", text), "text/plain": ""}, raw=True)


_SET_ALT = (
    "<script>(output => { const set = () => { const image = output?.previousElementSibling?.querySelector('img');"
    " if (image) image.alt = ALT; return image }; set() || setTimeout(set, 200) })"
    "(document.currentScript?.closest('.jp-OutputArea-child'))</script>"
)


def _png(fig: Figure, description: str) -> tuple[bytes, int]:
    """The figure as a PNG of at most 256 colours (half the bytes, the same to the eye), and its width as shown."""
    full, small = io.BytesIO(), io.BytesIO()
    fig.savefig(full, format="png", dpi=DPI * SHARPNESS, bbox_inches="tight", pad_inches=0.08)
    information = PngImagePlugin.PngInfo()
    information.add_itxt("Description", description)
    picture = Image.open(full).convert("RGB").quantize(256, kmeans=2, dither=Image.Dither.NONE)
    picture.save(small, format="png", optimize=True, pnginfo=information)
    return small.getvalue(), round(picture.width / SHARPNESS)


def curves(
    ax: Axes,
    lines: Mapping[str, Sequence],
    x: str = "",
    y: str = "",
    title: str = "",
    legend: str | None = "right",
) -> None:
    """Draw ``{name: (x, y)}`` or ``{name: (x, y, low, high)}``, the latter with a band from low to high.

    The legend stands outside the axes (``"right"``, ``"above"`` or ``None``), in the order of the curves' last values.
    NaN leaves a gap.
    """
    if not lines:
        raise ValueError("curves needs at least one line: {name: (x, y)}.")
    if legend not in ("right", "above", None):
        raise ValueError(f'legend is {legend!r}; expected "right", "above" or None.')
    drawn = {name: _line_data(name, data) for name, data in lines.items()}
    looks = _looks(drawn)
    for name, (xs, ys, *band) in drawn.items():
        kind = looks[name]
        every = max(1, len(xs) // 8)  # a few markers only, or they hide the line
        marks = [*range(0, len(xs), every)] if len(xs) > 1 else [0]
        alone = kind["marker"] == "" and len(xs) == 1  # one point without a marker would be invisible
        ax.plot(xs, ys, label=name, markevery=marks, **kind | ({"marker": "_"} if alone else {}))
        if band:
            ax.fill_between(xs, *band, color=kind["color"], alpha=0.15, linewidth=0)
    ax.set(xlabel=x, ylabel=y, title=title)
    if legend:
        _legend_outside(ax, legend, {name: ys for name, (_, ys, *_) in drawn.items()})


def _looks(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The look of each line; names without a fixed one take the colours that the others leave."""
    taken = {COLOURS[name] for name in names if name in COLOURS}
    spare = itertools.cycle([i for i, colour in enumerate(PALETTE) if colour not in taken] or range(len(PALETTE)))
    return {name: look(name, 0 if name in COLOURS else next(spare)) for name in names}


def _line_data(name: str, data: Sequence) -> list[np.ndarray]:
    """Arrays of one curve, checked."""
    if len(data) not in (2, 4):
        raise ValueError(f"curve {name!r}: give (x, y) or (x, y, low, high), not {len(data)} items.")
    arrays = [_array(part).ravel() for part in data]
    if len({len(part) for part in arrays}) > 1:
        raise ValueError(f"curve {name!r}: x and y differ in length: {', '.join(str(len(a)) for a in arrays)}.")
    if not np.isfinite(arrays[1]).any():
        raise ValueError(f"curve {name!r} has no finite value to draw ({len(arrays[1])} points).")
    return arrays


def _legend_outside(ax: Axes, where: str, lines: Mapping[str, np.ndarray]) -> None:
    """A legend beside or above the axes, so that it cannot cover a curve; the highest end first."""
    handles, names = ax.get_legend_handles_labels()
    ends = {name: ys[np.isfinite(ys)][-1] for name, ys in lines.items()}
    order = sorted(range(len(names)), key=lambda i: -ends.get(names[i], -np.inf))
    place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
    if where == "above":
        entry = 0.75 + 0.09 * max(map(len, names))  # inches, about
        columns = max(1, int((_space(ax)[0] - 0.6) / entry))
        place = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0), "ncols": columns, "columnspacing": 1.2}
        title = ax.get_title(loc="left")
        ax.set_title("")
        if title:
            place |= {"title": title, "alignment": "left", "title_fontsize": plt.rcParams["axes.titlesize"]}
    ax.legend([handles[i] for i in order], [names[i] for i in order], handlelength=3.2, **place)


def _space(ax: Axes) -> np.ndarray:
    """Width and height in inches of the part of the figure that the axes and their labels have, about."""
    spec = ax.get_subplotspec()
    rows, columns = spec.get_gridspec().get_geometry() if spec else (1, 1)
    return ax.figure.get_size_inches() / (columns, rows)


def learning_curves(ax: Axes, histories: Mapping[str, Any], smooth: int = 1, **options) -> None:
    """Training curves of ``{name: history}``, where a history has ``steps`` and ``loss`` or is the pair of both.

    ``smooth`` draws the mean over that many neighbouring records, above the faint records themselves. ``options`` are
    those of `curves`.
    """
    if smooth < 1:
        raise ValueError(f"smooth is {smooth}; expected 1 or more.")
    lines, looks = {}, _looks(histories)
    for name, history in histories.items():
        steps, loss = (history.steps, history.loss) if hasattr(history, "steps") else history
        steps, loss = _line_data(name, (steps, loss))
        if smooth > 1 and len(loss) > smooth:
            ax.plot(steps, loss, color=looks[name]["color"], alpha=0.25, linewidth=1)
            window = np.ones(smooth) / smooth
            steps, loss = np.convolve(steps, window, mode="valid"), np.convolve(loss, window, mode="valid")
        lines[name] = (steps, loss)
    curves(ax, lines, **{"x": "step", "y": "loss"} | options)


def heatmap(
    ax: Axes,
    matrix: Any,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    title: str = "",
    x: str = "",
    y: str = "",
    largest: float | None = None,
    numbers: bool | None = None,
    bar: bool = True,
) -> None:
    """Draw a matrix with a token at each row (query) and column (key); ``None`` counts from 0.

    White is 0, blue is large; with negative values: purple − white 0 − orange. ``largest`` fixes the end of the scale,
    to compare figures. Cells that are not finite (masked scores: −∞) are grey. ``numbers`` writes the values into the
    cells: by default, where they fit.
    """
    values = _array(matrix)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"heatmap draws a matrix; this has shape {tuple(values.shape)}.")
    labels = [_labels(rows, values.shape[0], "row"), _labels(columns, values.shape[1], "column")]
    finite = np.isfinite(values)
    if not finite.any():
        raise ValueError("heatmap: no value of the matrix is finite, so there is nothing to colour.")
    largest = largest or np.abs(values[finite]).max() or 1.0
    signed = values[finite].min() < 0
    colours = plt.get_cmap("PuOr_r" if signed else "Blues").with_extremes(bad="#d0d0d0")
    image = ax.imshow(np.ma.masked_invalid(values), cmap=colours, vmin=-largest if signed else 0, vmax=largest)
    height, width = values.shape
    equal = max(height, width) <= 3 * min(height, width)
    ax.set_aspect("equal" if equal else "auto")
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    letters = [max(map(len, side)) for side in labels]
    upright = letters[1] <= (3 if width > 6 else 6)
    turned = {} if upright else {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    # Inches left for the cells, about: a letter is 0.09 wide, the bar and the titles take the rest.
    space = _space(ax) - (0.09 * letters[0] + (1.0 if bar else 0.3), 0.7 + (0 if upright else 0.065 * letters[1]))
    space = np.maximum(space, 0.5)
    ax.set_yticks(*_thinned(labels[0], space[1] / 0.2), parse_math=False)
    ax.set_xticks(
        *_thinned(labels[1], space[0] / (0.1 * letters[1] + 0.1 if upright else 0.22)), parse_math=False, **turned
    )
    ax.set(title=title, xlabel=x, ylabel=y)
    cell = space / (width, height)
    texts = _numbers(values)
    needed = 0.08 * max(map(len, texts.flat)) + 0.06
    if numbers or (numbers is None and min(cell) >= 0.25 and (min(cell) if equal else cell[0]) >= needed):
        _write_numbers(ax, values, texts, image)
    if bar:  # as an inset, it stays beside the cells whatever their shape
        ax.set_anchor("W")
        thickness = 0.15 / (min(cell) * width if equal else space[0])
        cax = ax.inset_axes((1 + thickness, 0, thickness, 1))
        ax.figure.colorbar(image, cax=cax).outline.set_visible(False)


def bars(
    ax: Axes,
    values: Mapping[str, float],
    x: str = "",
    title: str = "",
    chance: float | None = None,
    largest: float = 1.0,
) -> None:
    """Draw ``{name: value}`` as bars from left to right, each with its number, on a scale from 0 to ``largest``.

    ``chance`` draws a dashed line at what guessing would give.
    """
    numbers = [float(value) for value in values.values()]
    drawn = ax.barh(list(values), numbers, color=PALETTE[0], height=0.6)
    plain = {"facecolor": "white", "edgecolor": "none", "pad": 1}  # no line runs through a number
    ax.bar_label(drawn, [f"{number:.2f}" for number in numbers], padding=3, bbox=plain)
    if chance is not None:
        ax.axvline(chance, color=COLOURS["chance"], linestyle="--")
        x = x or "dashed: chance"
    ax.set(xlim=(0, 1.18 * largest), xlabel=x, title=title)
    ax.invert_yaxis()  # the first on top
    ax.grid(axis="y", visible=False)


def _array(values: Any) -> np.ndarray:
    """Float array of a tensor (on any device, with or without gradient), list or array."""
    if hasattr(values, "detach"):
        values = values.detach().float().cpu().numpy()
    return np.asarray(values, dtype=float)


def _thinned(labels: list[str], most: float) -> tuple[range, list[str]]:
    """Positions and labels of the ticks: all, or every second, third, … so that at most ``most`` stand there."""
    step = -(-len(labels) // max(1, int(most)))
    return range(0, len(labels), step), labels[::step]


def _labels(tokens: Sequence[str] | None, count: int, kind: str) -> list[str]:
    """Visible labels of tokens: spaces shown, long ones shortened in the middle."""
    if tokens is None:
        return [str(i) for i in range(count)]
    tokens = [str(token) for token in tokens]
    if len(tokens) != count:
        raise ValueError(f"heatmap: the matrix has {count} {kind}s and there are {len(tokens)} {kind} labels.")
    return [visible(token) for token in tokens]


def visible(token: str, longest: int = 20) -> str:
    """A token as readers can see it: “␣” for a space, “ε” for the empty one, “□” where the font has no glyph."""
    font = font_manager.get_font(font_manager.findfont(font_manager.FontProperties()))
    token = token.replace("\n", "↵").replace("\t", "⇥").replace(" ", "␣") or "ε"
    token = "".join(letter if font.get_char_index(ord(letter)) else "□" for letter in token)
    half = longest // 2
    return token if len(token) <= longest else f"{token[:half]}…{token[-half + 1 :]}"


def _numbers(values: np.ndarray) -> np.ndarray:
    """The values as short texts: two decimals below 10, none above."""
    digits = 0 if np.abs(values[np.isfinite(values)]).max() >= 10 else 2
    texts = [f"{value:.{digits}f}".replace("inf", "∞").replace("-", "−") for value in values.flat]
    return np.array(texts).reshape(values.shape)


def _write_numbers(ax: Axes, values: np.ndarray, texts: np.ndarray, image: Any) -> None:
    """Write each text into its cell, white on dark cells."""
    for (row, column), value in np.ndenumerate(values):
        red, green, blue, _ = image.cmap(image.norm(value)) if np.isfinite(value) else (1, 1, 1, 1)
        dark = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 < 0.18
        colour = "white" if dark else "#222222"
        ax.text(column, row, texts[row, column], ha="center", va="center", fontsize=11, color=colour)
