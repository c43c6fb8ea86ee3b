"""Exercises of lesson 02: a score, a softmax that hides, a context vector, alignment error, one look into a memory."""

import math
from collections.abc import Callable
from numbers import Real

import torch
from torch import Tensor

from course_lib.attention import additive_score, context_vector, masked_softmax
from course_lib.checks import Exercise, Wrong, describe, function_checks, signature_check
from course_lib.memory import hop
from course_lib.metrics import alignment_error_rate

MASK_MAY_BE_NONE = ("NoneType", "`mask` may be `None`: then nothing is hidden.")
BATCHED = (
    "Expected size for first two dimensions",
    "The keys of a sentence are (keys, d): to multiply by them, turn their last two dimensions, `transpose(1, 2)`.",
)
NOT_A_NUMBER = (
    "Where everything in a row is hidden there is NaN: a softmax over −∞ alone is 0 / 0. Hide with a very low finite "
    "number, `torch.finfo(scores.dtype).min`, and set what is hidden to 0 afterwards."
)


def _random(seed: int, *shapes: tuple[int, ...]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in shapes]


# --- 2.1 ---

SIZES = ((2, 3, 4, 5, 6), (1, 2, 5, 3, 4), (3, 1, 2, 4, 7))  # batch, queries, keys, d, a: a wrong axis shows


def _score_cases() -> list[tuple]:
    return [tuple(_random(n, (b, m, d), (b, k, d), (a, 2 * d), (a,))) for n, (b, m, k, d, a) in enumerate(SIZES)]


def _score_variant(
    squash: Callable = torch.tanh, end: Callable = lambda total, v: total @ v, swap: bool = False, only: str = "qk"
) -> Callable:
    """`additive_score` with one thing changed; for slips."""

    def score(q, keys, W, v):
        W_q, W_k = W.chunk(2, dim=1)[:: -1 if swap else 1]
        from_q, from_k = (q @ W_q.T)[:, :, None], (keys @ W_k.T)[:, None]
        return end(squash(from_q * ("q" in only) + from_k * ("k" in only)), v)

    return score


def _score_crossed(q, keys, W, v):
    """`repeat` and `repeat_interleave` in each other's place."""
    batch, queries, n = len(q), q.shape[1], keys.shape[1]
    pairs = torch.cat([q.repeat(1, n, 1), keys.repeat_interleave(queries, dim=1)], dim=-1)
    return (torch.tanh(pairs @ W.T) @ v).view(batch, queries, n)


def _score_apart(q, keys, W, v):
    W_q, W_k = W.chunk(2, dim=1)
    return (torch.tanh(q @ W_q.T)[:, :, None] + torch.tanh(keys @ W_k.T)[:, None]) @ v


score = Exercise(
    id="2.1",
    title="additive score",
    reference=additive_score,
    checks=function_checks(
        additive_score,
        _score_cases(),
        returns=["scores"],
        slips=[
            (_score_variant(squash=lambda t: t), "The tanh is missing: it stands between W and v."),
            (_score_variant(squash=torch.sigmoid), "This is a sigmoid; the score uses tanh."),
            (_score_variant(squash=torch.relu), "This is a ReLU; the score uses tanh."),
            (_score_variant(swap=True), "Query and key are joined in the order [k; q]; the formula says [q; k]."),
            (_score_apart, "The tanh is taken of each part; take it once, of the whole sum W [q; k]."),
            (
                _score_variant(end=lambda t, v: t.sum(dim=-1)),
                "The vector v is not used: it weighs the entries before they are summed.",
            ),
            (
                _score_variant(end=lambda t, v: t.mean(dim=-1)),
                "The vector v is not used: it weighs the entries before they are summed.",
            ),
            (
                _score_variant(end=lambda t, v: t * v),
                "The entries are weighed by v but not summed up: one number is left for each query and key.",
            ),
            (
                _score_variant(squash=lambda t: t, end=lambda t, v: torch.tanh(t @ v)),
                "The tanh stands outside: first tanh, then the product with v.",
            ),
            (
                _score_variant(end=lambda t, v: (t @ v).softmax(dim=-1)),
                "These are weights already: leave the softmax for later and return the scores.",
            ),
            (
                _score_variant(end=lambda t, v: (t @ v).transpose(1, 2)),
                "Queries and keys are swapped: each row belongs to a query, each column to a key.",
            ),
            (_score_variant(end=lambda t, v: (t @ v) / math.sqrt(len(v))), "Nothing is divided by a root here."),
            (_score_variant(only="k"), "The query does not enter: join it with each key."),
            (
                _score_crossed,
                "The pairs come in the wrong order for `view`: all keys of the first query first. So each query is "
                "repeated in place (`repeat_interleave`), and the keys as a whole (`repeat`).",
            ),
            (
                _score_variant(end=lambda t, v: (t @ v)[..., None]),
                "There is a dimension too many at the end: one number for each query and key.",
            ),
            (_score_variant(only="q"), "The keys do not enter: join the query with each of them."),
        ],
    ),
    crashes=[
        (
            "(6x5 and 6x6)",  # of the first case: d = 5, a = 6
            "The left half of W has as many columns as a query has entries, d; a, the number of its rows, is another.",
        ),
        (
            "shapes cannot be multiplied",
            "The vectors lie along the last dimension: multiply from the right by the transpose, `… @ W.T`.",
        ),
        ("Sizes of tensors must match", "To join each query with each key, bring both to (batch, queries, keys, d)."),
    ],
    nudge="W [q; k] is W_q q + W_k k with the left and the right half of W. Broadcasting then adds each to each.",
    sketch="""
        cut W into its left half W_q and its right half W_k, each (a, d)
        from the queries: q times W_q transposed      (batch, queries, a) → (batch, queries, 1, a)
        from the keys: keys times W_k transposed      (batch, keys, a) → (batch, 1, keys, a)
        add them (broadcasting makes all pairs), take tanh, multiply by v
        """,
)

# --- 2.2 ---


def _softmax_cases() -> list[tuple]:
    first, second, third, fourth = _random(0, (2, 3, 5), (4, 6), (1, 2, 3), (2, 3, 4))
    mask = torch.rand(2, 3, 5, generator=torch.Generator().manual_seed(1)) < 0.6
    mask[0, 1], mask[1, 2, 3] = False, False  # a row that is hidden altogether
    first[1, 2, 3] = 1000.0  # large, but hidden
    some = torch.tensor([[True, True, False, True, False, True]]).expand(4, 6).clone()
    low = torch.tensor([[[True, False, True], [False, True, True]]])
    return [(first, mask), (second, some), (third - 5000, low), (fourth, None)]


def _masked(function: Callable) -> Callable:
    return lambda scores, mask: scores.softmax(dim=-1) if mask is None else function(scores, mask)


def _filled(value: float, dim: int = -1, zero: bool = True) -> Callable:
    return _masked(lambda s, m: s.masked_fill(~m, value).softmax(dim=dim) * (m if zero else 1))


def _no_nan(cases: Callable[[], list[tuple]], sentence: str = NOT_A_NUMBER) -> Callable:
    """A check that comes before all others which look at numbers: NaN, and why."""

    def never_nan(answer: Callable) -> None:
        for inputs in cases():
            result = answer(*inputs)
            for value in result if isinstance(result, tuple) else (result,):
                if isinstance(value, Tensor) and value.isnan().any():
                    raise Wrong(sentence)

    return never_nan


OVERFLOW = "Scores of 1000 give NaN: exp overflows. Use torch's softmax, or subtract the largest score first."


def _large_scores(answer: Callable) -> None:
    scores = torch.tensor([[1000.0, 999.0, 0.0]])
    if not answer(scores, torch.tensor([[True, True, False]])).isfinite().all():
        raise Wrong(OVERFLOW)


def _large_hidden_score(answer: Callable) -> None:
    """NaN in a row that is not hidden altogether is no 0 / 0: a large score, hidden here, has overflowed."""
    scores, mask = _softmax_cases()[0]
    spoilt = answer(scores.clone(), mask).isnan().any(dim=-1)
    if spoilt.any() and mask.any(dim=-1)[spoilt].all():
        raise Wrong(OVERFLOW)


def _gradient_is_finite(answer: Callable) -> None:
    for scores, mask in _softmax_cases():
        given = scores.clone().requires_grad_()
        result = answer(given, mask)
        if result.requires_grad:
            [gradient] = torch.autograd.grad((result * torch.arange(result.shape[-1])).sum(), given)
            if not gradient.isfinite().all():
                raise Wrong(
                    "The weights are right, but their gradient is NaN, and one such row spoils a whole training: "
                    "`nan_to_num` and `where` mend numbers, not gradients. Let no NaN arise: hide with a finite number."
                )


def _with_nan_check(checks: list, cases: Callable[[], list[tuple]], *more: Callable, before: tuple = ()) -> list:
    return [*checks[:5], *before, _no_nan(cases), *checks[5:8], *more, *checks[8:]]


def _along(dim: int) -> Callable:
    """The masked softmax over another dimension."""

    def function(scores, mask):
        if mask is None:
            return scores.softmax(dim=dim)
        return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=dim) * mask

    return function


softmax = Exercise(
    id="2.2",
    title="masked softmax",
    reference=masked_softmax,
    checks=_with_nan_check(
        function_checks(
            masked_softmax,
            _softmax_cases(),
            returns=["weights"],
            slips=[
                (
                    _filled(-1e30, zero=False),
                    "A row that is hidden altogether must become 0; yours is spread evenly. Multiply by the mask.",
                ),
                (
                    _masked(lambda s, m: s.masked_fill(m, torch.finfo(s.dtype).min).softmax(dim=-1) * ~m),
                    "The mask is turned round: True is what may be seen. Hide where it is False, `~mask`.",
                ),
                (
                    _masked(lambda s, m: s.masked_fill(m, torch.finfo(s.dtype).min).softmax(dim=-1)),
                    "The mask is turned round: True is what may be seen. Hide where it is False, `~mask`.",
                ),
                (
                    _masked(lambda s, m: (s * m).softmax(dim=-1)),
                    "The scores are multiplied by the mask: a hidden one becomes 0, and e⁰ = 1 is a weight too.",
                ),
                (
                    _filled(0.0, zero=False),
                    "Hidden scores are set to 0, and e⁰ = 1 is a weight like others. Make them very low.",
                ),
                (
                    _masked(lambda s, m: (s * m).softmax(dim=-1) * m),
                    "The scores are multiplied by the mask, so hidden ones still take their share: rows must sum to 1.",
                ),
                (
                    _filled(0.0),
                    "Hidden scores are set to 0 and still take their share of the softmax: rows must sum to 1.",
                ),
                (
                    _masked(lambda s, m: s.softmax(dim=-1) * m),
                    "The softmax runs over hidden scores too, so rows no longer sum to 1: hide before the softmax.",
                ),
                (
                    _masked(lambda s, m: (w := s.softmax(dim=-1) * m) / w.sum(dim=-1, keepdim=True).clamp(min=1e-9)),
                    "A large hidden score takes all, and what may be seen gets 0: hide before the softmax, not after.",
                ),
                (
                    _filled(-1000.0),
                    "Hidden scores are set to a number that is not low enough: here some true ones are lower still.",
                ),
                (lambda s, m: s.softmax(dim=-1), "The mask is not used: hide the scores where it is False."),
                (
                    lambda s, m: masked_softmax(
                        s.transpose(-1, -2), None if m is None else m.transpose(-1, -2)
                    ).transpose(-1, -2),
                    "Each column sums to 1: the softmax runs over the queries. Take it over the keys, the last ones.",
                ),
                *(
                    (_along(dim), f"The softmax runs over dimension {dim}: take it over the last, -1.")
                    for dim in (0, 1)
                ),
            ],
        ),
        _softmax_cases,
        _large_scores,
        _gradient_is_finite,
        before=(_large_hidden_score,),
    ),
    crashes=[
        MASK_MAY_BE_NONE,
        ("bitwise_not", "`~` turns Boolean tensors round: the mask has to stay Boolean."),
    ],
    nudge="Make hidden scores so low that their exponential is 0, but finite. What is still wrong in a hidden row?",
    sketch="""
        if there is no mask: the plain softmax over the last dimension
        fill the scores with the lowest finite number where the mask is False
        take the softmax over the last dimension
        multiply by the mask: hidden weights are exactly 0, also in a row where all is hidden
        """,
)

# --- 2.3 ---


def turned_dot(q: Tensor, states: Tensor) -> Tensor:
    """The score that answers are tried on: not symmetric, and none of the six."""
    return q @ states.roll(1, dims=-1).transpose(1, 2)


def _context_cases() -> list[tuple]:
    cases = []
    for seed, (batch, queries, keys, d) in enumerate(((2, 3, 4, 5), (3, 1, 2, 4), (1, 4, 6, 2))):
        q, states = _random(seed, (batch, queries, d), (batch, keys, d))
        lengths = torch.arange(batch) + keys - 2  # in the second case one sentence is empty
        cases.append((q, states, (torch.arange(keys) < lengths[:, None])[:, None], turned_dot))
    cases[2] = (*cases[2][:2], None, turned_dot)
    return cases


def _context_variant(weigh: Callable = masked_softmax, mix: Callable = lambda w, s: w @ s) -> Callable:
    """`context_vector` with one thing changed; for slips."""

    def context(q, states, mask, score):
        weights = weigh(score(q, states), mask)
        return mix(weights, states), weights

    return context


AS_THEY_ARE = "Weights (batch, queries, keys) times states (batch, keys, d) fit as they are:"


def _swapped(function: Callable) -> Callable:
    return lambda *inputs: tuple(reversed(function(*inputs)))


context = Exercise(
    id="2.3",
    title="context vector",
    reference=context_vector,
    checks=_with_nan_check(
        function_checks(
            context_vector,
            _context_cases(),
            returns=["context", "weights"],
            slips=[
                (
                    _context_variant(mix=lambda w, s: s.mean(dim=1, keepdim=True).expand(-1, w.shape[1], -1)),
                    "This is the plain mean of the states: each must be weighted.",
                ),
                (
                    _context_variant(weigh=lambda s, m: s if m is None else s * m),
                    "The scores themselves are used as weights: they need a softmax.",
                ),
                (
                    _context_variant(weigh=lambda s, m: s.softmax(dim=-1)),
                    "The mask is not used: the states of filled-up places take part.",
                ),
                (
                    lambda q, h, m, score: (context_vector(q, h, m, score)[0], score(q, h)),
                    "The scores are returned in the place of the weights: return what the softmax gave.",
                ),
                (_swapped(context_vector), "The two results are in the wrong order: the context, then the weights."),
                (
                    _context_variant(mix=lambda w, s: (w @ s) / s.shape[1]),
                    "The weights sum to 1 already: do not divide by the number of states.",
                ),
                (
                    _context_variant(weigh=lambda s, m: masked_softmax(s.transpose(1, 2), None).transpose(1, 2)),
                    "The softmax runs over the queries: take it over the keys, the last dimension.",
                ),
                (
                    _context_variant(mix=lambda w, s: torch.tanh(w @ s)),
                    "There is a tanh too many: the context is a plain weighted mean.",
                ),
                (
                    _context_variant(
                        mix=lambda w, s: s.gather(1, w.argmax(dim=-1)[..., None].expand(-1, -1, s.shape[-1]))
                    ),
                    "This is the one state with the largest weight, a hard look: take the weighted mean of all.",
                ),
                (
                    lambda q, h, m, score: context_vector(
                        q, h, m, lambda q, h: q @ h.transpose(1, 2) / math.sqrt(q.shape[-1])
                    ),
                    "The score is a scaled dot product of your own: use the function `score` that is given.",
                ),
                (
                    lambda q, h, m, score: context_vector(q, h, m, lambda q, h: q @ h.transpose(1, 2)),
                    "The score is a dot product of your own: use the function `score` that is given.",
                ),
                (
                    _context_variant(mix=lambda w, s: w.sum(dim=1, keepdim=True) @ s),
                    "The weights of all queries are summed up: each query has a context of its own.",
                ),
                (
                    _context_variant(weigh=lambda s, m: masked_softmax(s, None if m is None else ~m)),
                    "The mask is turned round: True is what may be seen. Give it to your masked softmax as it is.",
                ),
                (
                    _context_variant(weigh=lambda s, m: masked_softmax(s, None if m is None else m[:, None])),
                    "The mask has a dimension too many: it is (batch, 1, keys) already, and fits the scores.",
                ),
                (
                    lambda q, h, m, score: (score(q, h) @ h, context_vector(q, h, m, score)[1]),
                    "The context is made with the scores; make it with the weights, what the softmax gave.",
                ),
                (
                    lambda q, h, m, score: context_vector(q, h, m, lambda q, h: score(h, q).transpose(1, 2)),
                    "`score` is given the states first; it takes (q, states), and the two are not alike.",
                ),
                (
                    lambda q, h, m, score: context_vector(q, h, m, lambda q, h: score(q, h) / math.sqrt(q.shape[-1])),
                    "The scores are divided by √d: take them as `score` gives them.",
                ),
                (
                    _context_variant(weigh=lambda s, m: (s if m is None else s.masked_fill(~m, -1e30)).softmax(dim=-1)),
                    "A sentence that is hidden altogether must be read as 0; yours is read as the plain mean.",
                ),
                (
                    lambda q, h, m, score: (context_vector(q, h, m, score)[0] + q, context_vector(q, h, m, score)[1]),
                    "The query is added to the context: return the weighted mean of the states alone.",
                ),
            ],
        ),
        _context_cases,
    ),
    crashes=[
        MASK_MAY_BE_NONE,
        ("[2, 3] but got: [2, 4]", f"{AS_THEY_ARE} do not turn the weights."),  # of the first case: 3 queries, 4 keys
        ("[2, 4] but got: [2, 5]", f"{AS_THEY_ARE} do not turn the states."),
        BATCHED,
    ],
    nudge="Three lines: scores, weights (you have just written that), then a matrix product of weights and states.",
    sketch="""
        scores = score(q, states)                                  (batch, queries, keys)
        weights = masked softmax of the scores                     (batch, queries, keys)
        context = weights times states, sentence by sentence       (batch, queries, d)
        return context, weights
        """,
)

# --- 2.4 ---

SURE, POSSIBLE = {(0, 0), (1, 2), (2, 1), (3, 3)}, {(3, 4), (2, 2)}
ALIGNMENTS = [  # sure, possible, predicted
    (SURE, POSSIBLE, {(0, 0), (1, 2), (2, 2), (3, 4), (0, 4)}),
    (SURE, SURE | POSSIBLE, {(0, 0), (1, 2), (3, 4)}),
    (SURE, set(), {(0, 0), (1, 1), (2, 1)}),
    ({(0, 1)}, {(1, 0), (1, 1), (2, 2)}, {(1, 0), (1, 1), (0, 1), (2, 2)}),
]
FORMULAS = [  # of sure S, possible P (with the sure ones), predicted A, and P as it was given
    (lambda S, P, A, G: (len(A & S) + len(A & P)) / (len(A) + len(S)), "The 1 − is missing: 0 must be perfect."),
    (
        lambda S, P, A, G: 1 - (len(A & S) + len(A & G)) / (len(A) + len(S)),
        "What is sure is possible too: count A ∩ (S ∪ P), not A ∩ P alone.",
    ),
    (
        lambda S, P, A, G: 1 - (len(A & S) + len(A & (G - S))) / (len(A) + len(S)),
        "A sure link counts in both terms: as sure, and as possible.",
    ),
    (
        lambda S, P, A, G: 1 - 2 * len(A & S) / (len(A) + len(S)),
        "The possible links are not used: they count as right in the second term.",
    ),
    (
        lambda S, P, A, G: 1 - 2 * len(A & P) / (len(A) + len(S)),
        "The first term counts sure links only: A ∩ S.",
    ),
    (
        lambda S, P, A, G: 1 - (len(A & S) + len(A & P)) / (len(A) + len(P)),
        "The denominator is |A| + |S|: possible links need not be found.",
    ),
    (
        lambda S, P, A, G: 1 - (len(A & S) + len(A & P)) / (2 * len(A)),
        "The denominator is |A| + |S|, not 2 |A|: sure links that are not found have to cost.",
    ),
    (
        lambda S, P, A, G: 1 - (len(A & S) + len(A & P)) / len(A | S),
        "The denominator is |A| + |S|, the two sizes added, not the size of their union.",
    ),
    (lambda S, P, A, G: 1 - len(A & P) / len(A), "This is 1 − precision: sure links that are not found have to cost."),
    (lambda S, P, A, G: 1 - len(A & S) / len(S), "This is 1 − recall: links that are not even possible have to cost."),
    (
        lambda S, P, A, G: 100 * (1 - (len(A & S) + len(A & P)) / (len(A) + len(S))),
        "This is in percent; return a number between 0 and 1.",
    ),
]


def _is_a_number(answer: Callable) -> None:
    got = answer(*map(set, ALIGNMENTS[0]))
    if not isinstance(got, Real) and not (isinstance(got, Tensor) and got.numel() == 1):
        raise Wrong(f"Expected one number to be returned; got {describe(got)}.")


def _keeps_its_sets(answer: Callable) -> None:
    for case in ALIGNMENTS:
        given = [set(links) for links in case]
        answer(*given)
        for name, before, after in zip(("sure", "possible", "predicted"), case, given, strict=True):
            if before != after:
                raise Wrong(f"It changes the set {name}: use `|` and `&`, which make new sets.")


def _the_formula(answer: Callable) -> None:
    pairs = [(float(answer(*map(set, case))), alignment_error_rate(*case)) for case in ALIGNMENTS]
    if all(math.isclose(got, want, abs_tol=1e-6) for got, want in pairs):
        return
    for formula, sentence in FORMULAS:
        if all(
            math.isclose(got, formula(S, S | P, A, P), abs_tol=1e-6)
            for (got, _), (S, P, A) in zip(pairs, ALIGNMENTS, strict=True)
        ):
            raise Wrong(sentence)
    case, (got, want) = next(
        (c, p) for c, p in zip(ALIGNMENTS, pairs, strict=True) if not math.isclose(*p, abs_tol=1e-6)
    )
    S, P, A = map(sorted, case)
    raise Wrong(f"For sure {S}, possible {P} and predicted {A} it must be {want:.4f}; got {got:.4f}.")


def _no_sure_links(answer: Callable) -> None:
    link = {(0, 0)}
    for possible, want, why in ((link, 0.0, "is possible"), (set(), 1.0, "is not even possible")):
        got = float(answer(set(), set(possible), set(link)))
        if abs(got - want) > 1e-6:
            raise Wrong(
                f"If no link is sure and the one predicted {why}, the formula gives {want:g}; got {got:g}. "
                "It needs no special case for an empty set."
            )


def _ends_of_the_scale(answer: Callable) -> None:
    if abs(float(answer(set(SURE), set(POSSIBLE), set(SURE))) - 0.0) > 1e-6:
        raise Wrong("If exactly the sure links are predicted, the error must be 0.")
    try:
        nothing = float(answer(set(SURE), set(POSSIBLE), set()))
    except ZeroDivisionError:
        raise Wrong(
            "If nothing is predicted, the error is 1: do not divide by the number of predicted links."
        ) from None
    if abs(nothing - 1.0) > 1e-6:
        raise Wrong(f"If nothing is predicted, the error must be 1; got {nothing:g}.")


error_rate = Exercise(
    id="2.4",
    title="alignment error rate",
    reference=alignment_error_rate,
    checks=[
        signature_check(alignment_error_rate),
        _is_a_number,
        _keeps_its_sets,
        _the_formula,
        _ends_of_the_scale,
        _no_sure_links,
    ],
    crashes=[
        (
            "division by zero",
            "Sure links may be missing, or predicted ones: divide by |A| + |S|, never by one of them.",
        ),
        ("unsupported operand", "Sets know `&` (both), `|` (either) and `len`; they cannot be added."),
        ("object of type 'set'", "`len` gives the size of a set."),
    ],
    nudge="Python's sets do the work: `A & S` is what is in both, `A | S` what is in either, `len` counts.",
    sketch="""
        P = the possible links and the sure ones together
        right = how many predicted links are sure + how many predicted links are in P
        return 1 − right / (how many are predicted + how many are sure)
        """,
)

# --- 2.5 ---


def _hop_cases() -> list[tuple]:
    cases = []
    for seed, (batch, facts, d) in enumerate(((2, 4, 5), (3, 2, 4), (1, 6, 3))):
        q, keys, values = _random(seed, (batch, d), (batch, facts, d), (batch, facts, d))
        lengths = torch.arange(batch) + facts - 2  # in the second case one story is empty
        cases.append((q, keys, values, torch.arange(facts) < lengths[:, None]))
    cases[2] = (*cases[2][:3], None)
    return cases


def _hop_variant(
    score: Callable = lambda q, k: torch.einsum("bd,bnd->bn", q, k),
    weigh: Callable = masked_softmax,
    end: Callable = lambda q, read: q + read,
) -> Callable:
    """`hop` with one thing changed; for slips."""

    def variant(q, keys, values, mask):
        weights = weigh(score(q, keys), mask)
        return end(q, torch.einsum("bn,bnd->bd", weights, values)), weights

    return variant


def _all_with_all(turn: bool) -> Callable:
    """Without a dimension of its own, each question meets the facts of every story."""

    def variant(q, keys, values, mask):
        mask = mask[:, None] if turn and mask is not None else mask
        weights = masked_softmax(q @ keys.transpose(1, 2), mask)
        return q + weights @ values, weights

    return variant


def _with_one_query(q, keys, values, mask):
    """The dimension that q was given is not taken away again."""
    weights = masked_softmax(q[:, None] @ keys.transpose(1, 2), None if mask is None else mask[:, None])
    return q[:, None] + weights @ values, weights


OWN_STORY = (
    "Each question meets the facts of every story: give q a dimension of its own, `q[:, None]`, and drop it in the "
    'end; or `torch.einsum("bd,bnd->bn", q, keys)`.'
)
look = Exercise(
    id="2.5",
    title="one hop",
    reference=hop,
    checks=_with_nan_check(
        function_checks(
            hop,
            _hop_cases(),
            returns=["question", "weights"],
            slips=[
                (
                    _hop_variant(end=lambda q, read: read),
                    "The old question is lost: add what was read to it, q + Σ a v. (The slide in S3 has q ← aV.)",
                ),
                (
                    lambda q, k, v, m: hop(q, k, k, m),
                    "The keys are read; they only find the place. What is read are the values.",
                ),
                (
                    lambda q, k, v, m: hop(q, v, v, m),
                    "The question is compared with the values; it is compared with the keys.",
                ),
                (
                    lambda q, k, v, m: hop(q, v, k, m),
                    "Keys and values are swapped: compare with the keys, read the values.",
                ),
                (
                    _hop_variant(weigh=lambda s, m: s.softmax(dim=-1)),
                    "The mask is not used: facts that are not there count.",
                ),
                (
                    _hop_variant(weigh=lambda s, m: s if m is None else s * m),
                    "The softmax is missing: the scores are used as weights.",
                ),
                (
                    _hop_variant(score=lambda q, k: torch.einsum("bd,bnd->bn", q, k) / math.sqrt(q.shape[-1])),
                    "The scores are divided by √d; memory networks take q · k as it is.",
                ),
                (_swapped(hop), "The two results are in the wrong order: the new question, then the weights."),
                (
                    _hop_variant(end=lambda q, read: q * read),
                    "The question is multiplied by what was read; add the two.",
                ),
                (
                    _hop_variant(end=lambda q, read: (q + read) / 2),
                    "The mean of the two is taken; their plain sum is asked for.",
                ),
                (
                    _hop_variant(end=lambda q, read: torch.tanh(q + read)),
                    "There is a tanh too many: the new question is q plus what was read.",
                ),
                (
                    lambda q, k, v, m: (hop(q, k, v, m)[0], torch.einsum("bd,bnd->bn", q, k)),
                    "The scores are returned in the place of the weights: return what the softmax gave.",
                ),
                (_all_with_all(turn=False), OWN_STORY),
                (_all_with_all(turn=True), OWN_STORY),
                (
                    _with_one_query,
                    "The dimension that q was given for the product is left over: `[:, 0]` takes it away.",
                ),
                (
                    _hop_variant(weigh=lambda s, m: (s if m is None else s.masked_fill(~m, -1e30)).softmax(dim=-1)),
                    "In a story without facts the weights must be 0; yours are spread evenly over what is not there.",
                ),
                (
                    _hop_variant(weigh=lambda s, m: masked_softmax(s, None if m is None else ~m)),
                    "The mask is turned round: True is where there is a fact.",
                ),
                (
                    lambda q, k, v, m: (
                        q + torch.einsum("bn,bnd->bd", torch.einsum("bd,bnd->bn", q, k), v),
                        hop(q, k, v, m)[1],
                    ),
                    "The values are weighed by the scores; weigh them by what the softmax gave.",
                ),
                (
                    lambda q, k, v, m: (q + (hop(q, k, v, m)[1][..., None] * v).mean(dim=1), hop(q, k, v, m)[1]),
                    "The weighted values are averaged; sum them up, since the weights sum to 1 already.",
                ),
                (
                    _hop_variant(weigh=lambda s, m: s.softmax(dim=0) * (1 if m is None else m)),
                    "The softmax runs over the batch: take it over the facts of one story, the last dimension.",
                ),
                (
                    _hop_variant(weigh=lambda s, m: _along(0)(s, m)),
                    "The softmax runs over the batch: take it over the facts of one story, the last dimension.",
                ),
            ],
        ),
        _hop_cases,
    ),
    crashes=[
        MASK_MAY_BE_NONE,
        (
            "shapes cannot be multiplied",
            'One question meets all facts of its story: `torch.einsum("bd,bnd->bn", q, keys)`.',
        ),
        ("size mismatch", 'One question meets all facts of its story: `torch.einsum("bd,bnd->bn", q, keys)`.'),
        BATCHED,
    ],
    nudge="Dot products with all keys, your masked softmax, the weighted mean of the values; then do not forget q.",
    sketch="""
        scores: the dot product of q with each key            (batch, facts)
        weights: their masked softmax over the facts          (batch, facts)
        read: the values, weighted and summed                 (batch, d)
        return q + read, weights
        """,
)

EXERCISES = [score, softmax, context, error_rate, look]
