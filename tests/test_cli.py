"""The commands: fetch and doctor."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from loopback import Index

from course_lib.cli import main
from course_lib.data import sources
from course_lib.data.catalogue import everything

ROOT = Path(__file__).parents[1]


def test_fetch(index: Index, alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", "tiny", "agreement"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["✓ tiny", "✓ agreement"]
    assert main(["fetch", "tiny"]) == 0
    assert index.downloads == 1


def test_fetch_goes_on_after_a_failure(alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", "tiny", "agreement"]) == 1
    said = capsys.readouterr()
    assert "✗ tiny is not on this machine and could not be fetched" in said.err
    assert "✓ agreement" in said.out


def test_fetch_is_quick_when_all_is_there() -> None:
    code = (
        "import sys; from course_lib.cli import main; assert main(['fetch', 'agreement']) == 0; "
        "heavy = {'torch', 'datasets', 'transformers', 'pyarrow', 'numpy'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=30)


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("doctor", "+ agreement: "),
        ("fetch agreement", "+ agreement: "),
        ("fetch --list", "+ agreement: "),
        ("run 99", "x "),
    ],
)
def test_a_file_that_lacks_the_marks_gets_plain_ones(command: str, line: str) -> None:
    """Windows writes to a file or a pipe in a code page of 256 letters."""
    environment = os.environ | {"PYTHONIOENCODING": "cp1252", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "course_lib", *command.split()],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        timeout=60,
    )
    lines = (done.stdout + done.stderr).decode("cp1252").splitlines()
    assert any(text.startswith(line) for text in lines), lines
    assert "Traceback (most recent call last):" not in lines


def test_list(alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fetch", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(everything())
    assert lines[0].startswith("✓ agreement")
    [line] = [line for line in lines if line.startswith("○ tiny_shakespeare")]
    assert line.endswith("run python -m course_lib fetch tiny_shakespeare")


def test_unknown_names(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["fetch", "tiny_shakespear"])
    assert (
        "there is no tiny_shakespear; there are agreement, coreference, aligned, stories, tiny_shakespeare"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("wanted", "line", "code"),
    [
        ("torch>=2.0", "✓ torch", 0),
        ("torch>=99", "run pip install 'torch>=99'", 1),
        ("no-such-package>=1", "✗ no-such-package", 1),
        ("no-such-package>=1 ; extra == 'test'", "✓ Python", 0),
    ],
)
def test_doctor(
    alone: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, wanted: str, line: str, code: int
) -> None:
    monkeypatch.setattr(metadata, "requires", lambda name: [wanted])
    assert main(["doctor"]) == code
    said = capsys.readouterr().out
    assert line in said
    assert "profile cpu" in said
    assert "GB free" in said
    assert "○ tiny: three lines" in said, "a corpus that is not fetched yet is nothing broken"


def test_doctor_finds_what_is_broken(
    alone: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "requires", lambda name: [])
    monkeypatch.setattr(sources, "EMBEDDED", tmp_path)
    monkeypatch.setenv("COURSE_DATA_DIR", str(tmp_path / "nowhere"))
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "✗ agreement:" in said
    assert "✗ COURSE_DATA_DIR" in said
