"""The bank of lesson 10. An answer uses only what the notebook has imported (torch, nn, F)."""
# ruff: noqa: F811, B905

import torch
from bank import Bank
from torch import nn
from torch.nn import functional as F

BANK = Bank()
wrong, right = BANK.wrong, BANK.right

# What a mutant of the library's piece changes, as its new line → why it is no mistake.
EQUIVALENT: dict[str, dict[str, str]] = {
    "10.1": {"kept = mask[..., None].to(mask)": "True and False count as 1 and 0 too"},
    "10.2": {
        "best = cosines.topk(min(k, len(documents)), dim=1)": "a matrix's last dimension is 1",
        "cosines = F.normalize(queries, dim=1) @ F.normalize(documents, dim=-1).T": "a matrix's last dimension is 1",
        "cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=1).T": "a matrix's last dimension is 1",
    },
    "10.3": {},
    "10.4": {},
}


# --- 10.1 mean pooling: right ---------------------------------------------------------------------------------------


@right("10.1", "masked_fill")
def mean_pool(hidden, mask):
    total = hidden.masked_fill(~mask.unsqueeze(-1), 0.0).sum(1)
    return total / mask.sum(1, keepdim=True).clamp(min=1)


@right("10.1", "einsum")
def mean_pool(hidden, mask):
    m = mask.to(hidden.dtype)
    return torch.einsum("bld,bl->bd", hidden, m) / torch.maximum(m.sum(1), torch.ones_like(m.sum(1)))[:, None]


@right("10.1", "text by text")
def mean_pool(hidden, mask):
    rows = []
    for h, m in zip(hidden, mask):
        rows.append(h[m].mean(dim=0) if m.any() else torch.zeros_like(h[0]))
    return torch.stack(rows)


@right("10.1", "weights")
def mean_pool(hidden, mask):
    weights = mask.to(hidden) / mask.sum(dim=1, keepdim=True).clamp(min=1)
    return (weights[:, None] @ hidden)[:, 0]


# --- 10.1 wrong -----------------------------------------------------------------------------------------------------


@wrong("10.1", "no mask", says="The mask is not used: the filling is averaged in")
def mean_pool(hidden, mask):
    return hidden.mean(dim=1)


@wrong("10.1", "padded length", says="divided by the padded length")
def mean_pool(hidden, mask):
    return (hidden * mask[..., None]).mean(dim=1)


@wrong("10.1", "sum", says="This is the sum; divide by the number of tokens")
def mean_pool(hidden, mask):
    return (hidden * mask[..., None]).sum(dim=1)


@wrong("10.1", "turned round", says="The filling is averaged and the tokens are left out")
def mean_pool(hidden, mask):
    kept = (~mask)[..., None].to(hidden)
    return (hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1)


@wrong("10.1", "whole batch", says="divided by the tokens of the whole batch")
def mean_pool(hidden, mask):
    return (hidden * mask[..., None]).sum(dim=1) / mask.sum()


@wrong("10.1", "root", says="divided by the root of the number of tokens")
def mean_pool(hidden, mask):
    return (hidden * mask[..., None]).sum(dim=1) / mask.sum(dim=1, keepdim=True).sqrt()


@wrong("10.1", "first token", says="the vector of the first token ([CLS] pooling)")
def mean_pool(hidden, mask):
    return hidden[:, 0]


@wrong("10.1", "last token", says="the vector of the last token")
def mean_pool(hidden, mask):
    return hidden[torch.arange(len(hidden)), mask.sum(dim=1) - 1]


@wrong("10.1", "largest", says="(max pooling); the mean is asked for")
def mean_pool(hidden, mask):
    return hidden.masked_fill(~mask[..., None], float("-inf")).max(dim=1).values


@wrong("10.1", "1 long", says="The vectors are made 1 long; the plain mean is asked for")
def mean_pool(hidden, mask):
    kept = mask[..., None].to(hidden)
    return F.normalize((hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1), dim=-1)


@wrong("10.1", "over the numbers", says="The sum runs over the numbers of a vector")
def mean_pool(hidden, mask):
    return (hidden * mask[..., None]).sum(dim=2) / mask.sum(dim=1, keepdim=True)


@wrong("10.1", "over the texts", says="The mean runs over the texts of the batch")
def mean_pool(hidden, mask):
    return (hidden * mask[..., None]).sum(dim=0) / mask.sum(dim=0)[:, None].clamp(min=1)


@wrong("10.1", "all texts together", says="throws the tokens of all texts together")
def mean_pool(hidden, mask):
    return hidden[mask].mean(dim=0).expand(len(hidden), -1)


@wrong("10.1", "the first so many", says="look at *where* it is True")
def mean_pool(hidden, mask):
    return torch.stack([h[: int(m.sum())].mean(dim=0) for h, m in zip(hidden, mask)])


@wrong("10.1", "NaN", says="A text without any token becomes NaN")
def mean_pool(hidden, mask):
    kept = mask[..., None].to(hidden)
    return (hidden * kept).sum(dim=1) / kept.sum(dim=1)


@wrong("10.1", "no new dimension", says="give it a last dimension, `mask[..., None]`")
def mean_pool(hidden, mask):
    return (hidden * mask).sum(dim=1) / mask.sum(dim=1)


@wrong("10.1", "in place", says="It changes its input hidden in place")
def mean_pool(hidden, mask):
    hidden *= mask[..., None]
    return hidden.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)


@wrong("10.1", "detached", says="no gradient reaches hidden")
def mean_pool(hidden, mask):
    kept = mask[..., None].to(hidden)
    return ((hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1)).detach()


@wrong("10.1", "nothing", says="is the `return` missing?")
def mean_pool(hidden, mask):
    (hidden * mask[..., None]).sum(dim=1)


@wrong("10.1", "one too many", says="divided by one more than the number of tokens")
def mean_pool(hidden, mask):
    kept = mask[..., None].to(hidden)
    return (hidden * kept).sum(dim=1) / (kept.sum(dim=1) + 1)


@wrong("10.1", "count without a dimension", says="The number of tokens needs one too")
def mean_pool(hidden, mask):
    return hidden.masked_fill(~mask[..., None], 0).sum(1) / mask.sum(1).clamp(min=1)


@wrong("10.1", "all texts together, one vector", says="throws the tokens of all texts together")
def mean_pool(hidden, mask):
    return hidden[mask].mean(0)


@wrong("10.1", "zero vectors not counted", says="count them in the mask")
def mean_pool(hidden, mask):
    kept = hidden * mask[..., None]
    return kept.sum(dim=1) / (kept.abs().sum(dim=-1) > 0).sum(dim=1, keepdim=True).clamp(min=1)


@wrong("10.1", "NaN repaired late", says="but its gradient stays NaN")
def mean_pool(hidden, mask):
    kept = mask[..., None].to(hidden)
    return ((hidden * kept).sum(dim=1) / kept.sum(dim=1)).nan_to_num()


@wrong("10.1", "where", says="but its gradient stays NaN")
def mean_pool(hidden, mask):
    count = mask.sum(dim=1, keepdim=True)
    return torch.where(count > 0, (hidden * mask[..., None]).sum(dim=1) / count, 0.0)


# --- 10.2 cosine search: right --------------------------------------------------------------------------------------


@right("10.2", "norms by hand")
def cosine_search(queries, documents, k):
    lengths = queries.norm(dim=1)[:, None] * documents.norm(dim=1)
    cosines = queries @ documents.T / lengths.clamp(min=1e-12)
    values, places = cosines.sort(dim=1, descending=True)
    return values[:, :k], places[:, :k]


@right("10.2", "cosine_similarity")
def cosine_search(queries, documents, k):
    cosines = F.cosine_similarity(queries[:, None], documents[None], dim=-1)
    best = torch.topk(cosines, min(k, documents.shape[0]))
    return best.values, best.indices


@right("10.2", "query by query")
def cosine_search(queries, documents, k):
    values, places = [], []
    for q in queries:
        c = (documents @ q) / (documents.pow(2).sum(1).sqrt() * q.pow(2).sum().sqrt() + 1e-12)
        order = c.argsort(descending=True)[:k]
        values.append(c[order])
        places.append(order)
    return torch.stack(values), torch.stack(places)


@right("10.2", "by the angle's distance")
def cosine_search(queries, documents, k):
    q, d = F.normalize(queries, dim=1), F.normalize(documents, dim=1)
    places = torch.einsum("nd,md->nm", q, d).argsort(dim=1, descending=True)[:, :k]
    return (q[:, None] * d[places]).sum(dim=-1), places


# --- 10.2 wrong -----------------------------------------------------------------------------------------------------


@wrong("10.2", "dot products", says="These are dot products: long vectors win")
def cosine_search(queries, documents, k):
    return tuple((queries @ documents.T).topk(min(k, len(documents))))


@wrong("10.2", "documents as they are", says="The documents are not made 1 long")
def cosine_search(queries, documents, k):
    return tuple((F.normalize(queries, dim=-1) @ documents.T).topk(min(k, len(documents))))


@wrong("10.2", "queries as they are", says="the queries are not made 1 long")
def cosine_search(queries, documents, k):
    return tuple((queries @ F.normalize(documents, dim=-1).T).topk(min(k, len(documents))))


@wrong("10.2", "columns", says="The columns are made 1 long")
def cosine_search(queries, documents, k):
    return tuple((F.normalize(queries, dim=0) @ F.normalize(documents, dim=0).T).topk(min(k, len(documents))))


@wrong("10.2", "farthest", says="the documents farthest away")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    return tuple(cosines.topk(min(k, len(documents)), largest=False))


@wrong("10.2", "worst first", says="the worst of them first")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    values, places = cosines.sort(dim=1)
    return values[:, -k:], places[:, -k:]


@wrong("10.2", "swapped", says="The two results have changed places")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    best = cosines.topk(min(k, len(documents)))
    return best.indices, best.values


@wrong("10.2", "best only", says="Only the best one comes back")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    best = cosines.max(dim=1, keepdim=True)
    return best.values, best.indices


@wrong("10.2", "all", says="All documents come back")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    return tuple(cosines.sort(dim=1, descending=True))


@wrong("10.2", "distances", says="These are (negative) distances")
def cosine_search(queries, documents, k):
    return tuple((-torch.cdist(queries, documents)).topk(min(k, len(documents))))


@wrong("10.2", "cosine distance", says="with the cosine distance, 1 − cos")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    return tuple((1 - cosines).topk(min(k, len(documents)), largest=False))


@wrong("10.2", "softmax", says="A softmax has been taken")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    return tuple(cosines.softmax(dim=-1).topk(min(k, len(documents))))


@wrong("10.2", "no sign", says="The sign is lost")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    return tuple(cosines.abs().topk(min(k, len(documents))))


@wrong("10.2", "documents search", says="Queries and documents are swapped")
def cosine_search(queries, documents, k):
    cosines = F.normalize(documents, dim=-1) @ F.normalize(queries, dim=-1).T
    return tuple(cosines.topk(min(k, len(queries))))


@wrong("10.2", "k too large", says="if there are fewer than k, return all of them")
def cosine_search(queries, documents, k):
    return tuple((F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T).topk(k))


@wrong("10.2", "places only", says="got a tensor of shape")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    return cosines.topk(min(k, len(documents))).indices


@wrong("10.2", "not transposed", says="transpose the documents")
def cosine_search(queries, documents, k):
    return tuple((F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1)).topk(k))


@wrong("10.2", "one length for all", says="The whole matrix is divided by one length")
def cosine_search(queries, documents, k):
    return tuple((queries / queries.norm() @ (documents / documents.norm()).T).topk(min(k, len(documents))))


@wrong("10.2", "squares", says="divided by the squares of the lengths")
def cosine_search(queries, documents, k):
    lengths = queries.norm(dim=-1, keepdim=True) ** 2 * documents.norm(dim=-1) ** 2
    return tuple((queries @ documents.T / lengths).topk(min(k, len(documents))))


@wrong("10.2", "from 1", says="The documents are counted from 1")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    values, places = cosines.topk(min(k, len(documents)))
    return values, places + 1


@wrong("10.2", "argsort", says="an `argsort` puts the smallest first")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    places = cosines.argsort(dim=1)[:, :k].flip(1)
    return cosines.gather(1, places), places


@wrong("10.2", "pair by pair", says="Every query meets every document")
def cosine_search(queries, documents, k):
    return tuple(F.cosine_similarity(queries, documents).topk(k))


@wrong("10.2", "NaN", says="A zero vector gives NaN, 0 / 0")
def cosine_search(queries, documents, k):
    lengths = queries.norm(dim=1)[:, None] * documents.norm(dim=1)
    return tuple((queries @ documents.T / lengths).topk(min(k, len(documents))))


@wrong("10.2", "zero vectors last", says="A zero vector among the queries or documents changes the cosines")
def cosine_search(queries, documents, k):
    lengths = queries.norm(dim=1)[:, None] * documents.norm(dim=1)
    cosines = (queries @ documents.T / lengths).nan_to_num(-1.0)
    return tuple(cosines.topk(min(k, len(documents))))


@wrong("10.2", "no exact matches", says="it is the best there is")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    cosines[cosines >= 1 - 1e-6] = -torch.inf
    return tuple(cosines.topk(min(k, len(documents))))


@wrong("10.2", "queries counted", says="the limit is `min(k, len(documents))`")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    return tuple(cosines.topk(min(k, len(queries))))


@wrong("10.2", "columns of queries", says="one row a query is asked for")
def cosine_search(queries, documents, k):
    cosines = F.normalize(documents, dim=-1) @ F.normalize(queries, dim=-1).T
    return tuple(cosines.topk(min(k, len(documents)), dim=0))


@wrong("10.2", "a list", says="Write `return cosines, places`")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    return list(cosines.topk(min(k, len(documents))))


@wrong("10.2", "chosen by the dot product", says="chosen by the dot product")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    places = (queries @ documents.T).topk(min(k, len(documents))).indices
    return cosines.gather(1, places), places


@wrong("10.2", "not sorted", says="unless it is told `sorted=False`")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    return tuple(cosines.topk(min(k, len(documents)), sorted=False))


@wrong("10.2", "nearest by distance", says="These are distances; the cosine is asked for")
def cosine_search(queries, documents, k):
    return tuple(torch.cdist(queries, documents).topk(min(k, len(documents)), largest=False))


@wrong("10.2", "distances of directions", says="with the distances of vectors made 1 long")
def cosine_search(queries, documents, k):
    distances = torch.cdist(F.normalize(queries, dim=-1), F.normalize(documents, dim=-1))
    return tuple(distances.topk(min(k, len(documents)), largest=False))


@wrong("10.2", "chosen by distance", says="the nearest by distance, not by direction")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    places = torch.cdist(queries, documents).argsort(dim=1)[:, :k]
    return cosines.gather(1, places), places


@wrong("10.2", "no gather", says="the first result does not belong to them: take the cosines at the places")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    places = cosines.argsort(dim=1, descending=True)[:, :k]
    return cosines[:, :k], places


@wrong("10.2", "gathered from the end", says="the first result does not belong to them: take the cosines at the places")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    places = cosines.argsort(dim=1, descending=True)[:, :k]
    return cosines[:, -k:], places


@wrong("10.2", "no cosines", says="does not hold the cosines of the documents in the second")
def cosine_search(queries, documents, k):
    values, places = torch.cdist(queries, documents, p=1).sort(dim=1)
    return values[:, :k], places[:, :k]


@wrong("10.2", "best of each column", says="got (2, 7). One row for each query")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    return tuple(cosines.topk(min(k, len(documents)), dim=0))


@wrong("10.2", "the first k rows", says="got (2, 7). One row for each query")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    values, places = cosines.sort(descending=True)
    return values[:k], places[:k]


@wrong("10.2", "one row a document", says="got (7, 2). One row for each query")
def cosine_search(queries, documents, k):
    cosines = F.normalize(documents, dim=-1) @ F.normalize(queries, dim=-1).T
    return tuple(cosines.topk(min(k, len(documents))))


# --- 10.3 a few-shot prompt: right ----------------------------------------------------------------------------------


@right("10.3", "added up")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    prompt = instruction + "\n\n" if instruction else ""
    for given, answer in shots:
        prompt += names[0] + ": " + given + "\n" + names[1] + ": " + answer + "\n\n"
    return prompt + names[0] + ": " + text + "\n" + names[1] + ":"


@right("10.3", "filtered")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    a, b = names
    parts = [instruction, *(f"{a}: {x}\n{b}: {y}" for x, y in shots), f"{a}: {text}\n{b}:"]
    return "\n\n".join(part for part in parts if part)


@right("10.3", "the space cut off")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [f"{names[0]}: {given}\n{names[1]}: {answer}".strip() for given, answer in [*shots, (text, "")]]
    return "\n\n".join([instruction, *parts] if instruction else parts)


@right("10.3", "format")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    line = "{}: {}\n{}:"
    pieces = []
    if len(instruction) > 0:
        pieces.append(instruction)
    for shot in shots:
        pieces.append(line.format(names[0], shot[0], names[1]) + " " + shot[1])
    pieces.append(line.format(names[0], text, names[1]))
    return "\n\n".join(pieces)


# --- 10.3 wrong -----------------------------------------------------------------------------------------------------


@wrong("10.3", "space at the end", says="There is a space after the last colon")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}: "])


@wrong("10.3", "line break at the end", says="There is a line break after the last colon")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}:\n"])


@wrong("10.3", "no open answer", says="The prompt ends with the text")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return "\n\n".join([*parts, f"{names[0]}: {text}"])


@wrong("10.3", "no last colon", says="The last colon is missing")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}"])


@wrong("10.3", "one line break", says="must be parted by an empty line")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return "\n".join([*parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "nothing between", says="Nothing stands between the parts")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return "".join([*parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "empty instruction", says="Without an instruction the prompt begins with an empty line")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return "\n\n".join([instruction, *parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "no instruction", says="The instruction is missing")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "instruction late", says="The instruction stands after the examples")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    parts += [instruction] if instruction else []
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "text before the shots", says="The open text stands before the examples")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {text}\n{names[1]}:"]
    return "\n\n".join([*parts, *(f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots)])


@wrong("10.3", "reversed", says="The examples are in reversed order")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in reversed(shots)]
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "zero-shot", says="The examples are missing")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "one shot", says="Only the first example is used")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots[:1]]
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "unsolved", says="The examples have no answers")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}:" for given, answer in shots]
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "names swapped", says="The two names have changed places in the examples")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[1]}: {given}\n{names[0]}: {answer}" for given, answer in shots]
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "fixed names", says="`names` is not used")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"Text: {given}\nAnswer: {answer}" for given, answer in shots]
    return "\n\n".join([*parts, f"Text: {text}\nAnswer:"])


@wrong("10.3", "no default", says="Without a fourth argument the names are")
def few_shot_prompt(instruction, shots, text, names):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "a list", says="join the parts")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return [*parts, f"{names[0]}: {text}\n{names[1]}:"]


@wrong("10.3", "pairs joined", says="make one text of each pair first")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    return "\n\n".join([instruction, *shots, text])


@wrong("10.3", "the list is changed", says="It changes the list of examples")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    shots.append((text, ""))
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return "\n\n".join(parts).rstrip()


@wrong("10.3", "capital letters", says="With 3 examples, from character")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer.upper()}" for given, answer in shots]
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "empty line at the end", says="There is an empty line after the last colon")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    prompt = instruction + "\n\n" if instruction else ""
    for given, answer in [*shots, (text, None)]:
        prompt += f"{names[0]}: {given}\n{names[1]}:" + (f" {answer}" if answer else "") + "\n\n"
    return prompt


@wrong("10.3", "instruction on the line above", says="The instruction and what follows it must be parted")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    prompt = instruction + "\n" if instruction else ""
    for given, answer in shots:
        prompt += f"{names[0]}: {given}\n{names[1]}: {answer}\n\n"
    return prompt + f"{names[0]}: {text}\n{names[1]}:"


@wrong("10.3", "no spaces at all", says="There is no space after the colons")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}:{given}\n{names[1]}:{answer}" for given, answer in shots]
    return "\n\n".join([*parts, f"{names[0]}:{text}\n{names[1]}:"])


@wrong("10.3", "empty line inside", says="There is an empty line between a text and its answer")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    for given, answer in shots:
        parts += [f"{names[0]}: {given}", f"{names[1]}: {answer}"]
    return "\n\n".join([*parts, f"{names[0]}: {text}", f"{names[1]}:"])


@wrong("10.3", "a dictionary", says="not a dictionary")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in dict(shots).items()]
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "three at the most", says="With 8 examples, from character")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots[-3:]]
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "one capital letter", says="With 1 example, from character")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return "\n\n".join([*parts, f"{names[0]}: {text.replace('a ', 'A ')}\n{names[1]}:"])


@wrong("10.3", "format of a text", says="A text may itself hold `{}`")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return "\n\n".join([*parts, (names[0] + ": " + text + "\n{}:").format(names[1])])


@wrong("10.3", "no examples, an empty line", says="Without examples there is an empty line too many")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    solved = "\n\n".join(f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots)
    start = instruction + "\n\n" if instruction else ""
    return start + solved + "\n\n" + f"{names[0]}: {text}\n{names[1]}:"


@wrong("10.3", "all names swapped", says="`names[0]` stands before a text")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    parts += [f"{names[1]}: {given}\n{names[0]}: {answer}" for given, answer in shots]
    return "\n\n".join([*parts, f"{names[1]}: {text}\n{names[0]}:"])


@wrong("10.3", "names with a capital letter", says="The names get a capital letter")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    a, b = (name.capitalize() for name in names)
    parts = [instruction] if instruction else []
    parts += [f"{a}: {given}\n{b}: {answer}" for given, answer in shots]
    return "\n\n".join([*parts, f"{a}: {text}\n{b}:"])


# --- 10.4 a LoRA layer: right ---------------------------------------------------------------------------------------


@right("10.4", "F.linear")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        for parameter in layer.parameters():
            parameter.requires_grad = False
        self.layer, self.rank, self.alpha = layer, rank, alpha
        like = {"dtype": layer.weight.dtype, "device": layer.weight.device}
        self.A = nn.Parameter(0.02 * torch.randn(rank, layer.in_features, **like))
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank, **like))

    def forward(self, x):
        detour = F.linear(F.linear(x, self.A), self.B)
        return self.layer(x) + detour * self.alpha / self.rank

    def merged(self):
        return self.layer.weight + self.B @ self.A * self.alpha / self.rank


@right("10.4", "einsum")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.A = nn.Parameter((torch.rand(rank, layer.in_features).to(layer.weight) - 0.5) / layer.in_features**0.5)
        self.B = nn.Parameter(layer.weight.new_zeros(layer.out_features, rank))
        self.alpha, self.rank = alpha, rank

    def forward(self, x):
        return self.layer(x) + torch.einsum("...i,ri,or->...o", x, self.A, self.B) * (self.alpha / self.rank)

    def merged(self):
        return self.layer.weight + torch.einsum("ri,or->oi", self.A, self.B) * (self.alpha / self.rank)


@right("10.4", "through the merged matrix")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer, alpha / rank
        self.layer.requires_grad_(False)
        start = torch.empty(rank, layer.in_features).to(layer.weight)
        self.A = nn.Parameter(nn.init.kaiming_uniform_(start, a=5**0.5))
        self.B = nn.Parameter(torch.zeros_like(layer.weight[:, :1]).repeat(1, rank))

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A

    def forward(self, x):
        return F.linear(x, self.merged(), self.layer.bias)


# --- 10.4 wrong -----------------------------------------------------------------------------------------------------


@wrong("10.4", "no factor", says="The factor α/r is missing")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + x @ self.A.T @ self.B.T

    def merged(self):
        return self.layer.weight + self.B @ self.A


@wrong("10.4", "alpha only", says="The factor is α; it is α / r")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.alpha = layer.requires_grad_(False), alpha
        self.A = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + self.alpha * (x @ self.A.T @ self.B.T)


@wrong("10.4", "factor turned round", says="The factor is turned round")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), rank / alpha
        self.A = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)


@wrong("10.4", "detour alone", says="This is the detour alone")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.scale * (x @ self.A.T @ self.B.T)


@wrong("10.4", "bias lost", says="The layer's bias is lost")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return x @ (self.layer.weight + self.scale * self.B @ self.A).T


@wrong("10.4", "everything scaled", says="multiplies the layer's own output too")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.scale * (self.layer(x) + x @ self.A.T @ self.B.T)


@wrong("10.4", "non-linear", says="There is a non-linearity between A and B")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + self.scale * (torch.relu(x @ self.A.T) @ self.B.T)


@wrong("10.4", "B random", says="B must begin at 0")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.randn(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "both 0", says="A and B are both 0")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.zeros(rank, layer.in_features))
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "A all ones", says="All numbers of A are equal")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.ones(rank, layer.in_features))
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "A large", says="times too large, and a step of B changes the layer as many times more")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(10 * torch.randn(rank, layer.in_features))
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "on the layer itself", says="Expected the parameters A, B, layer.weight, layer.bias")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        layer.A = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        layer.B = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.layer.A.T @ self.layer.B.T)


@wrong("10.4", "layer trained", says="The layer's own weights would be trained too")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(True), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "all frozen", says="A and B must be trained: they are frozen")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer, alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))
        self.requires_grad_(False)

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "no_grad", says="reaches x")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        with torch.no_grad():
            straight = self.layer(x)
        return straight + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "A and B swapped", says="Expected A of shape")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(layer.out_features, rank))
        self.B = nn.Parameter(torch.zeros(rank, layer.in_features))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.B.T @ self.A.T)


@wrong("10.4", "no parameters", says="`self.A` is a plain tensor, which is not trained")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = torch.randn(rank, layer.in_features)
        self.B = torch.zeros(layer.out_features, rank)

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)


@wrong("10.4", "fixed type", says="The layer is float64, but A or B is not")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "not merged", says="The method `merged` is missing")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)


@wrong("10.4", "merged without W", says="add W")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.scale * self.B @ self.A


@wrong("10.4", "merged in place", says="`merged` changes layer.weight")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        self.layer.weight.data += self.scale * (self.B @ self.A).data
        return self.layer.weight


@wrong("10.4", "layers instead of matrices", says="`self.A` is a module; make it a matrix")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Linear(layer.in_features, rank, bias=False)
        self.B = nn.Linear(rank, layer.out_features, bias=False)
        nn.init.zeros_(self.B.weight)

    def forward(self, x):
        return self.layer(x) + self.scale * self.B(self.A(x))


@wrong("10.4", "a function", says="Expected a class")
def LoRA(layer, rank, alpha):
    return layer


@wrong("10.4", "whole numbers", says="cut to a whole number")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha // rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "parameters, then .to", says="`.to(…)` after `nn.Parameter` makes a plain tensor again")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5).to(layer.weight)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank)).to(layer.weight)

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "A positive", says="Draw them around 0")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.rand(rank, layer.in_features).to(layer.weight))
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "A of equal rows", says="Rows of A are equal")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(1, layer.in_features).repeat(rank, 1).to(layer.weight))
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "A not random", says="Two layers begin with the very same A")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.eye(rank, layer.in_features).to(layer.weight))
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "a copy", says="must be the layer that is given, itself")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = (
            type(layer)(layer.in_features, layer.out_features, layer.bias is not None),
            alpha / rank,
        )
        self.layer.load_state_dict(layer.state_dict())
        self.layer.to(layer.weight).requires_grad_(False)
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "merged left", says="`merged` is still to be written")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        raise NotImplementedError


@wrong("10.4", "dropout", says="is there dropout?")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        return self.layer(x) + self.scale * (self.dropout(x) @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "bias twice", says="`self.layer(x)` has added b already")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.layer.bias + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "merged the other way round", says="`B @ A` is (out, in)")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.A @ self.B


@wrong("10.4", "merged transposed", says="got (6, 4): `B @ A` is (out, in)")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight.T + self.scale * self.A.T @ self.B.T


@wrong("10.4", "B emptied", says="`merged` changes B; it must return a new matrix and change nothing")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        weight = (self.layer.weight + self.scale * self.B @ self.A).detach()
        self.B.data.zero_()
        return weight


@wrong("10.4", "A not divided", says="times too large, and a step of B changes the layer as many times more")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight))
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong(
    "10.4", "A divided by the rank's root", says="times too large, and a step of B changes the layer as many times more"
)
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / rank**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong(
    "10.4", "A divided by the root of out", says="times too large, and a step of B changes the layer as many times more"
)
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.out_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "A divided by in", says="divide by √in, not by in")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "A next to 0", says="A begins nearly at 0")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) * 1e-12)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "a copy of W", says="`merged` takes a copy of W, made in `__init__`")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))
        self.W = layer.weight.data.clone()

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.W + self.scale * self.B @ self.A


@wrong("10.4", "merged too early", says="`merged` is worked out in `__init__`, when B was still 0")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))
        self.whole = (layer.weight + self.scale * self.B @ self.A).detach()

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.whole


@wrong("10.4", "merged is W", says="`merged` returns W alone")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight.clone()


@wrong("10.4", "merged with the bias", says="The bias is in `merged`")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self(torch.eye(self.layer.in_features).to(self.A)).T


@wrong("10.4", "x turned", says="x may have more dimensions, (…, in)")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (self.B @ (self.A @ x.T)).T

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "einsum of a matrix", says="x may have more dimensions, (…, in)")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * torch.einsum("bi,ri,or->bo", x, self.A, self.B)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "t()", says="x may have more dimensions, (…, in)")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return self.layer(x) + self.scale * (self.A @ x.t()).t() @ self.B.T

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A


@wrong("10.4", "no bias there", says="The layer may have no bias")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank).to(layer.weight))

    def forward(self, x):
        return x @ self.layer.weight.T + self.layer.bias + self.scale * (x @ self.A.T @ self.B.T)

    def merged(self):
        return self.layer.weight + self.scale * self.B @ self.A
