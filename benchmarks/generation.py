"""Writing text with our GPT beside `transformers`' ``generate``: same weights, same tokens, one run, ratios.

    python benchmarks/generation.py                    # two threads, 5 rounds
    python benchmarks/generation.py --rounds 9

Greedy and beam search of a random 6-layer model in GPT-2's shape, one prompt; greedy of SmolLM2, a real model of 135
million weights. The contestants take turns round by round, since machines are noisy; the table gives medians. Before
any timing, both must have written the same tokens. The floor is the time of reading all weights once: a step for one
text cannot be shorter.
"""

import argparse
import gc
import statistics
from collections.abc import Callable
from functools import partial
from timeit import timeit

import torch
from torch import Tensor, nn

from course_lib import pretrained
from course_lib.decoding import beam_search, greedy
from course_lib.models.gpt import GPT

PROMPT, NEW = 16, 128
timed = partial(timeit, setup=gc.enable, number=1)  # with the collector on, as in use


def random_pair() -> tuple[GPT, nn.Module]:
    """6 layers, 6 heads, width 384, 65 characters: the size nanoGPT gives its Shakespeare."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_embd=384, n_layer=6, n_head=6, vocab_size=65, n_positions=256, bos_token_id=None, eos_token_id=None
    )
    theirs = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():  # as they start, random models find every token about equally likely
            parameter.add_(0.02 * torch.randn_like(parameter))
    state = {name: tensor for name, tensor in theirs.state_dict().items() if name != "lm_head.weight"}
    return pretrained.gpt2(config.to_dict(), state, config.n_positions), theirs


def smollm2_pair() -> tuple[GPT, nn.Module]:
    from transformers import AutoModelForCausalLM

    folder = pretrained.weights("smollm2")
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return pretrained.load_gpt(folder), theirs


def tasks() -> dict[str, tuple[GPT, Callable[[], Tensor], Callable[[], Tensor]]]:
    """Name → our model, what ours writes, what theirs writes."""

    def generate(theirs: nn.Module, ids: Tensor, **settings) -> Tensor:
        return theirs.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW, do_sample=False, eos_token_id=None,
            pad_token_id=0, **settings,
        )  # fmt: skip

    (ours, theirs), (ours_smol, theirs_smol) = random_pair(), smollm2_pair()
    ids = torch.randint(65, (1, PROMPT))
    smol_ids = torch.randint(1000, ours_smol.shape.vocabulary, (1, PROMPT))
    return {
        "6 layers, width 384, greedy": (ours, partial(greedy, ours, ids, NEW), partial(generate, theirs, ids)),
        "6 layers, width 384, beam 5": (
            ours, lambda: beam_search(ours, ids, NEW, 5)[0][:, 0], partial(generate, theirs, ids, num_beams=5),
        ),
        "SmolLM2 135M, greedy": (
            ours_smol, partial(greedy, ours_smol, smol_ids, NEW), partial(generate, theirs_smol, smol_ids),
        ),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="part of a task's name")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {chosen.threads} threads, {PROMPT} + {NEW} tokens, {chosen.rounds} rounds\n")
    print("| task | ours, tokens/s | generate, tokens/s | ours is faster by | ms a token | floor, ms |")
    print("|---|---|---|---|---|---|")
    for name, (model, ours, theirs) in tasks().items():
        if chosen.only not in name:
            continue
        assert torch.equal(ours(), theirs()), f"{name}: not the same tokens"
        rounds = [(timed(ours), timed(theirs)) for _ in range(chosen.rounds)]
        our_time, their_time = (statistics.median(times) for times in zip(*rounds, strict=True))
        weights = list(model.parameters())
        floor = statistics.median(timed(lambda: [w.sum() for w in weights]) for _ in range(20))  # noqa: B023
        print(
            f"| {name} | {NEW / our_time:.0f} | {NEW / their_time:.0f} | {their_time / our_time:.2f} × "
            f"| {1000 * our_time / NEW:.2f} | {1000 * floor:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
