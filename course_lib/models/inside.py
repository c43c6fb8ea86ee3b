"""One look inside a model: what flows through it at named points, recorded or changed while it runs.

    with record(model, "attention") as weights:
        model(ids)
    weights[2]  # of the third layer, (batch, heads, queries, keys)

`recorded` does the same in one line. The points:

| point | what is there, once for each layer |
|---|---|
| attention | the weights of self-attention, (batch, heads, queries, keys) |
| cross | the weights of the attention to an encoder's output, (batch, heads, queries, keys) |
| qkv | queries, keys and values side by side, before any rotation: (batch, length, d + 2 · kv_heads · d_head) |
| blocks | what goes into the first block, and then what each block gives: layers + 1 times (batch, length, d) |
| stack | once: what the stack of blocks gives, after the last norm (batch, length, d) |
"""

import contextlib
import re
from collections.abc import Iterator
from functools import partial

from torch import Tensor, nn

POINTS = {  # → the names of the modules whose output it is
    "attention": r"(.*\.)?(?<!cross\.)weights",
    "cross": r"(.*\.)?cross\.weights",
    "qkv": r"(.*\.)?(?<!cross\.)qkv",
    "blocks": r"(.*\.)?blocks\.\d+",
    "stack": r"(.*\.)?stack",
}


class Point(nn.Identity):
    """A place at which one can listen to what a model computes."""

    @property
    def watched(self) -> bool:
        """Does anybody listen?"""
        return bool(self._forward_hooks)


@contextlib.contextmanager
def record(model: nn.Module, point: str) -> Iterator[list[Tensor]]:
    """Inside the ``with`` block all that passes the point goes into the list, in the order in which it is made."""
    if point not in POINTS:
        raise ValueError(f"There is no point {point!r}; expected one of {', '.join(POINTS)}.")
    modules = {name: module for name, module in model.named_modules() if re.fullmatch(POINTS[point], name)}
    if not modules:
        raise ValueError(f"This {type(model).__name__} has no point {point!r}.")
    found: list[Tensor] = []
    with contextlib.ExitStack() as hooks:
        for name, module in modules.items():
            hooks.enter_context(module.register_forward_hook(lambda _module, _inputs, output: found.append(output)))
            if point == "blocks" and name.endswith("blocks.0"):
                hooks.enter_context(module.register_forward_pre_hook(lambda _module, inputs: found.append(inputs[0])))
        yield found


def recorded(model: nn.Module, point: str, *inputs: Tensor | None) -> list[Tensor]:
    """What passes the point when the model reads these inputs."""
    with record(model, point) as found:
        model(*inputs)
    return found


@contextlib.contextmanager
def gated(model: nn.Module, gates: Tensor) -> Iterator[None]:
    """Inside the ``with`` block each head's output is multiplied by its gate: 1 leaves it as it is, 0 removes it.

    gates (layers, heads). They may require a gradient.
    """
    with contextlib.ExitStack() as hooks:
        for block, row in zip(model.stack.blocks, gates, strict=True):
            layer = block.attention
            if len(row) != layer.heads:
                raise ValueError(f"Expected a gate for each of {layer.heads} heads; got {len(row)}.")
            scale = partial(_scale, row.repeat_interleave(layer.d_head))
            hooks.enter_context(layer.output.register_forward_pre_hook(scale))
        yield


def _scale(gates: Tensor, _module: nn.Module, inputs: tuple[Tensor]) -> Tensor:
    """The heads side by side, (batch, length, d), each times its gate."""
    return inputs[0] * gates
