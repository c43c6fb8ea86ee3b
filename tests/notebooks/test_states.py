"""Every lesson runs from top to bottom in every state of its exercises, and any cell of it runs again.

nbval (`make test`) runs the untouched lesson, with the library's pieces, under the ``cpu`` profile and compares what it
shows. Here one kernel, with the network off and under ``smoke``, the smallest sizes that still run every line, walks

1. down the lesson, graded: each check stops an exercise that is not solved, goes on where nobody grades, also with a
   wrong answer, and passes the library's own answer, as `lab.solution` shows it, with which the lesson goes on;
2. back from the last cell to the first, as a reader does who changes something and runs a cell again.

What is measured must come out the same both times.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from bank import answers_of
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.lab import Lab
from course_lib.lab import run as notebooks

NO_NETWORK = """
import socket

connect = socket.socket.connect


def local_only(self, address):
    if self.family == getattr(socket, "AF_UNIX", None) or address[0] in ("127.0.0.1", "::1", "localhost"):
        return connect(self, address)
    raise OSError(101, "the network is off in this test")


socket.socket.connect = local_only
"""
SMALL_PICTURES = "from course_lib.viz import figures\n\nfigures.SHARPNESS = 0.2  # half of the time went into pixels"
GRADED = "import os\n\nos.environ['COURSE_GRADING'] = '{}'"


def script(path: Path) -> Iterator[nbformat.NotebookNode]:
    """The cells to be run; each says which of the lesson's it is (``place``) and in which walk (``walk``)."""
    lesson = nbformat.read(path, as_version=4).cells
    cells = {place: cell for place, cell in enumerate(lesson) if cell.cell_type == "code"}
    checks = {place: re.search(r'lab\.check\("([\d.]+)"', cell.source) for place, cell in cells.items()}
    checks = {place: found[1] for place, found in checks.items() if found}

    def cell(walk: str, place: int, **metadata):
        tags = cells[place].metadata.get("tags", [])
        return new_code_cell(cells[place].source, metadata={"walk": walk, "place": place, "tags": tags} | metadata)

    wrong = {id: answers[0].source for id, answers in answers_of(path.stem).BANK.wrong_answers.items()}
    lab = Lab(path.stem)
    yield new_code_cell(SMALL_PICTURES)
    yield new_code_cell(GRADED.format(1))
    for place in cells:
        if place in checks:
            yield cell("stopped", place, tags=["raises-exception"])
            yield new_code_cell(GRADED.format(0))
            yield cell("untouched", place)
            yield new_code_cell(wrong[checks[place]])
            yield cell("wrong", place)
            yield new_code_cell(lab.answer(checks[place]))
            yield new_code_cell(GRADED.format(1))
        yield cell("down", place)
    for place in reversed(cells):
        if place + 1 not in checks:  # a stub: its answer stays
            yield cell("back", place)


def walks(path: Path, folder: Path) -> dict[str, dict[int, nbformat.NotebookNode]]:
    """Run the script: {walk: {place: the cell that was run}}."""
    (folder / "sitecustomize.py").write_text(NO_NETWORK, encoding="utf-8")
    lookup = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    quiet = {"COURSE_PROFILE": "smoke", "COURSE_PROGRESS": str(folder / "progress.json"), "OMP_NUM_THREADS": "1"}
    ran = notebooks.execute(new_notebook(cells=list(script(path))), PYTHONPATH=lookup, **quiet)
    found: dict[str, dict] = {}
    for cell in ran.cells:
        if "walk" in cell.metadata:
            found.setdefault(cell.metadata.walk, {})[cell.metadata.place] = cell
    return found


def panels(cell) -> list[str]:
    return [output.data["text/plain"] for output in cell.outputs if "text/html" in output.get("data", {})]


def shown(cell) -> str:
    """What the cell prints and displays, with numbers of which only what a second run must repeat is left."""
    if "nbval-ignore-output" in cell.metadata.tags:
        return ""
    data = [output.get("data", {}) for output in cell.outputs]
    texts = [each.get("text/html", each.get("text/plain", "")) for each in data]
    texts += [output.get("text", "") for output in cell.outputs]
    return re.sub(r"\d[\d.]*e-(0[6-9]|[1-9]\d)\b", "0", "".join(texts))


def clean(cell) -> bool:
    return not any(o.get("name") == "stderr" or "Warning" in str(o.get("text", "")) for o in cell.outputs)


@pytest.mark.parametrize("path", notebooks.lessons(), ids=lambda path: path.stem)
def test_every_state(path, tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    walked = walks(path, tmp_path)
    exercises, wrong = Lab(path.stem).exercises, answers_of(path.stem).BANK.wrong_answers
    checks = list(walked["untouched"])
    assert len(checks) == len(exercises)
    for id, place in zip(exercises, checks, strict=True):
        assert [output.ename for output in walked["stopped"][place].outputs if "ename" in output] == ["CheckFailed"]
        assert panels(walked["untouched"][place])[0].startswith(f"○ {id}")
        assert panels(walked["wrong"][place])[0].startswith(f"✗ {id}")
        assert wrong[id][0].says in panels(walked["wrong"][place])[0]
        assert panels(walked["down"][place])[0].startswith(f"✓ {id}")
    assert all(clean(cell) for walk in ("untouched", "wrong", "down", "back") for cell in walked[walk].values())
    assert {place: shown(cell) for place, cell in walked["back"].items()} == {
        place: shown(walked["down"][place]) for place in walked["back"]
    }
