r"""$W x + b$ for each token: `nn.Linear`, on some processors in half the time.

PyTorch leaves the product of two float32 matrices to MKL, a library of Intel's, which does not use the widest
instructions (AVX-512) of other makers' processors. Convolutions it leaves to oneDNN, which does. And a linear layer
*is* a convolution: of width 1, over an image with a pixel for each token and a channel for each number of its vector.
"""

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

WORTH_IT = 2**23  # multiplications from which on the convolution is the quicker way (measured)


class Linear(nn.Linear):
    """`nn.Linear`, the same numbers up to rounding: x (…, in) → (…, out)."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`F.linear`, in the quicker of two ways: x (…, in), weight (out, in), bias (out) → (…, out)."""
    large = x.numel() * len(weight) >= WORTH_IT
    plain = x.dtype == weight.dtype == torch.float32 and x.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    if large and plain and x.shape[-1] == weight.shape[-1] and mkl_is_slow():
        return Convolution.apply(x, weight, bias)
    return F.linear(x, weight, bias)


class Convolution(torch.autograd.Function):
    r"""$y = W x + b$ as a convolution, and its gradients from that of $y$, which is $g$."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return tokens(F.conv2d(pixels(x), weight[:, :, None, None], bias), like=x)

    @staticmethod
    def setup_context(ctx, inputs: tuple, output: Tensor) -> None:
        x, weight, _ = inputs
        ctx.save_for_backward(x, weight)

    @staticmethod
    def backward(ctx, g: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        (x, weight), (of_x, *others) = ctx.saved_tensors, ctx.needs_input_grad
        image, kernel, dx = pixels(g), weight[:, :, None, None], None
        # Σ g xᵀ and Σ g over the tokens. (Stride, padding, dilation, transposed, output padding, groups: none of them.)
        plain = [1, 1], [0, 0], [1, 1], False, [0, 0], 1
        _, dW, db = torch.ops.aten.convolution_backward(
            image, pixels(x), kernel, [len(weight)], *plain, [False, *others]
        )
        ctx.maybe_clear_saved_tensors()  # x is not needed any more: its memory can go before dx takes as much
        del x
        if of_x:  # Wᵀ g
            dx = tokens(F.conv_transpose2d(image, kernel), like=g)
        return dx, None if dW is None else dW[:, :, 0, 0], db


def pixels(x: Tensor) -> Tensor:
    """Tokens (…, d) as an image (1, d, tokens, 1), its channels side by side: the same memory, seen in another way."""
    return x.reshape(1, -1, 1, x.shape[-1]).permute(0, 3, 1, 2)


def tokens(image: Tensor, like: Tensor) -> Tensor:
    """An image (1, d, tokens, 1) as tokens again, (…, d), in the order that ``like`` has them."""
    return image.permute(0, 2, 3, 1).reshape(*like.shape[:-1], image.shape[1])


@cache
def mkl_is_slow() -> bool:
    """Has this processor AVX-512 that MKL does not use? So with AMD's."""
    name = getattr(torch.cpu, "get_capabilities", dict)().get("cpu_name", "")  # older torch does not tell the name
    return "AMD" in name and torch.backends.cpu.get_cpu_capability() == "AVX512"
