"""Decoding: how next-token scores become text. Greedy, beam search, random walks with filters, contrastive search.

``model(ids)``: (batch, length) → scores of the next token (batch, length, vocabulary). Any such function will do. Where
the model has ``make_caches(batch, longest)`` and takes ``model(ids, caches)``, as our `GPT`, each token is computed
once. Everywhere: ``ids`` (batch, length) are the prompts; ``new`` is the most tokens to add; after the token ``end`` a
text is over, and filled up with ``end`` until the last one of the batch is over too.

Prompts of different length go in filled up at the left, ``pad_sequence(prompts, True, padding_side="left")``, with
their true ``lengths`` (batch): `greedy` and `sample` then write what they would write for each prompt alone. The model
has to take ``skip`` for that, the number of fillers of each text, as our `GPT` does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib import walks
from course_lib.next_token import NextToken
from course_lib.walks import top_k, top_p

Model = Callable[..., Tensor]
Filter = Callable[[Tensor, Tensor], Tensor]  # scores (batch, vocabulary), ids so far (batch, length) → scores
HIDDEN = float("-inf")  # the score of a token that must not be chosen


def temperature(logits: Tensor, t: float) -> Tensor:
    r"""$z / t$: below 1 the likely becomes likelier; at 0 only the best token is left. (…, vocabulary) → the same."""
    if t < 0:
        raise ValueError(f"The temperature must be at least 0; got {t}.")
    if t == 0:
        best = F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).bool()
        return logits.masked_fill(~best, HIDDEN)
    return logits / t


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


def side_by_side(rules: Sequence[Filter]) -> Filter:
    """Several filters in one batch: with n rules, the first acts on the first n-th of the texts, and so on."""

    def together(logits: Tensor, ids: Tensor) -> Tensor:
        parts = zip(rules, logits.chunk(len(rules)), ids.chunk(len(rules)), strict=True)
        return torch.cat([rule(part, so_far) for rule, part, so_far in parts])

    return together


def draw(probabilities: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """One token for each text. (batch, vocabulary) → (batch)"""
    return torch.multinomial(probabilities, 1, generator=generator)[:, 0]


class Reader:
    """A model that reads on from where it stopped: from its caches if it has any, else from the start each time."""

    def __init__(self, model: Model, batch: int, longest: int, skip: Tensor | None = None):
        """``skip`` (batch): so many tokens at the start of each text are filler."""
        self.model, self.settings = model, {} if skip is None else {"skip": skip}
        self.caches = model.make_caches(batch, longest) if hasattr(model, "make_caches") else None
        self.quick = bool(self.caches) and NextToken.fits(model)
        self.next_token: NextToken | None = None
        self.rows: list[int] | None = None  # text i stands in this row of the caches; None: in row i

    @torch.no_grad()
    def __call__(self, ids: Tensor, last: int = 1) -> Tensor:
        """All ids so far (batch, length) → scores after each of the last ones (batch, last, vocabulary)."""
        if self.caches is None:
            return self.model(ids, **self.settings)[:, -last:].float()
        new = ids[:, self.caches[0].length :]
        if self.rows is not None:
            new = torch.empty_like(new).index_copy_(0, torch.tensor(self.rows, device=ids.device), new)
        if self.quick and new.shape[1] == 1:
            if self.next_token is None or self.next_token.rows != len(new):
                self.next_token = NextToken(self.model, len(new))
            scores = self.next_token(new[:, 0], self.caches, **self.settings)[:, None]
        else:
            settings = self.settings | ({"last": last} if self.quick else {})  # ours reads out no more than is asked
            scores = self.model(new, self.caches, **settings)[:, -last:]
        return (scores if self.rows is None else scores[self.rows]).float()

    def select(self, rows: Tensor) -> None:
        """From now on, text i of the batch continues what was text ``rows[i]``."""
        for cache in self.caches or ():
            cache.select(rows)

    def continue_beams(self, parents: Tensor) -> None:
        """Beam j of text i continues its beam ``parents[i, j]``, with little copying. parents (batch, beams)

        A beam that is continued stays in its row of the caches. Its second and further continuations go to rows whose
        beams are given up; what both rows share is not copied again, and mostly they have parted only lately.
        """
        if self.caches is None:
            return
        beams, length = parents.shape[1], self.caches[0].length
        if self.rows is None:  # just after the prompt, which all beams share
            self.rows = list(range(parents.numel()))
            self.shared = [[length] * len(self.rows) for _ in self.rows]  # so many first tokens two rows have in common
        before, self.rows = self.rows, []
        for i, chosen in enumerate(parents.tolist()):
            continued = [before[i * beams + j] for j in chosen]
            given_up = set(before[i * beams : (i + 1) * beams]) - set(continued)
            for k, row in enumerate(continued):
                self.rows.append(self._copied(row, given_up.pop(), length) if row in continued[:k] else row)

    def _copied(self, row: int, to: int, length: int) -> int:
        """Let row ``to`` of the caches hold the first ``length`` tokens of another row."""
        alike = self.shared[row][to]
        for cache in self.caches:
            for room in (cache.keys, cache.values):
                room[to, :, alike:length] = room[row, :, alike:length]
        for other, common in enumerate(self.shared[row]):
            self.shared[to][other] = self.shared[other][to] = common
        self.shared[row][to] = self.shared[to][row] = length
        return to

    def forget(self, length: int) -> None:
        """Go back to the first ``length`` tokens."""
        for cache in self.caches or ():
            cache.length = min(cache.length, length)


def greedy(model: Model, ids: Tensor, new: int, end: int | None = None, lengths: Tensor | None = None) -> Tensor:
    """Always the most probable next token. → (batch, length + at most new)"""
    return walk(model, ids, new, lambda logits, _: logits.argmax(dim=-1), end, lengths)


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

    def choose(logits: Tensor, so_far: Tensor) -> Tensor:
        return draw((filters(logits, so_far) if filters else logits).softmax(dim=-1), generator)

    return walk(model, ids, new, choose, end, lengths)


def walk(
    model: Model,
    ids: Tensor,
    new: int,
    choose: Callable[[Tensor, Tensor], Tensor],
    end: int | None = None,
    lengths: Tensor | None = None,
) -> Tensor:
    """One token after the other: ``choose(scores (batch, vocabulary), ids so far)`` → the next tokens, (batch)."""
    room, reader = start(model, ids, new, end, lengths)
    texts = walks.walk(reader, room[:, : ids.shape[1]], new, choose, end)
    return torch.cat([ids, texts[:, ids.shape[1] :]], dim=1)  # with the fillers that came


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
    out, reader = start(model, ids, new, end)
    batch, length, longest = len(ids), ids.shape[1], out.shape[1]
    texts = out[:, None].repeat(1, beams, 1)  # the beginnings (batch, beams, longest)
    logits = reader(out[:, :length])[:, -1].repeat_interleave(beams, dim=0)  # (batch · beams, vocabulary)
    reader.select(torch.arange(batch, device=ids.device).repeat_interleave(beams))
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
        reader.continue_beams(parent)
        logits = reader(texts[..., : t + 1].flatten(0, 1))[:, -1]

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
    start(model, ids, new, None)
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
    batch, length = ids.shape if ids.dim() == 2 else (0, 0)  # other shapes are refused by start
    seen = []
    hook = model.stack.register_forward_hook(lambda module, args, output: seen.append(output[0]))
    try:
        out, reader = start(model, ids, new, end)
        logits = reader(ids)[:, -1]
        past = F.normalize(seen.pop(), dim=-1)  # (batch, length, d)
        k = min(k, logits.shape[-1])
        rows = torch.arange(batch, device=ids.device)
        over = torch.zeros(batch, dtype=torch.bool, device=ids.device)
        for t in range(length, length + new):
            p, tokens = logits.softmax(dim=-1).topk(k)  # (batch, k)
            reader.select(rows.repeat_interleave(k))
            tried = torch.cat([out[:, :t].repeat_interleave(k, dim=0), tokens.reshape(-1, 1)], dim=1)
            logits = reader(tried)[:, -1]  # (batch · k, vocabulary)
            h = F.normalize(seen.pop()[:, -1], dim=-1).unflatten(0, (batch, k))  # (batch, k, d)
            alike = (h @ past.transpose(1, 2)).amax(dim=-1)  # (batch, k)
            choice = ((1 - alpha) * p - alpha * alike).argmax(dim=-1)  # (batch)
            token = tokens[rows, choice]
            out[:, t] = token if end is None else token.masked_fill(over, end)
            if end is not None:
                over |= token == end
                if over.all():
                    return out[:, : t + 1]
            reader.select(rows * k + choice)
            logits, past = logits[rows * k + choice], torch.cat([past, h[rows, choice][:, None]], dim=1)
    finally:
        hook.remove()
    return out


def start(model: Model, ids: Tensor, new: int, end: int | None, lengths: Tensor | None = None) -> tuple[Tensor, Reader]:
    """Room for prompts and new tokens, (batch, length + new), and a reader; bad input is refused here."""
    if ids.dim() != 2 or ids.numel() == 0 or ids.is_floating_point():
        raise ValueError(
            f"Expected ids of shape (batch, length), neither 0, all whole numbers; got {tuple(ids.shape)}."
        )
    if new < 1:
        raise ValueError(f"At least 1 new token must be asked for; got {new}.")
    longest, total = getattr(getattr(model, "shape", None), "longest", None), ids.shape[1] + new
    if longest is not None and total > longest:
        raise ValueError(f"The model sees at most {longest} tokens; {ids.shape[1]} + {new} are asked for.")
    out = ids.new_full((len(ids), total), 0 if end is None else end)
    out[:, : ids.shape[1]] = ids
    if lengths is None:
        return out, Reader(model, len(ids), total)
    if lengths.shape != ids.shape[:1] or lengths.min() < 1 or lengths.max() > ids.shape[1]:
        raise ValueError(f"Expected {len(ids)} lengths from 1 to {ids.shape[1]}; got {lengths.tolist()}.")
    skip = ids.shape[1] - lengths  # (batch)
    # The model does not see fillers. Filters do: to them, the text begins with its first token, again and again.
    filler = torch.arange(ids.shape[1], device=ids.device) < skip[:, None]
    out[:, : ids.shape[1]] = torch.where(filler, ids.gather(1, skip[:, None]), ids)
    return out, Reader(model, len(ids), total, skip)
