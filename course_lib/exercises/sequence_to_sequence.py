"""Exercises of lesson 07: the target's mask, the block that looks at the source, label smoothing, clipping, BLEU."""

import contextlib
import functools
import math
import operator
from collections import Counter
from collections.abc import Callable
from numbers import Real

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.attention import target_mask
from course_lib.checks import Exercise, Wrong, describe, function_checks, signature_check
from course_lib.metrics import bleu, brevity_penalty, clipped_matches, closest_length, corpus_bleu, ngrams
from course_lib.training import smoothed_loss
from course_lib.transformer import Block, Shape
from course_lib.translator import decoder_block


def _random(seed: int, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


# --- 7.1 ---

LENGTHS = [(torch.tensor(lengths), longest) for lengths, longest in (([4, 2], 5), ([3], 3), ([1, 4, 2], 4))]


def _mask_of(rule: Callable) -> Callable:
    """A mask (batch, 1, longest, longest) by a rule of lengths, queries and keys; for slips."""

    def mask(lengths, longest):
        places = torch.arange(longest, device=lengths.device)
        found = rule(lengths[:, None, None], places[None, :, None], places[None, None, :])
        return found.expand(len(lengths), longest, longest)[:, None]

    return mask


def _is_boolean(answer: Callable) -> None:
    got = answer(*LENGTHS[0])
    if isinstance(got, Tensor) and got.dtype != torch.bool:
        if got.isinf().any():
            raise Wrong("This mask is to be added to scores; ours says what may be seen: True and False.")
        raise Wrong(f"The mask must hold True and False (torch.bool); got {got.dtype}.")


def _mask_shape(answer: Callable) -> None:
    lengths, longest = LENGTHS[0]
    got = answer(lengths, longest)
    if isinstance(got, Tensor) and got.shape == (len(lengths), longest, longest):
        raise Wrong("The place for the heads is missing: (batch, 1, longest, longest), so that all heads share it.")


_mask_checks = function_checks(
    target_mask,
    LENGTHS,
    returns=["mask"],
    differentiable=False,
    slips=[
        (_mask_of(lambda n, q, k: (k > n - 1) | (k > q)), "True and False are swapped: True is what may be seen."),
        (
            _mask_of(lambda n, q, k: (k < n) | (k <= q)),
            "What is true *or* not ahead is open: both must hold, so join the two with `&`.",
        ),
        (_mask_of(lambda n, q, k: (k < n) & (k < q)), "A word may see itself: the diagonal is open up to the length."),
        (_mask_of(lambda n, q, k: (k < n) & (k <= q + 1)), "Each word sees one word ahead, the one it should name."),
        (_mask_of(lambda n, q, k: (k < n) & (k >= q)), "Each word sees what comes after it: rows are queries."),
        (_mask_of(lambda n, q, k: k <= q), "The lengths are not used: what is filled up at the end must be hidden."),
        (_mask_of(lambda n, q, k: k < n), "The future is open: hide the keys that stand after each query."),
        (
            _mask_of(lambda n, q, k: (k <= n) & (k <= q)),
            "One word too many: places count from 0, so the true ones are those below the length.",
        ),
        (
            _mask_of(lambda n, q, k: (k < n - 1) & (k <= q)),
            "The last true word is hidden: places count from 0, so the true ones are those below the length.",
        ),
        (
            _mask_of(lambda n, q, k: (q < n) & (k <= q)),
            "Rows of filled-up queries are hidden, and a softmax over nothing is NaN: hide filled-up keys, columns.",
        ),
        *(
            (
                _mask_of(rule),
                "The true rows are right. The rule is the same for filled-up queries: they see the true words.",
            )
            for rule in (
                lambda n, q, k: torch.where(q < n, k <= q, True),
                lambda n, q, k: torch.where(q < n, k <= q, k == q),
                lambda n, q, k: torch.where(q < n, k <= q, k == 0),
            )
        ),
    ],
)

mask = Exercise(
    id="7.1",
    title="padding and causal mask",
    reference=target_mask,
    checks=[_mask_checks[0], _is_boolean, _mask_shape, *_mask_checks[1:]],
    crashes=[
        ("unsupported operand type", "Masks are joined with `&`, entry by entry, not with `and` or `+`."),
        ("only one element tensors", "There are as many lengths as texts: compare places with `lengths[:, None]`."),
        ("must match the size of tensor", "Bring the lengths to (batch, 1, 1, 1), or (batch, 1), before you compare."),
    ],
    nudge="Two comparisons of places, `torch.arange(longest)`: with the lengths, and with each other. Both must hold.",
    sketch="""
        places = 0, 1, …, longest − 1, on the device of the lengths
        true   = places below each length             (batch, keys) → (batch, 1, 1, keys)
        behind = key's place not after query's place  (queries, keys)
        return true & behind                          (batch, 1, queries, keys)
        """,
)

# --- 7.2 ---


def _block_cases() -> list[tuple]:
    """Sizes all different; weights of the norms too, so that none can stand in for another."""
    cases = []
    for seed, (batch, target, source, d) in enumerate([(2, 3, 5, 8), (1, 4, 2, 4), (3, 2, 4, 12)]):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            block = Block(Shape(d=d, heads=2, d_ff=6, activation="relu", pre_norm=False, cross=True))
            for norm in (block.attention_norm, block.cross_norm, block.feed_forward_norm):
                nn.init.normal_(norm.weight)
        x, memory = _random(seed, (batch, target, d), (batch, source, d))
        lengths = torch.arange(batch) % 2 + source - 1
        mask = target_mask(torch.full((batch,), target), target)
        memory_mask = (torch.arange(source) < lengths[:, None])[:, None, None]
        cases.append((x, memory, mask, memory_mask, block.requires_grad_(False)))
    return cases


def _wiring(**changes: Callable) -> Callable:
    """`decoder_block` with some steps changed: of `own`, `cross`, `feed`, each a function of (x, b) and the inputs."""

    def block(x, memory, mask, memory_mask, block):
        steps = {
            "own": lambda x, b: b.attention_norm(x + b.attention(x, mask=mask)[0]),
            "cross": lambda x, b: b.cross_norm(x + b.cross(x, memory, memory_mask)[0]),
            "feed": lambda x, b: b.feed_forward_norm(x + b.feed_forward(x)),
        }
        for name, step in steps.items():
            given = {"memory": memory, "mask": mask, "memory_mask": memory_mask}
            x = changes[name](x, block, **given) if name in changes else step(x, block)
        return x

    return block


def _pre_norm(x, memory, mask, memory_mask, block):
    x = x + block.attention(block.attention_norm(x), mask=mask)[0]
    x = x + block.cross(block.cross_norm(x), memory, memory_mask)[0]
    return x + block.feed_forward(block.feed_forward_norm(x))


def _source_first(x, memory, mask, memory_mask, block):
    x = block.cross_norm(x + block.cross(x, memory, memory_mask)[0])
    x = block.attention_norm(x + block.attention(x, mask=mask)[0])
    return block.feed_forward_norm(x + block.feed_forward(x))


def _memory_normed(pre: bool, which: str) -> Callable:
    """S3's slide normalises the encoder's output again; with which norm it does not say."""

    def wiring(x, memory, mask, memory_mask, block):
        norm = getattr(block, which) if which else lambda m: F.layer_norm(m, m.shape[-1:])
        return (_pre_norm if pre else decoder_block)(x, norm(memory), mask, memory_mask, block)

    return wiring


def _one_norm(which: str) -> Callable:
    def wiring(x, memory, mask, memory_mask, block):
        norm = getattr(block, which)
        x = norm(x + block.attention(x, mask=mask)[0])
        x = norm(x + block.cross(x, memory, memory_mask)[0])
        return norm(x + block.feed_forward(x))

    return wiring


def _from_the_first(x, memory, mask, memory_mask, block):
    h = block.attention_norm(x + block.attention(x, mask=mask)[0])
    h = block.cross_norm(x + block.cross(h, memory, memory_mask)[0])
    return block.feed_forward_norm(x + block.feed_forward(h))


def _old_queries(x, memory, mask, memory_mask, block):
    h = block.attention_norm(x + block.attention(x, mask=mask)[0])
    h = block.cross_norm(h + block.cross(x, memory, memory_mask)[0])
    return block.feed_forward_norm(h + block.feed_forward(h))


NORMS = "attention_norm", "cross_norm", "feed_forward_norm"


def _norm_inside(x, memory, mask, memory_mask, block):
    x = x + block.attention_norm(block.attention(x, mask=mask)[0])
    x = x + block.cross_norm(block.cross(x, memory, memory_mask)[0])
    return x + block.feed_forward_norm(block.feed_forward(x))


def _no_future(answer: Callable) -> None:
    x, memory, mask, memory_mask, block = _block_cases()[1]
    other = torch.cat([x[:, :-1], x[:, -1:] + 1], dim=1)
    first, second = (answer(inputs, memory, mask, memory_mask, block)[:, :-1] for inputs in (x, other))
    if not torch.allclose(first, second, atol=1e-5):
        raise Wrong("Change the last token of the target, and the first ones move: `mask` belongs to self-attention.")


def _sees_the_source(answer: Callable) -> None:
    x, memory, mask, memory_mask, block = _block_cases()[0]
    if torch.allclose(answer(x, memory, mask, memory_mask, block), answer(x, -memory, mask, memory_mask, block)):
        raise Wrong("The source does not matter: `block.cross` must be given `memory`.")


_block_checks = function_checks(
    decoder_block,
    _block_cases(),
    returns=["x"],
    properties=[_no_future, _sees_the_source],
    slips=[
        (_pre_norm, "This is pre-norm, x + f(LN(x)), as on S3's slide; the block of 2017 is LN(x + f(x))."),
        *(
            (
                _memory_normed(True, which),
                "This is pre-norm, and the memory is normalised again, as on S3's slide; the block of 2017 is "
                "LN(x + f(x)), and reads the memory as it is.",
            )
            for which in (*NORMS, "")
        ),
        *(
            (
                _memory_normed(False, which),
                "The memory is normalised again, as on S3's slide; the decoder of 2017 reads it as it is.",
            )
            for which in (*NORMS, "")
        ),
        *(
            (_one_norm(which), f"Each of the three steps has a norm of its own: here all take `block.{which}`.")
            for which in NORMS
        ),
        (_from_the_first, "Each step adds to the block's first x; it has to add to what the step before it gave."),
        (_old_queries, "The look at the source is asked with the x from before self-attention; take the new x."),
        (_source_first, "The source is looked at first: in 2017 the target looks at itself, then at the source."),
        (_norm_inside, "Only f(x) is normalised; the norm takes the sum: LN(x + f(x))."),
        (
            _wiring(cross=lambda x, b, memory, memory_mask, **_: b.cross_norm(b.cross(x, memory, memory_mask)[0])),
            "The residual path around the look at the source is missing: LN(x + …).",
        ),
        (
            _wiring(own=lambda x, b, mask, **_: b.attention_norm(b.attention(x, mask=mask)[0])),
            "The residual path around self-attention is missing: LN(x + …).",
        ),
        (
            _wiring(feed=lambda x, b, **_: b.feed_forward_norm(b.feed_forward(x))),
            "The residual path around the feed-forward layer is missing: LN(x + …).",
        ),
        (_wiring(feed=lambda x, b, **_: x), "The feed-forward layer is missing: it is the third step."),
        (_wiring(cross=lambda x, b, **_: x), "The look at the source, `block.cross`, is missing."),
        (_wiring(own=lambda x, b, **_: x), "The target's look at itself, `block.attention`, is missing."),
        (
            _wiring(cross=lambda x, b, memory, **_: b.cross_norm(x + b.cross(x, memory)[0])),
            "`memory_mask` is not used: the places where a source is filled up take part.",
        ),
        (
            _wiring(own=lambda x, b, **_: b.attention_norm(x + b.attention(x)[0])),
            "`mask` is not used: the target looks ahead, at the words it should name.",
        ),
        (
            _wiring(
                cross=lambda x, b, memory, memory_mask, **_: b.attention_norm(x + b.cross(x, memory, memory_mask)[0])
            ),
            "Each of the three steps has a norm of its own: the second one is `block.cross_norm`.",
        ),
        (
            _wiring(cross=lambda x, b, memory, memory_mask, **_: x + b.cross(x, memory, memory_mask)[0]),
            "The norm after the look at the source is missing.",
        ),
        (
            _wiring(own=lambda x, b, mask, **_: x + b.attention(x, mask=mask)[0]),
            "The norm after self-attention is missing.",
        ),
        (_wiring(feed=lambda x, b, **_: x + b.feed_forward(x)), "The norm after the feed-forward layer is missing."),
        (
            _wiring(
                cross=lambda x, b, memory, memory_mask, **_: b.cross_norm(x + b.attention(x, memory, memory_mask)[0])
            ),
            "The source is looked at with the weights of self-attention: `block.cross` has its own.",
        ),
    ],
)

cross = Exercise(
    id="7.2",
    title="cross-attention block",
    reference=decoder_block,
    # the pieces are given, with weights of their own type and place: nothing to find out about those
    checks=[check for check in _block_checks if check.__name__ not in ("dtypes", "devices")],
    crashes=[
        ("tuple", "An attention returns two things, its output and its weights: `looked, _ = block.attention(…)`."),
        (
            "Expected memory",
            "The second argument is what one looks at: `attention(x, mask=…)`, `cross(x, memory, mask=…)`.",
        ),
        ("expanded size", "A mask has a column for each key: `mask` for the target, `memory_mask` for the source."),
        (
            "must match the size",
            "A mask has a column for each key: `mask` for the target, `memory_mask` for the source.",
        ),
        ("Expected a mask of True", "`block.attention(x, mask=mask)`: the second argument would be a memory."),
    ],
    nudge="The same line three times, x = norm(x + f(x)), with f the look at the target, at the source, feed-forward.",
    sketch="""
        looked, _ = block.attention(x, mask = the target's)
        x = the norm of self-attention, of x + looked
        looked, _ = block.cross(x, memory, mask = the source's)
        x = the norm of the cross-attention, of x + looked
        return the norm of the feed-forward layer, of x + block.feed_forward(x)
        """,
)

# --- 7.3 ---


def _loss_cases() -> list[tuple]:
    cases = []
    for seed, (shape, classes, epsilon) in enumerate([((2, 3), 5, 0.1), ((4,), 7, 0.3), ((3, 2), 4, 0.0)]):
        (logits,) = _random(seed, (*shape, classes))
        targets = torch.randint(classes, shape, generator=torch.Generator().manual_seed(seed))
        if seed != 1:
            targets[..., -1][1:] = -100
        cases.append((3 * logits, targets, epsilon))
    return cases


def _loss_variant(
    mix: Callable = lambda right, log_p, e: (1 - e) * right + e * log_p.mean(dim=-1),
    end: Callable = lambda loss, counted: loss[counted].mean(),
    logs: Callable = lambda logits: logits.log_softmax(dim=-1),
) -> Callable:
    """`smoothed_loss` with one thing changed; for slips."""

    def loss(logits, targets, epsilon):
        log_p, counted = logs(logits), targets != -100
        right = log_p.gather(-1, targets.clamp(min=0)[..., None])[..., 0]
        return end(-mix(right, log_p, epsilon), counted)

    return loss


def _others_only(right, log_p, e):
    """ε over the V − 1 wrong classes."""
    return (1 - e) * right + e * (log_p.sum(dim=-1) - right) / (log_p.shape[-1] - 1)


def _fillers_in_the_even_part(logits, targets, epsilon):
    log_p, counted = logits.log_softmax(dim=-1), targets != -100
    right = log_p[counted].gather(-1, targets[counted][:, None]).mean()
    return -((1 - epsilon) * right + epsilon * log_p.mean())


def _large_logits(answer: Callable) -> None:
    """softmax gives 0 for what is 200 below the best, and its logarithm is −∞."""
    logits, targets = torch.tensor([[0.0, 200.0, 0.0], [200.0, 0.0, 0.0]]), torch.tensor([0, 0])
    got, want = answer(logits, targets, 0.1), smoothed_loss(logits, targets, 0.1)
    if not torch.allclose(got, want, rtol=1e-4):
        raise Wrong(
            f"With logits of 0 and 200 the loss must be {want:.1f}; got {got:.4g}: softmax rounds to 0, and its "
            "logarithm is −∞. Use `log_softmax`."
        )


def _equals_torch(answer: Callable) -> None:
    """On one case more: what is ignored, epsilon 1."""
    (logits,) = _random(9, (5, 6))
    targets = torch.tensor([0, -100, 5, 2, -100])
    for epsilon in (0.0, 0.1, 1.0):
        want = F.cross_entropy(logits, targets, ignore_index=-100, label_smoothing=epsilon)
        got = answer(logits, targets, epsilon)
        if not torch.allclose(got, want, atol=1e-5):
            raise Wrong(f"With ε = {epsilon:g} PyTorch's own label smoothing gives {want:.4f}; yours gives {got:.4f}.")


loss = Exercise(
    id="7.3",
    title="label smoothing",
    reference=smoothed_loss,
    checks=function_checks(
        smoothed_loss,
        _loss_cases(),
        returns=["the loss"],
        properties=[_large_logits, _equals_torch],
        slips=[
            (
                _loss_variant(mix=_others_only),
                "ε is dealt out over the wrong words only; as in PyTorch, it goes evenly to all, the right one too.",
            ),
            (
                _loss_variant(mix=lambda right, log_p, e: e * right + (1 - e) * log_p.mean(dim=-1)),
                "ε and 1 − ε are swapped: the right word keeps the larger part.",
            ),
            (
                _loss_variant(mix=lambda right, log_p, e: (1 - e) * right + e * log_p.sum(dim=-1)),
                "Each word gets ε / V: take the mean of log p over the words, not the sum.",
            ),
            (
                _loss_variant(mix=lambda right, log_p, e: right + e * log_p.mean(dim=-1)),
                "The shares must sum to 1: the right word keeps 1 − ε.",
            ),
            (_loss_variant(mix=lambda right, log_p, e: (1 - e) * right), "The part that is dealt out, ε, is missing."),
            (_loss_variant(mix=lambda right, log_p, e: right), "This is the plain loss: ε is not used."),
            (
                _loss_variant(end=lambda loss, counted: -loss[counted].mean()),
                "The sign is wrong: a loss is −log p, and positive.",
            ),
            (
                _loss_variant(end=lambda loss, counted: loss[counted].sum()),
                "This is the sum over the targets; take their mean.",
            ),
            (
                _loss_variant(end=lambda loss, counted: (loss * counted).mean()),
                "The mean is taken over all targets, with 0 for those that do not count: divide by the true ones.",
            ),
            (
                _loss_variant(end=lambda loss, counted: loss.mean()),
                "Targets of −100 count: they are filled up, and must be left out.",
            ),
            (
                _loss_variant(logs=lambda logits: logits.softmax(dim=-1)),
                "These are probabilities; the loss is made of their logarithms, `log_softmax`.",
            ),
            (
                _loss_variant(logs=lambda logits: logits.log_softmax(dim=1)),
                "The softmax runs over the places; take it over the words, the last dimension.",
            ),
            (
                _fillers_in_the_even_part,
                "The part that is dealt out is averaged over filled-up places too: leave them out of both parts.",
            ),
            (_loss_variant(logs=lambda logits: logits), "The logits themselves are used: take `log_softmax` first."),
            (
                _loss_variant(logs=lambda logits: logits.softmax(dim=-1).log_softmax(dim=-1)),
                "The softmax is taken twice: `log_softmax` takes it already.",
            ),
        ],
    ),
    crashes=[
        ("index -100 is out of bounds", "Some targets are −100, which is no word: leave those out first."),
        ("out of bounds", "Some targets are −100, which is no word: leave those out first."),
        ("Class values must be non-negative", "Some targets are −100, which is no word: leave those out first."),
        (
            "Expected target size",
            "The words are the last dimension here; flatten both, or choose `logits[targets != -100]`.",
        ),
        ("not enough values to unpack", "`logits` is (…, V): any number of dimensions may come before the words."),
        ("same number of dimensions", "`gather` wants an index with a last dimension too: `targets[..., None]`."),
    ],
    nudge="`log_softmax`, then two readings of it for each target: log p of the right word, the mean over all words.",
    sketch="""
        keep the rows of logits and targets where the target is not −100
        log_p = log_softmax of the logits                         (targets, words)
        right = log_p of the right word                           (targets)
        even  = the mean of log_p over all words                  (targets)
        return minus the mean of (1 − ε) · right + ε · even
        """,
)

# --- 7.4 ---


def _split(*texts: str) -> list[list[str]]:
    return [text.split() for text in texts]


GUARD = "the guard arrived late because of the rain", ["the guard arrived late because it was raining"]  # S4's
MATCHES = [  # candidate, references, n
    (candidate.split(), _split(*references), n)
    for candidate, references, n in (
        ("he he he eats tasty fruit", ["he eats a sweet apple", "he is eating a tasty apple"], 1),  # S4's too
        (*GUARD, 1),
        (*GUARD, 2),
        ("a b a b a b", ["a b a b", "b a b a b c", "a a"], 2),
        ("a a a a", ["a a", "a b a b a"], 1),
        ("a b c d e", ["a b c", "c d e a b"], 3),
        ("b a", ["a b"], 2),
        ("a b", ["a b"], 3),
        ("a", ["a"], 3),
        ("", ["a b"], 1),  # nothing was written
    )
]


def _grams(tokens, n):
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


def _match_slip(count: Callable, total: Callable = lambda c, n: len(_grams(c, n))) -> Callable:
    """(right, all) from `count(candidate's n-grams, each reference's n-grams)`; for slips."""
    return lambda c, R, n: (count(_grams(c, n), [_grams(r, n) for r in R]), total(c, n))


def _clipped(c, R):
    return sum(min(c.count(g), max(r.count(g) for r in R)) for g in set(c))


MATCH_SLIPS = [
    (
        _match_slip(lambda c, R: sum(any(g in r for r in R) for g in c)),
        "Nothing is clipped: *he he he* has three right words by this count. At most as often as in a reference.",
    ),
    (
        _match_slip(lambda c, R: sum(min(c.count(g), sum(r.count(g) for r in R)) for g in set(c))),
        "Clipped by the sum over all references; the limit is the reference that has the n-gram most often.",
    ),
    (
        _match_slip(lambda c, R: sum(min(c.count(g), R[0].count(g)) for g in set(c))),
        "Only the first reference is looked at: an n-gram is right if any of them has it.",
    ),
    (
        _match_slip(lambda c, R: sum(min(c.count(g), R[-1].count(g)) for g in set(c))),
        "Only the last reference is looked at: an n-gram is right if any of them has it.",
    ),
    (
        _match_slip(lambda c, R: max(sum(min(c.count(g), r.count(g)) for g in set(c)) for r in R)),
        "This is the best match with a single reference: each n-gram has its own limit, over all of them.",
    ),
    (
        _match_slip(lambda c, R: sum(min(c.count(g), min(r.count(g) for r in R)) for g in set(c))),
        "Only what *every* reference has is counted; one that has the n-gram is enough.",
    ),
    (
        _match_slip(lambda c, R: sum(any(g in r for r in R) for g in set(c))),
        "Each n-gram is counted once only; it is right as often as a reference has it.",
    ),
    (
        _match_slip(_clipped, lambda c, n: len(c)),
        "The second number is that of the words; a text of 8 words has 7 pairs: count n-grams.",
    ),
    (
        _match_slip(_clipped, lambda c, n: len(set(_grams(c, n)))),
        "The second number counts different n-grams; count all, repeated ones too.",
    ),
    (
        _match_slip(_clipped, lambda c, n: len(c) - n + 1),
        "The second number is negative where the text is shorter than n: such a text has no n-grams, 0.",
    ),
    (
        _match_slip(_clipped, lambda c, n: max(len(_grams(c, n)), 1)),
        "A text shorter than n has no n-grams: the second number is 0 there, not 1. Whoever divides takes care.",
    ),
    (
        _match_slip(lambda c, R: sum(any(g in r for r in R) for g in set(c)), lambda c, n: len(set(_grams(c, n)))),
        "Both numbers count *different* n-grams, as `len` of a Counter does: sum the counts, `.total()`.",
    ),
    *(
        (
            lambda c, R, n, theirs=theirs: (clipped_matches(c, R, n)[0], theirs([ngrams(r, n) for r in R])),
            "The second number counts the references' n-grams; precision asks how many the *candidate* has.",
        )
        for theirs in (
            lambda found: sum(r.total() for r in found),
            lambda found: max(r.total() for r in found),
            lambda found: found[0].total(),
            lambda found: functools.reduce(operator.or_, found).total(),
        )
    ),
    (
        lambda c, R, n: clipped_matches(c, R, 1),
        "These are single words whatever n is: an n-gram is n neighbours, `tuple(tokens[i : i + n])`.",
    ),
    (
        lambda c, R, n: (
            sum(min(c[:-1].count(w), max(r.count(w) for r in R)) for w in set(c[:-1])) if n == 1 else -1,
            len(c) - n,
        ),
        "The last n-gram is left out: the first of them starts at 0, the last at len − n, so `range(len − n + 1)`.",
    ),
]


def _is_a_pair_of_counts(answer: Callable) -> None:
    got = answer(*MATCHES[0])
    if isinstance(got, Real):
        raise Wrong("One number came back: return the two counts, right ones and all, not their ratio.")
    if not (isinstance(got, tuple | list) and len(got) == 2 and all(isinstance(x, Real) for x in got)):
        raise Wrong(f"Expected two numbers, the right n-grams and all of them; got {describe(got)}.")


def _keeps_its_lists(answer: Callable) -> None:
    candidate, references, n = MATCHES[3]
    given = [*candidate], [[*r] for r in references]
    answer(*given, n)
    if given != (candidate, references):
        raise Wrong("It changes the lists that it is given: make new ones.")


def _the_counts(answer: Callable) -> None:
    pairs = [(answer(*case), clipped_matches(*case)) for case in MATCHES]
    if all(tuple(got) == want for got, want in pairs):
        return
    if all(tuple(got)[::-1] == want for got, want in pairs):
        raise Wrong("The two numbers are in the wrong order: right ones first, then all.")
    for slip, sentence in MATCH_SLIPS:
        if all(tuple(got) == slip(*case) for (got, _), case in zip(pairs, MATCHES, strict=True)):
            raise Wrong(sentence)
    (candidate, references, n), (got, want) = next(
        (case, pair) for case, pair in zip(MATCHES, pairs, strict=True) if tuple(pair[0]) != pair[1]
    )
    texts = " / ".join(" ".join(reference) for reference in references)
    raise Wrong(f"*{' '.join(candidate)}* against *{texts}*, n = {n}: {want} expected; got {tuple(got)}.")


matches = Exercise(
    id="7.4",
    title="clipped precision",
    reference=clipped_matches,
    checks=[signature_check(clipped_matches), _is_a_pair_of_counts, _keeps_its_lists, _the_counts],
    crashes=[
        ("unhashable type", "A list cannot be counted: make a tuple of the n neighbours, `tuple(tokens[i : i + n])`."),
        ("Expected a list of tokens", "`references` is a list of references: look at each of them in turn."),
    ],
    nudge="`ngrams(tokens, n)` counts. Of two Counters `a | b` has the larger of each two counts, `a & b` the smaller.",
    sketch="""
        ours = the n-grams of the candidate, with their counts
        most = for each n-gram the largest count that any reference has   (| over the references)
        right = for each n-gram of ours the smaller of the two counts, summed up   (&, then .total())
        return right, how many n-grams ours has
        """,
)

# --- 7.5 ---

CORPORA = [  # candidates, references, n
    (_split(GUARD[0]), [_split(*GUARD[1])], 4),
    (
        _split("a b c d f e", "a b c d", "b c d e a b c"),
        [_split("a b c d", "a b c d e f g"), _split("a b c d e c f"), _split("a b c d e a b c d", "b c d e f")],
        4,
    ),
    (_split("a b c", "x y"), [_split("a b d e"), _split("x y z", "x y")], 2),
    (_split("a c b e", "d a b c e"), [_split("a c b f e"), _split("d a b")], 3),
]
NO_MATCH = (_split("a b c d", "e f g h"), [_split("d c b a"), _split("h g f e")], 4)
TOO_SHORT = (_split("a b", "c d e"), [_split("a b"), _split("c d e")], 4)


def _bleu_variant(
    mean: Callable = lambda p: math.exp(sum(map(math.log, p)) / len(p)),
    penalty: Callable = brevity_penalty,
    nearest: Callable = closest_length,
    points: float = 100,
    counts: Callable = clipped_matches,
    sizes: Callable = lambda n: range(1, n + 1),
) -> Callable:
    """`corpus_bleu` with one thing changed; for slips."""

    def corpus(candidates, references, n=4):
        p = []
        for size in sizes(n):
            found = [counts(c, r, size) for c, r in zip(candidates, references, strict=True)]
            if not any(right for right, _ in found):
                return 0.0
            p.append(sum(right for right, _ in found) / sum(total for _, total in found))
        lengths = sum(map(len, candidates)), sum(map(nearest, candidates, references))
        return points * penalty(*lengths) * mean(p)

    return corpus


def _unclipped(candidate, references, n):
    known = set().union(*(ngrams(reference, n) for reference in references))
    ours = ngrams(candidate, n)
    return sum(count for gram, count in Counter(ours).items() if gram in known), ours.total()


def _one_sentence_each(candidates, references, n=4):
    pairs = zip(candidates, references, strict=True)
    return sum(bleu(c, r, n) for c, r in pairs) / len(candidates)


def _mean_of_precisions(candidates, references, n=4):
    logs = []
    for size in range(1, n + 1):
        found = [clipped_matches(c, r, size) for c, r in zip(candidates, references, strict=True)]
        logs.append(math.log(sum(right / total for right, total in found if total) / len(found)))
    lengths = sum(map(len, candidates)), sum(map(closest_length, candidates, references))
    return 100 * brevity_penalty(*lengths) * math.exp(sum(logs) / n)


def _mean_penalty(candidates, references, n=4):
    penalties = [brevity_penalty(len(c), closest_length(c, R)) for c, R in zip(candidates, references, strict=True)]
    penalty = sum(penalties) / len(penalties)
    return _bleu_variant(penalty=lambda c, r: penalty)(candidates, references, n)


BLEU_SLIPS = [
    (
        _one_sentence_each,
        "This is the mean of the sentences' BLEU. Sum matches and lengths over all sentences first, then divide.",
    ),
    (
        _mean_of_precisions,
        "The precisions of the sentences are averaged: sum the right n-grams of all sentences, and divide once.",
    ),
    (
        _bleu_variant(mean=lambda p: sum(p) / len(p)),
        "This is the arithmetic mean of the precisions; take the geometric.",
    ),
    (_bleu_variant(mean=math.prod), "The precisions are multiplied, but the n-th root is missing."),
    (_bleu_variant(mean=lambda p: math.prod(p) ** (1 / 4)), "The root is always the fourth; take the n-th."),
    (_bleu_variant(mean=lambda p: p[-1]), "Only the longest n-grams count: all sizes from 1 to n belong to the mean."),
    (_bleu_variant(penalty=lambda c, r: 1.0), "The brevity penalty is missing: too short a text has high precision."),
    (
        _bleu_variant(penalty=lambda c, r: brevity_penalty(r, c)),
        "The brevity penalty is turned round: c is the candidates' length, r the references'.",
    ),
    (
        _bleu_variant(penalty=lambda c, r: math.exp(1 - r / c)),
        "Longer texts are rewarded: the penalty is never above 1.",
    ),
    (
        _bleu_variant(penalty=lambda c, r: min(1.0, c / r)),
        "The penalty is not c / r but exp(1 − r / c): `brevity_penalty(c, r)`.",
    ),
    (_bleu_variant(points=1), "This lies between 0 and 1; BLEU is given in points: times 100."),
    (
        _bleu_variant(nearest=lambda c, R: min(map(len, R))),
        "r takes the shortest reference; take the one nearest in length, `closest_length`.",
    ),
    (
        _bleu_variant(nearest=lambda c, R: max(map(len, R))),
        "r takes the longest reference; take the one nearest in length, `closest_length`.",
    ),
    (
        _bleu_variant(nearest=lambda c, R: len(R[0])),
        "r takes the first reference; take the one nearest in length, `closest_length`.",
    ),
    (
        _bleu_variant(nearest=lambda c, R: sum(map(len, R))),
        "r sums the lengths of all references; of each sentence one counts, the nearest in length: `closest_length`.",
    ),
    (
        _mean_penalty,
        "The penalties of the sentences are averaged: sum the lengths over all sentences, and take one penalty.",
    ),
    (_bleu_variant(counts=_unclipped), "Nothing is clipped: use `clipped_matches`."),
    (
        _bleu_variant(sizes=lambda n: range(1, n)),
        "The largest n-grams are left out: `range(1, n + 1)` ends with n.",
    ),
    (_bleu_variant(sizes=lambda n: range(1, 5)), "n is not used: the sizes go from 1 to n."),
    (
        _bleu_variant(counts=lambda c, R, n: clipped_matches(c, R[:1], n)),
        "Only the first reference of each sentence is used.",
    ),
]


def _number(answer: Callable, case: tuple) -> float:
    candidates, references, n = case
    got = answer([[*c] for c in candidates], [[[*r] for r in refs] for refs in references], n)
    if not isinstance(got, Real) and not (isinstance(got, Tensor) and got.numel() == 1):
        raise Wrong(f"Expected one number to be returned; got {describe(got)}.")
    return float(got)


def _is_one_number(answer: Callable) -> None:
    _number(answer, CORPORA[0])


def _is_made(slip: Callable, found: list[float]) -> bool:
    """Does the slip give these numbers? Where it stops with an error of its own, it does not."""
    with contextlib.suppress(ArithmeticError, ValueError):
        return all(math.isclose(got, slip(*case), abs_tol=1e-4) for got, case in zip(found, CORPORA, strict=True))
    return False


def _the_points(answer: Callable) -> None:
    pairs = [(_number(answer, case), corpus_bleu(*case)) for case in CORPORA]
    if all(math.isclose(got, want, abs_tol=1e-4) for got, want in pairs):
        return
    for slip, sentence in BLEU_SLIPS:
        if _is_made(slip, [got for got, _ in pairs]):
            raise Wrong(sentence)
    (candidates, _, n), (got, want) = next(
        (case, pair) for case, pair in zip(CORPORA, pairs, strict=True) if not math.isclose(*pair, abs_tol=1e-4)
    )
    texts = " / ".join(" ".join(candidate) for candidate in candidates)
    raise Wrong(f"For *{texts}* and n = {n} it must be {want:.2f} points; got {got:.2f}.")


def _nothing_right(answer: Callable) -> None:
    cases = {
        "Where no 4-gram is right": NO_MATCH,
        "Where every text is shorter than 4 words, so that there are no 4-grams at all,": TOO_SHORT,
    }
    for where, case in cases.items():
        try:
            got = _number(answer, case)
        except (ValueError, ZeroDivisionError) as error:
            raise Wrong(f"{where} it stopped with {type(error).__name__}: {error}. BLEU is 0 there.") from None
        if not abs(got) < 1e-6:  # nan is not
            raise Wrong(f"{where} BLEU must be 0, since one factor of the product is; got {got:.2f}.")


def _four_by_default(answer: Callable) -> None:
    candidates, references, _ = CORPORA[1]
    if not math.isclose(float(answer(candidates, references)), corpus_bleu(candidates, references), abs_tol=1e-4):
        raise Wrong("Without a third argument n must be 4: `n=4` in the first line.")


points = Exercise(
    id="7.5",
    title="BLEU",
    reference=corpus_bleu,
    checks=[signature_check(corpus_bleu), _is_one_number, _the_points, _nothing_right, _four_by_default],
    crashes=[
        ("math domain error", "The logarithm of 0 does not exist: if nothing is right for some n, BLEU is 0."),
        ("expected a positive input", "The logarithm of 0 does not exist: if nothing is right for some n, BLEU is 0."),
        ("division by zero", "A candidate may be shorter than n words: sum over all sentences before you divide."),
    ],
    nudge="For each n: sum both numbers of `clipped_matches` over the sentences, divide, log. Then mean, exp, penalty.",
    sketch="""
        for size = 1, …, n:
            right, total = both numbers of clipped_matches, summed over all sentences
            if right is 0: return 0
            keep log(right / total)
        c = words of all candidates; r = the closest reference lengths, summed
        return 100 · brevity_penalty(c, r) · exp(mean of the logarithms)
        """,
)

EXERCISES = [mask, cross, loss, matches, points]
