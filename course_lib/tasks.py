"""Batches: controlled tasks, made on the fly, in which the truth is known because we made it; and windows of a text.

Each draws ``(inputs, targets)`` from a generator, as `course_lib.training.fit` asks for it.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

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


def clue(generator: torch.Generator, batch: int, length: int, places: Sequence[int]) -> tuple[Tensor, Tensor]:
    """``length`` tokens: fillers, and one symbol at one of ``places``: (batch, length). Target: the symbol, (batch)."""
    if not places or min(places) < 0 or max(places) >= length:
        raise ValueError(f"Expected places within 0 … {length - 1}; got {list(places)}.")
    inputs = torch.randint(SYMBOLS, CUE, (batch, length), generator=generator)
    symbol = torch.randint(SYMBOLS, (batch,), generator=generator)
    place = torch.tensor(places)[torch.randint(len(places), (batch,), generator=generator)]
    inputs[torch.arange(batch), place] = symbol
    return inputs, symbol


def copy(generator: torch.Generator, batch: int, lengths: range) -> tuple[Tensor, Tensor]:
    """Random symbols of one length drawn from ``lengths``: inputs and targets are the same (batch, length)."""
    length = int(torch.randint(lengths.start, lengths.stop, (), generator=generator))
    symbols = torch.randint(SYMBOLS, (batch, length), generator=generator)
    return symbols, symbols


def windows(ids: Tensor, batch: int, length: int) -> Callable[[torch.Generator], tuple[Tensor, Tensor]]:
    """Draws pieces of a long text, (batch, length); the targets are the same pieces one token later."""
    if len(ids) <= length:
        raise ValueError(f"The text has {len(ids)} tokens; windows of {length} need at least {length + 1}.")

    def draw(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(ids) - length, (batch, 1), generator=generator)
        pieces = ids[starts + torch.arange(length + 1)]
        return pieces[:, :-1], pieces[:, 1:]

    return draw


def sample(inputs: tuple[Tensor, ...], targets: Tensor, rows: Tensor, batch: int) -> Callable:
    """Draws examples from the chosen ``rows`` (a mask) of a data set, with replacement."""
    chosen = rows.nonzero()[:, 0]
    if not len(chosen):
        raise ValueError("There is no example to draw from: the mask chooses no row.")

    def draw(generator: torch.Generator) -> tuple[tuple[Tensor, ...], Tensor]:
        drawn = chosen[torch.randint(len(chosen), (batch,), generator=generator)]
        return tuple(x[drawn] for x in inputs), targets[drawn]

    return draw
