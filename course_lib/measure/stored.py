"""Tables of experiments that take too long for a lesson: a script of ``benchmarks/`` fills one, a lesson reads it."""

import csv
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

TABLES = Path(__file__).parents[2] / "benchmarks"
FIELDS = ["experiment", "name", "steps", "seed", "group", "value"]
Rows = Iterator[tuple[str, int, int, str, float]]  # name, steps, seed, group, value


def stored_runs(table: str, experiment: str) -> dict[tuple[str, int, str], list[float]]:
    """What an experiment of ``benchmarks/<table>.py`` has found: (name, steps, group) → a value for each seed."""
    found: dict[tuple[str, int, str], list[float]] = {}
    for row in _read(table):
        if row["experiment"] == experiment:
            key = row["name"], int(row["steps"]), row["group"]
            found.setdefault(key, []).append(float(row["value"]))
    return found


def run_and_store(table: str, experiments: dict[str, Callable[[], Rows]]) -> None:
    """Run the experiments that the command line names, or all; each replaces its old rows in ``<table>.csv``."""
    wanted = sys.argv[1:] or list(experiments)
    if unknown := [name for name in wanted if name not in experiments]:
        raise SystemExit(f"There is no experiment {', '.join(unknown)}; there are {', '.join(experiments)}.")
    for experiment in wanted:
        rows = []
        for name, steps, seed, group, value in experiments[experiment]():
            rows.append(dict(zip(FIELDS, (experiment, name, steps, seed, group, f"{value:.4f}"), strict=True)))
            print(*rows[-1].values(), sep=" · ", flush=True)
            _write(table, experiment, rows)  # after each, so that a run that is cut leaves what it has found


def _read(table: str) -> list[dict[str, str]]:
    with (TABLES / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write(table: str, experiment: str, rows: list[dict[str, str]]) -> None:
    path = TABLES / f"{table}.csv"
    kept = [row for row in _read(table) if row["experiment"] != experiment] if path.exists() else []
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept + rows)
