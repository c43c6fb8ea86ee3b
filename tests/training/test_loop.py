"""fit: the loop, mixed precision, two runs side by side."""

import math
import random
import re
import threading
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from small_run import VOCABULARY, Killed, Net, batches, interrupt_after, same, train, weights
from torch import nn

from course_lib import runtime, training
from course_lib.training import (
    TrainingDiverged,
    autocast_dtype,
    clip_gradients,
    cosine,
    fit,
    loop,
)

ROOT = Path(__file__).parents[2]


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
    moved = loop._move(({"x": torch.ones(2)}, [torch.ones(1), "text"]), torch.device("meta"))
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
def test_mixed_precision_trains_and_resumes(monkeypatch, tmp_path, updates, dtype):
    # the branches of a GPU, on the CPU: autocast and the scaler work there too, only slowly
    monkeypatch.setattr(loop, "autocast_dtype", lambda device: dtype)
    seen = []
    whole, resumed = Net(), Net()
    history = train(whole, steps=8, loss=watch_autocast(seen))
    assert seen == [dtype] * 8
    assert history.loss[-1] < history.loss[0]
    assert whole.mix.weight.dtype is torch.float32

    options = {"steps": 8, "lr": 1e-2, "progress": False, "checkpoint": tmp_path / "run", "checkpoint_every": 3}
    with pytest.raises(Killed):
        fit(resumed, interrupt_after(5), **options)
    resumed = Net()
    updates.clear()
    fit(resumed, batches, **options)
    assert same(weights(whole), weights(resumed))
    assert len(updates) == 5

    seen.clear()
    train(Net(), steps=1, loss=watch_autocast(seen), mixed_precision=False)
    assert seen == [None]


def test_float16_gradients_are_unscaled_before_clipping(monkeypatch):
    exact = train(Net(), steps=4).gradient_norm
    monkeypatch.setattr(loop, "autocast_dtype", lambda device: torch.float16)
    norms = train(Net(), steps=4).gradient_norm  # the first is inf until the scaler has found its scale
    assert norms[-1] == pytest.approx(exact[-1], rel=0.8)


def test_float16_skips_a_step_that_overflows(monkeypatch):
    monkeypatch.setattr(loop, "autocast_dtype", lambda device: torch.float16)
    model = nn.Linear(2, 2)
    before = weights(model)
    huge = 1e35  # times the scaler's 65536: beyond float32

    def loss(model, inputs, targets):
        return model(inputs).float().mean() * huge

    history = fit(model, lambda g: (torch.ones(1, 2), torch.ones(1)), steps=1, lr=0.1, loss=loss, progress=False)
    assert not math.isfinite(history.gradient_norm[0])
    assert same(before, weights(model))


# --- side by side ---------------------------------------------------------------------------------------------------


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
