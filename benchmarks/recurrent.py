"""The experiments of lesson 01 that take too long for it: longer trainings, other learning rates.

    python benchmarks/recurrent.py copiers rates letters

trains and writes its rows of ``benchmarks/recurrent.csv``, which the lesson draws and quotes. About ten minutes on
one core.
"""

import math
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from course_lib import data, runtime
from course_lib.data import tasks
from course_lib.data.batches import windows
from course_lib.lessons import rnn_limits as lesson
from course_lib.measure.metrics import accuracy
from course_lib.measure.stored import Rows, run_and_store
from course_lib.models import recurrent
from course_lib.tokenizers import Vocabulary
from course_lib.training import cosine, fit


def copiers() -> Rows:
    """Bits that pass, by number of symbols, and of 20 symbols by place: as long as in the lesson, and four times."""
    for steps in (400, 1600):
        for seed in (100, 101):
            for name, size in (("64 + 64", 64), ("4 + 4", 4)):
                runtime.seed(seed)
                copier = lesson.Copier(size)
                batches = partial(tasks.copy, batch=64, lengths=range(1, 21))
                fit(copier, batches, steps=steps, lr=1e-2, schedule=cosine, seed=seed, progress=False)
                for length in (2, 4, 6, 8, 12, 16, 20):
                    symbols, _ = tasks.copy(runtime.seed(seed + 1000), 500, range(length, length + 1))
                    by_place = lesson.bits_by_place(copier, symbols)
                    yield name, steps, seed, f"{length} symbols", by_place.sum().item()
                for place, bits in enumerate(by_place.tolist(), start=1):
                    yield name, steps, seed, f"place {place} of 20", bits


def rates() -> Rows:
    """Right answers of an LSTM as PyTorch starts it, 20 fillers back: six learning rates, and four times as long."""
    for lr, steps in (*((lr, 800) for lr in (1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 4e-2)), (5e-3, 3200)):
        for seed in (100, 101):
            runtime.seed(seed)
            reader = recurrent.Classifier(nn.LSTM(32, 32, batch_first=True), 32, tasks.VOCABULARY, tasks.SYMBOLS)
            batches = partial(tasks.recall, batch=32, distance=20)
            fit(reader, batches, steps=steps, lr=lr, schedule=cosine, seed=seed, progress=False)
            test = tasks.recall(runtime.seed(seed + 1000), 500, 20)
            yield "LSTM", steps, seed, f"rate {lr:g}", accuracy(reader, *test).mean().item()


@torch.no_grad()
def letters() -> Rows:
    """Perplexity by letters shown, of an LSTM and of tables of what it has read: as in the lesson, and longer."""
    text = {split: data.load("tiny_shakespeare", split, quiet=True)["text"][0] for split in ("train", "validation")}
    vocabulary = Vocabulary(text["train"])
    valid_ids = vocabulary.encode(text["validation"])
    pieces = windows(vocabulary.encode(text["train"]), 32, 64)
    for steps in (200, 800):
        seed = 100
        places = torch.randint(64, len(valid_ids), (1000,), generator=runtime.seed(seed + 1000))
        generator = runtime.seed(seed)
        read = torch.cat([pieces(generator)[0].flatten() for _ in range(steps)])
        for n in (2, 3, 4, 5):
            p = lesson.witten_bell(read, valid_ids, n, len(vocabulary))
            yield "tables", steps, seed, str(n - 1), p[places - n + 1].log().mean().neg().exp().item()
        runtime.seed(seed)
        model = lesson.LetterModel(nn.LSTM, len(vocabulary))
        with torch.enable_grad():
            fit(model, pieces, steps=steps, lr=8e-3, schedule=cosine, seed=seed, progress=False)
        for context in (1, 2, 4, 8, 16, 32):
            shown = valid_ids[places[:, None] + torch.arange(-context, 0)]  # (1000, context)
            loss = F.cross_entropy(model(shown)[:, -1], valid_ids[places])
            yield "LSTM", steps, seed, str(context), math.exp(loss.item())


if __name__ == "__main__":
    run_and_store("recurrent", {run.__name__: run for run in (copiers, rates, letters)})
