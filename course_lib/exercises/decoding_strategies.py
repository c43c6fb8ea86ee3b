"""Exercises of lesson 09: the walk, a step of beam search, random walks, top-k, nucleus, speculative acceptance."""

from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.decoding.pieces import HIDDEN, Filters, acceptance, extend, sample, top_k, top_p, walk
from course_lib.lab.grading import Check, Exercise, Wrong, describe
from course_lib.lab.ladder import Edit, Ladder, Slip, edits, signature_check


def _random(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def toy(words: int) -> Callable[[Tensor], Tensor]:
    """A model of a few words, made of waves: its scores (batch, length, words) depend on all tokens so far."""

    def model(ids: Tensor) -> Tensor:
        if ids.dim() != 2:
            raise ValueError(f"The model takes ids of shape (batch, length); got {tuple(ids.shape)}.")
        places = torch.arange(1, ids.shape[1] + 1)
        read = ((ids + 1) * places).cumsum(dim=1)[..., None] + ids[..., None]  # (batch, length, 1)
        return 2 * torch.sin(read * torch.arange(1, words + 1) * 0.7)

    return model


# --- 9.1 ---


def best(scores: Tensor, ids: Tensor) -> Tensor:
    """Choose the best."""
    return scores.argmax(dim=-1)


def by_history(scores: Tensor, ids: Tensor) -> Tensor:
    """A choice that looks at the scores' own values and at all tokens so far."""
    return ((scores[:, 0] * 10).floor().long().abs() + ids.sum(dim=1) + ids.shape[1]) % scores.shape[-1]


PROMPTS = torch.tensor([[0, 1], [3, 2], [4, 4]])
WALKS = [
    (toy(5), torch.tensor([[4, 4, 3], [0, 3, 4]]), 4, best, None),
    (toy(7), torch.tensor([[0, 3], [4, 3], [3, 6]]), 6, by_history, None),
    (toy(6), torch.tensor([[0, 3, 5, 0]]), 3, by_history, None),
    (toy(5), PROMPTS, 12, best, 0),  # all texts are over early, at different places
    (toy(7), PROMPTS, 5, best, 6),
    (toy(5), torch.tensor([[1, 0], [0, 2], [1, 3]]), 12, best, 0),  # an end in the prompt does not count
]
ONLY_NEW = "An `end` in the prompt does not count: remember, in a vector, which texts have been given a new one."


def _ends_in_time(answer: Callable) -> None:
    for *case, end in WALKS:
        got, want = answer(*case, end), walk(*case, end)
        if end is not None and got.shape[:1] == want.shape[:1] and got.shape != want.shape:
            raise Wrong(
                f"With end = {end} the result must be {tuple(want.shape)} here; yours is {tuple(got.shape)}: the walk "
                "is over when each text has been given a new `end`, not before and not later."
            )


_walk_checks = Ladder(
    walk,
    WALKS,
    returns=["ids"],
    differentiable=False,
    slips=edits(
        walk,
        f"""
        model(ids)[:, -1] → model(ids)[:, 0]
        · These are the scores after the first token; the next token follows the last one: `model(ids)[:, -1]`.
        model(ids) → model(ids[:, -1:]) · The model is shown the last token alone; show it all ids so far.
        model(ids) → model(ids[:, -1:] if _ > 0 else ids)
        · After the first step the model is shown the last token alone; show it all ids so far, it keeps none.
        if end is not None → if end
        · `end` may be 0, and Python takes 0 for False: ask `if end is not None`.
        choose(model(ids)[:, -1], ids) → model(ids)[:, -1].argmax(dim=-1)
        · `choose` is not used: it decides which token comes next, not always the best one.
        masked_fill_(over, end) → masked_fill_(ids[:, -2] == end, end) · {ONLY_NEW}
        over = ids[:, -1] == end → over = (ids == end).any(dim=1) · {ONLY_NEW}
        over = torch.zeros( → over = (ids == (-1 if end is None else end)).any(dim=1) | torch.zeros( · {ONLY_NEW}
        ids[:, -1].masked_fill_(over, end) → pass
        · It stops only if all texts end in the same step; one that ended earlier is over too. Remember them.
        over = torch.zeros( → first, over = ids, torch.zeros( ; model(ids) → model(first)
        · The model is shown the prompt again and again; show it the new tokens too.
        over = torch.zeros( → first, over = ids, torch.zeros( ; [:, -1], ids) → [:, -1], first)
        · `choose` is given the prompt; give it all ids so far, the new ones too.
        model(ids)[:, -1] → model(ids)[:, -1].softmax(dim=-1)
        · `choose` is given probabilities; give it the scores as the model gave them.
        model(ids)[:, -1] → model(ids)[:, -1].log_softmax(dim=-1)
        · `choose` is given log-probabilities; give it the scores as the model gave them.
        range(new) → range(new - 1) · One token too few is added.
        range(new) → range(new + 1) · One token too many is added.
        over = torch.zeros( → first, over = ids, torch.zeros( ; return ids → return ids[:, first.shape[1] :]
        · The prompt belongs to the result.
        if end is not None → if False
        · `end` is not used: a text that has ended is filled up with `end`, and if all have, the walk is over.
        ids[:, -1].masked_fill_(over, end) → pass ; over = ids → over |= ids
        · Texts that are over go on: after its first `end` a text gets nothing but `end`.
        over.all() → False · When every text is over the walk is over too: return what there is then.
        over = ids[:, -1] == end → over, before = ids[:, -1] == end, over ; over.all() → before.all()
        · The walk ends one step late, with a column of nothing but `end`: ask whether all are over as soon as
        · the new tokens are known.
        over.all() → over.any() · It stops when one text is over; go on until all of them are (`over.all()`).
        return ids → return ids if end is None else ids[:, :-1] · The `end` of the last text belongs to the result.
        masked_fill_(over, end) → masked_fill_(over, 0) ; over = ids[:, -1] == end → over |= token == end
        · A text that is over is filled up with 0; fill it up with `end`.
        """,
    ),
)

walking = Exercise(
    id="9.1",
    title="greedy search, the walk",
    reference=walk,
    checks=_walk_checks.extended(_walk_checks.explained(_ends_in_time), before="shapes"),
    crashes=[
        (
            "got 2 and 3",
            "`choose` takes the scores after the last token alone, (batch, vocabulary): `model(ids)[:, -1]`.",
        ),
        (
            "Tensors must have same number of dimensions",
            "The new tokens are (batch); to append them, (batch, 1): [:, None].",
        ),
        ("NoneType", "`end` may be None: then no text is ever over."),
        ("Sizes of tensors must match", "Append the tokens as a column: `torch.cat([ids, token[:, None]], dim=1)`."),
        ("The model takes ids of shape", "Keep the batch: give the model ids of two dimensions."),
        ("Boolean value of Tensor", "There is a batch: for 'all texts are over', `over.all()`; `end` may be None."),
    ],
    nudge="One turn of the loop: scores after the last token, choose, append as a new column. A vector of booleans "
    "remembers which texts are over.",
    sketch="""
        over = False for each text
        new times:
            scores = the model on all ids so far, at the last place      (batch, vocabulary)
            token = choose(scores, ids so far)                           (batch)
            where a text is over already: token = end
            append token as a column; remember which texts are over now
            if all are over: stop
        return ids
        """,
)

# --- 9.2 ---


def _extend_cases() -> list[tuple]:
    cases = []
    for seed, (batch, beams, words, count, n, length_penalty) in enumerate(
        [(2, 3, 5, 6, 4, 1.0), (1, 2, 7, 4, 3, 0.0), (3, 2, 4, 4, 7, 0.6), (2, 4, 5, 8, 2, 2.0)]
    ):
        scores = _random(seed, batch, beams).sub(2).sort(dim=-1, descending=True).values
        cases.append((scores, 2 * _random(seed + 9, batch, beams, words), count, n, length_penalty))
    scores, logits = torch.full((2, 3), HIDDEN), 2 * _random(20, 2, 3, 8)  # the first step: only one beginning counts
    scores[:, 0] = 0
    return [*cases, (scores, logits, 6, 1, 1.0)]


EXTENSIONS = _extend_cases()


def _each_beam_alone(share: str, ordered: bool) -> Slip:
    """Every beam keeps ``share`` continuations of its own; ``ordered``: the best ``count`` of these, best first."""
    step = f"best, index = total.topk(min({share}, total.shape[-1]))"
    step += "; index = index + torch.arange(total.shape[1])[:, None] * total.shape[-1]"
    step += "; best, index = best.flatten(1), index.flatten(1)"
    if ordered:
        step += "; best, order = best.topk(min(count, best.shape[1])); index = index.gather(1, order)"
    sentence = (
        "Each beam keeps continuations of its own; only the best of all beams together may stay: flatten beams and "
        "vocabulary into one dimension first. (The code in S2 has this slip.)"
    )
    return Edit(extend, [("best, index = total.flatten(1).topk(count)", step)]), sentence


def _best_first(answer: Callable) -> None:
    for scores, logits, count, n, length_penalty in EXTENSIONS:
        found = answer(scores.clone(), logits.clone(), count, n, length_penalty)[0]
        if (found[:, 1:] > found[:, :-1] + 1e-6).any():
            raise Wrong("The continuations must come best first; in a row of yours a later one has a higher score.")


WHOLE_BATCH = "`flatten()` joins the batch too, and all texts compete; each keeps its own: `flatten(1)`."
EXPONENT = "The normalised score is log P / n^length_penalty: n is multiplied by the penalty; it is the exponent."
PLACE = "After flattening, place = beam · vocabulary + token: divide by the size of the vocabulary."

extending = Exercise(
    id="9.2",
    title="a step of beam search",
    reference=extend,
    checks=Ladder(
        extend,
        EXTENSIONS,
        returns=["best", "normalised", "beams", "tokens"],
        differentiable=False,
        properties=[_best_first],
        slips=[
            *(_each_beam_alone(each, ordered) for each in ("1", "2", "total.shape[1]") for ordered in (True, False)),
            _each_beam_alone("count", ordered=False),  # ordered, that is a right answer
            *edits(
                extend,
                f"""
                logits.log_softmax(dim=-1) → logits.flatten(1).log_softmax(dim=-1).view_as(logits)
                · The log_softmax runs over all beams together; each beam has a distribution of its own: take it first,
                · flatten afterwards.
                flatten(1) → flatten() · {WHOLE_BATCH}
                total.flatten(1).topk(count) → (row[None] for row in total.flatten().topk(count)) · {WHOLE_BATCH}
                logits.log_softmax(dim=-1) → logits.log_softmax(dim=-1) / n**length_penalty
                · The new token's log-probability alone is divided by n^length_penalty; divide the whole sum.
                index // → index / · `/` gives fractions; the beam is a whole number: place // vocabulary.
                index // total.shape[-1] → index
                · The beams are places among beams · vocabulary: divide, `// vocabulary`.
                best / n**length_penalty → best / (n * length_penalty) if length_penalty else best · {EXPONENT}
                best / n**length_penalty → best / (n * length_penalty) · {EXPONENT}
                .log_softmax(dim=-1) →
                · `logits` are scores, not yet log-probabilities: take their log_softmax over the vocabulary.
                log_softmax → softmax · A probability is added to a log-probability: take log_softmax, not softmax.
                + logits → * logits · Probabilities are multiplied, so their logarithms are added.
                log_softmax(dim=-1) → log_softmax(dim=1)
                · The log_softmax runs over the beams; it runs over the vocabulary, the last dimension.
                scores[..., None] + → · The scores of the beginnings do not enter: add them, `scores[..., None]`.
                topk(count) → topk(count, largest=False) · These are the least probable continuations.
                index // total.shape[-1], index % total.shape[-1] → index // total.shape[1], index % total.shape[1]
                · {PLACE}
                index // total.shape[-1], index % total.shape[-1] → index % total.shape[1], index // total.shape[1]
                · {PLACE}
                index // total.shape[-1], index % total.shape[-1] → index % total.shape[-1], index // total.shape[-1]
                · Beams and tokens are swapped: the beam is place // vocabulary, the token what remains.
                index % total.shape[-1] → index
                · The tokens are places among beams · vocabulary: take the remainder, `% vocabulary`.
                best / n**length_penalty → best
                · The normalised score is log P / n^length_penalty: it is not divided by anything.
                n**length_penalty → n
                · The normalised score is log P / n^length_penalty: it is divided by n, whatever the penalty.
                n**length_penalty → length_penalty**n
                · The normalised score is log P / n^length_penalty: base and exponent are swapped.
                best / n** → best * n** · The normalised score is log P / n^length_penalty: it is multiplied.
                n**length_penalty → (n + 1) ** length_penalty
                · The normalised score is log P / n^length_penalty: n counts the new token already.
                best / n** → best.exp() / n** · The normalised score is log P / n^length_penalty: stay with logarithms.
                best, best / n**length_penalty → best / n**length_penalty, best / n**length_penalty
                · The first result is the plain log-probability; only the second is normalised.
                best, best / n**length_penalty → best / n**length_penalty, best
                · The first two results are swapped: the plain log-probabilities come first.
                return best → return best.exp()
                · The first result holds probabilities; return their logarithms, as they came in.
                """,
            ),
        ],
    ),
    crashes=[
        (
            "selected index k out of range",
            "Flatten beams and vocabulary first, `total.flatten(1)`: there are enough then.",
        ),
        (
            "must match the size of tensor",
            "scores is (batch, beams), logits (batch, beams, vocabulary): `scores[..., None]`.",
        ),
    ],
    nudge="Add each beam's score to the log-probabilities of its next tokens, then let all of them compete in one row: "
    "`total.flatten(1).topk(count)` gives values and places.",
    sketch="""
        total = the beams' scores + log_softmax of logits      (batch, beams, vocabulary)
        best, place = the count largest of each row of total, flattened to (batch, beams · vocabulary)
        beam = place // vocabulary, token = place % vocabulary
        return best, best / n to the power length_penalty, beam, token
        """,
)

# --- 9.3: chance decides, so the answer's texts are counted, not compared with the library's ---

P = torch.tensor([[0.05, 0.6, 0.35], [0.5, 0.1, 0.4], [0.3, 0.3, 0.4]])  # row: last token; column: next token


def table(ids: Tensor) -> Tensor:
    """A model of three words that looks at the last one alone. Its scores are no log-probabilities: 3 is added."""
    return P.log()[ids] + 3


def _seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _sample_gives_ids(answer: Callable) -> None:
    ids = torch.tensor([[0, 1], [2, 0]])
    got = answer(table, ids.clone(), 4, None, None, _seeded(0))
    if not isinstance(got, Tensor):
        raise Wrong(f"Expected the ids to be {describe(torch.zeros(2, 6))}; got {describe(got)}.")
    if got.shape == (2, 4):
        raise Wrong("The prompt belongs to the result: expected the ids of shape (2, 6); got (2, 4).")
    if got.shape != (2, 6):
        raise Wrong(
            f"With 2 prompts of 2 tokens and new = 4, expected the ids of shape (2, 6); got {tuple(got.shape)}."
        )
    if got.is_floating_point() or not torch.equal(got[:, :2], ids):
        raise Wrong("The result must begin with the prompts, unchanged, and hold whole numbers.")


def _one_text(answer: Callable) -> None:
    try:
        got = answer(table, torch.tensor([[0, 1]]), 4, None, None, _seeded(0))
    except (IndexError, RuntimeError, ValueError, TypeError) as error:
        raise Wrong(
            f"With one text it stops with {type(error).__name__}: `squeeze()` takes the batch away too, if it is 1. "
            "Take the one column, `[:, 0]`."
        ) from None
    if got.shape != (1, 6):
        raise Wrong(f"With one prompt of 2 tokens and new = 4, expected ids of shape (1, 6); got {tuple(got.shape)}.")


def _draws_without_a_generator(answer: Callable) -> None:
    texts = [answer(table, torch.zeros(3, 1, dtype=torch.long), 20, None, None, None) for _ in range(2)]
    if torch.equal(*texts):
        raise Wrong(
            "Two walks without a generator wrote the same: with None chance comes from PyTorch's own generator: hand "
            "None on as it is. (A new `torch.Generator()` begins with the same seed each time.)"
        )


def _follows_the_generator(answer: Callable) -> None:
    ids, texts = torch.zeros(3, 1, dtype=torch.long), []
    for seed in (1, 1, 2):
        torch.rand(len(texts) + 1)  # the global generator moves on: it must not matter
        texts.append(answer(table, ids.clone(), 20, None, None, _seeded(seed)))
    if torch.equal(texts[0], texts[2]):
        raise Wrong("Two generators with different seeds gave the same text: is the best token taken? Draw one.")
    if not torch.equal(texts[0], texts[1]):
        raise Wrong(
            "Two generators with the same seed gave different texts: draw with the one given, `generator=generator`."
        )
    if torch.equal(texts[0][0], texts[0][1]) and torch.equal(texts[0][1], texts[0][2]):
        raise Wrong("All texts of a batch are the same: draw a token for each of them.")


def _shares(answer: Callable, filters: Callable | None = None) -> Tensor:
    """How often each token follows each other: (3, 3). 400 texts of 12 tokens."""
    ids = torch.arange(400)[:, None] % 3
    texts = answer(table, ids, 12, filters, None, _seeded(7))
    counts = torch.zeros(3, 3).index_put_((texts[:, :-1].flatten(), texts[:, 1:].flatten()), torch.tensor(1.0), True)
    return counts / counts.sum(dim=1, keepdim=True).clamp(min=1)


def _has_the_distribution(answer: Callable) -> None:
    shares = _shares(answer)
    for wanted, sentence in (
        (torch.full((3, 3), 1 / 3), "every token is equally likely: weigh them by the softmax of the scores"),
        (
            (P.log() + 3) / (P.log() + 3).sum(-1, keepdim=True),
            "the tokens are drawn by their scores; take the softmax first",
        ),
        (P.softmax(dim=-1), "the softmax seems to be taken twice"),
        (P**2 / (P**2).sum(-1, keepdim=True), "the likely tokens come too often: the plain softmax of the scores"),
    ):
        if (shares - wanted).abs().max() < 0.04 and (shares - P).abs().max() > 0.04:
            raise Wrong(f"The tokens do not come as often as the model says: {sentence}.")
    gap = (shares - P).abs()
    if gap.max() > 0.04:
        last, token = divmod(int(gap.argmax()), 3)
        raise Wrong(
            f"After token {last}, token {token} should come with probability {P[last, token]:.2f}; of your draws "
            f"{shares[last, token]:.2f} were it. Draw from the softmax of the scores after the last token."
        )


def _uses_filters(answer: Callable) -> None:
    shown = []

    def filters(scores: Tensor, ids: Tensor) -> Tensor:
        """Leaves one token: which one depends on how many there are so far."""
        shown.append(tuple(ids.shape))
        if scores.shape != (2, 3):
            raise Wrong(f"`filters` takes scores (batch, vocabulary), here (2, 3); it was given {tuple(scores.shape)}.")
        if scores.isfinite().all() and ((scores - 3).exp().sum(dim=-1) - 1).abs().max() > 1e-3:
            raise Wrong("`filters` takes the scores as the model gave them; apply it before the softmax.")
        return scores.masked_fill(torch.arange(3) != ids.shape[-1] % 3, HIDDEN)

    filters.__qualname__ = "filters"  # so it is called in an error's text
    got = answer(table, torch.zeros(2, 1, dtype=torch.long), 5, filters, None, _seeded(0))
    if not shown:
        raise Wrong("`filters` is not used: if it is not None, the scores go through `filters(scores, ids)` first.")
    if shown[-1] != (2, 5):
        raise Wrong("`filters` takes all ids so far, prompt and new tokens, as its second argument.")
    if got[:, 1:].tolist() != [[1, 2, 0, 1, 2]] * 2:
        raise Wrong("A token that the filter had hidden was drawn: draw from the softmax of what the filter returns.")
    cold = _shares(answer, Filters(temperature=0.5))
    if (cold - P**2 / (P**2).sum(dim=-1, keepdim=True)).abs().max() > 0.04:
        raise Wrong("With a filter the tokens come wrongly often: draw from the softmax of what the filter returns.")


def _stops_at_the_end(answer: Callable) -> None:
    texts = answer(table, torch.zeros(40, 1, dtype=torch.long), 30, None, 2, _seeded(3))
    after = (texts == 2).cumsum(dim=1) > 0
    if (texts[after] != 2).any():
        raise Wrong("A text that is over goes on: after its first `end` it gets nothing but `end`.")
    if not after[:, -1].all():
        return
    if texts.shape[1] > 2 and after[:, -2].all():
        raise Wrong("When every text is over the walk is over too: the result has columns of nothing but `end`.")


sampling = Exercise(
    id="9.3",
    title="the random walk",
    reference=sample,
    checks=[
        signature_check(sample),
        _sample_gives_ids,
        _one_text,
        _follows_the_generator,
        _draws_without_a_generator,
        _has_the_distribution,
        _uses_filters,
        _stops_at_the_end,
    ],
    crashes=[
        ("probability tensor contains", "Scores may be negative: take their softmax, and draw from that."),
        ("NoneType", "`filters` may be None: then the scores go on as they are."),
        ("required positional argument: 'ids'", "`filters` takes two things: the scores, and all ids so far."),
        ("got 2 and 3", "`choose` gives one token for each text, (batch): take the one column, `[:, 0]`."),
        ("prob_dist must be 1 or 2 dim", "Take the scores after the last token only: (batch, vocabulary)."),
        (
            "Tensors must have same number of dimensions",
            "The new tokens are (batch); to append them, (batch, 1): [:, None].",
        ),
    ],
    nudge="Only the choice is new: `walk` does the rest. `torch.multinomial(probabilities, 1, generator=generator)` "
    "draws one token for each row, as (batch, 1).",
    sketch="""
        choose(scores, ids so far):
            if there are filters: scores = filters(scores, ids so far)
            probabilities = softmax of the scores over the vocabulary
            draw one token for each row, with the generator given      (batch)
        return the walk with this choice
        """,
)

# --- 9.4 and 9.5: the softmax of the answer's scores is compared, so that −∞ and −10⁹ are both right ---


def _probabilities(scores: Tensor) -> Tensor:
    if scores.dtype == torch.bool:
        raise Wrong("This is a mask; the scores are asked for: `logits.masked_fill(mask, -torch.inf)`.")
    return scores.softmax(dim=-1) if scores.is_floating_point() else scores


def _filter_checks(reference: Callable, cases: list[tuple], table: str, *properties: Check) -> Ladder:
    """A ladder for a filter of scores: something must stay, and what is hidden must be hidden for good."""

    def something_stays(answer: Callable) -> None:
        for logits, value in cases:
            if (answer(logits.clone(), value) == HIDDEN).all(dim=-1).any():
                raise Wrong("In a row everything is hidden: at least the best must stay.")

    def exactly_0(answer: Callable) -> None:
        """Scores may be as low as they like: what is hidden must be lower still."""
        for logits, value in cases:
            kept = [(f(logits - 300, value).softmax(dim=-1) > 0).sum(dim=-1) for f in (answer, reference)]
            if not torch.equal(*kept):
                raise Wrong(
                    "Hidden scores are set to a number that is not low enough: where all scores are low, the softmax "
                    "still gives it a share. Hide with −∞, `-torch.inf`."
                )

    ladder = Ladder(
        reference,
        cases,
        returns=["the scores"],
        slips=edits(reference, table),
        properties=[*properties, exactly_0],
        differentiable=False,
        compared_as=_probabilities,
    )
    return ladder.extended(ladder.explained(something_stays), before="finite")


def _scores(seed: int, *shape: int) -> Tensor:
    return 2 * _random(seed, *shape)


HIDE = "What is hidden needs the score −∞ (`-torch.inf`): a score of 0 still has a probability, since $e^0 = 1$."
PROBABILITIES = (
    "Probabilities are returned; return scores: a softmax comes later, and it needs −∞ where a token is hidden."
)
OF_THE_BATCH = "The k best of the whole batch stay; each row has k best of its own (dim=-1)."
TOP_K = [(_scores(0, 2, 7), 3), (_scores(1, 4, 9), 1), (_scores(2, 2, 3, 6), 5), (_scores(3, 3, 4), 9)]


def _keeps_k(answer: Callable) -> None:
    for logits, k in TOP_K:
        kept = (answer(logits.clone(), k).softmax(dim=-1) > 1e-6).sum(dim=-1)
        wanted = min(k, logits.shape[-1])
        if (kept != wanted).any():
            found = kept[kept != wanted][0]
            raise Wrong(
                f"k = {k} of {logits.shape[-1]} tokens: {wanted} must stay in each row; in one of yours {found} do."
            )


keeping_k = Exercise(
    id="9.4",
    title="top-k",
    reference=top_k,
    checks=_filter_checks(
        top_k,
        TOP_K,
        f"""
        -torch.inf → 0.0 · {HIDE}
        -torch.inf) → -torch.inf).softmax(dim=-1) · {PROBABILITIES}
        return logits → return logits.softmax(dim=-1) · {PROBABILITIES}
        return logits → return logits.softmax(dim=-1) ; -torch.inf → 0.0 · {PROBABILITIES}
        logits < kth → logits <= kth · The k-th best is hidden too: hide only what is smaller than it.
        logits < kth → logits >= kth · The best are hidden, and the others stay: turn the mask round.
        dim=-1) → dim=-1, largest=False) ; logits < kth → logits > kth · These are the k worst tokens.
        logits.topk( → logits.flatten().topk( · {OF_THE_BATCH}
        logits.topk(min(k, logits.shape[-1]), dim=-1) → logits.flatten().topk(min(k, logits.numel())) · {OF_THE_BATCH}
        logits.shape[-1]), dim=-1).values[..., -1:] → logits.shape[0]), dim=0).values[-1:]
        · The k best of each column stay; it is each row that has k best (dim=-1).
        logits < kth → logits.argsort(dim=-1, descending=True) >= k
        · `argsort` gives the places in sorted order, not each token's rank: its own `argsort` gives the ranks.
        min(k, → min(k + 1, · One token too many stays.
        min(k, → min(max(1, k - 1), · One token too few stays.
        logits.masked_fill(logits < kth, -torch.inf) → logits · Nothing is hidden.
        logits.masked_fill(logits < kth, -torch.inf) → logits.topk(min(k, logits.shape[-1]), dim=-1).values
        · The k best come back by themselves: every token keeps its place, and the others get −∞.
        """,
        _keeps_k,
    ),
    crashes=[("out of range", "k may be larger than the vocabulary: then nothing is hidden (`min`).")],
    nudge="Find the k-th best score of each row; hide what is below. `logits.topk(k, dim=-1).values` is sorted.",
    sketch="""
        k = the smaller of k and the size of the vocabulary
        limit = the last of the k largest scores of each row, kept as (…, 1)
        where a score is below the limit: −∞; else as it was
        """,
)

TOP_P = [
    (_scores(4, 2, 7), 0.6),
    (_scores(5, 4, 5), 0.2),
    (_scores(6, 2, 3, 9), 0.7),
    (torch.tensor([[0.5, 0.2, 0.2999, 0.0001], [0.4, 0.1, 0.2, 0.3]]).log(), 0.8),  # 0.7999 is less than p
]


def _is_the_smallest(answer: Callable) -> None:
    for logits, p in TOP_P:
        kept = answer(logits.clone(), p).softmax(dim=-1) > 1e-6
        probabilities = logits.softmax(dim=-1)
        total = (probabilities * kept).sum(dim=-1)
        least = probabilities.masked_fill(~kept, 2.0).amin(dim=-1)
        if (total < p - 1e-5).any():
            raise Wrong(f"p = {p}: in a row the kept tokens have together {total.min():.4f}, less than p.")
        if ((total - least > p + 1e-5) & (kept.sum(dim=-1) > 1)).any():
            raise Wrong(f"p = {p}: in a row too many stay; without the least of them it is still p or more.")


def _reaches_p(answer: Callable) -> None:
    """Four times 0.25 and p = 0.5, exact in floating point: two reach it. (Who keeps all that are equal keeps four.)"""
    kept = int((answer(torch.zeros(1, 4), 0.5).softmax(dim=-1) > 0).sum())
    if kept not in (2, 4):
        raise Wrong(
            f"Four tokens with 0.25 each, p = 0.5: two have together p, and that is enough; in yours {kept} stay. "
            "A token stays if those before it have less than p (`<`, not `<=`)."
        )


def _whole_at_1(answer: Callable) -> None:
    logits = torch.tensor([[20.0, 0.0, -1.0, -2.0]])
    kept = int((answer(logits.clone(), 1.0).softmax(dim=-1) > 0).sum())
    if kept < 4:
        raise Wrong(
            f"With p = 1 nothing is hidden; of the scores (20, 0, −1, −2) yours keeps {kept}. The sums are rounded "
            "and reach 1 too early: let all stay if p is 1, or sum up from the least probable and hide up to "
            "a sum of 1 − p."
        )


SCATTER = "`gather` takes from the places; to bring a mask back to them, `scatter`: `zeros.scatter(-1, places, mask)`."
SORTED_MASK = "The mask belongs to the sorted tokens: bring it back into their own order (`scatter`) before you use it."
SORTED_SCORES = "The scores come back sorted: each must stay in its place."
NO_SOFTMAX = "The scores are summed up; sum up probabilities, their softmax."
FIRST_AXIS = "The softmax runs over the batch; it runs over the vocabulary, the last dimension (dim=-1)."
LEAST_FIRST = "The sum starts at the least probable token: start at the best, sort with `descending=True`."

nucleus = Exercise(
    id="9.5",
    title="nucleus",
    reference=top_p,
    checks=_filter_checks(
        top_p,
        TOP_P,
        f"""
        rising.cumsum(dim=-1) <= 1 - p → 1 - rising.cumsum(dim=-1) + rising > p ; goes[..., -1] = False → pass
        · In a row where the best token alone has more than p nothing is left: the token with which the sum reaches p
        · stays.
        rising.cumsum(dim=-1) <= 1 - p → 1 - rising.cumsum(dim=-1) + rising > p
        · The kept tokens have together less than p: the token with which the sum reaches p stays, too.
        goes[..., -1] = False → goes = goes.roll(-1, -1); goes[..., -1] = False · One token too many stays in each row.
        (goes.scatter → (~goes.scatter · The nucleus is hidden, and the others stay: turn the mask round.
        goes.scatter(-1, order, goes) → logits.softmax(dim=-1) < p
        · Each token's own probability is compared with p; compare the sum of the best ones.
        goes.scatter(-1, order, goes) → goes.flip(-1) · {SORTED_MASK}
        goes.scatter(-1, order, goes) → goes · {SORTED_MASK}
        goes.scatter(-1, order, goes) → logits.softmax(dim=-1).cumsum(dim=-1) - logits.softmax(dim=-1) >= p
        · The probabilities are summed in the order of the vocabulary: sort them first, the best first.
        logits.masked_fill(goes.scatter(-1, order, goes) → logits.sort(dim=-1).values.masked_fill(goes
        · {SORTED_SCORES}
        logits.masked_fill(goes.scatter(-1, order, goes) → logits.sort(dim=-1).values.masked_fill(goes ;
        -torch.inf) → -torch.inf).flip(-1) · {SORTED_SCORES}
        <= 1 - p → <= p · 1 − p stands where p belongs.
        rising.cumsum(dim=-1) <= 1 - p → rising.cumsum(dim=-1) >= p ; goes[..., -1] = False → pass · {LEAST_FIRST}
        rising.cumsum(dim=-1) <= 1 - p → rising.cumsum(dim=-1) - rising >= p ; goes[..., -1] = False → pass
        · {LEAST_FIRST}
        rising.cumsum(dim=-1) <= 1 - p → 1 - rising.cumsum(dim=-1) + rising < p ; goes[..., -1] = False → pass
        · The best are hidden until the sum reaches p, and the rest stays: it is the other way round.
        logits.softmax(dim=-1).sort → logits.sort · {NO_SOFTMAX}
        logits.softmax(dim=-1).sort → logits.sort ; goes[..., -1] = False → pass ;
        rising.cumsum(dim=-1) <= 1 - p → rising.flip(-1).cumsum(dim=-1).flip(-1) - rising >= p · {NO_SOFTMAX}
        logits.softmax(dim=-1) → logits.softmax(dim=0) · {FIRST_AXIS}
        logits.softmax(dim=-1) → logits.softmax(dim=0) ; rising.cumsum(dim=-1) <= 1 - p →
        rising.flip(-1).cumsum(dim=-1).flip(-1) - rising >= p · {FIRST_AXIS}
        goes.scatter(-1, order, goes) → logits.softmax(-1) < p * logits.softmax(-1).amax(dim=-1, keepdim=True)
        · Each token is compared with p times the best: that is min-p. Here the sum of the best ones has to reach p.
        goes.scatter(-1, order, goes) → goes.flip(-1).gather(-1, order.flip(-1)) · {SCATTER}
        goes.scatter(-1, order, goes) → goes.gather(-1, order) · {SCATTER}
        -torch.inf) → -torch.inf).softmax(dim=-1) · {PROBABILITIES}
        return logits → return logits.softmax(dim=-1) · {PROBABILITIES}
        return logits → return logits.softmax(dim=-1) ; -torch.inf → 0.0 · {PROBABILITIES}
        -torch.inf → 0.0 · {HIDE}
        logits.masked_fill(goes.scatter(-1, order, goes), -torch.inf) → logits · Nothing is hidden.
        """,
        _is_the_smallest,
        _reaches_p,
        _whole_at_1,
    ),
    nudge="Sort the probabilities, best first, and sum them up. A token stays if those before it have not reached p.",
    sketch="""
        sort the probabilities (softmax of the scores), best first; remember the order
        before = the sum of all better ones                 (cumsum minus the token's own)
        stays, in sorted order: before < p, or p is 1
        bring this mask back into the vocabulary's order    (zeros.scatter(-1, order, stays))
        hide the scores that do not stay
        """,
)

# --- 9.6 ---


def _pair(seed: int, *shape: int) -> tuple[Tensor, Tensor]:
    """Two distributions; each has a token that it never says."""
    p, q = (_scores(seed + part, *shape) for part in (0, 50))
    p[..., 1], q[..., 2] = HIDDEN, HIDDEN
    p[..., 0] = q[..., 0] = HIDDEN  # neither of them says it
    return p.softmax(dim=-1), q.softmax(dim=-1)


_P, _Q = _pair(8, 2, 3, 6)
PAIRS = [_pair(3, 2, 5), _pair(5, 7), (_P, torch.where(torch.arange(3)[:, None] == 1, _P, _Q))]  # p = q in one row


def _gives_p(answer: Callable) -> None:
    for p, q in PAIRS:
        kept, rest = answer(p.clone(), q.clone())
        out = q * kept + (1 - (q * kept).sum(dim=-1, keepdim=True)) * rest
        gap = (out - p).abs()
        if gap.max() > 1e-4:
            place = int(gap.argmax())
            raise Wrong(
                f"Drafted and kept, or drawn afresh: a token that the large model says with probability "
                f"{p.flatten()[place]:.3f} comes out with {out.flatten()[place]:.3f}."
            )


ABOVE_1 = "The chance of keeping a drafted token is min(1, p / q): yours are above 1 where p > q."
TURNED = (
    "The chance of keeping a drafted token is min(1, p / q); yours is q / p: what the draft says too often must be "
    "refused."
)
ALL_0 = "Where p = q the second result is 0 everywhere: return p there."
DIVIDE = "Normalise by dividing by the sum; a softmax gives every token a chance."
OVER_ALL = "The sum runs over everything; take it over the vocabulary, `sum(dim=-1, keepdim=True)`."
SMALL_NUMBER = (
    "A small number added to q hides 0 / 0: a token that neither says gets the chance 0. Where q = 0 the chance is 1; "
    "ask for it with `torch.where`."
)

accepting = Exercise(
    id="9.6",
    title="speculative acceptance",
    reference=acceptance,
    checks=Ladder(
        acceptance,
        PAIRS,
        returns=["chances", "distribution"],
        differentiable=False,
        properties=[_gives_p],
        slips=edits(
            acceptance,
            f"""
            .clamp(max=1.0) → · {ABOVE_1}
            torch.where(q > 0, p / q, 1.0).clamp(max=1.0) → p / q · {ABOVE_1}
            q > 0, p / q → p > 0, q / p · {TURNED}
            torch.where(q > 0, p / q, 1.0) → (q / p) · {TURNED}
            torch.where(q > 0, p / q, 1.0) → (p / q)
            · Where p and q are both 0, p / q is NaN: a token that is never drafted gets the chance 1.
            1.0).clamp → 0.0).clamp · A token that is never drafted (q = 0) gets the chance 1.
            torch.where(q > 0, p / q, 1.0).clamp(max=1.0) → (p > q).float()
            · The chance of keeping a drafted token is min(1, p / q): a token that the draft says a little too often is
            · still kept, with the chance p / q.
            torch.where(q > 0, p / q, 1.0).clamp(max=1.0) → p
            · The chance of keeping a drafted token is min(1, p / q); yours is p.
            torch.where(total > 0, rest / total, p) → rest / total
            · Where p = q, p − q is 0 everywhere and cannot be normalised: nothing is ever refused there, return p.
            torch.where(total > 0, rest / total, p) → rest
            · max(0, p − q) is not yet a distribution: divide by its sum over the vocabulary.
            torch.where(total > 0, rest / total, p) → rest / total.clamp(min=1e-9) · {ALL_0}
            torch.where(total > 0, rest / total, p) → rest / (total + 1e-9) · {ALL_0}
            rest = (p - q).clamp(min=0.0) → rest = p
            · After a refusal the token comes from what the draft offers too seldom, max(0, p − q); yours comes
            · from p, which gives the large model's favourites too often.
            (p - q).clamp → (q - p).clamp · This is what the draft offers too often, q − p; it is p − q.
            .clamp(min=0.0) → .abs() · Where q is larger than p nothing is left: max(0, p − q), not |p − q|.
            torch.where(total > 0, rest / total, p) → rest.softmax(dim=-1) · {DIVIDE}
            torch.where(total > 0, rest / total, p) → (p - q).softmax(dim=-1) · {DIVIDE}
            rest / total → rest / rest.sum() · {OVER_ALL}
            torch.where(total > 0, rest / total, p) → rest / rest.sum() · {OVER_ALL}
            torch.where(q > 0, p / q, 1.0) → (p / q) ; torch.where(total > 0, rest / total, p) → rest / total
            · 0 / 0 is NaN, here twice: where q = 0 let the chance be 1, and where p = q let the distribution be p.
            kept = → p, q = q, p; kept = · p and q are swapped: p is the large model's distribution, q the draft's.
            torch.where(q > 0, p / q, 1.0) → (p / (q + 1e-9)) · {SMALL_NUMBER}
            rest / total, p → rest / total, 1 / p.shape[-1]
            · Where p = q every token is made equally likely; nothing is ever refused there: return p.
            return kept, torch.where(total > 0, rest / total, p) → return torch.where(total > 0, rest / total, p), kept
            · The two results are swapped: first the chances, then the distribution.
            """,
        ),
    ),
    crashes=[
        (
            "Boolean value of Tensor",
            "p and q are tensors: `clamp`, `torch.minimum` and `torch.where` go entry by entry; `min` and `if` do not.",
        ),
        ("must match the size of tensor", "Keep the dimension when you sum: `sum(dim=-1, keepdim=True)`."),
    ],
    nudge="Two formulas, entry by entry. Mind two zeros: where q is 0, and where p − q is never above 0.",
    sketch="""
        chances = p / q, at most 1; where q is 0: 1
        rest = p − q, at least 0
        total = its sum over the vocabulary, kept as (…, 1)
        distribution = rest / total; where total is 0: p
        return chances, distribution
        """,
)

EXERCISES = [walking, extending, sampling, keeping_k, nucleus, accepting]
