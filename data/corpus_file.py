"""What the scripts in this folder share: drawing, and writing a corpus with its sum."""

import argparse
import csv
import hashlib
import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def words(text: str) -> list[str]:
    return text.split()


def one_of(draw: random.Random, choices: Sequence) -> Any:
    """Only `random.random` is used, which gives the same numbers in every version of Python."""
    return choices[int(draw.random() * len(choices))]


def write_or_check(name: str, rows: Sequence[dict[str, Any]]) -> int:
    """Write ``rows`` to the CSV file ``name`` and its line in SHA256SUMS; with ``--check``, only compare the bytes."""
    parser = argparse.ArgumentParser(description=f"Make data/{name}.")
    parser.add_argument("--check", action="store_true", help="only compare with what is there")
    check = parser.parse_args().check
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    made = text.getvalue().encode()
    path, sums = FOLDER / name, FOLDER / "SHA256SUMS"
    line = f"{hashlib.sha256(made).hexdigest()}  {name}"
    listed = sums.read_text(encoding="utf-8").splitlines() if sums.exists() else []
    if check:
        same = path.exists() and path.read_bytes() == made and line in listed
        print(f"{name}: {'as made' if same else 'differs from what the script makes, or from SHA256SUMS'}")
        return 0 if same else 1
    path.write_bytes(made)
    others = [other for other in listed if not other.endswith(f"  {name}")]
    lines = sorted([*others, line], key=lambda other: other.split()[-1])
    sums.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    print(f"{name}: {len(made):,} bytes")
    return 0
