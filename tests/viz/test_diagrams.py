"""Drawings: the parts that a lesson speaks of are there."""

from course_lib import viz
from course_lib.viz import diagrams


def test_the_architecture_is_drawn():
    _, ax = viz.figure()
    diagrams.encoder_decoder(ax)
    assert {"cross-attention", "masked self-attention", "6 ×"} <= {text.get_text() for text in ax.texts}


def test_a_leak_goes_by_way_of_a_third_word():
    _, ax = viz.figure()
    diagrams.leak_in_two_steps(ax)
    texts = [text.get_text() for text in ax.texts]
    assert {"s", "t", "t + 1", "layer 2"} <= set(texts)
    assert texts.count("✗") == 2


def test_a_head_has_a_place_for_its_mask():
    _, ax = viz.figure()
    diagrams.self_attention(ax)
    assert {"scores", "mask", "softmax", "weights", "output"} <= {text.get_text() for text in ax.texts}
