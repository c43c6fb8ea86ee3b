"""Checks of classes, and the instruments that count what a layer costs."""

import math

import pytest
import torch
from torch import nn

from course_lib import measure, tasks
from course_lib.attention import SelfAttention, attention, attention_flops
from course_lib.checks import Exercise, grade, module_checks


class Scale(nn.Module):
    """x (…, d) → w ⊙ x."""

    def __init__(self, d: int):
        super().__init__()
        self.w = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return self.w * x


EXERCISE = Exercise(
    id="0.0",
    title="scale",
    reference=Scale,
    checks=module_checks(
        Scale,
        [((3,), (torch.arange(6.0).view(2, 3),)), ((2,), (torch.ones(2),))],
        returns=["y"],
        slips=[(lambda d, x, w: w + x, "It adds.")],
    ),
    nudge="Multiply.",
    sketch="w * x",
)


def variant(forward=lambda self, x: self.w * x, size=lambda d: d, name="w"):
    class Answer(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.register_parameter(name, nn.Parameter(torch.zeros(size(d))))

    Answer.forward = forward
    return Answer


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Scale(3), "got an object made from it: leave out the brackets"),
        (lambda d: Scale(d), "Expected a class: `class Scale(nn.Module)`"),
        (7, "Expected a class `Scale`; got an int"),
        (variant(lambda self, x: self.w + x), "It adds."),
        (variant(size=lambda d: d + 1), "Expected w of shape (3,); got (4,)"),
        (variant(name="v"), "Expected the parameters w; got v"),
        (variant(lambda x: x), "`forward`: It must take (self, x); yours takes (x)"),
        (variant(nn.Module.forward), "It has no method `forward`"),
        (variant(lambda self, x: self.w.detach() * x), "no gradient reaches w"),
        (variant(lambda self, x: x.mul_(self.w)), "It changes its input x in place"),
        (variant(lambda self, x: (self.w * x).float()), "With float64 inputs y must be torch.float64"),
    ],
)
def test_wrong_class_is_told_why(answer, says):
    verdict = grade(EXERCISE, answer)
    assert verdict.state == "wrong"
    assert says in verdict.reason


def test_right_class_passes_whatever_its_own_weights():
    assert grade(EXERCISE, Scale).state == grade(EXERCISE, variant()).state == "passed"


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", [(5, 6), (2, 5, 6), (2, 3, 5, 6)])
def test_self_attention_equals_pytorch(shape, causal):
    torch.manual_seed(0)
    head, x = SelfAttention(6, 4, causal), torch.randn(shape)
    expected = nn.functional.scaled_dot_product_attention(head.Q(x), head.K(x), head.V(x), is_causal=causal)
    assert torch.allclose(head(x), expected, atol=1e-6)
    assert [name for name, _ in head.named_parameters()] == ["Q.weight", "K.weight", "V.weight"]


@pytest.mark.parametrize("sizes", [(1, 1, 1), (7, 3, 5), (16, 8, 8)])
def test_operations_are_those_that_pytorch_counts(sizes):
    length, d, d_head = sizes
    head, x = SelfAttention(d, d_head), torch.randn(length, d)
    assert measure.operations(lambda: head(x)) == sum(attention_flops(*sizes))
    assert measure.operations(lambda: x + x) == 0


def test_bytes_kept_counts_each_tensor_once():
    x = torch.ones(10, requires_grad=True)
    assert measure.bytes_kept(lambda: x + 1) == 0
    assert measure.bytes_kept(lambda: x * x) == 40
    qkv = torch.randn(3, 8, 2, requires_grad=True)
    assert measure.bytes_kept(lambda: attention(*qkv)) == 3 * 8 * 2 * 4 + 8 * 8 * 4
    with torch.no_grad():
        assert measure.bytes_kept(lambda: x * x) == 0


def test_costs():
    layer, x = nn.Linear(4, 4), torch.ones(2, 4)
    operations, milliseconds, megabytes = measure.costs(lambda: layer(x))
    assert operations == 2 * 2 * 4 * 4
    assert 0 < milliseconds < math.inf
    assert megabytes == pytest.approx(32e-6)


def test_clumps():
    line = torch.arange(20.0)[:, None]
    assert measure.clumps(line, gap=1.1) == 1  # from neighbour to neighbour, all the way
    assert measure.clumps(line, gap=0.9) == 20
    assert measure.clumps(torch.tensor([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0]]), gap=0.3) == 2
    assert measure.clumps(torch.zeros(1, 2), gap=0.3) == 1


def test_every_sentence_has_the_word_once():
    assert [len(texts) for texts in tasks.BROKE.values()] == [4] * 6
    assert all(text.rstrip(".").split().count("broke") == 1 for texts in tasks.BROKE.values() for text in texts)
