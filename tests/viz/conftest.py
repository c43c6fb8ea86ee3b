"""Every test of pictures has the course's look, and may see what a notebook would be given."""

import warnings

import matplotlib
import matplotlib.pyplot as plt
import pytest

from course_lib import viz
from course_lib.viz import bertviz, figures


@pytest.fixture(autouse=True)
def _course_style():
    """The course's look without a window; no figure left open, no warning."""
    matplotlib.use("agg")
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)  # BertViz leaves its files open
        viz.style()
        yield
    plt.close("all")


@pytest.fixture
def shown(monkeypatch) -> list:
    """What the notebook would be given: (data, metadata) of each output."""
    outputs = []

    def display(data, metadata=None, raw=False):
        assert raw
        outputs.append((data, metadata))

    monkeypatch.setattr(figures, "display", display)
    monkeypatch.setattr(bertviz, "display", display)
    return outputs
