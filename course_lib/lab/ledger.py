"""The ledger of findings, docs/claims.md: what each one came to on five seeds."""

import re
from pathlib import Path

FILE = Path(__file__).parents[2] / "docs" / "claims.md"


def entries(file: Path = FILE) -> dict[str, dict[str, list[str]]]:
    """{lesson: {claim: its cells: the bound, the source, the value on each seed}}; nothing where there is no file."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        if line.startswith("## "):
            found[lesson := line[3:].strip()] = {}
        elif line.startswith("| ") and not line.startswith("| claim |"):
            claim, *cells = line.strip("| ").split(" | ")
            found[lesson][claim] = cells
    return found


def ranges(lesson: str, file: Path = FILE) -> dict[str, str]:
    """{claim: its smallest and largest value on the ledger's seeds}, as ``0.75 … 0.78``."""
    found = {}
    for claim, (_bound, _source, *values) in entries(file).get(lesson, {}).items():
        lowest, highest = min(values, key=float), max(values, key=float)
        found[claim] = lowest if lowest == highest else f"{lowest} … {highest}"
    return found


def put(lesson: str, seeds: list[int], rows: dict[str, list[str]], file: Path = FILE) -> None:
    """Put the lesson's table, as `entries` gives it, in the place of the one that is there; the others stay."""
    head = ["claim", "expected", "source", *(f"seed {seed}" for seed in seeds)]
    lines = [f"| {' | '.join(cells)} |" for cells in (head, *([claim, *cells] for claim, cells in rows.items()))]
    table = "\n".join([lines[0], f"|{'---|' * len(head)}", *lines[1:]])
    before, *sections = re.split(r"^(?=## )", file.read_text(encoding="utf-8"), flags=re.M)
    names = {section.split("\n", 1)[0][3:].strip(): section for section in sections}
    names[lesson] = f"## {lesson}\n\n{table}\n\n"
    text = "".join([before, *(names[name] for name in sorted(names))]).rstrip() + "\n"
    temporary = file.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(file)
