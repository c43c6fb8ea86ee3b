"""Banks of answers, as students write them: ``answers_<lesson>.py`` holds one for each lesson.

An answer is a function (or class) named as in the notebook's stub. It uses only what the notebook has imported, so its
source can also stand in the stub's cell. Wrong answers may also be written as edits, of a right answer that stands here
or, where an exercise has checks of its own in the place of slips, of the library's piece.
"""

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType

from course_lib.lab import run as notebooks
from course_lib.lab.grading import Exercise
from course_lib.lab.ladder import edits


@dataclass(frozen=True)
class Answer:
    """One student's answer. ``says`` is the part of the message that it must get; '' for a right one."""

    exercise: str
    name: str
    function: Callable
    source: str
    says: str = ""


@dataclass
class Bank:
    """The answers of a lesson, by exercise."""

    wrong_answers: dict[str, list[Answer]] = field(default_factory=dict)
    right_answers: dict[str, list[Answer]] = field(default_factory=dict)
    edited_answers: dict[str, str] = field(default_factory=dict)

    def wrong(self, exercise: str, name: str, *, says: str) -> Callable:
        """Register a wrong answer and what must be said about it."""
        return lambda function: _register(self.wrong_answers, exercise, name, function, says)

    def right(self, exercise: str, name: str) -> Callable:
        """Register a right answer."""
        return lambda function: _register(self.right_answers, exercise, name, function, "")

    def edited(self, exercise: str, table: str) -> None:
        """Register wrong answers as a table of `edits` of the library's piece: ``old → new · what must be said``."""
        self.edited_answers[exercise] = table

    def spoilt(self, exercise: str, right: str, table: str) -> None:
        """Register wrong answers as a table of `edits` of the right answer of that name."""
        [answer] = [answer for answer in self.right_answers[exercise] if answer.name == right]
        for edit, says in edits(answer.function, table):
            names = dict(vars(inspect.getmodule(answer.function)))
            exec(source := edit.changed(answer.source), names)
            name = " ; ".join([right, *(f"{old} → {new}" for old, new in edit.changes)])
            spoilt = Answer(exercise, name, names[answer.function.__name__], source, says)
            self.wrong_answers.setdefault(exercise, []).append(spoilt)


def _register(bank: dict, exercise: str, name: str, function: Callable, says: str) -> Callable:
    text = textwrap.dedent(_text(function))
    first = ast.parse(text).body[0].lineno  # of `def`, below the decorators
    source = "".join(text.splitlines(keepends=True)[first - 1 :])
    bank.setdefault(exercise, []).append(Answer(exercise, name, function, source, says))
    return function


def _text(answer: Callable) -> str:
    """Its source. Of several classes of one name in a file, `inspect` finds only one: look where its methods are."""
    if not inspect.isclass(answer):
        return inspect.getsource(answer)
    lines, _ = inspect.findsource(inspect.getmodule(answer))
    method = next(value for value in vars(answer).values() if inspect.isfunction(value)).__code__.co_firstlineno
    classes = [node for node in ast.walk(ast.parse("".join(lines))) if isinstance(node, ast.ClassDef)]
    [found] = [node for node in classes if node.lineno < method <= node.end_lineno]
    return "".join(lines[found.lineno - 1 : found.end_lineno])


def answers_of(lesson: str) -> ModuleType:
    """``answers_rnn_limits`` for ``01_rnn_limits``: its ``BANK``, and in ``EQUIVALENT`` mutants that are right."""
    return importlib.import_module(f"answers_{lesson.split('_', 1)[1]}")


def exercises(lesson: str) -> dict[str, Exercise]:
    """The exercises of a lesson, by number."""
    module = importlib.import_module(f"course_lib.exercises.{lesson.split('_', 1)[1]}")
    return {exercise.id: exercise for exercise in module.EXERCISES}


LESSONS = [path.stem for path in notebooks.lessons()]
