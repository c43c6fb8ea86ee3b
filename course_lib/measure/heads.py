"""Heads: what each head of an encoder looks at, adds, and how much it matters; random rivals; heads set by hand."""

from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.models.attention import split_heads
from course_lib.models.bert import Bert
from course_lib.models.inside import recorded


def pattern_score(weights: Tensor, gold: Tensor) -> Tensor:
    """How much of its attention each head puts where a pattern says, between 0 and 1: (heads).

    weights (batch, heads, queries, keys); gold (batch, queries, keys), True at the keys that a query should look at.
    The mean is taken over the queries that have such a key.
    """
    found = (weights * gold[:, None]).sum(dim=-1)  # (batch, heads, queries)
    return found.sum(dim=(0, 2)) / gold.any(dim=-1).sum()


def head_contributions(weights: Tensor, v: Tensor, W_o: Tensor) -> Tensor:
    r"""What each head adds to the layer's output, $A_i V_i W^O_i$: their sum is $[A_0 V_0; A_1 V_1; \dots]\, W^O$.

    weights (batch, heads, queries, keys), v (batch, heads, keys, d_head), W_o (d, heads · d_head) as `nn.Linear` stores
    it → (batch, heads, queries, d)
    """
    heads, d_head = v.shape[1], v.shape[3]
    own = W_o.reshape(-1, heads, d_head)  # a head's numbers meet their own columns of W_o: (d, heads, d_head)
    return torch.einsum("bhqe,dhe->bhqd", weights @ v, own)


def head_importance(loss: Callable[[Tensor, object], Tensor], gates: Tensor, examples: list) -> Tensor:
    r"""$I_h = \frac{1}{N} \sum_n \lvert \partial L(x_n) / \partial g_h \rvert$, like the gates (Michel et al. 2019).

    loss(gates, example) → one number; a gate multiplies the output of its head (see `inside.gated`).
    """
    total = torch.zeros_like(gates)
    for example in examples:
        tried = gates.clone().requires_grad_()
        total += torch.autograd.grad(loss(tried, example), tried)[0].abs()
    return total / len(examples)


def as_many_at_random(kept: Tensor, seed: int) -> Tensor:
    """A random rival of chosen heads: in each layer as many as are kept there, every such choice equally likely.

    kept (layers, heads), True: chosen → the same shape. The same seed gives the same heads.
    """
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.zeros_like(kept)
    for layer, row in enumerate(kept):
        order = torch.randperm(len(row), generator=generator)
        drawn[layer, order[: int(row.sum())]] = True
    return drawn


@torch.no_grad()
def queries_and_keys(encoder: Bert, ids: Tensor) -> tuple[Tensor, Tensor]:
    """What the heads compare in one text, ids (length): twice (layers, heads, length, size); see `viz.neuron_view`."""
    q, k, _ = torch.cat(recorded(encoder, "qkv", ids[None])).chunk(3, dim=-1)  # (layers, length, d)
    return split_heads(q, encoder.shape.heads), split_heads(k, encoder.shape.heads)


def two_heads_by_hand(first: int, second: int, size: int) -> tuple[Tensor, Tensor]:
    """Weights of two heads that look ``first`` and ``second`` places back at a round table of ``size`` places.

    A guest is 2 · size numbers: its symbol as a one-hot vector, then its place. Without biases `multi_head` gives
    each guest the symbol of the guest ``first`` places back, then that of the guest ``second`` places back.
    → W_qkv (3d, d) and W_o (d, d), d = 2 · size
    """
    one, nothing = torch.eye(size), torch.zeros(size, size)
    asked = [torch.cat([nothing, 50 * one.roll(-back, dims=0)], dim=1) for back in (first, second)]
    place = torch.cat([nothing, one], dim=1)  # (size, d): reads the place
    symbol = torch.cat([one, nothing], dim=1)  # (size, d): reads the symbol
    return torch.cat([*asked, place, place, symbol, symbol]), torch.eye(2 * size)


def one_head_by_hand(size: int) -> tuple[Tensor, Tensor, Tensor]:
    """One head and a linear read-out that name two guests: the one before, and the one ``size`` / 2 places back.

    A guest is 2 · size numbers: its symbol as a one-hot vector, then its place; ``size`` places (size / 2 is even), as
    many symbols. Without biases `multi_head` looks at both guests, a hair more at the one with the higher symbol (or
    the lower, by the place). The first half of the output is the mean of both symbols. One more number is by how much
    more it looked at the guest before, times ±1 by the place: positive where that guest wears the higher symbol. The
    linear read-out adds it (or subtracts it, for the guest opposite), times the symbol's number. Example: the guest
    before wears 5 and gets the weight 0.5025, the one opposite wears 3 and gets 0.4975. The mean alone scores the two
    symbols alike, nearly; the difference of the weights, 0.005, times 2.5 · 5 or 2.5 · 3, adds 0.0625 or 0.0375.
    → W_qkv (3d, d), W_o (d, d), d = 2 · size; the read-out (2 answers, size symbols, d)
    """
    one, nothing = torch.eye(size), torch.zeros(size, size)
    number = torch.arange(size)
    sign = 1.0 - 2.0 * (number % 2)  # of a place: + − + −; the two guests looked at have different signs
    q, k, v = (torch.zeros(2 * size, 2 * size) for _ in range(3))
    q[:size] = torch.cat([nothing, 200 * (one.roll(-1, dims=0) + one.roll(-(size // 2), dims=0))], dim=1)
    k[:size] = torch.cat([nothing, one], dim=1)  # a place asks for two places …
    q[size, size:] = sign.roll(1)
    k[size, :size] = 0.02 * number  # … and for a higher or a lower symbol, very softly
    v[:size] = torch.cat([one, nothing], dim=1)  # the symbol
    v[size, size:] = sign  # the sign of the place: on average 2a − 1, or 1 − 2a
    read_out = torch.cat([one, nothing], dim=1).repeat(2, 1, 1)
    read_out[0, :, size] = 2.5 * number
    read_out[1, :, size] = -2.5 * number
    return torch.cat([q, k, v]), torch.eye(2 * size), read_out
