"""Tiny Shakespeare against the clock: our GPT beside nanoGPT's recipe for a CPU, same text, same threads, one run.

    python benchmarks/shakespeare.py                   # two threads, one seed, about six minutes
    python benchmarks/shakespeare.py --seeds 0 1
    python benchmarks/shakespeare.py --threads 1 --cpu # CPU seconds: on a machine that others use, too
    python benchmarks/shakespeare.py --quick           # does it run? a fortieth of the steps

The peer is the model of nanoGPT as the package `nano-gpt` has it (`pip install nano-gpt`), put back to nanoGPT's own
choices where the package differs (no biases, exact GELU, its start), with the settings that nanoGPT gives for a CPU:

    train.py config/train_shakespeare_char.py --device=cpu --compile=False --block_size=64 --batch_size=12 --n_layer=4
    --n_head=4 --n_embd=128 --max_iters=2000 --lr_decay_iters=2000 --dropout=0.0

Ours then gets a third of the seconds that the peer took, and in a second run all of them; its learning rate falls with
the clock, to 0 when they are over. Seconds are those of training alone: no contestant's evaluations count. The split is
nanoGPT's: the first 90 % of the text to train on, and the loss is the mean over *all* characters of the last 10 %
(but the first), in windows side by side, each contestant at the context it was trained for. Our settings were
found on the last 5 % of the training text.
"""

import argparse
import math
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from course_lib import data, runtime
from course_lib.data.batches import consecutive_windows, windows
from course_lib.measure.metrics import perplexity_of
from course_lib.models.gpt import GPT, GPTShape
from course_lib.tokenizers import Vocabulary
from course_lib.training import clip_gradients, cosine, fit
from course_lib.training.optimisers import Muon, hidden_matrices

GOAL = 1.88  # what nanoGPT says its recipe reaches
EVALUATIONS = 4  # during a run; they do not count in its seconds
PEER_STEPS, PEER_BATCH, PEER_CONTEXT = 2000, 12, 64
SHAPE = GPTShape(d=128, layers=4, heads=4, longest=128, positions="rotary", activation="relu", bias=False)
BATCH, LR, WARM_UP = 8, 4e-3, 0.05


def characters() -> tuple[Tensor, Tensor]:
    """The first 90 % of the text and the last 10 %, which the course keeps as two halves."""
    texts = [data.load("tiny_shakespeare", split, quiet=True)["text"][0] for split in ("train", "validation", "test")]
    vocabulary = Vocabulary("".join(texts))
    return vocabulary.encode(texts[0]), vocabulary.encode(texts[1] + texts[2])


def loss_over(model: nn.Module, ids: Tensor, context: int) -> float:
    """−log p of every character but the first, in windows side by side; the last window may be shorter."""
    x, y = consecutive_windows(ids, context)
    parts, rest = [(x, y)], ids[y.numel() :]
    if len(rest) > 1:
        parts.append((rest[None, :-1], rest[None, 1:]))
    return sum(y.numel() * math.log(perplexity_of(model, x, y)) for x, y in parts) / (len(ids) - 1)


def each_once(ids: Tensor, batch: int, length: int) -> Callable[[torch.Generator], tuple[Tensor, Tensor]]:
    """Draws pieces of a long text without drawing one twice; when all are used up, the text is cut anew elsewhere."""
    left = torch.empty(0, dtype=torch.long)

    def draw(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        nonlocal left
        if len(left) < batch:
            first = torch.randint(length, (1,), generator=generator)
            left = first + length * torch.randperm((len(ids) - 1 - int(first)) // length, generator=generator)
        starts, left = left[:batch, None], left[batch:]
        pieces = ids[starts + torch.arange(length + 1)]
        return pieces[:, :-1], pieces[:, 1:]

    return draw


class Peer(nn.Module):
    """The package's model with nanoGPT's own choices; gives the logits alone."""

    def __init__(self, vocabulary: int):
        from nano_gpt import config, model

        super().__init__()
        sizes = {"n_embd": 128, "n_layer": 4, "n_head": 4, "block_size": PEER_CONTEXT, "vocab_size": vocabulary}
        self.model = model.GPT(config.GPTConfig(**sizes), None)
        for name, module in self.model.named_modules():
            if isinstance(module, nn.Linear | nn.LayerNorm):
                module.bias = None
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.02 / (8**0.5 if name.endswith("c_proj") else 1))
        for block in self.model.transformer.h:
            block.mlp.gelu = nn.GELU()

    def forward(self, ids: Tensor) -> Tensor:
        return self.model(ids)[0]


class Watch:
    """Evaluates a model during its training, and keeps when that was: seconds of training alone."""

    def __init__(self, ids: Tensor, context: int, clock: Callable[[], float]):
        self.ids, self.context, self.clock = ids, context, clock
        self.started, self.paused, self.seconds, self.losses = clock(), 0.0, [], []

    def __call__(self, model: nn.Module) -> float:
        began = self.clock()
        self.seconds.append(self.elapsed())
        self.losses.append(loss_over(model, self.ids, self.context))
        self.paused += self.clock() - began
        return self.losses[-1]

    def elapsed(self) -> float:
        return self.clock() - self.started - self.paused

    def row(self, name: str, model: nn.Module, steps: int) -> str:
        known = zip(self.seconds, self.losses, strict=True)
        reached = next((f"{seconds:.0f}" for seconds, loss in known if loss <= GOAL), "—")
        size = sum(parameter.numel() for parameter in model.parameters())
        return (
            f"| {name} | {size:,} | {self.context} | {steps:,} | {self.seconds[-1]:.0f} | {reached} | "
            f"{self.losses[-1]:.3f} |"
        )


def train_peer(model: nn.Module, train: Tensor, steps: int, seed: int, watch: Watch) -> None:
    """nanoGPT's published settings, with the fused AdamW that it keeps for GPUs: a little quicker here, too."""
    fit(
        model,
        windows(train, PEER_BATCH, PEER_CONTEXT),
        steps=steps,
        lr=1e-3,
        schedule=partial(cosine, warmup=0.05, final=0.1),
        optimizer=partial(torch.optim.AdamW, betas=(0.9, 0.99), fused=True),
        weight_decay=0.1,
        seed=seed,
        evaluate=watch,
        evaluate_every=math.ceil(steps / EVALUATIONS),
        progress=False,
    )


def train_ours(model: GPT, train: Tensor, budget: float, seed: int, watch: Watch) -> int:
    """Train until the budget of seconds is used up; the learning rate follows the clock. Returns the steps."""
    draw, generator, steps = each_once(train, BATCH, SHAPE.longest), runtime.seed(seed), 0
    decayed, others = ([p for p in model.parameters() if (p.dim() >= 2) == matrix] for matrix in (True, False))
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = Muon(groups, lr=LR, hidden=hidden_matrices(model.stack))
    while (share := watch.elapsed() / budget) < 1:
        if share >= (len(watch.losses) + 1) / EVALUATIONS:
            watch(model)
        for group in optimizer.param_groups:
            group["lr"] = LR * min(share / WARM_UP, 1, (1 - share) / (1 - WARM_UP))
        ids, targets = draw(generator)
        nn.functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten()).backward()
        clip_gradients(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
    watch(model)
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--cpu", action="store_true", help="count CPU seconds, on a machine that others use, too")
    parser.add_argument("--quick", action="store_true", help="the peer takes 50 steps instead of 2000")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    clock = time.process_time if chosen.cpu else time.perf_counter
    train, held_out = characters()
    held_out = held_out[:10_000] if chosen.quick else held_out
    print("### Tiny Shakespeare against the clock\n")
    threads = "one thread" if chosen.threads == 1 else f"{chosen.threads} threads"
    print(f"torch {torch.__version__}, {threads}; {len(held_out):,} characters held out.\n")
    seconds = "CPU seconds" if chosen.cpu else "seconds"
    print(f"| contestant | seed | parameters | context | steps | {seconds} | {seconds} to {GOAL} | loss held out |")
    print("|---|" + 7 * "--:|")
    for seed in chosen.seeds:
        torch.manual_seed(seed)
        steps, peer = 50 if chosen.quick else PEER_STEPS, Peer(SHAPE.vocabulary)
        watch = Watch(held_out, PEER_CONTEXT, clock)
        train_peer(peer, train, steps, seed, watch)
        print(watch.row(f"nanoGPT's recipe | {seed}", peer, steps), flush=True)
        budget = watch.seconds[-1]
        for name, share in (("ours, a third of its seconds", 1 / 3), ("ours, its seconds", 1)):
            torch.manual_seed(seed)
            model, watch = GPT(SHAPE), Watch(held_out, SHAPE.longest, clock)
            steps = train_ours(model, train, share * budget, seed, watch)
            print(watch.row(f"{name} | {seed}", model, steps), flush=True)


if __name__ == "__main__":
    main()
