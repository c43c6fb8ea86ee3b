"""Controlled tasks, made on the fly, in which the truth is known because we made it.

Each draws ``(inputs, targets)`` from a generator, as `course_lib.training.fit` asks for it.
"""

import torch
from torch import Tensor

from course_lib.data.batches import IGNORED

SYMBOLS = 8  # symbols 0 … 7 carry information; chance is 1/8
FILLERS = 8  # tokens 8 … 15 carry none
CUE = SYMBOLS + FILLERS  # token 16: "now answer", or "start"
VOCABULARY = CUE + 1


def recall(generator: torch.Generator, batch: int, distance: int) -> tuple[Tensor, Tensor]:
    """One symbol, ``distance`` random fillers, the cue: (batch, distance + 2). Target: the symbol, (batch)."""
    if distance < 0:
        raise ValueError(f"Expected a distance of 0 or more; got {distance}.")
    symbol = torch.randint(SYMBOLS, (batch, 1), generator=generator)
    fillers = torch.randint(SYMBOLS, CUE, (batch, distance), generator=generator)
    return torch.cat([symbol, fillers, torch.full((batch, 1), CUE)], dim=1), symbol[:, 0]


def copy(generator: torch.Generator, batch: int, lengths: range) -> tuple[Tensor, Tensor]:
    """Random symbols of one length drawn from ``lengths``: inputs and targets are the same (batch, length)."""
    length = int(torch.randint(lengths.start, lengths.stop, (), generator=generator))
    symbols = torch.randint(SYMBOLS, (batch, length), generator=generator)
    return symbols, symbols


def first(generator: torch.Generator, batch: int, length: int) -> tuple[Tensor, Tensor]:
    """Fillers, two different symbols at random places, the cue at the end: which symbol comes first? (batch, length)

    Only the cue has a target; the others are −100. The two symbols alone, without their order, leave a chance of 1/2.
    """
    if length < 3:
        raise ValueError(f"Two symbols and the cue need a length of 3 or more; got {length}.")
    inputs = torch.randint(SYMBOLS, CUE, (batch, length), generator=generator)
    places = torch.rand(batch, length - 1, generator=generator).argsort(dim=1)[:, :2].sort(dim=1).values
    symbols = torch.rand(batch, SYMBOLS, generator=generator).argsort(dim=1)[:, :2]
    inputs.scatter_(1, places, symbols)
    inputs[:, -1] = CUE
    targets = torch.full_like(inputs, IGNORED)
    targets[:, -1] = symbols[:, 0]
    return inputs, targets
