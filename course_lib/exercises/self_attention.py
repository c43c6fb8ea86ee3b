"""Exercises of lesson 03: scaled dot-product attention, the causal mask, one head, a slide to debug, its cost."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.lab.grading import Exercise, Wrong
from course_lib.lab.ladder import Ladder, ModuleLadder, device_check, edits
from course_lib.measure.costs import attention_flops
from course_lib.models.attention import SelfAttention, attention, causal_mask


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


def _sums_to_one(answer: Callable) -> None:
    for q, k, v, mask in _attention_cases():
        _, weights = answer(q, k, v, mask)
        if (weights < -1e-6).any():
            raise Wrong("Some weights are negative: they are what the softmax makes of the scores.")
        if torch.allclose(weights.sum(dim=-1), torch.ones(weights.shape[:-1]), atol=1e-4):
            continue
        if torch.allclose(weights.sum(dim=-2), torch.ones(weights.shape[-1]), atol=1e-4):
            raise Wrong("Each column sums to 1: the softmax runs over queries; take it over keys, the last dimension.")
        total = weights.sum(dim=-1).flatten()[0].item()
        raise Wrong(
            f"The weights of a query must sum to 1 over the keys, the last dimension; here they sum to {total:g}."
        )


def _obeys_the_mask(answer: Callable) -> None:
    for q, k, v, mask in _attention_cases():
        if mask is None:
            continue
        _, weights = answer(q, k, v, mask)
        if (weights.masked_fill(mask, 0).abs() > 1e-6).any():
            raise Wrong("A key that the mask hides (False) has a weight: fill its score with −∞ before the softmax.")


SOFTMAX = "masked_softmax(scores, mask)"
FILLED = "(scores if mask is None else scores.masked_fill(~mask, -math.inf))"
WRONG_WAY_ROUND = "The mask is used the wrong way round: True is what may be seen."
attend = Exercise(
    id="3.1",
    title="scaled dot-product attention",
    reference=attention,
    checks=Ladder(
        attention,
        _attention_cases(),
        returns=["output", "weights"],
        properties=[_sums_to_one, _obeys_the_mask],
        slips=edits(
            attention,
            f"""
            / math.sqrt(q.shape[-1]) → · The scores are not scaled: divide them by √d.
            math.sqrt(q.shape[-1]) → q.shape[-1] · The scores are divided by d; take the root, √d.
            / math.sqrt → * math.sqrt · The scores are multiplied by √d; divide them by it.
            / math.sqrt(q.shape[-1]) → ; {SOFTMAX} → {SOFTMAX} / math.sqrt(q.shape[-1])
            · The weights are divided by √d, after the softmax; divide the scores, before it.
            q.shape[-1] → 2
            · The scores are divided by √2, as in the example; d is the length of a query, `q.shape[-1]`.
            q.shape[-1] → k.shape[-2]
            · The scores are divided by the root of the number of keys; d is the length of a query, `q.shape[-1]`.
            q.shape[-1] → q.shape[-2]
            · The scores are divided by the root of the number of queries; d is the length of one, `q.shape[-1]`.
            q.shape[-1] → v.shape[-1]
            · The scores are divided by the root of the values' length; d is that of queries and keys.
            q.shape[-1] → q.shape[0] · d is the last dimension of q, `q.shape[-1]`; this is the first.
            q.shape[-1] → q.shape[1]
            · d is the last dimension of q, `q.shape[-1]`; this is dimension 1, the last in a single text only.
            {SOFTMAX} → {FILLED}.softmax(dim=-2)
            · Each column sums to 1: the softmax runs over queries; take it over keys, the last dimension.
            {SOFTMAX} → {FILLED}.softmax(dim=1)
            · The softmax runs over dimension 1: that is the keys in a single text only; take `dim=-1`.
            {SOFTMAX} → {FILLED}.softmax(dim=0) · The softmax runs over dimension 0; take it over the keys, `dim=-1`.
            {SOFTMAX} → scores
            · These are the scores themselves: take their softmax, so that each query's weights sum to 1.
            {SOFTMAX} → {FILLED}.sigmoid()
            · A sigmoid squashes each score on its own; the softmax lets the keys of a query compete.
            {SOFTMAX} → {FILLED}.exp() · These are exponentials that are not divided by their sum over the keys.
            {SOFTMAX} → scores.log_softmax(dim=-1)
            · This is the logarithm of the softmax; the weights are the softmax itself.
            {SOFTMAX} → scores.softmax(dim=-1)
            · The mask is not used: scores where it is False become −∞ before the softmax.
            {SOFTMAX} → {FILLED.replace("~mask", "mask")}.softmax(dim=-1) · {WRONG_WAY_ROUND}
            {SOFTMAX} → masked_softmax(scores, None if mask is None else ~mask) · {WRONG_WAY_ROUND}
            {SOFTMAX} → (scores if mask is None else scores * mask).softmax(dim=-1)
            · A hidden score becomes 0 (filled so, or multiplied by the mask), and e⁰ = 1 is no small weight: fill it
            · with −∞.
            {SOFTMAX} → (scores if mask is None else scores * torch.where(mask, 1.0, -math.inf)).softmax(dim=-1)
            · The mask is multiplied into the scores as 1 and −∞ (as on S3's slide): a negative score times −∞ is +∞.
            · Fill with −∞ instead.
            {SOFTMAX} → (scores if mask is None else scores + mask).softmax(dim=-1)
            · True and False are added to the scores as 1 and 0; fill with −∞ where the mask is False.
            {SOFTMAX} → scores.softmax(dim=-1) * (1 if mask is None else mask)
            · Hidden weights are set to 0 after the softmax, so that the rest no longer sums to 1: hide the scores.
            weights @ v, weights → weights, weights @ v · The two results are in the wrong order: output first.
            weights @ v → weights @ v / k.shape[-2]
            · The output is divided by the number of keys: the weights sum to 1, so the sum is a mean already.
            q @ k.transpose(-2, -1) → -torch.cdist(q, k) · The scores are distances; dot products are asked for.
            q @ k → F.normalize(q, dim=-1) @ F.normalize(k, dim=-1)
            · These are cosines: the dot product does not divide by the vectors' lengths.
            """,
        ),
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
            "at non-singleton dimension 0",
            "Only the last two dimensions of k may change places: `k.transpose(-2, -1)`.",
        ),
        ("NoneType", "The mask may be None: then every key may be seen."),
        (
            "Dimension out of range",
            "There may be one text, a batch, or heads: count dimensions from the end, `dim=-1`.",
        ),
        (
            "must be a 3D tensor",
            "There may be one text, a batch, or heads: `@` and `transpose(-2, -1)` serve them all.",
        ),
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


mask = Exercise(
    id="3.2",
    title="causal mask",
    reference=causal_mask,
    checks=Ladder(
        causal_mask,
        LENGTHS,
        returns=["mask"],
        differentiable=False,
        properties=[_sees_itself, _sees_nothing_ahead, _last_is_last],
        slips=edits(
            causal_mask,
            """
            torch.ones → ~torch.ones · True and False are swapped: True is what may be seen.
            (queries, keys, → (keys, queries, ; (keys - queries) → (queries - keys)
            · Rows are queries and columns are keys: (queries, keys).
            (keys - queries) → (keys - queries).T · Rows are queries and columns are keys: (queries, keys).
            (keys - queries) → (keys - queries - 1) · A token may see itself: the diagonal must be True.
            (keys - queries) → (queries - keys)
            · The diagonal is moved the wrong way: by keys − queries, so that the last query sees all keys.
            .tril(keys - queries) → · Everything may be seen: hide the keys after each query's own place.
            torch.ones → torch.eye ; .tril(keys - queries) →
            · Only the diagonal is open: a query also sees all keys before its own place.
            (queries, keys, → (queries, queries, ; (keys - queries) → ()
            · The mask has a column for each key: (queries, keys), not (queries, queries).
            (queries, keys, → (keys, keys, ; (keys - queries) → ()
            · The mask has a row for each query: (queries, keys), not (keys, keys).
            """,
        ),
    )
    .extended(_is_boolean, after="signature")
    .extended(device_check(2, 3)),
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
        raise Wrong(
            "With causal=True the first tokens move when the last one changes: the future leaks. "
            "Does the mask hide what comes after (True is what may be seen)?"
        )
    if moved[False][:-1].max() < 1e-6:
        raise Wrong("With causal=False every token must see every token: then there is no mask.")


def _open_by_default(answer: type[nn.Module]) -> None:
    module = answer(4, 3)
    x, other = _random(8, (5, 4), (5, 4))
    if torch.allclose(module(x)[0], module(torch.cat([x[:-1], other[-1:]]))[0], atol=1e-6):
        raise Wrong("`causal` is False unless it is given: then the first token sees the last.")


HEAD = "attention(self.Q(x), self.K(x), self.V(x), mask)"
TURNED_ROUND = "The mask is turned round: with causal=True each token sees only the tokens AFTER it. True is open."
head = Exercise(
    id="3.3",
    title="one head as a module",
    reference=SelfAttention,
    checks=ModuleLadder(
        SelfAttention,
        HEADS,
        returns=["output"],
        properties=[_open_and_hidden],
        slips=edits(
            SelfAttention,
            f"""
            self.Q(x) → self.Q(x) * self.Q.out_features**0.5 · The scores are not scaled: divide by √d_head.
            self.Q(x) → self.Q(x) * (self.Q.out_features / self.Q.in_features) ** 0.5
            · The scores are divided by √d, with d the width of x; queries and keys have the length d_head.
            {HEAD} → (masked_softmax(self.K(x) @ self.Q(x).mT / self.Q.out_features**0.5,
                None if mask is None else mask.T).mT @ self.V(x), None)
            · The softmax runs over queries; take it over keys, the last dimension.
            self.Q(x), self.K(x) → self.K(x), self.Q(x)
            · Queries and keys have changed places: rows of the scores are queries.
            self.V(x) → self.K(x) · The keys stand where the values belong: the output is a mean of values.
            self.K(x) → self.Q(x) · Queries are compared with queries; compare them with the keys.
            self.Q(x) → self.K(x) · Keys are compared with keys; compare the queries with them.
            self.V(x) → self.Q(x) · The queries stand where the values belong: the output is a mean of values.
            self.K(x), self.V(x) → self.V(x), self.K(x) · Keys and values have changed places.
            x.device) → x.device).T · With causal=True each token sees the tokens AFTER it: use the lower triangle.
            causal_mask( → ~causal_mask( · {TURNED_ROUND}
            {HEAD} → ((self.Q(x) @ self.K(x).mT / self.Q.out_features**0.5).masked_fill(
                torch.tensor(False) if mask is None else mask, -math.inf).softmax(dim=-1) @ self.V(x), None)
            · {TURNED_ROUND}
            self.V(x), mask → self.V(x) · `causal` is not used: with causal=True a mask hides what is ahead.
            if self.causal else None → · The mask is used always; it is meant for causal=True only.
            if self.causal → if not self.causal
            · The mask is used when causal is False, and left out when it is True.
            causal_mask(length, length, x.device) → torch.eye(length, dtype=torch.bool)
            · With causal=True each token sees itself only; it may see all tokens before it too.
            output, _ = → _, output =
            · These are the weights; the output is weights times values (`attention` returns output, weights).
            """,
        ),
    ).extended(_open_by_default),
    crashes=[
        (
            "(4x5 and 3x5)",  # of the first case: 4 tokens, d = 5, d_head = 3
            "`nn.Linear(d, d_head)` takes vectors of length d and makes some of length d_head: call it, `self.Q(x)`.",
        ),
        ("(4x3 and 4x3)", "Queries are rows and keys are rows: transpose the keys, `k.transpose(-2, -1)`."),
        (
            "invalid combination of arguments",
            "A mask is a tensor of True and False, not `causal` itself: `causal_mask(length, length)` makes it.",
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


def _on_ones(answer: type[nn.Module], batch: int, length: int) -> Tensor:
    """What the module makes in training of values that are all 1: for each token the sum of its weights."""
    module = answer(3).train()
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.fill_(1.0 if name == "V.bias" else 0.0)
        return module(torch.ones(batch, length, 3))


def _drops_nothing_in_evaluation(answer: type[nn.Module]) -> None:
    module, (x,) = answer(3).eval(), _random(3, (200, 3))
    if not torch.equal(module(x), module(x)):
        raise Wrong("In evaluation two calls give different results: dropout is for training only.")


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


SCALE = "/ math.sqrt(q.shape[-1])"
TEXTS_COMPETE = (
    "The softmax of a batch runs over dimension 0, as it does if no `dim` is given: texts compete with each other, "
    "where the keys of a query should."
)
WHICH_STAY = "One text went well, a batch does not: which dimensions of k have to change places, and which must stay?"
slide = Exercise(
    id="3.4",
    title="debug the slide",
    reference=SlideAttention,
    checks=ModuleLadder(
        SlideAttention,
        [((5,), _random(0, (4, 5))), ((4,), _random(1, (2, 3, 4))), ((3,), _random(2, (4, 4, 3)))],
        returns=["output"],
        slips=edits(
            SlideAttention,
            f"""
            {SCALE} →
            · It runs, and one thing is missing still. Beside its code the slide prints (kᵗq)σ: where is σ in the code?
            math.sqrt(q.shape[-1]) → q.shape[-1] · The scores are divided by h_dim; take the root, √h_dim.
            / math.sqrt → * math.sqrt · The scores are multiplied by √h_dim; divide them by it.
            q.shape[-1] → q.shape[-2] · The scores are divided by the root of the length; the scale is 1 / √h_dim.
            {SCALE}, dim=-1) → , dim=-1) {SCALE}
            · The weights are scaled, after the softmax; σ belongs to the scores, before it.
            {SCALE}, dim=-1 → , dim=1 if q.dim() == 2 else 0 · {TEXTS_COMPETE}
            dim=-1 → dim=1 if q.dim() == 2 else 0 · {TEXTS_COMPETE}
            q @ k.transpose → k @ q.transpose · Queries and keys have changed places: rows of the scores are queries.
            self.dropout(weights) @ v → v · The weights are not used: the output is weights times values.
            """
            + "".join(
                f"{scale}dim=-1 → {', ' if scale else ''}dim={dim}\n"
                f"· The softmax runs over dimension {dim}; take the last, the keys: `dim=-1`.\n"
                for scale in ("", f"{SCALE}, ")
                for dim in (0, 1, -2)
            ),
        ),
    )
    .extended(_drops_nothing_in_evaluation, before="repeatable")
    .extended(_drops_weights),
    crashes=[
        ("before Module.__init__() call", "A module has to set itself up before it can keep layers: what is missing?"),
        ("has no attribute 'dropout'", "A layer is a class: how does PyTorch write the names of classes?"),
        (
            "No module named 'nn'",
            "`nn` is a name of this notebook, not a module that Python can find: whose part is it?",
        ),
        ("has no attribute 'Softmax'", "There are functions here, not layers: how are their names written?"),
        (
            "not Softmax",
            "`nn.Softmax(…)` makes a layer, to be called on the scores: is the layer meant, or the function?",
        ),
        ("name 'self' is not defined", "A method finds its object under the name of its first argument: `self`."),
        ("Expected size for first two dimensions of batch2", WHICH_STAY),
        ("at non-singleton dimension 0", WHICH_STAY),
        ("Dimension out of range", "x may be a single text, without a batch: count dimensions from the end."),
        (
            "shapes cannot be multiplied",
            "Queries and keys are rows, both: what has to be turned for their dot products?",
        ),
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


flops = Exercise(
    id="3.5",
    title="FLOP count",
    reference=attention_flops,
    checks=Ladder(
        attention_flops,
        SIZES,
        returns=["projections", "pairs"],
        slips=edits(
            attention_flops,
            """
            3 * 2 → 3 ; 2 * 2 → 2 · Only multiplications are counted: each comes with an addition.
            return projections, pairs → return pairs, projections
            · The two are in the wrong order: projections first, then pairs.
            3 * 2 → 2 · One projection is counted; there are three: queries, keys and values.
            3 * 2 → 2 * 2 · Two projections are counted; there are three: queries, keys and values.
            2 * 2 → 2 · The pairs need two products: queries with keys, and weights with values.
            length**2 * d_head → length**2 * d
            · Queries, keys and values have the length d_head, not d: that is what the pairs cost.
            d * d_head → d * d ; length**2 * d_head → length**2 * d
            · d_head is not used: each projection makes vectors of length d_head from vectors of length d.
            d * d_head → d * d · A projection makes vectors of length d_head, not d: its matrix is (d × d_head).
            length * d * → d * · This is one token's projections: there are length tokens.
            length**2 → length · Every query meets every key: the pairs grow with the square of the length.
            length**2 * d_head → length**2 · Each pair costs d_head multiplications and additions, not one.
            length * d * → length**2 * d * · The projections are done once for each token, not for each pair.
            3 * 2 → 3 · In the projections only multiplications are counted: each comes with an addition.
            2 * 2 * → · The pairs need two products, and each multiplication comes with an addition.
            return projections, pairs → return projections, projections + pairs
            · The second number is the whole; the pairs alone are asked for.
            3 * 2 * length * d → 3 * length * (2 * d - 1) ;
                2 * 2 * length**2 * d_head → length**2 * (2 * d_head - 1) + length * d_head * (2 * length - 1)
            · These are exact: a sum of b products needs b − 1 additions. As everyone counts, it is b of them: 2 · b.
            """,
        ),
    ),
    nudge="An (a × b) matrix times a (b × c) matrix: a·c numbers, each a sum of b products. Which of them are there?",
    sketch="""
        (a × b) times (b × c) takes 2 · a · b · c
        projections: three times (length × d) times (d × d_head)
        pairs:       (length × d_head) times (d_head × length), and (length × length) times (length × d_head)
        """,
)

EXERCISES = [attend, mask, head, slide, flops]
