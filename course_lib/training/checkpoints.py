"""Checkpoints: a training run in one file, from which it goes on exactly as if it had never stopped.

One safetensors file holds weights, buffers, the optimiser's moments, the random generators and the log, so that there
are never two files of different age. It is written beside the old one and then takes its name in one move: whenever
the process is killed, the file is the old one or the new one, whole. Nothing is pickled.

What `batches` keeps between two draws is not in the file: a run that goes on draws the batches behind it once more,
and so sees whether they are still the same. Nor are the weights with which it began, but their sum is.
"""

import json
import os
import random
import warnings
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import safetensors.torch
import torch
from torch import Tensor, nn

from course_lib.runtime import random_state, seed, set_random_state
from course_lib.training.fingerprints import fingerprint

LEFT: WeakKeyDictionary[nn.Module, tuple[int, dict[Path, int]]] = WeakKeyDictionary()
"""The sums of the weights that training has left in a model, and of those with which its run in each file began. So a
training cell that is run again alone, on the model that it has trained, is known as the same run."""


class Draws:
    """The batches of a run, one after the other, and if ``summed``, the fingerprint of all so far: ``sum``.

    ``batches(generator)`` may keep what it likes between two draws (a queue, the rest of an epoch), as long as all
    follows from a new generator: so the batch of a step follows from the seed and the step.
    """

    def __init__(self, batches: Callable[[torch.Generator], Any], seed: int, summed: bool):
        self.batches, self.seed, self.summed = batches, seed, summed
        self.start()

    def start(self) -> None:
        """Begin (again) with the first batch."""
        self.generator, self.sum = seed(self.seed), ""

    def next(self) -> Any:
        """The next batch."""
        batch = self.batches(self.generator)
        if self.summed:
            self.sum = fingerprint((self.sum, batch))
        return batch


@dataclass
class Checkpoint:
    """The parts of a run, tied to one file. ``settings`` say which run it is: from others it does not go on."""

    path: Path
    settings: dict
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    draws: Draws
    log: dict[str, list]

    def save(self) -> None:
        """Write the run as it is now; the file of before stays until the new one is whole."""
        tensors = {name: _plain(tensor) for name, tensor in self._tensors().items()}
        info = json.dumps(
            {
                "settings": self.settings,
                "batches": self.draws.sum,
                "log": self.log,
                "python_random": random.getstate(),
                "scaler": self.scaler.state_dict(),
            },
            default=float,  # NumPy's numbers
        )
        metadata = {"run": info, "crc32": str(checksum([tensors[name] for name in sorted(tensors)], info))}
        part = self.path.with_name(f".{self.path.name}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(part, "wb") as file:
                file.write(safetensors.torch.save(tensors, metadata))
                file.flush()
                os.fsync(file.fileno())  # else a power cut could leave the new name on an unwritten file
            os.replace(part, self.path)
        except OSError as error:
            part.unlink(missing_ok=True)
            reason = error.strerror or error
            raise OSError(error.errno, f"Checkpoint not written, the one before is intact: {reason}", part) from error

    def restore(self) -> bool:
        """Put the saved run into model, optimiser, generators and log. False if there is none to go on from.

        If the file is of another run, that is said, and it stays until this run writes its own.
        """
        now = checksum(_weights(self.model).values())
        left, begun = LEFT.get(self.model, (None, {}))
        self.settings["weights"] = begun.get(self.path.absolute(), now) if now == left else now
        if self._restored():
            return True
        self.settings["weights"] = now
        return False

    def leave(self) -> None:
        """Note which weights the model is left with, and with which ones this run began."""
        _, begun = LEFT.get(self.model, (None, {}))
        begun = begun | {self.path.absolute(): self.settings["weights"]}
        LEFT[self.model] = checksum(_weights(self.model).values()), begun

    def _restored(self) -> bool:
        if not self.path.exists():
            return False
        try:
            info, tensors = _read(self.path)
        except (safetensors.SafetensorError, ValueError, KeyError) as error:
            aside = self._set_aside()
            warnings.warn(f"{self.path} is damaged ({error}): kept as {aside.name}, starting anew.", stacklevel=4)
            return False
        other = [key for key in self.settings if info["settings"].get(key) != self.settings[key]]
        if not other and not self._draw_again(len(info["log"]["loss"]), info["batches"]):
            other = ["batches"]
        if other:
            print(f"{self.path.name} is of another run (other {', '.join(other)}): training starts anew.")
            return False

        with torch.no_grad():
            for name, tensor in _weights(self.model).items():
                tensor.copy_(tensors[f"model.{name}"])
        state = {}
        for name in tensors:
            if name.startswith("optimizer."):
                _, index, key = name.split(".", 2)
                state.setdefault(int(index), {})[key] = tensors[name]
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})
        self.scaler.load_state_dict(info["scaler"])
        version, numbers, gauss = info["python_random"]
        saved = {name.removeprefix("random."): tensors[name] for name in tensors if name.startswith("random.")}
        set_random_state({**saved, "python": (version, tuple(numbers), gauss)}, _device(self.model))
        for name in self.log:
            self.log[name][:] = info["log"][name]
        return True

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {f"model.{name}": tensor for name, tensor in _weights(self.model).items()}
        for index, values in self.optimizer.state_dict()["state"].items():
            for key, value in values.items():
                if value is not None:
                    tensors[f"optimizer.{index}.{key}"] = torch.as_tensor(value)
        generators = random_state(_device(self.model))
        return tensors | {f"random.{name}": state for name, state in generators.items() if name != "python"}

    def _draw_again(self, steps: int, expected: str) -> bool:
        """Draw the batches of the steps behind; False, and back to the first, if they are no longer the same."""
        for _ in range(steps):
            self.draws.next()
        if self.draws.sum != expected:
            self.draws.start()
            return False
        return True

    def _set_aside(self) -> Path:
        number = 1
        while (aside := self.path.with_name(f"{self.path.stem}.damaged-{number}{self.path.suffix}")).exists():
            number += 1
        return self.path.rename(aside)


def _read(path: Path) -> tuple[dict, dict[str, Tensor]]:
    """The information and the tensors of a checkpoint; raises if one bit of them is not as it was written."""
    data = path.read_bytes()
    tensors = safetensors.torch.load(data)
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    metadata = header.get("__metadata__", {})
    if "crc32" not in metadata:
        raise TypeError(f"{path} is a safetensors file, but not a checkpoint of a training run.")
    if metadata["crc32"] != str(checksum([tensors[name] for name in sorted(tensors)], metadata["run"])):
        raise ValueError("its checksum is wrong")
    return json.loads(metadata["run"]), tensors


def checksum(tensors: Iterable[Tensor], text: str = "") -> int:
    """The CRC-32 of the bytes of the tensors, and of a text."""
    crc = zlib.crc32(text.encode())
    for tensor in tensors:
        crc = zlib.crc32(_plain(tensor).reshape(-1).view(torch.uint8).numpy(), crc)
    return crc


def _weights(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers, each once: tied weights appear under their first name only."""
    return dict(model.named_parameters()) | dict(model.named_buffers())


def _plain(tensor: Tensor) -> Tensor:
    """A contiguous copy on the CPU: safetensors takes neither views nor shared memory."""
    return tensor.detach().cpu().clone(memory_format=torch.contiguous_format)


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
