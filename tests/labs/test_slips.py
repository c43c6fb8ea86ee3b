"""Every slip that an exercise knows is a mistake that can be made: it runs, and its results are not the reference's."""

import importlib
import pkgutil

import pytest

from course_lib import checks, exercises

MODULES = [name for _, name, _ in pkgutil.iter_modules(exercises.__path__)]


def recorded(module: str, monkeypatch) -> list[tuple]:
    """Reference, cases, slips and tolerance of each ladder of checks that the module makes."""
    found, original = [], checks.function_checks

    def function_checks(reference, cases, returns, slips=(), *more, **options):
        found.append((reference, cases, slips, options.get("tolerance", 1e-5)))
        return original(reference, cases, returns, slips, *more, **options)

    loaded = importlib.import_module(f"course_lib.exercises.{module}")
    monkeypatch.setattr(checks, "function_checks", function_checks)
    importlib.reload(loaded)
    monkeypatch.undo()
    importlib.reload(loaded)
    return found


def results(function, cases) -> list[tuple]:
    return [checks._tuple(function(*checks._copy(case))) for case in cases]


@pytest.mark.parametrize("module", MODULES)
def test_every_slip_runs_and_differs_from_the_reference(module, monkeypatch):
    mute = []
    for reference, cases, slips, tolerance in recorded(module, monkeypatch):
        right = results(reference, cases)
        for slip, sentence in slips:
            try:
                wrong = results(slip, cases)
            except Exception as error:
                mute.append(f"{reference.__name__}: {sentence!r} stops with {type(error).__name__}: {error}")
                continue
            if all(checks._equal(a, b, tolerance) for a, b in zip(wrong, right, strict=True)):
                mute.append(f"{reference.__name__}: {sentence!r} equals the reference")
    assert not mute, "\n".join(mute)
