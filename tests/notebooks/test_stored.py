"""nbval (`make test`) holds a lesson's stored outputs to what the library says today, as the root's conftest asks."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook, new_output

import course_lib.lab.lab

ROOT = Path(__file__).parents[2]
CELLS = (  # the last shows something that varies, and is tagged so
    'from course_lib.lab import Lab\n\nlab = Lab("01_rnn_limits")',
    'lab.predict("share", None)\nlab.reveal("share", 0.123)',
    'lab.claim("It falls", 0.5, below=1, source="S1")\nlab.same("nn.RNN", [1.0], [1.0])\nlab.summary()',
    'print("in 3 seconds")\nlab.reveal("share", 0.123)',
)


def store(path: Path, monkeypatch, change: Callable[[str], str]) -> None:
    """Write a lesson of these cells with its outputs, the HTML of each changed."""
    names, cells = {}, []
    for number, source in enumerate(CELLS, start=1):
        shown = []
        monkeypatch.setattr(course_lib.lab.lab, "display", shown.append)
        exec(source, names)
        data = [{"text/plain": repr(panel), "text/html": change(panel._repr_html_())} for panel in shown]
        outputs = [new_output("display_data", each) for each in data]
        cells.append(new_code_cell(source, execution_count=number, outputs=outputs))
    cells[-1].metadata.tags = ["nbval-ignore-output"]
    nbformat.write(new_notebook(cells=cells), path)


def test_words_are_compared_in_text_and_html_and_what_is_measured_is_not(tmp_path, monkeypatch):
    progress = tmp_path / "progress.json"
    monkeypatch.setenv("COURSE_PROGRESS", str(progress))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")  # of what nbval says; Windows would take its code page
    elsewhere, older = tmp_path / "elsewhere.ipynb", tmp_path / "older.ipynb"
    store(elsewhere, monkeypatch, lambda html: re.sub(r"torch [\d.]+|0\.123|0\.5|0e\+00", "1", html))
    store(older, monkeypatch, lambda html: html.replace("no prediction", "you said <b>None</b>"))
    progress.unlink()
    nbval = [sys.executable, "-m", "pytest", "-p", "conftest", "--nbval", "--nbval-current-env", "-v", "--color=no"]
    ran = subprocess.run([*nbval, elsewhere.name, older.name], cwd=tmp_path, capture_output=True, encoding="utf-8")
    words = re.findall(r"(\w+)::ipynb::Cell \d (PASSED|FAILED)", ran.stdout)
    older_words = ("PASSED", "FAILED", "PASSED", "FAILED")
    assert words == [("elsewhere", "PASSED")] * 4 + [("older", word) for word in older_words]
    assert not progress.exists(), "a lesson that is tested is not the progress of whoever tests it"
