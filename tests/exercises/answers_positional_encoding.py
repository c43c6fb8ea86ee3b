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
    "5.5": {},
    "5.6": {
        "return 2 * math.pi * (turns.round() - turns).abs() < within": "the sign is taken off",
        "turns = (back - distance) / period": "the sign is taken off",
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


@wrong("5.1", "the slide in S3", says="ZeroDivisionError")
def sinusoidal(length, d, base=10_000.0):
    table = torch.zeros(length, d)
    for i in range(d):
        f = base ** (d / (2 * i)) / (2 * math.pi)
        for t in range(length):
            table[t, i] = math.sin(2 * math.pi * f * t) if i % 2 == 0 else math.cos(2 * math.pi * f * t)
    return table


@wrong("5.1", "no new axis", says="Positions are rows and frequencies are columns")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length) * base ** (-torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1)


@wrong("5.1", "not flat", says="got (7, 4, 2). Each pair is a row of its own")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length)[:, None] * base ** (-torch.arange(0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], dim=-1)


@wrong("5.1", "the angles themselves", says="the first row must be sin 0, cos 0")
def sinusoidal(length, d, base=10_000.0):
    return (torch.arange(length)[:, None] * base ** (-torch.arange(0, d, 2) / d)).repeat_interleave(2, dim=1)


@wrong("5.1", "one frequency for all", says="the last must hardly move: divide by")
def sinusoidal(length, d, base=10_000.0):
    angles = torch.arange(length)[:, None].expand(length, d // 2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


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


@right("5.2", "the exponential in single precision")
def shift_matrix(k, d, base=10_000.0):
    generator = torch.zeros(d, d)
    for i in range(d // 2):
        generator[2 * i, 2 * i + 1] = base ** (-2 * i / d)
    return torch.linalg.matrix_exp(k * (generator - generator.T))


# --- 5.2 wrong ------------------------------------------------------------------------------------------------------


@wrong("5.2", "moves back", says="It moves BACK by k")
def shift_matrix(k, d, base=10_000.0):
    a = k * base ** (-torch.arange(0, d, 2) / d)
    return torch.block_diag(*(torch.tensor([[x.cos(), -x.sin()], [x.sin(), x.cos()]]) for x in a))


@wrong("5.2", "a stack of blocks", says="got (3, 2, 2)")
def shift_matrix(k, d, base=10_000.0):
    a = k * base ** (-torch.arange(0, d, 2) / d)
    return torch.stack([torch.tensor([[x.cos(), x.sin()], [-x.sin(), x.cos()]]) for x in a])


@wrong("5.2", "the identity", says="M PE(p) must be PE(p + 3) for every p")
def shift_matrix(k, d, base=10_000.0):
    return torch.eye(d)


# --- 5.3 a head that looks back: right ------------------------------------------------------------------------------


@right("5.3", "entry by entry")
def look_back_head(symbols, d, back, sharpness):
    W_Q, W_K, W_V = torch.zeros(d, symbols + d), torch.zeros(d, symbols + d), torch.zeros(symbols, symbols + d)
    for i in range(d):
        W_K[i, symbols + i] = 1.0
    for s in range(symbols):
        W_V[s, s] = 1.0
    for i in range(0, d, 2):
        angle = -back / 10_000 ** (i / d)
        W_Q[i, symbols + i] = W_Q[i + 1, symbols + i + 1] = sharpness * math.cos(angle)
        W_Q[i, symbols + i + 1] = sharpness * math.sin(angle)
        W_Q[i + 1, symbols + i] = -sharpness * math.sin(angle)
    return W_Q, W_K, W_V


@right("5.3", "the key is moved ahead, the query left")
def look_back_head(symbols, d, back, sharpness):
    a = back * 10_000.0 ** (-torch.arange(0, d, 2) / d)
    move = torch.block_diag(*(torch.tensor([[x.cos(), x.sin()], [-x.sin(), x.cos()]]) for x in a))
    W_Q = nn.functional.pad(torch.eye(d), (symbols, 0))
    W_K = nn.functional.pad(sharpness * move, (symbols, 0))
    return [W_Q, W_K, nn.functional.pad(torch.eye(symbols), (0, d))]


@right("5.3", "both moved, both sharp")
def look_back_head(symbols, d, back, sharpness):
    def move(k):
        a = k * 10_000.0 ** (-torch.arange(0, d, 2) / d)
        return torch.block_diag(*(torch.tensor([[x.cos(), x.sin()], [-x.sin(), x.cos()]]) for x in a))

    root, nothing = math.sqrt(sharpness), torch.zeros(d, symbols)
    W_Q = torch.hstack([nothing, root * move(7 - back)])
    W_K = torch.hstack([nothing, root * move(7)])
    return W_Q, W_K, torch.eye(symbols, symbols + d)


# --- 5.3 wrong ------------------------------------------------------------------------------------------------------

BANK.spoilt(
    "5.3",
    "entry by entry",
    """
    angle = -back → angle = back · It looks 3 places AHEAD: 3 back is a shift by −3
    angle = -back → angle = 0 · Each place looks at itself
    angle = -back → angle = -2 * back · the query of place 3 must score highest with the key of place 0
    W_K[i, symbols + i] = 1.0 → W_K[i, symbols + i] = sharpness · `sharpness` enters twice
    return W_Q → W_Q = W_Q / sharpness; return W_Q · `sharpness` does not enter
    return W_Q → W_Q *= d**0.5; return W_Q · but its scores are 4 times those asked for.
    return W_Q → W_Q[0:2] *= 2; return W_Q · are all pairs used, each as it is?
    return W_Q → W_Q[0, 0] = W_K[0, 0] = 1.0; return W_Q · With other symbols in the text the scores change
    W_V[s, s] → W_V[s, s + d] · hands on something else
    return W_Q, W_K, W_V → return W_Q, W_K · Expected three tensors to be returned
    return W_Q, W_K → return W_Q.T, W_K · Rows and columns are swapped: a query is W_Q x
    return W_Q, W_K → return W_Q[:, symbols:], W_K
        · With 5 symbols and d = 16, expected W_Q of shape (16, 21); got (16, 16).
    return W_Q, W_K → return W_Q.double(), W_K · Tokens are torch.float32, and W_Q is torch.float64
    """,
)


@wrong("5.3", "no sharpness", says="It must take (symbols, d, back, sharpness)")
def look_back_head(symbols, d, back):
    return torch.zeros(d, symbols + d), torch.zeros(d, symbols + d), torch.eye(symbols, symbols + d)


@wrong("5.3", "parts that do not fit", says="Parts that stand side by side need equally many rows")
def look_back_head(symbols, d, back, sharpness):
    W_K = torch.cat([torch.zeros(symbols, symbols), torch.eye(d)], dim=1)
    return W_K, W_K, torch.eye(symbols, symbols + d)


# --- 5.4 rotary positions: right ------------------------------------------------------------------------------------


@right("5.4", "rotate_half, as in transformers")
def rotate(x, cos, sin):
    cos, sin = torch.cat([cos, cos], dim=-1), torch.cat([sin, sin], dim=-1)
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], dim=-1) * sin


@right("5.4", "complex numbers")
def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    turned = torch.complex(a, b) * torch.complex(cos, sin)
    return torch.cat([turned.real, turned.imag], dim=-1)


@right("5.4", "one pair after the other")
def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    first = [x[..., i] * cos[:, i] - x[..., i + half] * sin[:, i] for i in range(half)]
    second = [x[..., i] * sin[:, i] + x[..., i + half] * cos[:, i] for i in range(half)]
    return torch.stack(first + second, dim=-1)


@right("5.4", "einsum with 2 × 2 matrices")
def rotate(x, cos, sin):
    R = torch.stack([torch.stack([cos, -sin]), torch.stack([sin, cos])])  # (2, 2, length, d/2)
    return torch.einsum("ijlh,...ljh->...lih", R, x.unflatten(-1, (2, -1))).flatten(-2)


# --- 5.4 wrong ------------------------------------------------------------------------------------------------------


@wrong("5.4", "x itself times cos", says="cut x into halves along its LAST dimension")
def rotate(x, cos, sin):
    return x * cos + x * sin


@wrong("5.4", "in place", says="It changes its input x in place")
def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    a = x[..., :half].clone()
    x[..., :half] = a * cos - x[..., half:] * sin
    x[..., half:] = a * sin + x[..., half:] * cos
    return x


@wrong("5.4", "only four dimensions", says="not enough values to unpack")
def rotate(x, cos, sin):
    batch, heads, length, d = x.shape
    a, b = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


@wrong("5.4", "angles twice", says="A turned vector must keep its norm")
def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos.cos() - b * sin.sin(), a * sin.sin() + b * cos.cos()], dim=-1)


@wrong("5.4", "detached", says="no gradient reaches x")
def rotate(x, cos, sin):
    a, b = x.detach().chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


@wrong("5.4", "cut along the wrong dimension", says="cut x into halves along its LAST dimension")
def rotate(x, cos, sin):
    a, b = torch.tensor_split(x, 2, dim=1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=1)


@wrong("5.4", "angles side by side", says="put cos and sin twice one behind the other")
def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return x * cos.repeat_interleave(2, dim=-1) + turned * sin.repeat_interleave(2, dim=-1)


# --- 5.5 ALiBi: right -----------------------------------------------------------------------------------------------


@right("5.5", "three loops")
def alibi(heads, queries, keys, device=None):
    bias = torch.zeros(heads, queries, keys, device=device)
    for h in range(heads):
        for i in range(queries):
            place = keys - queries + i
            for j in range(place):
                bias[h, i, j] = -(2 ** (-8 * (h + 1) / heads)) * (place - j)
    return bias


@right("5.5", "relu")
def alibi(heads, queries, keys, device=None):
    slopes = torch.tensor([2 ** (-8 * h / heads) for h in range(1, heads + 1)], device=device)
    place = torch.arange(keys, device=device)
    distance = torch.relu(place[keys - queries :, None] - place[None, :])
    return -torch.einsum("h,qk->hqk", slopes, distance.float())


@right("5.5", "the last rows of a square, in double")
def alibi(heads, queries, keys, device=None):
    place = torch.arange(keys, dtype=torch.double, device=device)
    square = (place[None, :] - place[:, None]).tril()
    start = 2.0 ** (-8.0 / heads)
    return torch.stack([square * start ** (h + 1) for h in range(heads)])[:, keys - queries :]


# --- 5.5 wrong ------------------------------------------------------------------------------------------------------


@wrong("5.5", "no device", says="It must take (heads, queries, keys, device)")
def alibi(heads, queries, keys):
    return torch.zeros(heads, queries, keys)


@wrong("5.5", "one head", says="got (5, 5)")
def alibi(heads, queries, keys, device=None):
    return -0.25 * (torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)).clamp(min=0)


# --- 5.6 when a hand comes back: right ------------------------------------------------------------------------------


@right("5.6", "cosines")
def hand_returns(distance, back, period, within):
    return torch.cos(2 * math.pi * (distance - back) / period) > math.cos(within)


@right("5.6", "two tips of a hand")
def hand_returns(distance, back, period, within):
    there, here = 2 * math.pi * distance / period, torch.tensor(2 * math.pi * back / period)
    tip = torch.stack([there.cos() - here.cos(), there.sin() - here.sin()])
    return tip.norm(dim=0) < 2 * math.sin(within / 2)


@right("5.6", "a remainder, from both sides")
def hand_returns(distance, back, period, within):
    past = (distance - back) % period
    return torch.minimum(past, period - past) * 2 * math.pi / period < within


# --- 5.6 wrong ------------------------------------------------------------------------------------------------------


@wrong("5.6", "the angle itself", says="a tensor of torch.bool; yours is torch.float32")
def hand_returns(distance, back, period, within):
    turns = (distance - back) / period
    return 2 * math.pi * (turns - turns.round()).abs()


@wrong("5.6", "two angles, no whole turn between them", says="the distance 11 is 0.52 radians short of one")
def hand_returns(distance, back, period, within):
    there, here = 2 * math.pi * (distance % period) / period, 2 * math.pi * (back % period) / period
    return (there - here).abs() < within


@wrong("5.6", "a remainder with a sign", says="the answer is False; yours says True")
def hand_returns(distance, back, period, within):
    past = torch.fmod(distance - back, period)
    return torch.minimum(past, period - past) * 2 * math.pi / period < within


@wrong("5.6", "the heights are near", says="radians from where it stands at 2, so the answer is")
def hand_returns(distance, back, period, within):
    here = torch.tensor(2 * math.pi * back / period)
    return (torch.cos(2 * math.pi * distance / period) - here.cos()).abs() < within


@wrong("5.6", "ahead only", says="take off the NEAREST whole number of turns")
def hand_returns(distance, back, period, within):
    return 2 * math.pi * ((distance - back) % period) / period < within


# --- wrong, as edits of the library's pieces ------------------------------------------------------------------------

BANK.edited(
    "5.5",
    """
    heads + 1, device=device) → heads + 1) ; keys, device=device) → keys)
        · not made on the device asked for: hand `device` on
    keys, device=device) → keys) · not made on the device asked for: hand `device` on
    slopes[:, None, None] → slopes · The slopes need two more dimensions
    :, None]  # → :, None] - 1  # · A query and the key at its own place have distance 0
    2.0 ** (-8.0 → 2 ** (-8 ; / heads) → // heads) · is there a `//` for a `/`
    """,
)
