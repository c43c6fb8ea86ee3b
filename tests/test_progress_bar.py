"""A bar that leaves nothing behind."""

import re
import sys
from pathlib import Path

import nbclient
import nbformat
from small_run import Net, batches

from course_lib.progress_bar import progress_bar
from course_lib.training import (
    fit,
)

ROOT = Path(__file__).parents[1]


def test_no_text_where_there_is_no_terminal(capfd):
    fit(Net(), batches, steps=3, lr=1e-2)
    assert capfd.readouterr() == ("", "")


def test_a_bar_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress_bar(10) as bar:
        bar.set_postfix_str("loss 1.234, 5 tokens/s", refresh=False)
        bar.update(10)
        bar.refresh()
    assert "10/10" in (shown := capsys.readouterr().err)
    assert "loss 1.234, 5 tokens/s" in shown


def test_a_title_and_bytes(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress_bar(320_000, title="a wheel", unit="B") as bar:
        bar.update(160_000)
        bar.refresh()
    assert re.search(r"a wheel +50% .* 160k/320kB \[", capsys.readouterr().err)


CELL = """
from course_lib.progress_bar import progress_bar

print("before")
with progress_bar(5) as bar:
    for _ in range(5):
        bar.set_postfix_str("loss 1.234")
        bar.update()
print("after")
"""


def test_in_a_notebook_the_bar_is_seen_and_nothing_is_left():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    seen = []

    class Client(nbclient.NotebookClient):
        def process_message(self, message, cell, index):
            seen.append(str(message["content"].get("data", {}).get("text/html")))
            return super().process_message(message, cell, index)

    Client(notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    before, display, after = notebook.cells[0].outputs
    assert (before.text, display.data, after.text) == ("before\n", {}, "after\n")
    assert any('<progress value="5" max="5"></progress>' in html and "loss 1.234" in html for html in seen)
    assert any("0/5 [00:00&lt;?" in html for html in seen)  # a bare "<?" would hide the rest of the text
