"""Lesson 05: a head set by hand, a control for a table, an encoder with other positions, tasks that ask for places."""

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor, nn

from course_lib.data.batches import IGNORED
from course_lib.data.tasks import SYMBOLS
from course_lib.lab.budgets import Budget
from course_lib.models.attention import MultiHeadAttention
from course_lib.models.bert import Bert
from course_lib.models.positions import shift_matrix

BUDGETS = {
    "order_steps": Budget("steps of each training on the order question", cpu=200, gpu=500, smoke=3),
    "look_steps": Budget("steps of each training of a look back", cpu=300, gpu=600, smoke=3),
    "runs": Budget("trainings from other random numbers, for each kind of position", cpu=2, gpu=5, smoke=1),
    "tests": Budget("sequences on which a network is tested", cpu=60, gpu=500, smoke=8),
}


def look_back_head(symbols: int, d: int, back: int, sharpness: float) -> tuple[Tensor, Tensor, Tensor]:
    r"""$W_Q$, $W_K$ (d, symbols + d) and $W_V$ (symbols, symbols + d) of a head that names the symbol ``back`` before.

    A token is its symbol as a one-hot vector, then its row of the sinusoidal table. The query of place p is
    ``sharpness`` times row p − back of the table, the key of place s is its row s, and values are the symbols.
    """
    nothing = torch.zeros(d, symbols)
    W_Q = torch.cat([nothing, sharpness * shift_matrix(-back, d)], dim=1)
    W_K = torch.cat([nothing, torch.eye(d)], dim=1)
    W_V = torch.cat([torch.eye(symbols), torch.zeros(symbols, d)], dim=1)
    return W_Q, W_K, W_V


def with_random_phases(table: Tensor, generator: torch.Generator) -> Tensor:
    """Each column keeps its spectrum, the strengths of all its waves; each wave is shifted by a random phase.

    table (length, d) → (length, d), with mean 0
    """
    waves = torch.fft.rfft(table - table.mean(dim=0), dim=0)  # (length // 2 + 1, d), complex
    phases = 2 * math.pi * torch.rand(waves.shape, generator=generator).to(table)
    phases[0] = 0  # the mean, and in an even length the fastest wave, are real
    if len(table) % 2 == 0:
        phases[-1] = 0
    return torch.fft.irfft(waves * torch.polar(torch.ones_like(phases), phases), n=len(table), dim=0)


def hand_returns(distance: Tensor, back: int, period: float, within: float) -> Tensor:
    """Does a hand stand within an angle (in radians) of where it stands at distance ``back``? Shaped as ``distance``.

    It goes once round in ``period`` places.
    """
    turns = (distance - back) / period
    return 2 * math.pi * (turns - turns.round()).abs() < within


@contextlib.contextmanager
def with_positions(encoder: Bert, rows: Tensor) -> Iterator[None]:
    """Inside the ``with`` block the encoder's position table holds these rows, (longest, d)."""
    table = encoder.places.weight
    kept = table.detach().clone()
    with torch.no_grad():
        table.copy_(rows)
    try:
        yield
    finally:
        with torch.no_grad():
            table.copy_(kept)


def rows_dealt_out(tokens: int, generator: torch.Generator, longest: int = 512) -> Tensor:
    """Which row of the table each place gets, (longest): those of the words in random order."""
    rows = torch.arange(longest)
    rows[1 : tokens - 1] = 1 + torch.randperm(tokens - 2, generator=generator)
    return rows


def row_before(rows: Tensor, tokens: int) -> Tensor:
    """For each word, the place of the token that has the row before its own: (tokens - 2)."""
    place_of_row = rows.argsort()
    return place_of_row[rows[1 : tokens - 1] - 1]


def look_back(generator: torch.Generator, batch: int, length: int, distances: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Random symbols, (batch, length). Targets: the symbols at each of these distances before a place; −100 if none.

    → symbols (batch, length), targets (batch, length, distances)
    """
    if not all(0 <= distance < length for distance in distances):
        raise ValueError(f"Expected distances within 0 … {length - 1}; got {list(distances)}.")
    symbols = torch.randint(SYMBOLS, (batch, length), generator=generator)
    targets = torch.full((batch, length, len(distances)), IGNORED)
    for i, distance in enumerate(distances):
        targets[:, distance:, i] = symbols[:, : length - distance]
    return symbols, targets


def weight_by_distance(attention_weights: Tensor, places: range) -> Tensor:
    """The weight that each head gives to the key at each distance, in the mean over queries at these places.

    attention_weights (heads, length, length) → (heads, first place + 1): distance 0, 1, … back from the query
    """
    longest = places[0] + 1
    rows = [attention_weights[:, place, : place + 1].flip(-1)[:, :longest] for place in places]
    return torch.stack(rows).mean(dim=0)


def stopped_hand(q: Tensor, k: Tensor, hand: int, longest: int, at: int, base: float = 10_000.0) -> Tensor:
    r"""What stopping one rotary hand changes in the scores: beyond ``longest`` places it stands as at distance ``at``.

    At a distance whose angle is α the hand gives along · cos α + across · sin α to the score, before the division.
    q, k (…, length, d) before they are turned; the hand is the pair (hand, hand + d/2) → (…, length, length)
    """
    d = q.shape[-1]
    other = hand + d // 2
    distance = torch.arange(q.shape[-2], device=q.device)[:, None] - torch.arange(k.shape[-2], device=q.device)
    angle = base ** (-2 * hand / d) * distance
    stopped = torch.where(distance > longest, at * base ** (-2 * hand / d), angle)
    q_a, q_b = q[..., hand, None], q[..., other, None]  # (…, length, 1)
    k_a, k_b = k[..., None, :, hand], k[..., None, :, other]  # (…, 1, length)
    along, across = q_a * k_a + q_b * k_b, q_a * k_b - q_b * k_a
    return (along * (stopped.cos() - angle.cos()) + across * (stopped.sin() - angle.sin())) / math.sqrt(d)


@contextlib.contextmanager
def with_stopped_hands(model: nn.Module, hands: Iterable[int], longest: int, at: int) -> Iterator[None]:
    """Inside the ``with`` block these hands of every head stand, beyond ``longest`` places, as at distance ``at``."""
    layers = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
    kept = [layer.alibi for layer in layers]

    def stop(layer: MultiHeadAttention, inputs: tuple) -> None:  # the change is added to the scores, as a bias is
        q, k, _ = layer._project(inputs[0], None)
        change = sum((stopped_hand(q, k, hand, longest, at) for hand in hands), torch.zeros(()))
        layer.alibi = lambda *_: change.expand(*q.shape[:2], q.shape[2], k.shape[2])

    hooks = [layer.register_forward_pre_hook(stop) for layer in layers]
    try:
        yield
    finally:
        for layer, hook, before in zip(layers, hooks, kept, strict=True):
            hook.remove()
            layer.alibi = before
