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
    "4.2": {"batch, d_head, length, heads = x.shape": "only the product of the two is used"},
    "4.3": {},
    "4.4": {
        "found = (weights * gold[:, None]).sum(dim=-2)": "queries and keys are both summed over, in whatever order",
        "return found.sum(dim=(2, 0)) / gold.any(dim=-1).sum()": "the order of the dimensions does not matter",
    },
    "4.5": {
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


@wrong("4.1", "no transpose", says="swap length and heads")
def split_heads(x, heads):
    batch, length, d = x.shape
    return x.reshape(batch, length, heads, d // heads)


@wrong("4.1", "interleaved", says="Each head takes every heads-th number")
def split_heads(x, heads):
    batch, length, d = x.shape
    return x.reshape(batch, length, d // heads, heads).permute(0, 3, 1, 2)


@wrong("4.1", "d_head before heads", says="The last dimension is cut into (d_head, heads)")
def split_heads(x, heads):
    batch, length, d = x.shape
    return x.reshape(batch, length, d // heads, heads).transpose(1, 2)


@wrong("4.1", "heads first", says="The heads come first; the batch does")
def split_heads(x, heads):
    return torch.stack(x.chunk(heads, dim=-1))


@wrong("4.1", "transposed keys", says="Length and d_head are swapped")
def split_heads(x, heads):
    batch, length, d = x.shape
    return x.reshape(batch, length, heads, d // heads).permute(0, 2, 3, 1)


@wrong("4.1", "reversed", says="The heads are in reversed order")
def split_heads(x, heads):
    return torch.stack(x.chunk(heads, dim=-1)[::-1], dim=1)


@wrong("4.1", "copies", says="Every head gets the whole width")
def split_heads(x, heads):
    return x[:, None].repeat(1, heads, 1, 1)


@wrong("4.1", "batch and heads in one", says="Batch and heads are one dimension")
def split_heads(x, heads):
    batch, length, d = x.shape
    return x.reshape(batch, length, heads, d // heads).transpose(1, 2).reshape(batch * heads, length, d // heads)


@wrong("4.1", "as it came", says="This is x as it came in")
def split_heads(x, heads):
    return x


@wrong("4.1", "divided with /", says="A size must be a whole number: divide with `//`")
def split_heads(x, heads):
    batch, length, d = x.shape
    return x.reshape(batch, length, heads, d / heads).transpose(1, 2)


@wrong("4.1", "a list of heads", says="a tuple of 3")
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


# --- 4.2 merge the heads: right -------------------------------------------------------------------------------------


@right("4.2", "flatten")
def merge_heads(x):
    return x.transpose(1, 2).flatten(2)


@right("4.2", "cat of the heads")
def merge_heads(x):
    return torch.cat(list(x.unbind(dim=1)), dim=-1)


@right("4.2", "contiguous and view")
def merge_heads(x):
    batch, heads, length, d_head = x.shape
    return x.permute(0, 2, 1, 3).contiguous().view(batch, length, -1)


# --- 4.2 wrong ------------------------------------------------------------------------------------------------------


@wrong("4.2", "straight reshape", says="The tokens are mixed up: swap heads and length back before the reshape")
def merge_heads(x):
    batch, heads, length, d_head = x.shape
    return x.reshape(batch, length, heads * d_head)


@wrong("4.2", "only the transpose", says="Two dimensions are left at the end")
def merge_heads(x):
    return x.transpose(1, 2)


@wrong("4.2", "alternating", says="The numbers of the heads alternate")
def merge_heads(x):
    return x.permute(0, 2, 3, 1).flatten(2)


@wrong("4.2", "summed", says="The heads are added up; they stand side by side")
def merge_heads(x):
    return x.sum(dim=1)


@wrong("4.2", "averaged", says="The heads are averaged; they stand side by side")
def merge_heads(x):
    return x.mean(dim=1)


@wrong("4.2", "one after the other", says="The heads stand one after the other along the length")
def merge_heads(x):
    return x.flatten(1, 2)


@wrong("4.2", "reversed", says="The heads are in reversed order")
def merge_heads(x):
    return torch.cat(list(x.unbind(dim=1))[::-1], dim=-1)


@wrong("4.2", "length first", says="Length comes before the batch")
def merge_heads(x):
    return x.permute(2, 0, 1, 3).flatten(2)


@wrong("4.2", "one head", says="Only the first head is left")
def merge_heads(x):
    return x[:, 0]


@wrong("4.2", "as it came", says="This is x as it came in")
def merge_heads(x):
    return x


@wrong("4.2", "view after transpose", says="After a transpose `view` cannot do it")
def merge_heads(x):
    batch, heads, length, d_head = x.shape
    return x.transpose(1, 2).view(batch, length, heads * d_head)


@wrong("4.2", "minus", says="Merging must undo splitting")
def merge_heads(x):
    return -x.transpose(1, 2).flatten(2)


# --- 4.3 multi-head attention: right --------------------------------------------------------------------------------


@right("4.3", "einsum")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    batch, length, d = x.shape
    q, k, v = (x @ W_qkv.T + b_qkv).reshape(batch, length, 3, heads, d // heads).unbind(dim=2)
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / (d // heads) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    out = torch.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, length, d)
    return out @ W_o.T + b_o, weights


@right("4.3", "a loop over heads")
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


@right("4.3", "an additive mask")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    def split(t):
        return t.unflatten(-1, (heads, -1)).transpose(1, 2)

    q, k, v = map(split, nn.functional.linear(x, W_qkv, b_qkv).chunk(3, dim=-1))
    bias = 0 if mask is None else torch.zeros_like(mask, dtype=x.dtype).masked_fill(~mask, float("-inf"))
    weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5 + bias, dim=-1)
    return nn.functional.linear((weights @ v).transpose(1, 2).flatten(2), W_o, b_o), weights


# --- 4.3 wrong ------------------------------------------------------------------------------------------------------


@wrong("4.3", "scale of the whole width", says="The scores are divided by √d; each head compares d / heads numbers")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / x.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.3", "no scale", says="The scale is missing")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.3", "divided by d_head", says="The scores are divided by d / heads; divide by its root")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1]
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.3", "softmax over queries", says="the softmax runs over queries; take it over keys")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e30)
    weights = scores.softmax(dim=-2)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.3", "mask turned round", says="The mask is turned round: True means that a key may be seen")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask, -1e30)
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.3", "mask forgotten", says="The mask is not used")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.3", "scores times mask", says="The scores are multiplied by the mask")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores * mask
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.3", "mask after the softmax", says="The mask comes after the softmax")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
    if mask is not None:
        weights = weights * mask
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.3", "as on S1's slide", says="The last step is missing: W_o and b_o mix the heads")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2), weights


@wrong("4.3", "no output bias", says="The bias b_o is missing")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T, weights


@wrong("4.3", "W_o without transpose", says="W_o is used without its transpose")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o + b_o, weights


@wrong("4.3", "W_qkv without transpose", says="from the right by the transposes, `x @ W_qkv.T`")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (x @ W_qkv + b_qkv).chunk(3, dim=-1)
    return q, k


@wrong("4.3", "no input bias", says="The bias b_qkv is missing")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.3", "k, q, v", says="Queries and keys are swapped")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    k, q, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.3", "q, v, k", says="Keys and values are swapped")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, v, k = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.3", "v, k, q", says="Queries and values are swapped")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    v, k, q = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.3", "tokens mixed in the split", says="The tokens are mixed up when the heads are split")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    batch, length, d = x.shape
    q, k, v = (t.reshape(batch, heads, length, -1) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.3", "tokens mixed in the merge", says="The tokens are mixed up when the heads are merged")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).reshape(x.shape) @ W_o.T + b_o, weights


@wrong("4.3", "heads before q, k, v", says="The 3·d outputs are first cut in three (q, k, v)")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    batch, length, d = x.shape
    q, k, v = (x @ W_qkv.T + b_qkv).reshape(batch, length, heads, 3, -1).permute(3, 0, 2, 1, 4)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


@wrong("4.3", "one wide head", says="one head of the whole width, whatever `heads` says")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (x @ W_qkv.T + b_qkv)[:, None].chunk(3, dim=-1)
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v)[:, 0] @ W_o.T + b_o, weights


@wrong("4.3", "weights averaged", says="The weights are averaged over the heads")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights.mean(dim=1)


@wrong("4.3", "results swapped", says="The two results are in the wrong order")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    return weights, (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o


@wrong("4.3", "only the output", says="Expected output and weights to be returned; got a tensor of shape (2, 5, 6)")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    return x


@wrong("4.3", "no mask taken care of", says="The mask may be None: then every key may be seen")
def multi_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask=None):
    q, k, v = (t.unflatten(-1, (heads, -1)).transpose(1, 2) for t in (x @ W_qkv.T + b_qkv).chunk(3, dim=-1))
    weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return (weights @ v).transpose(1, 2).flatten(2) @ W_o.T + b_o, weights


# --- 4.4 attention-pattern score: right -----------------------------------------------------------------------------


@right("4.4", "einsum")
def pattern_score(weights, gold):
    return torch.einsum("bhqk,bqk->h", weights, gold.to(weights.dtype)) / gold.any(-1).sum()


@right("4.4", "the queries that have a key, picked")
def pattern_score(weights, gold):
    asked = gold.any(dim=-1)
    found = torch.where(gold.unsqueeze(1), weights, 0.0).sum(-1).transpose(1, 2)  # (batch, queries, heads)
    return found[asked].mean(dim=0)


@right("4.4", "loops")
def pattern_score(weights, gold):
    total, count = 0, 0
    for b in range(len(gold)):
        for q in range(gold.shape[1]):
            if gold[b, q].any():
                total = total + weights[b, :, q][:, gold[b, q]].sum(dim=-1)
                count += 1
    return total / count


# --- 4.4 wrong ------------------------------------------------------------------------------------------------------


@wrong("4.4", "all queries", says="The mean is taken over all queries; those without a gold key do not count")
def pattern_score(weights, gold):
    return (weights * gold[:, None]).sum(dim=-1).mean(dim=(0, 2))


@wrong("4.4", "mean over gold keys", says="divide by the number of queries that have one")
def pattern_score(weights, gold):
    return (weights * gold[:, None]).sum(dim=(0, 2, 3)) / gold.sum()


@wrong("4.4", "not divided", says="This is the sum over the queries; take the mean")
def pattern_score(weights, gold):
    return (weights * gold[:, None]).sum(dim=(0, 2, 3))


@wrong("4.4", "mean of means", says="This is the mean of the sentences' means")
def pattern_score(weights, gold):
    found = (weights * gold[:, None]).sum(dim=(2, 3))
    return (found / gold.any(dim=-1).sum(dim=-1)[:, None]).mean(dim=0)


@wrong("4.4", "hits", says="This counts how often the largest weight is on a gold key")
def pattern_score(weights, gold):
    best = nn.functional.one_hot(weights.argmax(dim=-1), weights.shape[-1])
    hit = (best * gold[:, None]).sum(dim=-1).to(weights.dtype)
    return hit.sum(dim=(0, 2)) / gold.any(dim=-1).sum()


@wrong("4.4", "largest gold key", says="Of several gold keys only the largest weight is counted")
def pattern_score(weights, gold):
    return (weights * gold[:, None]).amax(dim=-1).sum(dim=(0, 2)) / gold.any(dim=-1).sum()


@wrong("4.4", "mean over everything", says="The mean is taken over queries and keys")
def pattern_score(weights, gold):
    return (weights * gold[:, None]).mean(dim=(0, 2, 3))


@wrong("4.4", "one number", says="This is one number for all heads; one for each is asked for")
def pattern_score(weights, gold):
    return ((weights * gold[:, None]).sum(dim=(0, 2, 3)) / gold.any(dim=-1).sum()).mean()


@wrong("4.4", "by sentence", says="This is one score for each sentence and head")
def pattern_score(weights, gold):
    return (weights * gold[:, None]).sum(dim=(2, 3)) / gold.any(dim=-1).sum(dim=-1)[:, None]


@wrong("4.4", "no dimension for the heads", says="gold has no dimension for the heads: give it one, `gold[:, None]`")
def pattern_score(weights, gold):
    return (weights * gold).sum(dim=(0, 2, 3)) / gold.any(dim=-1).sum()


@wrong("4.4", "the rest", says="This is the weight on the keys that are not gold")
def pattern_score(weights, gold):
    away = ~gold
    return (weights * away[:, None]).sum(dim=(0, 2, 3)) / away.any(dim=-1).sum()


@wrong("4.4", "root", says="A head that spreads evenly over 4 keys scores 0.25; yours gives 0.5")
def pattern_score(weights, gold):
    return ((weights * gold[:, None]).sum(dim=(0, 2, 3)) / gold.any(dim=-1).sum()).sqrt()


@wrong("4.4", "rounded away", says="no gradient reaches weights")
def pattern_score(weights, gold):
    return (weights.detach() * gold[:, None]).sum(dim=(0, 2, 3)) / gold.any(dim=-1).sum()


# --- 4.5 head importance: right -------------------------------------------------------------------------------------


@right("4.5", "backward")
def head_importance(loss, gates, examples):
    found = []
    for example in examples:
        g = gates.detach().clone().requires_grad_(True)
        loss(g, example).backward()
        found.append(g.grad.abs())
    return torch.stack(found).mean(dim=0)


@right("4.5", "the gates themselves, gradient cleared")
def head_importance(loss, gates, examples):
    gates.requires_grad_()
    total = 0
    for example in examples:
        gates.grad = None
        loss(gates, example).backward()
        total = total + gates.grad.abs()
    return total / len(examples)


@right("4.5", "torch.func")
def head_importance(loss, gates, examples):
    gradient = torch.func.grad(loss)
    return sum(gradient(gates, example).abs() for example in examples) / len(examples)


# --- 4.5 wrong ------------------------------------------------------------------------------------------------------


@wrong("4.5", "abs of the mean", says="The absolute value is taken of the mean: gradients of opposite sign cancel")
def head_importance(loss, gates, examples):
    g = gates.clone().requires_grad_()
    total = sum(loss(g, example) for example in examples) / len(examples)
    return torch.autograd.grad(total, g)[0].abs()


@wrong("4.5", "no abs", says="The absolute value is missing")
def head_importance(loss, gates, examples):
    g = gates.clone().requires_grad_()
    return torch.autograd.grad(sum(loss(g, example) for example in examples) / len(examples), g)[0]


@wrong("4.5", "sum", says="This is the sum over the examples; take the mean")
def head_importance(loss, gates, examples):
    gradient = torch.func.grad(loss)
    return sum(gradient(gates, example).abs() for example in examples)


@wrong("4.5", "squares", says="These are squares; take absolute values")
def head_importance(loss, gates, examples):
    gradient = torch.func.grad(loss)
    return sum(gradient(gates, example) ** 2 for example in examples) / len(examples)


@wrong("4.5", "root mean square", says="This is the root of the mean square")
def head_importance(loss, gates, examples):
    gradient = torch.func.grad(loss)
    return (sum(gradient(gates, example) ** 2 for example in examples) / len(examples)).sqrt()


@wrong("4.5", "gradients pile up", says="The gradients pile up from example to example")
def head_importance(loss, gates, examples):
    g = gates.clone().requires_grad_()
    total = torch.zeros_like(gates)
    for example in examples:
        loss(g, example).backward()
        total += g.grad.abs()
    return total / len(examples)


@wrong("4.5", "abs of the sum", says="Add up absolute values, one for each example, and divide by their number")
def head_importance(loss, gates, examples):
    g = gates.clone().requires_grad_()
    for example in examples:
        loss(g, example).backward()
    return g.grad.abs()


@wrong("4.5", "the last example", says="Only the last example counts")
def head_importance(loss, gates, examples):
    for example in examples:
        found = torch.func.grad(loss)(gates, example).abs()
    return found


@wrong("4.5", "return inside the loop", says="Only the first example counts: is the `return` inside the loop?")
def head_importance(loss, gates, examples):
    for example in examples:
        return torch.func.grad(loss)(gates, example).abs()


@wrong("4.5", "largest", says="This is the largest over the examples")
def head_importance(loss, gates, examples):
    return torch.stack([torch.func.grad(loss)(gates, example).abs() for example in examples]).amax(dim=0)


@wrong("4.5", "shares", says="The numbers are scaled so that they sum to 1")
def head_importance(loss, gates, examples):
    mean = torch.stack([torch.func.grad(loss)(gates, example).abs() for example in examples]).mean(dim=0)
    return mean / mean.sum()


@wrong("4.5", "one number", says="This is one number for all heads; one for each is asked for")
def head_importance(loss, gates, examples):
    return torch.stack([torch.func.grad(loss)(gates, example).abs() for example in examples]).mean()


@wrong("4.5", "removal", says="This is what happens when a head is removed; the gradient is asked for")
def head_importance(loss, gates, examples):
    total = torch.zeros_like(gates)
    for i in range(gates.shape[0]):
        for j in range(gates.shape[1]):
            closed = gates.clone()
            closed[i, j] = 0
            total[i, j] = sum(abs(loss(closed, x) - loss(gates, x)) for x in examples) / len(examples)
    return total


@wrong("4.5", "gates of its own", says="It starts from gates of 1, not from the gates given")
def head_importance(loss, gates, examples):
    gradient = torch.func.grad(loss)
    return sum(gradient(torch.ones_like(gates), example).abs() for example in examples) / len(examples)


@wrong("4.5", "no requires_grad", says="The gates need `requires_grad_()` before the loss is computed")
def head_importance(loss, gates, examples):
    for example in examples:
        loss(gates, example).backward()
    return gates.grad.abs() / len(examples)


@wrong("4.5", "reads .grad too early", says="`.grad` is None: call `.backward()` on the loss first")
def head_importance(loss, gates, examples):
    g = gates.clone().requires_grad_()
    for example in examples:
        loss(g, example)
    return g.grad.abs() / len(examples)


@wrong("4.5", "changes the gates", says="It changes its input gates in place")
def head_importance(loss, gates, examples):
    gradient = torch.func.grad(loss)
    found = sum(gradient(gates, example).abs() for example in examples) / len(examples)
    gates.zero_()
    return found
