"""Gates remove a head for as long as they stand, and leave nothing behind."""

import pytest
import torch

from course_lib.models.bert import Bert, BertShape
from course_lib.models.inside import gated


def encoder() -> Bert:
    model = Bert(BertShape(vocabulary=20, d=12, layers=2, heads=3, longest=16)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


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
