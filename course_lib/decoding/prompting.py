"""Asking a language model: prompts with examples, the chat format, and the probability of what comes next."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from course_lib.decoding.cached import CachedModel, select_rows
from course_lib.decoding.pieces import walk
from course_lib.models.attention import Cache
from course_lib.models.gpt import GPT
from course_lib.progress_bar import progress_bar


def few_shot_prompt(
    instruction: str, shots: Iterable[tuple[str, str]], text: str, names: tuple[str, str] = ("Text", "Answer")
) -> str:
    """The instruction, the solved examples, and the text whose answer is left open; an empty line between the parts.

    ``shots`` are (text, answer) pairs; none is a zero-shot prompt. ``names`` stand before each text and each answer.
    The prompt ends right after the last colon: the space belongs to the token that the model will add.
    """
    parts = [instruction] if instruction else []
    for given, answer in shots:
        parts.append(f"{names[0]}: {given}\n{names[1]}: {answer}")
    parts.append(f"{names[0]}: {text}\n{names[1]}:")
    return "\n\n".join(parts)


def chat(text: str) -> str:
    """A user's turn in the format with which SmolLM2-Instruct was tuned (ChatML); the assistant's is left open."""
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


def common_start(rows: Sequence[Tensor]) -> int:
    """How many first tokens all rows share; at least one of each row is left over."""
    shortest = min(map(len, rows)) - 1
    same = torch.stack([row[:shortest] == rows[0][:shortest] for row in rows]).all(dim=0)
    return int(same.long().cumprod(dim=0).sum())


@torch.no_grad()
def states_after(
    blocks: Iterable[nn.Module], rows: Sequence[Tensor], start: int = 0, batch: int = 32, progress: bool = True
) -> list[Tensor]:
    """What causal blocks make of rows (length, d) of any lengths: as many rows of the same shapes.

    The first ``start`` places of all rows are alike, such as the examples of a few-shot prompt: they are computed once
    and kept in caches. For models with rotary positions, as SmolLM2.
    """
    blocks, longest = list(blocks), max(map(len, rows))
    caches = [Cache(1, b.attention.kv_heads, longest, b.attention.d_head, rows[0]) for b in blocks]

    def run(x: Tensor) -> Tensor:
        for block, cache in zip(blocks, caches, strict=True):
            x = block(x, cache=cache)
        return x

    beginning, found = run(rows[0][None, :start])[0] if start else rows[0][:0], [rows[0]] * len(rows)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))  # those of like length go together
    with progress_bar(len(rows), show=progress) as bar:
        for some in (order[i : i + batch] for i in range(0, len(rows), batch)):
            # Filled up at the right: the mask hides it, since nobody looks ahead.
            rest = nn.utils.rnn.pad_sequence([rows[i][start:] for i in some], batch_first=True)
            for cache in caches:
                cache.length = start
                select_rows(cache, rest.new_zeros(len(some), dtype=torch.long))
            for i, states in zip(some, run(rest), strict=True):
                found[i] = torch.cat([beginning, states[: len(rows[i]) - start]])
            bar.update(len(some))
    return found


def next_log_p(model: GPT, prompts: Sequence[Tensor], batch: int = 32, progress: bool = True) -> Tensor:
    r"""$\log P(v \mid \text{prompt})$ of each token $v$ that may come next: (prompts, vocabulary).

    prompts: rows of ids, of any lengths. What all of them begin with is read once. For models with rotary positions.
    """
    refuse_a_table_of_places(model)
    rows = [model.embed(prompt.to(model.embed.weight.device)) for prompt in prompts]
    states = states_after(model.stack.blocks, rows, common_start(prompts), batch, progress)
    last = model.stack.norm(torch.stack([each[-1] for each in states]))  # (prompts, d): only these are read out
    return model.read_out(last, model.embed.weight).float().log_softmax(dim=-1).cpu().detach()


@torch.no_grad()
def complete(model: GPT, prompts: Sequence[Tensor], new: int, end: int, batch: int = 32) -> list[Tensor]:
    """What the model writes after each prompt: at most ``new`` tokens, up to the token ``end``, which is left out.

    Each time the most probable token, as `decoding.greedy` for each prompt alone. What all prompts begin with is read
    once. For models with rotary positions.
    """
    refuse_a_table_of_places(model)
    start, rotary, found = common_start(prompts), model.rotary, []
    read = model.make_caches(1, start)
    if start:
        model.stack(model.embed(prompts[0][None, :start].to(model.embed.weight.device)), caches=read)
    with progress_bar(len(prompts)) as bar:
        for rows in (prompts[i : i + batch] for i in range(0, len(prompts), batch)):
            ids = nn.utils.rnn.pad_sequence(rows, True, end, padding_side="left").to(model.embed.weight.device)
            skip = ids.shape[1] - torch.tensor([len(row) for row in rows], device=ids.device)
            reader = CachedModel(model, len(rows), ids.shape[1] + new, skip)
            # A row with f fillers begins at place f: its keys, made for place 0, are turned by f places more.
            places = (torch.arange(start, device=ids.device) - skip[:, None]).clamp(min=0)  # (rows, start)
            angles = rotary.cos[skip][:, None, None], rotary.sin[skip][:, None, None]
            for cache, once in zip(reader.caches, read, strict=True):
                keys, values = (kept[0][:, places].transpose(0, 1) for kept in (once.keys, once.values))
                cache.append(rotary.turn(keys, *angles), values)  # (rows, kv_heads, start, d_head)
            texts = walk(reader, ids, new, lambda scores, _: scores.argmax(dim=-1), end)[:, ids.shape[1] :].cpu()
            found += [text[: int((text != end).long().cumprod(0).sum())] for text in texts]
            bar.update(len(rows))
    return found


def refuse_a_table_of_places(model: GPT) -> None:
    """Here what lies in a cache is moved, which only rotary positions allow."""
    if model.rotary is None:
        raise ValueError("Expected a model with rotary positions, such as SmolLM2; this one has others.")
