"""oneDNN, the second library for matrix products that PyTorch brings along, by private operators of torch.

Such operators may be renamed in any release. So each is asked for before it is used and tried once on a tiny product;
where one is gone, fails or gives other numbers than `F.linear`, nothing of it is used, and all is as slow as without.
"""

import contextlib
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

operators = torch.ops.mkldnn  # what torch.compile uses, too


def product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """`F.linear` of float32 on a CPU. The weight (out, in) may be `packed`."""
    return operators._linear_pointwise(x, weight, bias, "none", [], "")


def packed(weight: Tensor, rows: int) -> Tensor:
    """The weight laid out anew, as oneDNN likes to read it for so many rows."""
    return operators._reorder_linear_weight(weight, rows)


def release(ctx: torch.autograd.function.FunctionCtx) -> None:
    """Let go of what was kept for this step of the backward pass, if torch offers that; else it goes a little later."""
    with contextlib.suppress(Exception):
        ctx.maybe_clear_saved_tensors()


@cache
def multiplies() -> bool:
    """Is `product` here, and right?"""
    return _agrees("_linear_pointwise", product)


@cache
def packs() -> bool:
    """Is `packed` here, too, and right?"""
    return multiplies() and _agrees("_reorder_linear_weight", lambda x, w, b: product(x, packed(w, len(x)), b))


def _agrees(operator: str, function: Callable[[Tensor, Tensor, Tensor], Tensor]) -> bool:
    """Is there such an operator, and does the function that uses it give what `F.linear` gives?"""
    if not torch.backends.mkldnn.is_available() or not hasattr(operators, operator):
        return False
    x, weight, bias = (torch.linspace(-1, 1, n, device="cpu", dtype=torch.float32) for n in (12, 20, 5))
    x, weight = x.view(3, 4), weight.view(5, 4)
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        try:
            return torch.allclose(function(x, weight, bias), F.linear(x, weight, bias), atol=1e-5)
        except Exception:  # whatever it is, the plain product does the work
            return False
