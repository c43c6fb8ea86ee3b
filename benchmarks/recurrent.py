"""The experiments of lesson 01 that take too long for it: longer trainings, other learning rates, more beginnings.

    python benchmarks/recurrent.py copiers rates starts reach wide clipping

trains and writes its rows of ``benchmarks/recurrent.csv``, which the lesson draws and quotes.
"""

import math
from functools import partial
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib import runtime
from course_lib.data import tasks
from course_lib.lessons import rnn_limits as lesson
from course_lib.measure.metrics import accuracy
from course_lib.measure.stored import Rows, run_and_store
from course_lib.models import recurrent
from course_lib.training import clip_gradients, cosine, fit

NETWORKS = {
    "Elman": lambda: nn.RNN(32, 32, batch_first=True),
    "LSTM": lambda: nn.LSTM(32, 32, batch_first=True),
    "GRU": lambda: nn.GRU(32, 32, batch_first=True),
    "Elman, random U, ρ = 1": lambda: _with_radius_1(nn.RNN(32, 32, batch_first=True)),
    "Elman, U orthogonal": lambda: lesson.orthogonal(nn.RNN(32, 32, batch_first=True)),
    "LSTM, gate opened": lambda: lesson.opened(nn.LSTM(32, 32, batch_first=True)),
    "GRU, gate opened": lambda: lesson.opened(nn.GRU(32, 32, batch_first=True)),
}


def _with_radius_1(network: nn.RNN) -> nn.RNN:
    """An Elman network whose U, as PyTorch draws it, is scaled to the spectral radius of an orthogonal one."""
    network.weight_hh_l0.data = lesson.scaled_to_keep(network.weight_hh_l0.data, 1.0, 1)
    return network


def copiers() -> Rows:
    """Bits that pass through a state, by number of symbols: five trainings as in the lesson, two four times as long."""
    trainings = [*product([400], range(5)), *product([1600], (100, 101))]
    for (steps, seed), size in product(trainings, (64, 4)):
        runtime.seed(seed)
        copier = lesson.Copier(size)
        batches = partial(tasks.copy, batch=64, lengths=range(1, 21))
        fit(copier, batches, steps=steps, lr=1e-2, schedule=cosine, seed=seed, progress=False)
        for length in (2, 4, 6, 8, 12, 16, 20):
            symbols, _ = tasks.copy(runtime.seed(seed + 1000), 500, range(length, length + 1))
            yield f"{size} + {size}", steps, seed, f"{length} symbols", lesson.bits_that_pass(copier, symbols)


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


def reach() -> Rows:
    """Right answers after 200 batches as in the lesson, 60 and 120 fillers back, from other first weights."""
    for distance, name, seed in product((60, 120), NETWORKS, range(100, 110)):
        if distance == 120 and seed > 104:
            continue
        runtime.seed(seed)
        reader = recurrent.Classifier(NETWORKS[name](), 32, tasks.VOCABULARY, tasks.SYMBOLS)
        batches = partial(tasks.recall, batch=32, distance=distance)
        fit(reader, batches, steps=200, lr=5e-3, schedule=cosine, seed=seed, progress=False)
        test = tasks.recall(runtime.seed(seed + 1000), 500, distance)
        yield name, 200, seed, f"{distance} fillers", accuracy(reader, *test).mean().item()


def wide() -> Rows:
    """Right answers as in `starts` and `reach`, from word vectors of standard deviation 1 instead of 0.1."""
    tried = [(20, 800, "Elman"), (20, 800, "LSTM"), (60, 200, "Elman, U orthogonal"), (60, 200, "GRU, gate opened")]
    for (distance, steps, name), seed in product(tried, range(100, 110)):
        runtime.seed(seed)
        reader = recurrent.Classifier(NETWORKS[name](), 32, tasks.VOCABULARY, tasks.SYMBOLS)
        nn.init.normal_(reader.embed.weight)
        batches = partial(tasks.recall, batch=32, distance=distance)
        fit(reader, batches, steps=steps, lr=5e-3, schedule=cosine, seed=seed, progress=False)
        test = tasks.recall(runtime.seed(seed + 1000), 500, distance)
        yield name, steps, seed, f"{distance} fillers", accuracy(reader, *test).mean().item()


def clipping() -> Rows:
    """Final loss and mean step of plain gradient descent, three ways, as in the lesson: 28 random beginnings.

    Computed to the last digit as the lesson computes it: some runs end elsewhere at a rate that differs in the eighth.
    """
    for seed in (*range(10), *range(100, 118)):
        clipped = _descend(seed, 0.3, 1.0)
        runs = {"free": _descend(seed, 0.3), "clipped": clipped, "matched rate": _matched(seed, clipped)}
        for name, (losses, _, moved) in runs.items():
            yield name, 300, seed, "final loss", losses[-50:].mean().item()
            yield name, 300, seed, "mean step", moved.mean().item()


def _matched(seed: int, clipped: Tensor) -> Tensor:
    """Of four runs without clipping the one whose steps come closest to the mean length of the clipped run's."""
    wanted = clipped[2].mean()
    rate = float(wanted / clipped[1].mean())
    tries = []
    for _ in range(4):
        tries.append(_descend(seed, rate))
        rate *= float(wanted / tries[-1][2].mean())
    return min(tries, key=lambda run: (run[2].mean() / wanted).log().abs())


def _descend(seed: int, rate: float, max_norm: float = math.inf) -> Tensor:
    """The lesson's plain gradient descent: losses, norms of the gradients before clipping, lengths of the steps."""
    generator = runtime.seed(seed)
    reader = recurrent.Classifier(nn.RNN(32, 32, batch_first=True), 32, tasks.VOCABULARY, tasks.SYMBOLS)
    reader.network.weight_hh_l0.data = lesson.scaled_to_keep(torch.randn(32, 32), 1.5, 1)
    optimiser = torch.optim.SGD(reader.parameters(), lr=rate)
    losses, norms, moved = [], [], []
    for _ in range(300):
        inputs, targets = tasks.recall(generator, 32, distance=10)
        loss = F.cross_entropy(reader(inputs), targets)
        optimiser.zero_grad()
        loss.backward()
        norms.append(float(clip_gradients(reader.parameters(), max_norm)))
        moved.append(rate * min(norms[-1], max_norm))
        optimiser.step()
        losses.append(loss.item())
    return torch.tensor([losses, norms, moved])


if __name__ == "__main__":
    run_and_store("recurrent", {run.__name__: run for run in (copiers, rates, starts, reach, wide, clipping)})
