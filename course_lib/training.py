"""Training: one loop for every model of the course.

    history = fit(model, batches, steps=500, lr=3e-3, schedule=cosine)

``batches(generator)`` draws one ``(inputs, targets)`` pair, and everything random in a run follows from ``seed``. So a
run that was killed and is started again with the same call and ``checkpoint`` ends with the same weights.
"""

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from course_lib import runtime
from course_lib.bars import progress_bar
from course_lib.checkpoints import Checkpoint, checksum, randomness_kept

IGNORED = -100  # a target with this value does not count in the loss


# --- schedules: (step, steps) → the factor of the learning rate; step counts from 0 ---------------------------------


def constant(step: int, steps: int) -> float:
    """1 at every step."""
    return 1.0


def linear_warmup(step: int, steps: int, warmup: float = 0.1) -> float:
    """Rises in a straight line to 1 over the first ``warmup`` (a fraction) of the steps, then stays there."""
    return min(1.0, (step + 1) / max(1, round(warmup * steps)))


def linear(step: int, steps: int, warmup: float = 0.1) -> float:
    """Warm-up, then a straight line down to 0 (BERT)."""
    return linear_warmup(step, steps, warmup) * (1 - _decayed(step, steps, warmup))


def cosine(step: int, steps: int, warmup: float = 0.1, final: float = 0.1) -> float:
    """Warm-up, then half a cosine wave from 1 down to ``final`` (GPT-3)."""
    wave = (1 + math.cos(math.pi * _decayed(step, steps, warmup))) / 2
    return linear_warmup(step, steps, warmup) * (final + (1 - final) * wave)


def inverse_sqrt(step: int, steps: int, warmup: float = 0.1) -> float:
    """min(s/w, √(w/s)) at step s with w warm-up steps: the schedule of the 2017 Transformer, scaled to a peak of 1.

    The paper's own d^−½ · min(s^−½, s·w^−1.5) is this factor times the peak ``lr`` = (d·w)^−½.
    """
    w = max(1, round(warmup * steps))
    return min((step + 1) / w, math.sqrt(w / (step + 1)))


def _decayed(step: int, steps: int, warmup: float) -> float:
    """How much of the way from the end of the warm-up to the end of training is behind us, in [0, 1)."""
    w = max(1, round(warmup * steps))
    return max(0, step + 1 - w) / max(1, steps + 1 - w)


# --- the pieces of a step -------------------------------------------------------------------------------------------


def clip_gradients(parameters: Iterable[Tensor], max_norm: float) -> float:
    """Scale all gradients by max_norm / ‖g‖ where ‖g‖ > max_norm; return ‖g‖ as it was before.

    ‖g‖ = √(Σ gᵢ²) over *all* entries of *all* gradients, so the update gets shorter and keeps its direction.
    Parameters without a gradient are skipped. With a norm of inf or nan there is no direction to keep: the gradients
    are left as they are, and the returned norm tells.
    """
    parameters = [parameters] if isinstance(parameters, Tensor) else parameters
    gradients = [p.grad for p in parameters if p.grad is not None]
    if not gradients:
        return 0.0
    norm = torch.stack([g.norm() for g in gradients]).norm().item()
    if max_norm < norm < math.inf:
        for g in gradients:
            g.mul_(max_norm / norm)
    return norm


def cross_entropy(model: nn.Module, inputs, targets: Tensor) -> Tensor:
    """−log p(target), averaged over the targets that are not −100. Logits (…, classes), targets (…).

    ``inputs`` may be a tuple, such as (source, shifted target): then ``model(*inputs)``.
    """
    logits = model(*inputs) if isinstance(inputs, tuple) else model(inputs)
    if logits.shape[:-1] != targets.shape:
        raise ValueError(
            f"The model gave logits of shape {tuple(logits.shape)}, so the targets should have shape "
            f"{tuple(logits.shape[:-1])}; they have {tuple(targets.shape)}."
        )
    return nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORED)


def smoothed_loss(logits: Tensor, targets: Tensor, epsilon: float) -> Tensor:
    r"""$-(1 - \varepsilon) \log p(y) - \frac{\varepsilon}{V} \sum_v \log p(v)$, over all targets but −100.

    Label smoothing (Szegedy et al. 2016): the target is 1 − ε sure; ε is dealt out evenly over all V classes.
    logits (…, classes), targets (…) → one number
    """
    counted = targets != -100
    log_p = logits[counted].log_softmax(dim=-1)  # (targets, classes)
    right = log_p.gather(-1, targets[counted][:, None])[:, 0]
    return -((1 - epsilon) * right + epsilon * log_p.mean(dim=-1)).mean()


def next_token_loss(logits: Tensor, ids: Tensor) -> Tensor:
    """−log p of each token but the first, given those before it; the mean of all.

    logits (batch, length, vocabulary): scores of the token that comes *after* each of ids (batch, length).
    """
    predicted, came = logits[:, :-1], ids[:, 1:]  # what is said at t is about the token at t + 1
    return nn.functional.cross_entropy(predicted.flatten(0, 1), came.flatten())


def autocast_dtype(device: torch.device) -> torch.dtype | None:
    """The type for mixed precision: bfloat16 where a CUDA GPU has it, else float16 there; None (float32) elsewhere."""
    if device.type != "cuda":
        return None  # many CPUs run 16-bit arithmetic several times slower than 32-bit
    return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16


adamw = partial(torch.optim.AdamW, fused=True)  # one kernel for all parameters: 4 times quicker on small models


# --- the loop -------------------------------------------------------------------------------------------------------


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
    - ``checkpoint``: one file, written every ``checkpoint_every`` steps and at the end. If it is there, the run goes
      on from it; it must come from the same call: other sizes, settings or data are an error.

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
    optimizer = optimizer([group for group in groups if group["params"]], lr=lr)
    # float16 underflows on small gradients, so the loss is scaled up; for all other types the scaler does nothing
    scaler = torch.amp.GradScaler(device.type, enabled=dtype is torch.float16)
    log = {name: [] for name in ("loss", "gradient_norm", "seconds", "tokens", "evaluation_steps", "evaluations")}

    with randomness_kept(device), _mode_kept(model):
        generator = runtime.seed(seed)
        if checkpoint is not None:
            settings = {
                "steps": steps,
                "lr": lr,
                "seed": seed,
                "clip": clip,
                "weight_decay": weight_decay,
                "device": device.type,
                "precision": str(dtype),
                "schedule": " ".join(f"{schedule(steps * i // 8, steps):.4g}" for i in range(8)),
                "optimizer": f"{type(optimizer).__name__} {optimizer.defaults}",
                "loss": getattr(loss, "__qualname__", type(loss).__name__),
                "first batch": _first_batch(batches, seed, device),
            }
            saved = Checkpoint(Path(checkpoint), settings, model, optimizer, scaler, generator, log)
            saved.restore()
        model.train()
        done = len(log["loss"])
        seconds, tokens = (log["seconds"][-1], log["tokens"][-1]) if done else (0.0, 0)
        with progress_bar(steps, done, show=progress and done < steps) as bar:
            for step in range(done, steps):
                start = time.perf_counter()
                for group in optimizer.param_groups:
                    group["lr"] = lr * schedule(step, steps)
                inputs, targets, count = _draw(batches, generator, step)
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


def _draw(batches: Callable, generator: torch.Generator, step: int):
    """One batch and the number of its targets."""
    batch = batches(generator)
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise ValueError(f"batches(generator) should return (inputs, targets); it returned {type(batch).__name__}.")
    inputs, targets = batch
    counted = next(_tensors(targets), next(_tensors(inputs), None))
    count = 0 if counted is None else int((counted != IGNORED).sum())
    if count == 0:
        raise ValueError(f"The batch of step {step + 1} is empty: there is no target to learn from.")
    return inputs, targets, count


def _first_batch(batches: Callable, seed: int, device: torch.device) -> int:
    """A checksum of the first batch, which tells other data; also makes sure that it follows from the seed alone."""
    with randomness_kept(device):
        first, again = (checksum(_tensors(batches(runtime.seed(seed)))) for _ in range(2))
    if first != again:
        raise ValueError("batches(generator) gave two different batches for one seed: such a run cannot be resumed.")
    return first


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
