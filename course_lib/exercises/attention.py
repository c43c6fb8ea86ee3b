"""Exercises of lesson 02: a control, a score, a masked softmax, a context, vectors by hand, a hop."""

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from course_lib.lab.grading import Check, Exercise, Wrong, describe
from course_lib.lab.ladder import Ladder, edits, signature_check
from course_lib.lessons.attention import reversing_vectors, source_blind
from course_lib.models.attention import additive_score, context_vector, masked_softmax
from course_lib.models.memory_network import hop

MASK_MAY_BE_NONE = ("NoneType", "`mask` may be `None`: then nothing is hidden.")
KEYS_NOT_TURNED = (
    "[2, 5] but got: [2, 4]",  # of the first case of 2.4: d = 5, 4 keys
    "The keys of a sentence are (keys, d): to multiply by them, turn their last two dimensions, `transpose(1, 2)`.",
)
NOT_A_NUMBER = (
    "Where everything in a row is hidden there is NaN: a softmax over −∞ alone is 0 / 0. Hide with a number that is "
    "very low but finite. What is such a row then, and what should it be?"
)


def _random(seed: int, *shapes: tuple[int, ...]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) for shape in shapes]


def _hidden_rows(cases: Sequence[tuple], mask_at: int) -> Check:
    """NaN just where the mask hides a row altogether comes from a softmax over −∞ alone."""

    def hidden_rows(answer: Callable) -> None:
        for inputs in cases:
            result, mask = answer(*inputs), inputs[mask_at]
            if mask is None:
                continue
            hidden = ~mask.any(dim=-1)
            for value in result if isinstance(result, tuple | list) else (result,):
                spoilt = value.isnan().any(dim=-1)
                if spoilt.any() and not (spoilt & ~hidden).any():
                    raise Wrong(NOT_A_NUMBER)

    return hidden_rows


# --- 2.1 ---


def _blind_cases() -> list[tuple]:
    """Batches of other sizes, lengths and words; in the first no number of words is 1, and no word is 0."""
    generator, cases = torch.Generator().manual_seed(0), []
    for batch, longest, target, largest in ((3, 5, 4, 8), (2, 7, 6, 7), (4, 2, 3, 5)):
        lengths = torch.randint(2, longest + 1, (batch,), generator=generator)
        lengths[0] = longest
        source = torch.randint(1, largest, (batch, longest), generator=generator)
        source[0, 0] = largest  # another in each batch
        before = torch.randint(9, (batch, target), generator=generator)
        cases.append((source.masked_fill(torch.arange(longest) >= lengths[:, None], 0), lengths, before))
    return cases


def _three_tensors(answer: Callable) -> None:
    for source, lengths, before in _blind_cases():
        got = answer(source.clone(), lengths.clone(), before.clone())
        if not isinstance(got, tuple | list) or len(got) != 3 or not all(isinstance(x, Tensor) for x in got):
            raise Wrong(f"Expected three tensors to be returned, source, lengths and before; got {describe(got)}.")
        names = ("source", "lengths", "before")
        for name, given, new in zip(names, (source, lengths, before), got, strict=True):
            if new.dim() != given.dim() or len(new) != len(given):
                shape = f"({len(given)}, …)" if given.dim() == 2 else f"({len(given)})"
                raise Wrong(f"{name} must be of shape {shape}, a row for each sentence; got {tuple(new.shape)}.")
            if new.dtype != torch.int64:
                raise Wrong(f"{name} must hold whole numbers (torch.int64), word numbers or counts; got {new.dtype}.")


def _target_kept(answer: Callable) -> None:
    for source, lengths, before in _blind_cases():
        if not torch.equal(answer(source, lengths, before)[2], before):
            raise Wrong("The decoder must still be told its words so far: hand `before` on as it is.")


def _can_be_read(answer: Callable) -> None:
    for case in _blind_cases():
        source, lengths, _ = answer(*case)
        if source.shape[1] < 1 or (lengths < 1).any():
            raise Wrong("An encoder needs one word at least: give every sentence the same one, with length 1.")
        if (lengths > source.shape[1]).any():
            raise Wrong("A length is larger than the source has places.")
        if (source < 0).any() or (source > 8).any():
            raise Wrong("A word number must be in the vocabulary: 0 is always there.")


def _says_nothing(answer: Callable) -> None:
    seen = [answer(*case)[:2] for case in _blind_cases()]
    for source, lengths in seen:
        for row in range(len(source)):
            if not torch.equal(source[row, : lengths[row]], source[0, : lengths[0]][: lengths[row]]):
                raise Wrong("Two sentences of a batch are still read as different words.")
        if (lengths != lengths[0]).any():
            raise Wrong(
                "The words are gone, but not how many there were: the encoder makes as many steps as `lengths` says, "
                "and a long English sentence has a long translation."
            )
        if (source != source[0]).any():
            raise Wrong("Beyond the length there still are different words: let nothing of the source get in.")
    first, _ = seen[0]
    for source, lengths in seen[1:]:
        if source.shape[1] != first.shape[1] or lengths[0] != seen[0][1][0]:
            raise Wrong(
                "Each batch is cut at its own longest sentence, so its width, too, tells of the source, to a "
                "translator that reads all columns: every sentence of every batch must get the same constants."
            )
        if (source[0] != first[0]).any():
            raise Wrong("Sentences of different batches are read as different words: take one word for all.")


blind = Exercise(
    id="2.1",
    title="the source-blind control",
    reference=source_blind,
    checks=[
        signature_check(source_blind),
        _three_tensors,
        Ladder(source_blind, _blind_cases(), returns=["source", "lengths", "before"]).inputs_kept,
        _target_kept,
        _can_be_read,
        _says_nothing,
    ],
    nudge="Three things tell of the source: its words, how many they are, and how wide the batch is.",
    sketch="""
        source: one column, filled with one and the same word number, such as 0      (batch, 1)
        lengths: 1 for every sentence                                                (batch)
        before: as it is
        """,
)

# --- 2.2 ---

SIZES = ((2, 3, 4, 5, 6), (1, 2, 5, 3, 4), (3, 1, 2, 4, 7))  # batch, queries, keys, d, a: a wrong axis shows


def _score_cases() -> list[tuple]:
    return [tuple(_random(n, (b, m, d), (b, k, d), (a, 2 * d), (a,))) for n, (b, m, k, d, a) in enumerate(SIZES)]


def _score_crossed(q, keys, W, v):
    """`repeat` and `repeat_interleave` in each other's place."""
    batch, queries, n = len(q), q.shape[1], keys.shape[1]
    pairs = torch.cat([q.repeat(1, n, 1), keys.repeat_interleave(queries, dim=1)], dim=-1)
    return (torch.tanh(pairs @ W.T) @ v).view(batch, queries, n)


class _Calls(TorchFunctionMode):
    """Counts the calls of torch's functions."""

    count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


def _all_pairs_at_once(answer: Callable) -> None:
    """Pair by pair is right, but with the lesson's sizes a training would take hours. Loops over queries will do."""
    batch, queries, keys = 4, 3, 50
    with _Calls() as calls:
        answer(*_random(0, (batch, queries, 2), (batch, keys, 2), (3, 4), (3,)))
    if calls.count >= batch * queries * keys:
        raise Wrong(
            f"The scores are right, but for {batch} sentences of {queries} queries and {keys} keys torch was called "
            f"{calls.count} times: pair by pair the trainings below would take hours. Let broadcasting make all "
            "pairs at once."
        )


score = Exercise(
    id="2.2",
    title="additive score",
    reference=additive_score,
    checks=Ladder(
        additive_score,
        _score_cases(),
        returns=["scores"],
        slips=[
            *edits(
                additive_score,
                """
                torch.tanh(total) → total · The tanh is missing: it stands between W and v.
                torch.tanh → torch.sigmoid · This is a sigmoid; the score uses tanh.
                torch.tanh → torch.relu · This is a ReLU; the score uses tanh.
                W_q, W_k = → W_k, W_q = · Query and key are joined in the order [k; q]; the formula says [q; k].
                (q @ → torch.tanh(q @ ; (keys @ → torch.tanh(keys @ ; torch.tanh(total) → total
                · The tanh is taken of each part; take it once, of the whole sum W [q; k].
                @ v → .sum(dim=-1) · The vector v is not used: it weighs the entries before they are summed.
                @ v → .mean(dim=-1) · The vector v is not used: it weighs the entries before they are summed.
                @ v → * v
                · The entries are weighed by v but not summed up: one number is left for each query and key.
                torch.tanh(total) @ v → torch.tanh(total @ v)
                · The tanh stands outside: first tanh, then the product with v.
                torch.tanh(total) @ v → (torch.tanh(total) @ v).softmax(dim=-1)
                · These are weights already: leave the softmax for later and return the scores.
                torch.tanh(total) @ v → (torch.tanh(total) @ v).transpose(1, 2)
                · Queries and keys are swapped: each row belongs to a query, each column to a key.
                @ v → @ v / math.sqrt(len(v)) · Nothing is divided by a root here.
                (q @ → 0 * (q @ · The query does not enter: join it with each key.
                (keys @ → 0 * (keys @ · The keys do not enter: join the query with each of them.
                @ v → @ v[:, None] · There is a dimension too many at the end: one number for each query and key.
                """,
            ),
            (
                _score_crossed,
                "The pairs come in the wrong order for `view`: all keys of the first query first. So each query is "
                "repeated in place (`repeat_interleave`), and the keys as a whole (`repeat`).",
            ),
        ],
    ).extended(_all_pairs_at_once),
    crashes=[
        (
            "(6x5 and 6x6)",  # of the first case: d = 5, a = 6
            "The left half of W has as many columns as a query has entries, d; a, the number of its rows, is another.",
        ),
        (
            "(6x5 and 10x3)",
            "W is cut across, into rows; the part of the query is its left half, columns: `W.chunk(2, dim=1)`.",
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

# --- 2.3 ---


def _softmax_cases() -> list[tuple]:
    first, second, third, fourth = _random(0, (2, 3, 5), (4, 6), (1, 2, 3), (2, 3, 4))
    mask = torch.rand(2, 3, 5, generator=torch.Generator().manual_seed(1)) < 0.6
    mask[0, 1], mask[1, 2, 3] = False, False  # a row that is hidden altogether
    first[1, 2, 3] = 1000.0  # large, but hidden
    some = torch.tensor([[True, True, False, True, False, True]]).expand(4, 6).clone()
    low = torch.tensor([[[True, False, True], [False, True, True]]])
    [fifth] = _random(1, (3, 2, 4))
    of_sentences = torch.tensor(
        [[[True, True, False, False]], [[True, False, True, True]], [[True, True, True, False]]]
    )
    return [(first, mask), (second, some), (third - 5000, low), (fourth, None), (fifth, of_sentences)]


OVERFLOW = "Scores of 1000 give NaN: exp overflows. Use torch's softmax, or subtract the largest score first."


def _large_scores(answer: Callable) -> None:
    scores = torch.tensor([[1000.0, 999.0, 0.0]])
    if not answer(scores, torch.tensor([[True, True, False]])).isfinite().all():
        raise Wrong(OVERFLOW)


def _large_hidden_score(answer: Callable) -> None:
    """NaN that is gone when the large score, hidden here, is a small one: it has overflowed."""
    scores, mask = _softmax_cases()[0]
    if answer(scores, mask).isnan()[1, 2].any() and not answer(scores.clamp(max=1.0), mask).isnan()[1, 2].any():
        raise Wrong(OVERFLOW)


def _gradient_is_finite(answer: Callable) -> None:
    for scores, mask in _softmax_cases():
        given = scores.clone().requires_grad_()
        result = answer(given, mask)
        if result.requires_grad:
            [gradient] = torch.autograd.grad((result * torch.arange(result.shape[-1])).sum(), given)
            if not gradient.isfinite().all():
                raise Wrong(
                    "The weights are right, but their gradient is NaN, and one such row spoils a whole training: a NaN "
                    "was mended afterwards, and on its way back the gradient meets it all the same. Let no NaN arise: "
                    "hide with a finite number."
                )


def _over_dimension(dim: int, sentence: str) -> str:
    """The row of an edit: the softmax over another dimension."""
    return (
        f"scores.softmax(dim=-1) → scores.softmax(dim={dim}) ; lowest).softmax(dim=-1) → lowest).softmax(dim={dim})\n"
        f"· {sentence}\n"
    )


TURNED_ROUND = "The mask is turned round: True is what may be seen. Hide where it is False, `~mask`."
HIDDEN = "scores.masked_fill(~mask, lowest)"
LOWERED = (
    "A fixed number is subtracted from hidden scores, and a large one stays large (here one of 1000): put a very low "
    "number in their place."
)
softmax = Exercise(
    id="2.3",
    title="masked softmax",
    reference=masked_softmax,
    checks=Ladder(
        masked_softmax,
        _softmax_cases(),
        returns=["weights"],
        slips=edits(
            masked_softmax,
            f"""
            * mask →
            · A row that is hidden altogether must become 0; yours is spread evenly. Multiply by the mask.
            ~mask → mask ; * mask → * ~mask · {TURNED_ROUND}
            ~mask → mask ; * mask → · {TURNED_ROUND}
            lowest) → 0.0) ; * mask →
            · A hidden score becomes 0 (set so, or multiplied by the mask), and e⁰ = 1 is a weight like others: make it
            · very low.
            lowest) → 0.0)
            · A hidden score becomes 0 (set so, or multiplied by the mask) and still takes its share of the softmax:
            · rows must sum to 1.
            {HIDDEN} → scores
            · The softmax runs over hidden scores too, so rows no longer sum to 1: hide before the softmax.
            {HIDDEN}.softmax(dim=-1) * mask →
                (w := scores.softmax(dim=-1) * mask) / w.sum(dim=-1, keepdim=True).clamp(min=1e-9)
            · A large hidden score takes all, and what may be seen gets 0: hide before the softmax, not after.
            lowest) → -1000.0)
            · Hidden scores are set to a number that is not low enough: here some true ones are lower still.
            {HIDDEN} → (scores - 1000.0 * ~mask)
            · {LOWERED}
            {HIDDEN} → (scores - 1000.0 * ~mask) ; * mask →
            · {LOWERED}
            {HIDDEN} → (scores - 100.0 * ~mask) ; * mask →
            · {LOWERED}
            return scores.softmax(dim=-1) → return scores
            · Without a mask nothing is hidden, but the softmax is still taken; yours returns the scores.
            {HIDDEN}.softmax(dim=-1) * mask → torch.softmax(scores, dim=-1)
            · The mask is not used: hide the scores where it is False.
            """
            + _over_dimension(
                -2, "Each column sums to 1: the softmax runs over the queries. Take it over the keys, the last ones."
            )
            + _over_dimension(0, "The softmax runs over dimension 0: take it over the last, -1.")
            + _over_dimension(1, "The softmax runs over dimension 1: take it over the last, -1."),
        ),
    )
    .extended(_large_hidden_score, _hidden_rows(_softmax_cases(), mask_at=1), before="finite")
    .extended(_large_scores, _gradient_is_finite, before="numbers"),
    crashes=[
        MASK_MAY_BE_NONE,
        ("operator.invert", "`~` turns Boolean tensors round: the mask has to stay Boolean."),
        (
            "does not match the shape of the indexed tensor",
            "The mask may be smaller than the scores, (batch, 1, keys): `masked_fill`, `where` and `*` broadcast it, "
            "an index in brackets does not.",
        ),
    ],
    nudge="Make hidden scores so low that their exponential is 0, but finite. What is still wrong in a hidden row?",
    sketch="""
        if there is no mask: the plain softmax over the last dimension
        fill the scores with the lowest finite number where the mask is False
        take the softmax over the last dimension
        multiply by the mask: hidden weights are exactly 0, also in a row where all is hidden
        """,
)

# --- 2.4 ---


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


def _first_alone(function: Callable) -> Callable:
    """The first of the two results: the weights, which are only looked at, need no gradient."""

    @functools.wraps(function)
    def alone(*inputs):
        return function(*inputs)[0]

    return alone


def _gradient_of_the_context(answer: Callable) -> None:
    Ladder(_first_alone(context_vector), _context_cases(), ["context"]).gradients(_first_alone(answer))


AS_THEY_ARE = "Weights (batch, queries, keys) times states (batch, keys, d) fit as they are:"


context = Exercise(
    id="2.4",
    title="context vector",
    reference=context_vector,
    checks=Ladder(
        context_vector,
        _context_cases(),
        returns=["context", "weights"],
        slips=edits(
            context_vector,
            """
            weights @ states → states.mean(dim=1, keepdim=True).expand(-1, q.shape[1], -1)
            · This is the plain mean of the states: each must be weighted.
            masked_softmax(scores, mask) → scores if mask is None else scores * mask
            · The scores themselves are used as weights: they need a softmax.
            masked_softmax(scores, mask) → scores
            · The scores themselves are used as weights: they need a softmax.
            masked_softmax(scores, mask) → scores.softmax(dim=-1)
            · The mask is not used: the states at padding take part.
            masked_softmax(scores, mask) → scores.softmax(dim=-1) * (1 if mask is None else mask)
            · The softmax runs over hidden places too, so the weights no longer sum to 1: hide before the softmax.
            @ states, weights → @ states, scores
            · The scores are returned in the place of the weights: return what the softmax gave.
            weights @ states, weights → weights, weights @ states
            · The two results are in the wrong order: the context, then the weights.
            weights @ states → weights @ states / states.shape[1]
            · The weights sum to 1 already: do not divide by the number of states.
            masked_softmax(scores, mask) → scores.softmax(dim=1)
            · The softmax runs over the queries: take it over the keys, the last dimension.
            weights @ states → torch.tanh(weights @ states)
            · There is a tanh too many: the context is a plain weighted mean.
            weights @ states → states.gather(1, weights.argmax(dim=-1)[..., None].expand(-1, -1, states.shape[-1]))
            · This is the one state with the largest weight, a hard look: take the weighted mean of all.
            scores = score(q, states) → scores = q @ states.transpose(1, 2) / math.sqrt(q.shape[-1])
            · The score is a scaled dot product of your own: use the function `score` that is given.
            scores = score(q, states) → scores = q @ states.transpose(1, 2)
            · The score is a dot product of your own: use the function `score` that is given.
            weights @ states → weights.sum(dim=1, keepdim=True) @ states
            · The weights of all queries are summed up: each query has a context of its own.
            (scores, mask) → (scores, None if mask is None else ~mask)
            · The mask is turned round: True is what may be seen. Give it to your masked softmax as it is.
            (scores, mask) → (scores, None if mask is None else mask[:, None])
            · The mask has a dimension too many: it is (batch, 1, keys) already, and fits the scores.
            weights @ states → scores @ states
            · The context is made with the scores; make it with the weights, what the softmax gave.
            scores = score(q, states) → scores = score(states, q).transpose(1, 2)
            · `score` is given the states first; it takes (q, states), and the two are not alike.
            scores = score(q, states) → scores = score(q, states) / math.sqrt(q.shape[-1])
            · The scores are divided by √d: take them as `score` gives them.
            masked_softmax(scores, mask) → (
                scores if mask is None else scores.masked_fill(~mask, -1e30)).softmax(dim=-1)
            · A sentence that is hidden altogether must be read as 0; yours is read as the plain mean.
            weights @ states → weights @ states + q
            · The query is added to the context: return the weighted mean of the states alone.
            """,
        ),
    )
    .extended(_hidden_rows(_context_cases(), mask_at=2), before="finite")
    .without("gradients")
    .extended(_gradient_of_the_context),
    crashes=[
        MASK_MAY_BE_NONE,
        ("[2, 3] but got: [2, 4]", f"{AS_THEY_ARE} do not turn the weights."),  # of the first case: 3 queries, 4 keys
        ("[2, 4] but got: [2, 5]", f"{AS_THEY_ARE} do not turn the states."),
        ("[2, 4] but got: [2, 3]", "What is read are the states: `weights @ states`."),
        KEYS_NOT_TURNED,
        (
            "tensor a (2) must match the size of tensor b (3)",  # of the first case: 2 sentences, 3 queries
            "Is the mask squeezed? Scores are (batch, queries, keys), the mask is (batch, 1, keys) and fits as it is.",
        ),
        (
            "must match the size of tensor",
            "Scores are (batch, queries, keys), the mask (batch, 1, keys). `score` takes (q, states), in this order.",
        ),
    ],
    nudge="Three lines: scores, weights (you have just written that), then a matrix product of weights and states.",
    sketch="""
        scores = score(q, states)                                  (batch, queries, keys)
        weights = masked softmax of the scores                     (batch, queries, keys)
        context = weights times states, sentence by sentence       (batch, queries, d)
        return context, weights
        """,
)

# --- 2.5 ---

REVERSALS = [  # lengths, longest, margin
    ([3, 5, 4], 5, 6.0),
    ([2, 7], 7, 1.0),
    ([1, 4, 9, 6], 9, 10.0),
    ([2], 2, 0.3),
    ([24, 13], 24, 30.0),
]


def _two_numbers_each(answer: Callable) -> None:
    for lengths, longest, margin in REVERSALS:
        got = answer(torch.tensor(lengths), longest, margin)
        if not isinstance(got, tuple | list) or len(got) != 2 or not all(isinstance(x, Tensor) for x in got):
            raise Wrong(f"Expected two tensors to be returned, q and keys; got {describe(got)}.")
        wanted = {"q": (len(lengths), longest, 2), "keys": (longest, 2)}
        for (name, shape), tensor in zip(wanted.items(), got, strict=True):
            if tensor.shape != shape:
                raise Wrong(
                    f"With lengths {lengths} and longest {longest} expected {name} of shape {shape}; "
                    f"got {tuple(tensor.shape)}."
                )
            if tensor.dtype != torch.float32:
                raise Wrong(f"{name} must be torch.float32; got {tensor.dtype}.")
            if not tensor.isfinite().all():
                raise Wrong(f"{name} holds {'NaN' if tensor.isnan().any() else 'an infinity'}.")


def _looks_backwards(answer: Callable) -> None:
    for lengths, longest, margin in REVERSALS:
        q, keys = answer(torch.tensor(lengths), longest, margin)
        for row, n in enumerate(lengths):
            scores = (q[row] @ keys.T)[:n, :n]  # steps that write, places that hold a word
            best, wanted = scores.argmax(dim=-1), torch.arange(n - 1, -1, -1)
            if torch.equal(best, wanted):
                continue
            if torch.equal(best, torch.arange(n)):
                raise Wrong(f"This copies: step t looks at place t. Of {n} words step 0 must look at place {n - 1}.")
            if torch.equal((q[row] @ keys.T)[:n].argmax(dim=-1), longest - 1 - torch.arange(n)):
                raise Wrong(
                    f"Step 0 looks for place {longest - 1}, the last of the longest sentence; a sentence of {n} words "
                    f"ends at place {n - 1}."
                )
            if torch.equal(best, (wanted + 1).clamp(max=n - 1)):
                raise Wrong(f"One place too far to the right: of {n} words step 0 must look at place {n - 1}.")
            if n > 2 and ((best == 0) | (best == n - 1)).all():
                raise Wrong(
                    "Only the ends are found: on a straight line, or a curve that opens upwards, no place between them "
                    "can win. Which curve has its top in the middle?",
                    torch.eye(n)[wanted],
                    scores,
                )
            step = int((best != wanted).nonzero()[0])
            raise Wrong(
                f"Of {n} words, step {step} must look at place {int(wanted[step])}; its largest score is at "
                f"place {int(best[step])}.",
                torch.eye(n)[wanted],
                scores,
            )


def _sharp_enough(answer: Callable) -> None:
    for lengths, longest, margin in REVERSALS:
        q, keys = answer(torch.tensor(lengths), longest, margin)
        for row, n in enumerate(lengths):
            scores, right = q[row, :n] @ keys.T, torch.arange(n - 1, -1, -1)[:, None]
            rest = scores.scatter(1, right, float("-inf"))[:, :n]
            lead = (scores.gather(1, right)[:, 0] - rest.amax(dim=-1)).min().item()
            if lead < margin * 0.999 - 1e-3:  # float32
                raise Wrong(
                    f"The right place wins, but by {lead:.3g} only: with margin {margin:g} its score must lie "
                    f"{margin:g} above every other, at every step of every sentence (here of {n} words)."
                )


backwards = Exercise(
    id="2.5",
    title="a decoder that reverses",
    reference=reversing_vectors,
    checks=[signature_check(reversing_vectors), _two_numbers_each, _looks_backwards, _sharp_enough],
    nudge="Let p be the place that you want. Which curve over the places j is highest at p? Multiply −(j − p)² out.",
    sketch="""
        p = length − 1 − t, for each sentence and each step                (batch, longest)
        −(j − p)² = 2 p j − j² − p², and p² is the same for all places j: a softmax does not see it
        so the key of place j is (j, −j²), and the query for place p is (2 p, 1)
        the place beside p scores 1 less, any other still less: multiply the query by the margin
        """,
)

# --- 2.6 ---


def _hop_cases() -> list[tuple]:
    cases = []
    for seed, (batch, facts, d) in enumerate(((2, 4, 3), (1, 3, 5), (3, 6, 2))):
        q, keys, values = _random(seed, (batch, d), (batch, facts, d), (batch, facts, d))
        lengths = facts - 1 - torch.arange(batch)
        cases.append((q, keys, values, torch.arange(facts) < lengths[:, None]))
    cases[1] = (*cases[1][:3], None)
    return cases


def _gradient_of_the_question(answer: Callable) -> None:
    Ladder(_first_alone(hop), _hop_cases(), ["the new question"]).gradients(_first_alone(answer))


one_hop = Exercise(
    id="2.6",
    title="a hop",
    reference=hop,
    checks=Ladder(
        hop,
        _hop_cases(),
        returns=["the new question", "weights"],
        slips=edits(
            hop,
            """
            return q + torch → return torch
            · What was read replaces the question: it has to be added to it.
            ", weights, values) → ", weights, keys)
            · The keys are read: they are only compared with; what is read are the values.
            keys), mask) → values), mask)
            · The question is compared with the values: compare it with the keys.
            keys), mask) → keys) / q.shape[-1] ** 0.5, mask)
            · Nothing is divided by a root here.
            masked_softmax(torch → (torch ; keys), mask) → keys))
            · There is no softmax: the scores themselves are used as weights.
            masked_softmax(torch → torch.softmax(torch ; keys), mask) → keys), dim=-1)
            · The mask is not used: places without a fact take part.
            keys), mask) → keys), None if mask is None else ~mask)
            · The mask is turned round: True is where there is a fact.
            return q + → return q * · What was read is multiplied with the question: add it.
            values), weights → values), q · The second result is the weights: what was looked at.
            """,
        ),
    )
    .without("gradients")
    .extended(_gradient_of_the_question),
    crashes=[
        MASK_MAY_BE_NONE,
        (
            "must match the size of tensor",
            "A question is (batch, d), the facts (batch, facts, d): give the question a dimension for the facts, "
            "`q[:, None]`, and take it out again.",
        ),
        ("[2, 3] but got: [2, 4]", "Not `q @ keys`: each question meets the facts of its own story."),
    ],
    nudge="The look of 2.4, with one query: scores, your masked softmax, a weighted sum. What is new comes last.",
    sketch="""
        scores: the product of q with each key of its story, summed over d      (batch, facts)
        weights = masked softmax of the scores                                  (batch, facts)
        read = the values, weighted and summed over the facts                   (batch, d)
        return q + read, weights
        """,
)

EXERCISES = [blind, score, softmax, context, backwards, one_hop]
