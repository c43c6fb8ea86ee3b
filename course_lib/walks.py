"""Writing word by word in its plainest form: what lesson 09 builds.

`decoding` walks in the same way with a reader that remembers what it has read, and knows more ways to choose.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def walk(model: Callable, ids: Tensor, new: int, choose: Callable, end: int | None = None) -> Tensor:
    """One token after the other: ``choose(scores (batch, vocabulary), ids so far)`` → the next tokens, (batch).

    ``model``: ids (batch, length) → scores of the next token after each place (batch, length, vocabulary). A text that
    is over, with ``end``, is filled up with it; when all are, so is the walk. → (batch, length + at most new)
    """
    over = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids)  # (batch)
        ids = torch.cat([ids, token[:, None]], dim=1)
        if end is not None:
            ids[:, -1].masked_fill_(over, end)  # a text that is over gets nothing else
            over = ids[:, -1] == end
            if over.all():
                break
    return ids


def sample(
    model: Callable,
    ids: Tensor,
    new: int,
    filters: Callable | None = None,
    end: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """A random walk: each token drawn from softmax(filters(scores, ids so far)). → (batch, length + at most new)"""

    def choose(scores: Tensor, ids: Tensor) -> Tensor:
        p = (filters(scores, ids) if filters else scores).softmax(dim=-1)
        return torch.multinomial(p, 1, generator=generator)[:, 0]

    return walk(model, ids, new, choose, end)


def top_k(logits: Tensor, k: int) -> Tensor:
    """Hide all but the ``k`` best tokens, and what is as good as the k-th. (…, vocabulary) → the same"""
    kth = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]  # (…, 1)
    return logits.masked_fill(logits < kth, -torch.inf)


def top_p(logits: Tensor, p: float) -> Tensor:
    r"""Nucleus (Holtzman et al. 2020): keep the fewest tokens that together have probability $p$ or more.

    A token goes if it and all less probable ones together have at most $1 - p$. (…, vocabulary) → the same
    """
    rising, order = logits.softmax(dim=-1).sort(dim=-1)
    goes = rising.cumsum(dim=-1) <= 1 - p
    goes[..., -1] = False  # the best always stays
    return logits.masked_fill(goes.scatter(-1, order, goes), -torch.inf)
