"""Figures: alt text, the palette for colour-blind readers, labels inside the picture, clear errors."""

import base64
import io
import itertools
import json
import re
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from PIL import Image

from course_lib import viz
from course_lib.viz import figures

# --- show -------------------------------------------------------------------------------------------------------------


def test_show_stores_the_alt_text_and_closes_the_figure(shown):
    fig, ax = viz.figure()
    ax.plot([1, 2])
    viz.show(fig, alt="A line\n   that rises.")
    data, metadata = shown[0]
    picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
    assert metadata["image/png"]["alt"] == "A line that rises."
    assert data["text/plain"] == "Figure: A line that rises."
    assert picture.text["Description"] == "A line that rises."
    assert metadata["image/png"]["width"] == round(picture.width / figures.SHARPNESS)
    assert not plt.fignum_exists(fig.number)


def test_the_script_for_jupyterlab_holds_any_text_safely(shown):
    alt = "</script> \"quoted\" 'too' \\ ALT – end"
    fig, _ = viz.figure()
    viz.show(fig, alt=alt)
    html = shown[1][0]["text/html"]
    assert html.count("</script>") == 1
    assert json.loads(re.search(r'image\.alt = (".*"); return', html)[1]) == alt


@pytest.mark.parametrize("alt", ["", "  \n", None])
def test_show_refuses_a_figure_without_alt_text(shown, alt):
    fig, _ = viz.figure()
    with pytest.raises(ValueError, match="one sentence that says what is to be seen"):
        viz.show(fig, alt=alt)
    assert shown == []


def test_figures_are_small_files(shown):
    x = np.arange(300)
    fig, ax = viz.figure()
    noise = np.random.default_rng(0).normal(size=(8, 300))
    viz.curves(ax, {name: (x, noise[i].cumsum()) for i, name in enumerate(list(figures.COLOURS)[:8])})
    viz.show(fig, alt="Eight random walks.")
    fig, ax = viz.figure(height=5)
    viz.heatmap(ax, noise[:, :8], list("abcdefgh"), list("abcdefgh"))
    viz.show(fig, alt="Noise.")
    assert max(len(data["image/png"]) * 3 / 4 for data, _ in shown if "image/png" in data) < 80_000


# --- colours ----------------------------------------------------------------------------------------------------------

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def linear(colour: str) -> np.ndarray:
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def oklab(rgb: np.ndarray) -> np.ndarray:
    """Ottosson's OKLab of linear RGB: distances in it are about as large as they look; black to white is 1."""
    cones = [
        [0.41222147, 0.53633254, 0.05144599],
        [0.2119035, 0.68069955, 0.10739696],
        [0.08830246, 0.28171884, 0.6299787],
    ]
    axes = [
        [0.21045426, 0.79361779, -0.00407205],
        [1.9779985, -2.42859221, 0.45059371],
        [0.02590404, 0.78277177, -0.80867577],
    ]
    return np.array(axes) @ np.cbrt(np.array(cones) @ np.clip(rgb, 0, 1))


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_can_be_told_apart(sight):
    seen = {colour: oklab(np.array(SIGHT[sight]) @ linear(colour)) for colour in viz.PALETTE}
    closest = min(
        itertools.combinations(viz.PALETTE, 2), key=lambda pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]])
    )
    assert np.linalg.norm(seen[closest[0]] - seen[closest[1]]) > 0.07, closest


def test_every_colour_stands_out_on_white():
    for colour in viz.PALETTE:
        luminance = linear(colour) @ [0.2126, 0.7152, 0.0722]
        assert 1.05 / (luminance + 0.05) >= 3, colour


def test_colour_is_never_the_only_cue():
    looks = [json.dumps(viz.look(name)) for name in figures.COLOURS if name not in ("RNN", "library")]  # other names
    cues = [(look["marker"], str(look["linestyle"])) for look in map(viz.look, list(figures.COLOURS)[:8])]
    assert len(set(looks)) == len(looks)
    assert len(set(cues)) == 8
    assert set(figures.COLOURS.values()) <= set(viz.PALETTE)


# --- curves -----------------------------------------------------------------------------------------------------------


def outside(fig, ax) -> list[str]:
    """Labels, titles and legend entries that stand outside the figure."""
    fig.canvas.draw()
    ticks = [
        label
        for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim()))
        for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
        if min(limits) <= place <= max(limits)
    ]
    legend = ax.get_legend().get_texts() if ax.get_legend() else []
    texts = [*ticks, *legend, *ax.texts, ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title]
    texts = [text for text in texts if text.get_text()]
    return [text.get_text() for text in texts if not contains(fig.bbox.padded(1), text.get_window_extent())]


def contains(outer, inner) -> bool:
    return outer.x0 <= inner.x0 and outer.y0 <= inner.y0 and inner.x1 <= outer.x1 and inner.y1 <= outer.y1


@pytest.mark.parametrize("legend", ["right", "above"])
@pytest.mark.parametrize("columns", [1, 2])
def test_the_legend_is_inside_the_figure_and_off_the_curves(legend, columns):
    fig, axes = viz.figure(1, columns)
    ax = np.ravel(axes)[0]
    x = np.linspace(0, 5, 50)
    lines = {name: (x, np.sin(x + i)) for i, name in enumerate(("LSTM", "a rather long name", "chance"))}
    viz.curves(ax, lines, x="step", y="loss", title="A title", legend=legend)
    assert outside(fig, ax) == []
    assert not ax.get_legend().get_window_extent().overlaps(ax.get_window_extent().padded(-1))


def test_the_legend_follows_the_last_values():
    _, ax = viz.figure()
    viz.curves(ax, {"LSTM": ([0, 1], [5, 1]), "GRU": ([0, 1], [0, 2]), "chance": ([0, 1], [3, np.nan])})
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["chance", "GRU", "LSTM"]


def test_a_model_keeps_its_colour_and_strangers_take_others():
    _, ax = viz.figure()
    viz.curves(ax, {"mine": ([0, 1], [0, 1]), "LSTM": ([0, 1], [1, 2]), "theirs": ([0, 1], [3, 4])})
    mine, lstm, theirs = (line.get_color() for line in ax.get_lines())
    assert lstm == figures.COLOURS["LSTM"]
    assert len({mine, lstm, theirs}) == 3


def test_bands_tensors_and_single_points():
    fig, ax = viz.figure()
    x = torch.arange(3)
    y = torch.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    viz.curves(ax, {"LSTM": (x, y, y - 1, y + 1), "chance": ([1], [2]), "GRU": ([2], [2])})
    assert len(ax.collections) == 1
    assert all(line.get_marker() not in ("", "None") for line in ax.get_lines())
    assert outside(fig, ax) == []


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ({}, "at least one line"),
        ({"LSTM": ([1, 2], [1])}, "differ in length: 2, 1"),
        ({"LSTM": ([1],)}, r"\(x, y\) or \(x, y, low, high\)"),
        ({"LSTM": ([1, 2], [np.nan, np.inf])}, "no finite value"),
        ({"LSTM": ([], [])}, "no finite value"),
    ],
)
def test_curves_says_what_is_wrong(lines, message):
    _, ax = viz.figure()
    with pytest.raises(ValueError, match=message):
        viz.curves(ax, lines)


def test_learning_curves_take_histories_or_pairs():
    history = SimpleNamespace(steps=np.arange(1, 101), loss=np.linspace(3, 1, 100))
    _, ax = viz.figure()
    viz.learning_curves(ax, {"LSTM": history, "GRU": (history.steps, history.loss + 1)}, smooth=10)
    smooth = next(line for line in ax.get_lines() if line.get_label() == "LSTM")
    assert len(smooth.get_xdata()) == 91
    np.testing.assert_allclose(smooth.get_ydata()[0], history.loss[:10].mean())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step", "loss")


# --- heat maps --------------------------------------------------------------------------------------------------------

LONG = "Donaudampfschifffahrtsgesellschaft"


@pytest.mark.parametrize(
    ("matrix", "rows", "columns"),
    [
        ([[1.0]], ["q"], ["k"]),
        (np.eye(3), [LONG] * 3, [LONG] * 3),
        (np.eye(15), [f"token{i}" for i in range(15)], [f"token{i}" for i in range(15)]),
        (np.ones((2, 60)), ["a", "b"], None),
        (np.ones((60, 2)), None, ["$a$", "_b^c"]),
        (np.zeros((2, 2)), ["", " "], ["\n", "中"]),
    ],
    ids=["1×1", "long tokens", "15×15", "wide", "tall", "odd tokens"],
)
def test_no_label_of_a_heat_map_is_cut_off(matrix, rows, columns):
    fig, ax = viz.figure(height=4.5)
    viz.heatmap(ax, matrix, rows, columns, title="Title", x="keys", y="queries")
    assert outside(fig, ax) == []


def test_labels_do_not_overlap():
    fig, axes = viz.figure(1, 2, height=4)
    for ax in axes:
        viz.heatmap(ax, np.ones((50, 50)), None, None)
    fig.canvas.draw()
    for labels in (axes[0].get_xticklabels(), axes[0].get_yticklabels()):
        boxes = [label.get_window_extent() for label in labels]
        assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))


def test_many_small_heat_maps_in_one_figure():
    _, axes = viz.figure(3, 8, height=1)
    for ax in axes.flat:
        viz.heatmap(ax, np.eye(4), [LONG] * 4, [LONG] * 4)
    assert all(ax.child_axes[0].get_position().width > 0 for ax in axes.flat)


def test_tokens_become_visible():
    _, ax = viz.figure()
    viz.heatmap(ax, np.ones((1, 6)), ["q"], ["", " the", "a\nb", "中", LONG, "Ġcat"])
    texts = [label.get_text() for label in ax.get_xticklabels()]
    assert texts == ["ε", "␣the", "a↵b", "□", "Donaudampf…ellschaft", "Ġcat"]


@pytest.mark.parametrize(("size", "written"), [(3, True), (30, False)])
def test_numbers_stand_in_the_cells_where_they_fit(size, written):
    fig, ax = viz.figure(height=4)
    viz.heatmap(ax, -np.ones((size, size)) / 3)
    assert len(ax.texts) == (size * size if written else 0)
    fig.canvas.draw()
    cell = ax.get_window_extent().width / size
    assert all(text.get_window_extent().width < cell for text in ax.texts)
    assert all(text.get_text() == "−0.33" for text in ax.texts)


def test_zero_is_white_and_signs_have_their_own_colour():
    _, axes = viz.figure(1, 2)
    viz.heatmap(axes[0], [[0.0, 1.0]])
    viz.heatmap(axes[1], [[-1.0, 3.0]])
    weights, signed = (ax.images[0] for ax in axes)
    assert weights.get_clim() == (0, 1)
    assert signed.get_clim() == (-3, 3)
    for image in (weights, signed):
        assert min(image.cmap(image.norm(0.0))[:3]) > 0.95


def test_masked_scores_are_grey_and_named():
    _, ax = viz.figure()
    viz.heatmap(ax, torch.tensor([[1.0, -torch.inf], [torch.nan, 2.0]]))
    assert [text.get_text() for text in ax.texts] == ["1.00", "−∞", "nan", "2.00"]
    np.testing.assert_array_equal(ax.images[0].get_array().mask, [[False, True], [True, False]])


@pytest.mark.parametrize(
    ("matrix", "rows", "message"),
    [
        (np.ones(3), None, r"shape \(3,\)"),
        (np.ones((0, 3)), [], r"shape \(0, 3\)"),
        (np.ones((2, 2)), [], "2 rows and there are 0 row labels"),
        (np.full((2, 2), np.nan), None, "no value of the matrix is finite"),
    ],
)
def test_heatmap_says_what_is_wrong(matrix, rows, message):
    _, ax = viz.figure()
    with pytest.raises(ValueError, match=message):
        viz.heatmap(ax, matrix, rows)


# --- bars ---------------------------------------------------------------------------------------------------------


def test_bars_have_their_numbers_and_the_first_is_on_top():
    _, ax = viz.figure()
    viz.bars(ax, {"a": torch.tensor(0.25), "b": 1.0}, chance=0.5)
    assert [bar.get_width() for bar in ax.patches] == [0.25, 1.0]
    assert [text.get_text() for text in ax.texts] == ["0.25", "1.00"]
    assert ax.yaxis_inverted()
