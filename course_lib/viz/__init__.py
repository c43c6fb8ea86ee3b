"""Pictures: figures with alt text, BertViz without a network, drawings of networks and of search trees."""

from typing import Any

from course_lib.viz.figures import PALETTE, bars, curves, figure, heatmap, learning_curves, look, show, style, visible

__all__ = ["PALETTE", "bars", "curves", "figure", "heatmap", "learning_curves", "look", "show", "style", "visible"]


def __getattr__(name: str) -> Any:
    """BertViz's views, imported when first used: they bring torch and bertviz."""
    if name in ("head_view", "model_view", "neuron_view"):
        from course_lib.viz import bertviz

        return getattr(bertviz, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
