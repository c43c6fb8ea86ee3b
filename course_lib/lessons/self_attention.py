"""Lesson 03: shoes that find their partners, attention's gradient by hand, what reaches what, what a vector tells."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib import viz
from course_lib.lab.budgets import Budget
from course_lib.measure.instruments import bytes_kept, operations, seconds, serial_depth
from course_lib.models.attention import SelfAttention, padding_mask
from course_lib.models.bert import Bert
from course_lib.models.inside import recorded
from course_lib.tokenizers import WordPiece
from course_lib.viz import diagrams

BUDGETS = {
    "steps": Budget("steps of each training of a head", cpu=150, gpu=300, smoke=2),
    "runs": Budget("trainings from other random numbers, for each setting", cpu=4, gpu=10, smoke=1),
    "queries": Budget("random queries for each width d", cpu=400, gpu=2000, smoke=20),
    "longest": Budget("words of the longest text whose cost is measured", cpu=2048, gpu=4096, smoke=64),
}


def partner_weights(colours: int, margin: float) -> tuple[Tensor, Tensor]:
    r"""$W_Q$ and $W_K$, each (d, d) with d = colours + 2, that let each shoe look at the other one of its pair.

    A shoe has a 1 for its colour and a 1 for its side: the first ``colours`` numbers, then left, right. With
    $q = W_Q x$ and $k = W_K x$ the partner's score $q \cdot k / \sqrt d$ lies ``margin`` above every other.
    """
    d = colours + 2
    wanted = torch.eye(d)
    wanted[colours:] = wanted[colours:].flip(0)  # the same colour, the other side
    return margin * math.sqrt(d) * wanted, torch.eye(d)


def attention_gradients(q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    r"""The loss's gradients on q, k and v, by hand, from ``grad``, its gradient on the output of `attention`.

    q (…, queries, d), k (…, keys, d), v (…, keys, d_v), grad (…, queries, d_v) → of the shapes of q, k and v

    With weights p and scores s: $\partial p_i / \partial s_j = p_i (\delta_{ij} - p_j)$ in each row.
    """
    scale = math.sqrt(q.shape[-1])
    p = (q @ k.mT / scale).softmax(dim=-1)  # (…, queries, keys)
    grad_p = grad @ v.mT  # (…, queries, keys)
    mean = (p * grad_p).sum(dim=-1, keepdim=True)  # (…, queries, 1)
    grad_s = p * (grad_p - mean) / scale  # of q · k, before the scale
    return grad_s @ k, grad_s.mT @ q, p.mT @ grad


def reach(masks: Sequence[Tensor]) -> Tensor:
    """Which inputs reach which outputs through one layer of attention for each mask, the first layer first.

    Every word may see itself: a query made from its word tells of it, whatever the mask hides.
    masks: Boolean, (length, length) each, True where a query may see a key → Boolean (outputs, inputs)
    """
    length = len(masks[0])
    seen = torch.eye(length, dtype=torch.bool)
    for mask in masks:
        seen = (mask.float() @ seen.float()) > 0
    return seen


def depends(layers: Callable[[Tensor], Tensor], X: Tensor) -> Tensor:
    """Autograd's word: 1.0 where output t of the layers depends on word s of X (words, d) → (outputs, words)."""
    slopes = torch.autograd.functional.jacobian(layers, X)  # (outputs, d, words, d)
    return (slopes.abs().sum(dim=(1, 3)) > 0).float()


class SlideAttention(nn.Module):
    """The slide's class, repaired: one head as wide as its input, with biases, and dropout on the weights."""

    def __init__(self, h_dim: int):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        return self.dropout(weights) @ v


def sign_test(lead: Tensor, groups: Tensor) -> tuple[int, int, float]:
    """How many groups are ahead, how many behind, and the p-value of so uneven a count if both were equally likely.

    lead (n): above 0 where the first is ahead; groups (n): equal where items share one vote, that of their mean. A
    group without a lead does not vote.
    """
    means = torch.stack([lead[groups == group].mean() for group in groups.unique()])
    ahead, behind = int((means > 0).sum()), int((means < 0).sum())
    votes = ahead + behind
    as_uneven = sum(math.comb(votes, k) for k in range(min(ahead, behind) + 1)) / 2**votes
    return ahead, behind, min(1.0, 2 * as_uneven)


@torch.no_grad()
def through_layers(encoder: Bert, ids: Tensor, lengths: Tensor, word: int, after: int = 0) -> list[Tensor]:
    """The vectors of one word, which stands once in each text: at the input and after each block, (texts, d) each.

    ids (texts, longest), lengths (texts). ``after``: how many places after the word; 1 is the next one.
    """
    here = (ids == word).roll(after, dims=1)  # (texts, longest): True once in each row
    mask = padding_mask(lengths, ids.shape[1])
    x = recorded(encoder, "blocks", ids, lengths)[0]  # (texts, longest, d): what goes into the first block
    vectors = [x[here]]
    for block in encoder.stack.blocks:
        x = block(x, mask)
        vectors.append(x[here])
    return vectors


@torch.no_grad()
def with_even_attention(encoder: Bert) -> Bert:
    """A copy whose queries and keys are 0: each token gives all tokens the same weight. The rest is as trained."""
    even = copy.deepcopy(encoder)
    for block in even.stack.blocks:
        attention = block.attention
        attention.qkv.weight[: 2 * attention.d] = 0.0  # the rows are those of Q, then K, then V
        attention.qkv.bias[: 2 * attention.d] = 0.0
    return even


def nearest_is_right(vectors: Tensor, labels: Tensor, *excluded: Tensor) -> Tensor:
    """1 where the nearest vector, by cosine, among those that are not excluded has the same label, else 0.

    vectors (n, d), labels (n), excluded (n) → (n): a vector with the same number in any of these is excluded.
    Where several are equally near, the share of them with that label.
    In float64: the vectors of [CLS] are so alike that their cosines differ by less than float32 can tell.
    """
    lengths = vectors.double().norm(dim=-1, keepdim=True)
    unit = vectors.double() / lengths.clamp(min=1e-7)  # a vector that is 0 but for rounding stays so
    cosines = unit @ unit.T
    for group in excluded:
        cosines = cosines.masked_fill(group[:, None] == group, -2.0)
    nearest = cosines > cosines.amax(dim=-1, keepdim=True) - 1e-10
    same = labels[:, None] == labels
    return (nearest & same).sum(dim=-1) / nearest.sum(dim=-1)


# What is broken in each of the sixty sentences, in their order; one name for *law* and *laws*.
OBJECTS = (
    *("vase", "window", "cup", "mirror", "plate", "bottle", "lamp", "glass", "toy", "legs", "pencil", "eggs"),
    *("record", "time", "mark", *["record"] * 4, "streak", *["record"] * 4),
    *("law", "rules", "limit", "contract", "treaty", "promise", "code", "agreement", "law", "rules", "oath", "terms"),
    *("news", "news", "story", "news", "scandal", "news", "news", "story", "news", "news", "story", "news"),
    *("silence", "silence", "ice", "spell", "monotony", "silence", "ice", "tension", "quiet", "silence"),
    *("deadlock", "boredom"),
)


@torch.no_grad()
def without_attention(encoder: Bert, tokenizer: WordPiece, sentences: Sequence[str], word: int) -> dict[str, Tensor]:
    """What the table of word vectors alone tells of each sentence with ``word the …``, (texts, d) each.

    The mean of all other words, and the mean of those after ``word the``. [CLS] and [SEP] are no words.
    """
    ids, lengths = tokenizer.encode_all(sentences)
    table = encoder.embed(ids)  # (texts, longest, d)
    places = torch.arange(ids.shape[1])
    here = (ids == word).float().argmax(dim=1)[:, None]  # (texts, 1)
    others = (places > 0) & (places < lengths[:, None] - 1) & (places != here)  # (texts, longest)
    after = others & (places > here + 1)
    all_words, words_after = (
        (table * which[..., None]).sum(dim=1) / which.sum(dim=1, keepdim=True) for which in (others, after)
    )
    return {"bag of words": all_words, "words after": words_after}


class Convolution(nn.Conv1d):
    """A convolution over a word and its two neighbours: x (batch, length, d) → (batch, length, d)."""

    def __init__(self, d: int):
        super().__init__(d, d, kernel_size=3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.mT).mT  # it wants (batch, d, length)


def three_layers(d: int) -> dict[str, nn.Module]:
    """The layers of S3's table of costs, each for x (1, length, d)."""
    return {"RNN": nn.RNN(d, d, batch_first=True), "ConvNet": Convolution(d), "attention": SelfAttention(d, d)}


def operations_beside_slide(d: int = 1000) -> dict[str, list[str]]:
    """FLOPs of the three layers for texts of 100 and of 1000 words, as PyTorch counts them, each beside S3's number."""
    layers = {"attention, its pairs alone": lambda x: (x[0] @ x[0].T) @ x[0], **three_layers(d)}
    slide = {"RNN": ("10⁸", "10⁹"), "ConvNet": ("3·10⁸", "3·10⁹"), "attention": ("", "")}
    slide["attention, its pairs alone"] = ("10⁷", "10⁹")
    rows = {}
    for name, layer in layers.items():
        counted = [operations(lambda layer=layer, n=n: layer(torch.zeros(1, n, d))) for n in (100, 1000)]
        rows[name] = [f"{counted[0]:.1e}", slide[name][0], f"{counted[1]:.1e}", slide[name][1]]
    return rows


def prices_of_layers(length: int, d: int, repeats: int = 7) -> dict[str, tuple[int, float, float]]:
    """Operations, milliseconds forward and megabytes kept for the backward pass, of each of the three layers.

    The parameters, which are there anyway, do not count as kept. The time is the shortest of ``repeats``.
    """
    x, prices = torch.randn(1, length, d), {}
    for name, layer in three_layers(d).items():
        with torch.no_grad():
            count = operations(lambda layer=layer: layer(x))
            milliseconds = 1000 * seconds(lambda layer=layer: layer(x), repeats)
        prices[name] = (count, milliseconds, bytes_kept(lambda layer=layer: layer(x), layer.parameters()) / 1e6)
    return prices


def depths_of_layers(length: int, d: int) -> dict[str, int]:
    """The longest chain of operations of which each waits for the one before, of each of the three layers."""
    x = torch.randn(1, length, d)
    made = {name: layer(x) for name, layer in three_layers(d).items()}
    return {name: serial_depth(y[0] if isinstance(y, tuple) else y) for name, y in made.items()}


def draw_matrix(
    ax: Axes, title: str, matrix: Any, rows: Sequence[str] = (), columns: Sequence[str] = (), numbers=True, **options
) -> None:
    """A heat map with every label, and none where there is none; ``options`` are those of `viz.heatmap`."""
    viz.heatmap(ax, matrix, title=title, numbers=numbers, **{"bar": False} | options)
    ax.set_anchor("NW")
    for number in ax.texts:
        number.set_fontsize(9)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xticks(range(len(columns)), columns, rotation=40, ha="right", rotation_mode="anchor")


def draw_steps(
    axes: Sequence[Axes], raw: Tensor, hidden: Tensor, chosen: Tensor, mixed: Tensor, words: Sequence[str]
) -> None:
    """The four steps of a masked head: scores, scores with −∞, weights, (words, words) each; outputs (words, d)."""
    largest = float(raw.abs().max())
    draw_matrix(axes[0], "1 scores (9, 9)", raw, words, numbers=False, largest=largest, x="key", y="query")
    draw_matrix(axes[1], "2 masked (9, 9)", hidden, numbers=False, largest=largest, x="key", bar=True)
    draw_matrix(axes[2], "3 softmax (9, 9)", chosen, numbers=False, x="key", bar=True)
    draw_matrix(axes[3], "4 mixed (9, 8)", mixed, numbers=False, x="number", bar=True)
    axes[3].set_aspect(mixed.shape[1] / mixed.shape[0])  # as high as the others


def draw_reach(axes: Sequence[Axes], reached: Mapping[str, Tensor]) -> None:
    """The way around a hidden next word, then for each title what reaches what, (outputs, inputs)."""
    diagrams.leak_in_two_steps(axes[0])
    for ax, (title, matrix) in zip(axes[1:], reached.items(), strict=True):
        viz.heatmap(ax, matrix, numbers=False, bar=False, x="input", y="output")
        ax.set_title(title, fontsize=12)
        ax.set(xticks=[0, len(matrix) - 1], yticks=[0, len(matrix) - 1])


def draw_head(
    axes: Any,
    X: Tensor,
    matrices: Sequence[Tensor],
    made: Sequence[Tensor],
    weights: Tensor,
    output: Tensor,
    words: Sequence[str],
    features: Sequence[str],
) -> None:
    """All tensors of the two banks' head on axes (3, 4), from X and its matrices to the output."""
    asked, told, kinds = ["kind?", "place?"], ["kind", "place"], ["water", "cash"]
    draw_matrix(axes[0, 0], "X (4, 4)", X, words, features)
    axes[1, 0].axis("off")
    for i, (name, numbers) in enumerate(zip("QKV", (asked, told, kinds), strict=True)):
        draw_matrix(axes[0, i + 1], f"W_{name} (2, 4)", matrices[i], numbers, features)
        draw_matrix(axes[1, i + 1], f"{name} = X · W_{name}ᵀ (4, 2)", made[i], words, numbers)
    products = made[0] @ made[1].T
    draw_matrix(axes[2, 0], "Q · Kᵀ (4, 4)", products, words, words)
    draw_matrix(axes[2, 1], "→ / √2: scores (4, 4)", products / math.sqrt(2), words, words)
    draw_matrix(axes[2, 2], "→ softmax (4, 4)", weights, words, words)
    draw_matrix(axes[2, 3], "→ · V: output (4, 2)", output, words, kinds)
    for ax in axes.flat:
        if ax.images:
            _signed(ax)


def _signed(ax: Axes) -> None:
    """The map of signed numbers on a matrix that has none below 0: orange is above 0 in every drawing then."""
    image = ax.images[0]
    values = image.get_array()
    image.set(cmap="PuOr_r", clim=(-float(abs(values).max()), float(abs(values).max())))
    for number in ax.texts:
        column, row = (round(place) for place in number.get_position())
        red, green, blue, _ = image.to_rgba(values[row, column])
        number.set_color("white" if 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 < 0.18 else "#222222")


def draw_gradients(
    axes: Sequence[Axes], scaled: Mapping[int, Sequence[Tensor]], unscaled: Mapping[int, Sequence[Tensor]]
) -> dict[str, list[float]]:
    """Three panels against the width, from width → (largest weights, norms on scores, norms on queries).

    Largest weight; how the gradient on scores, and that on queries, changes without the scale (mean and median).
    Returns the lines of the two ratios.
    """
    widths = list(scaled)
    weights = {
        "not scaled": [unscaled[d][0].median() for d in widths],
        "divided by √d": [scaled[d][0].median() for d in widths],
    }
    ratios: dict[str, dict[str, list[float]]] = {}
    for i, part in ((1, "scores"), (2, "queries")):
        ratios[part] = {
            "mean": [float(unscaled[d][i].mean() / scaled[d][i].mean()) for d in widths],
            "median": [float(unscaled[d][i].median() / scaled[d][i].median()) for d in widths],
        }
    _by_width(axes[0], weights, widths, "1 · largest weight")
    axes[0].set_ylim(0, 1.05)
    axes[0].legend(loc="center right", bbox_to_anchor=(1.0, 0.3), handlelength=3.2)
    for ax, part in ((axes[1], "scores"), (axes[2], "queries")):
        number = "2" if part == "scores" else "3"
        _by_width(ax, ratios[part], widths, f"{number} · gradient on {part}")
        ax.axhline(1, color=viz.look("chance")["color"], linestyle="--")
        ax.set(yscale="log", ylim=(1e-4, 30))
    axes[1].set_ylabel("not scaled / scaled")
    return {f"{part}, {kind}": line for part, lines in ratios.items() for kind, line in lines.items()}


def _by_width(ax: Axes, lines: Mapping[str, Sequence], widths: Sequence[int], title: str) -> None:
    """A line for each name against the width d."""
    drawn = {name: (widths, line) for name, line in lines.items()}
    viz.curves(ax, drawn, x="width d", title=title, legend=None)
    ax.legend(loc="best", handlelength=3.2)
    ax.set_xscale("log")
    ax.set_xticks([d for d in (8, 64, 512) if d in widths])
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()


def draw_trainings(
    ax: Axes, rates: Sequence[float], found: Mapping[str, Tensor], even: float, alone: Mapping[str, float]
) -> None:
    """Accuracy against the learning rate, a dot for each run.

    found: name → (rates, runs); alone: name → the one rate that it was tried at.
    """
    tried = {name: [alone[name]] if name in alone else rates for name in found}
    lines = {name: (tried[name], runs.mean(dim=1)) for name, runs in found.items()}
    viz.curves(ax, lines, x="learning rate", y="accuracy", legend=None)
    for i, (line, (name, runs)) in enumerate(zip(list(ax.lines), found.items(), strict=True)):
        beside = 1.06 ** (i - (len(found) - 1) / 2)  # each one's dots a little apart from the next one's
        places = [rate * beside for rate in tried[name] for _ in range(runs.shape[1])]
        ax.plot(places, runs.flatten(), ".", color=line.get_color(), markersize=5, alpha=0.7)
    for name, level, style in (("even weights", even, ":"), ("chance", 1 / 16, "--")):
        ax.plot(rates, [level] * len(rates), color=viz.look("chance")["color"], linestyle=style, label=name)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=3.2)
    ax.set_xscale("log")
    ax.set_xticks(rates, rates)
    ax.minorticks_off()
    ax.set_ylim(0, 1.05)


def draw_senses(ax: Axes, right: Mapping[str, Sequence[Tensor]], levels: Mapping[str, float]) -> None:
    """The part that is right after each layer, for each token; levels as plain lines, named on the right."""
    lines = {name: (range(len(layers)), [layer.mean() for layer in layers]) for name, layers in right.items()}
    viz.curves(ax, lines, x="layer", y="the nearest is of the same group", legend=None)
    ax.legend(loc="upper left", bbox_to_anchor=(1.33, 1.0), handlelength=3.2)
    end = len(next(iter(right.values()))) - 1
    height = -1.0
    for name, level in sorted(levels.items(), key=lambda item: item[1]):
        style = {"linestyle": "--", "linewidth": 2} if name == "chance" else {"linewidth": 1}
        ax.axhline(level, color=viz.look("chance")["color"], zorder=1, **style)
        height = max(level, height + 0.06)  # names that stand apart
        ax.text(end + 0.35, height, name, va="center", fontsize=10)
    ax.set(xlim=(-0.3, end + 0.3), ylim=(0, 1.05))


def draw_control(
    ax: Axes, trained: Mapping[str, float], control: Mapping[str, float], levels: Mapping[str, float]
) -> None:
    """A row for each token: MiniLM and, with even attention, its control; levels as upright lines, named above."""
    rows = range(len(trained) - 1, -1, -1)
    for i, (name, shares) in enumerate((("MiniLM", trained), ("even attention", control))):
        ax.plot(list(shares.values()), rows, "os"[i], color=viz.look(name, i)["color"], markersize=8, label=name)
    for name, level in levels.items():
        ax.axvline(level, color=viz.look("chance")["color"], linestyle="--" if name == "chance" else "-", zorder=0)
        ax.text(level, len(trained) - 0.5, name, ha="center", va="bottom", fontsize=10)
    ax.set_yticks(rows, list(trained))
    ax.set(xlim=(0, 1.05), ylim=(-0.5, len(trained) - 0.5), xlabel="the nearest is of the same group")
    ax.legend(loc="upper left", bbox_to_anchor=(1.02, 1.0))


def draw_prices(axes: Sequence[Axes], prices: Mapping[int, Mapping[str, Sequence]]) -> None:
    """Operations, time and memory of each layer against the length, from `prices_of_layers` of each length."""
    lengths = list(prices)
    for i, (ax, y) in enumerate(zip(axes, ("FLOPs", "milliseconds, here", "megabytes kept"), strict=True)):
        lines = {name: (lengths, [prices[length][name][i] for length in lengths]) for name in prices[lengths[0]]}
        viz.curves(ax, lines, x="length L (d = 256)", y=y, legend=None)
        ax.loglog()
        ax.set_xticks([length for length in (64, 256, 1024) if length in lengths])
        ax.xaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
