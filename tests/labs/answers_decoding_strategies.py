"""The bank of lesson 09. An answer uses only torch, or imports what it needs."""
# ruff: noqa: B905, F811, RUF059

import torch
from bank import Bank

BANK = Bank()
wrong, right = BANK.wrong, BANK.right

# What a mutant of the library's piece changes, as its new line → why it is no mistake.
EQUIVALENT = {
    "9.1": {"for _ in list(range(new))[::-1]:": "as many turns"},
    "9.2": {
        "return (best, best / n ** length_penalty, index // logits.shape[-1], index % total.shape[-1])": "same size",
        "return (best, best / n ** length_penalty, index // total.shape[-1], index % logits.shape[-1])": "same size",
    },
    "9.3": {
        "p = (filters(scores, ids) if filters else scores).softmax(dim=1)": "1 is the last",
        "return torch.multinomial(p, 2, generator=generator)[:, 0]": "the first of two draws is a draw",
        "return torch.multinomial(p, 1, generator=generator)[:, -1]": "there is one column",
    },
    "9.4": {},
    "9.5": {"rising[..., -1] = False": "the best goes only where p is smaller than what rounding loses"},
    "9.6": {
        "return (kept, torch.where(total > 0, rest / total, q))": "there p = q",
        "kept = torch.where(q > 0, p / q, 2.0).clamp(max=1.0)": "clamped to 1",
    },
}


# --- 9.1 walk: right ------------------------------------------------------------------------------------------------


@right("9.1", "cat")
def walk(model, ids, new, choose, end=None):
    over = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    for _ in range(new):
        token = choose(model(ids)[:, -1, :], ids)
        if end is not None:
            token = torch.where(over, end, token)
            over = over | (token == end)
        ids = torch.cat([ids, token[:, None]], dim=1)
        if over.all():
            break
    return ids


@right("9.1", "while, asks the text itself")
def walk(model, ids, new, choose, end=None):
    start = ids.shape[1]
    while ids.shape[1] < start + new:
        over = (ids[:, start:] == end).any(dim=1) if end is not None else torch.zeros(len(ids), dtype=torch.bool)
        if over.all():
            return ids
        token = choose(model(ids)[:, -1], ids).unsqueeze(1)
        if end is not None:
            token[over] = end
        ids = torch.hstack((ids, token))
    return ids


@right("9.1", "calls itself, as the slide")
def walk(model, ids, new, choose, end=None):
    def more(ids, new, over):
        if new == 0 or over.all():
            return ids
        token = choose(model(ids)[:, -1], ids)
        if end is not None:
            token = token.masked_fill(over, end)
            over = over | (token == end)
        return more(torch.cat([ids, token.view(-1, 1)], 1), new - 1, over)

    return more(ids, new, torch.zeros(ids.shape[0]).bool())


@right("9.1", "lists of columns")
def walk(model, ids, new, choose, end=None):
    columns, over = list(ids.unbind(1)), [False] * len(ids)
    for _ in range(new):
        so_far = torch.stack(columns, dim=1)
        tokens = choose(model(so_far)[:, -1], so_far).tolist()
        for i in range(len(tokens)):
            if over[i]:
                tokens[i] = end
            over[i] = end is not None and tokens[i] == end
        columns.append(torch.tensor(tokens))
        if all(over):
            break
    return torch.stack(columns, dim=1)


# --- 9.1 wrong ------------------------------------------------------------------------------------------------------


@wrong("9.1", "first place", says="These are the scores after the first token")
def walk(model, ids, new, choose, end=None):
    over = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        token = choose(model(ids)[:, 0], ids)
        if end is not None:
            token = token.masked_fill(over, end)
            over |= token == end
        ids = torch.cat([ids, token[:, None]], dim=1)
        if over.all():
            break
    return ids


@wrong("9.1", "last token alone", says="The model is shown the last token alone")
def walk(model, ids, new, choose, end=None):
    over = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        token = choose(model(ids[:, -1:])[:, -1], ids)
        if end is not None:
            token = token.masked_fill(over, end)
            over |= token == end
        ids = torch.cat([ids, token[:, None]], dim=1)
        if over.all():
            break
    return ids


@wrong("9.1", "the prompt again and again", says="The model is shown the prompt again and again")
def walk(model, ids, new, choose, end=None):
    out, over = ids, torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        token = choose(model(ids)[:, -1], out)
        if end is not None:
            token = token.masked_fill(over, end)
            over |= token == end
        out = torch.cat([out, token[:, None]], dim=1)
        if over.all():
            break
    return out


@wrong("9.1", "end forgotten", says="`end` is not used")
def walk(model, ids, new, choose, end=None):
    for _ in range(new):
        ids = torch.cat([ids, choose(model(ids)[:, -1], ids)[:, None]], dim=1)
    return ids


@wrong("9.1", "texts that are over go on", says="Texts that are over go on")
def walk(model, ids, new, choose, end=None):
    over = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids)
        ids = torch.cat([ids, token[:, None]], dim=1)
        over |= token == end
        if over.all():
            break
    return ids


@wrong("9.1", "never stops early", says="When every text is over the walk is over too")
def walk(model, ids, new, choose, end=None):
    over = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids)
        if end is not None:
            token = token.masked_fill(over, end)
            over |= token == end
        ids = torch.cat([ids, token[:, None]], dim=1)
    return ids


@wrong("9.1", "stops with the first", says="It stops when one text is over")
def walk(model, ids, new, choose, end=None):
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids)
        ids = torch.cat([ids, token[:, None]], dim=1)
        if end is not None and (token == end).any():
            break
    return ids


@wrong("9.1", "the end is dropped", says="The `end` of the last text belongs to the result")
def walk(model, ids, new, choose, end=None):
    over = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids)
        if end is not None:
            token = token.masked_fill(over, end)
            over |= token == end
        ids = torch.cat([ids, token[:, None]], dim=1)
        if over.all():
            break
    return ids if end is None else ids[:, :-1]


@wrong("9.1", "only what is new", says="The prompt belongs to the result")
def walk(model, ids, new, choose, end=None):
    length, over = ids.shape[1], torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids)
        if end is not None:
            token = token.masked_fill(over, end)
            over |= token == end
        ids = torch.cat([ids, token[:, None]], dim=1)
        if over.all():
            break
    return ids[:, length:]


@wrong("9.1", "one too few", says="One token too few is added")
def walk(model, ids, new, choose, end=None):
    over = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(1, new):
        token = choose(model(ids)[:, -1], ids)
        if end is not None:
            token = token.masked_fill(over, end)
            over |= token == end
        ids = torch.cat([ids, token[:, None]], dim=1)
        if over.all():
            break
    return ids


@wrong("9.1", "probabilities to choose from", says="`choose` is given probabilities")
def walk(model, ids, new, choose, end=None):
    over = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        token = choose(model(ids)[:, -1].softmax(-1), ids)
        if end is not None:
            token = token.masked_fill(over, end)
            over |= token == end
        ids = torch.cat([ids, token[:, None]], dim=1)
        if over.all():
            break
    return ids


@wrong("9.1", "choose is given the prompt", says="`choose` is given the prompt")
def walk(model, ids, new, choose, end=None):
    prompt, over = ids, torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        token = choose(model(ids)[:, -1], prompt)
        if end is not None:
            token = token.masked_fill(over, end)
            over |= token == end
        ids = torch.cat([ids, token[:, None]], dim=1)
        if over.all():
            break
    return ids


@wrong("9.1", "not a column", says="to append them, (batch, 1): [:, None]")
def walk(model, ids, new, choose, end=None):
    for _ in range(new):
        ids = torch.cat([ids, choose(model(ids)[:, -1], ids)], dim=1)
    return ids


@wrong("9.1", "below each other", says="Append the tokens as a column")
def walk(model, ids, new, choose, end=None):
    for _ in range(new):
        ids = torch.cat([ids, choose(model(ids)[:, -1], ids)[:, None]])
    return ids


@wrong("9.1", "asks a batch whether it is over", says="`over.all()`; `end` may be None")
def walk(model, ids, new, choose, end=None):
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids)
        ids = torch.cat([ids, token[:, None]], dim=1)
        if token == end:
            break
    return ids


@wrong("9.1", "always the best", says="`choose` is not used")
def walk(model, ids, new, choose, end=None):
    over = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        token = model(ids)[:, -1].argmax(-1)
        if end is not None:
            token = token.masked_fill(over, end)
            over |= token == end
        ids = torch.cat([ids, token[:, None]], dim=1)
        if over.all():
            break
    return ids


@wrong("9.1", "nothing returned", says="None (is the `return` missing?)")
def walk(model, ids, new, choose, end=None):
    for _ in range(new):
        ids = torch.cat([ids, choose(model(ids)[:, -1], ids)[:, None]], dim=1)


@wrong("9.1", "endless", says="is there a loop that never ends?")
def walk(model, ids, new, choose, end=None):
    while True:
        token = choose(model(ids)[:, -1], ids)
        if end is not None and (token == end).all():
            return ids


@wrong("9.1", "end taken for a truth value", says="`end` may be 0")
def walk(model, ids, new, choose, end=None):
    over = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids)
        if end:
            token = token.masked_fill(over, end)
            over |= token == end
        ids = torch.cat([ids, token[:, None]], dim=1)
        if end and over.all():
            break
    return ids


@wrong("9.1", "all in the same step", says="It stops only if all texts end in the same step")
def walk(model, ids, new, choose, end=None):
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids)
        ids = torch.cat([ids, token[:, None]], dim=1)
        if end is not None and (token == end).all():
            break
    return ids


@wrong("9.1", "the prompt, then the last token", says="After the first step the model is shown the last token alone")
def walk(model, ids, new, choose, end=None):
    over, shown = torch.zeros(len(ids), dtype=torch.bool), ids
    for _ in range(new):
        token = choose(model(shown)[:, -1], ids)
        if end is not None:
            token = token.masked_fill(over, end)
            over |= token == end
        shown = token[:, None]
        ids = torch.cat([ids, shown], dim=1)
        if over.all():
            break
    return ids


@wrong("9.1", "asks the last token", says="An `end` in the prompt does not count")
def walk(model, ids, new, choose, end=None):
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids)
        if end is not None:
            token = token.masked_fill(ids[:, -1] == end, end)
        ids = torch.cat([ids, token[:, None]], dim=1)
        if end is not None and (token == end).all():
            break
    return ids


@wrong("9.1", "a prompt may be over", says="An `end` in the prompt does not count")
def walk(model, ids, new, choose, end=None):
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


@wrong("9.1", "scores after every place", says="`choose` takes the scores after the last token alone")
def walk(model, ids, new, choose, end=None):
    for _ in range(new):
        token = choose(model(ids), ids)
        ids = torch.cat([ids, token[:, None]], dim=1)
    return ids


@wrong("9.1", "end always there", says="`end` may be None")
def walk(model, ids, new, choose, end=None):
    over = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids).masked_fill(over, end)
        over |= token == end
        ids = torch.cat([ids, token[:, None]], dim=1)
        if over.all():
            break
    return ids


# --- 9.2 extend: right ----------------------------------------------------------------------------------------------


@right("9.2", "sort and divmod")
def extend(scores, logits, count, n, length_penalty):
    batch, beams, vocabulary = logits.shape
    total = torch.log_softmax(logits, dim=2) + scores.view(batch, beams, 1)
    values, places = total.view(batch, -1).sort(dim=1, descending=True)
    values, places = values[:, :count], places[:, :count]
    parent = torch.div(places, vocabulary, rounding_mode="floor")
    return values, values * n ** (-length_penalty), parent, places - parent * vocabulary


@right("9.2", "a list for each text")
def extend(scores, logits, count, n, length_penalty):
    rows = []
    for i in range(len(scores)):
        found = []
        for beam in range(logits.shape[1]):
            log_p = logits[i, beam] - logits[i, beam].logsumexp(0)
            for token in range(logits.shape[2]):
                found.append((float(scores[i, beam] + log_p[token]), beam, token))
        rows.append(sorted(found, reverse=True)[:count])
    best = torch.tensor([[entry[0] for entry in row] for row in rows], dtype=scores.dtype)
    parent = torch.tensor([[entry[1] for entry in row] for row in rows])
    token = torch.tensor([[entry[2] for entry in row] for row in rows])
    return best, best / n**length_penalty, parent, token


@right("9.2", "softmax, then log")
def extend(scores, logits, count, n, length_penalty):
    p = scores.exp().unsqueeze(-1) * logits.softmax(-1)
    best, index = torch.topk(p.log().flatten(start_dim=1), count)
    return best, best / (n**length_penalty), index // logits.size(-1), torch.remainder(index, logits.size(-1))


# --- 9.2 wrong ------------------------------------------------------------------------------------------------------


@wrong("9.2", "the slide: each beam by itself", says="The code in S2 has this slip")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, token = total.topk(count // scores.shape[1], dim=-1)
    parent = torch.arange(scores.shape[1])[None, :, None].expand_as(token)
    return best.flatten(1), best.flatten(1) / n**length_penalty, parent.flatten(1), token.flatten(1)


@wrong("9.2", "scores as log-probabilities", says="`logits` are scores, not yet log-probabilities")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits
    best, index = total.flatten(1).topk(count)
    return best, best / n**length_penalty, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "softmax", says="A probability is added to a log-probability")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return best, best / n**length_penalty, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "beginnings forgotten", says="The scores of the beginnings do not enter")
def extend(scores, logits, count, n, length_penalty):
    total = logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return best, best / n**length_penalty, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "softmax over beams", says="The log_softmax runs over the beams")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=1)
    best, index = total.flatten(1).topk(count)
    return best, best / n**length_penalty, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "divided by the beams", says="divide by the size of the vocabulary")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return best, best / n**length_penalty, index // scores.shape[1], index % scores.shape[1]


@wrong("9.2", "parents and tokens swapped", says="Beams and tokens are swapped")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return best, best / n**length_penalty, index % total.shape[-1], index // total.shape[-1]


@wrong("9.2", "no remainder", says="take the remainder")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return best, best / n**length_penalty, index // total.shape[-1], index


@wrong("9.2", "not normalised", says="it is not divided by anything")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return best, best, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "the mean, always", says="it is divided by n, whatever the penalty")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return best, best / n, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "penalty times n", says="n is multiplied by the penalty; it is the exponent")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return best, best / (n * length_penalty), index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "multiplied", says="it is multiplied.")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return best, best * n**length_penalty, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "only the normalised", says="The first result is the plain log-probability")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    best = best / n**length_penalty
    return best, best, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "the worst", says="These are the least probable continuations")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count, largest=False)
    return best, best / n**length_penalty, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "worst first", says="must come best first")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    best, index = best.flip(1), index.flip(1)
    return best, best / n**length_penalty, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "not flattened", says="Flatten beams and vocabulary first")
def extend(scores, logits, count, n, length_penalty):
    best, index = (scores[..., None] + logits.log_softmax(dim=-1)).topk(count)
    return best, best / n**length_penalty, index // 5, index % 5


@wrong("9.2", "no new dimension", says="logits (batch, beams, vocabulary): `scores[..., None]`")
def extend(scores, logits, count, n, length_penalty):
    total = scores + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return best, best / n**length_penalty, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "no parents", says="got a tuple of 3")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return best, best / n**length_penalty, index % total.shape[-1]


@wrong("9.2", "the slide: each beam's count best, all kept", says="The code in S2 has this slip")
def extend(scores, logits, count, n, length_penalty):
    log_p, token = logits.log_softmax(dim=-1).topk(min(count, logits.shape[-1]), dim=-1)
    best = (scores[..., None] + log_p).flatten(1)
    beam = torch.arange(scores.shape[1])[None, :, None].expand_as(token)
    return best, best / n**length_penalty, beam.flatten(1), token.flatten(1)


@wrong("9.2", "the slide: as many as there are beams", says="The code in S2 has this slip")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, token = total.topk(scores.shape[1], dim=-1)
    beam = torch.arange(scores.shape[1])[None, :, None].expand_as(token)
    return best.flatten(1), best.flatten(1) / n**length_penalty, beam.flatten(1), token.flatten(1)


@wrong("9.2", "each beam's share, scores added later", says="The code in S2 has this slip")
def extend(scores, logits, count, n, length_penalty):
    log_p, token = logits.log_softmax(dim=-1).topk(count // scores.shape[1], dim=-1)
    best, order = (scores[..., None] + log_p).flatten(1).sort(dim=1, descending=True)
    beam = torch.arange(scores.shape[1])[None, :, None].expand_as(token).flatten(1).gather(1, order)
    return best, best / n**length_penalty, beam, token.flatten(1).gather(1, order)


@wrong("9.2", "a list", says="Write `return best, normalised, beams, tokens`")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return [best, best / n**length_penalty, index // total.shape[-1], index % total.shape[-1]]


@wrong("9.2", "fractions of beams", says="`/` gives fractions")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return best, best / n**length_penalty, index / total.shape[-1], index % total.shape[-1]


@wrong("9.2", "places as beams", says="The beams are places among beams · vocabulary")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return best, best / n**length_penalty, index, index % total.shape[-1]


@wrong("9.2", "the whole batch in one row", says="`flatten()` joins the batch too")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten().topk(count)
    return best, best / n**length_penalty, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "softmax of all beams together", says="The log_softmax runs over all beams together")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.flatten(1).log_softmax(dim=-1).view_as(logits)
    best, index = total.flatten(1).topk(count)
    return best, best / n**length_penalty, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "penalty for the new token alone", says="divide the whole sum")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1) / n**length_penalty
    best, index = total.flatten(1).topk(count)
    return best, best / n**length_penalty, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "penalty times n, 0 seen to", says="n is multiplied by the penalty; it is the exponent")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    normalised = best / (n * length_penalty) if length_penalty else best
    return best, normalised, index // total.shape[-1], index % total.shape[-1]


@wrong("9.2", "each beam's share, then the best", says="The code in S2 has this slip")
def extend(scores, logits, count, n, length_penalty):
    log_p, token = logits.log_softmax(dim=-1).topk(count // scores.shape[1], dim=-1)
    best, order = (scores[..., None] + log_p).flatten(1).topk(count)
    beam = torch.arange(scores.shape[1])[None, :, None].expand_as(token).flatten(1).gather(1, order)
    return best, best / n**length_penalty, beam, token.flatten(1).gather(1, order)


# --- 9.3 sample: right ----------------------------------------------------------------------------------------------


@right("9.3", "multinomial")
def sample(model, ids, new, filters=None, end=None, generator=None):
    over = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        scores = model(ids)[:, -1]
        if filters is not None:
            scores = filters(scores, ids)
        token = torch.multinomial(scores.softmax(-1), 1, generator=generator)[:, 0]
        if end is not None:
            token = token.masked_fill(over, end)
            over |= token == end
        ids = torch.cat([ids, token[:, None]], dim=1)
        if over.all():
            break
    return ids


@right("9.3", "with the library's walk")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        if filters:
            scores = filters(scores, so_far)
        return torch.multinomial(torch.softmax(scores, dim=1), num_samples=1, generator=generator).squeeze(1)

    return walk(model, ids, new, choose, end)


@right("9.3", "Gumbel's trick")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        scores = filters(scores, so_far) if filters is not None else scores
        u = torch.rand(scores.shape, generator=generator).clamp(min=1e-12)
        return (scores - (-u.log()).log()).argmax(dim=-1)

    return walk(model, ids, new, choose, end)


@right("9.3", "where the running sum passes a random number")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        scores = filters(scores, so_far) if filters is not None else scores
        sums = scores.softmax(-1).cumsum(-1)
        u = torch.rand(len(scores), 1, generator=generator) * sums[:, -1:]
        return torch.searchsorted(sums, u, right=True)[:, 0].clamp(max=scores.shape[-1] - 1)

    return walk(model, ids, new, choose, end)


# --- 9.3 wrong ------------------------------------------------------------------------------------------------------


@wrong("9.3", "greedy", says="is the best token taken?")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        return (filters(scores, so_far) if filters else scores).argmax(-1)

    return walk(model, ids, new, choose, end)


@wrong("9.3", "no generator", says="draw with the one given, `generator=generator`")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        return torch.multinomial((filters(scores, so_far) if filters else scores).softmax(-1), 1)[:, 0]

    return walk(model, ids, new, choose, end)


@wrong("9.3", "by scores", says="the tokens are drawn by their scores")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        return torch.multinomial(filters(scores, so_far) if filters else scores, 1, generator=generator)[:, 0]

    return walk(model, ids, new, choose, end)


@wrong("9.3", "all equally likely", says="every token is equally likely")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        return torch.randint(scores.shape[-1], (len(scores),), generator=generator)

    return walk(model, ids, new, choose, end)


@wrong("9.3", "softmax twice", says="the softmax seems to be taken twice")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        scores = filters(scores, so_far) if filters else scores
        return torch.multinomial(scores.softmax(-1).softmax(-1), 1, generator=generator)[:, 0]

    return walk(model, ids, new, choose, end)


@wrong("9.3", "softmax over the batch", says="should come with probability")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        scores = filters(scores, so_far) if filters else scores
        return torch.multinomial(scores.softmax(dim=0), 1, generator=generator)[:, 0]

    return walk(model, ids, new, choose, end)


@wrong("9.3", "one draw for all", says="All texts of a batch are the same")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        scores = filters(scores, so_far) if filters else scores
        return torch.multinomial(scores.softmax(-1)[0], 1, generator=generator).expand(len(scores))

    return walk(model, ids, new, choose, end)


@wrong("9.3", "filters forgotten", says="`filters` is not used")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        return torch.multinomial(scores.softmax(-1), 1, generator=generator)[:, 0]

    return walk(model, ids, new, choose, end)


@wrong("9.3", "filters after the softmax", says="apply it before the softmax")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        p = scores.softmax(-1)
        if filters:
            p = filters(p, so_far).clamp(min=0)
        return torch.multinomial(p, 1, generator=generator)[:, 0]

    return walk(model, ids, new, choose, end)


@wrong("9.3", "filter's result thrown away", says="A token that the filter had hidden was drawn")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        if filters:
            filters(scores, so_far)
        return torch.multinomial(scores.softmax(-1), 1, generator=generator)[:, 0]

    return walk(model, ids, new, choose, end)


@wrong("9.3", "filters see the prompt only", says="`filters` takes all ids so far")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        scores = filters(scores, ids) if filters else scores
        return torch.multinomial(scores.softmax(-1), 1, generator=generator)[:, 0]

    return walk(model, ids, new, choose, end)


@wrong("9.3", "filters always called", says="`filters` may be None")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        return torch.multinomial(filters(scores, so_far).softmax(-1), 1, generator=generator)[:, 0]

    return walk(model, ids, new, choose, end)


@wrong("9.3", "end forgotten", says="A text that is over goes on")
def sample(model, ids, new, filters=None, end=None, generator=None):
    for _ in range(new):
        scores = model(ids)[:, -1]
        scores = filters(scores, ids) if filters else scores
        ids = torch.cat([ids, torch.multinomial(scores.softmax(-1), 1, generator=generator)], dim=1)
    return ids


@wrong("9.3", "goes on when all is over", says="columns of nothing but `end`")
def sample(model, ids, new, filters=None, end=None, generator=None):
    over = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        scores = model(ids)[:, -1]
        scores = filters(scores, ids) if filters else scores
        token = torch.multinomial(scores.softmax(-1), 1, generator=generator)[:, 0]
        if end is not None:
            token = token.masked_fill(over, end)
            over |= token == end
        ids = torch.cat([ids, token[:, None]], dim=1)
    return ids


@wrong("9.3", "only what is new", says="The prompt belongs to the result")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import sample

    return sample(model, ids, new, filters, end, generator)[:, ids.shape[1] :]


@wrong("9.3", "all places at once", says="Take the scores after the last token only")
def sample(model, ids, new, filters=None, end=None, generator=None):
    for _ in range(new):
        ids = torch.cat([ids, torch.multinomial(model(ids).softmax(-1), 1, generator=generator)], dim=1)
    return ids


@wrong("9.3", "nothing returned", says="None (is the `return` missing?)")
def sample(model, ids, new, filters=None, end=None, generator=None):
    for _ in range(new):
        ids = torch.cat([ids, torch.multinomial(model(ids)[:, -1].softmax(-1), 1, generator=generator)], dim=1)


@wrong("9.3", "squeeze", says="`squeeze()` takes the batch away too")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        scores = filters(scores, so_far) if filters else scores
        return torch.multinomial(scores.softmax(-1), 1, generator=generator).squeeze()

    return walk(model, ids, new, choose, end)


@wrong("9.3", "a new generator if there is none", says="Two walks without a generator wrote the same")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    generator = generator or torch.Generator()

    def choose(scores, so_far):
        scores = filters(scores, so_far) if filters else scores
        return torch.multinomial(scores.softmax(-1), 1, generator=generator)[:, 0]

    return walk(model, ids, new, choose, end)


@wrong("9.3", "filter without ids", says="`filters` takes two things")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        scores = filters(scores) if filters else scores
        return torch.multinomial(scores.softmax(-1), 1, generator=generator)[:, 0]

    return walk(model, ids, new, choose, end)


@wrong("9.3", "a column for a token", says="take the one column, `[:, 0]`")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        return torch.multinomial(scores.softmax(-1), 1, generator=generator)

    return walk(model, ids, new, choose, end)


# --- 9.4 top_k: right -----------------------------------------------------------------------------------------------


@right("9.4", "kthvalue")
def top_k(logits, k):
    words = logits.shape[-1]
    if k >= words:
        return logits
    limit = logits.kthvalue(words - k + 1, dim=-1, keepdim=True).values
    return torch.where(logits >= limit, logits, float("-inf"))


@right("9.4", "scatter, a very low score")
def top_k(logits, k):
    values, places = logits.topk(min(k, logits.size(-1)), dim=-1)
    return torch.full_like(logits, -1e9).scatter(-1, places, values)


@right("9.4", "by rank, log-probabilities")
def top_k(logits, k):
    rank = (logits[..., None, :] > logits[..., :, None]).sum(dim=-1)
    return logits.log_softmax(-1).masked_fill(rank >= k, -torch.inf)


@right("9.4", "sort")
def top_k(logits, k):
    falling = logits.sort(dim=-1, descending=True).values
    limit = falling[..., min(k, falling.shape[-1]) - 1].unsqueeze(-1)
    return logits.masked_fill(logits < limit, float("-inf"))


# --- 9.4 wrong ------------------------------------------------------------------------------------------------------


@wrong("9.4", "zeros", says="What is hidden needs the score −∞")
def top_k(logits, k):
    limit = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits < limit, 0.0)


@wrong("9.4", "probabilities", says="Probabilities are returned; return scores")
def top_k(logits, k):
    limit = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits < limit, float("-inf")).softmax(dim=-1)


@wrong("9.4", "the k-th too", says="The k-th best is hidden too")
def top_k(logits, k):
    limit = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits <= limit, float("-inf"))


@wrong("9.4", "turned round", says="The best are hidden, and the others stay")
def top_k(logits, k):
    limit = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits >= limit, float("-inf"))


@wrong("9.4", "the worst", says="These are the k worst tokens")
def top_k(logits, k):
    limit = logits.topk(min(k, logits.shape[-1]), dim=-1, largest=False).values[..., -1:]
    return logits.masked_fill(logits > limit, float("-inf"))


@wrong("9.4", "of the whole batch", says="each row has k best of its own")
def top_k(logits, k):
    limit = logits.flatten().topk(k).values[-1]
    return logits.masked_fill(logits < limit, float("-inf"))


@wrong("9.4", "one more", says="One token too many stays")
def top_k(logits, k):
    limit = logits.topk(min(k + 1, logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits < limit, float("-inf"))


@wrong("9.4", "larger than the vocabulary", says="k may be larger than the vocabulary")
def top_k(logits, k):
    limit = logits.topk(k, dim=-1).values[..., -1:]
    return logits.masked_fill(logits < limit, float("-inf"))


@wrong("9.4", "only the k", says="Expected softmax of the scores of shape (2, 7); got (2, 3)")
def top_k(logits, k):
    return logits.topk(min(k, logits.shape[-1]), dim=-1).values


@wrong("9.4", "the dimension is lost", says="These two do not fit entry by entry")
def top_k(logits, k):
    limit = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1]
    return logits.masked_fill(logits < limit, float("-inf"))


@wrong("9.4", "the mask itself", says="This is a mask; the scores are asked for")
def top_k(logits, k):
    return logits >= logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]


@wrong("9.4", "in place", says="It changes its input logits in place")
def top_k(logits, k):
    logits[logits < logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]] = float("-inf")
    return logits


@wrong("9.4", "values and places", says="Expected the scores to be a tensor of shape (2, 7); got a")
def top_k(logits, k):
    return logits.topk(min(k, logits.shape[-1]), dim=-1)


@wrong("9.4", "untouched scores", says="Nothing is hidden")
def top_k(logits, k):
    logits.topk(min(k, logits.shape[-1]), dim=-1)
    return logits


@wrong("9.4", "-50", says="not low enough")
def top_k(logits, k):
    limit = logits.topk(min(k, logits.shape[-1]), dim=-1).values[..., -1:]
    return logits.masked_fill(logits < limit, -50.0)


@wrong("9.4", "of the whole batch, k cut", says="each row has k best of its own")
def top_k(logits, k):
    limit = logits.flatten().topk(min(k, logits.shape[-1])).values[-1]
    return logits.masked_fill(logits < limit, float("-inf"))


@wrong("9.4", "of each column", says="The k best of each column stay")
def top_k(logits, k):
    limit = logits.topk(min(k, logits.shape[0]), dim=0).values[-1:]
    return logits.masked_fill(logits < limit, float("-inf"))


@wrong("9.4", "argsort for a rank", says="not each token's rank")
def top_k(logits, k):
    return torch.where(logits.argsort(dim=-1, descending=True) < k, logits, float("-inf"))


@wrong("9.4", "everything", says="In a row everything is hidden")
def top_k(logits, k):
    return torch.full_like(logits, float("-inf"))


# --- 9.5 top_p: right -----------------------------------------------------------------------------------------------


@right("9.5", "best first")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = (probabilities.cumsum(dim=-1) - probabilities < p) | (p == 1)
    mask = torch.zeros_like(stays).scatter(-1, order, stays)
    return logits.masked_fill(~mask, float("-inf"))


@right("9.5", "shifted mask, back by argsort")
def top_p(logits, p):
    if p >= 1:
        return logits
    z, order = torch.sort(logits, descending=True)
    goes = torch.cumsum(z.softmax(dim=-1), dim=-1) >= p
    goes = torch.cat([torch.zeros_like(goes[..., :1]), goes[..., :-1]], dim=-1)
    return z.masked_fill(goes, -1e10).gather(-1, order.argsort(dim=-1))


@right("9.5", "from the least probable, as transformers")
def top_p(logits, p):
    z, order = logits.sort(dim=-1)
    goes = z.softmax(dim=-1).cumsum(dim=-1) <= 1 - p
    goes[..., -1] = False
    return logits.masked_fill(torch.zeros_like(goes).scatter(-1, order, goes), float("-inf"))


@right("9.5", "without sorting: the sum of all better ones")
def top_p(logits, p):
    if p == 1:
        return logits
    probabilities = logits.softmax(dim=-1)
    better = probabilities[..., None, :] > probabilities[..., :, None]
    before = (probabilities[..., None, :] * better).sum(dim=-1)
    return torch.where(before < p, logits, torch.tensor(float("-inf"), dtype=logits.dtype))


@right("9.5", "row by row")
def top_p(logits, p):
    rows = []
    for z in logits.reshape(-1, logits.shape[-1]):
        probabilities, keep, total = z.softmax(-1), torch.zeros_like(z, dtype=torch.bool), 0.0
        for token in probabilities.argsort(descending=True):
            keep[token] = True
            total += float(probabilities[token])
            if total >= p and p < 1:
                break
        rows.append(z.masked_fill(~keep, -torch.inf))
    return torch.stack(rows).reshape(logits.shape)


# --- 9.5 wrong ------------------------------------------------------------------------------------------------------


@wrong("9.5", "less than p", says="The kept tokens have together less than p")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = probabilities.cumsum(dim=-1) <= p
    stays[..., 0] = True
    return logits.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), float("-inf"))


@wrong("9.5", "nothing left", says="nothing is left")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = probabilities.cumsum(dim=-1) <= p
    return logits.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), float("-inf"))


@wrong("9.5", "sorted mask", says="bring it back into their own order")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = probabilities.cumsum(dim=-1) - probabilities < p
    return logits.masked_fill(~stays, float("-inf"))


@wrong("9.5", "sorted scores", says="The scores come back sorted")
def top_p(logits, p):
    z = logits.sort(dim=-1, descending=True).values
    probabilities = z.softmax(dim=-1)
    return z.masked_fill(probabilities.cumsum(dim=-1) - probabilities >= p, float("-inf"))


@wrong("9.5", "not sorted", says="sort them first, the best first")
def top_p(logits, p):
    probabilities = logits.softmax(dim=-1)
    return logits.masked_fill(probabilities.cumsum(dim=-1) - probabilities >= p, float("-inf"))


@wrong("9.5", "each by itself", says="Each token's own probability is compared with p")
def top_p(logits, p):
    return logits.masked_fill(logits.softmax(dim=-1) < p, float("-inf"))


@wrong("9.5", "1 − p", says="1 − p stands where p belongs")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = probabilities.cumsum(dim=-1) - probabilities < 1 - p
    return logits.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), float("-inf"))


@wrong("9.5", "turned round", says="The nucleus is hidden")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = probabilities.cumsum(dim=-1) - probabilities < p
    return logits.masked_fill(torch.zeros_like(stays).scatter(-1, order, stays), float("-inf"))


@wrong("9.5", "zeros", says="What is hidden needs the score −∞")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = probabilities.cumsum(dim=-1) - probabilities < p
    return logits.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), 0.0)


@wrong("9.5", "probabilities", says="Probabilities are returned; return scores")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = probabilities.cumsum(dim=-1) - probabilities < p
    return logits.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), float("-inf")).softmax(-1)


@wrong("9.5", "the worst first", says="sort with `descending=True`")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1)
    stays = probabilities.cumsum(dim=-1) - probabilities < p
    return logits.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), float("-inf"))


@wrong("9.5", "no softmax", says="sum up probabilities, their softmax")
def top_p(logits, p):
    z, order = logits.sort(dim=-1, descending=True)
    stays = z.cumsum(dim=-1) - z < p
    return logits.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), float("-inf"))


@wrong("9.5", "the mask itself", says="This is a mask; the scores are asked for")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    return torch.zeros_like(order, dtype=torch.bool).scatter(-1, order, probabilities.cumsum(-1) - probabilities < p)


@wrong("9.5", "-100", says="not low enough")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = (probabilities.cumsum(dim=-1) - probabilities < p) | (p == 1)
    return logits.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), -100.0)


@wrong("9.5", "rounded at p = 1", says="With p = 1 nothing is hidden")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = probabilities.cumsum(dim=-1) - probabilities < p
    return logits.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), float("-inf"))


@wrong("9.5", "up to p and one more", says="(`<`, not `<=`)")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = probabilities.cumsum(dim=-1) - probabilities <= p
    return logits.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), float("-inf"))


@wrong("9.5", "the much-copied shift", says="two have together p, and that is enough")
def top_p(logits, p):
    z, order = torch.sort(logits, descending=True)
    goes = torch.cumsum(z.softmax(dim=-1), dim=-1) > p
    goes = torch.cat([torch.zeros_like(goes[..., :1]), goes[..., :-1]], dim=-1)
    return z.masked_fill(goes, float("-inf")).gather(-1, order.argsort(dim=-1))


@wrong("9.5", "from p on", says="The best are hidden until the sum reaches p")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = probabilities.cumsum(dim=-1) >= p
    return logits.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), float("-inf"))


@wrong("9.5", "min-p", says="that is min-p")
def top_p(logits, p):
    probabilities = logits.softmax(dim=-1)
    return logits.masked_fill(probabilities < p * probabilities.amax(dim=-1, keepdim=True), float("-inf"))


@wrong("9.5", "gather", says="`gather` takes from the places")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = probabilities.cumsum(dim=-1) - probabilities < p
    return logits.masked_fill(~stays.gather(-1, order), float("-inf"))


# --- 9.6 acceptance: right ------------------------------------------------------------------------------------------


@right("9.6", "minimum and maximum")
def acceptance(p, q):
    one, zero = torch.ones_like(p), torch.zeros_like(p)
    kept = torch.minimum(one, torch.where(q == 0, one, p / q.masked_fill(q == 0, 1.0)))
    rest = torch.maximum(zero, p - q)
    total = rest.sum(-1, keepdim=True)
    return kept, torch.where(total == 0, p, rest / total)


@right("9.6", "NaN mended")
def acceptance(p, q):
    kept = torch.nan_to_num(p / q, nan=1.0, posinf=1.0).clamp(max=1)
    rest = torch.relu(p - q)
    rest = rest / rest.sum(dim=-1, keepdim=True)
    return kept, torch.where(rest.isnan(), p, rest)


@right("9.6", "row by row")
def acceptance(p, q):
    kept, rest = [], []
    for a, b in zip(p.reshape(-1, p.shape[-1]), q.reshape(-1, p.shape[-1])):
        one = torch.ones_like(a[0])
        kept.append(torch.stack([min(x / y, one) if y > 0 else one for x, y in zip(a, b)]))
        r = (a - b).clamp(min=0)
        rest.append(r / r.sum() if r.sum() > 0 else a)
    return torch.stack(kept).reshape(p.shape), torch.stack(rest).reshape(p.shape)


# --- 9.6 wrong ------------------------------------------------------------------------------------------------------


@wrong("9.6", "above 1", says="yours are above 1 where p > q")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    total = rest.sum(-1, keepdim=True)
    return torch.where(q > 0, p / q, 1.0), torch.where(total > 0, rest / total, p)


@wrong("9.6", "q / p", says="yours is q / p")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    total = rest.sum(-1, keepdim=True)
    return torch.where(p > 0, q / p, 1.0).clamp(max=1), torch.where(total > 0, rest / total, p)


@wrong("9.6", "0 / 0", says="a token that is never drafted gets the chance 1")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    total = rest.sum(-1, keepdim=True)
    return (p / q).clamp(max=1), torch.where(total > 0, rest / total, p)


@wrong("9.6", "never drafted, never kept", says="(q = 0) gets the chance 1")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    total = rest.sum(-1, keepdim=True)
    return torch.where(q > 0, p / q, 0.0).clamp(max=1), torch.where(total > 0, rest / total, p)


@wrong("9.6", "yes or no", says="is still kept, with the chance p / q")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    total = rest.sum(-1, keepdim=True)
    return (p > q).float(), torch.where(total > 0, rest / total, p)


@wrong("9.6", "p = q", says="nothing is ever refused there, return p")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    return torch.where(q > 0, p / q, 1.0).clamp(max=1), rest / rest.sum(-1, keepdim=True)


@wrong("9.6", "not normalised", says="is not yet a distribution")
def acceptance(p, q):
    return torch.where(q > 0, p / q, 1.0).clamp(max=1), (p - q).clamp(min=0)


@wrong("9.6", "from p", says="which gives the large model's favourites too often")
def acceptance(p, q):
    return torch.where(q > 0, p / q, 1.0).clamp(max=1), p


@wrong("9.6", "q − p", says="This is what the draft offers too often")
def acceptance(p, q):
    rest = (q - p).clamp(min=0)
    total = rest.sum(-1, keepdim=True)
    return torch.where(q > 0, p / q, 1.0).clamp(max=1), torch.where(total > 0, rest / total, p)


@wrong("9.6", "the distance", says="not |p − q|")
def acceptance(p, q):
    rest = (p - q).abs()
    total = rest.sum(-1, keepdim=True)
    return torch.where(q > 0, p / q, 1.0).clamp(max=1), torch.where(total > 0, rest / total, p)


@wrong("9.6", "softmax of the rest", says="a softmax gives every token a chance")
def acceptance(p, q):
    return torch.where(q > 0, p / q, 1.0).clamp(max=1), (p - q).clamp(min=0).softmax(dim=-1)


@wrong("9.6", "sum over everything", says="take it over the vocabulary")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    return (
        torch.where(q > 0, p / q, 1.0).clamp(max=1),
        torch.where(rest.sum(-1, keepdim=True) > 0, rest / rest.sum(), p),
    )


@wrong("9.6", "swapped", says="The two results are swapped")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    total = rest.sum(-1, keepdim=True)
    return torch.where(total > 0, rest / total, p), torch.where(q > 0, p / q, 1.0).clamp(max=1)


@wrong("9.6", "Python's min", says="`min` and `if` do not")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    return min(1, p / q), rest / rest.sum(-1, keepdim=True)


@wrong("9.6", "dimension lost", says="Keep the dimension when you sum")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    return torch.where(q > 0, p / q, 1.0).clamp(max=1), rest / rest.sum(-1)


@wrong("9.6", "chances only", says="got a tensor of shape")
def acceptance(p, q):
    return torch.where(q > 0, p / q, 1.0).clamp(max=1)


@wrong("9.6", "the square root", says="comes out with")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    total = rest.sum(-1, keepdim=True)
    return torch.where(q > 0, p / q, 1.0).clamp(max=1).sqrt(), torch.where(total > 0, rest / total, p)


@wrong("9.6", "p and q swapped", says="p is the large model's distribution, q the draft's")
def acceptance(p, q):
    rest = (q - p).clamp(min=0)
    total = rest.sum(-1, keepdim=True)
    return torch.where(p > 0, q / p, 1.0).clamp(max=1), torch.where(total > 0, rest / total, q)


@wrong("9.6", "a small number added", says="A small number added to q hides 0 / 0")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    return (p / (q + 1e-9)).clamp(max=1), rest / (rest.sum(-1, keepdim=True) + 1e-9)


@wrong("9.6", "equally likely where p = q", says="every token is made equally likely")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    total = rest.sum(-1, keepdim=True)
    return torch.where(q > 0, p / q, 1.0).clamp(max=1), torch.where(total > 0, rest / total, 1 / p.shape[-1])


@wrong("9.6", "one sum for all", says="take it over the vocabulary")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    return torch.where(q > 0, p / q, 1.0).clamp(max=1), rest / rest.sum()


@wrong("9.6", "both zeros forgotten", says="0 / 0 is NaN, here twice")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    return (p / q).clamp(max=1), rest / rest.sum(-1, keepdim=True)


@wrong("9.6", "softmax of the difference", says="a softmax gives every token a chance")
def acceptance(p, q):
    return torch.where(q > 0, p / q, 1.0).clamp(max=1), (p - q).softmax(dim=-1)
