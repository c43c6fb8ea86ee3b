"""What lesson 03 alone uses: weights set by hand, a gradient by hand, ways through layers, a sign test."""

import pytest
import torch
from torch.nn import functional as F

from course_lib import data, viz
from course_lib.lessons.self_attention import (
    OBJECTS,
    attention_gradients,
    depends,
    depths_of_layers,
    draw_control,
    draw_gradients,
    draw_head,
    draw_matrix,
    draw_prices,
    draw_reach,
    draw_senses,
    draw_steps,
    draw_trainings,
    nearest_is_right,
    operations_beside_slide,
    partner_weights,
    prices_of_layers,
    reach,
    sign_test,
    with_even_attention,
)
from course_lib.models.attention import attention, causal_mask
from course_lib.models.bert import Bert, BertShape


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


def test_autograd_says_what_depends_on_what():
    X = torch.randn(4, 2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(depends(lambda x: attention(x, x, x, causal_mask(4, 4))[0], X), causal_mask(4, 4).float())


def test_the_sign_test_lets_each_group_vote_once():
    lead = torch.tensor([1.0] * 9 + [0.0, 0.0, -1.0])
    assert sign_test(lead, torch.arange(12)) == (9, 1, pytest.approx(2 * 11 / 2**10))
    assert sign_test(lead, torch.tensor([0] * 9 + [1, 2, 3])) == (1, 1, 1.0)  # nine items, one vote
    assert sign_test(torch.tensor([1.0, -1.0, 1.0]), torch.tensor([0, 0, 1])) == (1, 0, 1.0)  # a group without a lead
    assert sign_test(torch.zeros(3), torch.arange(3)) == (0, 0, 1.0)


def test_nearest_is_right():
    vectors, names = torch.tensor([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [0.1, 1.0]]), torch.arange(4)
    assert nearest_is_right(vectors, torch.tensor([0, 0, 1, 1]), names).tolist() == [1, 1, 1, 1]
    assert nearest_is_right(vectors, torch.tensor([0, 1, 0, 1]), names).tolist() == [0, 0, 0, 0]
    assert nearest_is_right(torch.ones(4, 2), torch.tensor([0, 0, 1, 1]), names).tolist() == pytest.approx([1 / 3] * 4)
    same_name = torch.tensor([0, 0, 1, 1])  # the nearest of the same name does not count
    assert nearest_is_right(vectors, torch.tensor([0, 0, 1, 1]), same_name).tolist() == [0, 0, 0, 0]
    same_object = torch.tensor([0, 0, 1, 2])  # another name, and another object as well
    assert nearest_is_right(vectors, torch.tensor([0, 0, 1, 1]), names, same_object).tolist() == [0, 0, 1, 1]


def test_near_is_not_the_same_as_equally_near():
    """As [CLS] after the first layers: all cosines above 0.99999, and still each is nearest to its own kind."""
    generator = torch.Generator().manual_seed(0)
    labels, names = torch.arange(60) // 12, torch.arange(60) % 12
    kind = torch.randn(5, 384, generator=generator)[labels] + 0.1 * torch.randn(60, 384, generator=generator)
    vectors = torch.ones(60, 384).double() + 1e-4 * kind.double()
    assert nearest_is_right(vectors, labels, names).mean() > 0.95
    alike = torch.randn(1, 384, generator=generator).double().expand(60, 384)
    noise = 1e-15 * torch.randn(60, 384, generator=generator).double()  # equal but for rounding: ties
    for equal in (alike + noise, noise):
        assert nearest_is_right(equal, labels, names).tolist() == pytest.approx([0.2] * 60)


def test_even_attention_changes_a_copy():
    encoder = Bert(BertShape(d=8, layers=2, heads=2, vocabulary=11, longest=8)).eval()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    x = torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(0))
    even = with_even_attention(encoder).stack.blocks[1].attention
    assert torch.allclose(even(x), even(x).mean(dim=1, keepdim=True).expand(1, 4, 8), atol=1e-6)
    assert not torch.allclose(even(x), torch.zeros(1, 4, 8), atol=1e-6)  # the values are there
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())  # as it was


def test_each_object_stands_in_its_sentence():
    sentences = data.load("broke", "test", quiet=True)["sentence"]
    for name, sentence in zip(OBJECTS, sentences, strict=True):
        words = sentence.rstrip(".").replace("'", " ").split(" broke the ")[1].split()
        assert name in words or f"{name}s" in words  # "laws" is the object "law"


def test_an_rnn_waits_longer_the_longer_the_text():
    short, long = depths_of_layers(8, 4), depths_of_layers(16, 4)
    assert long["RNN"] > short["RNN"] + 8
    assert (short["attention"], short["ConvNet"]) == (long["attention"], long["ConvNet"])


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
    found = {"scale": torch.rand(2, 5), "longer": torch.rand(1, 5)}
    draw_trainings(axes[0, 0], [0.1, 1.0], found, even=0.2, alone={"longer": 0.1})
    assert len(axes[0, 0].lines) == 6  # two means, the runs of each as dots, even weights and chance
    assert [len(line.get_xdata()) for line in axes[0, 0].lines[2:4]] == [10, 5]
    draw_matrix(axes[0, 2], "weights", torch.eye(2), ["a", "b"], ["c", "d"])
    assert [label.get_text() for label in axes[0, 2].get_xticklabels()] == ["c", "d"]
    fig_of_senses, ax = viz.figure()
    draw_senses(ax, {"broke": [torch.ones(4)] * 7}, {"chance": 0.2, "means": 0.2})
    assert len(ax.lines) == 3
    heights = {text.get_text(): text.get_position()[1] for text in ax.texts}
    assert abs(heights["means"] - heights["chance"]) > 0.05  # though both lines are at 0.2
    viz.show(fig_of_senses, alt="A line.")
    draw_prices(axes[1], {4: prices_of_layers(4, 8), 8: prices_of_layers(8, 8)})
    assert [len(ax.lines) for ax in axes[1]] == [3, 3, 3]
    viz.show(fig, alt="Lines.")


def test_the_control_is_drawn_beside_the_encoder():
    fig, ax = viz.figure()
    draw_control(ax, {"broke": 0.9, "name": 0.8}, {"broke": 0.5, "name": 0.7}, {"chance": 0.2, "bag of words": 0.8})
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["MiniLM", "even attention"]
    assert [text.get_text() for text in ax.texts] == ["chance", "bag of words"]
    heights = dict(zip([label.get_text() for label in ax.get_yticklabels()], ax.lines[1].get_ydata(), strict=True))
    assert dict(zip(ax.lines[1].get_xdata(), ax.lines[1].get_ydata(), strict=True))[0.5] == heights["broke"]
    viz.show(fig, alt="Dots.")


def test_gradients_are_drawn_as_ratios():
    fig, axes = viz.figure(columns=3)
    scaled = {d: (torch.full((20,), 0.5), torch.ones(20), torch.ones(20)) for d in (4, 8)}
    unscaled = {d: (torch.full((20,), 0.9), torch.full((20,), 0.5), torch.full((20,), float(d))) for d in (4, 8)}
    ratios = draw_gradients(axes, scaled, unscaled)
    assert ratios["queries, mean"] == ratios["queries, median"] == [4.0, 8.0]
    assert ratios["scores, mean"] == [0.5, 0.5]
    assert [len(ax.lines) for ax in axes] == [2, 3, 3]
    viz.show(fig, alt="Lines.")


def test_steps_and_ways_are_drawn():
    _, axes = viz.figure(columns=4)
    raw = torch.randn(3, 3, generator=torch.Generator().manual_seed(0))
    hidden = raw.masked_fill(~causal_mask(3, 3), -torch.inf)
    draw_steps(axes, raw, hidden, hidden.softmax(dim=-1), torch.ones(3, 2), list("abc"))
    assert all(ax.images for ax in axes)
    assert axes[0].images[0].get_clim() == axes[1].images[0].get_clim()  # one scale
    _, axes = viz.figure(columns=3)
    draw_reach(axes, {"one": torch.eye(3).bool(), "two": torch.ones(3, 3).bool()})
    assert [ax.get_title("left") for ax in axes[1:]] == ["one", "two"]


def test_every_tensor_of_a_head_is_drawn():
    _, axes = viz.figure(rows=3, columns=4)
    X, W, made = torch.ones(4, 4), [torch.ones(2, 4)] * 3, [torch.ones(4, 2)] * 3
    draw_head(axes, X, W, made, torch.ones(4, 4) / 4, torch.ones(4, 2), ["walk", "by", "river", "bank"], list("mwcp"))
    assert [len(ax.images) for ax in axes.flat] == [1] * 4 + [0] + [1] * 7
    assert {ax.images[0].get_cmap().name for ax in axes.flat if ax.images} == {"PuOr_r"}
