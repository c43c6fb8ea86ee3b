"""The lab: what a notebook talks to.

    lab = Lab("01_rnn_limits")
    elman_step = lab.check("1.1", elman_step)  # ✓ yours goes on · ○ not attempted, or ✗ why: the library's goes on
    lab.hint("1.1")                            # a nudge; again: a sketch; again: the solution
    lab.claim("Gradients vanish", ratio, below=0.01, source="S3")
    lab.summary()

What a student sees is HTML; the same words as plain text are stored beside it, and tests compare those. Measured values
stand in the HTML only, since they differ in the last digits from machine to machine.
"""

import html
import importlib
import importlib.util
import inspect
import math
import os
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from IPython.display import display

from course_lib import progress, runtime, viz
from course_lib.checks import Exercise, Verdict, grade

MARKS = {"passed": "✓", "untouched": "○", "wrong": "✗", "held": "✓", "failed": "✗", "unasserted": "○"}
COLOURS = {"✓": "#117733", "○": "#666666", "✗": "#AA3311", "": "#336699"}  # on white: all above 4.5 : 1


class CheckFailed(AssertionError):
    """Raised by a failed check when ``COURSE_GRADING=1``."""


class ClaimFailed(AssertionError):
    """Raised by the summary when a claim of the lesson did not hold."""


class Panel:
    """A few lines shown as a box in JupyterLab and Colab, and as plain text everywhere else."""

    def __init__(self, mark: str, title: str, lines: Sequence[str] = (), *, code="", html_only="", text_only=()):
        """``html_only`` is for what differs between machines, ``text_only`` for what the HTML shows as a table."""
        self.mark, self.title, self.lines, self.code = mark, title, [line for line in lines if line], code
        self.html_only, self.text_only = html_only, text_only

    def __repr__(self) -> str:
        body = [f"  {line}" for line in (*self.lines, *self.text_only)]
        code = [textwrap.indent(self.code, "    ")] if self.code else []
        return "\n".join([f"{self.mark} {self.title}".strip(), *body, *code])

    def _repr_html_(self) -> str:
        body = "".join(f"<div>{_inline(line)}</div>" for line in self.lines)
        code = f"<pre style='margin:.4em 0 0 0'>{html.escape(self.code)}</pre>" if self.code else ""
        colour = COLOURS[self.mark]
        return (
            f"<div style='border-left:4px solid {colour};padding:.3em .8em;margin:.3em 0;line-height:1.45'>"
            f"<div><b style='color:{colour}'>{self.mark}</b> <b>{_inline(self.title)}</b></div>"
            f"{body}{self.html_only}{code}</div>"
        )


def _inline(text: str) -> str:
    """HTML of one line, `code` between backticks."""
    parts = html.escape(text, quote=False).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


@dataclass(frozen=True)
class Claim:
    """A sentence of the lectures, the bound it must keep, and what was measured."""

    text: str
    bound: str
    source: str
    value: float
    state: str  # held, failed, or unasserted (under the smoke profile)


class Lab:
    """One lesson's exercises, claims and record."""

    def __init__(self, lesson: str):
        self.lesson = lesson
        name = re.fullmatch(r"\d\d_(\w+)", lesson)
        if not name or importlib.util.find_spec(f"course_lib.exercises.{name[1]}") is None:
            raise ValueError(f"There is no lesson {lesson!r}; expected a notebook's name such as '01_rnn_limits'.")
        module = importlib.import_module(f"course_lib.exercises.{name[1]}")
        self.exercises: dict[str, Exercise] = {exercise.id: exercise for exercise in module.EXERCISES}
        self.states = dict.fromkeys(self.exercises, "untouched")
        self.claims: dict[str, Claim] = {}
        self._hints = dict.fromkeys(self.exercises, 0)
        self._guesses: dict[str, Any] = {}
        self.device, self.profile = runtime.device(), runtime.profile()
        self.seed = int(os.environ.get("COURSE_SEED") or 0)  # claims must hold for every seed: benchmarks/claims.py
        viz.style()
        _, notice = progress.read()
        where = f"your progress is kept in {html.escape(progress.path().name)}"
        extra = (
            f"<div>{self.device.type} · torch {torch.__version__} · {torch.get_num_threads()} threads · {where}</div>"
        )
        title = f"Lesson {lesson.replace('_', ' ')} · profile {self.profile} · {len(self.exercises)} exercises"
        display(Panel("", title, [notice], html_only=extra))

    def pick(self, *, cpu: Any, gpu: Any = None, smoke: Any = None) -> Any:
        """The value for the profile in use; ``gpu`` and ``smoke`` fall back on ``cpu``."""
        value = {"cpu": cpu, "gpu": gpu, "smoke": smoke}[self.profile]
        return cpu if value is None else value

    def check(self, id: str, answer: Any) -> Callable:
        """Judge ``answer``; returns it when it is right, else the library's piece, so that the notebook goes on."""
        exercise = self._exercise(id)
        id, verdict = exercise.id, grade(exercise, answer)
        self.states[id] = verdict.state
        name = exercise.reference.__name__
        panel = _verdict_panel(exercise, verdict, name)
        notice = progress.update(self.lesson, lambda record: _record(record, id, verdict.state))
        panel.html_only += f"<div>{html.escape(notice)}</div>" if notice else ""
        display(panel)
        if verdict.state != "passed" and os.environ.get("COURSE_GRADING") == "1":
            raise CheckFailed(f"{id} {verdict.state}: {verdict.reason or 'not attempted'}")
        return answer if verdict.state == "passed" else exercise.reference

    def hint(self, id: str) -> None:
        """A nudge; called again, a sketch; called again, the solution."""
        exercise = self._exercise(id)
        id = exercise.id
        stage = self._hints[id] = min(self._hints[id] + 1, 3)
        again = f'Run it again for {"a sketch" if stage == 1 else "the solution"}: `lab.hint("{id}")`'
        if stage == 1:
            display(Panel("", f"{id} hint 1 of 3", [exercise.nudge, again]))
        elif stage == 2:
            display(Panel("", f"{id} hint 2 of 3", [again], code=textwrap.dedent(exercise.sketch).strip()))
        else:
            self.solution(id)

    def solution(self, id: str) -> None:
        """The library's own code for the exercise: there is no other solution."""
        display(Panel("", f"{id} the library's answer", code=_source(self._exercise(id).reference)))

    def source(self, thing: Any) -> None:
        """Show a piece of the library as it stands in its file."""
        module = inspect.getmodule(thing)
        display(Panel("", f"`{thing.__qualname__}` in {module.__name__.replace('.', '/')}.py", code=_source(thing)))

    def predict(self, key: str, guess: Any) -> None:
        """Write down a guess before the measurement; `reveal` sets the two side by side."""
        self._guesses[key] = guess
        if guess is not None:
            progress.update(self.lesson, lambda record: record.setdefault("guesses", {}).update({key: repr(guess)}))
        display(
            Panel(
                "", f"Prediction: {key}", ["noted" if guess is not None else "none yet: write yours in the cell above"]
            )
        )

    def reveal(self, key: str, measured: Any) -> None:
        """The measurement beside the guess."""
        if key not in self._guesses:
            known = ", ".join(map(repr, self._guesses)) or "none"
            raise KeyError(f"No prediction is called {key!r}; predictions made so far: {known}.")
        guess = self._guesses[key]
        said = "no prediction" if guess is None else f"you said <b>{html.escape(str(guess))}</b>"
        extra = f"<div>{said} · measured <b>{html.escape(_short(measured))}</b></div>"
        display(Panel("", f"Prediction and measurement: {key}", html_only=extra))

    def claim(
        self, text: str, value: float, *, above: float | None = None, below: float | None = None, source: str
    ) -> None:
        """Measure a sentence: it holds when ``above < value < below``. A claim that fails also fails the summary."""
        if above is None and below is None:
            raise ValueError(f"The claim {text!r} has no bound: give above=, below=, or both.")
        value = float(value.detach() if isinstance(value, torch.Tensor) else value)
        bound = " and ".join(
            f"{word} {limit:g}" for word, limit in (("above", above), ("below", below)) if limit is not None
        )
        holds = not math.isnan(value) and (above is None or value > above) and (below is None or value < below)
        state = "unasserted" if self.profile == "smoke" else "held" if holds else "failed"
        self.claims[text] = Claim(text, bound, source, value, state)
        notice = (
            "" if state != "failed" else "It did not hold here. If you changed the experiment, that is a finding: why?"
        )
        extra = f"<div>measured <b>{_short(value)}</b></div>"
        display(Panel(MARKS[state], f"Claim: {text}", [f"expected {bound} · {source}", notice], html_only=extra))

    def summary(self) -> None:
        """The lesson's claims with their values and the exercises with their states; raises if a claim failed."""
        claims = self.claims.values()
        lines = [f"{MARKS[self.states[id]]} {id} {exercise.title}" for id, exercise in self.exercises.items()]
        text = [f"{MARKS[claim.state]} {claim.text} ({claim.bound}, {claim.source})" for claim in claims]
        head = "".join(
            f"<th style='text-align:left'>{name}</th>" for name in ("", "claim", "expected", "measured", "source")
        )
        rows = "".join(
            "<tr>" + "".join(f"<td style='text-align:left'>{cell}</td>" for cell in cells) + "</tr>"
            for cells in (
                (MARKS[claim.state], _inline(claim.text), claim.bound, f"<b>{_short(claim.value)}</b>", claim.source)
                for claim in claims
            )
        )
        right = sum(state == "passed" for state in self.states.values())
        title = (
            f"Lesson {self.lesson}: {right} of {len(self.exercises)} exercises solved, {len(claims)} claims measured"
        )
        measured = {claim.text: _short(claim.value) for claim in claims}
        progress.update(self.lesson, lambda record: record.update(claims=measured))
        table = f"<table style='margin:.5em 0 0 0'><tr>{head}</tr>{rows}</table>" if claims else ""
        display(Panel("", title, lines, html_only=table, text_only=text))
        failed = [claim for claim in claims if claim.state == "failed"]
        if failed:
            found = "; ".join(
                f"{claim.text}: {claim.bound} expected, {_short(claim.value)} measured" for claim in failed
            )
            raise ClaimFailed(f"{len(failed)} claim(s) did not hold here. {found}")

    def progress(self) -> None:
        """How far you are in every lesson you have opened."""
        record, notice = progress.read()
        lines = []
        for lesson, entry in sorted(record.items()):
            states = [exercise["state"] for exercise in entry.get("exercises", {}).values()]
            lines.append(
                f"{lesson}: {''.join(MARKS.get(s, '') for s in states) or '○'} {states.count('passed')} solved"
            )
        display(Panel("", "Your progress", [notice, *lines] if lines else [notice, "nothing recorded yet"]))

    def _exercise(self, id: str) -> Exercise:
        id = str(id)  # lab.hint(1.4) is meant as lab.hint("1.4")
        if id not in self.exercises:
            raise KeyError(f"Lesson {self.lesson} has no exercise {id!r}; it has {', '.join(self.exercises)}.")
        return self.exercises[id]


def _verdict_panel(exercise: Exercise, verdict: Verdict, name: str) -> Panel:
    title = f"{exercise.id} {exercise.title} · {verdict.done}/{verdict.total} checks"
    lines = list(dict.fromkeys(verdict.printed.strip().splitlines()))  # the checks call an answer many times
    printed = [f"It printed: {line}" for line in lines[:8]]
    if verdict.state == "passed":
        return Panel("✓", title, ["Right. The lesson goes on with yours.", *printed])
    if verdict.state == "untouched":
        return Panel(
            "○", f"{exercise.id} {exercise.title} · not attempted", [f"Going on with the library's `{name}`.", *printed]
        )
    on = f'Going on with the library\'s `{name}`. For a nudge: `lab.hint("{exercise.id}")`'
    return Panel("✗", title, [verdict.reason, *printed, on])


def _record(record: dict, id: str, state: str) -> None:
    """Note an attempt. What was once solved stays solved: re-running an untouched notebook takes nothing away."""
    entry = record.setdefault("exercises", {}).setdefault(id, {"state": "untouched", "attempts": 0})
    if state != "untouched":
        entry["attempts"] += 1
    if entry["state"] != "passed" and state != "untouched":
        entry["state"] = state


def _source(thing: Any) -> str:
    return textwrap.dedent(inspect.getsource(thing)).rstrip()


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
