"""Lesson 01: a clue that may stand anywhere."""

from collections.abc import Sequence

import torch
from torch import Tensor

from course_lib.data.tasks import CUE, SYMBOLS


def clue(generator: torch.Generator, batch: int, length: int, places: Sequence[int]) -> tuple[Tensor, Tensor]:
    """``length`` tokens: fillers, and one symbol at one of ``places``: (batch, length). Target: the symbol, (batch)."""
    if not places or min(places) < 0 or max(places) >= length:
        raise ValueError(f"Expected places within 0 … {length - 1}; got {list(places)}.")
    inputs = torch.randint(SYMBOLS, CUE, (batch, length), generator=generator)
    symbol = torch.randint(SYMBOLS, (batch,), generator=generator)
    place = torch.tensor(places)[torch.randint(len(places), (batch,), generator=generator)]
    inputs[torch.arange(batch), place] = symbol
    return inputs, symbol
