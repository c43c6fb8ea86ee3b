"""Translators: what may and may not matter, and that they learn."""

import pytest
import torch
from torch import nn

from course_lib.models.attention import Alignment
from course_lib.models.inside import record
from course_lib.models.transformer import Shape
from course_lib.models.translator import RNNTranslator, TransformerTranslator
from course_lib.training import fit


def translators() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {
        "RNN": RNNTranslator(11, 13, 16, attention=False),
        "RNN + attention": RNNTranslator(11, 13, 16, attention=True),
        "RNN + attention, bidirectional": RNNTranslator(11, 13, 16, attention=True, bidirectional=True),
        "Transformer": TransformerTranslator(11, 13, Shape(d=16, layers=2, heads=2, d_ff=32)),
    }


NAMES = pytest.mark.parametrize("name", translators())


@NAMES
def test_filling_up_changes_nothing(name):
    model = translators()[name].eval()
    source, target = torch.randint(11, (2, 5)), torch.randint(13, (2, 4))
    filled = torch.cat([source, torch.randint(11, (2, 3))], dim=1)
    lengths = torch.tensor([5, 5])
    assert torch.allclose(model(source, lengths, target), model(filled, lengths, target), atol=1e-5)


@NAMES
def test_the_decoder_does_not_see_the_future(name):
    model = translators()[name].eval()
    source, target, lengths = torch.randint(11, (2, 5)), torch.randint(13, (2, 6)), torch.tensor([5, 3])
    changed = target.clone()
    changed[:, 3] = (changed[:, 3] + 1) % 13
    before, after = model(source, lengths, target), model(source, lengths, changed)
    assert torch.allclose(before[:, :3], after[:, :3], atol=1e-6)
    assert not torch.allclose(before[:, 3:], after[:, 3:], atol=1e-4)


@NAMES
def test_every_source_token_matters(name):
    model = translators()[name].eval()
    source, target, lengths = torch.randint(10, (1, 5)), torch.randint(13, (1, 3)), torch.tensor([5])
    scores = model(source, lengths, target)
    for i in range(5):
        changed = source.clone()
        changed[0, i] += 1
        assert not torch.allclose(model(changed, lengths, target), scores, atol=1e-6)


def test_attention_looks_at_true_tokens_only():
    model = translators()["RNN + attention"]
    source, lengths = torch.randint(11, (2, 5)), torch.tensor([5, 2])
    _, weights = model.decode(torch.randint(13, (2, 4)), model.encode(source, lengths))
    assert weights.shape == (2, 4, 5)
    assert torch.allclose(weights.sum(-1), torch.ones(2, 4))
    assert (weights[1, :, 2:] == 0).all()


def test_the_transformer_shows_where_it_looks():
    torch.manual_seed(0)
    model = TransformerTranslator(11, 13, Shape(d=16, layers=2, heads=4)).eval()
    memory = model.encode(torch.randint(11, (2, 5)), torch.tensor([5, 2]))
    with record(model, "cross") as weights:
        model.decode(torch.randint(13, (2, 4)), memory)
    assert [w.shape for w in weights] == [(2, 4, 4, 5)] * 2  # batch, heads, target, source
    assert torch.allclose(weights[1].sum(-1), torch.ones(2, 4, 4))
    assert (weights[0][1, ..., 2:] == 0).all()


@NAMES
def test_it_learns_to_copy(name):
    """Five symbols, in the same order: a minute's work for a person, a second's for these."""

    def batches(generator):
        symbols = torch.randint(1, 11, (32, 4), generator=generator)
        before = torch.cat([torch.zeros(32, 1, dtype=torch.long), symbols[:, :-1]], dim=1)
        return (symbols, torch.full((32,), 4), before), symbols

    model = translators()[name]
    history = fit(model, batches, steps=150, lr=1e-2, progress=False)
    assert history.loss[-10:].mean() < 0.6 * history.loss[:5].mean()


@NAMES
def test_wrong_lengths_are_refused_in_words(name):
    model = translators()[name]
    for lengths, words in ((torch.tensor([5]), "got"), (torch.tensor([0, 5]), "lengths from 1 to 5")):
        with pytest.raises(ValueError, match=words):
            model(torch.randint(11, (2, 5)), lengths, torch.randint(13, (2, 3)))


def test_too_long_for_the_transformer():
    model = TransformerTranslator(11, 13, Shape(d=16, layers=1, heads=2), longest=4)
    with pytest.raises(ValueError, match="at most 4 tokens; got 5"):
        model(torch.randint(11, (1, 5)), torch.tensor([5]), torch.zeros(1, 2, dtype=torch.long))


def test_a_bidirectional_encoder_knows_what_is_to_come():
    """Half of each state comes from the right: a changed last word changes the state of the first."""
    torch.manual_seed(0)
    source, lengths = torch.randint(10, (2, 5)), torch.tensor([5, 3])
    changed = source.clone()
    changed[0, 4] += 1
    for bidirectional in (False, True):
        model = RNNTranslator(11, 13, 16, attention=True, bidirectional=bidirectional)
        before, after = model.encode(source, lengths), model.encode(changed, lengths)
        assert before.states.shape == (2, 5, 16)
        assert before.last.shape == (1, 2, 16)
        assert torch.equal(before.states[0, 0], after.states[0, 0]) != bidirectional
    with pytest.raises(ValueError, match="two equal halves"):
        RNNTranslator(11, 13, 15, attention=True, bidirectional=True)


@pytest.mark.parametrize("kind", Alignment.KINDS)
def test_a_translator_takes_any_score_and_any_look(kind):
    calls = []

    def look(q, states, mask, score):
        calls.append(mask.shape)
        weights = score(q, states).masked_fill(~mask, -1e9).softmax(dim=-1)
        return weights @ states, weights

    torch.manual_seed(0)
    model = RNNTranslator(11, 13, 16, attention=Alignment(kind, 16, longest=5), look=look)
    source, lengths, target = torch.randint(11, (2, 5)), torch.tensor([5, 2]), torch.randint(13, (2, 4))
    scores, weights = model.decode(target, model.encode(source, lengths))
    assert calls == [(2, 1, 5)]
    model.look = RNNTranslator(11, 13, 16, attention=True).look
    again, same = model.decode(target, model.encode(source, lengths))
    assert torch.allclose(scores, again, atol=1e-6)
    assert torch.allclose(weights, same, atol=1e-6)
