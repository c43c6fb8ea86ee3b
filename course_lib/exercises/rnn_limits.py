"""Exercises of lesson 01: three cells, the flow of gradients, clipping."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_lib.checks import Exercise, Wrong, describe, function_checks, signature_check
from course_lib.recurrent import elman_step, gradient_flow, gru_step, lstm_step
from course_lib.training import clip_gradients

BATCH, D_IN, D_HIDDEN = 3, 4, 5  # all different, so that a wrong axis shows

TRANSPOSE = (
    "shapes cannot be multiplied",
    "The rows of x are the batch, and W is (rows of output, d_in): multiply from the right by the transpose, `x @ W.T`.",
)


def _weights(generator: torch.Generator, gates: int, biases: int = 1) -> list[Tensor]:
    shapes = [(gates * D_HIDDEN, D_IN), (gates * D_HIDDEN, D_HIDDEN), *[(gates * D_HIDDEN,)] * biases]
    return [torch.randn(shape, generator=generator) for shape in shapes]


def _inputs(generator: torch.Generator, states: int = 1) -> list[Tensor]:
    return [torch.randn(BATCH, d, generator=generator) for d in (D_IN, *[D_HIDDEN] * states)]


# --- 1.1 ---

elman = Exercise(
    id="1.1",
    title="Elman step",
    reference=elman_step,
    checks=function_checks(
        elman_step,
        lambda g: (*_inputs(g), *_weights(g, 1)),
        returns=["h"],
        slips=[
            (lambda x, h, W, U, b: x @ W.T + h @ U.T + b, "This is the sum without its tanh: squash it at the end."),
            (lambda x, h, W, U, b: torch.tanh(x @ W.T + h @ U.T), "The bias b is missing from the sum."),
            (lambda x, h, W, U, b: torch.tanh(x @ W.T + b), "The old state h does not enter: add `h @ U.T`."),
            (lambda x, h, W, U, b: torch.tanh(h @ U.T + b), "The input x does not enter: add `x @ W.T`."),
            (lambda x, h, W, U, b: torch.tanh(x @ W.T + h @ U + b), "U is used without its transpose: `h @ U.T`."),
            (lambda x, h, W, U, b: torch.sigmoid(x @ W.T + h @ U.T + b), "This is a sigmoid; the cell uses tanh."),
            (lambda x, h, W, U, b: torch.relu(x @ W.T + h @ U.T + b), "This is a ReLU; the cell uses tanh."),
            (
                lambda x, h, W, U, b: torch.tanh(x @ W.T) + torch.tanh(h @ U.T + b),
                "The tanh is taken of each part; take it once, of the whole sum.",
            ),
            (
                lambda x, h, W, U, b: h + torch.tanh(x @ W.T + h @ U.T + b),
                "The new state replaces the old one; do not add the old one to it.",
            ),
        ],
    ),
    crashes=[TRANSPOSE],
    nudge="Three terms are added, then squashed once. Which matrix meets x, which meets h? Their shapes decide.",
    sketch="""
        from the input:  x times W transposed      (batch, d_hidden)
        from the state:  h times U transposed      (batch, d_hidden)
        add both and b; return the tanh of the sum
        """,
)

# --- 1.2 ---


def _lstm_variant(order: str = "ifgo", candidate: Callable = torch.tanh, squash: str = "new", swap: bool = False):
    """An LSTM step with one thing changed; for slips."""

    def step(x, h, c, W, U, b):
        parts = dict(zip(order, (x @ W.T + h @ U.T + b).chunk(4, dim=-1), strict=True))
        i, f, o, g = *(torch.sigmoid(parts[k]) for k in "ifo"), candidate(parts["g"])
        new = f * c + i * g
        out = o * {"new": new.tanh(), "candidate": g.tanh(), "g": g, "old": c.tanh(), "none": new}[squash]
        return (new, out) if swap else (out, new)

    return step


def _lstm_gates_unsquashed(x, h, c, W, U, b):
    i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4, dim=-1)
    c = f * c + i * torch.tanh(g)
    return o * torch.tanh(c), c


CANDIDATE = (
    "h comes from the candidate instead of the new cell state: $h' = o ⊙ tanh(c')$. "
    "(The slide in S4 has this slip: it prints tanh of the candidate.)"
)
lstm = Exercise(
    id="1.2",
    title="LSTM step",
    reference=lstm_step,
    checks=function_checks(
        lstm_step,
        lambda g: (*_inputs(g, states=2), *_weights(g, 4)),
        returns=["h", "c"],
        slips=[
            (_lstm_variant(squash="candidate"), CANDIDATE),
            (_lstm_variant(squash="g"), CANDIDATE),
            (_lstm_variant(squash="old"), "h comes from the old cell state: use the new one, c'."),
            (_lstm_variant(squash="none"), "h is missing the tanh of the cell state: o ⊙ tanh(c')."),
            (_lstm_variant(swap=True), "The two results are in the wrong order: return h, then c."),
            (_lstm_variant(candidate=torch.sigmoid), "The candidate g is squashed by tanh, not by the sigmoid."),
            (_lstm_variant(candidate=lambda g: g), "The candidate g is missing its tanh."),
            (_lstm_variant(order="ifog"), "The blocks are read in the order i, f, o, g; PyTorch stacks i, f, g, o."),
            (_lstm_variant(order="figo"), "The forget and input gates are swapped: PyTorch stacks i, f, g, o."),
            (_lstm_variant(order="fiog"), "The blocks are read as f, i, o, g; PyTorch stacks i, f, g, o."),
            (_lstm_gates_unsquashed, "The gates i, f and o are missing their sigmoid: they must lie between 0 and 1."),
        ],
    ),
    crashes=[TRANSPOSE],
    nudge="Compute one big sum for all four blocks at once, cut it with `chunk(4, dim=-1)`, and squash each its own way.",
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


def _gru_variant(order: str = "rzn", keep: str = "z", reset: str = "after", squash: Callable = torch.tanh):
    """A GRU step with one thing changed; for slips."""

    def step(x, h, W, U, b, b_U):
        X = dict(zip(order, (x @ W.T + b).chunk(3, dim=-1), strict=True))
        H = dict(zip(order, (h @ U.T + b_U).chunk(3, dim=-1), strict=True))
        r, z = torch.sigmoid(X["r"] + H["r"]), torch.sigmoid(X["z"] + H["z"])
        start = order.index("n") * D_HIDDEN
        U_n, b_n = U[start : start + D_HIDDEN], b_U[start : start + D_HIDDEN]
        state = {"after": r * H["n"], "before": (r * h) @ U_n.T + b_n, "no bias": r * (h @ U_n.T) + b_n, "none": H["n"]}
        n = squash(X["n"] + state[reset])
        return (1 - z) * n + z * h if keep == "z" else z * n + (1 - z) * h

    return step


gru = Exercise(
    id="1.3",
    title="GRU step",
    reference=gru_step,
    checks=function_checks(
        gru_step,
        lambda g: (*_inputs(g), *_weights(g, 3, biases=2)),
        returns=["h"],
        slips=[
            (_gru_variant(keep="1-z"), "z and 1 − z are swapped: where z is 1 the OLD state stays."),
            (
                _gru_variant(reset="before"),
                "The reset gate scales h before the product (Cho's first version); here it scales `U_n h + b_U,n` after it.",
            ),
            (
                _gru_variant(reset="no bias"),
                "The bias b_U of the candidate belongs inside the reset: r ⊙ (U_n h + b_U,n).",
            ),
            (_gru_variant(reset="none"), "The reset gate r is not used: the candidate sees r ⊙ (U_n h + b_U,n)."),
            (_gru_variant(order="zrn"), "The first two blocks are read as z, r; PyTorch stacks r, z, n."),
            (_gru_variant(squash=torch.sigmoid), "The candidate n is squashed by tanh, not by the sigmoid."),
            (_gru_variant(squash=lambda n: n), "The candidate n is missing its tanh."),
        ],
    ),
    crashes=[TRANSPOSE],
    nudge="Keep the input's part and the state's part apart: only the state's part of the candidate meets the reset gate.",
    sketch="""
        x_r, x_z, x_n = three chunks of x times W transposed + b
        h_r, h_z, h_n = three chunks of h times U transposed + b_U
        r and z: sigmoid of the two parts added
        n: tanh of x_n plus r times h_n
        mix n and the old h: z says how much of the old stays
        """,
)

# --- 1.4 ---


def _mixing_step(x: Tensor, state: Tensor) -> Tensor:
    return torch.tanh(0.3 * x + 0.8 * state.roll(1, -1) + 0.4 * state)


def _flow_inputs(generator: torch.Generator) -> tuple:
    return _mixing_step, torch.randn(6, BATCH, D_IN, generator=generator), torch.randn(BATCH, D_IN, generator=generator)


def _flow_variant(pick: Callable) -> Callable:
    def flow(step, xs, state):
        states = [state.detach().requires_grad_()]
        for x in xs:
            states.append(step(x, states[-1]))
        return pick(states)

    return flow


def _norms(total: Tensor, states: list[Tensor], order: float = 2) -> Tensor:
    gradients = torch.autograd.grad(total, states, allow_unused=True)
    return torch.stack([g.abs().pow(order).sum() ** (1 / order) for g in gradients if g is not None])


def _starts_at_itself(answer: Callable) -> None:
    inputs = _flow_inputs(torch.Generator().manual_seed(0))
    last = answer(*inputs)[-1].item()
    if abs(last - math.sqrt(BATCH * D_IN)) > 1e-4:
        first = answer(*inputs)[0].item()
        turned = (
            " The first entry is: is the order turned round?" if abs(first - math.sqrt(BATCH * D_IN)) < 1e-4 else ""
        )
        raise Wrong(
            f"The last entry must be {math.sqrt(BATCH * D_IN):.3f}: the sum of the last state changes by 1 with each of "
            f"its own {BATCH * D_IN} numbers, and √{BATCH * D_IN} is the norm of that. Yours is {last:.3f}.{turned}"
        )


flow = Exercise(
    id="1.4",
    title="gradient flow",
    reference=gradient_flow,
    checks=function_checks(
        gradient_flow,
        _flow_inputs,
        returns=["the norms"],
        gradient=False,
        slips=[
            (_flow_variant(lambda s: _norms(s[-1].sum(), s)[1:]), "The state you start from is missing: keep it too."),
            (_flow_variant(lambda s: _norms(s[-1].sum(), s)[:-1]), "The last state itself is missing: keep it too."),
            (
                _flow_variant(lambda s: _norms(s[-1].mean(), s)),
                "This is the gradient of the mean of the last state; take its sum.",
            ),
            (
                _flow_variant(lambda s: _norms(s[-1].norm(), s)),
                "This is the gradient of the norm of the last state; take its sum.",
            ),
            (
                _flow_variant(lambda s: _norms(sum(x.sum() for x in s), s)),
                "All states are summed; only the last one is differentiated.",
            ),
            (
                _flow_variant(lambda s: _norms(s[-1].sum(), s, order=1)),
                "This is the sum of absolute values; take the Euclidean norm.",
            ),
            (_flow_variant(lambda s: _norms(s[-1].sum(), s) ** 2), "This is the squared norm; take the root."),
            (
                _flow_variant(lambda s: torch.stack([x.norm() for x in s])),
                "These are the norms of the states; the gradients with respect to them are asked for.",
            ),
        ],
        properties=[_starts_at_itself],
    ),
    crashes=[
        ("does not require grad", "The first state needs `requires_grad_()`, or no graph is recorded."),
        ("grad can be implicitly created only for scalar", "Differentiate one number: the sum of the last state."),
        (
            "'NoneType' object has no attribute 'norm'",
            "A state has no .grad: only leaves keep theirs. Use torch.autograd.grad, or retain_grad() on each state.",
        ),
    ],
    nudge="Keep every state in a list. `torch.autograd.grad(number, list_of_tensors)` gives one gradient for each of them.",
    sketch="""
        states = [the first state, with requires_grad]
        for each x: append step(x, the newest state)
        gradients of the sum of the last state, with respect to all states at once
        return the norm of each gradient, stacked into one tensor
        """,
)

# --- 1.5 ---


def _parameters(scale: float) -> list[nn.Parameter]:
    """Three parameters with gradients (joint norm 13 · scale: 3, 4 and 12), and one without."""
    gradients = [torch.tensor([[3.0, 0.0]]), torch.tensor([0.0, -4.0]), torch.tensor([12.0])]
    parameters = [nn.Parameter(torch.ones_like(g)) for g in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient * scale
    return [*parameters[:2], nn.Parameter(torch.ones(2)), parameters[2]]


def _grads(parameters: list[nn.Parameter]) -> Tensor:
    return torch.cat([p.grad.flatten() for p in parameters if p.grad is not None])


def _takes_gaps(answer: Callable) -> None:
    try:
        answer(_parameters(1.0), 1.0)
    except (AttributeError, TypeError) as error:
        if "NoneType" in str(error):
            raise Wrong("A parameter may have no gradient (.grad is None): skip it.") from None
        raise


def _returns_norm(answer: Callable) -> None:
    got = answer(_parameters(1.0), 1.0)
    if not isinstance(got, int | float) and not (isinstance(got, Tensor) and got.numel() == 1):
        raise Wrong(f"Expected the norm, a number, to be returned; got {describe(got)}.")
    for value, sentence in (
        (1.0, "the norm after clipping is returned; the one before is asked for"),
        (19.0, "the norms of the parts are added up; square, add, take the root"),
        (169.0, "the root of the sum of squares is missing"),
        (12.0, "only the largest gradient is counted; all of them together make the norm"),
    ):
        if abs(float(got) - value) < 1e-4:
            raise Wrong(f"The gradients (3), (−4) and (12) have the joint norm 13; got {float(got):g}: {sentence}.")
    if abs(float(got) - 13) > 1e-4:
        raise Wrong(f"The gradients (3), (−4) and (12) have the joint norm √(9 + 16 + 144) = 13; got {float(got):g}.")


def _leaves_weights(answer: Callable) -> None:
    parameters = _parameters(1.0)
    answer(parameters, 1.0)
    if any(not torch.equal(p, torch.ones_like(p)) for p in parameters):
        raise Wrong("The parameters themselves were changed: scale their .grad.")


def _scales_jointly(answer: Callable) -> None:
    parameters = _parameters(1.0)
    before = _grads(parameters)
    answer(parameters, 1.0)
    after = _grads(parameters)
    if torch.allclose(after, before / 13, atol=1e-5):
        return
    if torch.equal(after, before):
        raise Wrong("The gradients are as they were: scale each `p.grad` in place (`mul_`), or assign a new one to it.")
    if torch.allclose(after, before.clamp(-1, 1), atol=1e-5):
        raise Wrong("Each number is clamped on its own, which turns the direction; scale all of them by one factor.")
    if torch.allclose(after, before.sign(), atol=1e-5):
        raise Wrong("Each gradient is clipped on its own, which turns the direction; use one norm for all of them.")
    raise Wrong(f"The joint norm must be 1 after clipping to 1; it is {after.norm():.3f}: scale by max_norm / norm.")


def _leaves_small(answer: Callable) -> None:
    parameters = _parameters(0.01)
    before = _grads(parameters)
    answer(parameters, 1.0)
    if not torch.allclose(_grads(parameters), before):
        raise Wrong("A gradient of norm 0.13 must stay as it is when max_norm is 1: clip only what is longer.")


def _takes_zero(answer: Callable) -> None:
    parameters = _parameters(0.0)
    answer(parameters, 1.0)
    if _grads(parameters).isnan().any():
        raise Wrong("Gradients of zero become NaN: do not divide by a norm of 0.")


def _equals_torch(answer: Callable) -> None:
    for seed, max_norm in ((0, 0.5), (1, 2.0), (2, 100.0)):
        generator = torch.Generator().manual_seed(seed)
        mine, torchs = ([nn.Parameter(torch.zeros(s)) for s in ((3, 2), (4,), (1, 5, 2))] for _ in range(2))
        for p, q in zip(mine, torchs, strict=True):
            p.grad = torch.randn(p.shape, generator=generator)
            q.grad = p.grad.clone()
        answer(iter(mine), max_norm)  # model.parameters() is an iterator: it can be walked only once
        nn.utils.clip_grad_norm_(torchs, max_norm)
        if torch.equal(_grads(mine), _grads(torchs)) or torch.allclose(_grads(mine), _grads(torchs), atol=1e-5):
            continue
        raise Wrong(
            "It works on a list, but not on `model.parameters()`, an iterator that can be walked only once: "
            "turn it into a list first."
        )


clip = Exercise(
    id="1.5",
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
        _equals_torch,
    ],
    nudge="All gradients together are one long vector. Its length is one number; everything is scaled by one factor.",
    sketch="""
        gradients = every .grad that is not None (make it a list: parameters may be an iterator)
        norm = root of the sum of all squares of all entries
        if norm > max_norm: multiply each gradient in place by max_norm / norm
        return norm, as it was before
        """,
)

EXERCISES = [elman, lstm, gru, flow, clip]
