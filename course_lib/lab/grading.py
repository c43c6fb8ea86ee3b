"""How an answer is judged: cheap checks first, deep ones last, the first failure explained in a sentence.

An `Exercise` names the library's piece (the answer key), its checks and its hints. `grade` runs a student's answer
through the checks under a time limit. Whatever the answer does (raise, loop for ever, print, return nonsense), `grade`
returns a `Verdict`, and leaves torch's settings and the random generators as they were. The checks themselves are the
rungs of a `Ladder` (ladder.py).
"""

import ast
import contextlib
import ctypes
import functools
import inspect
import io
import sys
import textwrap
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from course_lib import runtime
from course_lib.runtime import randomness_kept

Check = Callable[[Callable], None]

CRASHES = [  # (part of an error's text, the sentence that helps), for any exercise
    (
        "must match the size of tensor",
        "These two do not fit entry by entry: print their shapes; is an axis wrong, or a size fixed?",
    ),
    ("is invalid for input of size", "The sizes change from case to case: take them from the shapes of the inputs."),
    ("out of bounds for dimension", "The sizes change from case to case: take them from the shapes of the inputs."),
    ("same dtype", "Two tensors of different types meet: is a dtype fixed somewhere?"),
    ("call numpy() on", "Stay with torch's functions: the gradient has to pass through."),
    ("inplace operation", "A tensor that the gradient needs was changed in place: make a new one instead."),
    ("Boolean value of Tensor", "To ask whether a tensor is there, write `is None` or `is not None`."),
    ("maximum recursion depth", "It calls itself without end."),
    ("before Module.__init__() call", "Begin `__init__` with `super().__init__()`: it makes room for the layers."),
]


class Wrong(Exception):
    """The answer is wrong; the message says why and what to try. Where there are both: what was expected, what came."""

    def __init__(self, message: str, expected: Any = None, got: Any = None):
        super().__init__(message)
        self.expected, self.got = expected, got


class _TimeIsUp(Exception):
    """The time limit of the exercise is reached."""


@dataclass(frozen=True)
class Exercise:
    """One exercise: the library's piece, the checks that judge an answer, a nudge and a sketch of the solution."""

    id: str
    title: str
    reference: Callable
    checks: Sequence[Check]
    nudge: str
    sketch: str
    crashes: Sequence[tuple[str, str]] = ()  # as CRASHES, for this exercise; these come first
    seconds: float = 10.0  # time limit for all checks together


@dataclass(frozen=True)
class Verdict:
    """What `grade` found. ``state`` is ``passed``, ``untouched``, ``wrong``, or ``library`` for its own piece."""

    state: str
    done: int  # checks that passed
    total: int
    reason: str = ""
    printed: str = field(default="", repr=False)  # by the answer in the check that failed, or else the first time
    expected: Any = field(default=None, repr=False)  # where a result differs: what it should have been
    got: Any = field(default=None, repr=False)


def grade(exercise: Exercise, answer: Any) -> Verdict:
    """Run the checks of ``exercise`` on ``answer``, cheapest first, and stop at the first that fails."""
    total, passed = len(exercise.checks), 0
    if answer is None or answer is Ellipsis:
        return Verdict("untouched", 0, total)
    if not callable(answer):
        name, kind = exercise.reference.__name__, "class" if isinstance(exercise.reference, type) else "function"
        return Verdict("wrong", 0, total, f"Expected a {kind} `{name}`; got {describe(answer)}. Did you call it?")

    if _is_librarys(answer, exercise.reference):
        return Verdict("library", 0, total)
    places, calls = _places(exercise.reference), []
    printed, pages = _Printed(), []

    def watch(frame: FrameType, event: str, _argument: Any) -> None:
        """Note each call of the library's piece that comes from the answer, not from the checks."""
        if event == "call" and _place(frame.f_code) in places and not _from_library(frame.f_back):
            calls.append(frame.f_code)

    def run() -> None:
        nonlocal passed
        sys.setprofile(watch)  # of this thread only, which ends with the checks
        for check in exercise.checks:
            before = printed.tell()
            check(answer)
            passed += 1
            pages.append(printed.getvalue()[before:])

    for check in exercise.checks:  # what a check needs that is none of the answer's time
        getattr(check, "prepare", lambda: None)()
    with _surroundings_kept(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        error = _run_limited(run, exercise.seconds)
    pages.append(printed.getvalue()[sum(map(len, pages)) :])  # of the check that failed: what its author looks for
    said = pages[-1] or next(filter(None, pages), "")
    if error is None:
        return Verdict("library" if calls else "passed", total, total, printed=said)
    if isinstance(error, NotImplementedError) and not error.args:  # the stub's; torch's own come with a text
        return Verdict("untouched", passed, total, _code_beside_the_stub(error, answer), said)
    found = {"expected": error.expected, "got": error.got} if isinstance(error, Wrong) else {}
    return Verdict("wrong", passed, total, _explain(error, exercise), said, **found)


def _is_librarys(answer: Any, reference: Callable) -> bool:
    """Whether it is the library's piece itself, a thin cover of it, or made of its code."""
    bare = None
    while bare is not answer:
        bare, answer = answer, inspect.unwrap(answer.func if isinstance(answer, functools.partial) else answer)
    kind = answer if isinstance(reference, type) else type(answer)  # a class, or that of an object that is called
    functions = [answer, *(each for base in getattr(kind, "__mro__", ()) for each in vars(base).values())]
    codes = (getattr(inspect.unwrap(each), "__code__", None) for each in functions)
    return any(code is not None and _place(code) in _places(reference) for code in codes)


def _places(reference: Callable) -> set[tuple[str, str]]:
    """Where the code of a function stands, or that of the methods of a class."""
    functions = vars(reference).values() if isinstance(reference, type) else [inspect.unwrap(reference)]
    return {_place(function.__code__) for function in functions if inspect.isfunction(function)}


def _place(code: CodeType) -> tuple[str, str]:
    """The file and the name under which it stands there: the same after the file was loaded anew."""
    return code.co_filename, code.co_qualname


def _from_library(frame: FrameType | None) -> bool:
    """Whether the nearest caller that is not torch's is a piece of the library."""
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == "torch":
        frame = frame.f_back
    return frame is None or frame.f_globals.get("__name__", "").split(".")[0] == "course_lib"


def _code_beside_the_stub(error: NotImplementedError, answer: Any) -> str:
    """A sentence where there is more than the stub's `raise`, there or in what calls it: its author has tried."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)  # a helper's, or a method's: where it was raised
    try:
        [definition] = ast.parse(textwrap.dedent(inspect.getsource(frame.f_code))).body
    except (OSError, SyntaxError, ValueError):
        return ""
    body = definition.body if isinstance(definition, ast.FunctionDef) else []
    raises = [i for i, part in enumerate(body) if isinstance(part, ast.Raise)]
    answer = answer.func if isinstance(answer, functools.partial) else answer
    own, place = getattr(inspect.unwrap(answer), "__qualname__", ""), frame.f_code.co_qualname
    if not f"{place}.".startswith(f"{own}." if own else ""):
        called = place.rpartition("<locals>.")[2].split(".")[0]
        return (
            f"It calls `{called}`, which raises NotImplementedError. If that is the piece of another exercise, "
            "run the check cell of that exercise first."
        )
    beside = body[: raises[0]] if raises and isinstance(answer, type) else body  # the class of 3.4 has code below it
    written = raises and [part for part in beside if not isinstance(part, ast.Raise | ast.Expr | ast.Pass)]
    return "Your code still has the stub's `raise NotImplementedError`: take that line out." if written else ""


class _Printed(io.StringIO):
    """Keeps the first 10,000 characters: an endless loop may print without end."""

    def write(self, text: str) -> int:
        return super().write(text) if self.tell() < 10_000 else len(text)


@contextlib.contextmanager
def _surroundings_kept() -> Iterator[None]:
    """Afterwards random numbers and torch's settings go on as if the answer had not run; its warnings are not shown.

    Grad mode needs no care: it belongs to a thread, and the answer has one of its own.
    """
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    with randomness_kept(runtime.device()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            torch.set_num_threads(threads)


def _run_limited(work: Callable[[], None], seconds: float) -> BaseException | None:
    """Run ``work`` in a thread of its own; returns what it raised, or _TimeIsUp after ``seconds``.

    A thread works on every system (SIGALRM does not exist on Windows). An endless Python loop is ended by raising
    SystemExit inside it; a call that never comes back into Python is left behind.
    """
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # SystemExit too: an answer may call exit()
            raised.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    try:
        thread.join(seconds)
        if not thread.is_alive():
            return raised[0] if raised else None
        return _TimeIsUp()
    finally:  # also when the student stops the cell
        end = ctypes.py_object(SystemExit)
        with _ended_quietly():
            for _ in range(5):  # once may not do: a bare `except:`, or a callback that runs just then, swallows it
                if thread.is_alive():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), end)
                    thread.join(0.2)


@contextlib.contextmanager
def _ended_quietly() -> Iterator[None]:
    """Where a callback (of a weak reference, of `__del__`) swallows our SystemExit, Python would report it."""
    report = sys.unraisablehook
    sys.unraisablehook = lambda found: None if found.exc_type is SystemExit else report(found)
    try:
        yield
    finally:
        sys.unraisablehook = report


def _explain(error: BaseException, exercise: Exercise) -> str:
    """One or two sentences for whatever ended the checks."""
    if isinstance(error, Wrong):
        return str(error)
    if isinstance(error, _TimeIsUp):
        return f"No answer after {exercise.seconds:g} s: is there a loop that never ends?"
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.line and "site-packages" not in f.filename and "course_lib" not in f.filename]
    where = f" at your line `{own[-1].line}`" if own else ""
    text = str(error).strip().split("\n")[0].split(". ")[0].rstrip(".")  # torch's longer advice is not for beginners
    text = text.removesuffix(", but expected one of:")  # what follows is a list over several lines
    help_ = next((sentence for part, sentence in (*exercise.crashes, *CRASHES) if part in str(error)), "")
    return f"It stopped with {type(error).__name__}{where}{text and ': '}{text}. {help_}".strip()


def describe(value: Any) -> str:
    """A value in a few words: 'a tensor of shape (2, 3)', 'None', 'a list of 2'."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if value is None:
        return "None (is the `return` missing?)"
    if isinstance(value, np.ndarray | np.generic):
        return "something of NumPy (stay with torch's functions)"
    if isinstance(value, tuple) and len(value) == 1:
        return "a tuple of 1 (is there a comma after it?)"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, str):
        return "a text (str)"
    return f"{'an' if type(value).__name__[0] in 'aeiou' else 'a'} {type(value).__name__}"
