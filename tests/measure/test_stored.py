"""Tables of the dear experiments."""

import sys

import pytest

from course_lib.measure import stored


def test_an_experiment_run_again_replaces_its_own_rows_only(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "TABLES", tmp_path)
    monkeypatch.setattr(sys, "argv", ["script"])
    old = {"a": lambda: iter([("LSTM", 10, 0, "x", 0.5)]), "b": lambda: iter([("LSTM", 10, 0, "x", 0.25)])}
    stored.run_and_store("table", old)
    monkeypatch.setattr(sys, "argv", ["script", "a"])
    stored.run_and_store("table", {**old, "a": lambda: iter([("GRU", 10, s, "x", 0.1 * s) for s in (1, 2)])})
    assert stored.stored_runs("table", "a") == {("GRU", 10, "x"): [0.1, 0.2]}
    assert stored.stored_runs("table", "b") == {("LSTM", 10, "x"): [0.25]}


def test_an_unknown_experiment_is_named(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["script", "c"])
    with pytest.raises(SystemExit, match="no experiment c; there are a"):
        stored.run_and_store("table", {"a": lambda: iter([])})
