"""BERT's heads: classes, spans, summaries, and the switch that says how much of the encoder learns."""

import pytest
import torch
from torch.nn import functional as F

from course_lib.data.batches import IGNORED, pad_rows
from course_lib.models.bert import Bert, BertShape, SentenceClassifier, best_spans, classify, fine_tune, mean_pool


def encoder() -> Bert:
    torch.manual_seed(0)
    return Bert(BertShape(d=8, layers=2, heads=2, vocabulary=14, longest=32))


def test_classify_equals_torch_and_passes_over_what_is_ignored():
    hidden, weight, bias = torch.randn(2, 3, 4), torch.randn(5, 4), torch.randn(5)
    targets = torch.tensor([[0, 4, IGNORED], [2, IGNORED, IGNORED]])
    scores, loss = classify(hidden, weight, bias, targets)
    assert scores.shape == (2, 3, 5)
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten()))


def test_best_span_of_the_worked_example():
    start, end, inside = torch.tensor([[1.0, 4, 0]]), torch.tensor([[5.0, 1, 3]]), torch.ones(1, 3, dtype=torch.bool)
    assert best_spans(start, end, inside, 2).tolist() == [[1, 2]]
    assert best_spans(start, end, inside, 1).tolist() == [[0, 0]]
    assert best_spans(start, end, torch.tensor([[False, False, True]]), 2).tolist() == [[2, 2]]


def test_a_sentence_is_read_at_cls_or_as_the_mean_of_its_tokens():
    texts = pad_rows([torch.tensor([2, 6, 7, 3]), torch.tensor([2, 8, 3])])
    model = SentenceClassifier(encoder(), 2, mean=True).eval()
    hidden = model.encoder(*texts)
    torch.testing.assert_close(model.summary(*texts)[1], hidden[1, :3].mean(dim=0))
    torch.testing.assert_close(model.summary(texts[0], texts[1].sum(dim=1)), model.summary(*texts))
    torch.testing.assert_close(model.summary(texts[0]), model.encoder(texts[0]).mean(dim=1))
    model.mean = False
    torch.testing.assert_close(model.summary(*texts), model.encoder.pooled(hidden))


def test_the_switch():
    model = encoder()
    everything = sum(p.numel() for p in model.parameters())
    block = sum(p.numel() for p in model.stack.blocks[0].parameters())
    pooler = sum(p.numel() for p in model.pooler.parameters())
    assert [fine_tune(model, layers) for layers in (2, 0, 1)] == [everything, 0, block + pooler]
    assert not model.embed.weight.requires_grad
    with pytest.raises(ValueError, match="Expected from 0 to 2 layers to fine-tune; got 3"):
        fine_tune(model, 3)


def test_mean_pool_gives_the_encoders_sentence_vectors():
    model, ids, lengths = encoder().eval(), torch.randint(14, (3, 9)), torch.tensor([9, 4, 1])
    pooled = mean_pool(model(ids, lengths), torch.arange(9) < lengths[:, None])
    torch.testing.assert_close(F.normalize(pooled, dim=-1), model.sentence_vectors(ids, lengths))


def test_mean_pool_without_tokens_is_zero():
    assert torch.equal(mean_pool(torch.randn(2, 3, 4), torch.zeros(2, 3, dtype=torch.bool)), torch.zeros(2, 4))


def test_sentence_vectors_leave_padding_out():
    model, ids = encoder().eval(), torch.randint(14, (2, 7))
    together, alone = model.sentence_vectors(ids, torch.tensor([7, 3])), model(ids[1:, :3])[0].mean(dim=0)
    torch.testing.assert_close(together[1], alone / alone.norm())
    torch.testing.assert_close(together.norm(dim=-1), torch.ones(2))
