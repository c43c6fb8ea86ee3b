"""Attention equals PyTorch's: written out, fused, in several heads; forward and backward; every kind of mask."""

import contextlib
import itertools
import math

import pytest
import torch
from comparing import RUN, close, seeds
from torch import nn
from torch.nn import functional as F

from course_lib.models.attention import Alignment, Cache, MultiHeadAttention, attention, causal_mask, padding_mask
from course_lib.models.inside import record
from course_lib.models.positions import Rotary, alibi, sinusoidal

CASES = pytest.mark.parametrize("seed", seeds(6))


def rand(seed: int):
    generator = torch.Generator().manual_seed(seed)

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=generator, device="cpu"))

    return number, lambda *shape: torch.randn(*shape, generator=generator, device="cpu").to(torch.get_default_device())


@pytest.mark.parametrize("kind", ["none", "causal", "padding", "random", "some rows hidden"])
@CASES
@pytest.mark.compares("attention, written out, every kind of mask", "F.scaled_dot_product_attention")
@pytest.mark.usefixtures("device")
def test_written_out_equals_fused(seed, kind):
    number, randn = rand(seed)
    batch, heads, n, d = number(1, 3), number(1, 4), number(1, 9), number(1, 16)
    m = n if kind == "causal" else number(1, 9)
    q, k, v = randn(batch, heads, n, d), randn(batch, heads, m, d), randn(batch, heads, m, d)
    mask = {
        "none": None,
        "causal": causal_mask(n, m),
        "padding": padding_mask(torch.tensor([number(1, m) for _ in range(batch)]), m),
        "random": randn(batch, 1, n, m) > 0,
        "some rows hidden": (randn(batch, 1, n, m) > 0) & (torch.arange(n) % 2 == 1)[:, None],
    }[kind]
    if kind == "random":
        mask = mask | (torch.arange(m) == 0)  # no row hidden altogether
    ours, theirs = ([t.clone().requires_grad_() for t in (q, k, v)] for _ in range(2))
    out, weights = attention(*ours, mask)
    expected = F.scaled_dot_product_attention(*theirs, attn_mask=mask)
    if kind == "some rows hidden":
        expected = torch.where(mask.any(-1, keepdim=True), expected, 0.0)  # torch's CPU kernels differ on such rows
        assert (out[:, :, 0::2] == 0).all()
        assert out.isfinite().all()
        out.sum().backward()
        assert all(t.grad.isfinite().all() for t in ours)
        close(out, expected.detach(), "output")
        return
    close(out, expected, "output")
    close(weights.sum(-1), torch.ones(batch, heads, n), "weights' sum")
    pull = randn(*out.shape)
    (out * pull).sum().backward()
    (expected * pull).sum().backward()
    for name, a, b in zip("qkv", ours, theirs, strict=True):
        close(a.grad, b.grad, f"gradient of {name}")


def copied(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        ours.qkv.weight.copy_(theirs.in_proj_weight)
        ours.qkv.bias.copy_(theirs.in_proj_bias.normal_())
        ours.output.weight.copy_(theirs.out_proj.weight)
        ours.output.bias.copy_(theirs.out_proj.bias.normal_())


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("kind", ["self", "causal", "padding", "cross"])
@CASES
@pytest.mark.compares("MultiHeadAttention", "nn.MultiheadAttention")
@pytest.mark.usefixtures("device")
def test_multi_head_equals_pytorch(seed, kind, watched):
    number, randn = rand(seed)
    torch.manual_seed(seed)
    heads = number(1, 4)
    d, batch, n, m = heads * number(1, 8), number(1, 3), number(1, 9), number(1, 9)
    ours, theirs = MultiHeadAttention(d, heads), nn.MultiheadAttention(d, heads, batch_first=True)
    copied(ours, theirs)
    x = randn(batch, n, d)
    memory = randn(batch, m, d) if kind == "cross" else None
    lengths = torch.tensor([number(1, n) for _ in range(batch)])
    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    keys = other if memory is None else memory
    hidden = ~padding_mask(lengths, n)[:, 0, 0] if kind == "padding" else None
    ahead = ~causal_mask(n, n) if kind == "causal" else None
    expected, seen = theirs(
        other, keys, keys, key_padding_mask=hidden, attn_mask=ahead, average_attn_weights=False, need_weights=True
    )
    mask = padding_mask(lengths, n) if kind == "padding" else None
    with record(ours, "attention") if watched else contextlib.nullcontext([]) as weights:
        out = ours(mine, memory, mask, causal=kind == "causal")
    close(out, expected, "output")
    assert len(weights) == watched
    for found in weights:
        close(found, seen, "weights")
    pull = randn(*out.shape)
    (out * pull).sum().backward()
    (expected * pull).sum().backward()
    close(mine.grad, other.grad, "gradient of x")
    close(ours.qkv.weight.grad, theirs.in_proj_weight.grad, "gradient of the projections")
    close(ours.output.weight.grad, theirs.out_proj.weight.grad, "gradient of the output")


@CASES
@pytest.mark.compares("grouped queries", "the same heads repeated")
@pytest.mark.usefixtures("device")
def test_grouped_queries_equal_repeated_heads(seed):
    number, randn = rand(seed)
    torch.manual_seed(seed)
    kv, groups, d_head = number(1, 3), number(2, 3), 4
    heads = kv * groups
    d = heads * d_head
    few, many = MultiHeadAttention(d, heads, kv_heads=kv), MultiHeadAttention(d, heads)
    w, b = few.qkv.weight.detach(), few.qkv.bias.detach()

    def repeated(t):
        q, k, v = t.split([d, kv * d_head, kv * d_head])
        wide = [part.unflatten(0, (kv, d_head)).repeat_interleave(groups, 0).flatten(0, 1) for part in (k, v)]
        return torch.cat([q, *wide])

    many.load_state_dict(few.state_dict() | {"qkv.weight": repeated(w), "qkv.bias": repeated(b)})
    x = randn(2, 6, d)
    close(few(x, causal=True), many(x, causal=True), "output")
    with record(few, "attention"):
        close(few(x, causal=True), many(x, causal=True), "output, written out")


@pytest.mark.parametrize("pieces", [[1] * 8, [5, 3], [3, 1, 4]])
@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.compares("attention with a cache", "without")
def test_cache_changes_nothing(pieces, rotary):
    torch.manual_seed(RUN)
    layer = MultiHeadAttention(16, 4, kv_heads=2, rotary=Rotary(4, 8) if rotary else None)
    x = torch.randn(3, 8, 16)
    whole = layer(x, causal=True)
    cache = Cache(3, 2, 8, 4, x)
    parts = [layer(piece, causal=True, cache=cache) for piece in x.split(pieces, dim=1)]
    close(torch.cat(parts, dim=1), whole, "output")
    with pytest.raises(ValueError, match="for 8 tokens; 9 are needed"):
        layer(x[:, :1], causal=True, cache=cache)


def test_nothing_leaks_from_the_future():
    torch.manual_seed(RUN)
    layer = MultiHeadAttention(8, 2)
    x = torch.randn(1, 7, 8)
    changed = x.clone()
    changed[:, 4] += 1
    for way in (contextlib.nullcontext(), record(layer, "attention")):
        with way:
            before, after = (layer(t, causal=True) for t in (x, changed))
        close(before[:, :4], after[:, :4], "the past", 1e-6)
        assert not torch.allclose(before[:, 4:], after[:, 4:])


def by_formula(score: Alignment, q: torch.Tensor, k: torch.Tensor, place: int) -> torch.Tensor:
    """One score of one query and one key."""
    match score.kind:
        case "cosine":
            return q @ k / q.norm() / k.norm()
        case "additive":
            return (score.v.weight @ torch.tanh(score.W.weight @ torch.cat([q, k])))[0]
        case "location":
            return (score.W.weight @ q)[place]
        case "general":
            return q @ score.W.weight @ k
        case "dot":
            return q @ k
        case "scaled dot":
            return q @ k / math.sqrt(len(q))


@pytest.mark.parametrize("kind", Alignment.KINDS)
@pytest.mark.compares("the six alignment scores", "their formulas, pair by pair")
def test_alignment_by_its_formula(kind):
    torch.manual_seed(RUN)
    score, q, keys = Alignment(kind, 5, longest=6), torch.randn(2, 3, 5), torch.randn(2, 4, 5)
    scores = score(q, keys)
    assert scores.shape == (2, 3, 4)
    for b, j, i in itertools.product(range(2), range(3), range(4)):
        close(scores[b, j, i], by_formula(score, q[b, j], keys[b, i], i), f"score of query {j} and key {i}")


def test_alignment_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="There is no score 'cubic'"):
        Alignment("cubic", 4, 4)
    with pytest.raises(ValueError, match="at most 3 keys; got 4"):
        Alignment("location", 5, longest=3)(torch.randn(1, 1, 5), torch.randn(1, 4, 5))


def test_sinusoids_by_their_formula_and_shifted_by_a_linear_map():
    table = sinusoidal(50, 12)
    for p, i in ((0, 0), (7, 3), (49, 5)):
        angle = p / 10000 ** (2 * i / 12)
        assert table[p, 2 * i] == pytest.approx(math.sin(angle), abs=1e-5)
        assert table[p, 2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-5)
    with pytest.raises(ValueError, match="d must be even; got 5"):
        sinusoidal(3, 5)


def test_rotary_scores_depend_on_the_distance_alone():
    torch.manual_seed(RUN)
    turn, q, k = Rotary(8, 64), torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)
    scores = [(turn(q, p + 5) * turn(k, p)).sum() for p in (0, 9, 50)]
    assert torch.allclose(torch.stack(scores), scores[0].expand(3), atol=1e-4)
    assert torch.allclose(turn(q, 7).norm(), q.norm(), atol=1e-5)
    with pytest.raises(ValueError, match="positions for 64 tokens; 65 are needed"):
        turn(q, 64)


def test_alibi_falls_with_the_distance():
    bias = alibi(4, 3, 5)
    assert bias.shape == (4, 3, 5)
    assert torch.allclose(bias[:, 2], -(2.0 ** (-2.0 * torch.arange(1, 5)))[:, None] * torch.arange(4, -1, -1.0))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.compares("ALiBi", "transformers' BLOOM")
def test_alibi_inside_attention_is_that_of_bloom(causal):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    torch.manual_seed(RUN)
    layer, x = MultiHeadAttention(16, 4, alibi=True), torch.randn(3, 6, 16)
    mask = padding_mask(torch.tensor([6, 2, 4]), 6)
    fused = layer(x, mask=mask, causal=causal)
    with record(layer, "attention") as weights:
        close(fused, layer(x, mask=mask, causal=causal), "output")
    if causal:
        q, k, _ = layer._project(x, None)
        theirs = build_alibi_tensor(torch.ones(3, 6), 4, torch.float32).view(3, 4, 1, 6)  # by the key's place alone
        scores = (q @ k.transpose(-2, -1) / 2 + theirs).masked_fill(~(mask & causal_mask(6, 6)), -torch.inf)
        close(weights[0], scores.softmax(-1), "weights")


@pytest.mark.parametrize(("d", "heads", "kv"), [(10, 3, None), (12, 4, 3), (8, 0, None), (8, -2, None)])
def test_misfitting_heads_are_refused(d, heads, kv):
    with pytest.raises(ValueError, match=f"got {d}, {heads} and"):
        MultiHeadAttention(d, heads, kv)


def test_wrong_width_is_refused():
    with pytest.raises(ValueError, match=r"Expected x of shape \(batch, length, 8\); got \(2, 3, 7\)"):
        MultiHeadAttention(8, 2)(torch.zeros(2, 3, 7))
    layer, x = MultiHeadAttention(8, 2), torch.zeros(2, 3, 8)
    for memory in (torch.zeros(2, 3, 7), torch.zeros(1, 3, 8), torch.zeros(2, 8)):
        with pytest.raises(ValueError, match=r"Expected memory of shape \(2, length, 8\); got"):
            layer(x, memory)
    with pytest.raises(ValueError, match=r"Expected a mask of True \(seen\) and False \(hidden\); got torch.float32"):
        layer(x, mask=torch.zeros(3, 3))
