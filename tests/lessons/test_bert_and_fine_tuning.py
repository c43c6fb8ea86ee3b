"""Lesson 08's pieces: blanks and halves, the examples of its tasks, what a bag of words says, words asked about."""

import math

import pytest
import torch

from course_lib import pretrained
from course_lib.data.batches import IGNORED, Examples, mask_tokens, pad_rows, pair_inputs
from course_lib.lessons import bert_and_fine_tuning as lesson
from course_lib.models.bert import Bert, BertShape, MaskedLM, Tagger
from course_lib.tokenizers.wordpiece import WordPiece

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "the", "cat", "dog", "sleep", "##s", "saw", "was", "by"]
TOKENIZER = WordPiece({word: i for i, word in enumerate(WORDS)})


def encoder(**options) -> Bert:
    torch.manual_seed(0)
    return Bert(BertShape(**{"d": 8, "layers": 2, "heads": 2, "vocabulary": len(WORDS), "longest": 32} | options))


def row(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers)


def test_scored_pairs_leave_out_what_is_too_long():
    rows = [
        {"sentence1": "the cat sleeps", "sentence2": "the dog", "score": 1.5},
        {"sentence1": "the cat saw the dog", "sentence2": "the cat", "score": 2.0},
        {"sentence1": "the dog", "sentence2": "the cat", "score": 4.0},
    ]
    texts, (firsts, seconds) = lesson.scored_pairs(TOKENIZER, rows, 6)
    assert texts == [("the cat sleeps", "the dog"), ("the dog", "the cat")]
    assert firsts.targets.tolist() == seconds.targets.tolist() == [1.5, 4.0]
    assert firsts.lengths.tolist() == [6, 4]
    assert seconds.inputs[0].tolist() == [[2, 6, 8, 3], [2, 6, 7, 3]]


def test_in_a_bag_of_words_rare_words_weigh_more():
    texts = [("the cat", "the dog"), ("the sun", "the cat")]
    cosines = lesson.cosines_of_words(texts, [("the sun", "the sun", "sun cat"), ("the sun", "the dog", "cat dog")])
    sun, cat = math.log(4 / 1), math.log(4 / 2)  # the share of the four texts; *the* is in all, and weighs nothing
    assert cosines.tolist() == pytest.approx([1, 0, cat**2 / (sun**2 + cat**2)])


def test_halfway_between_two_sets_of_weights():
    start, model = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    middle = [(p + q).detach() / 2 for p, q in zip(start.parameters(), model.parameters(), strict=True)]
    lesson.average_with(model, start)
    assert all(torch.allclose(p, m) for p, m in zip(model.parameters(), middle, strict=True))
    assert not any(torch.allclose(p, m) for p, m in zip(start.parameters(), middle, strict=True))  # stays


@pytest.mark.parametrize("known", [True, False])
def test_a_contestants_scores_start_at_about_one(known):
    folder = pretrained.weights("minilm")
    tagger = lesson.contestant(folder, Tagger, known, 0, 100)
    with torch.no_grad():
        scores = tagger(torch.randint(1000, 20_000, (4, 20), generator=torch.Generator().manual_seed(1)))
    assert 0.5 < scores.std() < 2
    assert not tagger.encoder.embed.weight.requires_grad


def test_predictions_come_in_the_order_of_the_texts_and_leave_the_mode():
    model = encoder().train()
    rows = [torch.randint(5, 14, (n,)) for n in (4, 9, 2, 7, 3)]
    examples = Examples(pad_rows(rows), torch.zeros(5))
    vectors = lesson.predict(model, examples, lesson.mean_vector, size=2)
    assert model.training
    with torch.no_grad():
        for vector, ids in zip(vectors, rows, strict=True):
            alone = torch.nn.functional.normalize(model.eval()(ids[None])[0].mean(dim=0), dim=0)
            torch.testing.assert_close(vector, alone)
    lengths = lesson.predict(model, examples, lambda hidden, inputs: inputs[1].long(), size=2)
    assert lengths.sum(dim=1).tolist() == [4, 9, 2, 7, 3]


def test_an_answer_is_located_or_refused():
    passage = "the cat sleeps . the dog saw the cat ."
    assert lesson.locate(TOKENIZER, passage, "dog", passage.index("dog")) == (6, 6)
    assert lesson.locate(TOKENIZER, passage, "cat sleeps", 4) == (1, 3)
    assert lesson.locate(TOKENIZER, passage, "cat", -1) is None
    assert lesson.locate(TOKENIZER, passage, "cat", 0) is None
    assert lesson.locate(TOKENIZER, passage, "leeps", passage.index("leeps")) is None


def test_questions_with_their_answers():
    rows = [{"question": "dog ?", "passage": "the cat sleeps . the dog saw the cat", "answer": "saw", "start": 25}]
    rows.append(rows[0] | {"answer": "bird", "start": -1})
    examples = lesson.question_examples(TOKENIZER, rows, 40, 10, pair_inputs)
    assert len(examples) == 1
    assert lesson.spans_tokens(examples, examples.targets) == [[WORDS.index("saw")]]
    assert lesson.answers_of_words(TOKENIZER, examples) == [[WORDS.index(w) for w in ("saw", "the", "cat")]]
    assert not lesson.in_passage(examples.inputs)[0, :4].any()


def test_texts_that_are_too_long_are_counted():
    words = ("the cat", "the cat saw the cat", "cat", "saw", "the")
    rows = [{"text": text, "label": i} for i, text in enumerate(words)]
    texts, examples, left_out = lesson.labelled(TOKENIZER, rows, 5, 2)
    assert (texts, examples.targets.tolist(), left_out) == (["the cat", "cat"], [0, 2], 1)
    sleeps = [{"text": "sleeps sleeps", "label": 1}]  # two words, but four pieces
    assert lesson.labelled(TOKENIZER, [*sleeps, *rows], 5, 5)[2] == 2
    assert lesson.labelled(TOKENIZER, rows, 7, 5)[2] == 0


def test_a_text_to_be_tagged_is_not_cut():
    rows = [{"tokens": ["the", "sleeps", "saw"], "tags": [0, 3, 1]}]
    assert lesson.tagged_words(TOKENIZER, rows, 6).targets.shape == (1, 6)
    with pytest.raises(ValueError, match="at most 5 tokens; the one that begins with 'the sleeps saw' has 6"):
        lesson.tagged_words(TOKENIZER, rows, 5)


def test_tags_at_first_pieces_and_the_usual_tag():
    rows = [{"tokens": ["the", "sleeps", "saw"], "tags": [0, 3, 1]}]
    examples = lesson.tagged_words(TOKENIZER, rows, 10)
    assert examples.targets.tolist() == [[IGNORED, 0, 3, IGNORED, 1, IGNORED]]
    usual = lesson.usual_tags(rows, rows, examples)
    assert usual.tolist() == [[0, 0, 3, 0, 1, 0]]
    assert lesson.entity_score(usual, examples) == 1


def test_halves_and_blanks():
    rows = [torch.arange(5, 5 + n) for n in (6, 7, 8, 6, 9, 6)]
    (ids, mask, _), elsewhere = lesson.halves(rows, torch.Generator().manual_seed(0), pair_inputs)
    for text, inside, other, whole in zip(ids, mask, elsewhere, rows, strict=True):
        words = [i for i in text[inside].tolist() if i > lesson.MASK]
        if not other:
            assert words == whole.tolist()
        assert words[: len(whole) // 2] == whole[: len(whole) // 2].tolist()
    own = [torch.tensor([2 * i, 2 * i + 1]) + lesson.MASK + 1 for i in range(5)]
    for seed in range(20):  # no sentence is "elsewhere" to itself
        (ids, *_), elsewhere = lesson.halves(own, torch.Generator().manual_seed(seed), pair_inputs)
        assert torch.equal(ids[:, 3] != ids[:, 1] + 1, elsewhere.bool())
    (ids, mask, segments), (blanks, follows) = lesson.pretraining_batches(rows, 20, 4, mask_tokens, pair_inputs)(
        torch.Generator().manual_seed(1)
    )
    assert ids.shape == mask.shape == segments.shape == blanks.shape
    assert [*segments.any(dim=1)] == [False] * 4 + [True] * 2  # whole sentences, then pairs
    assert (follows[:4] == -100).all()  # nothing is asked about a whole sentence
    assert set(follows[4:].tolist()) <= {0, 1}
    assert not (blanks != -100)[~mask].any()


def test_a_blank_is_filled_from_both_sides_or_from_the_left_alone():
    places = torch.tensor([2, 2])
    unseen, changed = (lesson.whole_sentences([row(6, 7, *end), row(6, 8, *end)]) for end in ((9, 5), (12, 13)))
    for causal in (True, False):
        model = MaskedLM(encoder(causal=causal)).eval()
        for weights in model.parameters():
            torch.nn.init.normal_(weights)  # large ones, so that a difference shows
        losses = [lesson.fill_blanks(model, part, places)[1] for part in (unseen, changed)]
        assert torch.allclose(*losses) == causal
    assert len(lesson.guesses(model, WORDS, "the _ sleep", 3)) == 3


def test_words_that_are_asked_about():
    texts = [["i", "like", "to", "dance"], ["the", "dance", "is", "over"], ["to", "answer"], ["an", "answer"]] * 3
    assert lesson.noun_or_verb(texts, "train", 2) == []
    assert lesson.noun_or_verb(texts, "test", 2) == [(texts[1], 1, 0)] * 2 + [(texts[0], 3, 1)] * 2
    assert lesson.roles("train")[3] == (["the", "doctor", "was", "followed", "by", "the", "teacher"], 6, 1)
    assert lesson.kinds_of_names([{"tokens": ["a", "B", "C"], "tags": [0, 1, 6]}]) == [
        (["a", "B", "C"], 1, 0),
        (["a", "B", "C"], 2, 2),
    ]
