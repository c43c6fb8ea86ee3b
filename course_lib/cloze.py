"""Pretraining a small BERT on short sentences: blanks to fill, pairs to tell apart.

Sentences are rows of word numbers, (length) each, without [CLS] and [SEP]; the numbers of the special tokens are fixed.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib import data
from course_lib.bert import IGNORED
from course_lib.fine_tuning import Examples, Inputs, by_epoch, filled, stacked
from course_lib.muon import Muon, hidden_matrices
from course_lib.translation import words

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, CLS, SEP, MASK = range(len(SPECIAL))


def texts(split: str) -> list[list[str]]:
    """Every English text of Tatoeba once, as words and marks in small letters."""
    return [words(text) for text in sorted(set(data.load("tatoeba_en_es", split, quiet=True)["en"][:]))]


def most_frequent(texts: Sequence[Sequence[str]], count: int) -> list[str]:
    """A vocabulary: the special tokens, then the most frequent words of the texts (lists of words)."""
    counts = Counter(word for text in texts for word in text)
    return [*SPECIAL, *(word for word, _ in counts.most_common(count))]


def numbers(texts: Sequence[Sequence[str]], vocabulary: list[str], lengths: range) -> list[Tensor]:
    """The texts of these lengths whose words are all known, as numbers."""
    number = {word: i for i, word in enumerate(vocabulary)}
    chosen = [text for text in texts if len(text) in lengths and number.keys() >= set(text)]
    return [torch.tensor([number[word] for word in text]) for text in chosen]


def framed(rows: Sequence[Tensor]) -> Examples:
    """[CLS] sentence [SEP] of each, as examples without a target."""
    framed = [F.pad(F.pad(row, (1, 0), value=CLS), (0, 1), value=SEP) for row in rows]
    return Examples(filled(framed), torch.zeros(len(rows)))


def halves(rows: Sequence[Tensor], generator: torch.Generator, pair_inputs: Callable) -> tuple[Inputs, Tensor]:
    """Each sentence cut in the middle, as a pair; half of the pairs get the second half of another sentence.

    Targets: 0 where the second half follows, 1 where it is from elsewhere.
    """
    elsewhere = (torch.rand(len(rows), generator=generator) < 0.5).long()
    further = torch.randint(1, len(rows), (len(rows),), generator=generator)  # never the sentence itself
    order = (torch.arange(len(rows)) + elsewhere * further) % len(rows)
    firsts, seconds = [row[: len(row) // 2] for row in rows], [row[len(row) // 2 :] for row in rows]
    return pair_inputs(firsts, [seconds[i] for i in order.tolist()], CLS, SEP, PAD), elsewhere


def batches(
    rows: Sequence[Tensor], vocabulary: int, size: int, mask_tokens: Callable, pair_inputs: Callable
) -> Callable:
    """Draws ``size`` whole sentences and half as many pairs in one batch, all with blanks.

    Targets: the hidden words, (texts, longest); and for each text whether its second half is from elsewhere, (texts):
    −100 for a whole sentence, since nothing is asked there.
    """
    whole = framed(rows)
    draw_whole, draw_halved = by_epoch(whole.lengths, size), by_epoch(whole.lengths, max(2, size // 2))

    def draw(generator: torch.Generator) -> tuple[Inputs, tuple[Tensor, Tensor]]:
        sentences = whole.rows(draw_whole(generator))[0]
        pairs, elsewhere = halves([rows[i] for i in draw_halved(generator)], generator, pair_inputs)
        ids, mask, segments = stacked(sentences, pairs)
        inputs, blanks = mask_tokens(ids, generator, MASK, vocabulary, range(MASK))
        return (inputs, mask, segments), (blanks, F.pad(elsewhere, (size, 0), value=IGNORED))

    return draw


def muon(model: nn.Module) -> Callable:
    """An optimizer for `training.fit`: Muon for the blocks' matrices, AdamW for the rest. It needs far fewer steps."""
    return partial(Muon, hidden=hidden_matrices(model.encoder.stack), ratio=4.0)


def chosen_only(model: nn.Module, hidden: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """What the layer for words reads at the chosen tokens, (chosen, d), and their words: 15 % of the work."""
    head, chosen = model.words, targets != -100
    return head.norm(head.activation(head.dense(hidden[chosen]))), targets[chosen]


@torch.no_grad()
def fill(model: nn.Module, unseen: Examples, places: Tensor) -> tuple[Tensor, Tensor]:
    """One blank in each sentence, at ``places``: is its word the first choice? What is its loss? Both (sentences)."""
    (ids, mask, _), rows = unseen.inputs, torch.arange(len(unseen))
    hidden, device = ids[rows, places], next(model.parameters()).device
    seen = ids.index_put((rows, places), torch.tensor(MASK))
    states = model.encoder(seen.to(device), mask.to(device))[rows, places]
    scores = model.words(states, model.encoder.embed.weight).cpu()
    return (scores.argmax(dim=-1) == hidden).float(), F.cross_entropy(scores, hidden, reduction="none")


@torch.no_grad()
def guesses(model: nn.Module, vocabulary: list[str], sentence: str, count: int = 4) -> list[tuple[str, float]]:
    """The likeliest words for the first ``_`` of a sentence, with their probabilities."""
    row = [MASK if word == "_" else vocabulary.index(word) for word in sentence.split()]
    ids = torch.tensor([[CLS, *row, SEP]], device=next(model.parameters()).device)
    scores = model.words(model.encoder(ids), model.encoder.embed.weight)[0, 1 + row.index(MASK)]
    best = scores.softmax(dim=-1).topk(count)
    return [(vocabulary[i], p) for i, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)]
