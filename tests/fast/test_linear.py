"""A finished model made quick, and made plain again."""

import copy

import pytest
import torch
from torch import nn

from course_lib import training
from course_lib.decoding import cached, greedy
from course_lib.fast import linear as quick
from course_lib.models.bert import Bert, BertShape, MaskedLM
from course_lib.models.gpt import GPT, GPTShape
from course_lib.models.tied import TiedLinear
from course_lib.models.transformer import Shape
from course_lib.models.translator import TransformerTranslator


@pytest.fixture(autouse=True)
def always(monkeypatch):
    monkeypatch.setattr(quick, "onednn_is_quicker", lambda: True)


class Own(nn.Linear):
    """A layer of somebody's own."""


def kinds(model: nn.Module) -> list[type]:
    return [type(module) for module in model.modules()]


def test_only_exact_layers_are_changed_and_changed_back():
    model = nn.Sequential(
        nn.Linear(2, 2), Own(2, 2), nn.Sequential(TiedLinear(), nn.LayerNorm(2)), nn.Bilinear(2, 2, 2)
    )
    before = kinds(model)
    with quick.quickened(model):
        inside = kinds(model)
        assert [kind for kind in inside if kind not in before] == [quick.QuickLinear, quick.QuickTiedLinear]
        assert inside.count(Own) == 1
        with quick.quickened(model):
            pass
        assert kinds(model) == inside  # the inner one leaves what it has not changed
    assert kinds(model) == before
    with pytest.raises(KeyError), quick.quickened(model):
        raise KeyError
    assert kinds(model) == before
    assert quick.quicken(model) is model
    assert kinds(model) == inside


def test_where_nothing_is_gained_nothing_is_changed(monkeypatch):
    monkeypatch.setattr(quick, "onednn_is_quicker", lambda: False)
    model = nn.Linear(2, 2)
    with quick.quickened(model):
        assert type(model) is nn.Linear


def models() -> dict[str, tuple[nn.Module, tuple]]:
    ids, lengths = torch.randint(20, (2, 6)), torch.tensor([6, 4])
    shape = Shape(d=8, layers=1, heads=2)
    return {
        "GPT": (GPT(GPTShape(d=8, layers=1, heads=2, vocabulary=20)), (ids,)),
        "BERT": (MaskedLM(Bert(BertShape(d=8, layers=1, heads=2, vocabulary=20, longest=8))), (ids, lengths)),
        "translator": (TransformerTranslator(20, 20, shape, longest=8), (ids, lengths, ids)),
    }


@pytest.mark.parametrize("name", ["GPT", "BERT", "translator"])
def test_every_product_of_a_model_is_reached(name, monkeypatch):
    """Also the tied read-out, and the parts of a matrix in attention to another text."""
    model, inputs = models()[name]
    quick.quicken(model)
    monkeypatch.setattr(
        quick, "quick_linear", lambda x, weight, bias=None: x @ weight.T if bias is None else x @ weight.T + bias
    )
    monkeypatch.setattr(nn.functional, "linear", lambda *_: pytest.fail("a plain product was made"))
    model.eval()(*inputs)


def test_fit_is_quick_and_leaves_the_model_as_it_was():
    model, seen = nn.Sequential(nn.Linear(3, 4), Own(4, 2)), []

    def batches(generator):
        seen.append(kinds(model))
        return torch.randn(5, 3, generator=generator), torch.zeros(5, dtype=torch.long)

    training.fit(model, batches, steps=2, lr=1e-3, progress=False)
    assert seen == [[nn.Sequential, quick.QuickLinear, Own]] * 2
    assert kinds(model) == [nn.Sequential, nn.Linear, Own]


@pytest.mark.parametrize(("worth_it", "products"), [(12 * 8 * 32, 5), (13 * 8 * 32, 0)], ids=["large", "small"])
def test_prompts_are_read_quickly_where_a_product_is_large_enough(worth_it, products, monkeypatch):
    """12 tokens, and 8 · 32 numbers in the largest matrix. For few tokens, to look at every layer would cost more."""
    monkeypatch.setattr(cached, "WORTH_IT", worth_it)
    model = GPT(GPTShape(d=8, layers=1, heads=2, vocabulary=20, longest=8)).eval()
    before, ids = kinds(model), torch.randint(20, (2, 6))
    expected, made, linear = greedy(model, ids, 3), [], quick.quick_linear
    monkeypatch.setattr(quick, "quick_linear", lambda *inputs: made.append(1) or linear(*inputs))
    assert torch.equal(greedy(model, ids, 3), expected)
    assert len(made) == products
    assert kinds(model) == before
    assert kinds(copy.deepcopy(model)) == before
