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


@wrong("7.1", "swapped", says="True and False are swapped")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    return ~((places < lengths[:, None])[:, None, None] & (places <= places[:, None]))


@wrong("7.1", "or", says="join the two with `&`")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    return (places < lengths[:, None])[:, None, None] | (places <= places[:, None])


@wrong("7.1", "not itself", says="A word may see itself")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    return (places < lengths[:, None])[:, None, None] & (places < places[:, None])


@wrong("7.1", "one ahead", says="Each word sees one word ahead")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    return (places < lengths[:, None])[:, None, None] & torch.ones(longest, longest).tril(1).bool()


@wrong("7.1", "upper triangle", says="Each word sees what comes after it")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    return (places < lengths[:, None])[:, None, None] & torch.ones(longest, longest).triu().bool()


@wrong("7.1", "causal only", says="The lengths are not used")
def target_mask(lengths, longest):
    return torch.ones(longest, longest, dtype=torch.bool).tril().expand(len(lengths), 1, longest, longest)


@wrong("7.1", "padding only", says="The future is open")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    return (places < lengths[:, None])[:, None, None].expand(-1, 1, longest, longest)


@wrong("7.1", "one too many", says="One word too many")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    return (places <= lengths[:, None])[:, None, None] & (places <= places[:, None])


@wrong("7.1", "queries hidden", says="a softmax over nothing is NaN")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    return (places < lengths[:, None])[:, None, :, None] & (places <= places[:, None])


@wrong("7.1", "filled-up rows wholly open", says="The rule is the same for filled-up queries")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    seen = (places < lengths[:, None])[:, None, None] & (places <= places[:, None])
    return seen | (places >= lengths[:, None])[:, None, :, None]


@wrong("7.1", "filled-up rows see themselves", says="The rule is the same for filled-up queries")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    true = places < lengths[:, None]
    seen = true[:, None, :, None] & (places <= places[:, None])
    return seen | (~true[:, None, :, None] & torch.eye(longest, dtype=torch.bool))


@wrong("7.1", "one too few", says="The last true word is hidden")
def target_mask(lengths, longest):
    places = torch.arange(longest)
    return (places < lengths[:, None] - 1)[:, None, None] & (places <= places[:, None])


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


# --- 7.2 cross-attention block: right -------------------------------------------------------------------------------


@right("7.2", "one line each")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(x + block.attention(x, None, mask)[0])
    x = block.cross_norm(x + block.cross(x, memory, memory_mask)[0])
    return block.feed_forward_norm(x + block.feed_forward(x))


@right("7.2", "with the weights asked for")
def decoder_block(x, memory, mask, memory_mask, block):
    own, _ = block.attention(x, mask=mask, want_weights=True)
    after = block.attention_norm(own + x)
    from_source, _ = block.cross(after, memory=memory, mask=memory_mask, want_weights=True)
    after = block.cross_norm(from_source + after)
    return block.feed_forward_norm(block.feed_forward(after) + after)


@right("7.2", "a loop over steps")
def decoder_block(x, memory, mask, memory_mask, block):
    steps = [
        (block.attention_norm, lambda x: block.attention(x, mask=mask)[0]),
        (block.cross_norm, lambda x: block.cross(x, memory, memory_mask)[0]),
        (block.feed_forward_norm, block.feed_forward),
    ]
    for norm, f in steps:
        x = norm(x + f(x))
    return x


# --- 7.2 wrong ------------------------------------------------------------------------------------------------------


@wrong("7.2", "pre-norm", says="This is pre-norm")
def decoder_block(x, memory, mask, memory_mask, block):
    x = x + block.attention(block.attention_norm(x), mask=mask)[0]
    x = x + block.cross(block.cross_norm(x), memory, memory_mask)[0]
    return x + block.feed_forward(block.feed_forward_norm(x))


@wrong("7.2", "source first", says="The source is looked at first")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.cross_norm(x + block.cross(x, memory, memory_mask)[0])
    x = block.attention_norm(x + block.attention(x, mask=mask)[0])
    return block.feed_forward_norm(x + block.feed_forward(x))


@wrong("7.2", "norm inside", says="Only f(x) is normalised")
def decoder_block(x, memory, mask, memory_mask, block):
    x = x + block.attention_norm(block.attention(x, mask=mask)[0])
    x = x + block.cross_norm(block.cross(x, memory, memory_mask)[0])
    return x + block.feed_forward_norm(block.feed_forward(x))


@wrong("7.2", "no residual around the source", says="The residual path around the look at the source is missing")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(x + block.attention(x, mask=mask)[0])
    x = block.cross_norm(block.cross(x, memory, memory_mask)[0])
    return block.feed_forward_norm(x + block.feed_forward(x))


@wrong("7.2", "no residual around itself", says="The residual path around self-attention is missing")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(block.attention(x, mask=mask)[0])
    x = block.cross_norm(x + block.cross(x, memory, memory_mask)[0])
    return block.feed_forward_norm(x + block.feed_forward(x))


@wrong("7.2", "no feed-forward", says="The feed-forward layer is missing")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(x + block.attention(x, mask=mask)[0])
    return block.cross_norm(x + block.cross(x, memory, memory_mask)[0])


@wrong("7.2", "memory mask forgotten", says="`memory_mask` is not used")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(x + block.attention(x, mask=mask)[0])
    x = block.cross_norm(x + block.cross(x, memory)[0])
    return block.feed_forward_norm(x + block.feed_forward(x))


@wrong("7.2", "mask forgotten", says="the target looks ahead")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(x + block.attention(x)[0])
    x = block.cross_norm(x + block.cross(x, memory, memory_mask)[0])
    return block.feed_forward_norm(x + block.feed_forward(x))


@wrong("7.2", "memory forgotten", says="A mask has a column for each key")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(x + block.attention(x, mask=mask)[0])
    x = block.cross_norm(x + block.cross(x, mask=memory_mask)[0])
    return block.feed_forward_norm(x + block.feed_forward(x))


@wrong("7.2", "looks at itself twice", says="The source does not matter")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(x + block.attention(x, mask=mask)[0])
    x = block.cross_norm(x + block.cross(x, mask=mask)[0])
    return block.feed_forward_norm(x + block.feed_forward(x))


@wrong("7.2", "weights of self-attention", says="`block.cross` has its own")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(x + block.attention(x, mask=mask)[0])
    x = block.cross_norm(x + block.attention(x, memory, memory_mask)[0])
    return block.feed_forward_norm(x + block.feed_forward(x))


@wrong("7.2", "one norm for all", says="Each of the three steps has a norm of its own")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(x + block.attention(x, mask=mask)[0])
    x = block.attention_norm(x + block.cross(x, memory, memory_mask)[0])
    return block.feed_forward_norm(x + block.feed_forward(x))


@wrong("7.2", "one norm thrice", says="here all take `block.attention_norm`")
def decoder_block(x, memory, mask, memory_mask, block):
    norm = block.attention_norm
    x = norm(x + block.attention(x, mask=mask)[0])
    x = norm(x + block.cross(x, memory, memory_mask)[0])
    return norm(x + block.feed_forward(x))


@wrong("7.2", "memory normalised", says="The memory is normalised again")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(x + block.attention(x, mask=mask)[0])
    x = block.cross_norm(x + block.cross(x, block.cross_norm(memory), memory_mask)[0])
    return block.feed_forward_norm(x + block.feed_forward(x))


@wrong("7.2", "as on the slide", says="This is pre-norm, and the memory is normalised again")
def decoder_block(x, memory, mask, memory_mask, block):
    x = x + block.attention(block.attention_norm(x), mask=mask)[0]
    x = x + block.cross(block.cross_norm(x), block.cross_norm(memory), memory_mask)[0]
    return x + block.feed_forward(block.feed_forward_norm(x))


@wrong("7.2", "adds to the first x", says="Each step adds to the block's first x")
def decoder_block(x, memory, mask, memory_mask, block):
    h = block.attention_norm(x + block.attention(x, mask=mask)[0])
    h = block.cross_norm(x + block.cross(h, memory, memory_mask)[0])
    return block.feed_forward_norm(x + block.feed_forward(h))


@wrong("7.2", "asked with the old x", says="asked with the x from before self-attention")
def decoder_block(x, memory, mask, memory_mask, block):
    h = block.attention_norm(x + block.attention(x, mask=mask)[0])
    h = block.cross_norm(h + block.cross(x, memory, memory_mask)[0])
    return block.feed_forward_norm(h + block.feed_forward(h))


@wrong("7.2", "last norm forgotten", says="The norm after the feed-forward layer is missing")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(x + block.attention(x, mask=mask)[0])
    x = block.cross_norm(x + block.cross(x, memory, memory_mask)[0])
    return x + block.feed_forward(x)


@wrong("7.2", "the tuple added", says="An attention returns two things")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(x + block.attention(x, mask=mask))
    x = block.cross_norm(x + block.cross(x, memory, memory_mask))
    return block.feed_forward_norm(x + block.feed_forward(x))


@wrong("7.2", "mask as memory", says="The second argument is what one looks at")
def decoder_block(x, memory, mask, memory_mask, block):
    x = block.attention_norm(x + block.attention(x, mask)[0])
    x = block.cross_norm(x + block.cross(x, memory, memory_mask)[0])
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


@wrong("7.3", "swapped", says="ε and 1 − ε are swapped")
def smoothed_loss(logits, targets, epsilon):
    keep = targets != -100
    log_p = logits[keep].log_softmax(-1)
    right = log_p.gather(-1, targets[keep][:, None])[:, 0]
    return -(epsilon * right + (1 - epsilon) * log_p.mean(-1)).mean()


@wrong("7.3", "sum over classes", says="Each word gets ε / V")
def smoothed_loss(logits, targets, epsilon):
    keep = targets != -100
    log_p = logits[keep].log_softmax(-1)
    right = log_p.gather(-1, targets[keep][:, None])[:, 0]
    return -((1 - epsilon) * right + epsilon * log_p.sum(-1)).mean()


@wrong("7.3", "right keeps all", says="The shares must sum to 1")
def smoothed_loss(logits, targets, epsilon):
    keep = targets != -100
    log_p = logits[keep].log_softmax(-1)
    right = log_p.gather(-1, targets[keep][:, None])[:, 0]
    return -(right + epsilon * log_p.mean(-1)).mean()


@wrong("7.3", "nothing dealt out", says="The part that is dealt out, ε, is missing")
def smoothed_loss(logits, targets, epsilon):
    return (1 - epsilon) * F.cross_entropy(logits.flatten(0, -2), targets.flatten())


@wrong("7.3", "plain", says="This is the plain loss")
def smoothed_loss(logits, targets, epsilon):
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten())


@wrong("7.3", "sign", says="The sign is wrong")
def smoothed_loss(logits, targets, epsilon):
    keep = targets != -100
    log_p = logits[keep].log_softmax(-1)
    right = log_p.gather(-1, targets[keep][:, None])[:, 0]
    return ((1 - epsilon) * right + epsilon * log_p.mean(-1)).mean()


@wrong("7.3", "sum over targets", says="This is the sum over the targets")
def smoothed_loss(logits, targets, epsilon):
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), label_smoothing=epsilon, reduction="sum")


@wrong("7.3", "mean over fillers too", says="divide by the true ones")
def smoothed_loss(logits, targets, epsilon):
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), label_smoothing=epsilon, reduction="none").mean()


@wrong("7.3", "fillers count as class 0", says="Targets of −100 count")
def smoothed_loss(logits, targets, epsilon):
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten().clamp(min=0), label_smoothing=epsilon)


@wrong("7.3", "no logarithm", says="These are probabilities")
def smoothed_loss(logits, targets, epsilon):
    keep = targets != -100
    p = logits[keep].softmax(-1)
    right = p.gather(-1, targets[keep][:, None])[:, 0]
    return -((1 - epsilon) * right + epsilon * p.mean(-1)).mean()


@wrong("7.3", "log of softmax", says="softmax rounds to 0")
def smoothed_loss(logits, targets, epsilon):
    keep = targets != -100
    log_p = logits[keep].softmax(-1).log()
    right = log_p.gather(-1, targets[keep][:, None])[:, 0]
    return -((1 - epsilon) * right + epsilon * log_p.mean(-1)).mean()


@wrong("7.3", "softmax over places", says="The softmax runs over the places")
def smoothed_loss(logits, targets, epsilon):
    keep = targets != -100
    log_p = logits.log_softmax(1)[keep]
    right = log_p.gather(-1, targets[keep][:, None])[:, 0]
    return -((1 - epsilon) * right + epsilon * log_p.mean(-1)).mean()


@wrong("7.3", "fillers in the even part", says="averaged over filled-up places too")
def smoothed_loss(logits, targets, epsilon):
    plain = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=-100)
    return (1 - epsilon) * plain - epsilon * logits.log_softmax(-1).mean()


@wrong("7.3", "three dimensions", says="any number of dimensions may come before the words")
def smoothed_loss(logits, targets, epsilon):
    b, t, words = logits.shape
    return F.cross_entropy(logits.reshape(b * t, words), targets.reshape(b * t), label_smoothing=epsilon)


@wrong("7.3", "a Python number", says="Expected the loss to be a tensor")
def smoothed_loss(logits, targets, epsilon):
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), label_smoothing=epsilon).item()


@wrong("7.3", "softmax twice", says="The softmax is taken twice")
def smoothed_loss(logits, targets, epsilon):
    return F.cross_entropy(logits.softmax(-1).flatten(0, -2), targets.flatten(), label_smoothing=epsilon)


@wrong("7.3", "fillers gathered", says="Some targets are −100, which is no word")
def smoothed_loss(logits, targets, epsilon):
    log_p = logits.log_softmax(-1)
    right = log_p.gather(-1, targets[..., None])[..., 0]
    return -((1 - epsilon) * right + epsilon * log_p.mean(-1)).mean()


@wrong("7.3", "not flattened", says="The words are the last dimension here")
def smoothed_loss(logits, targets, epsilon):
    return nn.functional.cross_entropy(logits, targets, label_smoothing=epsilon)


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
    from course_lib.metrics import ngrams

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


@wrong("7.4", "summed over references", says="Clipped by the sum over all references")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    ours = grams(candidate)
    return sum(min(ours.count(g), sum(grams(r).count(g) for r in references)) for g in set(ours)), len(ours)


@wrong("7.4", "first reference", says="Only the first reference")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    ours = grams(candidate)
    return sum(min(ours.count(g), grams(references[0]).count(g)) for g in set(ours)), len(ours)


@wrong("7.4", "last reference", says="Only the last reference")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    ours = grams(candidate)
    for reference in references:
        right = sum(min(ours.count(g), grams(reference).count(g)) for g in set(ours))
    return right, len(ours)


@wrong("7.4", "best reference", says="the best match with a single reference")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    ours = grams(candidate)
    return max(sum(min(ours.count(g), grams(r).count(g)) for g in set(ours)) for r in references), len(ours)


@wrong("7.4", "every reference", says="Only what *every* reference has")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    ours = grams(candidate)
    return sum(min(ours.count(g), min(grams(r).count(g) for r in references)) for g in set(ours)), len(ours)


@wrong("7.4", "sets", says="Each n-gram is counted once only")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    ours = grams(candidate)
    return len(set(ours) & {g for r in references for g in grams(r)}), len(ours)


@wrong("7.4", "words as total", says="a text of 8 words has 7 pairs")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    ours = grams(candidate)
    right = sum(min(ours.count(g), max(grams(r).count(g) for r in references)) for g in set(ours))
    return right, len(candidate)


@wrong("7.4", "different ones as total", says="The second number counts different n-grams")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    ours = grams(candidate)
    right = sum(min(ours.count(g), max(grams(r).count(g) for r in references)) for g in set(ours))
    return right, len(set(ours))


@wrong("7.4", "negative total", says="The second number is negative where the text is shorter than n")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    ours = grams(candidate)
    right = sum(min(ours.count(g), max(grams(r).count(g) for r in references)) for g in set(ours))
    return right, len(candidate) - n + 1


@wrong("7.4", "at least one", says="the second number is 0 there, not 1")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    ours = grams(candidate)
    right = sum(min(ours.count(g), max(grams(r).count(g) for r in references)) for g in set(ours))
    return right, max(1, len(ours))


@wrong("7.4", "references' n-grams as total", says="The second number counts the references' n-grams")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    ours = grams(candidate)
    right = sum(min(ours.count(g), max(grams(r).count(g) for r in references)) for g in set(ours))
    return right, sum(len(grams(r)) for r in references)


@wrong("7.4", "len of Counters", says="Both numbers count *different* n-grams")
def clipped_matches(candidate, references, n):
    from collections import Counter

    from course_lib.metrics import ngrams

    mine, best = ngrams(candidate, n), Counter()
    for reference in references:
        best |= ngrams(reference, n)
    return len(mine & best), len(mine)


@wrong("7.4", "words whatever n", says="These are single words whatever n is")
def clipped_matches(candidate, references, n):
    return sum(min(candidate.count(w), max(r.count(w) for r in references)) for w in set(candidate)), len(candidate)


@wrong("7.4", "ratio", says="return the two counts")
def clipped_matches(candidate, references, n):
    right = sum(min(candidate.count(w), max(r.count(w) for r in references)) for w in set(candidate))
    return right / len(candidate)


@wrong("7.4", "turned round", says="The two numbers are in the wrong order")
def clipped_matches(candidate, references, n):
    def grams(tokens):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    ours = grams(candidate)
    return len(ours), sum(min(ours.count(g), max(grams(r).count(g) for r in references)) for g in set(ours))


@wrong("7.4", "lists in a set", says="A list cannot be counted")
def clipped_matches(candidate, references, n):
    ours = [candidate[i : i + n] for i in range(len(candidate) - n + 1)]
    return sum(any(g in r for r in references) for g in set(ours)), len(ours)


@wrong("7.4", "changes its list", says="It changes the lists that it is given")
def clipped_matches(candidate, references, n):
    right, total = 0, len(candidate) - n + 1
    while len(candidate) >= n:
        right += any(candidate[:n] == r[i : i + n] for r in references for i in range(len(r)))
        candidate.pop(0)
    return right, total


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
    from course_lib.metrics import brevity_penalty, clipped_matches, closest_length

    pairs = list(zip(candidates, references, strict=True))
    counts = torch.tensor([[clipped_matches(c, r, size) for c, r in pairs] for size in range(1, n + 1)])
    right, total = counts.double().sum(dim=1).unbind(dim=1)
    penalty = brevity_penalty(sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs))
    return 100 * penalty * torch.log(right / total.clamp(min=1)).mean().exp()


# --- 7.5 wrong ------------------------------------------------------------------------------------------------------


@wrong("7.5", "mean of sentences", says="This is the mean of the sentences' BLEU")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import bleu

    return sum(bleu(c, r, n) for c, r in zip(candidates, references, strict=True)) / len(candidates)


@wrong("7.5", "mean of precisions", says="The precisions of the sentences are averaged")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_precision, closest_length

    pairs, product = list(zip(candidates, references, strict=True)), 1.0
    for size in range(1, n + 1):
        product *= sum(clipped_precision(c, r, size) for c, r in pairs) / len(pairs)
    c, r = sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs)
    return 100 * brevity_penalty(c, r) * product ** (1 / n)


@wrong("7.5", "arithmetic mean", says="This is the arithmetic mean")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_matches, closest_length

    pairs, p = list(zip(candidates, references, strict=True)), []
    for size in range(1, n + 1):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        p.append(right / total)
    c, r = sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs)
    return 100 * brevity_penalty(c, r) * sum(p) / n


@wrong("7.5", "no root", says="the n-th root is missing")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_matches, closest_length

    pairs, p = list(zip(candidates, references, strict=True)), []
    for size in range(1, n + 1):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        p.append(right / total)
    c, r = sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs)
    return 100 * brevity_penalty(c, r) * math.prod(p)


@wrong("7.5", "fourth root", says="The root is always the fourth")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_matches, closest_length

    pairs, p = list(zip(candidates, references, strict=True)), []
    for size in range(1, n + 1):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        p.append(right / total)
    c, r = sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs)
    return 100 * brevity_penalty(c, r) * math.prod(p) ** 0.25


@wrong("7.5", "no penalty", says="The brevity penalty is missing")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import clipped_matches

    pairs, p = list(zip(candidates, references, strict=True)), []
    for size in range(1, n + 1):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        p.append(right / total)
    return 100 * math.prod(p) ** (1 / n)


@wrong("7.5", "penalty turned round", says="The brevity penalty is turned round")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_matches, closest_length

    pairs, p = list(zip(candidates, references, strict=True)), []
    for size in range(1, n + 1):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        p.append(right / total)
    c, r = sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs)
    return 100 * brevity_penalty(r, c) * math.prod(p) ** (1 / n)


@wrong("7.5", "reward for length", says="Longer texts are rewarded")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import clipped_matches, closest_length

    pairs, p = list(zip(candidates, references, strict=True)), []
    for size in range(1, n + 1):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        p.append(right / total)
    c, r = sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs)
    return 100 * math.exp(1 - r / c) * math.prod(p) ** (1 / n)


@wrong("7.5", "share", says="BLEU is given in points")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_matches, closest_length

    pairs, p = list(zip(candidates, references, strict=True)), []
    for size in range(1, n + 1):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        p.append(right / total)
    c, r = sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs)
    return brevity_penalty(c, r) * math.prod(p) ** (1 / n)


@wrong("7.5", "shortest reference", says="r takes the shortest reference")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_matches

    pairs, p = list(zip(candidates, references, strict=True)), []
    for size in range(1, n + 1):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        p.append(right / total)
    c, r = sum(len(c) for c, _ in pairs), sum(min(map(len, r)) for _, r in pairs)
    return 100 * brevity_penalty(c, r) * math.prod(p) ** (1 / n)


@wrong("7.5", "one size too few", says="`range(1, n + 1)` ends with n")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_matches, closest_length

    pairs, p = list(zip(candidates, references, strict=True)), []
    for size in range(1, n):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        p.append(right / total)
    c, r = sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs)
    return 100 * brevity_penalty(c, r) * math.prod(p) ** (1 / (n - 1))


@wrong("7.5", "logarithm of nothing", says="Where no 4-gram is right")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_matches, closest_length

    pairs, logarithms = list(zip(candidates, references, strict=True)), []
    for size in range(1, n + 1):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        logarithms.append(math.log(right / total))
    c, r = sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs)
    return 100 * brevity_penalty(c, r) * math.exp(sum(logarithms) / n)


@wrong("7.5", "nothing right left out", says="Where no 4-gram is right BLEU must be 0")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_matches, closest_length

    pairs, logarithms = list(zip(candidates, references, strict=True)), []
    for size in range(1, n + 1):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        if right:
            logarithms.append(math.log(right / total))
    c, r = sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs)
    return 100 * brevity_penalty(c, r) * math.exp(sum(logarithms) / n)


@wrong("7.5", "divides too early", says="sum over all sentences before you divide")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import clipped_matches

    p = [1.0] * n
    for c, r in zip(candidates, references, strict=True):
        for size in range(1, n + 1):
            right, total = clipped_matches(c, r, size + 3)
            p[size - 1] *= right / total
    return 100 * math.prod(p) ** (1 / n)


@wrong("7.5", "n not used", says="n is not used")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_matches, closest_length

    pairs, p = list(zip(candidates, references, strict=True)), []
    for size in range(1, 4 + 1):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        if right == 0:
            return 0
        p.append(right / total)
    c, r = sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs)
    return 100 * brevity_penalty(c, r) * math.prod(p) ** 0.25


@wrong("7.5", "all references' lengths", says="r sums the lengths of all references")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_matches

    pairs, p = list(zip(candidates, references, strict=True)), []
    for size in range(1, n + 1):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        if right == 0:
            return 0
        p.append(right / total)
    c, r = sum(len(c) for c, _ in pairs), sum(len(one) for _, r in pairs for one in r)
    return 100 * brevity_penalty(c, r) * math.prod(p) ** (1 / n)


@wrong("7.5", "mean of penalties", says="The penalties of the sentences are averaged")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_matches, closest_length

    pairs, p = list(zip(candidates, references, strict=True)), []
    for size in range(1, n + 1):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        if right == 0:
            return 0
        p.append(right / total)
    penalty = sum(brevity_penalty(len(c), closest_length(c, r)) for c, r in pairs) / len(pairs)
    return 100 * penalty * math.prod(p) ** (1 / n)


@wrong("7.5", "nothing to divide by", says="Where every text is shorter than 4 words")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_matches, closest_length

    pairs, p = list(zip(candidates, references, strict=True)), []
    for size in range(1, n + 1):
        right, total = (sum(part) for part in zip(*(clipped_matches(c, r, size) for c, r in pairs), strict=True))
        p.append(right / total)
    c, r = sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs)
    return 100 * brevity_penalty(c, r) * math.prod(p) ** (1 / n)


@wrong("7.5", "nan for nothing", says="Where every text is shorter than 4 words")
def corpus_bleu(candidates, references, n=4):
    from course_lib.metrics import brevity_penalty, clipped_matches, closest_length

    pairs = list(zip(candidates, references, strict=True))
    counts = torch.tensor([[clipped_matches(c, r, size) for c, r in pairs] for size in range(1, n + 1)])
    right, total = counts.double().sum(dim=1).unbind(dim=1)
    penalty = brevity_penalty(sum(len(c) for c, _ in pairs), sum(closest_length(c, r) for c, r in pairs))
    return 100 * penalty * torch.log(right / total).mean().exp()
