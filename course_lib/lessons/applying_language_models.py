"""Lesson 10: rivals of a sentence encoder (static vectors, tf-idf), an index of a library that searches at scale, and
labelled corpora as instructions with answers, as FLAN was made (Wei et al. 2022): an instruction above each text."""

import math
import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib import data
from course_lib.decoding.prompting import chat
from course_lib.tokenizers.wordpiece import basic_words

if TYPE_CHECKING:  # faiss is imported late
    from datasets import Dataset
    from faiss import Index


def tf_idf(texts: Sequence[str], documents: Sequence[str]) -> Tensor:
    r"""Word counts in which rare words weigh more, $\text{count}(w) \cdot \log(N / n_w)$: (texts, words).

    $n_w$ of the $N$ documents have the word $w$; words that none of them has are left out.
    """
    has = Counter(word for document in documents for word in set(basic_words(document, True)))
    column = {word: place for place, word in enumerate(has)}
    table = torch.zeros(len(texts), len(has))
    for row, text in zip(table, texts, strict=True):
        for word in basic_words(text, True):
            if word in column:
                row[column[word]] += math.log(len(documents) / has[word])
    return table


class StaticVectors:
    """One fixed vector for each word, such as GloVe's: ``StaticVectors(data.load("glove_50d"))(texts)``."""

    def __init__(self, words: "Dataset"):
        self.table = torch.from_numpy(
            words.with_format("arrow")[:]["vector"].combine_chunks().flatten().to_numpy().copy()
        )
        self.number = {word: place for place, word in enumerate(words["word"][:])}
        self.table = self.table.view(len(self.number), -1)

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """The mean of the vectors of each text's words, 0 if none is known: (texts, d)."""
        known = [[self.number[word] for word in basic_words(text, True) if word in self.number] for text in texts]
        return torch.stack([self.table[places].sum(dim=0) / max(1, len(places)) for places in known])


def index(documents: Tensor, neighbours: int | None = None) -> "Index":
    """A faiss index of the documents (m, d) for the inner product: the cosine, since they are made 1 long.

    Without ``neighbours`` it is exact. With it, it is a graph (HNSW) in which each document knows so many others: a
    search walks from one to the next and looks at few of them, and may miss some.
    """
    # On macOS and Windows faiss and torch each bring an OpenMP of their own. The second one stops the process unless
    # told not to; with one thread the two never meet, and one thread is plenty here.
    if sys.platform != "linux":
        os.environ.setdefault("KMP_DUPLICATE_LIB_OK", "TRUE")
    import faiss

    threads = torch.get_num_threads()
    faiss.omp_set_num_threads(1)
    vectors = F.normalize(documents.detach().float().cpu(), dim=-1).numpy()
    if neighbours is None:
        made = faiss.IndexFlatIP(vectors.shape[1])
    else:
        made = faiss.IndexHNSWFlat(vectors.shape[1], neighbours, faiss.METRIC_INNER_PRODUCT)
    made.add(vectors)
    torch.set_num_threads(threads)  # on Linux both share one OpenMP, and torch would be left with one thread, too
    return made


@dataclass(frozen=True)
class Task:
    """An instruction that offers its answers; ``answers`` says which label of the corpus becomes which word."""

    corpus: str
    columns: tuple[str, str]  # of the text and of the label
    instruction: str
    answers: dict[str, str]


TASKS: dict[str, Task] = {
    "question": Task(
        "trec",
        ("text", "label"),
        "Does this question ask for a description, thing, person, place or number?",
        {"DESC": "description", "ENTY": "thing", "HUM": "person", "LOC": "place", "NUM": "number"},
    ),
    "review": Task(
        "rotten_tomatoes",
        ("text", "label"),
        "Is this review good or bad?",
        {"negative": "bad", "positive": "good"},
    ),
    "name": Task(
        "names",
        ("name", "language"),
        "Is this name Japanese, Russian, Italian or Chinese?",
        {language: language for language in ("Japanese", "Russian", "Italian", "Chinese")},
    ),
}


def answered_texts(task: str, split: str, each: int, seed: int, longest: int = 12) -> list[tuple[str, str]]:
    """``each`` texts of at most ``longest`` words for every answer of the task, with that answer, in random order."""
    about = TASKS[task]
    rows = data.load(about.corpus, split, quiet=True)
    text, label = about.columns
    names, dice, found = rows.features[label].names, random.Random(seed), []
    columns = rows[:]
    for known, answer in about.answers.items():
        pairs = zip(columns[text], columns[label], strict=True)
        fitting = [t for t, number in pairs if names[number] == known and len(t.split()) <= longest]
        if len(fitting) < each:
            raise ValueError(f"{about.corpus} has {len(fitting)} short texts for {answer!r}; {each} were asked for.")
        found += [(t, answer) for t in dice.sample(fitting, each)]
    dice.shuffle(found)
    return found


def examples(task: str, split: str, each: int, seed: int) -> list[tuple[str, str]]:
    """The same as a chat: the task's instruction above each text."""
    pairs = answered_texts(task, split, each, seed)
    return [(chat(f"{TASKS[task].instruction}\n{text}"), answer) for text, answer in pairs]
