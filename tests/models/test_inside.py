"""Every point gives what its table says; gates remove a head for as long as they stand; neither leaves a trace."""

import pytest
import torch

from course_lib.models.bert import Bert, BertShape
from course_lib.models.inside import POINTS, gated, record, recorded
from course_lib.models.transformer import Shape, Stack


def encoder() -> Bert:
    model = Bert(BertShape(vocabulary=20, d=12, layers=2, heads=3, longest=16)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


def test_each_point_has_what_its_table_says():
    """A decoder of 2 layers, 3 heads, width 12; 5 queries, and 7 keys of the encoder."""
    model = torch.nn.ModuleDict({"stack": Stack(Shape(d=12, layers=2, heads=3, causal=True, cross=True))})
    x, memory, found = torch.randn(4, 5, 12), torch.randn(4, 7, 12), {}
    for point in POINTS:
        with record(model, point) as found[point]:
            out = model["stack"](x, memory=memory)
    assert {point: [tuple(tensor.shape) for tensor in tensors] for point, tensors in found.items()} == {
        "attention": [(4, 3, 5, 5)] * 2,
        "cross": [(4, 3, 5, 7)] * 2,
        "qkv": [(4, 5, 36)] * 2,
        "blocks": [(4, 5, 12)] * 3,
        "stack": [(4, 5, 12)],
    }
    assert torch.equal(found["blocks"][0], x)
    assert torch.equal(found["stack"][0], out)
    assert torch.equal(model["stack"].norm(found["blocks"][-1]), out)


def test_points_that_are_not_there_and_hooks_that_are_gone():
    model = encoder()
    with pytest.raises(ValueError, match="There is no point 'heads'; expected one of attention, cross, qkv, blocks"):
        recorded(model, "heads")
    with pytest.raises(ValueError, match="This Bert has no point 'cross'"):
        recorded(model, "cross")
    for point in ("attention", "blocks"):
        with pytest.raises(RuntimeError), record(model, point):
            raise RuntimeError
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_gates_of_one_change_nothing_and_gates_of_zero_remove_a_head():
    model, ids = encoder(), torch.randint(20, (2, 7))
    plain = model(ids)
    with gated(model, torch.ones(2, 3)):
        torch.testing.assert_close(model(ids), plain, atol=1e-5, rtol=1e-5)
    gates = torch.ones(2, 3)
    gates[1, 2] = 0
    with gated(model, gates):
        without = model(ids)
    assert (without - plain).abs().max() > 1e-3
    assert torch.equal(model(ids), plain), "afterwards the gates are gone"
    with torch.no_grad():  # the same, done to the weights
        model.stack.blocks[1].attention.output.weight[:, 8:12] = 0
    torch.testing.assert_close(model(ids), without, atol=1e-5, rtol=1e-5)


def test_gates_are_gone_also_after_an_error():
    model = encoder()
    with pytest.raises(RuntimeError), gated(model, torch.ones(2, 3)):
        raise RuntimeError
    assert not any(block.attention.output._forward_pre_hooks for block in model.stack.blocks)
    with pytest.raises(ValueError, match="a gate for each of 3 heads; got 4"), gated(model, torch.ones(2, 4)):
        pass
