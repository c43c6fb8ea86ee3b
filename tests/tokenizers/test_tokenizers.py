"""Words as tokens: a vocabulary, words and marks."""

import pytest

from course_lib.tokenizers import Vocabulary, words_and_marks


def test_words_are_small_and_marks_stand_alone():
    assert words_and_marks("I don't know, Tom!") == ["i", "don't", "know", ",", "tom", "!"]
    assert words_and_marks("¿Qué?") == ["¿", "qué", "?"]


def test_vocabulary_round_trip_and_padding():
    letters = Vocabulary("banana")
    assert letters.tokens == ["a", "b", "n"]
    assert "".join(letters.decode(letters.encode("nab"))) == "nab"
    ids, lengths = letters.encode_all(["ban", "a"])
    assert ids.tolist() == [[1, 0, 2], [0, 0, 0]]
    assert lengths.tolist() == [3, 1]
    with pytest.raises(ValueError, match="The token 'x' is not among the 3"):
        letters.encode("ax")
    with pytest.raises(ValueError, match="at least one token"):
        Vocabulary([])
