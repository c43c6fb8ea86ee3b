"""Exercises of lesson 05: the sinusoidal table and its shift, rotary positions, ALiBi, a probe."""

from collections.abc import Callable

import torch

from course_lib.lab.grading import Exercise, Wrong
from course_lib.lab.ladder import Ladder, device_check, edits
from course_lib.measure.probes import linear_probe
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
    title="the map that moves by k",
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
                "A turned vector must keep its length; yours changes "
                f"{before.flatten()[0].item():.4g} into {after.flatten()[0].item():.4g}."
            )


turn = Exercise(
    id="5.3",
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
                    · The pairs are neighbours (2i, 2i + 1), as in the paper; here, as in Llama, a pair is (i, i + d/2).
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

# --- 5.4 ---


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
    id="5.4",
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

# --- 5.5 ---


def _probe_cases() -> list[tuple]:
    cases = []
    for seed, (n, d, classes, penalty) in enumerate(((30, 4, 3, 1.0), (9, 6, 5, 0.5), (20, 2, 2, 3.0))):
        generator = torch.Generator().manual_seed(seed)
        labels = torch.randint(classes - 1, (n,), generator=generator)  # the last class never occurs
        cases.append((torch.randn(n, d, generator=generator) + 0.5, labels, classes, penalty))
    return [*cases, cases[1][:3]]  # the penalty by default


probe = Exercise(
    id="5.5",
    title="position probe",
    reference=linear_probe,
    checks=Ladder(
        linear_probe,
        _probe_cases(),
        returns=["the weights"],
        differentiable=False,
        tolerance=1e-3,
        slips=edits(
            linear_probe,
            """
            torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1) → hidden
                · The bias is missing: give X a last column of ones.
            hidden, torch.ones_like(hidden[:, :1]) → torch.ones_like(hidden[:, :1]), hidden
                · The column of ones stands first; put it last, so that the bias is the last row of the weights.
            X + ridge → X · The penalty does not enter: add λ to the diagonal of XᵀX.
            penalty * torch → torch · The penalty is always 1: use the argument `penalty`.
            X + ridge → X + penalty
                · λ is added to every entry of XᵀX; add it to the diagonal only: λ times `torch.eye`.
            X + ridge → X + ridge * (torch.arange(len(ridge)) < len(ridge) - 1)
                · The bias goes free of the penalty. That is often wise; here λ is on all of the diagonal.
            X + ridge → X - ridge · The penalty is subtracted: add it.
            penalty * torch → penalty**2 * torch · The penalty is squared: add λ itself.
            penalty * torch → len(X) * penalty * torch
                · The penalty is multiplied by the number of rows: add λ itself.
            F.one_hot(labels, classes) → labels[:, None]
                · It predicts the label's number; give each class a column of its own (`F.one_hot`).
            F.one_hot(labels, classes) → F.one_hot(labels)
                · There must be a column for each of the `classes`, also for those that no label has.
            F.one_hot(labels, classes) → (2 * F.one_hot(labels, classes) - 1)
                · The targets are 1 and −1; here they are 1 and 0.
            X.T @ Y) → X.T @ Y).T
                · Rows and columns are swapped: (d + 1, classes), so that `X @ W` gives the scores.
            torch.linalg.solve(X.T @ X + ridge, X.T @ Y) → 1 / (X.T @ X + ridge) @ X.T @ Y
                · `1 / A` turns over each entry; A⁻¹ is the inverse of the matrix: `torch.linalg.solve(A, B)`.
            X.shape[1], → len(X), ; X.T @ X + ridge, X.T @ Y → X @ X.T + ridge, Y
                · X Xᵀ is (n, n), a row for each example; XᵀX is (d + 1, d + 1), and W = A⁻¹ Xᵀ Y.
            """,
        ),
    ),
    crashes=[
        ("index tensor", "`F.one_hot` wants whole numbers: give it the labels as they are."),
        ("!= long int", "`F.one_hot` gives whole numbers: turn them into the type of `hidden`, `.to(hidden.dtype)`."),
        ("Long", "`F.one_hot` gives whole numbers: turn them into the type of `hidden`, `.to(hidden.dtype)`."),
        (
            "same dtype",
            "Two kinds of floating-point numbers meet: make what you build, such as Y, of the type of `hidden`: "
            "`.to(hidden.dtype)`.",
        ),
        ("cannot be multiplied", "Two products are needed, XᵀX (d + 1, d + 1) and XᵀY (d + 1, classes): `X.T @ …`."),
    ],
    nudge="Two matrices, X (n, d + 1) and Y (n, classes), and one formula. `torch.linalg.solve(A, B)` gives A⁻¹ B.",
    sketch="""
        X = hidden with a last column of ones                              (n, d + 1)
        Y = one row for each label: 1 at its class, 0 elsewhere            (n, classes), in the type of X
        A = X transposed times X, plus penalty times the identity          (d + 1, d + 1)
        B = X transposed times Y                                           (d + 1, classes)
        return the solution W of A W = B
        """,
)

EXERCISES = [table, shift, turn, lower, probe]
