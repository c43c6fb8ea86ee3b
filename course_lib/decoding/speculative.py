r"""Speculative decoding (Leviathan et al. 2023): a small model drafts, the large one checks all drafted tokens at once.

What comes out has exactly the large model's distribution; only the number of its steps falls. A drafted token $x$ is
accepted with probability $\min(1, p(x) / q(x))$, $p$ the large model's distribution and $q$ the draft's. After a
rejection the token is drawn from what $q$ offers too seldom, $\max(0, p - q)$ normalised. So, for every $x$,

$$q(x) \min(1, p(x) / q(x)) + P(\text{rejected}) \cdot \text{residual}(x) = p(x).$$
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.decoding.cached import CachedModel, Model
from course_lib.decoding.pieces import Filter, acceptance, draw


@torch.no_grad()
def speculative(
    model: Model,
    draft: Model,
    ids: Tensor,
    new: int,
    ahead: int = 4,
    filters: Filter | None = None,
    end: int | None = None,
    generator: torch.Generator | None = None,
    accept: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = acceptance,
) -> tuple[Tensor, int]:
    """`sample` from ``model``, with ``ahead`` tokens at a time drafted by ``draft``. → texts, calls of ``model``

    ids (batch, length) → (batch, length + at most new). ``filters`` apply to both models; with temperature 0 the
    result is greedy. A batch goes on together: each round keeps as many tokens as its least lucky text accepts, plus
    one. That is a stopping rule that never looks ahead, so it leaves the distribution as it is.
    """
    if ahead < 1:
        raise ValueError(f"At least 1 token must be drafted ahead; got {ahead}.")
    large, small = (CachedModel.for_prompts(each, ids, new) for each in (model, draft))
    out = F.pad(ids, (0, new))  # with room for what is written
    t, longest, calls = ids.shape[1], out.shape[1], 0
    over = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)

    def chances(reader: CachedModel, upto: int, last: int) -> Tensor:
        """Filtered probabilities of the next token after each of the last ones. (batch, last, vocabulary)"""
        logits = reader(out[:, :upto], last)
        if filters is not None:
            befores = range(upto - last + 1, upto + 1)
            logits = torch.stack([filters(z, out[:, :n]) for z, n in zip(logits.unbind(1), befores, strict=True)], 1)
        return logits.softmax(dim=-1)

    while t < longest and not over.all():
        n = min(ahead, longest - t - 1)  # the large model adds one more
        q, was_over = [], [over]  # was_over[i]: the text is over before place t + i
        for i in range(n):
            q.append(chances(small, t + i, 1)[:, 0])
            out[:, t + i] = draw(q[i], generator)
            was_over.append(_fill(out[:, t + i], was_over[i], end))
        p = chances(large, t + n, n + 1)  # (batch, n + 1, vocabulary)
        calls += 1
        kept, token = n, draw(p[:, n], generator)
        if n:
            chance, rest = accept(p[:, :n], torch.stack(q, dim=1))  # (batch, n, vocabulary)
            a = chance.gather(-1, out[:, t : t + n, None])[..., 0]  # (batch, n)
            u = torch.rand(a.shape, generator=generator, device=a.device)
            accepted = (u < a) | torch.stack(was_over[:n], dim=1)  # a text that is over holds nobody back
            kept = int(accepted.all(dim=0).cumprod(dim=0).sum())
            if kept < n:
                fresh = draw(rest[:, kept], generator)
                token = torch.where(accepted[:, kept], out[:, t + kept], fresh)
        out[:, t + kept] = token
        over = _fill(out[:, t + kept], was_over[kept], end)
        large.forget(t + kept)
        small.forget(t + kept)
        t += kept + 1

    if end is not None:  # cut after the place where the last text is over
        going = (out[:, ids.shape[1] : t] != end).cumprod(dim=1).any(dim=0)
        t = min(t, ids.shape[1] + int(going.sum()) + 1)
    return out[:, :t], calls


def _fill(column: Tensor, over: Tensor, end: int | None) -> Tensor:
    """Write ``end`` where a text is over already, in place; returns which texts are over after it. Both (batch)"""
    if end is None:
        return over
    column.masked_fill_(over, end)
    return over | (column == end)
