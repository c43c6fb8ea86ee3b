"""A tensor that behaves as on Apple's GPUs, for machines that have none."""

import torch


class WithoutDouble(torch.Tensor):
    """Like a tensor on Apple's GPUs: no float64, and nothing to do with tensors of the CPU, until it is moved there."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.cpu:
            return args[0].as_subclass(torch.Tensor)
        made = super().__torch_function__(func, types, args, kwargs)
        with torch._C.DisableTorchFunctionSubclass():
            if any(isinstance(x, torch.Tensor) and not isinstance(x, cls) for x in args):
                raise RuntimeError("Expected all tensors to be on the same device.")
            if isinstance(made, torch.Tensor) and made.dtype == torch.float64:
                raise TypeError("Cannot convert a MPS Tensor to float64 dtype.")
        return made
