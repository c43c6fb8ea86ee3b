"""Where the course runs: device, seed, threads, profile.

A *profile* sets how large the experiments are:

- ``cpu``: a laptop with two cores; every lesson within 90 s. The stored outputs show this one.
- ``gpu``: chosen by itself where there is a GPU: longer training, full data, tighter claims.
- ``smoke``: for tests only: the smallest sizes that still run every line; claims are printed, not asserted.

``COURSE_PROFILE`` overrides the choice, ``COURSE_DEVICE`` that of the device.
"""

import contextlib
import os
import random
import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

PROFILES = ("cpu", "gpu", "smoke")
DEVICES = ("cpu", "cuda", "mps")


def profile() -> str:
    """The profile in use: ``COURSE_PROFILE`` if set, else ``gpu`` where there is a GPU, else ``cpu``."""
    chosen = os.environ.get("COURSE_PROFILE") or ("cpu" if device().type == "cpu" else "gpu")
    if chosen not in PROFILES:
        raise ValueError(f"COURSE_PROFILE is {chosen!r}; expected one of {', '.join(PROFILES)}.")
    return chosen


def device() -> torch.device:
    """``COURSE_DEVICE`` if set, else the best that gives right numbers: cuda, mps (if it agrees with the CPU), cpu."""
    if chosen := os.environ.get("COURSE_DEVICE"):
        if chosen not in DEVICES:
            raise ValueError(f"COURSE_DEVICE is {chosen!r}; expected one of {', '.join(DEVICES)}.")
        return torch.device(chosen)
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available() and agrees_with_cpu("mps"):
        return torch.device("mps")
    return torch.device("cpu")


_agreement: dict[str, bool] = {}


def agrees_with_cpu(name: str, step: Callable[[str], Tensor] | None = None, tolerance: float = 1e-3) -> bool:
    """Do one training step on the device ``name`` and on the CPU; warn and return False if they disagree.

    Some releases of Apple's MPS backend have given wrong numbers without any error. One small step of attention,
    layer norm, cross-entropy and SGD costs a fraction of a second and is done once per process.
    """
    step = step or _one_step
    key = f"{name}:{getattr(step, '__name__', step)}"
    if key not in _agreement:
        try:
            difference = (step(name).cpu() - step("cpu")).abs().max().item()
            problem = None if difference <= tolerance else f"differs from the CPU by {difference:.1e}"
        except Exception as error:  # a backend may raise anything at all; the CPU always works
            problem = f"failed with {type(error).__name__}: {error}"
        if problem:
            warnings.warn(f"One training step on {name!r} {problem}; the course goes on with the CPU.", stacklevel=2)
        _agreement[key] = problem is None
    return _agreement[key]


def _one_step(name: str) -> Tensor:
    """The weights of a tiny attention model after one SGD step on the device ``name``."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, 8, generator=generator).to(name)
    w = torch.randn(4, 8, 8, generator=generator).mul_(0.3).to(name).requires_grad_()
    attended = nn.functional.scaled_dot_product_attention(x @ w[0], x @ w[1], x @ w[2], is_causal=True)
    logits = nn.functional.layer_norm(x + attended, (8,)) @ w[3]
    nn.functional.cross_entropy(logits.flatten(0, 1), torch.arange(10, device=name) % 8).backward()
    return (w - 0.1 * w.grad).detach()


def seed(value: int = 0) -> torch.Generator:
    """Seed Python's and torch's generators; also returns a CPU generator of its own with the same seed."""
    value = int(value)  # random.seed refuses NumPy's integers
    random.seed(value)
    torch.manual_seed(value)
    return torch.Generator().manual_seed(value)


def random_state(device: torch.device) -> dict:
    """The state of Python's, torch's and the device's generators."""
    state = {"python": random.getstate(), "torch": torch.get_rng_state()}
    if device.type == "cuda":
        state["device"] = torch.cuda.get_rng_state(device)
    elif device.type == "mps":
        state["device"] = torch.mps.get_rng_state()
    return state


def set_random_state(state: dict, device: torch.device) -> None:
    """The inverse of ``random_state``."""
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(state["device"], device)
    elif device.type == "mps":
        torch.mps.set_rng_state(state["device"])


@contextlib.contextmanager
def randomness_kept(device: torch.device) -> Iterator[None]:
    """What is drawn inside the ``with`` block leaves no trace outside it."""
    state = random_state(device)
    try:
        yield
    finally:
        set_random_state(state, device)


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Use ``count`` torch threads inside the ``with`` block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
