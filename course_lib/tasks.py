"""Batches: controlled tasks, made on the fly, in which the truth is known because we made it; and windows of a text.

Each draws ``(inputs, targets)`` from a generator, as `course_lib.training.fit` asks for it.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from course_lib.tokenizers import Vocabulary

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
    targets = torch.full_like(inputs, -100)
    targets[:, -1] = symbols[:, 0]
    return inputs, targets


def look_back(generator: torch.Generator, batch: int, length: int, distance: int) -> tuple[Tensor, Tensor]:
    """Random symbols, (batch, length). Target at each place: the symbol ``distance`` places before it; −100 if none."""
    if not 0 <= distance < length:
        raise ValueError(f"Expected a distance within 0 … {length - 1}; got {distance}.")
    inputs = torch.randint(SYMBOLS, (batch, length), generator=generator)
    targets = torch.full_like(inputs, -100)
    targets[:, distance:] = inputs[:, : length - distance]
    return inputs, targets


def reverse(generator: torch.Generator, batch: int, length: int) -> tuple[Tensor, Tensor]:
    """Random symbols, (batch, length). Target: the same, last one first."""
    inputs = torch.randint(SYMBOLS, (batch, length), generator=generator)
    return inputs, inputs.flip(1)


def two_relations(generator: torch.Generator, batch: int, guests: int = 8) -> tuple[Tensor, Tensor]:
    """A round table: a symbol at each of ``guests`` places, (batch, guests), ``guests`` even.

    Each place has two targets, (batch, guests, 2): the symbol of its neighbour (the place before; before the first
    comes the last) and the symbol of the place opposite.
    """
    if guests < 4 or guests % 2:
        raise ValueError(f"Expected an even number of guests, 4 or more; got {guests}.")
    symbols = torch.randint(SYMBOLS, (batch, guests), generator=generator)
    return symbols, torch.stack([symbols.roll(1, dims=1), symbols.roll(guests // 2, dims=1)], dim=-1)


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
        self.after[torch.arange(self.after.shape[1]) >= lengths[:, None] - 1] = -100

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
            n, m = self.lengths[rows].max(), (self.after[rows] != -100).sum(dim=1).max()
            return (self.source[rows, :n], self.lengths[rows], self.before[rows, :m]), self.after[rows, :m]

        return draw


# What *broke* means → four sentences with the word once in each; the first is S3's, the others are the course's.
BROKE = {
    "vase": (
        "The vase broke.",
        "My favourite cup fell and broke.",
        "The old window broke into pieces.",
        "The glass slipped from his hand and broke on the floor.",
    ),
    "news": (
        "The news broke.",
        "The scandal broke on Monday morning.",
        "Everyone was at dinner when the story broke.",
        "Word of the arrest broke late last night.",
    ),
    "record": (
        "Sandy broke the world record.",
        "She broke the national best time for the marathon.",
        "The young swimmer broke two Olympic records.",
        "Nobody ever broke his mark in the long jump.",
    ),
    "law": (
        "Sandy broke the law.",
        "He broke his promise and the rules.",
        "The company broke the treaty.",
        "They broke the speed limit on purpose.",
    ),
    "even": (
        "We broke even.",
        "After two years the company finally broke even.",
        "Our little shop broke even in March.",
        "With those sales the film just broke even.",
    ),
    "house": (
        "The burglar broke into the house.",
        "Thieves broke into the shop at night.",
        "Someone broke into my car yesterday.",
        "The gang broke into a bank.",
    ),
}
