"""The quick way through our `GPT` for one new token a text: what ``model(ids, caches)`` gives, in fewer operations.

Writing token by token, a step does little arithmetic: its time goes into reading the weights from memory, and into
calling many small functions. `GPT` is written to be read and trained; here is the same computation, flat, for one
token, proved equal by the tests. Four things make it quick:

- A matrix times one vector is left by PyTorch to one thread. Cut into twice as many pieces as there are threads, it is
  read by all of them: `Matrix`.
- For several texts the matrices are laid out anew, once, as oneDNN likes to read them: `PackedMatrix`.
- The newest token may look at all that came before: no causal mask is made in any layer.
- Queries that share keys (grouped queries) go in as several queries of one head: no key is copied.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.fast import onednn
from course_lib.fast.linear import QuickLinear, QuickTiedLinear
from course_lib.models.attention import Cache, MultiHeadAttention
from course_lib.models.gpt import GPT
from course_lib.models.inside import Point
from course_lib.models.positions import Rotary
from course_lib.models.tied import TiedLinear
from course_lib.models.transformer import Block, FeedForward, Stack, block

PIECES = {GPT, Stack, Block, MultiHeadAttention, FeedForward, Rotary}
PIECES |= {nn.Linear, QuickLinear, TiedLinear, QuickTiedLinear}
PIECES |= {Point, nn.Embedding, nn.LayerNorm, nn.RMSNorm, nn.Dropout, nn.ModuleList}


class Matrix:
    """W x + b for one vector, or a few: (rows, in) → (rows, out)."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None):
        self.pieces = math.gcd(2 * torch.get_num_threads(), len(weight)) if weight.device.type == "cpu" else 1
        self.weight = weight.detach().unflatten(0, (self.pieces, -1))  # (pieces, out / pieces, in)
        self.bias = None if bias is None else bias.detach().view(self.pieces, -1, 1)

    def __call__(self, x: Tensor) -> Tensor:
        columns = x.t().expand(self.pieces, -1, -1)  # (pieces, in, rows)
        y = self.weight @ columns if self.bias is None else torch.baddbmm(self.bias, self.weight, columns)
        return y.view(-1, x.shape[0]).t()  # y: (pieces, out / pieces, rows)


class PackedMatrix:
    """The same for several rows, on a CPU: twice as quick from 5 rows on, and a copy of the weights in memory."""

    def __init__(self, weight: Tensor, bias: Tensor | None, rows: int):
        self.weight = onednn.packed(weight.detach(), rows)
        self.bias = None if bias is None else bias.detach()

    def __call__(self, x: Tensor) -> Tensor:
        return onednn.product(x, self.weight, self.bias)

    @staticmethod
    def fits(weight: Tensor, rows: int) -> bool:
        """Are there several rows, does oneDNN know this kind of numbers, and is it here?"""
        kind = (weight.device.type, weight.dtype)
        return rows > 1 and kind == ("cpu", torch.float32) and onednn.packs()


def function_of(norm: nn.Module) -> Callable[[Tensor], Tensor]:
    """What a norm computes, without what a module does around it, which takes longer."""
    if isinstance(norm, nn.LayerNorm):
        shape, weight, bias, epsilon = norm.normalized_shape, norm.weight, norm.bias, norm.eps
        return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)
    return norm.forward


class NextToken:
    """A `GPT` with pre-norm, for one new token in each of ``rows`` texts. Made anew when its weights have changed."""

    def __init__(self, model: GPT, rows: int):
        self.model, self.rows = model, rows
        packed = PackedMatrix.fits(model.embed.weight, rows)
        matrix = partial(PackedMatrix, rows=rows) if packed else Matrix
        self.layers = []
        for each in model.stack.blocks:
            attention, feed_forward = each.attention, each.feed_forward
            linears = attention.qkv, attention.output, feed_forward.inner, feed_forward.output
            matrices = [matrix(linear.weight, linear.bias) for linear in linears]
            norms = function_of(each.attention_norm), function_of(each.feed_forward_norm)
            self.layers.append((*norms, *matrices))
        self.read_out = matrix(model.embed.weight, None)

    @staticmethod
    def fits(model: nn.Module) -> bool:
        """Is it our GPT, piece by piece, and does nobody listen to its layers or put dropout between them?"""
        return (
            type(model) is GPT
            and model.shape.pre_norm
            and model.shape.positions in ("learned", "sinusoidal", "rotary", "none")
            and not any(each.attention.alibi for each in model.stack.blocks)
            and not (model.training and model.shape.dropout)
            and all(each.combine is block for each in model.stack.blocks)
            and all(type(m) in PIECES and not m._forward_hooks and not m._forward_pre_hooks for m in model.modules())
        )

    @torch.inference_mode()
    def __call__(self, ids: Tensor, caches: list[Cache], skip: Tensor | None = None) -> Tensor:
        """The newest token of each text, (batch) → scores of the next one, (batch, vocabulary)."""
        model, batch, place = self.model, len(ids), caches[0].length
        x, mask = model.embed.weight[ids], None  # (batch, d)
        if model.places is not None:
            x = x + model.places.weight[place if skip is None else place - skip]
        if skip is not None:
            mask = (torch.arange(place + 1, device=ids.device) >= skip[:, None])[:, None, None]
        first = model.stack.blocks[0]  # all are of one shape
        rotary, gated, activation = first.attention.rotary, first.feed_forward.gated, first.feed_forward.activation
        heads, kv_heads, d_head = first.attention.heads, first.attention.kv_heads, first.attention.d_head
        for (norm, other_norm, qkv, output, inner, outer), cache in zip(self.layers, caches, strict=True):
            h = qkv(norm(x)).reshape(batch, -1, 1, d_head)  # (batch, all heads, 1, d_head)
            qk, v = h.split((heads + kv_heads, kv_heads), dim=1)
            if rotary is not None:
                qk = rotary(qk, place)
            q, k = qk.split((heads, kv_heads), dim=1)
            k, v = cache.append(k, v)  # (batch, kv_heads, place + 1, d_head)
            q = q.reshape(batch, kv_heads, -1, d_head)  # those that share keys side by side
            x = x + output(F.scaled_dot_product_attention(q, k, v, mask).view(batch, -1))

            h = inner(other_norm(x)).contiguous()
            if gated:
                gate, h = h.chunk(2, dim=-1)
                x = x + outer(activation(gate) * h)
            else:
                x = x + outer(activation(h))
        return self.read_out(model.stack.norm(x))
