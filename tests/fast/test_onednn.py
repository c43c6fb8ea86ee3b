"""Private operators of torch: here in the pinned torch, and not missed where they are gone."""

import platform
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

from course_lib.decoding import greedy
from course_lib.fast import linear as quick
from course_lib.fast import onednn
from course_lib.fast.next_token import PackedMatrix
from course_lib.models.gpt import GPT, GPTShape

X86 = platform.machine().lower() in ("x86_64", "amd64")


@pytest.fixture
def operators(monkeypatch):
    """Operators of the test's own: ``operators(name=function)``; what is not given is not there."""

    def replace(**given):
        monkeypatch.setattr(onednn, "operators", SimpleNamespace(**given))
        onednn.multiplies.cache_clear()
        onednn.packs.cache_clear()

    monkeypatch.setattr(quick, "WORTH_IT", 0)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"cpu_name": "AMD"}, raising=False)
    onednn.multiplies.cache_clear()
    onednn.packs.cache_clear()
    yield replace
    onednn.multiplies.cache_clear()
    onednn.packs.cache_clear()


@pytest.mark.skipif(not X86, reason="oneDNN's float32 products are for x86")
def test_the_pinned_torch_has_them_all(operators):
    """A canary: when it falls, ours has become slow, not wrong. Find the operator's new name."""
    assert onednn.multiplies()
    assert onednn.packs()
    assert quick.onednn_is_quicker()
    assert hasattr(torch.autograd.function.BackwardCFunction, "maybe_clear_saved_tensors")


def broken(*_):
    raise RuntimeError("not today")


def wrong(x, weight, *_):
    return x.new_zeros(len(x), len(weight))


@pytest.mark.parametrize(
    ("given", "multiplies", "packs"),
    [
        ({}, False, False),
        ({"_linear_pointwise": None}, False, False),
        ({"_linear_pointwise": broken}, False, False),
        ({"_linear_pointwise": wrong, "_reorder_linear_weight": lambda weight, _: weight}, False, False),
        ({"_linear_pointwise": lambda x, w, b, *_: F.linear(x, w, b)}, True, False),
        ({"_linear_pointwise": lambda x, w, b, *_: F.linear(x, w, b), "_reorder_linear_weight": broken}, True, False),
        (
            {
                "_linear_pointwise": lambda x, w, b, *_: F.linear(x, w, b),
                "_reorder_linear_weight": lambda weight, _: weight.flip(0),
            },
            True,
            False,
        ),
    ],
    ids=["none there", "not callable", "fails", "wrong", "no packing", "packing fails", "packing wrong"],
)
def test_without_an_operator_all_is_as_before(given, multiplies, packs, operators):
    torch.manual_seed(0)
    model = GPT(GPTShape(d=16, layers=2, heads=2, longest=12, vocabulary=30)).eval()
    ids = torch.randint(30, (3, 4))
    expected, text = model(ids), greedy(model, ids, 8)
    operators(**given)
    if torch.backends.mkldnn.is_available():
        assert (onednn.multiplies(), onednn.packs()) == (multiplies, packs)
    assert not PackedMatrix.fits(model.embed.weight, 3)
    with quick.quickened(model):
        assert (type(model.stack.blocks[0].attention.qkv) is quick.QuickLinear) == onednn.multiplies()
        torch.testing.assert_close(model(ids), expected)
    assert torch.equal(greedy(model, ids, 8), text)


@pytest.mark.parametrize("problem", ["gone", "fails"])
def test_memory_that_cannot_be_let_go_early_goes_later(problem, operators, monkeypatch):
    def release(self):
        raise AttributeError("gone") if problem == "gone" else TypeError("other arguments")

    released = property(release) if problem == "gone" else release
    monkeypatch.setattr(torch.autograd.function.BackwardCFunction, "maybe_clear_saved_tensors", released, raising=False)
    operators(_linear_pointwise=lambda x, w, b, *_: F.linear(x, w, b))
    torch.manual_seed(0)
    inputs, found = [torch.randn(5, 7), torch.randn(4, 7), torch.randn(4)], []
    for function in (quick.quick_linear, F.linear):
        mine = [tensor.clone().requires_grad_() for tensor in inputs]
        function(*mine).square().sum().backward()
        found.append([tensor.grad for tensor in mine])
    torch.testing.assert_close(*found)


def test_the_trial_minds_nothing_of_its_surroundings(operators):
    """Neither autocast nor another default device or type, nor what comes next from the generator."""
    before = torch.random.get_rng_state()
    with torch.autocast("cpu"), torch.device("meta"), torch.inference_mode():
        multiplies = onednn.multiplies()
    onednn.multiplies.cache_clear()
    assert multiplies == onednn.multiplies()
    assert torch.equal(torch.random.get_rng_state(), before)
