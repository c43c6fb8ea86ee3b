"""``colab.install()`` installs what the course needs and Colab lacks, and nothing else.

What Colab has, it keeps, above all its torch and numpy, which are loaded before the first cell runs. So the missing
packages are installed without their dependencies; each needs only what is there already.
"""

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"


def missing() -> list[str]:
    """The requirements of ``pyproject.toml`` of which no version at all is installed."""
    lines = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    return [line for line in lines if not _installed(Requirement(line).name)]


def install() -> None:
    """Install the missing packages, quietly; one clear sentence if that fails."""
    wanted = missing()
    if not wanted:
        return
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", *wanted]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise RuntimeError(
            f"pip could not install {', '.join(wanted)}: {reason}. Run this cell again, or see the README."
        )


def _installed(name: str) -> bool:
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False
