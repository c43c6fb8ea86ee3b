r"""$W x + b$ for each token: `nn.Linear`, on some processors in half the time.

PyTorch leaves the product of two matrices to MKL, a library of Intel's, which makes little use of other makers'
processors. It brings a second library for such work, oneDNN, which on AMD's is up to twice as quick. Here are the three
products of a linear layer, one forward and two backward, by oneDNN where that gains time.
"""

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WORTH_IT = 2**23  # multiplications; below, the detour costs more than it gains (measured)


class Linear(nn.Linear):
    """`nn.Linear`, the same numbers up to rounding: x (…, in) → (…, out)."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`F.linear`, by the quicker of two libraries: x (…, in), weight (out, in), bias (out) → (…, out)."""
    large = x.numel() * len(weight) >= WORTH_IT
    fits = x.dtype == weight.dtype == torch.float32 and x.device.type == "cpu" and x.shape[-1] == weight.shape[-1]
    if large and fits and not torch.is_autocast_enabled("cpu") and onednn_is_quicker():
        return Product.apply(x, weight, bias)
    return F.linear(x, weight, bias)


class Product(torch.autograd.Function):
    r"""$y = x W^\top + b$ by oneDNN, and the gradients of $x$, $W$ and $b$ from that of $y$, which is $g$."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")  # what torch.compile uses, too

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: Tensor) -> None:
        x, weight, _ = inputs
        ctx.save_for_backward(x, weight)

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        (x, weight), (of_x, of_weight, of_bias) = ctx.saved_tensors, ctx.needs_input_grad
        rows, of_rows = x.flatten(0, -2), g.flatten(0, -2)  # (tokens, in), (tokens, out)
        dx = dW = db = None
        if of_weight:  # gᵀ x; oneDNN likes the wider matrix on the right
            wider = len(weight) > x.shape[-1]
            dW = linear(rows.t(), of_rows.t()).t() if wider else linear(of_rows.t(), rows.t())
        if of_bias:
            db = of_rows.sum(dim=0)
        ctx.maybe_clear_saved_tensors()  # x is not needed any more: its memory can go before dx takes as much
        del x, rows
        if of_x:
            dx = linear(g, weight.t())  # g W
        return dx, dW, db


@cache
def onednn_is_quicker() -> bool:
    """Is oneDNN here, and this processor one of AMD's?"""
    name = getattr(torch.cpu, "get_capabilities", dict)().get("cpu_name", "")  # older torch does not tell the name
    return torch.backends.mkldnn.is_available() and "AMD" in name
