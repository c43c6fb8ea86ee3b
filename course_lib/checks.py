"""How an answer is judged: cheap checks first, deep ones last, the first failure explained in a sentence.

An `Exercise` names the library's piece (the answer key), its checks and its hints. `grade` runs a student's answer
through the checks under a time limit. Whatever the answer does (raise, loop for ever, print, return nonsense), `grade`
returns a `Verdict`.
"""

import contextlib
import ctypes
import inspect
import io
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

Check = Callable[[Callable], None]
Slip = tuple[Callable, str]


class Wrong(Exception):
    """The answer is wrong; the message says why and what to try."""


@dataclass(frozen=True)
class Exercise:
    """One exercise: the library's piece, the checks that judge an answer, a nudge and a sketch of the solution."""

    id: str
    title: str
    reference: Callable
    checks: Sequence[Check]
    nudge: str
    sketch: str
    crashes: Sequence[tuple[str, str]] = ()  # (part of an error's text, the sentence that helps)
    seconds: float = 10.0  # time limit for all checks together


@dataclass(frozen=True)
class Verdict:
    """What `grade` found. ``state`` is ``passed``, ``untouched`` or ``wrong``."""

    state: str
    done: int  # checks that passed
    total: int
    reason: str = ""
    printed: str = field(default="", repr=False)  # what the answer printed, shown back to its author


def grade(exercise: Exercise, answer: Any) -> Verdict:
    """Run the checks of ``exercise`` on ``answer``, cheapest first, and stop at the first that fails."""
    total, passed = len(exercise.checks), 0
    if answer is None or answer is Ellipsis:
        return Verdict("untouched", 0, total)
    if not callable(answer):
        name = exercise.reference.__name__
        return Verdict("wrong", 0, total, f"Expected a function `{name}`; got {describe(answer)}. Did you call it?")

    def run() -> None:
        nonlocal passed
        for check in exercise.checks:
            check(answer)
            passed += 1

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        error = _run_limited(run, exercise.seconds)
    if error is None:
        return Verdict("passed", total, total, printed=printed.getvalue())
    if isinstance(error, NotImplementedError):
        return Verdict("untouched", passed, total, printed=printed.getvalue())
    return Verdict("wrong", passed, total, _explain(error, exercise), printed.getvalue())


def _run_limited(work: Callable[[], None], seconds: float) -> BaseException | None:
    """Run ``work`` in a thread of its own; returns what it raised, or TimeoutError after ``seconds``.

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
    thread.join(seconds)
    if not thread.is_alive():
        return raised[0] if raised else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
    thread.join(0.5)
    return TimeoutError()


def _explain(error: BaseException, exercise: Exercise) -> str:
    """One or two sentences for whatever ended the checks."""
    if isinstance(error, Wrong):
        return str(error)
    if isinstance(error, TimeoutError):
        return f"No answer after {exercise.seconds:g} s: is there a loop that never ends?"
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.line and "site-packages" not in f.filename and "course_lib" not in f.filename]
    where = f" at your line `{own[-1].line}`" if own else ""
    text = (str(error).strip().splitlines() or ["no message"])[0]
    help_ = next((sentence for part, sentence in exercise.crashes if part in str(error)), "")
    return f"It stopped with {type(error).__name__}{where}: {text}. {help_}".strip()


def describe(value: Any) -> str:
    """A value in a few words: 'a tensor of shape (2, 3)', 'None', 'a list'."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if value is None:
        return "None (is the `return` missing?)"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return f"{'an' if type(value).__name__[0] in 'aeiou' else 'a'} {type(value).__name__}"


def signature_check(reference: Callable) -> Check:
    """The answer must take the reference's arguments."""

    def signature(answer: Callable) -> None:
        wanted = list(inspect.signature(reference).parameters)
        try:
            inspect.signature(answer).bind(*wanted)
        except TypeError:
            got = ", ".join(inspect.signature(answer).parameters)
            raise Wrong(f"It must take ({', '.join(wanted)}); yours takes ({got}).") from None

    return signature


def function_checks(
    reference: Callable,
    make_inputs: Callable[[torch.Generator], tuple],
    returns: Sequence[str],
    slips: Sequence[Slip] = (),
    properties: Sequence[Check] = (),
    gradient: bool = True,
    tolerance: float = 1e-5,
) -> list[Check]:
    """The ladder of checks for an answer that maps tensors to one or several tensors.

    signature → types and shapes → dtype → finite → inputs not modified → properties → numbers → gradient.

    ``make_inputs`` draws the arguments of one case; ``returns`` names the outputs; ``slips`` pairs the wrong functions
    that people write with the sentence that helps: where an answer's numbers equal a slip's, the sentence is said.
    """

    def cases() -> list[tuple]:
        return [make_inputs(torch.Generator().manual_seed(seed)) for seed in range(3)]

    def outputs(function: Callable, inputs: tuple) -> tuple:
        result = function(*inputs)
        return result if isinstance(result, tuple) else (result,)

    def slip_made(answer: Callable) -> str:
        """The sentence of the slip whose outputs equal the answer's on every case; else ''."""
        for slip, sentence in slips:
            with contextlib.suppress(Exception):
                if all(_equal(outputs(answer, _copy(c)), outputs(slip, _copy(c)), tolerance) for c in cases()):
                    return sentence
        return ""

    def shapes(answer: Callable) -> None:
        inputs = cases()[0]
        expected, result = outputs(reference, _copy(inputs)), answer(*_copy(inputs))
        got = result if isinstance(result, tuple) else (result,)
        if isinstance(result, list) or len(got) != len(expected):
            raise Wrong(f"Expected {_and(returns)} to be returned; got {describe(result)}.")
        for name, value, want in zip(returns, got, expected, strict=True):
            if not isinstance(value, Tensor):
                raise Wrong(f"Expected {name} to be {describe(want)}; got {describe(value)}.")
            if value.shape != want.shape:
                help_ = slip_made(answer)
                raise Wrong(f"Expected {name} of shape {tuple(want.shape)}; got {tuple(value.shape)}. {help_}".strip())

    def dtypes(answer: Callable) -> None:
        double = tuple(v.double() if isinstance(v, Tensor) and v.is_floating_point() else v for v in cases()[0])
        for name, value, want in zip(
            returns, outputs(answer, _copy(double)), outputs(reference, _copy(double)), strict=True
        ):
            if value.dtype != want.dtype:
                raise Wrong(f"With float64 inputs {name} must be {want.dtype}; got {value.dtype}: is a dtype fixed?")

    def finite(answer: Callable) -> None:
        for inputs in cases():
            for name, value in zip(returns, outputs(answer, _copy(inputs)), strict=True):
                if value.is_floating_point() and not value.isfinite().all():
                    raise Wrong(f"{name} holds {'NaN' if value.isnan().any() else 'an infinity'}.")

    def inputs_kept(answer: Callable) -> None:
        inputs = cases()[0]
        given = _copy(inputs)
        answer(*given)
        for name, before, after in zip(inspect.signature(reference).parameters, inputs, given, strict=False):
            if isinstance(before, Tensor) and not torch.equal(before, after):
                raise Wrong(f"It changes its input {name} in place: make a new tensor (no `+=`, no `name[...] =`).")

    def numbers(answer: Callable) -> None:
        for inputs in cases():
            got, want = outputs(answer, _copy(inputs)), outputs(reference, _copy(inputs))
            if not _equal(got, want, tolerance):
                raise Wrong(slip_made(answer) or _difference(returns, got, want))

    def gradients(answer: Callable) -> None:
        for inputs in cases():
            got, want = (_gradients(outputs, function, inputs) for function in (answer, reference))
            for name, g, w in zip(inspect.signature(reference).parameters, got, want, strict=False):
                if w is not None and (g is None or not torch.allclose(g, w, atol=1e-4, rtol=1e-3)):
                    raise Wrong(
                        f"The numbers are right, but no or a wrong gradient reaches {name}: "
                        "avoid `.data`, `.detach()`, `.item()`, `torch.no_grad()` and `torch.tensor(…)` on the way."
                    )

    ladder = [signature_check(reference), shapes, dtypes, finite, inputs_kept, *properties, numbers]
    return [*ladder, gradients] if gradient else ladder


def _copy(inputs: tuple) -> tuple:
    return tuple(v.clone() if isinstance(v, Tensor) else v for v in inputs)


def _equal(got: tuple, want: tuple, tolerance: float) -> bool:
    return len(got) == len(want) and all(
        isinstance(g, Tensor)
        and g.shape == w.shape
        and torch.allclose(g.double(), w.double(), atol=tolerance, rtol=tolerance)
        for g, w in zip(got, want, strict=True)
    )


def _gradients(outputs: Callable, function: Callable, inputs: tuple) -> tuple:
    """∂(Σ outputs · fixed weights)/∂input for every floating-point input."""
    given = tuple(v.clone().requires_grad_() if isinstance(v, Tensor) and v.is_floating_point() else v for v in inputs)
    total = sum(
        (value * torch.linspace(0.5, 1.5, value.numel()).view_as(value)).sum() for value in outputs(function, given)
    )
    if total.requires_grad:
        total.backward()
    return tuple(v.grad if isinstance(v, Tensor) else None for v in given)


def _difference(names: Sequence[str], got: tuple, want: tuple) -> str:
    """Where the first wrong output differs most, in a sentence."""
    for name, g, w in zip(names, got, want, strict=True):
        gap = (g.double() - w.double()).abs()
        if gap.numel() and gap.max() > 0 and not torch.allclose(g.double(), w.double(), atol=1e-5, rtol=1e-5):
            place = tuple(int(i) for i in torch.unravel_index(gap.argmax(), gap.shape))
            where = f"{name}[{', '.join(map(str, place))}]" if place else name
            return f"{where} is {g[place].item():.4f}; expected {w[place].item():.4f}."
    return "The numbers differ from the library's."


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
