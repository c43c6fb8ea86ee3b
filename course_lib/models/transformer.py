r"""The Transformer's block and stacks: attention and a feed-forward layer, each with a residual path and a norm.

- Post-norm, 2017: $x \leftarrow \text{LN}(x + f(x))$.
- Pre-norm, 2019: $x \leftarrow x + f(\text{LN}(x))$, and one more norm at the end of the stack.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.models.attention import Cache, MultiHeadAttention, update_cache
from course_lib.models.positions import Rotary


@dataclass(frozen=True)
class Shape:
    """The sizes and choices of a stack of blocks."""

    d: int = 128  # width
    layers: int = 4
    heads: int = 4
    kv_heads: int | None = None  # fewer than heads: grouped queries
    d_ff: int | None = None  # width of the feed-forward layer; 4·d if not given
    activation: str = "gelu"  # relu, gelu, gelu_tanh or swiglu
    norm: str = "layer"  # layer or rms
    pre_norm: bool = True
    bias: bool = True
    dropout: float = 0.0
    epsilon: float = 1e-5  # inside the root of the norms
    causal: bool = False  # each token sees itself and what came before
    cross: bool = False  # a second attention looks at an encoder's output


def norm(shape: Shape) -> nn.Module:
    """LayerNorm (centre and scale), or RMSNorm (scale only)."""
    kinds = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}
    if shape.norm not in kinds:
        raise ValueError(f"There is no norm {shape.norm!r}; expected one of {', '.join(kinds)}.")
    return kinds[shape.norm](shape.d, eps=shape.epsilon)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),  # GPT-2's
    "swiglu": F.silu,
}


class FeedForward(nn.Module):
    r"""$W_2\, g(W_1 x)$ for each token on its own; SwiGLU: $W_2 (\text{SiLU}(W_1 x) \odot W_3 x)$."""

    def __init__(self, shape: Shape):
        super().__init__()
        if shape.activation not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise ValueError(f"There is no activation {shape.activation!r}; expected one of {known}.")
        self.activation, self.gated = ACTIVATIONS[shape.activation], shape.activation == "swiglu"
        d_ff = shape.d_ff or 4 * shape.d
        self.inner = nn.Linear(shape.d, d_ff * (2 if self.gated else 1), bias=shape.bias)
        self.output = nn.Linear(d_ff, shape.d, bias=shape.bias)

    def forward(self, x: Tensor) -> Tensor:
        h = self.inner(x)
        if self.gated:
            gate, h = h.chunk(2, dim=-1)
            return self.output(self.activation(gate) * h)
        return self.output(self.activation(h))


def block(x: Tensor, layers: Iterable[Callable], norms: Iterable[Callable], pre_norm: bool = True) -> Tensor:
    r"""The layers one after the other, each with a residual path and its norm: $x + f(\text{LN}(x))$, as in 2019.

    Without ``pre_norm``: $\text{LN}(x + f(x))$, as in 2017. x, and what each layer and norm gives: (batch, length, d)
    """
    for layer, norm in zip(layers, norms, strict=True):
        x = x + layer(norm(x)) if pre_norm else norm(x + layer(x))
    return x


class Block(nn.Module):
    """Self-attention, in a decoder also attention to the encoder's output, and feed-forward; one class for all.

    ``combine`` puts the layers together: `block`, or your own.
    """

    def __init__(
        self, shape: Shape, rotary: Rotary | None = None, alibi: bool | Callable = False, combine: Callable = block
    ):
        super().__init__()
        self.shape, self.combine = shape, combine
        self.attention = MultiHeadAttention(shape.d, shape.heads, shape.kv_heads, shape.bias, rotary, alibi)
        self.attention_norm = norm(shape)
        if shape.cross:
            self.cross = MultiHeadAttention(shape.d, shape.heads, shape.kv_heads, shape.bias)
            self.cross_norm = norm(shape)
        self.feed_forward = FeedForward(shape)
        self.feed_forward_norm = norm(shape)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """x (batch, length, d), in a decoder also memory (batch, source length, d) → (batch, length, d)"""

        def attend(h: Tensor) -> Tensor:
            return self.dropout(self.attention(h, mask=mask, causal=self.shape.causal, cache=cache))

        def look_across(h: Tensor) -> Tensor:
            return self.dropout(self.cross(h, memory, memory_mask))

        def transform(h: Tensor) -> Tensor:
            return self.dropout(self.feed_forward(h))

        if self.shape.cross:
            layers = [attend, look_across, transform]
            norms = [self.attention_norm, self.cross_norm, self.feed_forward_norm]
        else:
            layers = [attend, transform]
            norms = [self.attention_norm, self.feed_forward_norm]
        return self.combine(x, layers, norms, self.shape.pre_norm)


class Stack(nn.Module):
    """``layers`` blocks, one after the other: an encoder, or with ``causal`` and ``cross`` a decoder."""

    def __init__(
        self, shape: Shape, rotary: Rotary | None = None, alibi: bool | Callable = False, combine: Callable = block
    ):
        super().__init__()
        self.shape = shape
        self.blocks = nn.ModuleList(Block(shape, rotary, alibi, combine) for _ in range(shape.layers))
        self.norm = norm(shape) if shape.pre_norm else nn.Identity()

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        caches: list[Cache] | None = None,
    ) -> Tensor:
        """x (batch, length, d) → (batch, length, d)"""
        if self.shape.cross and memory is None:
            raise ValueError("This stack attends to an encoder's output: give it as memory.")
        for i, block in enumerate(self.blocks):
            x = block(x, mask, memory, memory_mask, caches[i] if caches else None)
        return self.norm(x)

    def make_caches(self, batch: int, longest: int, like: Tensor, update: Callable = update_cache) -> list[Cache]:
        """An empty cache for each layer, of the type and on the device of ``like``; ``update`` fills them."""
        first = self.blocks[0].attention
        return [Cache(batch, first.kv_heads, longest, first.d_head, like, update) for _ in self.blocks]


@torch.no_grad()
def initialise(module: nn.Module, layers: int | None = None) -> None:
    r"""BERT's start: weights from $\mathcal{N}(0, 0.02^2)$, biases 0.

    With ``layers``, GPT-2's: what ends a residual branch is smaller by $1/\sqrt{2 \cdot \text{layers}}$, so that the
    sum of all branches has the size of one.
    """
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()
        elif parameter.dim() >= 2 and parameter.requires_grad:
            ends_branch = layers is not None and name.endswith("output.weight")
            parameter.normal_(std=0.02 / (2 * layers) ** 0.5 if ends_branch else 0.02)
