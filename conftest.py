"""What pytest needs to know about the whole repository: where chance comes from, and what nbval compares."""

import os
import random
import tempfile
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import torch

# 0 in every run, so that the same code always gets the same answer; `make fuzz` sets it to draw other cases.
SEED = int(os.environ.setdefault("COURSE_TEST_SEED", "0"))
hypothesis.settings.register_profile("course", derandomize=SEED == 0, database=None)
hypothesis.settings.load_profile("course")


def pytest_report_header() -> str:
    return f"COURSE_TEST_SEED={SEED}"


def seed_all() -> None:
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """What a test draws does not depend on the tests that ran before it in the same process."""
    seed_all()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    """Nor on whether it was the first to ask for a fixture that it shares with others."""
    if fixturedef.scope == "function":
        return (yield)
    seed_all()
    result = yield
    seed_all()
    return result


def pytest_configure(config) -> None:
    """The lessons that nbval runs leave no trace in the progress of whoever tests, and find none there."""
    if getattr(config.option, "nbval", False):
        folder = tempfile.TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        os.environ["COURSE_PROGRESS"] = str(Path(folder.name, "progress.json"))


def pytest_collectstart(collector) -> None:
    """nbval compares text and HTML, but for what the lab marks as the machine's own (`course_lib/lab/panels.py`)."""
    if hasattr(collector, "sanitize_patterns"):
        collector.sanitize_patterns[r"<(\w+) data-here>.*?</\1>"] = ""


def pytest_itemcollected(item) -> None:
    """Of a cell whose output varies (`nbval-ignore-output`) nbval compares the lab's panels: their words do not."""
    if hasattr(item, "compare_outputs") and not item.options["check"]:
        compare = item.compare_outputs
        item.options["check"] = True
        item.compare_outputs = lambda test, stored: compare(panels(test), panels(stored))


def panels(outputs: list) -> list:
    return [output for output in outputs if "<div data-panel" in output.get("data", {}).get("text/html", "")]
