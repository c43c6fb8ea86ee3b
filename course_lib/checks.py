"""How an answer is judged: cheap checks first, deep ones last, the first failure explained in a sentence.

An `Exercise` names the library's piece (the answer key), its checks and its hints. `grade` runs a student's answer
through the checks under a time limit. Whatever the answer does (raise, loop for ever, print, return nonsense), `grade`
returns a `Verdict`, and leaves torch's settings and the random generators as they were.
"""

import contextlib
import ctypes
import inspect
import io
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_lib import runtime
from course_lib.checkpoints import randomness_kept

Check = Callable[[Callable], None]
Slip = tuple[Callable, str]

CRASHES = [  # (part of an error's text, the sentence that helps), for any exercise
    (
        "must match the size of tensor",
        "These two do not fit entry by entry: print their shapes; is an axis wrong, or a size fixed?",
    ),
    ("is invalid for input of size", "The sizes change from case to case: take them from the shapes of the inputs."),
    ("out of bounds for dimension", "The sizes change from case to case: take them from the shapes of the inputs."),
    ("same dtype", "The checks also use float64 inputs: is a dtype fixed somewhere?"),
    ("call numpy() on", "Stay with torch's functions: the gradient has to pass through."),
    ("inplace operation", "A tensor that the gradient needs was changed in place: make a new one instead."),
    ("Boolean value of Tensor", "To ask whether a tensor is there, write `is None` or `is not None`."),
    ("maximum recursion depth", "It calls itself without end."),
    ("before Module.__init__() call", "Begin `__init__` with `super().__init__()`: it makes room for the layers."),
]


class Wrong(Exception):
    """The answer is wrong; the message says why and what to try."""


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
        name, kind = exercise.reference.__name__, "class" if isinstance(exercise.reference, type) else "function"
        return Verdict("wrong", 0, total, f"Expected a {kind} `{name}`; got {describe(answer)}. Did you call it?")

    def run() -> None:
        nonlocal passed
        for check in exercise.checks:
            check(answer)
            passed += 1

    printed = _Printed()
    with _surroundings_kept(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        error = _run_limited(run, exercise.seconds)
    if error is None:
        return Verdict("passed", total, total, printed=printed.getvalue())
    if isinstance(error, NotImplementedError) and not error.args:  # the stub's; torch's own come with a text
        return Verdict("untouched", passed, total, printed=printed.getvalue())
    return Verdict("wrong", passed, total, _explain(error, exercise), printed.getvalue())


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
        for _ in range(5):  # once may not do: a bare `except:`, or a callback that Python runs just then, swallows it
            if thread.is_alive():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
                thread.join(0.2)


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
    return f"{'an' if type(value).__name__[0] in 'aeiou' else 'a'} {type(value).__name__}"


def signature_check(reference: Callable) -> Check:
    """The answer must take the reference's arguments, in their order."""

    def signature(answer: Callable) -> None:
        wanted = list(inspect.signature(reference).parameters)
        try:
            signature = inspect.signature(answer)
        except ValueError:  # some built-in functions have none; the next check calls them
            return
        got = list(signature.parameters)
        try:
            signature.bind(*wanted)
        except TypeError:
            raise Wrong(f"It must take ({', '.join(wanted)}); yours takes ({', '.join(got)}).") from None
        if got != wanted and sorted(got) == sorted(wanted):
            raise Wrong(f"The arguments must come in the order ({', '.join(wanted)}); yours: ({', '.join(got)}).")

    return signature


def device_check(*arguments: Any) -> Check:
    """The answer must make its tensor on the device that it is handed after ``arguments``.

    The meta device, which keeps no numbers, stands in for a GPU: so it shows on any machine.
    """

    def device(answer: Callable) -> None:
        try:
            made_there = answer(*arguments, torch.device("meta")).device.type == "meta"
        except (RuntimeError, TypeError, NotImplementedError):  # tensors of two devices met
            made_there = False
        if not made_there:
            raise Wrong("The numbers are right, but the result is not made on the device asked for: hand `device` on.")

    return device


def function_checks(
    reference: Callable,
    cases: Sequence[tuple],
    returns: Sequence[str],
    slips: Sequence[Slip] = (),
    properties: Sequence[Check] = (),
    differentiable: bool = True,
    tolerance: float = 1e-5,
) -> list[Check]:
    """The ladder of checks for an answer that maps tensors to one or several tensors.

    signature → types → repeatable → shapes → dtype → device → finite → inputs not modified → properties → numbers →
    gradient. A function that is not ``differentiable`` (a measurement) may return its numbers in any floating-point
    type, on any device, without a gradient.

    ``cases`` are the arguments of each call; their sizes should differ, so that fixed ones show. ``returns`` names the
    outputs. ``slips`` pairs the wrong functions that people write with the sentence that helps: where an answer's
    results equal a slip's, the sentence is said.
    """
    arguments = list(inspect.signature(reference).parameters)

    def outputs(answer: Callable, inputs: tuple) -> tuple[Tensor, ...]:
        """What the answer returns, its types and shapes compared with the reference's."""
        expected, result = reference(*_copy(inputs)), answer(*_copy(inputs))
        got, want = _tuple(result), _tuple(expected)
        if isinstance(result, list) and len(returns) > 1:
            raise Wrong(f"Expected {_and(returns)}; got {describe(result)}. Write `return {', '.join(returns)}`.")
        if len(got) != len(want) or isinstance(result, tuple) != isinstance(expected, tuple) or result is None:
            raise Wrong(f"Expected {_and(returns)} to be returned; got {describe(result)}.")
        for name, value, wanted in zip(returns, got, want, strict=True):
            if not isinstance(value, Tensor):
                raise Wrong(f"Expected {name} to be {describe(wanted)}; got {describe(value)}.")
            if value.shape != wanted.shape:
                help_ = slip_made(answer)
                if not help_ and value.dim() > 1 and value.shape == wanted.shape[::-1]:
                    help_ = "Rows and columns are swapped: the batch comes first."
                if not help_ and inputs is not cases[0]:
                    help_ = "A call with other sizes went well: are sizes fixed, or is something squeezed?"
                expected = f"Expected {name} of shape {tuple(wanted.shape)}; got {tuple(value.shape)}."
                raise Wrong(f"{expected} {help_}".strip())
        return got

    def slip_made(answer: Callable) -> str:
        """The sentence of the slip that gives the same on every case: all outputs, or the first wrong one; else ''."""
        with contextlib.suppress(Exception):
            got, want = results(answer), results(reference)
            wrong = next(k for k in range(len(returns)) if not equal(got, want, slice(k, k + 1)))
            for part in (slice(None), slice(wrong, wrong + 1)):
                for slip, sentence in slips:
                    with contextlib.suppress(Exception):
                        if equal(got, results(slip), part):
                            return sentence
        return ""

    def results(function: Callable) -> list[tuple]:
        return [_tuple(function(*_copy(inputs))) for inputs in cases]

    def equal(got: list[tuple], want: list[tuple], part: slice) -> bool:
        return all(_equal(g[part], w[part], tolerance) for g, w in zip(got, want, strict=True))

    def types(answer: Callable) -> None:
        outputs(answer, cases[0])

    def repeatable(answer: Callable) -> None:
        first, second = (_tuple(answer(*_copy(cases[0]))) for _ in range(2))
        if not _equal(first, second, tolerance):
            raise Wrong(
                "Two calls with the same inputs gave different results: is something random, or kept between calls "
                "(a global variable, a list as default argument)?"
            )

    def shapes(answer: Callable) -> None:
        for inputs in cases:
            outputs(answer, inputs)

    def dtypes(answer: Callable) -> None:
        double = tuple(v.double() if _is_float(v) else v for v in cases[0])
        given = "With float64 inputs " if any(map(_is_float, double)) else ""
        for name, value, want in zip(returns, outputs(answer, double), _tuple(reference(*double)), strict=True):
            if value.dtype != want.dtype and (differentiable or not _is_float(value)):
                raise Wrong(f"{given}{name} must be {want.dtype}; got {value.dtype}: is a dtype fixed?")

    def devices(answer: Callable) -> None:
        """Where the lesson runs on a GPU, the answer has to."""
        device = runtime.device()
        if device.type == "cpu":
            return
        try:
            result = _tuple(answer(*(v.to(device) if isinstance(v, Tensor) else v for v in cases[0])))
            stayed = all(v.device.type == device.type for v in result)
        except (RuntimeError, TypeError, NotImplementedError):
            stayed = False
        if not stayed:
            raise Wrong(
                f"It works on the CPU, but not on {device.type}: is a tensor made on a fixed device? "
                "Use `torch.zeros_like(…)`, `x.new_zeros(…)` or `device=x.device`."
            )

    def finite(answer: Callable) -> None:
        for inputs in cases:
            for name, value in zip(returns, outputs(answer, inputs), strict=True):
                if not value.isfinite().all():
                    raise Wrong(
                        slip_made(answer)
                        or f"{name} holds {'NaN' if value.isnan().any() else 'an infinity'}: "
                        "is something divided by 0, or is the root or the logarithm of a negative number taken?"
                    )

    def inputs_kept(answer: Callable) -> None:
        given = _copy(cases[0])
        answer(*given)
        for name, before, after in zip(arguments, cases[0], given, strict=True):
            if not _same(before, after):
                kind = "list" if isinstance(before, list) else "tensor"
                raise Wrong(f"It changes its input {name} in place: make a new {kind} (no `+=`, no `name[...] =`).")

    def explained(check: Check) -> Check:
        """The check, with the slip's sentence where there is one."""

        def property(answer: Callable) -> None:
            try:
                check(answer)
            except Wrong as error:
                raise Wrong(slip_made(answer) or str(error)) from None

        return property

    def numbers(answer: Callable) -> None:
        for inputs in cases:
            got, want = outputs(answer, inputs), _tuple(reference(*_copy(inputs)))
            if not _equal(got, want, tolerance):
                raise Wrong(slip_made(answer) or _difference(returns, got, want, tolerance))

    def gradients(answer: Callable) -> None:
        for inputs in cases:
            want, got = (_gradients(function, inputs) for function in (reference, answer))
            for name, g, w in zip(arguments, got, want, strict=True):
                if w is not None and (g is None or not torch.allclose(g, w, atol=1e-4, rtol=1e-3)):
                    found = "no gradient reaches" if g is None else "a wrong gradient reaches"
                    raise Wrong(
                        f"The numbers are right, but {found} {name}: "
                        "avoid `.data`, `.detach()`, `.item()`, `torch.no_grad()` and `torch.tensor(…)` on the way."
                    )

    ladder = [signature_check(reference), types, repeatable, shapes, dtypes]
    ladder += [devices] if differentiable else []
    ladder += [finite, inputs_kept, *map(explained, properties), numbers]
    return [*ladder, gradients] if differentiable else ladder


def module_checks(
    reference: type[nn.Module], cases: Sequence[tuple[tuple, tuple]], returns: Sequence[str], **options: Any
) -> list[Check]:
    """The ladder of checks for an answer that is a class of modules.

    a class → its arguments → the reference's parameters → arguments of ``forward`` → as `function_checks`, whose
    ``options`` it takes. ``cases`` are pairs: the arguments of the class, the inputs of ``forward``. The answer is
    built, set to evaluation and called with random weights of our choice: it is checked, and slips are written, as a
    function of (arguments, inputs, weights).
    """
    name = reference.__name__
    wanted = [{n: p.shape for n, p in reference(*arguments).named_parameters()} for arguments, _ in cases]
    generator = torch.Generator().manual_seed(0)
    flat = [
        (*arguments, *inputs, *(torch.randn(shape, generator=generator) for shape in shapes.values()))
        for (arguments, inputs), shapes in zip(cases, wanted, strict=True)
    ]
    taken = list(inspect.signature(reference).parameters)[: len(cases[0][0])]
    given = list(inspect.signature(reference.forward).parameters)[1 : 1 + len(cases[0][1])]
    names = [*taken, *given, *(parameter.replace(".", "_") for parameter in wanted[0])]

    def as_function(answer: type[nn.Module]) -> Callable:
        def function(*values: Any) -> Any:
            arguments, inputs = values[: len(taken)], values[len(taken) : len(taken) + len(given)]
            weights = dict(zip(wanted[0], values[len(taken) + len(given) :], strict=True))
            return torch.func.functional_call(answer(*arguments).eval(), weights, inputs)

        positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        function.__signature__ = inspect.Signature([inspect.Parameter(n, positional) for n in names])
        return function

    def is_class(answer: Any) -> None:
        if isinstance(answer, nn.Module):
            raise Wrong(f"Expected the class `{name}` itself; got an object made from it: leave out the brackets.")
        if not (isinstance(answer, type) and issubclass(answer, nn.Module)):
            raise Wrong(f"Expected a class: `class {name}(nn.Module)`, with `__init__` and `forward`.")

    def parameters(answer: type[nn.Module]) -> None:
        for (arguments, _), shapes in zip(cases, wanted, strict=True):
            got = {n: p.shape for n, p in answer(*arguments).named_parameters()}
            missing, extra = [n for n in shapes if n not in got], [n for n in got if n not in shapes]
            if extra and not missing and all(n.endswith(".bias") for n in extra):
                raise Wrong(f"{extra[0]} is one too many: `nn.Linear(…, bias=False)` makes a layer without a bias.")
            if missing or extra:
                found = ", ".join(got) or "none (are the layers assigned to `self`?)"
                raise Wrong(f"Expected the parameters {', '.join(shapes)}; got {found}.")
            for n, shape in shapes.items():
                if got[n] != shape:
                    raise Wrong(f"Expected {n} of shape {tuple(shape)}; got {tuple(got[n])}: look at the sizes.")

    def forward(answer: type[nn.Module]) -> None:
        if answer.forward is nn.Module.forward:
            raise Wrong("It has no method `forward`: that is what runs when the module is called.")
        try:
            signature_check(reference.forward)(answer.forward)
        except Wrong as error:
            raise Wrong(f"`forward`: {error}") from None

    ladder = function_checks(as_function(reference), flat, returns, **options)[1:]
    of_function = [lambda answer, check=check: check(as_function(answer)) for check in ladder]
    return [is_class, signature_check(reference), parameters, forward, *of_function]


def _copy(inputs: Sequence) -> Sequence:
    """The inputs with tensors, and lists of tensors, of their own."""
    copies = (v.clone() if isinstance(v, Tensor) else _copy(v) if isinstance(v, list) else v for v in inputs)
    return type(inputs)(copies)


def _same(before: Any, after: Any) -> bool:
    """Whether a tensor, or a list of tensors, is as it was."""
    if isinstance(before, list):
        return len(before) == len(after) and all(map(_same, before, after))
    return not isinstance(before, Tensor) or (isinstance(after, Tensor) and torch.equal(before, after))


def _tuple(result: Any) -> tuple:
    return result if isinstance(result, tuple) else (result,)


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _equal(got: tuple, want: tuple, tolerance: float) -> bool:
    return len(got) == len(want) and all(
        isinstance(g, Tensor)
        and g.shape == w.shape
        and torch.allclose(g.double(), w.double(), atol=tolerance, rtol=tolerance, equal_nan=True)
        for g, w in zip(got, want, strict=True)
    )


def _gradients(function: Callable, inputs: tuple) -> tuple:
    """∂(Σ outputs · fixed weights)/∂input for every floating-point input."""
    given = tuple(v.clone().requires_grad_() if _is_float(v) else v for v in inputs)
    with torch.enable_grad():  # whatever an earlier call has switched off
        total = sum((v * torch.linspace(0.5, 1.5, v.numel()).view_as(v)).sum() for v in _tuple(function(*given)))
    if total.requires_grad:
        total.backward()
    return tuple(v.grad if isinstance(v, Tensor) else None for v in given)


def _difference(names: Sequence[str], got: tuple, want: tuple, tolerance: float) -> str:
    """Where the first wrong output differs most, in a sentence."""
    for name, g, w in zip(names, got, want, strict=True):
        if not _equal((g,), (w,), tolerance):
            gap = (g.double() - w.double()).abs()
            place = tuple(int(i) for i in torch.unravel_index(gap.argmax(), gap.shape))
            where = f"{name} at [{', '.join(map(str, place))}]" if place else name
            return f"{where}: {g[place].item():.6g}; expected {w[place].item():.6g}."
    return "The numbers differ from the library's."


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
