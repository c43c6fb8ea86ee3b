"""Lesson 04: a task that asks for two things at once, and what the heads of a real encoder do."""

import contextlib
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
from course_lib.viz import PALETTE

BUDGETS = {
    "table_steps": Budget("steps of training at the round table", cpu=400, gpu=1000, smoke=3),
    "sentences": Budget("sentences to choose a head on, and as many to test it on", cpu=60, gpu=300, smoke=8),
    "groups": Budget("groups of four pronoun sentences to choose a head on", cpu=120, gpu=300, smoke=4),
    "test_groups": Budget("groups of four pronoun sentences to test it on", cpu=60, gpu=300, smoke=4),
    "words": Budget("words of two senses to choose heads on, and as many to test them on", cpu=7, smoke=2),
    "draws": Budget("draws of random heads, for each number of heads", cpu=5, gpu=20, smoke=2),
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
    """One token in each text ``[CLS] words [SEP]``: name → (batch, length), True there; the word is drawn at random."""
    place = torch.arange(ids.shape[1], device=ids.device)
    word = words_of(ids, lengths)
    drawn = torch.rand(ids.shape, generator=torch.Generator().manual_seed(seed)).to(ids.device)
    return {
        "[CLS]": (place == 0).expand_as(word),
        "[SEP]": place == lengths[:, None] - 1,
        "one word": place == drawn.masked_fill(~word, -1).argmax(dim=1)[:, None],
    }


@torch.no_grad()
def moved(model: Bert, ids: Tensor, lengths: Tensor, hidden: Tensor) -> tuple[float, float]:
    """How far the words' last hidden states move, 1 − cosine, if the values of ``hidden`` (batch, length) are 0, and if
    its keys are masked, so that the weights of the other keys sum to 1.
    """
    before = recorded(model, "blocks", ids, lengths)[-1]  # (batch, length, d)
    with values_hidden(model, hidden):
        without_value = recorded(model, "blocks", ids, lengths)[-1]
    seen = (torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]) & ~hidden
    without_key = recorded(model, "blocks", ids, seen)[-1]
    asked = words_of(ids, lengths) & ~hidden
    by_value, by_key = (
        (1 - nn.functional.cosine_similarity(before, after, dim=-1))[asked].mean().item()
        for after in (without_value, without_key)
    )
    return by_value, by_key


def some_groups(rows, count: int, seed: int, device: torch.device | str) -> tuple[list[str], Tensor]:
    """``count`` groups of four sentences of the corpus ``coreference``, drawn by the seed.

    → sentences, and the places of pronoun, antecedent and other noun behind ``[CLS]``: (3, sentences)
    """
    groups = torch.randperm(300, generator=torch.Generator().manual_seed(seed))[:count]
    chosen = rows.select([4 * group + i for group in groups.tolist() for i in range(4)])
    places = [chosen[name][:] for name in ("pronoun_place", "antecedent_place", "other_place")]
    return chosen["sentence"][:], torch.tensor(places, device=device) + 1


SLIDE_SENTENCES = [  # S1's; S4's; and Uszkoreit's with another ending, where *it* means the street: text, pronoun
    ('"I voted for Nader because he was most aligned with my values," she said.', "he"),
    ('"I voted for Nader because he was most aligned with my values," she said.', "my"),
    ('"I voted for Nader because he was most aligned with my values," she said.', "she"),
    ("The animal didn't cross the street because it was too tired.", "it"),
    ("The animal didn't cross the street because it was too wide.", "it"),
]
NOUNS_INSTEAD = {"he": "man", "she": "woman", "it": "vehicle"}


def nouns_instead(sentences: list[str]) -> list[str]:
    """A noun of the same kind in the place of each pronoun."""
    return [" ".join(NOUNS_INSTEAD.get(word, word) for word in text.split()) for text in sentences]


def five_cases(rows: Sequence[dict], sentences: list[str], places: Tensor) -> dict[str, tuple[list[str], Tensor, int]]:
    """The sentences with pronouns, with nouns instead, and `reflexives`: name → sentences, places, size of a group."""
    cases = {"pronoun": (sentences, places, 4), "noun instead": (nouns_instead(sentences), places, 4)}
    made, where = reflexives(rows, both_match=False)
    cases["himself, one matches"] = (made, torch.tensor(where, device=places.device) + 1, 2)
    made, where = reflexives(rows)
    where = torch.tensor(where, device=places.device) + 1
    for start, name in enumerate(("near", "said")):
        cases[f"himself, both: {name}"] = (made[start::2], where[:, start::2], 1)
    return cases


def three_questions(sentences: list[str], places: Tensor) -> dict[str, tuple[list[str], Tensor]]:
    """The sentences with *he* or *she*; both nouns are things; a noun asks: name → sentences, places."""
    asked = [i for i, text in enumerate(sentences) if {"he", "she"} & set(text.split())]
    chosen, where = [sentences[i] for i in asked], places[:, asked]
    things = []
    for text, nouns in zip(chosen, (where[1:].T - 1).tolist(), strict=True):
        words = text.split()
        words[min(nouns)], words[max(nouns)] = "table", "stone"
        things.append(" ".join(words))
    return {"pronoun": (chosen, where), "no noun fits": (things, where), "noun instead": (nouns_instead(chosen), where)}


def reflexives(rows: Sequence[dict], both_match: bool = True) -> tuple[list[str], list[list[int]]]:
    """Sentences with *himself* or *herself*; the places of the pronoun, of the noun that is meant, of the other noun.

    rows: of the corpus ``coreference``, for their nouns. *the king near the boy hurt himself* means the king,
    *the king said the boy hurt himself* the boy: both nouns match the pronoun. If not ``both_match``, only the one that
    is meant does: *the king near the queen hurt himself*, *the king said the queen hurt herself*.
    """
    men, women = ({row["antecedent"] for row in rows if row["pronoun"] == pronoun} for pronoun in ("he", "she"))
    men, women = [(noun, "himself") for noun in sorted(men)], [(noun, "herself") for noun in sorted(women)]
    if both_match:
        pairs = [pair for nouns in (men, women) for pair in zip(nouns, nouns[1:] + nouns[:1], strict=True)]
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
    """The words of the corpus ``senses``, and a function from words to their sentences, ``each`` of either sense."""
    rows = [row for split in ("train", "test") for row in data.load("senses", split, quiet=True)]
    found: dict[str, dict[str, list[dict]]] = {}
    for row in rows:
        found.setdefault(row["word"], {}).setdefault(row["sense"], []).append(row)

    def sentences_with(words: Sequence[str], each: int = 6) -> Senses:
        chosen = [row for word in words for rows_of_sense in found[word].values() for row in rows_of_sense[:each]]
        return read_senses(tokenizer, chosen, device)

    return sorted(found), sentences_with


@torch.no_grad()
def rows_of(encoder: Bert, tokenizer: WordPiece, text: str, asked: Sequence[str]) -> tuple[list[str], Tensor]:
    """The tokens of a text, and where some of them look: (asked, layers · heads, tokens)."""
    tokens = ["[CLS]", *tokenizer.tokenise(text), "[SEP]"]
    ids = tokenizer.encode(text).to(next(encoder.parameters()).device)
    weights = torch.cat(recorded(encoder, "attention", ids[None]), dim=1)[0]  # (layers · heads, queries, keys)
    return tokens, weights[:, [tokens.index(word) for word in asked]].transpose(0, 1).cpu()


def interval(each: Tensor, generator: torch.Generator, draws: int = 2000) -> tuple[float, float]:
    """Bootstrap: where 95 % of the means lie, if the items, each (items), are drawn anew, with replacement."""
    drawn = torch.randint(len(each), (draws, len(each)), generator=generator)
    low, high = each[drawn].mean(dim=1).quantile(torch.tensor([0.025, 0.975])).tolist()
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


def gains(on_nouns: dict[str, Tensor], on_cls: dict[str, Tensor], head: int) -> str:
    """What a head's nouns lose and [CLS] gains in the `three_questions` without an answer, and its rank among all.

    on_nouns, on_cls: name → weight of each head, (heads)
    """
    lines = []
    for name in ("no noun fits", "noun instead"):
        lost = on_nouns["pronoun"] - on_nouns[name]  # (heads)
        gained = on_cls[name] - on_cls["pronoun"]  # (heads)
        rank = int((gained > gained[head]).sum()) + 1
        lines.append(
            f"{name}: nouns lose {lost[head]:.2f}, [CLS] gains {gained[head]:.2f} "
            f"(rank {rank} of {len(gained)} heads; mean of all {gained.mean():.2f})"
        )
    return "\n".join(lines)


def draw_moves(ax: Axes, moves: dict[str, dict[str, float]]) -> None:
    """How far the words move by two interventions, each ``{token: distance}``, on a scale of powers of ten."""
    for (name, each), marker, up in zip(moves.items(), "os", (-12, 7), strict=True):
        ax.plot(list(each.values()), list(each), marker, label=name)
        for token, far in each.items():
            ax.annotate(f"{far:.2f}", (far, token), (0, up), textcoords="offset points", ha="center", fontsize=10)
    ax.set(xscale="log", xlim=(0.1, 200), ylim=(2.6, -0.6))
    ax.set(title="the words move by", xlabel="100 · (1 − cosine), log scale")
    ax.legend(loc="center right")


def draw_intervals(ax: Axes, each: dict[str, Tensor], limits: dict[str, tuple[float, float]], title: str) -> None:
    """The mean of each case, ``{name: (sentences)}``, with its interval, beside a coin."""
    for row, name in enumerate(each):
        share = each[name].mean()
        low, high = limits[name]
        ax.errorbar(share, row, xerr=[[share - low], [high - share]], fmt="o", color=PALETTE[0], capsize=4)
    ax.axvline(0.5, color="#808080", linestyle="--")
    ax.set_yticks(range(len(each)), [f"{name}  {each[name].mean():.2f}" for name in each])
    ax.set(xlim=(0, 1.05), ylim=(len(each) - 0.5, -0.5), xlabel="95 % interval; dashed: a coin", title=title)


def draw_costs(ax: Axes, means: Tensor, limits: Tensor, heads: int = 12) -> None:
    """What the removal of each head costs, layer after layer: means (heads), limits of the intervals (heads, 2)."""
    ax.vlines(range(len(means)), *limits.T, linewidth=3, alpha=0.35, label="95 % interval over the words")
    ax.plot(range(len(means)), means, "o", markersize=4, label="mean")
    ax.axhline(0, color="#808080", linestyle="--")
    layers = range(len(means) // heads)
    for layer in layers[1:]:
        ax.axvline(heads * layer - 0.5, color="#808080", linewidth=0.8)
    ax.set_xticks([heads * (layer + 0.5) - 0.5 for layer in layers], [f"layer {layer}" for layer in layers])
    ax.set(xlabel="the removed head", ylabel="the score falls by", ylim=(-0.05, 0.062))
    ax.legend(loc="upper right")
