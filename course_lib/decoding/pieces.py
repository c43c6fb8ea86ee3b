"""The pieces of writing token by token, each in its plainest form: what lesson 09 builds.

- The loop: `walk`, and `sample`, which draws the next token.
- Filters of the scores: `temperature`, `top_k`, `top_p`, `min_p`, `repetition_penalty`; several of them: `Filters`.
- A step of beam search: `extend`, `extend_at_random`.
- Speculative decoding: `acceptance`.

`search` puts them together, with a model that remembers what it has read.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

Filter = Callable[[Tensor, Tensor], Tensor]  # scores (batch, vocabulary), ids so far (batch, length) → scores
HIDDEN = float("-inf")  # the score of a token that must not be chosen


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


def draw(probabilities: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """One token for each text. (batch, vocabulary) → (batch)"""
    return torch.multinomial(probabilities, 1, generator=generator)[:, 0]


def temperature(logits: Tensor, t: float) -> Tensor:
    r"""$z / t$: below 1 the likely becomes likelier; at 0 only the best token is left. (…, vocabulary) → the same."""
    if t < 0:
        raise ValueError(f"The temperature must be at least 0; got {t}.")
    if t == 0:
        best = F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).bool()
        return logits.masked_fill(~best, HIDDEN)
    return logits / t


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


def min_p(logits: Tensor, p: float) -> Tensor:
    r"""Hide tokens less probable than $p \cdot \max_v P(v)$ (Nguyen et al. 2024). (…, vocabulary) → the same."""
    if not 0 < p <= 1:
        raise ValueError(f"min_p must lie in (0, 1]; got {p}.")
    probabilities = logits.softmax(dim=-1)
    return logits.masked_fill(probabilities < p * probabilities.amax(dim=-1, keepdim=True), HIDDEN)


def repetition_penalty(logits: Tensor, ids: Tensor, penalty: float) -> Tensor:
    r"""Tokens that occur already: $z / \theta$ if $z > 0$, else $z \cdot \theta$ (Keskar et al. 2019).

    logits (batch, vocabulary), ids so far (batch, length) → (batch, vocabulary)
    """
    if penalty <= 0:
        raise ValueError(f"The penalty must be above 0; got {penalty}.")
    z = logits.gather(-1, ids)  # (batch, length)
    return logits.scatter(-1, ids, torch.where(z < 0, z * penalty, z / penalty))


@dataclass(frozen=True)
class Filters:
    """The filters one after the other, in this order; None leaves one out. Called on (scores, ids) → scores."""

    repetition_penalty: float | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self):
        if self.top_k is not None and self.top_k < 1:
            raise ValueError(f"top_k must be at least 1; got {self.top_k}.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must lie in (0, 1]; got {self.top_p}.")

    def __call__(self, logits: Tensor, ids: Tensor) -> Tensor:
        if self.repetition_penalty is not None:
            logits = repetition_penalty(logits, ids, self.repetition_penalty)
        for function, value in (
            (temperature, self.temperature), (top_k, self.top_k), (top_p, self.top_p), (min_p, self.min_p),
        ):  # fmt: skip
            if value is not None:
                logits = function(logits, value)
        return logits


def one_filter_each(rules: Sequence[Filter]) -> Filter:
    """Several filters in one batch: with n rules, the first acts on the first n-th of the texts, and so on."""

    def together(logits: Tensor, ids: Tensor) -> Tensor:
        parts = zip(rules, logits.chunk(len(rules)), ids.chunk(len(rules)), strict=True)
        return torch.cat([rule(part, so_far) for rule, part, so_far in parts])

    return together


def extend(scores: Tensor, logits: Tensor, count: int, n: int, length_penalty: float) -> tuple[Tensor, ...]:
    r"""One step of beam search: the ``count`` most probable of all texts that are one token longer.

    scores (batch, beams): log-probabilities of the beginnings; logits (batch, beams, vocabulary): scores of their next
    token. → log-probabilities; the same over $n^{\text{length\_penalty}}$, for texts that now have n new tokens; which
    beam each one continues; its new token. Each (batch, count), best first.
    """
    total = scores[..., None] + logits.log_softmax(dim=-1)  # (batch, beams, vocabulary)
    best, index = total.flatten(1).topk(count)
    return best, best / n**length_penalty, index // total.shape[-1], index % total.shape[-1]


def extend_at_random(scores: Tensor, logits: Tensor, count: int, n: int, length_penalty: float) -> tuple[Tensor, ...]:
    """As `extend`, but ``count`` different texts are drawn, each with its probability: beam search and random walk."""
    total = scores[..., None] + logits.log_softmax(dim=-1)
    index = torch.multinomial(total.flatten(1).softmax(dim=-1), count)
    best = total.flatten(1).gather(1, index)
    return best, best / n**length_penalty, index // total.shape[-1], index % total.shape[-1]


def acceptance(p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    r"""The chance that a drafted token is kept, $\min(1, p / q)$; and whence the token comes if it is not.

    That is $\max(0, p - q)$, normalised. All (…, vocabulary). What q never drafts would be kept; where p = q nothing is
    ever rejected, and the second is p.
    """
    kept = torch.where(q > 0, p / q, 1.0).clamp(max=1.0)
    rest = (p - q).clamp(min=0.0)
    total = rest.sum(dim=-1, keepdim=True)
    return kept, torch.where(total > 0, rest / total, p)
