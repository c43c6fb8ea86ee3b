"""Exercises of lesson 09: the walk, a step of beam search, random walks, top-k, nucleus, speculative acceptance."""

from collections.abc import Callable

import torch
from torch import Tensor

from course_lib.checks import Check, Exercise, Wrong, describe, function_checks, signature_check
from course_lib.decoding import HIDDEN, Filters, extend
from course_lib.speculative import acceptance
from course_lib.walks import sample, top_k, top_p, walk


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


def _walk_variant(
    look: Callable = lambda model, ids, first: model(ids)[:, -1],
    history: Callable = lambda ids, first: ids,
    steps: Callable = lambda new: new,
    fill: bool = True,
    stop: Callable | None = Tensor.all,
    result: Callable = lambda ids, first, end: ids,
) -> Callable:
    """A walk with one thing changed; for slips."""

    def variant(model, ids, new, choose, end=None):
        first, over = ids, torch.zeros(len(ids), dtype=torch.bool)
        for _ in range(steps(new)):
            token = choose(look(model, ids, first), history(ids, first))
            if end is not None and fill:
                token = token.masked_fill(over, end)
            ids = torch.cat([ids, token[:, None]], dim=1)
            if end is not None:
                over = over | (token == end)
                if stop and stop(over):
                    break
        return result(ids, first, end)

    return variant


def _walk_cases() -> list[tuple]:
    cases = []
    for seed, (words, batch, length, new, choose) in enumerate(
        [(5, 2, 3, 4, best), (7, 3, 2, 6, by_history), (6, 1, 4, 3, by_history)]
    ):
        ids = torch.randint(words, (batch, length), generator=torch.Generator().manual_seed(seed))
        cases.append((toy(words), ids, new, choose, None))
    model, ids = toy(5), torch.tensor([[0, 1], [3, 2], [4, 4]])
    ends = {}
    for end in range(5):
        whole = _walk_variant(stop=None)(model, ids, 12, best, end)[:, 2:]
        lengths = (whole != end).cumprod(dim=1).sum(dim=1)
        ends[end] = (len(set(lengths.tolist())), int(lengths.max()) < 10)
    early = max(ends, key=lambda end: (ends[end][1], ends[end][0]))  # all texts are over early, at different places
    ended = torch.tensor([[1, early], [early, 2], [0, 3]])  # an end in the prompt does not count
    return [*cases, (model, ids, 12, best, early), (toy(7), ids, 5, best, 6), (model, ended, 12, best, early)]


def _over_by_the_last_token(model, ids, new, choose, end=None):
    """No memory of which texts are over: the last token is asked, were it the prompt's."""
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids)
        if end is not None:
            token = token.masked_fill(ids[:, -1] == end, end)
        ids = torch.cat([ids, token[:, None]], dim=1)
        if end is not None and (token == end).all():
            break
    return ids


def _over_by_the_prompt(model, ids, new, choose, end=None):
    over = (ids == end).any(dim=1) if end is not None else torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        if over.all():
            break
        token = choose(model(ids)[:, -1], ids)
        if end is not None:
            token = token.masked_fill(over, end)
            over = over | (token == end)
        ids = torch.cat([ids, token[:, None]], dim=1)
    return ids


def _all_at_once(model, ids, new, choose, end=None):
    """Stops when all texts end in the same step."""
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids)
        ids = torch.cat([ids, token[:, None]], dim=1)
        if end is not None and (token == end).all():
            break
    return ids


ONLY_NEW = "An `end` in the prompt does not count: remember, in a vector, which texts have been given a new one."


WALK = _walk_cases()
walking = Exercise(
    id="9.1",
    title="greedy search, the walk",
    reference=walk,
    checks=function_checks(
        walk,
        WALK,
        returns=["ids"],
        differentiable=False,
        slips=[
            (
                _walk_variant(look=lambda model, ids, first: model(ids)[:, 0]),
                "These are the scores after the first token; the next token follows the last one: `model(ids)[:, -1]`.",
            ),
            (
                _walk_variant(look=lambda model, ids, first: model(ids[:, -1:])[:, -1]),
                "The model is shown the last token alone; show it all ids so far.",
            ),
            (
                _walk_variant(look=lambda model, ids, first: model(ids if ids is first else ids[:, -1:])[:, -1]),
                "After the first step the model is shown the last token alone; show it all ids so far, it keeps none.",
            ),
            (
                lambda model, ids, new, choose, end=None: walk(model, ids, new, choose, end or None),
                "`end` may be 0, and Python takes 0 for False: ask `if end is not None`.",
            ),
            (
                lambda model, ids, new, choose, end=None: walk(model, ids, new, best, end),
                "`choose` is not used: it decides which token comes next, not always the best one.",
            ),
            (_over_by_the_last_token, ONLY_NEW),
            (_over_by_the_prompt, ONLY_NEW),
            (
                _all_at_once,
                "It stops only if all texts end in the same step; one that ended earlier is over too. Remember them.",
            ),
            (
                _walk_variant(look=lambda model, ids, first: model(first)[:, -1]),
                "The model is shown the prompt again and again; show it the new tokens too.",
            ),
            (
                _walk_variant(history=lambda ids, first: first),
                "`choose` is given the prompt; give it all ids so far, the new ones too.",
            ),
            (
                _walk_variant(look=lambda model, ids, first: model(ids)[:, -1].softmax(dim=-1)),
                "`choose` is given probabilities; give it the scores as the model gave them.",
            ),
            (
                _walk_variant(look=lambda model, ids, first: model(ids)[:, -1].log_softmax(dim=-1)),
                "`choose` is given log-probabilities; give it the scores as the model gave them.",
            ),
            (_walk_variant(steps=lambda new: new - 1), "One token too few is added."),
            (_walk_variant(steps=lambda new: new + 1), "One token too many is added."),
            (
                _walk_variant(result=lambda ids, first, end: ids[:, first.shape[1] :]),
                "The prompt belongs to the result.",
            ),
            (
                _walk_variant(fill=False, stop=None),
                "`end` is not used: a text that has ended is filled up with `end`, and if all have, the walk is over.",
            ),
            (
                _walk_variant(fill=False),
                "Texts that are over go on: after its first `end` a text gets nothing but `end`.",
            ),
            (_walk_variant(stop=None), "When every text is over the walk is over too: return what there is then."),
            (
                _walk_variant(stop=Tensor.any),
                "It stops when one text is over; go on until all of them are (`over.all()`).",
            ),
            (
                _walk_variant(result=lambda ids, first, end: ids if end is None else ids[:, :-1]),
                "The `end` of the last text belongs to the result.",
            ),
        ],
    ),
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


def _extend_variant(
    total: Callable = lambda scores, logits: scores[..., None] + logits.log_softmax(dim=-1),
    largest: bool = True,
    norm: Callable = lambda best, n, length_penalty: best / n**length_penalty,
    split: Callable = lambda index, beams, words: (index // words, index % words),
    out: Callable = lambda best, normed, parent, token: (best, normed, parent, token),
) -> Callable:
    """A step of beam search with one thing changed; for slips."""

    def variant(scores, logits, count, n, length_penalty):
        found, index = total(scores, logits).flatten(1).topk(count, largest=largest)
        return out(found, norm(found, n, length_penalty), *split(index, *logits.shape[1:]))

    return variant


def _each_beam_alone(each: Callable, early: bool, ordered: bool) -> Callable:
    """Every beam keeps ``each(count, beams, words)`` of its own; ``early``: the scores are added before the topk."""

    def variant(scores, logits, count, n, length_penalty):
        beams, words = logits.shape[1:]
        log_p, added = logits.log_softmax(dim=-1), scores[..., None]
        found, token = (log_p + added if early else log_p).topk(min(each(count, beams, words), words), dim=-1)
        parent = torch.arange(beams)[None, :, None].expand_as(token).flatten(1)
        found, token = (found if early else found + added).flatten(1), token.flatten(1)
        if ordered:
            found, order = found.sort(dim=1, descending=True)
            found, parent, token = (
                found[:, :count],
                parent.gather(1, order)[:, :count],
                token.gather(1, order)[:, :count],
            )
        return found, found / n**length_penalty, parent, token

    return variant


SHARES = [  # how many continuations a beam may keep for itself
    lambda count, beams, words: count // beams,
    lambda count, beams, words: -(-count // beams),
    lambda count, beams, words: count,
    lambda count, beams, words: beams,
]
JOINTLY = (
    "Each beam keeps continuations of its own; only the best of all beams together may stay: flatten beams and "
    "vocabulary into one dimension first. (The code in S2 has this slip.)"
)
WHOLE_BATCH = "`flatten()` joins the batch too, and all texts compete; each keeps its own: `flatten(1)`."
POWER = "The normalised score is log P / n^length_penalty: "


def _of_the_whole_batch(keep: bool) -> Callable:
    def variant(scores, logits, count, n, length_penalty):
        found, index = (scores[..., None] + logits.log_softmax(dim=-1)).flatten().topk(count)
        words = logits.shape[-1]
        results = found, found / n**length_penalty, index // words, index % words
        return tuple(value[None] for value in results) if keep else results

    return variant


def _penalty_first(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1) / n**length_penalty
    found, index = total.flatten(1).topk(count)
    return found, found / n**length_penalty, index // logits.shape[-1], index % logits.shape[-1]


def _keeps_the_best(answer: Callable) -> None:
    for scores, logits, count, n, length_penalty in _extend_cases():
        found = answer(scores.clone(), logits.clone(), count, n, length_penalty)[0]
        if (found[:, 1:] > found[:, :-1] + 1e-6).any():
            raise Wrong("The continuations must come best first; in a row of yours a later one has a higher score.")


def _with_first_step(*arguments, **options) -> list[Check]:
    """`function_checks`, with `_first_step` before infinities are looked for."""
    ladder = function_checks(*arguments, **options)
    return [*ladder[:5], _first_step, *ladder[5:]]


def _first_step(answer: Callable) -> None:
    """Where one beginning counts, all continuations are its own; not so if every beam keeps its share."""
    scores, logits, count, n, length_penalty = _extend_cases()[-1]
    finite = answer(scores.clone(), logits.clone(), count, n, length_penalty)[0].isfinite()
    if (finite.sum(dim=1) == count // scores.shape[1]).all():
        raise Wrong(JOINTLY)


extending = Exercise(
    id="9.2",
    title="a step of beam search",
    reference=extend,
    checks=_with_first_step(
        extend,
        _extend_cases(),
        returns=["best", "normalised", "beams", "tokens"],
        differentiable=False,
        properties=[_keeps_the_best],
        slips=[
            *(
                (_each_beam_alone(each, early, ordered), JOINTLY)
                for each in SHARES
                for early in (True, False)
                for ordered in (True, False)
                if not (ordered and each is SHARES[2])  # that is a right answer
            ),
            (
                _extend_variant(
                    total=lambda scores, logits: scores[..., None] + logits.flatten(1).log_softmax(-1).view_as(logits)
                ),
                "The log_softmax runs over all beams together; each beam has a distribution of its own: take it first, "
                "flatten afterwards.",
            ),
            (_of_the_whole_batch(keep=False), WHOLE_BATCH),
            (_of_the_whole_batch(keep=True), WHOLE_BATCH),
            (
                _penalty_first,
                "The new token's log-probability alone is divided by n^length_penalty; divide the whole sum.",
            ),
            (
                _extend_variant(split=lambda index, beams, words: (index / words, index % words)),
                "`/` gives fractions; the beam is a whole number: place // vocabulary.",
            ),
            (
                _extend_variant(split=lambda index, beams, words: (index, index % words)),
                "The beams are places among beams · vocabulary: divide, `// vocabulary`.",
            ),
            (
                _extend_variant(norm=lambda best, n, alpha: best / (n * alpha) if alpha else best),
                f"{POWER}n is multiplied by the penalty; it is the exponent.",
            ),
            (
                _extend_variant(total=lambda scores, logits: scores[..., None] + logits),
                "`logits` are scores, not yet log-probabilities: take their log_softmax over the vocabulary.",
            ),
            (
                _extend_variant(total=lambda scores, logits: scores[..., None] + logits.softmax(dim=-1)),
                "A probability is added to a log-probability: take log_softmax, not softmax.",
            ),
            (
                _extend_variant(total=lambda scores, logits: scores[..., None] * logits.log_softmax(dim=-1)),
                "Probabilities are multiplied, so their logarithms are added.",
            ),
            (
                _extend_variant(total=lambda scores, logits: scores[..., None] + logits.log_softmax(dim=1)),
                "The log_softmax runs over the beams; it runs over the vocabulary, the last dimension.",
            ),
            (
                _extend_variant(total=lambda scores, logits: logits.log_softmax(dim=-1)),
                "The scores of the beginnings do not enter: add them, `scores[..., None]`.",
            ),
            (_extend_variant(largest=False), "These are the least probable continuations."),
            (
                _extend_variant(split=lambda index, beams, words: (index // beams, index % beams)),
                "After flattening, place = beam · vocabulary + token: divide by the size of the vocabulary.",
            ),
            (
                _extend_variant(split=lambda index, beams, words: (index % beams, index // beams)),
                "After flattening, place = beam · vocabulary + token: divide by the size of the vocabulary.",
            ),
            (
                _extend_variant(split=lambda index, beams, words: (index % words, index // words)),
                "Beams and tokens are swapped: the beam is place // vocabulary, the token what remains.",
            ),
            (
                _extend_variant(split=lambda index, beams, words: (index // words, index)),
                "The tokens are places among beams · vocabulary: take the remainder, `% vocabulary`.",
            ),
            (
                _extend_variant(norm=lambda best, n, length_penalty: best),
                f"{POWER}it is not divided by anything.",
            ),
            (
                _extend_variant(norm=lambda best, n, length_penalty: best / n),
                f"{POWER}it is divided by n, whatever the penalty.",
            ),
            (
                _extend_variant(norm=lambda best, n, length_penalty: best / (n * length_penalty)),
                f"{POWER}n is multiplied by the penalty; it is the exponent.",
            ),
            (
                _extend_variant(norm=lambda best, n, length_penalty: best / length_penalty**n),
                f"{POWER}base and exponent are swapped.",
            ),
            (
                _extend_variant(norm=lambda best, n, length_penalty: best * n**length_penalty),
                f"{POWER}it is multiplied.",
            ),
            (
                _extend_variant(norm=lambda best, n, length_penalty: best / (n + 1) ** length_penalty),
                f"{POWER}n counts the new token already.",
            ),
            (
                _extend_variant(norm=lambda best, n, length_penalty: best.exp() / n**length_penalty),
                f"{POWER}stay with logarithms.",
            ),
            (
                _extend_variant(out=lambda best, normed, parent, token: (normed, normed, parent, token)),
                "The first result is the plain log-probability; only the second is normalised.",
            ),
            (
                _extend_variant(out=lambda best, normed, parent, token: (normed, best, parent, token)),
                "The first two results are swapped: the plain log-probabilities come first.",
            ),
            (
                _extend_variant(out=lambda best, normed, parent, token: (best.exp(), normed, parent, token)),
                "The first result holds probabilities; return their logarithms, as they came in.",
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

# --- 9.3 ---

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
    if got.min() < 0 or got.max() > 2:
        raise Wrong("A token is no word of the vocabulary (0, 1, 2).")


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
    seen = []

    def only_one(scores: Tensor, ids: Tensor) -> Tensor:
        """Leaves one token: which one depends on how many there are so far."""
        seen.append((tuple(scores.shape), tuple(ids.shape), (scores - 3).exp().sum(dim=-1)))
        return scores.masked_fill(torch.arange(3) != ids.shape[1] % 3, HIDDEN)

    only_one.__qualname__ = "filters"  # so it is called in an error's text
    got = answer(table, torch.zeros(2, 1, dtype=torch.long), 5, only_one, None, _seeded(0))
    if not seen:
        raise Wrong("`filters` is not used: if it is not None, the scores go through `filters(scores, ids)` first.")
    if any(shape != (2, 3) for shape, _, _ in seen):
        raise Wrong(f"`filters` takes scores (batch, vocabulary), here (2, 3); it was given {seen[0][0]}.")
    if [ids for _, ids, _ in seen] != [(2, n) for n in range(1, 6)]:
        raise Wrong("`filters` takes all ids so far, prompt and new tokens, as its second argument.")
    if any((total - 1).abs().max() > 1e-3 for _, _, total in seen):
        raise Wrong("`filters` takes the scores as the model gave them; apply it before the softmax.")
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


def _sample_keeps_inputs(answer: Callable) -> None:
    ids = torch.tensor([[0, 1], [2, 0]])
    answer(table, ids, 4, None, None, _seeded(0))
    if ids.tolist() != [[0, 1], [2, 0]]:
        raise Wrong("It changes its input ids in place: make a new tensor.")


sampling = Exercise(
    id="9.3",
    title="the random walk",
    reference=sample,
    checks=[
        signature_check(sample),
        _sample_gives_ids,
        _sample_keeps_inputs,
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


def _filter_checks(reference: Callable, cases: list[tuple], slips: list[tuple], properties: list[Check]) -> list[Check]:
    """As `function_checks`, for the probabilities that the answer's scores lead to."""

    def probabilities(answer: Callable) -> Callable:
        def function(logits, value):
            scores = answer(logits, value)
            if not isinstance(scores, Tensor):
                raise Wrong(f"Expected the scores to be {describe(logits)}; got {describe(scores)}.")
            if scores.dtype == torch.bool:
                raise Wrong("This is a mask; the scores are asked for: `logits.masked_fill(mask, -torch.inf)`.")
            return scores.softmax(dim=-1) if scores.dim() else scores

        return function

    changed = [(probabilities(slip), sentence) for slip, sentence in slips]
    ladder = function_checks(probabilities(reference), cases, ["softmax of the scores"], changed, [], tolerance=1e-5)[
        1:
    ]  # the signature is checked on the answer itself

    def something_stays(answer: Callable) -> None:
        for logits, value in cases:
            if (answer(logits.clone(), value) == HIDDEN).all(dim=-1).any():
                raise Wrong(
                    _slip(answer, slips, cases) or "In a row everything is hidden: at least the best must stay."
                )

    def exactly_0(answer: Callable) -> None:
        """Scores may be as low as they like: what is hidden must be lower still."""
        for logits, value in cases:
            kept = [(f(logits - 300, value).softmax(dim=-1) > 0).sum(dim=-1) for f in (answer, reference)]
            if not torch.equal(*kept):
                raise Wrong(
                    "Hidden scores are set to a number that is not low enough: where all scores are low, the softmax "
                    "still gives it a share. Hide with −∞, `-torch.inf`."
                )

    within = [lambda answer, check=check: check(probabilities(answer)) for check in ladder]
    return [signature_check(reference), *within[:5], something_stays, within[5], *properties, exactly_0, *within[6:]]


def _slip(answer: Callable, slips: list[tuple], cases: list[tuple]) -> str:
    """The sentence of the slip that leads to the same probabilities in every case; else ''."""
    for slip, sentence in slips:
        pairs = [(answer(z.clone(), value).softmax(-1), slip(z, value).softmax(-1)) for z, value in cases]
        if all(a.shape == b.shape and torch.allclose(a, b, atol=1e-5, equal_nan=True) for a, b in pairs):
            return sentence
    return ""


def _scores(seed: int, *shape: int) -> Tensor:
    return 2 * _random(seed, *shape)


def _hide(keep: Callable, hidden: float = HIDDEN) -> Callable:
    """A filter that hides all but what ``keep`` says; for slips."""
    return lambda logits, value: logits.masked_fill(~keep(logits, value), hidden)


def _kth(logits: Tensor, k: int) -> Tensor:
    return logits.topk(min(max(k, 1), logits.shape[-1]), dim=-1).values[..., -1:]


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
        if (kept == wanted).all():
            continue
        raise Wrong(
            _slip(answer, _TOP_K_SLIPS, TOP_K)
            or f"k = {k} of {logits.shape[-1]} tokens: {wanted} must stay in each row; in yours {kept.flatten()[0]} do."
        )


_TOP_K_SLIPS = [
    (_hide(lambda z, k: z >= _kth(z, k), 0.0), HIDE),
    (lambda z, k: top_k(z, k).softmax(dim=-1), PROBABILITIES),
    (_hide(lambda z, k: z > _kth(z, k)), "The k-th best is hidden too: hide only what is smaller than it."),
    (_hide(lambda z, k: z < _kth(z, k)), "The best are hidden, and the others stay: turn the mask round."),
    (_hide(lambda z, k: -z >= _kth(-z, k)), "These are the k worst tokens."),
    (_hide(lambda z, k: z >= z.flatten().topk(min(k, z.numel())).values[-1]), OF_THE_BATCH),
    (_hide(lambda z, k: z >= z.flatten().topk(min(k, z.shape[-1])).values[-1]), OF_THE_BATCH),
    (
        _hide(lambda z, k: z >= z.topk(min(k, z.shape[0]), dim=0).values[-1:]),
        "The k best of each column stay; it is each row that has k best (dim=-1).",
    ),
    (
        _hide(lambda z, k: z.argsort(dim=-1, descending=True) < k),
        "`argsort` gives the places in sorted order, not each token's rank: its own `argsort` gives the ranks.",
    ),
    (_hide(lambda z, k: z >= _kth(z, k + 1)), "One token too many stays."),
    (_hide(lambda z, k: z >= _kth(z, k - 1)), "One token too few stays."),
    (lambda z, k: z, "Nothing is hidden."),
]
keeping_k = Exercise(
    id="9.4",
    title="top-k",
    reference=top_k,
    checks=_filter_checks(top_k, TOP_K, _TOP_K_SLIPS, [_keeps_k]),
    crashes=[
        ("selected index k out of range", "k may be larger than the vocabulary: then nothing is hidden (`min`)."),
        ("out of range", "k may be larger than the vocabulary: then nothing is hidden (`min`)."),
    ],
    nudge="Find the k-th best score of each row; hide what is below. `logits.topk(k, dim=-1).values` is sorted.",
    sketch="""
        k = the smaller of k and the size of the vocabulary
        limit = the last of the k largest scores of each row, kept as (…, 1)
        where a score is below the limit: −∞; else as it was
        """,
)

TOP_P = [(_scores(4, 2, 7), 0.6), (_scores(5, 4, 5), 0.9), (_scores(6, 2, 3, 6), 0.3), (_scores(7, 3, 4), 1.0)]


def _falling(logits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Probabilities, best first; their sums up to and with each; the order."""
    p, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    return p, p.cumsum(dim=-1), order


def _in_place(keep: Tensor, order: Tensor) -> Tensor:
    return torch.zeros_like(keep).scatter(-1, order, keep)


def _nucleus(keep: Callable) -> Callable:
    """A filter that keeps what ``keep(p, sums, limit)`` says of the sorted probabilities; for slips."""

    def variant(logits, value):
        p, sums, order = _falling(logits)
        return logits.masked_fill(~_in_place(keep(p, sums, value), order), HIDDEN)

    return variant


def _scores_summed(logits: Tensor, p: float) -> Tensor:
    z, order = logits.sort(dim=-1, descending=True)
    return logits.masked_fill(~_in_place(z.cumsum(dim=-1) - z < p, order), HIDDEN)


def _worst_first(logits: Tensor, p: float) -> Tensor:
    rising, order = logits.softmax(dim=-1).sort(dim=-1)
    return logits.masked_fill(~_in_place(rising.cumsum(dim=-1) - rising < p, order), HIDDEN)


def _at_least_best(keep: Tensor) -> Tensor:
    return keep | (torch.arange(keep.shape[-1]) == 0)


NOTHING_LEFT = (
    "In a row where the best token alone has more than p nothing is left: the token with which the sum reaches p stays."
)
_TOP_P_SLIPS = [
    (_nucleus(lambda p, sums, limit: sums <= limit), NOTHING_LEFT),
    (_nucleus(lambda p, sums, limit: sums < limit), NOTHING_LEFT),
    (
        _nucleus(lambda p, sums, limit: _at_least_best(sums <= limit)),
        "The kept tokens have together less than p: the token with which the sum reaches p stays, too.",
    ),
    (
        _nucleus(lambda p, sums, limit: _at_least_best(sums < limit)),
        "The kept tokens have together less than p: the token with which the sum reaches p stays, too.",
    ),
    (_nucleus(lambda p, sums, limit: sums - p - p.roll(1, -1) < limit), "One token too many stays in each row."),
    (
        _nucleus(lambda p, sums, limit: sums - p >= limit),
        "The nucleus is hidden, and the others stay: turn the mask round.",
    ),
    (
        _hide(lambda z, p: z.softmax(-1) >= p),
        "Each token's own probability is compared with p; compare the sum of the best ones.",
    ),
    (
        lambda z, p: z.masked_fill(~(_falling(z)[1] - _falling(z)[0] < p), HIDDEN),
        "The mask belongs to the sorted tokens: bring it back into their own order (`scatter`) before you use it.",
    ),
    (
        _hide(lambda z, p: z.softmax(-1).cumsum(-1) - z.softmax(-1) < p),
        "The probabilities are summed in the order of the vocabulary: sort them first, the best first.",
    ),
    (
        lambda z, p: z.sort(dim=-1, descending=True).values.masked_fill(~(_falling(z)[1] - _falling(z)[0] < p), HIDDEN),
        "The scores come back sorted: each must stay in its place.",
    ),
    (_nucleus(lambda p, sums, limit: sums - p < 1 - limit), "1 − p stands where p belongs."),
    (
        _nucleus(lambda p, sums, limit: p.flip(-1).cumsum(-1).flip(-1) < limit),
        "The sum starts at the least probable token: start at the best.",
    ),
    (
        _nucleus(lambda p, sums, limit: sums >= limit),
        "The best are hidden until the sum reaches p, and the rest stays: it is the other way round.",
    ),
    (
        _scores_summed,
        "The scores are summed up; sum up probabilities, their softmax.",
    ),
    (
        _hide(lambda z, p: z.softmax(-1) >= p * z.softmax(-1).amax(dim=-1, keepdim=True)),
        "Each token is compared with p times the best: that is min-p. Here the sum of the best ones has to reach p.",
    ),
    (_worst_first, "The sum starts at the least probable token: sort with `descending=True`."),
    (
        lambda z, p: z.masked_fill(~(_falling(z)[1] - _falling(z)[0] < p).gather(-1, _falling(z)[2]), HIDDEN),
        "`gather` takes from the places; to bring a mask back to them, `scatter`: `zeros.scatter(-1, places, mask)`.",
    ),
    (lambda z, p: top_p(z, p).softmax(dim=-1), PROBABILITIES),
    (lambda z, p: z.masked_fill(top_p(z, p) == HIDDEN, 0.0), HIDE),
    (lambda z, p: z, "Nothing is hidden."),
]


def _is_the_smallest(answer: Callable) -> None:
    for logits, p in TOP_P:
        kept = answer(logits.clone(), p).softmax(dim=-1) > 1e-6
        probabilities = logits.softmax(dim=-1)
        total = (probabilities * kept).sum(dim=-1)
        least = probabilities.masked_fill(~kept, 2.0).amin(dim=-1)
        if (total < p - 1e-5).any():
            raise Wrong(
                _slip(answer, _TOP_P_SLIPS, TOP_P)
                or f"p = {p}: in a row the kept tokens have together {total.min():.4f}, less than p."
            )
        if ((total - least > p + 1e-5) & (kept.sum(dim=-1) > 1)).any():
            raise Wrong(
                _slip(answer, _TOP_P_SLIPS, TOP_P)
                or f"p = {p}: in a row too many stay; without the least of them it is still p or more."
            )


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


nucleus = Exercise(
    id="9.5",
    title="nucleus",
    reference=top_p,
    checks=_filter_checks(top_p, TOP_P, _TOP_P_SLIPS, [_is_the_smallest, _reaches_p, _whole_at_1]),
    crashes=[],
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


def _accept_variant(
    kept: Callable = lambda p, q: torch.where(q > 0, p / q, 1.0).clamp(max=1.0),
    rest: Callable = lambda p, q: (p - q).clamp(min=0),
    norm: Callable | None = None,
) -> Callable:
    """The two results with one thing changed; for slips."""
    return lambda p, q: (kept(p, q), (norm or _exact)(rest(p, q), p))


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


def _exact(rest: Tensor, p: Tensor) -> Tensor:
    total = rest.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, rest / total, p)


def _softened(p: Tensor, q: Tensor) -> Tensor:
    return (p / (q + 1e-9)).clamp(max=1.0)


def _softened_sum(rest: Tensor, p: Tensor) -> Tensor:
    return rest / (rest.sum(dim=-1, keepdim=True) + 1e-9)


SMALL_NUMBER = (
    "A small number added to q hides 0 / 0: a token that neither says gets the chance 0. Where q = 0 the chance is 1; "
    "ask for it with `torch.where`."
)
QUOTIENT = "The chance of keeping a drafted token is min(1, p / q)"
accepting = Exercise(
    id="9.6",
    title="speculative acceptance",
    reference=acceptance,
    checks=function_checks(
        acceptance,
        PAIRS,
        returns=["chances", "distribution"],
        differentiable=False,
        properties=[_gives_p],
        slips=[
            (
                _accept_variant(kept=lambda p, q: torch.where(q > 0, p / q, 1.0)),
                f"{QUOTIENT}: yours are above 1 where p > q.",
            ),
            (_accept_variant(kept=lambda p, q: p / q), f"{QUOTIENT}: yours are above 1 where p > q."),
            (
                _accept_variant(kept=lambda p, q: (q / p).clamp(max=1.0)),
                f"{QUOTIENT}; yours is q / p: what the draft says too often must be refused.",
            ),
            (
                _accept_variant(kept=lambda p, q: torch.where(p > 0, q / p, 1.0).clamp(max=1.0)),
                f"{QUOTIENT}; yours is q / p: what the draft says too often must be refused.",
            ),
            (
                _accept_variant(kept=lambda p, q: (p / q).clamp(max=1.0)),
                "Where p and q are both 0, p / q is NaN: a token that is never drafted gets the chance 1.",
            ),
            (
                _accept_variant(kept=lambda p, q: torch.where(q > 0, p / q, 0.0).clamp(max=1.0)),
                "A token that is never drafted (q = 0) gets the chance 1.",
            ),
            (
                _accept_variant(kept=lambda p, q: torch.where(p > q, 1.0, 0.0)),
                f"{QUOTIENT}: a token that the draft says a little too often is still kept, with the chance p / q.",
            ),
            (_accept_variant(kept=lambda p, q: p), f"{QUOTIENT}; yours is p."),
            (
                _accept_variant(norm=lambda rest, p: rest / rest.sum(-1, keepdim=True)),
                "Where p = q, p − q is 0 everywhere and cannot be normalised: nothing is ever refused there, return p.",
            ),
            (
                _accept_variant(norm=lambda rest, p: rest),
                "max(0, p − q) is not yet a distribution: divide by its sum over the vocabulary.",
            ),
            (
                _accept_variant(norm=lambda rest, p: rest / rest.sum(-1, keepdim=True).clamp(min=1e-9)),
                "Where p = q the second result is 0 everywhere: return p there.",
            ),
            (
                _accept_variant(rest=lambda p, q: p),
                "After a refusal the token comes from what the draft offers too seldom, max(0, p − q); yours comes "
                "from p, which gives the large model's favourites too often.",
            ),
            (
                _accept_variant(rest=lambda p, q: (q - p).clamp(min=0)),
                "This is what the draft offers too often, q − p; it is p − q.",
            ),
            (
                _accept_variant(rest=lambda p, q: (p - q).abs()),
                "Where q is larger than p nothing is left: max(0, p − q), not |p − q|.",
            ),
            (
                _accept_variant(rest=lambda p, q: (p - q).clamp(min=0), norm=lambda rest, p: rest.softmax(dim=-1)),
                "Normalise by dividing by the sum; a softmax gives every token a chance.",
            ),
            (
                _accept_variant(norm=lambda rest, p: torch.where(rest.sum(-1, keepdim=True) > 0, rest / rest.sum(), p)),
                "The sum runs over everything; take it over the vocabulary, `sum(dim=-1, keepdim=True)`.",
            ),
            (
                lambda p, q: (acceptance(p, q)[0], (rest := (p - q).clamp(min=0)) / rest.sum()),
                "The sum runs over everything; take it over the vocabulary, `sum(dim=-1, keepdim=True)`.",
            ),
            (
                _accept_variant(
                    kept=lambda p, q: (p / q).clamp(max=1.0), norm=lambda rest, p: rest / rest.sum(-1, True)
                ),
                "0 / 0 is NaN, here twice: where q = 0 let the chance be 1, and where p = q let the distribution be p.",
            ),
            (
                lambda p, q: (acceptance(p, q)[0], (p - q).softmax(dim=-1)),
                "Normalise by dividing by the sum; a softmax gives every token a chance.",
            ),
            (
                lambda p, q: acceptance(q, p),
                "p and q are swapped: p is the large model's distribution, q the draft's.",
            ),
            *((_accept_variant(kept=_softened, norm=norm), SMALL_NUMBER) for norm in (_exact, _softened_sum)),
            (
                _accept_variant(norm=_softened_sum),
                "Where p = q the second result is 0 everywhere: return p there.",
            ),
            (
                _accept_variant(
                    norm=lambda rest, p: torch.where(
                        rest.sum(-1, keepdim=True) > 0, rest / rest.sum(-1, keepdim=True), 1 / p.shape[-1]
                    )
                ),
                "Where p = q every token is made equally likely; nothing is ever refused there: return p.",
            ),
            (
                lambda p, q: acceptance(p, q)[::-1],
                "The two results are swapped: first the chances, then the distribution.",
            ),
        ],
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
