r"""Heads: multi-head attention on one page, what each head of an encoder looks at, and how much each one matters.

$$\text{MultiHead}(x) = [\text{head}_1; \dots; \text{head}_H]\, W_O, \qquad
\text{head}_i = \text{Attention}(x W_i^Q, x W_i^K, x W_i^V)$$
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.attention import attention, merge_heads, split_heads
from course_lib.bert import Bert


def multi_head(
    x: Tensor, W_qkv: Tensor, b_qkv: Tensor, W_o: Tensor, b_o: Tensor, heads: int, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Self-attention with several heads: the output (batch, length, d) and weights (batch, heads, length, length).

    W_qkv (3d, d) and b_qkv (3d) make queries, keys and values in one product, W_o (d, d) and b_o (d) mix the heads: the
    weights of `nn.MultiheadAttention`, in its order. mask: True where a key may be seen, as for `attention`.
    """
    q, k, v = (split_heads(part, heads) for part in F.linear(x, W_qkv, b_qkv).chunk(3, dim=-1))
    out, weights = attention(q, k, v, mask)
    return F.linear(merge_heads(out), W_o, b_o), weights


def pattern_score(weights: Tensor, gold: Tensor) -> Tensor:
    """How much of its attention each head puts where a pattern says, between 0 and 1: (heads).

    weights (batch, heads, queries, keys); gold (batch, queries, keys), True at the keys that a query should look at.
    The mean is taken over the queries that have such a key.
    """
    found = (weights * gold[:, None]).sum(dim=-1)  # (batch, heads, queries)
    return found.sum(dim=(0, 2)) / gold.any(dim=-1).sum()


def word_patterns(ids: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """Four patterns of texts ``[CLS] words [SEP]``, for `pattern_score`: where each word should look.

    ids (batch, length), lengths (batch) → name → gold (batch, queries, keys). [CLS], [SEP] and filling ask for nothing.
    """
    place = torch.arange(ids.shape[1], device=ids.device)
    word = (place > 0) & (place < lengths[:, None] - 1)  # (batch, length)
    last = place == lengths[:, None] - 1
    step = place - place[:, None]  # (queries, keys): how far to the right the key is
    both = word[:, :, None] & word[:, None]
    return {
        "previous word": both & (step == -1),
        "next word": both & (step == 1),
        "[CLS]": word[:, :, None] & (place == 0),
        "[SEP]": word[:, :, None] & last[:, None],
    }


def preference(weights: Tensor, query: Tensor, right: Tensor, wrong: Tensor) -> tuple[Tensor, Tensor]:
    """How often a query looks more at the right key than at the wrong one, and its mean weight there: (heads) each.

    weights (batch, heads, queries, keys); query, right, wrong: one place in each text, (batch).
    """
    text = torch.arange(len(weights), device=weights.device)
    row = weights[text, :, query]  # (batch, heads, keys)
    on_right, on_wrong = row[text, :, right], row[text, :, wrong]
    return (on_right > on_wrong).float().mean(dim=0), on_right.mean(dim=0)


def head_importance(loss: Callable[[Tensor, object], Tensor], gates: Tensor, examples: list) -> Tensor:
    r"""$I_h = \frac{1}{N} \sum_n \lvert \partial L(x_n) / \partial g_h \rvert$, like the gates (Michel et al. 2019).

    loss(gates, example) → one number; a gate multiplies the output of its head (see `gated`).
    """
    total = torch.zeros_like(gates)
    for example in examples:
        tried = gates.clone().requires_grad_()
        total += torch.autograd.grad(loss(tried, example), tried)[0].abs()
    return total / len(examples)


@contextlib.contextmanager
def gated(encoder: Bert, gates: Tensor) -> Iterator[None]:
    """Inside the ``with`` block each head's output is multiplied by its gate: 1 leaves it as it is, 0 removes it.

    gates (layers, heads). They may require a gradient.
    """
    hooks = []
    for block, row in zip(encoder.stack.blocks, gates, strict=True):
        layer = block.attention
        if len(row) != layer.heads:
            raise ValueError(f"Expected a gate for each of {layer.heads} heads; got {len(row)}.")
        hooks.append(layer.output.register_forward_pre_hook(partial(_scale, row.repeat_interleave(layer.d_head))))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _scale(gates: Tensor, _module: nn.Module, inputs: tuple[Tensor]) -> Tensor:
    """The heads side by side, (batch, length, d), each times its gate."""
    return inputs[0] * gates


@torch.no_grad()
def queries_and_keys(encoder: Bert, ids: Tensor) -> tuple[Tensor, Tensor]:
    """What the heads compare in one text, ids (length): twice (layers, heads, length, size); see `viz.neuron_view`."""
    made = []
    hooks = [
        block.attention.qkv.register_forward_hook(lambda _module, _inputs, output: made.append(output))
        for block in encoder.stack.blocks
    ]
    try:
        encoder(ids[None])
    finally:
        for hook in hooks:
            hook.remove()
    q, k, _ = torch.cat(made).chunk(3, dim=-1)  # (layers, length, d)
    return split_heads(q, encoder.shape.heads), split_heads(k, encoder.shape.heads)
