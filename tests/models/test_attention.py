"""One head and many equal PyTorch's attention."""

import pytest
import torch
from torch import nn

from course_lib.models.attention import (
    Cache,
    MultiHeadAttention,
    SelfAttention,
    causal_mask,
    merge_heads,
    multi_head,
    padding_mask,
    split_heads,
)
from course_lib.models.inside import recorded


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", [(5, 6), (2, 5, 6), (2, 3, 5, 6)])
def test_self_attention_equals_pytorch(shape, causal):
    torch.manual_seed(0)
    head, x = SelfAttention(6, 4, causal), torch.randn(shape)
    expected = nn.functional.scaled_dot_product_attention(head.Q(x), head.K(x), head.V(x), is_causal=causal)
    assert torch.allclose(head(x), expected, atol=1e-6)
    assert [name for name, _ in head.named_parameters()] == ["Q.weight", "K.weight", "V.weight"]


def test_merge_undoes_split():
    x = torch.randn(2, 5, 12)
    assert split_heads(x, 3).shape == (2, 3, 5, 4)
    assert torch.equal(split_heads(x, 3)[1, 2], x[1, :, 8:])
    assert torch.equal(merge_heads(split_heads(x, 3)), x)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("mask", [None, causal_mask(6, 6), padding_mask(torch.tensor([6, 2]), 6)], ids=str)
def test_multi_head_equals_pytorchs_and_the_librarys_layer(count, mask):
    theirs, ours = nn.MultiheadAttention(8, count, batch_first=True), MultiHeadAttention(8, count)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter)
    stored = theirs.in_proj_weight, theirs.in_proj_bias, theirs.out_proj.weight, theirs.out_proj.bias
    names = "qkv.weight", "qkv.bias", "output.weight", "output.bias"
    ours.load_state_dict(dict(zip(names, stored, strict=True)))
    x = torch.randn(2, 6, 8)
    out, weights = multi_head(x, *stored, count, mask)
    hidden = None if mask is None else ~mask.expand(2, count, 6, 6).flatten(0, 1)
    for wanted in (
        theirs(x, x, x, attn_mask=hidden, average_attn_weights=False),
        (ours(x, mask=mask), *recorded(ours, "attention", x, None, mask)),
    ):
        torch.testing.assert_close(out, wanted[0], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(weights, wanted[1], atol=1e-5, rtol=1e-5)


def test_a_cache_that_is_full_says_so_and_stays_as_it_is():
    cache, new = Cache(1, 2, 3, 4, torch.zeros(())), torch.zeros(1, 2, 2, 4)
    cache.append(new, new)
    with pytest.raises(ValueError, match=r"The cache has room for 3 tokens; 4 are needed\."):
        cache.append(new, new)
    assert cache.length == 2
