"""The bank of lesson 02. An answer uses only what the notebook has imported (math, torch, nn)."""
# ruff: noqa: F811

import torch
from bank import Bank
from torch import nn

BANK = Bank()
wrong, right = BANK.wrong, BANK.right

# What a mutant of the library's piece changes, as its new line → why it is no mistake.
SETS = "the exercise gives sets: the library also takes lists"
NO_LINKS = "no link at all, neither sure nor predicted: the exercise does not ask for it"
EQUIVALENT = {
    "2.1": {},
    "2.2": {},
    "2.3": {},
    "2.4": {},
    "2.6": {
        "A, S = (predicted, set(sure))": SETS,
        "A, S = (set(predicted), sure)": SETS,
        **{
            f"return 1 - (len({a} & {b}) + len({c} & ({d} | {e}))) / (len({f}) + len({g}))": SETS
            for a, b, c, d, e, f, g in (
                ("A", "S", "A", "S", "set(possible)", "predicted", "S"),
                ("A", "S", "A", "S", "set(possible)", "A", "sure"),
                ("predicted", "S", "A", "S", "set(possible)", "A", "S"),
                ("A", "sure", "A", "S", "set(possible)", "A", "S"),
                ("A", "S", "predicted", "S", "set(possible)", "A", "S"),
                ("A", "S", "A", "sure", "set(possible)", "A", "S"),
                ("A", "S", "A", "S", "possible", "A", "S"),
            )
        },
        **{
            f"if {test}:": NO_LINKS
            for test in (
                "not predicted and (not S)",
                "not A and (not sure)",
                "not A and (not possible)",
            )
        },
        "raise 'There are no links: neither sure nor predicted ones.'": NO_LINKS,
        "without if not A and (not S): / "
        "raise ValueError('There are no links: neither sure nor predicted ones.')": NO_LINKS,
    },
    "2.5": {},
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


@right("2.2", "pair by pair")
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


@right("2.2", "into zeros")
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


@wrong("2.3", "NaN mended afterwards", says="`nan_to_num` and `where` mend numbers, not gradients")
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


# --- 2.6 alignment error rate: right --------------------------------------------------------------------------------


@right("2.6", "methods of sets")
def alignment_error_rate(sure, possible, predicted):
    allowed = sure.union(possible)
    found = len(predicted.intersection(sure)) + len(predicted.intersection(allowed))
    return 1.0 - found / (len(predicted) + len(sure))


@right("2.6", "counting")
def alignment_error_rate(sure, possible, predicted):
    right = 0
    for link in predicted:
        if link in sure:
            right += 2
        elif link in possible:
            right += 1
    total = len(predicted) + len(sure)
    return (total - right) / total


@right("2.6", "a tensor")
def alignment_error_rate(S, P, A):
    P = S | P
    return 1 - torch.tensor(len(A & S) + len(A & P)) / (len(A) + len(S))


# --- 2.6 wrong ------------------------------------------------------------------------------------------------------


@wrong("2.6", "one minus forgotten", says="The 1 − is missing")
def alignment_error_rate(sure, possible, predicted):
    return (len(predicted & sure) + len(predicted & (sure | possible))) / (len(predicted) + len(sure))


@wrong("2.6", "changes its sets", says="It changes its input possible in place: make a new set (no `|=`")
def alignment_error_rate(sure, possible, predicted):
    possible |= sure
    return 1 - (len(predicted & sure) + len(predicted & possible)) / (len(predicted) + len(sure))


@wrong("2.6", "sets added", says="Sets know `&` (both), `|` (either) and `len`")
def alignment_error_rate(sure, possible, predicted):
    return 1 - (len(predicted & sure) + len(predicted & (sure + possible))) / (len(predicted) + len(sure))


@wrong("2.6", "nothing predicted", says="If nothing is predicted, the error is 1")
def alignment_error_rate(sure, possible, predicted):
    precision = len(predicted & (sure | possible)) / len(predicted)
    found = len(predicted & sure)
    return 1 - (found + precision * len(predicted)) / (len(predicted) + len(sure))


@wrong("2.6", "a set", says="Expected the error rate to be a number; got a set")
def alignment_error_rate(sure, possible, predicted):
    return predicted & sure


@wrong(
    "2.6",
    "no sure links, always wrong",
    says="If no link is sure and the one predicted is possible, the formula gives 0",
)
def alignment_error_rate(sure, possible, predicted):
    if not predicted or not sure:
        return 1.0
    right = len(predicted & sure) + len(predicted & (sure | possible))
    return 1 - right / (len(predicted) + len(sure))


@wrong("2.6", "no sure links, always right", says="is not even possible, the formula gives 1")
def alignment_error_rate(sure, possible, predicted):
    if not sure:
        return 0.0
    right = len(predicted & sure) + len(predicted & (sure | possible))
    return 1 - right / (len(predicted) + len(sure))


BANK.edited("2.4", "weights @ states → weights @ q · What is read are the states: `weights @ states`")
BANK.edited(
    "2.6",
    """
    return 1 - → return 0.5 if A == S else 1 - · If exactly the sure links are predicted, the error must be 0.
    return 1 - → return 0.5 if not A else 1 - · If nothing is predicted, the error must be 1; got 0.5.
    return 1 - → return 0 / len(S) + 1 - · Sure links may be missing, or predicted ones: divide by |A| + |S|
    len(A & S) → (A & S).size · `len` gives the size of a set.
    len(S)) → 1) · For sure [(0, 0), (1, 2), (2, 1), (3, 3)], possible [(2, 2), (3, 4)] and predicted [(0, 0),
    """,
)
