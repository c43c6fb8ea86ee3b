"""A linear layer by oneDNN equals PyTorch's, whichever processor the tests run on."""

import contextlib
import weakref

import pytest
import torch
from comparing import close, seeds
from torch import nn
from torch.nn import functional as F

from course_lib.fast import linear as module
from course_lib.fast.linear import QuickLinear, quick_linear, quickened
from course_lib.models.gpt import GPT, GPTShape

CASES = pytest.mark.parametrize("seed", seeds(12, 41, 125))


@pytest.fixture
def products(monkeypatch) -> list[tuple]:
    """Every quick product is oneDNN's, however small, on every processor; the shapes of those that were made."""
    made, apply = [], module.Product.apply
    monkeypatch.setattr(module, "WORTH_IT", 0)
    monkeypatch.setattr(module, "onednn_is_quicker", lambda: True)
    monkeypatch.setattr(module.Product, "apply", lambda *inputs: made.append(inputs[0].shape) or apply(*inputs))
    return made


def drawn(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    generator = torch.Generator().manual_seed(seed)
    batch, length, d_in, d_out, kind = torch.randint(1, 70, (5,), generator=generator).tolist()
    x = torch.randn(batch, length, d_in, generator=generator)
    x = [x, x[0], x.transpose(0, 1), x[:, :, None]][kind % 4]  # also two and four dimensions, and strides
    return (
        x,
        torch.randn(d_out, d_in, generator=generator),
        torch.randn(d_out, generator=generator) if kind % 3 else None,
    )


@CASES
@pytest.mark.compares("Linear by oneDNN", "F.linear")
def test_one_product_equals_the_other(seed, products):
    ours, theirs = ([t if t is None else t.clone().requires_grad_() for t in drawn(seed)] for _ in range(2))
    y, expected = quick_linear(*ours), F.linear(*theirs)
    assert products == [ours[0].shape]
    close(y, expected, "output")
    pull = torch.randn(expected.shape, generator=torch.Generator().manual_seed(seed))
    y.backward(pull)
    expected.backward(pull)
    for name, a, b in zip(("x", "weight", "bias"), ours, theirs, strict=True):
        if a is not None:
            close(a.grad, b.grad, f"gradient of {name}")
            assert strides(a.grad) == strides(b.grad)


def strides(x: torch.Tensor) -> list[int]:
    """Where a dimension has one entry, its stride means nothing, and any number may stand there."""
    return [stride for size, stride in zip(x.shape, x.stride(), strict=True) if size > 1]


@CASES
@pytest.mark.compares("GPT whose products are oneDNN's", "the same GPT by PyTorch's")
def test_a_whole_model_learns_the_same(seed, products):
    torch.manual_seed(seed)
    model = GPT(GPTShape(d=24, layers=2, heads=3, longest=16, vocabulary=40))
    ids = torch.randint(40, (3, 12))
    found = []
    for way in (quickened(model), contextlib.nullcontext()):
        model.zero_grad()
        with way:
            scores = model(ids)
            F.cross_entropy(scores[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
        found.append((scores, {name: p.grad for name, p in model.named_parameters()}))
    forward = 2 * 4 + 1
    assert len(products) == 3 * forward  # and two backward for each
    (scores, gradients), (expected, expected_gradients) = found
    close(scores, expected, "scores")
    for name, gradient in gradients.items():
        close(gradient, expected_gradients[name], f"gradient of {name}")


@pytest.mark.parametrize("frozen", [(), (0,), (1,), (2,), (1, 2), (0, 2)])
def test_only_the_gradients_that_are_asked_for(frozen, products):
    inputs = [torch.randn(5, 7), torch.randn(4, 7), torch.randn(4)]
    for i, tensor in enumerate(inputs):
        tensor.requires_grad_(i not in frozen)
    quick_linear(*inputs).sum().backward()
    assert [tensor.grad is None for tensor in inputs] == [i in frozen for i in range(3)]


def test_backward_twice_and_gradients_of_gradients(products):
    inputs = [torch.randn(5, 7), torch.randn(4, 7), torch.randn(4)]
    second = []
    for function in (quick_linear, F.linear):
        x, weight, bias = (tensor.clone().requires_grad_() for tensor in inputs)
        y = function(x, weight, bias).tanh().sum()
        y.backward(retain_graph=True)
        once = x.grad.clone()
        y.backward(retain_graph=True)
        close(x.grad, 2 * once, "gradient added once more")
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
        second.append(torch.autograd.grad(slope.square().sum(), weight)[0])
    close(*second, "gradient of a gradient")


def test_what_is_kept_of_x_goes_before_its_gradient_is_made(products, monkeypatch):
    """Else a training step would need more memory than PyTorch's own layer takes."""
    alive = []

    def watching(x, weight, bias=None):
        alive.append((tuple(weight.shape), kept() is not None))
        return quick_linear(x, weight, bias)

    monkeypatch.setattr(module, "quick_linear", watching)
    weight, start = torch.randn(4, 7, requires_grad=True), torch.randn(5, 7, requires_grad=True)
    x = start * 2
    kept = weakref.ref(x)
    y = quick_linear(x, weight).sum()
    del x
    y.backward()
    assert alive == [((7, 5), True), ((7, 4), False)]  # for the weights' gradient, for that of x


def test_the_plain_product_where_nothing_is_gained(products, monkeypatch):
    layer, x = QuickLinear(8, 8), torch.randn(2, 3, 8)
    layer(x)
    assert len(products) == 1
    layer.double()(x.double())
    layer.to("meta")(x.to("meta"))
    layer = QuickLinear(8, 8)
    with torch.autocast("cpu"):
        layer(x)
    monkeypatch.setattr(module, "WORTH_IT", 2 * 3 * 8 * 8 + 1)
    layer(x)
    assert len(products) == 1


def test_a_wrong_width_is_told_as_by_pytorch(products):
    for layer in (QuickLinear(8, 4), nn.Linear(8, 4)):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            layer(torch.randn(5, 7))
