"""Exercises of lesson 08: blanks, pairs, a task's layer and its loss, spans, what is frozen and what learns."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from numbers import Integral

import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.data.batches import IGNORED, mask_tokens, pair_inputs
from course_lib.lab.grading import Exercise, Wrong, describe
from course_lib.lab.ladder import Ladder, edits, signature_check
from course_lib.models.bert import Bert, BertShape, best_spans, classify, fine_tune

# --- 8.1 ---

MASK, WORDS, SPECIAL = 4, 50, (0, 2, 3)  # the number of [MASK], how many tokens there are, [PAD], [CLS] and [SEP]


@dataclass(frozen=True)
class _Call:
    """What an answer was given, and what it returned, of the right type and shape."""

    ids: Tensor
    mask_id: int
    vocabulary: int
    special: Collection[int]
    inputs: Tensor
    targets: Tensor

    @property
    def chosen(self) -> Tensor:
        return self.targets != IGNORED

    @property
    def words(self) -> Tensor:
        return ~torch.isin(self.ids, torch.tensor([self.mask_id, *self.special]))

    @property
    def shares(self) -> tuple[float, float, float]:
        """Of the chosen: blanks, other words, unchanged."""
        inputs, ids = self.inputs[self.chosen], self.ids[self.chosen]
        blank, kept = inputs == self.mask_id, inputs == ids
        return tuple(float(x.float().mean()) for x in (blank, ~blank & ~kept, kept))


def _text(seed: int = 0, rows: int = 24, length: int = 50) -> Tensor:
    """[CLS] words [SEP], and padding at the end of every second row."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, WORDS, (rows, length), generator=generator)
    ids[:, 0], ids[:, -1] = 2, 3
    ids[::2, -6:] = 0
    ids[::2, -7] = 3
    return ids


def _call(
    answer: Callable, ids: Tensor, mask_id: int = MASK, vocabulary: int = WORDS, special: Collection = SPECIAL, seed=0
) -> _Call:
    result = answer(ids, torch.Generator().manual_seed(seed), mask_id, vocabulary, special)
    if not (isinstance(result, tuple | list) and len(result) == 2):
        raise Wrong(f"Expected inputs and targets to be returned; got {describe(result)}.")
    for name, value in zip(("inputs", "targets"), result, strict=True):
        if not isinstance(value, Tensor) or value.shape != ids.shape:
            raise Wrong(f"Expected {name} to be {describe(ids)}; got {describe(value)}.")
        _whole_numbers(name, value)
    if [(value == IGNORED).any() for value in result] == [True, False]:
        raise Wrong("Inputs and targets have changed places: return the inputs first.")
    return _Call(ids, mask_id, vocabulary, special, *result)


def _whole_numbers(name: str, value: Tensor) -> None:
    if value.dtype != torch.int64:
        raise Wrong(f"Expected {name} to be whole numbers, torch.int64 as those given; got {value.dtype}.")


def _two_tensors(answer: Callable) -> None:
    _call(answer, _text())
    _call(answer, _text(1, 3, 9))
    _call(answer, _text(2).flatten())
    _call(answer, _text(3).view(4, 6, 50))


def _ids_kept(answer: Callable) -> None:
    given = _text()
    _call(answer, given)
    if not torch.equal(given, _text()):
        raise Wrong("It changes its input ids in place: make new tensors (`torch.where`, `masked_fill`, `clone`).")


def _follows_the_generator(answer: Callable) -> None:
    first, again, other = (_call(answer, _text(), seed=seed) for seed in (0, 0, 1))
    if not (torch.equal(first.inputs, again.inputs) and torch.equal(first.targets, again.targets)):
        raise Wrong("Two calls with the same seed differ: draw everything with `generator=generator`.")
    if torch.equal(first.targets, other.targets):
        raise Wrong("Another seed chooses the same tokens: draw them at random, with `generator=generator`.")


def _targets_are_the_words(call: _Call) -> None:
    ids, inputs, targets, chosen = call.ids, call.inputs, call.targets, call.chosen
    if chosen.all():
        raise Wrong("Every token has a target: those that were not chosen must be −100, so that they do not count.")
    if not chosen.any():
        raise Wrong("No token has a target: the chosen ones keep their word as the target.")
    if (targets[chosen] == call.mask_id).all():
        raise Wrong("The targets are [MASK]: a target is the word that *was* there.")
    if not torch.equal(targets[chosen], ids[chosen]):
        if torch.equal(targets[chosen], inputs[chosen]):
            raise Wrong("The targets are the changed inputs: a target is the word that *was* there, in `ids`.")
        raise Wrong("A target must be the word that stands there in `ids`.")
    if not torch.equal(inputs[~chosen], ids[~chosen]):
        raise Wrong(
            "Tokens change that have no target: only the chosen ones may be hidden; a random word is a chosen one too, "
            "and has a target."
        )


def _only_words(call: _Call) -> None:
    """Only words are chosen, and they become words or [MASK]."""
    for number in call.special:
        if (call.targets == number).any():
            raise Wrong(f"The special token {number} is chosen: special tokens are no words, and are never hidden.")
    if (call.targets == call.mask_id).any():
        raise Wrong("A [MASK] that stands in the text is chosen as a word: it is special too.")
    if (call.inputs >= call.vocabulary).any():
        raise Wrong(
            f"Words go from 0 to vocabulary − 1, here {call.vocabulary - 1}; {call.inputs.max()} is drawn as a word."
        )
    if torch.isin(call.inputs, torch.tensor([*call.special]))[call.chosen].any():
        raise Wrong("A word became a special token: random words are drawn from the ordinary ones only.")
    if call.shares[0] == 0:
        raise Wrong("No chosen token becomes `mask_id`: 80 % of them should.")


def _first_look(answer: Callable) -> None:
    _targets_are_the_words(_call(answer, _text()))


def _independent(call: _Call) -> None:
    """Whether a word is chosen, and what becomes of it, does not depend on its place or its row."""
    chosen, blank = (x[:, 1:-7].float() for x in (call.chosen, call.inputs == call.mask_id))  # words in every row
    for shares, what in ((chosen.mean(dim=0), "chosen"), (blank.mean(dim=0), "hidden")):
        if shares.max() - shares.min() > 0.06:
            raise Wrong(f"Some places are {what} more often than others: draw a number for each token.")
    if chosen.mean(dim=1).std() > 0.09:
        raise Wrong("Some texts have far more blanks than others: draw a number for each token.")


def _fifteen(call: _Call) -> None:
    chosen = float(call.chosen.sum() / call.words.sum())
    if abs(chosen - 0.15) > 0.008:
        if abs(chosen - 0.135) < 0.008 and call.shares[2] < 0.02:
            raise Wrong(f"{chosen:.1%} of the words have a target: those that stay the same are asked for too, 15 %.")
        if abs(chosen - 0.12) < 0.008:
            raise Wrong(
                "12 % of the words have a target: also those that become a random word or stay are asked for, 15 %."
            )
        if abs(chosen - 0.85) < 0.01:
            raise Wrong("85 % of the words are chosen: the comparison is turned round.")
        raise Wrong(f"{chosen:.1%} of the words are chosen; expected 15 %, each on its own.")
    if call.chosen.sum(dim=1).float().std() < 1:
        raise Wrong("Each text has the same number of blanks: choose each word on its own, with chance 0.15.")


def _eighty_ten_ten(call: _Call) -> None:
    blank, other, kept = call.shares
    # one in 46 random words is the word itself
    if abs(blank - 0.8) < 0.015 and abs(other - 0.1) < 0.012 and abs(kept - 0.1) < 0.012:
        return
    said = f"Of the chosen {blank:.0%} are [MASK], {other:.0%} another word, {kept:.0%} unchanged"
    if blank > 0.985:
        raise Wrong(f"{said}: this hides all of them; it must be 80, 10 and 10 %.")
    if other < 0.005:
        raise Wrong(f"{said}: the random words are missing, 10 %.")
    if kept < 0.02:
        raise Wrong(f"{said}: none stays as it is, 10 % should.")
    if abs(blank - 0.72) < 0.015 and abs(other - 0.1) < 0.012:
        raise Wrong(f"{said}: random words overwrite some blanks; the three parts must not overlap.")
    if abs(blank - 0.8) < 0.015 and abs(other - 0.02) < 0.012:
        raise Wrong(f"{said}: of the 20 % left, half become random words: 10 % of all that were chosen.")
    raise Wrong(f"{said}; expected 80, 10 and 10 %.")


def _every_word_may_come(call: _Call) -> None:
    changed = call.chosen & (call.inputs != MASK) & (call.inputs != call.ids)
    drawn = call.inputs[changed].bincount(minlength=WORDS)
    missing = sorted(word for word in set(range(WORDS)) - {MASK, *SPECIAL} if drawn[word] == 0)
    if drawn.count_nonzero() == 1:
        raise Wrong("All random words are the same one: draw a new one for each token.")
    if missing:
        raise Wrong(
            f"As a random word, {missing[0]} never comes: draw from all numbers 0 to {WORDS - 1} but [MASK] = {MASK} "
            f"and the special ones {SPECIAL}."
        )
    if drawn.max() > 3 * drawn[drawn > 0].float().mean():
        raise Wrong("Some random words come far more often than others: all ordinary words are equally likely.")


def _many_words(answer: Callable) -> None:
    """All shares are read off one long text: so an answer that goes from token to token is in time too."""
    call = _call(answer, _text(3, 3000, 40), seed=3)
    for check in (_only_words, _independent, _fifteen, _eighty_ten_ten, _every_word_may_come):
        check(call)


def _each_on_its_own(answer: Callable) -> None:
    counts = {int(_call(answer, _text(4, 12), seed=seed).chosen.sum()) for seed in range(6)}
    if len(counts) == 1:
        raise Wrong(f"Each call chooses exactly {counts.pop()} words: choose each on its own, with chance 0.15.")


def _other_numbers(answer: Callable) -> None:
    generator = torch.Generator().manual_seed(5)
    for mask_id, vocabulary, special in ((3, 30, range(3)), (0, 20, ()), (1, 9, (8, 2, 5))):
        call = _call(answer, torch.randint(vocabulary, (2000,), generator=generator), mask_id, vocabulary, special)
        try:
            _targets_are_the_words(call)
            _only_words(call)
        except Wrong as error:
            given = f"mask_id = {mask_id}, vocabulary = {vocabulary} and special = {special}"
            raise Wrong(f"{error} This call has {given}.") from None


def _blank_is_no_word(answer: Callable) -> None:
    """With two words only, a [MASK] that is drawn as a random word shows."""
    blank, *_ = _call(answer, torch.tensor([2, 4]).repeat(24_000), 1, 6, (0, 3, 5), seed=6).shares
    if blank > 0.82:
        raise Wrong(
            f"With only two ordinary words {blank:.0%} of the chosen are [MASK], not 80 %: it is drawn as a random "
            "word too, and it is none."
        )


mask = Exercise(
    id="8.1",
    title="masking",
    reference=mask_tokens,
    checks=[
        signature_check(mask_tokens), _two_tensors, _ids_kept, _first_look, _follows_the_generator, _many_words,
        _each_on_its_own, _other_numbers, _blank_is_no_word,
    ],
    crashes=[
        ("values to unpack", "`ids` may have any shape, one dimension or three: use `ids.shape` as a whole."),
        ("tuple index out of range", "`ids` may have any shape, one dimension or three: use `ids.shape` as a whole."),
        ("Dimension out of range", "`ids` may have any shape, one dimension or three: name no dimension."),
        ("operand type(s) for +", "`special` may be a tuple, a range, or empty: `[*special, mask_id]` takes them all."),
        ("can only concatenate", "`special` may be a tuple, a range, or empty: `[*special, mask_id]` takes them all."),
        ("out of bounds", "Numbers of words go from 0 to vocabulary − 1."),
        ("Boolean value of Tensor", "`special` is a handful of numbers: `torch.isin(ids, torch.tensor([...]))`."),
    ],
    nudge="Two random numbers for each token: one says whether it is chosen (< 0.15), one what becomes of it.",
    sketch="""
        ordinary = tokens that are neither special nor [MASK]
        chosen   = ordinary and a random number < 0.15
        fate     = another random number for each token
        inputs   = [MASK] where chosen and fate < 0.8
                   a random ordinary word where chosen and fate ≥ 0.9
                   the token itself elsewhere
        targets  = the token where chosen, −100 elsewhere
        """,
)  # fmt: skip

# --- 8.2 ---

CLS, SEP, PAD = 101, 102, 0


def _pairs(*lengths: tuple[int, int], pad: int = PAD, cls: int = CLS, sep: int = SEP) -> tuple:
    generator = torch.Generator().manual_seed(len(lengths))
    firsts, seconds = (
        [torch.randint(5, 99, (pair[side],), generator=generator) for pair in lengths] for side in (0, 1)
    )
    return firsts, seconds, cls, sep, pad


def _pair_cases() -> list[tuple]:
    cases = [
        _pairs((2, 3), (4, 2), (1, 1)),
        _pairs((3, 1)),
        _pairs((1, 4), (5, 5), (2, 6), (3, 3), pad=1, cls=2, sep=3),
        _pairs((6, 1), (1, 2), pad=7),
    ]
    cases[3][0][0][2] = 7  # a sentence may hold the number that fills up
    return cases


def _pair_types(answer: Callable) -> None:
    got = answer(*_pair_cases()[0])
    if isinstance(got, tuple) and len(got) == 3 and all(isinstance(x, Tensor) for x in got):
        ids, mask, segments = got
        if segments.dtype == torch.bool != mask.dtype:
            raise Wrong("Mask and segments have changed places: `return ids, mask, segments`.")
        _whole_numbers("ids", ids)
        if mask.dtype != torch.bool:
            raise Wrong(f"The mask must hold True and False (torch.bool); got {mask.dtype}.")
        if segments.dtype != torch.int64:
            raise Wrong(f"Segments are whole numbers, 0 and 1, for an embedding: `.long()`; got {segments.dtype}.")


def _pad_by_default(answer: Callable) -> None:
    firsts, seconds, cls, sep, _ = _pair_cases()[0]
    if not torch.equal(answer(firsts, seconds, cls, sep)[0], pair_inputs(firsts, seconds, cls, sep)[0]):
        raise Wrong("Without a fifth argument texts are filled up with 0: `pad=0` in the first line.")


def _sep_as_a_word(answer: Callable) -> None:
    """Mask and segments depend on the lengths of the sentences only."""
    firsts, seconds, *more = _pair_cases()[0]
    _, *before = answer(firsts, seconds, *more)
    firsts, seconds, *more = _pair_cases()[0]
    firsts[0][0] = seconds[1][0] = SEP
    _, *after = answer(firsts, seconds, *more)
    if not all(map(torch.equal, before, after)):
        raise Wrong(
            "Put the number `sep` into a sentence, and mask or segments change: do not look for [SEP], go by the "
            "lengths of the sentences."
        )


_pair_checks = Ladder(
    pair_inputs,
    _pair_cases(),
    returns=["ids", "mask", "segments"],
    properties=[_pad_by_default, _sep_as_a_word],
    differentiable=False,
    slips=edits(
        pair_inputs,
        """
        len(first) + 2 → len(first) + 1 · The first [SEP] still belongs to the first sentence: its segment is 0.
        after & mask → after & (places + 1 < mask.sum(dim=1, keepdim=True))
        · The last [SEP] belongs to the second sentence: its segment is 1.
        (after & mask) → after · What is filled up has segment 1; by convention it is 0 there.
        (after & mask) → (~after) · Segments are swapped: 0 for the first sentence, 1 for the second.
        (after & mask) → mask · The segments are 1 wherever there is text; the first sentence is 0, the second 1.
        (after & mask) → (0 * ids) · All segments are 0: those of the second sentence and its [SEP] are 1.
        return ids, mask → return ids, ~mask
        · The mask is turned round: True where there is text, False where it is filled up.
        return ids, mask → return ids, torch.ones_like(mask)
        · The mask is True everywhere: what is filled up must be False.
        return ids, mask → return ids, places + 1 < mask.sum(dim=1, keepdim=True)
        · The last [SEP] is hidden: it is text too, a place where heads like to look.
        return ids, mask → return ids, mask & (places > 0) · [CLS] is hidden: the model must be able to look at it.
        return ids, mask → return ids, mask & (ids != sep) · The [SEP]s are hidden: they are text too.
        return ids, mask → return ids, mask & (ids != sep) & (ids != cls)
        · [CLS] and the [SEP]s are hidden: they are text too.
        return ids, mask → return ids, ids != pad
        · The mask is False at a word: a sentence may hold the number `pad`; go by the lengths of the sentences.
        (after & mask).long() → (after & mask).long().masked_fill(~mask, pad)
        · The segments are filled up with `pad`: fill them up with 0.
        (rows, → ([*rows, ids.new_zeros(max(map(len, firsts)) + max(map(len, seconds)) + 3)], ;
        rows = [ → ids = firsts[0]; rows = [ ; padding_value=pad) → padding_value=pad)[:-1]
        · The longest first and the longest second need not be one pair: the longest row is enough.
        , padding_value=pad → · `pad` is not used: fill up with it, which is not always 0.
        padding_value=pad → padding_value=pad, padding_side="left"
        · The texts are filled up at the front: fill them up at the end.
        for first, second in → for second, first in · The two sentences have changed places: the first comes first.
        rows = [ → cls, sep = sep, cls; rows = [ · [CLS] and [SEP] have changed places: a text begins with [CLS].
        second, first.new_tensor([sep]) → second
        · The last [SEP] is missing: each of the two sentences ends with one (S3 drops it).
        first.new_tensor([sep]), second → second
        · There is no [SEP] between the sentences: where does the second begin?
        first.new_tensor([cls]), → · [CLS] is missing at the front: its vector will stand for the pair.
        second, first → first.new_tensor([cls]), second, first
        · The second sentence has a [CLS] of its own: one for the pair is enough.
        first.new_tensor([sep]), second, first.new_tensor([sep]) → second
        · Both [SEP] are missing: each of the two sentences ends with one.
        """,
    ),
)

pair = Exercise(
    id="8.2",
    title="a pair's segments and mask",
    reference=pair_inputs,
    checks=_pair_checks.extended(_pair_types, before="types"),
    crashes=[
        ("expected sequence of equal length", "The texts differ in length: fill them up first, to the longest."),
        ("stack expects each tensor", "The texts differ in length: fill them up first, to the longest."),
        ("zero-dimensional", "`torch.cat` joins tensors of one dimension: `torch.tensor([cls])`, in brackets."),
        ("not iterable", "A single number is no row: `torch.tensor([cls])`, in brackets."),
        ("expected Tensor as element", "`torch.cat` joins tensors: `torch.tensor([cls])`."),
    ],
    nudge="Make each row with `torch.cat`; `pad_sequence` fills up. Mask and segments are comparisons of places.",
    sketch="""
        rows = for each pair: [CLS] first [SEP] second [SEP], joined
        ids = rows, filled up at the end with pad                     (pairs, longest)
        places = 0, 1, …, longest − 1
        mask = places below the row's length                          (pairs, longest)
        segments = 1 at places from len(first) + 2 on, inside the mask
        """,
)

# --- 8.3 ---


def _head_cases() -> list[tuple]:
    cases = []
    for seed, (shape, d, classes) in enumerate([((2, 3), 4, 5), ((4,), 3, 2), ((3, 2), 6, 4)]):
        generator = torch.Generator().manual_seed(seed)
        hidden, weight, bias = (
            torch.randn(size, generator=generator) for size in ((*shape, d), (classes, d), (classes,))
        )
        targets = torch.randint(classes, shape, generator=generator)
        if seed != 1:
            targets[..., -1][1:] = IGNORED
        cases.append((hidden, weight, bias, targets))
    return cases


def _padding_says_nothing(answer: Callable) -> None:
    hidden, weight, bias, targets = _head_cases()[0]
    other = hidden + (targets == IGNORED)[..., None]
    first, second = (answer(h, weight, bias, targets)[1] for h in (hidden, other))
    if not torch.allclose(first, second, atol=1e-6):
        raise Wrong("Change the vectors of padding, and the loss moves: targets of −100 must not count.")


def _equals_torch(answer: Callable) -> None:
    generator = torch.Generator().manual_seed(9)
    hidden, weight, bias = (torch.randn(size, generator=generator) for size in ((5, 6), (3, 6), (3,)))
    for targets in (torch.tensor([0, IGNORED, 2, 1, IGNORED]), torch.tensor([0, 1, 2, 2, 2])):
        want = F.cross_entropy(F.linear(hidden, weight, bias), targets)
        got = answer(hidden, weight, bias, targets)[1]
        if not torch.allclose(got, want, atol=1e-5):
            raise Wrong(f"PyTorch's own cross-entropy gives {want:.4f} here; yours gives {got:.4f}.")


def _scores_far_apart(answer: Callable) -> None:
    weight, bias = torch.tensor([[1.0], [-1.0]]), torch.zeros(2)
    loss = float(answer(torch.tensor([[100.0]]), weight, bias, torch.tensor([1]))[1])
    if not abs(loss - 200) < 1e-3:  # so, as it may be NaN
        why = (
            "something on the way cuts it off"
            if loss < torch.inf
            else "`exp` overflows, or softmax rounds to 0, before the logarithm is taken"
        )
        raise Wrong(
            f"With scores 100 and −100 and target 1 the loss is 200; yours is {loss:.3g}: {why}. Use `log_softmax`, "
            "and add nothing."
        )


head = Exercise(
    id="8.3",
    title="a task's layer and its loss",
    reference=classify,
    checks=Ladder(
        classify,
        _head_cases(),
        returns=["scores", "loss"],
        properties=[_padding_says_nothing, _equals_torch, _scores_far_apart],
        slips=[
            *edits(
                classify,
                """
                targets != IGNORED → targets == targets ; targets[counted] → targets[counted].clamp(min=0)
                · Padding counts, as if its class were 0: leave out the targets of −100.
                .mean() → .sum() / targets.numel()
                · The sum is right, but it is divided by all places: divide by those that count.
                .mean() → .sum() · This is the sum of the losses; take the mean over the places that count.
                targets != IGNORED → targets > 0
                · Targets of 0 are left out: 0 is a class as any other, only −100 does not count.
                -log_p → log_p · The sign is turned: the loss is *minus* the log of the probability.
                .mean() → .mean() / 0.6931471805599453
                · The logarithm is taken to base 2; the loss takes the natural one.
                .mean() → .exp().mean().log()
                · This is minus the log of the mean probability. The logarithm comes before the mean.
                return scores, -log_p.gather(-1, targets[counted][:, None]).mean() →
                return -log_p.gather(-1, targets[counted][:, None]).mean(), scores
                · Return the scores first, then the loss.
                + bias → · The bias is missing: W h + b.
                + bias → - bias · The bias is subtracted: W h + b.
                hidden @ weight.T + bias → (hidden @ weight.T + bias).softmax(dim=-1)
                · Scores are returned after a softmax: return them as they are, and let the loss take the softmax.
                hidden @ weight.T + bias → (hidden @ weight.T + bias).log_softmax(dim=-1)
                · Scores are returned as log-probabilities: return W h + b as it is.
                hidden @ weight.T + bias → torch.tanh(hidden @ weight.T + bias)
                · There is no tanh in this layer: W h + b.
                scores[counted].log_softmax(dim=-1) → scores.log_softmax(dim=0)[counted]
                · The softmax runs over the batch: take it over the classes, the last dimension.
                scores[counted].log_softmax(dim=-1) → scores.log_softmax(dim=1)[counted]
                · The softmax runs over the tokens (dim=1): take it over the classes, the last dimension, dim=-1.
                scores[counted].log_softmax(dim=-1) → scores.log_softmax(dim=-2)[counted]
                · The softmax runs over the last dimension but one: take it over the classes, the last, dim=-1.
                scores[counted].log_softmax(dim=-1) → scores.flatten(0, -2).log_softmax(dim=0).view_as(scores)[counted]
                · The softmax runs over all tokens of the batch: take it over the classes, the last dimension, dim=-1.
                log_softmax(dim=-1) → log_softmax(dim=0)
                · The softmax runs over the tokens that count: take it over the classes, the last dimension, dim=-1.
                .log_softmax(dim=-1) →
                · The log-softmax is missing: the loss is −log p, and p is the softmax of the scores.
                log_softmax → softmax · The logarithm is missing: the loss is −log p of the target.
                log_softmax → softmax(dim=-1).log_softmax
                · The softmax is taken twice: `cross_entropy` and `log_softmax` take it already.
                """,
            ),
            (
                lambda hidden, weight, bias, targets: (
                    hidden @ weight.T + bias,
                    torch.stack([classify(h, weight, bias, t)[1] for h, t in zip(hidden, targets, strict=True)]).mean(),
                ),
                "Each text's mean is taken first: take one mean over all places that count, of all texts together.",
            ),
        ],
    ),
    crashes=[
        ("values to unpack", "`hidden` may be (batch, d) too: name no dimensions."),
        ("index -100 is out of bounds", "Some targets are −100, which is no class: leave those out first."),
        ("out of bounds", "Some targets are −100, which is no class: leave those out first."),
        ("mat1 and mat2", "`weight` is (classes, d): the scores are `hidden @ weight.T + bias`."),
        ("size mismatch", "`weight` is (classes, d): the scores are `hidden @ weight.T + bias`."),
        ("Expected target size", "`cross_entropy` wants rows: flatten both, or choose `scores[targets != -100]`."),
        ("same number of dimensions", "`gather` wants an index with a last dimension too: `targets[..., None]`."),
        (
            "must match the size of tensor",
            "These two do not fit entry by entry: `hidden @ weight.T` is (…, classes), as the bias.",
        ),
    ],
    nudge="Scores are one matrix product. Choose those whose target is not −100; log-softmax; read off the targets.",
    sketch="""
        scores  = hidden times weight, turned, plus bias        (…, classes)
        counted = targets that are not −100                     (…), True and False
        log_p   = log-softmax of scores[counted]                (targets that count, classes)
        return scores, minus the mean of log_p at the targets
        """,
)

# --- 8.4 ---

WORKED = torch.tensor([[1.0, 4, 0]]), torch.tensor([[5.0, 1, 3]]), torch.ones(1, 3, dtype=torch.bool)


def _span_cases() -> list[tuple]:
    cases = []
    sizes = [(3, 7, 3), (1, 5, 5), (4, 9, 2), (6, 6, 1), (8, 12, 4)]
    for seed, (batch, length, longest) in enumerate(sizes):
        generator = torch.Generator().manual_seed(seed)
        start, end = (3 * torch.randn(batch, length, generator=generator) for _ in range(2))
        inside = torch.zeros(batch, length, dtype=torch.bool)
        for row, first in enumerate(torch.randint(1, length - 2, (batch,), generator=generator).tolist()):
            inside[row, first : length - 1 - row % 2] = True
        cases.append((start, end, inside, longest))
    start, end = (torch.randn(2, 16, 3, generator=torch.Generator().manual_seed(9))).unbind()
    everywhere = torch.ones(16, 3, dtype=torch.bool)
    return [*cases, (start, end, everywhere, 20), *((*WORKED, longest) for longest in (2, 1))]


def _each_alone(start, end, inside, longest):
    return torch.stack([s.masked_fill(~inside, -torch.inf).argmax(dim=1) for s in (start, end)], dim=1)


def _end_moved(start, end, inside, longest):
    first, last = _each_alone(start, end, inside, longest).unbind(dim=1)
    return torch.stack([first, last.clamp(min=first, max=first + longest - 1)], dim=1)


def _start_first(start, end, inside, longest):
    """The best start, then the best end that it allows."""
    first = start.masked_fill(~inside, -torch.inf).argmax(dim=1, keepdim=True)
    places = torch.arange(start.shape[1])
    allowed = inside & (places >= first) & (places - first < longest)
    return torch.cat([first, end.masked_fill(~allowed, -torch.inf).argmax(dim=1, keepdim=True)], dim=1)


def _end_first(start, end, inside, longest):
    """The best end, then the best start that it allows: the same, read from the back."""
    found = _start_first(end.flip(1), start.flip(1), inside.flip(1), longest)
    return start.shape[1] - 1 - found.flip(1)


def _span_type(answer: Callable) -> None:
    got = answer(*_span_cases()[0])
    if isinstance(got, Tensor) and got.is_floating_point():
        if (got == got.floor()).any():  # hardly ever true of scores
            raise Wrong(f"Places are whole numbers, torch.int64; got {got.dtype}: divide with `//`.")
        raise Wrong("Expected places, whole numbers; got scores: `argmax` tells where the largest is.")
    if isinstance(got, Tensor) and got.dtype != torch.int64:
        raise Wrong(f"Places must be torch.int64; got {got.dtype}.")
    if isinstance(got, tuple) and len(got) == 2 and all(isinstance(x, Tensor) for x in got):
        raise Wrong("Two tensors came back: put first and last side by side, `torch.stack([first, last], dim=1)`.")


def _places_exist(answer: Callable) -> None:
    for start, *more in _span_cases():
        last = int(answer(start, *more).max())
        if last >= start.shape[1]:
            raise Wrong(
                f"A text of {start.shape[1]} tokens has no place {last}: take the `argmax` of each text's own table, "
                "flattened with `flatten(1)`."
            )


def _worked_example(answer: Callable) -> None:
    for longest, want in ((2, (1, 2)), (1, (0, 0))):
        got = tuple(answer(*WORKED, longest)[0].tolist())
        if got != want:
            raise Wrong(f"In the worked example with longest {longest} the best span is {want}; yours is {got}.")


def _very_small_sums(answer: Callable) -> None:
    """Sums about −2 million, at least 10,000 apart: a number in the place of −∞ shows."""
    generator = torch.Generator().manual_seed(0)
    start, end = (torch.stack([torch.randperm(7, generator=generator) for _ in range(8)]).float() for _ in range(2))
    start = 8 * start  # so no two sums are the same
    inside = torch.ones(8, 7, dtype=torch.bool)
    inside[:, 0] = inside[:, -1] = False
    want = best_spans(start, end, inside, 2)
    near = answer(start / 1000, end / 1000, inside, 2)
    far = answer((start - 100) * 10_000, (end - 100) * 10_000, inside, 2)
    if torch.equal(near, want) and not torch.equal(far, want):
        raise Wrong(
            "Sums may be very small, and far apart: pairs that are not allowed need −∞, not some number (and a search "
            "for the best begins there)."
        )


ZEROS = "What is not allowed has the score 0, and wins over sums below 0: use −∞ (`triu` and `tril` leave zeros, too)."
BACKWARDS = "The last place may come before the first: only pairs with first ≤ last are answers."
MOVED = "Start and end are chosen each on its own, then the end is moved: another pair may be better. Score pairs."

_span_checks = Ladder(
    best_spans,
    _span_cases(),
    returns=["spans"],
    properties=[_places_exist, _worked_example, _very_small_sums],
    differentiable=False,
    slips=[
        (_each_alone, "Start and end are chosen each on its own: the end may come before the start. Score pairs."),
        (
            _start_first,
            "The best start is taken first, then an end: a weaker start with a better end is missed. Score pairs.",
        ),
        (
            _end_first,
            "The best end is taken first, then a start: a weaker end with a better start is missed. Score pairs.",
        ),
        (
            lambda *given: _each_alone(*given).sort(dim=1).values,
            "Start and end are chosen each on its own and then sorted: a start is no end. Score pairs.",
        ),
        (_end_moved, MOVED),
        (lambda start, end, inside, longest: _end_moved(start, end, inside, start.shape[1]), MOVED),
        *edits(
            best_spans,
            f"""
            -torch.inf → 0.0
            · Sums below 0 lose to 0: give pairs that are not allowed −∞ (and begin a search for the best there).
            length = → start, end, inside = start * inside, end * inside, inside | True; length = · {ZEROS}
            length = → start, end, inside = start * inside, end * inside, inside | True; length = ; -torch.inf → 0.0
            · {ZEROS}
            flatten(1) → masked_fill((further < 0) | (further >= longest), 0.0).flatten(1) · {ZEROS}
            flatten(1) → masked_fill(~allowed & inside[:, :, None] & inside[:, None, :], 0.0).flatten(1) · {ZEROS}
            [best // length, best % length], dim=1) →
            [best // length, best % length], dim=1) - inside.int().argmax(dim=1, keepdim=True)
            · Places are counted from the front of the row, not of the passage.
            inside[:, :, None] & inside[:, None, :] → (inside[:, :, None] | inside[:, None, :])
            · One end inside the passage is not enough: both must be, so join the two with `&`.
            start[:, :, None] + end[:, None, :] → start[:, None, :] + end[:, :, None]
            · Start and end have changed places: `start[:, :, None] + end[:, None, :]` is (batch, first, last).
            best % length → best % length - best // length + 1
            · First place and number of tokens came back: return the first and the last place.
            further < longest → further <= longest · One token too long: from place i to j there are j − i + 1 tokens.
            further < longest → further + 1 < longest
            · One token too short: from place i to j there are j − i + 1 tokens.
            further >= 0 → further > 0 · An answer may be a single token: first and last may be the same place.
            & (further < longest) → · `longest` is not used: answers get too long.
            & (further >= 0) → · {BACKWARDS}
            (further >= 0) & (further < longest) → (further.abs() < longest) · {BACKWARDS}
            inside[:, :, None] & inside[:, None, :] → (inside | True)[:, None]
            · `inside` is not used: the answer must lie in the passage, not in the question or the padding.
            & inside[:, None, :] → · The last place may lie outside the passage: both ends must be inside.
            inside[:, :, None] & → · The first place may lie outside the passage: both ends must be inside.
            inside[:, :, None] & inside[:, None, :] → ~inside[:, :, None] & ~inside[:, None, :]
            · `inside` is turned round: it is True in the passage, where answers are.
            + end → * end · The scores are multiplied: they are logarithms, so to speak, and are added.
            + end → + 0 * end · The scores of the end are not used.
            (start[:, :, None] + → (0 * start[:, :, None] + · The scores of the start are not used.
            best // length, best % length → best % length, best // length
            · First and last have changed places: the quotient is the row, the remainder the column.
            best % length → best % length + 1
            · The last place is counted with: return it itself, not the one after it.
            """,
        ),
    ],
)

spans = Exercise(
    id="8.4",
    title="the best span",
    reference=best_spans,
    checks=_span_checks.extended(_span_type, before="types").extended(_span_checks.devices, before="finite"),
    crashes=[
        *(
            (part, "`longest` may be more than the text has tokens: `min(longest, length)`.")
            for part in ("non-zero size", "tensor a (0)", "tensor b (0)")
        ),
        ("Boolean value of Tensor", "Conditions are joined with `&`, entry by entry, each in brackets."),
        (
            "must match the size of tensor",
            "A sum for each pair: `start[:, :, None] + end[:, None, :]` is (batch, first, last).",
        ),
    ],
    nudge="A table of sums for each text, (batch, first, last); −∞ where a pair is not allowed; then `argmax`.",
    sketch="""
        sums    = start as a column + end as a row                  (batch, first, last)
        allowed = first inside & last inside & 0 ≤ last − first < longest
        sums    = −∞ where not allowed
        best    = argmax of each flattened table                    (batch)
        return best // length and best % length, side by side       (batch, 2)
        """,
)

# --- 8.5 ---


def _encoder(layers: int = 3, **more: bool) -> Bert:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Bert(BertShape(d=8, layers=layers, heads=2, d_ff=12, vocabulary=11, longest=6, **more))


def _part(name: str, layers: int) -> str:
    """Where a parameter lies: embeddings, pooler, last norm, or block 1, 2, …"""
    if name.startswith("stack.blocks."):
        return f"block {int(name.split('.')[2]) + 1} of {layers}"
    return {"pooler": "the pooler", "stack": "the norm after the last block"}.get(name.split(".")[0], "the embeddings")


def _switched(answer: Callable, encoder: Bert, layers: int) -> set[str]:
    """The parts that learn after the answer's call."""
    answer(encoder, layers)
    if any("requires_grad" in vars(module) for module in encoder.modules()):
        raise Wrong("`module.requires_grad = …` sets no parameter: a module needs `requires_grad_(…)`, with a `_`.")
    deep = len(encoder.stack.blocks)
    return {_part(name, deep) for name, p in encoder.named_parameters() if p.requires_grad}


def _after(answer: Callable, encoder: Bert, layers: int, what: str = "") -> None:
    """The answer's flags compared with the reference's; the first that differs, in words."""
    _switched(answer, encoder, layers)
    learns = {name: p.requires_grad for name, p in encoder.named_parameters()}
    fine_tune(encoder, layers)
    for name, p in encoder.named_parameters():
        if p.requires_grad != learns[name]:
            where = _part(name, len(encoder.stack.blocks))
            verb = "is" if where != "the embeddings" else "are"
            found, want = ("learning", "frozen") if learns[name] else ("frozen", "learning")
            raise Wrong(f"With layers = {layers}{what}, {where} {verb} {found} and should be {want} ({name}).")


def _gives_a_count(answer: Callable) -> None:
    got = answer(_encoder(), 1)
    if not isinstance(got, Integral) or isinstance(got, bool):
        raise Wrong(f"Expected the number of parameters that may change, a whole number; got {describe(got)}.")


def _weights_kept(answer: Callable) -> None:
    encoder = _encoder()
    before = {name: w.clone() for name, w in encoder.state_dict().items()}
    for layers in (0, 1, 3):
        answer(encoder, layers)
        after = encoder.state_dict()
        if list(after) != list(before) or not all(torch.equal(after[name], w) for name, w in before.items()):
            raise Wrong("The weights are no longer the same: freezing only says which may change.")


def _all_frozen(answer: Callable) -> None:
    encoder = _encoder()
    blocks = [part for part in _switched(answer, encoder, 0) if part.startswith("block")]
    if all(p.requires_grad for p in encoder.parameters()):
        raise Wrong("With layers = 0 nothing is frozen: `requires_grad` must be False for every parameter.")
    if len(blocks) == 3:
        raise Wrong(
            "With layers = 0 a block learns: note that `blocks[-0:]` are all blocks; count from the front instead."
        )
    if blocks:
        raise Wrong(f"With layers = 0 {blocks[0]} learns, one too many: where does the first that learns stand?")
    _after(answer, _encoder(), 0)


def _some_learn(answer: Callable) -> None:
    learning = _switched(answer, _encoder(), 1)
    if "block 1 of 3" in learning and "block 3 of 3" not in learning:
        raise Wrong("The lowest block learns and the highest is frozen: the upper ones are the last in the list.")
    _after(answer, _encoder(), 1)
    _after(answer, _encoder(), 2)
    _after(answer, _encoder(5), 2)
    _after(answer, _encoder(pre_norm=True), 2)


def _all_learn(answer: Callable) -> None:
    _after(answer, _encoder(), 3)
    _after(answer, _encoder(1), 1)
    _after(answer, _encoder(pre_norm=True), 3)


def _no_pooler(answer: Callable) -> None:
    for layers in (0, 2, 3):
        _after(answer, _encoder(pooler=False), layers, " and no pooler")


def _back_and_forth(answer: Callable) -> None:
    for encoder in (_encoder(), _encoder(4)):
        for layers in (0, 3, 1, 2, 0):
            _after(answer, encoder, layers, " after other calls (what was frozen must be thawed, and the other way)")


def _the_count(answer: Callable) -> None:
    for deep, pooler, layers in ((3, True, 2), (3, True, 0), (3, True, 3), (2, False, 1)):
        want, encoder = fine_tune(_encoder(deep, pooler=pooler), layers), _encoder(deep, pooler=pooler)
        got = answer(encoder, layers)
        if got == want:
            continue
        if got == len([p for p in encoder.parameters() if p.requires_grad]):
            raise Wrong("This counts tensors; count the numbers in them, `p.numel()`.")
        if got == sum(p.numel() for p in encoder.parameters()):
            raise Wrong("This counts all parameters (or it counts before it freezes); count those that may change.")
        if got == sum(p.numel() for p in encoder.parameters() if not p.requires_grad):
            raise Wrong("This counts what is frozen; count what may change.")
        raise Wrong(f"With layers = {layers}, {want} numbers may change; it returned {got}.")


switch = Exercise(
    id="8.5",
    title="frozen or fine-tuned",
    reference=fine_tune,
    checks=[
        signature_check(fine_tune), _gives_a_count, _weights_kept, _all_frozen, _some_learn, _all_learn, _no_pooler,
        _back_and_forth, _the_count,
    ],
    crashes=[
        ("'NoneType' object has no attribute", "Some encoders have no pooler: ask `encoder.pooler is not None` first."),
        ("'bool' object is not callable", "`requires_grad` is a flag; the method that sets it ends with `_`."),
    ],
    nudge="`module.requires_grad_(flag)` sets all parameters of a module. First everything, then the upper blocks.",
    sketch="""
        everything: learns only if layers is the number of blocks
        the last `layers` blocks: learn           (blocks[number of blocks − layers:])
        the pooler, if there is one: learns if layers > 0
        return the numbers in all parameters with requires_grad, summed up
        """,
)  # fmt: skip

EXERCISES = [mask, pair, head, spans, switch]
