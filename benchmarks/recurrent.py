"""The experiments of lesson 01 that take too long for it: longer trainings, other learning rates, more beginnings.

    python benchmarks/recurrent.py copiers rates letters starts clipping

trains and writes its rows of ``benchmarks/recurrent.csv``, which the lesson draws and quotes. About a quarter
of an hour on one core.
"""

import math
from functools import partial
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib import data, runtime
from course_lib.data import tasks
from course_lib.data.batches import windows
from course_lib.lessons import rnn_limits as lesson
from course_lib.measure.metrics import accuracy
from course_lib.measure.stored import Rows, run_and_store
from course_lib.models import recurrent
from course_lib.tokenizers import Vocabulary
from course_lib.training import clip_gradients, cosine, fit


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
    for steps, seed in product((200, 800), (100, 101)):
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


def starts() -> Rows:
    """Right answers of an Elman network and of an LSTM as PyTorch starts them, 20 fillers back: ten trainings each."""
    for seed in range(100, 110):
        for name, network in (("Elman", nn.RNN), ("LSTM", nn.LSTM)):
            runtime.seed(seed)
            reader = recurrent.Classifier(network(32, 32, batch_first=True), 32, tasks.VOCABULARY, tasks.SYMBOLS)
            batches = partial(tasks.recall, batch=32, distance=20)
            fit(reader, batches, steps=800, lr=5e-3, schedule=cosine, seed=seed, progress=False)
            test = tasks.recall(runtime.seed(seed + 1000), 500, 20)
            yield name, 800, seed, "accuracy", accuracy(reader, *test).mean().item()


def clipping() -> Rows:
    """Final loss and mean step of plain gradient descent, four ways, as in the lesson: 18 random beginnings."""
    for seed in range(100, 118):
        losses, norms = _descend(seed, 0.3, 1.0)
        lowered = lesson.lowered_rate(0.3, norms, 1.0)
        runs = {
            "free": (0.3, *_descend(seed, 0.3)),
            "clipped": (0.3, losses, norms.clamp(max=1.0)),
            "lowered rate": (lowered, *_descend(seed, lowered)),
            "rate 0.05": (0.05, *_descend(seed, 0.05)),
        }
        for name, (rate, losses, norms) in runs.items():
            yield name, 300, seed, "final loss", losses[-50:].mean().item()
            yield name, 300, seed, "mean step", rate * norms.mean().item()


def _descend(seed: int, rate: float, max_norm: float = math.inf) -> tuple[Tensor, Tensor]:
    """The lesson's plain gradient descent: losses, and norms of the gradients before clipping."""
    generator = runtime.seed(seed)
    reader = recurrent.Classifier(nn.RNN(32, 32, batch_first=True), 32, tasks.VOCABULARY, tasks.SYMBOLS)
    reader.network.weight_hh_l0.data = lesson.scaled_to_keep(torch.randn(32, 32), 1.5, 1)
    optimiser = torch.optim.SGD(reader.parameters(), lr=rate)
    losses, norms = [], []
    for _ in range(300):
        inputs, targets = tasks.recall(generator, 32, distance=10)
        loss = F.cross_entropy(reader(inputs), targets)
        optimiser.zero_grad()
        loss.backward()
        norms.append(clip_gradients(reader.parameters(), max_norm))
        optimiser.step()
        losses.append(loss.item())
    return torch.tensor(losses), torch.tensor(norms)


if __name__ == "__main__":
    run_and_store("recurrent", {run.__name__: run for run in (copiers, rates, letters, starts, clipping)})
