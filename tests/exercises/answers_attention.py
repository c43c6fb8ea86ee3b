"""The bank of lesson 02. An answer uses only what the notebook has imported (math, torch, nn)."""
# ruff: noqa: F811

import math

import torch
from bank import Bank
from torch import nn

BANK = Bank()
wrong, right = BANK.wrong, BANK.right

# What a mutant of the library's piece changes, as its new line → why it is no mistake.
EQUIVALENT = {
    "2.1": {
        "nothing = torch.zeros_like(before[:, :1])": "a column of zeros, whatever it is made like",
        "nothing = torch.zeros_like(source[:, :2])": "the encoder stops after the first of two zeros",
    },
    "2.2": {},
    "2.3": {},
    "2.4": {},
    "2.5": {
        "keys = torch.stack([place, -place ** 2], dim=1)": "of a row of numbers: its last dimension is dimension 1"
    },
    "2.6": {},
}


# --- 2.2 additive score: right --------------------------------------------------------------------------------------


@right("2.2", "all pairs joined")
def additive_score(q, keys, W, v):
    batch, queries, d = q.shape
    n = keys.shape[1]
    left = q[:, :, None].expand(batch, queries, n, d)
    right = keys[:, None].expand(batch, queries, n, d)
    return torch.tanh(torch.cat([left, right], dim=-1) @ W.T) @ v


@right("2.2", "einsum")
def additive_score(q, keys, W, v):
    d = q.shape[-1]
    a = torch.einsum("bqd,ad->bqa", q, W[:, :d])
    b = torch.einsum("bkd,ad->bka", keys, W[:, d:])
    return torch.einsum("bqka,a->bqk", torch.tanh(a.unsqueeze(2) + b.unsqueeze(1)), v)


@right("2.2", "query by query")
def additive_score(q, keys, W, v):
    sentences = []
    for b in range(q.shape[0]):
        rows = []
        for i in range(q.shape[1]):
            repeated = q[b, i].repeat(keys.shape[1], 1)
            joined = torch.cat([repeated, keys[b]], dim=1)
            hidden = torch.tanh(torch.matmul(joined, W.transpose(0, 1)))
            rows.append(torch.matmul(hidden, v))
        sentences.append(torch.stack(rows))
    return torch.stack(sentences)


@wrong("2.2", "pair by pair", says="pair by pair the trainings below would take hours")
def additive_score(q, keys, W, v):
    sentences = []
    for b in range(len(q)):
        rows = []
        for query in q[b]:
            rows.append(torch.stack([v @ torch.tanh(W @ torch.cat([query, key])) for key in keys[b]]))
        sentences.append(torch.stack(rows))
    return torch.stack(sentences)


@right("2.2", "F.linear, sum by hand")
def additive_score(q, keys, W, v):
    d = q.size(2)
    total = nn.functional.linear(q, W[:, :d]).unsqueeze(2) + nn.functional.linear(keys, W[:, d:]).unsqueeze(1)
    return (total.tanh() * v).sum(dim=-1)


@wrong("2.2", "into zeros", says="pair by pair the trainings below would take hours")
def additive_score(q, keys, W, v):
    scores = torch.zeros(len(q), q.shape[1], keys.shape[1])
    for b in range(len(q)):
        for i in range(q.shape[1]):
            for j in range(keys.shape[1]):
                scores[b, i, j] = v @ torch.tanh(W @ torch.cat([q[b, i], keys[b, j]]))
    return scores


# --- 2.2 wrong ------------------------------------------------------------------------------------------------------


@wrong("2.2", "no tanh", says="The tanh is missing")
def additive_score(q, keys, W, v):
    d = q.shape[-1]
    return ((q @ W[:, :d].T)[:, :, None] + (keys @ W[:, d:].T)[:, None]) @ v


@wrong("2.2", "W without transpose", says="multiply from the right by the transpose")
def additive_score(q, keys, W, v):
    return torch.tanh(q @ W) @ v


@wrong("2.2", "joined as they come", says="bring both to (batch, queries, keys, d)")
def additive_score(q, keys, W, v):
    return torch.tanh(torch.cat([q, keys], dim=-1) @ W.T) @ v


@wrong("2.2", "query forgotten", says="The query does not enter")
def additive_score(q, keys, W, v):
    d = q.shape[-1]
    scores = torch.tanh(keys @ W[:, d:].T) @ v
    return scores[:, None].expand(-1, q.shape[1], -1)


@wrong("2.2", "W cut at a", says="The left half of W has as many columns as a query has entries")
def additive_score(q, keys, W, v):
    a = len(W)
    return torch.tanh((q @ W[:, :a].T)[:, :, None] + (keys @ W[:, a:].T)[:, None]) @ v


@wrong("2.2", "W cut across", says="W is cut across, into rows; the part of the query is its left half")
def additive_score(q, keys, W, v):
    W_q, W_k = W.chunk(2, 0)
    return torch.tanh((q @ W_q.T)[:, :, None] + (keys @ W_k.T)[:, None]) @ v


# --- 2.3 masked softmax: right --------------------------------------------------------------------------------------


@right("2.3", "by hand")
def masked_softmax(scores, mask):
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    largest = scores.masked_fill(~mask, -1e30).max(dim=-1, keepdim=True).values
    e = torch.exp((scores - largest).masked_fill(~mask, -1e30)) * mask
    return e / e.sum(dim=-1, keepdim=True).clamp(min=1e-30)


@right("2.3", "where, and a very low number")
def masked_softmax(scores, mask):
    if mask is None:
        return torch.softmax(scores, dim=-1)
    low = torch.where(mask, scores, torch.full_like(scores, -1e9))
    return torch.where(mask, torch.softmax(low, dim=-1), torch.zeros_like(scores))


@right("2.3", "hidden rows opened first")
def masked_softmax(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    mask = mask.expand_as(scores)
    none = ~mask.any(dim=-1, keepdim=True)
    weights = nn.functional.softmax(scores.masked_fill(~(mask | none), float("-inf")), dim=-1)
    return weights.masked_fill(none, 0.0)


@right("2.3", "NaN mended, behind a fill that stops its gradient")
def masked_softmax(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    return scores.masked_fill(~mask, float("-inf")).softmax(-1).nan_to_num(0.0)


# --- 2.3 wrong ------------------------------------------------------------------------------------------------------


@wrong("2.3", "minus infinity", says="a softmax over −∞ alone is 0 / 0")
def masked_softmax(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    return scores.masked_fill(~mask, float("-inf")).softmax(-1)


@wrong("2.3", "NaN mended afterwards", says="a NaN was mended afterwards, and on its way back the gradient meets it")
def masked_softmax(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    hidden = torch.zeros_like(scores).masked_fill(~mask, float("-inf"))
    return (scores + hidden).softmax(-1).nan_to_num(0.0)


@wrong("2.3", "hidden rows spread evenly", says="yours is spread evenly")
def masked_softmax(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    return scores.masked_fill(~mask, -1e9).softmax(-1)


@wrong("2.3", "scores times mask", says="A hidden score becomes 0 (set so, or multiplied by the mask), and e⁰ = 1")
def masked_softmax(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    return (scores * mask).softmax(-1)


@wrong("2.3", "exp overflows", says="exp overflows")
def masked_softmax(scores, mask):
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    scores = scores.clamp(max=700.0) if scores.dtype == torch.float64 else scores
    e = torch.where(mask, scores, torch.zeros_like(scores)).exp() * mask
    return e / e.sum(-1, keepdim=True).clamp(min=1e-30)


@wrong("2.3", "None forgotten", says="`mask` may be `None`")
def masked_softmax(scores, mask):
    return scores.masked_fill(~mask, -1e9).softmax(-1) * mask


@wrong("2.3", "in place", says="It changes its input scores in place")
def masked_softmax(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    scores[~mask.expand_as(scores)] = -1e9
    return scores.softmax(-1) * mask


@wrong("2.3", "plain exp", says="exp overflows")
def masked_softmax(scores, mask):
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
    e = scores.exp() * mask
    return e / e.sum(-1, keepdim=True).clamp(min=1e-9)


@wrong("2.3", "mask of numbers", says="the mask has to stay Boolean")
def masked_softmax(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    mask = mask.float()
    return scores.masked_fill(~mask, -1e9).softmax(-1) * mask


@wrong("2.3", "an index in the mask's shape", says="The mask may be smaller than the scores, (batch, 1, keys)")
def masked_softmax(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    low = scores.clone()
    low[~mask] = -1e9
    return low.softmax(-1) * mask


@wrong("2.3", "−∞ times True", says="weights holds NaN")
def masked_softmax(scores, mask):
    if mask is None:
        return scores.softmax(-1)
    return (scores + ~mask * float("-inf")).softmax(-1)


# --- 2.4 context vector: right --------------------------------------------------------------------------------------


@right("2.4", "einsum")
def context_vector(q, states, mask, score):
    scores = score(q, states)
    weights = scores.softmax(-1) if mask is None else scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    return torch.einsum("bqk,bkd->bqd", weights, states), weights


@right("2.4", "bmm, exp by hand")
def context_vector(q, states, mask, score):
    scores = score(q, states)
    e = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    e = e if mask is None else e * mask
    weights = e / e.sum(dim=-1, keepdim=True).clamp(min=1e-20)
    return torch.bmm(weights, states), weights


@right("2.4", "sentence by sentence")
def context_vector(q, states, mask, score):
    scores = score(q, states)
    contexts, all_weights = [], []
    for b in range(len(scores)):
        row = scores[b] if mask is None else scores[b].masked_fill(~mask[b], -1e30)
        weights = torch.softmax(row, dim=1)
        weights = weights if mask is None else weights * mask[b]
        contexts.append((weights[:, :, None] * states[b]).sum(dim=1))
        all_weights.append(weights)
    return torch.stack(contexts), torch.stack(all_weights)


@right("2.4", "weights that are only looked at")
def context_vector(q, states, mask, score):
    scores = score(q, states)
    weights = scores.softmax(-1) if mask is None else scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    return weights @ states, weights.detach()


# --- 2.4 wrong ------------------------------------------------------------------------------------------------------


@wrong("2.4", "no softmax", says="they need a softmax")
def context_vector(q, states, mask, score):
    scores = score(q, states)
    weights = scores if mask is None else scores * mask
    return weights @ states, weights


@wrong("2.4", "minus infinity", says="a softmax over −∞ alone is 0 / 0")
def context_vector(q, states, mask, score):
    scores = score(q, states)
    weights = (scores if mask is None else scores.masked_fill(~mask, float("-inf"))).softmax(-1)
    return weights @ states, weights


@wrong("2.4", "context alone", says="Expected context and weights to be returned")
def context_vector(q, states, mask, score):
    scores = score(q, states)
    weights = scores.softmax(-1) if mask is None else scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    return weights @ states


@wrong("2.4", "hard look", says="a hard look: take the weighted mean of all")
def context_vector(q, states, mask, score):
    scores = score(q, states)
    weights = scores.softmax(-1) if mask is None else scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    best = weights.argmax(dim=-1)
    return torch.stack([states[b, best[b]] for b in range(len(states))]), weights


@wrong("2.4", "divided once more", says="do not divide by the number of states")
def context_vector(q, states, mask, score):
    scores = score(q, states)
    weights = scores.softmax(-1) if mask is None else scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    return (weights[..., None] * states[:, None]).mean(dim=2), weights


@wrong("2.4", "states turned", says="fit as they are: do not turn the states")
def context_vector(q, states, mask, score):
    scores = score(q, states)
    weights = scores.softmax(-1) if mask is None else scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    return weights @ states.transpose(1, 2), weights


@wrong("2.4", "weights turned", says="fit as they are: do not turn the weights")
def context_vector(q, states, mask, score):
    scores = score(q, states)
    weights = scores.softmax(-1) if mask is None else scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    return weights.transpose(1, 2) @ states, weights


@wrong("2.4", "a score of its own, keys not turned", says="turn their last two dimensions, `transpose(1, 2)`")
def context_vector(q, states, mask, score):
    weights = (q @ states).softmax(-1)
    return weights @ states, weights


@wrong("2.4", "states first", says="`score` takes (q, states), in this order")
def context_vector(q, states, mask, score):
    scores = score(states, q)
    weights = scores.softmax(-1) if mask is None else scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    return weights @ states, weights


@wrong("2.4", "mask squeezed", says="the mask is (batch, 1, keys) and fits as it is")
def context_vector(q, states, mask, score):
    scores = score(q, states)
    weights = scores.softmax(-1)
    if mask is not None:
        mask = mask.squeeze(1)
        weights = scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    return weights @ states, weights


@wrong("2.4", "states cut off from the gradient", says="no gradient reaches states")
def context_vector(q, states, mask, score):
    scores = score(q, states.detach())
    weights = scores.softmax(-1) if mask is None else scores.masked_fill(~mask, -1e30).softmax(-1) * mask
    return weights @ states.detach(), weights


@wrong("2.4", "None forgotten", says="`mask` may be `None`: then nothing is hidden")
def context_vector(q, states, mask, score):
    weights = score(q, states).masked_fill(~mask, -1e30).softmax(-1) * mask
    return weights @ states, weights


@wrong(
    "2.4", "mask with one more dimension, None forgotten", says="it is (batch, 1, keys) already, and fits the scores"
)
def context_vector(q, states, mask, score):
    mask = mask[:, None]
    weights = score(q, states).masked_fill(~mask, -1e30).softmax(-1) * mask
    return weights @ states, weights


# --- 2.6 a hop: right -------------------------------------------------------------------------------------------------


@right("2.6", "matrix products")
def hop(q, keys, values, mask):
    scores = (keys @ q[:, :, None])[..., 0]
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e30)
    weights = scores.softmax(-1)
    return q + (weights[:, None] @ values)[:, 0], weights


@right("2.6", "products and sums")
def hop(q, keys, values, mask=None):
    scores = (q[:, None] * keys).sum(dim=-1)
    scores = scores if mask is None else torch.where(mask, scores, -1e9)
    weights = torch.softmax(scores, dim=1)
    return (weights[:, :, None] * values).sum(dim=1) + q, weights


@right("2.6", "story by story")
def hop(q, keys, values, mask):
    news, looks = [], []
    for b in range(len(q)):
        scores = keys[b] @ q[b]
        if mask is not None:
            scores = scores.masked_fill(~mask[b], -1e30)
        weights = scores.softmax(0)
        news.append(q[b] + weights @ values[b])
        looks.append(weights)
    return torch.stack(news), torch.stack(looks)


@right("2.6", "weights that are only looked at")
def hop(q, keys, values, mask):
    scores = torch.einsum("bd,bnd->bn", q, keys)
    scores = scores if mask is None else scores.masked_fill(~mask, -1e30)
    weights = scores.softmax(dim=-1)
    return q + torch.einsum("bn,bnd->bd", weights, values), weights.detach()


# --- 2.6 wrong ------------------------------------------------------------------------------------------------------


@wrong("2.6", "the slide's", says="What was read replaces the question")
def hop(q, keys, values, mask):
    scores = (q[:, None] * keys).sum(dim=-1)
    scores = scores if mask is None else scores.masked_fill(~mask, -1e9)
    weights = torch.softmax(scores, dim=1)
    return (weights[:, :, None] * values).sum(dim=1), weights


@wrong("2.6", "values cut off from the gradient", says="no gradient reaches values")
def hop(q, keys, values, mask):
    scores = (q[:, None] * keys).sum(dim=-1)
    scores = scores if mask is None else scores.masked_fill(~mask, -1e9)
    weights = torch.softmax(scores, dim=1)
    return q + (weights[:, :, None] * values.detach()).sum(dim=1), weights


@wrong("2.6", "None forgotten", says="`mask` may be `None`")
def hop(q, keys, values, mask):
    weights = (q[:, None] * keys).sum(dim=-1).masked_fill(~mask, -1e9).softmax(-1)
    return q + (weights[:, :, None] * values).sum(dim=1), weights


@wrong("2.6", "as for one story", says="give the question a dimension for the facts")
def hop(q, keys, values, mask):
    weights = (q * keys).sum(dim=-1).softmax(-1)
    return q + (weights[:, :, None] * values).sum(dim=1), weights


@wrong("2.6", "keys not turned", says="each question meets the facts of its own story")
def hop(q, keys, values, mask):
    weights = (q @ keys).softmax(-1)
    return q + weights @ values, weights


@wrong("2.6", "the new question alone", says="Expected the new question and weights to be returned")
def hop(q, keys, values, mask):
    weights = (q[:, None] * keys).sum(dim=-1).softmax(-1)
    return q + (weights[:, :, None] * values).sum(dim=1)


BANK.edited("2.4", "weights @ states → weights @ q · What is read are the states: `weights @ states`")


# --- 2.1 the source-blind control: right ----------------------------------------------------------------------------


@right("2.1", "a column of zeros")
def source_blind(source, lengths, before):
    batch = source.shape[0]
    return torch.zeros(batch, 1, dtype=torch.long), torch.ones(batch, dtype=torch.long), before


@right("2.1", "the same five words for all")
def source_blind(source, lengths, before):
    words = torch.tensor([[3, 1, 4, 1, 5]])
    return words.repeat(len(source), 1), torch.full_like(lengths, 5), before.clone()


@right("2.1", "multiplied away")
def source_blind(source, lengths, before):
    return source[:, :1] * 0, lengths * 0 + 1, before


# --- 2.1 wrong ------------------------------------------------------------------------------------------------------


@wrong("2.1", "zeros of the source's shape", says="The words are gone, but not how many there were")
def source_blind(source, lengths, before):
    return torch.zeros_like(source), lengths, before


@wrong("2.1", "the width is kept", says="Each batch is cut at its own longest sentence")
def source_blind(source, lengths, before):
    return torch.zeros_like(source), torch.full_like(lengths, source.shape[1]), before


@wrong("2.1", "only the width is kept, behind the length", says="Each batch is cut at its own longest sentence")
def source_blind(source, lengths, before):
    return torch.zeros_like(source), torch.ones_like(lengths), before


@wrong("2.1", "the first word", says="Two sentences of a batch are still read as different words")
def source_blind(source, lengths, before):
    return source[:, :1], torch.ones_like(lengths), before


@wrong("2.1", "sources shuffled", says="Two sentences of a batch are still read as different words")
def source_blind(source, lengths, before):
    return source.flip(0), lengths.flip(0), before


@wrong("2.1", "one sentence of the batch for all", says="Each batch is cut at its own longest sentence")
def source_blind(source, lengths, before):
    return source[:1].expand_as(source), lengths[:1].expand_as(lengths), before


@wrong("2.1", "the first word of the batch for all", says="Sentences of different batches are read as different words")
def source_blind(source, lengths, before):
    return source[:1, :1].expand(len(source), 1), torch.ones_like(lengths), before


@wrong("2.1", "the largest word number for all", says="Sentences of different batches are read as different words")
def source_blind(source, lengths, before):
    return source.new_full((len(source), 1), int(source.max())), torch.ones_like(lengths), before


@wrong("2.1", "words behind the length", says="Beyond the length there still are different words")
def source_blind(source, lengths, before):
    return torch.cat([torch.zeros_like(source[:, :1]), source], dim=1), torch.ones_like(lengths), before


@wrong("2.1", "nothing to read", says="An encoder needs one word at least")
def source_blind(source, lengths, before):
    return source[:, :0], torch.zeros_like(lengths), before


@wrong("2.1", "lengths of 0", says="An encoder needs one word at least")
def source_blind(source, lengths, before):
    return torch.zeros_like(source), torch.zeros_like(lengths), before


@wrong("2.1", "longer than it is", says="A length is larger than the source has places")
def source_blind(source, lengths, before):
    return torch.zeros_like(source[:, :1]), torch.full_like(lengths, 24), before


@wrong("2.1", "no such word", says="A word number must be in the vocabulary")
def source_blind(source, lengths, before):
    return torch.full_like(source[:, :1], -100), torch.ones_like(lengths), before


@wrong("2.1", "the target hidden, too", says="The decoder must still be told its words so far")
def source_blind(source, lengths, before):
    return torch.zeros_like(source[:, :1]), torch.ones_like(lengths), torch.zeros_like(before)


@wrong("2.1", "floats", says="source must hold whole numbers (torch.int64)")
def source_blind(source, lengths, before):
    return torch.zeros(len(source), 1), torch.ones_like(lengths), before


@wrong("2.1", "two results", says="Expected three tensors to be returned")
def source_blind(source, lengths, before):
    return torch.zeros_like(source[:, :1]), torch.ones_like(lengths)


@wrong("2.1", "a number for the lengths", says="Expected three tensors to be returned")
def source_blind(source, lengths, before):
    return torch.zeros_like(source[:, :1]), 1, before


@wrong("2.1", "a single row", says="source must be of shape (3, …), a row for each sentence; got (1, 1)")
def source_blind(source, lengths, before):
    return torch.zeros(1, 1, dtype=torch.long), torch.ones_like(lengths), before


@wrong("2.1", "in place", says="It changes its input source in place")
def source_blind(source, lengths, before):
    source[:] = 0
    lengths[:] = 1
    return source[:, :1], lengths, before


# --- 2.5 a decoder that reverses: right -----------------------------------------------------------------------------


@right("2.5", "loops, the parabola")
def reversing_vectors(lengths, longest, margin):
    keys = torch.tensor([[2.0 * j, 1.0 * j * j] for j in range(longest)])
    q = torch.zeros(len(lengths), longest, 2)
    for b, n in enumerate(lengths.tolist()):
        for t in range(longest):
            q[b, t, 0] = margin * (n - 1 - t)
            q[b, t, 1] = -margin
    return q, keys


@right("2.5", "points on a circle")
def reversing_vectors(lengths, longest, margin):
    step = math.pi / (longest + 1)
    angle = torch.arange(longest, dtype=torch.float64) * step
    keys = torch.stack([angle.cos(), angle.sin()], dim=-1)
    wanted = (lengths[:, None] - 1 - torch.arange(longest)) * step
    q = torch.stack([wanted.cos(), wanted.sin()], dim=-1) * 1.01 * margin / (1 - math.cos(step))
    return q.float(), keys.float()


@right("2.5", "centred, sharper than asked for")
def reversing_vectors(lengths, longest, margin):
    j = torch.arange(longest, dtype=torch.float32) - longest / 2
    p = lengths[:, None] - 1 - torch.arange(longest) - longest / 2
    return 2 * margin * torch.stack([p, torch.full_like(p, -0.5)], dim=-1), torch.stack([j, j.pow(2)], dim=-1)


# --- 2.5 wrong ------------------------------------------------------------------------------------------------------


@wrong("2.5", "copies", says="This copies: step t looks at place t")
def reversing_vectors(lengths, longest, margin):
    j = torch.arange(longest).float()
    q = torch.stack([2 * j, torch.ones(longest)], dim=-1).expand(len(lengths), longest, 2)
    return margin * q, torch.stack([j, -j * j], dim=-1)


@wrong("2.5", "the longest for all", says="Step 0 looks for place 4, the last of the longest sentence")
def reversing_vectors(lengths, longest, margin):
    j = torch.arange(longest).float()
    q = torch.stack([2 * j.flip(0), torch.ones(longest)], dim=-1).expand(len(lengths), longest, 2)
    return margin * q, torch.stack([j, -j * j], dim=-1)


@wrong("2.5", "d = longest", says="expected q of shape (3, 5, 2); got (3, 5, 5)")
def reversing_vectors(lengths, longest, margin):
    wanted = (lengths[:, None] - 1 - torch.arange(longest)).clamp(min=0)
    return margin * torch.eye(longest)[wanted], torch.eye(longest)


@wrong("2.5", "a straight line", says="Only the ends are found")
def reversing_vectors(lengths, longest, margin):
    j = torch.arange(longest).float()
    wanted = lengths[:, None] - 1 - j
    q = torch.stack([torch.ones_like(wanted), torch.zeros_like(wanted)], dim=-1)
    return margin * q, torch.stack([j, j], dim=-1)


@wrong("2.5", "a key for each sentence", says="expected keys of shape (5, 2); got (3, 5, 2)")
def reversing_vectors(lengths, longest, margin):
    p = lengths[:, None] - 1.0 - torch.arange(longest)
    return torch.stack([p, p], dim=-1), torch.stack([p, p], dim=-1)


@wrong("2.5", "on a circle, not sharp enough", says="The right place wins, but by")
def reversing_vectors(lengths, longest, margin):
    step = math.pi / (longest + 1)
    angle = torch.arange(longest) * step
    wanted = (lengths[:, None] - 1 - torch.arange(longest)) * step
    return (
        margin * torch.stack([wanted.cos(), wanted.sin()], dim=-1),
        torch.stack([angle.cos(), angle.sin()], dim=-1),
    )


@wrong("2.5", "a circle of ten places", says="Of 24 words, step 1 must look at place 22")
def reversing_vectors(lengths, longest, margin):
    step = math.pi / 10
    angle = torch.arange(longest) * step
    wanted = (lengths[:, None] - 1 - torch.arange(longest)) * step
    return (
        100 * margin * torch.stack([wanted.cos(), wanted.sin()], dim=-1),
        torch.stack([angle.cos(), angle.sin()], dim=-1),
    )


@wrong("2.5", "always 10", says="The right place wins, but by 10 only: with margin 30")
def reversing_vectors(lengths, longest, margin):
    j = torch.arange(longest).float()
    p = lengths[:, None] - 1 - j
    return 10 * torch.stack([2 * p, torch.ones_like(p)], dim=-1), torch.stack([j, -j * j], dim=-1)


@wrong("2.5", "one tensor", says="Expected two tensors to be returned, q and keys")
def reversing_vectors(lengths, longest, margin):
    return torch.zeros(len(lengths), longest, 2)


@wrong("2.5", "whole numbers", says="q must be torch.float32; got torch.int64")
def reversing_vectors(lengths, longest, margin):
    p = lengths[:, None] - 1 - torch.arange(longest)
    return torch.stack([p, p], dim=-1), torch.zeros(longest, 2)


@wrong("2.5", "divided by the length of the keys", says="holds NaN")
def reversing_vectors(lengths, longest, margin):
    j = torch.arange(longest).float()
    keys = torch.stack([j, -j * j], dim=-1)
    p = lengths[:, None] - 1 - j
    return margin * torch.stack([2 * p, torch.ones_like(p)], dim=-1), keys / keys.norm(dim=-1, keepdim=True)


BANK.edited(
    "2.5",
    """
    lengths[:, None] - 1 - place → lengths[:, None] - place · One place too far to the right
    lengths[:, None] - 1 - place → lengths[:, None] - 2 - place · its largest score is at place 1
    -(place**2) → place**2 · Only the ends are found
    margin * torch → torch · The right place wins, but by 1 only
    """,
)
