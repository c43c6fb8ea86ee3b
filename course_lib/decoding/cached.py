"""A model together with its caches: what it has read it remembers, and each token is computed once."""

import contextlib
from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.fast.linear import WORTH_IT, quickened
from course_lib.fast.next_token import NextToken
from course_lib.models.attention import Cache

Model = Callable[..., Tensor]


class CachedModel:
    """A model that reads on from where it stopped: from its caches if it has any, else from the start each time."""

    def __init__(self, model: Model, batch: int, longest: int, skip: Tensor | None = None):
        """``skip`` (batch): so many tokens at the start of each text are filler."""
        self.model, self.settings = model, {} if skip is None else {"skip": skip}
        self.caches = model.make_caches(batch, longest) if hasattr(model, "make_caches") else None
        self.quick = bool(self.caches) and NextToken.fits(model)
        # With fewer new tokens no product is large enough to gain by `quickened`, which looks at every layer.
        self.worth_it = WORTH_IT // max(w.numel() for w in model.parameters()) if self.caches else 0
        self.next_token: NextToken | None = None
        self.rows: list[int] | None = None  # text i stands in this row of the caches; None: in row i

    @classmethod
    def for_prompts(
        cls, model: Model, ids: Tensor, new: int, lengths: Tensor | None = None, reads_last: bool = False
    ) -> "CachedModel":
        """With room for prompts (batch, length) and ``new`` tokens; see `refuse_unfit_prompts`."""
        refuse_unfit_prompts(model, ids, new, lengths, reads_last)
        return cls(model, len(ids), ids.shape[1] + new, None if lengths is None else ids.shape[1] - lengths)

    @torch.no_grad()
    def __call__(self, ids: Tensor, last: int = 1) -> Tensor:
        """All ids so far (batch, length) → scores after each of the last ones (batch, last, vocabulary)."""
        if self.caches is None:
            return self.model(ids, **self.settings)[:, -last:].float()
        new = ids[:, self.caches[0].length :]
        if self.rows is not None:
            new = torch.empty_like(new).index_copy_(0, torch.tensor(self.rows, device=ids.device), new)
        scores = self._after(new, last)
        return (scores if self.rows is None else scores[self.rows]).float()

    def _after(self, new: Tensor, last: int) -> Tensor:
        """Scores after the last of the new tokens, which the caches do not hold yet: (rows, last, vocabulary)."""
        if self.quick and new.shape[1] == 1:
            if self.next_token is None or self.next_token.rows != len(new):
                self.next_token = NextToken(self.model, len(new))
            return self.next_token(new[:, 0], self.caches, **self.settings)[:, None]
        with quickened(self.model) if new.numel() >= self.worth_it else contextlib.nullcontext():
            if not self.quick:
                return self.model(new, self.caches, **self.settings)[:, -last:]
            # Of a long prompt no more is read out than was asked for.
            hidden = self.model.hidden(new, self.caches, **self.settings)[:, -last:]
            return self.model.read_out(hidden, self.model.embed.weight)

    def select(self, rows: Tensor) -> None:
        """From now on, text i of the batch continues what was text ``rows[i]``."""
        for cache in self.caches or ():
            select_rows(cache, rows)

    def continue_beams(self, parents: Tensor) -> None:
        """Beam j of text i continues its beam ``parents[i, j]``, with little copying. parents (batch, beams)

        A beam that is continued stays in its row of the caches. Its second and further continuations go to rows whose
        beams are given up; what both rows share is not copied again, and mostly they have parted only lately.
        """
        if self.caches is None:
            return
        beams, length = parents.shape[1], self.caches[0].length
        if self.rows is None:  # just after the prompt, which all beams share
            self.rows = list(range(parents.numel()))
            self.shared = [[length] * len(self.rows) for _ in self.rows]  # so many first tokens two rows have in common
        before, self.rows = self.rows, []
        for i, chosen in enumerate(parents.tolist()):
            continued = [before[i * beams + j] for j in chosen]
            given_up = set(before[i * beams : (i + 1) * beams]) - set(continued)
            for k, row in enumerate(continued):
                self.rows.append(self._copied(row, given_up.pop(), length) if row in continued[:k] else row)

    def _copied(self, row: int, to: int, length: int) -> int:
        """Let row ``to`` of the caches hold the first ``length`` tokens of another row."""
        alike = self.shared[row][to]
        for cache in self.caches:
            for room in (cache.keys, cache.values):
                room[to, :, alike:length] = room[row, :, alike:length]
        for other, common in enumerate(self.shared[row]):
            self.shared[to][other] = self.shared[other][to] = common
        self.shared[row][to] = self.shared[to][row] = length
        return to

    def forget(self, length: int) -> None:
        """Go back to the first ``length`` tokens."""
        for cache in self.caches or ():
            cache.length = min(cache.length, length)


def select_rows(cache: Cache, rows: Tensor) -> None:
    """Text i of the cache continues what was text ``rows[i]``; rows may repeat, and be more or fewer than they were."""
    for name in ("keys", "values"):
        room = getattr(cache, name)  # (batch, heads, longest, d_head)
        taken = room[:, :, : cache.length].index_select(0, rows)
        if len(rows) != len(room):
            room = room.new_empty(len(rows), *room.shape[1:])
        room[:, :, : cache.length] = taken
        setattr(cache, name, room)


def refuse_unfit_prompts(
    model: Model, ids: Tensor, new: int, lengths: Tensor | None = None, reads_last: bool = False
) -> None:
    """Expected are ids (batch, length), true lengths (batch), and a model with room for ``new`` tokens after them.

    The last new token is written, and read by nobody, unless ``reads_last``: the model need not have room for it.
    """
    if ids.dim() != 2 or ids.numel() == 0 or ids.is_floating_point():
        raise ValueError(
            f"Expected ids of shape (batch, length), neither 0, all whole numbers; got {tuple(ids.shape)}."
        )
    if new < 1:
        raise ValueError(f"At least 1 new token must be asked for; got {new}.")
    longest, length = getattr(getattr(model, "shape", None), "longest", None), ids.shape[1]
    if longest is not None and length + new - (not reads_last) > longest:
        raise ValueError(f"The model sees at most {longest} tokens; {length} + {new} are asked for.")
    if lengths is not None and (lengths.shape != ids.shape[:1] or lengths.min() < 1 or lengths.max() > length):
        raise ValueError(f"Expected {len(ids)} lengths from 1 to {length}; got {lengths.tolist()}.")
