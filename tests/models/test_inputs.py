"""What a model cannot read is refused in words, before it has done any work."""

import contextlib

import pytest
import torch
from torch import nn

from course_lib.models import bert
from course_lib.models.attention import MultiHeadAttention
from course_lib.models.bert import Bert, BertShape
from course_lib.models.inside import record, recorded
from course_lib.models.memory_network import MemoryNetwork
from course_lib.models.recurrent import Classifier
from course_lib.models.transformer import Shape
from course_lib.models.translator import RNNTranslator, TransformerTranslator

IDS = torch.zeros(2, 3, dtype=torch.long)
LENGTHS = torch.tensor([3, 1])


def lazy(model: nn.Module) -> nn.Module:
    """A model that fails as soon as one of its layers is called."""
    for layer in model.modules():
        if layer is not model and isinstance(layer, nn.Embedding | nn.Linear | nn.RNNBase):
            layer.register_forward_pre_hook(lambda *_: pytest.fail("work was done before the input was looked at"))
    return model


TRANSLATORS = {
    "RNN": lambda: RNNTranslator(11, 13, 8, attention=False),
    "RNN + attention": lambda: RNNTranslator(11, 13, 8, attention=True),
    "Transformer": lambda: TransformerTranslator(11, 13, Shape(d=8, layers=1, heads=2), longest=5),
}


@pytest.mark.parametrize(
    ("source", "lengths", "target", "words"),
    [
        (IDS[0], LENGTHS, IDS, r"Expected source of shape \(batch, length\), neither 0; got \(3,\)"),
        (IDS[:0], LENGTHS[:0], IDS[:0], r"neither 0; got \(0, 3\)"),
        (IDS.float(), LENGTHS, IDS, r"Expected source to be whole numbers; got torch\.float32"),
        (IDS + 11, LENGTHS, IDS, "Expected source from 0 to 10; got 11 to 11"),
        (IDS, LENGTHS[:1], IDS, r"lengths \(batch\); got \(2, 3\) and \(1,\)"),
        (IDS, LENGTHS - 1, IDS, "Expected lengths from 1 to 3; got 0 to 2"),
        (IDS, LENGTHS + 1, IDS, "Expected lengths from 1 to 3; got 2 to 4"),
        (IDS, LENGTHS.float(), IDS, "Expected lengths to be whole numbers"),
        (IDS, LENGTHS, IDS[:, :0], r"Expected target of shape \(batch, length\), neither 0; got \(2, 0\)"),
        (IDS, LENGTHS, IDS + 13, "Expected target from 0 to 12; got 13 to 13"),
        (IDS, LENGTHS, IDS.bool(), r"Expected target to be whole numbers; got torch\.bool"),
    ],
)
@pytest.mark.parametrize("name", TRANSLATORS)
def test_translators(name, source, lengths, target, words):
    with pytest.raises(ValueError, match=words):
        lazy(TRANSLATORS[name]())(source, lengths, target)


@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_target_for_each_source(name):
    model = TRANSLATORS[name]()
    memory = model.encode(IDS, LENGTHS)
    with pytest.raises(ValueError, match="Expected a target for each of 2 sources; got 1"):
        lazy(model).decode(IDS[:1], memory)


def test_the_transformer_says_how_far_it_sees():
    model = TRANSLATORS["Transformer"]()
    long = torch.zeros(2, 6, dtype=torch.long)
    memory = model.encode(IDS, LENGTHS)
    for call in (lambda: model(long, LENGTHS, IDS), lambda: model.decode(long, memory)):
        with pytest.raises(ValueError, match="at most 5 tokens; got 6"):
            lazy(model) and call()


@pytest.mark.parametrize(
    ("facts", "question", "words"),
    [
        (IDS[None], IDS[:, None], r"Expected question of shape \(batch, length\), neither 0; got \(2, 1, 3\)"),
        (IDS, IDS, r"\(batch, facts, words\); got \(2, 3\)"),
        (IDS[:, None], IDS[:1], "Expected a question for each of 2 stories; got 1"),
        (IDS[:, None] + 9, IDS, "Expected words of facts from 0 to 8; got 9 to 9"),
        (IDS[:, None].float(), IDS, r"Expected words of facts to be whole numbers; got torch\.float32"),
        (IDS[:, None], IDS - 1, "Expected question from 0 to 8; got -1 to -1"),
        (IDS[:, None], torch.zeros(2, 5, dtype=torch.long), "at most 4 tokens; got 5"),
        (IDS[:, None, :0], IDS, r"got \(2, 1, 0\)"),
    ],
)
def test_memory_network(facts, question, words):
    model = lazy(MemoryNetwork(words=9, answers=5, d=8, hops=2, facts=4, longest=4))
    with pytest.raises(ValueError, match=words):
        model(facts, question)


@pytest.mark.parametrize(
    ("tokens", "lengths", "words"),
    [
        (IDS[0], None, r"Expected tokens of shape \(batch, length\), neither 0; got \(3,\)"),
        (IDS[:, :0], None, r"neither 0; got \(2, 0\)"),
        (IDS.float(), None, "Expected tokens to be whole numbers"),
        (IDS + 9, None, "Expected tokens from 0 to 8; got 9 to 9"),
        (IDS, LENGTHS[:1], r"Expected a length for each of 2 texts; got \(1,\)"),
        (IDS, LENGTHS - 1, "Expected lengths from 1 to 3; got 0 to 2"),
    ],
)
def test_reader(tokens, lengths, words):
    model = lazy(Classifier(nn.GRU(6, 6, batch_first=True), 6, words=9, classes=2))
    with pytest.raises(ValueError, match=words):
        model(tokens, lengths)


def test_lengths_beyond_the_text():
    model = lazy(Bert(BertShape(d=8, layers=1, heads=2, vocabulary=11, longest=8)))
    for head in (model, bert.MaskedLM(model), bert.SentenceClassifier(model, 2)):
        with pytest.raises(ValueError, match="Expected lengths from 0 to 3; got 1 to 4"):
            head(IDS, torch.tensor([4, 1]))


@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.parametrize("alibi", [False, True])
def test_rows_that_see_nothing_are_zero_and_not_nan(kv_heads, alibi):
    """Before the last matrix; both ways of computing, forwards and backwards."""
    torch.manual_seed(0)
    layer = MultiHeadAttention(16, 4, kv_heads, alibi=alibi)
    mask = torch.ones(2, 1, 5, 5, dtype=torch.bool)
    mask[1, :, 2] = False
    for way in (contextlib.nullcontext(), record(layer, "attention")):
        x = torch.randn(2, 5, 16, requires_grad=True)
        with way:
            out = layer(x, mask=mask)
        assert torch.allclose(out[1, 2], layer.output.bias, atol=1e-6)
        out.sum().backward()
        assert x.grad.isfinite().all()


def test_a_text_of_padding_alone_gives_numbers():
    torch.manual_seed(0)
    model = Bert(BertShape(d=8, layers=2, heads=2, vocabulary=11, longest=8)).eval()
    out = model(IDS, torch.tensor([3, 0]))
    assert out.isfinite().all()
    assert torch.allclose(out[0], model(IDS[:1])[0], atol=1e-6)
    assert torch.equal(recorded(model, "attention", IDS, torch.tensor([3, 0]))[0][1], torch.zeros(2, 3, 3))


@pytest.mark.parametrize("batch", [2, 3])
def test_a_mask_says_whether_it_is_for_texts_or_heads(batch):
    """With as many texts as heads, (batch, queries, keys) would be read as one mask for each head."""
    torch.manual_seed(0)
    layer, x, mask = MultiHeadAttention(8, heads=2), torch.randn(batch, 3, 8), torch.rand(batch, 3, 3) < 0.5
    with pytest.raises(ValueError, match=rf"Expected a mask of shape .*; got \({batch}, 3, 3\)\. .* mask\[:, None\]\."):
        layer(x, mask=mask)
    alone = [layer(text[None], mask=seen) for text, seen in zip(x, mask, strict=True)]
    torch.testing.assert_close(layer(x, mask=mask[:, None]), torch.cat(alone))
