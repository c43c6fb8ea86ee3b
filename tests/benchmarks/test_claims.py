"""benchmarks/claims.py on a lesson of a few cells."""

import claims
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from course_lib.lab import ledger, run

CELL = """
from course_lib.lab import Lab

lab = Lab("01_rnn_limits")
lab.claim("Seeds count on", lab.seed, below={most}, source="S1")
lab.claim("It is the same", 3.0, above=1, source="ours")
lab.summary()
"""


@pytest.mark.parametrize(("most", "failed"), [(9, 0), (2, 1)])
def test_each_seed_gets_its_column_and_only_what_holds_is_stored(tmp_path, monkeypatch, capsys, most, failed):
    path, file = tmp_path / "01_rnn_limits.ipynb", tmp_path / "claims.md"
    nbformat.write(new_notebook(cells=[new_code_cell(CELL.format(most=most))]), path)
    file.write_text("# Findings\n", encoding="utf-8")
    monkeypatch.setattr(run, "lessons", lambda: [path])
    monkeypatch.setattr(ledger.put, "__defaults__", (file,))
    assert failed == claims.main(["01", "--seeds", "0", "1", "2", "--threads", "1", "--store"])
    said = capsys.readouterr().out
    assert "| It is the same | above 1 | ours | 3 | 3 | 3 |" in said
    assert ("1 of 3 runs failed" in said) == bool(failed)
    stored = ledger.entries(file).get("01_rnn_limits")
    held = {"Seeds count on": ["below 9", "S1", "0", "1", "2"], "It is the same": ["above 1", "ours", "3", "3", "3"]}
    assert stored == (None if failed else held)
