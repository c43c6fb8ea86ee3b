"""Texts with their targets, as an encoder wants them: in batches of about equal length, so that little is filled up.

Below: the four tasks' examples, and for each what a bag of words would say.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib import data, metrics, runtime
from course_lib.bars import progress_bar
from course_lib.bert import IGNORED, Bert, mean_pool
from course_lib.pretrained import load_bert
from course_lib.probes import linear_probe, probe_accuracy
from course_lib.readers import CONLL_TAGS, tagged
from course_lib.wordpiece import WordPiece, basic_words

Inputs = tuple[Tensor, Tensor, Tensor]
"""ids, mask and segments, each (texts, longest): what every model of `bert.py` is called with."""


def filled(rows: Sequence[Tensor], pad: int = 0) -> Inputs:
    """Rows of ids, (length) each, filled up at the end; all of the first segment."""
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
    mask = torch.arange(ids.shape[1]) < torch.tensor([[len(row)] for row in rows])
    return ids, mask, torch.zeros_like(ids)


class Examples:
    """Texts and their targets: one each, (texts); one a token, (texts, longest); or first and last, (texts, 2)."""

    def __init__(self, inputs: Inputs, targets: Tensor):
        if not len(inputs[0]) == len(targets) > 0:
            raise ValueError(f"Expected a target for each text; got {len(inputs[0])} texts, {len(targets)} targets.")
        self.inputs, self.targets = inputs, targets
        self.lengths = inputs[1].sum(dim=1)

    def __len__(self) -> int:
        return len(self.targets)

    def rows(self, rows: Tensor) -> tuple[Inputs, Tensor]:
        """The inputs and targets of some texts, cut at the longest of these."""
        longest, targets = int(self.lengths[rows].max()), self.targets[rows]
        by_token = targets.dim() == 2 and targets.shape[1] == self.inputs[0].shape[1]
        return tuple(x[rows, :longest] for x in self.inputs), targets[:, :longest] if by_token else targets

    def some(self, rows: Tensor) -> "Examples":
        """Some of the texts."""
        return Examples(tuple(x[rows] for x in self.inputs), self.targets[rows])

    def batches(self, size: int) -> Callable:
        """Draws batches for `training.fit`."""
        draw = by_epoch(self.lengths, size)
        return lambda generator: self.rows(draw(generator))


def by_epoch(lengths: Tensor, size: int) -> Callable[[torch.Generator], Tensor]:
    """Draws rows of about equal length, (size): every text once before any comes again, but for a rest.

    Sixteen batches' rows are drawn at random, sorted by length and cut; then the batches are shuffled. With another
    generator, that is, in another run, a new epoch begins.
    """
    if len(lengths) < size:
        raise ValueError(f"Batches of {size} need at least as many texts; there are {len(lengths)}.")
    waiting: list[Tensor] = []
    of_run = None

    def draw(generator: torch.Generator) -> Tensor:
        nonlocal of_run
        if generator is not of_run:
            waiting.clear()
            of_run = generator
        if not waiting:
            order = torch.randperm(len(lengths), generator=generator)[: len(lengths) // size * size]
            parts = [part[lengths[part].argsort()] for part in order.split(16 * size)]
            rows = torch.cat(parts).view(-1, size)
            waiting.extend(rows[torch.randperm(len(rows), generator=generator)])
        return waiting.pop()

    return draw


def stacked(upper: Inputs, lower: Inputs) -> Inputs:
    """Two batches as one, the shorter texts filled up: an encoder reads them in one go."""
    longest = max(upper[0].shape[1], lower[0].shape[1])
    return tuple(
        torch.cat([F.pad(part, (0, longest - part.shape[1])) for part in parts])
        for parts in zip(upper, lower, strict=True)
    )


@torch.no_grad()
def predict(model: nn.Module, examples: Examples, answer: Callable[[object, Inputs], Tensor], size: int = 64) -> Tensor:
    """What the model answers to each text, in evaluation mode: (texts, …), on the CPU.

    ``answer(outputs, inputs)`` reads it off the model's outputs: (batch, …). Answers for each token are filled with 0.
    """
    device, training, found = next(model.parameters()).device, model.training, []
    order = examples.lengths.argsort()
    model.eval()
    with progress_bar(len(examples)) as bar:
        for rows in order.split(size):
            inputs = tuple(x.to(device) for x in examples.rows(rows)[0])
            found.append(answer(model(*inputs), inputs).cpu())
            bar.update(len(rows))
    model.train(training)
    widest = max(part.shape[-1] for part in found) if found[0].dim() > 1 else 0
    found = [F.pad(part, (0, widest - part.shape[-1])) if part.dim() > 1 else part for part in found]
    return torch.cat(found)[order.argsort()]


def first_choice(scores: Tensor, _: Inputs) -> Tensor:
    """For `predict`: the class with the largest score, (…, classes) → (…)."""
    return scores.argmax(dim=-1)


def contestant(folder: Path | str, head: type[nn.Module], known: bool, seed: int, *outputs: int) -> nn.Module:
    """A head of `bert.py`, new, on the encoder in the folder: with its weights if they are ``known``, else random ones.

    The head's layer starts with scores of about ±1, whatever the length of the encoder's vectors; from BERT's 0.02 and
    MiniLM's short vectors they start near 0, and the encoder learns late. The table of word vectors stays as it is:
    half of the weights, of which a batch touches a handful. No dropout: in so short a training hardly a text is seen
    twice.
    """
    encoder = load_bert(folder)
    generator = runtime.seed(seed)
    model = head(encoder if known else Bert(encoder.shape), *outputs)
    some = torch.randint(encoder.shape.vocabulary, (8, 16), generator=generator)  # any tokens will do
    with torch.no_grad():
        length = model.encoder(some).norm(dim=-1).mean().item()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and not name.startswith("encoder."):
            nn.init.normal_(parameter, std=1 / length)
    model.encoder.embed.requires_grad_(False)
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return model.to(runtime.device())


def mean_vector(hidden: Tensor, inputs: Inputs) -> Tensor:
    """The mean of each text's token vectors, made 1 long: (batch, length, d) → (batch, d)."""
    return F.normalize(mean_pool(hidden, inputs[1]), dim=-1)


def shuffled(name: str, split: str | None, most: int, seed: int) -> list[dict]:
    """At most ``most`` rows of a corpus, in random order."""
    rows = data.load(name, split, quiet=True)
    return [*rows.select(torch.randperm(len(rows), generator=runtime.seed(seed))[:most].tolist())]


def pair_batches(firsts: Examples, seconds: Examples, size: int) -> Callable:
    """Draws pairs of texts that are read each on its own: all firsts, then all seconds; and the pairs' targets."""
    draw_rows = by_epoch(torch.maximum(firsts.lengths, seconds.lengths), size)

    def draw(generator: torch.Generator) -> tuple[Inputs, Tensor]:
        rows = draw_rows(generator)
        (first, targets), (second, _) = firsts.rows(rows), seconds.rows(rows)
        return stacked(first, second), targets

    return draw


@torch.no_grad()
def halfway(model: nn.Module, start: nn.Module) -> None:
    """Each weight becomes the mean of what it is and of what it was in the model from which the training started."""
    before = start.state_dict()
    for name, weight in model.state_dict().items():
        weight.lerp_(before[name].to(weight), 0.5)


def surely_longer(text: str, longest: int) -> bool:
    """More words than ``longest``, so more pieces too: a quick look, which saves most of the cutting."""
    return len(text.split()) > longest


# --- a sentence ---


def labelled(tokenizer: WordPiece, rows: Sequence[dict], longest: int, most: int) -> tuple[list[str], Examples]:
    """The texts of at most ``longest`` tokens, and as examples with their labels; at most ``most``."""
    texts, ids, labels = [], [], []
    for row in rows:
        if len(ids) == most:
            break
        if surely_longer(row["text"], longest):
            continue
        numbers = tokenizer.encode(row["text"])
        if len(numbers) <= longest:
            texts.append(row["text"])
            ids.append(numbers)
            labels.append(row["label"])
    return texts, Examples(filled(ids), torch.tensor(labels))


def bag_of_words(texts: Sequence[str], words: Sequence[str]) -> Tensor:
    """1 where a word occurs in a text, else 0: (texts, words). Order and number are lost."""
    places = {word: i for i, word in enumerate(words)}
    bags = torch.zeros(len(texts), len(words))
    for bag, text in zip(bags, texts, strict=True):
        bag[[places[word] for word in basic_words(text) if word in places]] = 1
    return bags


def words_occurring(texts: Sequence[str], times: int = 1) -> Counter:
    """Words and in how many of the texts they occur, where that is at least ``times``."""
    counts = Counter(word for text in texts for word in set(basic_words(text)))
    return Counter({word: count for word, count in counts.items() if count >= times})


def accuracy_of_words(texts: Sequence[str], labels: Tensor, new: Sequence[str], new_labels: Tensor) -> float:
    """The share of new texts whose label (0 or 1) a linear probe on bags of words names; words seen once are noise."""
    bags = [bag_of_words(part, list(words_occurring(texts, 2))) for part in (texts, new)]
    return probe_accuracy(linear_probe(bags[0], labels, 2, penalty=10.0), bags[1], new_labels)


# --- a pair ---


def scored_pairs(
    tokenizer: WordPiece, rows: Sequence[dict], longest: int
) -> tuple[list[tuple[str, ...]], list[Examples]]:
    """Rows of `stsb` whose texts have at most ``longest`` tokens: the first and the second texts, and both as examples.

    The target of each is people's score of the pair.
    """
    kept = []
    for row in rows:
        texts = row["sentence1"], row["sentence2"]
        ids = [tokenizer.encode(text) for text in texts]
        if max(map(len, ids)) <= longest:
            kept.append((texts, ids, row["score"]))
    texts, ids, scores = zip(*kept, strict=True)
    sides = [Examples(filled(side), torch.tensor(scores)) for side in zip(*ids, strict=True)]
    return list(zip(*texts, strict=True)), sides


def cosines_of_words(texts: Sequence[Sequence[str]], pairs: Sequence[Sequence[str]]) -> Tensor:
    """A bag of words' similarity of each pair, (pairs): the cosine of the bags, in which rare words weigh more.

    texts, pairs: the first and the second texts; a word's weight is −log of the share of ``texts`` that have it.
    """
    known = [text for side in texts for text in side]
    counts = words_occurring(known)
    rarity = torch.tensor([len(known) / count for count in counts.values()]).log()
    return F.cosine_similarity(*(bag_of_words(side, list(counts)) * rarity for side in pairs))


# --- each word ---


def named(split: str, most: int, seed: int) -> list[dict]:
    """Rows of `entities`, with ``tokens`` and ``tags`` as lists, as `conll` has them."""
    return [tagged(row) for row in shuffled("entities", split, most, seed)]


def tagged_words(tokenizer: WordPiece, rows: Sequence[dict], longest: int) -> Examples:
    """Rows with ``tokens`` and ``tags``, as numbers: a tag at the first piece of each word, −100 at all others."""
    ids, targets = [], []
    for row in rows:
        numbers, places = tokenizer.encode_words(row["tokens"])
        tags = torch.full_like(numbers, IGNORED).index_put((places,), torch.tensor(row["tags"]))
        ids.append(numbers[:longest])
        targets.append(tags[:longest])
    return Examples(filled(ids), nn.utils.rnn.pad_sequence(targets, batch_first=True, padding_value=IGNORED))


def entity_score(found: Tensor, examples: Examples) -> float:
    """F1 over whole entities, of a tag found for each token: (texts, longest)."""
    counted = examples.targets != IGNORED
    lists = [
        [[CONLL_TAGS[tag] for tag in row[words].tolist()] for row, words in zip(tags, counted, strict=True)]
        for tags in (found, examples.targets)
    ]
    return metrics.entity_f1(*lists)


def usual_tags(rows: Sequence[dict], new: Sequence[dict], examples: Examples) -> Tensor:
    """For each word of the new rows the tag that it had most often in ``rows``, else none: (texts, longest)."""
    seen: dict[str, Counter] = {}
    for row in rows:
        for word, tag in zip(row["tokens"], row["tags"], strict=True):
            seen.setdefault(word.lower(), Counter())[tag] += 1
    usual = {word: counts.most_common(1)[0][0] for word, counts in seen.items()}
    found = torch.zeros_like(examples.targets)
    for tags, row, targets in zip(found, new, examples.targets, strict=True):
        places = (targets != IGNORED).nonzero()[:, 0].tolist()
        for place, word in zip(places, row["tokens"], strict=False):  # a long text may have been cut
            tags[place] = usual.get(word.lower(), 0)
    return found


# --- a span ---


def asked(tokenizer: WordPiece, rows: Sequence[dict], longest: int, most: int, pair_inputs: Callable) -> Examples:
    """Question and passage as pairs of at most ``longest`` tokens; targets: first and last token of the answer.

    Rows whose answer does not stand word for word in the passage are left out.
    """
    questions, passages, targets = [], [], []
    for row in rows:
        if len(targets) == most:
            break
        if surely_longer(row["passage"], longest):
            continue
        question, passage = (tokenizer.encode(row[part])[1:-1] for part in ("question", "passage"))
        if len(question) + len(passage) + 3 <= longest:
            place = locate(tokenizer, row["passage"], row["answer"], row["start"])
            if place:
                questions.append(question)
                passages.append(passage)
                targets.append([len(question) + 2 + end for end in place])  # [CLS] question [SEP] stand before
    ids = [tokenizer.ids[token] for token in ("[CLS]", "[SEP]")]
    return Examples(pair_inputs(questions, passages, *ids), torch.tensor(targets))


def in_passage(inputs: Inputs) -> Tensor:
    """Where an answer may be: in the second segment, not in what is filled up. (batch, length)"""
    return inputs[1] & (inputs[2] == 1)


def spans_tokens(examples: Examples, spans: Tensor) -> list[list[int]]:
    """The tokens of each text's span (first, last): (texts, 2)."""
    return [ids[a : b + 1].tolist() for ids, (a, b) in zip(examples.inputs[0], spans.tolist(), strict=True)]


def answers_of_words(tokenizer: WordPiece, examples: Examples, longest: int = 20) -> list[list[int]]:
    """A bag of words' answers: in the sentence that shares most words with the question, the longest run of others."""
    ends = {tokenizer.ids["."], tokenizer.ids["[SEP]"]}
    found = []
    for ids, mask, segments in zip(*examples.inputs, strict=True):
        question = set(ids[mask & (segments == 0)].tolist())
        sentences: list[list[int]] = [[]]
        for token in ids[mask & (segments == 1)].tolist():
            if token in ends:
                sentences.append([])
            else:
                sentences[-1].append(token)
        runs: list[list[int]] = [[]]
        for token in max(sentences, key=lambda sentence: len(question & set(sentence))):
            if token in question:
                runs.append([])
            else:
                runs[-1].append(token)
        found.append(max(runs, key=len)[:longest])
    return found


def locate(tokenizer: WordPiece, passage: str, answer: str, start: int) -> tuple[int, int] | None:
    """The first and the last piece of an answer that begins at character ``start`` of the passage.

    None if it does not stand there, or begins or ends inside a word.
    """
    if not answer or not passage.startswith(answer, max(start, 0)) or start < 0:
        return None
    before, inside = (tokenizer.tokenise(text) for text in (passage[:start], answer))
    if tokenizer.tokenise(passage)[len(before) : len(before) + len(inside)] != inside:
        return None
    return len(before), len(before) + len(inside) - 1
