"""Training: one loop for every model of the course.

    history = fit(model, batches, steps=500, lr=3e-3, schedule=cosine)

``batches(generator)`` draws one ``(inputs, targets)`` pair, and everything random in a run follows from ``seed``. So a
run that was killed and is started again with the same call and ``checkpoint`` ends with the same weights; a call that
was changed begins a new run.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_lib import runtime
from course_lib.data.batches import IGNORED
from course_lib.fast.linear import quickened
from course_lib.progress_bar import progress_bar
from course_lib.runtime import randomness_kept
from course_lib.training.checkpoints import Checkpoint, Draws
from course_lib.training.fingerprints import fingerprint
from course_lib.training.losses import cross_entropy
from course_lib.training.optimisers import adamw, clip_gradients
from course_lib.training.schedules import constant


def autocast_dtype(device: torch.device) -> torch.dtype | None:
    """The type for mixed precision: bfloat16 where a CUDA GPU has it, else float16 there; None (float32) elsewhere."""
    if device.type != "cuda":
        return None  # many CPUs run 16-bit arithmetic several times slower than 32-bit
    return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16


@dataclass(repr=False)
class History:
    """What happened in training, as arrays ready to plot. Entry i of the first five belongs to step i + 1."""

    steps: np.ndarray  # 1, 2, …
    loss: np.ndarray  # of the step's batch, before its update
    gradient_norm: np.ndarray  # before clipping
    seconds: np.ndarray  # so far, without evaluation and checkpoints
    tokens: np.ndarray  # targets so far, the ignored ones not counted
    evaluation_steps: np.ndarray
    evaluations: np.ndarray | dict[str, np.ndarray]  # a dict of arrays where evaluate returns a dict

    @classmethod
    def of(cls, log: dict[str, list]) -> "History":
        """The history of a log of Python lists."""
        columns = {name: np.array(values) for name, values in log.items()}
        if log["evaluations"] and isinstance(log["evaluations"][0], dict):
            columns["evaluations"] = {k: np.array([e[k] for e in log["evaluations"]]) for k in log["evaluations"][0]}
        return cls(steps=np.arange(1, len(log["loss"]) + 1), **columns)

    def __repr__(self) -> str:
        if not len(self.loss):
            return "History(no steps)"
        ends = f"loss {self.loss[0]:.3f} → {self.loss[-1]:.3f}"
        return f"History({len(self.loss)} steps, {ends}, {self.tokens[-1]:,} tokens, {self.seconds[-1]:.1f} s)"


class TrainingDiverged(RuntimeError):
    """The loss or the gradient is no longer a finite number; ``history`` holds what came before."""

    def __init__(self, message: str, history: History):
        super().__init__(message)
        self.history = history


def fit(
    model: nn.Module,
    batches: Callable[[torch.Generator], tuple],
    *,
    steps: int,
    lr: float,
    loss: Callable = cross_entropy,
    schedule: Callable[[int, int], float] = constant,
    optimizer: Callable = adamw,
    clip: float | None = 1.0,
    weight_decay: float = 0.0,
    seed: int = 0,
    evaluate: Callable[[nn.Module], float | dict[str, float]] | None = None,
    evaluate_every: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 500,
    mixed_precision: bool = True,
    progress: bool = True,
) -> History:
    """Train ``model`` in place for ``steps`` updates and return the history.

    - ``batches(generator) -> (inputs, targets)`` draws one batch with a CPU generator.
    - ``loss(model, inputs, targets) -> scalar``; ``schedule(step, steps)`` multiplies ``lr``.
    - ``optimizer(groups, lr=…)``: any class of ``torch.optim``. ``weight_decay`` acts on matrices, not on vectors
      (biases, gains of norms).
    - ``evaluate(model) -> number or dict of numbers`` runs in eval mode without gradients, every ``evaluate_every``
      steps (by default ten times) and at the end. Even if it draws random numbers, training goes on as without it.
    - ``checkpoint``: one file, written every ``checkpoint_every`` steps and at the end. If it is there and comes from
      the same call, the run goes on from it. Another model, other weights to begin with, another loss, schedule,
      optimizer, evaluation, number or batch begins a new run, and a line says so. Of functions and classes the code
      counts, with that of your own which they call and the values that they name (`fingerprint`).

    All randomness (batches, dropout) follows from ``seed``; the caller's generators and the model's mode are left as
    they were.
    """
    evaluate_every = max(1, steps // 10) if evaluate_every is None else evaluate_every
    _check_settings(steps, lr, clip, evaluate_every, checkpoint, checkpoint_every)
    trainable = [p for p in model.parameters() if p.requires_grad]
    if not trainable:
        raise ValueError("The model has no trainable parameters.")
    device = trainable[0].device
    dtype = autocast_dtype(device) if mixed_precision else None
    groups = [
        {"params": [p for p in trainable if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in trainable if p.dim() < 2], "weight_decay": 0.0},
    ]
    pieces = {"model": model, "loss": loss, "optimizer": optimizer, "evaluate": evaluate}
    codes = {name: fingerprint(piece) for name, piece in pieces.items()} if checkpoint is not None else {}
    optimizer = optimizer([group for group in groups if group["params"]], lr=lr)
    # float16 underflows on small gradients, so the loss is scaled up; for all other types the scaler does nothing
    scaler = torch.amp.GradScaler(device.type, enabled=dtype is torch.float16)
    log = {name: [] for name in ("loss", "gradient_norm", "seconds", "tokens", "evaluation_steps", "evaluations")}

    with randomness_kept(device), _mode_kept(model), quickened(model), contextlib.ExitStack() as at_the_end:
        draws = Draws(batches, seed, summed=checkpoint is not None)
        if checkpoint is not None:
            _make_sure_of_the_seed(draws)
            settings = {
                "steps": steps,
                "lr": lr,
                "seed": seed,
                "clip": clip,
                "weight_decay": weight_decay,
                "device": device.type,
                "precision": str(dtype),
                "schedule": fingerprint([f"{schedule(step, steps):.6g}" for step in range(steps)]),
                "evaluate_every": evaluate_every,
                **codes,
            }
            saved = Checkpoint(Path(checkpoint), settings, model, optimizer, scaler, draws, log)
            saved.restore()
            at_the_end.callback(saved.leave)
        model.train()
        done = len(log["loss"])
        seconds, tokens = (log["seconds"][-1], log["tokens"][-1]) if done else (0.0, 0)
        with progress_bar(steps, done, show=progress and done < steps) as bar:
            for step in range(done, steps):
                start = time.perf_counter()
                for group in optimizer.param_groups:
                    group["lr"] = lr * schedule(step, steps)
                inputs, targets, count = _draw(draws, step)
                inputs, targets = _move(inputs, device), _move(targets, device)
                optimizer.zero_grad()
                with torch.autocast(device.type, dtype, enabled=dtype is not None):
                    value = loss(model, inputs, targets)
                scaler.scale(value).backward()
                scaler.unscale_(optimizer)
                norm = clip_gradients(trainable, math.inf if clip is None else clip)
                value = value.item()
                # with float16 the scaler itself skips a step whose gradients overflowed
                if not math.isfinite(value) or not (math.isfinite(norm) or scaler.is_enabled()):
                    raise TrainingDiverged(
                        f"Step {step + 1} (lr {group['lr']:.2g}): the loss is {value:.3g} and the gradients' norm "
                        f"{norm:.3g}; the gradients exploded: lower lr or clip.",
                        History.of(log),
                    )
                scaler.step(optimizer)
                scaler.update()
                seconds, tokens = seconds + time.perf_counter() - start, tokens + count
                for name, entry in (("loss", value), ("gradient_norm", norm), ("seconds", seconds), ("tokens", tokens)):
                    log[name].append(entry)
                recent = log["loss"][-20:]
                bar.set_postfix_str(f"loss {sum(recent) / len(recent):.3f}, {tokens / seconds:,.0f} tokens/s", False)
                bar.update()

                last = step + 1 == steps
                if evaluate and (last or (step + 1) % evaluate_every == 0):
                    log["evaluation_steps"].append(step + 1)
                    log["evaluations"].append(_evaluate(model, evaluate, device))
                if checkpoint is not None and (last or (step + 1) % checkpoint_every == 0):
                    saved.save()
    return History.of(log)


def side_by_side(job: Callable, contestants: dict[str, tuple]) -> dict[str, Any]:
    """``job(*arguments)`` for each of the contestants, all at the same time, each with its share of the CPU's threads.

    Two small networks side by side take less time than one after the other with all threads for each: so short are
    their matrix products that the threads mostly wait. With a GPU, or too few threads, it is one after the other.
    A job may change its own model only, and draw from no generator but its own: no dropout.
    """
    share = torch.get_num_threads() // len(contestants)
    if share == 0 or runtime.device().type != "cpu":
        return {name: job(*arguments) for name, arguments in contestants.items()}

    def with_share(arguments: tuple) -> Any:
        torch.set_num_threads(share)  # of this Python thread
        return job(*arguments)

    with randomness_kept(runtime.device()), ThreadPoolExecutor(len(contestants)) as pool:
        return dict(zip(contestants, pool.map(with_share, contestants.values()), strict=True))


def _check_settings(steps, lr, clip, evaluate_every, checkpoint, checkpoint_every) -> None:
    for name, value in (("steps", steps), ("evaluate_every", evaluate_every), ("checkpoint_every", checkpoint_every)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"{name} should be a whole number of at least 1; it is {value!r}.")
    for name, value in (("lr", lr), ("clip", math.inf if clip is None else clip)):
        if not value > 0:
            raise ValueError(f"{name} should be a positive number; it is {value!r}.")
    if checkpoint is not None and Path(checkpoint).is_dir():
        raise ValueError(f"checkpoint should name a file; {checkpoint} is a folder.")


def _draw(draws: Draws, step: int):
    """One batch and the number of its targets."""
    batch = draws.next()
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise ValueError(f"batches(generator) should return (inputs, targets); it returned {type(batch).__name__}.")
    inputs, targets = batch
    counted = next(_tensors(targets), next(_tensors(inputs), None))
    count = 0 if counted is None else int((counted != IGNORED).sum())
    if count == 0:
        raise ValueError(f"The batch of step {step + 1} is empty: there is no target to learn from.")
    return inputs, targets, count


def _make_sure_of_the_seed(draws: Draws) -> None:
    """Raise if the first batch does not follow from the seed alone: then no run can draw its batches again."""
    sums = set()
    for _ in range(2):
        draws.next()
        sums.add(draws.sum)
        draws.start()
    if len(sums) == 2:
        raise ValueError(
            "batches(generator) gave two different batches for one seed: such a run cannot be resumed. Draw all from "
            "the generator and begin anew with a new one, or leave out checkpoint."
        )


def _evaluate(model: nn.Module, evaluate: Callable, device: torch.device) -> float | dict[str, float]:
    with randomness_kept(device), _mode_kept(model), torch.no_grad():
        found = evaluate(model.eval())
    return {name: float(x) for name, x in found.items()} if isinstance(found, dict) else float(found)


@contextlib.contextmanager
def _mode_kept(model: nn.Module) -> Iterator[None]:
    """Afterwards each module is again in the mode (train or eval) in which it was."""
    modes = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _move(batch, device: torch.device):
    """The batch on the device; it may nest tensors in tuples, lists and dicts."""
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {name: _move(part, device) for name, part in batch.items()}
    if isinstance(batch, tuple | list):
        return type(batch)([_move(part, device) for part in batch])
    return batch


def _tensors(batch) -> Iterator[Tensor]:
    """The tensors in a batch, in order."""
    if isinstance(batch, Tensor):
        yield batch
    elif isinstance(batch, dict | tuple | list):
        for part in batch.values() if isinstance(batch, dict) else batch:
            yield from _tensors(part)
