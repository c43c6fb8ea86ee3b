"""LoRA starts as the model, trains little, and merges into it."""

import copy

import torch
from torch import nn

from course_lib.models import lora
from course_lib.models.gpt import GPT, GPTShape


def test_lora_starts_as_the_model_and_merges_into_it():
    torch.manual_seed(0)
    lm = GPT(GPTShape(d=16, layers=2, heads=2, vocabulary=50, longest=64, positions="rotary", activation="swiglu"))
    ids, adapted = torch.randint(50, (2, 6)), copy.deepcopy(lm)
    before = lm(ids).detach()
    lora.adapt(adapted, adapted.stack.blocks[1:], rank=2, alpha=4.0)
    torch.testing.assert_close(adapted(ids), before)
    trained = {name for name, p in adapted.named_parameters() if p.requires_grad}
    assert trained
    assert all(name.startswith("stack.blocks.1.") and name.endswith((".A", ".B")) for name in trained)
    assert sum(isinstance(m, lora.LoRA) for m in adapted.modules()) == 4
    with torch.no_grad():
        for name, p in adapted.named_parameters():
            if name in trained:
                p.normal_()
    changed = adapted(ids).detach()
    assert not torch.allclose(changed, before, atol=1e-3)
    lora.merge_adapters(adapted)
    assert not any(isinstance(m, lora.LoRA) for m in adapted.modules())
    torch.testing.assert_close(adapted(ids), changed, atol=1e-4, rtol=1e-4)
    assert {n for n, _ in adapted.named_parameters()} == {n for n, _ in lm.named_parameters()}


def test_lora_needs_only_the_small_matrices():
    layer = lora.LoRA(nn.Linear(100, 50), rank=3, alpha=6)
    assert sum(p.numel() for p in layer.parameters() if p.requires_grad) == 3 * (100 + 50)
