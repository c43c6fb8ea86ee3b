"""The embedded corpora: their scripts make them byte for byte, and their sums are listed."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parents[3] / "data"


@pytest.mark.parametrize("script", sorted(DATA.glob("make_*.py")), ids=lambda path: path.name)
def test_scripts_make_the_committed_bytes(script: Path) -> None:
    run = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stdout + run.stderr


def test_sums() -> None:
    listed = dict(reversed(line.split()) for line in (DATA / "SHA256SUMS").read_text(encoding="utf-8").splitlines())
    assert listed == {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in DATA.glob("*.csv")}
