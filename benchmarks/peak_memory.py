"""Peak memory of one training step of our GPT beside its peers: the sizes and contestants of `training_step.py`.

    python benchmarks/peak_memory.py

Every allocation and release of PyTorch's during one step is recorded; the peak is what was held at most beyond what was
there before the step (weights, the optimiser's state, the gradients of the step before). Each contestant has a process
of its own: what an earlier recording has seen allocated would count as given back in the next one. Counted, not timed.

The last column is a second count by other means: what autograd keeps for the backward pass, weights included. It
explains the first: the peak lies at the end of the forward pass.
"""

from multiprocessing import get_context

import torch
from torch.profiler import ProfilerActivity, profile
from training_step import SIZES, contestants


def peak(size: str, contestant: str) -> tuple[int, int]:
    """The most bytes held during a step, and the bytes kept for the backward pass."""
    shape, batch = SIZES[size]
    torch.manual_seed(0)
    step, ids = contestants(shape)[contestant], torch.randint(shape.vocabulary, (batch, shape.longest + 1))
    for _ in range(2):  # the optimiser makes its state in its first step
        step(ids)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step(ids)
    changes = [event for event in recorded.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = most = 0
    for event in sorted(changes, key=lambda event: event.start_ns()):
        held += event.nbytes()  # below 0 where memory is given back
        most = max(most, held)
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        step(ids)
    return most, sum(kept.values())


def main() -> None:
    print("### Peak memory of one training step\n")
    print(f"torch {torch.__version__}\n")
    print("| size | contestant | peak, MB | ratio to ours | kept for backward, MB |\n|---|---|---|---|---|")
    with get_context("spawn").Pool(1, maxtasksperchild=1) as fresh:
        for size, (shape, _) in SIZES.items():
            names = list(contestants(shape))
            found = {name: fresh.apply(peak, (size, name)) for name in names}
            for name, (most, kept) in found.items():
                ratio = most / found["ours"][0]
                print(f"| {size} | {name} | {most / 1e6:.2f} | {ratio:.3f} | {kept / 1e6:.2f} |", flush=True)


if __name__ == "__main__":
    main()
