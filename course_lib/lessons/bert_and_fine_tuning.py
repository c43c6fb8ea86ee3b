"""Lesson 08: a small BERT is pretrained; then one encoder learns four tasks, each beside what a bag of words would say.

Sentences of the pretraining are rows of word numbers, (length) each, without [CLS] and [SEP]; the special tokens have
fixed numbers.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib import data, runtime
from course_lib.data.batches import IGNORED, Examples, Inputs, by_epoch, pad_rows, stack_inputs
from course_lib.data.readers import CONLL_TAGS, tagged
from course_lib.measure import metrics
from course_lib.measure.probes import LabelledWord, linear_probe, probe_accuracy
from course_lib.models.bert import Bert, mean_pool
from course_lib.pretrained import load_bert
from course_lib.progress_bar import progress_bar
from course_lib.tokenizers import words_and_marks
from course_lib.tokenizers.wordpiece import WordPiece, basic_words
from course_lib.training.optimisers import Muon, hidden_matrices

# --- pretraining: blanks to fill, pairs to tell apart ---

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
PAD, UNK, CLS, SEP, MASK = range(len(SPECIAL))


def english_texts(split: str) -> list[list[str]]:
    """Every English text of Tatoeba once, as words and marks in small letters."""
    return [words_and_marks(text) for text in sorted(set(data.load("tatoeba_en_es", split, quiet=True)["en"][:]))]


def most_frequent(texts: Sequence[Sequence[str]], count: int) -> list[str]:
    """A vocabulary: the special tokens, then the most frequent words of the texts (lists of words)."""
    counts = Counter(word for text in texts for word in text)
    return [*SPECIAL, *(word for word, _ in counts.most_common(count))]


def sentences_as_ids(texts: Sequence[Sequence[str]], vocabulary: list[str], lengths: range) -> list[Tensor]:
    """The texts of these lengths whose words are all known, as numbers."""
    number = {word: i for i, word in enumerate(vocabulary)}
    chosen = [text for text in texts if len(text) in lengths and number.keys() >= set(text)]
    return [torch.tensor([number[word] for word in text]) for text in chosen]


def whole_sentences(rows: Sequence[Tensor]) -> Examples:
    """[CLS] sentence [SEP] of each, as examples without a target."""
    framed = [F.pad(F.pad(row, (1, 0), value=CLS), (0, 1), value=SEP) for row in rows]
    return Examples(pad_rows(framed), torch.zeros(len(rows)))


def halves(rows: Sequence[Tensor], generator: torch.Generator, pair_inputs: Callable) -> tuple[Inputs, Tensor]:
    """Each sentence cut in the middle, as a pair; half of the pairs get the second half of another sentence.

    Targets: 0 where the second half follows, 1 where it is from elsewhere.
    """
    elsewhere = (torch.rand(len(rows), generator=generator) < 0.5).long()
    further = torch.randint(1, len(rows), (len(rows),), generator=generator)  # never the sentence itself
    order = (torch.arange(len(rows)) + elsewhere * further) % len(rows)
    firsts, seconds = [row[: len(row) // 2] for row in rows], [row[len(row) // 2 :] for row in rows]
    return pair_inputs(firsts, [seconds[i] for i in order.tolist()], CLS, SEP, PAD), elsewhere


def pretraining_batches(
    rows: Sequence[Tensor], vocabulary: int, size: int, mask_tokens: Callable, pair_inputs: Callable
) -> Callable:
    """Draws ``size`` whole sentences and half as many pairs in one batch, all with blanks.

    Targets: the hidden words, (texts, longest); and for each text whether its second half is from elsewhere, (texts):
    −100 for a whole sentence, since nothing is asked there.
    """
    whole = whole_sentences(rows)
    draw_whole, draw_halved = by_epoch(whole.lengths, size), by_epoch(whole.lengths, max(2, size // 2))

    def draw(generator: torch.Generator) -> tuple[Inputs, tuple[Tensor, Tensor]]:
        sentences = whole.rows(draw_whole(generator))[0]
        pairs, elsewhere = halves([rows[i] for i in draw_halved(generator)], generator, pair_inputs)
        ids, mask, segments = stack_inputs(sentences, pairs)
        inputs, blanks = mask_tokens(ids, generator, MASK, vocabulary, range(MASK))
        return (inputs, mask, segments), (blanks, F.pad(elsewhere, (size, 0), value=IGNORED))

    return draw


def muon(model: nn.Module) -> Callable:
    """An optimizer for `training.fit`: Muon for the blocks' matrices, AdamW for the rest. It needs far fewer steps."""
    return partial(Muon, hidden=hidden_matrices(model.encoder.stack), ratio=4.0)


def chosen_only(model: nn.Module, hidden: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """What the layer for words reads at the chosen tokens, (chosen, d), and their words: 15 % of the work."""
    head, chosen = model.words, targets != IGNORED
    return head.norm(head.activation(head.dense(hidden[chosen]))), targets[chosen]


@torch.no_grad()
def fill_blanks(model: nn.Module, unseen: Examples, places: Tensor) -> tuple[Tensor, Tensor]:
    """One blank in each sentence, at ``places``: is its word the first choice? What is its loss? Both (sentences)."""
    (ids, mask, _), rows = unseen.inputs, torch.arange(len(unseen))
    hidden, device = ids[rows, places], next(model.parameters()).device
    seen = ids.index_put((rows, places), torch.tensor(MASK))
    states = model.encoder(seen.to(device), mask.to(device))[rows, places]
    scores = model.words(states, model.encoder.embed.weight).cpu()
    return (scores.argmax(dim=-1) == hidden).float(), F.cross_entropy(scores, hidden, reduction="none")


@torch.no_grad()
def guesses(model: nn.Module, vocabulary: list[str], sentence: str, count: int = 4) -> list[tuple[str, float]]:
    """The likeliest words for the first ``_`` of a sentence, with their probabilities."""
    row = [MASK if word == "_" else vocabulary.index(word) for word in sentence.split()]
    ids = torch.tensor([[CLS, *row, SEP]], device=next(model.parameters()).device)
    scores = model.words(model.encoder(ids), model.encoder.embed.weight)[0, 1 + row.index(MASK)]
    best = scores.softmax(dim=-1).topk(count)
    return [(vocabulary[i], p) for i, p in zip(best.indices.tolist(), best.values.tolist(), strict=True)]


# --- fine-tuning ---


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


@torch.no_grad()
def average_with(model: nn.Module, start: nn.Module) -> None:
    """Each weight becomes the mean of what it is and of what it was in the model from which the training started."""
    before = start.state_dict()
    for name, weight in model.state_dict().items():
        weight.lerp_(before[name].to(weight), 0.5)


def surely_longer(text: str, longest: int) -> bool:
    """More words than ``longest``, so more pieces too: a quick look, which saves most of the cutting."""
    return len(text.split()) > longest


# --- a sentence ---


def labelled(tokenizer: WordPiece, rows: Sequence[dict], longest: int, most: int) -> tuple[list[str], Examples, int]:
    """The first ``most`` texts of at most ``longest`` tokens; the same as examples with their labels; and how many
    longer ones were left out on the way.
    """
    texts, ids, labels, left_out = [], [], [], 0
    for row in rows:
        if len(ids) == most:
            break
        numbers = None if surely_longer(row["text"], longest) else tokenizer.encode(row["text"])
        if numbers is None or len(numbers) > longest:
            left_out += 1
            continue
        texts.append(row["text"])
        ids.append(numbers)
        labels.append(row["label"])
    return texts, Examples(pad_rows(ids), torch.tensor(labels)), left_out


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
    sides = [Examples(pad_rows(side), torch.tensor(scores)) for side in zip(*ids, strict=True)]
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


def entity_rows(split: str, most: int, seed: int) -> list[dict]:
    """Rows of `entities`, with ``tokens`` and ``tags`` as lists, as `conll` has them."""
    return [tagged(row) for row in shuffled("entities", split, most, seed)]


def tagged_words(tokenizer: WordPiece, rows: Sequence[dict], longest: int) -> Examples:
    """Rows with ``tokens`` and ``tags``, as numbers: a tag at the first piece of each word, −100 at all others.

    A text of more than ``longest`` tokens is refused: the tags of a cut one would count neither as right nor as wrong.
    """
    ids, targets = [], []
    for row in rows:
        numbers, places = tokenizer.encode_words(row["tokens"])
        if len(numbers) > longest:
            start = " ".join(row["tokens"][:6])
            raise ValueError(
                f"Expected texts of at most {longest} tokens; the one that begins with {start!r} has {len(numbers)}: "
                "raise longest, or leave it out."
            )
        ids.append(numbers)
        targets.append(torch.full_like(numbers, IGNORED).index_put((places,), torch.tensor(row["tags"])))
    return Examples(pad_rows(ids), nn.utils.rnn.pad_sequence(targets, batch_first=True, padding_value=IGNORED))


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
        for place, word in zip(places, row["tokens"], strict=True):
            tags[place] = usual.get(word.lower(), 0)
    return found


# --- a span ---


def question_examples(
    tokenizer: WordPiece, rows: Sequence[dict], longest: int, most: int, pair_inputs: Callable
) -> Examples:
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


# --- what each layer knows of a word ---


DETERMINERS = {"a", "the", "my", "your", "his", "her"}


def noun_or_verb(texts: Sequence[Sequence[str]], split: str, most: int) -> list[LabelledWord]:
    """The words of `nouns_and_verbs` after *to* (1, a verb) or after *the* and the like (0, a noun), in real sentences.

    Each word is as often the one as the other, at most ``most`` times.
    """
    words = data.load("nouns_and_verbs", split, quiet=True)["word"]
    found: dict[str, tuple[list, list]] = {word: ([], []) for word in words}
    for text in texts:
        for place, (before, word) in enumerate(pairwise(text), start=1):
            if word in found and (before == "to" or before in DETERMINERS):
                verb = int(before == "to")
                found[word][verb].append((text, place, verb))
    rows = []
    for nouns, verbs in found.values():
        count = min(len(nouns), len(verbs), most)
        rows += [*nouns[:count], *verbs[:count]]
    return rows


def roles(split: str) -> list[LabelledWord]:
    """Both nouns of active and passive sentences: 1 for the agent, who does it, 0 for the patient."""
    return [(row["sentence"].split(), row["place"], row["role"]) for row in data.load("roles", split, quiet=True)]


def kinds_of_names(rows: Iterable[dict]) -> list[LabelledWord]:
    """Every word of a name in rows with ``tokens`` and ``tags``: 0 person, 1 organisation, 2 place, 3 rest."""
    return [(row["tokens"], place, (tag - 1) // 2) for row in rows for place, tag in enumerate(row["tags"]) if tag]
