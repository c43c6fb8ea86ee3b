"""Probes find what lies open in vectors, and nothing else."""

import pytest
import torch

from course_lib.measure import probes
from course_lib.measure.probes import linear_probe, probe_accuracy, told_apart
from course_lib.models.bert import Bert, BertShape
from course_lib.tokenizers.wordpiece import WordPiece


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_probe_finds_what_lies_open_and_nothing_else():
    g = generator()
    labels = torch.randint(5, (800,), generator=g)
    noise = torch.randn(800, 12, generator=g)
    open_ = noise + 6 * torch.nn.functional.one_hot(labels, 12)
    for hidden, least, most in ((open_, 0.95, 1), (noise, 0, 0.35)):
        weights = linear_probe(hidden[:600], labels[:600], 5)
        assert weights.shape == (13, 5)
        found = probe_accuracy(weights, hidden[600:], labels[600:])
        assert least <= found <= most
        assert probe_accuracy(weights.double(), hidden[600:], labels[600:]) == found


def test_a_probe_solves_the_ridge_equation():
    g = generator()
    hidden, labels = torch.randn(40, 6, generator=g).double(), torch.randint(3, (40,), generator=g)
    weights = linear_probe(hidden, labels, 3, penalty=0.5).requires_grad_()
    X = torch.cat([hidden, torch.ones(40, 1)], dim=1)
    loss = (X @ weights - torch.nn.functional.one_hot(labels, 3)).pow(2).sum() + 0.5 * weights.pow(2).sum()
    assert torch.autograd.grad(loss, weights)[0].abs().max() < 1e-9


def test_two_senses_are_told_apart_by_the_mean_of_the_others():
    sense = torch.arange(2).repeat_interleave(3)
    apart = torch.tensor([[1.0, 0.1], [1.0, 0.0], [1.0, -0.1], [0.1, 1.0], [0.0, 1.0], [-0.1, 1.0]])
    assert told_apart(apart, sense) == 1
    mixed = apart[[0, 1, 3, 4, 5, 2]]  # one of each sense lies among the others
    assert told_apart(mixed, sense) == pytest.approx(4 / 6)
    alone = torch.eye(6)  # a vector that would only be near to a mean in which it is itself
    assert told_apart(alone, sense) < 1


def test_every_layer_is_asked_at_the_words_first_piece():
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "dog", "saw", "was", "by"]
    tokenizer = WordPiece({word: i for i, word in enumerate(vocabulary)})
    torch.manual_seed(0)
    model = Bert(BertShape(d=8, layers=2, heads=2, vocabulary=len(vocabulary), longest=32)).eval()
    active, passive = ["the", "cat", "saw", "the", "dog"], ["the", "cat", "was", "saw", "by", "the", "dog"]
    rows = [(active, 1, 1), (active, 4, 0), (passive, 1, 0), (passive, 6, 1)]
    vectors = probes.vectors_at_words(model, tokenizer, rows, size=2)  # (layers + 1, examples, d)
    for i, (words, place, _) in enumerate(rows):
        ids, places = tokenizer.encode_words(words)
        torch.testing.assert_close(vectors[-1, i], model(ids[None])[0, places[place]].detach())
    shares = probes.probe_layers(model, tokenizer, rows, rows)
    assert len(shares) == 3
    assert probes.centre_of_gain([0.5, 0.5, 1.0]) == 2
