"""How good is it? Accuracy and perplexity."""

import torch
from torch import Tensor, nn


@torch.no_grad()
def accuracy(model: nn.Module, inputs: Tensor | tuple[Tensor, ...], targets: Tensor) -> Tensor:
    """1 where the model's first choice is the target, else 0; of the targets' shape, on the CPU."""
    device = next(model.parameters()).device
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return (model(*(x.to(device) for x in inputs)).argmax(dim=-1).cpu() == targets).float()


@torch.no_grad()
def perplexity(model: nn.Module, ids: Tensor, length: int) -> float:
    r"""$\exp(-\frac{1}{N} \sum_t \log p(x_t \mid x_{<t}))$ over a long text, read in windows of ``length`` tokens.

    ids (tokens of the text); the model: (batch, length) → logits (batch, length, vocabulary).
    """
    windows = (len(ids) - 1) // length
    if windows < 1:
        raise ValueError(f"The text has {len(ids)} tokens; a window of {length} needs at least {length + 1}.")
    device, total = next(model.parameters()).device, 0.0
    inputs, targets = (ids[shift : windows * length + shift].view(windows, length) for shift in (0, 1))
    for x, y in zip(inputs.split(256), targets.split(256), strict=True):  # in parts, to spare memory
        logits = model(x.to(device)).flatten(0, 1).float()
        total += nn.functional.cross_entropy(logits, y.to(device).flatten(), reduction="sum").item()
    return float(torch.tensor(total / targets.numel()).exp())
