"""Exercises of lesson 10: mean pooling, cosine search, a few-shot prompt, a LoRA layer."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.decoding.prompting import few_shot_prompt
from course_lib.lab.grading import Exercise, Wrong, describe
from course_lib.lab.ladder import Ladder, ModuleLadder, copied, edits
from course_lib.models.bert import mean_pool
from course_lib.models.lora import LoRA
from course_lib.models.retrieval import cosine_search


def _random(seed: int, *shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


# --- 10.1 ---


def _mask(lengths: list[int], longest: int) -> Tensor:
    return torch.arange(longest) < torch.tensor(lengths)[:, None]


HOLES = torch.tensor([[True, False, True, True], [False, True, False, False]])
POOL = [
    (*_random(0, (3, 5, 4)), _mask([5, 2, 3], 5)),
    (*_random(1, (2, 4, 7)), HOLES),
    (*_random(2, (3, 6, 2)), _mask([4, 0, 1], 6)),
]
POOL[1][0][0, 2] = 0  # the vector of a token may be zero, too
TOGETHER = "`hidden[mask]` throws the tokens of all texts together: each text has a mean of its own."


def _filling_does_not_count(answer: Callable) -> None:
    hidden, mask = POOL[0]
    other = torch.where(mask[..., None], hidden, hidden + 100)
    if not torch.allclose(answer(hidden, mask), answer(other, mask), atol=1e-4):
        raise Wrong("Other numbers in the filled-up places change the result: multiply by the mask before you sum.")


def _no_token_no_nan(answer: Callable) -> None:
    hidden, mask = POOL[2]
    if answer(hidden, mask).isnan().any():
        raise Wrong(
            "A text without any token becomes NaN, 0 / 0: divide by at least 1, `.clamp(min=1)`; its vector is 0."
        )


def _gradient_without_nan(answer: Callable) -> None:
    hidden, mask = POOL[2]
    given = hidden.clone().requires_grad_()
    total = answer(given, mask).sum()
    if total.requires_grad:
        total.backward()
    if given.grad is not None and given.grad.isnan().any():
        raise Wrong(
            "0 / 0 is repaired after the division, but its gradient stays NaN: divide by at least 1, `.clamp(min=1)`."
        )


_pool_checks = Ladder(
    mean_pool,
    POOL[:2],
    returns=["the vectors"],
    properties=[_filling_does_not_count],
    slips=edits(
        mean_pool,
        f"""
        (hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1) → hidden.mean(dim=1)
        · The mask is not used: the filling is averaged in. Sum over the tokens only.
        / kept.sum(dim=1).clamp(min=1) → / mask.shape[1]
        · The sum is right, but it is divided by the padded length; divide by the number of tokens.
        / kept.sum(dim=1).clamp(min=1) → · This is the sum; divide by the number of tokens.
        mask[..., None] → (~mask)[..., None]
        · The filling is averaged and the tokens are left out: the mask is True at tokens.
        / kept.sum(dim=1).clamp(min=1) → / kept.sum()
        · It is divided by the tokens of the whole batch; each text has its own number: `sum(dim=1)`.
        / kept.sum(dim=1).clamp(min=1) → / kept.sum(dim=1) ** 0.5
        · It is divided by the root of the number of tokens; by the number itself.
        / kept.sum(dim=1).clamp(min=1) → / (kept.sum(dim=1) + 1)
        · It is divided by one more than the number of tokens; to keep from 0 / 0, `.clamp(min=1)`.
        (hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1) → hidden[:, 0]
        · This is the vector of the first token ([CLS] pooling); the mean of all tokens is asked for.
        (hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1) →
        hidden[torch.arange(len(hidden)), mask.sum(dim=1) - 1]
        · This is the vector of the last token; the mean of all tokens is asked for.
        (hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1) → hidden.masked_fill(kept == 0, -1e9).amax(dim=1)
        · This is the largest of each number (max pooling); the mean is asked for.
        (hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1) → F.normalize((hidden * kept).sum(dim=1), dim=-1)
        · The vectors are made 1 long; the plain mean is asked for (the search does that later).
        kept).sum(dim=1) → kept).sum(dim=2) · The sum runs over the numbers of a vector; sum over the tokens, `dim=1`.
        kept).sum(dim=1) / kept.sum(dim=1) → kept).sum(dim=0) / kept.sum(dim=0)
        · The mean runs over the texts of the batch; take it over the tokens, `dim=1`.
        (hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1) → hidden[mask].mean(dim=0) · {TOGETHER}
        (hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1) → hidden[mask].mean(dim=0).expand(len(hidden), -1)
        · {TOGETHER}
        / kept.sum(dim=1) → / (hidden * kept != 0).any(dim=-1).sum(dim=1, keepdim=True)
        · The tokens are counted by their vectors, which may be zero: count them in the mask.
        mask[..., None] → (torch.arange(mask.shape[1]) < mask.sum(dim=1, keepdim=True))[..., None]
        · The first tokens are taken, as many as the mask has: look at *where* it is True.
        """,
    ),
)
_empty = Ladder(mean_pool, POOL[2:], returns=["the vectors"])  # a text without any token

pooling = Exercise(
    id="10.1",
    title="mean pooling with a mask",
    reference=mean_pool,
    checks=_pool_checks.extended(_no_token_no_nan, _gradient_without_nan, _empty.numbers, _empty.gradients),
    crashes=[
        (
            "must match the size of tensor",
            "The mask is (batch, length), the vectors (batch, length, d): give it a last dimension, `mask[..., None]`. "
            "The number of tokens needs one too, (batch, 1): `sum(dim=1, keepdim=True)`.",
        ),
        *((part, "Turn the mask into numbers first: `mask.to(hidden)`.") for part in ("for 'Bool'", "found Bool")),
        ("infer output dtype", "True and False have no mean: turn the mask into numbers, `mask.to(hidden)`."),
    ],
    nudge="Make the mask 1 and 0 with a last dimension, `mask[..., None].to(hidden)`; then a sum over a sum.",
    sketch="""
        kept = the mask as numbers, with one more dimension         (batch, length, 1)
        total = the sum over the tokens of hidden · kept            (batch, d)
        count = the sum over the tokens of kept, but at least 1     (batch, 1)
        return total / count
        """,
)

# --- 10.2 ---


def _search_cases() -> list[tuple]:
    cases = []
    for seed, (n, m, d, k) in enumerate([(3, 7, 4, 2), (1, 5, 6, 5), (4, 3, 2, 6), (5, 6, 3, 1)]):
        queries, documents, lengths = _random(seed, (n, d), (m, d), (m, 1))
        cases.append((queries * 3, documents * lengths.exp(), k))  # of very different lengths
    worked = torch.tensor([[2.0, 0]]), torch.tensor([[0.0, 5], [3, 3], [1, 0]]), 2
    return [*cases, worked]


SEARCH = _search_cases()


def _k_is_enough(answer: Callable) -> None:
    queries, documents, k = SEARCH[2]
    try:
        shapes = [tuple(value.shape) for value in answer(queries.clone(), documents.clone(), k)]
    except (RuntimeError, IndexError) as error:
        raise Wrong(
            f"With {len(documents)} documents and k = {k} it stopped ({type(error).__name__}): "
            "if there are fewer than k, return all of them, `min(k, len(documents))`."
        ) from None
    wanted = (len(queries), len(documents))
    if shapes != [wanted, wanted]:
        raise Wrong(f"With {len(documents)} documents and k = {k} both results must be {wanted}; yours are {shapes}.")


def _cosines_first(answer: Callable) -> None:
    got = answer(*copied(SEARCH[0]))
    if not (isinstance(got, tuple | list) and len(got) == 2 and all(isinstance(v, Tensor) for v in got)):
        raise Wrong(f"Expected cosines and places to be returned; got {describe(got)}.")
    if got[1].is_floating_point() > got[0].is_floating_point():
        raise Wrong("The two results have changed places: first the cosines, then the places.")


GATHER = (
    "The places are right, but the first result does not belong to them: take the cosines at the places, "
    "`cosines.gather(1, places)`."
)


OF_PRODUCTS = "The products are made 1 long; it is the queries and the documents, before they are multiplied."


def _best_first(answer: Callable) -> None:
    for queries, documents, k in SEARCH[:2]:
        cosines, places = answer(queries, documents, k)
        if not (cosines[:, 1:] > cosines[:, :-1]).any():
            continue
        all_cosines = F.cosine_similarity(queries[:, None], documents, dim=-1)
        at_places = all_cosines.gather(1, places.clamp(0, len(documents) - 1))
        if torch.allclose(cosines, at_places, atol=1e-5):
            raise Wrong("In each row the best comes first: `topk` sorts, unless it is told `sorted=False`.")
        if torch.equal(places, cosine_search(queries, documents, k)[1]):
            raise Wrong(GATHER)
        raise Wrong("The first result does not hold the cosines of the documents in the second, best first.")


def _zero_vectors(answer: Callable) -> None:
    queries, documents = torch.tensor([[1.0, 0], [0, 0]]), torch.tensor([[0.0, 0], [3, 3], [-1, 0]])
    cosines = answer(queries, documents, 3)[0]
    if cosines.isnan().any():
        raise Wrong("A zero vector gives NaN, 0 / 0; its cosine with everything is 0: `F.normalize` leaves it at 0.")
    if not torch.allclose(cosines, cosine_search(queries, documents, 3)[0], atol=1e-5):
        raise Wrong("A zero vector among the queries or documents changes the cosines: its own are 0, with everything.")


def _length_is_nothing(answer: Callable) -> None:
    queries, documents, k = SEARCH[0]
    factors = torch.arange(1.0, len(documents) + 1)[:, None]
    if not torch.equal(answer(queries, documents, k)[1], answer(queries, documents * factors, k)[1]):
        raise Wrong("Longer documents change the order: the cosine looks at directions only. Divide by both lengths.")


def _one_row_a_query(answer: Callable) -> None:
    queries, documents, k = SEARCH[0]
    cosines, _ = answer(queries.clone(), documents.clone(), k)
    if cosines.dim() == 3:
        raise Wrong(f"Vectors came back, {tuple(cosines.shape)}; the cosines are asked for, one number a document.")
    if len(cosines) != len(queries):
        raise Wrong(
            f"Expected cosines of shape {(len(queries), k)}; got {tuple(cosines.shape)}. One row for each query: "
            "`queries @ documents.T` is (n, m); the best k along `dim=1`, `[:, :k]`."
        )


_search_checks = Ladder(
    cosine_search,
    [SEARCH[0], SEARCH[1], SEARCH[3], SEARCH[4]],
    returns=["cosines", "places"],
    properties=[_best_first, _length_is_nothing],
    slips=edits(
        cosine_search,
        f"""
        F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T → queries @ documents.T
        · These are dot products: long vectors win. Make queries and documents 1 long first.
        F.normalize(documents, dim=-1) → documents
        · The documents are not made 1 long: long ones win whatever they say.
        F.normalize(queries, dim=-1) → queries
        · The order is right, but the queries are not made 1 long: the cosines come out too large.
        F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T → F.normalize(queries @ documents.T, dim=-1)
        · {OF_PRODUCTS}
        F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T → F.normalize(queries @ documents.T, dim=0)
        · {OF_PRODUCTS}
        queries, dim=-1) @ F.normalize(documents, dim=-1) → queries, dim=0) @ F.normalize(documents, dim=0)
        · The columns are made 1 long; each vector is a row: normalise over the last dimension.
        F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T →
        queries / queries.norm() @ (documents / documents.norm()).T
        · The whole matrix is divided by one length; each row has its own: `F.normalize(x, dim=-1)`.
        dim=-1).T → dim=-1).T / queries.norm(dim=1)[:, None] / documents.norm(dim=1)
        · It is divided by the squares of the lengths; by the lengths themselves.
        best.indices → best.indices + 1 · The documents are counted from 1; their numbers begin at 0.
        len(documents)), dim=-1 → len(documents)), dim=-1, largest=False ;
        best.values, best.indices → best.values.flip(-1), best.indices.flip(-1)
        · These are the documents farthest away: an `argsort` puts the smallest first.
        len(documents)), dim=-1 → len(documents)), dim=-1, largest=False
        · These are the documents farthest away; the best have the largest cosine.
        best.values, best.indices → best.values.flip(-1), best.indices.flip(-1)
        · The right documents, but the worst of them first: best first.
        best.values, best.indices → best.values[:, :1], best.indices[:, :1]
        · Only the best one comes back; k are asked for.
        min(k, len(documents)) → len(documents) · All documents come back; only the best k are asked for.
        F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T → -torch.cdist(queries, documents)
        · These are (negative) distances: the cosine compares directions.
        F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T → torch.cdist(queries, documents) ;
        len(documents)), dim=-1 → len(documents)), dim=-1, largest=False
        · These are distances; the cosine is asked for: it compares directions, whatever the lengths.
        F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T →
        torch.cdist(F.normalize(queries, dim=-1), F.normalize(documents, dim=-1)) ;
        len(documents)), dim=-1 → len(documents)), dim=-1, largest=False
        · The right documents, but with the distances of vectors made 1 long; return the cosines.
        best.values → best.values.acos() · The right documents, but with angles; return the cosines.
        cosines.topk → (-torch.cdist(queries, documents)).topk ; best.values → cosines.gather(1, best.indices)
        · These are cosines, but the documents are the nearest by distance, not by direction: choose by the cosine.
        best.values → cosines[:, :k] · {GATHER}
        cosines.topk → (1 - cosines).topk ; len(documents)), dim=-1 → len(documents)), dim=-1, largest=False
        · The right documents, but with the cosine distance, 1 − cos; return the cosine.
        cosines.topk → cosines.softmax(dim=-1).topk
        · A softmax has been taken: the order is the same, but these are no cosines.
        cosines.topk → cosines.abs().topk
        · The sign is lost: a document of the opposite direction (cosine −1) is the worst, not the best.
        cosines.topk → (queries @ documents.T).topk ; best.values → cosines.gather(1, best.indices)
        · These are cosines, but the documents are chosen by the dot product: choose by the cosine, too.
        cosines.topk → cosines.masked_fill(cosines > 0.9999, -torch.inf).topk
        · A document in the very direction of the query (cosine 1) is left out: it is the best there is.
        len(documents)), → len(queries)),
        · Too few come back where there are few queries: the limit is `min(k, len(documents))`.
        best.values, best.indices → best.values.T, best.indices.T
        · There is one column a query; one row a query is asked for.
        queries, dim=-1) @ F.normalize(documents → documents, dim=-1) @ F.normalize(queries ;
        len(documents)), → len(queries)),
        · Queries and documents are swapped: for each query the best documents, one row a query.
        """,
    ),
)
_few = Ladder(cosine_search, SEARCH[2:3], returns=["cosines", "places"])  # fewer documents than k

searching = Exercise(
    id="10.2",
    title="cosine search",
    reference=cosine_search,
    checks=_search_checks.extended(_cosines_first, _search_checks.explained(_one_row_a_query), before="types").extended(
        _k_is_enough, _few.numbers, _few.gradients, _zero_vectors
    ),
    crashes=[
        (
            "shapes cannot be multiplied",
            "Queries are (n, d) and documents (m, d): transpose the documents, `queries @ documents.T`.",
        ),
        (
            "must match the size of tensor",
            "Every query meets every document: one matrix product of the rows, made 1 long, gives all (n, m) cosines.",
        ),
    ],
    nudge="`F.normalize(x, dim=-1)` makes each row 1 long; then one matrix product gives all cosines. And `topk`.",
    sketch="""
        make each query and each document 1 long
        cosines = queries times documents, transposed          (n, m)
        values, places = the best min(k, m) of each row         topk sorts them, best first
        return values, places
        """,
)

# --- 10.3 ---

PROMPTS = [  # instruction, shots, text, names
    ("Is it hot or cold?", [("ice", "cold"), ("fire", "hot"), ("snow", "cold")], "the sun", ("Thing", "Feels")),
    ("Name the colour.", [("grass", "green")], "a ripe tomato", ("Thing", "Colour")),
    ("Opposites.", [], "up", ("Word", "Opposite")),
    ("", [("one", "uno"), ("two", "dos")], "three", ("English", "Spanish")),
    ("", [], "cat", ("Text", "Answer")),
    ("What is it like?", [("the sea", "blue")], "a lemon", ("a thing", "its colour")),
    ("Which bank?", [("bank", "river"), ("bank", "money")], "bank", ("Word", "Sense")),
    ("Say: what is {}?", [("a: b\nc", "d: {}")], "f: {} g", ("Text", "Answer")),
    ("Go on counting.", [(str(n), str(n + 1)) for n in range(8)], "8", ("Number", "Next")),
]


def _one_text(answer: Callable) -> None:
    got = answer(*copied(PROMPTS[0]))
    if isinstance(got, list | tuple) and all(isinstance(part, str) for part in got):
        raise Wrong(f"Expected one text; got {describe(got)}: join the parts, `'\\n\\n'.join(parts)`.")


def _names_by_default(answer: Callable) -> None:
    instruction, shots, text, _ = PROMPTS[0]
    try:
        got = answer(instruction, shots, text)
    except TypeError:
        raise Wrong('Without a fourth argument the names are ("Text", "Answer"): set that in the first line.') from None
    if got != few_shot_prompt(instruction, shots, text):
        raise Wrong('Without a fourth argument the names are ("Text", "Answer"): set that in the first line.')


_prompt_checks = Ladder(
    few_shot_prompt,
    PROMPTS,
    returns=["the prompt"],
    told=lambda instruction, shots, text, names: f"{len(shots)} example{'' if len(shots) == 1 else 's'}",
    slips=edits(
        few_shot_prompt,
        r"""
        {names[1]}:") → {names[1]}: ")
        · There is a space after the last colon. The model's tokens begin with their space (` cold`), so it would now
        · have to begin one without: end with the colon.
        {names[1]}:") → {names[1]}:\n")
        · There is a line break after the last colon: the answer would stand on a line of its own, as in no example.
        {names[1]}:") → {names[1]}:\n\n")
        · There is an empty line after the last colon: it stands *between* the parts only; end with `:`.
        [instruction] if instruction else [] → [] ; return → return (instruction and instruction + "\n") +
        · The instruction and what follows it must be parted by an empty line too: two line breaks.
        : {given}\n{names[1]}: {answer} → :{given}\n{names[1]}:{answer} ; : {text} → :{text}
        · There is no space after the colons; `Thing: ice`. Only the last colon has none.
        {given}\n → {given}\n\n ; {text}\n → {text}\n\n
        · There is an empty line between a text and its answer; one line break: the empty line parts the examples.
        {given}\n → {given} ; {text}\n → {text}
        · Text and answer are not parted by a line break; each has a line of its own.
        answer in shots → answer in dict(shots).items()
        · Of two examples with the same text one is lost: `shots` is a list of pairs, not a dictionary.
        {text}\n{names[1]}: → {text}
        · The prompt ends with the text; the name of the answer and a colon are missing: the model would have to guess
        · that an answer is due.
        {names[1]}:") → {names[1]}") · The last colon is missing: the open answer must begin as the solved ones do.
        {given}\n → {given}\x20 ; {text}\n → {text}\x20
        · Text and answer stand on one line; each has its own.
        {text}\n → {text}\x20 · The open answer stands on the line of the text; it has one of its own.
        "\n\n".join → "\n".join · The parts must be parted by an empty line: two line breaks, `\n\n`.
        "\n\n".join → "".join · Nothing stands between the parts: an empty line, `\n\n`.
        "\n\n".join → "\n\n\n".join · There are two empty lines between the parts; one is asked for.
        [instruction] if instruction else [] → [instruction]
        · Without an instruction the prompt begins with an empty line: leave the part out if it is empty.
        parts.append(f"{names[0]}: {text} → parts += [] if shots else [""]; parts.append(f"{names[0]}: {text}
        · Without examples there is an empty line too many: put each example into the list of parts by itself.
        [instruction] if instruction else [] → []; lead = instruction and instruction + "\n\n" ;
        {names[0]}: {given} → {lead}{names[0]}: {given} ; {names[0]}: {text} → {lead}{names[0]}: {text}
        · The instruction stands before each example; once, at the beginning, is enough.
        [instruction] if instruction else [] → [] · The instruction is missing.
        [instruction] if instruction else [] → [] ;
        parts.append(f"{names[0]}: {text} →
        parts += [instruction] * bool(instruction); parts.append(f"{names[0]}: {text}
        · The instruction stands after the examples; it comes first.
        parts.append(f"{names[0]}: {text} → parts.insert(bool(instruction), f"{names[0]}: {text}
        · The open text stands before the examples; it comes last, so that the model answers it.
        answer in shots → answer in shots[::-1] · The examples are in reversed order; keep theirs.
        answer in shots → answer in shots[:1] · Only the first example is used; all belong to the prompt.
        answer in shots → answer in shots[:-1] · The last example is missing.
        answer in shots → answer in [] · The examples are missing: only instruction and text are there.
        {names[1]}: {answer} → {names[1]}: · The examples have no answers: a shot is a *solved* example.
        {given}\n → {given}\x20 · Text and answer of an example stand on one line; each has its own.
        {names[0]}: {given}\n{names[1]}: {answer} → {given}\n{answer}
        · The names are missing in the examples: they tell the model what is text and what is answer.
        {given}\n{names[1]}: {answer} → {answer}\n{names[1]}: {given}
        · Text and answer of the examples have changed places.
        {names[0]}: {given}\n{names[1]} → {names[1]}: {given}\n{names[0]}
        · The two names have changed places in the examples.
        : {given}\n{names[1]}: {answer} → :{given}\n{names[1]}:{answer}
        · In the examples there is no space after the colon; `Thing: ice`.
        parts = [ → names = names[::-1]; parts = [
        · The two names have changed places: `names[0]` stands before a text, `names[1]` before an answer.
        parts = [ → names = [name.capitalize() for name in names]; parts = [
        · The names get a capital letter; write them as they are given.
        parts = [ → names = ("Text", "Answer"); parts = [
        · `names` is not used: each text and answer has these names before it.
        """,
    ),
)

prompting = Exercise(
    id="10.3",
    title="a few-shot prompt",
    reference=few_shot_prompt,
    checks=_prompt_checks.extended(_one_text, before="types").extended(_names_by_default),
    crashes=[
        ("can only concatenate str", "A shot is a pair: take it apart, `for given, answer in shots`."),
        ("expected str instance", "`join` takes texts: make one text of each pair first."),
        ("Replacement index", "A text may itself hold `{}`: put it in with an f-string, and call `format` on no text."),
        ("not enough values to unpack", "There may be no examples at all: then only instruction and text are left."),
        ("index out of range", "There may be no examples at all: then only instruction and text are left."),
    ],
    nudge="Collect the parts in a list: the instruction if there is one, each solved example, the open one. Then join.",
    sketch="""
        parts = the instruction, if it is not empty
        for each (given, answer) of the shots:
            add  "name: given", a line break, "other name: answer"
        add the text in the same way, but stop after the last colon
        return the parts, joined by an empty line
        """,
)

# --- 10.4 ---


def _layer(seed: int, d_in: int, d_out: int, bias: bool = True) -> nn.Linear:
    made = nn.Linear(d_in, d_out, bias)
    with torch.no_grad():
        for parameter, values in zip(made.parameters(), _random(seed, (d_out, d_in), (d_out,)), strict=False):
            parameter.copy_(values)
    return made


LAYERS = [
    ((_layer(0, 4, 3), 2, 8.0), _random(3, (5, 4))),
    ((_layer(1, 3, 6), 1, 2.0), _random(4, (2, 4, 3))),
    ((_layer(2, 5, 5), 2, 3.0), _random(5, (2, 5))),  # α / r is no whole number
]


def _fresh(bias: bool = True) -> tuple[nn.Linear, Tensor]:
    return _layer(6, 6, 4, bias), _random(7, (64, 6))[0]


def _has_parameters(answer: type[nn.Module]) -> None:
    made = answer(_fresh()[0].double(), 2, 4.0)
    for name in "AB":
        value = getattr(made, name, None)
        if isinstance(value, nn.Module):
            raise Wrong(f"`self.{name}` is a module; make it a matrix, `nn.Parameter(…)`.")
        if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
            raise Wrong(
                f"`self.{name}` is a plain tensor, which is not trained. First `.to(layer.weight)`, then "
                "`nn.Parameter(…)`: `.to(…)` after `nn.Parameter` makes a plain tensor again."
            )


def _starts_as_the_layer(answer: type[nn.Module]) -> None:
    layer, x = _fresh()
    before = layer(x).detach()
    made = answer(layer, 2, 4.0)
    if made.B.abs().max() > 0:
        if made.A.abs().max() == 0:
            raise Wrong("A is 0 and B is not: it would do, but by convention A begins random and B at 0.")
        raise Wrong("B must begin at 0 (`torch.zeros`): then the layer does at first exactly what it did before.")
    if made.A.abs().max() == 0:
        raise Wrong(
            "A and B are both 0: then both gradients are 0, and neither ever moves. Begin A with random numbers."
        )
    if made.A.std() == 0:
        raise Wrong("All numbers of A are equal: then all its rows learn the same. Begin with random numbers.")
    A, again = (answer(nn.Linear(256, 4), 4, 4.0).A for _ in range(2))
    if len(A.unique(dim=0)) < len(A):
        raise Wrong("Rows of A are equal: then they learn the same. Draw each number by itself, `torch.randn`.")
    if torch.equal(A, again):
        raise Wrong("Two layers begin with the very same A: draw random numbers, `torch.randn`, without a fixed seed.")
    if A.mean().abs() > A.std() / 2:
        raise Wrong(
            f"The numbers of A have mean {A.mean():.2g} and spread {A.std():.2g}: then its rows are much alike. "
            "Draw them around 0, `torch.randn`."
        )
    size = A.std() * 256**0.5  # 1 as the text has it; small normal or uniform numbers of other recipes will do, too
    if size > 2:
        raise Wrong(
            f"With in = 256 the numbers of A begin about {size:.0f} times too large, and a step of B changes the layer "
            "as many times more. Divide by √in, `/ layer.in_features**0.5`."
        )
    if size < 0.1:
        raise Wrong("A begins nearly at 0, and the detour with it: divide by √in, not by in.")
    if made.layer is not layer:
        raise Wrong("`self.layer` must be the layer that is given, itself: no copy, no new one.")
    if not torch.allclose(made(x), before, atol=1e-6):
        raise Wrong("Before any training its output must be that of the layer: do not change the layer's weights.")


def _only_the_detour_learns(answer: type[nn.Module]) -> None:
    layer, _ = _fresh()
    made = answer(layer, 2, 4.0)
    if any(p.requires_grad for p in made.layer.parameters()):
        raise Wrong("The layer's own weights would be trained too: freeze them, `layer.requires_grad_(False)`.")
    if not (made.A.requires_grad and made.B.requires_grad):
        raise Wrong("A and B must be trained: they are frozen. Freeze the layer only.")
    if made.A.data_ptr() == layer.weight.data_ptr():
        raise Wrong("A is the layer's own weight: make a new parameter.")


def _without_a_bias(answer: type[nn.Module]) -> None:
    layer, x = _fresh(bias=False)
    made, want = answer(layer, 2, 4.0), LoRA(layer, 2, 4.0)
    with torch.no_grad():
        for own, theirs in ((made.A, want.A), (made.B, want.B)):
            own.copy_(torch.linspace(-1, 1, own.numel()).view_as(own))
            theirs.copy_(own)
    if not torch.allclose(made(x), made(x), atol=1e-5):
        raise Wrong("Two calls give different numbers: is there dropout? The formula has none.")
    if not torch.allclose(made(x), want(x), atol=1e-5):
        raise Wrong("With a layer that has no bias the numbers differ: call the layer itself, `self.layer(x)`.")


def _of_the_layers_dtype(answer: type[nn.Module]) -> None:
    made = answer(_fresh()[0].double(), 2, 4.0)
    if made.A.dtype != torch.float64 or made.B.dtype != torch.float64:
        raise Wrong("The layer is float64, but A or B is not: `.to(layer.weight)` takes over dtype and device.")


def _merges(answer: type[nn.Module]) -> None:
    if not callable(getattr(answer, "merged", None)):
        raise Wrong("The method `merged` is missing: it returns the one matrix W + α/r · B A.")
    for seed, (rank, alpha) in enumerate([(3, 5.0), (2, 8.0), (1, 0.5)]):
        layer, x = _fresh()
        made = answer(layer, rank, alpha)
        with torch.no_grad():
            made.A.copy_(_random(seed, tuple(made.A.shape))[0])
            made.B.copy_(_random(seed + 9, tuple(made.B.shape))[0])
            first = layer.weight.clone()
            layer.weight.mul_(-2)  # as other weights are loaded into it
        before, scale, detour = copy.deepcopy(made.state_dict()), alpha / rank, (made.B @ made.A).detach()
        weight = before["layer.weight"]
        try:
            got = made.merged()
        except NotImplementedError:
            raise Wrong("`__init__` and `forward` are right; `merged` is still to be written.") from None
        for name, value in made.state_dict().items():
            if not torch.equal(value, before[name]):
                raise Wrong(f"`merged` changes {name}; it must return a new matrix and change nothing.")
        if isinstance(got, nn.Module):
            raise Wrong("`merged` returns a module; return the matrix W + α/r · B A.")
        if not isinstance(got, Tensor):
            raise Wrong(f"`merged` must return a matrix; got {describe(got)}.")
        if got.shape != weight.shape:
            wanted = f"`merged` must have the shape of W, {tuple(weight.shape)}; got {tuple(got.shape)}"
            raise Wrong(f"{wanted}: `B @ A` is (out, in).")
        for wrong, sentence in (
            (detour * scale, "`merged` returns α/r · B A alone; add W."),
            (weight + detour, "`merged` leaves out the factor α/r."),
            (weight, "`merged` returns W alone; add α/r · B A."),
            (first, "`merged` is worked out in `__init__`, when B was still 0: work it out when it is called."),
            (
                first + scale * detour,
                "`merged` takes a copy of W, made in `__init__`, and the layer's weight has changed since: "
                "take `self.layer.weight`.",
            ),
            (
                weight + scale * detour + layer.bias[:, None],
                "The bias is in `merged`: W + α/r · B A is asked for, without it.",
            ),
            (weight + alpha * detour, "`merged` takes the factor α; it is α / r."),
        ):
            right = torch.allclose(got, weight + scale * detour, atol=1e-4)
            if not right and torch.allclose(got, wrong, atol=1e-4):
                raise Wrong(sentence)
        if not torch.allclose(F.linear(x, got, layer.bias), made(x), atol=1e-4):
            raise Wrong("One layer with the merged matrix must do what the detour does; they differ. W + α/r · B A.")


_lora_checks = ModuleLadder(
    LoRA,
    LAYERS,
    returns=["the output"],
    slips=edits(
        LoRA,
        """
        = alpha / rank → = 1.0 · The factor α/r is missing before the detour.
        = alpha / rank → = alpha · The factor is α; it is α / r.
        = alpha / rank → = rank / alpha · The factor is turned round: α / r, not r / α.
        = alpha / rank → = alpha * rank · The factor is α · r; it is α / r.
        = alpha / rank → = alpha // rank · The factor is cut to a whole number, `//`; it is α / r.
        = alpha / rank → = 1 / rank · The factor is 1 / r; it is α / r.
        = alpha / rank → = alpha / rank**0.5 · The factor is α / √r (a later variant, rsLoRA); here it is α / r.
        self.layer(x) + → · This is the detour alone; the layer's own output belongs to the sum.
        self.layer(x) → x @ self.layer.weight.T · The layer's bias is lost: call the layer itself, `self.layer(x)`.
        self.layer(x) → self.layer(x) + self.layer.bias
        · The bias is added twice: `self.layer(x)` has added b already.
        = alpha / rank → = 0.0 · This is the layer alone; the detour α/r · B A x belongs to the sum.
        self.layer(x) + self.scale * (x @ self.A.T @ self.B.T) → self.scale * (self.layer(x) + x @ self.A.T @ self.B.T)
        · The factor α/r multiplies the layer's own output too; it belongs to the detour only.
        x @ self.A.T → torch.relu(x @ self.A.T)
        · There is a non-linearity between A and B: then the two could not be merged into W.
        self.layer(x) + → self.layer(x) - · The detour is taken away; it is added.
        """,
    ),
)
SHAPES = (
    "x is (…, in), A (r, in), B (out, r): first `x @ A.T`, (…, r), then `@ B.T`, (…, out). "
    "And in `merged`: `B @ A` is (out, in)."
)
MORE = "x may have more dimensions, (…, in): `x @ self.A.T`, and no `x.T`; in an `einsum`, `...i`."
adapting = Exercise(
    id="10.4",
    title="a LoRA layer",
    reference=LoRA,
    checks=_lora_checks.extended(_has_parameters, before="parameters").extended(
        _starts_as_the_layer, _of_the_layers_dtype, _without_a_bias, _only_the_detour_learns, _merges
    ),
    crashes=[
        ("shapes cannot be multiplied", SHAPES),
        ("must match the size of tensor", SHAPES),
        ("does not match the number of dimensions", MORE),
        ("dimensions of batch2", MORE),
        ("<= 2 dimensions", MORE),
        ("must be a matrix", MORE),
        ("x.T", MORE),
        (
            "'Tensor' and 'NoneType'",
            "The layer may have no bias: call the layer itself, `self.layer(x)`. (Or is a `return` missing?)",
        ),
        ("has no attribute 'in_features'", "`layer` is an `nn.Linear`: it has `in_features` and `out_features`."),
    ],
    nudge="`nn.Parameter(…)` makes a tensor that is trained. The layer is frozen with `requires_grad_(False)`.",
    sketch="""
        __init__:  super().__init__()
                   self.layer = the layer, frozen
                   self.A = a parameter (rank, in), random, divided by √in;  self.B = a parameter (out, rank), 0
                            both of the layer's dtype and device: first .to(layer.weight), then nn.Parameter
                   remember alpha / rank
        forward:   the layer's output of x, plus alpha / rank · (x times A transposed, times B transposed)
        merged:    the layer's weight plus alpha / rank · B A
        """,
)

EXERCISES = [pooling, searching, prompting, adapting]
