"""Exercises of lesson 05: the sinusoidal table and its shift, rotary positions, ALiBi, a probe."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.checks import Exercise, Wrong, device_check, function_checks
from course_lib.positions import alibi, rotate, shift_matrix, sinusoidal
from course_lib.probes import linear_probe

BASE = 10_000.0


# --- 5.1 ---


def _table_variant(
    exponent: Callable = lambda i, d: -2 * i / d,
    place: Callable = lambda p: p,
    functions: tuple = (torch.sin, torch.cos),
    join: str = "pairs",
    factor: float = 1.0,
) -> Callable:
    """A sinusoidal table with one thing changed; for slips. i counts the pairs."""

    def table(length: int, d: int, base: float = BASE) -> Tensor:
        i, p = torch.arange(d // 2).double(), place(torch.arange(length).double())
        angles = factor * p[:, None] * base ** exponent(i, d)
        parts = [function(angles) for function in functions]
        return torch.stack(parts, dim=-1).flatten(1) if join == "pairs" else torch.cat(parts, dim=1)

    return table


def _each_entry_its_own(length: int, d: int, base: float = BASE) -> Tensor:
    """2i is taken as the entry itself: sine and cosine of a pair have different frequencies."""
    j = torch.arange(d).double()
    angles = torch.arange(length).double()[:, None] * base ** (-j / d)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


def _each_entry_twice(length: int, d: int, base: float = BASE) -> Tensor:
    """The entry's number is put in for i: the exponent is 2j/d for entry j."""
    j = torch.arange(d).double()
    angles = torch.arange(length).double()[:, None] * base ** (-2 * j / d)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


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
    checks=function_checks(
        sinusoidal,
        [(7, 8, BASE), (1, 2, BASE), (5, 10, 100.0), (20, 6)],
        returns=["the table"],
        differentiable=False,
        slips=[
            (
                _table_variant(join="halves"),
                "All sines come first, then all cosines; here they take turns: sine at 2i, cosine at 2i + 1.",
            ),
            (_table_variant(functions=(torch.cos, torch.sin)), "Sine and cosine are swapped: the sine is at 2i."),
            (_table_variant(functions=(torch.sin, torch.sin)), "The cosine is missing: sine at 2i, cosine at 2i + 1."),
            (
                _table_variant(exponent=lambda i, d: 2 * i / d),
                "The angle is the position TIMES 10000^(2i/d); divide by it: later pairs turn more slowly.",
            ),
            (
                _table_variant(exponent=lambda i, d: -i / d),
                "The exponent is i/d; it is 2i/d, with i = 0, 1, … d/2 − 1 the number of the pair.",
            ),
            (
                _each_entry_its_own,
                "Each entry has a frequency of its own; sine and cosine of a pair share one, that of the even entry.",
            ),
            (
                _each_entry_twice,
                "i is the number of the pair, not of the entry: entries 2i and 2i + 1 share one frequency.",
            ),
            (
                _table_variant(exponent=lambda i, d: -4 * i / d),
                "The exponent is 4i/d: does `torch.arange(0, d, 2)`, which is 2i already, meet another 2?",
            ),
            (_table_variant(place=lambda p: p + 1), "The positions start at 1; they start at 0."),
            (
                _table_variant(factor=2 * math.pi),
                "The angles are 2π too large: this formula has no 2π (S3 prints one, and divides by it again).",
            ),
            (
                lambda length, d, base=BASE: sinusoidal(length, d),
                "The base is fixed at 10000: use the argument `base`.",
            ),
            (
                lambda length, d, base=BASE: sinusoidal(d, length + length % 2, base).T[:length],
                "Rows and columns are swapped: one row for each position, one column for each entry.",
            ),
            (
                lambda length, d, base=BASE: sinusoidal(length, d, base).T,
                "Rows and columns are swapped: one row for each position, one column for each entry.",
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


def _shift_variant(
    block: Callable = lambda s, c: ((c, s), (-s, c)),
    angle: Callable = lambda k, i, d, base: k * base ** (-2 * i / d),
    halves: bool = False,
) -> Callable:
    """A shift matrix with one thing changed; for slips."""

    def shift(k: int, d: int, base: float = BASE) -> Tensor:
        matrix = torch.zeros(d, d, dtype=torch.double)
        for i in range(d // 2):
            a = angle(k, i, d, base)
            rows = (i, i + d // 2) if halves else (2 * i, 2 * i + 1)
            for r, line in zip(rows, block(math.sin(a), math.cos(a)), strict=True):
                for c, entry in zip(rows, line, strict=True):
                    matrix[r, c] = entry
        return matrix

    return shift


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
    checks=function_checks(
        shift_matrix,
        [(3, 6, BASE), (1, 2, BASE), (-2, 8, BASE), (4, 4, 100.0), (150, 6)],
        returns=["the matrix"],
        differentiable=False,
        slips=[
            (
                _shift_variant(halves=True),
                "The pairs are (i, i + d/2); in this table sine and cosine of a pair are neighbours: rows 2i, 2i + 1.",
            ),
            (
                _shift_variant(block=lambda s, c: ((c, s), (s, c))),
                "A minus is missing: cos(a + b) = cos a cos b − sin a sin b.",
            ),
            (
                _shift_variant(block=lambda s, c: ((s, c), (c, -s))),
                "Sine and cosine are swapped inside the block: the diagonal holds cosines.",
            ),
            (
                _shift_variant(block=lambda s, c: ((c, 0), (0, c))),
                "Only the diagonal is there: the sine of the sum needs the cosine of the old angle too.",
            ),
            (
                _shift_variant(angle=lambda k, i, d, base: k),
                "Every pair is turned by the same angle k; pair i is turned by k · 10000^(−2i/d).",
            ),
            (
                _shift_variant(angle=lambda k, i, d, base: base ** (-2 * i / d)),
                "k does not enter: the angle is k times the frequency.",
            ),
            (
                _shift_variant(angle=lambda k, i, d, base: k * base ** (-i / d)),
                "The exponent is i/d; it is 2i/d, with i the number of the pair.",
            ),
            (
                _shift_variant(angle=lambda k, i, d, base: k * base ** (2 * i / d)),
                "The frequencies are upside down: 10000 to the power of MINUS 2i/d.",
            ),
            (
                lambda k, d, base=BASE: shift_matrix(k, d),
                "The base is fixed at 10000: use the argument `base`.",
            ),
            (
                lambda k, d, base=BASE: shift_matrix(abs(k), d, base),
                "A negative k must move back.",
            ),
        ],
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


def _rotate_variant(pairs: str = "halves", turn: Callable = lambda a, b, c, s: (a * c - b * s, a * s + b * c)):
    """`rotate` with one thing changed; for slips."""

    def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1) if pairs == "halves" else (x[..., ::2], x[..., 1::2])
        first, second = turn(a, b, cos, sin)
        return torch.cat([first, second], -1) if pairs == "halves" else torch.stack([first, second], -1).flatten(-2)

    return rotated


def _rotate_cases() -> list[tuple]:
    cases = []
    for seed, shape in enumerate(((2, 3, 5, 8), (4, 6), (1, 2, 3, 1, 2))):
        generator = torch.Generator().manual_seed(seed)
        angles = 3 * torch.rand(shape[-2], shape[-1] // 2, generator=generator)
        cases.append((torch.randn(shape, generator=generator), angles.cos(), angles.sin()))
    return cases


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
    checks=function_checks(
        rotate,
        _rotate_cases(),
        returns=["the turned x"],
        slips=[
            (
                _rotate_variant(pairs="neighbours"),
                "The pairs are neighbours (2i, 2i + 1), as in the paper; here, as in Llama, a pair is (i, i + d/2).",
            ),
            (
                _rotate_variant(turn=lambda a, b, c, s: (a * c + b * s, b * c - a * s)),
                "It turns the other way round: the minus belongs to the first half, first · cos − second · sin.",
            ),
            (
                _rotate_variant(turn=lambda a, b, c, s: (a * c + b * s, a * s + b * c)),
                "A minus is missing: the first half becomes first · cos − second · sin.",
            ),
            (
                _rotate_variant(turn=lambda a, b, c, s: (a * s - b * c, a * c + b * s)),
                "cos and sin are swapped: with an angle of 0 (cos 1, sin 0) nothing may move.",
            ),
            (
                _rotate_variant(turn=lambda a, b, c, s: (a * c, b * s)),
                "The halves are scaled, not turned: each new half is made of both old ones.",
            ),
            (
                _rotate_variant(turn=lambda a, b, c, s: (a * c, b * c)),
                "Only the cosine is used: each new half is made of both old ones.",
            ),
            (
                _rotate_variant(turn=lambda a, b, c, s: (a * c - b * s, (a * c - b * s) * s + b * c)),
                "The second half is made from the NEW first half: keep the old one until both are done.",
            ),
            (
                _rotate_variant(turn=lambda a, b, c, s: (a * s + b * c, a * c - b * s)),
                "The two halves are joined in the wrong order: first · cos − second · sin comes first.",
            ),
            (
                lambda x, cos, sin: torch.stack(rotate(x, cos, sin).chunk(2, dim=-1), dim=-1).flatten(-2),
                "The turned halves are interleaved; put them one behind the other, as they came: `torch.cat`.",
            ),
            (lambda x, cos, sin: x, "This is x as it came in: turn it."),
        ],
        properties=[_keeps_lengths],
    ),
    crashes=[
        (
            "must match the size",
            "cos and sin have d/2 columns, one for each pair: multiply the two halves of x by them, not x itself.",
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


def _alibi_variant(
    slopes: Callable = lambda h: 2.0 ** (-8.0 * torch.arange(1, h + 1) / h),
    distance: Callable = lambda q, k: torch.arange(k) - torch.arange(k - q, k)[:, None],
    ahead: Callable = lambda distance: distance.clamp(max=0),
) -> Callable:
    """`alibi` with one thing changed; for slips."""
    return lambda heads, queries, keys, device=None: slopes(heads)[:, None, None] * ahead(distance(queries, keys))


def _never_above_zero(answer: Callable) -> None:
    bias = answer(4, 5, 5)
    if bias.max() > 0:
        raise Wrong("Some entries are above 0: a far key must be punished, so the bias falls below 0 with distance.")
    if bias[:, range(5), range(5)].abs().max() > 0:
        raise Wrong("A query and the key at its own place have distance 0, so the bias there must be 0.")


_bias_checks = [
    *function_checks(
        alibi,
        [(4, 5, 5, None), (8, 2, 6, None), (1, 3, 3, None), (2, 1, 7, None)],
        returns=["the bias"],
        differentiable=False,
        slips=[
            (
                _alibi_variant(ahead=lambda t: torch.where(t > 0, -torch.inf, t)),
                "Keys ahead of the query get −∞; here they get 0: to hide them is the causal mask's work.",
            ),
            (
                _alibi_variant(ahead=lambda t: -t.clamp(max=0)),
                "The sign is wrong: far keys are favoured. The bias is MINUS slope times distance.",
            ),
            (
                _alibi_variant(ahead=lambda t: t.clamp(max=0).bool() * -1.0),
                "The bias does not grow with the distance: multiply the slope by it.",
            ),
            (
                _alibi_variant(ahead=lambda t: -t.abs()),
                "Keys ahead of the query are punished too; they get 0: a causal mask hides them anyway.",
            ),
            (
                _alibi_variant(ahead=lambda t: t),
                "Keys ahead of the query get a bonus; they get 0: a causal mask hides them anyway.",
            ),
            (
                _alibi_variant(slopes=lambda h: 2.0 ** (-8.0 * torch.arange(h) / h)),
                "The first slope is 1: the heads count from 1, so m_1 = 2^(−8/H).",
            ),
            (
                _alibi_variant(slopes=lambda h: 2.0 ** (-1.0 * torch.arange(1, h + 1))),
                "The slopes are 1/2, 1/4, … whatever the number of heads; that is right for 8 heads only: 2^(−8h/H).",
            ),
            (
                _alibi_variant(slopes=lambda h: (2.0 ** (-8.0 * torch.arange(1, h + 1) / h)).flip(0)),
                "The heads are in reverse order: head 1 has the steepest slope.",
            ),
            (
                _alibi_variant(slopes=lambda h: 2.0 ** (8.0 * torch.arange(1, h + 1) / h)),
                "The slopes grow from head to head: the exponent is MINUS 8h/H.",
            ),
            (
                _alibi_variant(slopes=lambda h: 2.0 ** (-8.0 / torch.arange(1, h + 1))),
                "The exponent is −8/h; it is −8h/H, with H the number of heads.",
            ),
            (
                _alibi_variant(slopes=torch.ones),
                "All heads have the slope 1; head h has 2^(−8h/H).",
            ),
            (
                _alibi_variant(distance=lambda q, k: torch.arange(k) - torch.arange(q)[:, None]),
                "With fewer queries than keys, the LAST query is the last key: the first one stands at keys − queries.",
            ),
            (
                lambda heads, queries, keys, device=None: alibi(heads, keys, keys).transpose(1, 2)[:, :queries],
                "Queries and keys are swapped: rows are queries, columns are keys.",
            ),
            (
                lambda heads, queries, keys, device=None: alibi(heads, queries, keys).transpose(1, 2),
                "The last two dimensions are swapped: (heads, queries, keys), rows are queries, columns are keys.",
            ),
        ],
        properties=[_never_above_zero],
    ),
    device_check(4, 3, 5),
]

lower = Exercise(
    id="5.4",
    title="ALiBi",
    reference=alibi,
    checks=_bias_checks,
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


def _probe_variant(
    bias: Callable = lambda h: torch.cat([h, torch.ones_like(h[:, :1])], dim=1),
    ridge: Callable = lambda X, penalty: penalty * torch.eye(X.shape[1]),
    targets: Callable = lambda labels, classes: F.one_hot(labels, classes),
) -> Callable:
    """`linear_probe` with one thing changed; for slips."""

    def probe(hidden: Tensor, labels: Tensor, classes: int, penalty: float = 1.0) -> Tensor:
        X = bias(hidden).double()
        Y = targets(labels, classes).double()
        return torch.linalg.solve(X.T @ X + ridge(X, penalty).double(), X.T @ Y)

    return probe


def _probe_cases() -> list[tuple]:
    cases = []
    for seed, (n, d, classes, penalty) in enumerate(((30, 4, 3, 1.0), (9, 6, 5, 0.5), (20, 2, 2, 3.0))):
        generator = torch.Generator().manual_seed(seed)
        labels = torch.randint(classes - 1, (n,), generator=generator)  # the last class never occurs
        cases.append((torch.randn(n, d, generator=generator) + 0.5, labels, classes, penalty))
    return [*cases, cases[1][:3]]  # the penalty by default


def _free_bias(X: Tensor, penalty: float) -> Tensor:
    ridge = penalty * torch.eye(X.shape[1])
    ridge[-1, -1] = 0
    return ridge


probe = Exercise(
    id="5.5",
    title="position probe",
    reference=linear_probe,
    checks=function_checks(
        linear_probe,
        _probe_cases(),
        returns=["the weights"],
        differentiable=False,
        tolerance=1e-3,
        slips=[
            (_probe_variant(bias=lambda h: h), "The bias is missing: give X a last column of ones."),
            (
                _probe_variant(bias=lambda h: torch.cat([torch.ones_like(h[:, :1]), h], dim=1)),
                "The column of ones stands first; put it last, so that the bias is the last row of the weights.",
            ),
            (
                _probe_variant(ridge=lambda X, penalty: torch.zeros(X.shape[1], X.shape[1])),
                "The penalty does not enter: add λ to the diagonal of XᵀX.",
            ),
            (
                _probe_variant(ridge=lambda X, penalty: torch.eye(X.shape[1])),
                "The penalty is always 1: use the argument `penalty`.",
            ),
            (
                _probe_variant(ridge=lambda X, penalty: penalty * torch.ones(X.shape[1], X.shape[1])),
                "λ is added to every entry of XᵀX; add it to the diagonal only: λ times `torch.eye`.",
            ),
            (
                _probe_variant(ridge=_free_bias),
                "The bias goes free of the penalty. That is often wise; here λ is on all of the diagonal.",
            ),
            (
                _probe_variant(ridge=lambda X, penalty: penalty**2 * torch.eye(X.shape[1])),
                "The penalty is squared: add λ itself.",
            ),
            (
                _probe_variant(ridge=lambda X, penalty: len(X) * penalty * torch.eye(X.shape[1])),
                "The penalty is multiplied by the number of rows: add λ itself.",
            ),
            (
                _probe_variant(targets=lambda labels, classes: labels[:, None]),
                "It predicts the label's number; give each class a column of its own (`F.one_hot`).",
            ),
            (
                _probe_variant(targets=lambda labels, classes: F.one_hot(labels)),
                "There must be a column for each of the `classes`, also for those that no label has.",
            ),
            (
                _probe_variant(targets=lambda labels, classes: 2 * F.one_hot(labels, classes) - 1),
                "The targets are 1 and −1; here they are 1 and 0.",
            ),
            (
                lambda *arguments: linear_probe(*arguments).T,
                "Rows and columns are swapped: (d + 1, classes), so that `X @ W` gives the scores.",
            ),
        ],
    ),
    crashes=[
        ("applicable for index tensor", "`F.one_hot` wants whole numbers: give it the labels as they are."),
        ("!= long int", "`F.one_hot` gives whole numbers: turn them into the type of `hidden`, `.to(hidden.dtype)`."),
        ("Long", "`F.one_hot` gives whole numbers: turn them into the type of `hidden`, `.to(hidden.dtype)`."),
        (
            "same dtype",
            "Two kinds of floating-point numbers meet: the checks also use float64 for `hidden`. Make what you build, "
            "such as Y, of its type: `.to(hidden.dtype)` fits both, `.float()` is float32 always.",
        ),
        ("cannot be multiplied", "Two products are needed, XᵀX (d + 1, d + 1) and XᵀY (d + 1, classes): `X.T @ …`."),
        ("singular", "XᵀX alone may have no inverse: add the penalty to its diagonal."),
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
