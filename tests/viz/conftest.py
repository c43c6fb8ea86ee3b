"""Tests of pictures need no window and give no warning; they may see what a notebook would be given."""

import warnings

import matplotlib
import matplotlib.pyplot as plt
import pytest

from course_lib.viz import bertviz, figures


@pytest.fixture(autouse=True)
def _no_window():
    """No window, no figure left open, no warning."""
    matplotlib.use("agg")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)  # BertViz leaves its files open
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
