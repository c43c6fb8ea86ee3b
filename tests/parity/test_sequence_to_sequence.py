"""The pieces of lesson 07 equal PyTorch's: label smoothing, the masks, and the architecture of 2017 wired by hand."""

from dataclasses import replace

import pytest
import torch
from comparing import close, seeds
from torch import nn
from torch.nn import functional as F

from course_lib.models.attention import causal_mask, padding_mask, target_mask
from course_lib.models.transformer import Shape, Stack
from course_lib.models.translator import decoder_block
from course_lib.pretrained import copy_stack_weights
from course_lib.training import smoothed_loss

CASES = pytest.mark.parametrize("seed", seeds(12))


@CASES
@pytest.mark.compares("smoothed_loss", "F.cross_entropy(label_smoothing=…)")
def test_smoothed_loss_equals_pytorch(seed):
    torch.manual_seed(seed)
    batch, length, classes = torch.randint(1, 8, (3,)).tolist()
    logits, epsilon = 3 * torch.randn(batch, length, classes + 1), float(torch.rand(()))
    targets = torch.randint(classes + 1, (batch, length))
    targets[torch.rand(batch, length) < 0.3] = -100
    targets[0, 0] = 0  # one at least counts
    inputs = [logits.clone().requires_grad_() for _ in range(2)]
    ours = smoothed_loss(inputs[0], targets, epsilon)
    theirs = F.cross_entropy(inputs[1].flatten(0, -2), targets.flatten(), ignore_index=-100, label_smoothing=epsilon)
    close(ours, theirs, "loss")
    for value in (ours, theirs):
        value.backward()
    close(inputs[0].grad, inputs[1].grad, "gradient")


def test_target_mask_is_both_masks():
    lengths = torch.tensor([5, 1, 3])
    assert torch.equal(target_mask(lengths, 5), padding_mask(lengths, 5) & causal_mask(5, 5))
    assert target_mask(lengths, 5).any(dim=-1).all(), "no row is hidden altogether"


@CASES
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.compares("two Stacks by copy_stack_weights; decoder_block", "nn.Transformer")
@pytest.mark.usefixtures("device")
def test_decoder_wired_by_hand_equals_nn_transformer(seed):
    torch.manual_seed(seed)
    heads, part, source_length, target_length = torch.randint(1, 5, (4,), device="cpu").tolist()
    d, batch = 2 * heads * part, 3
    theirs = nn.Transformer(d, heads, 2, 2, dim_feedforward=12, dropout=0.0, batch_first=True)
    theirs.encoder.norm = theirs.decoder.norm = None
    for parameter in theirs.parameters():
        nn.init.normal_(parameter)
    shape = Shape(d=d, heads=heads, layers=2, d_ff=12, activation="relu", pre_norm=False)
    encoder, decoder = Stack(shape), Stack(replace(shape, cross=True, causal=True))
    copy_stack_weights(encoder, theirs.encoder)
    copy_stack_weights(decoder, theirs.decoder)
    source, target = torch.randn(batch, source_length, d), torch.randn(batch, target_length, d)
    true = padding_mask(torch.randint(1, source_length + 1, (batch,)), source_length)
    mask = target_mask(torch.full((batch,), target_length), target_length)
    memory = encoder(source, true)
    x = target
    for block in decoder.blocks:
        x = decoder_block(x, memory, mask, true, block)
    hidden = ~true[:, 0, 0]
    expected = theirs(source, target, tgt_mask=~mask[0, 0], src_key_padding_mask=hidden, memory_key_padding_mask=hidden)
    close(x, expected, "output")
    close(decoder(target, memory=memory, memory_mask=true), expected, "the library's own stack")
