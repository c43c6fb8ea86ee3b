"""The bank of lesson 05. An answer uses only what the notebook has imported (math, torch, nn)."""
# ruff: noqa: F811, RUF059

import math

import torch
from bank import Bank
from torch import nn

BANK = Bank()
wrong, right = BANK.wrong, BANK.right

# What a mutant of the library's piece changes, as its new line → why it is no mistake.
ODD = "the exercise promises an even d"
REFUSAL = "raise ValueError(f'Sinusoidal positions come in pairs of sine and cosine: d must be even; got {NAME}.')"
LAST = "of two dimensions, 1 is the last"
SAME = "the same type, or the same device"
EQUIVALENT = {
    "5.1": {
        f"without if d % 2: / {REFUSAL.replace('NAME', 'd')}": ODD,
        "if base % 2:": ODD,
        "if d % 1:": ODD,
        "raise f'Sinusoidal positions come in pairs of sine and cosine: d must be even; got {d}.'": ODD,
        **{REFUSAL.replace("NAME", name): ODD for name in ("length", "base", "frequencies", "angles")},
    },
    "5.2": {
        f"blocks = torch.stack([torch.stack([cos, sin], dim={a}), torch.stack([-sin, cos], dim={b})], dim=-2)": LAST
        for a, b in ((1, -1), (-1, 1))
    },
    "5.3": {},
    "5.4": {},
    "5.5": {
        "Y = F.one_hot(labels, classes).to(X)": SAME,
        "Y = F.one_hot(labels, classes).to(hidden.dtype)": SAME,
        **{
            f"ridge = penalty * torch.eye(X.shape[1], dtype={name}.dtype, device=X.device)": SAME
            for name in ("hidden", "labels", "Y")
        },
        **{
            f"ridge = penalty * torch.eye(X.shape[1], dtype=X.dtype, device={name}.device)": SAME
            for name in ("hidden", "labels", "Y")
        },
    },
}


# --- 5.1 sinusoidal table: right ------------------------------------------------------------------------------------


@right("5.1", "two loops")
def sinusoidal(length, d, base=10_000.0):
    table = torch.zeros(length, d)
    for p in range(length):
        for i in range(d // 2):
            angle = p / base ** (2 * i / d)
            table[p, 2 * i] = math.sin(angle)
            table[p, 2 * i + 1] = math.cos(angle)
    return table


@right("5.1", "slices and exp, as in PyTorch's tutorial")
def sinusoidal(length, d, base=10_000.0):
    position = torch.arange(length).unsqueeze(1)
    div = torch.exp(torch.arange(0, d, 2) * (-math.log(base) / d))
    pe = torch.zeros(length, d)
    pe[:, 0::2] = torch.sin(position * div)
    pe[:, 1::2] = torch.cos(position * div)
    return pe


@right("5.1", "a cosine is a sine, shifted")
def sinusoidal(length, d, base=10_000.0):
    j = torch.arange(d)
    frequency = base ** (-2.0 * (j // 2) / d)
    return torch.sin(torch.outer(torch.arange(length).float(), frequency) + (j % 2) * math.pi / 2)


@right("5.1", "complex numbers, in double")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length, dtype=torch.double)[:, None] / base ** (torch.arange(0, d, 2).double() / d)
    turned = torch.polar(torch.ones_like(angles), angles)
    return torch.stack([turned.imag, turned.real], dim=2).reshape(length, d)


# --- 5.1 wrong ------------------------------------------------------------------------------------------------------


@wrong("5.1", "halves", says="All sines come first, then all cosines")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length)[:, None] * base ** (-torch.arange(0, d, 2) / d)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


@wrong("5.1", "swapped", says="Sine and cosine are swapped")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length)[:, None] * base ** (-torch.arange(0, d, 2) / d)
    return torch.stack([angles.cos(), angles.sin()], dim=-1).flatten(1)


@wrong("5.1", "two sines", says="The cosine is missing")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length)[:, None] * base ** (-torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.sin()], dim=-1).flatten(1)


@wrong("5.1", "times instead of divided", says="divide by it: later pairs turn more slowly")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length).double()[:, None] * base ** (torch.arange(0, d, 2).double() / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


@wrong("5.1", "times, in single precision", says="the last must hardly move: divide by")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length)[:, None] * base ** (torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


@wrong("5.1", "i/d", says="The exponent is i/d; it is 2i/d")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length)[:, None] * base ** (-torch.arange(d // 2) / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


@wrong("5.1", "2 twice", says="The exponent is 4i/d")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length)[:, None] * base ** (-2 * torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


@wrong("5.1", "a frequency for each entry", says="sine and cosine of a pair share one")
def sinusoidal(length, d, base=10_000.0):
    table = torch.zeros(length, d)
    for p in range(length):
        for j in range(d):
            angle = p / base ** (j / d)
            table[p, j] = math.sin(angle) if j % 2 == 0 else math.cos(angle)
    return table


@wrong("5.1", "the entry for i", says="i is the number of the pair, not of the entry")
def sinusoidal(length, d, base=10_000.0):
    table = torch.zeros(length, d)
    for p in range(length):
        for j in range(d):
            angle = p / base ** (2 * j / d)
            table[p, j] = math.sin(angle) if j % 2 == 0 else math.cos(angle)
    return table


@wrong("5.1", "from 1", says="The positions start at 1")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(1, length + 1)[:, None] * base ** (-torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


@wrong("5.1", "2π", says="The angles are 2π too large")
def sinusoidal(length, d, base=10_000.0):
    angles = 2 * math.pi * torch.arange(length)[:, None] * base ** (-torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


@wrong("5.1", "fixed base", says="The base is fixed at 10000")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length)[:, None] * 10_000 ** (-torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


@wrong("5.1", "the slide in S3", says="ZeroDivisionError")
def sinusoidal(length, d, base=10_000.0):
    table = torch.zeros(length, d)
    for i in range(d):
        f = base ** (d / (2 * i)) / (2 * math.pi)
        for t in range(length):
            table[t, i] = math.sin(2 * math.pi * f * t) if i % 2 == 0 else math.cos(2 * math.pi * f * t)
    return table


@wrong("5.1", "columns for positions", says="got (8, 7). Rows and columns are swapped: one row for each position")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length)[:, None] * base ** (-torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).T


@wrong("5.1", "no new axis", says="Positions are rows and frequencies are columns")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length) * base ** (-torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1)


@wrong("5.1", "not flat", says="got (7, 4, 2)")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length)[:, None] * base ** (-torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1)


@wrong("5.1", "the angles themselves", says="the first row must be sin 0, cos 0")
def sinusoidal(length, d, base=10_000.0):
    return (torch.arange(length)[:, None] * base ** (-torch.arange(0, d, 2) / d)).repeat_interleave(2, dim=1)


# --- 5.2 the map that moves by k: right -----------------------------------------------------------------------------


@right("5.2", "a loop")
def shift_matrix(k, d, base=10_000.0):
    M = torch.zeros(d, d)
    for i in range(d // 2):
        a = k / base ** (2 * i / d)
        M[2 * i, 2 * i] = M[2 * i + 1, 2 * i + 1] = math.cos(a)
        M[2 * i, 2 * i + 1] = math.sin(a)
        M[2 * i + 1, 2 * i] = -math.sin(a)
    return M


@right("5.2", "the exponential of a matrix")
def shift_matrix(k, d, base=10_000.0):
    w = base ** (-torch.arange(0, d, 2, dtype=torch.double) / d)
    generator = torch.zeros(d, d, dtype=torch.double)
    even = torch.arange(0, d, 2)
    generator[even, even + 1] = w
    generator[even + 1, even] = -w
    return torch.matrix_exp(k * generator)


@right("5.2", "index assignment")
def shift_matrix(k, d, base=10_000.0):
    angles = k * torch.pow(base, -torch.arange(0, d, 2) / d)
    even, M = torch.arange(0, d, 2), torch.diag(angles.cos().repeat_interleave(2))
    M[even, even + 1] = angles.sin()
    M[even + 1, even] = -angles.sin()
    return M


# --- 5.2 wrong ------------------------------------------------------------------------------------------------------


@wrong("5.2", "moves back", says="It moves BACK by k")
def shift_matrix(k, d, base=10_000.0):
    a = k * base ** (-torch.arange(0, d, 2) / d)
    return torch.block_diag(*(torch.tensor([[x.cos(), -x.sin()], [x.sin(), x.cos()]]) for x in a))


@wrong("5.2", "halves", says="rows 2i, 2i + 1")
def shift_matrix(k, d, base=10_000.0):
    a = k * base ** (-torch.arange(0, d, 2) / d)
    C, S = torch.diag(a.cos()), torch.diag(a.sin())
    return torch.cat([torch.cat([C, S], dim=1), torch.cat([-S, C], dim=1)])


@wrong("5.2", "no minus", says="A minus is missing")
def shift_matrix(k, d, base=10_000.0):
    a = k * base ** (-torch.arange(0, d, 2) / d)
    return torch.block_diag(*(torch.tensor([[x.cos(), x.sin()], [x.sin(), x.cos()]]) for x in a))


@wrong("5.2", "sines on the diagonal", says="the diagonal holds cosines")
def shift_matrix(k, d, base=10_000.0):
    a = k * base ** (-torch.arange(0, d, 2) / d)
    return torch.block_diag(*(torch.tensor([[x.sin(), x.cos()], [x.cos(), -x.sin()]]) for x in a))


@wrong("5.2", "diagonal only", says="Only the diagonal is there")
def shift_matrix(k, d, base=10_000.0):
    a = k * base ** (-torch.arange(0, d, 2) / d)
    return torch.diag(a.cos().repeat_interleave(2))


@wrong("5.2", "one angle for all", says="Every pair is turned by the same angle k")
def shift_matrix(k, d, base=10_000.0):
    block = torch.tensor([[math.cos(k), math.sin(k)], [-math.sin(k), math.cos(k)]])
    return torch.block_diag(*[block] * (d // 2))


@wrong("5.2", "no k", says="k does not enter")
def shift_matrix(k, d, base=10_000.0):
    a = base ** (-torch.arange(0, d, 2) / d)
    return torch.block_diag(*(torch.tensor([[x.cos(), x.sin()], [-x.sin(), x.cos()]]) for x in a))


@wrong("5.2", "i/d", says="The exponent is i/d; it is 2i/d")
def shift_matrix(k, d, base=10_000.0):
    a = k * base ** (-torch.arange(d // 2) / d)
    return torch.block_diag(*(torch.tensor([[x.cos(), x.sin()], [-x.sin(), x.cos()]]) for x in a))


@wrong("5.2", "upside down", says="The frequencies are upside down")
def shift_matrix(k, d, base=10_000.0):
    a = k * base ** (torch.arange(0, d, 2).double() / d)
    return torch.block_diag(*(torch.tensor([[x.cos(), x.sin()], [-x.sin(), x.cos()]]) for x in a))


@wrong("5.2", "fixed base", says="The base is fixed at 10000")
def shift_matrix(k, d, base=10_000.0):
    a = k * 10_000 ** (-torch.arange(0, d, 2) / d)
    return torch.block_diag(*(torch.tensor([[x.cos(), x.sin()], [-x.sin(), x.cos()]]) for x in a))


@wrong("5.2", "forward only", says="A negative k must move back")
def shift_matrix(k, d, base=10_000.0):
    a = abs(k) * base ** (-torch.arange(0, d, 2) / d)
    return torch.block_diag(*(torch.tensor([[x.cos(), x.sin()], [-x.sin(), x.cos()]]) for x in a))


@wrong("5.2", "a stack of blocks", says="got (3, 2, 2)")
def shift_matrix(k, d, base=10_000.0):
    a = k * base ** (-torch.arange(0, d, 2) / d)
    return torch.stack([torch.tensor([[x.cos(), x.sin()], [-x.sin(), x.cos()]]) for x in a])


@wrong("5.2", "the identity", says="M PE(p) must be PE(p + 3) for every p")
def shift_matrix(k, d, base=10_000.0):
    return torch.eye(d)


# --- 5.3 rotary positions: right ------------------------------------------------------------------------------------


@right("5.3", "rotate_half, as in transformers")
def rotate(x, cos, sin):
    cos, sin = torch.cat([cos, cos], dim=-1), torch.cat([sin, sin], dim=-1)
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * sin


@right("5.3", "complex numbers")
def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    turned = torch.complex(a, b) * torch.complex(cos, sin)
    return torch.cat([turned.real, turned.imag], dim=-1)


@right("5.3", "one pair after the other")
def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    first = [x[..., i] * cos[:, i] - x[..., i + half] * sin[:, i] for i in range(half)]
    second = [x[..., i] * sin[:, i] + x[..., i + half] * cos[:, i] for i in range(half)]
    return torch.stack(first + second, dim=-1)


@right("5.3", "einsum with 2 × 2 matrices")
def rotate(x, cos, sin):
    R = torch.stack([torch.stack([cos, -sin]), torch.stack([sin, cos])])  # (2, 2, length, d/2)
    return torch.einsum("ijlh,...ljh->...lih", R, x.unflatten(-1, (2, -1))).flatten(-2)


# --- 5.3 wrong ------------------------------------------------------------------------------------------------------


@wrong("5.3", "neighbours", says="here, as in Llama, a pair is (i, i + d/2)")
def rotate(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


@wrong("5.3", "the other way round", says="It turns the other way round")
def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos + b * sin, b * cos - a * sin], dim=-1)


@wrong("5.3", "no minus", says="A minus is missing")
def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos + b * sin, a * sin + b * cos], dim=-1)


@wrong("5.3", "cos and sin swapped", says="cos and sin are swapped")
def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * sin - b * cos, a * cos + b * sin], dim=-1)


@wrong("5.3", "scaled", says="The halves are scaled, not turned")
def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos, b * sin], dim=-1)


@wrong("5.3", "cosine only", says="Only the cosine is used")
def rotate(x, cos, sin):
    return x * torch.cat([cos, cos], dim=-1)


@wrong("5.3", "the new first half", says="keep the old one until both are done")
def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    a = a * cos - b * sin
    b = a * sin + b * cos
    return torch.cat([a, b], dim=-1)


@wrong("5.3", "halves joined in the wrong order", says="joined in the wrong order")
def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * sin + b * cos, a * cos - b * sin], dim=-1)


@wrong("5.3", "interleaved in the end", says="The turned halves are interleaved")
def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


@wrong("5.3", "x itself times cos", says="multiply the two halves of x by them")
def rotate(x, cos, sin):
    return x * cos + x * sin


@wrong("5.3", "not turned", says="This is x as it came in")
def rotate(x, cos, sin):
    return x


@wrong("5.3", "in place", says="It changes its input x in place")
def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    a = x[..., :half].clone()
    x[..., :half] = a * cos - x[..., half:] * sin
    x[..., half:] = a * sin + x[..., half:] * cos
    return x


@wrong("5.3", "only four dimensions", says="not enough values to unpack")
def rotate(x, cos, sin):
    batch, heads, length, d = x.shape
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


@wrong("5.3", "angles twice", says="A turned vector must keep its length")
def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos.cos() - b * sin.sin(), a * sin.sin() + b * cos.cos()], dim=-1)


@wrong("5.3", "detached", says="no gradient reaches x")
def rotate(x, cos, sin):
    a, b = x.detach().chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


# --- 5.4 ALiBi: right -----------------------------------------------------------------------------------------------


@right("5.4", "three loops")
def alibi(heads, queries, keys, device=None):
    bias = torch.zeros(heads, queries, keys, device=device)
    for h in range(heads):
        for i in range(queries):
            place = keys - queries + i
            for j in range(place):
                bias[h, i, j] = -(2 ** (-8 * (h + 1) / heads)) * (place - j)
    return bias


@right("5.4", "relu")
def alibi(heads, queries, keys, device=None):
    slopes = torch.tensor([2 ** (-8 * h / heads) for h in range(1, heads + 1)], device=device)
    place = torch.arange(keys, device=device)
    distance = torch.relu(place[keys - queries :, None] - place[None, :])
    return -torch.einsum("h,qk->hqk", slopes, distance.float())


@right("5.4", "the last rows of a square, in double")
def alibi(heads, queries, keys, device=None):
    place = torch.arange(keys, dtype=torch.double, device=device)
    square = (place[None, :] - place[:, None]).tril()
    start = 2.0 ** (-8.0 / heads)
    return torch.stack([square * start ** (h + 1) for h in range(heads)])[:, keys - queries :]


# --- 5.4 wrong ------------------------------------------------------------------------------------------------------


@wrong("5.4", "plus", says="The sign is wrong: far keys are favoured")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    return slopes[:, None, None] * distance.clamp(min=0)


@wrong("5.4", "no distance", says="The bias does not grow with the distance")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    return -slopes[:, None, None] * (distance > 0)


@wrong("5.4", "the future too", says="Keys ahead of the query are punished too")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    return -slopes[:, None, None] * distance.abs()


@wrong("5.4", "a bonus ahead", says="Keys ahead of the query get a bonus")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    return -slopes[:, None, None] * distance


@wrong("5.4", "heads from 0", says="the heads count from 1")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (-8.0 * torch.arange(heads) / heads)
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    return -slopes[:, None, None] * distance.clamp(min=0)


@wrong("5.4", "for 8 heads only", says="that is right for 8 heads only")
def alibi(heads, queries, keys, device=None):
    slopes = 0.5 ** torch.arange(1, heads + 1)
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    return -slopes[:, None, None] * distance.clamp(min=0)


@wrong("5.4", "reverse", says="head 1 has the steepest slope")
def alibi(heads, queries, keys, device=None):
    slopes = (2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)).flip(0)
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    return -slopes[:, None, None] * distance.clamp(min=0)


@wrong("5.4", "growing slopes", says="The slopes grow from head to head")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (8.0 * torch.arange(1, heads + 1) / heads)
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    return -slopes[:, None, None] * distance.clamp(min=0)


@wrong("5.4", "one slope", says="All heads have the slope 1")
def alibi(heads, queries, keys, device=None):
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    return -distance.clamp(min=0).float().expand(heads, -1, -1)


@wrong("5.4", "queries from 0", says="the LAST query is the last key")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    distance = torch.arange(queries)[:, None] - torch.arange(keys)
    return -slopes[:, None, None] * distance.clamp(min=0)


@wrong("5.4", "rows and columns", says="rows are queries, columns are keys")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    distance = torch.arange(keys)[:, None] - torch.arange(keys)
    return (-slopes[:, None, None] * distance.clamp(min=0)).transpose(1, 2)[:, :queries]


@wrong("5.4", "hidden too", says="Keys ahead of the query get −∞; here they get 0")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    distance = (torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)).float()
    return (-slopes[:, None, None] * distance).masked_fill(distance < 0, -math.inf)


@wrong("5.4", "no device", says="It must take (heads, queries, keys, device)")
def alibi(heads, queries, keys):
    return torch.zeros(heads, queries, keys)


@wrong("5.4", "transposed", says="The last two dimensions are swapped: (heads, queries, keys)")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1, device=device) / heads)
    place = torch.arange(keys, device=device)
    return -slopes[:, None, None] * (place[keys - queries :] - place[:, None]).clamp(min=0)


@wrong("5.4", "device forgotten", says="not made on the device asked for: hand `device` on")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    return -slopes[:, None, None] * distance.clamp(min=0)


@wrong("5.4", "device of the slopes only", says="not made on the device asked for: hand `device` on")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1, device=device) / heads)
    distance = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    return -slopes[:, None, None] * distance.clamp(min=0)


@wrong("5.4", "−8/h", says="The exponent is −8/h; it is −8h/H")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (-8.0 / torch.arange(1, heads + 1, device=device))
    place = torch.arange(keys, device=device)
    return -slopes[:, None, None] * (place[keys - queries :, None] - place).clamp(min=0)


@wrong("5.4", "slopes without new axes", says="The slopes need two more dimensions")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1, device=device) / heads)
    place = torch.arange(keys, device=device)
    return -slopes * (place[keys - queries :, None] - place).clamp(min=0)


@wrong("5.4", "whole numbers", says="the bias must be torch.float32; got torch.int64")
def alibi(heads, queries, keys, device=None):
    slopes = 2 ** (-8 * torch.arange(1, heads + 1, device=device) // heads)
    place = torch.arange(keys, device=device)
    return -slopes[:, None, None] * (place[keys - queries :, None] - place).clamp(min=0)


@wrong("5.4", "one head", says="got (5, 5)")
def alibi(heads, queries, keys, device=None):
    return -0.25 * (torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)).clamp(min=0)


@wrong("5.4", "one too far", says="A query and the key at its own place have distance 0")
def alibi(heads, queries, keys, device=None):
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    distance = torch.arange(keys - queries + 1, keys + 1)[:, None] - torch.arange(keys)
    return -slopes[:, None, None] * distance.clamp(min=0)


# --- 5.5 position probe: right --------------------------------------------------------------------------------------


@right("5.5", "the inverse, written out")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.hstack([hidden, hidden.new_ones(len(hidden), 1)])
    Y = torch.eye(classes, dtype=X.dtype, device=X.device)[labels]
    return torch.inverse(X.T @ X + penalty * torch.eye(X.shape[1], dtype=X.dtype, device=X.device)) @ X.T @ Y


@right("5.5", "least squares with rows added for the penalty")
def linear_probe(hidden, labels, classes, penalty=1.0):
    n, d = hidden.shape
    X = torch.cat([hidden.double(), torch.ones(n, 1)], dim=1)
    Y = torch.zeros(n, classes, dtype=torch.double)
    Y[range(n), labels] = 1
    X = torch.cat([X, penalty**0.5 * torch.eye(d + 1)])
    return torch.linalg.lstsq(X, torch.cat([Y, torch.zeros(d + 1, classes)])).solution


@right("5.5", "Cholesky")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = nn.functional.pad(hidden, (0, 1), value=1.0)
    A = X.T @ X
    A.diagonal().add_(penalty)
    return torch.cholesky_solve(X.T @ nn.functional.one_hot(labels, classes).to(X), torch.linalg.cholesky(A))


# --- 5.5 wrong ------------------------------------------------------------------------------------------------------


@wrong("5.5", "no bias", says="The bias is missing: give X a last column of ones")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X, Y = hidden, nn.functional.one_hot(labels, classes).to(hidden.dtype)
    return torch.linalg.solve(X.T @ X + penalty * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y)


@wrong("5.5", "ones first", says="The column of ones stands first")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([torch.ones_like(hidden[:, :1]), hidden], dim=1)
    Y = nn.functional.one_hot(labels, classes).to(hidden.dtype)
    return torch.linalg.solve(X.T @ X + penalty * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y)


@wrong("5.5", "no penalty", says="The penalty does not enter")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = nn.functional.one_hot(labels, classes).to(hidden.dtype)
    return torch.linalg.lstsq(X, Y).solution


@wrong("5.5", "penalty 1", says="The penalty is always 1")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = nn.functional.one_hot(labels, classes).to(hidden.dtype)
    return torch.linalg.solve(X.T @ X + torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y)


@wrong("5.5", "penalty everywhere", says="add it to the diagonal only")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = nn.functional.one_hot(labels, classes).to(hidden.dtype)
    return torch.linalg.solve(X.T @ X + penalty, X.T @ Y)


@wrong("5.5", "bias goes free", says="The bias goes free of the penalty")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = nn.functional.one_hot(labels, classes).to(hidden.dtype)
    ridge = penalty * torch.eye(X.shape[1], dtype=X.dtype)
    ridge[-1, -1] = 0
    return torch.linalg.solve(X.T @ X + ridge, X.T @ Y)


@wrong("5.5", "penalty squared", says="The penalty is squared")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = nn.functional.one_hot(labels, classes).to(hidden.dtype)
    return torch.linalg.solve(X.T @ X + penalty**2 * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y)


@wrong("5.5", "penalty times n", says="multiplied by the number of rows")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = nn.functional.one_hot(labels, classes).to(hidden.dtype)
    n = len(X)
    return torch.linalg.solve(X.T @ X / n + penalty * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y / n)


@wrong("5.5", "the number itself", says="give each class a column of its own")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = labels[:, None].to(X.dtype)
    return torch.linalg.solve(X.T @ X + penalty * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y)


@wrong("5.5", "classes that occur", says="also for those that no label has")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = nn.functional.one_hot(labels).to(hidden.dtype)
    return torch.linalg.solve(X.T @ X + penalty * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y)


@wrong("5.5", "1 and −1", says="The targets are 1 and −1")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = 2 * nn.functional.one_hot(labels, classes).to(hidden.dtype) - 1
    return torch.linalg.solve(X.T @ X + penalty * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y)


@wrong("5.5", "transposed", says="Rows and columns are swapped: (d + 1, classes)")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = nn.functional.one_hot(labels, classes).to(hidden.dtype)
    return torch.linalg.solve(X.T @ X + penalty * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y).T


@wrong("5.5", "whole numbers", says="`F.one_hot` gives whole numbers")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = nn.functional.one_hot(labels, classes)
    return torch.linalg.solve(X.T @ X + penalty * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y)


@wrong("5.5", "float32 always", says="`.to(hidden.dtype)` fits both, `.float()` is float32 always")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = nn.functional.one_hot(labels, classes).float()
    return torch.linalg.solve(X.T @ X + penalty * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y)


@wrong("5.5", "least squares of whole numbers", says="`F.one_hot` gives whole numbers")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    return torch.linalg.lstsq(X, nn.functional.one_hot(labels, classes)).solution


@wrong("5.5", "X times its transpose", says="Two products are needed, XᵀX (d + 1, d + 1) and XᵀY")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = nn.functional.one_hot(labels, classes).to(hidden.dtype)
    return torch.linalg.solve(X @ X.T + penalty * torch.eye(len(X), dtype=X.dtype), X @ Y)


@wrong("5.5", "inputs changed", says="It changes its input hidden in place")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = nn.functional.one_hot(labels, classes).to(hidden.dtype)
    W = torch.linalg.solve(X.T @ X + penalty * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y)
    hidden -= hidden.mean(dim=0)
    return W


@wrong("5.5", "rows of X for columns", says="It stopped with RuntimeError")
def linear_probe(hidden, labels, classes, penalty=1.0):
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)
    Y = nn.functional.one_hot(labels, classes).to(hidden.dtype)
    return torch.linalg.solve(X @ X.T + penalty * torch.eye(X.shape[1], dtype=X.dtype), X.T @ Y)
