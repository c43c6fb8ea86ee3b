"""Instruments: what depends on what, what must wait for what, how long it takes."""

import time
from collections.abc import Callable

import torch
from torch import Tensor


def influence(network: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    r"""How strongly output $t$ depends on input $s$: $\lVert \partial \sum y_t / \partial x_s \rVert$.

    x (length, d_in); network: (1, length, d_in) → (1, length, d_out). Returns (length of outputs, length of inputs).
    """
    x = x[None].detach().requires_grad_()
    outputs = network(x)[0].sum(dim=-1)  # (length)
    return torch.stack([torch.autograd.grad(y, x, retain_graph=True)[0][0].norm(dim=-1) for y in outputs])


def serial_depth(output: Tensor) -> int:
    """The longest chain of operations behind ``output`` in which each has to wait for the one before.

    Read from the record that PyTorch keeps for the backward pass, so it is the same on every machine.
    """
    depth, stack = {}, [output.grad_fn]
    while stack:
        parents = [parent for parent, _ in stack[-1].next_functions if parent is not None]
        waiting = [parent for parent in parents if parent not in depth]
        if waiting:
            stack += waiting
        else:
            depth[stack.pop()] = 1 + max((depth[parent] for parent in parents), default=0)
    return depth[output.grad_fn]


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """The shortest of ``repeats`` runs; one more before them warms up and does not count."""
    taken = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # a GPU works on after the call has returned
        taken.append(time.perf_counter() - start)
    return min(taken[1:])
