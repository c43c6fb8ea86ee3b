"""Lesson 04: a task that asks for two things at once, and what a head may look at in a text."""

import torch
from torch import Tensor

from course_lib.data.tasks import SYMBOLS


def two_relations(generator: torch.Generator, batch: int, guests: int = 8) -> tuple[Tensor, Tensor]:
    """A round table: a symbol at each of ``guests`` places, (batch, guests), ``guests`` even.

    Each place has two targets, (batch, guests, 2): the symbol of its neighbour (the place before; before the first
    comes the last) and the symbol of the place opposite.
    """
    if guests < 4 or guests % 2:
        raise ValueError(f"Expected an even number of guests, 4 or more; got {guests}.")
    symbols = torch.randint(SYMBOLS, (batch, guests), generator=generator)
    return symbols, torch.stack([symbols.roll(1, dims=1), symbols.roll(guests // 2, dims=1)], dim=-1)


def word_patterns(ids: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """Four patterns of texts ``[CLS] words [SEP]``, for `pattern_score`: where each word should look.

    ids (batch, length), lengths (batch) → name → gold (batch, queries, keys). [CLS], [SEP] and filling ask for nothing.
    """
    place = torch.arange(ids.shape[1], device=ids.device)
    word = (place > 0) & (place < lengths[:, None] - 1)  # (batch, length)
    last = place == lengths[:, None] - 1
    step = place - place[:, None]  # (queries, keys): how far to the right the key is
    both = word[:, :, None] & word[:, None]
    return {
        "previous word": both & (step == -1),
        "next word": both & (step == 1),
        "[CLS]": word[:, :, None] & (place == 0),
        "[SEP]": word[:, :, None] & last[:, None],
    }


def preference(weights: Tensor, query: Tensor, right: Tensor, wrong: Tensor) -> tuple[Tensor, Tensor]:
    """How often a query looks more at the right key than at the wrong one, and its mean weight there: (heads) each.

    weights (batch, heads, queries, keys); query, right, wrong: one place in each text, (batch).
    """
    text = torch.arange(len(weights), device=weights.device)
    row = weights[text, :, query]  # (batch, heads, keys)
    on_right, on_wrong = row[text, :, right], row[text, :, wrong]
    return (on_right > on_wrong).float().mean(dim=0), on_right.mean(dim=0)
