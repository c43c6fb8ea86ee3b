"""``python -m course_lib``: ``fetch`` brings the data here, ``doctor`` looks what is missing, ``run`` runs lessons."""

import argparse
import codecs
import os
import shutil
import sys
from collections.abc import Iterator

from course_lib.data import sources
from course_lib.data.catalogue import Entry, everything
from course_lib.data.fetching import FetchError, cache_dir

PACKAGE = "transformers-measured"
PLAIN = {"✓": "+", "○": "o", "✗": "x"}  # for a file or a pipe whose encoding lacks them, as Windows' often does
codecs.register_error(
    "plain", lambda error: ("".join(PLAIN.get(c, "?") for c in error.object[error.start : error.end]), error.end)
)


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0, or 1 where something needed is missing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a notebook's has not, and takes every letter
            stream.reconfigure(errors="plain")
    parser = argparse.ArgumentParser(prog="python -m course_lib", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    fetching = commands.add_parser("fetch", help="fetch corpora and weights into the cache; skips what is there")
    fetching.add_argument("names", nargs="*", metavar="NAME", help="which (default: all but the optional ones)")
    fetching.add_argument("--list", action="store_true", help="only say what there is")
    fetching.add_argument("--quiet", action="store_true", help="say nothing of what is there already")
    commands.add_parser("doctor", help="look at this machine, and say what to do where something is missing")
    running = commands.add_parser("run", help="run lessons from top to bottom and store their outputs")
    running.add_argument("lessons", nargs="*", metavar="LESSON", help="such as 01 (default: all)")
    chosen = parser.parse_args(arguments)
    if chosen.command == "doctor":
        return doctor()
    if chosen.command == "run":
        return run(chosen.lessons)
    if unknown := [name for name in chosen.names if name not in everything()]:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(everything())}")
    entries = [everything()[name] for name in chosen.names] or list(everything().values())
    if chosen.list:
        for entry in entries:
            print(*_state(entry))
        return 0
    return fetch([entry for entry in entries if chosen.names or not entry.optional], chosen.quiet)


def run(names: list[str]) -> int:
    """Run the lessons and store them; stops at the first cell that fails, and leaves that lesson's file as it was."""
    from nbclient.exceptions import CellExecutionError

    from course_lib.lab import run as notebooks

    try:
        for path in [notebooks.lesson(name) for name in names] or notebooks.lessons():
            print(f"✓ {path.stem}: {notebooks.store(path):.0f} s")
    except (CellExecutionError, ValueError) as error:
        print(f"✗ {error}", file=sys.stderr)
        return 1
    return 0


def fetch(entries: list[Entry], quiet: bool = False) -> int:
    """Fetch what is not there yet; goes on after a failure, and returns 1 if there was one."""
    failed = 0
    for entry in entries:
        if sources.present(entry):
            if quiet:
                continue
        else:
            try:
                sources.obtain(entry)
            except FetchError as error:
                failed += 1
                print(f"✗ {error}", file=sys.stderr)
                continue
        print("✓", sources.summary_line(entry))
    return 1 if failed else 0


def doctor() -> int:
    """One line a thing: ✓ fine, ○ missing but only sometimes needed, ✗ broken; each of the latter with what to do."""
    marks = []
    for check in (_python, _packages, _torch, _jupyter, _chromium, _cache):
        for mark, what, detail in check():
            print(f"{mark} {what:<17} {detail}")
            marks.append(mark)
    for entry in everything().values():
        mark, detail = _state(entry)
        print(mark, detail)
        marks.append(mark)
    return 1 if "✗" in marks else 0


Line = tuple[str, str, str]


def _python() -> Iterator[Line]:
    right = sys.version_info >= (3, 11)
    yield (
        "✓" if right else "✗",
        "Python",
        f"{sys.version.split()[0]}{'' if right else ': the course needs 3.11 or newer'}",
    )


def _packages() -> Iterator[Line]:
    from importlib import metadata

    from packaging.requirements import Requirement

    try:
        wanted = [Requirement(line) for line in metadata.requires(PACKAGE) or []]
    except metadata.PackageNotFoundError:
        yield "✗", PACKAGE, "not installed: run pip install -e . in the course's folder"
        return
    for requirement in wanted:
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            yield "✗", requirement.name, f"missing: run pip install '{requirement.name}{requirement.specifier}'"
            continue
        if requirement.specifier.contains(version, prereleases=True):
            yield "✓", requirement.name, version
        else:
            yield "✗", requirement.name, f"{version}: run pip install '{requirement.name}{requirement.specifier}'"


def _torch() -> Iterator[Line]:
    try:
        import torch

        from course_lib import runtime

        detail = f"{runtime.device()}, {torch.get_num_threads()} threads, profile {runtime.profile()}"
        yield "✓", "device", detail
    except (ImportError, OSError, ValueError) as error:  # a torch build for another machine fails with OSError
        yield "✗", "device", f"{error}"


def _jupyter() -> Iterator[Line]:
    from importlib import metadata

    try:
        yield "✓", "JupyterLab", metadata.version("jupyterlab")
    except metadata.PackageNotFoundError:
        yield "○", "JupyterLab", f"missing: run pip install '{PACKAGE}[lab]' (not needed in Colab or an editor)"
    try:
        from jupyter_client.kernelspec import KernelSpecManager

        command = KernelSpecManager().get_kernel_spec("python3").argv[0]
        own = command == "python" or os.path.realpath(command) == os.path.realpath(sys.executable)
        yield "✓" if own else "○", "kernel", "python3" if own else f"python3 is {command}, another Python than this one"
    except (ImportError, KeyError):  # no such kernel is a KeyError
        yield "○", "kernel", "missing: run pip install ipykernel"


def _chromium() -> Iterator[Line]:
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    yield "✓" if path else "○", "Chromium", path or "missing: only the browser tests need it"


def _cache() -> Iterator[Line]:
    for root in sources.roots():
        home = next(folder for folder in (root, *root.parents) if folder.exists())
        free = f"{root}, {shutil.disk_usage(home).free / 1e9:.1f} GB free"
        if root != cache_dir():
            mark = "✓" if root.exists() else "✗"
            yield mark, "COURSE_DATA_DIR", free if root.exists() else f"{root} is not there: correct it, or unset it"
        elif os.access(home, os.W_OK):
            yield "✓", "cache", free
        else:
            yield "✗", "cache", f"{root} cannot be written to: set COURSE_CACHE to a folder that can"


def _state(entry: Entry) -> tuple[str, str]:
    """The mark and the line of a corpus or of weights."""
    if sources.present(entry):
        return "✓", sources.summary_line(entry)
    if file := sources.embedded(entry):
        return "✗", f"{entry.name}: {file} is missing: get the whole repository"
    return "○", f"{sources.summary_line(entry)}: run python -m course_lib fetch {entry.name}"
