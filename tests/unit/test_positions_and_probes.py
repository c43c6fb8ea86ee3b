"""Positions, the tasks that ask for them, and probes, on cases whose truth is known."""

import pytest
import torch

from course_lib import tasks
from course_lib.positions import Rotary, alibi, rotate, shift_matrix, sinusoidal
from course_lib.probes import linear_probe, probe_accuracy


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("k", [1, 7, -3])
def test_the_shift_moves_every_position_by_k(k):
    table, p = sinusoidal(60, 12), torch.arange(10, 40)
    assert torch.allclose(table[p] @ shift_matrix(k, 12).T, table[p + k], atol=1e-4)


def test_shifts_add_up_and_turn_back():
    assert torch.allclose(shift_matrix(2, 8) @ shift_matrix(3, 8), shift_matrix(5, 8), atol=1e-5)
    assert torch.allclose(shift_matrix(4, 8).T, shift_matrix(-4, 8), atol=1e-6)


def test_rotary_turns_with_the_function_given():
    x = torch.randn(2, 3, 5, 8, generator=generator())
    calls = []

    def turn(x, cos, sin):
        calls.append(cos.shape)
        return rotate(x, cos, sin)

    assert torch.equal(Rotary(8, 16, turn=turn)(x, 4), Rotary(8, 16)(x, 4))
    assert calls == [(5, 4)]


def test_alibi_of_fewer_queries_is_its_last_rows():
    assert torch.equal(alibi(8, 2, 6), alibi(8, 6, 6)[:, -2:])


def test_first_has_two_symbols_and_asks_for_the_earlier():
    inputs, targets = tasks.first(generator(), 300, 9)
    assert (inputs[:, -1] == tasks.CUE).all()
    rows, places = (inputs < tasks.SYMBOLS).nonzero(as_tuple=True)
    assert rows.tolist() == [i for i in range(300) for _ in range(2)]
    assert torch.equal(inputs[range(300), places.view(300, 2)[:, 0]], targets[:, -1])
    assert (inputs[range(300), places.view(300, 2)[:, 1]] != targets[:, -1]).all()
    assert (targets[:, :-1] == -100).all()
    assert set(places.tolist()) == set(range(8))
    with pytest.raises(ValueError, match="length of 3 or more; got 2"):
        tasks.first(generator(), 1, 2)


def test_look_back_asks_for_what_stood_some_places_before():
    inputs, targets = tasks.look_back(generator(), 20, 7, 2)
    assert torch.equal(targets[:, 2:], inputs[:, :-2])
    assert (targets[:, :2] == -100).all()
    with pytest.raises(ValueError, match="distance within 0 … 6; got 7"):
        tasks.look_back(generator(), 1, 7, 7)


def test_reverse_turns_round():
    inputs, targets = tasks.reverse(generator(), 20, 7)
    assert torch.equal(targets[:, 0], inputs[:, -1])
    assert torch.equal(targets.flip(1), inputs)


def test_a_probe_finds_what_lies_open_and_nothing_else():
    g = generator()
    labels = torch.randint(5, (800,), generator=g)
    noise = torch.randn(800, 12, generator=g)
    open_ = noise + 6 * torch.nn.functional.one_hot(labels, 12)
    for hidden, least, most in ((open_, 0.95, 1), (noise, 0, 0.35)):
        weights = linear_probe(hidden[:600], labels[:600], 5)
        assert weights.shape == (13, 5)
        found = probe_accuracy(weights, hidden[600:], labels[600:])
        assert least <= found <= most
        assert probe_accuracy(weights.double(), hidden[600:], labels[600:]) == found


def test_a_probe_solves_the_ridge_equation():
    g = generator()
    hidden, labels = torch.randn(40, 6, generator=g).double(), torch.randint(3, (40,), generator=g)
    weights = linear_probe(hidden, labels, 3, penalty=0.5).requires_grad_()
    X = torch.cat([hidden, torch.ones(40, 1)], dim=1)
    loss = (X @ weights - torch.nn.functional.one_hot(labels, 3)).pow(2).sum() + 0.5 * weights.pow(2).sum()
    assert torch.autograd.grad(loss, weights)[0].abs().max() < 1e-9
