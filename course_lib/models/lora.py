r"""Low-rank adaptation (Hu et al. 2022): a frozen layer, and beside it a detour of a few trained numbers.

$$y = W x + b + \frac{\alpha}{r} B A x, \qquad A: (r, \text{in}), \quad B: (\text{out}, r)$$
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class LoRA(nn.Module):
    r"""A linear layer that stays as it is, plus $\frac{\alpha}{r} B A x$. x (…, in) → (…, out)

    $B$ begins at 0: so at first nothing is changed. $A$ begins random, or no gradient would ever leave 0.
    """

    def __init__(self, layer: nn.Linear, rank: int, alpha: float):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))
        self.scale = alpha / rank

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self) -> Tensor:
        r"""The one matrix that does the same: $W + \frac{\alpha}{r} B A$, (out, in)."""
        return self.layer.weight + self.scale * (self.B @ self.A)


def adapt(model: nn.Module, blocks: Iterable[nn.Module], rank: int, alpha: float, kind: type[nn.Module] = LoRA) -> None:
    """Freeze the model, and put a detour beside every linear layer of these blocks, in place."""
    model.requires_grad_(False)
    for block in blocks:
        for module in list(block.modules()):
            for name, child in list(module.named_children()):
                if isinstance(child, nn.Linear):
                    setattr(module, name, kind(child, rank, alpha))


@torch.no_grad()
def merge_adapters(model: nn.Module) -> None:
    """Put plain layers in the place of all detours again, with the merged weights; in place."""
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if hasattr(child, "merged"):
                child.layer.weight.copy_(child.merged())
                setattr(module, name, child.layer)
