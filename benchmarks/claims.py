"""Do the claims of the lessons hold on other seeds, and with one thread as with two?

    python benchmarks/claims.py            # all lessons, seeds 0 … 4 with two threads, seed 0 with one
    python benchmarks/claims.py 01 --seeds 0 1 --threads 1

A claim that holds on one seed only is not a claim. Each run takes as long as the lesson. Prints one table a lesson: the
bound, and what was measured in each run; ends with 1 if a claim failed.
"""

import argparse
import json
import tempfile
from pathlib import Path

import nbformat
from nbclient.exceptions import CellExecutionError, DeadKernelError

from course_lib.lab import run as notebooks


def measured(path: Path, seed: int, threads: int) -> tuple[dict[str, str], bool]:
    """The values of the lesson's claims under one seed, and whether all held."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "progress.json"
        environment = {"COURSE_SEED": str(seed), "OMP_NUM_THREADS": str(threads), "COURSE_PROGRESS": str(record)}
        try:
            notebooks.execute(nbformat.read(path, as_version=4), **environment)
            held = True
        except (CellExecutionError, DeadKernelError) as error:
            held = False
            print(f"seed {seed}, {threads} threads: {str(getattr(error, 'evalue', error))[:500]}", flush=True)
        known = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
        return known.get(path.stem, {}).get("claims", {}), held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lessons", nargs="*", metavar="LESSON")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--threads", nargs="+", type=int, default=[2, 1], help="the first for all seeds")
    chosen = parser.parse_args()
    runs = [(seed, chosen.threads[0]) for seed in chosen.seeds]
    runs += [(chosen.seeds[0], threads) for threads in chosen.threads[1:]]
    failed = 0
    for path in [notebooks.lesson(name) for name in chosen.lessons] or notebooks.lessons():
        columns = []
        for seed, threads in runs:
            values, held = measured(path, seed, threads)
            columns.append(values)
            failed += not held
        print(f"\n## {path.stem}\n")
        print(f"| claim | {' | '.join(f'seed {seed}, {threads} threads' for seed, threads in runs)} |")
        print(f"|---|{'---|' * len(runs)}")
        for claim in dict.fromkeys(claim for values in columns for claim in values):
            print(f"| {claim} | {' | '.join(values.get(claim, '–') for values in columns)} |")
    print(f"\n{failed} of {len(runs)} runs failed." if failed else "\nEvery claim held in every run.")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
