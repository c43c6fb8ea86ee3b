"""Real weights: ``weights("minilm")`` → a folder with ``config.json``, the tokenizer's files and ``model.safetensors``.

Any ``from_pretrained(folder)`` of `transformers` reads it. Only safetensors: no pickle, and no code from elsewhere.
"""

from pathlib import Path

from course_lib import sources
from course_lib.catalogue import WEIGHTS


def weights(name: str) -> Path:
    """The folder of the weights ``name`` (``"minilm"``, ``"smollm2"``); fetched first if need be (see `sources.py`)."""
    if name not in WEIGHTS:
        raise ValueError(f"There are no weights {name!r}; there are {', '.join(WEIGHTS)}.")
    return sources.obtain(WEIGHTS[name])
