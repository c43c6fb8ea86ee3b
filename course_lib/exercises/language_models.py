"""Exercises of lesson 06: a merge of byte-pair encoding, the block, the loss, perplexity, the cache."""

import math
from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.lab.grading import Check, Exercise, Wrong, describe
from course_lib.lab.ladder import Ladder, copied, edits, signature_check
from course_lib.measure.metrics import perplexity_of
from course_lib.models.attention import Cache, update_cache
from course_lib.models.transformer import block
from course_lib.tokenizers.bpe import merge
from course_lib.training import next_token_loss


def _random(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def _whole(seed: int, high: int, *shape: int) -> Tensor:
    return torch.randint(high, shape, generator=torch.Generator().manual_seed(seed))


# --- 6.1 ---

MERGES = [  # tokens, pair, new
    (list("banana"), ("a", "n"), "an"),
    ([3, 1, 2, 1, 2, 2, 1], (1, 2), 9),
    (list("aaa"), ("a", "a"), "aa"),
    (list("aaaaabaa"), ("a", "a"), "aa"),
    (["low", "er", "low", "e", "r"], ("low", "er"), "lower"),
    (list("xyz"), ("z", "x"), "zx"),
    (["a"], ("a", "b"), "ab"),
    ([], ("a", "b"), "ab"),
]


def _overlapping(tokens, pair, new):
    """Looks at every place, also inside a pair that was merged already."""
    here = [p == tuple(pair) for p in pairwise([*tokens, None])]
    return [new if joined else t for t, joined, behind in zip(tokens, here, [False, *here]) if joined or not behind]  # noqa: B905


def _a_list(answer: Callable) -> None:
    result = answer(*copied(MERGES[0]))
    if isinstance(result, str):
        raise Wrong("Expected a list of tokens; got one string: text cannot tell where a token ends.")
    if isinstance(result, tuple):
        raise Wrong("Expected a list of tokens; got a tuple: `list(…)` makes one of it.")


merging = Exercise(
    id="6.1",
    title="a merge of byte-pair encoding",
    reference=merge,
    checks=Ladder(
        merge,
        MERGES,
        returns=["the list of tokens"],
        slips=[
            (
                _overlapping,
                "In a a a the pair a a stands once, then one a is left: after a merge, go on *behind* the pair.",
            ),
            (
                lambda tokens, pair, new: [new for p in pairwise(tokens) if p == tuple(pair)],
                "Only the new tokens are left: keep the others too, each in its place.",
            ),
            *edits(
                merge,
                """
                first, second = pair → second, first = pair ; in tokens: → in tokens[::-1]: ;
                    return merged → return merged[::-1]
                    · It merges from the right: a a a must become aa a, not a aa. Start at the left.
                merged and → merged and new not in merged and · Only the first pair is merged; merge every one of them.
                merged[-1] = new → merged[-1:] = new, token
                    · The second token of the pair is still there: the new token stands for both.
                return merged → return merged if merged and merged[-1] == new else merged[:-1]
                    · The last token is lost when it ends no pair: the loop over pairs stops one token short.
                merged[-1] = new → merged.append(token) · The tokens come back as they were: nothing is merged.
                    · (A list never equals a tuple: do you compare the two?)
                token == second and merged and merged[-1] == first → token in pair ;
                    merged[-1] = new → merged.append(new)
                    · Each token that belongs to the pair is replaced on its own; only the two side by side are a pair.
                first, second = pair → second, first = pair
                    · The pair is taken in the wrong order: its first token comes first.
                token == second and merged and merged[-1] == first → {merged[-1] if merged else new, token} == {*pair}
                    · The pair is merged in both orders; a b and b a are different pairs.
                return merged → return [token for token in merged if token != new]
                    · The pairs are gone, but the new token does not stand in their place.
                merged[-1] = new → merged[-1] = first · The pair becomes its first token; it has to become `new`.
                merged[-1] = new → merged[-1] = first + second · The two tokens are joined with `+`; put `new` in
                    · their place. (Tokens may be numbers: 1 and 2 are not 3.)
                merged[-1] = new → merged[-1] = [first, second]
                    · The pair is put into a list of its own; it has to become the one token `new`.
                """,
            ),
        ],
        told=lambda tokens, pair, new: f"the tokens {tokens} and the pair {pair}",
    ).extended(_a_list, before="types"),
    crashes=[
        ("index out of range", "The last token has no neighbour: stop before it, or ask first."),
        ("can only concatenate", "A list takes one more token by `out.append(token)`."),
        ("must be str, not", "Tokens may be numbers too: do not join them into text."),
        ("expected str instance", "Tokens may be numbers too: do not join them into text."),
        ("has no attribute 'replace'", "The tokens are a list, not a text: two tokens are compared, not letters."),
    ],
    nudge="Build a new list from left to right. When the token before and this one are the pair, they become one.",
    sketch="""
        merged = an empty list
        for each token:
            if it is the pair's second one, and the last in merged is the pair's first one:
                the last in merged becomes the new token
            else: append the token
        return merged
        """,
)

# --- 6.2 ---


def _layers(seed: int, d: int, count: int) -> tuple[list[Callable], list[Callable]]:
    """Layers and norms as functions: what they do depends on the seed."""
    mix = [_random(seed + i, d, d) / d**0.5 for i in range(count)]
    gains = [1 + 0.3 * _random(seed + 10 + i, d) for i in range(count)]
    shifts = [0.3 * _random(seed + 20 + i, d) for i in range(count)]

    def layer(w: Tensor) -> Callable:
        return lambda x: torch.tanh(x @ w.to(x)) + x.mean(dim=1, keepdim=True)  # looks at other tokens too

    def norm(gain: Tensor, shift: Tensor) -> Callable:
        return lambda x: F.layer_norm(x, (d,), gain.to(x), shift.to(x))

    return [layer(w) for w in mix], [norm(gain, shift) for gain, shift in zip(gains, shifts, strict=True)]


BLOCKS = [
    (_random(1, 2, 5, 8), *_layers(1, 8, 2), True),
    (_random(2, 2, 5, 8), *_layers(2, 8, 2), False),
    (_random(3, 1, 3, 4), *_layers(3, 4, 3), True),
    (_random(4, 3, 2, 6), *_layers(4, 6, 3), False),
]


def _in_its_order(answer: Callable) -> None:
    for x, layers, norms, pre_norm in BLOCKS:
        if not torch.allclose(answer(x, layers, norms, pre_norm), block(x, layers, norms, pre_norm), atol=1e-5):
            order = "pre-norm order, x + f(LN(x))" if pre_norm else "post-norm order, LN(x + f(x))"
            raise Wrong(f"In {order}, with {len(layers)} layers, the numbers differ: carry one x by hand and compare.")


the_block = Exercise(
    id="6.2",
    title="the block",
    reference=block,
    checks=Ladder(
        block,
        BLOCKS,
        returns=["x"],
        slips=edits(
            block,
            """
            if pre_norm → if not pre_norm · Pre-norm and post-norm are swapped: with pre_norm the norm comes first.
            if pre_norm → if True · `pre_norm` is not looked at: without it the norm comes after the sum.
            if pre_norm → if False · `pre_norm` is not looked at: with it the norm comes before the layer.
            x + layer(norm(x)) → layer(norm(x)) ; norm(x + layer(x)) → norm(layer(x))
                · The residual path is missing: x itself is added to what the layer gives.
            x + layer(norm(x)) → norm(x) + layer(norm(x))
                · With pre_norm the residual path carries the normed x; it has to carry x itself, untouched.
            norm(x + layer(x)) → x + norm(layer(x))
                · Without pre_norm the norm is taken of the layer's output alone; take it of the sum, n(x + f(x)).
            x + layer(norm(x)) → x + norm(layer(x))
                · With pre_norm the norm comes *after* the layer; it belongs before it: x + f(n(x)).
            x + layer(norm(x)) → x + layer(x) ; norm(x + layer(x)) → x + layer(x) · The norms are not used.
            norm(x + layer(x)) → norm(x + layer(norm(x)))
                · Without pre_norm there are two norms around the layer; one, of the sum, is asked for.
            x + layer(norm(x)) → norm(x + layer(norm(x)))
                · With pre_norm there are two norms around the layer; one, before it, is asked for.
            layer, norm in zip(layers, norms, → layer, norm, first in zip(layers, norms, [x] * len(norms), ;
                x + layer(norm(x)) → first + layer(norm(x)) ; norm(x + layer(x)) → norm(first + layer(x))
                · Every layer adds to the block's first input; each adds to what the layer before it gave.
            layer, norm in zip(layers, norms, → layer, norm, first in zip(layers, norms, [x] * len(norms), ;
                layer(norm(x)) → layer(norm(first)) ; norm(x + layer(x)) → norm(x + layer(first))
                · Every layer reads the block's first input; each reads what the layer before it gave.
            layer, norm in zip(layers, norms, → layer, norm, first in zip(layers, norms, [x] * len(norms), ;
                x + layer(norm(x)) → first + layer(norm(first)) ; norm(x + layer(x)) → norm(first + layer(first))
                · Every layer starts from the block's first input, so that only the last one counts: hand x on.
            zip(layers, norms, → zip(layers[:1], norms[:1], · Only the first layer is used; go through all of them.
            zip(layers, norms, → zip(layers[:2], norms[:2],
                · Only the first two layers are used; there may be three, as in lesson 07: loop over them.
            zip(layers, norms, → zip(layers, [norms[0]] * len(layers),
                · All layers share the first norm; each has one of its own.
            zip(layers, norms, → zip(layers[::-1], norms[::-1], · The layers are used in reversed order.
            x = x + layer → h = x + layer · This is x as it came in.
            """,
        ),
        properties=[_in_its_order],
    ),
    crashes=[
        ("too many values to unpack", "There may be any number of layers: go through both lists with `zip`."),
        ("object is not callable", "A layer and a norm are functions: call them on x, one after the other."),
        ("non-iterable function object", "`layers` and `norms` are lists: go through both with `zip`."),
        ("unsupported operand", "Something is missing its call: `layer(x)`, not `layer`."),
    ],
    nudge="One line a layer; x is carried from one to the next. Does the norm stand before f, or around the sum?",
    sketch="""
        for each layer and its norm:
            with pre_norm:     x becomes x plus the layer of the normed x
            without:           x becomes the norm of (x plus the layer of x)
        return x
        """,
)

# --- 6.3 ---

LOSSES = [
    (_random(seed, *shape), _whole(seed, shape[-1], *shape[:2]))
    for seed, shape in enumerate([(3, 5, 7), (1, 2, 4), (2, 9, 3)])
]


CUT_ALIKE = """Scores and tokens are cut alike, so they are not shifted against each other:
    · leave out the *last* scores and the *first* tokens."""
EACH_TOKEN = "This is the loss of each token; take the mean of them all."


def _no_look_at_first(answer: Callable) -> None:
    """The scores after the last token are about a token that is not there."""
    logits, ids = _random(5, 2, 6, 5), _whole(5, 5, 2, 6)
    changed = logits.clone()
    changed[:, -1] += 3 * _random(6, 2, 5)
    if not torch.allclose(answer(logits, ids), answer(changed, ids)):
        raise Wrong(
            "The scores at the last place change the loss, but they are about a token that is not there: "
            "leave the last scores out, and the first token."
        )


TOO_LARGE = "`exp` overflows, or softmax rounds to 0, before the logarithm is taken"


def _large_scores(answer: Callable) -> None:
    """softmax gives 0 for what is 200 below the best, and its logarithm is −∞. Other scores came out right before."""
    logits, ids = 200 * F.one_hot(_whole(7, 4, 2, 3), 4).float(), _whole(8, 4, 2, 3)
    got, want = answer(logits, ids), next_token_loss(logits, ids)
    if not torch.allclose(got, want, rtol=1e-4):
        why = "something on the way cuts it off" if got.isfinite() else TOO_LARGE
        raise Wrong(
            f"With scores of 0 and 200 the loss must be {want:.1f}; got {got:.4g}: {why}. Use `log_softmax` or "
            "`cross_entropy`, and add nothing."
        )


loss = Exercise(
    id="6.3",
    title="the loss of a language model",
    reference=next_token_loss,
    checks=Ladder(
        next_token_loss,
        LOSSES,
        returns=["loss"],
        slips=edits(
            next_token_loss,
            f"""
            logits[:, :-1], ids[:, 1:] → logits, ids · Nothing is shifted: each place is asked for the token that it
                · has just read. Place t has to say the token at t + 1.
            logits[:, :-1], ids[:, 1:] → logits[:, 1:], ids[:, :-1]
                · It is shifted the wrong way: each place is asked for the token *before* it.
            logits[:, :-1], ids[:, 1:] → logits, ids.roll(-1, dims=1)
                · `roll` brings the first token round to the end; after the last token nothing came: leave it out.
            logits[:, :-1] → logits[:, 1:] · {CUT_ALIKE}
            ids[:, 1:] → ids[:, :-1] · {CUT_ALIKE}
            logits[:, :-1], ids[:, 1:] → logits[:-1], ids[1:]
                · The batch is shifted; the length is the second dimension.
            logits[:, :-1], ids[:, 1:] → logits, ids ;
                predicted.flatten(0, 1), came.flatten() → predicted.flatten(0, 1)[:-1], came.flatten()[1:]
                · Shift before you flatten: else the end of one text is asked for the beginning of the next.
            came.flatten()) → came.flatten(), reduction="sum") · This is the sum over all tokens; take the mean.
            came.flatten()) → came.flatten(), reduction="none") · {EACH_TOKEN}
            predicted.flatten(0, 1), came.flatten() → predicted.transpose(1, 2), came, reduction="none" · {EACH_TOKEN}
            predicted.flatten(0, 1), → predicted.softmax(-1).flatten(0, 1),
                · The softmax is taken twice: `cross_entropy` wants the scores as they are.
            cross_entropy → nll_loss
                · The scores are not yet log-probabilities: `log_softmax` over the vocabulary first.
            cross_entropy(predicted → nll_loss(predicted.softmax(-1)
                · The logarithm is missing: this is the mean probability.
            return nn → return -nn · The minus is missing: a loss gets smaller as the model gets better.
            came.flatten()) → came.flatten(), reduction="sum") / len(ids)
                · It is divided by the number of texts; divide by the number of tokens that are predicted.
            came.flatten()) → came.flatten(), reduction="sum") / ids.numel()
                · It is divided by all tokens; the first of each text is not predicted and does not count.
            came.flatten()) → came.flatten()).exp() · This is the perplexity; the loss is its logarithm.
            logits[:, :-1], ids[:, 1:] → logits[:, -2:-1], ids[:, -1:]
                · Only the last token is predicted; under the mask every place may learn at once.
            cross_entropy(predicted → nll_loss(predicted.log_softmax(1)
                · The softmax runs along the text; take it over the vocabulary, the last dimension.
            predicted.flatten(0, 1), came.flatten() → predicted.reshape(len(ids), -1, came.shape[1]), came
                · `reshape` (or `view`) turns nothing round: it mixes the scores of different places. Use
                · `transpose(1, 2)`, or flatten batch and length.
            came.flatten()) → came.flatten(), label_smoothing=0.1)
                · Labels are smoothed here, as in lesson 07; the plain loss is asked for.
            came.flatten()) → came.flatten()) / torch.tensor(2.0).log()
                · This is the loss in bits, with logarithms of base 2; the natural logarithm is asked for.
            """,
        ),
        properties=[_no_look_at_first],
    ).extended(_large_scores, after="numbers"),
    crashes=[
        (
            "Expected target size",
            "`cross_entropy` wants the vocabulary in the second dimension: flatten batch and length first.",
        ),
        (
            "batch_size",
            "There must be as many scores as targets: one place is left out of each, the last and the first.",
        ),
        ("view size is not compatible", "A slice does not lie in one piece: use `reshape` or `flatten`, not `view`."),
        ("not implemented for 'Long'", "The scores come first, then the targets."),
        ("Expected floating point type", "A target is the token's id, one whole number; not a row of 0 and 1."),
        ("Long", "The targets are the ids, whole numbers."),  # torch says it in several ways
    ],
    nudge="The scores at place t are about the token at t + 1. Which scores have no such token? Which token no scores?",
    sketch="""
        the scores without the last place      (batch, length − 1, vocabulary)
        the ids without the first place        (batch, length − 1)
        flatten batch and length of both; return their cross-entropy
        """,
)

# --- 6.4 ---


class Toy(nn.Module):
    """A model of a few words: scores that depend on the word before; with dropout in training mode."""

    def __init__(self, words: int, seed: int, dropout: float = 0.5):
        super().__init__()
        self.table = nn.Parameter(2 * _random(seed, words, words))
        self.dropout = nn.Dropout(dropout)
        self.with_gradients = False  # was it ever called with gradients on?

    def forward(self, ids: Tensor) -> Tensor:
        self.with_gradients |= torch.is_grad_enabled()
        if ids.dim() != 2:
            raise ValueError(f"The model takes ids of shape (windows, length); got {tuple(ids.shape)}.")
        return self.dropout(self.table)[ids]


TEXTS = [
    (Toy(words, words).eval(), _whole(seed, words, *shape), _whole(seed + 1, words, *shape))
    for seed, words, shape in ((3, 3, (300, 2)), (1, 5, (7, 4)))
]


def _one_number(answer: Callable) -> None:
    result = answer(*copied(TEXTS[0]))
    if isinstance(result, Tensor) and result.numel() > 1:
        raise Wrong(f"Expected one number; got {describe(result)}: take the mean over all tokens.")


def _evaluation(answer: Callable) -> None:
    """In training mode its dropout would spoil the measurement."""
    model, inputs, targets = copied(TEXTS[0])
    if not math.isclose(answer(model.train(), inputs, targets), perplexity_of(*TEXTS[0]), rel_tol=1e-4):
        raise Wrong(
            "The model came in training mode, and its dropout spoils the measurement: call `model.eval()` first."
        )


def _mode_kept(answer: Callable) -> None:
    for training in (True, False):
        model, inputs, targets = copied(TEXTS[0])
        answer(model.train(training), inputs, targets)
        if model.training != training:
            came, left = ("training", "evaluation") if training else ("evaluation", "training")
            raise Wrong(
                f"The model came in {came} mode and is left in {left} mode: note `model.training` at the start, "
                f"and end with `model.train(…)`.{' (S3 has this slip in its lab.)' if training else ''}"
            )


def _no_graph(answer: Callable) -> None:
    torch.set_grad_enabled(True)  # belongs to this thread
    model, inputs, targets = copied(TEXTS[0])
    model.with_gradients = False
    result = answer(model, inputs, targets)
    if not torch.is_grad_enabled():
        raise Wrong("Gradients are switched off and stay off: use `with torch.no_grad():`.")
    if isinstance(result, Tensor) and result.requires_grad:
        raise Wrong("The result carries a gradient: compute it under `with torch.no_grad():`, to spare memory.")
    if model.with_gradients:
        raise Wrong(
            "The model is called with gradients on, and keeps all that a backward pass would need: call it under "
            "`with torch.no_grad():`, to spare memory."
        )


perplexity = Exercise(
    id="6.4",
    title="perplexity",
    reference=perplexity_of,
    checks=Ladder(
        perplexity_of,
        TEXTS,
        returns=["the perplexity"],
        slips=[
            *edits(
                perplexity_of,
                """
                reduction="sum") → reduction="none").exp().sum() ;
                    math.exp(total / targets.numel()) → total / targets.numel()
                    · This is the mean of each token's perplexity; take the mean first, then exp.
                reduction="sum") → reduction="none").view_as(y).mean(1).exp().sum() ;
                    math.exp(total / targets.numel()) → total / len(targets)
                    · This is the mean of the windows' perplexities; take exp once, of the mean over all tokens.
                inputs.split(256), targets.split(256) → [inputs], [targets] ;
                    reduction="sum") → reduction="none").view_as(y).mean(0).exp().mean() ;
                    math.exp(total / targets.numel()) → total
                    · Take exp once, of the mean over all tokens.
                reduction="sum") → reduction="none").neg().exp().sum() ;
                    math.exp(total / targets.numel()) → targets.numel() / total
                    · The mean is taken of the probabilities; take it of their logarithms.
                math.exp(total / targets.numel()) → total / targets.numel()
                    · This is the loss; the perplexity is exp of it.
                math.exp(total / targets.numel()) → 2 ** (total / targets.numel())
                    · The logarithm is the natural one here, so its inverse is exp, not 2 to the power.
                math.exp(total → math.exp(-total
                    · A minus is missing or one too many: a perplexity is at least 1.
                math.exp(total / targets.numel()) → torch.tensor(total).exp().item()
                    · The sum is not divided by the number of tokens.
                targets.numel() → len(targets) · It is divided by the number of windows; divide by that of tokens.
                model(x.to(device)) → model(x.to(device))[:, :-1] ; y.to(device) → y.to(device)[:, 1:] ;
                    targets.numel() → targets[:, 1:].numel()
                    · It is shifted once more: the targets are one token later already.
                y.to(device) → x.to(device)
                    · The inputs are scored against themselves; the targets are what came next.
                .flatten(0, 1) → [:, -1] ; y.to(device).flatten() → y.to(device)[:, -1] ;
                    targets.numel() → len(targets) · Only the last token of each window counts here; all tokens do.
                inputs.split(256), targets.split(256) → [inputs[:256]], [targets[:256]] ;
                    targets.numel() → targets[:256].numel()
                    · Only the first 256 windows count here; all of them do.
                .float() → .softmax(-1)
                    · The softmax is taken twice: `cross_entropy` wants the scores as they are.
                """,
            ),
            *(
                slip
                for size in (16, 32, 64, 128, 256)
                for slip in edits(
                    perplexity_of,
                    f"""
                    inputs.split(256), targets.split(256) → inputs.split({size}), targets.split({size}) ;
                        , reduction="sum" → ; targets.numel() → len(targets.split({size})) · This is a mean of
                        · parts' means, but the last part is smaller: sum over all tokens, then divide once.
                    """,
                )
            ),
        ],
        tolerance=1e-4,
        told=lambda model, inputs, targets: f"{len(inputs)} windows of {inputs.shape[1]} tokens",
    )
    .extended(_one_number, before="types")
    .extended(_evaluation, _mode_kept, _no_graph),
    crashes=[
        (
            "Expected target size",
            "`cross_entropy` wants the vocabulary in the second dimension: flatten windows and length first.",
        ),
        ("batch_size", "There must be as many scores as targets: flatten windows and length of both."),
        ("math range error", "The sum is too large for exp: divide by the number of tokens first."),
        ("does not require grad", "Nothing has to be differentiated here."),
    ],
    nudge="Sum −log p over all targets, divide by their number, and only then take exp. In which mode is the model?",
    sketch="""
        note whether the model is in training mode; switch to evaluation
        without gradients: the scores of all windows        (windows, length, vocabulary)
        their cross-entropy with the targets, mean over all tokens
        put the model back into its mode
        return exp of the mean
        """,
)

# --- 6.5 ---


def _cache(batch: int = 2, heads: int = 3, longest: int = 6, d: int = 4) -> Cache:
    cache = Cache(batch, heads, longest, d, torch.zeros(1))
    cache.keys.fill_(77.0)  # what stands in unused room must not matter
    cache.values.fill_(77.0)
    return cache


def _new(seed: int, count: int, batch: int = 2, heads: int = 3, d: int = 4) -> tuple[Tensor, Tensor]:
    return _random(2 * seed, batch, heads, count, d), _random(2 * seed + 1, batch, heads, count, d)


def _cache_checks() -> list[Check]:
    def returned(result: object) -> tuple[Tensor, Tensor]:
        if not isinstance(result, tuple | list) or len(result) != 2 or not all(isinstance(t, Tensor) for t in result):
            raise Wrong(f"Expected the keys and the values of all tokens so far, two tensors; got {describe(result)}.")
        return result

    def shape(name: str, got: Tensor, want: tuple, seen: int, new: int) -> None:
        if got.shape == want:
            return
        if got.dim() == 4 and got.shape[2] == 6:
            raise Wrong(f"{name} hold the whole room; return only the {seen} tokens so far, `[:, :, :end]`.")
        if got.dim() == 4 and got.shape[2] < seen:
            only_new = got.shape[2] == new < seen
            help_ = "all tokens so far are asked for, not the new" if only_new else "some of the new are left out"
            raise Wrong(f"After {seen} tokens {name} hold {got.shape[2]}: {help_}.")
        raise Wrong(f"Expected {name} of shape {tuple(want)} after {seen} tokens; got {tuple(got.shape)}.")

    def types(answer: Callable) -> None:
        returned(answer(_cache(), *_new(0, 2)))

    def steps(answer: Callable) -> None:
        """Three tokens at once, then one, then two: what comes back, and what the cache knows."""
        cache, news = _cache(), [_new(1, 3), _new(2, 1), _new(3, 2)]
        room = cache.keys, cache.values
        seen = 0
        for i, (k, v) in enumerate(news):
            seen += k.shape[2]
            try:
                keys, values = returned(answer(cache, k.clone(), v.clone()))
            except (ValueError, AssertionError) as error:
                told = f"{type(error).__name__}: {error}".rstrip(".: ")
                if seen < 6:
                    raise Wrong(
                        f"After {seen} tokens it stopped with {told}, although there is room: "
                        "the room is `cache.keys.shape[2]` tokens."
                    ) from None
                raise Wrong(
                    f"4 tokens and 2 more just fit into a room of 6, but it stopped with {told}. "
                    "Is there a `>=` for a `>`, or a `<` for a `<=`?"
                ) from None
            all_keys, all_values = (torch.cat([part[j] for part in news[: i + 1]], dim=2) for j in (0, 1))
            shape("keys", keys, all_keys.shape, seen, k.shape[2])
            shape("values", values, all_values.shape, seen, k.shape[2])
            compare(keys, values, all_keys, all_values, k.shape[2], first=not i)
            if cache.length != seen:
                told = "did not change" if cache.length == seen - k.shape[2] else f"is {cache.length}"
                raise Wrong(f"After {seen} tokens `cache.length` {told}; it has to be {seen}, or the next lands wrong.")
        if cache.keys is not room[0] or cache.values is not room[1]:
            raise Wrong(
                "The cache has new tensors: with every token all of them are copied. Room was made at the start: "
                "write into it, `cache.keys[:, :, start:end] = k`."
            )
        if keys.data_ptr() != cache.keys.data_ptr() or values.data_ptr() != cache.values.data_ptr():
            raise Wrong(
                "What you return is a copy, made anew with every token: return a part of the room itself, "
                "`cache.keys[:, :, :end]`."
            )

    def compare(keys, values, all_keys, all_values, new, first) -> None:
        same = torch.allclose
        if same(keys, all_keys) and same(values, all_values):
            return
        if same(keys, all_values) and same(values, all_keys):
            raise Wrong("Keys and values are swapped.")
        if same(keys, all_keys) and same(values, all_keys):
            raise Wrong("The keys are stored as values too: the values are v.")
        old = all_keys.shape[2] - new
        if not first and not same(keys[:, :, :old], all_keys[:, :, :old]):
            raise Wrong(
                "The keys of earlier tokens are lost or moved: new ones belong behind them, from `cache.length` on."
            )
        if same(keys, all_keys):
            raise Wrong("The keys are right, but the values are not: they are stored in the same way.")
        if (keys[:, :, old] == 77).all() and same(keys[:, :, old + 1 :], all_keys[:, :, old:-1]):
            raise Wrong("The first new token goes to place `cache.length` itself: places count from 0.")
        if (keys == 77).any():
            raise Wrong("Some of the new tokens are not stored: `end` is cache.length + the number of new tokens.")
        raise Wrong("The new keys do not stand where they should: from `cache.length` to the new end.")

    def several_sizes(answer: Callable) -> None:
        cache = _cache(batch=3, heads=1, longest=9, d=2)
        k, v = _new(4, 4, batch=3, heads=1, d=2)
        keys, values = returned(answer(cache, k, v))
        if keys.shape != k.shape or not torch.allclose(keys, k) or not torch.allclose(values, v):
            raise Wrong("A call with other sizes went well: are sizes fixed? Take them from the shapes of k.")

    def room(answer: Callable) -> None:
        cache = _cache()
        answer(cache, *_new(5, 6))  # just fits
        cache = _cache()
        answer(cache, *_new(5, 4))
        before = cache.keys.clone(), cache.values.clone()
        try:
            answer(cache, *_new(6, 3))
        except ValueError:
            if cache.length != 4 or not (torch.equal(cache.keys, before[0]) and torch.equal(cache.values, before[1])):
                raise Wrong(
                    "What does not fit is refused, but the cache has changed already: raise the ValueError first, "
                    "then write and count."
                ) from None
            return
        except Exception:  # whatever else: an assert, or torch's own refusal
            pass
        raise Wrong("4 tokens and 3 more do not fit into a room of 6: raise a ValueError that says so.")

    return [signature_check(update_cache), types, steps, several_sizes, room]


cache = Exercise(
    id="6.5",
    title="the cache of keys and values",
    reference=update_cache,
    checks=_cache_checks(),
    crashes=[
        ("has no attribute 'append'", "`cache.keys` is a tensor with room for all tokens: write into a part of it."),
        (
            "expanded size of the tensor",
            "The part that you write to is not as long as what you write: from `cache.length` to `cache.length` + new.",
        ),
        ("object does not support item assignment", "Write into `cache.keys` and `cache.values`, not into the cache."),
    ],
    nudge="Where does the first new token go? Where does the last one end? Then the two tensors are filled alike.",
    sketch="""
        end = what the cache's length will be
        if end is more than there is room for: raise a ValueError
        write k into cache.keys, and v into cache.values, from the old length to end
        the cache's length becomes end
        return keys and values up to end
        """,
)

EXERCISES = [merging, the_block, loss, perplexity, cache]
