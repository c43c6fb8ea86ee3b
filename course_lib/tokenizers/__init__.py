"""From text to numbers and back: letters or words (`Vocabulary`), byte-pair encoding (`BPE`), BERT's `WordPiece`.

`load` reads the files of a real tokenizer, and gives the numbers that `transformers` gives.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.tokenizers.bpe import BPE, count_pairs, learn_merges, merge
from course_lib.tokenizers.wordpiece import WordPiece, basic_words

__all__ = [
    "BPE",
    "Vocabulary",
    "WordPiece",
    "basic_words",
    "count_pairs",
    "learn_merges",
    "load",
    "merge",
    "words_and_marks",
]


def words_and_marks(text: str) -> list[str]:
    """A text in small letters, cut into words and marks: I don't know. → i don't know ."""
    return re.findall(r"[\w']+|[^\w\s]", text.lower())


class Vocabulary:
    """A number for each token, in sorted order: letters, words, or whatever the tokens are."""

    def __init__(self, tokens: Iterable[str]):
        self.tokens = sorted(set(tokens))
        self.ids = {token: number for number, token in enumerate(self.tokens)}
        if not self.tokens:
            raise ValueError("A vocabulary needs at least one token; it was given none.")

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, tokens: Iterable[str]) -> Tensor:
        """The numbers of the tokens: (length)."""
        try:
            return torch.tensor([self.ids[token] for token in tokens], dtype=torch.long)
        except KeyError as error:
            raise ValueError(f"The token {error} is not among the {len(self)} of this vocabulary.") from None

    def encode_all(self, texts: Iterable[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Numbers (texts, longest), shorter ones filled up at the end with 0, and the true lengths (texts)."""
        rows = [self.encode(tokens) for tokens in texts]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.tensor([len(row) for row in rows])

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The tokens of the numbers."""
        return [self.tokens[int(number)] for number in ids]


def load(place: str | Path) -> BPE | WordPiece:
    """The tokenizer of a file that `BPE.save` wrote, or of a folder with ``tokenizer.json`` or BERT's ``vocab.txt``.

    Its settings for cutting long texts and filling up short ones are not taken over.
    """
    folder = Path(place)
    file = folder if folder.is_file() else folder / "tokenizer.json"
    if file.is_file():
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            whole = {"type", "vocab"} <= content["model"].keys()
        except (ValueError, KeyError, TypeError, AttributeError):  # no JSON, or of something else
            whole = False
        if not whole:
            raise ValueError(f"Expected a tokenizer in JSON, as `BPE.save` writes it; {file} has no model with tokens.")
        return read_json(content)
    if (folder / "vocab.txt").is_file():
        config = folder / "tokenizer_config.json"
        settings = json.loads(config.read_text(encoding="utf-8")) if config.is_file() else {}
        lines = (folder / "vocab.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
        return WordPiece(
            {token: number for number, token in enumerate(lines)}, lower=settings.get("do_lower_case", True)
        )
    raise ValueError(f"There is neither tokenizer.json nor vocab.txt in {folder}.")


def read_json(file: dict) -> BPE | WordPiece:
    """The tokenizer of a parsed ``tokenizer.json``; what the classes above would do differently is refused."""
    model, ids = file["model"], dict(file["model"]["vocab"])
    normalizer, cutter, frame = (file.get(part) or {} for part in ("normalizer", "pre_tokenizer", "post_processor"))
    added = file.get("added_tokens", [])
    ids |= {token["content"]: token["id"] for token in added}
    special = [token["content"] for token in added]
    _refuse_unless("added token", not any(token[way] for token in added for way in ("lstrip", "rstrip", "single_word")))
    if model["type"] == "WordPiece":
        wanted = {"clean_text": True, "handle_chinese_chars": True}
        lower = normalizer.get("lowercase")
        _refuse_unless("normalizer", wanted.items() <= normalizer.items())
        _refuse_unless("normalizer", normalizer.get("strip_accents") in (None, lower))
        _refuse_unless("pre_tokenizer", cutter.get("type") == "BertPreTokenizer")
        return WordPiece(ids, special, lower, model["max_input_chars_per_word"])
    if model["type"] == "BPE":
        wanted = {"type": "ByteLevel", "add_prefix_space": False}
        _refuse_unless("normalizer", not normalizer)
        _refuse_unless("pre_tokenizer", wanted.items() <= cutter.items() and cutter.get("use_regex", True))
        _refuse_unless("post_processor", not frame.get("special_tokens") and frame.get("type") != "RobertaProcessing")
        _refuse_unless("model", not (model.get("ignore_merges") or model.get("byte_fallback") or model.get("dropout")))
        merges = [tuple(pair.split(" ") if isinstance(pair, str) else pair) for pair in model["merges"]]
        return BPE(ids, merges, special)
    raise ValueError(f"The course reads BPE and WordPiece tokenizers; this one is {model['type']}.")


def _refuse_unless(part: str, supported: bool) -> None:
    if not supported:
        raise ValueError(f"This tokenizer.json has settings of its {part} that the course does not know.")
