"""What every model asks of the numbers of its tokens, before it does any work."""

import torch
from torch import Tensor


def refuse_unfit_ids(ids: Tensor, vocabulary: int, longest: int | None = None, what: str = "ids") -> None:
    """Expected are ids (batch, length), whole numbers below ``vocabulary``, of at most ``longest`` tokens."""
    if ids.dim() != 2 or ids.numel() == 0:
        raise ValueError(f"Expected {what} of shape (batch, length), neither 0; got {tuple(ids.shape)}.")
    if longest is not None and ids.shape[1] > longest:
        raise ValueError(f"The model sees at most {longest} tokens; got {ids.shape[1]}.")
    refuse_unfit_numbers(ids, vocabulary, what)


def refuse_unfit_numbers(numbers: Tensor, size: int, what: str, lowest: int = 0) -> None:
    """Expected are whole numbers from ``lowest`` to size − 1, in any shape."""
    if numbers.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"Expected {what} to be whole numbers; got {numbers.dtype}.")
    # Only where looking is free: a GPU would have to finish all its work before it could answer.
    if numbers.device.type == "cpu" and not torch.compiler.is_compiling():
        low, high = (number.item() for number in numbers.aminmax())
        if not lowest <= low <= high < size:
            raise ValueError(f"Expected {what} from {lowest} to {size - 1}; got {low} to {high}.")
