"""Every check is proved by answers: wrong ones get the sentence that helps, right ones pass however written."""

import ast
import dataclasses
import importlib
import inspect
import math
import re
import sys

import nbformat
import pytest
import torch
from bank import LESSONS, Answer, answers_of, exercises

from course_lib.lab import run as notebooks
from course_lib.lab.grading import Wrong, grade
from course_lib.lab.ladder import edits

EXERCISES = {id: exercise for lesson in LESSONS for id, exercise in exercises(lesson).items()}
BANKS = {lesson: answers_of(lesson).BANK for lesson in LESSONS}
WRONG = [answer for bank in BANKS.values() for answers in bank.wrong_answers.values() for answer in answers]
RIGHT = [answer for bank in BANKS.values() for answers in bank.right_answers.values() for answer in answers]
EDITED = [
    (id, *row)
    for bank in BANKS.values()
    for id, table in bank.edited_answers.items()
    for row in edits(EXERCISES[id].reference, table)
]
INTERNALS = re.compile(r"course_lib|Traceback|site-packages|lambda|<locals>|<function|0x[0-9a-f]{4}|\bzip\(|\bcases\b")


def name(answer: Answer) -> str:
    return f"{answer.exercise} {answer.name}"


def from_source(answer: Answer):
    """The function, made from its text alone, as a notebook's cell makes it."""
    names = {"math": math, "torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    exec(answer.source, names)
    return names[answer.function.__name__]


def of(answer: Answer):
    exercise = EXERCISES[answer.exercise]
    return dataclasses.replace(exercise, seconds=0.3) if "never ends" in answer.says else exercise


@pytest.mark.parametrize("answer", WRONG, ids=name)
def test_wrong_answer_is_told_why(answer):
    verdict = grade(of(answer), answer.function)
    assert verdict.state == "wrong"
    assert answer.says in verdict.reason
    assert not INTERNALS.search(verdict.reason)
    assert verdict.reason.rstrip()[-1] in ".?)"


@pytest.mark.parametrize(("id", "edit", "says"), EDITED, ids=[f"{id} {says}" for id, _, says in EDITED])
def test_edited_answer_is_told_why(id, edit, says):
    assert says in grade(EXERCISES[id], edit.function).reason


@pytest.mark.parametrize("answer", RIGHT, ids=name)
def test_right_answer_passes(answer):
    verdict = grade(EXERCISES[answer.exercise], answer.function)
    assert (verdict.state, verdict.reason) == ("passed", "")
    assert verdict.done == verdict.total


@pytest.mark.parametrize("answer", WRONG + RIGHT, ids=name)
def test_source_stands_on_its_own(answer):
    name = EXERCISES[answer.exercise].reference.__name__
    assert answer.source.startswith((f"def {name}(", f"class {name}("))
    assert grade(of(answer), from_source(answer)).state == ("wrong" if answer.says else "passed")


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_exercise_has_its_bank(lesson):
    wrong, right = BANKS[lesson].wrong_answers, BANKS[lesson].right_answers
    assert set(wrong) == set(right) == set(exercises(lesson))
    for id in exercises(lesson):
        assert len(wrong[id]) >= 1
        assert len(right[id]) >= 3
        names = [a.name for a in wrong[id]]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("lesson", LESSONS)
def test_every_sentence_is_reached(lesson, monkeypatch):
    """Whatever an exercise can say, a wrong answer of the bank or a slip brings it to say."""
    made, plain = set(), Wrong.__init__

    def noted(self, *arguments):
        frame = sys._getframe(1)
        made.add((frame.f_code.co_filename, frame.f_lineno))
        plain(self, *arguments)

    monkeypatch.setattr(Wrong, "__init__", noted)
    said = {
        id: [
            *(grade(of(answer), answer.function).reason for answer in BANKS[lesson].wrong_answers[id]),
            *(
                grade(exercise, getattr(slip, "function", slip)).reason
                for slip, _ in getattr(exercise.checks, "slips", ())
            ),
            *(grade(exercise, edit.function).reason for of_id, edit, _ in EDITED if of_id == id),
        ]
        for id, exercise in exercises(lesson).items()
    }
    unheard = [
        f"{id}, {part!r}: {sentence}"
        for id, exercise in exercises(lesson).items()
        for part, sentence in exercise.crashes
        if not any(sentence in reason for reason in said[id])
    ]
    module = importlib.import_module(f"course_lib.exercises.{lesson.split('_', 1)[1]}")
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.func.id == "Wrong":
            lines = range(node.lineno, node.end_lineno + 1)
            if not any(file == module.__file__ and line in lines for file, line in made):
                unheard.append(f"line {node.lineno}: {ast.unparse(node)}")
    assert not unheard, "\n".join(unheard)


def test_answer_must_stay_on_the_device(monkeypatch):
    """Meta tensors stand in for a GPU: they have a device of their own, but no numbers."""

    def on_cpu(x, h, W, U, b):
        return torch.tanh(x @ W.T + h @ U.T + b).cpu()

    def row_by_row(x, h, W, U, b):
        rows = torch.zeros(len(x), len(b), dtype=x.dtype)
        for i in range(len(x)):
            rows[i] = torch.tanh(W @ x[i] + U @ h[i] + b)
        return rows

    assert grade(EXERCISES["1.1"], row_by_row).state == "passed"
    monkeypatch.setattr("course_lib.runtime.device", lambda: torch.device("meta"))
    assert grade(EXERCISES["1.1"], lambda x, h, W, U, b: torch.tanh(x @ W.T + h @ U.T + b)).state == "passed"
    for answer in (on_cpu, row_by_row):
        assert "is a tensor made on a fixed device?" in grade(EXERCISES["1.1"], answer).reason


@pytest.mark.parametrize(("lesson", "id"), [(lesson, id) for lesson in LESSONS for id in exercises(lesson)])
def test_stub_of_the_notebook_is_untouched(lesson, id):
    notebook = nbformat.read(notebooks.lesson(lesson), as_version=4)
    grade_id = f"answer-{id.replace('.', '-')}"
    [cell] = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id]
    names = {"math": math, "torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    exec(cell.source, names)
    assert grade(EXERCISES[id], names[EXERCISES[id].reference.__name__]).state == "untouched"
    assert grade(EXERCISES[id], None).state == grade(EXERCISES[id], ...).state == "untouched"
