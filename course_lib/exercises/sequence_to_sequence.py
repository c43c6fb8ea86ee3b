"""Exercises of lesson 07: the target's mask, the block that looks at the source, label smoothing, clipping, BLEU."""

import math
from collections.abc import Callable
from numbers import Real

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.data.batches import IGNORED
from course_lib.lab.grading import Exercise, Wrong
from course_lib.lab.ladder import Ladder, copied, edits
from course_lib.measure.metrics import bleu, clipped_matches, corpus_bleu
from course_lib.models.attention import target_mask
from course_lib.models.transformer import Block, Shape
from course_lib.models.translator import decoder_block
from course_lib.training import smoothed_loss


def _random(seed: int, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


# --- 7.1 ---

LENGTHS = [(torch.tensor(lengths), longest) for lengths, longest in (([4, 2], 5), ([3], 3), ([1, 4, 2], 4))]


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


FILLED_UP = "The true rows are right. The rule is the same for filled-up queries: they see the true words."

mask = Exercise(
    id="7.1",
    title="padding and causal mask",
    reference=target_mask,
    checks=Ladder(
        target_mask,
        LENGTHS,
        returns=["mask"],
        differentiable=False,
        slips=edits(
            target_mask,
            f"""
            true[:, None, None] & behind → ~(true[:, None, None] & behind)
                · True and False are swapped: True is what may be seen.
            & behind → | behind · What is true *or* not ahead is open: both must hold, so join the two with `&`.
            places <= places → places < places · A word may see itself: the diagonal is open up to the length.
            places <= places[:, None] → places <= places[:, None] + 1
                · Each word sees one word ahead, the one it should name.
            places <= places → places >= places · Each word sees what comes after it: rows are queries.
            places < lengths → 0 < lengths · The lengths are not used: what is filled up at the end must be hidden.
            places <= places → 0 <= places · The future is open: hide the keys that stand after each query.
            places < lengths → places <= lengths
                · One word too many: places count from 0, so the true ones are those below the length.
            places < lengths[:, None] → places < lengths[:, None] - 1
                · The last true word is hidden: places count from 0, so the true ones are those below the length.
            true[:, None, None] → true[:, None, :, None] · Rows of filled-up queries are hidden, and a softmax over
                · nothing is NaN: hide filled-up keys, columns.
            true[:, None, None] & behind → torch.where(true[:, None, :, None], behind, True) · {FILLED_UP}
            true[:, None, None] & behind → torch.where(true[:, None, :, None], behind, places == places[:, None])
                · {FILLED_UP}
            true[:, None, None] & behind → torch.where(true[:, None, :, None], behind, places == 0) · {FILLED_UP}
            """,
        ),
    ).extended(_is_boolean, _mask_shape, after="signature"),
    crashes=[
        ("Boolean value of Tensor", "Masks are joined with `&`, entry by entry, not with `and`."),
        ("element", "There are as many lengths as texts: compare places with `lengths[:, None]`."),
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


def _source_first(x, memory, mask, memory_mask, block):
    x = block.cross_norm(x + block.cross(x, memory, mask=memory_mask))
    x = block.attention_norm(x + block.attention(x, mask=mask))
    return block.feed_forward_norm(x + block.feed_forward(x))


def _in_each_step(old: str, new: str) -> str:
    """The change of a step, `{}` for the name of its norm, for all three."""
    return " ; ".join(f"{old} → {new}".replace("{}", f"block.{norm}") for norm in NORMS)


NORMS = "attention_norm", "cross_norm", "feed_forward_norm"
PRE_NORM = """
    block.attention_norm(x + block.attention(x, mask=mask)) → x + block.attention(block.attention_norm(x), mask=mask) ;
    block.cross_norm(x + block.cross(x, → (x + block.cross(block.cross_norm(x), ;
    block.feed_forward_norm(x + block.feed_forward(x)) → x + block.feed_forward(block.feed_forward_norm(x))
    """.strip()
MEMORY_NORMS = *(f"block.{norm}(memory)" for norm in NORMS), "nn.functional.layer_norm(memory, memory.shape[-1:])"
SECOND_ARGUMENT = "The second argument is what one looks at: `attention(x, mask=…)`, `cross(x, memory, mask=…)`."
OUTPUT_ALONE = "Here an attention returns its output alone: `[0]` takes the first sentence of the batch."
EXCHANGED = "Two norms are exchanged: each of the three steps has a norm of its own, named like the step."


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


cross = Exercise(
    id="7.2",
    title="cross-attention block",
    reference=decoder_block,
    # the pieces are given, with weights of their own type and place: nothing to find out about those
    checks=Ladder(
        decoder_block,
        _block_cases(),
        returns=["the new x"],
        properties=[_no_future, _sees_the_source],
        slips=[
            (_source_first, "The source is looked at first: in 2017 the target looks at itself, then at the source."),
            *(
                slip
                for normed in MEMORY_NORMS
                for slip in edits(
                    decoder_block,
                    f"""
                    {PRE_NORM} ; memory, mask= → {normed}, mask=
                        · This is pre-norm, and the memory is normalised again, as on S3's slide; the block of 2017 is
                        · LN(x + f(x)), and reads the memory as it is.
                    memory, mask= → {normed}, mask=
                        · The memory is normalised again, as on S3's slide; the decoder of 2017 reads it as it is.
                    """,
                )
            ),
            *(
                slip
                for norm, (other, third) in zip(NORMS, (NORMS[1:], NORMS[::2], NORMS[:2]), strict=True)
                for slip in edits(
                    decoder_block,
                    f"""
                    block.{other} → block.{norm} ; block.{third} → block.{norm}
                        · Each of the three steps has a norm of its own: here all take `block.{norm}`.
                    block.{other} → block.OTHER ; block.{third} → block.{other} ; block.OTHER → block.{third}
                        · {EXCHANGED}
                    """,
                )
            ),
            *edits(
                decoder_block,
                f"""
                {PRE_NORM} · This is pre-norm, x + f(LN(x)), as on S3's slide; the block of 2017 is LN(x + f(x)).
                x = block.attention_norm → h = block.attention_norm ;
                    x = block.cross_norm(x + block.cross(x, → h = block.cross_norm(x + block.cross(h, ;
                    block.feed_forward(x) → block.feed_forward(h)
                    · Each step adds to the block's first x; it has to add to what the step before it gave.
                x = block.attention_norm → h = block.attention_norm ; block.cross_norm(x + → block.cross_norm(h +
                    · The look at the source is asked with the x from before self-attention; take the new x.
                {_in_each_step("{}(x +", "x + {}(")} · Only f(x) is normalised; the norm takes the sum: LN(x + f(x)).
                {_in_each_step("{}(x +", "{}(x) + (")} · Only x is normalised; the norm takes the sum: LN(x + f(x)).
                {_in_each_step("{}(", "(")} · None of the three norms is used: LN(x + f(x)).
                block.cross_norm(x + → block.cross_norm(
                    · The residual path around the look at the source is missing: LN(x + …).
                block.attention_norm(x + → block.attention_norm(
                    · The residual path around self-attention is missing: LN(x + …).
                block.feed_forward_norm(x + → block.feed_forward_norm(
                    · The residual path around the feed-forward layer is missing: LN(x + …).
                return block.feed_forward_norm(x + block.feed_forward(x)) → return x
                    · The feed-forward layer is missing: it is the third step.
                x + block.feed_forward(x) → x · The feed-forward layer itself is missing, though its norm is there.
                block.attention(x, mask=mask) → block.attention(x, mask=mask)[0] ;
                    memory, mask=memory_mask) → memory, mask=memory_mask)[0] · {OUTPUT_ALONE}
                block.attention(x, mask=mask) → block.attention(x, mask=mask)[0] · {OUTPUT_ALONE}
                memory, mask=memory_mask) → memory, mask=memory_mask)[0] · {OUTPUT_ALONE}
                x = block.cross_norm(x + block.cross(x, memory, mask=memory_mask)) → pass
                    · The look at the source, `block.cross`, is missing.
                x = block.attention_norm(x + block.attention(x, mask=mask)) → pass
                    · The target's look at itself, `block.attention`, is missing.
                , mask=memory_mask → · `memory_mask` is not used: the places where a source is filled up take part.
                , mask=mask → · `mask` is not used: the target looks ahead, at the words it should name.
                block.cross_norm → block.attention_norm
                    · Each of the three steps has a norm of its own: the second one is `block.cross_norm`.
                block.cross_norm( → ( · The norm after the look at the source is missing.
                block.attention_norm( → ( · The norm after self-attention is missing.
                block.feed_forward_norm( → ( · The norm after the feed-forward layer is missing.
                block.cross( → block.attention(
                    · The source is looked at with the weights of self-attention: `block.cross` has its own.
                """,
            ),
        ],
    ).without("dtypes", "devices"),
    crashes=[
        ("values to unpack", "An attention returns one thing, its output: `looked = block.attention(…)`."),
        ("Expected memory", SECOND_ARGUMENT),
        ("Expected a mask of True", SECOND_ARGUMENT),
        ("expanded size", "A mask has a column for each key: `mask` for the target, `memory_mask` for the source."),
        (
            "must match the size",
            "A mask has a column for each key: `mask` for the target, `memory_mask` for the source.",
        ),
    ],
    nudge="The same line three times, x = norm(x + f(x)), with f the look at the target, at the source, feed-forward.",
    sketch="""
        looked = block.attention(x, mask = the target's)
        x = the norm of self-attention, of x + looked
        looked = block.cross(x, memory, mask = the source's)
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
            targets[..., -1][1:] = IGNORED
        cases.append((3 * logits, targets, epsilon))
    return cases


def _mean_of_means(logits, targets, epsilon):
    rows = zip(logits, targets, strict=True) if targets.dim() > 1 else [(logits, targets)]
    return torch.stack([smoothed_loss(*row, epsilon) for row in rows]).mean()


TOO_LARGE = "`exp` overflows, or softmax rounds to 0, before the logarithm is taken"


def _large_logits(answer: Callable) -> None:
    """softmax gives 0 for what is 200 below the best, and its logarithm is −∞. Other logits came out right before."""
    logits, targets = torch.tensor([[0.0, 200.0, 0.0], [200.0, 0.0, 0.0]]), torch.tensor([0, 0])
    got, want = answer(logits, targets, 0.1), smoothed_loss(logits, targets, 0.1)
    if not torch.allclose(got, want, rtol=1e-4):
        why = "something on the way cuts it off" if got.isfinite() else TOO_LARGE
        raise Wrong(
            f"With logits of 0 and 200 the loss must be {want:.1f}; got {got:.4g}: {why}. Use `log_softmax`, and add "
            "nothing."
        )


def _equals_torch(answer: Callable) -> None:
    """On one case more: what is ignored, epsilon 1."""
    (logits,) = _random(9, (5, 6))
    targets = torch.tensor([0, IGNORED, 5, 2, IGNORED])
    for epsilon in (0.0, 0.1, 1.0):
        want = F.cross_entropy(logits, targets, ignore_index=IGNORED, label_smoothing=epsilon)
        got = answer(logits, targets, epsilon)
        if not torch.allclose(got, want, atol=1e-5):
            raise Wrong(f"With ε = {epsilon:g} PyTorch's own label smoothing gives {want:.4f}; yours gives {got:.4f}.")


loss = Exercise(
    id="7.3",
    title="label smoothing",
    reference=smoothed_loss,
    checks=Ladder(
        smoothed_loss,
        _loss_cases(),
        returns=["the loss"],
        properties=[_equals_torch],
        slips=[
            (
                _mean_of_means,
                "This is the mean of the sentences' means: take one mean over all targets that count.",
            ),
            *edits(
                smoothed_loss,
                """
                log_p.mean(dim=-1) → (log_p.sum(dim=-1) - right) / (log_p.shape[-1] - 1) · ε is dealt out over the
                    · wrong words only; as in PyTorch, it goes evenly to all, the right one too.
                log_p.mean(dim=-1) → (log_p.sum(dim=-1) - right) / log_p.shape[-1]
                    · The right word gets 1 − ε alone; its part of what is dealt out, ε / V, comes on top.
                (1 - epsilon) * right + epsilon → epsilon * right + (1 - epsilon)
                    · ε and 1 − ε are swapped: the right word keeps the larger part.
                log_p.mean → log_p.sum
                    · Each word gets ε / V: take the mean of log p over the words, not the sum.
                (1 - epsilon) * right → right · The shares must sum to 1: the right word keeps 1 − ε.
                right + epsilon * log_p.mean(dim=-1) → right · The part that is dealt out, ε, is missing.
                (1 - epsilon) * right + epsilon * log_p.mean(dim=-1) → right
                    · This is the plain loss: ε is not used.
                (1 - epsilon) * right + epsilon → 0.9 * right + 0.1 · ε is fixed at 0.1: use `epsilon`.
                return - → return · The sign is wrong: a loss is −log p, and positive.
                .mean() → .sum() · This is the sum over the targets; take their mean.
                .mean() → .sum() / targets.numel() · The mean is taken over all targets, with 0 for those that do not
                    · count: divide by the true ones.
                logits[counted] → logits.flatten(0, -2) ;
                    targets[counted][:, None] → targets.clamp(min=0).flatten()[:, None]
                    · Targets of −100 count: they are filled up, and must be left out.
                targets != IGNORED → targets > 0 · Word 0 is left out too: only −100 is no word.
                log_softmax → softmax · These are probabilities; the loss is made of their logarithms, `log_softmax`.
                logits[counted].log_softmax(dim=-1) → logits.log_softmax(dim=1)[counted]
                    · The softmax runs over the places; take it over the words, the last dimension.
                log_p.mean(dim=-1) → logits.log_softmax(dim=-1).mean() · The part that is dealt out is averaged over
                    · filled-up places too: leave them out of both parts.
                .log_softmax(dim=-1) → · The logits themselves are used: take `log_softmax` first.
                .log_softmax → .softmax(dim=-1).log_softmax
                    · The softmax is taken twice: `log_softmax` takes it already.
                """,
            ),
        ],
    ).extended(_large_logits, after="numbers"),
    crashes=[
        ("index -100 is out of bounds", "Some targets are −100, which is no word: leave those out first."),
        ("out of bounds for dimension 0", "The words are the last dimension; any number of others may come before."),
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


def _not_their_ratio(answer: Callable) -> None:
    if isinstance(answer(*copied(MATCHES[0])), Real):
        raise Wrong("One number came back: return the two counts, right ones and all, not their ratio.")


THEIRS = "The second number counts the references' n-grams; precision asks how many the *candidate* has."

matches = Exercise(
    id="7.4",
    title="clipped precision",
    reference=clipped_matches,
    checks=Ladder(
        clipped_matches,
        MATCHES,
        returns=["the right n-grams", "all n-grams"],
        slips=edits(
            clipped_matches,
            f"""
            (ours & most).total() → sum(count for gram, count in ours.items() if gram in most) · Nothing is clipped:
                · *he he he* has three right words by this count. At most as often as in a reference.
            most |= → most +=
                · Clipped by the sum over all references; the limit is the reference that has the n-gram most often.
            in references: → in references[:1]:
                · Only the first reference is looked at: an n-gram is right if any of them has it.
            in references: → in references[-1:]:
                · Only the last reference is looked at: an n-gram is right if any of them has it.
            (ours & most).total() → max((ours & ngrams(reference, n)).total() for reference in references) ·
                · This is the best match with a single reference: each n-gram has its own limit, over all of them.
            most = Counter() → most = ngrams(references[0], n) ; most |= → most &=
                · Only what *every* reference has is counted; one that has the n-gram is enough.
            (ours & most).total() → len(ours & most)
                · Each n-gram is counted once only; it is right as often as a reference has it.
            ours.total() → len(candidate)
                · The second number is that of the words; a text of 8 words has 7 pairs: count n-grams.
            ours.total() → len(ours) · The second number counts different n-grams; count all, repeated ones too.
            ours.total() → len(candidate) - n + 1
                · The second number is negative where the text is shorter than n: such a text has no n-grams, 0.
            ours.total() → max(ours.total(), 1) · A text shorter than n has no n-grams: the second number is 0 there,
                · not 1. Whoever divides takes care.
            (ours & most).total(), ours.total() → len(ours & most), len(ours)
                · Both numbers count *different* n-grams, as `len` of a Counter does: sum the counts, `.total()`.
            ours.total() → sum(ngrams(reference, n).total() for reference in references) · {THEIRS}
            ours.total() → max(ngrams(reference, n).total() for reference in references) · {THEIRS}
            ours.total() → ngrams(references[0], n).total() · {THEIRS}
            ours.total() → most.total() · {THEIRS}
            ngrams(candidate, n) → ngrams(candidate, 1) ; ngrams(reference, n) → ngrams(reference, 1)
                · These are single words whatever n is: an n-gram is n neighbours, `tuple(tokens[i : i + n])`.
            ngrams(candidate, n) → ngrams(candidate[:-1], n) ; ngrams(reference, n) → ngrams(reference[:-1], n) ·
                · The last n-gram is left out: the first starts at 0, the last at len − n, so `range(len − n + 1)`.
            (ours & most).total(), ours.total() → ours.total(), (ours & most).total()
                · The two numbers are in the wrong order: right ones first, then all.
            """,
        ),
        told=lambda candidate, references, n: (
            f"*{' '.join(candidate)}* against *{' / '.join(map(' '.join, references))}* and n = {n}"
        ),
    ).extended(_not_their_ratio, before="types"),
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
        _split("a b c d f e", "a b c d", "b c d e a b c", "a b"),
        [
            _split("a b c d", "a b c d e f g"),
            _split("a b c d e c f"),
            _split("a b c d e a b c d", "b c d e f"),
            _split("a b c"),
        ],
        4,
    ),
    (_split("a b c", "x y"), [_split("a b d e"), _split("x y z", "x y")], 2),
    (_split("a c b e", "d a b c e"), [_split("a c b f e"), _split("d a b")], 3),
]
NO_MATCH = (_split("a b c d", "e f g h"), [_split("d c b a"), _split("h g f e")], 4)
TOO_SHORT = (_split("a b", "c d e"), [_split("a b"), _split("c d e")], 4)


def _nothing_right(answer: Callable) -> None:
    cases = {
        "Where no 4-gram is right": NO_MATCH,
        "Where every text is shorter than 4 words, so that there are no 4-grams at all,": TOO_SHORT,
    }
    for where, case in cases.items():
        try:
            got = float(answer(*copied(case)))
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
    checks=Ladder(
        corpus_bleu,
        CORPORA,
        returns=["BLEU"],
        slips=[
            (
                lambda candidates, references, n=4: (
                    sum(bleu(c, R, n) for c, R in zip(candidates, references, strict=True)) / len(candidates)
                ),
                "This is the mean of the sentences' BLEU. Sum matches and lengths over all sentences first, then "
                "divide.",
            ),
            *edits(
                corpus_bleu,
                """
                right / all_of_them → sum(r / t for r, t in each if t) / len(pairs) ;
                    each → (clipped_matches(*pair, size) for pair in pairs) · The precisions of the sentences are
                    · averaged: sum the right n-grams of all sentences, and divide once.
                math.exp(sum(logarithms) / n) → sum(map(math.exp, logarithms)) / n
                    · This is the arithmetic mean of the precisions; take the geometric.
                sum(logarithms) / n → sum(logarithms)
                    · The precisions are multiplied, but the n-th root is missing.
                sum(logarithms) / n → sum(logarithms) / 4 · The root is always the fourth; take the n-th.
                sum(logarithms) / n → logarithms[-1]
                    · Only the longest n-grams count: all sizes from 1 to n belong to the mean.
                100 * penalty → 100 · The brevity penalty is missing: too short a text has high precision.
                penalty = brevity_penalty → penalty = (lambda c, r: brevity_penalty(r, c))
                    · The brevity penalty is turned round: c is the candidates' length, r the references'.
                penalty = brevity_penalty → penalty = (lambda c, r: math.exp(1 - r / c))
                    · Longer texts are rewarded: the penalty is never above 1.
                penalty = brevity_penalty → penalty = (lambda c, r: min(1.0, c / r))
                    · The penalty is not c / r but exp(1 − r / c): `brevity_penalty(c, r)`.
                100 * penalty → penalty · This lies between 0 and 1; BLEU is given in points: times 100.
                closest_length(*pair) → min(map(len, pair[1]))
                    · r takes the shortest reference; take the one nearest in length, `closest_length`.
                closest_length(*pair) → max(map(len, pair[1]))
                    · r takes the longest reference; take the one nearest in length, `closest_length`.
                closest_length(*pair) → len(pair[1][0])
                    · r takes the first reference; take the one nearest in length, `closest_length`.
                closest_length(*pair) → sum(map(len, pair[1])) · r sums the lengths of all references; of each
                    · sentence one counts, the nearest in length: `closest_length`.
                brevity_penalty(sum(map(len, candidates)), sum( → (sum( ; 100 * penalty → 100 / len(pairs) * penalty ;
                    closest_length(*pair) → brevity_penalty(len(pair[0]), closest_length(*pair)) · The penalties of the
                    · sentences are averaged: sum the lengths over all sentences, and take one penalty.
                clipped_matches(*pair, size) for pair in pairs → (known, ngrams(c, size).total()) for c, R in pairs ;
                    known → sum(ngrams(c, size)[gram] for gram in set().union(*(ngrams(r, size) for r in R)))
                    · Nothing is clipped: use `clipped_matches`.
                range(1, n + 1) → range(1, n) ; sum(logarithms) / n → sum(logarithms) / (n - 1)
                    · The largest n-grams are left out: `range(1, n + 1)` ends with n.
                range(1, n + 1) → range(1, n) · The largest n-grams are left out: `range(1, n + 1)` ends with n.
                range(1, n + 1) → range(1, 5) ; sum(logarithms) / n → sum(logarithms) / 4
                    · n is not used: the sizes go from 1 to n.
                clipped_matches(*pair, size) → clipped_matches(pair[0], pair[1][:1], size)
                    · Only the first reference of each sentence is used.
                100 * penalty * math.exp(sum(logarithms) / n) → round(100 * penalty * math.exp(sum(logarithms) / n))
                    · The points are rounded: return them as they are.
                100 * penalty * math.exp(sum(logarithms) / n) → round(100 * penalty * math.exp(sum(logarithms) / n), 1)
                    · The points are rounded: return them as they are.
                100 * penalty * math.exp(sum(logarithms) / n) → round(100 * penalty * math.exp(sum(logarithms) / n), 2)
                    · The points are rounded: return them as they are.
                """,
            ),
        ],
        tolerance=2e-6,
        told=lambda candidates, references, n: f"*{' / '.join(map(' '.join, candidates))}* and n = {n}",
    ).extended(_nothing_right, _four_by_default),
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
