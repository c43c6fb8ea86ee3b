"""Exercises of lesson 03: attention, weights set by hand, its gradient, masks, a slide to debug."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_lib.lab.grading import Exercise, Wrong
from course_lib.lab.ladder import Ladder, ModuleLadder, device_check, edits, signature_check
from course_lib.lessons.self_attention import SlideAttention, attention_gradients, partner_weights, reach
from course_lib.models.attention import attention, causal_mask


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


OVERFLOW = (
    "With scores of about ±200 there is NaN: e²⁰⁰ is too large for float32. Take `softmax`, or subtract the row's "
    "largest score before the exponential."
)


AFTER_THE_SOFTMAX = (
    "With scores of about ±200, where hidden keys had nearly all the weight, {found}. The mask acts after the softmax: "
    "hide the scores, before it."
)


def _large_scores(answer: Callable) -> None:
    """Scores of about ±200: an exponential overflows, and a hidden score of −100 is larger than many that are seen.

    Who masks after the softmax has nothing left where hidden keys had all the weight: 0 / 0, or a row of zeros.
    """
    q, k, v = _random(0, (4, 16), (5, 16), (5, 3))
    q, mask = 60 * q, causal_mask(4, 5)
    for visible in (None, mask):
        output, weights = answer(q.clone(), k.clone(), v.clone(), visible)
        wanted, all_seen = attention(q, k, v, visible)[1], attention(q, k, v)[1]
        nothing_left = (all_seen * mask).sum(dim=-1) == 0  # the rows where hidden keys have all the weight
        missing = weights.isnan().any(dim=-1)
        if visible is not None and nothing_left.any() and torch.equal(missing, nothing_left):
            raise Wrong(AFTER_THE_SOFTMAX.format(found="0 / 0 is left, NaN"))
        if output.isnan().any() or missing.any():
            raise Wrong(OVERFLOW)
        if visible is not None and (weights.masked_fill(mask, 0) != 0).any():
            raise Wrong(
                "Where the scores that are seen are far below 0, a hidden key has a weight: its score must be lower "
                "than any other, −∞."
            )
        short = weights.sum(dim=-1) < 0.99
        if visible is not None and short.any() and torch.allclose(weights[~short], wanted[~short], atol=1e-2):
            raise Wrong(AFTER_THE_SOFTMAX.format(found="the weights that are left do not sum to 1"), wanted, weights)
        if not torch.allclose(weights, wanted, atol=1e-2):
            raise Wrong("With scores of about ±200 the weights are others than the softmax's.", wanted, weights)


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
    ).extended(_large_scores),
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
            "The shape of the mask",
            "One mask (queries, keys) may serve a whole batch: `masked_fill` and `torch.where` repeat it for each "
            "text; square brackets do not.",
        ),
        (
            "Dimension out of range",
            "There may be one text, a batch, or heads: count dimensions from the end, `dim=-1`, `transpose(-2, -1)`.",
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

SHOES = [(3, 4.0), (2, 9.0), (5, 6.0), (4, 1.0), (3, 1e4), (4, 0.1)]  # colours, margin; no constant serves 1e4


def _pairs(colours: int) -> Tensor:
    """A left and a right shoe of each colour: (2 · colours, colours + 2); the partner of shoe i is i ± colours."""
    colour, side = torch.eye(colours), torch.eye(2)
    return torch.stack([torch.cat([colour[i % colours], side[i // colours]]) for i in range(2 * colours)])


def _scores(answer: Callable, colours: int, margin: float) -> Tensor:
    """Each shoe's scaled score for each shoe of the row, (2 · colours, 2 · colours)."""
    W_Q, W_K = answer(colours, margin)
    x = _pairs(colours)
    return (x @ W_Q.T) @ (x @ W_K.T).T / math.sqrt(W_Q.shape[0])


def _two_matrices(answer: Callable) -> None:
    for colours, margin in SHOES:
        got, d = answer(colours, margin), colours + 2
        if isinstance(got, tuple | list) and any(type(W).__module__ == "numpy" for W in got):
            raise Wrong("These are NumPy arrays; W_Q and W_K are tensors: `torch.zeros`, `torch.eye`, `torch.tensor`.")
        if not isinstance(got, tuple | list) or len(got) != 2 or not all(isinstance(W, Tensor) for W in got):
            raise Wrong("Expected two tensors to be returned, W_Q and W_K.")
        for name, W in zip(("W_Q", "W_K"), got, strict=True):
            if W.shape != (d, d):
                raise Wrong(
                    f"With {colours} colours a shoe has {d} numbers: expected {name} of shape ({d}, {d}); "
                    f"got {tuple(W.shape)}."
                )
            if W.dtype != torch.float32:
                raise Wrong(f"Shoes are torch.float32, and {name} is {W.dtype}: a product needs one type, `.float()`.")


def _finds_the_partner(answer: Callable) -> None:
    for colours, margin in SHOES:
        scores, n = _scores(answer, colours, margin), 2 * colours
        partner = (torch.arange(n) + colours) % n
        best = scores.argmax(dim=-1)
        if (best == partner).all():
            continue
        wanted = torch.eye(n)[partner]
        if torch.equal(best, torch.arange(n)):
            raise Wrong("Each shoe looks at itself: it must ask for something that it is not.", wanted, scores)
        if ((best - partner) % colours == 0).all():
            raise Wrong("Each looks at its own colour, but not always at the other side.", wanted, scores)
        ties = (scores >= scores.amax(dim=-1, keepdim=True) - 1e-4).sum(dim=-1)
        if (ties > 1).any():
            raise Wrong("Some shoes score equally high for a query: colour and side must both count.", wanted, scores)
        swapped = torch.arange(n)
        swapped[[0, 1, colours, colours + 1]] = torch.tensor([1, 0, colours + 1, colours])
        if (best == swapped).all():
            raise Wrong(
                "The first two colours have changed places: the sides are the last two numbers of a shoe.",
                wanted,
                scores,
            )
        raise Wrong("Some shoes look at one of another pair: the colour must count as well.", wanted, scores)


def _lead(answer: Callable, colours: int, margin: float) -> float:
    """How far the partner's score lies above the next, for the shoe where it is least."""
    scores, n = _scores(answer, colours, margin), 2 * colours
    wanted = torch.eye(n, dtype=torch.bool)[(torch.arange(n) + colours) % n]
    return (scores[wanted] - scores.masked_fill(wanted, -math.inf).amax(dim=-1)).min().item()


def _by_the_margin(answer: Callable) -> None:
    for colours, margin in SHOES:
        lead = _lead(answer, colours, margin)
        if lead < margin * (1 - 1e-4):
            squared = math.isclose(_lead(answer, colours, 2 * margin), 4 * lead, rel_tol=1e-3)
            twice = " The margin in both matrices is multiplied with itself." if squared else ""
            raise Wrong(
                f"The right shoe wins, but by {lead:.3g} only; with {colours} colours and margin {margin:g} its score "
                f"must lie {margin:g} above the next, after the division by √{colours + 2}.{twice}"
            )


shoes = Exercise(
    id="3.2",
    title="a pair of shoes",
    reference=partner_weights,
    checks=[signature_check(partner_weights), _two_matrices, _finds_the_partner, _by_the_margin],
    crashes=[
        ("unsupported operand", "The two results are tensors; what is multiplied here is not."),
    ],
    nudge="Let W_K hand the shoe on as it is. Then W_Q x is the shoe that x would like to meet, times a number.",
    sketch="""
        d = colours + 2
        W_K = the unit matrix: a key says what the shoe is
        W_Q = the unit matrix for the colours; for the two sides, the rows changed round
        so the partner's product is 2; that of every other shoe is 1 at most
        times margin · √d, for the scores are divided by √d
        """,
)

# --- 3.3 ---


def _gradient_cases() -> list[tuple]:
    cases = []
    for seed, (before, queries, keys, d, d_v) in enumerate(
        [((), 3, 4, 5, 2), ((2,), 5, 3, 4, 6), ((2, 3), 4, 5, 6, 3)]
    ):
        shapes = (*before, queries, d), (*before, keys, d), (*before, keys, d_v), (*before, queries, d_v)
        cases.append(_random(seed, *shapes))
    return cases


def _in_order(answer: Callable) -> None:
    """All sizes of the first case differ, so that the shapes alone tell the gradients apart."""
    q, k, v, grad = _gradient_cases()[0]
    got = answer(q, k, v, grad)
    if not isinstance(got, tuple | list) or len(got) != 3 or not all(isinstance(x, Tensor) for x in got):
        return
    shapes, wanted = [tuple(x.shape) for x in got], [tuple(x.shape) for x in (q, k, v)]
    if shapes[2] != wanted[2] and sorted(shapes) == sorted(wanted):
        raise Wrong("The three gradients come in another order; return those on q, k and v, in this order.")


def _by_hand(answer: Callable) -> None:
    """In inference mode nothing is recorded, so that autograd has nothing to go back through."""
    with torch.inference_mode():
        try:
            answer(*(x.clone() for x in _gradient_cases()[0]))
        except RuntimeError as error:
            if "grad" in str(error) or "nference" in str(error):
                raise Wrong("This asks autograd. Write the products yourself: that is the exercise.") from None
            raise


def _large_scores_back(answer: Callable) -> None:
    q, k, v, grad = _random(0, (4, 16), (5, 16), (5, 3), (4, 3))
    if any(x.isnan().any() for x in answer(60 * q, k, v, grad)):
        raise Wrong(OVERFLOW)


GRAD_S = "p * (grad_p - mean) / scale"
gradients = Exercise(
    id="3.3",
    title="the gradient by hand",
    reference=attention_gradients,
    checks=Ladder(
        attention_gradients,
        _gradient_cases(),
        returns=["grad_q", "grad_k", "grad_v"],
        differentiable=False,
        slips=edits(
            attention_gradients,
            f"""
            {GRAD_S} → p * (grad_p - mean)
            · The scale is missing on the way back: scores are q · k / √d, so their gradient on q and k is divided, too.
            {GRAD_S} → p * (grad_p - mean) ; (q @ k.mT / scale) → (q @ k.mT)
            · The scale is missing twice, forward and on the way back: scores are q · k / √d.
            {GRAD_S} → p * (grad_p - mean) ; grad_s @ k, → grad_s @ k / scale,
            · On the way to k the scale is missing: a score is q · k / √d, so the gradient on k is divided, too.
            {GRAD_S} → p * (grad_p - mean) ; grad_s.mT @ q, → grad_s.mT @ q / scale,
            · On the way to q the scale is missing: a score is q · k / √d, so the gradient on q is divided, too.
            {GRAD_S} → p * (grad_p - mean) / scale**2 · The gradient is divided by √d twice.
            math.sqrt(q.shape[-1]) → math.sqrt(v.shape[-1])
            · The scale is the root of the values' length; d is that of queries and keys, `q.shape[-1]`.
            (q @ k.mT / scale) → (q @ k.mT)
            · Forward the scores are divided by √d, too: the weights are those of `attention`.
            {GRAD_S} → p * grad_p / scale
            · Of the softmax's derivative p_i (δ_ij − p_j) only the part with i = j is used: raising one score also
            · lowers all other weights.
            {GRAD_S} → p * (1 - p) * grad_p / scale
            · p (1 − p) is how a weight moves with its own score; the other scores of the row move it, too.
            {GRAD_S} → grad_p / scale
            · The gradient on the weights is taken as that on the scores: the softmax stands between them.
            {GRAD_S} → (grad_p - mean) / scale · A factor p is missing: ∂p_i / ∂s_j = p_i (δ_ij − p_j).
            {GRAD_S} → p * (mean - grad_p) / scale · The sign is turned round: ∂p_i / ∂s_i is positive.
            sum(dim=-1 → mean(dim=-1
            · The sum over the keys has become a mean: Σ_i p_i grad_i is a mean already, with weights p.
            (p * grad_p).sum(dim=-1 → grad_p.mean(dim=-1
            · What is taken off is the mean of the gradient on the weights, weighted with p: Σ_i p_i grad_i.
            (p * grad_p).sum(dim=-1 → (p * grad_p).sum(dim=-2
            · The sum runs over queries; a softmax is taken in each row, over keys, `dim=-1`.
            (p * grad_p).sum(dim=-1, keepdim=True) → (p * grad_p).sum()
            · The sum runs over everything; each row has its own softmax: `sum(dim=-1, keepdim=True)`.
            (p * grad_p).sum(dim=-1 → grad_p.sum(dim=-1
            · What is taken off is Σ_i p_i grad_i: the sum is weighted with p.
            .softmax(dim=-1) → .softmax(dim=-2) · The softmax runs over queries; take it over keys, the last dimension.
            grad_s @ k, grad_s.mT @ q, p.mT → grad_s.mT @ q, grad_s @ k, p.mT
            · The gradients on q and k have changed places: that on q is a sum of keys.
            p.mT @ grad → p.softmax(dim=-1).mT @ grad
            · The softmax is taken twice for the gradient on v: p is weights already.
            """,
        ),
    )
    .extended(_in_order, after="signature")
    .extended(_by_hand, after="signature")
    .extended(_large_scores_back),
    crashes=[
        (
            "shapes cannot be multiplied",
            "Write the shape of each tensor beside it: which product of two of them has the shape that you need?",
        ),
        (
            "Expected size for first two dimensions of batch2",
            "Write the shape of each tensor beside it: entry by entry, both sides need the same. A sum over the keys "
            "stays beside its row with `keepdim=True`; `.mT` turns the last two dimensions and leaves the batch alone.",
        ),
        (
            "at non-singleton dimension",
            "Write the shape of each tensor beside it: entry by entry, both sides need the same. A sum over the keys "
            "stays beside its row with `keepdim=True`; `.mT` turns the last two dimensions and leaves the batch alone.",
        ),
    ],
    nudge="Go back through the three lines of `attention`: from the output to p and v, from p to s, from s to q and k.",
    sketch="""
        p      = the weights, as in `attention`
        grad_v: output = p v, so it is p transposed times grad
        grad_p: grad times v transposed
        grad_s: in each row, p_j (grad_p_j − Σ_i p_i grad_p_i)
        scores are q kᵀ / √d: grad_q is grad_s times k, grad_k is grad_s transposed times q, both divided by √d
        """,
)

# --- 3.4 ---

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
    id="3.4",
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

# --- 3.5 ---


def _mask_cases() -> list[tuple]:
    """Two layers, one and four; random masks, of other sizes, that are not symmetric, so that an order shows.

    Every word sees itself. Two layers come first: whoever changes a mask does so from the second on.
    """
    cases = []
    for seed, (length, layers) in enumerate([(5, 2), (4, 1), (6, 2), (7, 4)]):
        itself = torch.eye(length, dtype=torch.bool)
        cases.append((list((torch.stack(_random(seed, *[(length, length)] * layers)) > 1.0) | itself),))
    return cases


def _is_true_or_false(answer: Callable) -> None:
    got = answer(*_mask_cases()[0])
    if isinstance(got, Tensor) and got.dtype != torch.bool:
        raise Wrong(f"The result must hold True and False (torch.bool); got {got.dtype}: compare with 0.")


def _many_layers(answer: Callable) -> None:
    """Seventeen open layers of sixteen words: 16¹⁶ ways from each word to each, and still it is True."""
    if not answer([torch.ones(16, 16, dtype=torch.bool)] * 17).all():
        raise Wrong(
            "Through 17 open layers of 16 words everything reaches everything; here something is False: there are so "
            "many ways that a count of them overflows. After each layer keep only whether it is more than 0."
        )


through = Exercise(
    id="3.5",
    title="what reaches what",
    reference=reach,
    checks=Ladder(
        reach,
        _mask_cases(),
        returns=["reached"],
        differentiable=False,
        told=lambda masks: f"Through {len(masks)} layers of {len(masks[0])} words",
        slips=edits(
            reach,
            """
            mask.float() @ seen.float() → seen.float() @ mask.float()
            · The layers come in the wrong order: the new layer's queries see what the layers below have gathered.
            mask.float() @ seen.float() → mask.float().T @ seen.float()
            · A mask is turned round: its rows are queries, which see keys.
            return seen → return seen.T · Rows and columns are swapped: rows are outputs, columns are inputs.
            (mask.float() @ seen.float()) > 0 → mask & seen
            · `&` asks that each layer has the link itself; a way may lead over another word.
            (mask.float() @ seen.float()) > 0 → mask | seen
            · The masks are joined with *or*; a way takes one link of each layer, one after the other.
            return seen → return torch.stack(list(masks)).all(dim=0)
            · The masks are joined with *and*; a way may lead over another word, by other links in each layer.
            return seen → return masks[-1]
            · This is the last mask alone: what its keys hold was gathered by the layers below.
            return seen → return masks[0]
            · This is the first mask alone: the layers above carry what it has gathered further.
            > 0 → > 1
            · Nothing reaches anything here: start with each word reaching itself, and let one way be enough, more
            · than 0.
            > 0 → == 1 · There may be several ways, not one exactly: more than 0.
            (mask.float() @ seen.float()) > 0 → mask.float() @ seen.float() ; return seen → return seen > 1
            · One way is enough: more than 0.
            (mask.float() @ seen.float()) > 0 → mask.float() @ seen.float() ; return seen → return seen == 1
            · There may be several ways, not one exactly: more than 0.
            torch.eye(length, dtype=torch.bool) → torch.zeros(length, length, dtype=torch.bool)
            · Nothing reaches anything here: start with each word reaching itself, and let one way be enough, more
            · than 0.
            in masks: → in masks[:-1]: · The last layer is left out.
            in masks: → in list(masks) * 8:
            · It goes on after the last layer: each mask is one layer, and is used once.
            in masks: → in masks[1:]: · The first layer is left out.
            in masks: → in [masks[0]] * len(masks):
            · The first mask is used for every layer; each layer has its own.
            in masks: → in [masks[0], *masks[1:][-1:]]:
            · Only the first and the last mask are used; the layers between have masks of their own.
            in masks: → in [torch.stack(list(masks)).any(dim=0)] * len(masks):
            · All masks are joined with *or* into one for every layer; each layer has its own.
            """,
        ),
    )
    .extended(_is_true_or_false, after="signature")
    .extended(_many_layers),
    crashes=[
        ("addmm_impl_cpu", "Products of True and False are not defined: make numbers of them first, `.float()`."),
        ("no attribute 'float'", "`masks` is a list of tensors, one for each layer."),
        ("same dtype", "Both sides of a product must be numbers of one type: `.float()`."),
        ("cannot be multiplied", "Each mask is (length, length): which product has that shape again?"),
    ],
    nudge="With one layer the answer is its mask. With two: output t sees place u above, and u has seen input s below.",
    sketch="""
        seen = what reaches what before any layer: each word itself
        for each mask, the first layer first:
            output t is reached by s if there is a u with mask[t, u] and seen[u, s]
            (a matrix product counts such u: more than 0 is enough)
        return seen
        """,
)

# --- 3.6 ---


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
    id="3.6",
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
        (
            "before Module.__init__() call",
            (
                "A module has to set itself up before it can keep layers: is that call there, before all else, and "
                "with its brackets?"
            ),
        ),
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
        (
            "name 'h_dim' is not defined",
            "`h_dim` is known in `__init__` only: keep it there as `self.h_dim`, or ask `x.shape[-1]`.",
        ),
        ("Expected size for first two dimensions of batch2", WHICH_STAY),
        ("at non-singleton dimension 0", WHICH_STAY),
        ("t() expects a tensor with <= 2 dimensions", WHICH_STAY),
        ("transpose() missing", "`transpose` has to be told which two dimensions change places."),
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

EXERCISES = [attend, shoes, gradients, mask, through, slide]
