"""Lesson 01: sentences with a blank, tables of counts, first weights, what a reader looks back at, answer keys."""

import math
from collections.abc import Mapping, Sequence
from itertools import product

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib import viz
from course_lib.data.tasks import CUE, SYMBOLS, VOCABULARY
from course_lib.lab.budgets import Budget
from course_lib.measure.instruments import seconds
from course_lib.measure.metrics import accuracy
from course_lib.measure.stored import stored_runs
from course_lib.tokenizers import Vocabulary

BUDGETS = {
    "blank_steps": Budget("steps of each training on blanks", cpu=300, gpu=600, smoke=2),
    "letter_steps": Budget("steps of training of the network that reads Shakespeare", cpu=200, smoke=2),
    "recall_steps": Budget("steps of each training on recall", cpu=200, smoke=2),
    "distances": Budget("distances at which recall is trained", cpu=(10, 20, 60), smoke=(10, 20)),
    "draws": Budget("trainings from other random numbers, at each distance", cpu=2, smoke=1),
    "orthogonal_draws": Budget("such trainings where U starts orthogonal", cpu=5, smoke=1),
    "watch_steps": Budget("steps of each training whose gradient is watched", cpu=800, smoke=2),
    "agreement_steps": Budget("steps of each training on agreement", cpu=300, smoke=2),
    "clip_steps": Budget("steps of each run of plain gradient descent", cpu=300, smoke=60),
    "clip_runs": Budget("random beginnings of these runs", cpu=6, smoke=1),
    "copy_steps": Budget("steps of training of each copier", cpu=400, smoke=2),
    "lengths": Budget("lengths at which the two layers are timed", cpu=(32, 128, 512, 1024), smoke=(32, 64)),
}

# --- sentences with a blank ---

PEOPLE = ["he", "she", "tom", "anna"]
FOODS = ["cake", "bread", "apple", "cheese", "pie", "egg", "pear", "fish"]
TOOLS = ["fork", "knife", "spoon", "napkin"]
ROOMS = ["kitchen", "garden", "park", "hall"]
OPENERS = ["well", "so", "then", "now", "yes", "today", "later", "again"]
PREPOSITIONS = ["with", "in", "on", "under"]
LATEST = 6  # words before a sentence, at most
SENTENCE = LATEST + 7  # words, the blank included


def _sentences() -> list[tuple[str, str, bool]]:
    """Every sentence with its preposition, and whether the pair of its nouns is kept for the test."""
    made = []
    for who, (i, food), j in product(PEOPLE, enumerate(FOODS), range(4)):
        new = (i + j) % 4 == 0
        made += [
            (f"{who} ate the {food} ⟨M⟩ the {TOOLS[j]}", "with", new),
            (f"{who} ate the {food} ⟨M⟩ the {ROOMS[j]}", "in", new),
            (f"{who} put the {food} ⟨M⟩ the {TOOLS[j]}", "on", new),
            (f"{who} put the {TOOLS[j]} ⟨M⟩ the {food}", "under", new),
        ]
    return made


SENTENCES = _sentences()
BLANK_WORDS = Vocabulary(["·", *OPENERS, *(word for sentence, _, _ in SENTENCES for word in sentence.split())])
BLANK = BLANK_WORDS.encode(["⟨M⟩"]).item()
PADDING = BLANK_WORDS.encode(["·"]).item()


def _encoded(new: bool) -> tuple[Tensor, Tensor]:
    """Word numbers (sentences, 7) and answers (sentences)."""
    chosen = [(sentence, answer) for sentence, answer, is_new in SENTENCES if is_new == new]
    words = torch.stack([BLANK_WORDS.encode(sentence.split()) for sentence, _ in chosen])
    return words, torch.tensor([PREPOSITIONS.index(answer) for _, answer in chosen])


ENCODED = {new: _encoded(new) for new in (False, True)}


def blanks(generator: torch.Generator, batch: int, starts: Sequence[int]) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Sentences of seven words with a blank, after as many openers as ``starts`` allows.

    Returns (words (batch, 13), lengths (batch)) and which of `PREPOSITIONS` is missing (batch). Beyond its length a
    sentence is filled up.
    """
    core, answers = ENCODED[False]
    rows = torch.randint(len(core), (batch,), generator=generator)
    start = torch.tensor(starts)[torch.randint(len(starts), (batch,), generator=generator)]
    before = torch.randint(len(OPENERS), (batch, SENTENCE), generator=generator)
    return _filled_up(core[rows], start, before), answers[rows]


def new_blanks(generator: torch.Generator, start: int) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """All 128 sentences with a pair of nouns that `blanks` never draws, all after the same ``start`` openers."""
    core, answers = ENCODED[True]
    before = torch.randint(len(OPENERS), (SENTENCE,), generator=generator).expand(len(core), SENTENCE)
    return _filled_up(core, torch.full((len(core),), start), before), answers


def _filled_up(core: Tensor, start: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    """Words (batch, 13) and lengths (batch) of sentences (batch, 7), after ``start`` openers of the numbers given."""
    words = BLANK_WORDS.encode(OPENERS)[before]
    words.scatter_(1, start[:, None] + torch.arange(7), core)
    lengths = start + 7
    words[torch.arange(SENTENCE) >= lengths[:, None]] = PADDING
    return words, lengths


def last_word_alone() -> float:
    """Of the new sentences, the share that a table fills right which knows for each last word what is missing most."""
    (words, answers), (new_words, new_answers) = ENCODED[False], ENCODED[True]
    counts = torch.zeros(len(BLANK_WORDS), len(PREPOSITIONS))
    counts.index_put_((words[:, -1], answers), torch.ones(len(words)), accumulate=True)
    return (counts[new_words[:, -1]].argmax(dim=-1) == new_answers).float().mean().item()


def one_blank(sentence: str) -> tuple[Tensor, Tensor]:
    """One sentence as `blanks` draws them: words (1, 13) and length (1)."""
    ids = BLANK_WORDS.encode(sentence.split())
    words = torch.full((1, SENTENCE), PADDING)
    words[0, : len(ids)] = ids
    return words, torch.tensor([len(ids)])


class AtTheBlank(nn.Module):
    """Fills a blank from the states at the blank itself: (batch, 13), lengths (batch) → logits (batch, 4)."""

    def __init__(self, how: str, layers: int = 1):
        super().__init__()
        self.how = how
        self.embed = nn.Embedding(len(BLANK_WORDS), 32)
        self.rnn = nn.RNN(32, 32, num_layers=layers, bidirectional=how != "left to right", batch_first=True)
        self.combine = nn.Linear(64, 32)  # the learned combination: both matrices side by side, and b
        self.answer = nn.Linear(64 if how == "concatenated" else 32, 4)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        states, _ = self.rnn(self.embed(words))  # (batch, 13, 32), or 64: from the left, then from the right
        at_blank = states[words == BLANK]  # (batch, 32 or 64)
        if self.how == "right to left":
            at_blank = at_blank[:, 32:]  # of a single layer: these states have seen nothing on the left
        if self.how == "summed":
            at_blank = at_blank[:, :32] + at_blank[:, 32:]
        if self.how == "learned":
            at_blank = self.combine(at_blank)
        return self.answer(at_blank)


# --- tables of counts ---


def witten_bell(train: Tensor, test: Tensor, n: int, letters: int) -> Tensor:
    r"""The probability that a table of n-gram counts gives to each letter of ``test``, from the n-th on.

    With context $c$, the $n - 1$ letters before:

    $$P_n(w \mid c) = \frac{N(c, w) + T(c)\, P_{n-1}(w \mid c')}{N(c) + T(c)}$$

    where $N$ counts, $T(c)$ is the number of different letters seen after $c$, and $c'$ leaves out the first letter
    of $c$. Below the counts of single letters, each letter is as likely as any other.
    """
    p = torch.full((len(test) - n + 1,), 1 / letters)
    for order in range(1, n + 1):
        grams, times = _numbered(train, order, letters).unique(return_counts=True)  # (kinds), N(c, w) of each
        contexts, of_gram = (grams // letters).unique(return_inverse=True)
        different = of_gram.bincount()  # T(c)
        often = torch.zeros_like(different).index_add(0, of_gram, times)  # N(c)
        asked = _numbered(test, order, letters)[n - order :]
        N_cw = _looked_up(grams, times, asked)
        N_c = _looked_up(contexts, often, asked // letters)
        T_c = _looked_up(contexts, different, asked // letters)
        p = torch.where(N_c > 0, (N_cw + T_c * p) / (N_c + T_c).clamp(min=1), p)
    return p


def _numbered(ids: Tensor, n: int, letters: int) -> Tensor:
    """Each n letters in a row as one number."""
    number = torch.zeros(len(ids) - n + 1, dtype=torch.long)
    for k in range(n):
        number = number * letters + ids[k : len(ids) - n + 1 + k]
    return number


def _looked_up(keys: Tensor, values: Tensor, asked: Tensor) -> Tensor:
    """The value of each key asked for; 0 where there is none. ``keys`` are sorted."""
    place = torch.searchsorted(keys, asked).clamp(max=len(keys) - 1)
    return torch.where(keys[place] == asked, values[place], 0)


class LetterModel(nn.Module):
    """Embedding → recurrent network → logits of the next letter: (batch, length) → (batch, length, letters)."""

    def __init__(self, network: type[nn.RNNBase], letters: int, d: int = 128):
        super().__init__()
        self.embed = nn.Embedding(letters, d)
        self.network = network(d, d, batch_first=True)
        self.output = nn.Linear(d, letters)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.network(self.embed(ids))  # (batch, length, d)
        return self.output(states)


# --- first weights, subjects, what a reader looks back at ---


def opened(network: nn.RNNBase) -> nn.RNNBase:
    """An LSTM or GRU whose gate for the old state starts at about σ(5) = 0.99."""
    d = network.hidden_size
    network.bias_ih_l0.data[d : 2 * d] = 5.0  # the second block, in PyTorch's order
    return network


def orthogonal(network: nn.RNN) -> nn.RNN:
    """An Elman network whose U starts orthogonal: it keeps every vector's norm, and all its eigenvalues have size 1."""
    nn.init.orthogonal_(network.weight_hh_l0)
    return network


def agreement_rows(rows: dict, vocabulary: Vocabulary) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
    """Columns of the corpus ``agreement``: (word numbers, lengths), 1 where plural, words between subject and verb."""
    inputs = vocabulary.encode_all(sentence.split() for sentence in rows["sentence"])
    return inputs, torch.tensor(rows["number"]), torch.tensor(rows["distance"])


def far_over_near(reader: nn.Module, tokens: Tensor) -> float:
    r"""How much the last output depends on the first token, over how much it does on the three before the last.

    $\lVert \partial \sum h_T / \partial x_t \rVert$ at $t = 1$, over its mean at $t = T - 3 \dots T - 1$.
    ``reader`` is a `Classifier`; tokens (batch, length).
    """
    reader.train()  # on a GPU, PyTorch's recurrent networks have a gradient in this mode only
    with torch.enable_grad():
        x = reader.embed(tokens).detach().requires_grad_()
        (gradient,) = torch.autograd.grad(reader.network(x)[0][:, -1].sum(), x)
    norms = gradient.norm(dim=-1).mean(dim=0)  # (length)
    return (norms[0] / norms[-4:-1].mean()).item()


def watch(reader: nn.Module, tokens: Tensor, answers: Tensor) -> dict[str, float]:
    """What a `Classifier` is asked while it learns."""
    return {
        "ratio": far_over_near(reader, tokens),
        "accuracy": accuracy(reader, tokens, answers).mean().item(),
    }


# --- rivals ---


class LookBack(nn.MultiheadAttention):
    """The last position looks at every position: one step, whatever the distance. (batch, length, d) → (batch, 1, d)"""

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        return super().forward(x[:, -1:], x, x, need_weights=False)


class AddUp(nn.Module):
    """The sum of all vectors so far: no order, no weights. (batch, length, d) → (batch, length, d)"""

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        return x.cumsum(dim=1), None


class Copier(nn.Module):
    """Reads symbols (batch, length) and writes them again: logits (batch, length, 8).

    Two LSTMs of 64. Of the encoder's last state, h and c, the first ``size`` numbers each go to the decoder. One that
    ``attends`` also looks at all states of the encoder.
    """

    def __init__(self, size: int, attends: bool = False):
        super().__init__()
        self.size, self.attends = size, attends
        self.embed = nn.Embedding(VOCABULARY, 64)
        self.encoder = nn.LSTM(64, 64, batch_first=True)
        self.decoder = nn.LSTM(64, 64, batch_first=True)
        self.output = nn.Linear(128 if attends else 64, SYMBOLS)

    def forward(self, symbols: Tensor) -> Tensor:
        read, (h, c) = self.encoder(self.embed(symbols))
        passes = torch.arange(64, device=symbols.device) < self.size
        start = torch.full_like(symbols[:, :1], CUE)
        before = torch.cat([start, symbols[:, :-1]], dim=1)  # the decoder's input: the symbols before
        states, _ = self.decoder(self.embed(before), (h * passes, c * passes))
        if self.attends:
            seen = F.scaled_dot_product_attention(states, read, read, scale=1.0)
            states = torch.cat([states, seen], dim=-1)
        return self.output(states)


@torch.no_grad()
def bits_that_pass(copier: nn.Module, symbols: Tensor) -> float:
    """At least so many bits of all the symbols (batch, length) have passed, on average over the batch."""
    logits = copier(symbols)  # (batch, length, 8)
    nats = F.cross_entropy(logits.transpose(1, 2), symbols, reduction="none")  # (batch, length)
    bits_left = nats / math.log(2)
    return (math.log2(SYMBOLS) - bits_left).sum(dim=1).mean().item()


# --- figures and time ---


def log_axis(ax: Axes, ticks: Sequence[int]) -> None:
    """A logarithmic x axis with these ticks, and no others."""
    ax.set_xscale("log")
    ax.set_xticks(ticks, ticks)
    ax.minorticks_off()


def draw_dots(ax: Axes, rows: Mapping[str, Sequence[float]], chance: float) -> None:
    """A row for each name, in it a dot for each value, one below the other; dashed: chance."""
    for row, values in enumerate(rows.values()):
        heights = torch.linspace(row - 0.2, row + 0.2, len(values)) if len(values) > 1 else [row]
        ax.plot(values, heights, "o", color=viz.PALETTE[0])
    ax.axvline(chance, color="#666666", linestyle="--")
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(len(rows) - 0.5, -0.5)  # the first on top


def stored_reach(distance: int) -> dict[str, list[float]]:
    """The accuracies of the stored trainings at so many fillers, {name: values}."""
    runs = stored_runs("recurrent", "reach")
    return {name: values for (name, _, group), values in runs.items() if group == f"{distance} fillers"}


def draw_stored_trainings(ax: Axes, distance: int) -> None:
    """`stored_reach` as dots; beside each row, how many trainings got more than half right."""
    runs = stored_reach(distance)
    draw_dots(ax, runs, chance=1 / SYMBOLS)
    for row, values in enumerate(runs.values()):
        ax.text(1.06, row, f"{sum(value > 0.5 for value in values)} of {len(values)}", va="center")
    ax.set(xlim=(-0.05, 1.35), xticks=(0, 0.5, 1), xlabel="accuracy (dashed: chance)", title=f"{distance} fillers")


def draw_watched(axes: Sequence[Axes], watched: Mapping[str, Mapping]) -> None:
    """What `watch` has found, {name: {key: (steps, values)}}; dotted: far equals near, and chance."""
    panels = {"ratio": ("gradient, far over near", 1, "far = near"), "accuracy": ("accuracy", 1 / SYMBOLS, "chance")}
    for ax, (key, (y, mark, dotted)) in zip(axes, panels.items(), strict=True):
        lines = {name: found[key] for name, found in watched.items()}
        viz.curves(ax, lines, x=f"training step (dotted: {dotted})", y=y, legend="right" if ax is axes[-1] else None)
        ax.axhline(mark, color="#666666", linestyle=":")
    axes[0].set_yscale("log")


def draw_bits(ax: Axes, lengths: Sequence[int], passed: Mapping[str, Sequence[float]]) -> None:
    """Bits that pass against bits offered, {name: bits for each length}.

    Of stored runs: a band, the range of those of 400 batches; dotted, the mean of those of 1600.
    """
    offered = [3 * length for length in lengths]
    runs = stored_runs("recurrent", "copiers")
    lines = {name: (offered, bits) for name, bits in passed.items()}
    viz.curves(ax, lines, x="bits offered (3 a symbol)", y="bits that pass")
    for line in ax.get_lines():
        if (name := line.get_label(), 1600, "2 symbols") in runs:
            short, long = (
                torch.tensor([runs[name, steps, f"{length} symbols"] for length in lengths]) for steps in (400, 1600)
            )  # (lengths, trainings)
            ax.fill_between(offered, short.amin(dim=1), short.amax(dim=1), color=line.get_color(), alpha=0.25, lw=0)
            ax.plot(offered, long.mean(dim=1), ":", color=line.get_color())
    ax.plot([0, offered[-1]], [0, offered[-1]], color="#666666", linestyle="--")
    ax.text(offered[-1] / 3, offered[-1] / 2, "dashed: all pass", ha="right", color="#666666")
    ax.set(ylim=(0, 63), xticks=offered)
    ax.set_title("stored: band, five trainings; dotted, mean of two of 1600 batches", fontsize=11)


def milliseconds(lengths: Sequence[int], device: torch.device) -> dict[str, list[float]]:
    """Of a recurrent layer and of one head of attention, each with all its weights, forward and backward.

    8 sequences of each length, 64 numbers a token.
    """
    rnn = nn.RNN(64, 64, batch_first=True).to(device)
    head = nn.MultiheadAttention(64, num_heads=1, batch_first=True).to(device)
    layers = {"Elman": lambda x: rnn(x)[0], "attention": lambda x: head(x, x, x, need_weights=False)[0]}
    taken = {name: [] for name in layers}
    for length in lengths:
        x = torch.randn(8, length, 64, device=device, requires_grad=True)
        for name, layer in layers.items():
            taken[name].append(1000 * seconds(lambda layer=layer, x=x: layer(x).sum().backward()))
    return taken


# --- answer keys of exercises ---


def latch_weights(bits: int) -> tuple[Tensor, Tensor, Tensor]:
    """W, U and b of an LSTM whose state keeps the values that were last written, one entry for each of ``bits``.

    An input has the values, each +1 or −1, and then ``write``, 1 or 0: (bits + 1). Blocks in the order i, f, g, o:
    W (4·bits, bits + 1), U (4·bits, bits), b (4·bits).
    """
    far = 20.0  # σ(20) is 1 but for 2e-9
    W, b = torch.zeros(4, bits, bits + 1), torch.zeros(4, bits)
    W[0, :, bits], b[0] = 2 * far, -far  # input gate: shut, open on a write
    W[1, :, bits], b[1] = -2 * far, far  # forget gate: open, shut on a write
    W[2, :, :bits] = far * torch.eye(bits)  # candidate: the values
    b[3] = far  # output gate: open
    return W.flatten(0, 1), torch.zeros(4 * bits, bits), b.flatten()


def scaled_to_keep(U: Tensor, share: float, steps: int) -> Tensor:
    r"""$U$ times a number, so that its spectral radius $\rho$ has $\rho^{steps} = share$. (d, d) → (d, d)"""
    wanted = share ** (1 / steps)
    radius = torch.linalg.eigvals(U).abs().max()
    return U * wanted / radius
