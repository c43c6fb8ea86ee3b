"""What lesson 05 alone uses: a head set by hand, a control, positions taken out and put back, a task."""

import pytest
import torch
from torch.nn import functional as F

from course_lib.data.batches import IGNORED
from course_lib.lessons.positional_encoding import (
    hand_returns,
    look_back,
    look_back_head,
    row_before,
    rows_dealt_out,
    stopped_hand,
    weight_by_distance,
    with_positions,
    with_random_phases,
    with_stopped_hands,
)
from course_lib.models.attention import attention
from course_lib.models.bert import Bert, BertShape
from course_lib.models.positions import Rotary, sinusoidal
from course_lib.models.transformer import Shape, Stack


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("length", "back"), [(40, 3), (300, 3), (300, 17)])
def test_a_head_by_hand_names_the_symbol_some_places_before_at_any_length(length, back):
    symbols = torch.randint(8, (length,), generator=generator())
    x = torch.cat([F.one_hot(symbols, 8).float(), sinusoidal(length, 64)], dim=1)
    W_Q, W_K, W_V = look_back_head(8, 64, back, sharpness=100.0)
    output, weights = attention(x @ W_Q.T, x @ W_K.T, x @ W_V.T)
    assert torch.equal(output.argmax(dim=1)[back:], symbols[: length - back])
    assert weights.diagonal(-back).min() > 0.9


@pytest.mark.parametrize("length", [40, 41])
def test_random_phases_keep_the_spectrum_and_nothing_else(length):
    table = 3 + torch.randn(length, 2, generator=generator()).double()
    other = with_random_phases(table, generator(1))
    assert other.mean(dim=0).tolist() == pytest.approx([0, 0], abs=1e-9)
    waves = [torch.fft.rfft(rows - rows.mean(dim=0), dim=0) for rows in (table, other)]
    assert torch.allclose(*[wave.abs() for wave in waves], atol=1e-9)
    assert not torch.allclose(table - table.mean(dim=0), other, atol=0.1)
    between = [wave[:, 0] * wave[:, 1].conj() for wave in waves]
    assert not torch.allclose(*between, atol=0.1)


@pytest.mark.parametrize("at", [10, 3, 17])
def test_a_stopped_hand_stands_as_at_one_distance(at):
    q, k = torch.randn(2, 1, 1, 1, 8, generator=generator()).double().expand(2, 1, 1, 30, 8)  # alike at all places
    rotary = Rotary(8, 30)
    scores = rotary(q) @ rotary(k).transpose(-2, -1) / 8**0.5
    stopped = scores + sum(stopped_hand(q, k, hand, 10, at) for hand in range(4))
    for distance in range(30):
        wanted = scores[0, 0, at if distance > 10 else distance, 0]  # the query at this place, the key at 0
        assert stopped[0, 0].diagonal(-distance).tolist() == pytest.approx([wanted.item()] * (30 - distance), abs=1e-5)
    one = stopped_hand(q, k, 3, 10, at)[0, 0]
    assert one.tril(-11).abs().max() > 0
    assert (one.tril() - one.tril(-11)).abs().max() < 1e-9


def test_a_hand_is_stopped_inside_the_block_only():
    torch.manual_seed(0)
    model = Stack(Shape(d=16, layers=2, heads=2, causal=True), rotary=Rotary(8, 30))
    x = torch.randn(2, 30, 16, generator=generator())
    with torch.no_grad():
        before = model(x)
        with with_stopped_hands(model, [], 10, 10):
            assert torch.allclose(model(x), before, atol=1e-5)
        with with_stopped_hands(model, [0], 30, 5):
            assert torch.allclose(model(x), before, atol=1e-5)
        with with_stopped_hands(model, [0, 1], 10, 10):
            stopped = model(x)
        with pytest.raises(ZeroDivisionError), with_stopped_hands(model, [0, 1], 10, 10):
            1 / 0  # noqa: B018
        assert torch.equal(model(x), before)
    assert torch.allclose(stopped[:, :11], before[:, :11], atol=1e-5)
    assert not torch.allclose(stopped[:, 11:], before[:, 11:], atol=1e-4)


def test_a_hand_returns_after_whole_turns():
    distance = torch.arange(30)
    assert distance[hand_returns(distance, 2, 10.0, 0.1)].tolist() == [2, 12, 22]
    assert distance[hand_returns(distance, 2, 10.0, 0.7)].tolist() == [1, 2, 3, 11, 12, 13, 21, 22, 23]


def test_positions_come_back():
    shape = BertShape(d=8, layers=1, heads=2, vocabulary=11, longest=6)
    torch.manual_seed(0)
    encoder, ids = Bert(shape).eval(), torch.tensor([[3, 1, 4, 1, 5]])
    order = torch.tensor([4, 2, 0, 1, 3])
    with torch.no_grad():
        before = encoder(ids)
        table = encoder.places.weight.clone()
        alike = table.mean(dim=0).expand_as(table)
        with with_positions(encoder, alike):
            assert torch.allclose(encoder(ids[:, order]), encoder(ids)[:, order], atol=1e-5)
        with pytest.raises(ZeroDivisionError), with_positions(encoder, alike):
            1 / 0  # noqa: B018
        assert torch.equal(encoder(ids), before)
        moved = torch.cat([order, torch.tensor([5])])  # the row of each place
        with with_positions(encoder, table[moved]):
            assert torch.allclose(encoder(ids[:, order]), before[:, order], atol=1e-5)
        assert not torch.allclose(encoder(ids[:, order]), encoder(ids)[:, order], atol=1e-5)


def test_look_back_asks_for_what_stood_some_places_before():
    symbols, targets = look_back(generator(), 20, 7, (2, 5))
    for i, distance in enumerate((2, 5)):
        assert torch.equal(targets[:, distance:, i], symbols[:, :-distance])
        assert (targets[:, :distance, i] == IGNORED).all()
    with pytest.raises(ValueError, match=r"distances within 0 … 6; got \[2, 7\]"):
        look_back(generator(), 1, 7, (2, 7))


def test_rows_are_dealt_out_among_the_words():
    rows = rows_dealt_out(7, generator(), longest=9)
    assert sorted(rows.tolist()) == [*range(9)]
    assert rows[[0, 6, 7, 8]].tolist() == [0, 6, 7, 8]
    assert rows.tolist() != [*range(9)]
    before = row_before(rows, 7)
    assert torch.equal(rows[before], rows[1:6] - 1)
    assert row_before(torch.arange(9), 7).tolist() == [0, 1, 2, 3, 4]


def test_weight_by_distance_counts_back_from_the_query():
    weights = torch.zeros(2, 9, 9)
    weights[0].diagonal(-2)[:] = 1
    weights[1, 5, 1], weights[1, 6, 6] = 0.5, 0.5
    found = weight_by_distance(weights, range(5, 7))
    assert found.tolist() == [[0, 0, 1, 0, 0, 0], [0.25, 0, 0, 0, 0.25, 0]]
