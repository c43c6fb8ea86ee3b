"""What the lab shows: boxes with a mark, a title and a few lines."""

import html
import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib.lab.grading import Exercise, Verdict

MARKS = {"passed": "✓", "untouched": "○", "wrong": "✗", "held": "✓", "failed": "✗", "unasserted": "○"}
MARK_COLOURS = {"✓": "#117733", "○": "#666666", "✗": "#AA3311", "": "#336699"}  # on white: all above 4.5 : 1


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
        body = "".join(f"<div>{inline(line)}</div>" for line in self.lines)
        code = f"<pre style='margin:.4em 0 0 0'>{html.escape(self.code)}</pre>" if self.code else ""
        colour = MARK_COLOURS[self.mark]
        return (
            f"<div data-panel style='border-left:4px solid {colour};padding:.3em .8em;margin:.3em 0;line-height:1.45'>"
            f"<div><b style='color:{colour}'>{self.mark}</b> <b>{inline(self.title)}</b></div>"
            f"{body}{self.html_only}{code}</div>"
        )


def inline(text: str) -> str:
    """HTML of one line, `code` between backticks."""
    parts = html.escape(text, quote=False).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def here(text: str, tag: str = "b") -> str:
    """HTML of what another machine may show otherwise."""
    return f"<{tag} data-here>{html.escape(text)}</{tag}>"


def verdict_panel(exercise: Exercise, verdict: Verdict, name: str, note: str = "") -> Panel:
    """What is said of an answer, after a ``note``; ``name`` is that of the library's piece."""
    title, said = f"{exercise.id} {exercise.title}", verdict.printed.strip().splitlines()
    printed = [f"It printed: {line}" for line in [*said[:8], *["…"][: len(said[8:])]]]
    if verdict.state == "passed":
        lines = ["Right. The lesson goes on with yours.", *printed]
        return Panel("✓", f"{title} · {verdict.done}/{verdict.total} checks", lines)
    if verdict.state == "untouched":
        lines = [note, verdict.reason, f"Going on with the library's `{name}`.", *printed]
        return Panel("○", f"{title} · {'not judged' if verdict.reason else 'not attempted'}", lines)
    # no count here: with the right shapes and types alone most checks pass, and "8 of 10" would say "nearly right"
    on = f'Going on with the library\'s `{name}`. For a nudge: `lab.hint("{exercise.id}")`'
    return Panel("✗", title, [note, verdict.reason, *printed, on], html_only=_beside(exercise, verdict))


def _beside(exercise: Exercise, verdict: Verdict) -> str:
    """HTML: what was expected beside what came."""
    want, got = verdict.expected, verdict.got
    changed = getattr(exercise.checks, "compared_as", None)
    heading = f"{{}}, as {changed.__name__.strip('_')}" if changed else "{}"
    if want is None or got is None:
        return ""
    if not isinstance(want, Tensor):
        shown = [f"<pre style='margin:0'>{html.escape(_cut(value))}</pre>" for value in (want, got)]
    elif want.shape == got.shape and want.numel() > 1 and not want.is_complex():
        shown = _tables(want, got)
    else:
        return ""
    cells = "".join(
        f"<td style='text-align:left;vertical-align:top;padding-right:2em'>{heading.format(name)}<br>{table}</td>"
        for name, table in zip(("expected", "yours"), shown, strict=True)
    )
    return f"<table style='margin:.4em 0 0 0'><tr>{cells}</tr></table>"


def _cut(value: Any, longest: int = 400) -> str:
    text = value if isinstance(value, str) else short(value) if isinstance(value, float) else repr(value)
    return text if len(text) <= longest else f"{text[:longest]}…"


def _tables(want: Tensor, got: Tensor) -> list[str]:
    """Of both the same rows of numbers, around the place where they differ most; what differs is bold in ``got``."""
    want, got = (torch.atleast_2d(value.detach().cpu().double()) for value in (want, got))
    worst = np.unravel_index(int((want - got).abs().argmax()), want.shape)  # torch's own imports SymPy
    *before, row, column = map(int, worst)
    window = *before, *(slice(max(0, i + 1 - most), max(most, i + 1)) for i, most in ((row, 6), (column, 8)))
    differ = ~torch.isclose(want, got, rtol=1e-4, atol=1e-5, equal_nan=True)[window]
    want, got = want[window], got[window]
    largest = float(torch.stack([want, got]).nan_to_num(0, 0, 0).abs().max()) or 1.0
    return [_table(want, torch.zeros_like(differ), largest), _table(got, differ, largest)]


def _table(numbers: Tensor, bold: Tensor, largest: float) -> str:
    """A table, shaded as a heat map: blue above 0, orange below, the stronger the nearer to ``largest``."""

    def cell(number: float, bold: bool) -> str:
        tint = "51,102,153" if number > 0 else "221,119,34"
        share = 0 if math.isnan(number) else min(abs(number) / largest, 1)
        style = f"padding:0 .5em;text-align:right;background:rgba({tint},{0.45 * share:.2f})"
        return f"<td style='{style}'>{'<b>' * bold}{number:.3g}{'</b>' * bold}</td>"

    rows = ("".join(map(cell, *row)) for row in zip(numbers.tolist(), bold.tolist(), strict=True))
    lines = "".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table style='margin:0;font-family:monospace'>{lines}</table>"


def short(value: Any) -> str:
    """A measured value in a few digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
