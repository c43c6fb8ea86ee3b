r"""Probes: how much can be read off a network's hidden vectors by a linear map?

A probe is trained on the vectors of a network that stays as it is. If a *linear* probe can name a property of tokens it
has not seen, the property lies open in the vectors; if not, it may be gone, or hidden where no linear map finds it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.data.batches import pad_rows
from course_lib.models.bert import Bert
from course_lib.models.inside import recorded
from course_lib.tokenizers.wordpiece import WordPiece

LabelledWord = tuple[Sequence[str], int, int]  # the words of a sentence, the place of the one asked about, its label


def linear_probe(hidden: Tensor, labels: Tensor, classes: int, penalty: float = 1.0) -> Tensor:
    r"""The weights $W = (X^\top X + \lambda I)^{-1} X^\top Y$ of a ridge regression onto the classes: (d + 1, classes).

    hidden (n, d), labels (n) from 0 to classes − 1. $X$ is ``hidden`` with a column of ones at its end (the bias), $Y$
    has a 1 at each row's class, and $\lambda$, the ``penalty``, keeps the weights small.
    """
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)  # (n, d + 1)
    Y = F.one_hot(labels, classes).to(X.dtype)  # (n, classes)
    ridge = penalty * torch.eye(X.shape[1], dtype=X.dtype, device=X.device)
    return torch.linalg.solve(X.T @ X + ridge, X.T @ Y)


def probe_accuracy(weights: Tensor, hidden: Tensor, labels: Tensor) -> float:
    """The share of rows whose class the probe names. weights (d + 1, classes), hidden (n, d), labels (n)."""
    weights = weights.to(hidden)  # a probe may have been computed in double
    scores = hidden @ weights[:-1] + weights[-1]  # (n, classes)
    return (scores.argmax(dim=1) == labels).float().mean().item()


def told_apart(x: Tensor, sense: Tensor) -> float:
    """The share of vectors that lie nearer (by the cosine) to the mean of their own sense than to that of the other.

    x (n, d), sense (n), 0 or 1. Each one is left out of the means with which it is compared.
    """
    right = 0
    for i in range(len(x)):
        others = torch.arange(len(x)) != i
        means = torch.stack([x[others & (sense == s)].mean(dim=0) for s in (0, 1)])
        right += int(F.cosine_similarity(x[i], means, dim=-1).argmax() == sense[i])
    return right / len(x)


@torch.no_grad()
def vectors_at_words(encoder: Bert, tokenizer: WordPiece, examples: Sequence[LabelledWord], size: int = 50) -> Tensor:
    """Every layer's vector of the word that is asked about, at its first piece: (layers + 1, examples, d).

    A sentence is read once, however many of its words are asked about.
    """
    device, found = next(encoder.parameters()).device, {}
    sentences = sorted(dict.fromkeys(tuple(words) for words, _, _ in examples), key=len)
    for start in range(0, len(sentences), size):
        part = sentences[start : start + size]
        ids, places = zip(*(tokenizer.encode_words(words) for words in part), strict=True)
        layers = torch.stack(recorded(encoder, "blocks", *(x.to(device) for x in pad_rows(ids)))).cpu()
        for row, words in enumerate(part):
            found[words] = layers[:, row, places[row]]  # (layers + 1, words, d)
    return torch.stack([found[tuple(words)][:, place] for words, place, _ in examples], dim=1)


def probe_layers(
    encoder: Bert,
    tokenizer: WordPiece,
    known: Sequence[LabelledWord],
    new: Sequence[LabelledWord],
    penalty: float = 10.0,
) -> list[float]:
    """At each layer, the share of new examples that a linear probe names after it was fitted to the known ones."""
    labels, new_labels = (torch.tensor([label for _, _, label in part]) for part in (known, new))
    layers = (vectors_at_words(encoder, tokenizer, part) for part in (known, new))
    classes = int(labels.max()) + 1
    return [
        probe_accuracy(linear_probe(h.double(), labels, classes, penalty), n.double(), new_labels)
        for h, n in zip(*layers, strict=True)
    ]


def centre_of_gain(shares: Sequence[float]) -> float:
    """The mean layer of what is gained from layer to layer, weighted by the gain (Tenney's centre of gravity)."""
    gains = torch.tensor(shares).diff().clamp(min=0)
    return ((gains * torch.arange(1, len(gains) + 1)).sum() / gains.sum()).item()
