"""fit(), clipping, schedules, checkpoints: training.py and checkpoints.py."""

import errno
import io
import math
import os
import random
import re
import subprocess
import sys
import threading
import warnings
from copy import deepcopy
from functools import partial
from pathlib import Path

import nbclient
import nbformat
import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from course_lib import checkpoints, runtime, training
from course_lib.bars import progress_bar
from course_lib.training import (
    TrainingDiverged,
    autocast_dtype,
    clip_gradients,
    constant,
    cosine,
    fit,
    inverse_sqrt,
    linear,
    linear_warmup,
)

ROOT = Path(__file__).parents[2]
VOCABULARY = 12


@pytest.fixture(autouse=True)
def one_thread():
    with runtime.threads(1):
        yield


class Net(nn.Module):
    """Dropout, a buffer that training changes, a tied weight, and Python's random: all that a resume could lose."""

    def __init__(self, width=8, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.embed = nn.Embedding(VOCABULARY, width)
        self.mix = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(width, VOCABULARY)
        self.out.weight = self.embed.weight

    def forward(self, x):
        h = self.drop(self.mix(self.embed(x)).tanh())
        if self.training and random.random() < 0.5:
            h = h * 0.9
        return self.out(self.norm(h.transpose(1, 2)).transpose(1, 2))


def batches(generator):
    x = torch.randint(VOCABULARY, (4, 6), generator=generator)
    return x, (x + 1) % VOCABULARY


def train(model, *, steps=12, lr=1e-2, **options):
    return fit(model, batches, steps=steps, lr=lr, progress=False, **options)


def weights(model):
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


class Killed(BaseException):
    """Stands for the end of the process where a real one is not needed."""


def interrupt_after(count):
    """Batches that stop the run when batch ``count`` + 1 is drawn, counted from the start of the run."""
    calls = -2  # two draws for the checksum of the first batch

    def stopping(generator):
        nonlocal calls
        calls += 1
        if calls > count:
            raise Killed
        return batches(generator)

    return stopping


# --- the loop -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [None, 0.5])
def test_equals_a_loop_written_by_hand(clip):
    ours, theirs = Net(), Net()
    history = train(ours, clip=clip, weight_decay=0.1, schedule=cosine, seed=3)

    generator = runtime.seed(3)
    decayed = [p for p in theirs.parameters() if p.dim() >= 2]
    others = [p for p in theirs.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=1e-2, fused=True
    )
    losses = []
    for step in range(12):
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * cosine(step, 12)
        x, y = batches(generator)
        loss = nn.functional.cross_entropy(theirs(x).view(-1, VOCABULARY), y.view(-1))
        optimizer.zero_grad()
        loss.backward()
        if clip:
            clip_gradients(theirs.parameters(), clip)
        optimizer.step()
        losses.append(loss.item())

    assert same(weights(ours), weights(theirs))
    assert history.loss.tolist() == losses


def test_it_learns_and_the_history_tells():
    history = train(Net(), steps=150, lr=3e-2, evaluate=lambda model: 1.5)
    assert history.loss[-1] < 0.5 * history.loss[0]
    assert history.steps.tolist() == list(range(1, 151))
    assert history.tokens.tolist() == [24 * step for step in range(1, 151)]
    assert (np.diff(history.seconds) > 0).all()
    assert history.gradient_norm.shape == (150,)
    assert (history.gradient_norm > 0).all()
    assert history.evaluation_steps.tolist() == list(range(15, 151, 15))
    assert history.evaluations.tolist() == [1.5] * 10
    assert re.fullmatch(r"History\(150 steps, loss \S+ → \S+, 3,600 tokens, \S+ s\)", repr(history))


def test_evaluations_by_name_and_at_the_end():
    history = train(Net(), steps=7, evaluate=lambda model: {"a": 1, "b": torch.tensor(2.0)}, evaluate_every=3)
    assert history.evaluation_steps.tolist() == [3, 6, 7]
    assert history.evaluations["a"].tolist() == [1, 1, 1]
    assert history.evaluations["b"].tolist() == [2, 2, 2]


def test_evaluation_does_not_change_training():
    plain, watched = Net(), Net()
    train(plain)

    def evaluate(model):
        assert not model.training
        assert not model.drop.training
        assert not torch.is_grad_enabled()
        random.random()
        torch.manual_seed(99)
        return model(torch.zeros(2, 3, dtype=torch.long)).mean() + torch.rand(())

    train(watched, evaluate=evaluate, evaluate_every=1)
    assert same(weights(plain), weights(watched))


def test_leaves_randomness_and_mode_as_they_were():
    model = Net().eval()
    model.mix.train()
    torch.manual_seed(5)
    random.seed(5)
    expected = torch.Generator().manual_seed(5).get_state()
    train(model)
    assert torch.equal(torch.get_rng_state(), expected)
    assert random.getstate() == random.Random(5).getstate()
    assert [model.training, model.mix.training, model.drop.training] == [False, True, False]


def test_the_seed_alone_decides():
    a, b, c = Net(), Net(), Net()
    torch.manual_seed(1)
    train(a, seed=7)
    torch.manual_seed(2)
    train(b, seed=7)
    train(c, seed=8)
    assert same(weights(a), weights(b))
    assert not same(weights(a), weights(c))


def test_frozen_parameters_stay():
    model = Net()
    model.mix.requires_grad_(False)
    before = weights(model)
    train(model)
    assert torch.equal(before["mix.weight"], model.mix.weight)
    assert not torch.equal(before["embed.weight"], model.embed.weight)


def test_weight_decay_acts_on_matrices_only():
    model = nn.Linear(3, 3)
    nn.init.ones_(model.weight)
    nn.init.ones_(model.bias)

    def no_gradient(model, inputs, targets):
        return 0 * model(inputs).sum()

    fit(
        model,
        lambda g: (torch.ones(1, 3), torch.ones(1)),
        steps=1,
        lr=0.1,
        weight_decay=0.5,
        loss=no_gradient,
        progress=False,
    )
    assert torch.allclose(model.weight, torch.tensor(1 - 0.1 * 0.5))
    assert torch.equal(model.bias, torch.ones(3))


def test_tuples_of_inputs_and_ignored_targets():
    class Pair(Net):
        def forward(self, a, b):
            return super().forward(a) + super().forward(b)

    def pairs(generator):
        x, y = batches(generator)
        return (x, x), y.masked_fill(torch.arange(6) > 3, -100)

    history = fit(Pair(), pairs, steps=3, lr=1e-2, progress=False)
    assert history.tokens.tolist() == [16, 32, 48]


def test_nested_batches_reach_the_loss():
    def nested(generator):
        x, y = batches(generator)
        return {"tokens": [x]}, (y, None)

    def loss(model, inputs, targets):
        return training.cross_entropy(model, inputs["tokens"][0], targets[0])

    a, b = Net(), Net()
    fit(a, nested, steps=4, lr=1e-2, loss=loss, progress=False)
    train(b, steps=4)
    assert same(weights(a), weights(b))


def test_batches_are_moved_to_the_model():
    moved = training._move(({"x": torch.ones(2)}, [torch.ones(1), "text"]), torch.device("meta"))
    assert moved[0]["x"].is_meta
    assert moved[1][0].is_meta
    assert moved[1][1] == "text"


def test_divergence_stops_with_the_history():
    model = nn.Linear(4, 4, bias=False)

    def explode(model, inputs, targets):
        return model(inputs).pow(2).sum()

    with pytest.raises(TrainingDiverged, match=r"Step \d+ \(lr 1e\+03\): .*lower lr or clip") as caught:
        fit(
            model,
            lambda g: (torch.randn(8, 4, generator=g), torch.ones(8)),
            steps=100,
            lr=1e3,
            loss=explode,
            clip=None,
            optimizer=torch.optim.SGD,
            progress=False,
        )
    history = caught.value.history
    assert 2 < len(history.loss) < 100
    assert np.isfinite(history.loss).all()
    assert history.loss[-1] > 1e6 * history.loss[0]


def test_divergence_in_the_first_step():
    with pytest.raises(TrainingDiverged) as caught:
        train(Net(), loss=lambda model, x, y: model(x).sum() * math.nan)
    assert repr(caught.value.history) == "History(no steps)"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"steps": 0}, "steps should be a whole number of at least 1; it is 0."),
        ({"steps": 2.5}, "steps should be a whole number of at least 1; it is 2.5."),
        ({"lr": 0}, "lr should be a positive number; it is 0."),
        ({"lr": math.nan}, "lr should be a positive number; it is nan."),
        ({"clip": 0}, "clip should be a positive number; it is 0."),
        ({"evaluate_every": 0}, "evaluate_every should be a whole number of at least 1; it is 0."),
        ({"checkpoint_every": -1}, "checkpoint_every should be a whole number of at least 1; it is -1."),
        ({"checkpoint": ROOT}, f"checkpoint should name a file; {ROOT} is a folder."),
    ],
)
def test_bad_settings(options, sentence):
    model = Net()
    before = weights(model)
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        train(model, **options)
    assert same(before, weights(model))


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        ((torch.zeros(0, 3).long(), torch.zeros(0, 3).long()), "The batch of step 1 is empty"),
        ((torch.zeros(2, 3).long(), torch.full((2, 3), -100)), "The batch of step 1 is empty"),
        ((None, None), "The batch of step 1 is empty"),
        (torch.zeros(3, 3).long(), r"should return \(inputs, targets\); it returned Tensor"),
        (
            (torch.zeros(2, 3).long(), torch.zeros(2, 4).long()),
            r"logits of shape \(2, 3, 12\), so the targets should have shape \(2, 3\); they have \(2, 4\)",
        ),
    ],
)
def test_bad_batches(batch, sentence):
    model = Net()
    parameters = [p.clone() for p in model.parameters()]
    with pytest.raises(ValueError, match=sentence):
        fit(model, lambda generator: batch, steps=2, lr=1e-2, progress=False)
    assert all(torch.equal(a, b) for a, b in zip(parameters, model.parameters(), strict=True))


def test_nothing_to_train():
    with pytest.raises(ValueError, match="no trainable parameters"):
        train(Net().requires_grad_(False))
    with pytest.raises(ValueError, match="no trainable parameters"):
        train(nn.Tanh())


# --- mixed precision ------------------------------------------------------------------------------------------------


def test_precision_is_chosen_by_device(monkeypatch):
    cpu, cuda, mps = (torch.device(name) for name in ("cpu", "cuda", "mps"))
    assert autocast_dtype(cpu) is None
    assert autocast_dtype(mps) is None
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    assert autocast_dtype(cuda) is torch.bfloat16
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: False)
    assert autocast_dtype(cuda) is torch.float16


def watch_autocast(seen):
    def loss(model, inputs, targets):
        seen.append(torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None)
        return training.cross_entropy(model, inputs, targets)

    return loss


def test_no_autocast_on_the_cpu():
    seen = []
    train(Net(), steps=2, loss=watch_autocast(seen))
    assert seen == [None, None]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_mixed_precision_trains_and_resumes(monkeypatch, tmp_path, dtype):
    # the branches of a GPU, on the CPU: autocast and the scaler work there too, only slowly
    monkeypatch.setattr(training, "autocast_dtype", lambda device: dtype)
    seen = []
    whole, resumed = Net(), Net()
    history = train(whole, steps=8, loss=watch_autocast(seen))
    assert seen == [dtype] * 8
    assert history.loss[-1] < history.loss[0]
    assert whole.mix.weight.dtype is torch.float32

    options = {"steps": 8, "lr": 1e-2, "progress": False, "checkpoint": tmp_path / "run", "checkpoint_every": 3}
    with pytest.raises(Killed):
        fit(resumed, interrupt_after(5), **options)
    resumed = Net(seed=1)
    fit(resumed, batches, **options)
    assert same(weights(whole), weights(resumed))

    seen.clear()
    train(Net(), steps=1, loss=watch_autocast(seen), mixed_precision=False)
    assert seen == [None]


def test_float16_gradients_are_unscaled_before_clipping(monkeypatch):
    exact = train(Net(), steps=4).gradient_norm
    monkeypatch.setattr(training, "autocast_dtype", lambda device: torch.float16)
    norms = train(Net(), steps=4).gradient_norm  # the first is inf until the scaler has found its scale
    assert norms[-1] == pytest.approx(exact[-1], rel=0.8)


def test_float16_skips_a_step_that_overflows(monkeypatch):
    monkeypatch.setattr(training, "autocast_dtype", lambda device: torch.float16)
    model = nn.Linear(2, 2)
    before = weights(model)
    huge = 1e35  # times the scaler's 65536: beyond float32

    def loss(model, inputs, targets):
        return model(inputs).float().mean() * huge

    history = fit(model, lambda g: (torch.ones(1, 2), torch.ones(1)), steps=1, lr=0.1, loss=loss, progress=False)
    assert not math.isfinite(history.gradient_norm[0])
    assert same(before, weights(model))


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


# --- schedules ------------------------------------------------------------------------------------------------------


def test_schedules_at_their_corners():
    assert [constant(step, 5) for step in range(5)] == [1.0] * 5
    assert [linear_warmup(step, 10, 0.4) for step in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]
    assert [linear(step, 8, 0.5) for step in range(8)] == pytest.approx([0.25, 0.5, 0.75, 1, 0.8, 0.6, 0.4, 0.2])
    assert cosine(0, 100, 0.1) == pytest.approx(0.1)
    assert cosine(9, 100, 0.1) == pytest.approx(1.0)
    assert cosine(54, 99, 0.1, final=0.2) == pytest.approx(0.6)  # half-way down
    assert cosine(99, 100, 0.1, final=0.0) == pytest.approx(0, abs=1e-3)
    assert inverse_sqrt(9, 100, 0.1) == 1
    assert inverse_sqrt(39, 100, 0.1) == pytest.approx(0.5)


def test_inverse_sqrt_is_the_paper_s():
    width, warmup, steps = 512, 40, 400
    for step in range(steps):
        s = step + 1
        paper = width**-0.5 * min(s**-0.5, s * warmup**-1.5)
        assert (width * warmup) ** -0.5 * inverse_sqrt(step, steps, warmup / steps) == pytest.approx(paper)


@pytest.mark.parametrize("schedule", [constant, linear_warmup, linear, cosine, inverse_sqrt])
@pytest.mark.parametrize("steps", [1, 2, 3, 10, 997])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 1.0])
def test_schedules_rise_then_never_rise_again(schedule, steps, warmup):
    schedule = schedule if schedule is constant else partial(schedule, warmup=warmup)
    factors = np.array([schedule(step, steps) for step in range(steps)])
    peak = factors.argmax()
    assert (factors > 0).all()
    assert factors.max() == pytest.approx(1)
    assert (np.diff(factors[: peak + 1]) >= -1e-12).all()
    assert (np.diff(factors[peak:]) <= 1e-12).all()


# --- checkpoints ----------------------------------------------------------------------------------------------------

OPTIONS = {"schedule": cosine, "weight_decay": 0.1, "clip": 0.5, "checkpoint_every": 4, "evaluate_every": 3}


def evaluate(model):
    return model(torch.arange(6).view(1, 6)).mean()


@pytest.mark.parametrize("stop", [0, 1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("optimizer", [training.adamw, partial(torch.optim.SGD, momentum=0.9), torch.optim.Adagrad])
def test_a_stopped_run_ends_the_same(tmp_path, stop, optimizer):
    options = OPTIONS | {"evaluate": evaluate, "optimizer": optimizer}
    whole = Net()
    expected = train(whole, **options)
    path = tmp_path / "new folder" / "run.safetensors"
    with pytest.raises(Killed):
        fit(Net(), interrupt_after(stop), steps=12, lr=1e-2, progress=False, checkpoint=str(path), **options)
    # before the first checkpoint nothing is kept, so the call starts from the same weights; later any will do
    resumed = Net(seed=0 if stop < 4 else 1)
    history = train(resumed, checkpoint=path, **options)
    assert same(weights(whole), weights(resumed))
    assert history.loss.tolist() == expected.loss.tolist()
    assert history.gradient_norm.tolist() == expected.gradient_norm.tolist()
    assert history.tokens.tolist() == expected.tokens.tolist()
    assert history.evaluation_steps.tolist() == [3, 6, 9, 12]
    assert history.evaluations.tolist() == expected.evaluations.tolist()
    assert resumed.out.weight is resumed.embed.weight
    assert [file.name for file in path.parent.iterdir()] == ["run.safetensors"]


def test_a_finished_run_returns_at_once(tmp_path):
    first, second = Net(), Net(seed=1)
    expected = train(first, checkpoint=tmp_path / "run")
    written = (tmp_path / "run").read_bytes()

    def no_loss(*_):
        raise AssertionError("nothing is left to train")

    no_loss.__qualname__ = "cross_entropy"
    history = train(second, checkpoint=tmp_path / "run", loss=no_loss)
    assert same(weights(first), weights(second))
    assert history.loss.tolist() == expected.loss.tolist()
    assert history.seconds.tolist() == expected.seconds.tolist()
    assert (tmp_path / "run").read_bytes() == written


def test_a_checkpoint_does_not_change_training(tmp_path):
    a, b = Net(), Net()
    train(a)
    train(b, checkpoint=tmp_path / "run", checkpoint_every=1)
    assert same(weights(a), weights(b))


def test_numbers_of_numpy_will_do(tmp_path):
    for _ in range(2):
        train(Net(), lr=np.float64(0.01), seed=np.int64(3), clip=np.float32(0.3), checkpoint=tmp_path / "run")


def test_the_file_is_plain_safetensors(tmp_path):
    model = Net()
    train(model, checkpoint=tmp_path / "run")
    tensors = safetensors.torch.load_file(tmp_path / "run")
    assert torch.equal(tensors["model.embed.weight"], model.embed.weight)
    assert torch.equal(tensors["model.norm.running_mean"], model.norm.running_mean)
    assert "model.out.weight" not in tensors  # tied: once is enough
    assert torch.count_nonzero(tensors["optimizer.0.exp_avg"]) > 0


@pytest.mark.parametrize(
    ("changed", "key"),
    [
        ({"steps": 13}, "steps is 12 there and 13 here"),
        ({"lr": 2e-2}, "lr is 0.01 there and 0.02 here"),
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"clip": None}, "clip is 1.0 there and None here"),
        ({"weight_decay": 0.1}, "weight_decay is 0.0 there and 0.1 here"),
        ({"schedule": cosine}, "schedule is "),
        ({"optimizer": torch.optim.SGD}, "optimizer is AdamW"),
        ({"optimizer": partial(training.adamw, betas=(0.9, 0.98))}, "optimizer is AdamW"),
        ({"loss": lambda model, x, y: model(x).mean()}, "loss is cross_entropy there"),
    ],
)
def test_other_settings_are_refused(tmp_path, changed, key):
    train(Net(), checkpoint=tmp_path / "run")
    written = (tmp_path / "run").read_bytes()
    model = Net(seed=1)
    before = weights(model)
    with pytest.raises(ValueError, match=re.escape(key)) as caught:
        train(model, checkpoint=tmp_path / "run", **changed)
    assert str(caught.value).endswith("delete it or name another file.")
    assert "\n" not in str(caught.value)
    assert same(before, weights(model))
    assert (tmp_path / "run").read_bytes() == written


def test_other_models_and_data_are_refused(tmp_path):
    train(Net(), checkpoint=tmp_path / "run")
    with pytest.raises(
        ValueError, match=r"embed.weight is \(12, 8\) torch.float32 trained there and \(12, 9\) torch.float32 trained"
    ):
        train(Net(width=9), checkpoint=tmp_path / "run")
    frozen = Net()
    frozen.mix.requires_grad_(False)
    with pytest.raises(ValueError, match=r"mix\.weight is"):
        train(frozen, checkpoint=tmp_path / "run")
    untied = Net()
    untied.out.weight = nn.Parameter(untied.out.weight.detach().clone())
    with pytest.raises(ValueError, match=r"out\.weight is absent there"):
        train(untied, checkpoint=tmp_path / "run")
    with pytest.raises(ValueError, match="first batch is"):
        fit(
            Net(),
            lambda g: tuple(part[:2] for part in batches(g)),
            steps=12,
            lr=1e-2,
            checkpoint=tmp_path / "run",
            progress=False,
        )


def test_batches_that_do_not_follow_from_the_generator_are_refused(tmp_path):
    stream = iter(range(100))
    with pytest.raises(ValueError, match="two different batches for one seed"):
        fit(
            Net(),
            lambda g: (torch.full((2, 3), next(stream)), torch.zeros(2, 3).long()),
            steps=2,
            lr=1e-2,
            checkpoint=tmp_path / "run",
            progress=False,
        )
    assert not list(tmp_path.iterdir())


def flip(data, position):
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"not a checkpoint",
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: b"\xff" * 16 + data[16:],
        lambda data: flip(data, len(data) - 100),
        lambda data: flip(data, data.index(b"gradient_norm") + 30),
    ],
)
def test_a_damaged_file_is_set_aside(tmp_path, damage):
    path = tmp_path / "run.safetensors"
    whole = Net()
    train(whole, checkpoint=path)
    damaged = damage(path.read_bytes())
    for number in (1, 2):
        path.write_bytes(damaged)
        again = Net()
        with pytest.warns(UserWarning, match=f"is damaged .*: kept as run.damaged-{number}.safetensors") as caught:
            train(again, checkpoint=path)
        assert len(caught) == 1
        assert "\n" not in str(caught[0].message)
        assert same(weights(whole), weights(again))
        assert (tmp_path / f"run.damaged-{number}.safetensors").read_bytes() == damaged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(Net(), checkpoint=path)


def test_a_file_of_weights_is_not_touched(tmp_path):
    safetensors.torch.save_file({"x": torch.ones(2)}, tmp_path / "model.safetensors")
    with pytest.raises(TypeError, match="not a checkpoint of a training run"):
        train(Net(), checkpoint=tmp_path / "model.safetensors")
    assert (tmp_path / "model.safetensors").exists()


class FullDisk(io.FileIO):
    """A file on a disk that is full after 1000 bytes."""

    def write(self, data):
        super().write(data[:1000])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("place", ["open", "write", "fsync", "replace"])
def test_a_full_disk_leaves_the_checkpoint_of_before(tmp_path, monkeypatch, place):
    path = tmp_path / "run.safetensors"
    with pytest.raises(Killed):
        fit(Net(), interrupt_after(6), steps=12, lr=1e-2, progress=False, checkpoint=path, checkpoint_every=4)
    written = path.read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        if place == "open":
            patch.setattr(checkpoints, "open", full, raising=False)
        elif place == "write":
            patch.setattr(checkpoints, "open", FullDisk, raising=False)
        else:
            patch.setattr(os, place, full)
        with pytest.raises(OSError, match="Checkpoint not written, the one before is intact: No space left") as caught:
            train(Net(), checkpoint=path, checkpoint_every=4)
    assert caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == written
    assert [file.name for file in tmp_path.iterdir()] == [path.name]

    resumed, whole = Net(seed=1), Net()
    train(resumed, checkpoint=path, checkpoint_every=4)
    train(whole)
    assert same(weights(resumed), weights(whole))


KILLS = """
import hashlib, os, random, signal, sys, time
sys.path[:0] = [{root!r}, {tests!r}]
import torch
import torch._dynamo  # the optimiser imports it in its first step: once here is quicker than in each child
torch.set_num_threads(1)
from test_training import Net, OPTIONS, evaluate, train

STEPS = 100

def run(path, before=lambda: None):
    "Train in a process of its own; its id."
    if child := os.fork():
        return child
    before()
    model = Net()
    history = train(model, steps=STEPS, checkpoint=path, evaluate=evaluate, **OPTIONS)
    digest = hashlib.sha256(b"".join(t.numpy().tobytes() for t in model.state_dict().values()))
    digest.update(repr([list(history.loss), list(history.evaluations), list(history.tokens)]).encode())
    open(str(path) + ".digest", "w").write(digest.hexdigest())
    os._exit(0)

def wait(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def kill_in_fsync():
    "Kill the process while its third file lies written but not yet renamed."
    calls = iter(range(100))
    os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGKILL) if next(calls) == 2 else None

start = time.perf_counter()
assert wait(run("whole")) == 0
duration = time.perf_counter() - start

killed = 0
assert wait(run("killed", kill_in_fsync)) == -signal.SIGKILL and os.path.exists(".killed.part")
clock = random.Random({seed})
for _ in range(6):
    child = run("killed")
    time.sleep(clock.uniform(0, duration / 3))
    os.kill(child, signal.SIGKILL)
    killed += wait(child) == -signal.SIGKILL
assert wait(run("killed")) == 0
same = open("whole.digest").read() == open("killed.digest").read()
print(killed, same, sorted(os.listdir(".")))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_again_and_again_ends_with_the_same_bytes(tmp_path):
    script = KILLS.format(root=str(ROOT), tests=str(Path(__file__).parent), seed=random.randrange(10**6))
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    killed, same, files = done.stdout.split(" ", 2)
    assert int(killed) >= 2
    assert same == "True"
    assert files.strip() == "['killed', 'killed.digest', 'whole', 'whole.digest']"


# --- progress -------------------------------------------------------------------------------------------------------


def test_no_text_where_there_is_no_terminal(capfd):
    fit(Net(), batches, steps=3, lr=1e-2)
    assert capfd.readouterr() == ("", "")


def test_a_bar_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress_bar(10) as bar:
        bar.set_postfix_str("loss 1.234, 5 tokens/s", refresh=False)
        bar.update(10)
        bar.refresh()
    assert "10/10" in (shown := capsys.readouterr().err)
    assert "loss 1.234, 5 tokens/s" in shown


CELL = """
from course_lib.bars import progress_bar

print("before")
with progress_bar(5) as bar:
    for _ in range(5):
        bar.set_postfix_str("loss 1.234")
        bar.update()
print("after")
"""


def test_in_a_notebook_the_bar_is_seen_and_nothing_is_left():
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    seen = []

    class Client(nbclient.NotebookClient):
        def process_message(self, message, cell, index):
            seen.append(str(message["content"].get("data", {}).get("text/html")))
            return super().process_message(message, cell, index)

    Client(notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    before, display, after = notebook.cells[0].outputs
    assert (before.text, display.data, after.text) == ("before\n", {}, "after\n")
    assert any('<progress value="5" max="5"></progress>' in html and "loss 1.234" in html for html in seen)


def test_side_by_side_is_at_the_same_time_and_changes_nothing(monkeypatch):
    monkeypatch.setattr(runtime, "device", lambda: torch.device("cpu"))
    x, y = torch.randn(32, 4), torch.randint(2, (32,))

    models = {"one": nn.Linear(4, 2), "two": nn.Linear(4, 2)}

    def job(model, barrier):
        barrier.wait(timeout=20)  # goes on when both are here
        threads.append(torch.get_num_threads())
        return training.fit(model, lambda g: (x, y), steps=3, lr=0.1, progress=False).loss.tolist()

    with runtime.threads(2):
        threads, both = [], threading.Barrier(2)
        before = torch.get_rng_state()
        found = training.side_by_side(job, {name: (deepcopy(model), both) for name, model in models.items()})
        assert torch.equal(torch.get_rng_state(), before)
        assert threads == [1, 1]
        assert torch.get_num_threads() == 2
    with runtime.threads(1):  # one after the other
        alone = training.side_by_side(job, {name: (model, threading.Barrier(1)) for name, model in models.items()})
    assert list(found.items()) == list(alone.items())


def test_side_by_side_passes_an_error_on(monkeypatch):
    monkeypatch.setattr(runtime, "device", lambda: torch.device("cpu"))

    def job(number):
        if number == 2:
            raise ValueError("two does not work")

    for threads in (1, 2):
        with runtime.threads(threads), pytest.raises(ValueError, match="two does not work"):
            training.side_by_side(job, {"one": (1,), "two": (2,)})
