"""Budgets by name: how many steps, sentences, draws a lesson takes on a CPU, on a GPU, and in the tests.

A lesson's table stands in ``course_lib/lessons/<lesson>.py``; its notebook asks ``lab.budget("steps")``:

    BUDGETS = {"steps": Budget("steps of training", cpu=400, gpu=4000, smoke=2)}
"""

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

from course_lib import runtime


@dataclass(frozen=True)
class Budget:
    """What is counted, and how much of it each profile takes; ``gpu`` and ``smoke`` are ``cpu``'s unless given."""

    about: str
    cpu: Any
    gpu: Any = None
    smoke: Any = None

    def __post_init__(self) -> None:
        if self.cpu is None:
            raise ValueError(
                f"The budget {self.about!r} has no value for a CPU; the other profiles need one: give cpu=…."
            )

    def for_profile(self, profile: str) -> Any:
        """The value for ``cpu``, ``gpu`` or ``smoke``."""
        if profile not in runtime.PROFILES:
            raise ValueError(f"There is no profile {profile!r}; expected one of {', '.join(runtime.PROFILES)}.")
        value = getattr(self, profile)
        return self.cpu if value is None else value


def budgets_of(lesson: str) -> dict[str, Budget]:
    """The table of the lesson called ``rnn_limits`` or the like: empty where it has none."""
    if importlib.util.find_spec(f"course_lib.lessons.{lesson}") is None:
        return {}
    return getattr(importlib.import_module(f"course_lib.lessons.{lesson}"), "BUDGETS", {})
