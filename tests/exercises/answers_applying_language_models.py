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


@wrong("10.1", "largest", says="(max pooling); the mean is asked for")
def mean_pool(hidden, mask):
    return hidden.masked_fill(~mask[..., None], float("-inf")).max(dim=1).values


@wrong("10.1", "the first so many", says="look at *where* it is True")
def mean_pool(hidden, mask):
    return torch.stack([h[: int(m.sum())].mean(dim=0) for h, m in zip(hidden, mask)])


@wrong("10.1", "no new dimension", says="give it a last dimension, `mask[..., None]`")
def mean_pool(hidden, mask):
    return (hidden * mask).sum(dim=1) / mask.sum(dim=1)


@wrong("10.1", "count without a dimension", says="The number of tokens needs one too")
def mean_pool(hidden, mask):
    return hidden.masked_fill(~mask[..., None], 0).sum(1) / mask.sum(1).clamp(min=1)


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


@wrong("10.2", "k too large", says="if there are fewer than k, return all of them")
def cosine_search(queries, documents, k):
    return tuple((F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T).topk(k))


@wrong("10.2", "not transposed", says="transpose the documents")
def cosine_search(queries, documents, k):
    return tuple((F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1)).topk(k))


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


@wrong("10.2", "columns of queries", says="one row a query is asked for")
def cosine_search(queries, documents, k):
    cosines = F.normalize(documents, dim=-1) @ F.normalize(queries, dim=-1).T
    return tuple(cosines.topk(min(k, len(documents)), dim=0))


@right("10.2", "a list")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    return list(cosines.topk(min(k, len(documents))))


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


@wrong("10.2", "the first k rows", says="got (2, 7). One row for each query")
def cosine_search(queries, documents, k):
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T
    values, places = cosines.sort(descending=True)
    return values[:k], places[:k]


@wrong("10.2", "one row a document", says="Queries and documents are swapped")
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


@wrong("10.3", "no default", says="Without a fourth argument the names are")
def few_shot_prompt(instruction, shots, text, names):
    parts = [instruction] if instruction else []
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return "\n\n".join([*parts, f"{names[0]}: {text}\n{names[1]}:"])


@wrong("10.3", "pairs joined", says="make one text of each pair first")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    return "\n\n".join([instruction, *shots, text])


@wrong("10.3", "the list is changed", says="It changes its input shots in place: make a new list")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    shots.append((text, ""))
    parts += [f"{names[0]}: {given}\n{names[1]}: {answer}" for given, answer in shots]
    return "\n\n".join(parts).rstrip()


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


@wrong("10.3", "empty line inside", says="There is an empty line between a text and its answer")
def few_shot_prompt(instruction, shots, text, names=("Text", "Answer")):
    parts = [instruction] if instruction else []
    for given, answer in shots:
        parts += [f"{names[0]}: {given}", f"{names[1]}: {answer}"]
    return "\n\n".join([*parts, f"{names[0]}: {text}", f"{names[1]}:"])


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


@wrong("10.4", "bias lost", says="The layer's bias is lost")
class LoRA(nn.Module):
    def __init__(self, layer, rank, alpha):
        super().__init__()
        self.layer, self.scale = layer.requires_grad_(False), alpha / rank
        self.A = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.B = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return x @ (self.layer.weight + self.scale * self.B @ self.A).T


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


# --- wrong, as edits of the library's pieces ------------------------------------------------------------------------

BANK.edited(
    "10.1",
    """
    return (hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1) → · is the `return` missing?
    kept = → hidden *= mask[..., None]; kept = · It changes its input hidden in place
    hidden * kept → hidden.detach() * kept · no gradient reaches hidden
    (hidden * kept).sum(dim=1) → (mask[:, None] @ hidden)[:, 0] · Turn the mask into numbers first
    (hidden * kept).sum(dim=1) → torch.einsum("bld,bl->bd", hidden, mask) · Turn the mask into numbers first
    kept.sum(dim=1) → mask.mean(dim=1, keepdim=True) · True and False have no mean
    .clamp(min=1) → · A text without any token becomes NaN
    """,
)
BANK.edited(
    "10.2",
    """
    best.values, best.indices → best.indices · Expected cosines and places to be returned; got a tensor of shape
    best.values, best.indices → best.indices, best.values · The two results have changed places
    cosines.topk(min(k, len(documents)), → F.pad(cosines, (0, max(0, k - len(documents))), value=-2.0).topk(k,
        · both results must be (4, 3); yours are [(4, 6), (4, 6)]
    best.values → documents[best.indices] · Vectors came back, (3, 2, 4)
    len(documents)), dim=-1 → len(documents)), dim=0 · got (2, 7). One row for each query
    len(documents)), dim=-1 → len(documents)), dim=-1, sorted=False · unless it is told `sorted=False`
    """,
)
BANK.edited(
    "10.3",
    r"""
    "\n\n".join(parts) → parts · Expected one text; got a list of 5: join the parts
    "\n\n".join(parts) → len(parts) · Expected the prompt to be a text (str); got an int
    ("Text", "Answer") → ("Input", "Output") · Without a fourth argument the names are
    {answer}") → {answer.upper()}") · For 3 examples, from character
    answer in shots → answer in shots[-3:] · For 8 examples, from character
    {text}\n → {text.replace('a ', 'A ')}\n · For 1 example, from character
    {given}\n{names[1]}: {answer}") → " + (given, answer)) · A shot is a pair: take it apart
    parts = [ → first, *_ = shots; parts = [ · There may be no examples at all
    parts = [ → first = shots[0]; parts = [ · There may be no examples at all
    """,
)
BANK.edited(
    "10.4",
    """
    self.A = nn → layer.A = nn ; self.B = nn → layer.B = nn · Expected the parameters A, B, layer.weight, layer.bias
    nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5) →
        nn.Linear(layer.in_features, rank) · `self.A` is a module; make it a matrix
    nn.Parameter(torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5) →
        torch.randn(rank, layer.in_features) · `self.A` is a plain tensor, which is not trained
    rank).to(layer.weight)) → rank)).to(layer.weight) · `.to(…)` after `nn.Parameter` makes a plain tensor again
    torch.randn(rank, layer.in_features) → torch.randn(layer.out_features, rank) · Expected A of shape
    torch.zeros(layer → torch.randn(layer · B must begin at 0
    torch.randn(rank → torch.zeros(rank · A and B are both 0
    torch.randn(rank → torch.zeros(rank ; torch.zeros(layer → torch.randn(layer · A is 0 and B is not
    torch.randn(rank → torch.ones(rank · All numbers of A are equal
    torch.randn(rank, layer.in_features) → torch.randn(1, layer.in_features).repeat(rank, 1) · Rows of A are equal
    torch.randn(rank → torch.eye(rank · Two layers begin with the very same A
    torch.randn(rank → torch.rand(rank · Draw them around 0
    / layer.in_features**0.5 → · With in = 256 the numbers of A begin about
    / layer.in_features**0.5 → / rank**0.5 · times too large, and a step of B changes the layer as many times more
    / layer.in_features**0.5 → / layer.out_features**0.5 · times too large, and a step of B changes the layer
    / layer.in_features**0.5 → / layer.in_features · divide by √in, not by in
    / layer.in_features**0.5 → * 1e-12 · A begins nearly at 0
    layer.requires_grad_(False) → nn.Linear(layer.in_features, layer.out_features).requires_grad_(False)
        · must be the layer that is given, itself
    self.scale = → layer.weight.data.mul_(2); self.scale = · Before any training its output must be that of the layer
    torch.randn(rank, layer.in_features).to(layer.weight) / layer.in_features**0.5 → layer.weight.data[:rank]
        · A is the layer's own weight
    requires_grad_(False) → requires_grad_(True) · The layer's own weights would be trained too
    self.scale = → self.requires_grad_(False); self.scale = · A and B must be trained: they are frozen
    return self.layer(x) → return self.layer(x).detach() · reaches x
    rank).to(layer.weight) → rank) · The layer is float64, but A or B is not
    (x @ self.A.T → (F.dropout(x, 0.1, self.training) @ self.A.T · is there dropout?
    self.layer(x) → x @ self.layer.weight.T + self.layer.bias · The layer may have no bias
    self.layer(x) → F.linear(x, self.layer.weight, torch.ones(1) if self.layer.bias is None else self.layer.bias)
        · With a layer that has no bias the numbers differ
    (x @ self.A.T @ self.B.T) → (self.B @ (self.A @ x.T)).T · x may have more dimensions, (…, in)
    (x @ self.A.T @ self.B.T) → ((self.A @ x.t()).t() @ self.B.T) · x may have more dimensions, (…, in)
    (x @ self.A.T @ self.B.T) → torch.einsum("bi,ri,or->bo", x, self.A, self.B) · x may have more dimensions, (…, in)
    x @ self.A.T @ self.B.T → x @ self.A @ self.B · x is (…, in), A (r, in), B (out, r)
    (rank, layer.in_features) → (rank, layer.weight.in_features) · `layer` is an `nn.Linear`
    self.A = nn → self.a = nn · Expected the parameters A, B
    def merged → def merge · The method `merged` is missing
    return self.layer.weight + self.scale * (self.B @ self.A) → raise NotImplementedError
        · `merged` is still to be written
    return self.layer.weight + self.scale * (self.B @ self.A) → · `merged` must return a matrix; got None
    self.layer.weight + self.scale * (self.B @ self.A) → self.layer · `merged` returns a module
    self.layer.weight + self.scale * (self.B @ self.A) → (self.layer.weight + self.scale * (self.B @ self.A)).T
        · got (6, 4): `B @ A` is (out, in)
    self.B @ self.A → self.A @ self.B · `B @ A` is (out, in)
    self.layer.weight + self.scale * (self.B @ self.A) → self.layer.weight.data.add_(self.scale * (self.B @ self.A))
        · `merged` changes layer.weight
    return self.layer.weight + self.scale * (self.B @ self.A) →
        whole = (self.layer.weight + self.scale * (self.B @ self.A)).detach(); self.B.data.zero_(); return whole
        · `merged` changes B; it must return a new matrix and change nothing
    self.layer.weight + self.scale * (self.B → self.scale * (self.B · `merged` returns α/r · B A alone; add W
    self.layer.weight + self.scale * (self.B @ self.A) → self.layer.weight.clone() · `merged` returns W alone
    self.layer.weight + self.scale * ( → self.layer.weight + ( · `merged` leaves out the factor α/r
    self.scale = → self.alpha = alpha; self.scale = ; self.scale * (self.B → self.alpha * (self.B
        · `merged` takes the factor α; it is α / r
    self.scale = → self.W = layer.weight.data.clone(); self.scale = ; self.layer.weight + → self.W +
        · `merged` takes a copy of W, made in `__init__`
    alpha / rank → alpha / rank; self.whole = self.merged().detach() ;
        return self.layer.weight + self.scale * (self.B @ self.A) →
        return getattr(self, "whole", self.layer.weight.clone())
        · `merged` is worked out in `__init__`, when B was still 0
    self.layer.weight + self.scale * (self.B @ self.A) → self(torch.eye(self.layer.in_features).to(self.A)).T
        · The bias is in `merged`
    self.B @ self.A → 2 * self.B @ self.A · One layer with the merged matrix must do what the detour does
    """,
)
