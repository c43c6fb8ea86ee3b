"""Instruments: what depends on what, what must wait for what, how long it takes, what it costs."""

import time
from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from course_lib.training import adamw


def influence(network: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    r"""How strongly output $t$ depends on input $s$: $\lVert \partial \sum y_t / \partial x_s \rVert$.

    x (length, d_in); network: (1, length, d_in) → (1, length, d_out). Returns (length of outputs, length of inputs).
    """
    x = x[None].detach().requires_grad_()
    outputs = network(x)[0].sum(dim=-1)  # (length)
    return torch.stack([torch.autograd.grad(y, x, retain_graph=True)[0][0].norm(dim=-1) for y in outputs])


def gradient_flow(step: Callable[[Tensor, Tensor], Tensor], xs: Tensor, state: Tensor) -> Tensor:
    r"""How strongly the last state still depends on each earlier one: $\lVert \partial \sum h_T / \partial h_t \rVert$.

    step(x, state) → state; xs (length, batch, d_in); state (batch, d) → norms (length + 1), for t = 0 … length.
    """
    states = [state.detach().requires_grad_()]
    for x in xs:
        states.append(step(x, states[-1]))
    gradients = torch.autograd.grad(states[-1].sum(), states)
    return torch.stack([gradient.norm() for gradient in gradients])


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


def operations(work: Callable[[], object]) -> int:
    """Multiplications and additions in the matrix products and convolutions of ``work``, as PyTorch counts them."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


def bytes_kept(work: Callable[[], object], besides: Iterable[Tensor] = ()) -> int:
    """How much memory the tensors take that ``work`` keeps for the backward pass; each counts once.

    ``besides``: tensors that are there anyway and do not count, such as a layer's parameters.
    """
    kept = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        work()
    for tensor in besides:
        kept.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(kept.values())


def training_memory(model: nn.Module, loss: Callable[[], Tensor]) -> tuple[int, int]:
    """How many numbers are trained, and the bytes of their gradients and of Adam's two means, after one empty step."""
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = adamw(trained, lr=0.0)
    loss().backward()
    optimizer.step()
    means = [mean for state in optimizer.state.values() for mean in state.values() if mean.dim()]
    kept = [p.grad for p in trained] + means
    model.zero_grad()
    return sum(p.numel() for p in trained), sum(tensor.nbytes for tensor in kept)


def price(work: Callable[[], object], besides: Iterable[Tensor] = ()) -> tuple[int, float, float]:
    """Operations, milliseconds without the backward pass, megabytes kept for it (those of ``besides`` apart)."""
    with torch.no_grad():
        count, time_taken = operations(work), 1000 * seconds(work)
    return count, time_taken, bytes_kept(work, besides) / 1e6
