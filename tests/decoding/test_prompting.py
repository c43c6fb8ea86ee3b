"""Prompts read together give what each gives alone."""

import pytest
import torch

from course_lib import decoding
from course_lib.decoding import prompting
from course_lib.models.gpt import GPT, GPTShape


@pytest.fixture
def lm():
    torch.manual_seed(0)
    return GPT(GPTShape(d=16, layers=2, heads=2, vocabulary=50, longest=64, positions="rotary", activation="swiglu"))


def test_common_start_leaves_a_token_of_each_row():
    rows = [torch.tensor(row) for row in ([1, 2, 3, 4], [1, 2, 5], [1, 2])]
    assert prompting.common_start(rows) == 1
    assert prompting.common_start([torch.tensor([1, 2, 3])] * 2) == 2
    assert prompting.common_start([torch.tensor([1]), torch.tensor([1, 2])]) == 0
    assert prompting.common_start([torch.tensor([1, 2, 3]), torch.tensor([4, 2, 3])]) == 0


@pytest.mark.parametrize("shared", [0, 5])
def test_next_log_p_is_that_of_each_prompt_alone(lm, shared):
    start = torch.arange(shared)
    prompts = [torch.cat([start, torch.randint(50, (n,))]) for n in (3, 7, 1, 4, 6)]
    found = prompting.next_log_p(lm, prompts, batch=2, progress=False)
    alone = torch.stack([lm(row[None])[0, -1].log_softmax(dim=-1) for row in prompts])
    torch.testing.assert_close(found, alone.detach(), atol=1e-5, rtol=1e-4)


def test_next_log_p_refuses_a_table_of_places():
    model = GPT(GPTShape(d=16, layers=1, heads=2, vocabulary=50))
    with pytest.raises(ValueError, match="rotary"):
        prompting.next_log_p(model, [torch.tensor([1, 2])])


@pytest.mark.parametrize("shared", [0, 5, 9])
def test_complete_writes_what_greedy_writes_for_each_prompt_alone(lm, shared):
    lm.double()  # so that no two scores are nearly equal
    start = torch.arange(shared)
    prompts = [torch.cat([start, torch.randint(50, (n,))]) for n in (3, 17, 1, 4, 6)]
    end = decoding.greedy(lm, prompts[0][None], 4)[0, -1].item()  # so that one text at least is over early
    found = prompting.complete(lm, prompts, new=6, end=end, batch=3)
    for prompt, text in zip(prompts, found, strict=True):
        alone = decoding.greedy(lm, prompt[None], 6, end)[0, len(prompt) :].tolist()
        assert text.tolist() == (alone[: alone.index(end)] if end in alone else alone)
    assert len(found[0]) < 4


@pytest.mark.parametrize("start", [0, 4])
def test_states_after_blocks_are_those_of_each_row_alone(lm, start):
    beginning = torch.randn(start, 16)
    rows = [torch.cat([beginning, torch.randn(n, 16)]) for n in (5, 2, 8, 3)]
    found = prompting.states_after(lm.stack.blocks, rows, start, batch=3, progress=False)
    for row, states in zip(rows, found, strict=True):
        alone = row[None]
        for block in lm.stack.blocks:
            alone = block(alone)
        torch.testing.assert_close(states, alone[0].detach(), atol=1e-5, rtol=1e-4)
