"""Instruments on networks whose truth is known."""

import itertools
import math

import pytest
import torch
from torch import nn

from course_lib import measure
from course_lib.models.attention import attention


def test_influence_of_a_known_map():
    A = torch.tensor([[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [0.0, 0.0, 4.0]])
    assert torch.allclose(measure.influence(lambda x: (A @ x[0])[None], torch.randn(3, 1)), A)


def test_serial_depth_counts_what_must_wait():
    x = torch.randn(4, requires_grad=True)
    chain = x
    depths = []
    for _ in range(20):
        chain = chain.sin()
        depths.append(measure.serial_depth(chain))
    assert [b - a for a, b in itertools.pairwise(depths)] == [1] * 19
    wide = sum(x.sin() for _ in range(1)) * 1
    assert measure.serial_depth(torch.stack([x.sin() for _ in range(50)])) <= measure.serial_depth(wide)


def test_seconds_counts_runs_and_leaves_the_first_out():
    calls = []
    assert measure.seconds(lambda: calls.append(1), repeats=4) >= 0
    assert len(calls) == 5


def test_bytes_kept_counts_each_tensor_once():
    x = torch.ones(10, requires_grad=True)
    assert measure.bytes_kept(lambda: x + 1) == 0
    assert measure.bytes_kept(lambda: x * x) == 40
    assert measure.bytes_kept(lambda: x * x, besides=[x]) == 0
    qkv = torch.randn(3, 8, 2, requires_grad=True)
    assert measure.bytes_kept(lambda: attention(*qkv)) == 3 * 8 * 2 * 4 + 8 * 8 * 4
    with torch.no_grad():
        assert measure.bytes_kept(lambda: x * x) == 0


def test_training_memory_is_a_gradient_and_two_means_for_each_trained_number():
    model, x = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)), torch.ones(1, 4)
    model[1].requires_grad_(False)
    before = [p.clone() for p in model.parameters()]
    assert measure.training_memory(model, lambda: model(x).sum()) == (15, 15 * (4 + 2 * 4))
    assert all(map(torch.equal, model.parameters(), before))
    assert not any(p.grad is not None for p in model.parameters())


def test_the_price_of_a_layer():
    layer, x = nn.Linear(4, 4), torch.ones(2, 4)
    operations, milliseconds, megabytes = measure.price(lambda: layer(x))
    assert operations == 2 * 2 * 4 * 4
    assert 0 < milliseconds < math.inf
    assert megabytes == pytest.approx(32e-6)
