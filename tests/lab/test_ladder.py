"""The rungs that a class climbs: a wrong one is told why, a right one passes whatever its own weights."""

import pytest
import torch
from torch import nn

from course_lib.lab.grading import Exercise, grade
from course_lib.lab.ladder import ModuleLadder, edits


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
    checks=ModuleLadder(
        Scale,
        [((3,), (torch.arange(6.0).view(2, 3),)), ((2,), (torch.ones(2),))],
        returns=["y"],
        slips=[(lambda d, x, w: w + x, "It adds."), *edits(Scale, "self.w * x → self.w - x · It subtracts.")],
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
        (variant(lambda self, x: self.w - x), "It subtracts."),
        (variant(size=lambda d: d + 1), "Expected w of shape (3,); got (4,)"),
        (variant(name="v"), "Expected the parameters w; got v"),
        (variant(lambda x: x), "`forward`: It must take (self, x); yours takes (x)"),
        (variant(nn.Module.forward), "It has no method `forward`"),
        (variant(lambda self, x: self.w.detach() * x), "no gradient reaches w"),
        (variant(lambda self, x: x.mul_(self.w)), "It changes its input x in place"),
        (variant(lambda self, x: (self.w * x).double()), "y must be torch.float32; got torch.float64"),
    ],
)
def test_wrong_class_is_told_why(answer, says):
    verdict = grade(EXERCISE, answer)
    assert verdict.state == "wrong"
    assert says in verdict.reason


def test_right_class_passes_whatever_its_own_weights():
    assert grade(EXERCISE, variant()).state == "passed"
