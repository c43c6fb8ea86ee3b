"""The same answer in every run; other cases only when they are asked for."""

import os
import random
import subprocess
from types import SimpleNamespace

import fuzz
import hypothesis
import numpy as np
import pytest
import torch


@pytest.fixture(scope="module")
def shared() -> float:
    return torch.rand(()).item()


@pytest.mark.parametrize("turn", ["first", "second"])
def test_what_a_test_draws_does_not_depend_on_those_before_it(turn, shared):
    drawn = random.random(), np.random.rand(), torch.rand(()).item()
    seed = int(os.environ["COURSE_TEST_SEED"])
    random.seed(seed), np.random.seed(seed), torch.manual_seed(seed)
    assert drawn == (random.random(), np.random.rand(), torch.rand(()).item())
    assert shared == drawn[2]  # a shared fixture starts from the same place


@pytest.mark.skipif(os.environ["COURSE_TEST_SEED"] != "0", reason="these are the new seeds that were asked for")
def test_hypothesis_draws_the_same_in_every_run():
    assert hypothesis.settings().derandomize
    assert hypothesis.settings().database is None


def test_fuzz_stops_at_a_failure_and_says_its_seed(monkeypatch, capsys):
    codes, seen = iter([0, 1, 0]), []

    def run(command, env):
        seen.append((command, env["COURSE_TEST_SEED"]))
        return SimpleNamespace(returncode=next(codes))

    monkeypatch.setattr(subprocess, "run", run)
    assert fuzz.main(["--rounds", "3", "-x"]) == 1
    (_, first), (command, second) = seen
    assert first != second
    assert {f"--hypothesis-seed={second}", "-x"} < set(command)
    said = capsys.readouterr().out
    assert f"round 2 of 3: seed {second}" in said
    assert said.endswith(f"--seed {second}\n")


def test_fuzz_takes_the_files_that_draw(tmp_path, monkeypatch):
    assert fuzz.that_draw()
    monkeypatch.setattr(fuzz, "TESTS", tmp_path)
    (tmp_path / "room").mkdir()
    lines = {"test_a": "from comparing import seeds", "room/test_b": "import hypothesis", "test_c": "import torch"}
    for name, line in lines.items():
        (tmp_path / f"{name}.py").write_text(f'"""."""\n{line}\n', encoding="utf-8")
    assert fuzz.that_draw() == [str(tmp_path / name) for name in ("room/test_b.py", "test_a.py")]
