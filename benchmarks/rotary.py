"""Lesson 05's test of rotary positions on more trainings: which hands, when they stand still, bring the symbol back?

    python benchmarks/rotary.py

trains ten models as the lesson does and writes ``benchmarks/rotary.csv``, which the lesson quotes. About two minutes
on one core.
"""

import torch
from torch import nn

from course_lib import runtime
from course_lib.data import tasks
from course_lib.lessons import positional_encoding as lesson
from course_lib.measure.stored import Rows, run_and_store
from course_lib.models import positions
from course_lib.models.transformer import Shape, Stack
from course_lib.training import cosine, fit

DISTANCES, TRAINED, STEPS, D = (2, 3, 12), 32, 300, 64
STOPPED = {
    "none": ([], 31),
    "the fastest": ([0], 31),
    "the fastest, at 27": ([0], 27),
    "the second": ([1], 31),
    "the third to the eighth": (range(2, 8), 31),
    "all but the fastest": (range(1, 8), 31),
}


class Model(nn.Module):
    """Embedding → two rotary blocks → scores of the symbols, for each distance."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(tasks.VOCABULARY, D)
        self.stack = Stack(Shape(d=D, layers=2, heads=4, causal=True), rotary=positions.Rotary(D // 4, 256))
        self.output = nn.Linear(D, len(DISTANCES) * tasks.SYMBOLS)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.output(self.stack(self.embed(ids))).unflatten(-1, (len(DISTANCES), tasks.SYMBOLS))


def stopped() -> Rows:
    """Right answers two back at places 128 to 255, with no hand stopped and with some."""
    for seed in range(100, 110):
        runtime.seed(seed)
        model = Model()

        def draw(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
            return lesson.look_back(generator, 32, TRAINED, DISTANCES)

        fit(model, draw, steps=STEPS, lr=3e-3, schedule=cosine, seed=seed, progress=False)
        model.eval()
        ids, targets = lesson.look_back(runtime.seed(10_000 + seed), 20, 256, DISTANCES)
        for name, (hands, longest) in STOPPED.items():
            with torch.no_grad(), lesson.with_stopped_hands(model, hands, longest):
                hits = model(ids).argmax(dim=-1) == targets  # (texts, 256, distances)
            yield name, STEPS, seed, "two back", hits[:, 128:, 0].float().mean().item()


if __name__ == "__main__":
    run_and_store("rotary", {"stopped": stopped})
