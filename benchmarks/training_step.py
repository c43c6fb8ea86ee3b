"""One training step of our GPT beside its peers: same sizes, same batch, one run, ratios.

    python benchmarks/training_step.py                 # two threads, 15 rounds
    python benchmarks/training_step.py --rounds 35

The contestants take turns round by round, since machines are noisy; the table gives medians. Each does a whole step:
forward, loss, backward, AdamW, with the optimiser's fused kernel. Peers: `transformers`' GPT-2, PyTorch's
`nn.TransformerEncoder`, and the model of nanoGPT as the package `nano-gpt` has it (`pip install nano-gpt`), with exact
GELU as in nanoGPT itself: the package's tanh formula costs more on a CPU. nanoGPT comes twice: with its own optimiser,
which it fuses on CUDA only, and with a fused one.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from course_lib.fast.linear import quicken
from course_lib.models.gpt import GPT, GPTShape

SIZES = {
    "4 layers, 4 heads, width 128, context 64, batch 12": (GPTShape(d=128, layers=4, heads=4, longest=64), 12),
    "4 layers, 8 heads, width 256, context 256, batch 8": (GPTShape(d=256, layers=4, heads=8, longest=256), 8),
}


class Encoder(nn.Module):
    """PyTorch's own layers put together to the same language model."""

    def __init__(self, shape: GPTShape):
        super().__init__()
        self.embed, self.places = nn.Embedding(shape.vocabulary, shape.d), nn.Embedding(shape.longest, shape.d)
        layer = nn.TransformerEncoderLayer(
            shape.d, shape.heads, 4 * shape.d, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, shape.layers, nn.LayerNorm(shape.d), enable_nested_tensor=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(shape.longest))

    def forward(self, ids: Tensor) -> Tensor:
        h = self.embed(ids) + self.places.weight[: ids.shape[1]]
        return self.encoder(h, mask=self.mask, is_causal=True) @ self.embed.weight.T


def contestants(shape: GPTShape) -> dict[str, Callable[[Tensor], Tensor]]:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_embd=shape.d, n_layer=shape.layers, n_head=shape.heads, vocab_size=shape.vocabulary,
        n_positions=shape.longest, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    theirs = GPT2LMHeadModel(config)
    models = {"ours": quicken(GPT(shape)), "transformers GPT-2": theirs, "nn.TransformerEncoder": Encoder(shape)}
    if find_spec("nano_gpt"):
        from nano_gpt import config, model

        sizes = {"n_embd": shape.d, "n_layer": shape.layers, "n_head": shape.heads, "vocab_size": shape.vocabulary}
        for name in ("nanoGPT", "nanoGPT, fused optimiser"):
            models[name] = model.GPT(config.GPTConfig(block_size=shape.longest, **sizes), None)
            for block in models[name].transformer.h:
                block.mlp.gelu = nn.GELU()

    def step_of(name: str, model: nn.Module) -> Callable[[Tensor], None]:
        if name == "nanoGPT":
            optimizer = model.configure_optimizers(weight_decay=0.1, learning_rate=1e-3, use_fused=False)
        else:
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

        def step(ids: Tensor) -> None:
            logits = model(ids[:, :-1])
            logits = getattr(logits, "logits", logits)  # transformers
            logits = logits[0] if isinstance(logits, tuple) else logits  # nanoGPT
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        return step

    return {name: step_of(name, model) for name, model in models.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    print("### One training step\n")
    print(f"torch {torch.__version__}, {chosen.threads} threads, median of {chosen.rounds} rounds.")
    print("" if find_spec("nano_gpt") else "nanoGPT is not here: pip install nano-gpt\n")
    print("| size | contestant | ms a step | ratio to ours |\n|---|---|---|---|")
    for name, (shape, batch) in SIZES.items():
        torch.manual_seed(0)
        steps = contestants(shape)
        ids = torch.randint(shape.vocabulary, (batch, shape.longest + 1))
        taken: dict[str, list[float]] = {contestant: [] for contestant in steps}
        for round_ in range(chosen.rounds + 2):
            for contestant, step in steps.items():
                start = time.perf_counter()
                step(ids)
                if round_ >= 2:  # the first two warm up
                    taken[contestant].append(1000 * (time.perf_counter() - start))
        medians = {contestant: statistics.median(times) for contestant, times in taken.items()}
        for contestant, median in medians.items():
            print(f"| {name} | {contestant} | {median:.1f} | {median / medians['ours']:.2f} |")


if __name__ == "__main__":
    main()
