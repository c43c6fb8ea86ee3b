"""Training byte-pair encoding in our Python beside `tokenizers`' Rust: same text, same merges, one run, the ratio.

    python benchmarks/bpe.py                           # 4 096 tokens from 1 MB of Tiny Shakespeare, 5 rounds
    python benchmarks/bpe.py --size 1024 --rounds 9

The contestants take turns round by round, since machines are noisy; the table gives medians. Ours uses one thread;
`tokenizers` as many as there are, and one (``TOKENIZERS_PARALLELISM=false``). The work has two parts, timed apart too:
cutting the text into words, and learning the merges from the words.
"""

import argparse
import gc
import json
import os
import statistics
from collections import Counter
from functools import partial
from timeit import timeit

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from course_lib.data import load
from course_lib.tokenizers import BPE
from course_lib.tokenizers.bpe import WORDS

timed = partial(timeit, setup=gc.enable, number=1)  # with the collector on, as in use


def theirs(text: str, size: int, parallel: bool) -> tokenizers.Tokenizer:
    os.environ["TOKENIZERS_PARALLELISM"] = str(parallel).lower()
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=size, min_frequency=2, show_progress=False, initial_alphabet=alphabet)
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--size", type=int, default=4096)
    chosen = parser.parse_args()
    text = "".join("".join(load("tiny_shakespeare", split, quiet=True)["text"]) for split in ("train", "validation"))
    text = text[:1_000_000]
    merges = json.loads(theirs(text, chosen.size, True).to_str())["model"]["merges"]
    assert BPE.train(text, chosen.size).merges == [tuple(pair) for pair in merges], "not the same merges"
    contestants = {
        "ours": lambda: BPE.train(text, chosen.size),
        "ours, cutting into words alone": lambda: Counter(WORDS.findall(text)),
        "tokenizers": lambda: theirs(text, chosen.size, True),
        "tokenizers, one thread": lambda: theirs(text, chosen.size, False),
    }
    rounds = [[timed(work) for work in contestants.values()] for _ in range(chosen.rounds)]
    medians = dict(zip(contestants, map(statistics.median, zip(*rounds, strict=True)), strict=True))
    print("### Training byte-pair encoding\n")
    print(f"{chosen.size} tokens from {len(text):,} characters; {chosen.rounds} rounds\n")
    print("| contestant | ms | ratio to tokenizers |\n|---|---|---|")
    for contestant, median in medians.items():
        print(f"| {contestant} | {1000 * median:.0f} | {median / medians['tokenizers']:.2f} |")


if __name__ == "__main__":
    main()
