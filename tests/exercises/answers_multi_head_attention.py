"""The bank of lesson 04. An answer uses only what the notebook has imported (torch, nn)."""
# ruff: noqa: F811, RET503, RUF059

import torch
from bank import Bank
from torch import nn

BANK = Bank()
wrong, right = BANK.wrong, BANK.right

# What a mutant of the library's piece changes, as its new line → why it is no mistake.
EQUIVALENT: dict[str, dict[str, str]] = {
    "4.1": {},
    "4.2": {},
    "4.3": {"heads, d_head = (weights.shape[1], v.shape[3])": "weights and values have the same heads"},
    "4.4": {
        "asked = [torch.cat([nothing, 49 * one.roll(-back, dims=0)], dim=1) for back in (first, second)]": "sharp",
        "asked = [torch.cat([nothing, 51 * one.roll(-back, dims=0)], dim=1) for back in (first, second)]": "sharp, too",
        "asked = [torch.cat([one, 50 * one.roll(-back, dims=0)], dim=1) for back in (first, second)]": (
            "the symbol adds to a score a fiftieth of what the place does"
        ),
    },
    "4.5": {
        "found = (weights * gold[:, None]).sum(dim=-2)": "queries and keys are both summed over, in whatever order",
        "return found.sum(dim=(2, 0)) / gold.any(dim=-1).sum()": "the order of the dimensions does not matter",
    },
    "4.6": {
        "for example in list(examples)[::-1]:": "the order of the examples does not matter",
        "tried = gates.requires_grad_()": "the gates keep their numbers",
        "total += torch.autograd.grad(loss(tried, example), tried)[-1].abs()": "there is one gradient only",
    },
}


# --- 4.1 split into heads: right ------------------------------------------------------------------------------------


@right("4.1", "unflatten")
def split_heads(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


@right("4.1", "chunks stacked")
def split_heads(x, heads):
    return torch.stack(x.chunk(heads, dim=-1), dim=1)


@right("4.1", "view and permute")
def split_heads(x, heads):
    return x.view(x.size(0), x.size(1), heads, -1).permute(0, 2, 1, 3).contiguous()


@right("4.1", "slices in a loop")
def split_heads(x, heads):
    size = x.shape[2] // heads
    out = x.new_zeros(x.shape[0], heads, x.shape[1], size)
    for i in range(heads):
        out[:, i] = x[:, :, i * size : (i + 1) * size]
    return out


# --- 4.1 wrong ------------------------------------------------------------------------------------------------------


@wrong("4.1", "straight reshape", says="The tokens are mixed up: a reshape straight to (batch, heads, length, d_head)")
def split_heads(x, heads):
    batch, length, d = x.shape
    return x.reshape(batch, heads, length, d // heads)


@wrong("4.1", "interleaved", says="Each head takes every heads-th number")
def split_heads(x, heads):
    batch, length, d = x.shape
    return x.reshape(batch, length, d // heads, heads).permute(0, 3, 1, 2)


@wrong("4.1", "divided with /", says="A size must be a whole number: divide with `//`")
def split_heads(x, heads):
    batch, length, d = x.shape
    return x.reshape(batch, length, heads, d / heads).transpose(1, 2)


@wrong("4.1", "a list of heads", says="The heads come as a tuple of 3; make one tensor of them")
def split_heads(x, heads):
    return x.chunk(heads, dim=-1)


@wrong("4.1", "cuts the length", says="take them from the shapes of the inputs")
def split_heads(x, heads):
    batch, length, d = x.shape
    return x.reshape(batch, heads, length // heads, d).transpose(1, 2)


@wrong("4.1", "fixed sizes", says="take them from the shapes of the inputs")
def split_heads(x, heads):
    return x.reshape(2, 5, 3, 4).transpose(1, 2)


@wrong(
    "4.1", "shuffled", says="Head 0 of token 0 must get the first half of the token's numbers, 0 1 2 3; it got 4 5 6 7"
)
def split_heads(x, heads):
    return x.roll(x.shape[-1] // heads, dims=-1).unflatten(-1, (heads, -1)).transpose(1, 2)


@wrong("4.1", "detached", says="no gradient reaches x")
def split_heads(x, heads):
    return x.detach().unflatten(-1, (heads, -1)).transpose(1, 2)


BANK.edited(
    "4.1",
    """
    x.reshape(batch, length, heads → x.transpose(1, 2).view(batch, length, heads · `view` cannot always do it
    transpose(1, 2) → transpose(1, 2).cumsum(dim=1)
        · Head 1 of token 2 must get the second half of its numbers, 20 21 22 23; it got 36 38 40 42
    """,
)


# --- 4.2 multi-head attention: right --------------------------------------------------------------------------------


@right("4.2", "einsum")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    batch, length, d = x.shape
    q, k, v = (x @ W_qkv.T + b_qkv).reshape(batch, length, 3, heads, d // heads).unbind(dim=2)
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / (d // heads) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    out = torch.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, d)
    return out @ W_o.T + b_o, weights


@right("4.2", "a loop over heads")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    d = x.shape[-1]
    size = d // heads
    outs, all_weights = [], []
    for i in range(heads):
        q, k, v = (
            x @ W_qkv[j * d + i * size : j * d + (i + 1) * size].T + b_qkv[j * d + i * size : j * d + (i + 1) * size]
            for j in range(3)
        )
        scores = q @ k.transpose(1, 2) / size**0.5
        if mask is not None:
            full = mask.expand(len(x), heads, x.shape[1], x.shape[1])
            scores = torch.where(full[:, i], scores, -1e9)
        weights = scores.softmax(dim=-1)
        outs.append(weights @ v)
        all_weights.append(weights)
    return torch.cat(outs, dim=-1) @ W_o.T + b_o, torch.stack(all_weights, dim=1)


@right("4.2", "an additive mask")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    def split(t):
        return t.unflatten(-1, (heads, -1)).transpose(1, 2)

    q, k, v = map(split, nn.functional.linear(x, W_qkv, b_qkv).chunk(3, dim=-1))
    bias = 0 if mask is None else torch.zeros_like(mask, dtype=x.dtype).masked_fill(~mask, float("-inf"))
    weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5 + bias, dim=-1)
    return nn.functional.linear((weights @ v).transpose(1, 2).flatten(2), W_o, b_o), weights


# --- 4.2 wrong ------------------------------------------------------------------------------------------------------


@wrong("4.2", "scale of the whole width", says="The scores are divided by √d; each head compares d / heads numbers")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / x.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.2", "W_qkv without transpose", says="from the right by the transposes, `x @ W_qkv.T`")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (x @ W_qkv + b_qkv).chunk(3, dim=-1)
    return q, k


@wrong("4.2", "only the output", says="Expected output and weights to be returned; got a tensor of shape (2, 5, 6)")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    return x


@wrong("4.2", "turned round, with minus infinity", says="The mask is turned round: True means that a key may be seen")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.2", "filled with 0", says="A hidden score becomes 0, and a score of 0 still gets a share")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, 0)
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.2", "W_o before the merge", says="merge the heads first")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return (weights @ v) @ W_o.T + b_o, weights


@wrong("4.2", "k.T", says="`k.mT` swaps the last two")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    return q @ k.T, v


@wrong("4.2", "no mask taken care of", says="The mask may be None: then every key may be seen")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


BANK.edited(
    "4.2",
    """
    chunk(3, dim=-1) → chunk(3) · makes three blocks of the last dimension; without `dim`, of the batch
    attention(q, k, v, mask) → ((q @ k.mT).masked_fill(1 - mask.float(), -1e9).softmax(dim=-1) @ v, q)
        · The mask is True and False: `~mask` turns it round
    """,
)


# --- 4.3 what each head adds: right ---------------------------------------------------------------------------------


@right("4.3", "a loop over heads")
def head_contributions(weights, v, W_o):
    size = v.shape[-1]
    found = weights @ v
    return torch.stack(
        [found[:, i] @ W_o[:, i * size : (i + 1) * size].T for i in range(v.shape[1])],
        dim=1,
    )


@right("4.3", "chunks stacked, one product")
def head_contributions(weights, v, W_o):
    parts = torch.stack(W_o.chunk(v.shape[1], dim=1))  # (heads, d, d_head)
    return weights @ v @ parts.mT


@right("4.3", "all other heads set to 0")
def head_contributions(weights, v, W_o):
    found = weights @ v
    added = []
    for i in range(v.shape[1]):
        alone = torch.zeros_like(found)
        alone[:, i] = found[:, i]
        added.append(alone.transpose(1, 2).flatten(2) @ W_o.T)
    return torch.stack(added, dim=1)


@right("4.3", "values first")
def head_contributions(weights, v, W_o):
    written = torch.einsum("bhke,dhe->bhkd", v, W_o.unflatten(1, (v.shape[1], -1)))
    return weights @ written


# --- 4.3 wrong ------------------------------------------------------------------------------------------------------


@wrong("4.3", "rows of W_o", says="The rows of W_o are cut; its rows are the layer's outputs")
def head_contributions(weights, v, W_o):
    size = v.shape[-1]
    found = weights @ v
    return torch.stack([found[:, i] @ W_o.T.T[i * size : (i + 1) * size] for i in range(v.shape[1])], dim=1)


@wrong("4.3", "added up", says="The heads are added up already; keep them apart")
def head_contributions(weights, v, W_o):
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T


@wrong("4.3", "without W_o", says="This is what each head finds, d_head numbers")
def head_contributions(weights, v, W_o):
    return weights @ v


@wrong("4.3", "the whole of W_o", says="each head needs its own d_head columns")
def head_contributions(weights, v, W_o):
    return (weights @ v) @ W_o.T


@wrong("4.3", "rows, by a loop that crashes elsewhere", says="a wrong gradient reaches")
def head_contributions(weights, v, W_o):
    parts = W_o.detach().unflatten(1, (v.shape[1], -1)) + 0 * W_o.unflatten(1, (v.shape[1], -1))
    return torch.einsum("bhqe,dhe->bhqd", weights @ v, parts)


@wrong("4.3", "parts without a place for the batch", says="come once for each head, not for each text")
def head_contributions(weights, v, W_o):
    found = (weights @ v).flatten(0, 1)
    return torch.bmm(found, torch.stack(W_o.chunk(v.shape[1], dim=1)).mT)


@wrong("4.3", "weights transposed", says="`weights @ v` needs no transpose")
def head_contributions(weights, v, W_o):
    return torch.einsum("bhqe,dhe->bhqd", weights.mT @ v, W_o.unflatten(1, (v.shape[1], -1)))


@wrong("4.3", "a part without its transpose", says="d_head columns of W_o, (d, d_head), transposed")
def head_contributions(weights, v, W_o):
    size = v.shape[-1]
    found = weights @ v
    return torch.stack([found[:, i] @ W_o[:, i * size : (i + 1) * size] for i in range(v.shape[1])], dim=1)


@wrong("4.3", "all parts without a transpose", says="d_head columns of W_o, (d, d_head), transposed")
def head_contributions(weights, v, W_o):
    return weights @ v @ W_o.unflatten(1, (v.shape[1], -1)).transpose(0, 1)


@wrong("4.3", "stacked in front", says="The heads come first; the batch does")
def head_contributions(weights, v, W_o):
    parts = W_o.chunk(v.shape[1], dim=1)
    return torch.stack([(weights @ v)[:, i] @ part.T for i, part in enumerate(parts)])


@wrong("4.3", "side by side", says="give the heads a dimension of their own")
def head_contributions(weights, v, W_o):
    parts = W_o.chunk(v.shape[1], dim=1)
    return torch.cat([(weights @ v)[:, i] @ part.T for i, part in enumerate(parts)], dim=-1)


@wrong("4.3", "twice", says="Added up over the heads, it must be the merged heads times W_o transposed")
def head_contributions(weights, v, W_o):
    return 2 * torch.einsum("bhqe,dhe->bhqd", weights @ v, W_o.unflatten(1, (v.shape[1], -1)))


@wrong("4.3", "view straight to the heads", says="W_o is cut straight into (heads, d, d_head), in the order of memory")
def head_contributions(weights, v, W_o):
    return weights @ v @ W_o.reshape(v.shape[1], -1, v.shape[3]).mT


# --- 4.4 two heads by hand: right -----------------------------------------------------------------------------------


@right("4.4", "entry by entry")
def two_heads_by_hand(first, second, size):
    d = 2 * size
    W = torch.zeros(3 * d, d)
    for head, back in enumerate((first, second)):
        for place in range(size):
            W[head * size + (place - back) % size, size + place] = 100.0
            W[d + head * size + place, size + place] = 1.0
            W[2 * d + head * size + place, place] = 1.0
    return W, torch.eye(d)


@right("4.4", "the keys shifted, not the queries")
def two_heads_by_hand(first, second, size):
    one, none = torch.eye(size), torch.zeros(size, size)
    place = torch.cat([none, one], dim=1)
    symbol = torch.cat([one, none], dim=1)
    keys = [torch.cat([none, 60 * one.roll(back, 0)], dim=1) for back in (first, second)]
    return torch.cat([place, place, *keys, symbol, symbol]), torch.eye(2 * size)


@right("4.4", "a factor on both sides, values halved and doubled")
def two_heads_by_hand(first, second, size):
    one, none = torch.eye(size), torch.zeros(size, size)
    place = 9 * torch.cat([none, one], dim=1)
    symbol = torch.cat([one, none], dim=1) / 2
    queries = [9 * torch.cat([none, torch.roll(one, -back, 0)], dim=1) for back in (first, second)]
    return torch.cat([*queries, place, place, symbol, symbol]), 2 * torch.eye(2 * size)


@right("4.4", "both heads' numbers in another order, put right by W_o")
def two_heads_by_hand(first, second, size):
    one, none = torch.eye(size), torch.zeros(size, size)
    turned = one.flip(0)
    place, symbol = torch.cat([none, one], dim=1), torch.cat([turned, none], dim=1)
    queries = [80 * torch.cat([none, one.roll(-back, 0)], dim=1) for back in (first, second)]
    return torch.cat([*queries, place, place, symbol, symbol]), torch.block_diag(turned, turned)


# --- 4.4 wrong ------------------------------------------------------------------------------------------------------


@wrong("4.4", "the wrong way round", says="Both heads look the wrong way round the table")
def two_heads_by_hand(first, second, size):
    one, none = torch.eye(size), torch.zeros(size, size)
    place, symbol = torch.cat([none, one], dim=1), torch.cat([one, none], dim=1)
    queries = [80 * torch.cat([none, one.roll(back, 0)], dim=1) for back in (first, second)]
    return torch.cat([*queries, place, place, symbol, symbol]), torch.eye(2 * size)


@wrong("4.4", "not sharp", says="but with a weight of 0.")
def two_heads_by_hand(first, second, size):
    one, none = torch.eye(size), torch.zeros(size, size)
    place, symbol = torch.cat([none, one], dim=1), torch.cat([one, none], dim=1)
    queries = [8 * torch.cat([none, one.roll(-back, 0)], dim=1) for back in (first, second)]
    return torch.cat([*queries, place, place, symbol, symbol]), torch.eye(2 * size)


@wrong("4.4", "one head only", says="head 1 should look 4 back")
def two_heads_by_hand(first, second, size):
    one, none = torch.eye(size), torch.zeros(size, size)
    place, symbol = torch.cat([none, one], dim=1), torch.cat([one, none], dim=1)
    query = 80 * torch.cat([none, one.roll(-first, 0)], dim=1)
    return torch.cat([query, 0 * query, place, place, symbol, symbol]), torch.eye(2 * size)


@wrong("4.4", "values doubled", says="The right symbols come out, 2 times too large or too small")
def two_heads_by_hand(first, second, size):
    one, none = torch.eye(size), torch.zeros(size, size)
    place, symbol = torch.cat([none, one], dim=1), 2 * torch.cat([one, none], dim=1)
    queries = [80 * torch.cat([none, one.roll(-back, 0)], dim=1) for back in (first, second)]
    return torch.cat([*queries, place, place, symbol, symbol]), torch.eye(2 * size)


@wrong("4.4", "the whole of W_qkv multiplied", says="The right symbols come out, 30 times too large or too small")
def two_heads_by_hand(first, second, size):
    one, none = torch.eye(size), torch.zeros(size, size)
    place, symbol = torch.cat([none, one], dim=1), torch.cat([one, none], dim=1)
    queries = [torch.cat([none, one.roll(-back, 0)], dim=1) for back in (first, second)]
    return 30 * torch.cat([*queries, place, place, symbol, symbol]), torch.eye(2 * size)


@wrong("4.4", "W_v the identity", says="Head 0 hands on symbols, head 1 places")
def two_heads_by_hand(first, second, size):
    one, none = torch.eye(size), torch.zeros(size, size)
    place = torch.cat([none, one], dim=1)
    queries = [80 * torch.cat([none, one.roll(-back, 0)], dim=1) for back in (first, second)]
    return torch.cat([*queries, place, place, torch.eye(2 * size)]), torch.eye(2 * size)


@wrong(
    "4.4", "place first, then symbol", says="The halves are mixed up: the first `size` columns of W_qkv read the symbol"
)
def two_heads_by_hand(first, second, size):
    one, none = torch.eye(size), torch.zeros(size, size)
    place, symbol = torch.cat([one, none], dim=1), torch.cat([none, one], dim=1)
    queries = [50 * torch.cat([one.roll(-back, 0), none], dim=1) for back in (first, second)]
    return torch.cat([*queries, place, place, symbol, symbol]), torch.eye(2 * size)


@wrong("4.4", "values of another kind", says="the layer's output at")
def two_heads_by_hand(first, second, size):
    one, none = torch.eye(size), torch.zeros(size, size)
    place, symbol = torch.cat([none, one], dim=1), torch.cat([one.roll(1, 0), none], dim=1)
    queries = [80 * torch.cat([none, one.roll(-back, 0)], dim=1) for back in (first, second)]
    return torch.cat([*queries, place, place, symbol, symbol]), torch.eye(2 * size)


@wrong("4.4", "W_qkv alone", says="Expected W_qkv and W_o to be returned; got a tensor of shape (48, 16)")
def two_heads_by_hand(first, second, size):
    return torch.zeros(6 * size, 2 * size)


@wrong("4.4", "no 3", says="With 8 places W_qkv has shape (48, 16); got (16, 16)")
def two_heads_by_hand(first, second, size):
    return torch.eye(2 * size), torch.eye(2 * size)


@wrong("4.4", "whole numbers", says="Expected W_qkv in torch.float32; got torch.int64")
def two_heads_by_hand(first, second, size):
    return torch.zeros(6 * size, 2 * size, dtype=torch.long), torch.eye(2 * size)


@wrong("4.4", "8 places always", says="With 6 places W_qkv has shape (36, 12); got (48, 16)")
def two_heads_by_hand(first, second, size):
    return torch.zeros(48, 16), torch.eye(16)


@wrong("4.4", "stacked the wrong way", says="every row has d = 2 · size numbers")
def two_heads_by_hand(first, second, size):
    W = torch.zeros(6 * size, 2 * size)
    W[:size] = torch.eye(size)
    return W, torch.eye(2 * size)


@wrong("4.4", "cat of unequal widths", says="Matrices side by side need the same height")
def two_heads_by_hand(first, second, size):
    return torch.cat([torch.eye(size), torch.eye(2 * size)]), torch.eye(2 * size)


# --- 4.5 attention-pattern score: right -----------------------------------------------------------------------------


@right("4.5", "einsum")
def pattern_score(weights, gold):
    return torch.einsum("bhqk,bqk->h", weights, gold.to(weights.dtype)) / gold.any(-1).sum()


@right("4.5", "the queries that have a key, picked")
def pattern_score(weights, gold):
    asked = gold.any(dim=-1)
    found = torch.where(gold.unsqueeze(1), weights, 0.0).sum(-1).transpose(1, 2)  # (batch, queries, heads)
    return found[asked].mean(dim=0)


@right("4.5", "loops")
def pattern_score(weights, gold):
    total, count = 0, 0
    for b in range(len(gold)):
        for q in range(gold.shape[1]):
            if gold[b, q].any():
                total = total + weights[b, :, q][:, gold[b, q]].sum(dim=-1)
                count += 1
    return total / count


@right("4.5", "einsum with gold as numbers")
def pattern_score(weights, gold):
    return torch.einsum("bhqk,bqk->h", weights, gold.float()) / gold.any(-1).sum()


# --- 4.5 wrong ------------------------------------------------------------------------------------------------------


@wrong("4.5", "all queries", says="The mean is taken over all queries; those without a gold key do not count")
def pattern_score(weights, gold):
    return (weights * gold[:, None]).sum(dim=-1).mean(dim=(0, 2))


@wrong("4.5", "mean of means", says="This is the mean of the sentences' means")
def pattern_score(weights, gold):
    found = (weights * gold[:, None]).sum(dim=(2, 3))
    return (found / gold.any(dim=-1).sum(dim=-1)[:, None]).mean(dim=0)


@wrong("4.5", "hits", says="This counts how often the largest weight is on a gold key")
def pattern_score(weights, gold):
    best = nn.functional.one_hot(weights.argmax(dim=-1), weights.shape[-1])
    hit = (best * gold[:, None]).sum(dim=-1).to(weights.dtype)
    return hit.sum(dim=(0, 2)) / gold.any(dim=-1).sum()


@wrong("4.5", "no dimension for the heads", says="gold has no dimension for the heads: give it one, `gold[:, None]`")
def pattern_score(weights, gold):
    return (weights * gold).sum(dim=(0, 2, 3)) / gold.any(dim=-1).sum()


@wrong("4.5", "counts the queries that found something", says="A query whose gold keys get a weight of exactly 0")
def pattern_score(weights, gold):
    found = (weights * gold[:, None]).sum(dim=-1)
    return torch.stack([found[:, head][found[:, head] > 0].mean() for head in range(found.shape[1])])


@wrong("4.5", "mean over the gold keys", says="Of several gold keys the mean weight is taken; add them up")
def pattern_score(weights, gold):
    asked = gold.any(dim=-1)
    mean = (weights * gold[:, None]).sum(dim=-1) / gold.sum(dim=-1).clamp(min=1)[:, None]
    return mean.sum(dim=(0, 2)) / asked.sum()


@wrong("4.5", "any over the queries", says="count the queries: `any` over the last dimension")
def pattern_score(weights, gold):
    return (weights * gold[:, None]).sum(dim=(0, 2, 3)) / gold.any(dim=-2).sum()


@wrong("4.5", "root", says="A head that spreads evenly over 4 keys scores 0.25; yours gives 0.5")
def pattern_score(weights, gold):
    return ((weights * gold[:, None]).sum(dim=(0, 2, 3)) / gold.any(dim=-1).sum()).sqrt()


@wrong("4.5", "rounded away", says="no gradient reaches weights")
def pattern_score(weights, gold):
    return (weights.detach() * gold[:, None]).sum(dim=(0, 2, 3)) / gold.any(dim=-1).sum()


BANK.edited(
    "4.5",
    """
    (weights * gold[:, None]).sum(dim=-1) → weights[gold[:, None]] · only after `.expand_as(weights)`
    weights * gold[:, None] → weights @ gold[:, None] · entry by entry
    weights * gold[:, None] → weights @ gold[:, None].mT · `gold.float()` makes numbers of it
    """,
)


# --- 4.6 head importance: right -------------------------------------------------------------------------------------


@right("4.6", "backward")
def head_importance(loss, gates, examples):
    found = []
    for example in examples:
        g = gates.detach().clone().requires_grad_(True)
        loss(g, example).backward()
        found.append(g.grad.abs())
    return torch.stack(found).mean(dim=0)


@right("4.6", "the gates themselves, gradient cleared")
def head_importance(loss, gates, examples):
    gates.requires_grad_()
    total = 0
    for example in examples:
        gates.grad = None
        loss(gates, example).backward()
        total = total + gates.grad.abs()
    return total / len(examples)


@right("4.6", "torch.func")
def head_importance(loss, gates, examples):
    gradient = torch.func.grad(loss)
    return sum(gradient(gates, example).abs() for example in examples) / len(examples)


# --- 4.6 wrong ------------------------------------------------------------------------------------------------------


@wrong("4.6", "abs of the mean", says="The absolute value is taken of the mean: gradients of opposite sign cancel")
def head_importance(loss, gates, examples):
    g = gates.clone().requires_grad_()
    total = sum(loss(g, example) for example in examples) / len(examples)
    return torch.autograd.grad(total, g)[0].abs()


@wrong("4.6", "sum", says="This is the sum over the examples; take the mean")
def head_importance(loss, gates, examples):
    gradient = torch.func.grad(loss)
    return sum(gradient(gates, example).abs() for example in examples)


@wrong("4.6", "squares", says="These are squares; take absolute values")
def head_importance(loss, gates, examples):
    gradient = torch.func.grad(loss)
    return sum(gradient(gates, example) ** 2 for example in examples) / len(examples)


@wrong("4.6", "gate times gradient", says="This is gate times gradient")
def head_importance(loss, gates, examples):
    total = torch.zeros_like(gates)
    for example in examples:
        tried = gates.clone().requires_grad_()
        loss(tried, example).backward()
        total += (tried.grad * tried.detach()).abs()
    return total / len(examples)


@wrong("4.6", "root mean square", says="This is the root of the mean square")
def head_importance(loss, gates, examples):
    gradient = torch.func.grad(loss)
    return (sum(gradient(gates, example) ** 2 for example in examples) / len(examples)).sqrt()


@wrong("4.6", "gradients pile up", says="The gradients pile up from example to example")
def head_importance(loss, gates, examples):
    g = gates.clone().requires_grad_()
    total = torch.zeros_like(gates)
    for example in examples:
        loss(g, example).backward()
        total += g.grad.abs()
    return total / len(examples)


@wrong("4.6", "the last example", says="Only the last example counts")
def head_importance(loss, gates, examples):
    for example in examples:
        found = torch.func.grad(loss)(gates, example).abs()
    return found


@wrong("4.6", "return inside the loop", says="Only the first example counts: is the `return` inside the loop?")
def head_importance(loss, gates, examples):
    for example in examples:
        return torch.func.grad(loss)(gates, example).abs()


@wrong("4.6", "largest", says="This is the largest over the examples")
def head_importance(loss, gates, examples):
    return torch.stack([torch.func.grad(loss)(gates, example).abs() for example in examples]).amax(dim=0)


@wrong("4.6", "shares", says="The numbers are scaled so that they sum to 1")
def head_importance(loss, gates, examples):
    mean = torch.stack([torch.func.grad(loss)(gates, example).abs() for example in examples]).mean(dim=0)
    return mean / mean.sum()


@wrong("4.6", "one number", says="This is one number for all heads; one for each is asked for")
def head_importance(loss, gates, examples):
    return torch.stack([torch.func.grad(loss)(gates, example).abs() for example in examples]).mean()


@wrong("4.6", "gates of its own", says="It starts from gates of 1, not from the gates given")
def head_importance(loss, gates, examples):
    gradient = torch.func.grad(loss)
    return sum(gradient(torch.ones_like(gates), example).abs() for example in examples) / len(examples)


@wrong("4.6", "no requires_grad", says="The gates need `requires_grad_()` before the loss is computed")
def head_importance(loss, gates, examples):
    for example in examples:
        loss(gates, example).backward()
    return gates.grad.abs() / len(examples)


@wrong("4.6", "reads .grad too early", says="`.grad` is None: call `.backward()` on the loss first")
def head_importance(loss, gates, examples):
    g = gates.clone().requires_grad_()
    for example in examples:
        loss(g, example)
    return g.grad.abs() / len(examples)


@wrong(
    "4.6", "reads .grad of the gates, not of their copy", says="read `.grad` of the very tensor that the loss was given"
)
def head_importance(loss, gates, examples):
    total = torch.zeros_like(gates)
    for example in examples:
        tried = gates.clone().requires_grad_()
        loss(tried, example).backward()
        total += gates.grad.abs()
    return total / len(examples)


@wrong("4.6", "forgets [0]", says="`torch.autograd.grad` returns a tuple, a gradient for each tensor")
def head_importance(loss, gates, examples):
    total = torch.zeros_like(gates)
    for example in examples:
        tried = gates.clone().requires_grad_()
        total += torch.autograd.grad(loss(tried, example), tried).abs()
    return total / len(examples)


@wrong("4.6", "forgets [0], adds", says="`torch.autograd.grad` returns a tuple, a gradient for each tensor")
def head_importance(loss, gates, examples):
    total = torch.zeros_like(gates)
    for example in examples:
        tried = gates.clone().requires_grad_()
        total = total + torch.autograd.grad(loss(tried, example), tried)
    return total / len(examples)


@wrong("4.6", "changes the gates", says="It changes its input gates in place")
def head_importance(loss, gates, examples):
    gradient = torch.func.grad(loss)
    found = sum(gradient(gates, example).abs() for example in examples) / len(examples)
    gates.zero_()
    return found


BANK.edited(
    "4.6",
    """
    gates.clone().requires_grad_() → gates.requires_grad_().zero_() · Work on a copy of the gates
    loss(tried, example), → torch.stack([loss(tried, e) for e in examples]), · Differentiate the loss of one example
    loss(tried, example), → loss(tried, examples), · `loss` takes one example at a time
    """,
)
