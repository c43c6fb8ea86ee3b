"""Memory networks on the public bAbI tasks (Weston et al. 2015), 1 to 3 beside the paper's numbers.

    python benchmarks/babi.py FOLDER                 # FOLDER holds qa1_…_train.txt, qa1_…_test.txt, and so on
    python benchmarks/babi.py FOLDER --tasks 1 6 --hops 1 2 3 --restarts 3

The course does not carry bAbI: bring your own copy (1 000 training questions a task, the folder `en`). As in the paper
(Sukhbaatar et al. 2015): one network a task, 3 hops, position and time encoding, adjacent weights, linear start, the
last 50 sentences as memory, plain gradient descent, random noise (a tenth of empty facts); of several restarts the one
with the lowest training loss. Prints errors on the test questions in percent.
"""

import argparse
import re
import time
from collections.abc import Callable
from pathlib import Path

import torch

from course_lib.data import readers
from course_lib.data.batches import encode_stories, with_replacement
from course_lib.measure.metrics import accuracy
from course_lib.models import memory_network as memory
from course_lib.tokenizers import Vocabulary
from course_lib.training import cosine, fit

MOST_FACTS = 50
PAPER = {  # Table 1 of "End-To-End Memory Networks", test error in %, 1k training
    "PE, 3 hops": {1: 0.1, 2: 21.6, 3: 64.2},
    "PE LS, 3 hops": {1: 0.2, 2: 12.8, 3: 58.8},
    "PE LS RN, 3 hops": {1: 0.0, 2: 8.3, 3: 40.3},
    "PE LS, 1 hop, all 20 tasks jointly": {1: 0.8, 2: 62.0, 3: 76.9},
}


def read(folder: Path, task: int, split: str) -> dict[str, list[str]]:
    found = sorted(folder.glob(f"qa{task}_*_{split}.txt"))
    if len(found) != 1:
        raise SystemExit(f"Expected one file qa{task}_…_{split}.txt in {folder}; there are {len(found)}.")
    return readers.babi(found[0].read_text(encoding="utf-8"))


def noisy(batches: Callable, nothing: int, share: float = 0.1) -> Callable:
    """Random noise: here and there a fact that says nothing, so that no age can be learned by heart."""

    def draw(generator: torch.Generator):
        (facts, question), targets = batches(generator)
        here = torch.rand(facts.shape[:2], generator=generator) < share
        result = torch.zeros_like(facts)
        for row, (story, before) in enumerate(zip(facts, here, strict=True)):
            told = story[story.any(dim=-1)]
            empty = torch.zeros_like(told)
            empty[:, 0] = nothing
            both = torch.stack([empty, told], dim=1).flatten(0, 1)  # (2 · facts, words): an empty one before each
            kept = torch.stack([before[: len(told)], torch.ones(len(told), dtype=torch.bool)], dim=1).flatten()
            new = both[kept][-facts.shape[1] :]
            result[row, : len(new)] = new
        return (result, question), targets

    return draw


def trained(hops: int, inputs, targets, words: int, answers: int, longest: int, steps: int, seed: int, d: int):
    """A network after linear start and training; and its loss at the end."""
    torch.manual_seed(seed)
    network = memory.MemoryNetwork(words + 2, answers, d, hops, MOST_FACTS, longest, std=0.1)
    batches = noisy(
        with_replacement(inputs, targets, torch.ones(len(targets), dtype=torch.bool), 32), nothing=words + 1
    )
    settings = {"optimizer": torch.optim.SGD, "clip": 40 / 32, "seed": seed, "progress": False}
    with memory.linear_start(network):
        fit(network, batches, steps=steps // 4, lr=0.15, **settings)
    history = fit(network, batches, steps=steps, lr=0.3, schedule=cosine, **settings)
    return network, history.loss[-100:].mean()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--tasks", nargs="+", type=int, default=[1, 2, 3], choices=range(1, 21), metavar="TASK")
    parser.add_argument("--hops", nargs="+", type=int, default=[3])
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--d", type=int, default=20)
    chosen = parser.parse_args(arguments)
    if chosen.folder is None:
        print("No folder was given: the public bAbI tasks are not part of the course, so there is nothing to measure.")
        return 0
    tasks = {task: [read(chosen.folder, task, split) for split in ("train", "test")] for task in chosen.tasks}
    print("| task | hops | error, training | error, test | seconds | " + " | ".join(PAPER) + " |")
    print("|---|---|---|---|---|" + "---|" * len(PAPER))
    for task, (train, test) in tasks.items():
        texts = train["story"] + train["question"] + test["story"] + test["question"]
        words = Vocabulary(re.findall(r"\w+", " ".join(texts)))
        answers = Vocabulary(train["answer"] + test["answer"])
        longest = max(len(sentence.split()) for text in texts for sentence in text.split("."))
        encoded = [
            (encode_stories(r["story"], r["question"], words, MOST_FACTS, longest), answers.encode(r["answer"]))
            for r in (train, test)
        ]
        for hops in chosen.hops:
            start = time.perf_counter()
            runs = [
                trained(hops, *encoded[0], len(words), len(answers), longest, chosen.steps, seed, chosen.d)
                for seed in range(chosen.restarts)
            ]
            network = min(runs, key=lambda run: run[1])[0]
            errors = [100 * (1 - float(accuracy(network, *part).mean())) for part in encoded]
            seconds = time.perf_counter() - start
            paper = [f"{row[task]} %" if task in row else "–" for row in PAPER.values()]
            cells = [task, hops, *(f"{error:.1f} %" for error in errors), f"{seconds:.0f}", *paper]
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
