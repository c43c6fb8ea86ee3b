r"""Where a token stands: attention itself sees a set, so the order has to be put in.

Sinusoidal and learned positions are *added* to the embeddings; rotary positions *turn* queries and keys; ALiBi *lowers*
the scores of far keys.
"""

import torch
from torch import Tensor


def sinusoidal(length: int, d: int, base: float = 10_000.0) -> Tensor:
    r"""$PE_{p,2i} = \sin(p / 10000^{2i/d})$, $PE_{p,2i+1} = \cos(p / 10000^{2i/d})$: (length, d), as in 2017."""
    if d % 2:
        raise ValueError(f"Sinusoidal positions come in pairs of sine and cosine: d must be even; got {d}.")
    frequencies = base ** (-torch.arange(0, d, 2) / d)  # (d/2)
    angles = torch.arange(length)[:, None] * frequencies  # (length, d/2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class Rotary(torch.nn.Module):
    r"""Turn each pair $(x_i, x_{i + d/2})$ by the angle $p\,\theta_i$ with $\theta_i = b^{-2i/d}$ (Su et al. 2021).

    The dot product of a turned query and a turned key depends on the distance between them alone.
    """

    def __init__(self, d_head: int, longest: int, base: float = 10_000.0):
        super().__init__()
        if d_head % 2:
            raise ValueError(f"Rotary positions turn pairs: the width of a head must be even; got {d_head}.")
        angles = torch.arange(longest)[:, None] * base ** (-torch.arange(0, d_head, 2) / d_head)  # (longest, d/2)
        self.register_buffer("cos", angles.cos().repeat(1, 2), persistent=False)  # (longest, d)
        self.register_buffer("sin", angles.sin().repeat(1, 2), persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """x (batch, heads, length, d_head) at positions start, start + 1, … → the same shape."""
        end = start + x.shape[-2]
        if end > len(self.cos):
            raise ValueError(f"There are positions for {len(self.cos)} tokens; {end} are needed.")
        first, second = x.chunk(2, dim=-1)
        turned = torch.cat([-second, first], dim=-1)
        return x * self.cos[start:end].to(x.dtype) + turned * self.sin[start:end].to(x.dtype)


def alibi(heads: int, queries: int, keys: int) -> Tensor:
    r"""$-m_h \cdot \text{distance}$, to be added to the scores: (heads, queries, keys), with $m_h = 2^{-8h/H}$.

    The last query is the last key. Press et al. 2022, for a power of two of heads.
    """
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    distance = torch.arange(keys) - torch.arange(keys - queries, keys)[:, None]  # ≤ 0 in the past
    return slopes[:, None, None] * distance.clamp(max=0)
