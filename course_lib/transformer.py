r"""The Transformer's block and stacks: attention and a feed-forward layer, each with a residual path and a norm.

- Post-norm, 2017: $x \leftarrow \text{LN}(x + f(x))$.
- Pre-norm, 2019: $x \leftarrow x + f(\text{LN}(x))$, and one more norm at the end of the stack.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.attention import Cache, MultiHeadAttention
from course_lib.positions import Rotary


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


class Block(nn.Module):
    """Self-attention, in a decoder also attention to the encoder's output, and feed-forward; one class for all."""

    def __init__(self, shape: Shape, rotary: Rotary | None = None, alibi: bool | Callable = False):
        super().__init__()
        self.shape = shape
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
        want_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """x (batch, length, d) → (batch, length, d), and the weights if asked for: in a decoder with ``cross`` those of
        the attention to ``memory``, else those of self-attention."""
        cross = self.shape.cross
        h = self._before(self.attention_norm, x)
        h, weights = self.attention(h, None, mask, self.shape.causal, cache, want_weights and not cross)
        x = self._after(self.attention_norm, x + self.dropout(h))
        if cross:
            h, weights = self.cross(self._before(self.cross_norm, x), memory, memory_mask, want_weights=want_weights)
            x = self._after(self.cross_norm, x + self.dropout(h))
        h = self.feed_forward(self._before(self.feed_forward_norm, x))
        return self._after(self.feed_forward_norm, x + self.dropout(h)), weights

    def _before(self, norm: nn.Module, x: Tensor) -> Tensor:
        return norm(x) if self.shape.pre_norm else x

    def _after(self, norm: nn.Module, x: Tensor) -> Tensor:
        return x if self.shape.pre_norm else norm(x)


class Stack(nn.Module):
    """``layers`` blocks, one after the other: an encoder, or with ``causal`` and ``cross`` a decoder."""

    def __init__(self, shape: Shape, rotary: Rotary | None = None, alibi: bool | Callable = False):
        super().__init__()
        self.shape = shape
        self.blocks = nn.ModuleList(Block(shape, rotary, alibi) for _ in range(shape.layers))
        self.norm = norm(shape) if shape.pre_norm else nn.Identity()

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        caches: list[Cache] | None = None,
        want_weights: bool = False,
    ) -> tuple[Tensor, list[Tensor]]:
        """x (batch, length, d) → (batch, length, d), and each layer's attention weights if asked for."""
        if self.shape.cross and memory is None:
            raise ValueError("This stack attends to an encoder's output: give it as memory.")
        weights = []
        for i, block in enumerate(self.blocks):
            x, w = block(x, mask, memory, memory_mask, caches[i] if caches else None, want_weights)
            weights += [w] if want_weights else []
        return self.norm(x), weights

    def make_caches(self, batch: int, longest: int, like: Tensor) -> list[Cache]:
        """An empty cache for each layer, of the type and on the device of ``like``."""
        first = self.blocks[0].attention
        return [Cache(batch, first.kv_heads, longest, first.d_head, like) for _ in self.blocks]


@torch.no_grad()
def initialise(module: nn.Module, layers: int, std: float = 0.02) -> None:
    r"""GPT-2's start: weights from $\mathcal{N}(0, 0.02^2)$, biases 0; what ends a residual branch, smaller by
    $1/\sqrt{2 \cdot \text{layers}}$, so that the sum of all branches has the size of one."""
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()
        elif parameter.dim() >= 2 and parameter.requires_grad:
            parameter.normal_(std=std / (2 * layers) ** 0.5 if name.endswith("output.weight") else std)
