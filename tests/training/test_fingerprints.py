"""The same code and numbers give the same fingerprint, in this process and in another."""

import os
import subprocess
import sys
from functools import lru_cache, partial, wraps

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.lab import Lab
from course_lib.models.gpt import GPT, GPTShape
from course_lib.training.fingerprints import fingerprint

SCRIPT = """
import torch
from torch import nn
from course_lib.models.gpt import GPT, GPTShape
from course_lib.training.fingerprints import fingerprint

NAMES = {"a", "b", "c", "d"}

class Own(nn.Module):
    def forward(self, x):
        return x[..., 1:3] * len(NAMES) if x.dim() in {2, 3, 4} else [y for y in x if y in ("a", "b")]

@torch.no_grad()
def loss(model, x, *, own=Own()):
    return own(x) + len(NAMES) + again(x)

def again(x):
    torch.manual_seed(0)  # torch puts another function there when it is first called
    return loss(None, x) if x is None else 0

model = GPT(GPTShape(d=8, layers=1, heads=2, vocabulary=5, longest=4))
for _ in range(2):
    print(fingerprint([loss, Own(), model, {"x": torch.arange(5)}]))
    again(0)
    torch.optim.AdamW(model.parameters()).step()
"""


def test_the_same_in_every_process(tmp_path):
    found = set()
    for number, seed in enumerate(("0", "1", "2")):
        script = tmp_path / f"script_{number}.py"
        script.write_text("\n" * number + SCRIPT, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, script],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found |= set(done.stdout.split())
    assert len(found) == 1


VALUES = [
    None, True, 1, 1.0, 2, "1", b"1", (1,), [1], (1, 2), {1}, {1, 2}, {1: 2}, {2: 1}, slice(1, 2), slice(1, 3),
    torch.float32, torch.ones(1), torch.zeros(1), torch.ones(2), torch.ones(1, dtype=torch.float64),
    torch.tensor(True), torch.tensor(False),
    np.ones(1), np.zeros(1), np.array(["a"], dtype=object), np.array(["b"], dtype=object),
    nn.Dropout(0.1), nn.Dropout(0.2), nn.Linear(2, 3), nn.Linear(3, 2),
    nn.Sequential(nn.Tanh()), nn.Sequential(nn.ReLU()),
    partial(max, 1), partial(max, 2), partial(min, 1), torch.add, torch.mul, int, float,
    GPTShape(d=8, layers=1, vocabulary=5), GPTShape(d=8, layers=1, vocabulary=5, dropout=0.1),
]  # fmt: skip


def test_what_differs_has_another_fingerprint():
    found = [fingerprint(value) for value in VALUES]
    assert len(set(found)) == len(VALUES)
    assert found == [fingerprint(value) for value in VALUES]


def test_weights_count_by_their_shape():
    model = nn.Linear(2, 2)
    before = fingerprint(model)
    nn.init.zeros_(model.weight)
    model.eval()
    assert fingerprint(model) == before
    model.bias.requires_grad_(False)
    assert fingerprint(model) != before


def decorated(factor):
    def wrapper(function):
        @wraps(function)
        def inner(x):
            return factor * function(x)

        return inner

    return wrapper


@pytest.mark.parametrize("wrap", [torch.no_grad(), torch.inference_mode(), lru_cache, decorated(2), staticmethod])
def test_code_is_seen_through_a_decorator(wrap):
    assert fingerprint(wrap(lambda x: x + 1)) == fingerprint(wrap(lambda x: x + 1))
    assert fingerprint(wrap(lambda x: x + 1)) != fingerprint(wrap(lambda x: x + 2))


def test_a_piece_given_to_a_model_is_seen():
    shape = GPTShape(d=8, layers=1, heads=2, vocabulary=5, longest=4)

    def model(factor):
        return GPT(shape, combine=lambda x, layer, norm, pre_norm=True: factor * x)

    assert fingerprint(model(1)) == fingerprint(model(1))
    assert fingerprint(model(1)) != fingerprint(model(2))


def test_of_other_objects_only_what_is_named():
    lab = Lab("01_rnn_limits")
    before = fingerprint(lambda: lab.seed)
    lab.states["1.1"] = "passed"
    assert fingerprint(lambda: lab.seed) == before
    lab.seed = 3
    assert fingerprint(lambda: lab.seed) != before
