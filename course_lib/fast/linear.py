r"""$W x + b$ for each token: `nn.Linear`, on some processors in half the time.

PyTorch leaves the product of two matrices to MKL, a library of Intel's, which makes little use of other makers'
processors. It brings a second library for such work, oneDNN, which on AMD's is up to twice as quick. Here are the three
products of a linear layer, one forward and two backward, by oneDNN, and the way to give them to a finished model.
"""

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.fast import onednn
from course_lib.models.tied import TiedLinear

WORTH_IT = 2**23  # multiplications; below, the detour costs more than it gains (measured)


def quicken(model: nn.Module) -> nn.Module:
    """The model, whose linear layers from now on take the quicker of two libraries: the same numbers up to rounding.

    Only exact `nn.Linear` and `TiedLinear` are changed, not what was derived from them.
    """
    if onednn_is_quicker():
        for module in model.modules():
            module.__class__ = QUICK.get(type(module), type(module))
    return model


@contextlib.contextmanager
def quickened(model: nn.Module) -> Iterator[None]:
    """Inside the ``with`` block the model is quick; after it, its layers are what they were."""
    kinds = [(module, type(module)) for module in model.modules()]
    quicken(model)
    try:
        yield
    finally:
        for module, kind in kinds:
            if type(module) is QUICK.get(kind):
                module.__class__ = kind


def onednn_is_quicker() -> bool:
    """Is oneDNN here, and this processor one of AMD's?

    The maker's name, and no trial of both. Either library gives the same numbers up to rounding, but a training that is
    resumed with the other one does not end with the same weights, and a trial may end otherwise in the next run: of 20
    fresh processes on a busy AMD, the best of 5 products of 268 million multiplications was oneDNN's in 18.
    """
    name = getattr(torch.cpu, "get_capabilities", dict)().get("cpu_name", "")  # older torch does not tell the name
    return "AMD" in name and onednn.multiplies()


def quick_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`F.linear`, by oneDNN where that gains time: x (…, in), weight (out, in), bias (out) → (…, out)."""
    large = x.numel() * len(weight) >= WORTH_IT
    fits = x.dtype == weight.dtype == torch.float32 and x.device.type == "cpu" and x.shape[-1] == weight.shape[-1]
    if large and fits and not torch.is_autocast_enabled("cpu"):
        return Product.apply(x, weight, bias)
    return F.linear(x, weight, bias)


class QuickLinear(nn.Linear):
    """`nn.Linear`, quick."""

    def forward(self, x: Tensor) -> Tensor:
        return quick_linear(x, self.weight, self.bias)


class QuickTiedLinear(TiedLinear):
    """`TiedLinear`, quick."""

    def forward(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return quick_linear(x, weight, bias)


QUICK = {nn.Linear: QuickLinear, TiedLinear: QuickTiedLinear}


class Product(torch.autograd.Function):
    r"""$y = x W^\top + b$ by oneDNN, and the gradients of $x$, $W$ and $b$ from that of $y$, which is $g$."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return onednn.product(x, weight, bias)

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
            dW = quick_linear(rows.t(), of_rows.t()).t() if wider else quick_linear(of_rows.t(), rows.t())
        if of_bias:
            db = of_rows.sum(dim=0)
        onednn.release(ctx)  # x is not needed any more: its memory can go before dx takes as much
        del x, rows
        if of_x:
            dx = quick_linear(g, weight.t())  # g W
        return dx, dW, db
