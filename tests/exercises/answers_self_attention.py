"""The bank of lesson 03. An answer uses only what the notebook has imported (math, torch, nn, F)."""
# ruff: noqa: F811, F821, UP004

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


@wrong("3.1", "the output alone", says="Expected output and weights to be returned; got a tensor")
def attention(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@wrong("3.1", "no transpose", says="transpose the keys, `q @ k.transpose(-2, -1)`")
def attention(q, k, v, mask=None):
    weights = (q @ k / math.sqrt(q.shape[-1])).softmax(dim=-1)
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


BANK.edited(
    "3.1",
    """
    masked_softmax(scores, mask) → scores.softmax(dim=2) · count dimensions from the end, `dim=-1`
    q @ k.transpose(-2, -1) → torch.bmm(q, k.transpose(-2, -1)) · `@` and `transpose(-2, -1)` serve them all
    masked_softmax(scores, mask) → masked_softmax(scores, mask) * 2
        · must sum to 1 over the keys, the last dimension; here they sum to 2
    k.transpose(-2, -1) → k.T · Only the last two dimensions of k may change places
    """,
)


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


@wrong("3.2", "upper triangle", says="This is the upper triangle")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool, device=device).triu(keys - queries)


@wrong("3.2", "one ahead", says="A query sees keys after its own place")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries + 1)


@wrong("3.2", "the first queries", says="the queries are the LAST two of the five tokens")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril()


@wrong("3.2", "a list", says="a list of 4")
def causal_mask(queries, keys, device=None):
    return [[j <= i + keys - queries for j in range(keys)] for i in range(queries)]


@wrong("3.2", "device forgotten", says="not made on the device asked for: hand `device` on")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


@wrong("3.2", "no device", says="It must take (queries, keys, device)")
def causal_mask(queries, keys):
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


BANK.edited("3.2", ", device=device).tril(keys - queries) → ).tril(keys - queries, device=device) · `tril` does not")


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


@wrong("3.3", "layers in a list", says="got none (are the layers assigned to `self`?)")
class SelfAttention(nn.Module):
    def __init__(self, d, d_head, causal=False):
        super().__init__()
        self.layers = [nn.Linear(d, d_head, bias=False) for _ in range(3)]

    def forward(self, x):
        return F.scaled_dot_product_attention(*(layer(x) for layer in self.layers))


BANK.spoilt(
    "3.3",
    "PyTorch's attention",
    "is_causal=self.causal) → is_causal=self.causal, scale=1.0) · The scores are not scaled: divide by √d_head",
)
BANK.spoilt("3.3", "written out", ".triu(1) → .tril(-1) · each token sees the tokens AFTER it")


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


BANK.edited(
    "3.3",
    """
    self.Q = nn.Linear(d, d_head, bias=False) → self.Q = nn.Linear(d, d_head) · Q.bias is one too many
    self.Q = → self.query = ; self.Q(x) → self.query(x) · Expected the parameters Q.weight, K.weight, V.weight; got
    self.Q = nn.Linear(d, d_head → self.Q = nn.Linear(d_head, d
        · Expected Q.weight of shape (3, 5); got (5, 3): look at the sizes
    def forward( → def run( · It has no method `forward`
    def forward(self, x → def forward(x · `forward`: It must take (self, x); yours takes (x)
    causal: bool = False → causal: bool = True · `causal` is False unless it is given
    length = x.shape[-2] → _, length, _ = x.shape · take `x.shape[-2]` for the length
    return output → return output, _ · Expected output to be returned; got a tuple of 2
    self.Q(x) → x @ self.Q.weight · call it, `self.Q(x)`
    attention(self.Q(x), self.K(x), self.V(x), mask) → self.Q(x) @ self.K(x) · transpose the keys
    self.V(x), mask → self.V(x), self.causal · got (int, float). A mask is a tensor of True and False
    """,
)


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


@wrong("3.4", "bug 1: no super().__init__()", says="A module has to set itself up before it can keep layers")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.dropout(p=0.1)

    def forward(x):
        import nn.functional as f

        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = f.Softmax(q @ k.T)
        return self.dropout(weights) @ v


@wrong("3.4", "bug 7: no dim", says="The softmax of a batch runs over dimension 0, as it does if no `dim` is given")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = F.softmax(q @ k.transpose(-2, -1))
        return self.dropout(weights) @ v


BANK.edited(
    "3.4",
    """
    nn.Dropout → nn.dropout · how does PyTorch write the names of classes?
    def forward(self, x → def forward(x · `forward`: It must take (self, x); yours takes (x)
    def forward(self, x → def forward(this, x · A method finds its object under the name of its first argument
    q, k, v = → import nn.functional as f; q, k, v = · not a module that Python can find: whose part is it?
    F.softmax → F.Softmax · There are functions here, not layers
    F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1) → nn.Softmax(q @ k.transpose(-2, -1))
        · is the layer meant, or the function?
    k.transpose(-2, -1) → k · Queries and keys are rows, both
    k.transpose(-2, -1) → k.T · which dimensions of k have to change places, and which must stay?
    k.transpose(-2, -1) → k.transpose(0, 1) · which dimensions of k have to change places, and which must stay?
    k.transpose(-2, -1) → k.transpose(1, 2) · x may be a single text, without a batch
    nn.Linear(h_dim, h_dim) → nn.Linear(h_dim, h_dim, bias=False) · Expected the parameters Q.weight, Q.bias
    self.dropout(weights) → F.dropout(weights, 0.1) · In evaluation two calls give different results
    self.dropout(weights) → weights · dropout sets some of them to 0
    self.dropout(weights) @ v → self.dropout(weights @ v) · the slide drops weights
    p=0.1 → p=0.5 · is p = 0.1?
    """,
)


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


@wrong("3.5", "the sum", says="Expected projections and pairs to be returned; got an int")
def attention_flops(length, d, d_head):
    return 6 * length * d * d_head + 4 * length * length * d_head


@wrong("3.5", "power sign", says="; got ")
def attention_flops(length, d, d_head):
    return 6 * length * d * d_head, 4 * (length ^ 2) * d_head


@wrong("3.5", "nothing returned", says="None (is the `return` missing?)")
def attention_flops(length, d, d_head):
    print(6 * length * d * d_head, 4 * length * length * d_head)


BANK.edited(
    "3.5", "return projections, pairs → return projections, str(pairs) · Expected pairs to be a number; got a text"
)
