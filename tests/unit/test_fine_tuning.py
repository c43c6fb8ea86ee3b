"""Lesson 08's pieces: inputs of pairs, spans, the switch, batches of like length, blanks, probes of words, costs."""

import math
from itertools import pairwise

import pytest
import torch

from course_lib import cloze, costs, fine_tuning, metrics, pretrained, word_probes
from course_lib.bert import (
    IGNORED,
    Bert,
    BertShape,
    MaskedLM,
    SentenceClassifier,
    Tagger,
    best_spans,
    classify,
    fine_tune,
    mask_tokens,
    pair_inputs,
)
from course_lib.wordpiece import WordPiece

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "the", "cat", "dog", "sleep", "##s", "saw", "was", "by"]
TOKENIZER = WordPiece({word: i for i, word in enumerate(WORDS)})


def encoder(**options) -> Bert:
    torch.manual_seed(0)
    return Bert(BertShape(**{"d": 8, "layers": 2, "heads": 2, "vocabulary": len(WORDS), "longest": 32} | options))


def row(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers)


def test_a_pair_equals_the_tokenizers_and_is_filled_up():
    ids, mask, segments = pair_inputs([row(6, 7), row(8)], [row(9), row(6, 7, 9)], 2, 3)
    assert ids.tolist() == [[2, 6, 7, 3, 9, 3, 0], [2, 8, 3, 6, 7, 9, 3]]
    assert mask.tolist() == [[True] * 6 + [False], [True] * 7]
    assert segments.tolist() == [[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1, 1]]
    assert torch.equal(ids[0, :6], TOKENIZER.encode("the cat", "sleep"))


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
    texts = fine_tuning.filled([row(2, 6, 7, 3), row(2, 8, 3)])
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


def test_scored_pairs_leave_out_what_is_too_long():
    rows = [
        {"sentence1": "the cat sleeps", "sentence2": "the dog", "score": 1.5},
        {"sentence1": "the cat saw the dog", "sentence2": "the cat", "score": 2.0},
        {"sentence1": "the dog", "sentence2": "the cat", "score": 4.0},
    ]
    texts, (firsts, seconds) = fine_tuning.scored_pairs(TOKENIZER, rows, 6)
    assert texts == [("the cat sleeps", "the dog"), ("the dog", "the cat")]
    assert firsts.targets.tolist() == seconds.targets.tolist() == [1.5, 4.0]
    assert firsts.lengths.tolist() == [6, 4]
    assert seconds.inputs[0].tolist() == [[2, 6, 8, 3], [2, 6, 7, 3]]


def test_words_of_several_pieces():
    ids, places = TOKENIZER.encode_words(["cat", "sleeps", "\u200b", "."])
    assert [WORDS[i] for i in ids] == ["[CLS]", "cat", "sleep", "##s", "[UNK]", ".", "[SEP]"]
    assert places.tolist() == [1, 2, 4, 5]


def test_examples_are_cut_at_their_longest_and_drawn_by_length():
    rows = [torch.full((n,), 6) for n in (9, 2, 5, 2, 9, 3)]
    examples = fine_tuning.Examples(fine_tuning.filled(rows), torch.arange(6))
    (ids, mask, segments), targets = examples.rows(torch.tensor([1, 5]))
    assert ids.shape == mask.shape == segments.shape == (2, 3)
    assert targets.tolist() == [1, 5]
    assert len(examples.some(torch.tensor([0, 2]))) == 2
    (ids, mask, _), targets = examples.batches(2)(torch.Generator().manual_seed(0))
    assert len(ids) == len(targets) == 2
    assert mask.any(dim=0).all()
    with pytest.raises(ValueError, match="Expected a target for each text; got 6 texts, 5 targets"):
        fine_tuning.Examples(fine_tuning.filled(rows), torch.arange(5))


def test_every_text_comes_once_before_any_comes_again():
    lengths = [5, 1, 9, 2, 8, 3, 7, 4, 6, 9]
    draw, generator = fine_tuning.by_epoch(torch.tensor(lengths), 3), torch.Generator().manual_seed(0)
    for _ in range(4):  # an epoch: three batches, one text is left over
        epoch = [draw(generator).tolist() for _ in range(3)]
        assert len({i for rows in epoch for i in rows}) == 9
        spans = sorted((min(lengths[i] for i in rows), max(lengths[i] for i in rows)) for rows in epoch)
        assert all(longest <= shortest for (_, longest), (shortest, _) in pairwise(spans))  # by length
    runs = [torch.Generator().manual_seed(5) for _ in range(2)]
    first, again = ([draw(run).tolist() for _ in range(4)] for run in runs)  # the first run stops within an epoch
    assert first == again
    with pytest.raises(ValueError, match="Batches of 11 need at least as many texts; there are 10"):
        fine_tuning.by_epoch(torch.tensor(lengths), 11)


def test_pairs_are_read_in_one_go():
    sides = [
        fine_tuning.Examples(
            fine_tuning.filled([torch.full((n,), i) for i, n in enumerate(lengths, 1)]), torch.arange(4)
        )
        for lengths in ((2, 9, 3, 8), (3, 2, 2, 9))
    ]
    draw, generator = fine_tuning.pair_batches(*sides, 2), torch.Generator().manual_seed(0)
    batches = [draw(generator) for _ in range(2)]
    assert sorted(sorted(targets.tolist()) for _, targets in batches) == [[0, 2], [1, 3]]  # by the longer text
    for (ids, mask, segments), targets in batches:
        assert ids.shape == mask.shape == segments.shape == (4, ids.shape[1])
        assert (ids[:, 0] - 1).tolist() == [*targets, *targets]  # the firsts, then the seconds
        assert torch.equal(mask, ids > 0)
        assert mask.any(dim=0).all()


def test_in_a_bag_of_words_rare_words_weigh_more():
    texts = [("the cat", "the dog"), ("the sun", "the cat")]
    cosines = fine_tuning.cosines_of_words(
        texts, [("the sun", "the sun", "sun cat"), ("the sun", "the dog", "cat dog")]
    )
    sun, cat = math.log(4 / 1), math.log(4 / 2)  # the share of the four texts; *the* is in all, and weighs nothing
    assert cosines.tolist() == pytest.approx([1, 0, cat**2 / (sun**2 + cat**2)])


def test_halfway_between_two_sets_of_weights():
    start, model = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    middle = [(p + q).detach() / 2 for p, q in zip(start.parameters(), model.parameters(), strict=True)]
    fine_tuning.halfway(model, start)
    assert all(torch.allclose(p, m) for p, m in zip(model.parameters(), middle, strict=True))
    assert not any(torch.allclose(p, m) for p, m in zip(start.parameters(), middle, strict=True))  # stays


@pytest.mark.parametrize("known", [True, False])
def test_a_contestants_scores_start_at_about_one(known):
    folder = pretrained.weights("minilm")
    tagger = fine_tuning.contestant(folder, Tagger, known, 0, 100)
    with torch.no_grad():
        scores = tagger(torch.randint(1000, 20_000, (4, 20), generator=torch.Generator().manual_seed(1)))
    assert 0.5 < scores.std() < 2
    assert not tagger.encoder.embed.weight.requires_grad


def test_predictions_come_in_the_order_of_the_texts_and_leave_the_mode():
    model = encoder().train()
    rows = [torch.randint(5, 14, (n,)) for n in (4, 9, 2, 7, 3)]
    examples = fine_tuning.Examples(fine_tuning.filled(rows), torch.zeros(5))
    vectors = fine_tuning.predict(model, examples, fine_tuning.mean_vector, size=2)
    assert model.training
    with torch.no_grad():
        for vector, ids in zip(vectors, rows, strict=True):
            alone = torch.nn.functional.normalize(model.eval()(ids[None])[0].mean(dim=0), dim=0)
            torch.testing.assert_close(vector, alone)
    lengths = fine_tuning.predict(model, examples, lambda hidden, inputs: inputs[1].long(), size=2)
    assert lengths.sum(dim=1).tolist() == [4, 9, 2, 7, 3]


def test_an_answer_is_located_or_refused():
    passage = "the cat sleeps . the dog saw the cat ."
    assert fine_tuning.locate(TOKENIZER, passage, "dog", passage.index("dog")) == (6, 6)
    assert fine_tuning.locate(TOKENIZER, passage, "cat sleeps", 4) == (1, 3)
    assert fine_tuning.locate(TOKENIZER, passage, "cat", -1) is None
    assert fine_tuning.locate(TOKENIZER, passage, "cat", 0) is None
    assert fine_tuning.locate(TOKENIZER, passage, "leeps", passage.index("leeps")) is None


def test_questions_with_their_answers():
    rows = [{"question": "dog ?", "passage": "the cat sleeps . the dog saw the cat", "answer": "saw", "start": 25}]
    rows.append(rows[0] | {"answer": "bird", "start": -1})
    examples = fine_tuning.asked(TOKENIZER, rows, 40, 10, pair_inputs)
    assert len(examples) == 1
    assert fine_tuning.spans_tokens(examples, examples.targets) == [[WORDS.index("saw")]]
    assert fine_tuning.answers_of_words(TOKENIZER, examples) == [[WORDS.index(w) for w in ("saw", "the", "cat")]]
    assert not fine_tuning.in_passage(examples.inputs)[0, :4].any()


def test_tags_at_first_pieces_and_the_usual_tag():
    rows = [{"tokens": ["the", "sleeps", "saw"], "tags": [0, 3, 1]}]
    examples = fine_tuning.tagged_words(TOKENIZER, rows, 10)
    assert examples.targets.tolist() == [[IGNORED, 0, 3, IGNORED, 1, IGNORED]]
    usual = fine_tuning.usual_tags(rows, rows, examples)
    assert usual.tolist() == [[0, 0, 3, 0, 1, 0]]
    assert fine_tuning.entity_score(usual, examples) == 1


def test_answer_f1():
    assert metrics.answer_f1([[1, 2, 3, 4], [5]], [[1, 2], [6]]) == pytest.approx((2 * 2 / 6 + 0) / 2)


def test_halves_and_blanks():
    rows = [torch.arange(5, 5 + n) for n in (6, 7, 8, 6, 9, 6)]
    (ids, mask, _), elsewhere = cloze.halves(rows, torch.Generator().manual_seed(0), pair_inputs)
    for text, inside, other, whole in zip(ids, mask, elsewhere, rows, strict=True):
        words = [i for i in text[inside].tolist() if i > cloze.MASK]
        if not other:
            assert words == whole.tolist()
        assert words[: len(whole) // 2] == whole[: len(whole) // 2].tolist()
    own = [torch.tensor([2 * i, 2 * i + 1]) + cloze.MASK + 1 for i in range(5)]
    for seed in range(20):  # no sentence is "elsewhere" to itself
        (ids, *_), elsewhere = cloze.halves(own, torch.Generator().manual_seed(seed), pair_inputs)
        assert torch.equal(ids[:, 3] != ids[:, 1] + 1, elsewhere.bool())
    (ids, mask, segments), (blanks, follows) = cloze.batches(rows, 20, 4, mask_tokens, pair_inputs)(
        torch.Generator().manual_seed(1)
    )
    assert ids.shape == mask.shape == segments.shape == blanks.shape
    assert [*segments.any(dim=1)] == [False] * 4 + [True] * 2  # whole sentences, then pairs
    assert (follows[:4] == -100).all()  # nothing is asked about a whole sentence
    assert set(follows[4:].tolist()) <= {0, 1}
    assert not (blanks != -100)[~mask].any()


def test_a_blank_is_filled_from_both_sides_or_from_the_left_alone():
    places = torch.tensor([2, 2])
    unseen, changed = (cloze.framed([row(6, 7, *end), row(6, 8, *end)]) for end in ((9, 5), (12, 13)))
    for causal in (True, False):
        model = MaskedLM(encoder(causal=causal)).eval()
        for weights in model.parameters():
            torch.nn.init.normal_(weights)  # large ones, so that a difference shows
        losses = [cloze.fill(model, part, places)[1] for part in (unseen, changed)]
        assert torch.allclose(*losses) == causal
    assert len(cloze.guesses(model, WORDS, "the _ sleep", 3)) == 3


def test_words_that_are_asked_about():
    texts = [["i", "like", "to", "dance"], ["the", "dance", "is", "over"], ["to", "answer"], ["an", "answer"]] * 3
    known, new = word_probes.noun_or_verb(texts, 2)
    assert sorted(label for _, _, label in known + new) == [0, 0, 1, 1]
    rows = word_probes.doers(["cat", "dog"], ["saw"])
    assert [words[place] for words, place, doer in rows if doer] == ["cat", "dog", "dog", "cat"]
    model = encoder().eval()
    vectors = word_probes.at_words(model, TOKENIZER, rows, size=2)  # (layers + 1, examples, d)
    for i, (words, place, _) in enumerate(rows):
        ids, places = TOKENIZER.encode_words(words)
        torch.testing.assert_close(vectors[-1, i], model(ids[None])[0, places[place]].detach())
    shares = word_probes.by_layer(encoder(), TOKENIZER, rows, rows)
    assert len(shares) == 3
    assert word_probes.centre_of_gain([0.5, 0.5, 1.0]) == 2
    assert word_probes.kinds_of_names([{"tokens": ["a", "B", "C"], "tags": [0, 1, 6]}]) == [
        (["a", "B", "C"], 1, 0),
        (["a", "B", "C"], 2, 2),
    ]


def test_costs_of_the_table():
    assert costs.energy(1515.43, 84) == pytest.approx(201, rel=0.01)
    assert costs.carbon(costs.energy(1515.43, 84)) == pytest.approx(192, rel=0.01)
    assert costs.training_operations(110e6, 1e9) == 6.6e17
    assert costs.utilisation(3600e12, 2, 0.5, 2e12) == pytest.approx(0.5)
