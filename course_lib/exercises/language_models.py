"""Exercises of lesson 06: a merge of byte-pair encoding, the block, the loss, perplexity, the cache."""

import math
from collections.abc import Callable
from itertools import pairwise
from numbers import Real

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.attention import Cache, update_cache
from course_lib.bpe import merge
from course_lib.checks import Check, Exercise, Wrong, describe, function_checks, signature_check
from course_lib.metrics import perplexity_of
from course_lib.training import next_token_loss
from course_lib.transformer import block


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


def _merged_from_the_right(tokens, pair, new):
    return merge(tokens[::-1], pair[::-1], new)[::-1]


def _first_only(tokens, pair, new):
    for i, neighbours in enumerate(pairwise(tokens)):
        if neighbours == tuple(pair):
            return [*tokens[:i], new, *tokens[i + 2 :]]
    return list(tokens)


def _overlapping(tokens, pair, new):
    """Looks at every place, also inside a pair that was merged already."""
    out = []
    for i, token in enumerate(tokens):
        if tuple(tokens[i : i + 2]) == tuple(pair):
            out.append(new)
        elif not (i and tuple(tokens[i - 1 : i + 1]) == tuple(pair)):
            out.append(token)
    return out


def _second_kept(tokens, pair, new):
    return [new if tuple(tokens[i : i + 2]) == tuple(pair) else tokens[i] for i in range(len(tokens))]


def _last_lost(tokens, pair, new):
    out, i = [], 0
    while i < len(tokens) - 1:
        joined = tuple(tokens[i : i + 2]) == tuple(pair)
        out.append(new if joined else tokens[i])
        i += 2 if joined else 1
    return out


def _everywhere(tokens, pair, new):
    """Again and again, until the pair occurs no more: what was merged is merged further."""
    while True:
        after = merge(tokens, pair, new)
        if after == list(tokens):
            return after
        tokens = after


MERGE_SLIPS: list[tuple[Callable, str]] = [
    (_overlapping, "In a a a the pair a a stands once, then one a is left: after a merge, go on *behind* the pair."),
    (_merged_from_the_right, "It merges from the right: a a a becomes aa a, not a aa. Start at the left."),
    (_first_only, "Only the first pair is merged; merge every one of them."),
    (_second_kept, "The second token of the pair is still there: the new token stands for both."),
    (
        _last_lost,
        "The last token is lost when it ends no pair: the loop over pairs stops one token short.",
    ),
    (
        lambda tokens, pair, new: list(tokens),
        "The tokens come back as they were: nothing is merged. (A list never equals a tuple: do you compare the two?)",
    ),
    (
        lambda tokens, pair, new: [new if t in pair else t for t in tokens],
        "Each token that belongs to the pair is replaced on its own; only the two side by side are a pair.",
    ),
    (
        lambda tokens, pair, new: merge(tokens, pair[::-1], new),
        "The pair is taken in the wrong order: its first token comes first.",
    ),
    (
        lambda tokens, pair, new: merge(merge(tokens, pair, new), pair[::-1], new),
        "The pair is merged in both orders; a b and b a are different pairs.",
    ),
    (
        lambda tokens, pair, new: [t for t in merge(tokens, pair, new) if t != new],
        "The pairs are gone, but the new token does not stand in their place.",
    ),
    (
        lambda tokens, pair, new: [new for p in pairwise(tokens) if p == tuple(pair)],
        "Only the new tokens are left: keep the others too, each in its place.",
    ),
    (
        lambda tokens, pair, new: merge(tokens, pair, pair[0]),
        "The pair becomes its first token; it has to become `new`.",
    ),
    (
        lambda tokens, pair, new: merge(tokens, pair, pair[0] + pair[1]),
        "The two tokens are joined with `+`; put `new` in their place. (Tokens may be numbers: 1 and 2 are not 3.)",
    ),
    (
        lambda tokens, pair, new: [list(pair) if t == new else t for t in merge(tokens, pair, new)],
        "The pair is put into a list of its own; it has to become the one token `new`.",
    ),
]


def _merge_checks() -> list[Check]:
    def made(answer: Callable, tokens: list, pair: tuple, new: object) -> list:
        result = answer(list(tokens), pair, new)
        if isinstance(result, str):
            raise Wrong("Expected a list of tokens; got one string: text cannot tell where a token ends.")
        if isinstance(result, tuple):
            raise Wrong("Expected a list of tokens; got a tuple: `list(…)` makes one of it.")
        if not isinstance(result, list):
            raise Wrong(f"Expected a list of tokens; got {describe(result)}.")
        return result

    def slip(answer: Callable) -> str:
        for wrong, sentence in MERGE_SLIPS:
            try:
                if all(made(answer, *case) == wrong(*case) for case in MERGES):
                    return sentence
            except Exception:  # whatever stops it, it is not this slip
                continue
        return ""

    def types(answer: Callable) -> None:
        made(answer, *MERGES[0])

    def inputs_kept(answer: Callable) -> None:
        tokens = list("banana")
        answer(tokens, ("a", "n"), "an")
        if tokens != list("banana"):
            raise Wrong("It changes the list that it is given: build a new one.")

    def right(answer: Callable) -> None:
        for tokens, pair, new in MERGES:
            got, want = made(answer, tokens, pair, new), merge(tokens, pair, new)
            if got != want:
                told = f"For the tokens {tokens} and the pair {pair} expected {want}; got {got}."
                raise Wrong(f"{slip(answer)} {told}".strip())

    return [signature_check(merge), types, inputs_kept, right]


merging = Exercise(
    id="6.1",
    title="a merge of byte-pair encoding",
    reference=merge,
    checks=_merge_checks(),
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


def _block_variant(before: Callable, after: Callable, both: Callable = zip) -> Callable:
    """A block with other ways through a layer: before(x, f, n) with pre_norm, after(x, f, n) without."""

    def variant(x, layers, norms, pre_norm=True):
        for layer, norm in both(layers, norms):
            x = before(x, layer, norm) if pre_norm else after(x, layer, norm)
        return x

    return variant


def _pre(x, f, n):
    return x + f(n(x))


def _post(x, f, n):
    return n(x + f(x))


def _from_the_first(x, layers, norms, pre_norm=True):
    """Every layer's residual path starts at the block's input."""
    h = x
    for layer, norm in zip(layers, norms, strict=True):
        h = x + layer(norm(h)) if pre_norm else norm(x + layer(h))
    return h


def _in_its_order(answer: Callable) -> None:
    for x, layers, norms, pre_norm in BLOCKS:
        if not torch.allclose(answer(x, layers, norms, pre_norm), block(x, layers, norms, pre_norm), atol=1e-5):
            order = "pre-norm order, x + f(LN(x))" if pre_norm else "post-norm order, LN(x + f(x))"
            raise Wrong(f"In {order}, with {len(layers)} layers, the numbers differ: carry one x by hand and compare.")


the_block = Exercise(
    id="6.2",
    title="the block",
    reference=block,
    checks=function_checks(
        block,
        BLOCKS,
        returns=["x"],
        slips=[
            (_block_variant(_post, _pre), "Pre-norm and post-norm are swapped: with pre_norm the norm comes first."),
            (_block_variant(_pre, _pre), "`pre_norm` is not looked at: without it the norm comes after the sum."),
            (_block_variant(_post, _post), "`pre_norm` is not looked at: with it the norm comes before the layer."),
            (
                _block_variant(lambda x, f, n: f(n(x)), lambda x, f, n: n(f(x))),
                "The residual path is missing: x itself is added to what the layer gives.",
            ),
            (
                _block_variant(lambda x, f, n: n(x) + f(n(x)), _post),
                "With pre_norm the residual path carries the normed x; it has to carry x itself, untouched.",
            ),
            (
                _block_variant(_pre, lambda x, f, n: x + n(f(x))),
                "Without pre_norm the norm is taken of the layer's output alone; take it of the sum, n(x + f(x)).",
            ),
            (
                _block_variant(lambda x, f, n: x + n(f(x)), _post),
                "With pre_norm the norm comes *after* the layer; it belongs before it: x + f(n(x)).",
            ),
            (
                _block_variant(lambda x, f, n: x + n(f(x)), lambda x, f, n: n(x + f(x))),
                "With pre_norm the norm comes *after* the layer; it belongs before it: x + f(n(x)).",
            ),
            (
                _block_variant(lambda x, f, n: x + f(x), lambda x, f, n: x + f(x)),
                "The norms are not used.",
            ),
            (
                _block_variant(_pre, lambda x, f, n: n(x + f(n(x)))),
                "Without pre_norm there are two norms around the layer; one, of the sum, is asked for.",
            ),
            (
                _block_variant(lambda x, f, n: n(x + f(n(x))), _post),
                "With pre_norm there are two norms around the layer; one, before it, is asked for.",
            ),
            (
                _from_the_first,
                "Every layer adds to the block's first input; each adds to what the layer before it gave.",
            ),
            (
                _block_variant(_pre, _post, both=lambda layers, norms: zip(layers[:1], norms[:1])),  # noqa: B905
                "Only the first layer is used; go through all of them.",
            ),
            (
                _block_variant(_pre, _post, both=lambda layers, norms: zip(layers[:2], norms[:2])),  # noqa: B905
                "Only the first two layers are used; there may be three, as in lesson 07: loop over them.",
            ),
            (
                _block_variant(_pre, _post, both=lambda layers, norms: [(f, norms[0]) for f in layers]),
                "All layers share the first norm; each has one of its own.",
            ),
            (
                _block_variant(_pre, _post, both=lambda layers, norms: zip(layers[::-1], norms[::-1])),  # noqa: B905
                "The layers are used in reversed order.",
            ),
            (lambda x, layers, norms, pre_norm=True: x, "This is x as it came in."),
        ],
        properties=[_in_its_order],
    ),
    crashes=[
        ("too many values to unpack", "There may be any number of layers: go through both lists with `zip`."),
        ("object is not callable", "A layer and a norm are functions: call them on x, one after the other."),
        ("'function' object is not iterable", "`layers` and `norms` are lists: go through both with `zip`."),
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


def _loss_variant(
    said: Callable = lambda z: z[:, :-1],
    came: Callable = lambda ids: ids[:, 1:],
    loss: Callable = lambda z, t: F.cross_entropy(z.transpose(1, 2), t),
) -> Callable:
    """The loss with one thing changed; for slips."""
    return lambda logits, ids: loss(said(logits), came(ids))


def _picked(z: Tensor, t: Tensor) -> Tensor:
    return z.gather(-1, t[..., None])[..., 0]  # (batch, length)


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


def _large_scores(answer: Callable) -> None:
    """softmax gives 0 for what is 200 below the best, and its logarithm is −∞."""
    logits, ids = 200 * F.one_hot(_whole(7, 4, 2, 3), 4).float(), _whole(8, 4, 2, 3)
    got, want = answer(logits, ids), next_token_loss(logits, ids)
    if not torch.allclose(got, want, rtol=1e-4):
        raise Wrong(
            f"With scores of 0 and 200 the loss must be {want:.1f}; got {got:.4g}: softmax rounds to 0, and its "
            "logarithm is −∞. Use `log_softmax` or `cross_entropy`."
        )


loss = Exercise(
    id="6.3",
    title="the loss of a language model",
    reference=next_token_loss,
    checks=function_checks(
        next_token_loss,
        LOSSES,
        returns=["loss"],
        slips=[
            (
                _loss_variant(lambda z: z, lambda ids: ids),
                "Nothing is shifted: each place is asked for the token that it has just read. "
                "Place t has to say the token at t + 1.",
            ),
            (
                _loss_variant(lambda z: z[:, 1:], lambda ids: ids[:, :-1]),
                "It is shifted the wrong way: each place is asked for the token *before* it.",
            ),
            (
                _loss_variant(lambda z: z, lambda ids: ids.roll(-1, dims=1)),
                "`roll` brings the first token round to the end; after the last token nothing came: leave it out.",
            ),
            (
                _loss_variant(lambda z: z[:, 1:], lambda ids: ids[:, 1:]),
                "Scores and tokens are cut alike, so they are not shifted against each other: "
                "leave out the *last* scores and the *first* tokens.",
            ),
            (
                _loss_variant(lambda z: z[:, :-1], lambda ids: ids[:, :-1]),
                "Scores and tokens are cut alike, so they are not shifted against each other: "
                "leave out the *last* scores and the *first* tokens.",
            ),
            (
                _loss_variant(lambda z: z[:-1], lambda ids: ids[1:]),
                "The batch is shifted; the length is the second dimension.",
            ),
            (
                lambda logits, ids: F.cross_entropy(logits.flatten(0, 1)[:-1], ids.flatten()[1:]),
                "Shift before you flatten: else the end of one text is asked for the beginning of the next.",
            ),
            (
                _loss_variant(loss=lambda z, t: F.cross_entropy(z.transpose(1, 2), t, reduction="sum")),
                "This is the sum over all tokens; take the mean.",
            ),
            (
                _loss_variant(loss=lambda z, t: F.cross_entropy(z.transpose(1, 2), t, reduction="none")),
                "This is the loss of each token; take the mean of them all.",
            ),
            (
                _loss_variant(loss=lambda z, t: F.cross_entropy(z.softmax(-1).transpose(1, 2), t)),
                "The softmax is taken twice: `cross_entropy` wants the scores as they are.",
            ),
            (
                _loss_variant(loss=lambda z, t: F.cross_entropy(z.log_softmax(-1).softmax(-1).transpose(1, 2), t)),
                "The softmax is taken twice: `cross_entropy` wants the scores as they are.",
            ),
            (
                _loss_variant(loss=lambda z, t: -_picked(z, t).mean()),
                "The scores are not yet log-probabilities: `log_softmax` over the vocabulary first.",
            ),
            (
                _loss_variant(loss=lambda z, t: -_picked(z.softmax(-1), t).mean()),
                "The logarithm is missing: this is the mean probability.",
            ),
            (
                _loss_variant(loss=lambda z, t: _picked(z.log_softmax(-1), t).mean()),
                "The minus is missing: a loss gets smaller as the model gets better.",
            ),
            (
                _loss_variant(loss=lambda z, t: F.cross_entropy(z.transpose(1, 2), t, reduction="sum") / len(z)),
                "It is divided by the number of texts; divide by the number of tokens that are predicted.",
            ),
            (
                lambda z, t: F.cross_entropy(z[:, :-1].transpose(1, 2), t[:, 1:], reduction="sum") / t.numel(),
                "It is divided by all tokens; the first of each text is not predicted and does not count.",
            ),
            (
                _loss_variant(loss=lambda z, t: F.cross_entropy(z.transpose(1, 2), t).exp()),
                "This is the perplexity; the loss is its logarithm.",
            ),
            (
                _loss_variant(lambda z: z[:, -2:-1], lambda ids: ids[:, -1:]),
                "Only the last token is predicted; under the mask every place may learn at once.",
            ),
            (
                _loss_variant(loss=lambda z, t: -_picked(z.log_softmax(1), t).mean()),
                "The softmax runs along the text; take it over the vocabulary, the last dimension.",
            ),
        ],
        properties=[_no_look_at_first, _large_scores],
    ),
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
        ("expected scalar type Long", "The targets are the ids, whole numbers; the scores come first."),
        ("Expected floating point type", "The scores come first, then the targets."),
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


TEXTS = [(5, _whole(1, 5, 7, 4), _whole(2, 5, 7, 4)), (3, _whole(3, 3, 300, 2), _whole(4, 3, 300, 2))]


def _of_text(function: Callable, words: int, inputs: Tensor, targets: Tensor, training: bool = False) -> object:
    """What the function gives for a new model, which it may change."""
    return function(Toy(words, words).train(training), inputs.clone(), targets.clone())


def _losses(model: nn.Module, inputs: Tensor, targets: Tensor) -> Tensor:
    with torch.no_grad():
        return F.cross_entropy(model(inputs).transpose(1, 2), targets, reduction="none")  # (windows, length)


def _probabilities(model: nn.Module, inputs: Tensor) -> Tensor:
    with torch.no_grad():
        return model(inputs).softmax(dim=-1).transpose(1, 2)  # (windows, vocabulary, length)


def _variant(of: Callable[[Tensor], Tensor]) -> Callable:
    return lambda model, inputs, targets: float(of(_losses(model, inputs, targets)))


PERPLEXITY_SLIPS: list[tuple[Callable, str]] = [
    (_variant(lambda x: x.exp().mean()), "This is the mean of each token's perplexity; take the mean first, then exp."),
    (
        _variant(lambda x: x.mean(dim=1).exp().mean()),
        "This is the mean of the windows' perplexities; take exp once, of the mean over all tokens.",
    ),
    (_variant(lambda x: x.mean(dim=0).exp().mean()), "Take exp once, of the mean over all tokens."),
    (_variant(lambda x: x.mean()), "This is the loss; the perplexity is exp of it."),
    (
        _variant(lambda x: 2 ** x.mean()),
        "The logarithm is the natural one here, so its inverse is exp, not 2 to the power.",
    ),
    (_variant(lambda x: (-x.mean()).exp()), "A minus is missing or one too many: a perplexity is at least 1."),
    (
        _variant(lambda x: x.sum().exp() if x.sum() < 80 else math.inf),
        "The sum is not divided by the number of tokens.",
    ),
    (
        _variant(lambda x: x.sum(dim=1).mean().exp()),
        "It is divided by the number of windows; divide by that of tokens.",
    ),
    (
        lambda model, inputs, targets: float(_losses(model, inputs[:, :-1], targets[:, 1:]).mean().exp()),
        "It is shifted once more: the targets are one token later already.",
    ),
    (
        lambda model, inputs, targets: float(_losses(model, inputs, inputs).mean().exp()),
        "The inputs are scored against themselves; the targets are what came next.",
    ),
    (
        lambda model, inputs, targets: float(_losses(model, inputs, targets)[:, -1].mean().exp()),
        "Only the last token of each window counts here; all tokens do.",
    ),
    (_variant(lambda x: x[:256].mean().exp()), "Only the first 256 windows count here; all of them do."),
    (
        lambda model, inputs, targets: float(F.cross_entropy(_probabilities(model, inputs), targets).exp()),
        "The softmax is taken twice: `cross_entropy` wants the scores as they are.",
    ),
    *(
        (
            _variant(lambda x, size=size: torch.stack([part.mean() for part in x.split(size)]).mean().exp()),
            "This is a mean of parts' means, but the last part is smaller: sum over all tokens, then divide once.",
        )
        for size in (16, 32, 64, 128, 256)
    ),
]


def _perplexity_checks() -> list[Check]:
    def number(result: object) -> float:
        if isinstance(result, Tensor) and result.numel() > 1:
            raise Wrong(f"Expected one number; got {describe(result)}: take the mean over all tokens.")
        if not isinstance(result, Real | Tensor):
            raise Wrong(f"Expected a number; got {describe(result)}.")
        return float(result)

    def close(a: float, b: float) -> bool:
        return math.isclose(a, b, rel_tol=1e-4)

    def slip(answer: Callable) -> str:
        for wrong, sentence in PERPLEXITY_SLIPS:
            if all(close(number(_of_text(answer, *case)), _of_text(wrong, *case)) for case in TEXTS):
                return sentence
        return ""

    def types(answer: Callable) -> None:
        number(_of_text(answer, *TEXTS[0]))

    def right(answer: Callable) -> None:
        for case in TEXTS:
            got, want = number(_of_text(answer, *case)), _of_text(perplexity_of, *case)
            if not close(got, want):
                raise Wrong(slip(answer) or f"Expected a perplexity of {want:.6g}; got {got:.6g}.")

    def evaluation(answer: Callable) -> None:
        """In training mode its dropout would spoil the measurement."""
        if not close(number(_of_text(answer, *TEXTS[0], training=True)), _of_text(perplexity_of, *TEXTS[0])):
            raise Wrong(
                "The model came in training mode, and its dropout spoils the measurement: call `model.eval()` first."
            )

    def mode_kept(answer: Callable) -> None:
        for training in (True, False):
            model = Toy(5, 1).train(training)
            answer(model, *TEXTS[0][1:])
            if model.training != training:
                came, left = ("training", "evaluation") if training else ("evaluation", "training")
                raise Wrong(
                    f"The model came in {came} mode and is left in {left} mode: note `model.training` at the start, "
                    f"and end with `model.train(…)`.{' (S3 has this slip in its lab.)' if training else ''}"
                )

    def no_graph(answer: Callable) -> None:
        torch.set_grad_enabled(True)  # belongs to this thread
        model = Toy(5, 5).eval()
        result = answer(model, *TEXTS[0][1:])
        if not torch.is_grad_enabled():
            raise Wrong("Gradients are switched off and stay off: use `with torch.no_grad():`.")
        if isinstance(result, Tensor) and result.requires_grad:
            raise Wrong("The result carries a gradient: compute it under `with torch.no_grad():`, to spare memory.")
        if model.with_gradients:
            raise Wrong(
                "The model is called with gradients on, and keeps all that a backward pass would need: call it under "
                "`with torch.no_grad():`, to spare memory."
            )

    return [signature_check(perplexity_of), types, right, evaluation, mode_kept, no_graph]


perplexity = Exercise(
    id="6.4",
    title="perplexity",
    reference=perplexity_of,
    checks=_perplexity_checks(),
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

    def shape(name: str, got: Tensor, want: tuple, seen: int) -> None:
        if got.shape == want:
            return
        if got.dim() == 4 and got.shape[2] == 6:
            raise Wrong(f"{name} hold the whole room; return only the {seen} tokens so far, `[:, :, :end]`.")
        if got.dim() == 4 and got.shape[2] < seen:
            raise Wrong(
                f"After {seen} tokens {name} hold {got.shape[2]}: all tokens so far are asked for, not the new."
            )
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
            except ValueError as error:
                if seen < 6:
                    raise
                told = f"4 tokens and 2 more just fit into a room of 6, but it stopped with ValueError: {error}."
                raise Wrong(f"{told.rstrip('.')}. Is there a `>=` for a `>`?") from None
            all_keys, all_values = (torch.cat([part[j] for part in news[: i + 1]], dim=2) for j in (0, 1))
            shape("keys", keys, all_keys.shape, seen)
            shape("values", values, all_values.shape, seen)
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
        def same(a, b):
            return torch.allclose(a, b)

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
        except RuntimeError:
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
        ("The cache has room for", "It is refused although there is room: the room is `cache.keys.shape[2]` tokens."),
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
