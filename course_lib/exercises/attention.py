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
        returns=["the scores"],
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
            (_score_variant(only="q"), "The keys do not enter: join the query with each of them."),
        ],
    ),
    crashes=[
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


def _large_scores(answer: Callable) -> None:
    scores = torch.tensor([[1000.0, 999.0, 0.0]])
    if not answer(scores, torch.tensor([[True, True, False]])).isfinite().all():
        raise Wrong("Scores of 1000 give NaN: exp overflows. Use torch's softmax, or subtract the largest score first.")


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


def _with_nan_check(checks: list, cases: Callable[[], list[tuple]], *more: Callable) -> list:
    return [*checks[:5], _no_nan(cases), *checks[5:8], *more, *checks[8:]]


softmax = Exercise(
    id="2.2",
    title="masked softmax",
    reference=masked_softmax,
    checks=_with_nan_check(
        function_checks(
            masked_softmax,
            _softmax_cases(),
            returns=["the weights"],
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
            ],
        ),
        _softmax_cases,
        _large_scores,
        _gradient_is_finite,
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
            ],
        ),
        _context_cases,
    ),
    crashes=[MASK_MAY_BE_NONE, BATCHED],
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
    ],
    crashes=[
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


look = Exercise(
    id="2.5",
    title="one hop",
    reference=hop,
    checks=_with_nan_check(
        function_checks(
            hop,
            _hop_cases(),
            returns=["the new question", "weights"],
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
