"""Memory networks and translators: what may and may not matter, and that they learn."""

import pytest
import torch
from torch import nn

from course_lib.attention import Alignment
from course_lib.memory import MemoryNetwork, encode_stories, hop, linear_hop
from course_lib.tasks import Pairs
from course_lib.tokenizers import Vocabulary
from course_lib.training import fit
from course_lib.transformer import Shape
from course_lib.translator import RNNTranslator, TransformerTranslator


def translators() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {
        "RNN": RNNTranslator(11, 13, 16, attention=False),
        "RNN + attention": RNNTranslator(11, 13, 16, attention=True),
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
    weights = model.cross_weights(torch.randint(13, (2, 4)), memory)
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


def test_one_hop_by_its_formula():
    torch.manual_seed(0)
    q, keys, values = torch.randn(2, 3), torch.randn(2, 4, 3), torch.randn(2, 4, 3)
    new, weights = hop(q, keys, values)
    for b in range(2):
        a = (keys[b] @ q[b]).softmax(0)
        assert torch.allclose(weights[b], a, atol=1e-6)
        assert torch.allclose(new[b], q[b] + a @ values[b], atol=1e-6)
    mask = torch.tensor([[True, True, False, False], [False] * 4])
    new, weights = hop(q, keys, values, mask)
    assert (weights[0, 2:] == 0).all()
    assert torch.equal(new[1], q[1])  # nothing to read: the question stays


def test_missing_facts_do_not_count_and_the_order_of_facts_does():
    torch.manual_seed(0)
    model = MemoryNetwork(words=9, answers=5, d=8, hops=2, facts=6, longest=4)
    facts, question = torch.randint(1, 9, (2, 3, 4)), torch.randint(1, 9, (2, 4))
    padded = torch.cat([facts, torch.zeros(2, 2, 4, dtype=torch.long)], dim=1)
    scores, looks = model.look(facts, question)
    more, more_looks = model.look(padded, question)
    assert torch.allclose(scores, more, atol=1e-5)
    assert torch.allclose(more_looks[:, :, 3:], torch.zeros(2, 2, 2))
    assert looks.shape == (2, 2, 3)
    assert torch.equal(model(facts, question), scores)
    assert not torch.allclose(model(facts.flip(1), question), scores, atol=1e-4)


def test_too_many_facts_are_refused():
    model = MemoryNetwork(words=9, answers=5, d=8, hops=1, facts=2, longest=4)
    with pytest.raises(ValueError, match="at most 2 facts of 4 words"):
        model(torch.ones(1, 3, 4, dtype=torch.long), torch.ones(1, 4, dtype=torch.long))
    with pytest.raises(ValueError, match="at least one hop; got 0"):
        MemoryNetwork(9, 5, 8, 0, 2, 4)


def test_stories_are_encoded_from_1_on_and_the_newest_facts_are_kept():
    words = Vocabulary(["joe", "went", "home", "slept", "where", "is"])
    story = "joe slept. joe went home. joe slept"
    told, asked = encode_stories([story], ["where is joe"], words, facts=2, longest=4)
    home, is_, joe, slept, went, where = range(1, 7)
    assert told.tolist() == [[[joe, went, home, 0], [joe, slept, 0, 0]]]
    assert asked.tolist() == [[where, is_, joe, 0]]


def test_a_linear_hop_weighs_by_the_scores_themselves():
    q, keys, values = torch.randn(2, 3), torch.randn(2, 4, 3), torch.randn(2, 4, 3)
    mask = torch.tensor([[True] * 4, [True, False, False, True]])
    new, weights = linear_hop(q, keys, values, mask)
    assert torch.allclose(weights, (keys @ q[..., None])[..., 0] * mask, atol=1e-6)
    assert torch.allclose(new, q + (weights[:, None] @ values)[:, 0], atol=1e-5)
    assert torch.allclose(linear_hop(q, keys, values)[1][0], weights[0])


def test_pairs_are_shifted_and_filled_up():
    pairs = Pairs([["a", "b", "c"], ["a"]], [["x"], ["y", "x"]])
    words = pairs.target_words
    assert [words.decode(row) for row in pairs.before] == [["<s>", "x", "</s>"], ["<s>", "y", "x"]]
    assert pairs.after.tolist() == [[*words.encode(["x", "</s>"]), -100], [*words.encode(["y", "x", "</s>"])]]
    assert pairs.lengths.tolist() == [3, 1]
    other = Pairs([["c"]], [["x", "x", "x"]], like=pairs)
    assert other.source.tolist() == [[pairs.source_words.ids["c"]]]
    with pytest.raises(ValueError, match="'z'"):
        Pairs([["z"]], [["x"]], like=pairs)


def test_batches_hold_pairs_of_about_one_length():
    sources = [["a"] * n for n in (1, 2, 3, 4, 9)]
    draw, generator = Pairs(sources, [["x"] * len(s) for s in sources]).batches(6), torch.Generator().manual_seed(0)
    met = set()
    for _ in range(40):
        (source, lengths, before), after = draw(generator)
        assert lengths.max() - lengths.min() <= 1
        assert source.shape == (6, lengths.max())
        assert before.shape == after.shape == (6, lengths.max() + 1)
        met |= set(lengths.tolist())
    assert met == {1, 2, 3, 4, 9}


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
