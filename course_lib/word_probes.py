"""What each layer of an encoder knows of a word: examples with gold labels, and probes at every layer.

An example is (words of a sentence, the place of the word that is asked about, its label).
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise, permutations

import torch
from torch import Tensor

from course_lib.bert import Bert
from course_lib.fine_tuning import filled
from course_lib.probes import linear_probe, probe_accuracy
from course_lib.wordpiece import WordPiece

Example = tuple[Sequence[str], int, int]

NOUN_OR_VERB = (
    "answer", "call", "change", "cook", "cry", "cut", "dance", "dream", "drink", "drive", "fight", "guess", "help",
    "hope", "joke", "kiss", "laugh", "lie", "look", "move", "name", "play", "promise", "rest", "ride", "run",
    "smell", "smile", "smoke", "study", "swim", "talk", "taste", "touch", "trip", "try", "visit", "vote", "walk",
    "wash", "wish",
)  # fmt: skip
DETERMINERS = {"a", "the", "my", "your", "his", "her"}
PEOPLE = (
    "doctor", "teacher", "king", "sailor", "singer", "painter", "woman", "man", "girl", "boy", "nurse", "farmer",
    "lawyer",
)  # fmt: skip
ACTIONS = ("followed", "watched", "helped", "visited")


def noun_or_verb(texts: Sequence[Sequence[str]], most: int) -> tuple[list[Example], list[Example]]:
    """Words that can be both, after *to* (1, a verb) or after *the* and the like (0, a noun), in real sentences.

    Each word is as often the one as the other, at most ``most`` times. Every third word is for the test only.
    """
    found: dict[str, tuple[list, list]] = {word: ([], []) for word in NOUN_OR_VERB}
    for words in texts:
        for place, (before, word) in enumerate(pairwise(words), start=1):
            if word in found and (before == "to" or before in DETERMINERS):
                verb = int(before == "to")
                found[word][verb].append((words, place, verb))
    parts: tuple[list, list] = ([], [])
    for i, (nouns, verbs) in enumerate(found.values()):
        count = min(len(nouns), len(verbs), most)
        parts[i % 3 == 0].extend([*nouns[:count], *verbs[:count]])
    return parts


def doers(people: Sequence[str], actions: Sequence[str]) -> list[Example]:
    """Active and passive sentences about two people; both nouns of each: 1 for the one who does it, 0 for the other.

    Neither the noun nor the voice alone tells; the place alone tells three of four, as in a passive it is another.
    """
    rows = []
    for one, other in permutations(people, 2):
        for action in actions:
            active, passive = ["the", one, action, "the", other], ["the", one, "was", action, "by", "the", other]
            rows += [(active, 1, 1), (active, 4, 0), (passive, 1, 0), (passive, 6, 1)]
    return rows


def kinds_of_names(rows: Iterable[dict]) -> list[Example]:
    """Every word of a name in rows with ``tokens`` and ``tags``: 0 person, 1 organisation, 2 place, 3 rest."""
    return [(row["tokens"], place, (tag - 1) // 2) for row in rows for place, tag in enumerate(row["tags"]) if tag]


@torch.no_grad()
def at_words(encoder: Bert, tokenizer: WordPiece, examples: Sequence[Example], size: int = 50) -> Tensor:
    """Every layer's vector of the word that is asked about, at its first piece: (layers + 1, examples, d).

    A sentence is read once, however many of its words are asked about.
    """
    device, found = next(encoder.parameters()).device, {}
    sentences = sorted(dict.fromkeys(tuple(words) for words, _, _ in examples), key=len)
    for start in range(0, len(sentences), size):
        part = sentences[start : start + size]
        ids, places = zip(*(tokenizer.encode_words(words) for words in part), strict=True)
        layers = torch.stack(encoder.layer_outputs(*(x.to(device) for x in filled(ids)))).cpu()
        for row, words in enumerate(part):
            found[words] = layers[:, row, places[row]]  # (layers + 1, words, d)
    return torch.stack([found[tuple(words)][:, place] for words, place, _ in examples], dim=1)


def by_layer(
    encoder: Bert, tokenizer: WordPiece, known: Sequence[Example], new: Sequence[Example], penalty: float = 10.0
) -> list[float]:
    """At each layer, the share of new examples that a linear probe names after it was fitted to the known ones."""
    labels, new_labels = (torch.tensor([label for _, _, label in part]) for part in (known, new))
    layers = (at_words(encoder, tokenizer, part) for part in (known, new))
    classes = int(labels.max()) + 1
    return [
        probe_accuracy(linear_probe(h.double(), labels, classes, penalty), n.double(), new_labels)
        for h, n in zip(*layers, strict=True)
    ]


def centre_of_gain(shares: Sequence[float]) -> float:
    """The mean layer of what is gained from layer to layer, weighted by the gain (Tenney's centre of gravity)."""
    gains = torch.tensor(shares).diff().clamp(min=0)
    return ((gains * torch.arange(1, len(gains) + 1)).sum() / gains.sum()).item()
