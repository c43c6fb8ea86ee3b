r"""Attention: a soft look-up. A query is compared with keys; what comes back is the mean of the values, weighted by how
well their keys fit.

$$\text{Attention}(Q, K, V) = \text{softmax}\big(QK^\top / \sqrt{d}\big)\, V$$

Masks are Boolean and say what *may* be seen: True is open, False is hidden.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.models import positions
from course_lib.models.inside import Point
from course_lib.models.positions import Rotary
from course_lib.models.tied import TiedLinear


def additive_score(q: Tensor, keys: Tensor, W: Tensor, v: Tensor) -> Tensor:
    r"""$v \cdot \tanh(W [q; k])$ for each query and each key (Bahdanau et al. 2015).

    q (batch, queries, d), keys (batch, keys, d), W (a, 2d), v (a) → (batch, queries, keys)
    """
    W_q, W_k = W.chunk(2, dim=1)  # W [q; k] = W_q q + W_k k: each is computed once, not once for each pair
    total = (q @ W_q.T)[:, :, None] + (keys @ W_k.T)[:, None]  # (batch, queries, keys, a)
    return torch.tanh(total) @ v


class Alignment(nn.Module):
    r"""How well each query fits each key: the six scores of the lectures.

    q (batch, queries, d), keys (batch, keys, d) → (batch, queries, keys)

    | kind | score | |
    |---|---|---|
    | cosine | $q \cdot k \,/\, (\lVert q \rVert \lVert k \rVert)$ | Graves 2014 |
    | additive | $v \cdot \tanh(W [q; k])$ | Bahdanau 2015 |
    | location | $(W q)_i$ for the key at place $i$: the keys are not looked at | Luong 2015 |
    | general | $q \cdot W k$ | Luong 2015 |
    | dot | $q \cdot k$ | Luong 2015 |
    | scaled dot | $q \cdot k \,/\, \sqrt{d}$ | Vaswani 2017 |
    """

    KINDS = ("cosine", "additive", "location", "general", "dot", "scaled dot")

    def __init__(self, kind: str, d: int, longest: int, additive: Callable = additive_score):
        """``longest``: the most keys there may be; only *location* needs it. ``additive``: the function to use."""
        super().__init__()
        if kind not in self.KINDS:
            raise ValueError(f"There is no score {kind!r}; expected one of {', '.join(self.KINDS)}.")
        self.kind, self.longest, self.additive = kind, longest, additive
        sizes = {"additive": (2 * d, d), "location": (d, longest), "general": (d, d)}
        if kind in sizes:
            self.W = nn.Linear(*sizes[kind], bias=False)
        if kind == "additive":
            self.v = nn.Linear(d, 1, bias=False)

    def forward(self, q: Tensor, keys: Tensor) -> Tensor:
        if keys.shape[1] > self.longest:
            raise ValueError(f"Expected at most {self.longest} keys; got {keys.shape[1]}.")
        match self.kind:
            case "cosine":
                return F.normalize(q, dim=-1) @ F.normalize(keys, dim=-1).transpose(1, 2)
            case "additive":
                return self.additive(q, keys, self.W.weight, self.v.weight[0])
            case "location":
                return self.W(q)[..., : keys.shape[1]]
            case "general":
                return q @ self.W(keys).transpose(1, 2)
            case _:
                scale = math.sqrt(q.shape[-1]) if self.kind == "scaled dot" else 1.0
                return q @ keys.transpose(1, 2) / scale


def causal_mask(queries: int, keys: int, device: torch.device | str | None = None) -> Tensor:
    """What each query may see when it must not look ahead; the last query is the last key. (queries, keys)"""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def padding_mask(lengths: Tensor, longest: int) -> Tensor:
    """True at the ``lengths`` true tokens of each text, for every head and query: (batch, 1, 1, longest)."""
    return (torch.arange(longest, device=lengths.device) < lengths[:, None])[:, None, None]


def target_mask(lengths: Tensor, longest: int) -> Tensor:
    """What each token of a filled-up target may see: true tokens, not ahead. (batch, 1, longest, longest)"""
    places = torch.arange(longest, device=lengths.device)
    true = places < lengths[:, None]  # (batch, keys)
    behind = places <= places[:, None]  # (queries, keys)
    return true[:, None, None] & behind


def masked_softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the last dimension, 0 where the mask hides. A row that is hidden altogether becomes 0, not NaN."""
    if mask is None:
        return scores.softmax(dim=-1)
    lowest = torch.finfo(scores.dtype).min  # −∞ would make NaN of a row that is hidden altogether
    return scores.masked_fill(~mask, lowest).softmax(dim=-1) * mask


def context_vector(q: Tensor, states: Tensor, mask: Tensor | None, score: Callable) -> tuple[Tensor, Tensor]:
    r"""$c = \sum_j \alpha_j h_j$ with $\alpha = \text{softmax}(\text{score}(q, h))$: what each query reads, and where.

    q (batch, queries, d), states (batch, keys, d), mask (batch, 1, keys); score(q, states): (batch, queries, keys)
    → contexts (batch, queries, d), weights (batch, queries, keys)
    """
    scores = score(q, states)
    weights = masked_softmax(scores, mask)
    return weights @ states, weights


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Scaled dot-product attention, written out: the output and the weights, which show who looks at whom.

    q (…, queries, d), k (…, keys, d), v (…, keys, d_v), mask (…, queries, keys) → (…, queries, d_v), (…, queries, keys)
    """
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = masked_softmax(scores, mask)
    return weights @ v, weights


class SelfAttention(nn.Module):
    r"""One head: each token makes a query, a key and a value, $q = W^Q x$ and so on, and looks at all tokens.

    x (…, length, d) → (…, length, d_head). With ``causal``, no token looks ahead.
    """

    def __init__(self, d: int, d_head: int, causal: bool = False):
        super().__init__()
        self.Q = nn.Linear(d, d_head, bias=False)
        self.K = nn.Linear(d, d_head, bias=False)
        self.V = nn.Linear(d, d_head, bias=False)
        self.causal = causal

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[-2]
        mask = causal_mask(length, length, x.device) if self.causal else None
        output, _ = attention(self.Q(x), self.K(x), self.V(x), mask)
        return output


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Each head gets its part of the width: (batch, length, d) → (batch, heads, length, d / heads)."""
    batch, length, d = x.shape
    return x.reshape(batch, length, heads, d // heads).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """The heads side by side again: (batch, heads, length, d_head) → (batch, length, heads · d_head)."""
    batch, heads, length, d_head = x.shape
    return x.transpose(1, 2).reshape(batch, length, heads * d_head)


def multi_head(
    x: Tensor, W_qkv: Tensor, b_qkv: Tensor, W_o: Tensor, b_o: Tensor, heads: int, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    r"""$[\text{head}_0; \text{head}_1; \dots]\, W_O$, where $\text{head}_i = \text{Attention}(xW_i^Q, xW_i^K, xW_i^V)$.

    x (batch, length, d) → the output (batch, length, d) and weights (batch, heads, length, length)

    W_qkv (3d, d) and b_qkv (3d) make queries, keys and values in one product, W_o (d, d) and b_o (d) mix the heads: the
    weights of `nn.MultiheadAttention`, in its order. mask: True where a key may be seen, as for `attention`.
    """
    q, k, v = (split_heads(part, heads) for part in F.linear(x, W_qkv, b_qkv).chunk(3, dim=-1))
    out, weights = attention(q, k, v, mask)
    return F.linear(merge_heads(out), W_o, b_o), weights


def update_cache(cache: "Cache", k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Add the keys and values of new tokens, (batch, heads, new, d_head); returns those of all tokens so far."""
    end = cache.length + k.shape[2]
    if end > cache.keys.shape[2]:
        raise ValueError(f"The cache has room for {cache.keys.shape[2]} tokens; {end} are needed.")
    cache.keys[:, :, cache.length : end] = k
    cache.values[:, :, cache.length : end] = v
    cache.length = end
    return cache.keys[:, :, :end], cache.values[:, :, :end]


class Cache:
    """Keys and values of the tokens so far, so that each new token is computed once. Room is made at the start."""

    def __init__(
        self, batch: int, heads: int, longest: int, d_head: int, like: Tensor, update: Callable = update_cache
    ):
        self.keys, self.values = (like.new_empty(batch, heads, longest, d_head) for _ in range(2))
        self.length, self.update = 0, update

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new tokens; returns those of all tokens so far (see `update_cache`)."""
        return self.update(self, k, v)


class MultiHeadAttention(nn.Module):
    r"""Several attentions side by side, each on a part of the width: $[\text{head}_0; \text{head}_1; \dots]\, W^O$.

    One matrix product makes the queries, keys and values of all heads; a reshape tells the heads apart. With fewer
    ``kv_heads`` than ``heads``, groups of queries share keys and values (grouped queries, Llama 2). ``rotary`` turns
    queries and keys by their positions; ``alibi`` lowers the scores of far keys.
    """

    def __init__(
        self,
        d: int,
        heads: int,
        kv_heads: int | None = None,
        bias: bool = True,
        rotary: Rotary | None = None,
        alibi: bool | Callable = False,
    ):
        super().__init__()
        kv_heads = kv_heads or heads
        if heads < 1 or kv_heads < 1 or d % heads or heads % kv_heads:
            raise ValueError(
                f"The width must be a multiple of heads, and heads of kv_heads; got {d}, {heads} and {kv_heads}."
            )
        self.d, self.heads, self.kv_heads, self.d_head = d, heads, kv_heads, d // heads
        self.qkv = nn.Linear(d, d + 2 * kv_heads * self.d_head, bias=bias)
        self.output = nn.Linear(d, d, bias=bias)
        self.part = TiedLinear()  # of qkv, where queries and keys come from two texts
        self.rotary, self.alibi = rotary, positions.alibi if alibi is True else alibi
        self.weights = Point()

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        mask: Tensor | None = None,
        causal: bool = False,
        cache: Cache | None = None,
    ) -> Tensor:
        """x (batch, queries, d) looks at itself, or at ``memory`` (batch, keys, d) → (batch, queries, d).

        mask: what may be seen, broadcast to (batch, heads, queries, keys). The weights, of that shape, are made only
        when somebody records them (`inside.record`); otherwise PyTorch's fused attention is used, which gives the same
        output and never holds them in memory.
        """
        if mask is not None and mask.dtype != torch.bool:
            raise ValueError(f"Expected a mask of True (seen) and False (hidden); got {mask.dtype}.")
        if mask is not None and mask.dim() not in (2, 4):  # of 3, the first would be read as the heads
            raise ValueError(
                "Expected a mask of shape (queries, keys) or (batch, 1 or heads, queries, keys); "
                f"got {tuple(mask.shape)}. One mask for each text is mask[:, None]."
            )
        q, k, v = self._project(x, memory)
        start = cache.length if cache else 0
        if self.rotary is not None:
            q, k = self.rotary(q, start), self.rotary(k, start)
        if cache is not None:
            k, v = cache.append(k, v)
        if causal and (self.weights.watched or self.alibi or mask is not None or q.shape[2] != k.shape[2]):
            ahead = causal_mask(q.shape[2], k.shape[2], x.device)
            mask, causal = ahead if mask is None else mask & ahead, False
        bias = self.alibi(self.heads, q.shape[2], k.shape[2], x.device).to(q) if self.alibi else None
        if self.weights.watched:
            groups = self.heads // self.kv_heads
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
            scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_head)
            out = self.weights(masked_softmax(scores if bias is None else scores + bias, mask)) @ v
        else:
            grouped = self.heads != self.kv_heads
            if bias is not None:  # the fused attention takes one mask, to be added: −∞ hides
                mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal, enable_gqa=grouped)
        return self.output(merge_heads(out))

    def _project(self, x: Tensor, memory: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (batch, heads, queries, d_head) and keys and values (batch, kv_heads, keys, d_head)."""
        if x.dim() != 3 or x.shape[-1] != self.d:
            raise ValueError(f"Expected x of shape (batch, length, {self.d}); got {tuple(x.shape)}.")
        if memory is not None and (memory.dim() != 3 or memory.shape[::2] != x.shape[::2]):
            raise ValueError(f"Expected memory of shape ({len(x)}, length, {self.d}); got {tuple(memory.shape)}.")
        width = self.kv_heads * self.d_head
        if memory is None:
            q, k, v = self.qkv(x).split([self.d, width, width], dim=-1)
        else:
            weights, biases = self.qkv.weight, self.qkv.bias
            q = self.part(x, weights[: self.d], None if biases is None else biases[: self.d])
            k, v = self.part(memory, weights[self.d :], None if biases is None else biases[self.d :]).chunk(2, dim=-1)
        return split_heads(q, self.heads), split_heads(k, self.kv_heads), split_heads(v, self.kv_heads)
