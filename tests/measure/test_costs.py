"""What training costs, beside the lecture's table."""

import pytest
import torch

from course_lib import measure
from course_lib.measure import costs
from course_lib.models.attention import SelfAttention


def test_costs_of_the_table():
    assert costs.energy(1515.43, 84) == pytest.approx(201, rel=0.01)
    assert costs.carbon(costs.energy(1515.43, 84)) == pytest.approx(192, rel=0.01)
    assert costs.training_operations(110e6, 1e9) == 6.6e17
    assert costs.utilisation(3600e12, 2, 0.5, 2e12) == pytest.approx(0.5)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (7, 3, 5), (16, 8, 8)])
def test_operations_are_those_that_pytorch_counts(sizes):
    length, d, d_head = sizes
    head, x = SelfAttention(d, d_head), torch.randn(length, d)
    projections = 3 * 2 * length * d * d_head  # queries, keys, values
    pairs = 2 * 2 * length**2 * d_head  # scores; weights times values
    assert measure.operations(lambda: head(x)) == projections + pairs
    assert measure.operations(lambda: x + x) == 0
