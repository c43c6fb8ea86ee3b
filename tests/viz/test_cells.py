"""Drawings of recurrent networks: the parts that a lesson speaks of are there."""

from course_lib import viz
from course_lib.viz import cells


def texts(draw, *arguments) -> list[str]:
    _, ax = viz.figure()
    draw(ax, *arguments)
    return [text.get_text() for text in ax.texts]


def test_an_unrolled_network_has_the_same_weights_at_each_step():
    drawn = texts(cells.unrolled, ["he", "ate", "the", "cake"])
    assert [drawn.count(f"${name}$") for name in "UWV"] == [4, 4, 4]
    assert {"$h_0 = 0$", "$h_{4}$", "$x_{1}$", "$y_{4}$", "cake"} <= set(drawn)


def test_an_lstm_has_three_gates_and_a_belt():
    drawn = texts(cells.lstm_cell)
    assert drawn.count("σ") == 3
    assert drawn.count("tanh") == 2
    assert {"$c_{t-1}$", "$c_t$", "forget", "input", "output", "candidate"} <= set(drawn)


def test_a_gru_has_two_gates_and_one_state():
    drawn = texts(cells.gru_cell)
    assert drawn.count("σ") == 2
    assert drawn.count("×") == 3
    assert {"$h_{t-1}$", "$h_t$", "reset", "update", "$1 - z$", "$U_n h$"} <= set(drawn)
    assert "$c_t$" not in drawn


def test_both_ends_are_drawn_in_each_layer():
    drawn = texts(cells.both_ends, ["the", "cake"], 3)
    assert drawn.count("from the left") == drawn.count("from the right") == drawn.count("combined") == 3
    assert "layer 3" in drawn


def test_everything_must_pass_the_bottleneck():
    drawn = texts(cells.bottleneck, ["he", "ate"], ["il", "a", "mangé"])
    assert {"encoder", "decoder", "z", "he", "mangé", "⟨start⟩"} <= set(drawn)
    assert (drawn.count("a"), drawn.count("mangé")) == (2, 1)  # what is written is read next
