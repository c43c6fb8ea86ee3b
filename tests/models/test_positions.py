"""Positions: shifts, rotations, distances."""

import pytest
import torch

from course_lib.models.positions import Rotary, alibi, rotate, shift_matrix, sinusoidal


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
