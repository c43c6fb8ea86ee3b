"""Exercises of lesson 01: two cells, weights that latch, the flow of gradients, a radius, clipping and its control."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import permutations
from numbers import Real

import torch
from torch import Tensor, nn

from course_lib.lab.grading import Exercise, Wrong, describe
from course_lib.lab.ladder import Ladder, Slip, edits, signature_check
from course_lib.lessons.rnn_limits import latch_weights, scaled_to_keep
from course_lib.measure import gradient_flow
from course_lib.models.recurrent import elman_step, lstm_step
from course_lib.training import clip_gradients

SIZES = ((3, 4, 5), (1, 3, 2), (7, 2, 6))  # batch, d_in, d_hidden: all different, so that a wrong or fixed axis shows

TRANSPOSE = (
    "shapes cannot be multiplied",
    "The rows of x and h are the batch: multiply them from the right by the transposes, `x @ W.T` and `h @ U.T`.",
)
BATCH, D_IN, D = SIZES[0]  # of the call in which a wrong product stops
ENTRY_BY_ENTRY = "Neither of these two is a weight matrix: ⊙ multiplies entry by entry, `*`, not `@`."
ENTRIES = [(f"({BATCH}x{D} and {BATCH}x{columns})", ENTRY_BY_ENTRY) for columns in (D, BATCH)]
CHUNK = (
    "values to unpack",
    "`chunk(n, dim=-1)` makes n blocks of the last dimension; without `dim`, of the batch. `split` takes their size.",
)


def _exchanged(gates: int) -> list[tuple[str, str]]:
    """Crashes of a cell in which x meets U, or h meets W."""
    return [
        (f"({BATCH}x{D_IN} and {D}x{gates * D})", "Here x is multiplied by U: W belongs to x, U belongs to h."),
        (f"({BATCH}x{D} and {D_IN}x{gates * D})", "Here h is multiplied by W: W belongs to x, U belongs to h."),
    ]


def _cell_cases(gates: int, states: int = 1) -> list[tuple]:
    """Random arguments of a cell: x, the states, W, U, b."""
    cases = []
    for seed, (batch, d_in, d) in enumerate(SIZES):
        shapes = [(batch, d_in), *[(batch, d)] * states, (gates * d, d_in), (gates * d, d), (gates * d,)]
        generator = torch.Generator().manual_seed(seed)
        cases.append(tuple(torch.randn(shape, generator=generator) for shape in shapes))
    return cases


def _other_orders(reference: Callable, order: str, *prefixes: str) -> list[Slip]:
    """A slip for each wrong order of the blocks."""

    def named(prefix: str, letters: Iterable[str]) -> str:
        return ", ".join(prefix + letter for letter in letters)

    rows = [
        " ; ".join(f"{named(prefix, order)} = → {named(prefix, other)} =" for prefix in prefixes)
        + f" · The blocks are read in the order {named('', other)}; PyTorch stacks {named('', order)}."
        for other in permutations(order)
        if "".join(other) != order
    ]
    return edits(reference, "\n".join(rows))


# --- 1.1 ---

elman = Exercise(
    id="1.1",
    title="Elman step",
    reference=elman_step,
    checks=Ladder(
        elman_step,
        _cell_cases(gates=1),
        returns=["h"],
        slips=edits(
            elman_step,
            """
            torch.tanh(x @ W.T + h @ U.T + b) → x @ W.T + h @ U.T + b
            · This is the sum without its tanh: squash it at the end.
            U.T + b → U.T · The bias b is missing from the sum.
            + h @ U.T → · The old state h does not enter: add `h @ U.T`.
            x @ W.T + → · The input x does not enter: add `x @ W.T`.
            U.T → U · U is used without its transpose: `h @ U.T`.
            torch.tanh → torch.sigmoid · This is a sigmoid; the cell uses tanh.
            torch.tanh → torch.relu · This is a ReLU; the cell uses tanh.
            + h @ → ) + torch.tanh(h @ · The tanh is taken of each part; take it once, of the whole sum.
            U.T + b) → U.T) + b · The bias b belongs inside the tanh.
            W.T + h @ U.T + b) → W.T) + h @ U.T + b · The tanh is taken of the input's part alone; take it of the sum.
            torch.tanh(x @ W.T + h @ U.T + b) → h · This is the old state as it came in: compute the new one.
            torch.tanh → h + torch.tanh · The new state replaces the old one; do not add the old one to it.
            """,
        ),
    ),
    crashes=[*_exchanged(gates=1), TRANSPOSE],
    nudge="Three terms are added, then squashed once. Which matrix meets x, which meets h? Their shapes decide.",
    sketch="""
        from the input:  x times W transposed      (batch, d_hidden)
        from the state:  h times U transposed      (batch, d_hidden)
        add both and b; return the tanh of the sum
        """,
)

# --- 1.2 ---


CANDIDATE = (
    "h comes from the candidate instead of the new cell state: h' = o ⊙ tanh(c'). "
    "(The slide in S4 has this slip: it prints tanh of the candidate.)"
)
lstm = Exercise(
    id="1.2",
    title="LSTM step",
    reference=lstm_step,
    checks=Ladder(
        lstm_step,
        _cell_cases(gates=4, states=2),
        returns=["h", "c"],
        slips=[
            *edits(
                lstm_step,
                f"""
                torch.tanh(c) → torch.tanh(torch.tanh(g)) · {CANDIDATE}
                torch.tanh(c) → torch.tanh(g) · {CANDIDATE}
                c = torch.sigmoid(f) → new = torch.sigmoid(f) ; return h, c → return h, new
                · h comes from the old cell state: use the new one, c'.
                torch.tanh(c) → c · h is missing the tanh of the cell state: o ⊙ tanh(c').
                return h, c → return c, h · The two results are in the wrong order: return h, then c.
                return h, c → return h, h · Both results are h: the second must be the new cell state c.
                return h, c → return c, c · Both results are c: the first must be the new h.
                torch.tanh(g) → torch.sigmoid(g) · The candidate g is squashed by tanh, not by the sigmoid.
                torch.tanh(g) → g · The candidate g is missing its tanh.
                torch.sigmoid(f) * c → c · The forget gate f is not used: it scales the old cell state.
                torch.sigmoid(i) * → · The input gate i is not used: it scales the candidate g.
                torch.sigmoid(i) → (1 - torch.sigmoid(f))
                · The candidate is scaled by 1 − f; here it has a gate of its own, i.
                torch.sigmoid(f) * c + → · The old cell state c does not enter: add f ⊙ c.
                torch.sigmoid(i) → i ; torch.sigmoid(f) → f ; torch.sigmoid(o) → o
                · The gates i, f and o are missing their sigmoid: they must lie between 0 and 1.
                U.T + b → U.T · The bias b is missing from the sum.
                + h @ U.T → · The old state h does not enter: add `h @ U.T`.
                """,
            ),
            *_other_orders(lstm_step, "ifgo", ""),
        ],
    ),
    crashes=[*_exchanged(gates=4), *ENTRIES, TRANSPOSE, CHUNK],
    nudge="Compute one sum for all four blocks at once, cut it with `chunk(4, dim=-1)`, and squash each its own way.",
    sketch="""
        sum = x times W transposed + h times U transposed + b      (batch, 4 · d_hidden)
        i, f, g, o = the four chunks of it along the last dimension
        sigmoid for i, f, o; tanh for g
        new c: what the forget gate keeps of the old c, plus what the input gate lets in of g
        new h: the output gate times tanh of the NEW c
        return h, c
        """,
)

# --- 1.3 ---

BITS = (1, 3, 2)
ORDER = "ifgo"


def _three_tensors(answer: Callable) -> None:
    for bits in BITS:
        got = answer(bits)
        if isinstance(got, tuple | list) and any(type(part).__module__ == "numpy" for part in got):
            raise Wrong("These are NumPy arrays; W, U and b are tensors: `torch.zeros`, `torch.eye`, `torch.tensor`.")
        if isinstance(got, tuple | list) and len(got) == 3 and any(isinstance(part, tuple | list) for part in got):
            parts = ", ".join(f"{name} is {describe(part)}" for name, part in zip("WUb", got, strict=True))
            raise Wrong(f"Three tensors are asked for; {parts}. `torch.tensor(…)` makes a tensor of a list.")
        if isinstance(got, tuple | list) and len(got) == 3 and not all(isinstance(part, Tensor) for part in got):
            parts = ", ".join(f"{name} is {describe(part)}" for name, part in zip("WUb", got, strict=True))
            raise Wrong(f"Three tensors are asked for; {parts}.")
        if not isinstance(got, tuple | list) or len(got) != 3:
            raise Wrong(f"Expected three tensors to be returned, W, U and b; got {describe(got)}.")
        shapes = {"W": (4 * bits, bits + 1), "U": (4 * bits, bits), "b": (4 * bits,)}
        for (name, shape), part in zip(shapes.items(), got, strict=True):
            if part.shape != shape:
                raise Wrong(f"With {bits} bits {name} must have the shape {shape}; got {tuple(part.shape)}.")
            if part.dtype != torch.float32:
                raise Wrong(f"Inputs are torch.float32, and {name} is {part.dtype}: a product needs one type.")


def _read(answer: Callable, bits: int, steps: Sequence[tuple[Tensor, bool]]) -> tuple[Tensor, Tensor]:
    """h and c, (batch, bits), after steps of (values (batch, bits), whether they are written), from zeros."""
    W, U, b = answer(bits)
    h = c = torch.zeros(len(steps[0][0]), bits)
    for values, write in steps:
        h, c = lstm_step(_input(values, write), h, c, W, U, b)
    return h, c


def _input(values: Tensor, write: bool) -> Tensor:
    return torch.cat([values, torch.full((len(values), 1), float(write))], dim=-1)


def _coins(bits: int, seed: int) -> Tensor:
    """Random values, +1 or −1: (16, bits)."""
    return torch.randint(2, (16, bits), generator=torch.Generator().manual_seed(seed)) * 2.0 - 1


def _kept(h: Tensor, values: Tensor) -> bool:
    return bool((h * values > 0.5).all())


def _writes(answer: Callable) -> None:
    for bits in BITS:
        values = _coins(bits, 0)
        h, _ = _read(answer, bits, [(values, True)])
        if _kept(h, values):
            continue
        if _kept(-h, values):
            raise Wrong("What is shown has the wrong sign: after +1 was written, h must be positive.", values, h)
        if h.isnan().any():
            raise Wrong("After a write h is NaN: is a weight infinite? ∞ · 0 is no number; large numbers will do.")
        if bits > 1 and ((h * values > 0.5).any() or (h.std(dim=1) < 1e-4).all()):
            raise Wrong(
                f"One bit can be written, but of {bits} some are wrong right after a write: each needs its own row and "
                "its own column, and `write` is the last column.",
                values,
                h,
            )
        raise Wrong(
            "Right after a write, h must be above 0.5 where +1 was written and below −0.5 where −1 was. "
            + _weakest(answer, bits, values),
            values,
            h,
        )


def _weakest(answer: Callable, bits: int, values: Tensor) -> str:
    """What keeps a first write of the values from being shown."""
    W, _, b = answer(bits)
    i, _, g, o = (_input(values, True) @ W.T + b).chunk(4, dim=-1)
    i, g, o = torch.sigmoid(i).min().item(), (torch.tanh(g) * values).min().item(), torch.sigmoid(o).min().item()
    for name, gate in (("input", i), ("output", o)):
        if gate < 0.5:
            return (
                f"But then the {name} gate is as low as {gate:.2g}: open it. (The blocks come in the order i, f, g, o.)"
            )
    if g < 1e-3:
        return (
            "But then the candidate does not follow the values: each entry must be positive for +1 and negative for "
            "−1. (The blocks come in the order i, f, g, o.)"
        )
    if min(i, o) < 0.9:
        return (
            f"But then the input gate is at {i:.2g}, the output gate at {o:.2g}, where they are lowest. A sigmoid is "
            "near 1 only far above 0: are the weights large?"
        )
    return (
        f"The gates are open, but the candidate is only {g:.2g} away from 0, and h shows the tanh of that. A tanh is "
        "near 1 or −1 only far from 0: is the weight of each value large?"
    )


def _overwrites(answer: Callable) -> None:
    for bits in BITS:
        steps = [(_coins(bits, seed), True) for seed in range(12)]
        h, _ = _read(answer, bits, steps)
        if not _kept(h, steps[-1][0]):
            raise Wrong(
                "A first write works, but after twelve in a row h is not the last one. On every write the new value "
                "must come in and the old value must go, or the two are added. Which gate lets it go?",
                steps[-1][0],
                h,
            )


def _keeps(answer: Callable) -> None:
    for bits in BITS:
        values = _coins(bits, 0)
        h, c = _read(answer, bits, [(values, True)] + [(torch.zeros(16, bits), False)] * 200)
        if not _kept(h, values) and _kept(torch.tanh(c), values):
            raise Wrong(
                "After 200 steps without a write the cell still holds the bits, but h does not show them: the output "
                "gate must be open at every step, not on a write alone.",
                values,
                h,
            )
        if not _kept(h, values):
            raise Wrong(
                "It writes, but after 200 steps without a write it has forgotten, though the inputs were 0: how near "
                "to 1 is the forget gate? It acts 200 times.",
                values,
                h,
            )
        h, _ = _read(answer, bits, [(values, True)] + [(_coins(bits, seed), False) for seed in range(1, 201)])
        if not _kept(h, values):
            raise Wrong(
                "It keeps the bits while the inputs are 0, but not among random values that are not to be written: the "
                "input gate must be shut, as near to 0 as you can.",
                values,
                h,
            )
        h, _ = _read(answer, bits, [(values, True)] + [(-values, False)] * 200)
        if not _kept(h, values):
            raise Wrong(
                "It keeps the bits among random values, but 200 times the opposite value, never written, wears them "
                "off: the input gate must be shut tighter.",
                values,
                h,
            )


def _latches(answer: Callable) -> bool:
    try:
        for check in (_writes, _overwrites, _keeps):
            check(answer)
    except Wrong:
        return False
    return True


def _rearranged(answer: Callable, order: Sequence[str], write_first: bool) -> Callable:
    """The answer, if its blocks stand in that order, and `write` perhaps in the first column, put as they are read."""

    def weights(bits: int) -> list[Tensor]:
        blocks = [part.unflatten(0, (4, bits)) for part in answer(bits)]
        W, U, b = (part[[order.index(gate) for gate in ORDER]].flatten(0, 1) for part in blocks)
        return [W.roll(-1, dims=1) if write_first else W, U, b]

    return weights


def _arranged(answer: Callable) -> None:
    """Weights that would do in another arrangement get told so: nothing else is wrong with them."""
    if _latches(answer):
        return
    for write_first in (False, True):
        for order in permutations(ORDER):
            if _latches(_rearranged(answer, order, write_first)):
                found = ["with `write` as the first column of W"] if write_first else []
                found += [f"with the blocks in the order {', '.join(order)}"] if "".join(order) != ORDER else []
                asked = ["an input has the values first and `write` last"] if write_first else []
                asked += [f"the blocks come in the order {', '.join(ORDER)}"] if "".join(order) != ORDER else []
                raise Wrong(f"These weights would do {' and '.join(found)}; but {', and '.join(asked)}.")


latch = Exercise(
    id="1.3",
    title="an LSTM set by hand",
    reference=latch_weights,
    checks=[signature_check(latch_weights), _three_tensors, _arranged, _writes, _overwrites, _keeps],
    crashes=[
        ("can't multiply sequence", "W, U and b are tensors; what is multiplied here is a list."),
        ("must match", "Two parts have different sizes: a block has `bits` rows, and W has bits + 1 columns."),
    ],
    nudge="Where should each gate be when write is 1, and where when it is 0? Then: which weight, which bias?",
    sketch="""
        U is all zeros: nothing depends on the old h
        i: a large negative bias, and a weight twice as large on `write`: shut, open on a write
        f: the other way round: open, shut on a write
        g: a large weight from each value to its own entry
        o: a large bias: always open
        """,
)

# --- 1.4 ---


def step(x: Tensor, state: Tensor) -> Tensor:
    """The step that answers are tried on: it mixes the entries of the state."""
    return torch.tanh(0.3 * x.mean(dim=-1, keepdim=True) + 0.8 * state.roll(1, -1) + 0.4 * state)


def _flow_cases() -> list[tuple]:
    cases = []
    for seed, (length, (batch, d_in, d)) in enumerate(zip((6, 3, 1), SIZES, strict=True)):
        generator = torch.Generator().manual_seed(seed)
        xs = torch.randn(length, batch, d_in, generator=generator)
        cases.append((step, xs, torch.randn(batch, d, generator=generator)))
    return cases


def _ends_at_itself(answer: Callable) -> None:
    for step, xs, state in _flow_cases():
        norms, wanted = answer(step, xs, state), math.sqrt(state.numel())
        if abs(norms[-1].item() - wanted) > 1e-4:
            raise Wrong(
                f"The last entry must be {wanted:.3f}: the sum of the last state changes by 1 with each of its own "
                f"{state.numel()} numbers, and √{state.numel()} is the norm of that. Yours is {norms[-1].item():.3f}."
            )


flow = Exercise(
    id="1.4",
    title="gradient flow",
    reference=gradient_flow,
    checks=Ladder(
        gradient_flow,
        _flow_cases(),
        returns=["one norm for each state"],
        differentiable=False,
        slips=edits(
            gradient_flow,
            """
            in gradients] → in gradients[1:]] · The state you start from is missing: keep it too.
            in gradients] → in gradients[:-1]] · The last state itself is missing: keep it too.
            in xs: → in xs[1:]:
            · The first input is never read: does the loop start at 1? (The loop on the slides in S0 and S2 does.)
            in gradients] → in gradients[::-1]] · The order is turned round: the oldest state comes first.
            step(x, states[-1]) → step(states[-1], x) · The arguments of step are swapped: first x, then the state.
            states[-1].sum() → states[-1].mean() · This is the gradient of the mean of the last state; take its sum.
            states[-1].sum() → states[-1].norm() · This is the gradient of the norm of the last state; take its sum.
            states[-1].sum() → sum(s.sum() for s in states)
            · All states are summed; only the last one is differentiated.
            gradient.norm() → gradient.abs().sum()
            · This is the sum of the entries (or of their sizes); take the Euclidean norm.
            gradient.norm() → gradient.abs().max() · This is the largest absolute value; take the Euclidean norm.
            gradient.norm() → gradient.norm() ** 2 · This is the squared norm; take the root.
            state.detach() → torch.zeros_like(state) · It starts from zeros, not from the state given.
            gradient.norm() for gradient in gradients → state.norm() for state in states
            · These are the norms of the states; the gradients with respect to them are asked for.
            torch.autograd.grad(states[-1].sum(), states) → [
            torch.autograd.grad(after.sum(), before, retain_graph=True)[0]
            for before, after in zip(states, [*states[1:], states[-1]])]
            · Each gradient goes one step back only: from the last state it has to pass through all steps. Is there a
            · `detach` between them?
            """,
        ),
        properties=[_ends_at_itself],
    ),
    crashes=[
        (
            "does not require grad",
            "The first state needs `requires_grad_()`, and no step may `detach`, or no graph is recorded.",
        ),
        (
            "not have been used in the graph",
            "A tensor that you differentiate by did not lead to the last state: give `step` the very tensors you keep.",
        ),
        ("backward through the graph a second time", "Take all gradients in one call, or pass `retain_graph=True`."),
        ("grad can be implicitly created only for scalar", "Differentiate one number: the sum of the last state."),
        (
            "NoneType",
            "A gradient is None. After `backward` only leaves keep their .grad: use torch.autograd.grad, or "
            "retain_grad() on each state. Where torch.autograd.grad gives None, a `detach` cuts the chain to the last "
            "state.",
        ),
    ],
    nudge="Keep every state in a list. `torch.autograd.grad(number, list_of_tensors)` gives one gradient for each.",
    sketch="""
        states = [the first state, with requires_grad]
        for each x: append step(x, the newest state)
        gradients of the sum of the last state, with respect to all states at once
        return the norm of each gradient, stacked into one tensor
        """,
)

# --- 1.5 ---


def _keep_cases() -> list[tuple]:
    cases = []
    for seed, (d, share, steps) in enumerate([(5, 0.1, 50), (8, 0.5, 3), (3, 2.0, 20), (6, 0.9, 1)]):
        cases.append((torch.randn(d, d, generator=torch.Generator().manual_seed(seed)), share, steps))
    return cases


def _is_real(answer: Callable) -> None:
    if answer(*_keep_cases()[0]).is_complex():
        raise Wrong(
            "Yours is a complex matrix: eigenvalues are complex numbers, and of them only the size counts, `.abs()`."
        )


def _has_radius(answer: Callable) -> None:
    for U, share, steps in _keep_cases():
        got, wanted = torch.linalg.eigvals(answer(U, share, steps)).abs().max().item(), share ** (1 / steps)
        if not math.isclose(got, wanted, rel_tol=1e-4):
            raise Wrong(
                f"For a share of {share:g} after {steps} steps the spectral radius must be {wanted:.4g}; your "
                f"matrix has {got:.4g}."
            )


ROOT = "share ** (1 / steps)"
RADIUS = "torch.linalg.eigvals(U).abs().max()"
keep = Exercise(
    id="1.5",
    title="solve for the spectral radius",
    reference=scaled_to_keep,
    checks=Ladder(
        scaled_to_keep,
        _keep_cases(),
        returns=["U"],
        differentiable=False,
        slips=edits(
            scaled_to_keep,
            f"""
            {ROOT} → share / steps
            · The share is divided by the steps; each step multiplies, so ρ to the power of `steps` is the share.
            · (Without brackets, `share ** 1 / steps` divides, too: `share ** (1 / steps)`.)
            {ROOT} → share ** -steps · This is the share to the power of −steps; solve ρ to the power `steps` = share.
            {ROOT} → share**steps · This is the share to the power of the steps; solve ρ to that power = share.
            {ROOT} → 1 - (1 - share) / steps
            · The loss is dealt out evenly, as if each step took away the same; each step multiplies by the same.
            {ROOT} → share · This is the radius for a single step: which ρ, multiplied `steps` times, gives the share?
            {ROOT} → share ** (1 // steps) · `//` rounds down to a whole number, mostly 0: write `1 / steps`.
            {ROOT} → share ** (1 / (steps + 1)) · There are `steps` factors, not one more.
            {RADIUS} → torch.linalg.matrix_norm(U, 2)
            · It is scaled by the largest singular value: the most that U stretches any vector *once*. Applied again and
            · again, it is the largest eigenvalue that counts.
            {RADIUS} → torch.linalg.matrix_norm(U)
            · It is scaled by the root of the sum of squares; the spectral radius is the size of the largest eigenvalue.
            {RADIUS} → torch.linalg.eigvalsh(U).abs().max()
            · `eigvalsh` is for symmetric matrices (it reads one triangle only); U is not symmetric: `eigvals`.
            {RADIUS} → torch.linalg.eigvalsh(U).max()
            · `eigvalsh` is for symmetric matrices (it reads one triangle only); U is not symmetric: `eigvals`. And
            · eigenvalues may be negative: their size counts, `abs()`.
            {RADIUS} → torch.linalg.eigvals(U).real.max()
            · Eigenvalues may be complex, or negative: their size counts, `abs()`, not their real part.
            {RADIUS} → torch.linalg.eigvals(U).real.abs().max()
            · Eigenvalues may be complex: their size counts, `abs()` of the complex number, not its real part alone.
            {RADIUS} → torch.linalg.eigvals(U).abs().mean() · The mean size is taken; the largest eigenvalue counts.
            {RADIUS} → torch.linalg.eigvals(U).abs().min() · The smallest is taken; the largest eigenvalue counts.
            {RADIUS} → torch.linalg.eigvals(U).abs()[0] · This is the first eigenvalue; take the largest, `max()`.
            {RADIUS} → U.abs().max() · The largest entry is taken; the spectral radius is the largest eigenvalue's size.
            * wanted / radius → * wanted · U has a spectral radius of its own: divide by it first.
            * wanted / radius → * radius / wanted · It is upside down: divide by the radius that U has.
            * wanted / radius → / radius · Its spectral radius is 1 now: multiply by the wanted one.
            U * wanted / radius → wanted * torch.eye(len(U)) · This matrix has the radius, but it is not U scaled.
            """,
        ),
        properties=[_has_radius],
    ).extended(_is_real, before="dtypes"),
    crashes=[
        ("not implemented for 'ComplexFloat'", "Eigenvalues are complex numbers: take their sizes first, `.abs()`."),
    ],
    nudge="What is ρ, if ρ · ρ · … · ρ (`steps` times) is the share? And what is the spectral radius of 3 · U?",
    sketch="""
        wanted = the `steps`-th root of the share
        radius = the largest size among U's eigenvalues
        return U, divided by the radius that it has, times the one that is wanted
        """,
)

# --- 1.6 ---


def _parameters(scale: float) -> list[nn.Parameter]:
    """Three parameters with gradients (joint norm 13 · scale: 3, 4 and 12), and one without."""
    gradients = [torch.tensor([[3.0, 0.0]]), torch.tensor([0.0, -4.0]), torch.tensor([12.0])]
    parameters = [nn.Parameter(torch.ones_like(g)) for g in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient * scale
    return [*parameters[:2], nn.Parameter(torch.ones(2)), parameters[2]]


def _clipped(answer: Callable, scale: float, max_norm: float = 1.0) -> tuple[Tensor, Tensor]:
    """All gradients in a row, before and after."""
    parameters = _parameters(scale)
    before = [p.grad for p in parameters if p.grad is not None]
    before = torch.cat([g.flatten() for g in before])
    answer(parameters, max_norm)
    without = parameters.pop(2)
    if without.grad is not None:
        raise Wrong("A parameter without a gradient (.grad is None) must stay so: skip it.")
    if any(p.grad is None or p.grad.shape != p.shape for p in parameters):
        raise Wrong("Afterwards a parameter has no gradient, or one of another shape: scale `p.grad`, each by itself.")
    return before, torch.cat([p.grad.flatten() for p in parameters])


def _takes_gaps(answer: Callable) -> None:
    try:
        answer(_parameters(1.0), 1.0)
    except (AttributeError, TypeError) as error:
        if "NoneType" in str(error):
            raise Wrong("A parameter may have no gradient (.grad is None): skip it.") from None
        raise


def _returns_norm(answer: Callable) -> None:
    got = answer(_parameters(1.0), 1.0)
    if not isinstance(got, Real) and not (isinstance(got, Tensor) and got.numel() == 1):
        raise Wrong(f"Expected the norm, a number, to be returned; got {describe(got)}.")
    got, wanted = float(got), "The gradients (3), (−4) and (12) have the joint norm √(9 + 16 + 144) = 13"
    for value, sentence in (
        (1.0, "the norm after clipping is returned; the one before is asked for"),
        (1 / 13, "the factor is returned; the norm before clipping is asked for"),
        (19.0, "the norms of the parts are added up; square, add, take the root"),
        (19 / 3, "the mean of the norms is taken; square, add, take the root"),
        (169.0, "the root of the sum of squares is missing"),
        (12.0, "only the largest or the last gradient is counted; all of them together make the norm"),
        (11.0, "the gradients are added up; square, add, take the root"),
        (math.sqrt(7), "this is the norm of the parameters; take it of their .grad"),
    ):
        if math.isclose(got, value, abs_tol=1e-4):
            raise Wrong(f"{wanted}; got {got:g}: {sentence}.")
    if not math.isclose(got, 13, abs_tol=1e-4):
        raise Wrong(f"{wanted}; got {got:g}.")


def _leaves_weights(answer: Callable) -> None:
    parameters = _parameters(1.0)
    answer(parameters, 1.0)
    if any(not torch.equal(p, torch.ones_like(p)) for p in parameters):
        raise Wrong("The parameters themselves were changed: scale their .grad.")


def _scales_jointly(answer: Callable) -> None:
    before, after = _clipped(answer, 1.0)
    if torch.allclose(after, before / 13, atol=1e-5):
        return
    if torch.equal(after, before):
        if not torch.equal(*_clipped(answer, 0.01)):
            raise Wrong("What is short is scaled, and what is longer than max_norm is not: turn the comparison round.")
        raise Wrong("The gradients are as they were: scale each `p.grad` in place (`mul_`), or assign a new one to it.")
    if torch.allclose(after, before.clamp(-1, 1), atol=1e-5):
        raise Wrong(
            "Each number or each gradient is clipped on its own, which turns the direction: "
            "scale all of them by one factor, from one norm."
        )
    raise Wrong(f"The joint norm must be 1 after clipping to 1; it is {after.norm():.3f}: scale by max_norm / norm.")


def _leaves_small(answer: Callable) -> None:
    before, after = _clipped(answer, 0.01)
    if not torch.allclose(after, before):
        raise Wrong("A gradient of norm 0.13 must stay as it is when max_norm is 1: clip only what is longer.")


def _always_returns_norm(answer: Callable) -> None:
    for scale, max_norm in ((0.01, 1.0), (1.0, math.inf)):
        got = answer(_parameters(scale), max_norm)
        number = isinstance(got, Real) or (isinstance(got, Tensor) and got.numel() == 1)
        if not number or not math.isclose(float(got), 13 * scale, rel_tol=1e-4):
            found = f"{float(got):g}" if number else "None" if got is None else describe(got)
            raise Wrong(
                f"A norm of {13 * scale:g} need not be clipped to max_norm = {max_norm:g}, and {found} is returned; "
                "return the norm then, too. (Is the `return` inside the `if`?)"
            )


def _takes_zero(answer: Callable) -> None:
    try:
        _, after = _clipped(answer, 0.0)
    except ZeroDivisionError:
        raise Wrong(
            "All gradients may be 0, and then your answer divides by their norm, 0: divide only where the norm is "
            "above max_norm."
        ) from None
    if after.isnan().any():
        raise Wrong("Gradients of zero become NaN: do not divide by a norm of 0.")


def _uses_max_norm(answer: Callable) -> None:
    for max_norm in (0.5, 2.0, 100.0, math.inf):
        before, after = _clipped(answer, 1.0, max_norm)
        if not torch.allclose(after, before * min(1, max_norm / 13), atol=1e-5):
            raise Wrong(
                f"Clipping the norm 13 to max_norm = {max_norm:g} must give the norm {min(13, max_norm):g}; "
                f"it gives {after.norm():.3f}: scale by max_norm / norm, and only what is longer than max_norm."
            )


def _equals_torch(answer: Callable, wrap: Callable[[Sequence], object] = list) -> str:
    """How gradients and norm differ from those of `clip_grad_norm_` on several shapes; '' if they do not."""
    generator = torch.Generator().manual_seed(0)
    mine, torchs = ([nn.Parameter(torch.zeros(s)) for s in ((3, 2), (4,), (1, 5, 2), ())] for _ in range(2))
    for p, q in zip(mine, torchs, strict=True):
        p.grad = torch.randn(p.shape, generator=generator)
        q.grad = p.grad.clone()
    got, want = float(answer(wrap(mine), 0.5)), float(nn.utils.clip_grad_norm_(torchs, 0.5))
    if not math.isclose(got, want, rel_tol=1e-4):
        return f"Gradients of shapes (3, 2), (4), (1, 5, 2) and () have the joint norm {want:.4f}; got {got:.4f}."
    if not all(torch.allclose(p.grad, q.grad, atol=1e-5) for p, q in zip(mine, torchs, strict=True)):
        return "The norm is right, but gradients of several dimensions are not scaled as they should be."
    return ""


def _takes_all_shapes(answer: Callable) -> None:
    if difference := _equals_torch(answer):
        raise Wrong(f"{difference} Square all entries, whatever the shape, add, take the root.")


def _takes_iterators(answer: Callable) -> None:
    iterator = (
        "It works on a list, but not on `model.parameters()`, an iterator that can be walked only once: "
        "turn it into a list first."
    )
    try:
        difference = _equals_torch(answer, iter)
    except Exception:
        raise Wrong(iterator) from None
    if difference:
        raise Wrong(iterator)


clip = Exercise(
    id="1.6",
    title="gradient clipping",
    reference=clip_gradients,
    checks=[
        signature_check(clip_gradients),
        _takes_gaps,
        _returns_norm,
        _leaves_weights,
        _scales_jointly,
        _leaves_small,
        _takes_zero,
        _always_returns_norm,
        _uses_max_norm,
        _takes_all_shapes,
        _takes_iterators,
    ],
    crashes=[("a leaf Variable that requires grad", "The parameters themselves are changed: scale their .grad.")],
    nudge="All gradients together are one long vector. Its length is one number; everything is scaled by one factor.",
    sketch="""
        gradients = every .grad that is not None (make it a list: parameters may be an iterator)
        norm = root of the sum of all squares of all entries
        if norm > max_norm: multiply each gradient in place by max_norm / norm
        return norm, as it was before
        """,
)

EXERCISES = [elman, lstm, latch, flow, keep, clip]
