"""Asking a language model: prompts with examples, the chat format, and the probability of what comes next."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from course_lib.bars import progress_bar
from course_lib.gpt import GPT


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
def next_log_p(model: GPT, prompts: Sequence[Tensor], batch: int = 32, progress: bool = True) -> Tensor:
    r"""$\log P(v \mid \text{prompt})$ of each token $v$ that may come next: (prompts, vocabulary).

    prompts: rows of ids, of any lengths. What all of them begin with, such as the examples of a few-shot prompt, is
    read once and kept in the caches. For models with rotary positions, as SmolLM2.
    """
    if model.places is not None:
        raise ValueError("Expected a model with rotary positions, such as SmolLM2; this one has a table of places.")
    device = model.embed.weight.device
    start, longest = common_start(prompts), max(map(len, prompts))
    caches = model.make_caches(1, longest)
    if start:
        model.stack(model.embed(prompts[0][None, :start].to(device)), caches=caches)
    found = []
    with progress_bar(len(prompts), show=progress) as bar:
        for rows in (prompts[i : i + batch] for i in range(0, len(prompts), batch)):
            # Filled up at the right: the mask hides it, since nobody looks ahead.
            ids = nn.utils.rnn.pad_sequence([row[start:] for row in rows], batch_first=True).to(device)
            for cache in caches:
                cache.length = start
                cache.select(torch.zeros(len(rows), dtype=torch.long, device=device))
            hidden, _ = model.stack(model.embed(ids), caches=caches)
            last = torch.tensor([len(row) - start - 1 for row in rows], device=device)
            read = hidden[torch.arange(len(rows), device=device), last]  # (rows, d): only these are read out
            found.append((read @ model.embed.weight.T).float().log_softmax(dim=-1).cpu())
            bar.update(len(rows))
    return torch.cat(found)
