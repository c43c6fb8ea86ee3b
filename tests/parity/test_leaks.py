"""No decoder sees the future: whatever is changed at one place, nothing before it moves; what comes after does."""

from dataclasses import replace

import pytest
import torch
from comparing import RUN, close
from torch import nn

from course_lib.models.attention import Alignment
from course_lib.models.bert import Bert, BertShape
from course_lib.models.gpt import GPT, GPTShape
from course_lib.models.recurrent import GRU, LSTM, Elman
from course_lib.models.transformer import Shape
from course_lib.models.translator import RNNTranslator, TransformerTranslator

WORDS, LENGTH, D = 13, 7, 16
SHAPE = Shape(d=D, layers=2, heads=2, d_ff=32)
GPTS = {
    kind: GPTShape(d=D, layers=2, heads=4, kv_heads=2, vocabulary=WORDS, longest=LENGTH, positions=kind)
    for kind in ("learned", "sinusoidal", "rotary", "alibi", "none")
}


class Cell(nn.Module):
    def __init__(self, cell: type):
        super().__init__()
        self.embed, self.cell = nn.Embedding(WORDS, D), cell(D, D)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.cell(self.embed(ids))[0]


def with_source(model: nn.Module):
    source, lengths = torch.randint(WORDS, (2, 5)), torch.tensor([5, 3])
    return lambda target: model.eval()(source, lengths, target)


DECODERS = {
    **{f"GPT, {name}": lambda shape=shape: GPT(shape).eval() for name, shape in GPTS.items()},
    "GPT, post-norm": lambda: GPT(replace(GPTS["learned"], pre_norm=False)).eval(),
    "BERT, left to right": lambda: Bert(BertShape(d=D, layers=2, heads=2, vocabulary=WORDS, causal=True)).eval(),
    "RNN": lambda: with_source(RNNTranslator(WORDS, WORDS, D, attention=False)),
    **{
        f"RNN + attention, {kind}": lambda kind=kind: with_source(
            RNNTranslator(WORDS, WORDS, D, attention=Alignment(kind, D, longest=5))
        )
        for kind in Alignment.KINDS
    },
    "Transformer": lambda: with_source(TransformerTranslator(WORDS, WORDS, SHAPE)),
    "Transformer, post-norm": lambda: with_source(TransformerTranslator(WORDS, WORDS, replace(SHAPE, pre_norm=False))),
    **{cell.__name__: lambda cell=cell: Cell(cell) for cell in (Elman, LSTM, GRU)},
}


@pytest.mark.parametrize("name", DECODERS)
@pytest.mark.compares("every decoder, the future changed", "its past before the change")
@torch.no_grad()
def test_no_decoder_sees_the_future(name):
    torch.manual_seed(RUN)
    decode, ids = DECODERS[name](), torch.randint(WORDS, (2, LENGTH))
    before = decode(ids)
    for place in range(LENGTH):
        changed = ids.clone()
        changed[:, place:] = (ids[:, place:] + torch.randint(1, WORDS, (2, LENGTH - place))) % WORDS
        after = decode(changed)
        close(after[:, :place], before[:, :place], f"before {place}", 1e-6)
        assert (after[:, place] - before[:, place]).abs().amax() > 1e-6, f"{name} does not see token {place} itself"


@pytest.mark.parametrize("name", GPTS)
@pytest.mark.compares("GPT in pieces with a cache, the future changed", "its past before the change")
@torch.no_grad()
def test_no_piece_sees_its_own_future(name):
    """A prompt of several tokens read into a cache is where a mask goes wrong most easily."""
    torch.manual_seed(RUN)
    model, ids = GPT(GPTS[name]).eval(), torch.randint(WORDS, (2, LENGTH))
    changed = ids.clone()
    changed[:, 5] = (ids[:, 5] + 1) % WORDS
    outputs = []
    for row in (ids, changed):
        caches = model.make_caches(2)
        outputs.append(torch.cat([model(piece, caches) for piece in row.split([3, 4], dim=1)], dim=1))
    close(outputs[1][:, :5], outputs[0][:, :5], "the past", 1e-6)
    assert not torch.allclose(outputs[1][:, 5:], outputs[0][:, 5:])
