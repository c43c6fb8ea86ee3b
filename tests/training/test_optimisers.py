"""Clipping beside torch's; Muon beside torch's, which works in bfloat16."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib.data.batches import windows
from course_lib.models.gpt import GPT, GPTShape
from course_lib.training import clip_gradients, fit
from course_lib.training.optimisers import Muon, hidden_matrices, orthogonalise

SHAPE = GPTShape(d=16, layers=2, heads=2, vocabulary=11, longest=8)


# --- clipping -------------------------------------------------------------------------------------------------------


def with_gradients(shapes, scale, seed):
    generator = torch.Generator().manual_seed(seed)
    parameters = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    for parameter in parameters:
        parameter.grad = scale * torch.randn(parameter.shape, generator=generator)
    return parameters


@settings(max_examples=60, deadline=None)
@given(
    shapes=st.lists(st.lists(st.integers(0, 5), max_size=3), min_size=1, max_size=5),
    scale=st.sampled_from([0.0, 1e-6, 0.1, 1.0, 30.0, 1e10]),
    max_norm=st.sampled_from([1e-3, 0.5, 1.0, 20.0, math.inf]),
    without=st.integers(0, 5),
    seed=st.integers(0, 1000),
)
def test_clipping_equals_torch(shapes, scale, max_norm, without, seed):
    ours, theirs = with_gradients(shapes, scale, seed), with_gradients(shapes, scale, seed)
    if without < len(shapes):
        ours[without].grad = theirs[without].grad = None
    norm = clip_gradients(iter(ours), max_norm)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm)
    assert isinstance(norm, float)
    assert norm == pytest.approx(expected.item(), rel=1e-6)
    for a, b in zip(ours, theirs, strict=True):
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            # torch divides by norm + 1e-6
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-5 + 1e-6 / max(norm, 1e-6), atol=0)


def test_clipping_to_the_limit():
    parameters = with_gradients([(3, 4), (5,)], 10.0, 0)
    directions = [p.grad / p.grad.norm() for p in parameters]
    before = clip_gradients(parameters, 0.25)
    assert before > 0.25
    assert clip_gradients(parameters, 0.25) == pytest.approx(0.25)
    for parameter, direction in zip(parameters, directions, strict=True):
        torch.testing.assert_close(parameter.grad / parameter.grad.norm(), direction)


def test_clipping_without_gradients_or_with_one_tensor():
    assert clip_gradients([], 1.0) == 0.0
    assert clip_gradients([nn.Parameter(torch.ones(2))], 1.0) == 0.0
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3.0, 4.0])
    assert clip_gradients(parameter, 1.0) == 5.0
    torch.testing.assert_close(parameter.grad, torch.tensor([0.6, 0.8]))


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_clipping_leaves_gradients_without_a_finite_norm(bad):
    parameters = with_gradients([(2,), (3,)], 1.0, 0)
    parameters[0].grad[0] = bad
    before = [p.grad.clone() for p in parameters]
    assert not math.isfinite(clip_gradients(parameters, 0.1))
    for parameter, gradient in zip(parameters, before, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, equal_nan=True, rtol=0, atol=0)


# --- Muon -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(24, 24), (8, 40), (40, 8)])
def test_singular_values_come_near_one_and_directions_stay(shape):
    torch.manual_seed(0)
    g = torch.randn(shape)
    u, s, vt = torch.linalg.svd(g, full_matrices=False)
    mapped = u.T @ orthogonalise(g) @ vt.T  # diagonal where the directions stay
    found = mapped.diagonal()
    assert (mapped - found.diag()).abs().max() < 1e-4
    well_seen = found[s > 0.02 * s.norm()]  # five iterations lift the others part of the way
    assert well_seen.min() > 0.6
    assert well_seen.max() < 1.3


def test_no_gradient_gives_no_direction():
    assert torch.equal(orthogonalise(torch.zeros(3, 5)), torch.zeros(3, 5))


@pytest.mark.parametrize("shape", [(16, 16), (48, 16), (16, 64)])
def test_steps_are_those_of_torch(shape):
    torch.manual_seed(0)
    ours = nn.Parameter(torch.randn(shape))
    theirs = nn.Parameter(ours.detach().clone())
    settings = {"lr": 0.02, "weight_decay": 0.1}
    muon = Muon([{"params": [ours], "weight_decay": 0.1}], lr=0.02, hidden={ours: 1}, ratio=1.0, iterations=5)
    peer = torch.optim.Muon([theirs], **settings)
    for _ in range(5):
        ours.grad = torch.randn(shape)
        theirs.grad = ours.grad.clone()
        muon.step()
        peer.step()
    assert (ours - theirs).abs().max() < 0.01 * ours.abs().max()  # bfloat16 knows two to three digits


def test_queries_keys_and_values_are_matrices_of_their_own():
    torch.manual_seed(0)
    together = nn.Parameter(torch.randn(48, 16))
    apart = [nn.Parameter(part.clone()) for part in together.detach().chunk(3)]
    together.grad = torch.randn(48, 16)
    for part, gradient in zip(apart, together.grad.chunk(3), strict=True):
        part.grad = gradient.clone()
    Muon([together], lr=0.01, hidden={together: 3}).step()
    Muon(apart, lr=0.01, hidden=dict.fromkeys(apart, 1)).step()
    assert torch.allclose(together, torch.cat(apart), atol=1e-6)


def test_all_but_hidden_matrices_are_left_to_adamw():
    torch.manual_seed(0)
    model = GPT(SHAPE)
    muon = Muon(model.parameters(), lr=1e-3, hidden=hidden_matrices(model.stack))
    twin = GPT(SHAPE)
    twin.load_state_dict(model.state_dict())
    adamw = torch.optim.AdamW(twin.parameters(), lr=1e-3, betas=(0.9, 0.99))
    for network, optimizer in ((model, muon), (twin, adamw)):
        for parameter in network.parameters():
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    for (name, one), two in zip(model.named_parameters(), twin.parameters(), strict=True):
        same = torch.allclose(one, two, atol=1e-6)
        assert same != (name.startswith("stack") and one.dim() == 2), name


def test_a_run_that_was_cut_goes_on(tmp_path):
    ids = torch.randint(11, (200,), generator=torch.Generator().manual_seed(0))

    def train(steps_before_cut: int | None) -> dict:
        torch.manual_seed(0)
        model, calls = GPT(SHAPE), 0
        draw = windows(ids, 4, 8)

        def batches(generator):
            nonlocal calls
            calls += 1
            if steps_before_cut is not None and calls > steps_before_cut + 2:  # the checkpoint draws two to compare
                raise KeyboardInterrupt
            return draw(generator)

        fit(
            model, batches, steps=8, lr=1e-3, optimizer=partial(Muon, hidden=hidden_matrices(model.stack)),
            checkpoint=tmp_path / "run.checkpoint", checkpoint_every=2, progress=False,
        )  # fmt: skip
        return model.state_dict()

    with pytest.raises(KeyboardInterrupt):
        train(5)
    resumed = train(None)
    (tmp_path / "run.checkpoint").unlink()
    whole = train(None)
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)
