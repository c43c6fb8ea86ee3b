"""A trained byte-pair encoding is kept in one file."""

import json

import pytest

from course_lib.tokenizers import BPE, load

TEXT = "the lower the slower, the newest the lowest: naïve 日本\n" * 3


@pytest.mark.parametrize("special", [(), ("<|endoftext|>", "<é>")])
def test_a_saved_tokenizer_comes_back_the_same(tmp_path, special):
    bpe = BPE.train(TEXT, 256 + len(special) + 20, special)
    bpe.save(tmp_path / "mine.json")
    again = load(tmp_path / "mine.json")
    assert (again.ids, again.merges, again.special) == (bpe.ids, bpe.merges, bpe.special)
    for text in (TEXT, "unseen lowlands 🙂 <|endoftext|> <é>", ""):
        assert again.encode(text).tolist() == bpe.encode(text).tolist()
        assert again.decode(again.encode(text)) == text
    bpe.save(tmp_path / "tokenizer.json")
    assert load(tmp_path).merges == bpe.merges  # as a folder


@pytest.mark.parametrize(
    "content", [b"", b"no JSON", b"[1, 2]", b"{}", b'{"model": 1}', b'{"model": {"type": "BPE"}}', b"\xff\xfe\x00"]
)
def test_a_file_of_something_else_is_refused(tmp_path, content):
    (tmp_path / "mine.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"Expected a tokenizer in JSON.*mine\.json has no model with tokens"):
        load(tmp_path / "mine.json")


def test_merges_that_do_not_belong_together_are_refused(tmp_path):
    BPE.train(TEXT, 270).save(tmp_path / "mine.json")
    file = json.loads((tmp_path / "mine.json").read_text(encoding="utf-8"))
    file["model"]["merges"].insert(0, ["th", "e"])  # before the merge that makes th
    (tmp_path / "mine.json").write_text(json.dumps(file), encoding="utf-8")
    with pytest.raises(ValueError, match="comes too late, or lacks a token"):
        load(tmp_path / "mine.json")
