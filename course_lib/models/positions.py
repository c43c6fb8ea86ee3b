r"""Where a token stands: attention itself sees a set, so the order has to be put in.

Sinusoidal and learned positions are *added* to the embeddings; rotary positions *turn* queries and keys; ALiBi *lowers*
the scores of far keys.
"""

from collections.abc import Callable

import torch
from torch import Tensor


def sinusoidal(length: int, d: int, base: float = 10_000.0) -> Tensor:
    r"""$PE_{p,2i} = \sin(p / 10000^{2i/d})$, $PE_{p,2i+1} = \cos(p / 10000^{2i/d})$: (length, d), as in 2017."""
    if d % 2:
        raise ValueError(f"Sinusoidal positions come in pairs of sine and cosine: d must be even; got {d}.")
    frequencies = base ** (-torch.arange(0, d, 2) / d)  # (d/2)
    angles = torch.arange(length)[:, None] * frequencies  # (length, d/2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def shift_matrix(k: int, d: int, base: float = 10_000.0) -> Tensor:
    r"""The map that moves a sinusoidal position by k: $PE_{p+k} = M_k\, PE_p$ for every p: (d, d).

    Each pair of sine and cosine is turned by the angle $\omega_i k$ with $\omega_i = 10000^{-2i/d}$.
    """
    angles = k * base ** (-torch.arange(0, d, 2) / d)  # (d/2)
    sin, cos = angles.sin(), angles.cos()
    blocks = torch.stack([torch.stack([cos, sin], dim=-1), torch.stack([-sin, cos], dim=-1)], dim=-2)  # (d/2, 2, 2)
    return torch.block_diag(*blocks)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    r"""Turn each pair $(x_i, x_{i + d/2})$ by an angle.

    x (…, length, d), cos and sin of the angles (length, d/2) → (…, length, d)
    """
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


class Rotary(torch.nn.Module):
    r"""Turn each pair $(x_i, x_{i + d/2})$ by the angle $p\,\theta_i$ with $\theta_i = b^{-2i/d}$ (Su et al. 2021).

    The dot product of a turned query and a turned key depends on the distance between them alone.
    """

    def __init__(self, d_head: int, longest: int, base: float = 10_000.0, turn: Callable = rotate):
        super().__init__()
        if d_head % 2:
            raise ValueError(f"Rotary positions turn pairs: the width of a head must be even; got {d_head}.")
        angles = torch.arange(longest)[:, None] * base ** (-torch.arange(0, d_head, 2) / d_head)  # (longest, d/2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        self.turn = turn

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """x (batch, heads, length, d_head) at positions start, start + 1, … → the same shape."""
        end = start + x.shape[-2]
        if end > len(self.cos):
            raise ValueError(f"There are positions for {len(self.cos)} tokens; {end} are needed.")
        return self.turn(x, self.cos[start:end].to(x.dtype), self.sin[start:end].to(x.dtype))


def alibi(heads: int, queries: int, keys: int, device: torch.device | str | None = None) -> Tensor:
    r"""$-m_h \cdot \text{distance}$, to be added to the scores: (heads, queries, keys), with $m_h = 2^{-8h/H}$.

    The last query is the last key. Press et al. 2022, for a power of two of heads.
    """
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1, device=device) / heads)
    keys_at = torch.arange(keys, device=device)
    distance = keys_at - keys_at[keys - queries :, None]  # ≤ 0 in the past
    return slopes[:, None, None] * distance.clamp(max=0)
