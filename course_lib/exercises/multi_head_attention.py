"""Exercises of lesson 04: split heads, the layer, what a head adds, two by hand, patterns, importance."""

from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.lab.grading import Exercise, Wrong, describe
from course_lib.lab.ladder import Ladder, edits
from course_lib.measure.heads import (
    head_contributions,
    head_importance,
    pattern_score,
    two_heads_by_hand,
)
from course_lib.models.attention import causal_mask, merge_heads, multi_head, padding_mask, split_heads


def _random(seed: int, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


# --- 4.1 ---

SPLIT = [
    (*_random(seed, shape), heads)
    for seed, (shape, heads) in enumerate([((2, 5, 12), 3), ((1, 4, 6), 2), ((3, 2, 8), 8)])
]


def _heads_in_one_tensor(answer: Callable) -> None:
    got = answer(*SPLIT[0])
    if isinstance(got, tuple | list) and len(got) == SPLIT[0][1]:
        raise Wrong(f"The heads come as {describe(got)}; make one tensor of them: `torch.stack(…, dim=1)`.")


def _token_keeps_its_numbers(answer: Callable) -> None:
    x = torch.arange(24.0).view(1, 3, 8)
    got = answer(x, 2)
    if not torch.equal(got[0, 0, 0], x[0, 0, :4]):
        raise Wrong(
            f"Head 0 of token 0 must get the first half of the token's numbers, 0 1 2 3; it got {_row(got[0, 0, 0])}."
        )
    if not torch.equal(got[0, 1, 2], x[0, 2, 4:]):
        raise Wrong(
            f"Head 1 of token 2 must get the second half of its numbers, 20 21 22 23; it got {_row(got[0, 1, 2])}."
        )


def _row(values: Tensor) -> str:
    return " ".join(f"{value:g}" for value in values.flatten().tolist())


split = Exercise(
    id="4.1",
    title="split into heads",
    reference=split_heads,
    checks=Ladder(
        split_heads,
        SPLIT,
        returns=["the heads"],
        properties=[_token_keeps_its_numbers],
        slips=edits(
            split_heads,
            """
            (batch, length, heads, d // heads).transpose(1, 2) → (batch, heads, length, d // heads)
            · The tokens are mixed up: a reshape straight to (batch, heads, length, d_head) deals the numbers out in
            · their order in memory. First (batch, length, heads, d_head), then swap two dimensions.
            .transpose(1, 2) →
            · The dimensions are (batch, length, heads, d_head) still: swap length and heads, `transpose(1, 2)`.
            heads, d // heads).transpose(1, 2) → d // heads, heads).permute(0, 3, 1, 2)
            · Each head takes every heads-th number; it should take neighbouring ones: the last dimension becomes
            · (heads, d_head), in this order.
            heads, d // heads) → d // heads, heads)
            · The last dimension is cut into (d_head, heads); it becomes (heads, d_head).
            transpose(1, 2) → permute(2, 0, 1, 3)
            · The heads come first; the batch does: (batch, heads, length, d_head).
            transpose(1, 2) → permute(0, 2, 3, 1)
            · Length and d_head are swapped: (batch, heads, length, d_head).
            transpose(1, 2) → transpose(1, 2).flip(1) · The heads are in reversed order: head 0 takes the first numbers.
            reshape(batch, length, heads, d // heads).transpose(1, 2) → unsqueeze(1).expand(-1, heads, -1, -1)
            · Every head gets the whole width; each gets its own part, d / heads numbers.
            transpose(1, 2) → transpose(1, 2).flatten(0, 1) · Batch and heads are one dimension; keep them apart.
            .reshape(batch, length, heads, d // heads).transpose(1, 2) →
            · This is x as it came in: it has no dimension for the heads yet.
            """,
        ),
    ).extended(_heads_in_one_tensor, before="types"),
    crashes=[
        ("but got float", "A size must be a whole number: divide with `//`."),
        ("'float' object cannot be interpreted", "A size must be a whole number: divide with `//`."),
        ("view size is not compatible", "After a transpose `view` cannot always do it; `reshape` can."),
    ],
    nudge="Two steps: the last dimension becomes two, (heads, d_head); then two dimensions change places.",
    sketch="""
        batch, length, d = the shape of x
        reshape to (batch, length, heads, d // heads)      the numbers of a token stay together
        swap the dimensions length and heads               (batch, heads, length, d // heads)
        """,
)

# --- 4.2 ---


def _layer_case(seed: int, batch: int, length: int, d: int, heads: int, mask: Tensor | None) -> tuple:
    x, W_qkv, b_qkv, W_o, b_o = _random(seed, (batch, length, d), (3 * d, d), (3 * d,), (d, d), (d,))
    return x, W_qkv, b_qkv, W_o, b_o, heads, mask


LAYER = [
    _layer_case(0, 2, 5, 6, 2, causal_mask(5, 5)),
    _layer_case(1, 3, 4, 8, 4, padding_mask(torch.tensor([4, 2, 3]), 4)),
    _layer_case(2, 1, 3, 4, 1, None),
]


def _weights_are_shares(answer: Callable) -> None:
    for case in LAYER:
        _, weights = answer(*case)
        if not torch.allclose(weights.sum(dim=-1), torch.ones_like(weights[..., 0]), atol=1e-4):
            raise Wrong("The weights of each query must sum to 1 over the keys, the last dimension.")


def _hidden_is_hidden(answer: Callable) -> None:
    x, *rest = LAYER[0]
    other = x.clone()
    other[:, -1] += 1.0  # the last token changes; under the causal mask the tokens before must not notice
    if not torch.allclose(answer(x, *rest)[0][:, :-1], answer(other, *rest)[0][:, :-1], atol=1e-4):
        raise Wrong(
            "Under a causal mask a token's output depends on a later token: is the mask used (True: may be seen)?"
        )


def _mask_the_right_way_round(answer: Callable) -> None:
    """Each token may see all others, but not itself: the other way round it would see nothing but itself."""
    x, W_qkv, b_qkv, W_o, b_o, heads, _ = LAYER[0]
    others = ~torch.eye(x.shape[1], dtype=torch.bool)
    _, weights = answer(x, W_qkv, b_qkv, W_o, b_o, heads, others)
    if (weights.diagonal(dim1=-2, dim2=-1) > 0.99).all():
        raise Wrong(TURNED_ROUND)


SCORES = "(q @ k.mT / q.shape[-1] ** 0.5)"
FILLED = f"({SCORES} if mask is None else {SCORES}.masked_fill(~mask, torch.finfo(q.dtype).min))"
PARTS = "(split_heads(part, heads) for part in F.linear(x, W_qkv, b_qkv).chunk(3, dim=-1))"
TURNED_ROUND = "The mask is turned round: True means that a key may be seen."
NO_HEADS = "There are no heads: split q, k and v before the attention, so that each head looks for itself."


def _weighing(weights: str) -> str:
    """The change of an edit: other weights."""
    return f"attention(q, k, v, mask) → ((w := {weights}) @ v, w)"


layer = Exercise(
    id="4.2",
    title="multi-head attention",
    reference=multi_head,
    checks=Ladder(
        multi_head,
        LAYER,
        returns=["output", "weights"],
        properties=[_weights_are_shares, _hidden_is_hidden],
        tolerance=1e-4,
        slips=edits(
            multi_head,
            f"""
            attention(q, → attention(q / heads**0.5,
            · The scores are divided by √d; each head compares d / heads numbers: divide by √(d / heads).
            attention(q, → attention(q * q.shape[-1] ** 0.5,
            · The scale is missing: divide the scores by √(d / heads).
            attention(q, → attention(q / q.shape[-1] ** 0.5,
            · The scores are divided by d / heads; divide by its root.
            {_weighing(f"{FILLED}.softmax(dim=-2)")}
            · Each column sums to 1: the softmax runs over queries; take it over keys, the last dimension.
            k, v, mask) → k, v, None if mask is None else ~mask) · {TURNED_ROUND}
            {_weighing(f"{FILLED.replace('~mask', 'mask')}.softmax(dim=-1)")} · {TURNED_ROUND}
            k, v, mask) → k, v) · The mask is not used.
            {_weighing(f"({SCORES} if mask is None else {SCORES} * mask).softmax(dim=-1)")}
            · A hidden score becomes 0, and a score of 0 still gets a share: fill with −∞ where hidden.
            {_weighing(f"({SCORES} if mask is None else {SCORES} + mask).softmax(dim=-1)")}
            · The mask is added as 0 and 1, so a hidden key only scores 1 less: fill with −∞ where hidden.
            {_weighing(f"{SCORES}.softmax(dim=-1) * (1 if mask is None else mask)")}
            · The mask comes after the softmax, so the rows no longer sum to 1: fill the scores with −∞ before it.
            F.linear(merge_heads(out), W_o, b_o) → merge_heads(out)
            · The last step is missing: W_o and b_o mix the heads.
            W_o, b_o) → W_o) · The bias b_o is missing.
            W_o, b_o) → W_o.T, b_o) · W_o is used without its transpose: `… @ W_o.T + b_o`.
            x, W_qkv, b_qkv) → x, W_qkv) · The bias b_qkv is missing.
            q, k, v = → k, q, v = · Queries and keys are swapped: the blocks of W_qkv are q, k, v.
            q, k, v = → q, v, k = · Keys and values are swapped: the blocks of W_qkv are q, k, v.
            q, k, v = → v, k, q = · Queries and values are swapped: the blocks of W_qkv are q, k, v.
            split_heads(part, heads) → part.reshape(len(x), heads, x.shape[1], -1)
            · The tokens are mixed up when the heads are split: use your `split_heads`.
            merge_heads(out) → out.reshape(len(x), x.shape[1], -1)
            · The tokens are mixed up when the heads are merged: use `merge_heads`.
            {PARTS} → F.linear(x, W_qkv, b_qkv).unflatten(-1, (heads, 3, -1)).permute(3, 0, 2, 1, 4)
            · The 3·d outputs are first cut in three (q, k, v), then each in heads; not the other way round.
            split_heads(part, heads) → split_heads(part, 1)
            · It computes one head of the whole width, whatever `heads` says.
            {PARTS} → F.linear(x, W_qkv, b_qkv).chunk(3, dim=-1) ; merge_heads(out) → out
            · {NO_HEADS}
            {PARTS} → F.linear(x, W_qkv, b_qkv).chunk(3, dim=-1) ; attention(q, → attention(q * heads**0.5, ;
                merge_heads(out) → out
            · {NO_HEADS}
            b_o), weights → b_o), weights.mean(dim=1)
            · The weights are averaged over the heads; return each head's: (batch, heads, length, length).
            F.linear(merge_heads(out), W_o, b_o), weights → weights, F.linear(merge_heads(out), W_o, b_o)
            · The two results are in the wrong order: return output, then weights.
            """,
        ),
    ).extended(_mask_the_right_way_round, before="finite"),
    crashes=[
        ("x3 and 6x6)", "W_o has a column for each of the d numbers of a token: merge the heads first."),
        (
            "(2) must match the size of tensor b (5)",
            "Did you write `k.T`? It turns all four dimensions round; `k.mT` swaps the last two.",
        ),
        (
            "shapes cannot be multiplied",
            "The rows of x are tokens: multiply them from the right by the transposes, `x @ W_qkv.T` and `… @ W_o.T`.",
        ),
        (
            "values to unpack",
            "`chunk(3, dim=-1)` makes three blocks of the last dimension; without `dim`, of the batch.",
        ),
        ("NoneType", "The mask may be None: then every key may be seen."),
        (
            "only supports boolean masks",
            "The mask is True and False: `~mask` turns it round.",
        ),
    ],
    nudge="One product makes all queries, keys and values; cut it in three, split each into heads; lesson 03's "
    "attention does the rest for all heads at once.",
    sketch="""
        x times W_qkv transposed + b_qkv             (batch, length, 3 · d)
        cut the last dimension in three: q, k, v     each (batch, length, d)
        split each into heads                        (batch, heads, length, d_head)
        out, weights = attention(q, k, v, mask)      from lesson 03, works on the last two dimensions
        merge the heads of out; times W_o transposed + b_o
        return both
        """,
)

# --- 4.3 ---


def _contributions_case(seed: int, batch: int, heads: int, queries: int, keys: int, d_head: int, d: int) -> tuple:
    scores, v, W_o = _random(seed, (batch, heads, queries, keys), (batch, heads, keys, d_head), (d, heads * d_head))
    return scores.softmax(dim=-1), v, W_o


CONTRIBUTIONS = [
    _contributions_case(0, 2, 3, 4, 5, 2, 6),
    _contributions_case(1, 1, 2, 3, 3, 4, 8),
    _contributions_case(2, 3, 4, 2, 6, 1, 4),
]


def _sum_is_the_output(answer: Callable) -> None:
    for weights, v, W_o in CONTRIBUTIONS:
        total = answer(weights, v, W_o).sum(dim=1)
        if not torch.allclose(total, merge_heads(weights @ v) @ W_o.T, atol=1e-4):
            raise Wrong("Added up over the heads, it must be the merged heads times W_o transposed; it is not.")


A_PART = "The d_head numbers of a head meet a matrix (d_head, d): d_head columns of W_o, (d, d_head), transposed."
contributions = Exercise(
    id="4.3",
    title="what each head adds",
    reference=head_contributions,
    checks=Ladder(
        head_contributions,
        CONTRIBUTIONS,
        returns=["what each head adds"],
        properties=[_sum_is_the_output],
        tolerance=1e-4,
        slips=edits(
            head_contributions,
            """
            W_o.reshape(-1, heads, d_head) → W_o.reshape(heads, d_head, -1).permute(2, 0, 1)
            · The rows of W_o are cut; its rows are the layer's outputs. A head's numbers meet columns of W_o.
            W_o.reshape(-1, heads, d_head) → W_o.reshape(-1, d_head, heads).transpose(1, 2)
            · Each head takes every heads-th column; it takes neighbouring ones, as `split_heads` deals them out.
            W_o.reshape(-1, heads, d_head) → W_o.reshape(heads, -1, d_head).transpose(0, 1)
            · W_o is cut straight into (heads, d, d_head), in the order of memory, so its rows are mixed up: first
            · (d, heads, d_head), then swap dimensions if you need to.
            weights @ v → v
            · These are the values themselves, not weighted: where is `weights @ v`?
            "bhqe,dhe->bhqd" → "bhqe,dhe->bqd" · The heads are added up already; keep them apart.
            "bhqe,dhe->bhqd" → "bhqe,dhe->hbqd" · The heads come first; the batch does: (batch, heads, queries, d).
            "bhqe,dhe->bhqd" → "bhqe,dhe->bqhd" · Heads and queries are swapped: (batch, heads, queries, d).
            "bhqe,dhe->bhqd" → "bhqe,dhe->bhdq" · The last two are swapped: (batch, heads, queries, d).
            return torch.einsum("bhqe,dhe->bhqd", weights @ v, own) →
                return torch.einsum("bhqe,dhe->bqhd", weights @ v, own).flatten(2)
            · What the heads add stands side by side; give the heads a dimension of their own, the second.
            weights @ v, own) → weights @ v, own) / heads · It is divided by the number of heads: heads add, no mean.
            weights @ v, own) → weights @ v, own.flip(1)) · The heads meet the columns of W_o in reversed order.
            return torch.einsum("bhqe,dhe->bhqd", weights @ v, own) → return weights @ v
            · This is what each head finds, d_head numbers; W_o takes it to the full width d.
            """,
        ),
    ),
    crashes=[
        (
            "shapes cannot be multiplied",
            "A head has d_head numbers, W_o has heads · d_head columns: each head needs its own d_head columns.",
        ),
        (
            "to be: [6, 2] but got: [3, 2]",
            "Batch and heads are one dimension here, and the parts of W_o come once for each head, not for each text: "
            "leave the batch apart, and matrices (heads, d_head, d) are repeated along it.",
        ),
        *((part, A_PART) for part in ("but got: [2, 6]", "but got: [6, 6]")),
        (
            "Expected size for first two dimensions",
            "Two stacks of matrices do not fit. `weights @ v` needs no transpose: (queries, keys) @ (keys, d_head).",
        ),
    ],
    nudge="Which columns of W_o does head 0 meet when the heads stand side by side? Head i?",
    sketch="""
        found = weights times v                              (batch, heads, queries, d_head)
        cut the columns of W_o into heads groups of d_head   (d, heads, d_head)
        for each head: its found times its part transposed   (batch, queries, d)
        all heads, not added up                              (batch, heads, queries, d)
        """,
)

# --- 4.4 ---


def seated(first: int, second: int, size: int) -> tuple[Tensor, Tensor]:
    """A table at which every guest wears another symbol, as one-hot vectors: x (1, size, 2 · size)."""
    worn = torch.randperm(size, generator=torch.Generator().manual_seed(size + 10 * first + second))
    return torch.cat([torch.eye(size)[worn], torch.eye(size)], dim=1)[None], worn


class HandMade(Ladder):
    """Weights have no one right answer: compared is what a layer does with them, at a table that they have not seen."""

    def outputs(self, answer: Callable, inputs: tuple) -> tuple[Tensor, ...]:
        return self.outputs_of(answer, inputs)

    def outputs_of(self, function: Callable, inputs: tuple) -> tuple[Tensor, ...]:
        W_qkv, W_o = function(*inputs)
        x, _ = seated(*inputs)
        d = x.shape[-1]
        output, weights = multi_head(x, W_qkv, torch.zeros(3 * d), W_o, torch.zeros(d), heads=2)
        return tuple(each.round(decimals=4) + 0.0 for each in (output[0], weights[0, 0], weights[0, 1]))


def _two_matrices(answer: Callable) -> None:
    for first, second, size in TABLES:
        got, d = answer(first, second, size), 2 * size
        if not (isinstance(got, tuple | list) and len(got) == 2 and all(isinstance(each, Tensor) for each in got)):
            raise Wrong(f"Expected W_qkv and W_o to be returned; got {describe(got)}.")
        for name, matrix, shape in zip(("W_qkv", "W_o"), got, ((3 * d, d), (d, d)), strict=True):
            if matrix.shape != shape:
                raise Wrong(f"With {size} places {name} has shape {shape}; got {tuple(matrix.shape)}.")
            if matrix.dtype != torch.float32:
                raise Wrong(f"Expected {name} in torch.float32; got {matrix.dtype}.")


def _right_guests(answer: Callable) -> None:
    for first, second, size in TABLES:
        _, *heads = by_hand.checks.outputs_of(answer, (first, second, size))
        for i, (weights, back) in enumerate(zip(heads, (first, second), strict=True)):
            wanted = (torch.arange(size) - back) % size
            sure = weights[torch.arange(size), wanted]
            if not torch.equal(weights.argmax(dim=-1), wanted):
                place = int((weights.argmax(dim=-1) != wanted).nonzero()[0])
                raise Wrong(
                    f"With {size} places, head {i} should look {back} back: guest {place} at guest "
                    f"{int(wanted[place])}. It puts most weight on guest {int(weights[place].argmax())}."
                )
            if sure.min() < 0.98:
                raise Wrong(
                    f"Head {i} looks at the right guest, but with a weight of {sure.min():.3f} only: "
                    "make the queries (or the keys) larger."
                )


def _one_hot(answer: Callable) -> None:
    for table in TABLES:
        output, *_ = by_hand.checks.outputs_of(answer, table)
        wanted, *_ = by_hand.checks.outputs_of(two_heads_by_hand, table)
        factor = (output * wanted).sum() / (wanted * wanted).sum()
        if abs(factor - 1) > 0.05 and torch.allclose(output, factor * wanted, atol=0.05 * float(abs(factor)) + 1e-3):
            raise Wrong(
                f"The right symbols come out, {factor:.3g} times too large or too small: a factor on the queries (or "
                "keys) makes a head sharp; on the values (or W_o) it stays in the output."
            )


TABLES = [(1, 4, 8), (2, 3, 6), (1, 3, 5), (0, 1, 4)]
by_hand = Exercise(
    id="4.4",
    title="two heads by hand",
    reference=two_heads_by_hand,
    checks=HandMade(
        two_heads_by_hand,
        TABLES,
        returns=["the layer's output", "the weights of head 0", "the weights of head 1"],
        differentiable=False,
        tolerance=0.05,
        properties=[_right_guests, _one_hot],
        slips=edits(
            two_heads_by_hand,
            """
            one.roll(-back, dims=0) → one.roll(back, dims=0)
            · Both heads look the wrong way round the table: the guest at place p asks for the place `first`
            · (or `second`) before p.
            50 * one.roll(-back, dims=0) → one.roll(-back, dims=0)
            · Each head looks at the right guest, but hardly more than at the others: multiply the queries (or keys).
            one.roll(-back, dims=0) → one
            · Every guest looks at itself: the query must ask for another place than its own.
            torch.cat([*asked, place, place, symbol, symbol]) → torch.cat([*asked, symbol, symbol, symbol, symbol])
            · The keys hold the symbols; a query that asks for a place needs keys that say the place.
            torch.cat([*asked, place, place, symbol, symbol]) → torch.cat([*asked, place, place, place, place])
            · The values hold the places: the right guest is found, and its place comes back instead of its symbol.
            torch.cat([*asked, place, place, symbol, symbol]) → torch.cat([*asked, place, place, symbol, place])
            · Head 0 hands on symbols, head 1 places: is the block of the values the identity? Both heads read the
            · first half of x, the symbol.
            [nothing, 50 * one.roll(-back, dims=0)] → [50 * one.roll(-back, dims=0), nothing] ;
                torch.cat([*asked, place, place, symbol, symbol]) → torch.cat([*asked, symbol, symbol, place, place])
            · The halves are mixed up: the first `size` columns of W_qkv read the symbol, the last `size` the place.
            [nothing, 50 * one.roll(-back, dims=0)] → [50 * one.roll(-back, dims=0), nothing]
            · The queries read the symbol, the first half of x; what a guest asks for depends on its place, the second.
            torch.cat([*asked, place, place, symbol, symbol]) → torch.cat([*asked, symbol, symbol, place, place])
            · Keys and values have the halves of x mixed up: first the symbol, then the place.
            torch.cat([*asked, place, place, symbol, symbol]) → torch.cat([*asked[::-1], place, place, symbol, symbol])
            · The two heads are swapped: head 0 looks `first` places back.
            torch.cat([*asked, place, place, symbol, symbol]) →
                torch.cat([asked[0], place, symbol, asked[1], place, symbol])
            · The rows of W_qkv come as q, k, v of head 0, then of head 1. They come as q of both heads, then k, then v.
            torch.eye(2 * size) → torch.eye(2 * size).roll(size, dims=0)
            · W_o swaps the two heads: the first half of the output is head 0's.
            torch.eye(2 * size) → torch.zeros(2 * size, 2 * size)
            · W_o is 0, so nothing comes out. What it should do to the heads side by side is: nothing.
            for back in (first, second) → for back in (first, first)
            · Both heads look `first` places back.
            """,
        ),
    ).extended(_two_matrices, before="types"),
    crashes=[
        (
            "expanded size of the tensor",
            "A head has `size` rows in each of q, k and v, and every row has d = 2 · size numbers.",
        ),
        (
            "Sizes of tensors must match",
            "Matrices side by side need the same height: `torch.cat(…, dim=1)` sets them so.",
        ),
    ],
    nudge="Score = query · key. Let the key of a guest be its place. What must the query at place p be, so that the "
    "product is large at place p − back and 0 elsewhere?",
    sketch="""
        a matrix (size, d) that reads the place of x:   zeros, then the identity
        a matrix (size, d) that reads the symbol of x:  the identity, then zeros
        keys: the place. values: the symbol. For both heads.
        queries of a head: large times (zeros, then the identity with its rows shifted by back)
        W_qkv: q of head 0, q of head 1, k of head 0, k of head 1, v, v, one below the other
        W_o: what leaves the heads side by side as they are
        """,
)

# --- 4.5 ---


def _pattern_case(seed: int, batch: int, heads: int, queries: int, keys: int, share: float) -> tuple[Tensor, Tensor]:
    """Random weights, and a pattern in which some queries have no key, some one, some several."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(batch, heads, queries, keys, generator=generator).mul(3).softmax(dim=-1)
    gold = torch.rand(batch, queries, keys, generator=generator) < share
    gold[0, 0], gold[0, 1], gold[-1, 0, 0] = False, True, True
    return weights, gold


def _masked_case(seed: int) -> tuple[Tensor, Tensor]:
    """Under a causal mask, where the gold key is the next token for some queries: their weight on it is exactly 0."""
    weights, gold = _pattern_case(seed, 2, 3, 5, 5, 0.2)
    weights = weights * causal_mask(5, 5)
    gold[1, 2] = torch.arange(5) == 3
    return weights / weights.sum(dim=-1, keepdim=True), gold


PATTERN = [_pattern_case(0, 3, 4, 5, 6, 0.2), _pattern_case(1, 1, 2, 4, 4, 0.3), _masked_case(2)]


def _perfect_is_one(answer: Callable) -> None:
    gold = torch.zeros(2, 4, 4, dtype=torch.bool)
    gold[:, 1:] = torch.eye(4, dtype=torch.bool)[:3]  # each token but the first looks at the one before
    perfect = torch.where(gold.any(dim=-1, keepdim=True), gold.float(), 0.25)
    weights = torch.stack([perfect, torch.full_like(perfect, 0.25)], dim=1)  # (2, 2 heads, 4, 4)
    scores = answer(weights, gold).tolist()
    for does, wanted, score in zip(("does just that", "spreads evenly over 4 keys"), (1.0, 0.25), scores, strict=True):
        if abs(score - wanted) > 1e-4:
            raise Wrong(
                f"Pattern: the word before; the first word has none. A head that {does} scores {wanted:g}; "
                f"yours gives {score:.3g}."
            )


TRUE_AND_FALSE = (
    "gold is True and False: `weights * gold[:, None]` keeps the weights of the gold keys, entry by entry; for "
    "products of other kinds `gold.float()` makes numbers of it."
)
MEAN = "found.sum(dim=(0, 2)) / gold.any(dim=-1).sum()"
pattern = Exercise(
    id="4.5",
    title="attention-pattern score",
    reference=pattern_score,
    checks=Ladder(
        pattern_score,
        PATTERN,
        returns=["one score for each head"],
        properties=[_perfect_is_one],
        slips=edits(
            pattern_score,
            f"""
            {MEAN} → found.mean(dim=(0, 2))
            · The mean is taken over all queries; those without a gold key do not count.
            gold.any(dim=-1).sum() → gold.sum()
            · The sum is divided by the number of gold keys; divide by the number of queries that have one.
            gold.any(dim=-1).sum() → (found > 0).sum(dim=(0, 2))
            · A query whose gold keys get a weight of exactly 0 is left out; it counts, as a 0. Ask gold which queries
            · have a key, not the weights.
            gold.any(dim=-1) → gold.any(dim=-2)
            · The keys that are gold for some query are counted; count the queries: `any` over the last dimension.
            (weights * gold[:, None]).sum(dim=-1) →
                (weights * gold[:, None]).sum(dim=-1) / gold.sum(dim=-1).clamp_min(1)[:, None]
            · Of several gold keys the mean weight is taken; add them up.
            / gold.any(dim=-1).sum() →
            · This is the sum over the queries; take the mean over those that have a gold key.
            {MEAN} → (found.sum(dim=2) / gold.any(dim=-1).sum(dim=-1)[:, None])[gold.flatten(1).any(dim=1)].mean(dim=0)
            · This is the mean of the sentences' means; each query counts the same, in whatever sentence it stands.
            (weights * gold[:, None]).sum(dim=-1) →
                gold[:, None].expand_as(weights).gather(-1, weights.argmax(dim=-1, keepdim=True))[..., 0].float()
            · This counts how often the largest weight is on a gold key; the weight itself is asked for.
            (weights * gold[:, None]).sum(dim=-1) → (weights * gold[:, None]).amax(dim=-1)
            · Of several gold keys only the largest weight is counted; add them up.
            {MEAN} → (weights * gold.unsqueeze(1)).mean(dim=(0, 2, 3))
            · The mean is taken over queries and keys; add up over the keys, then average over the queries.
            {MEAN} → ({MEAN}).mean() · This is one number for all heads; one for each is asked for.
            {MEAN} → found.sum(dim=-1) / gold.any(dim=-1).sum(dim=-1)[:, None]
            · This is one score for each sentence and head; take the mean over all queries of the batch.
            weights * gold[:, None] → weights * ~gold[:, None] ; gold.any → (~gold).any
            · This is the weight on the keys that are not gold.
            """,
        ),
    ),
    crashes=[
        (
            "must match the size of tensor",
            "gold has no dimension for the heads: give it one, `gold[:, None]` is (batch, 1, queries, keys).",
        ),
        (
            "does not match the shape of the indexed tensor",
            "gold has no dimension for the heads: `gold[:, None]` is (batch, 1, queries, keys); it multiplies the "
            "weights as it is, but picks among them only after `.expand_as(weights)`.",
        ),
        *((part, TRUE_AND_FALSE) for part in ("found Bool", "!= bool", "Expected size for first two dimensions")),
    ],
    nudge="How much weight does each query put on its gold keys? Then a mean over the queries that have any.",
    sketch="""
        weights times gold, gold with a dimension for the heads      (batch, heads, queries, keys)
        sum over the keys                                            (batch, heads, queries)
        sum over batch and queries                                   (heads)
        divide by the number of queries that have at least one gold key
        """,
)

# --- 4.6 ---


def trial_loss(gates: Tensor, example: Tensor) -> Tensor:
    """The loss that answers are tried on: its gradient has both signs, and depends on the gates."""
    return torch.tanh((gates * example).sum()) + (gates**2 * example).mean()


def _importance_case(seed: int, layers: int, heads: int, examples: int, ones: bool) -> tuple:
    generator = torch.Generator().manual_seed(seed)
    gates = torch.ones(layers, heads) if ones else torch.rand(layers, heads, generator=generator)
    return trial_loss, gates, [torch.randn(layers, heads, generator=generator) for _ in range(examples)]


IMPORTANCE = [
    _importance_case(0, 2, 3, 4, True),
    _importance_case(1, 1, 4, 3, False),
    _importance_case(2, 3, 2, 5, True),
]


def _removal(loss: Callable, gates: Tensor, examples: list) -> Tensor:
    total = torch.zeros_like(gates)
    for place in range(gates.numel()):
        closed = gates.clone()
        closed.view(-1)[place] = 0
        total.view(-1)[place] = sum((loss(closed, e) - loss(gates, e)).abs() for e in examples) / len(examples)
    return total


GRADIENT = "torch.autograd.grad(loss(tried, example), tried)[0]"
importance = Exercise(
    id="4.6",
    title="head importance",
    reference=head_importance,
    checks=Ladder(
        head_importance,
        IMPORTANCE,
        returns=["one number for each head"],
        differentiable=False,
        slips=[
            *edits(
                head_importance,
                f"""
                [0].abs() → [0] ; total / len(examples) → total.abs() / len(examples)
                · The absolute value is taken of the mean: gradients of opposite sign cancel. Take it of each
                · example's, then the mean.
                [0].abs() → [0] · The absolute value is missing: a head matters whichever way it pushes.
                / len(examples) → · This is the sum over the examples; take the mean.
                [0].abs() → [0] ** 2 · These are squares; take absolute values.
                {GRADIENT}.abs() → ({GRADIENT} * gates).abs()
                · This is gate times gradient; the absolute value of the gradient alone is asked for.
                [0].abs() → [0] ** 2 ; total / len(examples) → (total / len(examples)).sqrt()
                · This is the root of the mean square; take absolute values.
                total = torch.zeros_like(gates) → total = piled = torch.zeros_like(gates) ;
                    total += {GRADIENT}.abs() → piled = piled + {GRADIENT}; total = total + piled.abs()
                · The gradients pile up from example to example: `.grad` is added to. Start each example from fresh
                · gates, or set `.grad = None`.
                [0].abs() → [0] ; total / len(examples) → total.abs()
                · Add up absolute values, one for each example, and divide by their number.
                total += → total = ; / len(examples) → · Only the last example counts: keep a sum over all.
                in examples: → in examples[:1]: ; / len(examples) →
                · Only the first example counts: is the `return` inside the loop?
                total += {GRADIENT}.abs() → total = total.maximum({GRADIENT}.abs()) ; / len(examples) →
                · This is the largest over the examples; take the mean.
                len(examples) → total.sum() · The numbers are scaled so that they sum to 1; leave them as they are.
                return total → return total.mean() · This is one number for all heads; one for each is asked for.
                gates.clone() → torch.ones_like(gates) · It starts from gates of 1, not from the gates given.
                """,
            ),
            (_removal, "This is what happens when a head is removed; the gradient is asked for."),
        ],
    ),
    crashes=[
        ("does not require grad", "The gates need `requires_grad_()` before the loss is computed."),
        (
            "NoneType",
            "`.grad` is None: call `.backward()` on the loss first, and read `.grad` of the very tensor that the loss "
            "was given, `gates.clone().requires_grad_()`. (`gates.requires_grad_().clone()` keeps none: no leaf.)",
        ),
        *(
            (part, "`torch.autograd.grad` returns a tuple, a gradient for each tensor: take its first, `[0]`.")
            for part in ("'tuple' object has no attribute", "and 'tuple'", "abs(): 'tuple'", "abs(): argument 'input'")
        ),
        ("leaf Variable that requires grad", "Work on a copy of the gates: `gates.clone().requires_grad_()`."),
        (
            "grad can be implicitly created only for scalar",
            "Differentiate the loss of one example at a time: one number.",
        ),
        ("converted to an index", "`loss` takes one example at a time: go through the examples in a loop."),
    ],
    nudge="For each example: fresh gates that require a gradient, the loss, its gradient, its absolute value.",
    sketch="""
        total = zeros, like the gates
        for each example:
            a copy of the gates, with requires_grad
            the gradient of loss(copy, example) with respect to the copy
            add its absolute value to total
        return total divided by the number of examples
        """,
)

EXERCISES = [split, layer, contributions, by_hand, pattern, importance]
