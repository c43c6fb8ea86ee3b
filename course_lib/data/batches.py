"""Batches: what a network reads in one step, from a text, from examples, from pairs, from stories.

A *drawer* is called with a generator and gives ``(inputs, targets)``, as `course_lib.training.fit` asks for it. All
that it draws follows from the generator, from its first draw on, so that a run that goes on after a break can draw its
batches again.
"""

from collections.abc import Callable, Collection, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.tokenizers import Vocabulary

IGNORED = -100  # a target that counts for nothing: `cross_entropy` leaves it out

Inputs = tuple[Tensor, Tensor, Tensor]
"""ids, mask and segments, each (texts, longest): what every model of `bert.py` is called with."""


# --- windows of a long text ----------------------------------------------------------------------------------------


def windows(ids: Tensor, batch: int, length: int) -> Callable[[torch.Generator], tuple[Tensor, Tensor]]:
    """Draws pieces of a long text, (batch, length); the targets are the same pieces one token later."""
    if len(ids) <= length:
        raise ValueError(f"The text has {len(ids)} tokens; windows of {length} need at least {length + 1}.")

    def draw(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(ids) - length, (batch, 1), generator=generator)
        pieces = ids[starts + torch.arange(length + 1)]
        return pieces[:, :-1], pieces[:, 1:]

    return draw


def consecutive_windows(ids: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """A long text cut into windows, one after the other, and the same windows one token later: (windows, length)."""
    windows = (len(ids) - 1) // length
    if windows < 1:
        raise ValueError(f"The text has {len(ids)} tokens; a window of {length} needs at least {length + 1}.")
    return ids[: windows * length].view(windows, length), ids[1 : windows * length + 1].view(windows, length)


# --- examples ---------------------------------------------------------------------------------------------------------


def with_replacement(inputs: tuple[Tensor, ...], targets: Tensor, rows: Tensor, batch: int) -> Callable:
    """Draws examples from the chosen ``rows`` (a mask) of a data set; one may come again at once."""
    chosen = rows.nonzero()[:, 0]
    if not len(chosen):
        raise ValueError("There is no example to draw from: the mask chooses no row.")

    def draw(generator: torch.Generator) -> tuple[tuple[Tensor, ...], Tensor]:
        drawn = chosen[torch.randint(len(chosen), (batch,), generator=generator)]
        return tuple(x[drawn] for x in inputs), targets[drawn]

    return draw


def pad_rows(rows: Sequence[Tensor]) -> Inputs:
    """Rows of ids, (length) each, filled up at the end with 0; all of the first segment."""
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True)
    mask = torch.arange(ids.shape[1]) < torch.tensor([[len(row)] for row in rows])
    return ids, mask, torch.zeros_like(ids)


class Examples:
    """Texts and their targets: one each, (texts); one a token, (texts, longest); or first and last, (texts, 2)."""

    def __init__(self, inputs: Inputs, targets: Tensor):
        if not len(inputs[0]) == len(targets) > 0:
            raise ValueError(f"Expected a target for each text; got {len(inputs[0])} texts, {len(targets)} targets.")
        self.inputs, self.targets = inputs, targets
        self.lengths = inputs[1].sum(dim=1)

    def __len__(self) -> int:
        return len(self.targets)

    def rows(self, rows: Tensor) -> tuple[Inputs, Tensor]:
        """The inputs and targets of some texts, cut at the longest of these."""
        longest, targets = int(self.lengths[rows].max()), self.targets[rows]
        by_token = targets.dim() == 2 and targets.shape[1] == self.inputs[0].shape[1]
        return tuple(x[rows, :longest] for x in self.inputs), targets[:, :longest] if by_token else targets

    def some(self, rows: Tensor) -> "Examples":
        """Some of the texts."""
        return Examples(tuple(x[rows] for x in self.inputs), self.targets[rows])

    def batches(self, size: int) -> Callable:
        """Draws batches for `training.fit`."""
        draw = by_epoch(self.lengths, size)
        return lambda generator: self.rows(draw(generator))


def by_epoch(lengths: Tensor, size: int) -> Callable[[torch.Generator], Tensor]:
    """Draws rows of about equal length, (size): every text once before any comes again, but for a rest.

    Sixteen batches' rows are drawn at random, sorted by length and cut; then the batches are shuffled. With another
    generator, that is, in another run, a new epoch begins.
    """
    if len(lengths) < size:
        raise ValueError(f"Batches of {size} need at least as many texts; there are {len(lengths)}.")
    waiting: list[Tensor] = []
    of_run = None

    def draw(generator: torch.Generator) -> Tensor:
        nonlocal of_run
        if generator is not of_run:
            waiting.clear()
            of_run = generator
        if not waiting:
            order = torch.randperm(len(lengths), generator=generator)[: len(lengths) // size * size]
            parts = [part[lengths[part].argsort()] for part in order.split(16 * size)]
            rows = torch.cat(parts).view(-1, size)
            waiting.extend(rows[torch.randperm(len(rows), generator=generator)])
        return waiting.pop()

    return draw


def stack_inputs(upper: Inputs, lower: Inputs) -> Inputs:
    """Two batches as one, the shorter texts filled up: an encoder reads them in one go."""
    longest = max(upper[0].shape[1], lower[0].shape[1])
    return tuple(
        torch.cat([F.pad(part, (0, longest - part.shape[1])) for part in parts])
        for parts in zip(upper, lower, strict=True)
    )


def pair_batches(firsts: Examples, seconds: Examples, size: int) -> Callable:
    """Draws pairs of texts that are read each on its own: all firsts, then all seconds; and the pairs' targets."""
    draw_rows = by_epoch(torch.maximum(firsts.lengths, seconds.lengths), size)

    def draw(generator: torch.Generator) -> tuple[Inputs, Tensor]:
        rows = draw_rows(generator)
        (first, targets), (second, _) = firsts.rows(rows), seconds.rows(rows)
        return stack_inputs(first, second), targets

    return draw


# --- pairs of sentences: to translate, or to read as one --------------------------------------------------------------


START, END = "<s>", "</s>"  # where a target begins and ends


class Pairs:
    """Sentence pairs as numbers: what a `Translator` reads, is told, and should say next.

    ``source`` (pairs, longest) and ``lengths``; the target twice: ``before`` begins with START, ``after`` ends with END
    and is −100 beyond. Sentences are lists of tokens; ``like`` takes over the vocabularies of other pairs.
    """

    def __init__(self, sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], like: "Pairs | None" = None):
        self.sources, self.targets = list(sources), list(targets)
        self.source_words = like.source_words if like else Vocabulary(word for words in sources for word in words)
        self.target_words = like.target_words if like else Vocabulary({START, END}.union(*targets))
        self.source, self.lengths = self.source_words.encode_all(self.sources)
        target, lengths = self.target_words.encode_all([START, *words, END] for words in self.targets)
        self.before, self.after = target[:, :-1], target[:, 1:].clone()
        self.after[torch.arange(self.after.shape[1]) >= lengths[:, None] - 1] = IGNORED

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def inputs(self) -> tuple[Tensor, Tensor, Tensor]:
        """What the model is called with."""
        return self.source, self.lengths, self.before

    def batches(self, size: int) -> Callable:
        """Draws pairs whose sources are about as long: less to fill up. Each length comes as often as the others."""
        shortest, longest = int(self.lengths.min()), int(self.lengths.max())
        groups = [((self.lengths - n) // 2 == 0).nonzero()[:, 0] for n in range(shortest, longest + 1, 2)]
        groups = [group for group in groups if len(group)]

        def draw(generator: torch.Generator) -> tuple[tuple[Tensor, ...], Tensor]:
            group = groups[torch.randint(len(groups), (), generator=generator)]
            rows = group[torch.randint(len(group), (size,), generator=generator)]
            n, m = self.lengths[rows].max(), (self.after[rows] != IGNORED).sum(dim=1).max()
            return (self.source[rows, :n], self.lengths[rows], self.before[rows, :m]), self.after[rows, :m]

        return draw


def pair_inputs(
    firsts: Sequence[Tensor], seconds: Sequence[Tensor], cls: int, sep: int, pad: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """Two sentences as one text, ``[CLS] first [SEP] second [SEP]``: ids, mask and segments, each (pairs, longest).

    firsts, seconds: the pieces of each pair's sentences, (length). Shorter texts are filled up with ``pad``, where the
    mask is False. Segments are 0 up to the first [SEP] and there, 1 after it, 0 again in what is filled up.
    """
    rows = [
        torch.cat([first.new_tensor([cls]), first, first.new_tensor([sep]), second, first.new_tensor([sep])])
        for first, second in zip(firsts, seconds, strict=True)
    ]
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
    places = torch.arange(ids.shape[1], device=ids.device)
    mask = places < torch.tensor([[len(row)] for row in rows], device=ids.device)
    after = places >= torch.tensor([[len(first) + 2] for first in firsts], device=ids.device)
    return ids, mask, (after & mask).long()


# --- blanks -----------------------------------------------------------------------------------------------------------


def mask_tokens(
    ids: Tensor, generator: torch.Generator, mask_id: int, vocabulary: int, special: Collection[int] = ()
) -> tuple[Tensor, Tensor]:
    """The cloze test: choose 15 % of the tokens; the model must tell what they were. ids (…) → inputs (…), targets (…).

    Of the chosen, 80 % become ``mask_id``, 10 % a random word, and 10 % stay as they are: so the model must make
    something of every word, not only of blanks. Targets are −100 at all others. Special tokens are neither
    chosen nor put in.
    """
    never = {mask_id, *special}
    if not 0 <= min(never) <= max(never) < vocabulary:
        raise ValueError(f"Expected special tokens from 0 to {vocabulary - 1}; got {sorted(never)}.")
    ordinary = torch.ones(vocabulary, dtype=torch.bool)
    ordinary[list(never)] = False
    words = ordinary.nonzero()[:, 0]
    # All is drawn where the generator is, so that one seed gives the same on every device.
    place = {"generator": generator, "device": generator.device}
    chance, fate = torch.rand(2, *ids.shape, **place).to(ids.device)
    random_words = words[torch.randint(len(words), ids.shape, **place).cpu()].to(ids)
    chosen = ordinary.to(ids.device)[ids] & (chance < 0.15)
    inputs = torch.where(chosen & (fate < 0.8), mask_id, ids)
    inputs = torch.where(chosen & (fate >= 0.9), random_words, inputs)
    return inputs, ids.masked_fill(~chosen, IGNORED)


# --- stories ----------------------------------------------------------------------------------------------------------


def sentences(story: str) -> list[list[str]]:
    """The words of each sentence: ``"joe went home. joe slept"`` → [[joe, went, home], [joe, slept]]."""
    return [sentence.split() for sentence in story.split(".") if sentence.strip()]


def encode_stories(
    stories: Sequence[str], questions: Sequence[str], vocabulary: Vocabulary, facts: int, longest: int
) -> tuple[Tensor, Tensor]:
    """What a `MemoryNetwork` reads: word numbers from 1 on, (stories, facts, longest) and (stories, longest).

    Of a story with more than ``facts`` sentences the last ones are kept.
    """
    told, asked = (torch.zeros(len(stories), *shape, dtype=torch.long) for shape in ((facts, longest), (longest,)))
    for i, (story, question) in enumerate(zip(stories, questions, strict=True)):
        for j, words in enumerate(sentences(story)[-facts:]):
            told[i, j, : len(words)] = vocabulary.encode(words) + 1
        words = question.split()
        asked[i, : len(words)] = vocabulary.encode(words) + 1
    return told, asked
