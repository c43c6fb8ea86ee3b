"""Every slip that an exercise knows is a mistake that can be made: it runs, and its results are not the reference's.

A slip proves itself: graded as an answer, it gets its own sentence.
"""

import importlib
import pkgutil

import pytest

from course_lib import exercises
from course_lib.lab import ladder
from course_lib.lab.grading import grade

MODULES = [name for _, name, _ in pkgutil.iter_modules(exercises.__path__)]


def ladders(module: str, monkeypatch) -> list[ladder.Ladder]:
    """Every ladder that the module makes, also those that an exercise wraps."""
    found, original = [], ladder.Ladder.__init__

    def noted(self, *arguments, **options):
        original(self, *arguments, **options)
        found.append(self)

    loaded = importlib.import_module(f"course_lib.exercises.{module}")
    monkeypatch.setattr(ladder.Ladder, "__init__", noted)
    importlib.reload(loaded)
    monkeypatch.undo()
    importlib.reload(loaded)
    return found


@pytest.mark.parametrize("module", MODULES)
def test_every_slip_runs_and_differs_from_the_reference(module, monkeypatch):
    mute = []
    for made in ladders(module, monkeypatch):
        right = made.results(made.reference)
        for slip, sentence in made.slips:
            try:
                wrong = made.results(slip)
            except Exception as error:
                mute.append(f"{made.reference}: {sentence!r} stops with {type(error).__name__}: {error}")
                continue
            if made.equal(wrong, right):
                mute.append(f"{made.reference}: {sentence!r} equals the reference")
    assert not mute, "\n".join(mute)


@pytest.mark.parametrize("module", MODULES)
def test_every_slip_gets_its_own_sentence(module):
    loaded = importlib.import_module(f"course_lib.exercises.{module}")
    unheard = []
    for exercise in loaded.EXERCISES:
        for slip, sentence in getattr(exercise.checks, "slips", ()):
            if isinstance(exercise.checks, ladder.ModuleLadder) and not isinstance(slip, ladder.Edit):
                continue  # a function of the class's arguments, the inputs and the weights: no answer
            verdict = grade(exercise, slip.function if isinstance(slip, ladder.Edit) else slip)
            if verdict.state != "wrong" or sentence not in verdict.reason:
                unheard.append(f"{exercise.id} {sentence!r}: {verdict.state}, {verdict.reason!r}")
    assert not unheard, "\n".join(unheard)
