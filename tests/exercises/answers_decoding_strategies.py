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


@wrong("9.1", "over as soon as there is an end anywhere", says="An `end` in the prompt does not count")
def walk(model, ids, new, choose, end=None):
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids)
        if end is not None:
            token = token.masked_fill((ids == end).any(1), end)
        ids = torch.cat([ids, token[:, None]], dim=1)
        if end is not None and (ids == end).any(1).all():
            break
    return ids


@wrong("9.1", "asks the first text alone", says="the walk is over when each text has been given a new `end`")
def walk(model, ids, new, choose, end=None):
    over = torch.zeros(len(ids), dtype=torch.bool)
    for _ in range(new):
        token = choose(model(ids)[:, -1], ids)
        token = token if end is None else token.masked_fill(over, end)
        ids, over = torch.cat([ids, token[:, None]], dim=1), over | (token == end)
        if over[0]:
            break
    return ids


@wrong("9.1", "one text at a time", says="Keep the batch: give the model ids of two dimensions")
def walk(model, ids, new, choose, end=None):
    return torch.stack([choose(model(text), text) for text in ids])


@wrong("9.1", "scores after every place", says="`choose` takes the scores after the last token alone")
def walk(model, ids, new, choose, end=None):
    for _ in range(new):
        token = choose(model(ids), ids)
        ids = torch.cat([ids, token[:, None]], dim=1)
    return ids


BANK.spoilt(
    "9.1",
    "cat",
    """
    if end is not None: → if True: · `end` may be None
    [:, -1, :] → [:, 0, :] · These are the scores after the first token
    if over.all() → if over.any() · It stops when one text is over
    over = torch.zeros → shown, over = ids, torch.zeros ; model(ids) → model(shown)
        ; ids = torch.cat → shown = token[:, None]; ids = torch.cat
        · After the first step the model is shown the last token alone
    over = torch.zeros → late = over = torch.zeros ; over = over | → late, over = over, over |
        ; if over.all() → if late.all() · The walk ends one step late
    """,
)


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


@wrong("9.2", "not flattened", says="Flatten beams and vocabulary first")
def extend(scores, logits, count, n, length_penalty):
    best, index = (scores[..., None] + logits.log_softmax(dim=-1)).topk(count)
    return best, best / n**length_penalty, index // 5, index % 5


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


@right("9.2", "a list")
def extend(scores, logits, count, n, length_penalty):
    total = scores[..., None] + logits.log_softmax(dim=-1)
    best, index = total.flatten(1).topk(count)
    return [best, best / n**length_penalty, index // total.shape[-1], index % total.shape[-1]]


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


BANK.spoilt("9.3", "multinomial", "if over.all(): → if False: · columns of nothing but `end`")


@wrong("9.3", "greedy", says="is the best token taken?")
def sample(model, ids, new, filters=None, end=None, generator=None):
    from course_lib.decoding import walk

    def choose(scores, so_far):
        return (filters(scores, so_far) if filters else scores).argmax(-1)

    return walk(model, ids, new, choose, end)


@wrong("9.3", "all places at once", says="Take the scores after the last token only")
def sample(model, ids, new, filters=None, end=None, generator=None):
    for _ in range(new):
        ids = torch.cat([ids, torch.multinomial(model(ids).softmax(-1), 1, generator=generator)], dim=1)
    return ids


@wrong("9.3", "the filter at every place", says="`filters` takes scores (batch, vocabulary), here (2, 3); it was given")
def sample(model, ids, new, filters=None, end=None, generator=None):
    for _ in range(new):
        scores = filters(model(ids), ids) if filters else model(ids)
        ids = torch.cat([ids, torch.multinomial(scores[:, -1].softmax(-1), 1, generator=generator)], dim=1)
    return ids


@wrong("9.3", "not a column", says="to append them, (batch, 1): [:, None]")
def sample(model, ids, new, filters=None, end=None, generator=None):
    for _ in range(new):
        token = torch.multinomial(model(ids)[:, -1].softmax(-1), 1, generator=generator)[:, 0]
        ids = torch.cat([ids, token], dim=1)
    return ids


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


@right("9.5", "into the rows of a view")
def top_p(logits, p):
    out = torch.full_like(logits, -torch.inf)
    rows, places = out.view(-1, logits.shape[-1]), logits.reshape(-1, logits.shape[-1])
    for row, z in zip(rows, places):
        q, total = z.softmax(-1), 0.0
        for token in q.argsort(descending=True):
            if total < p or p == 1:
                row[token] = z[token]
            total += float(q[token])
    return out


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


@wrong("9.5", "1 − p", says="1 − p stands where p belongs")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = probabilities.cumsum(dim=-1) - probabilities < 1 - p
    return logits.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), float("-inf"))


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


@wrong("9.5", "gather", says="`gather` takes from the places")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = probabilities.cumsum(dim=-1) - probabilities < p
    return logits.masked_fill(~stays.gather(-1, order), float("-inf"))


@wrong("9.5", "nearly p is enough", says="less than p.")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = (probabilities.cumsum(dim=-1) - probabilities < p - 1e-3) | (p == 1)
    return logits.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), float("-inf"))


@wrong("9.5", "two more", says="too many stay; without the least of them it is still p or more")
def top_p(logits, p):
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    stays = (probabilities.cumsum(dim=-1) - probabilities < p) | (p == 1)
    stays = stays | stays.roll(2, -1)
    return logits.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), float("-inf"))


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


@wrong("9.6", "Python's min", says="`min` and `if` do not")
def acceptance(p, q):
    rest = (p - q).clamp(min=0)
    return min(1, p / q), rest / rest.sum(-1, keepdim=True)


# --- wrong, as edits of the library's pieces ------------------------------------------------------------------------

BANK.edited(
    "9.2",
    """
    scores[..., None] + → scores + · logits (batch, beams, vocabulary): `scores[..., None]`
    index // total.shape[-1], → · got a tuple of 3
    topk(count) → sort(dim=-1).values[:, -count:], total.flatten(1).argsort(dim=-1)[:, -count:] · must come best first
    """,
)
BANK.edited(
    "9.3",
    """
    return walk( → walk( · None (is the `return` missing?)
    choose, end) → choose, end)[:, ids.shape[1] :] · The prompt belongs to the result
    ids, new, → ids, new + 1, · With 2 prompts of 2 tokens and new = 4, expected the ids of shape (2, 6); got (2, 7)
    choose, end) → choose, end).flip(1) · The result must begin with the prompts
    choose, end) → choose, end).squeeze() · With one prompt of 2 tokens and new = 4, expected ids of shape (1, 6); got
    [:, 0] → .squeeze() · `squeeze()` takes the batch away too
    [:, 0] → · take the one column, `[:, 0]`
    1, generator=generator → 1 · draw with the one given, `generator=generator`
    generator=generator → generator=generator or torch.Generator() · Two walks without a generator wrote the same
    (p, 1, generator=generator)[:, 0] → (p[0], 1, generator=generator).expand(len(p))
        · All texts of a batch are the same
    .softmax(dim=-1) → · the tokens are drawn by their scores
    torch.multinomial(p, 1, generator=generator)[:, 0] → torch.randint(p.shape[-1], p.shape[:1], generator=generator)
        · every token is equally likely
    softmax(dim=-1) → softmax(dim=-1).softmax(dim=-1) · the softmax seems to be taken twice
    softmax(dim=-1) → softmax(dim=-1) ** 2 · the likely tokens come too often
    softmax(dim=-1) → softmax(dim=0) · should come with probability
    .softmax(dim=-1) → .log_softmax(dim=-1) · Scores may be negative
    (filters(scores, ids) if filters else scores) → scores · `filters` is not used
    filters(scores, ids) if filters else scores → filters(scores, ids) · `filters` may be None
    filters(scores, ids) if → filters(scores) if · `filters` takes two things
    filters(scores, ids) if → filters(scores, ids[:, :1]) if · `filters` takes all ids so far
    filters(scores, ids) if → filters(filters(scores, ids), ids) if · With a filter the tokens come wrongly often
    p = (filters(scores, ids) if filters else scores) → filters and filters(scores, ids); p = scores
        · A token that the filter had hidden was drawn
    p = → scores = scores.softmax(dim=-1); p = ; scores).softmax(dim=-1) → scores) · apply it before the softmax
    p = → scores = scores.softmax(dim=-1); p = ; scores).softmax(dim=-1) → scores).clamp(min=0)
        · apply it before the softmax
    choose, end) → choose) · A text that is over goes on
    """,
)
BANK.edited(
    "9.4",
    """
    return logits.masked_fill(logits < kth, -torch.inf) → return logits >= kth
        · This is a mask; the scores are asked for
    return logits.masked_fill(logits < kth, -torch.inf) → return logits.topk(min(k, logits.shape[-1]))
        · Expected the scores to be returned; got a topk of 2
    return logits.masked_fill → return logits.masked_fill_ · It changes its input logits in place
    min(k, logits.shape[-1]) → k · k may be larger than the vocabulary
    [..., -1:] → [..., -1] · These two do not fit entry by entry
    -torch.inf → -50.0 · not low enough
    logits < kth → logits < torch.inf · In a row everything is hidden
    logits < kth → logits < kth - 1 · must stay in each row; in one of yours
    """,
)
BANK.edited(
    "9.6",
    """
    return kept, torch.where(total > 0, rest / total, p) → return kept · got a tensor of shape
    dim=-1, keepdim=True → dim=-1 · Keep the dimension when you sum
    clamp(max=1.0) → clamp(max=1.0).sqrt() · comes out with
    """,
)
