"""Do the findings of the lessons hold on other seeds, and with one thread as with two?

    python benchmarks/claims.py            # all lessons, seeds 0 … 4 with one thread, seed 0 with two
    python benchmarks/claims.py 01 --seeds 0 1 --threads 2
    python benchmarks/claims.py 01 --store # and write the lesson's table into docs/claims.md

A finding that holds on one seed only is not a finding. Each run takes as long as the lesson. Prints one table a lesson:
the bound, the source, and what was measured in each run; ends with 1 if a claim failed.
"""

import argparse
import json
import re
import tempfile
from pathlib import Path

import nbformat
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode

from course_lib.lab import ledger
from course_lib.lab import run as notebooks


def measured(path: Path, seed: int, threads: int) -> tuple[NotebookNode, dict[str, str], bool]:
    """The lesson as it ran under one seed, the values of its claims, and whether all held."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "progress.json"
        environment = {"COURSE_SEED": str(seed), "OMP_NUM_THREADS": str(threads), "COURSE_PROGRESS": str(record)}
        try:
            notebooks.execute(notebook, **environment)
            held = True
        except (CellExecutionError, DeadKernelError) as error:
            held = False
            print(f"seed {seed}, {threads} threads: {str(getattr(error, 'evalue', error))[:500]}", flush=True)
        known = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
        return notebook, known.get(path.stem, {}).get("claims", {}), held


def stated(notebook: NotebookNode) -> dict[str, list[str]]:
    """{claim: [bound, source]}, as the outputs of a lesson say it, in the lesson's order."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    texts = (output.get("data", {}).get("text/plain", "") for output in outputs)
    found = (re.match(r". Claim: (.+)\n  expected (.+) · (.+)", text) for text in texts)
    return {claim[1]: [claim[2], claim[3]] for claim in found if claim}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lessons", nargs="*", metavar="LESSON")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="the first for all seeds")
    parser.add_argument("--store", action="store_true", help="write the tables of the first into docs/claims.md")
    chosen = parser.parse_args(arguments)
    runs = [(seed, chosen.threads[0]) for seed in chosen.seeds]
    runs += [(chosen.seeds[0], threads) for threads in chosen.threads[1:]]
    lessons = [notebooks.lesson(name) for name in chosen.lessons] or notebooks.lessons()
    failed = 0
    for path in lessons:
        claims, columns, all_held = {}, [], True
        for seed, threads in runs:
            notebook, values, held = measured(path, seed, threads)
            claims |= stated(notebook)
            columns.append(values)
            failed += not held
            all_held &= held
        rows = {claim: [*said, *(values.get(claim, "–") for values in columns)] for claim, said in claims.items()}
        head = ["claim", "expected", "source", *(f"seed {seed}, {threads} threads" for seed, threads in runs)]
        print(f"\n## {path.stem}\n")
        for cells in (head, ["---"] * len(head), *([claim, *cells] for claim, cells in rows.items())):
            print(f"| {' | '.join(cells)} |", flush=True)
        if chosen.store and all_held:
            of_seeds = 2 + len(chosen.seeds)  # what other numbers of threads give is not stored
            ledger.put(path.stem, chosen.seeds, {claim: cells[:of_seeds] for claim, cells in rows.items()})
    print(f"\n{failed} of {len(runs) * len(lessons)} runs failed." if failed else "\nEvery claim held in every run.")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
