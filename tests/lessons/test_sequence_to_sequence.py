"""Pairs are chosen, sentences written, weights averaged and links found as the docstrings say."""

import torch

from course_lib.data.batches import Pairs
from course_lib.lessons import sequence_to_sequence as lesson
from course_lib.models.translator import RNNTranslator


def test_short_pairs_keep_both_sides_short():
    sources = ["Go on.", "Go.", "I go home now.", "Stop!"]
    targets = ["Sigue.", "Vete de aquí ahora.", "Voy.", "¡Para ya, Tom!"]
    assert lesson.short_pairs(sources, targets, 3) == [(["go", "on", "."], ["sigue", "."])]
    longer = lesson.short_pairs(sources, targets, 5)
    assert [len(en) for en, _ in longer] == [3, 2, 5, 2]


def test_frequent_words_are_those_of_the_training_pairs():
    splits = {"train": [(["a"], ["x"]), (["a"], ["x"]), (["b"], ["x"])], "test": [(["b"], ["x"]), (["a"], ["x"])]}
    kept = lesson.of_frequent_words(splits, (1, 1))
    assert kept == {"train": [(["a"], ["x"]), (["a"], ["x"])], "test": [(["a"], ["x"])]}


def test_references_of_a_source_come_together():
    like = Pairs([["a", "b"]], [["x", "y", "z"]])
    pairs = [(["a"], ["x"]), (["b"], ["y"]), (["a"], ["z"]), (["c"], ["x"]), (["b"], ["unknown"])]
    found, references = lesson.with_references(pairs, like)
    assert found.sources == [["a"], ["b"]]
    assert references == [[["x"], ["z"]], [["y"]]]
    assert found.target_words is like.target_words


def test_a_batch_is_translated_as_each_sentence_alone():
    torch.manual_seed(0)
    pairs = Pairs([["a", "b", "c"], ["b"], ["c", "a"]], [["x", "y"], ["z"], ["y"]])
    model = RNNTranslator(len(pairs.source_words), len(pairs.target_words), 8, attention=True)
    together = lesson.translate(model, pairs, 6)
    alone = [lesson.translate(model, Pairs([source], [[]], pairs), 6)[0] for source in pairs.sources]
    assert together == alone
    assert all(len(text) <= 6 and "</s>" not in text for text in together)


def test_links_are_read_and_found():
    text = "0-1 2?0 1-0"
    assert lesson.links(text, "-") == {(0, 1), (1, 0)}
    assert lesson.links(text, "?") == {(2, 0)}
    weights = torch.tensor([[[0.1, 0.7, 0.2], [0.8, 0.1, 0.1], [0.0, 0.0, 1.0]]])  # the third row is filled up
    pairs = Pairs([["a", "b", "c"]], [["x", "y"]])
    assert lesson.strongest_links(weights, pairs) == [{(1, 0), (0, 1)}]
    assert lesson.in_corpus([{(1, 0)}, {(0, 1)}]) == {(0, 1, 0), (1, 0, 1)}
