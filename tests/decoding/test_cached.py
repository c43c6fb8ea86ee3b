"""A model with its caches reads each token once, goes back, and lets texts continue others."""

import pytest
import torch

from course_lib.decoding import CachedModel
from course_lib.fast import linear as quick
from course_lib.models.gpt import GPT, GPTShape
from course_lib.models.tied import TiedLinear


@pytest.fixture
def model() -> GPT:
    return GPT(GPTShape(d=16, layers=2, heads=2, vocabulary=11, longest=16)).double().eval()


def close(got: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(got, wanted.float())


def test_it_reads_on_goes_back_and_continues_other_texts(model):
    ids = torch.randint(11, (3, 9))
    cached = CachedModel(model, batch=3, longest=9)
    close(cached(ids[:, :5], last=2), model(ids[:, :5])[:, -2:])
    for t in (6, 7):
        close(cached(ids[:, :t]), model(ids[:, :t])[:, -1:])
    cached.forget(4)
    close(cached(ids[:, :8], last=4), model(ids[:, :8])[:, -4:])
    rows = torch.tensor([2, 0, 0, 1, 2])
    cached.select(rows)
    assert cached.caches[0].length == 8
    close(cached(ids[rows]), model(ids[rows])[:, -1:])


def test_a_beam_continues_any_beam_of_its_text(model):
    prompts = torch.randint(11, (2, 4))
    cached, beams = CachedModel(model, 2, 10), 3
    cached(prompts)
    cached.select(torch.arange(2).repeat_interleave(beams))
    texts = prompts.repeat_interleave(beams, dim=0).unflatten(0, (2, beams))
    for _ in range(6):
        parents = torch.randint(beams, (2, beams))
        cached.continue_beams(parents)
        texts = texts.gather(1, parents[..., None].expand_as(texts))
        texts = torch.cat([texts, torch.randint(11, (2, beams, 1))], dim=2)
        close(cached(texts.flatten(0, 1)), model(texts.flatten(0, 1))[:, -1:])


def test_of_a_prompt_only_what_is_asked_for_is_read_out(model, monkeypatch):
    monkeypatch.setattr(quick, "onednn_is_quicker", lambda: False)
    read, forward = [], TiedLinear.forward
    monkeypatch.setattr(
        TiedLinear, "forward", lambda self, x, *rest: read.append(x.shape[1]) or forward(self, x, *rest)
    )
    CachedModel(model, 2, 9)(torch.randint(11, (2, 8)), last=3)
    assert read == [3]


def test_without_caches_all_is_read_anew():
    seen = []
    cached = CachedModel(lambda ids: seen.append(ids.shape) or torch.zeros(*ids.shape, 5), 2, 9)
    for t in (3, 4):
        assert cached(torch.zeros(2, t, dtype=torch.long), last=2).shape == (2, 2, 5)
    cached.select(torch.tensor([0, 0]))
    cached.continue_beams(torch.tensor([[0, 0]]))
    cached.forget(1)
    assert seen == [(2, 3), (2, 4)]
