"""The bank of lesson 08. An answer uses only what the notebook has imported, or imports it itself."""
# ruff: noqa: F811

import torch
from bank import Bank
from torch.nn import functional as F

BANK = Bank()
wrong, right = BANK.wrong, BANK.right

# What a mutant of the library's piece changes, as its new line → why it is no mistake.
BAD_INPUT = "the exercise does not ask for other inputs to be refused"
MESSAGE = "what the message of a refused input says"
DEVICE = "on the CPU all tensors are on one device"
SAME = "the same number, or random numbers that are as good"
LAST = "of two dimensions, the last is dimension 1"
REFUSED = "raise ValueError(f'Expected special tokens from 0 to {%s}; got {%s}.')"
ALLOWED = "raise ValueError(f'Expected from 0 to {%s} layers to fine-tune; got {%s}.')"
NAMES = ["ids", "generator", "mask_id", "vocabulary", "special", "never", "ordinary", "words", "place", "random_words"]
NAMES += ["chosen", "inputs", "chance", "fate"]
LIMITS = ["vocabulary", "1", "vocabulary + 1", "1 - vocabulary", "vocabulary - 2", "vocabulary - 0"]
LIMITS += [f"{name} - 1" for name in NAMES if name != "vocabulary"]
FOUND = ["never", *(f"sorted({name})" for name in NAMES if name != "never")]
DRAWN = "random_words = words[torch.randint(len(words), %s.shape, **place)%s].to(%s)"
ROW = (
    "rows = [torch.cat([%s.new_tensor([cls]), first, %s.new_tensor([sep]), second, %s.new_tensor([sep])]) "
    "for first, second in zip(firsts, seconds, strict=%s)]"
)
EQUIVALENT = {
    "8.1": {
        **{REFUSED % (limit, "sorted(never)"): MESSAGE for limit in LIMITS},
        **{REFUSED % ("vocabulary - 1", found): MESSAGE for found in FOUND},
        "without if not 0 <= min(never) <= max(never) < vocabulary: / "
        + REFUSED % ("vocabulary - 1", "sorted(never)"): BAD_INPUT,
        "raise f'Expected special tokens from 0 to {vocabulary - 1}; got {sorted(never)}.'": BAD_INPUT,
        **{
            f"if not {test}:": BAD_INPUT
            for test in (
                "0 <= min(never) <= max(never)",
                "min(never) <= max(never) < vocabulary",
                "-1 <= min(never) <= max(never) < vocabulary",
            )
        },
        "fate, chance = torch.rand(2, *ids.shape, **place).to(ids.device)": SAME,
        "words = ordinary.nonzero()[:, -1]": SAME,
        DRAWN % ("chance", ".cpu()", "ids"): SAME,
        DRAWN % ("fate", ".cpu()", "ids"): SAME,
        DRAWN % ("ids", ".cpu()", "words"): DEVICE,
        DRAWN % ("ids", "", "ids"): DEVICE,
        **{f"place = {{'generator': generator, 'device': {x}.device}}": DEVICE for x in ("ids", "ordinary", "words")},
        **{
            f"chance, fate = torch.rand(2, *ids.shape, **place).to({x}.device)": DEVICE
            for x in ("generator", "ordinary", "words")
        },
        **{
            f"chosen = ordinary.to({x}.device)[ids] & (chance < 0.15)": DEVICE
            for x in ("generator", "ordinary", "words", "random_words", "chance", "fate")
        },
    },
    "8.2": {
        ROW % ("first", "first", "first", 2): BAD_INPUT,
        ROW % ("first", "first", "first", 0): BAD_INPUT,
        ROW % ("second", "first", "first", True): DEVICE,
        ROW % ("first", "second", "first", True): DEVICE,
        ROW % ("first", "first", "second", True): DEVICE,
        "mask = places < torch.tensor([[len(row)] for row in rows], device=places.device)": DEVICE,
        **{
            f"after = places >= torch.tensor([[len(first) + 2] for first in firsts], device={x}.device)": DEVICE
            for x in ("places", "mask")
        },
    },
    "8.3": {
        "log_p = scores[counted].log_softmax(dim=1)": LAST,
        "return (scores, -log_p.gather(1, targets[counted][:, None]).mean())": LAST,
    },
    "8.4": {
        **{f"length = {x}.shape[1]": SAME for x in ("end", "inside")},
        **{f"places = torch.arange(length, device={x}.device)": DEVICE for x in ("end", "inside")},
    },
    "8.5": {
        "without if not 0 <= layers <= len(blocks): / " + ALLOWED % ("len(blocks)", "layers"): BAD_INPUT,
        "raise f'Expected from 0 to {len(blocks)} layers to fine-tune; got {layers}.'": BAD_INPUT,
        **{f"if not {x}:": BAD_INPUT for x in ("0 <= layers", "layers <= len(blocks)", "-1 <= layers <= len(blocks)")},
        ALLOWED % ("blocks", "layers"): MESSAGE,
        **{ALLOWED % ("len(blocks)", x): MESSAGE for x in ("encoder", "blocks", "block", "p")},
        **{ALLOWED % (f"len({x})", "layers"): MESSAGE for x in ("encoder", "layers", "block", "p")},
        "for block in list(blocks[len(blocks) - layers:])[::-1]:": "in any order",
    },
}


# --- 8.1 masking: right ---------------------------------------------------------------------------------------------


@right("8.1", "clone and fill")
def mask_tokens(ids, generator, mask_id, vocabulary, special=()):
    never = torch.tensor([mask_id, *special])
    ordinary = torch.tensor([word for word in range(vocabulary) if word not in {mask_id, *special}])
    chosen = (torch.rand(ids.shape, generator=generator) < 0.15) & ~torch.isin(ids, never)
    fate = torch.rand(ids.shape, generator=generator)
    inputs, targets = ids.clone(), ids.clone()
    targets[~chosen] = -100
    inputs[chosen & (fate < 0.8)] = mask_id
    other = chosen & (fate > 0.9)
    inputs[other] = ordinary[torch.randint(len(ordinary), (int(other.sum()),), generator=generator)]
    return inputs, targets


@right("8.1", "one number for both")
def mask_tokens(ids, generator, mask_id, vocabulary, special=()):
    draw = torch.rand(ids.shape, generator=generator)
    for number in (mask_id, *special):
        draw = draw.masked_fill(ids == number, 1.0)
    words = torch.tensor(sorted(set(range(vocabulary)) - {mask_id, *special}))
    random_words = words[torch.randint(len(words), ids.shape, generator=generator)]
    inputs = ids.masked_fill(draw < 0.12, mask_id)
    inputs = torch.where((draw >= 0.12) & (draw < 0.135), random_words, inputs)
    return inputs, torch.where(draw < 0.15, ids, -100)


@right("8.1", "half of the rest, as Hugging Face does")
def mask_tokens(ids, generator, mask_id, vocabulary, special=()):
    words = torch.ones(vocabulary)
    words[[mask_id, *special]] = 0
    chance = torch.full(ids.shape, 0.15) * words[ids]
    chosen = torch.bernoulli(chance, generator=generator).bool()
    hidden = torch.bernoulli(torch.full(ids.shape, 0.8), generator=generator).bool() & chosen
    other = torch.bernoulli(torch.full(ids.shape, 0.5), generator=generator).bool() & chosen & ~hidden
    drawn = torch.multinomial(words, ids.numel(), replacement=True, generator=generator).view(ids.shape)
    return torch.where(hidden, mask_id, torch.where(other, drawn, ids)), ids.masked_fill(~chosen, -100)


@right("8.1", "token by token")
def mask_tokens(ids, generator, mask_id, vocabulary, special=()):
    inputs, targets = [], []
    for word in ids.flatten().tolist():
        chosen = word != mask_id and word not in special and torch.rand((), generator=generator) < 0.15
        targets.append(word if chosen else -100)
        fate = float(torch.rand((), generator=generator)) if chosen else 1.0
        if 0.8 <= fate < 0.9:
            word = mask_id
            while word == mask_id or word in special:
                word = int(torch.randint(vocabulary, (), generator=generator))
        inputs.append(mask_id if fate < 0.8 else word)
    return torch.tensor(inputs).view(ids.shape), torch.tensor(targets).view(ids.shape)


@right("8.1", "always another word")
def mask_tokens(ids, generator, mask_id, vocabulary, special=()):
    words = torch.tensor([word for word in range(vocabulary) if word != mask_id and word not in special])
    chance, fate = (torch.rand(ids.shape, generator=generator) for _ in range(2))
    chosen = (chance < 0.15) & torch.isin(ids, words)
    further = torch.randint(1, len(words), ids.shape, generator=generator)
    others = words[(torch.searchsorted(words, ids) + further) % len(words)]
    inputs = torch.where(fate < 0.8, mask_id, torch.where(fate < 0.9, others, ids))
    return torch.where(chosen, inputs, ids), torch.where(chosen, ids, -100)


@right("8.1", "a list")
def mask_tokens(ids, generator, mask_id, vocabulary, special=()):
    words = torch.tensor([word for word in range(vocabulary) if word not in (mask_id, *special)])
    chance, fate = torch.rand(2, *ids.shape, generator=generator)
    chosen = (chance < 0.15) & torch.isin(ids, words)
    others = words[torch.randint(len(words), ids.shape, generator=generator)]
    inputs = torch.where(fate < 0.8, mask_id, torch.where(fate < 0.9, others, ids))
    return [torch.where(chosen, inputs, ids), torch.where(chosen, ids, -100)]


# --- 8.1 wrong ------------------------------------------------------------------------------------------------------


@wrong("8.1", "all blanks", says="this hides all of them")
def mask_tokens(ids, generator, mask_id, vocabulary, special=()):
    chosen = (torch.rand(ids.shape, generator=generator) < 0.15) & ~torch.isin(ids, torch.tensor([mask_id, *special]))
    return ids.masked_fill(chosen, mask_id), ids.masked_fill(~chosen, -100)


@wrong("8.1", "a fixed number a text", says="Each text has the same number of blanks")
def mask_tokens(ids, generator, mask_id, vocabulary, special=()):
    words = torch.tensor(sorted(set(range(vocabulary)) - {mask_id, *special}))
    ordinary = torch.isin(ids, words)
    order = torch.rand(ids.shape, generator=generator).masked_fill(~ordinary, 2.0).argsort(dim=-1).argsort(dim=-1)
    chosen = ordinary & (order < (ordinary.sum(dim=-1, keepdim=True) * 0.15).round())
    fate = torch.rand(ids.shape, generator=generator)
    random_words = words[torch.randint(len(words), ids.shape, generator=generator)]
    inputs = ids.masked_fill(chosen & (fate < 0.8), mask_id)
    return torch.where(chosen & (fate >= 0.9), random_words, inputs), ids.masked_fill(~chosen, -100)


BANK.spoilt(
    "8.1",
    "a list",
    """
    if word not in (mask_id, *special) → if word > mask_id or word == 1 · The special token 1 is chosen
    chance < 0.15 → torch.rand(ids.shape[-1:], generator=generator) < 0.15 · Some places are chosen more often
    chance < 0.15 → chance <= chance[torch.isin(ids, words)].quantile(0.15) · Each call chooses exactly
    """,
)


# --- 8.2 a pair's segments and mask: right --------------------------------------------------------------------------


@right("8.2", "lists of numbers")
def pair_inputs(firsts, seconds, cls, sep, pad=0):
    rows, masks, segments = [], [], []
    for a, b in zip(firsts, seconds, strict=True):
        rows.append([cls, *a.tolist(), sep, *b.tolist(), sep])
        segments.append([0] * (len(a) + 2) + [1] * (len(b) + 1))
        masks.append([True] * len(rows[-1]))
    longest = max(map(len, rows))
    for row, mask, segment in zip(rows, masks, segments, strict=True):
        missing = longest - len(row)
        row += [pad] * missing
        mask += [False] * missing
        segment += [0] * missing
    return torch.tensor(rows), torch.tensor(masks), torch.tensor(segments)


@right("8.2", "pad_sequence three times")
def pair_inputs(firsts, seconds, cls, sep, pad=0):
    rows = [
        torch.cat([torch.tensor([cls]), a, torch.tensor([sep]), b, torch.tensor([sep])])
        for a, b in zip(firsts, seconds, strict=True)
    ]
    fill = torch.nn.utils.rnn.pad_sequence
    segments = [
        torch.cat([torch.zeros(len(a) + 2).long(), torch.ones(len(b) + 1).long()])
        for a, b in zip(firsts, seconds, strict=True)
    ]
    mask = fill([torch.ones(len(row), dtype=torch.bool) for row in rows], batch_first=True)
    return fill(rows, batch_first=True, padding_value=pad), mask, fill(segments, batch_first=True)


@right("8.2", "into an empty table")
def pair_inputs(firsts, seconds, cls, sep, pad=0):
    longest = max(len(a) + len(b) + 3 for a, b in zip(firsts, seconds, strict=True))
    ids = torch.full((len(firsts), longest), pad)
    mask, segments = torch.zeros(ids.shape, dtype=torch.bool), torch.zeros(ids.shape, dtype=torch.long)
    for row, (a, b) in enumerate(zip(firsts, seconds, strict=True)):
        end, last = len(a) + 1, len(a) + len(b) + 2
        ids[row, 0], ids[row, end], ids[row, last] = cls, sep, sep
        ids[row, 1:end], ids[row, end + 1 : last] = a, b
        mask[row, : last + 1], segments[row, end + 1 : last + 1] = True, 1
    return ids, mask, segments


@right("8.2", "rows of one width")
def pair_inputs(firsts, seconds, cls, sep, pad=0):
    rows = [[cls, *a.tolist(), sep, *b.tolist(), sep] for a, b in zip(firsts, seconds, strict=True)]
    width = max(map(len, rows))
    ids = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
    mask = torch.tensor([[place < len(row) for place in range(width)] for row in rows])
    after = torch.tensor([[place > len(a) + 1 for place in range(width)] for a in firsts])
    return ids, mask, (after & mask).long()


# --- 8.2 wrong ------------------------------------------------------------------------------------------------------


@wrong("8.2", "first separator in the second sentence", says="The first [SEP] still belongs to the first sentence")
def pair_inputs(firsts, seconds, cls, sep, pad=0):
    one = torch.tensor
    pairs = list(zip(firsts, seconds, strict=True))
    rows = [torch.cat([one([cls]), a, one([sep]), b, one([sep])]) for a, b in pairs]
    kinds = [one([0] * (len(a) + 1) + [1] * (len(b) + 2)) for a, b in pairs]
    fill = torch.nn.utils.rnn.pad_sequence
    mask = fill([torch.ones(len(row)) for row in rows], batch_first=True).bool()
    return fill(rows, batch_first=True, padding_value=pad), mask, fill(kinds, batch_first=True)


@wrong("8.2", "no separator between", says="There is no [SEP] between the sentences")
def pair_inputs(firsts, seconds, cls, sep, pad=0):
    one = torch.tensor
    rows = [torch.cat([one([cls]), a, b, one([sep])]) for a, b in zip(firsts, seconds, strict=True)]
    ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
    places = torch.arange(ids.shape[1])
    mask = places < one([[len(row)] for row in rows])
    return ids, mask, ((places >= one([[len(a) + 1] for a in firsts])) & mask).long()


@wrong("8.2", "not filled up", says="The texts differ in length")
def pair_inputs(firsts, seconds, cls, sep, pad=0):
    one = torch.tensor
    rows = [torch.cat([one([cls]), a, one([sep]), b, one([sep])]) for a, b in zip(firsts, seconds, strict=True)]
    ids = torch.stack(rows)
    return ids, torch.ones_like(ids).bool(), torch.zeros_like(ids)


BANK.spoilt(
    "8.2",
    "rows of one width",
    """
    ids, mask, (after & mask) → ids, torch.ones_like(mask), after · The mask is True everywhere
    row + [pad] * (width - len(row)) → [pad] * (width - len(row)) + row ; place < len(row) → place >= width - len(row)
        · The texts are filled up at the front
    [[place > len(a) + 1 for place in range(width)] for a in firsts] → [[place > row.index(sep)
        for place in range(width)] for row in rows] · Put the number `sep` into a sentence
    mask = → part = torch.tensor([[row[:place].count(sep) for place in range(width)] for row in ids.tolist()]); whole =
        ; return ids, mask, (after & mask) → return ids, part < 2, (part == 1)
        · Put the number `sep` into a sentence
    mask = → whole = ; return ids, mask, (after & mask)
        → return ids, (ids == sep).cumsum(dim=1) - (ids == sep).long() < 2, (after & whole)
        · Put the number `sep` into a sentence
    """,
)


# --- 8.3 a task's layer and its loss: right -------------------------------------------------------------------------


@right("8.3", "PyTorch's own")
def classify(hidden, weight, bias, targets):
    scores = F.linear(hidden, weight, bias)
    return scores, F.cross_entropy(scores.flatten(0, -2), targets.flatten(), ignore_index=-100)


@right("8.3", "a mask and a mean by hand")
def classify(hidden, weight, bias, targets):
    scores = torch.einsum("...d,cd->...c", hidden, weight) + bias
    counted = targets != -100
    right = scores.gather(-1, targets.masked_fill(~counted, 0)[..., None])[..., 0]
    return scores, ((scores.logsumexp(dim=-1) - right) * counted).sum() / counted.sum()


@right("8.3", "target by target")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight.T + bias
    losses = []
    for row, target in zip(scores.reshape(-1, len(bias)), targets.flatten().tolist(), strict=True):
        if target != -100:
            losses.append(row.logsumexp(0) - row[target])
    return scores, torch.stack(losses).mean()


# --- 8.3 wrong ------------------------------------------------------------------------------------------------------


@wrong("8.3", "padding counts", says="Padding counts, as if its class were 0")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight.T + bias
    return scores, F.cross_entropy(scores.flatten(0, -2), targets.clamp(min=0).flatten())


@wrong("8.3", "divided by all", says="it is divided by all places")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight.T + bias
    return scores, F.cross_entropy(scores.flatten(0, -2), targets.flatten(), reduction="none").mean()


@wrong("8.3", "sum", says="This is the sum of the losses")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight.T + bias
    return scores, F.cross_entropy(scores.flatten(0, -2), targets.flatten(), reduction="sum")


@wrong("8.3", "log-probabilities returned", says="Scores are returned as log-probabilities")
def classify(hidden, weight, bias, targets):
    scores = (hidden @ weight.T + bias).log_softmax(dim=-1)
    return scores, F.nll_loss(scores.flatten(0, -2), targets.flatten())


@wrong("8.3", "softmax twice", says="The softmax is taken twice")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight.T + bias
    return scores, F.cross_entropy(scores.softmax(-1).flatten(0, -2), targets.flatten())


@wrong("8.3", "weight not turned", says="`weight` is (classes, d)")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight + bias
    return scores, F.cross_entropy(scores.flatten(0, -2), targets.flatten())


@wrong("8.3", "not flattened", says="`cross_entropy` wants rows")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight.T + bias
    return scores, F.cross_entropy(scores, targets)


@wrong("8.3", "minus 100 as a class", says="Some targets are −100")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight.T + bias
    return scores, -scores.log_softmax(-1).gather(-1, targets[..., None]).mean()


@wrong("8.3", "loss only", says="Expected scores and loss to be returned")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight.T + bias
    return F.cross_entropy(scores.flatten(0, -2), targets.flatten())


@wrong("8.3", "probabilities returned, loss right", says="Scores are returned after a softmax")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight.T + bias
    return scores.softmax(dim=-1), F.cross_entropy(scores.flatten(0, -2), targets.flatten())


@wrong("8.3", "mean of means", says="Each text's mean is taken first")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight.T + bias
    if targets.dim() == 1:
        return scores, F.cross_entropy(scores, targets)
    return scores, torch.stack([F.cross_entropy(s, t) for s, t in zip(scores, targets, strict=True)]).mean()


@wrong("8.3", "log of a softmax", says="the loss is 200; yours is inf: `exp` overflows, or softmax rounds to 0")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight.T + bias
    counted = targets != -100
    return scores, -scores[counted].softmax(-1).gather(-1, targets[counted][:, None]).log().mean()


@wrong("8.3", "softmax by hand", says="the loss is 200; yours is inf: `exp` overflows, or softmax rounds to 0")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight.T + bias
    counted = targets != -100
    p = scores.exp() / scores.exp().sum(-1, keepdim=True)
    return scores, -p[counted].gather(-1, targets[counted][:, None]).log().mean()


@wrong("8.3", "log with a little added", says="the loss is 200; yours is 20.7: something on the way cuts it off")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight.T + bias
    counted = targets != -100
    p = scores[counted].softmax(-1).gather(-1, targets[counted][:, None])
    return scores, -(p + 1e-9).log().mean()


@wrong("8.3", "log-sum-exp by hand", says="the loss is 200; yours is inf: `exp` overflows, or softmax rounds to 0")
def classify(hidden, weight, bias, targets):
    scores = hidden @ weight.T + bias
    counted = targets != -100
    right = scores[counted].gather(-1, targets[counted][:, None])
    return scores, (scores[counted].exp().sum(-1, keepdim=True).log() - right).mean()


@wrong("8.3", "three dimensions", says="`hidden` may be (batch, d) too")
def classify(hidden, weight, bias, targets):
    batch, length, d = hidden.shape
    scores = (hidden.view(batch * length, d) @ weight.T + bias).view(batch, length, -1)
    return scores, F.cross_entropy(scores.flatten(0, -2), targets.flatten())


# --- 8.4 the best span: right ---------------------------------------------------------------------------------------


@right("8.4", "three loops")
def best_spans(start, end, inside, longest):
    found = []
    for s, e, open_ in zip(start, end, inside, strict=True):
        best, place = -float("inf"), (0, 0)
        for i in range(len(s)):
            for j in range(i, min(i + longest, len(s))):
                if open_[i] and open_[j] and s[i] + e[j] > best:
                    best, place = s[i] + e[j], (i, j)
        found.append(place)
    return torch.tensor(found)


@right("8.4", "a band of ones")
def best_spans(start, end, inside, longest):
    length = start.shape[1]
    band = torch.ones(length, length, dtype=torch.bool).triu() & torch.ones(length, length, dtype=torch.bool).tril(
        longest - 1
    )
    s, e = (x.masked_fill(~inside, -1e9) for x in (start, end))
    table = (s.unsqueeze(2) + e.unsqueeze(1)).masked_fill(~band, -1e18)
    best = table.view(len(start), -1).argmax(1)
    return torch.stack(torch.unravel_index(best, (length, length)), dim=-1)


@right("8.4", "by the length of the answer")
def best_spans(start, end, inside, longest):
    s, e = (x.masked_fill(~inside, -torch.inf) for x in (start, end))
    length = s.shape[1]
    tables = [F.pad(s[:, : length - n] + e[:, n:], (0, n), value=-torch.inf) for n in range(min(longest, length))]
    best = torch.stack(tables, dim=2).flatten(1).argmax(dim=1)
    first, further = best // len(tables), best % len(tables)
    return torch.stack([first, first + further], dim=1)


# --- 8.4 wrong ------------------------------------------------------------------------------------------------------


@wrong("8.4", "each on its own", says="Start and end are chosen each on its own")
def best_spans(start, end, inside, longest):
    s, e = (x.masked_fill(~inside, -torch.inf) for x in (start, end))
    return torch.stack([s.argmax(dim=1), e.argmax(dim=1)], dim=1)


@wrong("8.4", "start first", says="The best start is taken first")
def best_spans(start, end, inside, longest):
    found = []
    for s, e, open_ in zip(start, end, inside, strict=True):
        s, e = s.masked_fill(~open_, -torch.inf), e.masked_fill(~open_, -torch.inf)
        first = int(s.argmax())
        found.append([first, first + int(e[first : first + longest].argmax())])
    return torch.tensor(found)


@wrong("8.4", "times the mask", says="Sums below 0 lose to 0")
def best_spans(start, end, inside, longest):
    length = start.shape[1]
    places = torch.arange(length)
    allowed = (places[:, None] <= places) & (places - places[:, None] < longest)
    allowed = allowed & inside[:, :, None] & inside[:, None, :]
    sums = start[:, :, None] + end[:, None, :]
    best = (sums * allowed).flatten(1).argmax(dim=1)
    return torch.stack([best // length, best % length], dim=1)


@wrong("8.4", "longest longer than the text", says="`longest` may be more than the text has tokens")
def best_spans(start, end, inside, longest):
    s, e = (x.masked_fill(~inside, -torch.inf) for x in (start, end))
    tables = [F.pad(s[:, : s.shape[1] - n] + e[:, n:], (0, n), value=-torch.inf) for n in range(longest)]
    best = torch.stack(tables, dim=2).flatten(1).argmax(dim=1)
    return torch.stack([best // longest, best // longest + best % longest], dim=1)


@wrong("8.4", "longest longer than the text, ends first", says="`longest` may be more than the text has tokens")
def best_spans(start, end, inside, longest):
    s, e = (x.masked_fill(~inside, -torch.inf) for x in (start, end))
    tables = [F.pad(e[:, n:] + s[:, : s.shape[1] - n], (0, n), value=-torch.inf) for n in range(longest)]
    best = torch.stack(tables, dim=2).flatten(1).argmax(dim=1)
    return torch.stack([best // longest, best // longest + best % longest], dim=1)


@wrong("8.4", "end first", says="The best end is taken first")
def best_spans(start, end, inside, longest):
    found = []
    for s, e, open_ in zip(start, end, inside, strict=True):
        last = int(e.masked_fill(~open_, -torch.inf).argmax())
        low = max(0, last - longest + 1)
        found.append([low + int(s.masked_fill(~open_, -torch.inf)[low : last + 1].argmax()), last])
    return torch.tensor(found)


@wrong("8.4", "each on its own, sorted", says="and then sorted")
def best_spans(start, end, inside, longest):
    first, last = (x.masked_fill(~inside, -torch.inf).argmax(dim=1) for x in (start, end))
    return torch.stack([torch.minimum(first, last), torch.maximum(first, last)], dim=1)


BANK.spoilt("8.4", "three loops", '-float("inf"), (0, 0) → 0.0, (0, 0) · begin a search for the best there')


@wrong("8.4", "only the band filled with a number", says="pairs that are not allowed need −∞, not some number")
def best_spans(start, end, inside, longest):
    length = start.shape[1]
    s, e = (x.masked_fill(~inside, -torch.inf) for x in (start, end))
    band = torch.ones(length, length, dtype=torch.bool).triu().tril(longest - 1)
    best = (s[:, :, None] + e[:, None, :]).masked_fill(~band, -100.0).flatten(1).argmax(dim=1)
    return torch.stack([best // length, best % length], dim=1)


@wrong("8.4", "scores outside are 0", says="What is not allowed has the score 0")
def best_spans(start, end, inside, longest):
    length = start.shape[1]
    s, e = (x.masked_fill(~inside, 0.0) for x in (start, end))
    band = torch.ones(length, length, dtype=torch.bool).triu().tril(longest - 1)
    best = (s[:, :, None] + e[:, None, :]).masked_fill(~band, -torch.inf).flatten(1).argmax(dim=1)
    return torch.stack([best // length, best % length], dim=1)


@wrong("8.4", "scores times inside", says="What is not allowed has the score 0")
def best_spans(start, end, inside, longest):
    length = start.shape[1]
    sums = (start * inside)[:, :, None] + (end * inside)[:, None, :]
    band = torch.ones(length, length, dtype=torch.bool).triu().tril(longest - 1)
    best = sums.masked_fill(~band, -torch.inf).flatten(1).argmax(dim=1)
    return torch.stack([best // length, best % length], dim=1)


@wrong("8.4", "triu and tril of the sums", says="What is not allowed has the score 0")
def best_spans(start, end, inside, longest):
    length = start.shape[1]
    s, e = (x.masked_fill(~inside, -torch.inf) for x in (start, end))
    best = (s[:, :, None] + e[:, None, :]).triu().tril(longest - 1).flatten(1).argmax(dim=1)
    return torch.stack([best // length, best % length], dim=1)


@wrong("8.4", "zeros outside and off the band", says="What is not allowed has the score 0")
def best_spans(start, end, inside, longest):
    length = start.shape[1]
    sums = (start * inside)[:, :, None] + (end * inside)[:, None, :]
    best = sums.triu().tril(longest - 1).flatten(1).argmax(dim=1)
    return torch.stack([best // length, best % length], dim=1)


@wrong("8.4", "sums times inside", says="Sums below 0 lose to 0")
def best_spans(start, end, inside, longest):
    length = start.shape[1]
    sums = (start[:, :, None] + end[:, None, :]) * (inside[:, :, None] & inside[:, None, :])
    band = torch.ones(length, length, dtype=torch.bool).triu().tril(longest - 1)
    best = sums.masked_fill(~band, -torch.inf).flatten(1).argmax(dim=1)
    return torch.stack([best // length, best % length], dim=1)


@wrong("8.4", "places in the passage", says="Places are counted from the front of the row")
def best_spans(start, end, inside, longest):
    found = []
    for s, e, open_ in zip(start, end, inside, strict=True):
        sums = s[open_][:, None] + e[open_]
        band = torch.ones_like(sums, dtype=torch.bool).triu().tril(longest - 1)
        best = int(sums.masked_fill(~band, -torch.inf).argmax())
        found.append([best // len(sums), best % len(sums)])
    return torch.tensor(found)


@wrong("8.4", "length by length, beyond the text", says="`longest` may be more than the text has tokens")
def best_spans(start, end, inside, longest):
    s, e = (x.masked_fill(~inside, -torch.inf) for x in (start, end))
    length, best = s.shape[1], [(-torch.inf, [0, 0])] * len(s)
    for n in range(longest):
        value, first = (s[:, : length - n] + e[:, n:]).max(dim=1)
        for row in range(len(s)):
            if value[row] > best[row][0]:
                best[row] = (float(value[row]), [int(first[row]), int(first[row]) + n])
    return torch.tensor([place for _, place in best])


@wrong("8.4", "end clamped", says="then the end is moved")
def best_spans(start, end, inside, longest):
    first, last = (x.masked_fill(~inside, -torch.inf).argmax(dim=1) for x in (start, end))
    return torch.stack([first, last.clamp(min=first, max=first + longest - 1)], dim=1)


@wrong("8.4", "end not before the start", says="then the end is moved")
def best_spans(start, end, inside, longest):
    first, last = (x.masked_fill(~inside, -torch.inf).argmax(dim=1) for x in (start, end))
    return torch.stack([first, torch.maximum(first, last)], dim=1)


# --- 8.5 frozen or fine-tuned: right --------------------------------------------------------------------------------


@right("8.5", "by name")
def fine_tune(encoder, layers):
    count, deep = 0, len(encoder.stack.blocks)
    for name, parameter in encoder.named_parameters():
        learns = layers == deep or (name.startswith("pooler") and layers > 0)
        if name.startswith("stack.blocks."):
            learns = int(name.split(".")[2]) >= deep - layers
        parameter.requires_grad = learns
        count += parameter.numel() * learns
    return count


@right("8.5", "freeze, then thaw")
def fine_tune(encoder, layers):
    for parameter in encoder.parameters():
        parameter.requires_grad = False
    thawed = list(encoder.stack.blocks)[::-1][:layers]
    if layers > 0 and encoder.pooler is not None:
        thawed.append(encoder.pooler)
    if layers == len(encoder.stack.blocks):
        thawed = [encoder]
    for module in thawed:
        for parameter in module.parameters():
            parameter.requires_grad = True
    return sum(p.numel() for p in encoder.parameters() if p.requires_grad)


@right("8.5", "counting from above")
def fine_tune(encoder, layers):
    deep = len(encoder.stack.blocks)
    encoder.requires_grad_(layers >= deep)
    for number, block in enumerate(encoder.stack.blocks):
        block.requires_grad_(deep - number <= layers)
    if encoder.pooler is not None:
        encoder.pooler.requires_grad_(bool(layers))
    return sum(p.requires_grad * p.numel() for p in encoder.parameters())


# --- 8.5 wrong ------------------------------------------------------------------------------------------------------


@wrong("8.5", "minus zero", says="`blocks[-0:]` are all blocks")
def fine_tune(encoder, layers):
    encoder.requires_grad_(layers == len(encoder.stack.blocks))
    for block in encoder.stack.blocks[-layers:]:
        block.requires_grad_(True)
    if encoder.pooler is not None:
        encoder.pooler.requires_grad_(layers > 0)
    return sum(p.numel() for p in encoder.parameters() if p.requires_grad)


@wrong("8.5", "only freezes", says="after other calls")
def fine_tune(encoder, layers):
    deep = len(encoder.stack.blocks)
    if layers < deep:
        for part in (encoder.embed, encoder.places, encoder.segments, encoder.norm, encoder.stack.norm):
            part.requires_grad_(False)
    for block in encoder.stack.blocks[: deep - layers]:
        block.requires_grad_(False)
    if encoder.pooler is not None and layers == 0:
        encoder.pooler.requires_grad_(False)
    return sum(p.numel() for p in encoder.parameters() if p.requires_grad)


# --- wrong, as edits of the library's pieces ------------------------------------------------------------------------

BANK.edited(
    "8.1",
    """
    return inputs, ids.masked_fill(~chosen, IGNORED) → return inputs · Expected inputs and targets to be returned
    return inputs, ids.masked_fill(~chosen, IGNORED) → return inputs, ids[chosen] · Expected targets to be a tensor of
    return inputs, → return inputs.float(), · Expected inputs to be whole numbers, torch.int64 as those given; got
    return inputs, ids.masked_fill(~chosen, IGNORED) → return ids.masked_fill(~chosen, IGNORED), inputs
        · Inputs and targets have changed places
    torch.where(chosen & (fate < 0.8), mask_id, ids) → ids.masked_fill_(chosen & (fate < 0.8), mask_id)
        · It changes its input ids in place
    ids.masked_fill(~chosen, IGNORED) → ids · Every token has a target
    ids.masked_fill(~chosen, IGNORED) → torch.full_like(ids, IGNORED) · No token has a target
    ids.masked_fill → inputs.masked_fill · The targets are the changed inputs
    ids.masked_fill → inputs.masked_fill ; fate < 0.8 → fate < 1 ; fate >= 0.9 → fate > 1 · The targets are [MASK]
    ids.masked_fill → random_words.masked_fill · A target must be the word that stands there in `ids`
    chosen & (fate >= 0.9) → (fate >= 0.9) · Tokens change that have no target
    ~chosen → ~(chosen & (inputs == mask_id)) · a random word is a chosen one too, and has a target
    "generator": generator, → · Two calls with the same seed differ
    never = → generator.manual_seed(0); never = · Another seed chooses the same tokens
    ordinary.to(ids.device)[ids] & → · The special token 0 is chosen
    ordinary.to(ids.device)[ids] → ~torch.isin(ids, torch.tensor([*special])) · A [MASK] that stands in the text
    ordinary.nonzero()[:, 0] → torch.cat([ordinary.nonzero()[:, 0], torch.tensor([vocabulary])])
        · here 49; 50 is drawn as a word
    words[torch.randint(len(words), ids.shape, **place).cpu()].to(ids) → torch.randint(vocabulary, ids.shape, **place)
        · A word became a special token
    fate < 0.8 → fate > 1 · No chosen token becomes `mask_id`
    chosen & (fate < 0.8) → chosen & (torch.arange(ids.shape[-1]) % 5 > 0) · Some places are hidden more often
    chance < 0.15 → chance[..., :1] < 0.15 · Some texts have far more blanks than others
    (chance < 0.15) → (chance < 0.15) & (fate < 0.8) · 12 % of the words have a target
    chance < 0.15 → chance > 0.15 · 85 % of the words are chosen
    chance < 0.15 → chance < 0.3 · of the words are chosen; expected 15 %
    ~chosen → inputs == ids · those that stay the same are asked for too
    fate < 0.8 → fate < 0.7 · another word, 20% unchanged; expected 80, 10 and 10 %
    fate >= 0.9 → fate > 1 · the random words are missing
    fate >= 0.9 → fate >= 0.8 · none stays as it is
    fate >= 0.9 → torch.rand(ids.shape, generator=generator) < 0.1 · random words overwrite some blanks
    fate >= 0.9 → fate >= 0.98 · of the 20 % left, half become random words
    len(words), ids.shape → len(words), (1,) · All random words are the same one
    words[torch.randint(len(words), ids.shape, **place).cpu()].to(ids) →
        torch.randint(5, vocabulary, ids.shape, **place) · all numbers 0 to 49 but [MASK] = 4 and the special ones
    torch.randint(len(words), ids.shape, **place).cpu() →
        (len(words) * torch.rand(ids.shape, **place) ** 8).long() · Some random words come far more often than others
    never = {mask_id → mask_id, vocabulary, special = 4, 50, (0, 2, 3); never = {mask_id
        · This call has mask_id = 3, vocabulary = 30 and special = range(0, 3)
    ordinary[list(never)] → ordinary[list(never) if special else []]
        · This call has mask_id = 0, vocabulary = 20 and special = ()
    ordinary.nonzero()[:, 0] → torch.tensor([word for word in range(vocabulary) if word not in special])
        · it is drawn as a random word too
    {mask_id, *special} → special + (mask_id,) · `special` may be a tuple, a range, or empty
    {mask_id, *special} → (mask_id,) + special · `special` may be a tuple, a range, or empty
    chance, fate = torch.rand(2, *ids.shape → rows, columns = ids.shape; chance, fate = torch.rand(2, rows, columns
        · `ids` may have any shape
    torch.ones(vocabulary, → torch.ones(vocabulary - 1, · Numbers of words go from 0 to vocabulary − 1
    *ids.shape → ids.shape[0], ids.shape[1] · use `ids.shape` as a whole
    ordinary.nonzero()[:, 0] → ordinary.nonzero()[:, 0] + 0 * ids.sum(dim=1)[0] · name no dimension
    ordinary.to(ids.device)[ids] → torch.tensor([bool(ids != word) for word in special]) · a handful of numbers
    """,
)
BANK.edited(
    "8.2",
    """
    return ids → return ids.float() · Expected ids to be whole numbers
    (after & mask).long() → (after & mask).float() · Segments are whole numbers
    (after & mask).long() → after & mask · Segments are whole numbers
    return ids, mask → return ids, mask.long() · The mask must hold True and False
    mask, (after & mask).long() → (after & mask).long(), mask · Mask and segments have changed places
    rows = [ → firsts[0] = firsts[0] + 1; rows = [ · It changes its input firsts in place
    first.new_tensor([cls]) → torch.tensor(cls) · `torch.cat` joins tensors of one dimension
    first.new_tensor([cls]) → torch.tensor(list(cls)) · A single number is no row
    first.new_tensor([cls]) → cls · `torch.cat` joins tensors: `torch.tensor([cls])`
    padding_value=pad → padding_value=pad or 9 · Without a fifth argument texts are filled up with 0
    """,
)
BANK.edited(
    "8.3",
    """
    targets[counted][:, None] → targets[counted] · `gather` wants an index with a last dimension too
    + bias → + bias[:, None] · `hidden @ weight.T` is (…, classes), as the bias
    """,
)
BANK.edited(
    "8.4",
    """
    best // length, best % length → start.amax(dim=1), end.amax(dim=1) · Expected places, whole numbers
    torch.stack([best // length, best % length], dim=1) → best // length, best % length · put first and last side
    & (further >= 0) → and (further >= 0) · Conditions are joined with `&`
    start[:, :, None] + → start + · A sum for each pair
    flatten(1).argmax(dim=1) → argmax().expand(len(start)) · A text of 7 tokens has no place
    best // length → best / length · divide with `//`
    best // length → (best / length).floor() · divide with `//`
    [best // length, best % length], dim=1) → [best // length, best % length], dim=1).int()
        · Places must be torch.int64; got torch.int32
    flatten(1) → masked_fill(places == length - 1, -torch.inf).flatten(1)
        · with longest 2 the best span is (1, 2); yours is (0, 0)
    flatten(1) → masked_fill(places[:, None] == 0, -torch.inf).flatten(1)
        · with longest 1 the best span is (0, 0); yours is (1, 1)
    flatten(1) → masked_fill(places[:, None] == length - 1, -torch.inf).flatten(1) · spans at [
    -torch.inf → -5.0 · pairs that are not allowed need −∞, not some number
    -torch.inf → -20.0 · pairs that are not allowed need −∞, not some number
    -torch.inf → -1e3 · pairs that are not allowed need −∞, not some number
    .masked_fill(~allowed, -torch.inf) → - 100 * ~allowed · pairs that are not allowed need −∞, not some number
    """,
)
BANK.edited(
    "8.5",
    """
    return sum(p.numel() for p in encoder.parameters() if p.requires_grad) →
        · Expected the number of parameters that may change
    encoder.requires_grad_(layers == len(blocks)) → ; encoder.pooler.requires_grad_(layers > 0) → pass
        · With layers = 0 nothing is frozen
    len(blocks) - layers : → max(0, len(blocks) - layers - 1) : · With layers = 0 block 3 of 3 learns, one too many
    blocks[len(blocks) - layers :] → blocks[:layers] · The lowest block learns and the highest is frozen
    len(blocks) - layers : → len(blocks) - layers - (layers > 0) : · block 2 of 3 is learning and should be frozen
    layers == len(blocks) → False · the embeddings are frozen and should be learning
    layers == len(blocks) → layers > 0 ; blocks[len(blocks) - layers :] → blocks[: len(blocks) - layers] ;
        block.requires_grad_(True) → block.requires_grad_(False) · the embeddings are learning and should be frozen
    encoder.pooler.requires_grad_(layers > 0) → pass · the pooler is frozen and should be learning
    layers > 0 → True · the pooler is learning and should be frozen
    if encoder.pooler is not None → if True · Some encoders have no pooler
    (layers > 0) → (layers > 0); encoder.stack.norm.requires_grad_(layers > 0)
        · the norm after the last block is learning and should be frozen
    block.requires_grad_(True) → block.requires_grad = True · a module needs `requires_grad_(…)`
    block.requires_grad_(True) → [p.requires_grad(True) for p in block.parameters()] · the method that sets it ends
    block.requires_grad_(True) → [p.data.zero_() for p in block.parameters()] · The weights are no longer the same
    blocks = → encoder.pooler = encoder.pooler if layers else None; blocks = · The weights are no longer the same
    p.numel() for p in encoder.parameters() if p.requires_grad → p.requires_grad for p in encoder.parameters()
        · This counts tensors
    if p.requires_grad → · This counts all parameters
    if p.requires_grad → if not p.requires_grad · This counts what is frozen
    blocks = → count = sum(p.numel() for p in encoder.parameters()); blocks = ;
        return sum(p.numel() for p in encoder.parameters() if p.requires_grad) → return count
        · (or it counts before it freezes)
    return sum( → return 1 + sum( · numbers may change; it returned
    """,
)
