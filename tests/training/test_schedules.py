"""The learning rate, from the first step to the last and after it."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from course_lib.training import (
    constant,
    cosine,
    inverse_sqrt,
    linear_decay,
    linear_warmup,
)

ROOT = Path(__file__).parents[2]


def test_schedules_at_their_corners():
    assert [constant(step, 5) for step in range(5)] == [1.0] * 5
    assert [linear_warmup(step, 10, 0.4) for step in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    assert [linear_decay(step, 8, 0.5) for step in range(8)] == pytest.approx([0.25, 0.5, 0.75, 1, 0.8, 0.6, 0.4, 0.2])
    assert cosine(0, 100, 0.1) == pytest.approx(0.1)
    assert cosine(9, 100, 0.1) == pytest.approx(1.0)
    assert cosine(54, 99, 0.1, final=0.2) == pytest.approx(0.6)  # half-way down
    assert cosine(99, 100, 0.1, final=0.0) == pytest.approx(0, abs=1e-3)
    assert inverse_sqrt(9, 100, 0.1) == 1
    assert inverse_sqrt(39, 100, 0.1) == pytest.approx(0.5)


def test_inverse_sqrt_is_the_paper_s():
    width, warmup, steps = 512, 40, 400
    for step in range(steps):
        s = step + 1
        paper = width**-0.5 * min(s**-0.5, s * warmup**-1.5)
        assert (width * warmup) ** -0.5 * inverse_sqrt(step, steps, warmup / steps) == pytest.approx(paper)


@pytest.mark.parametrize("schedule", [constant, linear_warmup, linear_decay, cosine, inverse_sqrt])
@pytest.mark.parametrize("steps", [1, 2, 3, 10, 997])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 1.0])
def test_schedules_rise_then_never_rise_again(schedule, steps, warmup):
    schedule = schedule if schedule is constant else partial(schedule, warmup=warmup)
    factors = np.array([schedule(step, steps) for step in range(steps)])
    peak = factors.argmax()
    assert (factors > 0).all()
    assert factors.max() == pytest.approx(1)
    assert (np.diff(factors[: peak + 1]) >= -1e-12).all()
    assert (np.diff(factors[peak:]) <= 1e-12).all()


@pytest.mark.parametrize(
    ("schedule", "end"), [(linear_decay, 0.0), (cosine, 0.1), (linear_warmup, 1.0), (constant, 1.0)]
)
@pytest.mark.parametrize("steps", [1, 10, 997])
def test_after_the_last_step_they_stay_at_their_end(schedule, end, steps):
    assert [schedule(step, steps) for step in (steps, steps + 1, 2 * steps, 50 * steps)] == pytest.approx([end] * 4)
