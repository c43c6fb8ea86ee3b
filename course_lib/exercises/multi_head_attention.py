"""Exercises of lesson 04: split and merge heads, the whole layer with its mask, what heads look at, which matter."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.attention import causal_mask, masked_softmax, merge_heads, padding_mask, split_heads
from course_lib.checks import Exercise, Wrong, function_checks
from course_lib.heads import head_importance, multi_head, pattern_score


def _random(seed: int, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


# --- 4.1 ---

SPLIT = [
    (*_random(seed, shape), heads)
    for seed, (shape, heads) in enumerate([((2, 5, 12), 3), ((1, 4, 6), 2), ((3, 2, 8), 8)])
]


def _token_keeps_its_numbers(answer: Callable) -> None:
    x = torch.arange(24.0).view(1, 3, 8)
    got = answer(x, 2)
    if not torch.equal(got[0, 0, 0], x[0, 0, :4]):
        raise Wrong(
            f"Head 0 of token 0 must get the first half of the token's numbers, 0 1 2 3; it got {_row(got[0, 0, 0])}."
        )
    if not torch.equal(got[0, 1, 2], x[0, 2, 4:]):
        raise Wrong(
            f"Head 1 of token 2 must get the second half of its numbers, 20 21 22 23; it got {_row(got[0, 1, 2])}."
        )


def _row(values: Tensor) -> str:
    return " ".join(f"{value:g}" for value in values.flatten().tolist())


split = Exercise(
    id="4.1",
    title="split into heads",
    reference=split_heads,
    checks=function_checks(
        split_heads,
        SPLIT,
        returns=["the heads"],
        properties=[_token_keeps_its_numbers],
        slips=[
            (
                lambda x, heads: x.reshape(len(x), heads, x.shape[1], -1),
                "The tokens are mixed up: a reshape straight to (batch, heads, length, d_head) deals the numbers "
                "out in their order in memory. First (batch, length, heads, d_head), then swap two dimensions.",
            ),
            (
                lambda x, heads: x.reshape(*x.shape[:2], heads, -1),
                "The dimensions are (batch, length, heads, d_head) still: swap length and heads, `transpose(1, 2)`.",
            ),
            (
                lambda x, heads: x.reshape(*x.shape[:2], -1, heads).permute(0, 3, 1, 2),
                "Each head takes every heads-th number; it should take neighbouring ones: "
                "the last dimension becomes (heads, d_head), in this order.",
            ),
            (
                lambda x, heads: x.reshape(*x.shape[:2], -1, heads).transpose(1, 2),
                "The last dimension is cut into (d_head, heads); it becomes (heads, d_head).",
            ),
            (
                lambda x, heads: split_heads(x, heads).transpose(0, 1),
                "The heads come first; the batch does: (batch, heads, length, d_head).",
            ),
            (
                lambda x, heads: split_heads(x, heads).transpose(2, 3),
                "Length and d_head are swapped: (batch, heads, length, d_head).",
            ),
            (
                lambda x, heads: split_heads(x, heads).flip(1),
                "The heads are in reversed order: head 0 takes the first numbers.",
            ),
            (
                lambda x, heads: x[:, None].expand(-1, heads, -1, -1),
                "Every head gets the whole width; each gets its own part, d / heads numbers.",
            ),
            (
                lambda x, heads: split_heads(x, heads).flatten(0, 1),
                "Batch and heads are one dimension; keep them apart.",
            ),
            (lambda x, heads: x, "This is x as it came in: it has no dimension for the heads yet."),
        ],
    ),
    crashes=[
        ("but got float", "A size must be a whole number: divide with `//`."),
        ("'float' object cannot be interpreted", "A size must be a whole number: divide with `//`."),
        ("view size is not compatible", "After a transpose `view` cannot always do it; `reshape` can."),
    ],
    nudge="Two steps: the last dimension becomes two, (heads, d_head); then two dimensions change places.",
    sketch="""
        batch, length, d = the shape of x
        reshape to (batch, length, heads, d // heads)      the numbers of a token stay together
        swap the dimensions length and heads               (batch, heads, length, d // heads)
        """,
)

# --- 4.2 ---

MERGE = _random(0, (2, 3, 5, 4), (1, 2, 4, 3), (3, 4, 2, 1))
TOKENS_MIXED = "The tokens are mixed up: swap heads and length back before the reshape."


def _undoes_split(answer: Callable) -> None:
    x = torch.arange(24.0).view(1, 3, 8)
    got = answer(split_heads(x, 2))
    if not torch.equal(got, x):
        raise Wrong(
            f"Merging must undo splitting. Token 0 was 0 1 2 3 4 5 6 7; split and merged it is {_row(got[0, 0])}."
        )


merge = Exercise(
    id="4.2",
    title="merge the heads",
    reference=merge_heads,
    checks=function_checks(
        merge_heads,
        [(x,) for x in MERGE],
        returns=["x"],
        properties=[_undoes_split],
        slips=[
            (lambda x: x.reshape(len(x), x.shape[2], -1), TOKENS_MIXED),
            (
                lambda x: x.transpose(1, 2),
                "Two dimensions are left at the end, (heads, d_head): make one of them.",
            ),
            (
                lambda x: x.permute(0, 2, 3, 1).flatten(2),
                "The numbers of the heads alternate; first come all numbers of head 0, then those of head 1.",
            ),
            (lambda x: x.sum(dim=1), "The heads are added up; they stand side by side."),
            (lambda x: x.mean(dim=1), "The heads are averaged; they stand side by side."),
            (
                lambda x: x.flatten(1, 2),
                "The heads stand one after the other along the length; they stand side by side along the width.",
            ),
            (
                lambda x: x.flip(1).transpose(1, 2).flatten(2),
                "The heads are in reversed order: head 0 gives the first numbers.",
            ),
            (lambda x: x.permute(2, 0, 1, 3).flatten(2), "Length comes before the batch; the batch comes first."),
            (lambda x: x[:, 0], "Only the first head is left: all of them stand side by side."),
            (lambda x: x, "This is x as it came in: heads and d_head should become one dimension."),
        ],
    ),
    crashes=[("view size is not compatible", "After a transpose `view` cannot do it; `reshape` or `flatten` can.")],
    nudge="The way back: which two dimensions must stand next to each other before they can become one?",
    sketch="""
        batch, heads, length, d_head = the shape of x
        swap heads and length                   (batch, length, heads, d_head)
        reshape to (batch, length, heads · d_head)
        """,
)

# --- 4.3 ---


def _layer_case(seed: int, batch: int, length: int, d: int, heads: int, mask: Tensor | None) -> tuple:
    x, W_qkv, b_qkv, W_o, b_o = _random(seed, (batch, length, d), (3 * d, d), (3 * d,), (d, d), (d,))
    return x, W_qkv, b_qkv, W_o, b_o, heads, mask


LAYER = [
    _layer_case(0, 2, 5, 6, 2, causal_mask(5, 5)),
    _layer_case(1, 3, 4, 8, 4, padding_mask(torch.tensor([4, 2, 3]), 4)),
    _layer_case(2, 1, 3, 4, 1, None),
]


def _layer_variant(
    parts: Callable = lambda x, W, b: F.linear(x, W, b).chunk(3, dim=-1),
    order: tuple[int, int, int] = (0, 1, 2),
    split: Callable = split_heads,
    merge: Callable = merge_heads,
    scale: Callable = lambda d, heads: math.sqrt(d // heads),
    softmax: Callable = masked_softmax,
    output: Callable = F.linear,
) -> Callable:
    """`multi_head` with one thing changed; for slips."""

    def layer(x, W_qkv, b_qkv, W_o, b_o, heads, mask):
        made = [split(part, heads) for part in parts(x, W_qkv, b_qkv)]
        q, k, v = (made[i] for i in order)
        weights = softmax(q @ k.transpose(-2, -1) / scale(x.shape[-1], heads), mask)
        return output(merge(weights @ v), W_o, b_o), weights

    return layer


TURNED_ROUND = "The mask is turned round: True means that a key may be seen."


def _filled(scores: Tensor, mask: Tensor | None) -> Tensor:
    return scores if mask is None else scores.masked_fill(~mask, torch.finfo(scores.dtype).min)


def _multiplied(scores: Tensor, mask: Tensor | None) -> Tensor:
    return (scores if mask is None else scores * mask).softmax(dim=-1)


def _afterwards(scores: Tensor, mask: Tensor | None) -> Tensor:
    return scores.softmax(dim=-1) * (1 if mask is None else mask)


def _by_head(x: Tensor, W: Tensor, b: Tensor, heads: int) -> list[Tensor]:
    """The three blocks inside each head, as some models store them."""
    return list(F.linear(x, W, b).unflatten(-1, (heads, 3, -1)).permute(3, 0, 2, 1, 4))


def _layer_by_head(x, W_qkv, b_qkv, W_o, b_o, heads, mask):
    q, k, v = _by_head(x, W_qkv, b_qkv, heads)
    weights = masked_softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), mask)
    return F.linear(merge_heads(weights @ v), W_o, b_o), weights


def _weights_are_shares(answer: Callable) -> None:
    for case in LAYER:
        _, weights = answer(*case)
        if not torch.allclose(weights.sum(dim=-1), torch.ones_like(weights[..., 0]), atol=1e-4):
            raise Wrong("The weights of each query must sum to 1 over the keys, the last dimension.")


def _hidden_is_hidden(answer: Callable) -> None:
    x, *rest = LAYER[0]
    other = x.clone()
    other[:, -1] += 1.0  # the last token changes; under the causal mask the tokens before must not notice
    if not torch.allclose(answer(x, *rest)[0][:, :-1], answer(other, *rest)[0][:, :-1], atol=1e-4):
        raise Wrong(
            "Under a causal mask a token's output depends on a later token: is the mask used (True: may be seen)?"
        )


layer = Exercise(
    id="4.3",
    title="multi-head attention",
    reference=multi_head,
    checks=function_checks(
        multi_head,
        LAYER,
        returns=["output", "weights"],
        properties=[_weights_are_shares, _hidden_is_hidden],
        tolerance=1e-4,
        slips=[
            (
                _layer_variant(scale=lambda d, heads: math.sqrt(d)),
                "The scores are divided by √d; each head compares d / heads numbers: divide by √(d / heads).",
            ),
            (_layer_variant(scale=lambda d, heads: 1.0), "The scale is missing: divide the scores by √(d / heads)."),
            (
                _layer_variant(scale=lambda d, heads: d // heads),
                "The scores are divided by d / heads; divide by its root.",
            ),
            (
                _layer_variant(softmax=lambda s, m: _filled(s, m).softmax(dim=-2)),
                "Each column sums to 1: the softmax runs over queries; take it over keys, the last dimension.",
            ),
            (
                _layer_variant(softmax=lambda s, m: masked_softmax(s, None if m is None else ~m)),
                TURNED_ROUND,
            ),
            (_layer_variant(softmax=lambda s, m: _filled(s, None if m is None else ~m).softmax(dim=-1)), TURNED_ROUND),
            (_layer_variant(softmax=lambda s, m: s.softmax(dim=-1)), "The mask is not used."),
            (
                _layer_variant(softmax=_multiplied),
                "The scores are multiplied by the mask: a score of 0 still gets a share. Fill with −∞ where hidden.",
            ),
            (
                _layer_variant(softmax=_afterwards),
                "The mask comes after the softmax, so the rows no longer sum to 1: fill the scores with −∞ before it.",
            ),
            (_layer_variant(output=lambda x, W, b: x), "The last step is missing: W_o and b_o mix the heads."),
            (_layer_variant(output=lambda x, W, b: F.linear(x, W)), "The bias b_o is missing."),
            (_layer_variant(output=lambda x, W, b: x @ W + b), "W_o is used without its transpose: `… @ W_o.T + b_o`."),
            (
                _layer_variant(parts=lambda x, W, b: F.linear(x, W).chunk(3, dim=-1)),
                "The bias b_qkv is missing.",
            ),
            (_layer_variant(order=(1, 0, 2)), "Queries and keys are swapped: the blocks of W_qkv are q, k, v."),
            (_layer_variant(order=(0, 2, 1)), "Keys and values are swapped: the blocks of W_qkv are q, k, v."),
            (_layer_variant(order=(2, 1, 0)), "Queries and values are swapped: the blocks of W_qkv are q, k, v."),
            (
                _layer_variant(split=lambda x, heads: x.reshape(len(x), heads, x.shape[1], -1)),
                "The tokens are mixed up when the heads are split: use your `split_heads`.",
            ),
            (
                _layer_variant(merge=lambda x: x.reshape(len(x), x.shape[2], -1)),
                "The tokens are mixed up when the heads are merged: use your `merge_heads`.",
            ),
            (
                _layer_by_head,
                "The 3·d outputs are first cut in three (q, k, v), then each in heads; not the other way round.",
            ),
            (
                lambda x, W_qkv, b_qkv, W_o, b_o, heads, mask: multi_head(x, W_qkv, b_qkv, W_o, b_o, 1, mask),
                "It computes one head of the whole width, whatever `heads` says.",
            ),
            (
                lambda *given: (lambda out, weights: (out, weights.mean(dim=1)))(*multi_head(*given)),
                "The weights are averaged over the heads; return each head's: (batch, heads, length, length).",
            ),
            (
                lambda *given: multi_head(*given)[::-1],
                "The two results are in the wrong order: return output, then weights.",
            ),
        ],
    ),
    crashes=[
        (
            "shapes cannot be multiplied",
            "The rows of x are tokens: multiply them from the right by the transposes, `x @ W_qkv.T` and `… @ W_o.T`.",
        ),
        (
            "values to unpack",
            "`chunk(3, dim=-1)` makes three blocks of the last dimension; without `dim`, of the batch.",
        ),
        ("NoneType", "The mask may be None: then every key may be seen."),
        (
            "only supports boolean masks",
            "The mask is True and False: `~mask` turns it round.",
        ),
    ],
    nudge="One product makes all queries, keys and values; cut it in three, split each into heads; lesson 03's "
    "attention does the rest for all heads at once.",
    sketch="""
        x times W_qkv transposed + b_qkv             (batch, length, 3 · d)
        cut the last dimension in three: q, k, v     each (batch, length, d)
        split each into heads                        (batch, heads, length, d_head)
        out, weights = attention(q, k, v, mask)      from lesson 03, works on the last two dimensions
        merge the heads of out; times W_o transposed + b_o
        return both
        """,
)

# --- 4.4 ---


def _pattern_case(seed: int, batch: int, heads: int, queries: int, keys: int, share: float) -> tuple[Tensor, Tensor]:
    """Random weights, and a pattern in which some queries have no key, some one, some several."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(batch, heads, queries, keys, generator=generator).mul(3).softmax(dim=-1)
    gold = torch.rand(batch, queries, keys, generator=generator) < share
    gold[0, 0], gold[0, 1], gold[-1, 0, 0] = False, True, True
    return weights, gold


PATTERN = [_pattern_case(0, 3, 4, 5, 6, 0.2), _pattern_case(1, 1, 2, 4, 4, 0.3), _pattern_case(2, 2, 3, 6, 5, 0.15)]


def _found(weights: Tensor, gold: Tensor) -> Tensor:
    return (weights * gold[:, None]).sum(dim=-1)


def _by_sentence(weights: Tensor, gold: Tensor) -> Tensor:
    asked = gold.any(dim=-1).sum(dim=-1)[:, None]
    return (_found(weights, gold).sum(dim=-1) / asked)[asked[:, 0] > 0].mean(dim=0)


def _hits(weights: Tensor, gold: Tensor) -> Tensor:
    asked = gold.any(dim=-1)[:, None]
    first = gold[:, None].expand_as(weights).gather(-1, weights.argmax(dim=-1, keepdim=True))[..., 0]
    return (first & asked).sum(dim=(0, 2)) / asked.sum()


def _perfect_is_one(answer: Callable) -> None:
    gold = torch.zeros(2, 4, 4, dtype=torch.bool)
    gold[:, 1:] = torch.eye(4, dtype=torch.bool)[:3]  # each token but the first looks at the one before
    perfect = torch.where(gold.any(dim=-1, keepdim=True), gold.float(), 0.25)
    weights = torch.stack([perfect, torch.full_like(perfect, 0.25)], dim=1)  # (2, 2 heads, 4, 4)
    scores = answer(weights, gold).tolist()
    for does, wanted, score in zip(("does just that", "spreads evenly over 4 keys"), (1.0, 0.25), scores, strict=True):
        if abs(score - wanted) > 1e-4:
            raise Wrong(
                f"Pattern: the word before; the first word has none. A head that {does} scores {wanted:g}; "
                f"yours gives {score:.3g}."
            )


pattern = Exercise(
    id="4.4",
    title="attention-pattern score",
    reference=pattern_score,
    checks=function_checks(
        pattern_score,
        PATTERN,
        returns=["one score for each head"],
        properties=[_perfect_is_one],
        slips=[
            (
                lambda w, g: _found(w, g).mean(dim=(0, 2)),
                "The mean is taken over all queries; those without a gold key do not count.",
            ),
            (
                lambda w, g: _found(w, g).sum(dim=(0, 2)) / g.sum(),
                "The sum is divided by the number of gold keys; divide by the number of queries that have one.",
            ),
            (
                lambda w, g: _found(w, g).sum(dim=(0, 2)),
                "This is the sum over the queries; take the mean over those that have a gold key.",
            ),
            (
                _by_sentence,
                "This is the mean of the sentences' means; each query counts the same, in whatever sentence it stands.",
            ),
            (
                _hits,
                "This counts how often the largest weight is on a gold key; the weight itself is asked for.",
            ),
            (
                lambda w, g: (w * g[:, None]).amax(dim=-1).sum(dim=(0, 2)) / g.any(dim=-1).sum(),
                "Of several gold keys only the largest weight is counted; add them up.",
            ),
            (
                lambda w, g: (w * g[:, None]).mean(dim=(0, 2, 3)),
                "The mean is taken over queries and keys; add up over the keys, then average over the queries.",
            ),
            (
                lambda w, g: pattern_score(w, g).mean(),
                "This is one number for all heads; one for each is asked for.",
            ),
            (
                lambda w, g: _found(w, g).sum(dim=-1) / g.any(dim=-1).sum(dim=-1)[:, None],
                "This is one score for each sentence and head; take the mean over all queries of the batch.",
            ),
            (
                lambda w, g: pattern_score(w, ~g),
                "This is the weight on the keys that are not gold.",
            ),
        ],
    ),
    crashes=[
        (
            "must match the size of tensor",
            "gold has no dimension for the heads: give it one, `gold[:, None]` is (batch, 1, queries, keys).",
        ),
        ("shape mismatch", "gold has no dimension for the heads: `gold[:, None]` is (batch, 1, queries, keys)."),
    ],
    nudge="How much weight does each query put on its gold keys? Then a mean over the queries that have any.",
    sketch="""
        weights times gold, gold with a dimension for the heads      (batch, heads, queries, keys)
        sum over the keys                                            (batch, heads, queries)
        sum over batch and queries                                   (heads)
        divide by the number of queries that have at least one gold key
        """,
)

# --- 4.5 ---


def trial_loss(gates: Tensor, example: Tensor) -> Tensor:
    """The loss that answers are tried on: its gradient has both signs, and depends on the gates."""
    return torch.tanh((gates * example).sum()) + (gates**2 * example).mean()


def _importance_case(seed: int, layers: int, heads: int, examples: int, ones: bool) -> tuple:
    generator = torch.Generator().manual_seed(seed)
    gates = torch.ones(layers, heads) if ones else torch.rand(layers, heads, generator=generator)
    return trial_loss, gates, [torch.randn(layers, heads, generator=generator) for _ in range(examples)]


IMPORTANCE = [
    _importance_case(0, 2, 3, 4, True),
    _importance_case(1, 1, 4, 3, False),
    _importance_case(2, 3, 2, 5, True),
]


def _gradients(loss: Callable, gates: Tensor, examples: list) -> Tensor:
    found = []
    for example in examples:
        tried = gates.clone().requires_grad_()
        found.append(torch.autograd.grad(loss(tried, example), tried)[0])
    return torch.stack(found)  # (examples, layers, heads)


def _removal(loss: Callable, gates: Tensor, examples: list) -> Tensor:
    total = torch.zeros_like(gates)
    for place in range(gates.numel()):
        closed = gates.clone()
        closed.view(-1)[place] = 0
        total.view(-1)[place] = sum((loss(closed, e) - loss(gates, e)).abs() for e in examples) / len(examples)
    return total


def _variant(change: Callable[[Tensor], Tensor]) -> Callable:
    return lambda loss, gates, examples: change(_gradients(loss, gates, examples))


importance = Exercise(
    id="4.5",
    title="head importance",
    reference=head_importance,
    checks=function_checks(
        head_importance,
        IMPORTANCE,
        returns=["one number for each head"],
        differentiable=False,
        slips=[
            (
                _variant(lambda g: g.mean(dim=0).abs()),
                "The absolute value is taken of the mean: gradients of opposite sign cancel. Take it of each "
                "example's, then the mean.",
            ),
            (
                _variant(lambda g: g.mean(dim=0)),
                "The absolute value is missing: a head matters whichever way it pushes.",
            ),
            (_variant(lambda g: g.abs().sum(dim=0)), "This is the sum over the examples; take the mean."),
            (_variant(lambda g: (g**2).mean(dim=0)), "These are squares; take absolute values."),
            (
                _variant(lambda g: (g**2).mean(dim=0).sqrt()),
                "This is the root of the mean square; take absolute values.",
            ),
            (
                _variant(lambda g: g.cumsum(dim=0).abs().mean(dim=0)),
                "The gradients pile up from example to example: `.grad` is added to. Start each example from fresh "
                "gates, or set `.grad = None`.",
            ),
            (
                _variant(lambda g: g.sum(dim=0).abs()),
                "Add up absolute values, one for each example, and divide by their number.",
            ),
            (_variant(lambda g: g[-1].abs()), "Only the last example counts: keep a sum over all."),
            (_variant(lambda g: g[0].abs()), "Only the first example counts: is the `return` inside the loop?"),
            (_variant(lambda g: g.abs().amax(dim=0)), "This is the largest over the examples; take the mean."),
            (
                _variant(lambda g: g.abs().mean(dim=0) / g.abs().mean(dim=0).sum()),
                "The numbers are scaled so that they sum to 1; leave them as they are.",
            ),
            (_variant(lambda g: g.abs().mean()), "This is one number for all heads; one for each is asked for."),
            (_removal, "This is what happens when a head is removed; the gradient is asked for."),
            (
                lambda loss, gates, examples: head_importance(loss, torch.ones_like(gates), examples),
                "It starts from gates of 1, not from the gates given.",
            ),
        ],
    ),
    crashes=[
        ("does not require grad", "The gates need `requires_grad_()` before the loss is computed."),
        ("NoneType", "`.grad` is None: call `.backward()` on the loss first, on gates that require a gradient."),
        (
            "view of a leaf Variable that requires grad",
            "Work on a copy of the gates: `gates.clone().requires_grad_()`.",
        ),
        ("leaf Variable that requires grad", "Work on a copy of the gates: `gates.clone().requires_grad_()`."),
        (
            "grad can be implicitly created only for scalar",
            "Differentiate the loss of one example at a time: one number.",
        ),
    ],
    nudge="For each example: fresh gates that require a gradient, the loss, its gradient, its absolute value.",
    sketch="""
        total = zeros, like the gates
        for each example:
            a copy of the gates, with requires_grad
            the gradient of loss(copy, example) with respect to the copy
            add its absolute value to total
        return total divided by the number of examples
        """,
)

EXERCISES = [split, merge, layer, pattern, importance]
