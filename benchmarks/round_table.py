"""Can training teach one head two relations? Lesson 04's round table with longer training and other learning rates.

    python benchmarks/round_table.py                       # one head and two, four seeds: about half an hour
    python benchmarks/round_table.py --heads 1 --steps 400 2000

Each guest of a table names the symbol of the guest before and of the guest opposite. The network is the lesson's:
attention and a linear read-out. Prints the share of guests that name both, at 500 new tables: the lowest and highest of
the seeds.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

from course_lib.lessons.multi_head_attention import two_relations
from course_lib.models.attention import multi_head


class Guest(nn.Module):
    """Symbol + place → multi-head attention → two answers, 8 logits each."""

    def __init__(self, heads: int):
        super().__init__()
        self.heads = heads
        self.symbols = nn.Embedding(8, 32)
        self.places = nn.Embedding(8, 32)
        self.qkv = nn.Linear(32, 96)
        self.output = nn.Linear(32, 32)
        self.answers = nn.Linear(32, 16)

    def forward(self, symbols: torch.Tensor) -> torch.Tensor:
        x = self.symbols(symbols) + self.places.weight
        out, _ = multi_head(x, self.qkv.weight, self.qkv.bias, self.output.weight, self.output.bias, self.heads)
        return self.answers(out).unflatten(-1, (2, 8))


def both_right(heads: int, rate: float, steps: int, seed: int) -> float:
    """The share of guests that name both symbols right, after training."""
    torch.manual_seed(seed)
    guest, generator = Guest(heads), torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(guest.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        symbols, targets = two_relations(generator, batch=64)
        loss = F.cross_entropy(guest(symbols).flatten(0, 2), targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    symbols, targets = two_relations(torch.Generator().manual_seed(seed + 1000), batch=500)
    with torch.no_grad():
        return (guest(symbols).argmax(dim=-1) == targets).all(dim=-1).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rates", nargs="+", type=float, default=[0.001, 0.003, 0.01, 0.03])
    parser.add_argument("--steps", nargs="+", type=int, default=[400, 2000, 8000])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 100])
    chosen = parser.parse_args()
    print(f"| heads | steps | {' | '.join(f'rate {rate:g}' for rate in chosen.rates)} |")
    print(f"|--:|--:|{'---|' * len(chosen.rates)}")
    for heads in chosen.heads:
        for steps in chosen.steps:
            found = [[both_right(heads, rate, steps, seed) for seed in chosen.seeds] for rate in chosen.rates]
            print(f"| {heads} | {steps} | {' | '.join(f'{min(x):.2f}–{max(x):.2f}' for x in found)} |", flush=True)


if __name__ == "__main__":
    main()
