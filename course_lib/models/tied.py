"""Weights that belong to another module: a read-out tied to the embedding, a part of a larger matrix."""

from torch import Tensor, nn
from torch.nn import functional as F


class TiedLinear(nn.Module):
    """$W x + b$ as `nn.Linear`, but the weights are handed in: x (…, in), weight (out, in), bias (out) → (…, out)."""

    def forward(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return F.linear(x, weight, bias)
