"""Lesson 05: a task that asks for a distance, whatever the length."""

import torch
from torch import Tensor

from course_lib.data.batches import IGNORED
from course_lib.data.tasks import SYMBOLS


def look_back(generator: torch.Generator, batch: int, length: int, distance: int) -> tuple[Tensor, Tensor]:
    """Random symbols, (batch, length). Target at each place: the symbol ``distance`` places before it; −100 if none."""
    if not 0 <= distance < length:
        raise ValueError(f"Expected a distance within 0 … {length - 1}; got {distance}.")
    inputs = torch.randint(SYMBOLS, (batch, length), generator=generator)
    targets = torch.full_like(inputs, IGNORED)
    targets[:, distance:] = inputs[:, : length - distance]
    return inputs, targets
