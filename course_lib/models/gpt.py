"""A language model: tokens in, a score for every possible next token out. GPT-2's shape, or Llama's."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from course_lib.models.attention import Cache, update_cache
from course_lib.models.inputs import refuse_unfit_ids
from course_lib.models.positions import Rotary, sinusoidal
from course_lib.models.tied import TiedLinear
from course_lib.models.transformer import Shape, Stack, block, initialise


@dataclass(frozen=True)
class GPTShape(Shape):
    """A stack of causal blocks with an embedding before and a read-out after it."""

    vocabulary: int = 65
    longest: int = 64  # the most tokens it can see
    positions: str = "learned"  # learned (GPT-2), sinusoidal (2017), rotary (Llama), alibi (BLOOM) or none
    rotary_base: float = 10_000.0
    causal: bool = True


class GPT(nn.Module):
    """Embedding → blocks → scores. Embedding and read-out share one matrix (tied). ``combine``: see `Block`."""

    def __init__(self, shape: GPTShape, combine: Callable = block):
        super().__init__()
        known = ("learned", "sinusoidal", "rotary", "alibi", "none")
        if shape.positions not in known:
            raise ValueError(f"There are no positions {shape.positions!r}; expected one of {', '.join(known)}.")
        self.shape = shape
        self.embed = nn.Embedding(shape.vocabulary, shape.d)
        self.places = self.rotary = None
        match shape.positions:
            case "learned":
                self.places = nn.Embedding(shape.longest, shape.d)
            case "sinusoidal":
                waves = sinusoidal(shape.longest, shape.d)
                self.places = nn.Embedding.from_pretrained(0.02 * 2**0.5 * waves)  # as large as the embeddings; frozen
            case "rotary":
                self.rotary = Rotary(shape.d // shape.heads, shape.longest, shape.rotary_base)
        self.stack = Stack(shape, self.rotary, shape.positions == "alibi", combine)
        self.read_out = TiedLinear()
        self.dropout = nn.Dropout(shape.dropout)
        initialise(self, shape.layers)

    def forward(self, ids: Tensor, caches: list[Cache] | None = None, skip: Tensor | None = None) -> Tensor:
        """ids (batch, length) → scores of the next token after each of them (batch, length, vocabulary).

        With ``caches`` (see `make_caches`), ids are only the new tokens; what came before is remembered. ``skip``
        (batch): so many tokens at the start of each text are filler that nobody sees; positions count after them.
        """
        return self.read_out(self.hidden(ids, caches, skip), self.embed.weight)

    def hidden(self, ids: Tensor, caches: list[Cache] | None = None, skip: Tensor | None = None) -> Tensor:
        """The vectors from which the scores are read: (batch, length, d)."""
        x, mask = self._embedded(ids, caches, skip), None
        if skip is not None:
            keys = (caches[0].length if caches else 0) + ids.shape[1]
            mask = (torch.arange(keys, device=ids.device) >= skip[:, None])[:, None, None]  # (batch, 1, 1, keys)
        return self.stack(x, mask, caches=caches)

    def make_caches(self, batch: int, longest: int | None = None, update: Callable = update_cache) -> list[Cache]:
        """Empty caches for a batch of texts of at most ``longest`` tokens. ``update`` fills them, or your own."""
        return self.stack.make_caches(batch, longest or self.shape.longest, self.embed.weight, update)

    def _embedded(self, ids: Tensor, caches: list[Cache] | None, skip: Tensor | None = None) -> Tensor:
        start = caches[0].length if caches else 0
        refuse_unfit_ids(ids, self.shape.vocabulary)
        end = start + ids.shape[1]
        if end > self.shape.longest:
            raise ValueError(f"The model sees at most {self.shape.longest} tokens; got {end}.")
        x = self.embed(ids)
        if self.places is not None:
            places = torch.arange(start, end, device=ids.device)
            x = x + self.places(places if skip is None else (places - skip[:, None]).clamp(min=0))
        return self.dropout(x)
