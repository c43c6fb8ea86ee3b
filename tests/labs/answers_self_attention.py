"""The bank of lesson 03. An answer uses only what the notebook has imported (math, torch, nn, F)."""
# ruff: noqa: F811, F821, RUF059, UP004

import math

import torch
from bank import Bank
from torch import nn
from torch.nn import functional as F

BANK = Bank()
wrong, right = BANK.wrong, BANK.right

# What a mutant of the library's piece changes, as its new line → why it is no mistake.
EQUIVALENT = {
    "3.1": {"scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])": "keys are as long as queries"},
    "3.2": {},
    "3.3": {},
    "3.4": {
        **{
            f"weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt({name}.shape[-1]), dim=-1)": "as wide as q"
            for name in "xkv"
        },
        **{
            f"{order} = (nn.Linear(h_dim, h_dim) for _ in range(3))": "three layers alike"
            for order in (
                "self.Q, self.V, self.K",
                "self.K, self.Q, self.V",
                "self.K, self.V, self.Q",
                "self.V, self.Q, self.K",
                "self.V, self.K, self.Q",
            )
        },
    },
    "3.5": {},
}


# --- 3.1 scaled dot-product attention: right ------------------------------------------------------------------------


@right("3.1", "masked_fill")
def attention(q, k, v, mask=None):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(k.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    return torch.matmul(weights, v), weights


@right("3.1", "einsum, where, softmax by hand")
def attention(q, k, v, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = torch.where(mask, scores, torch.full_like(scores, -1e9))
    e = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    weights = e / e.sum(dim=-1, keepdim=True)
    return torch.einsum("...qk,...kv->...qv", weights, v), weights


@right("3.1", "the mask added as 0 and −∞, queries scaled first")
def attention(q, k, v, mask=None):
    scores = (q / q.shape[-1] ** 0.5) @ k.mT
    if mask is not None:
        added = torch.zeros(mask.shape, dtype=scores.dtype, device=scores.device)
        scores = scores + added.masked_fill(mask.logical_not(), -math.inf)
    weights = torch.softmax(scores, -1)
    return weights @ v, weights


@right("3.1", "PyTorch's, asked twice")
def attention(q, k, v, mask=None):
    eye = torch.eye(k.shape[-2], dtype=k.dtype, device=k.device).expand(*k.shape[:-2], -1, -1)
    output = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return output, F.scaled_dot_product_attention(q, k, eye, attn_mask=mask)


@right("3.1", "one query after the other")
def attention(q, k, v, mask=None):
    rows, outputs = [], []
    for i in range(q.shape[-2]):
        scores = (q[..., i : i + 1, :] * k).sum(dim=-1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask[..., i, :], -math.inf)
        rows.append(scores.softmax(dim=-1))
        outputs.append((rows[-1][..., None] * v).sum(dim=-2))
    return torch.stack(outputs, dim=-2), torch.stack(rows, dim=-2)


# --- 3.1 wrong ------------------------------------------------------------------------------------------------------


@wrong("3.1", "no scale", says="The scores are not scaled")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "divided by d", says="take the root, √d")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / q.shape[-1]
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "multiplied by the root", says="multiplied by √d; divide")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) * math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "root of the number of keys", says="the root of the number of keys")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-2])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "root of the values' length", says="the root of the values' length")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(v.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "softmax over queries", says="Each column sums to 1: the softmax runs over queries")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-2)
    return weights @ v, weights


@wrong("3.1", "softmax over dimension 1", says="The softmax runs over dimension 1")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=1)
    return weights @ v, weights


@wrong("3.1", "no softmax", says="These are the scores themselves")
def attention(q, k, v, mask=None):
    weights = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return weights @ v, weights


@wrong("3.1", "mask forgotten", says="The mask is not used")
def attention(q, k, v, mask=None):
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "mask the wrong way round", says="The mask is used the wrong way round")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "mask multiplied", says="The mask is multiplied into the scores")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores * mask
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "mask multiplied as 1 and −∞, as on S3's slide", says="a negative score times −∞ is +∞")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores * torch.where(mask, 1.0, -math.inf).to(scores.dtype)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "True added to the scores", says="True and False are added to the scores as 1 and 0")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + mask
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "weights hidden after the softmax", says="Hidden weights are set to 0 after the softmax")
def attention(q, k, v, mask=None):
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    if mask is not None:
        weights = weights * mask
    return weights @ v, weights


@wrong("3.1", "results swapped", says="The two results are in the wrong order")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights, weights @ v


@wrong("3.1", "the output alone", says="Expected output and weights to be returned; got a tensor")
def attention(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@wrong("3.1", "no transpose", says="transpose the keys, `q @ k.transpose(-2, -1)`")
def attention(q, k, v, mask=None):
    weights = (q @ k / math.sqrt(q.shape[-1])).softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "k.T", says="Only the last two dimensions of k may change places")
def attention(q, k, v, mask=None):
    scores = q @ k.T / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "a mask is always there", says="The mask may be None")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "asks the mask itself", says="write `is None` or `is not None`")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "cosines", says="These are cosines")
def attention(q, k, v, mask=None):
    scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "detached weights", says="no gradient reaches q")
def attention(q, k, v, mask=None):
    scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).detach()
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "no argument for the mask", says="It must take (q, k, v, mask)")
def attention(q, k, v):
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    return weights @ v, weights


# --- 3.2 causal mask: right -----------------------------------------------------------------------------------------


@right("3.2", "tril")
def causal_mask(queries, keys, device=None):
    return torch.tril(torch.ones(queries, keys, device=device), diagonal=keys - queries).bool()


@right("3.2", "places compared")
def causal_mask(queries, keys, device=None):
    query = torch.arange(queries, device=device) + keys - queries
    return torch.arange(keys, device=device) <= query[:, None]


@right("3.2", "not the upper triangle")
def causal_mask(queries, keys, device=None):
    ahead = torch.ones(queries, keys, dtype=torch.bool, device=device).triu(keys - queries + 1)
    return ~ahead


@right("3.2", "two loops")
def causal_mask(queries, keys, device=None):
    rows = [[j <= i + keys - queries for j in range(keys)] for i in range(queries)]
    return torch.tensor(rows, device=device)


@right("3.2", "the last rows of a square")
def causal_mask(queries, keys, device=None):
    return torch.ones(keys, keys, dtype=torch.bool, device=device).tril()[keys - queries :]


# --- 3.2 wrong ------------------------------------------------------------------------------------------------------


@wrong("3.2", "ones and zeros", says="The mask must hold True and False (torch.bool); got torch.float32")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, device=device).tril(keys - queries)


@wrong("3.2", "0 and −∞", says="This mask is to be added to scores")
def causal_mask(queries, keys, device=None):
    return torch.full((queries, keys), -math.inf, device=device).triu(keys - queries + 1)


@wrong("3.2", "swapped", says="True and False are swapped")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool, device=device).triu(keys - queries + 1)


@wrong("3.2", "upper triangle", says="This is the upper triangle")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool, device=device).triu(keys - queries)


@wrong("3.2", "not itself", says="A token may see itself")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries - 1)


@wrong("3.2", "one ahead", says="A query sees keys after its own place")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries + 1)


@wrong("3.2", "the first queries", says="the queries are the LAST two of the five tokens")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril()


@wrong("3.2", "moved the wrong way", says="The diagonal is moved the wrong way")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(queries - keys)


@wrong("3.2", "square", says="The mask has a column for each key")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, queries, dtype=torch.bool, device=device).tril()


@wrong("3.2", "square of keys", says="The mask has a row for each query")
def causal_mask(queries, keys, device=None):
    return torch.ones(keys, keys, dtype=torch.bool, device=device).tril()


@wrong("3.2", "keys by queries", says="Rows are queries and columns are keys")
def causal_mask(queries, keys, device=None):
    return torch.ones(keys, queries, dtype=torch.bool, device=device).tril(queries - keys)


@wrong("3.2", "all open", says="Everything may be seen")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool, device=device)


@wrong("3.2", "only itself", says="Only the diagonal is open")
def causal_mask(queries, keys, device=None):
    return torch.eye(queries, keys, device=device).bool()


@wrong("3.2", "a list", says="a list of 4")
def causal_mask(queries, keys, device=None):
    return [[j <= i + keys - queries for j in range(keys)] for i in range(queries)]


@wrong("3.2", "device forgotten", says="not made on the device asked for: hand `device` on")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


@wrong("3.2", "no device", says="It must take (queries, keys, device)")
def causal_mask(queries, keys):
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


# --- 3.3 one head: right --------------------------------------------------------------------------------------------


@right("3.3", "written out")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d_head, bias=False) for _ in range(3))
        self.causal = causal

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if self.causal:
            ahead = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(ahead, -math.inf)
        return scores.softmax(dim=-1) @ v


@right("3.3", "PyTorch's attention")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.V = nn.Linear(d, d_head, bias=False)
        self.K = nn.Linear(d, d_head, bias=False)
        self.Q = nn.Linear(d, d_head, bias=False)
        self.causal = causal

    def forward(self, inputs):
        return F.scaled_dot_product_attention(self.Q(inputs), self.K(inputs), self.V(inputs), is_causal=self.causal)


@right("3.3", "a table of layers, einsum")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        for name in "QKV":
            self.add_module(name, nn.Linear(d, d_head, bias=False))
        self.scale, self.causal = d_head**-0.5, causal

    def forward(self, x):
        scores = torch.einsum("...id,...jd->...ij", self.Q(x), self.K(x)) * self.scale
        if self.causal:
            place = torch.arange(x.shape[-2], device=x.device)
            scores = torch.where(place[:, None] >= place, scores, scores.new_tensor(-1e9))
        return torch.einsum("...ij,...jd->...id", F.softmax(scores, dim=-1), self.V(x))


# --- 3.3 wrong ------------------------------------------------------------------------------------------------------


@wrong("3.3", "no super().__init__()", says="Begin `__init__` with `super().__init__()`")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        self.Q = nn.Linear(d, d_head, bias=False)

    def forward(self, x):
        return self.Q(x)


@wrong("3.3", "biases", says="Q.bias is one too many")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d_head) for _ in range(3))
        self.causal = causal

    def forward(self, x):
        return F.scaled_dot_product_attention(self.Q(x), self.K(x), self.V(x), is_causal=self.causal)


@wrong("3.3", "other names", says="Expected the parameters Q.weight, K.weight, V.weight; got query.weight")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(d, d_head, bias=False) for _ in range(3))
        self.causal = causal

    def forward(self, x):
        return F.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), is_causal=self.causal)


@wrong("3.3", "sizes swapped", says="Expected Q.weight of shape (3, 5); got (5, 3): look at the sizes")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d_head, d, bias=False) for _ in range(3))
        self.causal = causal

    def forward(self, x):
        return F.scaled_dot_product_attention(self.Q(x), self.K(x), self.V(x), is_causal=self.causal)


@wrong("3.3", "layers in a list", says="got none (are the layers assigned to `self`?)")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.layers = [nn.Linear(d, d_head, bias=False) for _ in range(3)]

    def forward(self, x):
        return F.scaled_dot_product_attention(*(layer(x) for layer in self.layers))


@wrong("3.3", "no forward", says="It has no method `forward`")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d_head, bias=False) for _ in range(3))


@wrong("3.3", "forward without self", says="`forward`: It must take (self, x); yours takes (x)")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d_head, bias=False) for _ in range(3))

    def forward(x):
        return self.Q(x)


@wrong("3.3", "no scale", says="The scores are not scaled: divide by √d_head")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d_head, bias=False) for _ in range(3))
        self.causal = causal

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=1.0)


@wrong("3.3", "scaled by the input's width", says="with d the width of x")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d_head, bias=False) for _ in range(3))
        self.causal = causal

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=x.shape[-1] ** -0.5)


@wrong("3.3", "keys for values", says="The keys stand where the values belong")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d_head, bias=False) for _ in range(3))
        self.causal = causal

    def forward(self, x):
        return F.scaled_dot_product_attention(self.Q(x), self.K(x), self.K(x), is_causal=self.causal)


@wrong("3.3", "queries and keys swapped", says="Queries and keys have changed places")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d_head, bias=False) for _ in range(3))
        self.causal = causal

    def forward(self, x):
        return F.scaled_dot_product_attention(self.K(x), self.Q(x), self.V(x), is_causal=self.causal)


@wrong("3.3", "causal not used", says="`causal` is not used")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d_head, bias=False) for _ in range(3))

    def forward(self, x):
        return F.scaled_dot_product_attention(self.Q(x), self.K(x), self.V(x))


@wrong("3.3", "always causal", says="The mask is used always")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d_head, bias=False) for _ in range(3))

    def forward(self, x):
        return F.scaled_dot_product_attention(self.Q(x), self.K(x), self.V(x), is_causal=True)


@wrong("3.3", "causal by default", says="`causal` is False unless it is given")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=True):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d_head, bias=False) for _ in range(3))
        self.causal = causal

    def forward(self, x):
        return F.scaled_dot_product_attention(self.Q(x), self.K(x), self.V(x), is_causal=self.causal)


@wrong("3.3", "upper triangle", says="each token sees the tokens AFTER it")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d_head, bias=False) for _ in range(3))
        self.causal = causal

    def forward(self, x):
        mask = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool).triu() if self.causal else None
        return F.scaled_dot_product_attention(self.Q(x), self.K(x), self.V(x), attn_mask=mask)


@wrong("3.3", "a batch is always there", says="take `x.shape[-2]` for the length")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d_head, bias=False) for _ in range(3))
        self.causal = causal

    def forward(self, x):
        batch, length, d = x.shape
        return F.scaled_dot_product_attention(self.Q(x), self.K(x), self.V(x), is_causal=self.causal)


@wrong("3.3", "output and weights", says="Expected output to be returned; got a tuple of 2")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d_head, bias=False) for _ in range(3))

    def forward(self, x):
        weights = (self.Q(x) @ self.K(x).mT).softmax(dim=-1)
        return weights @ self.V(x), weights


@wrong("3.3", "a plain class", says="Expected a class: `class SelfAttention(nn.Module)`")
class SelfAttention(object):
    def __init__(self, d, d_head, causal=False):
        self.Q, self.K, self.V = (nn.Linear(d, d_head, bias=False) for _ in range(3))


@wrong("3.3", "a function", says="Expected a class: `class SelfAttention(nn.Module)`")
def SelfAttention(d, d_head, causal=False):
    return nn.Linear(d, d_head, bias=False)


@wrong("3.3", "one argument too few", says="It must take (d, d_head, causal); yours takes (d)")
class SelfAttention(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(d, d, bias=False) for _ in range(3))

    def forward(self, x):
        return F.scaled_dot_product_attention(self.Q(x), self.K(x), self.V(x))


# --- 3.4 debug the slide: right -------------------------------------------------------------------------------------


@right("3.4", "as small a change as possible")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)
        self.sigma = 1 / math.sqrt(h_dim)

    def forward(self, x):
        import torch.nn.functional as f

        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = f.softmax(q @ k.mT * self.sigma, dim=-1)
        return self.dropout(weights) @ v


@right("3.4", "PyTorch's attention with its dropout")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))

    def forward(self, x):
        p = 0.1 if self.training else 0.0
        return F.scaled_dot_product_attention(self.Q(x), self.K(x), self.V(x), dropout_p=p)


@right("3.4", "the layer nn.Softmax, dropout as a function")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q = nn.Linear(h_dim, h_dim)
        self.K = nn.Linear(h_dim, h_dim)
        self.V = nn.Linear(h_dim, h_dim)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, hidden):
        scores = torch.matmul(self.Q(hidden), self.K(hidden).transpose(-1, -2)) / hidden.shape[-1] ** 0.5
        weights = F.dropout(self.softmax(scores), p=0.1, training=self.training)
        return torch.matmul(weights, self.V(hidden))


# --- 3.4 wrong: the slide's bugs, one after the other ---------------------------------------------------------------


@wrong("3.4", "bug 1: no super().__init__()", says="Begin `__init__` with `super().__init__()`")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.dropout(p=0.1)

    def forward(x):
        import nn.functional as f

        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = f.Softmax(q @ k.T)
        return self.dropout(weights) @ v


@wrong("3.4", "bug 2: nn.dropout", says="Layers are classes, with a capital letter: `nn.Dropout`")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.dropout(p=0.1)

    def forward(x):
        import nn.functional as f

        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = f.Softmax(q @ k.T)
        return self.dropout(weights) @ v


@wrong("3.4", "bug 3: forward without self", says="`forward`: It must take (self, x); yours takes (x)")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)

    def forward(x):
        import nn.functional as f

        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = f.Softmax(q @ k.T)
        return self.dropout(weights) @ v


@wrong("3.4", "bug 4: the import", says="not a module that Python can find: `from torch.nn import functional as F`")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x):
        import nn.functional as f

        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = f.Softmax(q @ k.T)
        return self.dropout(weights) @ v


@wrong("3.4", "bug 5: Softmax", says="the function in `nn.functional` is `softmax`, in small letters")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = F.Softmax(q @ k.T)
        return self.dropout(weights) @ v


@wrong("3.4", "bug 6: k.T", says="`.T` turns ALL dimensions round, the batch too")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = F.softmax(q @ k.T)
        return self.dropout(weights) @ v


@wrong("3.4", "bug 7: no dim", says="Without `dim` the softmax of a batch runs over dimension 0")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = F.softmax(q @ k.transpose(-2, -1))
        return self.dropout(weights) @ v


@wrong("3.4", "bug 8: no scale", says="the code has no σ: divide the scores by √h_dim")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = F.softmax(q @ k.transpose(-2, -1), dim=-1)
        return self.dropout(weights) @ v


# --- 3.4 wrong: new bugs --------------------------------------------------------------------------------------------


@wrong("3.4", "scaled, but still no dim", says="so that texts compete with each other: say `dim=-1`")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]))
        return self.dropout(weights) @ v


@wrong("3.4", "dimension 1", says="The softmax runs over dimension 1; take the last")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=1)
        return self.dropout(weights) @ v


@wrong("3.4", "dropout taken out", says="dropout sets some of them to 0")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        return F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1) @ v


@wrong("3.4", "dropout on the output", says="the slide drops weights")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.dropout(weights @ v)


@wrong("3.4", "dropout always", says="is something random, or kept between calls")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return F.dropout(weights, 0.5) @ v


@wrong("3.4", "another p", says="is p = 0.1?")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout()

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.dropout(weights) @ v


@wrong("3.4", "biases taken out", says="Expected the parameters Q.weight, Q.bias")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim, bias=False) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.dropout(weights) @ v


# --- 3.5 FLOP count: right ------------------------------------------------------------------------------------------


@right("3.5", "product by product")
def attention_flops(length, d, d_head):
    def product(a, b, c):
        return 2 * a * b * c

    scores, mix = product(length, d_head, length), product(length, length, d_head)
    return 3 * product(length, d, d_head), scores + mix


@right("3.5", "as floats, in a list")
def attention_flops(length, d, d_head):
    return [6.0 * length * d * d_head, 4.0 * length**2 * d_head]


@right("3.5", "one token after the other")
def attention_flops(length, d, d_head):
    projections, pairs = 0, 0
    for _ in range(length):
        projections += 3 * d_head * (d + d)
        pairs += length * (d_head + d_head) * 2
    return projections, pairs


@right("3.5", "PyTorch's counter")
def attention_flops(length, d, d_head):
    from torch.utils.flop_counter import FlopCounterMode

    x, W, q = torch.ones(length, d), torch.ones(d, d_head), torch.ones(length, d_head)
    with FlopCounterMode(display=False) as projection:
        x @ W
    with FlopCounterMode(display=False) as pairs:
        (q @ q.T) @ q
    return 3 * projection.get_total_flops(), pairs.get_total_flops()


# --- 3.5 wrong ------------------------------------------------------------------------------------------------------


@wrong("3.5", "multiplications only", says="Only multiplications are counted")
def attention_flops(length, d, d_head):
    return 3 * length * d * d_head, 2 * length * length * d_head


@wrong("3.5", "one projection", says="One projection is counted")
def attention_flops(length, d, d_head):
    return 2 * length * d * d_head, 4 * length * length * d_head


@wrong("3.5", "two projections", says="Two projections are counted")
def attention_flops(length, d, d_head):
    return 4 * length * d * d_head, 4 * length * length * d_head


@wrong("3.5", "scores only", says="The pairs need two products: queries with keys, and weights with values")
def attention_flops(length, d, d_head):
    return 6 * length * d * d_head, 2 * length * length * d_head


@wrong("3.5", "pairs of width d", says="Queries, keys and values have the length d_head, not d")
def attention_flops(length, d, d_head):
    return 6 * length * d * d_head, 4 * length * length * d


@wrong("3.5", "as on S3's slide", says="d_head is not used")
def attention_flops(length, d, d_head):
    return 6 * length * d * d, 4 * length * length * d


@wrong("3.5", "one token", says="This is one token's projections")
def attention_flops(length, d, d_head):
    return 6 * d * d_head, 4 * length * length * d_head


@wrong("3.5", "linear pairs", says="the pairs grow with the square of the length")
def attention_flops(length, d, d_head):
    return 6 * length * d * d_head, 4 * length * d_head


@wrong("3.5", "pairs for one each", says="Each pair costs d_head multiplications")
def attention_flops(length, d, d_head):
    return 6 * length * d * d_head, 4 * length * length


@wrong("3.5", "order", says="The two are in the wrong order")
def attention_flops(length, d, d_head):
    return 4 * length * length * d_head, 6 * length * d * d_head


@wrong("3.5", "the sum", says="Return two numbers")
def attention_flops(length, d, d_head):
    return 6 * length * d * d_head + 4 * length * length * d_head


@wrong("3.5", "the whole second", says="The second number is the whole")
def attention_flops(length, d, d_head):
    projections = 6 * length * d * d_head
    return projections, projections + 4 * length * length * d_head


@wrong("3.5", "power sign", says="; got ")
def attention_flops(length, d, d_head):
    return 6 * length * d * d_head, 4 * (length ^ 2) * d_head


@wrong("3.5", "nothing returned", says="None (is the `return` missing?)")
def attention_flops(length, d, d_head):
    print(6 * length * d * d_head, 4 * length * length * d_head)
