"""Heads: what each head of an encoder looks at, adds, and how much it matters; and two that are set by hand."""

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
