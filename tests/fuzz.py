"""Rounds of the tests that draw their cases at random, each round with a new seed: ``make fuzz ROUNDS=30``.

`make test` takes the same cases in every run. Here they are other ones; the first failure ends it, and what to type to
see that failure again is the last line. A case that failed is kept: its seed goes into the test's ``seeds(…)``.
"""

import argparse
import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def that_draw() -> list[str]:
    """The test files whose cases follow from the seed."""
    texts = {str(path): path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("test_*.py"))}
    return [path for path, text in texts.items() if re.search(r"^(from|import) (comparing|hypothesis)\b", text, re.M)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--seed", type=int, help="of the first round, to see it again; the next round has the next")
    chosen, options = parser.parse_known_args(arguments)
    for number in range(chosen.rounds):
        seed = secrets.randbelow(2**31) if chosen.seed is None else chosen.seed + number
        print(f"round {number + 1} of {chosen.rounds}: seed {seed}", flush=True)
        command = [sys.executable, "-m", "pytest", "-p", "no:nbval", "-q", f"--hypothesis-seed={seed}", *options]
        environment = os.environ | {"COURSE_TEST_SEED": str(seed), "PYTHONHASHSEED": str(seed)}
        code = subprocess.run([*command, *that_draw()], env=environment).returncode
        if code:
            print(f"To see it again: python tests/fuzz.py --rounds 1 --seed {seed}")
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
