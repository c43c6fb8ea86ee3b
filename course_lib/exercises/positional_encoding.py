"""Exercises of lesson 05: a sinusoidal table, its shift, a head by hand, rotary positions, ALiBi, a hand."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.lab.grading import Exercise, Wrong
from course_lib.lab.ladder import Ladder, device_check, edits, signature_check
from course_lib.lessons.positional_encoding import hand_returns, look_back_head
from course_lib.models.positions import alibi, rotate, shift_matrix, sinusoidal

BASE = 10_000.0


# --- 5.1 ---


def _starts_at_nothing(answer: Callable) -> None:
    row = answer(4, 6, BASE)[0]
    if not torch.allclose(row.double(), torch.tensor([0.0, 1.0] * 3, dtype=torch.double), atol=1e-5):
        raise Wrong(
            "At position 0 every angle is 0, so the first row must be sin 0, cos 0, … = 0, 1, 0, 1, …; yours is "
            f"{', '.join(f'{x:.3g}' for x in row.tolist())}."
        )


def _slows_down(answer: Callable) -> None:
    first, last = answer(2, 8, BASE)[1, [0, 6]].tolist()
    if abs(last) > 0.05:
        raise Wrong(
            f"From position 0 to 1 the first sine goes to {first:.3g} and the last one to {last:.3g}; the last must "
            "hardly move: divide by 10000^(2i/d), so that later pairs turn more slowly."
        )


table = Exercise(
    id="5.1",
    title="sinusoidal table",
    reference=sinusoidal,
    checks=Ladder(
        sinusoidal,
        [(7, 8, BASE), (1, 2, BASE), (5, 10, 100.0), (20, 6)],
        returns=["the table"],
        differentiable=False,
        slips=[
            (
                lambda length, d, base=BASE: sinusoidal(d, length + length % 2, base).T[:length],
                "Rows and columns are swapped: one row for each position, one column for each entry.",
            ),
            *edits(
                sinusoidal,
                """
                torch.stack → torch.cat ; dim=-1).flatten(1) → dim=1)
                    · All sines come first, then all cosines; here they take turns: sine at 2i, cosine at 2i + 1.
                angles.sin(), angles.cos() → angles.cos(), angles.sin()
                    · Sine and cosine are swapped: the sine is at 2i.
                angles.cos() → angles.sin() · The cosine is missing: sine at 2i, cosine at 2i + 1.
                (-torch → (torch
                    · The angle is the position TIMES 10000^(2i/d); divide by it: later pairs turn more slowly.
                (-torch.arange(0, d, 2) → (torch.arange(0, d, 2).double()
                    · The angle is the position TIMES 10000^(2i/d); divide by it: later pairs turn more slowly.
                torch.arange(0, d, 2) → torch.arange(d // 2)
                    · The exponent is i/d; it is 2i/d, with i = 0, 1, … d/2 − 1 the number of the pair.
                torch.arange(0, d, 2) → torch.arange(d) ;
                    angles.sin(), angles.cos() → angles[:, ::2].sin(), angles[:, 1::2].cos()
                    · Each entry has a frequency of its own; sine and cosine of a pair share one, that of the even
                    · entry.
                torch.arange(0, d, 2) → 2 * torch.arange(d) ;
                    angles.sin(), angles.cos() → angles[:, ::2].sin(), angles[:, 1::2].cos()
                    · i is the number of the pair, not of the entry: entries 2i and 2i + 1 share one frequency.
                torch.arange(0, d, 2) → 2 * torch.arange(0, d, 2)
                    · The exponent is 4i/d: does `torch.arange(0, d, 2)`, which is 2i already, meet another 2?
                torch.arange(length) → torch.arange(1, length + 1) · The positions start at 1; they start at 0.
                torch.arange(length) → 2 * torch.pi * torch.arange(length)
                    · The angles are 2π too large: this formula has no 2π (S3 prints one, and divides by it again).
                base ** → 10_000.0 ** · The base is fixed at 10000: use the argument `base`.
                .flatten(1) → .flatten(1).T
                    · Rows and columns are swapped: one row for each position, one column for each entry.
                .flatten(1) → · Each pair is a row of its own: `flatten` the last two dimensions.
                """,
            ),
        ],
        properties=[_starts_at_nothing, _slows_down],
    ),
    crashes=[
        ("must match the size", "Positions are rows and frequencies are columns: `positions[:, None] * frequencies`."),
    ],
    nudge="Make the d/2 frequencies first, then all angles at once: one row for each position. How do two tables of "
    "d/2 columns become one in which they take turns?",
    sketch="""
        exponents 2i:     0, 2, 4, … below d                      (d/2)
        frequencies:      base to the power of minus 2i/d          (d/2)
        angles:           each position times each frequency       (length, d/2)
        table:            stack sine and cosine as a new LAST dimension, then flatten the last two
        """,
)

# --- 5.2 ---


def _moves(answer: Callable) -> None:
    for k, d in ((3, 6), (5, 8)):
        positions = sinusoidal(20, d)
        moved = positions[:10] @ answer(k, d, BASE).T.float()
        if torch.allclose(moved, positions[k : k + 10], atol=1e-4):
            continue
        if torch.allclose(positions[k : k + 10] @ answer(k, d, BASE).T.float(), positions[:10], atol=1e-4):
            raise Wrong(f"It moves BACK by k: your M times PE(p + {k}) is PE(p). The minus belongs to the other sine.")
        gap = (moved - positions[k : k + 10]).abs().max().item()
        raise Wrong(f"M PE(p) must be PE(p + {k}) for every p; with d = {d} they differ by up to {gap:.3g}.")


shift = Exercise(
    id="5.2",
    title="the matrix of a step",
    reference=shift_matrix,
    checks=Ladder(
        shift_matrix,
        [(3, 6, BASE), (1, 2, BASE), (-2, 8, BASE), (4, 4, 100.0), (150, 6)],
        returns=["the matrix"],
        differentiable=False,
        tolerance=1e-4,  # in single precision an angle of 150 is known to about 1e-5
        slips=edits(
            shift_matrix,
            """
            torch.block_diag(*blocks) → blocks.permute(1, 2, 0).diag_embed().permute(0, 2, 1, 3).reshape(d, d)
                · The pairs are (i, i + d/2); in this table sine and cosine of a pair are neighbours: rows 2i, 2i + 1.
            [-sin, cos] → [sin, cos] · A minus is missing: cos(a + b) = cos a cos b − sin a sin b.
            [cos, sin] → [sin, cos] ; [-sin, cos] → [cos, -sin]
                · Sine and cosine are swapped inside the block: the diagonal holds cosines.
            sin, cos = → cos, sin =
                · Sine and cosine are swapped inside the block: the diagonal holds cosines.
            [cos, sin] → [cos, 0 * sin] ; [-sin, cos] → [0 * sin, cos]
                · Only the diagonal is there: the sine of the sum needs the cosine of the old angle too.
            base ** (-torch.arange(0, d, 2) / d) → torch.ones(d // 2)
                · Every pair is turned by the same angle k; pair i is turned by k · 10000^(−2i/d).
            k * base → base · k does not enter: the angle is k times the frequency.
            torch.arange(0, d, 2) → torch.arange(d // 2)
                · The exponent is i/d; it is 2i/d, with i the number of the pair.
            (-torch → (torch · The frequencies are upside down: 10000 to the power of MINUS 2i/d.
            (-torch.arange(0, d, 2) → (torch.arange(0, d, 2).double()
                · The frequencies are upside down: 10000 to the power of MINUS 2i/d.
            base ** → 10_000.0 ** · The base is fixed at 10000: use the argument `base`.
            k * base → abs(k) * base · A negative k must move back.
            """,
        ),
        properties=[_moves],
    ),
    nudge="Write sin(ω(p + k)) and cos(ω(p + k)) with the addition theorems. What multiplies sin(ωp), what cos(ωp)? "
    "That is a 2 × 2 block; each pair has one, and pairs do not mix.",
    sketch="""
        start from a (d, d) matrix of zeros
        for each pair i = 0 … d/2 − 1:
            a = k times the frequency of pair i
            row 2i     (the sine):    cos a at column 2i,   sin a at column 2i + 1
            row 2i + 1 (the cosine): −sin a at column 2i,   cos a at column 2i + 1
        """,
)

# --- 5.3 ---

HEADS = [(5, 16, 3, 60.0), (3, 12, 1, 150.0), (4, 8, 6, 20.0), (2, 10, 0, 40.0)]  # symbols, d, back, sharpness
TOKENS = 24  # of the text that the head is tried on


def _text(symbols: int, d: int, seed: int) -> tuple[Tensor, Tensor]:
    """Random symbols (TOKENS), and their tokens: one-hot symbol, then position (TOKENS, symbols + d)."""
    ids = torch.randint(symbols, (TOKENS,), generator=torch.Generator().manual_seed(seed))
    return ids, torch.cat([F.one_hot(ids, symbols).float(), sinusoidal(TOKENS, d)], dim=1)


def _three_matrices(answer: Callable) -> None:
    for case in HEADS:
        got, (symbols, d, _, _) = answer(*case), case
        if not isinstance(got, tuple | list) or len(got) != 3 or not all(isinstance(W, Tensor) for W in got):
            raise Wrong("Expected three tensors to be returned: W_Q, W_K and W_V.")
        for name, W, rows in zip(("W_Q", "W_K", "W_V"), got, (d, d, symbols), strict=True):
            if W.shape != (rows, symbols + d):
                turned = W.shape == (symbols + d, rows)
                why = "Rows and columns are swapped: a query is W_Q x, not x W_Q." if turned else ""
                raise Wrong(
                    f"With {symbols} symbols and d = {d}, expected {name} of shape {(rows, symbols + d)}; "
                    f"got {tuple(W.shape)}. {why}".strip()
                )
            if W.dtype != torch.float32:
                raise Wrong(f"Tokens are torch.float32, and {name} is {W.dtype}: a product needs one type, `.float()`.")


def _scores(answer: Callable, case: tuple, x: Tensor) -> Tensor:
    """What each query scores with each key, before the division by √d: (TOKENS, TOKENS)."""
    W_Q, W_K, _ = answer(*case)
    return (x @ W_Q.T) @ (x @ W_K.T).T


def _looks_back(answer: Callable) -> None:
    for case in HEADS:
        symbols, d, back, _ = case
        scores, others = (_scores(answer, case, _text(symbols, d, seed)[1]) for seed in (0, 1))
        if not torch.allclose(scores, others, atol=1e-2, rtol=1e-3):
            raise Wrong("With other symbols in the text the scores change: only the places may count for them.")
        best, places = scores.argmax(dim=1), torch.arange(TOKENS)
        asked = places >= back
        if (best == places - back)[asked].all():
            continue
        wanted = torch.eye(TOKENS)[(places - back).clamp(min=0)]
        if back and (best == places + back)[: TOKENS - back].all():
            raise Wrong(
                f"It looks {back} places AHEAD: {back} back is a shift by −{back}. Or are W_Q and W_K exchanged?",
                wanted,
                scores,
            )
        if back and (best == places).all():
            raise Wrong("Each place looks at itself: the query must ask for another row than its own.", wanted, scores)
        p = int(places[asked][(best != places - back)[asked]][0])
        raise Wrong(
            f"With back = {back} the query of place {p} must score highest with the key of place {p - back}; "
            f"yours does with that of place {int(best[p])}.",
            wanted,
            scores,
        )


def _as_sharp_as_asked(answer: Callable) -> None:
    for case in HEADS:
        symbols, d, back, sharpness = case
        _, x = _text(symbols, d, 0)
        given, wanted = (_scores(head, case, x)[back:] for head in (answer, look_back_head))
        given, wanted = (part - part.mean(dim=1, keepdim=True) for part in (given, wanted))  # a softmax is the same
        if torch.allclose(given, wanted, atol=1e-2, rtol=1e-3):
            continue
        ratio = ((given * wanted).sum() / (wanted * wanted).sum()).item()
        if not torch.allclose(given, ratio * wanted, atol=1e-2, rtol=1e-2):
            raise Wrong(
                "It looks at the right place, but the scores are not `sharpness` times (row p − back) · (row s) of the "
                "table: are all pairs used, each as it is?"
            )
        why = ""
        if math.isclose(ratio, sharpness, rel_tol=0.01):
            why = "`sharpness` enters twice: give it to W_Q or to W_K."
        elif math.isclose(ratio, 1 / sharpness, rel_tol=0.01):
            why = "`sharpness` does not enter."
        raise Wrong(f"It looks at the right place, but its scores are {ratio:.3g} times those asked for. {why}".strip())


def _hands_on(answer: Callable) -> None:
    for case in HEADS:
        symbols, d, *_ = case
        ids, x = _text(symbols, d, 0)
        values = x @ answer(*case)[2].T  # (TOKENS, symbols)
        if not torch.allclose(values, F.one_hot(ids, symbols).float(), atol=1e-4):
            raise Wrong(
                "The head looks where it should, but hands on something else: W_V x must be the symbol alone, as a "
                "one-hot vector."
            )


by_hand = Exercise(
    id="5.3",
    title="a head that looks back, by hand",
    reference=look_back_head,
    checks=[signature_check(look_back_head), _three_matrices, _looks_back, _as_sharp_as_asked, _hands_on],
    crashes=[
        (
            "Sizes of tensors must match",
            "Parts that stand side by side need equally many rows: what turns symbols into queries is (d, symbols).",
        ),
    ],
    nudge="A key can be the row of its own place, s. Two rows of the table have the largest product when they are the "
    "same row. So which row of the table should the query of place p be, and which matrix makes it from row p?",
    sketch="""
        each matrix has two parts side by side: columns for the symbol, columns for the place
        W_K: zeros for the symbol, the unit matrix for the place           a key is its row of the table
        W_Q: zeros for the symbol, for the place the matrix that moves by −back, times sharpness
        W_V: the unit matrix for the symbol, zeros for the place
        """,
)

# --- 5.4 ---


def _rotate_cases() -> list[tuple]:
    cases = []
    for seed, shape in enumerate(((2, 3, 5, 8), (4, 6), (1, 2, 3, 1, 2))):
        generator = torch.Generator().manual_seed(seed)
        angles = 3 * torch.rand(shape[-2], shape[-1] // 2, generator=generator)
        cases.append((torch.randn(shape, generator=generator), angles.cos(), angles.sin()))
    return cases


def _angles_side_by_side(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    cos, sin = (angles.repeat_interleave(2, dim=-1) for angles in (cos, sin))
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def _keeps_lengths(answer: Callable) -> None:
    for x, cos, sin in _rotate_cases():
        before, after = x.norm(dim=-1), answer(x, cos, sin).norm(dim=-1)
        if not torch.allclose(before, after, atol=1e-4):
            raise Wrong(
                "A turned vector must keep its norm; yours changes "
                f"{before.flatten()[0].item():.4g} into {after.flatten()[0].item():.4g}."
            )


turn = Exercise(
    id="5.4",
    title="rotary positions",
    reference=rotate,
    checks=Ladder(
        rotate,
        _rotate_cases(),
        returns=["the turned x"],
        slips=[
            (
                _angles_side_by_side,
                "Each angle stands beside itself, but a pair is (i, i + d/2): put cos and sin twice one behind the "
                "other, `torch.cat([cos, cos], dim=-1)`.",
            ),
            *edits(
                rotate,
                """
                x.chunk(2, dim=-1) → (x[..., ::2], x[..., 1::2]) ; torch.cat → torch.stack ;
                    cos], dim=-1) → cos], dim=-1).flatten(-2)
                    · A pair is (i, i + d/2), as in the Hugging Face code of Llama, not (2i, 2i + 1), as in the paper.
                cos - second * sin, first * sin + second * cos → cos + second * sin, second * cos - first * sin
                    · It turns the other way round: the minus belongs to the first half, first · cos − second · sin.
                cos - second → cos + second
                    · A minus is missing: the first half becomes first · cos − second · sin.
                cos - second * sin, first * sin + second * cos → sin - second * cos, first * cos + second * sin
                    · cos and sin are swapped: with an angle of 0 (cos 1, sin 0) nothing may move.
                cos - second * sin, first * sin + second * cos → cos, second * sin
                    · The halves are scaled, not turned: each new half is made of both old ones.
                cos - second * sin, first * sin + second * cos → cos, second * cos
                    · Only the cosine is used: each new half is made of both old ones.
                first * sin + → (first * cos - second * sin) * sin +
                    · The second half is made from the NEW first half: keep the old one until both are done.
                cos - second * sin, first * sin + → sin + second * cos, first * cos - ; second * cos] → second * sin]
                    · The two halves are joined in the wrong order: first · cos − second · sin comes first.
                torch.cat → torch.stack ; cos], dim=-1) → cos], dim=-1).flatten(-2)
                    · The turned halves are interleaved; put them one behind the other, as they came: `torch.cat`.
                torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1) →
                    x * torch.cat([cos, cos], dim=-1) +
                    torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2) * torch.cat([sin, sin], dim=-1)
                    · The angles are laid out for pairs (i, i + d/2), but neighbours change places in x: turn its
                    · halves, `torch.cat([-second, first], dim=-1)`.
                torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1) → x
                    · This is x as it came in: turn it.
                """,
            ),
        ],
        properties=[_keeps_lengths],
    ),
    crashes=[
        (
            "must match the size",
            "cos and sin have d/2 columns, one for each pair: cut x into halves along its LAST dimension, and multiply "
            "those by them.",
        ),
    ],
    nudge="Cut x into its two halves along the last dimension: entry i of the first and entry i of the second are a "
    "pair, a point in the plane. Turning a point (a, b) by an angle gives (a cos − b sin, a sin + b cos).",
    sketch="""
        first, second = the two halves of x along its last dimension      (…, length, d/2)
        new first  = first times cos − second times sin
        new second = first times sin + second times cos
        put the two behind each other along the last dimension
        """,
)

# --- 5.5 ---


def _never_above_zero(answer: Callable) -> None:
    bias = answer(4, 5, 5)
    if bias.max() > 0:
        raise Wrong("Some entries are above 0: a far key must be punished, so the bias falls below 0 with distance.")
    if bias[:, range(5), range(5)].abs().max() > 0:
        raise Wrong("A query and the key at its own place have distance 0, so the bias there must be 0.")


def _fractions(answer: Callable) -> None:
    bias = answer(4, 5, 5)
    if not bias.is_floating_point():
        raise Wrong(
            f"The slopes are fractions of 1, but the bias holds whole numbers, {bias.dtype}: is there a `//` for a "
            "`/`, or a 2 for a 2.0?"
        )


WHOLE_EXPONENTS = "−8h/H is not always a whole number (with 16 heads it is not): divide with `/`, not with `//`."
lower = Exercise(
    id="5.5",
    title="ALiBi",
    reference=alibi,
    checks=Ladder(
        alibi,
        [(4, 5, 5, None), (8, 2, 6, None), (1, 3, 3, None), (2, 1, 7, None), (16, 2, 3, None)],
        returns=["the bias"],
        differentiable=False,
        slips=edits(
            alibi,
            f"""
            distance.clamp(max=0) → torch.where(distance > 0, -torch.inf, distance)
                · Keys ahead of the query get −∞; here they get 0: to hide them is the causal mask's work.
            return slopes → return -slopes
                · The sign is wrong: far keys are favoured. The bias is MINUS slope times distance.
            distance.clamp(max=0) → -1.0 * (distance < 0)
                · The bias does not grow with the distance: multiply the slope by it.
            distance.clamp(max=0) → -distance.abs()
                · Keys ahead of the query are punished too; they get 0: a causal mask hides them anyway.
            .clamp(max=0) → · Keys ahead of the query get a bonus; they get 0: a causal mask hides them anyway.
            torch.arange(1, heads + 1, → torch.arange(heads,
                · The first slope is 1: the heads count from 1, so m_1 = 2^(−8/H).
            -8.0 → -1.0 * heads · The slopes are 1/2, 1/4, … whatever the number of heads; that is right for 8 heads
                · only: 2^(−8h/H).
            slopes[ → slopes.flip(0)[ · The heads are in reverse order: head 1 has the steepest slope.
            -8.0 → 8.0 · The slopes grow from head to head: the exponent is MINUS 8h/H.
            -8.0 * → -8.0 / ; / heads) → )
                · The exponent is −8/h; it is −8h/H, with H the number of heads.
            -8.0 → 0.0 · All heads have the slope 1; head h has 2^(−8h/H).
            / heads) → // heads) · {WHOLE_EXPONENTS}
            / heads) → ) ; -8.0 * → -(8.0 // heads) * · {WHOLE_EXPONENTS}
            keys_at[keys - queries :, None] → keys_at[:queries, None]
                · With fewer queries than keys, the LAST query is the last key: the first one stands at keys − queries.
            keys_at - keys_at[keys - queries :, None] → keys_at[:queries, None] - keys_at
                · Queries and keys are swapped: rows are queries, columns are keys.
            distance.clamp(max=0) → distance.clamp(max=0).T
                · The last two dimensions are swapped: (heads, queries, keys), rows are queries, columns are keys.
            slopes[:, None, None] * distance.clamp(max=0) → slopes * distance.clamp(max=0)[..., None]
                · The heads come first: (heads, queries, keys).
            """,
        ),
        properties=[_never_above_zero],
    )
    .extended(_fractions, before="dtypes")
    .extended(device_check(4, 3, 5)),
    crashes=[
        (
            "must match the size",
            "The slopes need two more dimensions, to meet every query and key: `slopes[:, None, None]`, (heads, 1, 1).",
        ),
    ],
    nudge="Two small tables and one product: a slope for each head, (heads, 1, 1), and minus the distance for each "
    "query and key, (queries, keys). Where does query 0 stand if the last query stands at the last key?",
    sketch="""
        slopes: 2 to the power of −8h/H for h = 1 … H                            (heads)
        places of the keys: 0 … keys − 1; of the queries: keys − queries … keys − 1
        distance: place of the key − place of the query: 0 or less in the past    (queries, keys)
        what is ahead (above 0) becomes 0
        return slopes, as (heads, 1, 1), times that
        """,
)

# --- 5.6 ---


def _whole_turns(answer: Callable) -> None:
    near = answer(torch.tensor([5, 6, 10, 15, 17, 25]), 5, 10.0, 0.1)
    if near.dtype != torch.bool:
        raise Wrong(f"Expected True or False each, a tensor of torch.bool; yours is {near.dtype}.")
    if near.tolist() != [True, False, False, True, False, True]:
        raise Wrong(
            "A hand that goes round in 10 places stands alike at distances 5, 15 and 25, and elsewhere at 6, 10, 17; "
            f"yours says of 5, 6, 10, 15, 17, 25: {', '.join(map(str, near.tolist()))}."
        )


def _short_of_a_turn(answer: Callable) -> None:
    if answer(torch.tensor([1, 6, 11]), 0, 12.0, 0.6).tolist() == [True, False, False]:
        raise Wrong(
            "Just short of a whole turn the hand is near, too: with period 12, back 0 and within 0.6 the distance 11 "
            "is 0.52 radians short of one, but yours says False."
        )


HANDS = [
    (torch.arange(32, 193), 2, 2 * math.pi, 0.5),
    (torch.arange(40), 3, 12.0, 0.6),
    (torch.arange(40), 0, 12.0, 0.6),
    (torch.arange(5, 80), 12, 19.87, 1.0),
    (torch.arange(60).reshape(3, 20), 7, 11.0, 0.3),
]


def _each_distance(answer: Callable) -> None:
    for distance, back, period, within in HANDS:
        wanted, got = hand_returns(distance, back, period, within), answer(distance, back, period, within)
        if (wanted == got).all():
            continue
        one = distance[wanted != got][0].item()
        turns = (one - back) / period
        away = 2 * math.pi * abs(turns - round(turns))
        raise Wrong(
            f"With period {period:.4g}, back {back} and within {within:g}: at distance {one} the hand stands "
            f"{away:.2f} radians from where it stands at {back}, so the answer "
            f"is {away < within}; yours says {away >= within}."
        )


returns = Exercise(
    id="5.6",
    title="when a hand comes back",
    reference=hand_returns,
    checks=Ladder(
        hand_returns,
        HANDS,
        returns=["the answers"],
        differentiable=False,
        slips=edits(
            hand_returns,
            """
            turns.round() → turns.floor()
                · 0.95 of a turn is 0.05 short of a whole one: take off the NEAREST whole number of turns, `round`.
            turns.round() → turns.ceil()
                · 1.05 turns are 0.05 more than a whole one: take off the NEAREST whole number of turns, `round`.
            turns - turns.round() → turns
                · After a whole turn the hand stands where it stood: take off the whole turns.
            .abs() →
                · A hand a little BEHIND stands near, as one a little ahead does; far behind is not near: `abs`.
            2 * math.pi * ( → ( · This compares a share of a turn; `within` is an angle, and a whole turn is 2π.
            2 * math.pi * ( → math.pi * ( · A whole turn is 2π, not π.
            2 * math.pi * ( → period * (
                · This counts places; `within` is an angle, and one place is 2π / period radians.
            2 * math.pi * ( → 360 * ( · `within` is in radians, not in degrees: a whole turn is 2π.
            (distance - back) → distance
                · `back` does not enter: where the hand stands at distance `back` is what counts, not at 0.
            (distance - back) → (distance + back)
                · Distances are counted from −`back` on; how many places lie between `distance` and `back`?
            / period → * period · In `period` places the hand turns once: divide by the period.
            / period → / (2 * math.pi)
                · `period` does not enter: this hand goes round in 2π places, whatever is asked for.
            (distance - back) / period → (distance - back) // period
                · `//` forgets the part of a turn, and the part is what counts: divide with `/`.
            < within → > within · True and False are swapped: True where the hand stands near.
            < within → < within / 2 · `within` counts to each side, not for both together.
            """,
        ),
        properties=[_whole_turns, _short_of_a_turn, _each_distance],
    ),
    nudge="How many turns has the hand made between distance `back` and this one? Whole turns do not count: what is "
    "left of it, to the nearest whole number, as an angle?",
    sketch="""
        turns = (distance − back) / period
        part  = turns minus the nearest whole number, without its sign      (at most half a turn)
        return whether 2π times that part is below `within`
        """,
)

EXERCISES = [table, shift, by_hand, turn, lower, returns]
