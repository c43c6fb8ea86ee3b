"""Drawings of positions: the parts that lesson 05 speaks of are there, and an angle is what it says."""

import torch
from matplotlib.patches import Arc

from course_lib import viz
from course_lib.viz import position_drawings


def texts(ax) -> set[str]:
    return {text.get_text() for text in ax.texts}


def test_the_block_has_its_parts():
    _, ax = viz.figure()
    position_drawings.residual_block(ax)
    assert {"LayerNorm", "attention", "feed-forward", "+"} <= texts(ax)


def test_the_counter_has_four_digits_and_four_waves():
    _, axes = viz.figure(columns=2)
    position_drawings.counter(axes)
    assert len(axes[1].lines) == 4
    for bit, line in enumerate(axes[1].lines):  # the wave is up where the digit is 1
        for p in range(16):
            assert (line.get_ydata()[16 * p] > -bit) == bool((p >> bit) & 1)


def test_query_and_key_keep_their_angle():
    angles = []
    for key_at in (0, 2, 7):
        _, ax = viz.figure()
        position_drawings.query_and_key(ax, key_at, 3)
        [arc] = [patch for patch in ax.patches if isinstance(patch, Arc)]
        angles.append(round(arc.theta2 - arc.theta1))
        assert {"k", "q", "90°"} <= texts(ax)
    assert angles == [90, 90, 90]


def test_the_turning_pair_is_numbered():
    _, ax = viz.figure()
    position_drawings.turning_pair(ax)
    assert texts(ax) >= {str(p) for p in range(8)}


def test_each_head_of_the_bias_has_its_label():
    _, ax = viz.figure()
    position_drawings.fading_bias(ax, [1 / 4, 1 / 16])
    assert texts(ax) == {"head 1: slope 1/4", "head 2: slope 1/16"}


def test_accuracy_by_place_breaks_where_training_ends():
    _, axes = viz.figure(columns=2)
    position_drawings.accuracy_by_place(axes, {"one": torch.ones(3, 64, 2), "two": torch.zeros(1, 64, 2)}, (2, 5), 32)
    assert [ax.get_title(loc="left") for ax in axes] == ["2 back", "5 back"]
    [line] = [line for line in axes[0].lines if line.get_label() == "one"]
    assert [x for x, y in zip(*line.get_data(), strict=True) if y != y] == [32]
    assert [round(x) for x in line.get_xdata()] == [19, 27, 32, 38, 54]
    assert len(axes[0].lines) == 3 + 1 + 2  # one for each model, chance and the training length
    assert axes[0].get_legend_handles_labels()[1] == ["one", "two", "chance", "training length"]
    assert [text.get_text() for text in axes[0].figure.legends[0].texts] == ["one", "two", "chance", "training length"]


def test_a_line_stands_where_the_hand_is_back():
    _, ax = viz.figure()
    position_drawings.distances_looked_at(ax, torch.zeros(20), torch.zeros(8), 2, 8)
    [lines] = [c for c in ax.collections if c.get_label() == "the fastest hand is back"]
    assert [round(segment[0][0], 1) for segment in lines.get_segments()] == [2.0, 8.3, 14.6]


def test_turns_of_random_tables_share_one_name():
    _, ax = viz.figure()
    turns = (torch.tensor([6.0, 17.0]), torch.tensor([1.0, 0.9]))
    position_drawings.turns(ax, turns, [turns, turns])
    assert [text.get_text() for text in ax.get_legend().texts] == ["MiniLM", "random tables"]


def test_what_a_step_leaves_unexplained_of_random_tables_is_a_band():
    _, ax = viz.figure()
    position_drawings.unexplained_by_step(ax, range(1, 4), torch.tensor([0.1, 0.2, 0.3]), torch.rand(5, 3))
    assert len(ax.collections) == 1
    assert len(ax.lines) == 2  # the table, and the mean


def test_a_ring_is_square_and_starts_at_a_number():
    _, ax = viz.figure()
    position_drawings.ring(ax, torch.tensor([[1.0, 0, 9], [0, 2, 9], [1, 1, 9]]), start=40, numbered=2)
    assert ax.get_xlim() == ax.get_ylim() == (-2.8, 2.8)
    assert texts(ax) == {"40", "41"}
