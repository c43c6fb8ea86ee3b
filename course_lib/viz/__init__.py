"""Pictures: figures with alt text, BertViz without a network, drawings of networks and of search trees."""

from course_lib.viz.bertviz import head_view, model_view, neuron_view
from course_lib.viz.figures import PALETTE, bars, curves, figure, heatmap, learning_curves, look, show, style, visible

__all__ = [
    "PALETTE",
    "bars",
    "curves",
    "figure",
    "head_view",
    "heatmap",
    "learning_curves",
    "look",
    "model_view",
    "neuron_view",
    "show",
    "style",
    "visible",
]
