"""Drawings: the parts that a lesson speaks of are there."""

from course_lib import viz
from course_lib.viz import diagrams


def test_the_architecture_is_drawn():
    _, ax = viz.figure()
    diagrams.encoder_decoder(ax)
    assert {"cross-attention", "masked self-attention", "6 ×"} <= {text.get_text() for text in ax.texts}
