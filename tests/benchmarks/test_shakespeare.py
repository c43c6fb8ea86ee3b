"""The parts of benchmarks/shakespeare.py that can be checked without training."""

import math

import pytest
import shakespeare
import torch
from torch import nn


class Bigram(nn.Module):
    """Scores that depend on the last character alone, so that windows make no difference."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(7, 7)

    def forward(self, ids):
        return self.table(ids)


@pytest.mark.parametrize("length", [21, 24, 25, 26])
def test_every_character_but_the_first_counts(length):
    ids = torch.randint(7, (length,), generator=torch.Generator().manual_seed(1))
    model = Bigram()
    log_p = model(ids[:-1]).log_softmax(dim=-1).gather(1, ids[1:, None])
    assert math.isclose(shakespeare.loss_over(model, ids, 8), -log_p.mean().item(), rel_tol=1e-5)


def test_no_piece_is_drawn_twice_before_all_were():
    ids, generator = torch.arange(101), torch.Generator().manual_seed(0)
    draw = shakespeare.each_once(ids, 3, 10)
    seen = torch.cat([draw(generator)[0].flatten() for _ in range(3)])
    assert len(seen.unique()) == len(seen) == 90
    x, y = draw(generator)  # cut anew
    assert x.shape == (3, 10)
    assert torch.equal(x + 1, y)


def test_the_split_is_that_of_nanogpt():
    train, held_out = shakespeare.characters()
    total = len(train) + len(held_out)
    assert (total, len(train)) == (1_115_394, int(0.9 * 1_115_394))
    assert train.max() < shakespeare.SHAPE.vocabulary


def test_seconds_of_evaluations_do_not_count():
    now = 0.0

    class Slow(Bigram):
        def forward(self, ids):
            nonlocal now
            now += 100.0
            return super().forward(ids)

    watch, model = shakespeare.Watch(torch.arange(7).repeat(3), 4, lambda: now), Slow()
    for _ in range(3):
        now += 5.0  # of training
        watch(model)
    assert watch.seconds == [5.0, 10.0, 15.0]
