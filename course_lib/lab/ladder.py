"""The rungs that an answer climbs, from cheap to deep; the first that gives way explains.

A `Ladder` compares an answer with the library's piece on some cases. Its rungs have names, so that an exercise can put
one of its own before or after another, or leave one out. Slips are the mistakes that people make, most of them written
as `edits` of the library's own source: where an answer's results equal a slip's, the slip's sentence is said.
"""

import contextlib
import copy
import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Sequence
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_lib import runtime
from course_lib.lab.grading import Check, Wrong, describe

Slip = tuple[Callable, str]


class Edit:
    """The library's piece with some of its text changed: a mistake, as people make it. Made when first called.

    It may use what the piece's file has, and what every notebook has: torch, nn, F.
    """

    def __init__(self, reference: Callable, changes: Sequence[tuple[str, str]]):
        self.reference, self.changes = reference, changes

    @cached_property
    def function(self) -> Callable:
        names = {"torch": torch, "nn": nn, "F": nn.functional, **vars(sys.modules[self.reference.__module__])}
        exec(self.changed(textwrap.dedent(inspect.getsource(self.reference))), names)
        return names[self.reference.__name__]

    def changed(self, text: str) -> str:
        """The text with all changes made."""
        for old, new in self.changes:
            if text.count(old) != 1:
                name = self.reference.__name__
                raise ValueError(f"Expected {old!r} once in the source of {name}; it is there {text.count(old)} times.")
            text = text.replace(old, new)
        return text

    def __call__(self, *arguments: Any) -> Any:
        return self.function(*arguments)


def edits(reference: Callable, table: str) -> list[Slip]:
    """Slips as edits of the reference's source, one a row: ``old → new · the sentence that helps``.

    Several changes of one slip are parted by `` ; ``. A row may run over several lines, if those of its sentence begin
    with ``·`` too.
    """
    rows: list[tuple[str, str]] = []
    for line in filter(None, map(str.strip, table.splitlines())):
        change, _, sentence = line.partition("·")
        if change and (not rows or rows[-1][1]):
            rows.append((change, sentence.strip()))
        else:
            before, said = rows[-1]
            rows[-1] = (f"{before} {change}".strip(), f"{said} {sentence.strip()}".strip())
    return [(Edit(reference, [_change(part) for part in changes.split(" ; ")]), sentence) for changes, sentence in rows]


def _change(text: str) -> tuple[str, str]:
    old, arrow, new = text.partition("→")
    if not arrow or not old.strip():
        raise ValueError(f"Expected a change as 'old → new'; got {text.strip()!r}.")
    return old.strip(), new.strip()


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

    device.prepare = lambda: torch.arange(1, device="meta") / 1  # the first time torch imports some 800 modules for it
    return device


class Ladder(Sequence):
    """The checks of an answer that returns one or several tensors, numbers, texts or lists.

    Tensors: signature → types → repeatable → shapes → dtypes → devices → finite → inputs_kept → properties → numbers →
    gradients. A function that is not ``differentiable`` (a measurement) may return its numbers in any floating-point
    type, on any device, without a gradient. Where no output is a tensor: signature → types → repeatable →
    inputs_kept → properties → numbers; a tensor of one number serves as a number.

    ``cases`` are the arguments of each call; their sizes should differ, so that fixed ones show, and one should leave
    out what has a default. ``returns`` names the outputs. ``slips`` pairs the wrong functions that people write with
    the sentence that helps (see `edits`). ``told`` puts the arguments of a case into words, for a difference that no
    slip explains. ``compared_as`` is what a tensor becomes before it is compared: its softmax, where −∞ and −10⁹ are
    both right. The panel shows what is compared, and calls it as the function is called.
    """

    def __init__(
        self,
        reference: Callable,
        cases: Sequence[tuple],
        returns: Sequence[str],
        slips: Sequence[Slip] = (),
        properties: Sequence[Check] = (),
        differentiable: bool = True,
        tolerance: float = 1e-5,
        told: Callable[..., str] | None = None,
        compared_as: Callable[[Tensor], Tensor] | None = None,
    ):
        self.reference, self.cases, self.returns, self.slips = reference, cases, returns, slips
        self.differentiable, self.tolerance, self.compared_as = differentiable, tolerance, compared_as
        self.told = told or self.arguments_told
        self.arguments = list(inspect.signature(reference).parameters)
        tensors = any(isinstance(value, Tensor) for value in self.outputs_of(reference, cases[0]))
        gradients = differentiable and tensors
        rungs = [("signature", signature_check(reference)), ("types", self.types), ("repeatable", self.repeatable)]
        rungs += [("shapes", self.shapes), ("dtypes", self.dtypes)] if tensors else []
        rungs += [("devices", self.devices)] if gradients else []
        rungs += [("finite", self.finite)] if tensors else []
        rungs += [("inputs_kept", self.inputs_kept)]
        rungs += [(check.__name__, self.explained(check)) for check in properties]
        rungs += [("numbers", self.numbers)] + ([("gradients", self.gradients)] if gradients else [])
        self.rungs = rungs

    def __len__(self) -> int:
        return len(self.rungs)

    def __getitem__(self, index):
        return [check for _, check in self.rungs][index]

    def extended(self, *checks: Check, before: str | None = None, after: str | None = None) -> "Ladder":
        """A ladder with more rungs: before or after the one named; without a name, at the end."""
        names = [name for name, _ in self.rungs]
        place = names.index(before) if before else names.index(after) + 1 if after else len(names)
        longer = copy.copy(self)
        longer.rungs = [*self.rungs[:place], *((check.__name__, check) for check in checks), *self.rungs[place:]]
        return longer

    def without(self, *names: str) -> "Ladder":
        """A ladder without the rungs named."""
        unknown = set(names) - {name for name, _ in self.rungs}
        if unknown:
            raise ValueError(f"There is no rung {', '.join(sorted(unknown))}.")
        shorter = copy.copy(self)
        shorter.rungs = [(name, check) for name, check in self.rungs if name not in names]
        return shorter

    # --- the rungs ---

    def types(self, answer: Callable) -> None:
        self.outputs(answer, self.cases[0])

    def repeatable(self, answer: Callable) -> None:
        first, second = (self.outputs_of(answer, self.cases[0]) for _ in range(2))
        if not equal_outputs(first, second, self.tolerance):
            raise Wrong(
                "Two calls with the same inputs gave different results: is something random, or kept between calls "
                "(a global variable, a list as default argument)?"
            )

    def shapes(self, answer: Callable) -> None:
        for inputs in self.cases:
            self.outputs(answer, inputs)

    def dtypes(self, answer: Callable) -> None:
        got, want = self.outputs(answer, self.cases[0]), self.outputs_of(self.reference, self.cases[0])
        for name, value, wanted in zip(self.returns, got, want, strict=True):
            if (
                isinstance(wanted, Tensor)
                and value.dtype != wanted.dtype
                and (self.differentiable or not _is_float(value))
            ):
                raise Wrong(f"{name} must be {wanted.dtype}; got {value.dtype}.")

    def devices(self, answer: Callable) -> None:
        """Where the lesson runs on a GPU, the answer has to."""
        device = runtime.device()
        if device.type == "cpu":
            return
        try:
            result = self.outputs_of(answer, tuple(v.to(device) if isinstance(v, Tensor) else v for v in self.cases[0]))
            stayed = all(v.device.type == device.type for v in result)
        except (RuntimeError, TypeError, NotImplementedError):
            stayed = False
        if not stayed:
            raise Wrong(
                f"It works on the CPU, but not on {device.type}: is a tensor made on a fixed device? "
                "Use `torch.zeros_like(…)`, `x.new_zeros(…)` or `device=x.device`."
            )

    def finite(self, answer: Callable) -> None:
        for inputs in self.cases:
            for name, value in zip(self.returns, self.outputs(answer, inputs), strict=True):
                if isinstance(value, Tensor) and not value.isfinite().all():
                    raise Wrong(
                        self.slip_made(answer)
                        or f"{name} holds {'NaN' if value.isnan().any() else 'an infinity'}: "
                        "is something divided by 0, or is the root or the logarithm of a negative number taken?"
                    )

    def inputs_kept(self, answer: Callable) -> None:
        given = copied(self.cases[0])
        answer(*given)
        for name, before, after in zip(self.arguments, self.cases[0], given, strict=False):
            if not _same(before, after):
                kind = "tensor" if isinstance(before, Tensor) else type(before).__name__
                ways = "`|=`, no `name.add(…)`" if isinstance(before, set) else "`+=`, no `name[...] =`"
                raise Wrong(f"It changes its input {name} in place: make a new {kind} (no {ways}).")

    def explained(self, check: Check) -> Check:
        """The check, with the slip's sentence where there is one."""

        def property(answer: Callable) -> None:
            try:
                check(answer)
            except Wrong as error:
                found = None
                with contextlib.suppress(Exception):
                    found = self.differing(answer)
                raise Wrong(self.slip_made(answer) or str(error), *(found[:1:-1] if found else ())) from None

        return property

    def numbers(self, answer: Callable) -> None:
        if found := self.differing(answer):
            raise Wrong(self.slip_made(answer) or self.difference(*found), *found[:1:-1])

    def gradients(self, answer: Callable) -> None:
        for inputs in self.cases:
            want, got = (self.gradients_of(function, inputs) for function in (self.reference, answer))
            for name, g, w in zip(self.arguments, got, want, strict=False):
                if w is not None and (g is None or not torch.allclose(g, w, atol=1e-4, rtol=1e-3)):
                    found = "no gradient reaches" if g is None else "a wrong gradient reaches"
                    raise Wrong(
                        f"The numbers are right, but {found} {name}: "
                        "avoid `.data`, `.detach()`, `.item()`, `torch.no_grad()` and `torch.tensor(…)` on the way."
                    )

    # --- what they share ---

    def outputs(self, answer: Callable, inputs: tuple) -> tuple[Tensor, ...]:
        """What the answer returns, its types and shapes compared with the reference's."""
        result, want = answer(*copied(inputs)), self.outputs_of(self.reference, inputs)
        got, several = self.parted(result), len(want) > 1
        if len(got) != len(want) or result is None or isinstance(result, tuple) > several:
            raise Wrong(f"Expected {_and(self.returns)} to be returned; got {describe(result)}.")
        for name, value, wanted in zip(self.returns, got, want, strict=True):
            if isinstance(wanted, Real) and not _is_number(value):
                raise Wrong(f"Expected {name} to be a number; got {describe(value)}.")
            if not isinstance(wanted, Real) and not isinstance(value, type(wanted)):
                raise Wrong(f"Expected {name} to be {describe(wanted)}; got {describe(value)}.")
            if not isinstance(wanted, Tensor):
                continue
            if value.shape != wanted.shape:
                help_ = self.slip_made(answer)
                if not help_ and value.dim() == 2 and value.shape == wanted.shape[::-1]:
                    help_ = "Rows and columns are swapped."
                if not help_ and inputs is not self.cases[0]:
                    help_ = "A call with other sizes went well: are sizes fixed, or is something squeezed?"
                expected = f"Expected {name} of shape {tuple(wanted.shape)}; got {tuple(value.shape)}."
                raise Wrong(f"{expected} {help_}".strip())
        return got

    def differing(self, answer: Callable) -> tuple | None:
        """The first output that differs: the inputs, its name, what came, what was expected."""
        for inputs in self.cases:
            got, want = self.outputs(answer, inputs), self.outputs_of(self.reference, inputs)
            for name, value, wanted in zip(self.returns, got, want, strict=True):
                if not equal_outputs((value,), (wanted,), self.tolerance):
                    return inputs, name, value, wanted
        return None

    def slip_made(self, answer: Callable) -> str:
        """The sentence of the slip that gives the same wherever the answer runs: all, or the first wrong output."""
        ran = []
        for inputs in self.cases:
            with contextlib.suppress(Exception):
                ran.append((inputs, self.outputs_of(answer, inputs)))
        with contextlib.suppress(Exception):
            cases, got = zip(*ran, strict=True)
            want = self.results(self.reference, cases)
            wrong = next(k for k in range(len(self.returns)) if not self.equal(got, want, slice(k, k + 1)))
            for part in (slice(None), slice(wrong, wrong + 1)):
                for slip, sentence in self.slips:
                    with contextlib.suppress(Exception):
                        if self.equal(got, self.results(slip, cases), part):
                            return sentence
        return ""

    def difference(self, inputs: tuple, name: str, got: Any, want: Any) -> str:
        """Where an output differs, in a sentence."""
        if isinstance(want, Tensor):
            return _difference(name, got, want)
        where = f"For {self.told(*inputs)}"
        if isinstance(want, str):
            pairs = zip(got, want, strict=False)
            place = next((i for i, (g, w) in enumerate(pairs) if g != w), min(len(got), len(want)))
            want, got = (f"…{text[max(0, place - 12) : place + 12]!r}…" for text in (want, got))
            return f"{where}, from character {place} on: expected {want}, got {got}."
        want, got = (f"{float(v):.6g}" if isinstance(want, Real) else f"{v}" for v in (want, got))
        return f"{where} {name} must be {want}; got {got}."

    def arguments_told(self, *inputs: Any) -> str:
        return ", ".join(f"{name} = {value!r}" for name, value in zip(self.arguments, inputs, strict=False))

    def results(self, function: Callable, cases: Sequence[tuple] | None = None) -> list[tuple]:
        return [self.outputs_of(function, inputs) for inputs in cases or self.cases]

    def outputs_of(self, function: Callable, inputs: tuple) -> tuple:
        """What it returns for a copy of the inputs, as a tuple."""
        return self.parted(function(*copied(inputs)))

    def gradients_of(self, function: Callable, inputs: tuple) -> tuple:
        """∂(Σ outputs · fixed weights)/∂input for every floating-point input."""
        given = tuple(v.clone().requires_grad_() if _is_float(v) else v for v in inputs)
        with torch.enable_grad():  # whatever an earlier call has switched off
            outputs = self.parted(function(*given))
            total = sum((v * torch.linspace(0.5, 1.5, v.numel()).view_as(v)).sum() for v in outputs)
        if total.requires_grad:
            total.backward()
        return tuple(v.grad if isinstance(v, Tensor) else None for v in given)

    def parted(self, result: Any) -> tuple:
        """The outputs. Several may come as a tuple, as a list, or (numbers) in one tensor."""
        row = isinstance(result, tuple | list) or (isinstance(result, Tensor) and result.dim() == 1)
        several = len(self.returns) > 1 and row and len(result) == len(self.returns)
        outputs = tuple(result) if several else (result,)
        return tuple(self.compared_as(v) if self.compared_as and isinstance(v, Tensor) else v for v in outputs)

    def equal(self, got: list[tuple], want: list[tuple], part: slice = slice(None)) -> bool:
        return all(equal_outputs(g[part], w[part], self.tolerance) for g, w in zip(got, want, strict=True))


class ModuleLadder(Ladder):
    """The checks of an answer that is a class of modules.

    a class → its arguments → the reference's parameters → arguments of ``forward`` → as `Ladder`, whose ``options`` it
    takes. ``cases`` are pairs: the arguments of the class, the inputs of ``forward``. The answer is built, set to
    evaluation and called with random weights of our choice: it is checked as a function of (arguments, inputs,
    weights). Slips are edits of the class, or written as such a function.
    """

    def __init__(
        self, reference: type[nn.Module], cases: Sequence[tuple[tuple, tuple]], returns: Sequence[str], **options: Any
    ):
        self.module, self.calls = reference, cases
        self.shapes_wanted = [
            {n: p.shape for n, p in reference(*arguments).named_parameters()} for arguments, _ in cases
        ]
        generator = torch.Generator().manual_seed(0)
        flat = [
            (*arguments, *inputs, *(torch.randn(shape, generator=generator) for shape in shapes.values()))
            for (arguments, inputs), shapes in zip(cases, self.shapes_wanted, strict=True)
        ]
        super().__init__(self.as_function(reference), flat, returns, **options)
        first = [("is_class", self.is_class), ("signature", signature_check(reference))]
        first += [("parameters", self.parameters), ("forward", self.forward)]
        self.rungs = first + [(name, self.of_function(check)) for name, check in self.rungs[1:]]

    def results(self, function: Callable, cases: Sequence[tuple] | None = None) -> list[tuple]:
        return super().results(self.as_function(function) if isinstance(function, Edit) else function, cases)

    def of_function(self, check: Check) -> Check:
        return lambda answer: check(self.as_function(answer))

    def as_function(self, answer: type[nn.Module]) -> Callable:
        arguments, inputs = self.calls[0]
        taken = list(inspect.signature(self.module).parameters)[: len(arguments)]
        given = list(inspect.signature(self.module.forward).parameters)[1 : 1 + len(inputs)]
        weights = self.shapes_wanted[0]

        def function(*values: Any) -> Any:
            first, rest = values[: len(taken)], values[len(taken) + len(given) :]
            inputs = values[len(taken) : len(taken) + len(given)]
            module = answer(*first).eval()
            return torch.func.functional_call(module, dict(zip(weights, rest, strict=True)), inputs)

        names = [*taken, *given, *(parameter.replace(".", "_") for parameter in weights)]
        positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        function.__signature__ = inspect.Signature([inspect.Parameter(n, positional) for n in names])
        return function

    def is_class(self, answer: Any) -> None:
        name = self.module.__name__
        if isinstance(answer, nn.Module):
            raise Wrong(f"Expected the class `{name}` itself; got an object made from it: leave out the brackets.")
        if not (isinstance(answer, type) and issubclass(answer, nn.Module)):
            raise Wrong(f"Expected a class: `class {name}(nn.Module)`, with `__init__` and `forward`.")

    def parameters(self, answer: type[nn.Module]) -> None:
        for (arguments, _), shapes in zip(self.calls, self.shapes_wanted, strict=True):
            got = {n: p.shape for n, p in answer(*copied(arguments)).named_parameters()}
            missing, extra = [n for n in shapes if n not in got], [n for n in got if n not in shapes]
            if extra and not missing and all(n.endswith(".bias") for n in extra):
                raise Wrong(f"{extra[0]} is one too many: `nn.Linear(…, bias=False)` makes a layer without a bias.")
            if missing or extra:
                found = ", ".join(got) or "none (are the layers assigned to `self`?)"
                raise Wrong(f"Expected the parameters {', '.join(shapes)}; got {found}.")
            for n, shape in shapes.items():
                if got[n] != shape:
                    raise Wrong(f"Expected {n} of shape {tuple(shape)}; got {tuple(got[n])}: look at the sizes.")

    def forward(self, answer: type[nn.Module]) -> None:
        if answer.forward is nn.Module.forward:
            raise Wrong("It has no method `forward`: that is what runs when the module is called.")
        try:
            signature_check(self.module.forward)(answer.forward)
        except Wrong as error:
            raise Wrong(f"`forward`: {error}") from None


def copied(inputs: Sequence) -> Sequence:
    """The inputs with tensors, lists, sets, dicts and modules of their own."""
    return type(inputs)(_copy(value) for value in inputs)


def _copy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, list):
        return copied(value)
    return copy.deepcopy(value) if isinstance(value, set | dict | nn.Module) else value


def equal_outputs(got: tuple, want: tuple, tolerance: float) -> bool:
    """Whether all outputs have the same shapes and, up to rounding, the same numbers."""
    return len(got) == len(want) and all(_equal(g, w, tolerance) for g, w in zip(got, want, strict=True))


def _equal(got: Any, want: Any, tolerance: float) -> bool:
    if isinstance(want, Real):
        return _is_number(got) and math.isclose(float(got), float(want), rel_tol=tolerance, abs_tol=tolerance)
    if not isinstance(want, Tensor):
        return type(got) is type(want) and got == want
    return (
        isinstance(got, Tensor)
        and got.shape == want.shape
        and torch.allclose(got.double(), want.double(), atol=tolerance, rtol=tolerance, equal_nan=True)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) or (isinstance(value, Tensor) and value.numel() == 1)


def _same(before: Any, after: Any) -> bool:
    """Whether a tensor, a list, a set or a dict is as it was."""
    if isinstance(before, list):
        return len(before) == len(after) and all(map(_same, before, after))
    if isinstance(before, set | dict):
        return before == after
    return not isinstance(before, Tensor) or (isinstance(after, Tensor) and torch.equal(before, after))


def _is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _difference(name: str, got: Tensor, want: Tensor) -> str:
    """Where an output differs most, in a sentence."""
    gap = (got.double() - want.double()).abs()
    place = tuple(map(int, np.unravel_index(int(gap.argmax()), gap.shape)))  # torch's own imports SymPy
    where = f"{name} at [{', '.join(map(str, place))}]" if place else name
    return f"{where}: {got[place].item():.6g}; expected {want[place].item():.6g}."


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
