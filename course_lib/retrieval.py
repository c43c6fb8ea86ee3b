"""Texts as vectors, and the search among them: written out, and by an index of a library that does it at scale."""

import math
import os
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.wordpiece import basic_words

if TYPE_CHECKING:  # imported late: only lesson 10 needs them
    from datasets import Dataset
    from faiss import Index


def cosine_search(queries: Tensor, documents: Tensor, k: int) -> tuple[Tensor, Tensor]:
    r"""The ``k`` documents nearest in direction, $\cos(q, d) = q^\top d \,/\, \lVert q \rVert \lVert d \rVert$.

    queries (n, d), documents (m, d) → cosines (n, k) and places among the documents (n, k), best first. Exact: every
    query is compared with every document. Of fewer than k documents, all.
    """
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T  # (n, m)
    best = cosines.topk(min(k, len(documents)), dim=-1)
    return best.values, best.indices


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
    # On macOS faiss and torch each bring an OpenMP of their own. The second one stops the process unless told not to;
    # with one thread the two never meet, and one thread is plenty here.
    if sys.platform == "darwin":
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
