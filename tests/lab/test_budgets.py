"""Budgets by name: each profile has its value, and falls back on the CPU's where it has none; the lab shows them."""

import pytest

from course_lib import runtime
from course_lib.lab import Lab
from course_lib.lab import lab as lab_module
from course_lib.lab.budgets import Budget, budgets_of

BUDGETS = {
    "steps": Budget("steps of training", cpu=400, gpu=4000, smoke=2),
    "lengths": Budget("lengths that are tried", cpu=(8, 16)),
    "repeats": Budget("more draws", cpu=3, gpu=0),
}
LESSON = "07_sequence_to_sequence"


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """What `Lab` displays, for a lesson with these budgets."""
    panels = []
    monkeypatch.setenv("COURSE_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setattr(lab_module, "display", panels.append)
    monkeypatch.setattr("course_lib.lessons.sequence_to_sequence.BUDGETS", BUDGETS, raising=False)
    return panels


def test_each_profile_has_its_value():
    assert {p: BUDGETS["steps"].for_profile(p) for p in runtime.PROFILES} == {"cpu": 400, "gpu": 4000, "smoke": 2}
    assert BUDGETS["lengths"].for_profile("smoke") == BUDGETS["lengths"].for_profile("gpu") == (8, 16)
    assert BUDGETS["repeats"].for_profile("gpu") == 0  # a value of its own, though it counts as false


def test_what_is_missing_is_said():
    with pytest.raises(ValueError, match=r"no profile 'tpu'; expected one of .*smoke"):
        BUDGETS["steps"].for_profile("tpu")
    with pytest.raises(ValueError, match="'steps' has no value for a CPU"):
        Budget("steps", cpu=None, gpu=3)


@pytest.mark.parametrize(("profile", "steps", "place"), [("cpu", 400, "on a CPU"), ("smoke", 2, "in the tests")])
def test_the_panel_shows_what_the_lesson_takes(shown, monkeypatch, profile, steps, place):
    monkeypatch.setenv("COURSE_PROFILE", profile)
    lab = Lab(LESSON)
    assert (lab.budget("steps"), lab.budget("lengths")) == (steps, (8, 16))
    assert repr(shown[0]).splitlines()[1:] == [
        f"  This lesson {place}:",
        f"  `steps` {steps}: steps of training",
        "  `lengths` (8, 16): lengths that are tried",
        "  `repeats` 3: more draws",
    ]
    assert f"<div><code>steps</code> {steps}: steps of training</div>" in shown[0]._repr_html_()


def test_a_name_that_is_not_there(shown):
    with pytest.raises(KeyError, match="has no budget 'stepps'; it has steps, lengths, repeats"):
        Lab(LESSON).budget("stepps")


def test_a_lesson_without_budgets_shows_none(shown, monkeypatch):
    monkeypatch.setattr("course_lib.lessons.sequence_to_sequence.BUDGETS", {})
    lab = Lab(LESSON)
    assert "This lesson" not in repr(shown[0])
    with pytest.raises(KeyError, match=f"Lesson {LESSON} has no budget 'steps'; it has none"):
        lab.budget("steps")
    assert budgets_of("no_such_lesson") == {}
