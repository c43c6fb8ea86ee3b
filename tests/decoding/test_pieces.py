"""What lesson 09 builds gives the tokens of `decoding`, which does the same with caches and more settings."""

import pytest
import torch

from course_lib import decoding
from course_lib.decoding import pieces
from course_lib.models.gpt import GPT, GPTShape


@pytest.fixture
def model():
    torch.manual_seed(0)
    return GPT(GPTShape(d=16, layers=2, heads=2, vocabulary=7, longest=32)).double().eval()


@pytest.mark.parametrize("end", [None, 3])
def test_walks_are_the_same(model, end):
    ids = torch.randint(7, (5, 4))

    def best(scores, ids):
        return scores.argmax(dim=-1)

    assert torch.equal(pieces.walk(model, ids, 20, best, end), decoding.walk(model, ids, 20, best, end))
    for filters in (None, decoding.Filters(temperature=2.0, top_k=4), lambda z, ids: z.masked_fill(z < 0, -torch.inf)):
        texts = []
        for module in (pieces, decoding):
            generator = torch.Generator().manual_seed(1)
            texts.append(module.sample(model, ids, 20, filters, end, generator))
        assert torch.equal(*texts)


def test_nucleus_where_sums_are_rounded_or_equal_p():
    assert pieces.top_p(torch.tensor([20.0, 0.0, -1.0, -2.0]), 1.0).isfinite().all()  # 1 hides nothing
    assert pieces.top_p(torch.zeros(4), 0.5).isfinite().sum() == 2  # two times 0.25 have reached it
