"""Lesson 04: a task that asks for two things at once, and what the heads of a real encoder do."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

from course_lib import data
from course_lib.data.tasks import SYMBOLS
from course_lib.lab.budgets import Budget
from course_lib.models.attention import masked_softmax, padding_mask, split_heads
from course_lib.models.bert import Bert
from course_lib.models.inside import gated, recorded
from course_lib.tokenizers.wordpiece import WordPiece
from course_lib.viz import PALETTE, curves, heatmap

BUDGETS = {
    "table_steps": Budget("steps of training at the round table", cpu=400, smoke=3),
    "sentences": Budget("sentences to choose a head on, and as many to test it on", cpu=60, gpu=300, smoke=8),
    "groups": Budget("section 6: sentences in groups of four; groups to choose a head on", cpu=120, gpu=300, smoke=4),
    "test_groups": Budget("section 6: groups to test the head on", cpu=60, gpu=300, smoke=4),
    "each": Budget("section 7: sentences for each sense of a word", cpu=6, smoke=2),
    "words": Budget("words of two senses to choose heads on, and as many to test them on", cpu=7, smoke=2),
    "draws": Budget("draws of random heads, for each number of heads", cpu=20, smoke=2),
}


def two_relations(generator: torch.Generator, batch: int, guests: int = 8) -> tuple[Tensor, Tensor]:
    """A round table: a symbol at each of ``guests`` places, (batch, guests), ``guests`` even.

    Each place has two targets, (batch, guests, 2): the symbol of its neighbour (the place before; before the first
    comes the last) and the symbol of the place opposite.
    """
    if guests < 4 or guests % 2:
        raise ValueError(f"Expected an even number of guests, 4 or more; got {guests}.")
    symbols = torch.randint(SYMBOLS, (batch, guests), generator=generator)
    return symbols, torch.stack([symbols.roll(1, dims=1), symbols.roll(guests // 2, dims=1)], dim=-1)


def which_two(logits: Tensor, answers: Tensor) -> Tensor:
    """Where the two symbols to be named differ, are they the two likeliest, whichever is whose: (guests), 1 or 0.

    logits (batch, guests, 2 answers, symbols), answers (batch, guests, 2). Likeliest: by the mean of both answers.
    """
    likeliest = logits.softmax(dim=-1).mean(dim=2).topk(2).indices.sort(dim=-1).values  # (batch, guests, 2)
    found = (likeliest == answers.sort(dim=-1).values).all(dim=-1)  # (batch, guests)
    return found[answers[..., 0] != answers[..., 1]].float()


def words_of(ids: Tensor, lengths: Tensor) -> Tensor:
    """True at the words of texts ``[CLS] words [SEP]``, ids (batch, length), lengths (batch): (batch, length)."""
    place = torch.arange(ids.shape[1], device=ids.device)
    return (place > 0) & (place < lengths[:, None] - 1)


def word_patterns(ids: Tensor, lengths: Tensor) -> dict[str, Tensor]:
    """Four patterns of texts ``[CLS] words [SEP]``, for `pattern_score`: where each word should look.

    ids (batch, length), lengths (batch) → name → gold (batch, queries, keys). [CLS], [SEP] and padding ask for nothing.
    """
    place = torch.arange(ids.shape[1], device=ids.device)
    word = words_of(ids, lengths)
    last = place == lengths[:, None] - 1
    step = place - place[:, None]  # (queries, keys): how far to the right the key is
    both = word[:, :, None] & word[:, None]
    return {
        "previous word": both & (step == -1),
        "next word": both & (step == 1),
        "[CLS]": word[:, :, None] & (place == 0),
        "[SEP]": word[:, :, None] & last[:, None],
    }


def weight_on(weights: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """The weight that a query puts on a key: (texts, heads).

    weights (texts, heads, queries, keys); query, key: one place in each text, (texts).
    """
    return weights[torch.arange(len(weights), device=weights.device), :, query, key]


def preference(weights: Tensor, query: Tensor, right: Tensor, wrong: Tensor) -> Tensor:
    """Does a query look more at the right key than at the wrong one (1, 0): (texts, heads). See `weight_on`."""
    return (weight_on(weights, query, right) > weight_on(weights, query, wrong)).float()


def entropy(weights: Tensor, asked: Tensor) -> Tensor:
    """How widely each head spreads its attention, in nats, on average over the queries ``asked`` for: (heads).

    weights (batch, heads, queries, keys), asked (batch, queries)
    """
    each = -(weights * weights.clamp_min(1e-12).log()).sum(dim=-1)  # (batch, heads, queries)
    return (each * asked[:, None]).sum(dim=(0, 2)) / asked.sum()


@torch.no_grad()
def match_entropy(model: Bert, ids: Tensor, lengths: Tensor, wanted: Tensor) -> None:
    """Scale the queries of each head until its entropy on these texts is the one wanted, (layers, heads); in place.

    From the first layer up, since what a layer reads depends on those below; by bisection, since the entropy falls as
    the factor grows.
    """
    heads, asked = model.shape.heads, words_of(ids, lengths)
    mask = padding_mask(lengths, ids.shape[1])
    for layer, block in enumerate(model.stack.blocks):
        q, k, _ = recorded(model, "qkv", ids, lengths)[layer].chunk(3, dim=-1)
        q, k = split_heads(q, heads), split_heads(k, heads)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        low, high = torch.zeros_like(wanted[layer]), torch.full_like(wanted[layer], 4000.0)
        for _ in range(24):
            factor = (low + high) / 2
            sharp = entropy(masked_softmax(scores * factor[:, None, None], mask), asked) < wanted[layer]
            low, high = torch.where(sharp, low, factor), torch.where(sharp, factor, high)
        each = factor.repeat_interleave(q.shape[-1])  # for each of the d numbers of a query
        queries = slice(0, model.shape.d)
        block.attention.qkv.weight[queries] *= each[:, None]
        block.attention.qkv.bias[queries] *= each


@contextlib.contextmanager
def values_hidden(model: Bert, hidden: Tensor) -> Iterator[None]:
    """Inside the ``with`` block the values of some tokens are 0 in all heads: they are looked at and say nothing.

    hidden (batch, length): True at those tokens.
    """

    def hide(_module: nn.Module, _inputs: tuple, qkv: Tensor) -> Tensor:
        q, k, v = qkv.chunk(3, dim=-1)
        return torch.cat([q, k, v.masked_fill(hidden[..., None], 0)], dim=-1)

    with contextlib.ExitStack() as hooks:
        for block in model.stack.blocks:
            hooks.enter_context(block.attention.qkv.register_forward_hook(hide))
        yield


def even_weights(ids: Tensor, lengths: Tensor) -> Tensor:
    """One head that spreads its attention evenly over the tokens: (batch, 1, queries, keys)."""
    token = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]  # (batch, length)
    even = token[:, None] / lengths[:, None, None]  # (batch, 1, keys)
    return even[:, None].expand(-1, 1, ids.shape[1], -1)


@torch.no_grad()
def shares_of_cls(model: Bert, ids: Tensor, lengths: Tensor, head_contributions: Callable) -> tuple[list, list]:
    """The share of [CLS] in what the words of texts ``[CLS] words [SEP]`` look at: by weight, and by weight × ‖v W_O‖.

    `head_contributions` says what a head adds. Both lists have a number for each layer, the mean over words and heads.
    """
    asked, heads = words_of(ids, lengths), model.shape.heads
    by_weight, by_norm = [], []
    weights_of_layers, qkv_of_layers = recorded(model, "attention", ids, lengths), recorded(model, "qkv", ids, lengths)
    for block, weights, qkv in zip(model.stack.blocks, weights_of_layers, qkv_of_layers, strict=True):
        values = split_heads(qkv.chunk(3, dim=-1)[2], heads)  # (batch, heads, keys, d_head)
        alone = torch.eye(ids.shape[1], device=ids.device).expand_as(
            weights
        )  # each token looks at itself with weight 1
        written = head_contributions(alone, values, block.attention.output.weight)  # (batch, heads, keys, d)
        amounts = weights * written.norm(dim=-1)[:, :, None]  # (batch, heads, queries, keys)
        for shares, each in ((by_weight, weights), (by_norm, amounts)):
            share = each[..., 0] / each.sum(dim=-1)  # (batch, heads, queries)
            shares.append(share.mean(dim=1)[asked].mean().item())
    return by_weight, by_norm


def hidden_tokens(ids: Tensor, lengths: Tensor, seed: int) -> dict[str, Tensor]:
    """Tokens of each text ``[CLS] words [SEP]``: name → (batch, length), True there; words are drawn at random."""
    place = torch.arange(ids.shape[1], device=ids.device)
    word = words_of(ids, lengths)
    drawn = torch.rand(ids.shape, generator=torch.Generator().manual_seed(seed)).to(ids.device).masked_fill(~word, -1)
    rank = drawn.argsort(dim=1, descending=True).argsort(dim=1)  # 0 is drawn first
    return {
        "[CLS]": (place == 0).expand_as(word),
        "one word": word & (rank == 0),
    }


@torch.no_grad()
def moved(model: Bert, ids: Tensor, lengths: Tensor, hidden: Tensor) -> tuple[float, float]:
    """How far the words' last hidden states move, 1 − cosine, if the values of ``hidden`` (batch, length) are 0; and if
    its keys are masked, so that the weights of the other keys sum to 1.
    """
    before = recorded(model, "blocks", ids, lengths)[-1]  # (batch, length, d)
    with values_hidden(model, hidden):
        without_value = recorded(model, "blocks", ids, lengths)[-1]
    seen = (torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]) & ~hidden
    without_key = recorded(model, "blocks", ids, seen)[-1]  # the encoder takes a mask as well as lengths
    asked = words_of(ids, lengths) & ~hidden
    by_value, by_key = (
        (1 - nn.functional.cosine_similarity(before, after, dim=-1))[asked].mean().item()
        for after in (without_value, without_key)
    )
    return by_value, by_key


@contextlib.contextmanager
def attention_even(model: Bert, but_first: bool = False) -> Iterator[None]:
    """Inside the ``with`` block each head gives the same weight to all keys that a query may see.

    If ``but_first``, the first key, [CLS], keeps its weight, and the others share the rest.
    """

    def even(_module: nn.Module, _inputs: tuple, weights: Tensor) -> Tensor:
        kept = weights * (torch.arange(weights.shape[-1], device=weights.device) == 0) * but_first
        seen = ((weights > 0) & (kept == 0)).float()
        return kept + (1 - kept.sum(dim=-1, keepdim=True)) * seen / seen.sum(dim=-1, keepdim=True).clamp_min(1)

    with contextlib.ExitStack() as hooks:
        for block in model.stack.blocks:
            hooks.enter_context(block.attention.weights.register_forward_hook(even))
        yield


@torch.no_grad()
def scores_without_patterns(model: Bert, part: "Senses") -> dict[str, Tensor]:
    """How often the same sense is nearer, (sentences), if all words are read alike: by every head, or without any."""
    with attention_even(model):
        states = recorded(model, "blocks", part.ids, part.lengths)  # layers + 1 times (sentences, length, d)
    with attention_even(model, but_first=True):
        with_sink = recorded(model, "blocks", part.ids, part.lengths)[-1]
    word = words_of(part.ids, part.lengths)[..., None]
    first = (states[0] * word).sum(dim=1) / word.sum(dim=1)  # (sentences, d)
    found = {
        "all heads even": states[-1][torch.arange(len(first)), part.place],
        "all heads even, but [CLS] keeps its weight": with_sink[torch.arange(len(first)), part.place],
        "no encoder, the mean of the words' first vectors": first,
    }
    return {name: nearer(vectors, part.same, part.other).cpu() for name, vectors in found.items()}


def some_groups(rows, count: int, seed: int, device: torch.device | str) -> tuple[list[str], Tensor]:
    """``count`` groups of four sentences of the corpus ``coreference``, drawn by the seed.

    → sentences, and the places of pronoun, antecedent and other noun behind ``[CLS]``: (3, sentences)
    """
    groups = torch.randperm(300, generator=torch.Generator().manual_seed(seed))[:count]
    chosen = rows.select([4 * group + i for group in groups.tolist() for i in range(4)])
    places = [chosen[name][:] for name in ("pronoun_place", "antecedent_place", "other_place")]
    return chosen["sentence"][:], torch.tensor(places, device=device) + 1


NOUNS_INSTEAD = {"he": "man", "she": "woman", "it": "vehicle"}


def nouns_instead(sentences: list[str]) -> list[str]:
    """A noun of the same kind in the place of each pronoun."""
    return [" ".join(NOUNS_INSTEAD.get(word, word) for word in text.split()) for text in sentences]


def five_cases(rows: Sequence[dict], sentences: list[str], places: Tensor) -> dict[str, tuple[list[str], Tensor]]:
    """The sentences with pronouns, with nouns instead, and `reflexives`: name → sentences, places.

    A sentence that has the noun instead already, as *the man*, is left out there.
    """
    new = [i for i, text in enumerate(sentences) if not set(text.split()) & set(NOUNS_INSTEAD.values())]
    cases = {
        "pronoun": (sentences, places),
        "noun instead": (nouns_instead([sentences[i] for i in new]), places[:, new]),
    }
    made, where = reflexives(rows, both_match=False)
    cases["himself, one matches"] = (made, torch.tensor(where, device=places.device) + 1)
    made, where = reflexives(rows)
    where = torch.tensor(where, device=places.device) + 1
    for start, name in enumerate(("near", "said")):
        cases[f"himself, both: {name}"] = (made[start::2], where[:, start::2])
    return cases


def nouns_of(sentences: list[str], places: Tensor) -> list[tuple[str, str]]:
    """The two nouns of each sentence, the one that is meant and the other; places as in `some_groups`."""
    _, meant, other = (places.cpu() - 1).tolist()
    return [(text.split()[m], text.split()[o]) for text, m, o in zip(sentences, meant, other, strict=True)]


def in_both_orders(first: dict[str, Tensor], nouns: list[tuple[str, str]], seed: int) -> dict[str, dict[str, str]]:
    """Which noun is preferred in both orders of a pair, *the king … the boy* and *the boy … the king*: a table.

    first: name → (pairs, orders), 1 where the noun in the first place is preferred; nouns: of each pair. A row for each
    name, shares of the pairs with their intervals; then what three rules would give.
    """
    columns = ("same noun twice", "first place twice", "second place twice")
    table = {}
    for name, each in first.items():
        found = (
            (each[:, 0] != each[:, 1]).float(),
            each[:, 0] * each[:, 1],
            (1 - each[:, 0]) * (1 - each[:, 1]),
        )
        told = []
        for pairs in found:
            low, high = interval_over_nouns(pairs, nouns, seed)
            told.append(f"{pairs.mean():.2f} ({low:.2f} to {high:.2f})" if pairs.any() else "0")
        table[name] = dict(zip(columns, told, strict=True))
    rules = {"only the noun counts": "100", "only the first place counts": "010"}
    table |= {rule: dict(zip(columns, shares, strict=True)) for rule, shares in rules.items()}
    return table | {"a coin each time": dict(zip(columns, ("1/2", "1/4", "1/4"), strict=True))}


def reflexives(rows: Sequence[dict], both_match: bool = True) -> tuple[list[str], list[list[int]]]:
    """Sentences with *himself* or *herself*; the places of the pronoun, of the noun that is meant, of the other noun.

    rows: of the corpus ``coreference``, for their nouns. *the king near the boy hurt himself* means the king,
    *the king said the boy hurt himself* the boy: both nouns match the pronoun. If not ``both_match``, only the one that
    is meant does: *the king near the queen hurt himself*, *the king said the queen hurt herself*.
    If both match, all pairs of nouns come, in the order of `itertools.combinations`, the men's first, each in both
    orders.
    """
    men, women = ({row["antecedent"] for row in rows if row["pronoun"] == pronoun} for pronoun in ("he", "she"))
    men, women = [(noun, "himself") for noun in sorted(men)], [(noun, "herself") for noun in sorted(women)]
    if both_match:
        once = [pair for nouns in (men, women) for pair in itertools.combinations(nouns, 2)]
        pairs = [ordered for pair in once for ordered in (pair, pair[::-1])]
    else:
        pairs = [*zip(men, women, strict=False), *zip(women, men, strict=False)]
    sentences = []
    for (one, reflexive_one), (other, reflexive_other) in pairs:
        sentences += [
            f"the {one} near the {other} hurt {reflexive_one} .",
            f"the {one} said the {other} hurt {reflexive_other} .",
        ]
    return sentences, [[6, 6] * len(pairs), [1, 4] * len(pairs), [4, 1] * len(pairs)]


class Senses(NamedTuple):
    """Sentences with words of two senses: the place of the word, and the sentences that it is compared with.

    ids (sentences, length), lengths and place (sentences); same, other (sentences, sentences): True where the word is
    the same and its sense is the same, or the other.
    """

    ids: Tensor
    lengths: Tensor
    place: Tensor
    same: Tensor
    other: Tensor


def read_senses(tokenizer: WordPiece, rows: Sequence[dict], device: torch.device | str) -> Senses:
    """Rows of the corpus ``senses`` as the encoder reads them."""
    ids, lengths = tokenizer.encode_all([row["sentence"] for row in rows])
    place = torch.tensor([1 + tokenizer.tokenise(row["sentence"]).index(row["word"]) for row in rows])  # 1: [CLS]
    alike = torch.tensor([[one["word"] == other["word"] for other in rows] for one in rows])
    together = torch.tensor([[one["sense"] == other["sense"] for other in rows] for one in rows])
    same = alike & together & ~torch.eye(len(rows), dtype=torch.bool)
    return Senses(*(each.to(device) for each in (ids, lengths, place, same, alike & ~together)))


def nearer(vectors: Tensor, same: Tensor, other: Tensor) -> Tensor:
    """How often a sentence of the same sense is nearer (by cosine) than one of the other sense; equally near is half.

    vectors (sentences, d); same and other (sentences, sentences), see `Senses` → (sentences)
    """
    vectors = nn.functional.normalize(vectors, dim=-1)
    cosines = vectors @ vectors.T
    pairs = same[:, :, None] & other[:, None]  # (sentences, the same, the other)
    closer = cosines[:, :, None] - cosines[:, None]
    wins = torch.where(closer.abs() < 1e-6, 0.5, (closer > 0).float())
    return (wins * pairs).sum(dim=(1, 2)) / pairs.sum(dim=(1, 2))


def margin(vectors: Tensor, same: Tensor, other: Tensor) -> Tensor:
    """Mean cosine with sentences of the same sense minus that with the other, for each sentence: (sentences)."""
    vectors = nn.functional.normalize(vectors, dim=-1)
    cosines = vectors @ vectors.T
    return (cosines * same).sum(dim=1) / same.sum(dim=1) - (cosines * other).sum(dim=1) / other.sum(dim=1)


def two_senses(tokenizer: WordPiece, device: torch.device | str) -> tuple[list[str], Callable[..., Senses]]:
    """The words of the corpus ``senses``, and a function from words to their sentences.

    Of either sense it takes ``each`` sentences, of six; which of them, the ``seed`` says.
    """
    rows = [row for split in ("train", "test") for row in data.load("senses", split, quiet=True)]
    found: dict[str, dict[str, list[dict]]] = {}
    for row in rows:
        found.setdefault(row["word"], {}).setdefault(row["sense"], []).append(row)

    def sentences_with(words: Sequence[str], each: int = 6, seed: int = 0) -> Senses:
        generator = torch.Generator().manual_seed(seed)
        chosen = []
        for word in words:
            for of_sense in found[word].values():
                order = torch.randperm(len(of_sense), generator=generator)[:each]
                chosen += [of_sense[i] for i in order.tolist()]
        return read_senses(tokenizer, chosen, device)

    return sorted(found), sentences_with


def interval_over_nouns(
    each: Tensor, nouns: Sequence[tuple[str, str]], seed: int, times: int = 2000
) -> tuple[float, float]:
    """The bootstrap interval of a mean over sentences, each (sentences), with two nouns in each.

    Drawn anew are the nouns, since a noun stands in many sentences: a sentence counts as often as its nouns came
    together.
    """
    known = sorted({noun for pair in nouns for noun in pair})
    one, other = torch.tensor([[known.index(noun) for noun in pair] for pair in nouns]).T  # (sentences) each
    drawn = torch.randint(len(known), (times, len(known)), generator=torch.Generator().manual_seed(seed))
    came = nn.functional.one_hot(drawn, len(known)).sum(dim=1)  # (times, nouns)
    together = (came[:, one] * came[:, other]).float()  # (times, sentences)
    counted = together[together.sum(dim=1) > 0]
    means = counted @ each.cpu().float() / counted.sum(dim=1)
    low, high = means.quantile(torch.tensor([0.025, 0.975])).tolist()
    return low, high


def interval_over_words(difference: Tensor, words: int, seed: int, times: int = 2000) -> tuple[float, float]:
    """The bootstrap interval of the mean of a difference, (sentences) or (draws, sentences).

    Drawn anew are the ``words`` and, if there are any, the draws. The sentences of a word stand together, and each word
    has as many.
    """
    generator = torch.Generator().manual_seed(seed)
    each = difference.reshape(-1, words, difference.shape[-1] // words).mean(dim=-1)  # (draws, words)
    draws = torch.randint(len(each), (times, len(each), 1), generator=generator)
    chosen = torch.randint(words, (times, 1, words), generator=generator)
    low, high = each[draws, chosen].mean(dim=(1, 2)).quantile(torch.tensor([0.025, 0.975])).tolist()
    return low, high


@torch.no_grad()
def without_each_head(encoder: Bert, part: Senses) -> Tensor:
    """The last hidden states of the words of two senses, with one head removed, each in turn: (heads, sentences, d).

    What goes into the layer of that head is the same with and without it, and is computed once.
    """
    states = recorded(encoder, "blocks", part.ids, part.lengths)
    mask = padding_mask(part.lengths, part.ids.shape[1])
    found = []
    for layer in range(encoder.shape.layers):
        for head in range(encoder.shape.heads):
            gates = torch.ones(encoder.shape.layers, encoder.shape.heads, device=part.ids.device)
            gates[layer, head] = 0
            x = states[layer]
            with gated(encoder, gates):
                for block in encoder.stack.blocks[layer:]:
                    x = block(x, mask)
            found.append(x[torch.arange(len(x)), part.place])
    return torch.stack(found)


def band(scores: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Of scores, each (draws, sentences): for each of them the mean, the lowest and the highest draw."""
    draws = torch.stack([each.mean(dim=1) for each in scores])
    return draws.mean(dim=1), draws.amin(dim=1), draws.amax(dim=1)


def draw_preferences(ax: Axes, often: Tensor) -> None:
    """How often each head prefers the antecedent, (layers, heads): 0.5, white, is a coin."""
    heatmap(ax, often.cpu() - 0.5, None, None, "each head: prefers the antecedent", "head", "layer", 0.5, numbers=False)
    ax.images[0].colorbar.set_ticks([-0.5, 0.0, 0.5], labels=["0: never", "0.5", "1: always"])


def draw_kept(
    ax: Axes, lines: dict[str, tuple], alone: tuple[int, float, str], with_all: float, counts: Sequence[int]
) -> None:
    """Scores of some heads only: lines as `curves` takes them, the second with a band of draws; one mark ``alone``,
    and the score of all heads.
    """
    curves(ax, lines, x="heads kept, of 72", y="same sense is nearer", legend=None)
    count, score, name = alone
    ax.plot([count], [score], "*", markersize=15, color="black", fillstyle="none", linestyle="none", label=name)
    ax.axhline(with_all, color="black", linestyle=":", label="all 72 heads")
    ax.axhline(0.5, color="#808080", linestyle="--", label="chance")
    ax.fill_between([], [], color=ax.lines[1].get_color(), alpha=0.3, label="band: lowest to highest draw")
    ax.set_xticks(counts, [str(each) for each in counts])
    ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5))


def draw_intervals(ax: Axes, each: dict[str, Tensor], limits: dict[str, tuple[float, float]], title: str) -> None:
    """The mean of each case, ``{name: (sentences)}``, with its interval, beside a coin."""
    for row, name in enumerate(each):
        share = each[name].mean()
        low, high = limits[name]
        ax.errorbar(share, row, xerr=[[share - low], [high - share]], fmt="o", color=PALETTE[0], capsize=4)
    ax.axvline(0.5, color="#808080", linestyle="--")
    ax.set_yticks(range(len(each)), [f"{name}  {each[name].mean():.2f}" for name in each])
    ax.set(
        xlim=(0, 1.05),
        ylim=(len(each) - 0.5, -0.5),
        xlabel="share of sentences, 95 % intervals; dashed: a coin",
        title=title,
    )


def draw_costs(ax: Axes, means: Tensor, limits: Tensor, heads: int = 12) -> None:
    """What the removal of each head costs, layer after layer: means (heads), limits of the intervals (heads, 2)."""
    ax.vlines(range(len(means)), *limits.T, linewidth=3, alpha=0.35, label="95 % interval over the words")
    ax.plot(range(len(means)), means, "o", markersize=4, label="mean")
    ax.axhline(0, color="#808080", linestyle="--")
    layers = range(len(means) // heads)
    for layer in layers[1:]:
        ax.axvline(heads * layer - 0.5, color="#808080", linewidth=0.8)
    ax.set_xticks([heads * (layer + 0.5) - 0.5 for layer in layers], [f"layer {layer}" for layer in layers])
    ax.set(xlabel="the removed head, 0 to 11 in each layer", ylabel="the score falls by", xlim=(-1, len(means)))
    ax.legend(loc="upper right")
