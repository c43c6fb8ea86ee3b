"""A small run with all that its resumption could lose."""

import random

import torch
from torch import nn

from course_lib.training import cosine, fit

VOCABULARY = 12


class Net(nn.Module):
    """Dropout, a buffer that training changes, a tied weight, and Python's random: all that a resume could lose."""

    def __init__(self, width=8, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.embed = nn.Embedding(VOCABULARY, width)
        self.mix = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(width, VOCABULARY)
        self.out.weight = self.embed.weight

    def forward(self, x):
        h = self.drop(self.mix(self.embed(x)).tanh())
        if self.training and random.random() < 0.5:
            h = h * 0.9
        return self.out(self.norm(h.transpose(1, 2)).transpose(1, 2))


def batches(generator):
    x = torch.randint(VOCABULARY, (4, 6), generator=generator)
    return x, (x + 1) % VOCABULARY


def train(model, *, steps=12, lr=1e-2, **options):
    return fit(model, batches, steps=steps, lr=lr, progress=False, **options)


def weights(model):
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


class Killed(BaseException):
    """Stands for the end of the process where a real one is not needed."""


def interrupt_after(count):
    """Batches that stop the run when batch ``count`` + 1 is drawn, counted from the start of the run."""
    calls = -2  # two draws for the checksum of the first batch

    def stopping(generator):
        nonlocal calls
        calls += 1
        if calls > count:
            raise Killed
        return batches(generator)

    return stopping


OPTIONS = {"schedule": cosine, "weight_decay": 0.1, "clip": 0.5, "checkpoint_every": 4, "evaluate_every": 3}


def evaluate(model):
    return model(torch.arange(6).view(1, 6)).mean()
