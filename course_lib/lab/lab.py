"""The lab: what a notebook talks to.

    lab = Lab("01_rnn_limits")
    steps = lab.budget("steps")                # as many as this machine can take: a table in course_lib/lessons/
    elman_step = lab.check("1.1", elman_step)  # ✓ yours goes on · ○ not attempted, or ✗ why: the library's goes on
    lab.hint("1.1")                            # a nudge; again: a sketch; again: the solution
    lab.claim("Gradients vanish", ratio, below=0.01, source="S3")
    lab.same("nn.LSTM", ours, theirs)          # a quiet line where both are equal, an error where they are not
    fit(…, checkpoint=lab.checkpoint("LSTM"))  # a training that a cut session goes on with
    lab.summary()

What a student sees is HTML; the same words as plain text are stored beside it, and tests compare both. What differs
from machine to machine, such as the last digits of a measured value, stands in the HTML only, inside an element that
says so (``data-here``), and is not compared.
"""

import ast
import html
import importlib
import importlib.util
import inspect
import math
import os
import re
import textwrap
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from IPython.display import display

from course_lib import runtime, viz
from course_lib.lab import ledger, progress
from course_lib.lab.budgets import Budget, budgets_of
from course_lib.lab.grading import Exercise, Verdict, grade
from course_lib.lab.panels import MARKS, Panel, here, inline, short, verdict_panel

PLACES = {"cpu": "on a CPU", "gpu": "on a GPU", "smoke": "in the tests"}


class CheckFailed(AssertionError):
    """Raised by a failed check when ``COURSE_GRADING=1``."""


class ClaimFailed(AssertionError):
    """Raised by the summary when a claim of the lesson did not hold."""


class NotTheSame(AssertionError):
    """Raised where what we built does not equal the real thing."""


@dataclass(frozen=True)
class Claim:
    """A sentence of the lectures, the bound it must keep, and what was measured."""

    text: str
    bound: str
    source: str
    value: float
    state: str  # held, failed, or unasserted (under the smoke profile)


@dataclass
class Session:
    """What has happened in a lesson since the kernel started: its set-up cell, run again, takes nothing away."""

    states: dict[str, str] = field(default_factory=dict)
    claims: dict[str, Claim] = field(default_factory=dict)
    judged: dict[str, tuple[Any, Verdict]] = field(default_factory=dict)  # the last answer that was not the library's
    hints: dict[str, int] = field(default_factory=dict)
    guesses: dict[str, Any] = field(default_factory=dict)
    revealed: set[str] = field(default_factory=set)  # what was predicted, and has been measured
    late: set[str] = field(default_factory=set)  # guesses that were changed after that


SESSIONS: dict[tuple, Session] = {}


class Lab:
    """One lesson's exercises, claims and record."""

    def __init__(self, lesson: str):
        self.lesson = lesson
        name = re.fullmatch(r"\d\d_(\w+)", lesson)
        if not name or importlib.util.find_spec(f"course_lib.exercises.{name[1]}") is None:
            raise ValueError(f"There is no lesson {lesson!r}; expected a notebook's name such as '01_rnn_limits'.")
        module = importlib.import_module(f"course_lib.exercises.{name[1]}")
        self.exercises: dict[str, Exercise] = {exercise.id: exercise for exercise in module.EXERCISES}
        self.budgets: dict[str, Budget] = budgets_of(name[1])
        self.device, self.profile = runtime.device(), runtime.profile()
        self._ranges = ledger.ranges(lesson) if self.profile == "cpu" else {}  # the ledger's sizes are those of a CPU
        self.seed = int(os.environ.get("COURSE_SEED") or 0)  # claims must hold for every seed: benchmarks/claims.py
        self._session = SESSIONS.setdefault((lesson, progress.path(), self.profile, self.seed), Session())
        self.states, self.claims = self._session.states, self._session.claims
        self.states |= dict.fromkeys(self.exercises, "untouched") | self.states
        viz.style()
        _, notice = progress.read()
        where = f"your progress is kept in {html.escape(progress.path().name)}"
        machine = f"{self.device.type} · torch {torch.__version__} · {torch.get_num_threads()} threads"
        extra = f"<div>{here(machine, 'span')} · {where}</div>"
        title = f"Lesson {lesson.replace('_', ' ')} · profile {self.profile} · {len(self.exercises)} exercises"
        display(Panel("", title, [notice, *self._budget_lines()], html_only=extra))

    def budget(self, name: str) -> Any:
        """How much of something the lesson takes here: the value called ``name`` for the profile in use."""
        if name not in self.budgets:
            known = f"it has {', '.join(self.budgets)}" if self.budgets else "it has none"
            raise KeyError(f"Lesson {self.lesson} has no budget {name!r}; {known}.")
        return self.budgets[name].for_profile(self.profile)

    def pick(self, *, cpu: Any, gpu: Any = None, smoke: Any = None) -> Any:
        """A value for one place alone, which needs no name; what a student may wish to change is a `budget`."""
        return Budget("one place alone", cpu, gpu, smoke).for_profile(self.profile)

    def check(self, id: str, answer: Any) -> Callable:
        """Judge ``answer``; returns it when it is right, else the library's piece, so that the notebook goes on."""
        exercise = self._exercise(id)
        id, verdict = exercise.id, grade(exercise, answer)
        name = exercise.reference.__name__
        last, before = self._session.judged.get(id, (None, None))
        notice = ""
        if verdict.state == "library":  # as when this cell is run again: what was said before still holds
            verdict = before if before and before.state == "wrong" else Verdict("untouched", 0, verdict.total)
            note = f"This is the library's own `{name}`: run the cell with your answer, then this one."
            said = " Of your last answer it was said:" if verdict.reason else ""
            panel = verdict_panel(exercise, verdict, name, note + said)
        else:
            self._session.judged[id] = answer, verdict
            panel = verdict_panel(exercise, verdict, name)
            again = answer is last
            notice = progress.update(self.lesson, lambda record: _record(record, id, verdict.state, again))
        self.states[id] = verdict.state
        panel.html_only += here(notice, "div") if notice else ""
        display(panel)
        if verdict.state != "passed" and os.environ.get("COURSE_GRADING") == "1":
            raise CheckFailed(f"{id} {verdict.state}: {verdict.reason or 'not attempted'}")
        return answer if verdict.state == "passed" else exercise.reference

    def hint(self, id: str) -> None:
        """A nudge; called again, a sketch; called again, the solution."""
        exercise = self._exercise(id)
        id = exercise.id
        stage = self._session.hints[id] = min(self._session.hints.get(id, 0) + 1, 3)
        again = f'Run it again for {"a sketch" if stage == 1 else "the solution"}: `lab.hint("{id}")`'
        if stage == 1:
            display(Panel("", f"{id} hint 1 of 3", [exercise.nudge, again]))
        elif stage == 2:
            display(Panel("", f"{id} hint 2 of 3", [again], code=textwrap.dedent(exercise.sketch).strip()))
        else:
            self.solution(id)

    def solution(self, id: str) -> None:
        """The library's own code for the exercise, as a cell that runs: there is no other solution."""
        display(Panel("", f"{id} the library's answer", code=self.answer(id)))

    def answer(self, id: str) -> str:
        """The library's code for the exercise, after imports of what it needs beside the lesson's own pieces."""
        pieces = {exercise.reference.__name__ for exercise in self.exercises.values()}
        reference = self._exercise(id).reference
        return "\n".join([*_imports(reference, pieces), _source(reference)])

    def source(self, thing: Any) -> None:
        """Show a piece of the library as it stands in its file."""
        module = inspect.getmodule(thing)
        display(Panel("", f"`{thing.__qualname__}` in {module.__name__.replace('.', '/')}.py", code=_source(thing)))

    def predict(self, key: str, guess: Any) -> None:
        """Write down a guess before the measurement; `reveal` sets the two side by side."""
        if key in self._session.revealed and repr(guess) != repr(self._session.guesses.get(key)):
            self._session.late.add(key)
        self._session.guesses[key] = guess
        if guess is not None:
            progress.update(self.lesson, lambda record: record.setdefault("guesses", {}).update({key: repr(guess)}))
        said = "none yet: write yours in the cell above" if guess is None else f"noted{self._when(key)}"
        display(Panel("", f"Prediction: {key}", [said]))

    def reveal(self, key: str, measured: Any) -> None:
        """The measurement beside the guess."""
        guess = self._session.guesses.get(key)  # none where the cell with the prediction was left out
        self._session.revealed.add(key)
        said = "no prediction" if guess is None else f"you said <b>{html.escape(str(guess))}</b>{self._when(key)}"
        extra = f"<div>{said} · measured {here(short(measured))}</div>"
        display(Panel("", f"Prediction and measurement: {key}", html_only=extra))

    def claim(
        self, text: str, value: float, *, above: float | None = None, below: float | None = None, source: str
    ) -> None:
        """Measure a sentence: it holds when ``above < value < below``. A claim that fails also fails the summary."""
        if above is None and below is None:
            raise ValueError(f"The claim {text!r} has no bound: give above=, below=, or both.")
        value = float(value.detach() if isinstance(value, torch.Tensor) else value)
        limits = {"above": above, "below": below}
        bound = " and ".join(f"{word} {limit:g}" for word, limit in limits.items() if limit is not None)
        holds = not math.isnan(value) and (above is None or value > above) and (below is None or value < below)
        state = "unasserted" if self.profile == "smoke" else "held" if holds else "failed"
        self.claims[text] = Claim(text, bound, source, value, state)
        why = "It did not hold here. If you changed the experiment, that is a finding: why?"
        if math.isnan(value):
            why = "This is not a number (NaN), so nothing was measured: where does the first NaN arise?"
        notice = why if state == "failed" else ""
        extra = f"<div>measured {here(self._measured(text))}</div>"
        display(Panel(MARKS[state], f"Claim: {text}", [f"expected {bound} · {source}", notice], html_only=extra))

    def same(self, what: str, ours: Any, theirs: Any, within: float = 1e-5) -> None:
        """A quiet line: what we built equals ``what``, such as ``"nn.LSTM"``; raises where it does not.

        ``ours`` and ``theirs``: tensors, or lists, tuples or dicts of them.
        """
        pairs = list(zip(_tensors(ours), _tensors(theirs), strict=True))
        if not pairs:
            raise ValueError(f"There is nothing to compare with {what}: expected tensors.")
        for mine, other in pairs:
            if mine.shape != other.shape:
                raise NotTheSame(f"Not {what}: the shapes are {tuple(mine.shape)} and {tuple(other.shape)}.")
        gap = max((mine.double() - other.double()).abs().max().item() for mine, other in pairs)
        if not gap <= within:  # also where it is NaN
            raise NotTheSame(f"Not {what}: the largest difference is {gap:.2g}; expected at most {within:g}.")
        display(Panel("", f"= {what}", html_only=f"<div>largest difference {here(f'{gap:.0e}')}</div>"))

    def checkpoint(self, name: str) -> Path | None:
        """The file, beside your progress, of the training called ``name``: one a lesson, profile and seed.

        A session that was cut goes on from it; `summary`, at the end of the lesson, removes it. None where nothing can
        be written: that costs the way back, not the lesson.
        """
        file = progress.path().with_name(f"{self.lesson}_{name}_{self.profile}_{self.seed}.checkpoint")
        return file if os.access(file.parent, os.W_OK) else None

    def summary(self) -> None:
        """The lesson's claims with their values and the exercises with their states; raises if a claim failed.

        The lesson is done: its checkpoints go, so that whoever trains again later trains anew.
        """
        claims = self.claims.values()
        lines = [f"{MARKS[self.states[id]]} {id} {exercise.title}" for id, exercise in self.exercises.items()]
        text = [f"{MARKS[claim.state]} {claim.text} ({claim.bound}, {claim.source})" for claim in claims]
        rows = [_table_row("th", "", "claim", "expected", "measured", "source")]
        for claim in claims:
            measured = here(self._measured(claim.text))
            rows.append(_table_row("td", MARKS[claim.state], inline(claim.text), claim.bound, measured, claim.source))
        solved = f"{sum(state == 'passed' for state in self.states.values())} of {len(self.exercises)} exercises solved"
        title = f"Lesson {self.lesson}: {solved}, {len(claims)} claims measured"
        values = {claim.text: short(claim.value) for claim in claims}
        progress.update(self.lesson, lambda record: record.update(claims=values))
        table = f"<table style='margin:.5em 0 0 0'>{''.join(rows)}</table>" if claims else ""
        display(Panel("", title, lines, html_only=table, text_only=text))
        for file in progress.path().parent.glob(f"{self.lesson}_*_{self.profile}_{self.seed}.checkpoint"):
            file.unlink(missing_ok=True)
        failed = [claim for claim in claims if claim.state == "failed"]
        if failed:
            found = [f"{claim.text}: {claim.bound} expected, {short(claim.value)} measured" for claim in failed]
            raise ClaimFailed(f"{len(failed)} claim(s) did not hold here. {'; '.join(found)}")

    def progress(self) -> None:
        """How far you are in every lesson you have opened."""
        record, notice = progress.read()
        lines = []
        for lesson, entry in sorted(record.items()):
            states = [exercise["state"] for exercise in entry.get("exercises", {}).values()]
            marks = "".join(MARKS.get(state, "") for state in states) or "○"
            lines.append(f"{lesson}: {marks} {states.count('passed')} solved")
        display(Panel("", "Your progress", [notice, *lines] if lines else [notice, "nothing recorded yet"]))

    def _when(self, key: str) -> str:
        return " (after the measurement)" if key in self._session.late else ""

    def _measured(self, claim: str) -> str:
        """What was measured here, and what the ledger says of five seeds."""
        known = f" (five seeds: {self._ranges[claim]})" if claim in self._ranges else ""
        return f"{short(self.claims[claim].value)}{known}"

    def _budget_lines(self) -> list[str]:
        lines = [f"`{name}` {self.budget(name)}: {budget.about}" for name, budget in self.budgets.items()]
        return [f"This lesson {PLACES[self.profile]}:", *lines] if lines else []

    def _exercise(self, id: str) -> Exercise:
        id = str(id)  # lab.hint(1.4) is meant as lab.hint("1.4")
        if id not in self.exercises:
            raise KeyError(f"Lesson {self.lesson} has no exercise {id!r}; it has {', '.join(self.exercises)}.")
        return self.exercises[id]


def _record(record: dict, id: str, state: str, again: bool) -> None:
    """Note an attempt, unless it is the last answer ``again``.

    What was once solved stays solved: re-running an untouched notebook takes nothing away.
    """
    entry = record.setdefault("exercises", {}).setdefault(id, {"state": "untouched", "attempts": 0})
    if state != "untouched" and not again:
        entry["attempts"] += 1
    if entry["state"] != "passed" and state != "untouched":
        entry["state"] = state


def _table_row(kind: str, *cells: str) -> str:
    """HTML of one row of a table; ``kind`` is th or td."""
    return "<tr>" + "".join(f"<{kind} style='text-align:left'>{cell}</{kind}>" for cell in cells) + "</tr>"


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested lists, tuples and dicts, on the CPU; numbers become tensors."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _tensors(part)
    else:
        yield torch.as_tensor(value).detach().cpu()


def _imports(thing: Any, but: Collection[str]) -> list[str]:
    """The lines, with two empty ones below, that import what the source of ``thing`` takes from its module."""
    module, names = inspect.getmodule(thing), list(ast.walk(ast.parse(_source(thing))))
    bound = {node.arg for node in names if isinstance(node, ast.arg)}
    bound |= {node.id for node in names if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    needed = {node.id for node in names if isinstance(node, ast.Name)} & vars(module).keys() - bound - {*but}
    lines = []
    for statement in ast.parse(inspect.getsource(module)).body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            statement.names = [each for each in statement.names if (each.asname or each.name) in needed]
            needed -= {each.asname or each.name for each in statement.names}
            lines += [ast.unparse(statement)] if statement.names else []
    if needed:  # what stands in the same file
        lines.append(f"from {module.__name__} import {', '.join(sorted(needed))}")
    return [*lines, "", ""] if lines else []


def _source(thing: Any) -> str:
    return textwrap.dedent(inspect.getsource(thing)).rstrip()
