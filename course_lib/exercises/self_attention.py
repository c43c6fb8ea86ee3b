"""Exercises of lesson 03: scaled dot-product attention, the causal mask, one head, a slide to debug, its cost."""

import math
from collections.abc import Callable
from numbers import Real

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.attention import SelfAttention, attention, attention_flops, causal_mask
from course_lib.checks import Exercise, Wrong, describe, device_check, function_checks, module_checks, signature_check


def _random(seed: int, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


# --- 3.1 ---


def _attention_cases() -> list[tuple]:
    """One text, a batch, a batch of heads; every size another one, so that a wrong or fixed axis shows."""
    cases = []
    for seed, (before, queries, keys, d, d_v, masked) in enumerate(
        [((), 3, 4, 5, 2, False), ((), 4, 6, 3, 5, True), ((2,), 5, 3, 4, 6, True), ((2, 3), 4, 5, 6, 2, False)]
    ):
        q, k, v, hide = _random(seed, (*before, queries, d), (*before, keys, d), (*before, keys, d_v), (queries, keys))
        mask = (hide > 0) | (torch.arange(keys) == 1)  # no row is hidden altogether
        cases.append((q, k, v, mask if masked else None))
    return cases


def _attention_variant(
    scale: Callable = lambda q, k, v: math.sqrt(q.shape[-1]),
    soft: Callable = lambda scores: scores.softmax(dim=-1),
    hide: Callable = lambda scores, mask: scores.masked_fill(~mask, -math.inf),
    after: Callable = lambda weights, mask: weights,
    out: Callable = lambda weights, v: (weights @ v, weights),
    product: Callable = lambda q, k: q @ k.mT,
) -> Callable:
    """Attention with one thing changed; for slips."""

    def attend(q, k, v, mask=None):
        scores = product(q, k) / scale(q, k, v)
        weights = soft(scores if mask is None else hide(scores, mask))
        return out(weights if mask is None else after(weights, mask), v)

    return attend


def _sums_to_one(answer: Callable) -> None:
    for q, k, v, mask in _attention_cases():
        _, weights = answer(q, k, v, mask)
        if (weights < -1e-6).any():
            raise Wrong("Some weights are negative: they are what the softmax makes of the scores.")
        if torch.allclose(weights.sum(dim=-1), torch.ones(weights.shape[:-1]), atol=1e-4):
            continue
        if torch.allclose(weights.sum(dim=-2), torch.ones(weights.shape[-1]), atol=1e-4):
            raise Wrong("Each column sums to 1: the softmax runs over queries; take it over keys, the last dimension.")
        raise Wrong("The weights of a query must sum to 1: take the softmax over keys, the last dimension.")


def _obeys_the_mask(answer: Callable) -> None:
    for q, k, v, mask in _attention_cases():
        if mask is None:
            continue
        _, weights = answer(q, k, v, mask)
        if (weights.masked_fill(mask, 0).abs() > 1e-6).any():
            raise Wrong("A key that the mask hides (False) has a weight: fill its score with −∞ before the softmax.")


attend = Exercise(
    id="3.1",
    title="scaled dot-product attention",
    reference=attention,
    checks=function_checks(
        attention,
        _attention_cases(),
        returns=["output", "weights"],
        properties=[_sums_to_one, _obeys_the_mask],
        slips=[
            (_attention_variant(scale=lambda q, k, v: 1.0), "The scores are not scaled: divide them by √d."),
            (_attention_variant(scale=lambda q, k, v: q.shape[-1]), "The scores are divided by d; take the root, √d."),
            (
                _attention_variant(scale=lambda q, k, v: 1 / math.sqrt(q.shape[-1])),
                "The scores are multiplied by √d; divide them by it.",
            ),
            (
                _attention_variant(scale=lambda q, k, v: math.sqrt(k.shape[-2])),
                "The scores are divided by the root of the number of keys; d is the length of a query, `q.shape[-1]`.",
            ),
            (
                _attention_variant(scale=lambda q, k, v: math.sqrt(q.shape[-2])),
                "The scores are divided by the root of the number of queries; d is the length of one, `q.shape[-1]`.",
            ),
            (
                _attention_variant(scale=lambda q, k, v: math.sqrt(v.shape[-1])),
                "The scores are divided by the root of the values' length; d is that of queries and keys.",
            ),
            (
                _attention_variant(scale=lambda q, k, v: math.sqrt(q.shape[0])),
                "d is the last dimension of q, `q.shape[-1]`; this is the first.",
            ),
            (
                _attention_variant(soft=lambda s: s.softmax(dim=-2)),
                "Each column sums to 1: the softmax runs over queries; take it over keys, the last dimension.",
            ),
            (
                _attention_variant(soft=lambda s: s.softmax(dim=1)),
                "The softmax runs over dimension 1: that is the keys in a single text only; take `dim=-1`.",
            ),
            (
                _attention_variant(soft=lambda s: s.softmax(dim=0)),
                "The softmax runs over dimension 0; take it over the keys, `dim=-1`.",
            ),
            (
                _attention_variant(soft=lambda s: s, hide=lambda s, m: s),
                "These are the scores themselves: take their softmax, so that each query's weights sum to 1.",
            ),
            (
                _attention_variant(soft=torch.sigmoid),
                "A sigmoid squashes each score on its own; the softmax lets the keys of a query compete.",
            ),
            (
                _attention_variant(soft=lambda s: s.exp(), hide=lambda s, m: s.masked_fill(~m, -math.inf)),
                "These are exponentials that are not divided by their sum over the keys.",
            ),
            (
                _attention_variant(soft=lambda s: s.log_softmax(dim=-1), hide=lambda s, m: s),
                "This is the logarithm of the softmax; the weights are the softmax itself.",
            ),
            (
                _attention_variant(hide=lambda s, m: s),
                "The mask is not used: scores where it is False become −∞ before the softmax.",
            ),
            (
                _attention_variant(hide=lambda s, m: s.masked_fill(m, -math.inf)),
                "The mask is used the wrong way round: True is what may be seen.",
            ),
            (
                _attention_variant(hide=lambda s, m: s * m),
                "The mask is multiplied into the scores: a hidden score becomes 0, and e⁰ = 1 is no small weight. "
                "Fill it with −∞.",
            ),
            (
                _attention_variant(hide=lambda s, m: s * torch.where(m, 1.0, -math.inf)),
                "The mask is multiplied into the scores as 1 and −∞ (as on S3's slide): "
                "a negative score times −∞ is +∞. Fill with −∞ instead.",
            ),
            (
                _attention_variant(hide=lambda s, m: s + m),
                "True and False are added to the scores as 1 and 0; fill with −∞ where the mask is False.",
            ),
            (
                _attention_variant(hide=lambda s, m: s.masked_fill(~m, 0.0)),
                "Hidden scores are filled with 0, and e⁰ = 1 is no small weight: fill them with −∞.",
            ),
            (
                _attention_variant(hide=lambda s, m: s, after=lambda w, m: w * m),
                "Hidden weights are set to 0 after the softmax, so that the rest no longer sums to 1: hide the scores.",
            ),
            (_attention_variant(out=lambda w, v: (w, w @ v)), "The two results are in the wrong order: output first."),
            (
                _attention_variant(out=lambda w, v: (w @ v / w.shape[-1], w)),
                "The output is divided by the number of keys: the weights sum to 1, so the sum is a mean already.",
            ),
            (
                _attention_variant(product=lambda q, k: -torch.cdist(q, k)),
                "The scores are distances; dot products are asked for.",
            ),
            (
                _attention_variant(product=lambda q, k: F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT),
                "These are cosines: the dot product does not divide by the vectors' lengths.",
            ),
        ],
    ),
    crashes=[
        (
            "shapes cannot be multiplied",
            "Queries are rows and keys are rows: transpose the keys, `q @ k.transpose(-2, -1)`.",
        ),
        (
            "Expected size for first two dimensions of batch2",
            "Only the last two dimensions of k may change places: `k.transpose(-2, -1)`.",
        ),
        (
            "must match the size of tensor",
            "Only the last two dimensions of k may change places: `k.transpose(-2, -1)`.",
        ),
        ("bad operand type for unary ~: 'NoneType'", "The mask may be None: then every key may be seen."),
        ("NoneType", "The mask may be None: then every key may be seen."),
        ("dimension 2", "There may be one text, a batch, or heads: count dimensions from the end, `dim=-1`."),
        (
            "Dimension out of range",
            "There may be one text, a batch, or heads: count dimensions from the end, `dim=-1`.",
        ),
        ("expected 3D", "There may be one text, a batch, or heads: `@` and `transpose(-2, -1)` serve them all."),
    ],
    nudge="Three lines: scores from queries and keys, weights from scores, output from weights and values.",
    sketch="""
        scores  = queries times keys transposed (their last two dimensions), divided by the root of d
        weights = softmax of the scores over the keys; where the mask is False, the score is −∞ first
        output  = weights times values
        return output, weights
        """,
)

# --- 3.2 ---

LENGTHS = [(4, 4, None), (1, 1, None), (3, 3, None), (2, 5, None), (1, 4, None)]  # queries, keys, device


def _is_boolean(answer: Callable) -> None:
    got = answer(*LENGTHS[0])
    if isinstance(got, Tensor) and got.dtype != torch.bool:
        if got.isinf().any():
            raise Wrong("This mask is to be added to scores; ours says what may be seen: True and False.")
        raise Wrong(f"The mask must hold True and False (torch.bool); got {got.dtype}: `mask.bool()`.")


def _sees_itself(answer: Callable) -> None:
    for n in (1, 3, 4):
        mask = answer(n, n)
        if not mask.diagonal().all():
            raise Wrong("A token may see itself: the diagonal must be True.")


def _sees_nothing_ahead(answer: Callable) -> None:
    if torch.equal(answer(4, 4), causal_mask(4, 4).T):
        raise Wrong("This is the upper triangle: rows are queries, and a query sees the keys up to its own place.")
    if answer(4, 4).triu(1).any():
        raise Wrong("A query sees keys after its own place: row 0 may see column 0 only.")


def _last_is_last(answer: Callable) -> None:
    if torch.equal(answer(2, 5), torch.ones(2, 5, dtype=torch.bool).tril()):
        raise Wrong(
            "With 2 queries and 5 keys the queries are the LAST two of the five tokens: the first of them may see "
            "four keys. Move the diagonal by keys − queries."
        )


_mask_checks = function_checks(
    causal_mask,
    LENGTHS,
    returns=["mask"],
    differentiable=False,
    properties=[_sees_itself, _sees_nothing_ahead, _last_is_last],
    slips=[
        (
            lambda queries, keys, device=None: ~causal_mask(queries, keys),
            "True and False are swapped: True is what may be seen.",
        ),
        (
            lambda queries, keys, device=None: causal_mask(keys, queries),
            "Rows are queries and columns are keys: (queries, keys).",
        ),
        (
            lambda queries, keys, device=None: causal_mask(queries, keys).T,
            "Rows are queries and columns are keys: (queries, keys).",
        ),
        (
            lambda queries, keys, device=None: torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries - 1),
            "A token may see itself: the diagonal must be True.",
        ),
        (
            lambda queries, keys, device=None: torch.ones(queries, keys, dtype=torch.bool).tril(queries - keys),
            "The diagonal is moved the wrong way: by keys − queries, so that the last query sees all keys.",
        ),
        (
            lambda queries, keys, device=None: torch.ones(queries, keys, dtype=torch.bool),
            "Everything may be seen: hide the keys after each query's own place.",
        ),
        (
            lambda queries, keys, device=None: torch.eye(queries, keys, dtype=torch.bool),
            "Only the diagonal is open: a query also sees all keys before its own place.",
        ),
        (
            lambda queries, keys, device=None: causal_mask(queries, queries),
            "The mask has a column for each key: (queries, keys), not (queries, queries).",
        ),
        (
            lambda queries, keys, device=None: causal_mask(keys, keys),
            "The mask has a row for each query: (queries, keys), not (keys, keys).",
        ),
    ],
)
mask = Exercise(
    id="3.2",
    title="causal mask",
    reference=causal_mask,
    checks=[_mask_checks[0], _is_boolean, *_mask_checks[1:], device_check(2, 3)],
    crashes=[
        ("unexpected keyword argument 'device'", "`torch.ones` and `torch.arange` take `device=`; `tril` does not.")
    ],
    nudge="A lower triangle of True. `tril(n)` moves its edge n places to the right: how many, if keys are more?",
    sketch="""
        ones = True everywhere, (queries, keys), on the device
        keep its lower triangle; the edge is moved by keys − queries,
        so that the last query sees every key
        """,
)

# --- 3.3 ---

HEADS = [  # plain and causal, on one text, on a batch, on a batch of batches
    ((5, 3, False), _random(0, (4, 5))),
    ((4, 6, False), _random(1, (2, 3, 4))),
    ((3, 2, True), _random(2, (2, 5, 3))),
    ((6, 4, True), _random(3, (2, 3, 4, 6))),
]


def _head_variant(attend: Callable = attention, parts: str = "QKV", mask: Callable = lambda n: causal_mask(n, n)):
    """A head as a function of its sizes, input and weights, with one thing changed; for slips."""

    def head(d, d_head, causal, x, Q_weight, K_weight, V_weight):
        made = {"Q": x @ Q_weight.T, "K": x @ K_weight.T, "V": x @ V_weight.T, "x": x}
        q, k, v = (made[part] for part in parts)
        return attend(q, k, v, mask(x.shape[-2]) if causal else None)[0]

    return head


def _open_and_hidden(answer: Callable) -> None:
    """Change the last token: what moves?"""
    weights = _random(7, (3, 4), (3, 4), (3, 4))
    x, other = _random(8, (5, 4), (5, 4))
    other = torch.cat([x[:-1], other[-1:]])
    moved = {
        causal: (answer(4, 3, causal, x, *weights) - answer(4, 3, causal, other, *weights)).abs().amax(dim=-1)
        for causal in (True, False)
    }
    if moved[True][:-1].max() > 1e-6:
        raise Wrong("With causal=True the first tokens move when the last one changes: the future leaks. Use the mask.")
    if moved[False][:-1].max() < 1e-6:
        raise Wrong("With causal=False every token must see every token: then there is no mask.")


def _open_by_default(answer: type[nn.Module]) -> None:
    module = answer(4, 3)
    x, other = _random(8, (5, 4), (5, 4))
    if torch.allclose(module(x)[0], module(torch.cat([x[:-1], other[-1:]]))[0], atol=1e-6):
        raise Wrong("`causal` is False unless it is given: then the first token sees the last.")


head = Exercise(
    id="3.3",
    title="one head as a module",
    reference=SelfAttention,
    checks=[
        *module_checks(
            SelfAttention,
            HEADS,
            returns=["output"],
            properties=[_open_and_hidden],
            slips=[
                (
                    _head_variant(_attention_variant(scale=lambda q, k, v: 1.0)),
                    "The scores are not scaled: divide by √d_head.",
                ),
                (
                    lambda d, d_head, causal, x, *w: _head_variant(
                        _attention_variant(scale=lambda q, k, v: math.sqrt(d))
                    )(d, d_head, causal, x, *w),
                    "The scores are divided by √d, with d the width of x; queries and keys have the length d_head.",
                ),
                (
                    _head_variant(_attention_variant(soft=lambda s: s.softmax(dim=-2))),
                    "The softmax runs over queries; take it over keys, the last dimension.",
                ),
                (_head_variant(parts="KQV"), "Queries and keys have changed places: rows of the scores are queries."),
                (_head_variant(parts="QKK"), "The keys stand where the values belong: the output is a mean of values."),
                (_head_variant(parts="QQV"), "Queries are compared with queries; compare them with the keys."),
                (_head_variant(parts="KKV"), "Keys are compared with keys; compare the queries with them."),
                (
                    _head_variant(parts="QKQ"),
                    "The queries stand where the values belong: the output is a mean of values.",
                ),
                (_head_variant(parts="QVK"), "Keys and values have changed places."),
                (
                    _head_variant(mask=lambda n: causal_mask(n, n).T),
                    "With causal=True each token sees the tokens AFTER it: use the lower triangle.",
                ),
                (
                    _head_variant(mask=lambda n: None),
                    "`causal` is not used: with causal=True a mask hides what is ahead.",
                ),
                (
                    lambda d, d_head, causal, *rest: _head_variant()(d, d_head, True, *rest),
                    "The mask is used always; it is meant for causal=True only.",
                ),
                (
                    lambda d, d_head, causal, *rest: _head_variant()(d, d_head, not causal, *rest),
                    "The mask is used when causal is False, and left out when it is True.",
                ),
                (
                    lambda d, d_head, causal, *rest: _head_variant(mask=lambda n: torch.eye(n, dtype=torch.bool))(
                        d, d_head, causal, *rest
                    ),
                    "With causal=True each token sees itself only; it may see all tokens before it too.",
                ),
                (
                    lambda d, d_head, causal, x, *w: attention(
                        x @ w[0].T, x @ w[1].T, x @ w[2].T, causal_mask(x.shape[-2], x.shape[-2]) if causal else None
                    )[1],
                    "These are the weights; the output is weights times values (`attention` returns output, weights).",
                ),
            ],
        ),
        _open_by_default,
    ],
    crashes=[
        (
            "shapes cannot be multiplied",
            "`nn.Linear(d, d_head)` takes vectors of length d and makes some of length d_head.",
        ),
        ("not enough values to unpack", "x may be one text (length, d) or a batch: take `x.shape[-2]` for the length."),
        ("too many values to unpack", "x may be one text (length, d) or a batch: take `x.shape[-2]` for the length."),
    ],
    nudge="`__init__` makes three layers, `nn.Linear(d, d_head, bias=False)`; `forward` hands on what they make.",
    sketch="""
        __init__:  super().__init__()
                   self.Q, self.K, self.V = three linear layers from d to d_head, without bias
                   remember causal
        forward:   mask = the causal mask of x's length if causal, else None
                   return the output of attention(Q of x, K of x, V of x, mask)
        """,
)

# --- 3.4 ---


class SlideAttention(nn.Module):
    """The slide's class, repaired: one head as wide as its input, with biases, and dropout on the weights."""

    def __init__(self, h_dim: int):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.dropout(weights) @ v


def _slide_variant(attend: Callable) -> Callable:
    """The slide's class as a function of its size, input and weights, with another attention; for slips."""

    def slide(h_dim, x, *w):
        q, k, v = (F.linear(x, weight, bias) for weight, bias in zip(w[::2], w[1::2], strict=True))
        return attend(q, k, v)[0]

    return slide


def _on_ones(answer: type[nn.Module], batch: int, length: int) -> Tensor:
    """What the module makes in training of values that are all 1: for each token the sum of its weights."""
    module = answer(3).train()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.fill_(1.0 if name == "V.bias" else 0.0)
        return module(torch.ones(batch, length, 3))


def _drops_weights(answer: type[nn.Module]) -> None:
    sums = _on_ones(answer, 200, 4)
    if torch.allclose(sums, torch.ones_like(sums)):
        raise Wrong(
            "In training a token's weights still sum to 1: dropout sets some of them to 0, after the softmax, and "
            "scales up the rest."
        )
    if not torch.allclose(sums, sums[..., :1].expand_as(sums)):
        raise Wrong("Dropout acts on single numbers of the output or of the values; the slide drops weights.")
    largest = _on_ones(answer, 500, 1).max().item()  # one token, one weight: 0, or 1 / (1 − p)
    if not math.isclose(largest, 1 / 0.9, rel_tol=1e-3):
        raise Wrong(f"What is not dropped must grow by 1 / (1 − 0.1) = 1.11; it grows by {largest:.2f}: is p = 0.1?")


slide = Exercise(
    id="3.4",
    title="debug the slide",
    reference=SlideAttention,
    checks=[
        *module_checks(
            SlideAttention,
            [((5,), _random(0, (4, 5))), ((4,), _random(1, (2, 3, 4))), ((3,), _random(2, (4, 4, 3)))],
            returns=["output"],
            slips=[
                (
                    _slide_variant(_attention_variant(scale=lambda q, k, v: 1.0)),
                    "It runs, and one thing is missing still. Beside its code the slide prints (kᵗq)σ, and the code "
                    "has no σ: divide the scores by √h_dim.",
                ),
                (
                    _slide_variant(_attention_variant(scale=lambda q, k, v: q.shape[-1])),
                    "The scores are divided by h_dim; take the root, √h_dim.",
                ),
                (
                    _slide_variant(
                        _attention_variant(
                            scale=lambda q, k, v: 1.0, soft=lambda s: s.softmax(1 if s.dim() == 2 else 0)
                        )
                    ),
                    "Without `dim` the softmax of a batch runs over dimension 0, so that texts compete with each "
                    "other: say `dim=-1`, the keys.",
                ),
                (
                    _slide_variant(_attention_variant(soft=lambda s: s.softmax(1 if s.dim() == 2 else 0))),
                    "Without `dim` the softmax of a batch runs over dimension 0, so that texts compete with each "
                    "other: say `dim=-1`, the keys.",
                ),
                *(
                    (
                        _slide_variant(_attention_variant(scale=scale, soft=lambda s, dim=dim: s.softmax(dim))),
                        f"The softmax runs over dimension {dim}; take the last, the keys: `dim=-1`.",
                    )
                    for scale in (lambda q, k, v: 1.0, lambda q, k, v: math.sqrt(q.shape[-1]))
                    for dim in (0, 1, -2)
                ),
                (
                    _slide_variant(lambda q, k, v: attention(k, q, v)),
                    "Queries and keys have changed places: rows of the scores are queries.",
                ),
                (_slide_variant(lambda q, k, v: (v,)), "The weights are not used: the output is weights times values."),
            ],
        ),
        _drops_weights,
    ],
    crashes=[
        ("has no attribute 'dropout'", "Layers are classes, with a capital letter: `nn.Dropout`."),
        (
            "No module named 'nn'",
            "`nn` is a name of ours, not a module that Python can find: `from torch.nn import functional as F`.",
        ),
        (
            "has no attribute 'Softmax'",
            "`nn.Softmax` is a layer; the function in `nn.functional` is `softmax`, in small letters.",
        ),
        ("name 'self' is not defined", "A method finds its object under the name of its first argument: `self`."),
        (
            "Expected size for first two dimensions of batch2",
            "One text went well, a batch does not: `.T` turns ALL dimensions round, the batch too. Swap the last two: "
            "`k.transpose(-2, -1)`.",
        ),
        (
            "must match the size of tensor",
            "One text went well, a batch does not: `.T` turns ALL dimensions round, the batch too. Swap the last two: "
            "`k.transpose(-2, -1)`.",
        ),
        ("shapes cannot be multiplied", "Queries and keys are rows: `q @ k.transpose(-2, -1)`."),
    ],
    nudge="Take the `raise` out and run the check: it stops at the first bug. Repair that, run again. There are eight.",
    sketch="""
        __init__:  super().__init__() comes first
                   dropout is a layer: a class, with a capital letter
        forward:   the first argument of a method is the object
                   functional comes from torch.nn
                   swap the last two dimensions of the keys, not all of them
                   divide the scores by the root of h_dim
                   softmax is a function here, and wants to know its dimension: the last
        """,
)

# --- 3.5 ---

SIZES = [(10, 4, 3), (7, 5, 5), (1, 6, 2), (64, 8, 16)]  # length, d, d_head


def _two_numbers(answer: Callable) -> None:
    for sizes in SIZES:
        got = answer(*sizes)
        if isinstance(got, Real) or (isinstance(got, Tensor) and got.dim() == 0):
            raise Wrong("Return two numbers: those of the projections, and those of the pairs.")
        if not isinstance(got, tuple | list | Tensor) or len(got) != 2:
            raise Wrong(f"Expected two numbers, projections and pairs; got {describe(got)}.")
        for value in got:
            if not isinstance(value, Real | Tensor) or (isinstance(value, Tensor) and value.numel() != 1):
                raise Wrong(f"Expected two numbers, projections and pairs; one of them is {describe(value)}.")


FLOP_SLIPS = [
    (lambda n, d, h: (3 * n * d * h, 2 * n * n * h), "Only multiplications are counted: each comes with an addition."),
    (lambda n, d, h: (4 * n * n * h, 6 * n * d * h), "The two are in the wrong order: projections first, then pairs."),
    (
        lambda n, d, h: (2 * n * d * h, 4 * n * n * h),
        "One projection is counted; there are three: queries, keys and values.",
    ),
    (
        lambda n, d, h: (4 * n * d * h, 4 * n * n * h),
        "Two projections are counted; there are three: queries, keys and values.",
    ),
    (
        lambda n, d, h: (6 * n * d * h, 2 * n * n * h),
        "The pairs need two products: queries with keys, and weights with values.",
    ),
    (
        lambda n, d, h: (6 * n * d * h, 4 * n * n * d),
        "Queries, keys and values have the length d_head, not d: that is what the pairs cost.",
    ),
    (
        lambda n, d, h: (6 * n * d * d, 4 * n * n * d),
        "d_head is not used: each projection makes vectors of length d_head from vectors of length d.",
    ),
    (
        lambda n, d, h: (6 * d * h, 4 * n * n * h),
        "This is one token's projections: there are length tokens.",
    ),
    (
        lambda n, d, h: (6 * n * d * h, 4 * n * h),
        "Every query meets every key: the pairs grow with the square of the length.",
    ),
    (
        lambda n, d, h: (6 * n * d * h, 4 * n * n),
        "Each pair costs d_head multiplications and additions, not one.",
    ),
    (
        lambda n, d, h: (6 * n * n * d * h, 4 * n * n * h),
        "The projections are done once for each token, not for each pair.",
    ),
    (
        lambda n, d, h: (3 * n * d * h, 4 * n * n * h),
        "In the projections only multiplications are counted: each comes with an addition.",
    ),
    (
        lambda n, d, h: (6 * n * d * h, n * n * h),
        "The pairs need two products, and each multiplication comes with an addition.",
    ),
    (
        lambda n, d, h: (6 * n * d * h, 6 * n * d * h + 4 * n * n * h),
        "The second number is the whole; the pairs alone are asked for.",
    ),
]


def _flop_numbers(answer: Callable) -> None:
    got = [tuple(float(value) for value in answer(*sizes)) for sizes in SIZES]
    if got == [tuple(map(float, attention_flops(*sizes))) for sizes in SIZES]:
        return
    for wrong, sentence in FLOP_SLIPS:
        if got == [tuple(map(float, wrong(*sizes))) for sizes in SIZES]:
            raise Wrong(sentence)
    for sizes, (projections, pairs) in zip(SIZES, got, strict=True):
        for name, value, wanted in zip(
            ("projections", "pairs"), (projections, pairs), attention_flops(*sizes), strict=True
        ):
            if value != wanted:
                raise Wrong(f"For (length, d, d_head) = {sizes} the {name} take {wanted}; got {value:g}.")


flops = Exercise(
    id="3.5",
    title="FLOP count",
    reference=attention_flops,
    checks=[signature_check(attention_flops), _two_numbers, _flop_numbers],
    nudge="An (a × b) matrix times a (b × c) matrix: a·c numbers, each a sum of b products. Which of them are there?",
    sketch="""
        (a × b) times (b × c) takes 2 · a · b · c
        projections: three times (length × d) times (d × d_head)
        pairs:       (length × d_head) times (d_head × length), and (length × length) times (length × d_head)
        """,
)

EXERCISES = [attend, mask, head, slide, flops]
