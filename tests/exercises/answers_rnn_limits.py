"""The bank of lesson 01. An answer uses only what the notebook has imported (torch, nn)."""
# ruff: noqa: B006, B007, B023, B905, F811, RET503

import torch
from bank import Bank
from torch import nn

BANK = Bank()
wrong, right = BANK.wrong, BANK.right

SAME_AXIS = "x is (batch, d): dimension 1 is the last"
SAME_STACK = "hstack of single numbers is stack"
NOT_ASKED = "the exercise gives an iterable of parameters, not a single one"
NO_GRADIENT = "no gradient at all, or max_norm = 0: the exercise does not ask for it"

FAR_ENOUGH = "the gates are as near to 0 and 1 as they need to be"

# What a mutant of the library's piece changes, as its new line → why it is no mistake.
EQUIVALENT = {
    "1.1": {},
    "1.2": {"i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4, dim=1)": SAME_AXIS},
    "1.3": {
        "far = 21.0": FAR_ENOUGH,
        "far = 19.0": FAR_ENOUGH,
        "W[2, :, :bits] = torch.eye(bits)": "tanh(1) is 0.76, and its tanh 0.64: above 0.5",
        "W[2, :, :bits] = bits * torch.eye(bits)": "tanh(1) is 0.76, and its tanh 0.64: above 0.5",
        "b[3] = bits": "the output gate is at 0.73 or above: 0.56 is shown",
        "W[0, :, bits], b[0] = (3 * far, -far)": FAR_ENOUGH,
        "W[1, :, bits], b[1] = (-3 * far, far)": FAR_ENOUGH,
    },
    "1.4": {
        "return torch.hstack([gradient.norm() for gradient in gradients])": SAME_STACK,
        "states = [state.requires_grad_()]": "the exercise itself proposes it",
    },
    "1.5": {},
    "1.6": {
        "norm = torch.hstack([g.norm() for g in gradients]).norm().item()": SAME_STACK,
        "norm = torch.stack([g.norm() for g in gradients]).norm()": "a tensor of one number serves as the float",
        "for g in list(gradients)[::-1]:": "the order in which gradients are scaled does not matter",
        "if max_norm < norm:": "the exercise does not ask about gradients that are not finite",
        "pass": NOT_ASKED,
        "parameters = parameters": NOT_ASKED,
        "parameters = [parameters] if isinstance(max_norm, Tensor) else parameters": NOT_ASKED,
        **{
            f"parameters = [{name}] if isinstance(parameters, Tensor) else parameters": NOT_ASKED
            for name in ("max_norm", "gradients", "norm", "g", "p")
        },
        "if not parameters:": NO_GRADIENT,
        "if not max_norm:": NO_GRADIENT,
        "return 1.0": NO_GRADIENT,
        "return -1.0": NO_GRADIENT,
        "without if not gradients: / return 0.0": NO_GRADIENT,
    },
}


# --- 1.1 Elman step: right ------------------------------------------------------------------------------------------


@right("1.1", "F.linear")
def elman_step(x, h, W, U, b):
    return nn.functional.linear(x, W, b).add(nn.functional.linear(h, U)).tanh()


@right("1.1", "einsum, other names")
def elman_step(inputs, state, A, B, bias):
    total = torch.einsum("bi,hi->bh", inputs, A) + torch.einsum("bj,hj->bh", state, B)
    return torch.tanh(total + bias)


@right("1.1", "one example after the other")
def elman_step(x, h, W, U, b):
    rows = []
    for i in range(x.shape[0]):
        rows.append(torch.tanh(W @ x[i] + U @ h[i] + b))
    return torch.stack(rows)


@right("1.1", "addmm and tanh by hand")
def elman_step(x, h, W, U, b):
    total = torch.addmm(torch.addmm(b, x, W.t()), h, U.t())
    return (total.exp() - (-total).exp()) / (total.exp() + (-total).exp())


@right("1.1", "PyTorch's cell")
def elman_step(x, h, W, U, b):
    return torch.rnn_tanh_cell(x, h, W, U, b, torch.zeros_like(b))


@right("1.1", "side by side")
def elman_step(x, h, W, U, b):
    return torch.tanh(torch.cat([x, h], dim=1) @ torch.cat([W, U], dim=1).T + b)


@right("1.1", "prints on the way")
def elman_step(x, h, W, U, b, verbose=True):
    if verbose:
        print("x", x.shape)
    return torch.tanh((W @ x.T + U @ h.T + b[:, None]).T)


# --- 1.1 wrong ------------------------------------------------------------------------------------------------------


@wrong("1.1", "no transpose", says="from the right by the transposes, `x @ W.T` and `h @ U.T`")
def elman_step(x, h, W, U, b):
    return torch.tanh(x @ W + h @ U + b)


@wrong("1.1", "as on paper", says="from the right by the transposes, `x @ W.T` and `h @ U.T`")
def elman_step(x, h, W, U, b):
    return torch.tanh(W @ x + U @ h + b)


@wrong("1.1", "W and U swapped", says="Here x is multiplied by U: W belongs to x, U belongs to h.")
def elman_step(x, h, W, U, b):
    return torch.tanh(x @ U.T + h @ W.T + b)


@wrong("1.1", "U and W swapped, the state first", says="Here h is multiplied by W: W belongs to x, U belongs to h.")
def elman_step(x, h, W, U, b):
    return torch.tanh(nn.functional.linear(h, W) + nn.functional.linear(x, U, b))


@wrong("1.1", "columns", says="Rows and columns are swapped")
def elman_step(x, h, W, U, b):
    return torch.tanh(W @ x.T + U @ h.T + b[:, None])


@wrong("1.1", "columns, bias as it comes", says="These two do not fit entry by entry")
def elman_step(x, h, W, U, b):
    return torch.tanh(W @ x.T + U @ h.T + b)


@wrong("1.1", "minus", says="; expected ")
def elman_step(x, h, W, U, b):
    return torch.tanh(x @ W.T - h @ U.T + b)


@wrong("1.1", "prints instead of returning", says="None (is the `return` missing?)")
def elman_step(x, h, W, U, b):
    print(torch.tanh(x @ W.T + h @ U.T + b))


@wrong("1.1", "NumPy", says="something of NumPy (stay with torch's functions)")
def elman_step(x, h, W, U, b):
    import numpy

    return numpy.tanh((x @ W.T + h @ U.T + b).numpy())


@wrong("1.1", "NumPy and back", says="Stay with torch's functions: the gradient has to pass through")
def elman_step(x, h, W, U, b):
    import numpy

    return torch.from_numpy(numpy.tanh((x @ W.T + h @ U.T + b).numpy()))


@wrong("1.1", "a list of rows", says="a list of 3")
def elman_step(x, h, W, U, b):
    return [torch.tanh(W @ x[i] + U @ h[i] + b) for i in range(len(x))]


@wrong("1.1", "a comma too many", says="a tuple of 1 (is there a comma after it?)")
def elman_step(x, h, W, U, b):
    return (torch.tanh(x @ W.T + h @ U.T + b),)


@wrong("1.1", "output and state", says="got a tuple of 2")
def elman_step(x, h, W, U, b):
    h = torch.tanh(x @ W.T + h @ U.T + b)
    return h, h


@wrong("1.1", "in place", says="It changes its input h in place")
def elman_step(x, h, W, U, b):
    h.copy_(torch.tanh(x @ W.T + h @ U.T + b))
    return h


@wrong("1.1", "sum changed in place", says="A tensor that the gradient needs was changed in place")
def elman_step(x, h, W, U, b):
    h = torch.tanh(x @ W.T + h @ U.T + b)
    h += 0
    return h


@wrong("1.1", "detached", says="no gradient reaches h")
def elman_step(x, h, W, U, b):
    return torch.tanh(x @ W.T + h.detach() @ U.T + b)


@wrong("1.1", "gradients switched off for good", says="no gradient reaches x")
def elman_step(x, h, W, U, b):
    torch.set_grad_enabled(False)
    return torch.tanh(x @ W.T + h @ U.T + b)


@wrong("1.1", "no_grad", says="no gradient reaches x")
def elman_step(x, h, W, U, b):
    with torch.no_grad():
        return torch.tanh(x @ W.T + h @ U.T + b)


@right("1.1", "fixed dtype")
def elman_step(x, h, W, U, b):
    out = torch.zeros(len(x), len(b), device=x.device)
    for i in range(len(x)):
        out[i] = torch.tanh(W @ x[i] + U @ h[i] + b)
    return out


@right("1.1", "casts one part")
def elman_step(x, h, W, U, b):
    return torch.tanh(x.float() @ W.T + h @ U.T + b)


@wrong("1.1", "fixed batch", says="take them from the shapes of the inputs")
def elman_step(x, h, W, U, b):
    return torch.stack([torch.tanh(W @ x[i] + U @ h[i] + b) for i in range(3)])


@wrong("1.1", "fixed sizes", says="take them from the shapes of the inputs")
def elman_step(x, h, W, U, b):
    return torch.tanh(x @ W.T + h @ U.T + b).view(3, 5)


@wrong("1.1", "squeezes", says="are sizes fixed, or is something squeezed?")
def elman_step(x, h, W, U, b):
    return torch.tanh(x @ W.T + h @ U.T + b).squeeze()


@wrong("1.1", "noise", says="is something random, or kept between calls")
def elman_step(x, h, W, U, b):
    return nn.functional.dropout(torch.tanh(x @ W.T + h @ U.T + b), 0.5)


@wrong("1.1", "weights of its own", says="is something random, or kept between calls")
def elman_step(x, h, W, U, b):
    return nn.RNNCell(x.shape[1], h.shape[1])(x, h)


@wrong("1.1", "NaN", says="h holds NaN")
def elman_step(x, h, W, U, b):
    return torch.atanh(x @ W.T + h @ U.T + b)


@wrong("1.1", "endless", says="is there a loop that never ends?")
def elman_step(x, h, W, U, b):
    i = 0
    while i < len(x):
        new = torch.tanh(x @ W.T + h @ U.T + b)
    return new


@wrong("1.1", "calls itself", says="It calls itself without end")
def elman_step(x, h, W, U, b):
    def elman_step(x, h, W, U, b):
        return elman_step(x, h, W, U, b)

    return elman_step(x, h, W, U, b)


@wrong("1.1", "leaves", says="It stopped with SystemExit at your line `sys.exit()`")
def elman_step(x, h, W, U, b):
    import sys

    sys.exit()


@wrong("1.1", "interrupts", says="It stopped with KeyboardInterrupt")
def elman_step(x, h, W, U, b):
    raise KeyboardInterrupt


@wrong("1.1", "a name that is not there", says="NameError at your line `return tanh(x @ W.T + h @ U.T + b)")
def elman_step(x, h, W, U, b):
    return tanh(x @ W.T + h @ U.T + b)  # noqa: F821


@wrong("1.1", "too few arguments", says="It must take (x, h, W, U, b); yours takes (x, h)")
def elman_step(x, h):
    return torch.tanh(x + h)


@wrong("1.1", "arguments in another order", says="The arguments must come in the order (x, h, W, U, b)")
def elman_step(h, x, W, U, b):
    return torch.tanh(x @ W.T + h @ U.T + b)


# --- 1.2 LSTM step: right -------------------------------------------------------------------------------------------


@right("1.2", "block by block")
def lstm_step(x, h, c, W, U, b):
    d = h.shape[1]

    def block(k):
        rows = slice(k * d, (k + 1) * d)
        return x @ W[rows].T + h @ U[rows].T + b[rows]

    i, f, g, o = block(0).sigmoid(), block(1).sigmoid(), block(2).tanh(), block(3).sigmoid()
    c_new = f * c + i * g
    return o * c_new.tanh(), c_new


@right("1.2", "einsum and view")
def lstm_step(x, h, c, W, U, b):
    total = torch.einsum("bi,oi->bo", x, W) + torch.einsum("bj,oj->bo", h, U) + b
    i, f, g, o = total.view(x.shape[0], 4, -1).unbind(dim=1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


@right("1.2", "PyTorch's cell")
def lstm_step(x, h, c, W, U, b):
    return torch.lstm_cell(x, (h, c), W, U, b, torch.zeros_like(b))


@right("1.2", "nn.LSTMCell with these weights")
def lstm_step(x, h, c, W, U, b):
    cell = nn.LSTMCell(x.shape[1], h.shape[1], device="meta")
    weights = {"weight_ih": W, "weight_hh": U, "bias_ih": b, "bias_hh": torch.zeros_like(b)}
    h, c = torch.func.functional_call(cell, weights, (x, (h, c)))
    return h, c


@right("1.2", "split, sigmoid by hand")
def lstm_step(x, h, c, W, U, b):
    def sigmoid(t):
        return 1 / (1 + torch.exp(-t))

    i, f, g, o = torch.split(nn.functional.linear(x, W) + nn.functional.linear(h, U, b), h.size(1), dim=1)
    new_c = torch.addcmul(sigmoid(f) * c, sigmoid(i), torch.tanh(g))
    return sigmoid(o) * torch.tanh(new_c), new_c


# --- 1.2 wrong ------------------------------------------------------------------------------------------------------


@wrong("1.2", "the slide", says="The slide in S4 has this slip")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4, dim=-1)
    i, f, g, o = torch.sigmoid(i), torch.sigmoid(f), torch.tanh(g), torch.sigmoid(o)
    return o * torch.tanh(g), f * c + i * g


@wrong("1.2", "all sigmoid", says="The candidate g is squashed by tanh, not by the sigmoid")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = torch.sigmoid(x @ W.T + h @ U.T + b).chunk(4, dim=-1)
    c = f * c + i * g
    return o * torch.tanh(c), c


@wrong("1.2", "only h", says="Expected h and c to be returned; got a tensor of shape (3, 5)")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c)


@right("1.2", "a list")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return [torch.sigmoid(o) * torch.tanh(c), c]


@wrong("1.2", "as nn.LSTM does", says="Expected h to be a tensor of shape (3, 5); got a tuple of 2")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return (h, c), h


@wrong("1.2", "in place", says="It changes its input c in place")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4, dim=-1)
    c *= torch.sigmoid(f)
    c += torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


@wrong("1.2", "detached", says="no gradient reaches c")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c.detach() + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


@wrong("1.2", "cell state cut off in h", says="a wrong gradient reaches x")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c.data), c


@wrong("1.2", "chunks of the batch", says="without `dim`, of the batch")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


@wrong("1.2", "split by the number", says="`split` takes their size")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (x @ W.T + h @ U.T + b).split(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


@wrong("1.2", "interleaved", says="; expected ")
def lstm_step(x, h, c, W, U, b):
    total = x @ W.T + h @ U.T + b
    i, f, g, o = (total[:, k::4] for k in range(4))
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


@wrong("1.2", "fixed slices", says="These two do not fit entry by entry")
def lstm_step(x, h, c, W, U, b):
    total = x @ W.T + h @ U.T + b
    i, f, g, o = total[:, :5], total[:, 5:10], total[:, 10:15], total[:, 15:]
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


@wrong("1.2", "no transpose", says="from the right by the transposes, `x @ W.T` and `h @ U.T`")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (x @ W + h @ U + b).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


@wrong("1.2", "W and U swapped", says="Here x is multiplied by U: W belongs to x, U belongs to h.")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (x @ U.T + h @ W.T + b).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


@wrong("1.2", "U and W swapped, the state first", says="Here h is multiplied by W: W belongs to x, U belongs to h.")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (h @ W.T + x @ U.T + b).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


@wrong("1.2", "@ for ⊙", says="⊙ multiplies entry by entry, `*`, not `@`.")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4, dim=-1)
    c = torch.sigmoid(f) @ c + torch.sigmoid(i) @ torch.tanh(g)
    return torch.sigmoid(o) @ torch.tanh(c), c


@wrong("1.2", "@ for ⊙ with a transpose", says="⊙ multiplies entry by entry, `*`, not `@`.")
def lstm_step(x, h, c, W, U, b):
    i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4, dim=-1)
    c = torch.sigmoid(f) @ c.T + torch.sigmoid(i) @ torch.tanh(g).T
    return torch.sigmoid(o) @ torch.tanh(c), c


# --- 1.3 an LSTM set by hand: right ----------------------------------------------------------------------------------


@right("1.3", "cat of four blocks")
def latch_weights(bits):
    big = 30.0
    write = torch.cat([torch.zeros(bits, bits), torch.ones(bits, 1)], dim=1)
    values = torch.cat([torch.eye(bits), torch.zeros(bits, 1)], dim=1)
    W = torch.cat([2 * big * write, -2 * big * write, big * values, 0 * write])
    ones = torch.ones(bits)
    b = torch.cat([-big * ones, big * ones, 0 * ones, big * ones])
    return W, torch.zeros(4 * bits, bits), b


@right("1.3", "entry by entry")
def latch_weights(bits):
    W = torch.zeros(4 * bits, bits + 1)
    b = torch.zeros(4 * bits)
    for k in range(bits):
        W[k, bits], b[k] = 50.0, -25.0
        W[bits + k, bits], b[bits + k] = -50.0, 25.0
        W[2 * bits + k, k] = 5.0
        b[3 * bits + k] = 10.0
    return [W, torch.zeros(4 * bits, bits), b]


@right("1.3", "the candidate keeps the sign by its own state, too")
def latch_weights(bits):
    W = torch.zeros(4, bits, bits + 1)
    W[0, :, -1], W[1, :, -1] = 40.0, -40.0
    W[2, :, :-1] = 9 * torch.eye(bits)
    U = torch.zeros(4, bits, bits)
    U[3] = 0.1 * torch.eye(bits)
    b = torch.tensor([-20.0, 20.0, 0.0, 20.0]).repeat_interleave(bits)
    return W.reshape(4 * bits, -1), U.reshape(4 * bits, bits), b


@right("1.3", "gate by gate")
def latch_weights(bits):
    W = torch.zeros(4, bits, bits + 1)
    W[0, :, -1] = 40.0
    W[1, :, -1] = -40.0
    W[2, :, :-1] = 20 * torch.eye(bits)
    b = torch.tensor([-20.0, 20.0, 0.0, 20.0]).repeat_interleave(bits)
    return W.flatten(0, 1), torch.zeros(4 * bits, bits), b


# --- 1.3 wrong ------------------------------------------------------------------------------------------------------


BANK.spoilt(
    "1.3",
    "gate by gate",
    """
    = 40.0 → = -60.0 ; = -40.0 → = 40.0 ; [-20.0, 20.0 → [20.0, -20.0
        · would do with the blocks in the order f, i, g, o; but the blocks come in the order i, f, g, o.
    = 40.0 → = -40.0 ; W[1, :, -1] = -40.0 → W[1, :, -1] = 40.0 ; [-20.0, 20.0 → [20.0, -20.0
        · would do with the blocks in the order f, i, g, o; but the blocks come in the order i, f, g, o.
    W[2 → W[3 ; 0.0, 20.0] → 20.0, 0.0]
        · would do with the blocks in the order i, f, o, g; but the blocks come in the order i, f, g, o.
    W[0, :, -1] → W[0, :, 0] ; W[1, :, -1] → W[1, :, 0] ; :-1] → 1:]
        · would do with `write` as the first column of W; but an input has the values first
    W[0, :, -1] → W[0, :, 0] ; W[1, :, -1] → W[1, :, 0] ; W[2, :, :-1] → W[3, :, 1:] ; 0.0, 20.0] → 20.0, 0.0]
        · would do with `write` as the first column of W and with the blocks in the order i, f, o, g; but an input
    W[0, :, -1] = 40.0 → · But then the input gate is as low as 2.1e-09: open it.
    0.0, 20.0] → 0.0, -20.0] · But then the output gate is as low as 2.1e-09: open it.
    W[0 → W[[0, 3] ; 0.0, 20.0] → 0.0, -20.0] · the output gate must be open at every step, not on a write alone
    W[2, :, :-1] = 20 * torch.eye(bits) → ; 0.0, 20.0] → 20.0, 20.0] · the candidate does not follow the values
    20 * → 0.5 * · the candidate is only 0.46 away from 0, and h shows the tanh of that
    W[0, :, -1] → W[0, :, 1] ; W[1, :, -1] → W[1, :, 1] · One bit can be written, but of 3 some are wrong
    = -40.0 → = -torch.inf ; [-20.0, 20.0 → [-20.0, torch.inf ;
        :, :-1] = 20 * torch.eye(bits) → torch.arange(bits), torch.arange(bits)] = torch.inf
        · After a write h is NaN: is a weight infinite?
    W[1, :, -1] = -40.0 → · the old value must go, or the two are added
    [-20.0, 20.0 → [-20.0, 4.0 · how near to 1 is the forget gate?
    W[0, :, -1] = 40.0 → ; [-20.0 → [20.0 · but not among random values that are not to be written
    [-20.0 → [-5.3 · must be shut tighter
    20 * → -20 * · What is shown has the wrong sign
    = 40.0 → = 2.0 ; = -40.0 → = -2.0 ; 20 * → ; [-20.0, 20.0, 0.0, 20.0] → [-1.0, 1.0, 0.0, 1.0]
        · are the weights large?
    20 * torch.eye(bits) → 20.0 · each needs its own row and its own column, and `write` is the last column
    """,
)


@wrong(
    "1.3", "zeros", says="h must be above 0.5 where +1 was written and below −0.5 where −1 was. But then the candidate"
)
def latch_weights(bits):
    return torch.zeros(4 * bits, bits + 1), torch.zeros(4 * bits, bits), torch.zeros(4 * bits)


@wrong(
    "1.3", "lists of numbers", says="W is a list of 4, U is a list of 4, b is a list of 4. `torch.tensor(…)` makes a"
)
def latch_weights(bits):
    W = [[0.0] * bits + [write] for write in (40.0, -40.0, 0.0, 0.0) for _ in range(bits)]
    return W, [[0.0] * bits for _ in range(4 * bits)], [0.0] * (4 * bits)


@wrong("1.3", "W alone", says="Expected three tensors to be returned, W, U and b")
def latch_weights(bits):
    return torch.zeros(4 * bits, bits + 1)


@wrong("1.3", "without write", says="With 1 bits W must have the shape (4, 2); got (4, 1).")
def latch_weights(bits):
    return torch.zeros(4 * bits, bits), torch.zeros(4 * bits, bits), torch.zeros(4 * bits)


@wrong("1.3", "float64", says="Inputs are torch.float32, and W is torch.float64")
def latch_weights(bits):
    W = torch.zeros(4 * bits, bits + 1, dtype=torch.float64)
    return W, torch.zeros(4 * bits, bits), torch.zeros(4 * bits)


@wrong("1.3", "NumPy", says="These are NumPy arrays")
def latch_weights(bits):
    return torch.zeros(4 * bits, bits + 1).numpy(), torch.zeros(4 * bits, bits), torch.zeros(4 * bits)


@wrong("1.3", "no U", says="U is None")
def latch_weights(bits):
    return torch.zeros(4 * bits, bits + 1), None, torch.zeros(4 * bits)


@wrong("1.3", "lists", says="what is multiplied here is a list")
def latch_weights(bits):
    return [[0.0] * (bits + 1)] * 20.0, torch.zeros(4 * bits, bits), torch.zeros(4 * bits)


@wrong("1.3", "blocks of one row", says="a block has `bits` rows")
def latch_weights(bits):
    W = torch.zeros(4, bits, bits + 1)
    W[2] = torch.eye(bits) + torch.zeros(bits, bits + 3)
    return W.flatten(0, 1), torch.zeros(4 * bits, bits), torch.zeros(4 * bits)


# --- 1.4 gradient flow: right ---------------------------------------------------------------------------------------


@right("1.4", "backward and retain_grad")
def gradient_flow(step, xs, state):
    state = state.clone().requires_grad_()
    states = [state]
    for x in xs:
        state = step(x, state)
        state.retain_grad()
        states.append(state)
    states[-1].sum().backward()
    return torch.stack([s.grad.norm() for s in states])


@right("1.4", "requires_grad_ on the state given")
def gradient_flow(step, xs, state):
    state.requires_grad_()
    states = [state]
    for t in range(len(xs)):
        states += [step(xs[t], states[t])]
    return torch.tensor([g.norm() for g in torch.autograd.grad(states[-1].sum(), states)])


@right("1.4", "numbers by item()")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_(True)]
    for x in xs:
        states.append(step(x, states[-1]))
    return torch.tensor([torch.autograd.grad(states[-1].sum(), s, retain_graph=True)[0].norm().item() for s in states])


@right("1.4", "vector-Jacobian products by hand")
def gradient_flow(step, xs, state):
    states = [state]
    for x in xs:
        states.append(step(x, states[-1]).detach())
    gradient = torch.ones_like(states[-1])
    norms = [gradient.norm()]
    for x, before in zip(xs.flip(0), states[-2::-1]):
        _, gradient = torch.autograd.functional.vjp(lambda s: step(x, s), before, gradient)
        norms.insert(0, gradient.norm())
    return torch.stack(norms)


@right("1.4", "ones as the weights of the outputs")
def gradient_flow(step, xs, state):
    states = [state.detach().clone().requires_grad_()]
    for x in xs.unbind(0):
        states.append(step(x, states[-1]))
    grads = torch.autograd.grad(states[-1], states, grad_outputs=torch.ones_like(states[-1]))
    return torch.stack([(g**2).sum().sqrt() for g in grads])


# --- 1.4 wrong ------------------------------------------------------------------------------------------------------


@wrong("1.4", "no requires_grad", says="The first state needs `requires_grad_()`")
def gradient_flow(step, xs, state):
    states = [state]
    for x in xs:
        states.append(step(x, states[-1]))
    return torch.stack([g.norm() for g in torch.autograd.grad(states[-1].sum(), states)])


@wrong("1.4", "entries added up", says="This is the sum of the entries (or of their sizes)")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_()]
    for x in xs:
        states.append(step(x, states[-1]))
    return torch.stack([g.sum() for g in torch.autograd.grad(states[-1].sum(), states)])


@wrong("1.4", "no sum", says="Differentiate one number: the sum of the last state")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_()]
    for x in xs:
        states.append(step(x, states[-1]))
    return torch.stack([g.norm() for g in torch.autograd.grad(states[-1], states)])


@wrong("1.4", "backward without retain_grad", says="After `backward` only leaves keep their .grad")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_()]
    for x in xs:
        states.append(step(x, states[-1]))
    states[-1].sum().backward()
    return torch.stack([s.grad.norm() for s in states])


@wrong("1.4", "detached, gaps allowed", says="a `detach` cuts the chain to the last state.")
def gradient_flow(step, xs, state):
    states = [state.detach().requires_grad_()]
    for x in xs:
        states.append(step(x, states[-1].detach().requires_grad_()))
    gradients = torch.autograd.grad(states[-1].sum(), states, allow_unused=True)
    return torch.stack([gradient.norm() for gradient in gradients])


@wrong("1.4", "graph freed", says="pass `retain_graph=True`")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_()]
    for x in xs:
        states.append(step(x, states[-1]))
    return torch.stack([torch.autograd.grad(states[-1].sum(), s)[0].norm() for s in states])


@wrong("1.4", "keeps copies", says="give `step` the very tensors you keep")
def gradient_flow(step, xs, state):
    state.requires_grad_()
    states = [state.clone()]
    for x in xs:
        state = step(x, state)
        states.append(state.clone())
    return torch.stack([g.norm() for g in torch.autograd.grad(states[-1].sum(), states)])


@wrong("1.4", "detached at each step", says="give `step` the very tensors you keep")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_()]
    for x in xs:
        states.append(step(x, states[-1]).detach().requires_grad_())
    return torch.stack([g.norm() for g in torch.autograd.grad(states[-1].sum(), states)])


@wrong("1.4", "every step detached", says="no step may `detach`")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_()]
    for x in xs:
        states.append(step(x, states[-1].detach()))
    return torch.stack([g.norm() for g in torch.autograd.grad(states[-1].sum(), states)])


@wrong("1.4", "one step at a time", says="Is there a `detach` between them?")
def gradient_flow(step, xs, state):
    norms = []
    for x in xs:
        before = state.detach().requires_grad_()
        state = step(x, before)
        norms.append(torch.autograd.grad(state.sum(), before)[0].norm())
    return torch.stack([*norms, torch.ones_like(state).norm()])


@wrong("1.4", "first state missing", says="The state you start from is missing")
def gradient_flow(step, xs, state):
    states, state = [], state.requires_grad_()
    for x in xs:
        state = step(x, state)
        states.append(state)
    return torch.stack([g.norm() for g in torch.autograd.grad(state.sum(), states)])


@wrong("1.4", "last state missing", says="The last state itself is missing")
def gradient_flow(step, xs, state):
    states, state = [], state.requires_grad_()
    for x in xs:
        states.append(state)
        state = step(x, state)
    return torch.stack([g.norm() for g in torch.autograd.grad(state.sum(), states)])


@wrong("1.4", "the slides' loop", says="The first input is never read")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_()]
    for t in range(1, len(xs)):
        states.append(step(xs[t], states[-1]))
    return torch.stack([g.norm() for g in torch.autograd.grad(states[-1].sum(), states)])


@wrong("1.4", "a norm for each example", says="Expected one norm for each state of shape (7,); got (7, 3)")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_()]
    for x in xs:
        states.append(step(x, states[-1]))
    return torch.stack([g.norm(dim=-1) for g in torch.autograd.grad(states[-1].sum(), states)])


@wrong("1.4", "relative to the last", says="The last entry must be 3.873")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_()]
    for x in xs:
        states.append(step(x, states[-1]))
    norms = torch.stack([g.norm() for g in torch.autograd.grad(states[-1].sum(), states)])
    return norms / norms[-1]


@wrong("1.4", "a list", says="Expected one norm for each state to be a tensor of shape (7,); got a list of 7")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_()]
    for x in xs:
        states.append(step(x, states[-1]))
    return [g.norm().item() for g in torch.autograd.grad(states[-1].sum(), states)]


@wrong("1.4", "the gradients", says="Expected one norm for each state to be returned; got a tuple of 7")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_()]
    for x in xs:
        states.append(step(x, states[-1]))
    return torch.autograd.grad(states[-1].sum(), states)


@wrong("1.4", "a list as default", says="kept between calls")
def gradient_flow(step, xs, state, states=[]):
    states.append(state.requires_grad_())
    for x in xs:
        states.append(step(x, states[-1]))
    gradients = torch.autograd.grad(states[-1].sum(), states, allow_unused=True)
    return torch.stack([torch.zeros(()) if g is None else g.norm() for g in gradients])[-len(xs) - 1 :] + len(states)


@wrong("1.4", "step without x", says="step() missing 1 required positional argument: 'state'")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_()]
    for x in xs:
        states.append(step(states[-1]))
    return torch.stack([g.norm() for g in torch.autograd.grad(states[-1].sum(), states)])


@wrong("1.4", "walks over the batch", says="Expected one norm for each state of shape (7,); got (4,)")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_()]
    for t in range(xs.shape[1]):
        states.append(step(xs[t], states[-1]))
    return torch.stack([g.norm() for g in torch.autograd.grad(states[-1].sum(), states)])


@wrong("1.4", "changes the first state", says="It changes its input state in place")
def gradient_flow(step, xs, state):
    states = [state.clone().requires_grad_()]
    for x in xs:
        states.append(step(x, states[-1]))
    state.copy_(states[-1].detach())
    return torch.stack([g.norm() for g in torch.autograd.grad(states[-1].sum(), states)])


@wrong("1.4", "endless", says="is there a loop that never ends?")
def gradient_flow(step, xs, state):
    states = [state.requires_grad_()]
    while len(states) != 0:
        step(xs[0], states[-1])
    return torch.stack([g.norm() for g in torch.autograd.grad(states[-1].sum(), states)])


# --- 1.5 solve for the radius: right --------------------------------------------------------------------------------


@right("1.5", "logarithms")
def scaled_to_keep(U, share, steps):
    import math

    wanted = math.exp(math.log(share) / steps)
    eigenvalues, _ = torch.linalg.eig(U)
    return wanted / eigenvalues.abs().max() * U


@right("1.5", "NumPy's eigenvalues")
def scaled_to_keep(U, share, steps):
    import numpy

    radius = max(abs(numpy.linalg.eigvals(U.numpy())))
    return U * float(share ** (1 / steps) / radius)


@right("1.5", "real and imaginary part")
def scaled_to_keep(U, share, steps):
    values = torch.linalg.eigvals(U)
    sizes = (values.real**2 + values.imag**2).sqrt()
    return U / sizes.amax() * pow(share, 1 / steps)


# --- 1.5 wrong ------------------------------------------------------------------------------------------------------


@wrong("1.5", "the largest of complex numbers", says="take their sizes first")
def scaled_to_keep(U, share, steps):
    return U * share ** (1 / steps) / torch.linalg.eigvals(U).max()


@wrong("1.5", "the radius alone", says="Expected U to be a tensor of shape (5, 5); got a float")
def scaled_to_keep(U, share, steps):
    return share ** (1 / steps)


@wrong("1.5", "changes U", says="It changes its input U in place")
def scaled_to_keep(U, share, steps):
    U *= share ** (1 / steps) / torch.linalg.eigvals(U).abs().max()
    return U


@wrong("1.5", "scaled by a complex number", says="Yours is a complex matrix")
def scaled_to_keep(U, share, steps):
    values = torch.linalg.eigvals(U)
    return U * share ** (1 / steps) / values[values.abs().argmax()]


@wrong("1.5", "twice the radius", says="the spectral radius must be 0.955; your matrix has 1.91")
def scaled_to_keep(U, share, steps):
    return 2 * U * share ** (1 / steps) / torch.linalg.eigvals(U).abs().max()


@wrong("1.5", "brackets missing", says="`share ** 1 / steps` divides, too")
def scaled_to_keep(U, share, steps):
    return U * share**1 / steps / torch.linalg.eigvals(U).abs().max()


# --- 1.6 clipping: right --------------------------------------------------------------------------------------------


@right("1.6", "PyTorch's own")
def clip_gradients(parameters, max_norm):
    return nn.utils.clip_grad_norm_(parameters, max_norm).item()


@right("1.6", "one long vector")
def clip_gradients(parameters, max_norm):
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    if norm > max_norm:
        for g in gradients:
            g *= max_norm / norm
    return norm.item()


@right("1.6", "a new gradient, a tensor returned")
def clip_gradients(parameters, max_norm):
    parameters = [p for p in parameters if p.grad is not None]
    norm = sum((p.grad**2).sum() for p in parameters) ** 0.5
    factor = torch.clamp(max_norm / (norm + 1e-6), max=1.0)
    for p in parameters:
        p.grad = p.grad * factor
    return norm


@right("1.6", "sum of squares in Python")
def clip_gradients(parameters, max_norm):
    import math

    parameters = list(parameters)
    total = 0.0
    for p in parameters:
        if p.grad is None:
            continue
        total += float(p.grad.pow(2).sum())
    norm = math.sqrt(total)
    if norm > max_norm:
        for p in parameters:
            if p.grad is not None:
                p.grad.data.mul_(max_norm / norm)
    return norm


@right("1.6", "NumPy's number")
def clip_gradients(parameters, max_norm):
    import numpy

    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = numpy.sqrt(sum((g.numpy() ** 2).sum() for g in gradients))
    for g in gradients:
        g.div_(max(1.0, float(norm) / max_norm))
    return norm


# --- 1.6 wrong ------------------------------------------------------------------------------------------------------


@wrong("1.6", "the factor in plain numbers", says="your answer divides by their norm, 0: divide only where")
def clip_gradients(parameters, max_norm):
    gradients = [p.grad for p in parameters if p.grad is not None]
    n = sum(g.pow(2).sum().item() for g in gradients) ** 0.5
    factor = min(1, max_norm / n)
    for g in gradients:
        g.mul_(factor)
    return n


@wrong("1.6", "None not skipped", says="A parameter may have no gradient (.grad is None): skip it")
def clip_gradients(parameters, max_norm):
    parameters = list(parameters)
    norm = torch.stack([p.grad.norm() for p in parameters]).norm().item()
    if norm > max_norm:
        for p in parameters:
            p.grad.mul_(max_norm / norm)
    return norm


@wrong("1.6", "walks twice", says="an iterator that can be walked only once")
def clip_gradients(parameters, max_norm):
    norm = torch.stack([p.grad.norm() for p in parameters if p.grad is not None]).norm().item()
    if norm > max_norm:
        for p in parameters:
            if p.grad is not None:
                p.grad.mul_(max_norm / norm)
    return norm


@wrong("1.6", "takes len()", says="an iterator that can be walked only once")
def clip_gradients(parameters, max_norm):
    total = 0.0
    for i in range(len(parameters)):
        if parameters[i].grad is not None:
            total += parameters[i].grad.pow(2).sum().item()
    if total**0.5 > max_norm:
        for p in parameters:
            if p.grad is not None:
                p.grad.mul_(max_norm / total**0.5)
    return total**0.5


@wrong("1.6", "gaps filled with zeros", says="must stay so: skip it")
def clip_gradients(parameters, max_norm):
    parameters = list(parameters)
    for p in parameters:
        if p.grad is None:
            p.grad = torch.zeros_like(p)
    return nn.utils.clip_grad_norm_(parameters, max_norm).item()


@wrong("1.6", "return inside the if", says="and None is returned; return the norm then, too")
def clip_gradients(parameters, max_norm):
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.stack([g.norm() for g in gradients]).norm().item()
    if norm > max_norm:
        for g in gradients:
            g.mul_(max_norm / norm)
        return norm


@wrong("1.6", "0 where nothing is clipped", says="and 0 is returned; return the norm then, too")
def clip_gradients(parameters, max_norm):
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.stack([g.norm() for g in gradients]).norm().item()
    if norm <= max_norm:
        return 0
    for g in gradients:
        g.mul_(max_norm / norm)
    return norm


@wrong("1.6", "the comparison turned round", says="turn the comparison round")
def clip_gradients(parameters, max_norm):
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.stack([g.norm() for g in gradients]).norm().item()
    if norm < max_norm:
        for g in gradients:
            g.mul_(max_norm / norm)
    return norm


BANK.edited(
    "1.6",
    """
    if p.grad is not None → if p.grad · To ask whether a tensor is there, write `is None` or `is not None`
    return norm → · None (is the `return` missing?)
    return norm → return norm, parameters · Expected the norm, a number, to be returned; got a tuple of 2
    return norm → return torch.stack([g.norm() for g in gradients]).norm() · the norm after clipping is returned
    return norm → return min(1.0, max_norm / norm) · the factor is returned
    ]).norm().item() → ]).sum().item() · the norms of the parts are added up
    ]).norm().item() → ]).mean().item() · the mean of the norms is taken
    ]).norm().item() → ]).norm().item() ** 2 · the root of the sum of squares is missing
    ]).norm().item() → ]).max().item() · only the largest or the last gradient is counted
    ]).norm().item() → ]).norm().item() / 2 · have the joint norm √(9 + 16 + 144) = 13; got 6.5.
    torch.stack([g.norm() for g in gradients]).norm() → sum(g.sum() for g in gradients) · the gradients are added up
    g.norm() for g in gradients → p.norm() for p in parameters · the norm of the parameters; take it of their .grad
    for g in gradients: → for p in parameters: ; g.mul_ → p.data.mul_ · The parameters themselves were changed
    for g in gradients: → for p in parameters: ; g.mul_ → p.mul_ · The parameters themselves are changed
    g.mul_(max_norm / norm) → g * max_norm / norm · The gradients are as they were
    g.mul_(max_norm / norm) → g.clamp_(-max_norm, max_norm) · clipped on its own, which turns the direction
    (max_norm / norm) → (min(1, max_norm / g.norm())) · clipped on its own, which turns the direction
    (max_norm / norm) → (norm / max_norm) · The joint norm must be 1 after clipping to 1; it is 169
    if max_norm < norm < math.inf → if norm > 0 · A gradient of norm 0.13 must stay as it is
    .norm().item() → .norm() ; if max_norm < norm < math.inf → if True ;
        g.mul_(max_norm / norm) → g.div_(norm).mul_(norm.clamp(max=max_norm)) · Gradients of zero become NaN
    if max_norm < norm → if 1 < norm ; (max_norm / norm) → (1 / norm)
        · Clipping the norm 13 to max_norm = 0.5 must give the norm 0.5; it gives 1.000
    if max_norm < norm < math.inf → if True ; (max_norm / norm) → (max_norm / max(norm, max_norm)) · max_norm = inf
    [g.norm() → [torch.linalg.norm(g, 2) if g.dim() == 2 else g.norm()
        · Square all entries, whatever the shape, add, take the root
    g.mul_ → (g[:1] if g.dim() > 1 else g).mul_ · gradients of several dimensions are not scaled as they should be
    for g in gradients: → for p in parameters: ; g.mul_(max_norm / norm) → p.grad = None
        · Afterwards a parameter has no gradient
    """,
)
