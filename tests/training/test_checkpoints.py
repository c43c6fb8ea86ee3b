"""A run in one file, from which it goes on bit for bit."""

import errno
import io
import os
import random
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from small_run import OPTIONS, VOCABULARY, Killed, Net, batches, evaluate, interrupt_after, same, train, weights
from torch import nn

from course_lib import training
from course_lib.data.batches import (
    Examples,
    Pairs,
    mask_tokens,
    pad_rows,
    pair_batches,
    pair_inputs,
    windows,
    with_replacement,
)
from course_lib.lessons import bert_and_fine_tuning as lesson
from course_lib.training import checkpoints, cosine, fit
from course_lib.training.optimisers import Muon

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("stop", [0, 1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("optimizer", [training.adamw, partial(torch.optim.SGD, momentum=0.9), torch.optim.Adagrad])
def test_a_stopped_run_ends_the_same(tmp_path, updates, stop, optimizer):
    options = OPTIONS | {"evaluate": evaluate, "optimizer": optimizer}
    whole = Net()
    expected = train(whole, **options)
    path = tmp_path / "new folder" / "run.safetensors"
    with pytest.raises(Killed):
        fit(Net(), interrupt_after(stop), steps=12, lr=1e-2, progress=False, checkpoint=str(path), **options)
    resumed = Net()
    updates.clear()
    history = train(resumed, checkpoint=path, **options)
    assert len(updates) == 12 - stop // 4 * 4
    assert same(weights(whole), weights(resumed))
    assert history.loss.tolist() == expected.loss.tolist()
    assert history.gradient_norm.tolist() == expected.gradient_norm.tolist()
    assert history.tokens.tolist() == expected.tokens.tolist()
    assert history.evaluation_steps.tolist() == [3, 6, 9, 12]
    assert history.evaluations.tolist() == expected.evaluations.tolist()
    assert resumed.out.weight is resumed.embed.weight
    assert [file.name for file in path.parent.iterdir()] == ["run.safetensors"]


def test_a_finished_run_returns_at_once(tmp_path, monkeypatch):
    first, second = Net(), Net()
    expected = train(first, checkpoint=tmp_path / "run")
    written = (tmp_path / "run").read_bytes()
    monkeypatch.setattr(nn.functional, "cross_entropy", None)  # nothing is left to train
    history = train(second, checkpoint=tmp_path / "run")
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
        ({"steps": 13}, "steps, schedule"),
        ({"lr": 2e-2}, "lr"),
        ({"seed": 1}, "seed"),
        ({"clip": None}, "clip"),
        ({"weight_decay": 0.1}, "weight_decay"),
        ({"schedule": cosine}, "schedule"),
        ({"schedule": lambda step, steps: 0.99 if step == 11 else 1.0}, "schedule"),
        ({"optimizer": torch.optim.SGD}, "optimizer"),
        ({"optimizer": partial(training.adamw, betas=(0.9, 0.98))}, "optimizer"),
        ({"optimizer": partial(Muon, hidden={})}, "optimizer"),
        ({"loss": lambda model, x, y: model(x).square().mean()}, "loss"),
        ({"evaluate": evaluate}, "evaluate"),
        ({"evaluate_every": 5}, "evaluate_every"),
    ],
)
def test_another_call_is_a_new_run(tmp_path, capsys, changed, key):
    train(Net(), checkpoint=tmp_path / "run")
    assert capsys.readouterr().out == ""
    anew, alone = Net(), Net()
    train(anew, checkpoint=tmp_path / "run", **changed)
    assert capsys.readouterr().out == f"run is of another run (other {key}): training starts anew.\n"
    train(alone, **changed)
    assert same(weights(anew), weights(alone))
    train(anew, checkpoint=tmp_path / "run", **changed)
    assert capsys.readouterr().out == ""  # the file is of this run now


def frozen(model):
    model.mix.requires_grad_(False)
    return model


def untied(model):
    model.out.weight = nn.Parameter(model.out.weight.detach().clone())
    return model


def with_more_dropout(model):
    model.drop.p = 0.3
    return model


def listened_to(model):
    model.mix.register_forward_hook(lambda module, inputs, output: output / 2)
    return model


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda model: Net(width=9), "model, weights"),
        (frozen, "model"),
        (untied, "model, weights"),
        (with_more_dropout, "model"),
        (listened_to, "model"),
    ],
)
def test_another_model_is_a_new_run(tmp_path, capsys, change, key):
    train(Net(), checkpoint=tmp_path / "run")
    anew, alone = change(Net()), change(Net())
    train(anew, checkpoint=tmp_path / "run")
    assert capsys.readouterr().out == f"run is of another run (other {key}): training starts anew.\n"
    train(alone)
    assert same(weights(anew), weights(alone))


def other_seed(model):
    return Net(seed=1)


def other_buffer(model):
    model.norm.running_var.fill_(2.0)
    return model


@pytest.mark.parametrize("change", [other_seed, other_buffer])
def test_other_weights_to_begin_with_are_a_new_run(tmp_path, capsys, change):
    train(Net(), checkpoint=tmp_path / "run")
    anew, alone = change(Net()), change(Net())
    train(anew, checkpoint=tmp_path / "run")
    assert capsys.readouterr().out == "run is of another run (other weights): training starts anew.\n"
    train(alone)
    assert same(weights(anew), weights(alone))


def test_a_model_that_was_trained_goes_on_with_its_own_runs(tmp_path, capsys):
    """A cell that trains a model made in another one, run again alone, also after it was stopped."""
    whole, model = Net(), Net()
    train(whole)
    first = weights(whole)
    train(whole, seed=1)
    with pytest.raises(Killed):
        fit(model, interrupt_after(9), steps=12, lr=1e-2, progress=False, checkpoint=tmp_path / "a", checkpoint_every=4)
    for _ in range(2):
        train(model, checkpoint=tmp_path / "a")
        assert same(weights(model), first)
        for _ in range(2):
            train(model, seed=1, checkpoint=tmp_path / "b")
            assert same(weights(model), weights(whole))
    assert capsys.readouterr().out == ""
    nn.init.zeros_(model.mix.weight)
    train(model, checkpoint=tmp_path / "a")
    assert capsys.readouterr().out == "a is of another run (other weights): training starts anew.\n"


@pytest.mark.parametrize("first_other", [1, 7, 12])
def test_another_batch_behind_is_a_new_run(tmp_path, capsys, first_other):
    """The data of any step that is behind; steps that are still ahead take what the call gives now."""
    train(Net(), checkpoint=tmp_path / "run")

    def changed():
        drawn, of_run = 0, None

        def draw(generator):
            nonlocal drawn, of_run
            drawn, of_run = drawn + 1 if generator is of_run else 1, generator
            x, y = batches(generator)
            return (x, y) if drawn < first_other else (x.flip(0), y)

        return draw

    anew, alone = Net(), Net()
    fit(anew, changed(), steps=12, lr=1e-2, checkpoint=tmp_path / "run", progress=False)
    assert capsys.readouterr().out == "run is of another run (other batches): training starts anew.\n"
    fit(alone, changed(), steps=12, lr=1e-2, progress=False)
    assert same(weights(anew), weights(alone))


# Lesson 07's way: a loss in the cell calls a piece of the student's own with a number.
CELL = """
EPSILON = 0.1
KINDS = {"word": 1.0, "mark": 0.5}

def smooth(log_p):
    return log_p.mean(dim=-1)  # over all classes

class Scale:
    factor = 2.0

    def __call__(self, x):
        return x * self.factor

def smoothed_loss(logits, targets, epsilon=0.2):
    log_p = logits.log_softmax(dim=-1)
    right = log_p.gather(-1, targets[..., None])[..., 0]
    return -((1 - epsilon) * right + epsilon * smooth(log_p)).mean()

def closed_over(weight):
    return lambda value: weight * value

scale, halve = Scale(), closed_over(0.5)

def loss(model, inputs, targets):
    logits, kinds = model(inputs), sum([KINDS[name] for name in ("word", "mark")])
    total = kinds * smoothed_loss(logits, targets, epsilon=0.1) + EPSILON * smoothed_loss(logits, targets)
    return halve(scale(total))
"""


def run_cell(cell, model, path=None):
    namespace = {"__name__": "__main__"}
    exec(cell, namespace)
    return train(model, loss=namespace["loss"], checkpoint=path)


@pytest.mark.parametrize(
    ("there", "now"),
    [
        ("epsilon=0.1)", "epsilon=0.0)"),  # lesson 07's own "Try it"
        ("epsilon=0.2)", "epsilon=0.3)"),
        ("EPSILON = 0.1", "EPSILON = 0.4"),
        ('"mark": 0.5', '"mark": 0.6'),
        ('("word", "mark")', '("mark", "mark")'),
        ("log_p.mean(dim=-1)", "log_p.mean(dim=-1).mean()"),
        ("log_p.mean(dim=-1)", "log_p.amax(dim=-1)"),
        ("factor = 2.0", "factor = 3.0"),
        ("x * self.factor", "x + self.factor * x"),
        ("closed_over(0.5)", "closed_over(0.25)"),
        ("weight * value", "weight + value * 2"),
    ],
)
def test_whatever_is_changed_in_the_cell_is_a_new_run(tmp_path, capsys, updates, there, now):
    assert CELL.count(there) == 1
    run_cell(CELL, Net(), tmp_path / "run")
    anew, alone, again = Net(), Net(), Net()
    run_cell(CELL.replace(there, now), anew, tmp_path / "run")
    assert capsys.readouterr().out == "run is of another run (other loss): training starts anew.\n"
    run_cell(CELL.replace(there, now), alone)
    assert same(weights(anew), weights(alone))
    updates.clear()
    run_cell(CELL.replace(there, now), again, tmp_path / "run")
    assert same(weights(again), weights(alone))
    assert not updates


@pytest.mark.parametrize(
    ("there", "now"),
    [("  # over all classes", ""), ("EPSILON = 0.1", "\n\nother = 3\nEPSILON = 0.1"), ("right", "sure")],
)
def test_what_changes_nothing_in_the_cell_is_the_same_run(tmp_path, capsys, updates, there, now):
    first, second = Net(), Net()
    run_cell(CELL, first, tmp_path / "run")
    updates.clear()
    run_cell(CELL.replace(there, now), second, tmp_path / "run")
    assert same(weights(first), weights(second))
    assert not updates
    assert capsys.readouterr().out == ""


ROWS = [torch.arange(2, length) % 7 + 5 for length in (5, 11, 6, 8, 7, 10, 9, 13, 5, 12, 8)]  # no special tokens
WORDS = [["a", "b", "c", "d", "e"][: 2 + i % 4] for i in range(11)]


def examples(rows):
    return Examples(pad_rows(rows), torch.arange(len(rows)))


DRAWERS = {
    "windows": lambda: windows(torch.arange(100) % VOCABULARY, 4, 6),
    "with_replacement": lambda: with_replacement((torch.arange(11)[:, None],), torch.ones(11), torch.ones(11) > 0, 4),
    "examples": lambda: examples(ROWS).batches(2),
    "pair_batches": lambda: pair_batches(examples(ROWS), examples(ROWS[::-1]), 2),
    "pairs": lambda: Pairs(WORDS, WORDS[::-1]).batches(3),
    "blanks": lambda: lesson.pretraining_batches(ROWS, VOCABULARY, 4, mask_tokens, pair_inputs),
}


@pytest.mark.parametrize("name", DRAWERS)
@pytest.mark.parametrize("stop", [4, 7, 12, 19])
def test_whatever_draws_the_batches_a_stopped_run_ends_the_same(tmp_path, updates, name, stop):
    def loss(model, inputs, targets):
        return model(inputs[0] if isinstance(inputs, tuple) else inputs).square().mean()

    def killed(drawer):
        calls = iter(range(2 + stop))  # two for the seed's sake

        def draw(generator):
            if next(calls, None) is None:
                raise Killed
            return drawer(generator)

        return draw

    whole, resumed = Net(), Net()
    options = {"steps": 20, "lr": 1e-2, "loss": loss, "progress": False}
    fit(whole, DRAWERS[name](), **options)
    options |= {"checkpoint": tmp_path / "run", "checkpoint_every": 4}
    with pytest.raises(Killed):
        fit(resumed, killed(DRAWERS[name]()), **options)
    resumed = Net()
    updates.clear()
    fit(resumed, DRAWERS[name](), **options)
    assert same(weights(whole), weights(resumed))
    assert len(updates) == 20 - stop // 4 * 4


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
def test_a_full_disk_leaves_the_checkpoint_of_before(tmp_path, monkeypatch, updates, place):
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

    resumed, whole = Net(), Net()
    updates.clear()
    train(resumed, checkpoint=path, checkpoint_every=4)
    assert len(updates) == 8
    train(whole)
    assert same(weights(resumed), weights(whole))


KILLS = """
import hashlib, os, random, signal, sys
sys.path[:0] = [{root!r}, {tests!r}]
import torch
import torch._dynamo  # the optimiser imports it in its first step: once here is quicker than in each child
torch.set_num_threads(1)
from small_run import Net, OPTIONS, evaluate, train

STEPS = 100
CALLS = 80_000  # a third of those (and their returns) of the whole training

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

def kill_at_call(number):
    "Kill the process at this call of a function, Python's or C's: anywhere, but at the same place in each run."
    calls = iter(range(number))
    sys.setprofile(lambda *_: next(calls, None) is None and os.kill(os.getpid(), signal.SIGKILL))

assert wait(run("whole")) == 0

killed = 0
assert wait(run("killed", kill_in_fsync)) == -signal.SIGKILL and os.path.exists(".killed.part")
draw = random.Random({seed})
for number in draw.sample(range(CALLS), 6):
    killed += wait(run("killed", lambda: kill_at_call(number))) == -signal.SIGKILL
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
