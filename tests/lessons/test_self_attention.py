"""What lesson 03 alone uses: weights set by hand, a gradient by hand, ways through layers, an interval."""

import pytest
import torch
from torch.nn import functional as F

from course_lib import viz
from course_lib.lessons.self_attention import (
    attention_gradients,
    draw_by_width,
    draw_head,
    draw_matrix,
    draw_prices,
    draw_senses,
    draw_trainings,
    interval_by_group,
    nearest_is_right,
    operations_beside_slide,
    partner_weights,
    prices_of_layers,
    reach,
)
from course_lib.models.attention import attention, causal_mask


@pytest.mark.parametrize("colours", [2, 3, 6])
def test_each_shoe_finds_its_partner_wherever_it_stands(colours):
    left, right = (torch.cat([torch.eye(colours), torch.eye(2)[[side] * colours]], dim=1) for side in (0, 1))
    order = torch.randperm(2 * colours, generator=torch.Generator().manual_seed(0))
    row = torch.cat([left, right])[order]
    W_Q, W_K = partner_weights(colours, margin=6.0)
    _, weights = attention(row @ W_Q.T, row @ W_K.T, row)
    assert torch.equal(order[weights.argmax(dim=-1)] % colours, order % colours)
    assert not (weights.argmax(dim=-1) == torch.arange(2 * colours)).any()
    assert weights.amax(dim=-1).min() > 0.95


def test_gradients_are_those_of_autograd():
    generator = torch.Generator().manual_seed(1)
    q, k, v, grad = (torch.randn(2, n, d, generator=generator) for n, d in ((3, 5), (4, 5), (4, 6), (3, 6)))
    for x in (q, k, v):
        x.requires_grad_()
    F.scaled_dot_product_attention(q, k, v).backward(grad)
    for ours, x in zip(attention_gradients(q, k, v, grad), (q, k, v), strict=True):
        assert torch.allclose(ours, x.grad, atol=1e-5)


def test_a_word_that_is_hidden_comes_back_in_the_second_layer():
    not_next = ~torch.ones(5, 5, dtype=torch.bool).tril(1).triu(1)
    assert torch.equal(reach([not_next]), not_next)
    assert reach([not_next, not_next]).all()
    assert torch.equal(reach([causal_mask(5, 5)] * 3), causal_mask(5, 5))


def test_the_interval_draws_whole_groups():
    groups = torch.arange(60) % 12
    assert interval_by_group(torch.ones(60), groups) == (1.0, 1.0)
    low, high = interval_by_group((groups < 6).float(), groups)  # twelve items, not sixty
    assert low == pytest.approx(0.25, abs=0.03)
    assert high == pytest.approx(0.75, abs=0.03)


def test_nearest_is_right():
    vectors, names = torch.tensor([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [0.1, 1.0]]), torch.arange(4)
    assert nearest_is_right(vectors, torch.tensor([0, 0, 1, 1]), names).tolist() == [1, 1, 1, 1]
    assert nearest_is_right(vectors, torch.tensor([0, 1, 0, 1]), names).tolist() == [0, 0, 0, 0]
    assert nearest_is_right(torch.ones(4, 2), torch.tensor([0, 0, 1, 1]), names).tolist() == pytest.approx([1 / 3] * 4)
    same_name = torch.tensor([0, 0, 1, 1])  # the nearest of the same name does not count
    assert nearest_is_right(vectors, torch.tensor([0, 0, 1, 1]), same_name).tolist() == [0, 0, 0, 0]


def test_parameters_are_not_kept():
    megabytes = {name: price[2] for name, price in prices_of_layers(8, 16).items()}
    assert megabytes["ConvNet"] == pytest.approx(8 * 16 * 4 / 1e6)  # its input alone
    assert megabytes["attention"] == pytest.approx((4 * 8 * 16 + 8 * 8) * 4 / 1e6)  # input, q, k, v and the weights


def test_operations_are_those_of_the_formulas():
    rows = operations_beside_slide(10)
    assert rows["RNN"][0] == f"{4 * 100 * 10**2:.1e}"
    assert rows["attention"][2] == f"{6 * 1000 * 10**2 + 4 * 1000**2 * 10:.1e}"


def test_the_drawings_show_every_line():
    fig, axes = viz.figure(columns=3, rows=2)
    draw_by_width(axes[0, 0], {"a": [0.1, 0.2], "b": [0.3, 0.4]}, [4, 8], y="weight", level=0.1)
    assert len(axes[0, 0].lines) == 3
    draw_trainings(axes[0, 1], "d = 8", [0.1, 1.0], {"scale": torch.rand(2, 5)}, even=0.2)
    assert len(axes[0, 1].lines) == 3
    assert len(axes[0, 1].collections) == 1  # the band
    draw_matrix(axes[0, 2], "weights", torch.eye(2), ["a", "b"], ["c", "d"])
    assert [label.get_text() for label in axes[0, 2].get_xticklabels()] == ["c", "d"]
    fig_of_senses, ax = viz.figure()
    draw_senses(ax, {"broke": [torch.ones(4)] * 7}, {"chance": 0.2})
    assert len(ax.lines) == 2
    viz.show(fig_of_senses, alt="A line.")
    draw_prices(axes[1], {4: prices_of_layers(4, 8), 8: prices_of_layers(8, 8)})
    assert [len(ax.lines) for ax in axes[1]] == [3, 4, 4]
    viz.show(fig, alt="Lines.")


def test_every_tensor_of_a_head_is_drawn():
    _, axes = viz.figure(rows=3, columns=4)
    X, W, made = torch.ones(4, 4), [torch.ones(2, 4)] * 3, [torch.ones(4, 2)] * 3
    draw_head(axes, X, W, made, torch.ones(4, 4) / 4, torch.ones(4, 2), ["walk", "by", "river", "bank"], list("mwcp"))
    assert [len(ax.images) for ax in axes.flat] == [1] * 4 + [0] + [1] * 7
