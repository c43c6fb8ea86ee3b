"""Schedules: (step, steps) → the factor of the learning rate; step counts from 0."""

import math


def constant(step: int, steps: int) -> float:
    """1 at every step."""
    return 1.0


def linear_warmup(step: int, steps: int, warmup: float = 0.1) -> float:
    """Rises in a straight line to 1 over the first ``warmup`` (a fraction) of the steps, then stays there."""
    return min(1.0, (step + 1) / max(1, round(warmup * steps)))


def linear_decay(step: int, steps: int, warmup: float = 0.1) -> float:
    """Warm-up, then a straight line down to 0 (BERT)."""
    return linear_warmup(step, steps, warmup) * (1 - _decayed(step, steps, warmup))


def cosine(step: int, steps: int, warmup: float = 0.1, final: float = 0.1) -> float:
    """Warm-up, then half a cosine wave from 1 down to ``final`` (GPT-3)."""
    wave = (1 + math.cos(math.pi * _decayed(step, steps, warmup))) / 2
    return linear_warmup(step, steps, warmup) * (final + (1 - final) * wave)


def inverse_sqrt(step: int, steps: int, warmup: float = 0.1) -> float:
    """min(s/w, √(w/s)) at step s with w warm-up steps: the schedule of the 2017 Transformer, scaled to a peak of 1.

    The paper's own d^−½ · min(s^−½, s·w^−1.5) is this factor times the peak ``lr`` = (d·w)^−½.
    """
    w = max(1, round(warmup * steps))
    return min((step + 1) / w, math.sqrt(w / (step + 1)))


def _decayed(step: int, steps: int, warmup: float) -> float:
    """How much of the way from the end of the warm-up to the end of training is behind us: from 0 to 1, then 1."""
    w = max(1, round(warmup * steps))
    return min(1.0, max(0, step + 1 - w) / max(1, steps + 1 - w))
