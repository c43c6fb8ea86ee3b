"""A place has two targets, and a head is told by what it looks at."""

import pytest
import torch
from torch import nn

from course_lib import data, pretrained, tokenizers, viz
from course_lib.lessons import multi_head_attention as lesson
from course_lib.lessons.multi_head_attention import preference, two_relations, word_patterns
from course_lib.measure.heads import head_contributions
from course_lib.models.bert import Bert, BertShape
from course_lib.models.inside import gated, recorded


def test_the_neighbour_and_the_place_opposite():
    symbols, targets = two_relations(torch.Generator().manual_seed(0), 3, 6)
    for guest in range(6):
        assert torch.equal(targets[:, guest, 0], symbols[:, guest - 1])
        assert torch.equal(targets[:, guest, 1], symbols[:, guest - 3])
    with pytest.raises(ValueError, match="even number of guests"):
        two_relations(torch.Generator(), 3, 5)


def test_word_patterns():
    """[CLS] a b c [SEP], and [CLS] a [SEP] with filling."""
    found = word_patterns(torch.zeros(2, 5, dtype=torch.long), torch.tensor([5, 3]))

    def links(name: str) -> list[list[int]]:
        return found[name].nonzero().tolist()

    assert links("previous word") == [[0, 2, 1], [0, 3, 2]]
    assert links("next word") == [[0, 1, 2], [0, 2, 3]]
    assert links("[CLS]") == [[0, 1, 0], [0, 2, 0], [0, 3, 0], [1, 1, 0]]
    assert links("[SEP]") == [[0, 1, 4], [0, 2, 4], [0, 3, 4], [1, 1, 2]]


def test_preference():
    weights = torch.zeros(2, 3, 4, 4)
    weights[0, 0, 3, 1], weights[0, 1, 3, 2], weights[1, 0, 2, 0], weights[1, 1, 2, 0] = 0.4, 0.5, 0.6, 0.2
    query, right, wrong = torch.tensor([3, 2]), torch.tensor([1, 0]), torch.tensor([2, 1])
    often, much = preference(weights, query, right, wrong), lesson.weight_on(weights, query, right)
    torch.testing.assert_close(often, torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]))
    torch.testing.assert_close(much, torch.tensor([[0.4, 0.0, 0.0], [0.6, 0.2, 0.0]]))


def encoder(seed: int = 0) -> Bert:
    torch.manual_seed(seed)
    shape = BertShape(d=12, layers=2, heads=3, d_ff=24, vocabulary=20, longest=8, segments=2)
    return Bert(shape).eval().requires_grad_(False)


def test_entropy_of_even_and_of_sharp_attention():
    weights = torch.stack([torch.full((3, 4), 0.25), torch.eye(4)[:3]])[None]  # (1, 2 heads, 3 queries, 4 keys)
    found = lesson.entropy(weights, torch.tensor([[True, True, False]]))
    torch.testing.assert_close(found, torch.tensor([4.0, 1.0]).log())


def test_entropy_is_matched():
    model, ids, lengths = encoder(), torch.randint(20, (5, 8)), torch.tensor([8, 7, 8, 6, 8])
    wanted = torch.linspace(0.6, 1.4, 6).view(2, 3)
    lesson.match_entropy(model, ids, lengths, wanted)
    weights = torch.cat(recorded(model, "attention", ids, lengths), dim=1)
    torch.testing.assert_close(
        lesson.entropy(weights, lesson.words_of(ids, lengths)).view(2, 3), wanted, atol=0.02, rtol=0
    )


def test_hidden_values_say_nothing_and_come_back():
    model, ids = encoder(), torch.randint(20, (2, 6))
    before = model(ids)
    hidden = torch.zeros(2, 6, dtype=torch.bool)
    with lesson.values_hidden(model, hidden):
        torch.testing.assert_close(model(ids), before)
    hidden[:, 2] = True
    with lesson.values_hidden(model, hidden):
        values = recorded(model, "qkv", ids)[0].chunk(3, dim=-1)[2]
        assert not torch.allclose(model(ids)[:, 4], before[:, 4])
    assert not values[:, 2].any()
    assert values[:, 3].all()
    torch.testing.assert_close(model(ids), before)


def test_reflexives_mean_the_first_noun_and_then_the_second():
    rows = [{"antecedent": noun, "pronoun": "he"} for noun in ("king", "boy")]
    sentences, (pronoun, antecedent, other) = lesson.reflexives(rows)
    for sentence, p, a, o in zip(sentences, pronoun, antecedent, other, strict=True):
        words = sentence.split()
        assert words[p] == "himself"
        assert {words[a], words[o]} == {"king", "boy"}
        assert a == (1 if "near" in words else 4)


def test_reflexives_of_which_one_noun_matches():
    rows = [{"antecedent": "king", "pronoun": "he"}, {"antecedent": "queen", "pronoun": "she"}]
    sentences, (pronoun, meant, other) = lesson.reflexives(rows, both_match=False)
    assert sentences[0] == "the king near the queen hurt himself ."
    assert sentences[1] == "the king said the queen hurt herself ."
    for sentence, p, m, o in zip(sentences, pronoun, meant, other, strict=True):
        words = sentence.split()
        assert (words[p], words[m], words[o]) in {("himself", "king", "queen"), ("herself", "queen", "king")}


def test_interval_over_nouns_takes_a_noun_as_one():
    nouns = [(one, other) for one in "abcdef" for other in "ABCDEF"]
    each = torch.tensor([float(one < "d") for one, _ in nouns])  # the first noun decides
    low, high = lesson.interval_over_nouns(each, nouns, 0)
    assert low < 0.2 < 0.8 < high  # of six nouns the mean is not known better
    assert lesson.interval_over_nouns(torch.ones(36), nouns, 0) == pytest.approx((1, 1))


def test_which_two_asks_not_whose():
    answers = torch.tensor([[[3, 5], [3, 3], [1, 2]]])  # (1, 3 guests, 2)
    logits = torch.zeros(1, 3, 2, 8)
    logits[0, :, 0, 5], logits[0, :, 1, 3] = 4.0, 4.0  # the first guest: swapped
    assert lesson.which_two(logits, answers).tolist() == [1, 0]  # the second wears one symbol twice: left out


def test_nearer_and_margin():
    vectors = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.0, 1.0]])
    sense = torch.tensor([0, 0, 1, 1])
    same = (sense[:, None] == sense) & ~torch.eye(4, dtype=torch.bool)
    other = sense[:, None] != sense
    assert lesson.nearer(vectors, same, other).tolist() == [1, 1, 1, 1]
    assert lesson.nearer(torch.ones(4, 2), same, other).tolist() == [0.5] * 4  # all alike: no better than a guess
    assert (lesson.margin(vectors, same, other) > 0.8).all()
    torch.testing.assert_close(lesson.margin(torch.ones(4, 2), same, other), torch.zeros(4))


def test_even_weights_are_even_over_the_tokens():
    even = lesson.even_weights(torch.zeros(2, 4, dtype=torch.long), torch.tensor([4, 2]))
    torch.testing.assert_close(even[0, 0], torch.full((4, 4), 0.25))
    torch.testing.assert_close(even[1, 0, 0], torch.tensor([0.5, 0.5, 0, 0]))


def test_hidden_tokens_are_one_in_each_text():
    lengths = torch.tensor([6, 4])
    hidden = lesson.hidden_tokens(torch.zeros(2, 6, dtype=torch.long), lengths, 0)
    for tokens in hidden.values():
        assert tokens.sum(dim=1).tolist() == [1, 1]
    assert lesson.words_of(torch.zeros(2, 6), lengths)[hidden["one word"]].all()


def test_attention_is_even_and_comes_back():
    model, ids, lengths = encoder(), torch.randint(20, (2, 8)), torch.tensor([8, 6])
    before = recorded(model, "attention", ids, lengths)[0]
    with lesson.attention_even(model):
        even = recorded(model, "attention", ids, lengths)[-1]  # (2, 3, 8, 8)
    torch.testing.assert_close(even, lesson.even_weights(ids, lengths).expand(2, 3, 8, 8))
    with lesson.attention_even(model, but_first=True):
        even = recorded(model, "attention", ids, lengths)[0]
    torch.testing.assert_close(even[..., 0], before[..., 0])
    torch.testing.assert_close(even.sum(dim=-1), torch.ones(2, 3, 8))
    torch.testing.assert_close(even[1, :, :, 1], even[1, :, :, 5])
    assert not even[1, :, :, 6:].any()
    torch.testing.assert_close(recorded(model, "attention", ids, lengths)[0], before)


def test_hidden_tokens_move_the_words_and_nothing_hidden_moves_none():
    model, ids, lengths = encoder(), torch.randint(20, (3, 8)), torch.tensor([8, 7, 6])
    for block in model.stack.blocks:
        block.attention.qkv.weight.mul_(50)  # fresh weights are small: nothing would move
        block.attention.output.weight.mul_(50)
    hidden = lesson.hidden_tokens(ids, lengths, 0)
    found = lesson.moved(model, ids, lengths, hidden["[CLS]"])
    assert min(found) > 1e-3
    assert len(set(found)) == 2
    assert max(lesson.moved(model, ids, lengths, torch.zeros(3, 8, dtype=torch.bool))) < 1e-5


def test_hidden_and_divided_by_1_minus_w_is_masked():
    model, ids, lengths = encoder(), torch.randint(20, (2, 6)), torch.tensor([6, 5])
    tokens = torch.zeros(2, 6, dtype=torch.bool)
    tokens[:, 2] = True
    masked = model(ids, (torch.arange(6) < lengths[:, None]) & ~tokens)

    def divide(_module: nn.Module, _inputs: tuple, weights: torch.Tensor) -> torch.Tensor:
        return weights / (1 - (weights * tokens[:, None, None]).sum(dim=-1, keepdim=True))

    for block in model.stack.blocks:
        block.attention.weights.register_forward_hook(divide)
    with lesson.values_hidden(model, tokens):
        found = model(ids, lengths)
    torch.testing.assert_close(found[:, :5], masked[:, :5], atol=1e-5, rtol=1e-4)


def test_the_nouns_of_pairs_are_counted():
    nouns = [("king", "boy"), ("queen", "lady"), ("king", "man")]
    told = lesson.in_both_orders({"near": torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])}, nouns, 0)
    assert told["near"]["same noun twice"].startswith("0.67 (")
    assert told["near"]["first place twice"].startswith("0.33 (")
    assert told["near"]["second place twice"] == "0"
    assert list(told["only the first place counts"].values()) == ["0", "1", "0"]


def test_a_short_value_lowers_the_share():
    model, ids, lengths = encoder(), torch.randint(20, (3, 8)), torch.tensor([8, 7, 6])
    before_weight, before_norm = lesson.shares_of_cls(model, ids, lengths, head_contributions)
    first = torch.zeros(3, 8, dtype=torch.bool)
    first[:, 0] = True
    with lesson.values_hidden(model, first):
        by_weight, by_norm = lesson.shares_of_cls(model, ids, lengths, head_contributions)
    assert by_weight[0] == pytest.approx(before_weight[0])
    assert by_norm == pytest.approx([0, 0], abs=1e-6)
    assert min(before_norm) > 0.01


def test_groups_and_cases():
    rows = data.load("coreference", "test", quiet=True)
    sentences, places = lesson.some_groups(rows, 2, 0, "cpu")
    assert len(sentences) == 8
    for text, (pronoun, antecedent, other) in zip(sentences, places.T.tolist(), strict=True):
        words = ["[CLS]", *text.split()]
        assert words[pronoun] in lesson.NOUNS_INSTEAD
        assert words[antecedent] != words[other]
    cases = lesson.five_cases(rows, sentences, places)
    assert list(cases)[2:] == ["himself, one matches", "himself, both: near", "himself, both: said"]
    for texts, where in cases.values():
        assert where.shape == (3, len(texts))
    assert not set(cases["noun instead"][0]) & set(sentences)
    again = lesson.five_cases(rows, ["the man saw the lady when he left ."], torch.tensor([[7], [2], [5]]))
    assert again["noun instead"][0] == []  # *the man* would be there twice
    assert all(" near " in text for text in cases["himself, both: near"][0])
    for texts, where in cases.values():
        for text, nouns in zip(texts, lesson.nouns_of(texts, where), strict=True):
            assert set(nouns) < set(text.split())


def test_interval_over_words_takes_a_word_as_one():
    difference = torch.tensor([0.0, 1.0]).repeat_interleave(50)  # two words, 50 sentences each
    assert lesson.interval_over_words(difference, 2, 0) == (0.0, 1.0)
    draws = torch.tensor([0.0, 1.0])[:, None].expand(2, 100)  # two draws, all words alike
    assert lesson.interval_over_words(draws, 2, 0) == (0.0, 1.0)


def test_without_each_head_is_the_encoder_with_that_gate_at_0():
    model = encoder()
    ids, lengths, place = torch.randint(20, (3, 8)), torch.tensor([8, 7, 6]), torch.tensor([1, 2, 3])
    nobody = torch.zeros(3, 3, dtype=torch.bool)
    found = lesson.without_each_head(model, lesson.Senses(ids, lengths, place, nobody, nobody))
    gates = torch.ones(2, 3)
    gates[1, 0] = 0
    with gated(model, gates):
        expected = recorded(model, "blocks", ids, lengths)[-1][torch.arange(3), place]
    assert found.shape == (6, 3, 12)
    torch.testing.assert_close(found[3], expected)


def test_band_over_draws():
    found = lesson.band([torch.tensor([[0.0, 1.0], [1.0, 1.0]]), torch.zeros(2, 2)])
    assert [each.tolist() for each in found] == [[0.75, 0.0], [0.5, 0.0], [1.0, 0.0]]


def test_sentences_of_some_words():
    words, sentences_with = lesson.two_senses(tokenizers.load(pretrained.weights("minilm")), "cpu")
    assert len(words) == 14
    part = sentences_with(words[:2], each=3)
    assert len(part.ids) == 2 * 2 * 3
    assert part.same.sum(dim=1).tolist() == [2] * 12
    assert part.other.sum(dim=1).tolist() == [3] * 12


def test_drawings():
    _, axes = viz.figure(columns=2)
    lesson.draw_intervals(axes[0], {"one": torch.tensor([0.0, 1.0])}, {"one": (0.2, 0.8)}, "title")
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["one  0.50"]
    lesson.draw_costs(axes[1], torch.zeros(4), torch.zeros(4, 2), heads=2)
    assert [label.get_text() for label in axes[1].get_xticklabels()] == ["layer 0", "layer 1"]
