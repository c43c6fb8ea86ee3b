"""WordPiece: words of several pieces."""

from course_lib.tokenizers import WordPiece


def test_words_of_several_pieces():
    words = ["[UNK]", "[CLS]", "[SEP]", ".", "cat", "sleep", "##s"]
    tokenizer = WordPiece({word: i for i, word in enumerate(words)})
    ids, places = tokenizer.encode_words(["cat", "sleeps", "\u200b", "."])
    assert [words[i] for i in ids] == ["[CLS]", "cat", "sleep", "##s", "[UNK]", ".", "[SEP]"]
    assert places.tolist() == [1, 2, 4, 5]
