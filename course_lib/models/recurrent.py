r"""Recurrent networks from their equations: Elman (1990), LSTM (1997), GRU (2014), bidirectional.

A recurrent network reads a sequence one step at a time and keeps a *state*: a vector of fixed size that must hold
everything it will need later. Each cell is one function, `elman_step`, `lstm_step`, `gru_step`; the modules carry a
cell along a sequence. They equal `nn.RNN`, `nn.LSTM` and `nn.GRU` on the same weights.

Names as in the lectures: $x$ is the input, $h$ the state, $W$ multiplies the input, $U$ multiplies the state.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_lib.models.inputs import refuse_unfit_ids, refuse_unfit_numbers


def elman_step(x: Tensor, h: Tensor, W: Tensor, U: Tensor, b: Tensor) -> Tensor:
    r"""$h' = \tanh(W x + U h + b)$.

    x (batch, d_in), h (batch, d_hidden), W (d_hidden, d_in), U (d_hidden, d_hidden), b (d_hidden) → (batch, d_hidden)
    """
    return torch.tanh(x @ W.T + h @ U.T + b)


def lstm_step(x: Tensor, h: Tensor, c: Tensor, W: Tensor, U: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    r"""One step of the LSTM: $c' = f \odot c + i \odot g$, $h' = o \odot \tanh(c')$.

    The gates $i, f, o = \sigma(\cdot)$ and the candidate $g = \tanh(\cdot)$ each see $W x + U h + b$ with rows of their
    own, stacked in PyTorch's order i, f, g, o.

    x (batch, d_in), h and c (batch, d_hidden), W (4·d_hidden, d_in), U (4·d_hidden, d_hidden), b (4·d_hidden)
    """
    i, f, g, o = (x @ W.T + h @ U.T + b).chunk(4, dim=-1)  # each (batch, d_hidden)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return h, c


def gru_step(x: Tensor, h: Tensor, W: Tensor, U: Tensor, b: Tensor, b_U: Tensor) -> Tensor:
    r"""One step of the GRU: $h' = (1 - z) \odot n + z \odot h$, $n = \tanh(W_n x + b_n + r \odot (U_n h + b_{U,n}))$.

    The gates $r, z = \sigma(W x + b + U h + b_U)$; rows stacked in PyTorch's order r, z, n. The state has a bias of its
    own, since the reset gate $r$ scales it together with $U_n h$.

    x (batch, d_in), h (batch, d_hidden), W (3·d_hidden, d_in), U (3·d_hidden, d_hidden), b and b_U (3·d_hidden)
    """
    x_r, x_z, x_n = (x @ W.T + b).chunk(3, dim=-1)  # each (batch, d_hidden)
    h_r, h_z, h_n = (h @ U.T + b_U).chunk(3, dim=-1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return (1 - z) * n + z * h


class Recurrent(nn.Module):
    """A cell carried along a sequence. The subclasses below say which cell; ``step`` may be your own."""

    gates = 1  # blocks of d_hidden rows in W and U
    states = 1  # vectors in the state: h, or h and c

    def __init__(self, d_in: int, d_hidden: int, step: Callable):
        super().__init__()
        if d_in < 1 or d_hidden < 1:
            raise ValueError(f"d_in and d_hidden must be at least 1; got {d_in} and {d_hidden}.")
        self.d_in, self.d_hidden, self.step = d_in, d_hidden, step
        bound = d_hidden**-0.5  # PyTorch's initialisation
        for name, shape in {"W": (d_in,), "U": (d_hidden,), "b": ()}.items():
            values = torch.empty(self.gates * d_hidden, *shape).uniform_(-bound, bound)
            self.register_parameter(name, nn.Parameter(values))

    def advance(self, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """One step: x (batch, d_in) and the state before → the state after."""
        after = self.step(x, *state, self.W, self.U, self.b)
        return tuple(after) if isinstance(after, tuple | list) else (after,)

    def advance_one_vector(self, x: Tensor, state: Tensor) -> Tensor:
        """`advance` with the vectors of the state side by side in one: (batch, states · d_hidden)."""
        return torch.cat(self.advance(x, state.chunk(self.states, dim=-1)), dim=-1)

    def forward(self, x: Tensor, state: tuple[Tensor, ...] | None = None) -> tuple[Tensor, tuple[Tensor, ...]]:
        """x (batch, length, d_in) → every h (batch, length, d_hidden), and the last state."""
        if x.dim() != 3 or x.shape[-1] != self.d_in or x.shape[1] == 0:
            raise ValueError(f"Expected x of shape (batch, length ≥ 1, {self.d_in}); got {tuple(x.shape)}.")
        if state is None:
            state = (x.new_zeros(len(x), self.d_hidden),) * self.states
        outputs = []
        for x_t in x.unbind(dim=1):  # in series: step t cannot start before step t − 1 has ended
            state = self.advance(x_t, state)
            outputs.append(state[0])
        return torch.stack(outputs, dim=1), state


class Elman(Recurrent):
    """The simple recurrent network of Elman (1990)."""

    def __init__(self, d_in: int, d_hidden: int, step: Callable = elman_step):
        super().__init__(d_in, d_hidden, step)


class LSTM(Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et al. 2000)."""

    gates, states = 4, 2

    def __init__(self, d_in: int, d_hidden: int, step: Callable = lstm_step):
        super().__init__(d_in, d_hidden, step)


class GRU(Recurrent):
    """The gated recurrent unit of Cho et al. (2014), in the variant that PyTorch and cuDNN compute."""

    gates = 3

    def __init__(self, d_in: int, d_hidden: int, step: Callable = gru_step):
        super().__init__(d_in, d_hidden, step)
        self.b_U = nn.Parameter(torch.empty_like(self.b).uniform_(-(d_hidden**-0.5), d_hidden**-0.5))

    def advance(self, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (self.step(x, *state, self.W, self.U, self.b, self.b_U),)


class Bidirectional(nn.Module):
    """Two cells over one sequence, one from each end; their states side by side: (batch, length, 2·d_hidden)."""

    def __init__(self, cell: type[Recurrent], d_in: int, d_hidden: int):
        super().__init__()
        self.forwards, self.backwards = cell(d_in, d_hidden), cell(d_in, d_hidden)

    def forward(self, x: Tensor) -> Tensor:
        left, _ = self.forwards(x)
        right, _ = self.backwards(x.flip(1))
        return torch.cat([left, right.flip(1)], dim=-1)


class Classifier(nn.Module):
    """Reads tokens and names one class: embedding → network → scores from the network's last output.

    ``network``: (batch, length, d) → (batch, length, d) and a state, as `nn.RNN` and its kin.
    """

    def __init__(self, network: nn.Module, d: int, words: int, classes: int):
        super().__init__()
        if isinstance(network, nn.RNNBase) and (not network.batch_first or network.hidden_size != d):
            raise ValueError(f"Expected a network with batch_first=True and hidden size {d}; got {network}.")
        self.embed, self.network, self.answer = nn.Embedding(words, d), network, nn.Linear(d, classes)
        nn.init.normal_(self.embed.weight, std=0.1)  # small, so that no network starts out saturated

    def forward(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        """tokens (batch, length); lengths (batch) where some texts are filled up at the end → (batch, classes)"""
        refuse_unfit_ids(tokens, self.embed.num_embeddings, what="tokens")
        if lengths is not None and lengths.shape != tokens.shape[:1]:
            raise ValueError(f"Expected a length for each of {len(tokens)} texts; got {tuple(lengths.shape)}.")
        if lengths is not None:
            refuse_unfit_numbers(lengths, tokens.shape[1] + 1, "lengths", lowest=1)
        h, _ = self.network(self.embed(tokens))
        last = h[:, -1] if lengths is None else h[torch.arange(len(h), device=h.device), lengths - 1]
        return self.answer(last)
