"""Decoding: how next-token scores become text. Greedy, beam search, random walks with filters, contrastive search.

``model(ids)``: (batch, length) → scores of the next token (batch, length, vocabulary). Any such function will do. Where
the model has ``make_caches(batch, longest)`` and takes ``model(ids, caches)``, as our `GPT`, each token is computed
once. Everywhere: ``ids`` (batch, length) are the prompts; ``new`` is the most tokens to add; after the token ``end`` a
text is over, and filled up with ``end`` until the last one of the batch is over too.

Prompts of different length go in filled up at the left, ``pad_sequence(prompts, True, padding_side="left")``, with
their true ``lengths`` (batch): `greedy` and `sample` then write what they would write for each prompt alone. The model
has to take ``skip`` for that, the number of fillers of each text, as our `GPT` does.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.decoding import pieces
from course_lib.decoding.cached import CachedModel, Model, refuse_unfit_prompts
from course_lib.decoding.pieces import HIDDEN, Filter, extend
from course_lib.models.inside import record


def greedy(model: Model, ids: Tensor, new: int, end: int | None = None, lengths: Tensor | None = None) -> Tensor:
    """Always the most probable next token. → (batch, length + at most new)"""
    return walk(model, ids, new, lambda logits, _: logits.argmax(dim=-1), end, lengths)


def walk(
    model: Model,
    ids: Tensor,
    new: int,
    choose: Callable[[Tensor, Tensor], Tensor],
    end: int | None = None,
    lengths: Tensor | None = None,
) -> Tensor:
    """One token after the other: ``choose(scores (batch, vocabulary), ids so far)`` → the next tokens, (batch)."""
    return _remembering(pieces.walk, model, ids, lengths, new, choose, end)


def sample(
    model: Model,
    ids: Tensor,
    new: int,
    filters: Filter | None = None,
    end: int | None = None,
    generator: torch.Generator | None = None,
    lengths: Tensor | None = None,
) -> Tensor:
    """A random walk: each token drawn from softmax(filters(scores)). → (batch, length + at most new)"""
    return _remembering(pieces.sample, model, ids, lengths, new, filters, end, generator)


def _remembering(way: Callable, model: Model, ids: Tensor, lengths: Tensor | None, new: int, *settings) -> Tensor:
    """What a plain way of writing gives with a model that remembers what it has read."""
    model, length, shown = CachedModel.for_prompts(model, ids, new, lengths), ids.shape[1], ids
    if lengths is not None:
        # The model does not see fillers. Filters do: to them, the text begins with its first token, again and again.
        skip = (length - lengths)[:, None]  # (batch, 1)
        shown = torch.where(torch.arange(length, device=ids.device) < skip, ids.gather(1, skip), ids)
    return torch.cat([ids, way(model, shown, new, *settings)[:, length:]], dim=1)  # with the fillers that came


@torch.no_grad()
def beam_search(
    model: Model,
    ids: Tensor,
    new: int,
    beams: int = 4,
    length_penalty: float = 1.0,
    early_stopping: bool | str = False,
    end: int | None = None,
    step: Callable[..., tuple[Tensor, ...]] = extend,
) -> tuple[Tensor, Tensor]:
    r"""Keep the ``beams`` best beginnings at each step. → texts (batch, beams, length + at most new) and their scores

    Scores (batch, beams), best first: $\log P \,/\, n^{\text{length\_penalty}}$ of a text with $n$ new tokens. 0 is the
    plain log-probability, which falls with every token and so prefers short texts; 1 is the mean over the tokens. It
    is −∞ where there are fewer texts than beams.

    A batch's text is done when no beginning can beat its worst finished text, as estimated with the length of now
    (``early_stopping=False``) or the best length possible (``"never"``); or as soon as ``beams`` are finished (True).

    ``step`` chooses the continuations: `extend`, or `extend_at_random`.
    The model sees batch · beams rows, those of a text side by side.
    """
    if beams < 1:
        raise ValueError(f"There must be at least 1 beam; got {beams}.")
    if early_stopping not in (True, False, "never"):
        raise ValueError(f"early_stopping must be True, False or 'never'; got {early_stopping!r}.")
    model = CachedModel.for_prompts(model, ids, new)
    batch, length, longest = len(ids), ids.shape[1], ids.shape[1] + new
    room = F.pad(ids, (0, new), value=0 if end is None else end)  # (batch, longest)
    texts = room[:, None].repeat(1, beams, 1)  # the beginnings (batch, beams, longest)
    logits = model(ids)[:, -1].repeat_interleave(beams, dim=0)  # (batch · beams, vocabulary)
    model.select(torch.arange(batch, device=ids.device).repeat_interleave(beams))
    scores = logits.new_full((batch, beams), HIDDEN)  # their log-probabilities
    finished, finished_scores = texts.clone(), scores.clone()
    scores[:, 0] = 0.0  # all beams begin alike: only one of them counts
    open_ = torch.ones(batch, 1, dtype=torch.bool, device=ids.device)

    for t in range(length, longest):
        # At most one continuation of each beginning is the end, so among 2 · beams there are enough to go on with.
        count, logits = min(2, logits.shape[-1]) * beams, logits.unflatten(0, (batch, beams))
        best, entering, parent, token = step(scores, logits, count, t + 1 - length, length_penalty)  # (batch, count)
        over = torch.full_like(token, t + 1 == longest, dtype=torch.bool)
        if end is not None:
            over |= token == end
        if over.any():
            candidates = _pick(texts, parent)
            candidates[..., t] = token
            entering = entering.masked_fill(~(over & open_), HIDDEN)
            entering[:, beams:] = HIDDEN  # only what is among the best ``beams`` may finish
            finished_scores, kept = torch.cat([finished_scores, entering], dim=1).topk(beams)
            finished = _pick(torch.cat([finished, candidates], dim=1), kept)
        scores, kept = best.masked_fill(over, HIDDEN).topk(beams)
        parent = parent.gather(1, kept)
        texts = _pick(texts, parent)
        texts[..., t] = token.gather(1, kept)

        worst = finished_scores[:, -1:]  # −∞ as long as not all places are taken
        if early_stopping is True:
            open_ &= worst == HIDDEN
        else:
            n = new if early_stopping == "never" and length_penalty > 0 else t + 1 - length
            open_ &= scores[:, :1] / n**length_penalty > worst
        if t + 1 == longest or not open_.any():
            break
        model.continue_beams(parent)
        logits = model(texts[..., : t + 1].flatten(0, 1))[:, -1]

    if end is not None:
        added = (finished[..., length:] != end).cumprod(dim=-1).sum(dim=-1) + 1  # (batch, beams)
        longest = length + min(new, int(added.max()))
    return finished[..., :longest], finished_scores


def _pick(texts: Tensor, beams: Tensor) -> Tensor:
    """texts (batch, n, length), beams (batch, m) → (batch, m, length)"""
    return texts.gather(1, beams[..., None].expand(-1, -1, texts.shape[-1]))


@torch.no_grad()
def log_probability(model: Model, ids: Tensor, given: int) -> Tensor:
    r"""$\sum_{t} \log P(x_t \mid x_{<t})$ over all tokens after the first ``given`` ones. (batch, length) → (batch)"""
    if not 1 <= given < ids.shape[1]:
        raise ValueError(f"Of {ids.shape[1]} tokens, 1 to {ids.shape[1] - 1} can be given; got {given}.")
    log_p = model(ids[:, :-1])[:, given - 1 :].float().log_softmax(dim=-1)  # (batch, length − given, vocabulary)
    return log_p.gather(-1, ids[:, given:, None])[..., 0].sum(dim=-1)


@torch.no_grad()
def exhaustive(model: Model, ids: Tensor, new: int) -> tuple[Tensor, Tensor]:
    """All vocabulary^new continuations of one prompt (1, length) → (all, length + new), log-probabilities, best first.

    The proof for the other searches, on vocabularies of a few tokens.
    """
    refuse_unfit_prompts(model, ids, new)
    if len(ids) != 1:
        raise ValueError(f"Expected one prompt; got {len(ids)}.")
    vocabulary = model(ids).shape[-1]
    if vocabulary**new > 100_000:
        raise ValueError(f"{vocabulary}^{new} texts are too many to try.")
    tails = torch.cartesian_prod(*[torch.arange(vocabulary, device=ids.device)] * new).reshape(-1, new)
    texts = torch.cat([ids.expand(len(tails), -1), tails], dim=1)
    scores, order = log_probability(model, texts, ids.shape[1]).sort(descending=True)
    return texts[order], scores


@torch.no_grad()
def contrastive_search(
    model: nn.Module, ids: Tensor, new: int, k: int = 4, alpha: float = 0.6, end: int | None = None
) -> Tensor:
    r"""Of the $k$ most probable tokens, the one that is probable and new (Su et al. 2022):

    $$\arg\max_v\; (1 - \alpha)\, P(v \mid x) - \alpha \max_j \cos(h_v, h_{x_j})$$

    $h$ is what ``model.stack`` gives, the vector from which the next token is read; $h_v$ that of the text with $v$
    added. → (batch, length + at most new)
    """
    if not hasattr(model, "stack"):
        raise ValueError("Contrastive search compares vectors: it needs a model with a stack, such as GPT.")
    if k < 1:
        raise ValueError(f"k must be at least 1; got {k}.")
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha must lie in [0, 1]; got {alpha}.")
    with record(model, "stack") as seen:
        model, texts = CachedModel.for_prompts(model, ids, new, reads_last=True), ids
        logits = model(texts)[:, -1]
        past = F.normalize(seen.pop(), dim=-1)  # (batch, length, d)
        k = min(k, logits.shape[-1])
        rows = torch.arange(len(ids), device=ids.device)
        over = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
        for _ in range(new):
            p, tokens = logits.softmax(dim=-1).topk(k)  # (batch, k)
            model.select(rows.repeat_interleave(k))
            tried = torch.cat([texts.repeat_interleave(k, dim=0), tokens.reshape(-1, 1)], dim=1)
            logits = model(tried)[:, -1]  # (batch · k, vocabulary)
            h = F.normalize(seen.pop()[:, -1], dim=-1).unflatten(0, (-1, k))  # (batch, k, d)
            alike = (h @ past.transpose(1, 2)).amax(dim=-1)  # (batch, k)
            choice = ((1 - alpha) * p - alpha * alike).argmax(dim=-1)  # (batch)
            token = tokens[rows, choice]
            if end is not None:
                token = token.masked_fill(over, end)
                over = token == end
            texts = torch.cat([texts, token[:, None]], dim=1)
            if over.all():
                break
            model.select(rows * k + choice)
            logits, past = logits[rows * k + choice], torch.cat([past, h[rows, choice][:, None]], dim=1)
    return texts
