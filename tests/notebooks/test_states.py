"""Every lesson runs from top to bottom in every state of its exercises, with the network off.

nbval (`make test`) runs the untouched lesson under the ``cpu`` profile and compares outputs; here answers are put into
the stub cells and the lesson is run under ``smoke``, the smallest sizes that still run every line.
"""

import inspect
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError

from course_lib import notebooks
from course_lib.lab import Lab

sys.path.insert(0, str(Path(__file__).parents[1] / "labs"))
from bank import answers_of

LESSONS = pytest.mark.parametrize("path", notebooks.lessons(), ids=lambda path: path.stem)

IMPORTS = """
import math
from collections.abc import Callable, Collection, Iterable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


"""
NO_NETWORK = """
import socket

connect = socket.socket.connect


def local_only(self, address):
    if self.family == socket.AF_UNIX or address[0] in ("127.0.0.1", "::1", "localhost"):
        return connect(self, address)
    raise OSError(101, "the network is off in this test")


socket.socket.connect = local_only
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a lesson with other sources in some of its cells: gives the executed notebook."""
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK)

    def run(path: Path, answers: dict[str, str] | None = None, **environment: str):
        notebook = nbformat.read(path, as_version=4)
        for id, source in (answers or {}).items():
            place = next(i for i, cell in enumerate(notebook.cells) if f'lab.check("{id}"' in cell.source)
            notebook.cells[place - 1].source = source
        quiet = {"COURSE_PROFILE": "smoke", "COURSE_PROGRESS": str(tmp_path / "progress.json"), "OMP_NUM_THREADS": "1"}
        return notebooks.execute(notebook, PYTHONPATH=str(tmp_path), **quiet, **environment)

    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    return run


def feedback(notebook, mark: str) -> list[str]:
    outputs = [o for cell in notebook.cells if ".check(" in cell.source for o in cell.outputs]
    return [o.data["text/plain"] for o in outputs if o.get("data", {}).get("text/plain", "").startswith(mark)]


def clean(notebook) -> bool:
    outputs = [o for cell in notebook.cells for o in cell.get("outputs", [])]
    return not any(o.get("name") == "stderr" or "Warning" in str(o.get("text", "")) for o in outputs)


@LESSONS
def test_untouched(path, run):
    notebook = run(path)
    assert len(feedback(notebook, "○")) == len(Lab(path.stem).exercises)
    assert clean(notebook)


@LESSONS
def test_solved_with_the_librarys_own_source_also_when_graded(path, run):
    lab = Lab(path.stem)
    answers = {}
    for id, exercise in lab.exercises.items():
        answers[id] = IMPORTS + inspect.getsource(exercise.reference)
    notebook = run(path, answers, COURSE_GRADING="1")
    assert len(feedback(notebook, "✓")) == len(lab.exercises)
    assert clean(notebook)


@LESSONS
def test_wrong(path, run):
    wrong = {id: answers[0] for id, answers in answers_of(path.stem).BANK.wrong_answers.items()}
    notebook = run(path, {id: answer.source for id, answer in wrong.items()})
    said = feedback(notebook, "✗")
    assert set(wrong) == set(Lab(path.stem).exercises)
    for answer, words in zip(wrong.values(), said, strict=True):
        assert answer.says in words
    assert clean(notebook)


@LESSONS
def test_grading_stops_at_an_exercise_that_is_not_solved(path, run):
    with pytest.raises(CellExecutionError, match="CheckFailed"):
        run(path, COURSE_GRADING="1")
