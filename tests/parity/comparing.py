"""Ours beside theirs. What `close` and `same` see is kept for the table of docs/parity.md (see conftest.py)."""

import os
from dataclasses import dataclass
from typing import Any

import torch

RUN = int(os.environ["COURSE_TEST_SEED"])  # 0, but in `make fuzz`


def seeds(count: int, *found: int) -> list[int]:
    """The seeds of ``count`` random configurations, and those that `make fuzz` once ``found`` to fail."""
    return [*range(RUN, RUN + count), *found]


@dataclass
class Seen:
    """Of the test that runs."""

    comparisons: int = 0
    values: float | None = None  # the largest difference of outputs, None where there was nothing to compare
    gradients: float | None = None
    bound: float = 0.0


seen = Seen()


def double(x: Any) -> torch.Tensor:
    """On the CPU, wherever the test is: Apple's GPUs have no float64."""
    return torch.tensor(x, dtype=torch.double, device="cpu")


def close(ours: Any, theirs: Any, what: str, bound: float = 1e-5) -> None:
    """The largest difference is at most ``bound``, as a share of the largest of theirs where that is above 1."""
    ours, theirs = (x if isinstance(x, torch.Tensor) else double(x) for x in (ours, theirs))
    assert ours.shape == theirs.shape, f"{what}: shapes {tuple(ours.shape)} and {tuple(theirs.shape)}"
    gap = 0.0
    if theirs.numel():
        gap = (ours - theirs).abs().max().item() / max(1.0, theirs.abs().max().item())
    assert gap <= bound, f"{what}: largest difference {gap:.1e} (COURSE_TEST_SEED={RUN})"
    record(what, gap, bound)


def same(ours: Any, theirs: Any, what: str) -> None:
    """Equal altogether: tokens, texts, merges."""
    equal = torch.equal(ours, theirs) if isinstance(ours, torch.Tensor) else ours == theirs
    assert equal, f"{what}: {ours} and {theirs} (COURSE_TEST_SEED={RUN})"
    record(what, 0.0, 0.0)


def record(what: str, gap: float, bound: float) -> None:
    kind = "gradients" if "gradient" in what else "values"
    setattr(seen, kind, max(gap, getattr(seen, kind) or 0.0))
    seen.comparisons, seen.bound = seen.comparisons + 1, max(bound, seen.bound)
