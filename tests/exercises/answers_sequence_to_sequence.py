"""The bank of lesson 07. An answer uses only what the notebook has imported, or imports it itself."""
# ruff: noqa: F811

import math

import torch
from bank import Bank
from torch import nn
from torch.nn import functional as F

BANK = Bank()
wrong, right = BANK.wrong, BANK.right

# What a mutant of the library's piece changes, as its new line → why it is no mistake.
LAST = "of two dimensions, the last is dimension 1; of one number, the first is the last"
BAD_INPUT = "no references, no sentences, another number of references: the exercise does not ask for it"
MESSAGE = "what the message of a refused input says"
ORDER = "sums and maxima are the same in any order"
NAMES = ["candidates", "references", "n", "pairs", "logarithms", "size", "penalty", "right", "all_of_them", "pair"]
COUNTED = "raise ValueError(f'There are {%s} candidates, but references for {%s}.')"
NEEDED = "raise ValueError(f'BLEU needs at least one sentence and n ≥ 1; got {%s} and n = {%s}.')"
OURS, THEIRS = "len(candidates)", "len(references)"
SENTENCES = [COUNTED % (f"len({name})", THEIRS) for name in NAMES if name != "candidates"]
SENTENCES += [COUNTED % (OURS, f"len({name})") for name in NAMES if name != "references"]
SENTENCES += [NEEDED % (f"len({name})", "n") for name in NAMES if name != "candidates"]
SENTENCES += [NEEDED % (OURS, name) for name in NAMES if name != "n"]
SENTENCES += [COUNTED % ("candidates", THEIRS), COUNTED % (OURS, "references"), NEEDED % ("candidates", "n")]
MATCHED = "right, all_of_them = map(sum, zip(*(clipped_matches(*pair, size) for pair in pairs), strict=%d))"
EQUIVALENT = {
    "7.1": {},
    "7.2": {},
    "7.3": {
        "log_p = logits[counted].log_softmax(dim=1)": LAST,
        "right = log_p.gather(1, targets[counted][:, None])[:, 0]": LAST,
        "right = log_p.gather(-1, targets[counted][:, None])[:, -1]": LAST,
        "return -((1 - epsilon) * right + epsilon * log_p.mean(dim=1)).mean()": LAST,
    },
    "7.4": {
        "without if not references: / "
        "raise ValueError('BLEU needs at least one reference for each candidate; got none.')": BAD_INPUT,
        "raise 'BLEU needs at least one reference for each candidate; got none.'": BAD_INPUT,
        "if not n:": BAD_INPUT,
        "for reference in list(references)[::-1]:": ORDER,
    },
    "7.5": {
        **dict.fromkeys(SENTENCES, MESSAGE),
        (COUNTED % (OURS, THEIRS)).replace("ValueError(", "").replace(".')", ".'"): BAD_INPUT,
        (NEEDED % (OURS, "n")).replace("ValueError(", "").replace(".')", ".'"): BAD_INPUT,
        f"without if {OURS} != {THEIRS}: / {COUNTED % (OURS, THEIRS)}": BAD_INPUT,
        f"without if not candidates or n < 1: / {NEEDED % (OURS, 'n')}": BAD_INPUT,
        f"if {THEIRS} != {THEIRS}:": BAD_INPUT,
        f"if {OURS} != {OURS}:": BAD_INPUT,
        "if not references or n < 1:": BAD_INPUT,
        "if not n or n < 1:": BAD_INPUT,
        "if not candidates or n < 2:": BAD_INPUT,
        "if not candidates or n < 0:": BAD_INPUT,
        **{f"pairs = list(zip(candidates, references, strict={number}))": BAD_INPUT for number in (0, 2)},
        **{MATCHED % number: BAD_INPUT for number in (0, 2)},
        "for size in list(range(1, n + 1))[::-1]:": ORDER,
        "return 100 * penalty * math.exp(sum(logarithms) / size)": "after the loop, size is n",
    },
}


# --- 7.1 padding and causal mask: right -----------------------------------------------------------------------------


@right("7.1", "tril")
def target_mask(lengths, longest):
    behind = torch.ones(longest, longest, dtype=torch.bool, device=lengths.device).tril()
    true = torch.arange(longest, device=lengths.device)[None] < lengths[:, None]
    return behind[None, None] & true[:, None, None, :]


@right("7.1", "cell by cell")
def target_mask(lengths, longest):
    mask = torch.zeros(len(lengths), 1, longest, longest, dtype=torch.bool)
    for b, length in enumerate(lengths.tolist()):
        for query in range(longest):
            for key in range(longest):
                mask[b, 0, query, key] = key < length and key <= query
    return mask


@right("7.1", "the smaller of two limits")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    last = torch.minimum(places[None] + 1, lengths[:, None])
    return (places < last[..., None]).unsqueeze(1)


# --- 7.1 wrong ------------------------------------------------------------------------------------------------------


@wrong("7.1", "filled-up rows see themselves", says="The rule is the same for filled-up queries")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    true = places < lengths[:, None]
    seen = true[:, None, :, None] & (places <= places[:, None])
    return seen | (~true[:, None, :, None] & torch.eye(longest, dtype=torch.bool))


@wrong("7.1", "no heads", says="The place for the heads is missing")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    return (places < lengths[:, None])[:, None] & (places <= places[:, None])


@wrong("7.1", "ones and zeros", says="The mask must hold True and False")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    return ((places < lengths[:, None])[:, None, None] & (places <= places[:, None])).float()


@wrong("7.1", "minus infinity", says="This mask is to be added to scores")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    seen = (places < lengths[:, None])[:, None, None] & (places <= places[:, None])
    return torch.zeros(seen.shape).masked_fill(~seen, -math.inf)


@wrong("7.1", "lengths not turned", says="Bring the lengths to (batch, 1, 1, 1)")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    return (places < lengths)[:, None, None] & (places <= places[:, None])


@wrong("7.1", "and", says="Masks are joined with `&`, entry by entry, not with `and`")
def target_mask(lengths, longest):
    places = torch.arange(longest, device=lengths.device)
    true = (places < lengths[:, None])[:, None, None]
    behind = places <= places[:, None]
    return true and behind


@wrong("7.1", "cut at the lengths", says="There are as many lengths as texts")
def target_mask(lengths, longest):
    mask = torch.ones(longest, longest, dtype=torch.bool).tril()
    mask[:, lengths:] = False
    return mask[None, None]


# --- 7.2 cross-attention block: right -------------------------------------------------------------------------------


@right("7.2", "one line each")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(x + block.attention(x, None, mask))
    x = block.cross_norm(x + block.cross(x, memory, memory_mask))
    return block.feed_forward_norm(x + block.feed_forward(x))


@right("7.2", "in steps, the sum the other way round")
def decoder_block(x, memory, mask, memory_mask, block):
    own = block.attention(x, mask=mask)
    after = block.attention_norm(own + x)
    from_source = block.cross(after, memory=memory, mask=memory_mask)
    after = block.cross_norm(from_source + after)
    return block.feed_forward_norm(block.feed_forward(after) + after)


@right("7.2", "a loop over steps")
def decoder_block(x, memory, mask, memory_mask, block):
    steps = [
        (block.attention_norm, lambda x: block.attention(x, mask=mask)),
        (block.cross_norm, lambda x: block.cross(x, memory, memory_mask)),
        (block.feed_forward_norm, block.feed_forward),
    ]
    for norm, f in steps:
        x = norm(x + f(x))
    return x


# --- 7.2 wrong ------------------------------------------------------------------------------------------------------


@wrong("7.2", "source first", says="The source is looked at first")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.cross_norm(x + block.cross(x, memory, memory_mask))
    x = block.attention_norm(x + block.attention(x, mask=mask))
    return block.feed_forward_norm(x + block.feed_forward(x))


@wrong("7.2", "weights expected, too", says="An attention returns one thing")
def decoder_block(x, memory, mask, memory_mask, block):
    own, _ = block.attention(x, mask=mask)
    x = block.attention_norm(x + own)
    x = block.cross_norm(x + block.cross(x, memory, memory_mask))
    return block.feed_forward_norm(x + block.feed_forward(x))


# --- 7.3 label smoothing: right -------------------------------------------------------------------------------------


@right("7.3", "PyTorch's own")
def smoothed_loss(logits, targets, epsilon):
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=-100, label_smoothing=epsilon)


@right("7.3", "a soft target")
def smoothed_loss(logits, targets, epsilon):
    keep = targets != -100
    logits, targets = logits[keep], targets[keep]
    classes = logits.shape[-1]
    soft = F.one_hot(targets, classes) * (1 - epsilon) + epsilon / classes
    return -(soft * torch.log_softmax(logits, -1)).sum(-1).mean()


@right("7.3", "target by target")
def smoothed_loss(logits, targets, epsilon):
    losses = []
    for row, target in zip(logits.flatten(0, -2), targets.flatten().tolist(), strict=True):
        if target != -100:
            log_p = row - row.logsumexp(0)
            losses.append(-(1 - epsilon) * log_p[target] - epsilon / len(row) * log_p.sum())
    return torch.stack(losses).mean()


# --- 7.3 wrong ------------------------------------------------------------------------------------------------------


@wrong("7.3", "wrong classes only", says="ε is dealt out over the wrong words only")
def smoothed_loss(logits, targets, epsilon):
    keep = targets != -100
    logits, targets = logits[keep], targets[keep]
    soft = torch.full_like(logits, epsilon / (logits.shape[-1] - 1))
    soft = soft.scatter(-1, targets[:, None], 1 - epsilon)
    return -(soft * logits.log_softmax(-1)).sum(-1).mean()


@wrong("7.3", "fillers count as class 0", says="Targets of −100 count")
def smoothed_loss(logits, targets, epsilon):
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten().clamp(min=0), label_smoothing=epsilon)


@wrong("7.3", "log of softmax", says="softmax rounds to 0")
def smoothed_loss(logits, targets, epsilon):
    keep = targets != -100
    log_p = logits[keep].softmax(-1).log()
    right = log_p.gather(-1, targets[keep][:, None])[:, 0]
    return -((1 - epsilon) * right + epsilon * log_p.mean(-1)).mean()


@wrong("7.3", "log of softmax, kept above 0", says="something on the way cuts it off")
def smoothed_loss(logits, targets, epsilon):
    keep = targets != -100
    log_p = (logits[keep].softmax(-1) + 1e-12).log()
    right = log_p.gather(-1, targets[keep][:, None])[:, 0]
    return -((1 - epsilon) * right + epsilon * log_p.mean(-1)).mean()


@wrong("7.3", "three dimensions", says="any number of dimensions may come before the words")
def smoothed_loss(logits, targets, epsilon):
    b, t, words = logits.shape
    return F.cross_entropy(logits.reshape(b * t, words), targets.reshape(b * t), label_smoothing=epsilon)


@wrong("7.3", "softmax twice", says="The softmax is taken twice")
def smoothed_loss(logits, targets, epsilon):
    return F.cross_entropy(logits.softmax(-1).flatten(0, -2), targets.flatten(), label_smoothing=epsilon)


@wrong("7.3", "not flattened", says="The words are the last dimension here")
def smoothed_loss(logits, targets, epsilon):
    return nn.functional.cross_entropy(logits, targets, label_smoothing=epsilon)


@wrong("7.3", "right word set to 1 − ε", says="The right word gets 1 − ε alone")
def smoothed_loss(logits, targets, epsilon):
    keep = targets != -100
    log_p, targets = logits[keep].log_softmax(-1), targets[keep]
    soft = torch.full_like(log_p, epsilon / log_p.shape[-1])
    soft[torch.arange(len(targets)), targets] = 1 - epsilon
    return -(soft * log_p).sum(-1).mean()


@wrong("7.3", "sentence by sentence", says="This is the mean of the sentences' means")
def smoothed_loss(logits, targets, epsilon):
    keep = targets != -100
    log_p = logits.log_softmax(-1)
    right = log_p.gather(-1, targets.clamp(min=0)[..., None])[..., 0]
    losses = -((1 - epsilon) * right + epsilon * log_p.mean(-1)) * keep
    return (losses.sum(-1) / keep.sum(-1)).mean()


@wrong("7.3", "a row of targets as an index", says="The words are the last dimension")
def smoothed_loss(logits, targets, epsilon):
    log_p = logits.log_softmax(-1)
    losses = [-(1 - epsilon) * log_p[i][t] - epsilon * log_p[i].mean() for i, t in enumerate(targets)]
    return torch.stack(losses).mean()


# --- 7.4 clipped precision: right -----------------------------------------------------------------------------------


@right("7.4", "dictionaries")
def clipped_matches(candidate, references, n):
    def count(tokens):
        found = {}
        for i in range(len(tokens) - n + 1):
            gram = tuple(tokens[i : i + n])
            found[gram] = found.get(gram, 0) + 1
        return found

    ours, theirs = count(candidate), [count(reference) for reference in references]
    right = sum(min(times, max(other.get(gram, 0) for other in theirs)) for gram, times in ours.items())
    return right, sum(ours.values())


@right("7.4", "strings as n-grams")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return ["\t".join(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    ours = grams(candidate)
    right = sum(min(ours.count(g), max(grams(r).count(g) for r in references)) for g in set(ours))
    return right, len(ours)


@right("7.4", "a list of two")
def clipped_matches(candidate, references, n):
    from course_lib.measure.metrics import ngrams

    ours = ngrams(candidate, n)
    right = sum(min(times, max(ngrams(r, n)[gram] for r in references)) for gram, times in ours.items())
    return [right, max(0, len(candidate) - n + 1)]


@right("7.4", "Counter with zip")
def clipped_matches(candidate, references, n):
    from collections import Counter

    ours, most = Counter(zip(*(candidate[i:] for i in range(n)))), Counter()  # noqa: B905
    for reference in references:
        for gram, times in Counter(zip(*(reference[i:] for i in range(n)))).items():  # noqa: B905
            most[gram] = max(most[gram], times)
    return sum((ours & most).values()), sum(ours.values())


# --- 7.4 wrong ------------------------------------------------------------------------------------------------------


@wrong("7.4", "not clipped", says="Nothing is clipped")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    ours = grams(candidate)
    return sum(any(g in grams(r) for r in references) for g in ours), len(ours)


@wrong("7.4", "ratio", says="return the two counts")
def clipped_matches(candidate, references, n):
    right = sum(min(candidate.count(w), max(r.count(w) for r in references)) for w in set(candidate))
    return right / len(candidate)


@wrong("7.4", "lists in a set", says="A list cannot be counted")
def clipped_matches(candidate, references, n):
    ours = [candidate[i : i + n] for i in range(len(candidate) - n + 1)]
    return sum(any(g in r for r in references) for g in set(ours)), len(ours)


@wrong("7.4", "changes its list", says="It changes its input candidate in place: make a new list")
def clipped_matches(candidate, references, n):
    right, total = 0, len(candidate) - n + 1
    while len(candidate) >= n:
        right += any(candidate[:n] == r[i : i + n] for r in references for i in range(len(r)))
        candidate.pop(0)
    return right, total


@wrong("7.4", "references as a text", says="`references` is a list of references")
def clipped_matches(candidate, references, n):
    from course_lib.measure.metrics import ngrams

    most = ngrams(" ".join(references[0]), n)
    ours = ngrams(candidate, n)
    return (ours & most).total(), ours.total()


@wrong("7.4", "last n-gram left out", says="The last n-gram is left out")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n)]

    ours, theirs = grams(candidate), [grams(reference) for reference in references]
    return sum(min(ours.count(g), max(r.count(g) for r in theirs)) for g in set(ours)), len(ours)


@wrong("7.4", "a dictionary", says="Expected the right n-grams and all n-grams to be returned")
def clipped_matches(candidate, references, n):
    return {"right": 4, "all": 6}


# --- 7.5 BLEU: right ------------------------------------------------------------------------------------------------


@right("7.5", "all by hand")
def corpus_bleu(candidates, references, n=4):
    from collections import Counter

    product = 1.0
    for size in range(1, n + 1):
        right = total = 0
        for candidate, its_own in zip(candidates, references, strict=True):
            ours = Counter(tuple(candidate[i : i + size]) for i in range(len(candidate) - size + 1))
            for gram, times in ours.items():
                others = [sum(tuple(r[i : i + size]) == gram for i in range(len(r))) for r in its_own]
                right += min(times, max(others))
                total += times
        product *= right / total if total else 0
    c = sum(map(len, candidates))
    r = sum(
        min(map(len, its_own), key=lambda n, c=c: (abs(n - len(c)), n))
        for c, its_own in zip(candidates, references, strict=True)
    )
    penalty = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * penalty * product ** (1 / n)


@right("7.5", "sacrebleu's")
def corpus_bleu(candidates, references, n=4):
    from sacrebleu.metrics import BLEU

    most = max(map(len, references))
    streams = [[" ".join(r[i]) if i < len(r) else None for r in references] for i in range(most)]
    scorer = BLEU(tokenize="none", smooth_method="none", max_ngram_order=n, force=True)
    return scorer.corpus_score([" ".join(c) for c in candidates], streams).score


@right("7.5", "with the library's counts, in torch")
def corpus_bleu(candidates, references, n=4):
    from course_lib.measure.metrics import brevity_penalty, clipped_matches, closest_length

    pairs = list(zip(candidates, references, strict=True))
    counts = torch.tensor([[clipped_matches(c, r, size) for c, r in pairs] for size in range(1, n + 1)])
    right, total = counts.double().sum(dim=1).unbind(dim=1)
    penalty = brevity_penalty(sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs))
    return 100 * penalty * torch.log(right / total.clamp(min=1)).mean().exp()


# --- 7.5 wrong ------------------------------------------------------------------------------------------------------


@wrong("7.5", "mean of sentences", says="This is the mean of the sentences' BLEU")
def corpus_bleu(candidates, references, n=4):
    from course_lib.measure.metrics import bleu

    return sum(bleu(c, r, n) for c, r in zip(candidates, references, strict=True)) / len(candidates)


@wrong("7.5", "divides too early", says="sum over all sentences before you divide")
def corpus_bleu(candidates, references, n=4):
    from course_lib.measure.metrics import brevity_penalty, clipped_matches, closest_length

    pairs, product = list(zip(candidates, references, strict=True)), 1.0
    for size in range(1, n + 1):
        counts = [clipped_matches(c, r, size) for c, r in pairs]
        product *= sum(right / total for right, total in counts) / len(pairs)
    c, r = sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs)
    return 100 * brevity_penalty(c, r) * product ** (1 / n)


@wrong("7.5", "logarithms of each sentence", says="if nothing is right for some n, BLEU is 0")
def corpus_bleu(candidates, references, n=4):
    from course_lib.measure.metrics import brevity_penalty, clipped_matches, closest_length

    pairs, logarithms = list(zip(candidates, references, strict=True)), []
    for c, r in pairs:
        counts = [clipped_matches(c, r, size) for size in range(1, n + 1)]
        logarithms.append(sum(math.log(right / max(total, 1)) for right, total in counts) / n)
    penalty = brevity_penalty(sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs))
    return 100 * penalty * math.exp(sum(logarithms) / len(pairs))


@wrong("7.5", "two numbers", says="Expected BLEU to be returned; got a tuple of 2")
def corpus_bleu(candidates, references, n=4):
    return 51.7, 0.9


@wrong("7.5", "nan for nothing", says="Where every text is shorter than 4 words")
def corpus_bleu(candidates, references, n=4):
    from course_lib.measure.metrics import brevity_penalty, clipped_matches, closest_length

    pairs = list(zip(candidates, references, strict=True))
    counts = torch.tensor([[clipped_matches(c, r, size) for c, r in pairs] for size in range(1, n + 1)])
    right, total = counts.double().sum(dim=1).unbind(dim=1)
    penalty = brevity_penalty(sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs))
    return 100 * penalty * torch.log(right / total).mean().exp()


# --- wrong, as edits of the library's pieces ------------------------------------------------------------------------

BANK.edited(
    "7.2",
    """
    (x, memory, mask=memory_mask) → (x, mask=memory_mask) · A mask has a column for each key
    (x, memory, mask=memory_mask) → (x, mask=mask) · The source does not matter
    (x, memory, mask=memory_mask) → (x, memory_mask, memory) · The second argument is what one looks at
    (x, mask=mask) → (x, mask) · The second argument is what one looks at
    (x, mask=mask) → (x, mask=mask) / 2 · the new x at [
    """,
)
BANK.edited(
    "7.3",
    """
    .mean() → .mean().item() · Expected the loss to be a tensor
    logits[counted] → logits ; targets[counted][:, None])[:, 0] → targets[..., None])[..., 0]
        · Some targets are −100, which is no word
    logits[counted] → logits.flatten(0, -2) ; targets[counted][:, None])[:, 0] → targets.clamp(min=0).flatten())
        · `gather` wants an index with a last dimension too
    right + epsilon → right + epsilon * 0.5 * right + epsilon * 0.5 · With ε = 0.1 PyTorch's own label smoothing gives
    """,
)
BANK.edited(
    "7.4",
    """
    (ours & most).total() → (ours & most).total() + 1
        · against *he eats a sweet apple / he is eating a tasty apple* and n = 1 the right n-grams must be
    """,
)
BANK.edited(
    "7.5",
    """
    if not right → if False · Where no 4-gram is right it stopped with ValueError
    return 0.0 → continue · Where no 4-gram is right BLEU must be 0
    if not right → if all_of_them and not right · Where every text is shorter than 4 words
    n: int = 4 → n: int = 3 · Without a third argument n must be 4
    100 * → 99 * · and n = 4 BLEU must be 51.6973; got 51.1803
    """,
)
