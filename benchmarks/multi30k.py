"""German into English on Multi30k (Elliott et al. 2016): our `TransformerTranslator` after a number of CPU-minutes.

    python benchmarks/multi30k.py --data FOLDER                  # 35 minutes of one core, then 70
    python benchmarks/multi30k.py --data FOLDER --minutes 35 --checkpoints RUNS
    python benchmarks/multi30k.py --data FOLDER --quick          # does it run? a few pairs, one minute

The course does not carry Multi30k: bring your own copy, the plain text of its task 1. FOLDER holds ``train.de``,
``train.en``, ``val.de``, ``val.en``, ``test_2016_flickr.de`` and ``test_2016_flickr.en``, each with or without ``.gz``.

Each number of minutes is a training of its own, whose learning rate falls to 0 when they are over. Minutes are CPU time
of the process, with the byte-pair encoding learnt in them and without the scoring. With ``--checkpoints`` a run that
was stopped goes on. Width and optimiser were chosen by the training loss of short trials; nothing by the test split.

The peer is the notebook "Attention is All You Need" of bentrevett/pytorch-seq2seq: 3 + 3 layers of width 256, the best
of 10 epochs, 36.5 BLEU (36.09 in the version of commit 041994c) with greedy decoding on lower-cased words as spaCy cuts
them, about 70 CPU-minutes on an older machine (docs/benchmarks.md); not run here. Ours are scored in the
same way (`words`), and by sacrebleu on lower-cased text.
"""

import argparse
import gzip
import math
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import regex
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from course_lib.data.batches import IGNORED
from course_lib.decoding import beam_search, greedy
from course_lib.measure.metrics import corpus_bleu
from course_lib.models.transformer import Shape
from course_lib.models.translator import Encoded, TransformerTranslator
from course_lib.tokenizers.bpe import BPE
from course_lib.training import clip_gradients
from course_lib.training.optimisers import Muon, hidden_matrices

HEAD = (
    "| model | CPU-minutes | epochs | parameters | BLEU, words, greedy | sacrebleu, greedy | BLEU, words, 5 beams "
    "| sacrebleu, 5 beams |"
)
PEER = "| bentrevett/pytorch-seq2seq, its own number | about 70 | 10 | 9.0 M | 36.5 | – | – | – |"
SPECIAL = ["<end>", "<start>"]  # their numbers are 0 and 1
END, START = 0, 1
BEAMS = 5


@dataclass(frozen=True)
class Recipe:
    """Sizes and settings of a run."""

    minutes: float = 35.0  # of CPU time
    d: int = 192
    layers: int = 3
    heads: int = 6
    d_ff: int = 512
    dropout: float = 0.2
    source_tokens: int = 8000
    target_tokens: int = 4000  # every one of them costs time in the last layer; those of the source cost nothing
    batch: int = 64
    lr: float = 2e-3
    warmup: float = 0.06  # this part of the time the learning rate rises, then it falls to 0 in a straight line
    smoothing: float = 0.1
    seed: int = 0


# --- data -----------------------------------------------------------------------------------------------------------


def read(folder: Path, split: str, most: int | None = None) -> tuple[list[str], list[str]]:
    """German and English sentences, line by line the same, in lower case."""
    return tuple(_lines(folder, f"{split}.{language}")[:most] for language in ("de", "en"))


def _lines(folder: Path, name: str) -> list[str]:
    for path, open_ in ((folder / name, open), (folder / f"{name}.gz", gzip.open)):
        if path.exists():
            with open_(path, "rt", encoding="utf-8") as file:
                return [line.strip().lower() for line in file]
    raise SystemExit(f"{folder} has neither {name} nor {name}.gz: see the head of this file for what belongs there.")


def encode(tokenizer: BPE, sentences: list[str]) -> list[Tensor]:
    """The tokens of each sentence; a space first makes the first word like the others."""
    return [tokenizer.encode(f" {sentence}") for sentence in sentences]


def batches(sources: list[Tensor], targets: list[Tensor], size: int, generator: torch.Generator) -> list[list[int]]:
    """One epoch: pairs of like length together, those of one length in a new order each time, batches too."""
    order = torch.randperm(len(sources), generator=generator).tolist()
    order.sort(key=lambda i: (len(targets[i]), len(sources[i])))
    parts = [order[i : i + size] for i in range(0, len(order), size)]
    return [parts[i] for i in torch.randperm(len(parts), generator=generator).tolist()]


def pad(rows: list[Tensor], filler: int = END) -> Tensor:
    return pad_sequence(rows, batch_first=True, padding_value=filler)


def tensors(sources: list[Tensor], targets: list[Tensor], chosen: list[int]) -> tuple[Tensor, ...]:
    """source (batch, source length), lengths (batch), target with its start, target with its end (batch, length)."""
    source, target = [sources[i] for i in chosen], [targets[i] for i in chosen]
    start, end = torch.tensor([START]), torch.tensor([END])
    before, after = ([torch.cat(parts) for parts in zip(*rows, strict=True)] for rows in (
        ([start] * len(target), target), (target, [end] * len(target)),
    ))  # fmt: skip
    return pad(source), torch.tensor([len(row) for row in source]), pad(before), pad(after, IGNORED)


# --- training -------------------------------------------------------------------------------------------------------


def factor(spent: float, warmup: float) -> float:
    """Of the learning rate, after this part of the time: up to 1 in a straight line, and down to 0 in another."""
    return max(0.0, min(spent / warmup, (1 - spent) / (1 - warmup)))


def make(recipe: Recipe) -> TransformerTranslator:
    shape = Shape(
        d=recipe.d, layers=recipe.layers, heads=recipe.heads, d_ff=recipe.d_ff, dropout=recipe.dropout,
        activation="relu",
    )  # fmt: skip
    model = TransformerTranslator(recipe.source_tokens, recipe.target_tokens, shape)
    model.output.weight = model.target_embed.weight  # tied
    return model


def train(
    recipe: Recipe, sources: list[Tensor], targets: list[Tensor], checkpoint: Path | None, start: float = 0.0
) -> tuple[TransformerTranslator, float]:
    """The model ``recipe.minutes`` after ``start`` (CPU time of the process), and how many epochs those were."""
    torch.manual_seed(recipe.seed)
    model = make(recipe)
    hidden = hidden_matrices(model.encoder) | hidden_matrices(model.decoder)
    optimizer = Muon([{"params": list(model.parameters()), "weight_decay": 0.0}], recipe.lr, hidden, betas=(0.9, 0.98))
    loss_of = nn.CrossEntropyLoss(ignore_index=IGNORED, label_smoothing=recipe.smoothing)
    run = {"spent": time.process_time() - start, "steps": 0, "pairs": 0}
    if checkpoint and checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        if saved["recipe"] != asdict(recipe):
            raise SystemExit(f"{checkpoint} is of another run: {saved['recipe']}")
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"])
        run = saved["run"]
    budget, earlier, begin = 60 * recipe.minutes, run["spent"], time.process_time()
    last_saved = last_told = earlier
    every = min(60.0, budget / 10)  # seconds between two lines of the log, and between two checkpoints
    recent: list[Tensor] = []

    def save() -> None:
        if checkpoint:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "random": torch.get_rng_state()}
            torch.save({"recipe": asdict(recipe), "run": run, **state}, checkpoint.with_suffix(".part"))
            os.replace(checkpoint.with_suffix(".part"), checkpoint)

    for chosen in _from(run["steps"], sources, targets, recipe):
        if run["spent"] >= budget:
            break
        for group in optimizer.param_groups:
            group["lr"] = recipe.lr * factor(run["spent"] / budget, recipe.warmup)
        source, lengths, before, after = tensors(sources, targets, chosen)
        loss = loss_of(model(source, lengths, before).flatten(0, 1), after.flatten())
        optimizer.zero_grad()
        loss.backward()
        clip_gradients(model.parameters(), 1.0)
        optimizer.step()
        recent.append(loss.detach())
        run |= {"steps": run["steps"] + 1, "pairs": run["pairs"] + len(chosen)}
        run["spent"] = earlier + time.process_time() - begin
        if run["spent"] - last_told > every:
            mean, last_told = torch.stack(recent).mean().item(), run["spent"]
            recent.clear()
            print(f"<!-- {last_told / 60:.1f} min, step {run['steps']}, loss {mean:.3f} -->", flush=True)
        if run["spent"] - last_saved > every:
            last_saved = run["spent"]
            save()
    save()
    return model.eval(), run["pairs"] / len(sources)


def _from(done: int, sources: list[Tensor], targets: list[Tensor], recipe: Recipe) -> Iterator[list[int]]:
    """Batches without end, but for the first ``done``; they follow from the seed alone."""
    generator = torch.Generator().manual_seed(recipe.seed)
    while True:
        parts = batches(sources, targets, recipe.batch, generator)
        yield from parts[done:]
        done = max(0, done - len(parts))


# --- translation and its score --------------------------------------------------------------------------------------


@torch.no_grad()
def translate(
    model: TransformerTranslator, sources: list[Tensor], tokenizer: BPE, beams: int = 1, length_penalty: float = 1.0
) -> list[str]:
    """The English sentences; greedy with one beam."""
    texts: dict[int, str] = {}
    order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
    size = max(1, 128 // beams)
    for chosen in (order[i : i + size] for i in range(0, len(order), size)):
        rows = [sources[i] for i in chosen]
        memory = model.encode(pad(rows), torch.tensor([len(row) for row in rows]))

        def scores(ids: Tensor, memory: Encoded = memory) -> Tensor:
            times = len(ids) // len(memory.states)  # the beams of a sentence stand side by side
            states, mask = (x.repeat_interleave(times, dim=0) for x in (memory.states, memory.mask))
            return model.decode(ids, Encoded(states, mask))[0]

        start, new = torch.full((len(rows), 1), START), math.ceil(1.5 * len(rows[-1])) + 10
        if beams == 1:
            found = greedy(scores, start, new, END)
        else:
            found = beam_search(scores, start, new, beams, length_penalty, end=END)[0][:, 0]
        for i, row in zip(chosen, found[:, 1:].tolist(), strict=True):
            texts[i] = tokenizer.decode(row[: row.index(END)] if END in row else row, skip_special=True).strip()
    return [texts[i] for i in range(len(sources))]


WORDS = regex.compile(r"\p{L}+(?=n't\b)|n't\b|'(?:s|re|ve|m|ll|d)\b|[\p{L}]+|[\p{N}]+(?:[.,]\p{N}+)*|\.\.+|[^\s]")


def words(text: str) -> list[str]:
    """As spaCy's rules cut English: signs and hyphens apart, woman 's, is n't."""
    return WORDS.findall(text.lower())


def bleu(texts: list[str], references: list[str]) -> tuple[float, float]:
    """On `words`, as the peer; and sacrebleu's, in lower case."""
    import sacrebleu

    ours = corpus_bleu([words(text) for text in texts], [[words(reference)] for reference in references])
    return ours, sacrebleu.corpus_bleu(texts, [references], lowercase=True).score


@torch.no_grad()
def loss_per_sentence(model: TransformerTranslator, sources: list[Tensor], targets: list[Tensor]) -> float:
    """−log P of a sentence, on average: to be compared even between different tokens."""
    total = 0.0
    for chosen in torch.arange(len(sources)).split(128):
        source, lengths, before, after = tensors(sources, targets, chosen.tolist())
        logits = model(source, lengths, before).flatten(0, 1)
        total += nn.functional.cross_entropy(logits, after.flatten(), ignore_index=IGNORED, reduction="sum").item()
    return total / len(sources)


# --- all of it ------------------------------------------------------------------------------------------------------


def prepare(recipe: Recipe, german: list[str], english: list[str]) -> tuple[BPE, BPE]:
    """One tokenizer for each language, learnt from the training split."""
    return tuple(
        BPE.train([f" {sentence}" for sentence in sentences], size, SPECIAL)
        for sentences, size in ((german, recipe.source_tokens), (english, recipe.target_tokens))
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder with Multi30k")
    parser.add_argument("--minutes", nargs="+", type=float, default=[35.0, 70.0])
    parser.add_argument("--checkpoints", type=Path, help="a folder; runs are kept there, and go on from there")
    parser.add_argument("--quick", action="store_true", help="a small model on a few pairs, to see that it runs")
    chosen = parser.parse_args()
    if chosen.data is None or not chosen.data.is_dir():
        where = "no --data FOLDER was given" if chosen.data is None else f"there is no folder {chosen.data}"
        print(f"Multi30k is not part of the course, and {where}: nothing to measure.")
        return 0
    torch.set_num_threads(1)
    if chosen.quick:
        recipes, most = [Recipe(0.5, d=64, layers=1, heads=4, source_tokens=1000, target_tokens=1000, lr=3e-3)], 400
    else:
        recipes, most = [Recipe(minutes) for minutes in chosen.minutes], None
    data = {split: read(chosen.data, split, most) for split in ("train", "val", "test_2016_flickr")}
    print(f"torch {torch.__version__}, one thread, CPU time by `time.process_time`. {recipes[0]}\n")
    rows = [report(recipe, data, chosen.checkpoints) for recipe in recipes]
    print("\n".join([HEAD, "|---" * HEAD.count(" | ") + "|---|", PEER, *rows]))
    return 0


def report(recipe: Recipe, data: dict[str, tuple[list[str], list[str]]], folder: Path | None) -> str:
    """Train, translate the validation and the test split, and say how it went: one row of the table."""
    start = time.process_time()
    german, english = prepare(recipe, *data["train"])
    sources, targets = encode(german, data["train"][0]), encode(english, data["train"][1])
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    checkpoint = folder / f"{recipe.minutes:g}.pt" if folder else None
    model, epochs = train(recipe, sources, targets, checkpoint, start)
    cells = [f"ours, {recipe.layers} + {recipe.layers} layers, d {recipe.d}", f"{recipe.minutes:g}", f"{epochs:.1f}"]
    cells.append(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M")
    for split in ("val", "test_2016_flickr"):
        texts, references = encode(german, data[split][0]), data[split][1]
        found = {beams: translate(model, texts, english, beams) for beams in (1, BEAMS)}
        scores = {beams: bleu(found[beams], references) for beams in found}
        print(f"<!-- {recipe.minutes:g} min, {split}: (words, sacrebleu) by beams {scores} -->", flush=True)
        if folder:
            for beams, lines in found.items():
                path = folder / f"{recipe.minutes:g}.{split}.beams{beams}.en"
                path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    cells += [f"{score:.1f}" for beams in found for score in scores[beams]]
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    raise SystemExit(main())
