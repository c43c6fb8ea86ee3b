"""WordPiece, the tokenizer of the BERT family: basic cleaning, then the longest pieces in the vocabulary.

Equal to Hugging Face's `BertTokenizerFast`, but for characters that Unicode took in or moved to another class after
2015: its tables are those of Unicode 8, Python's are newer. No such character is in BERT's vocabulary.
"""

import re
import unicodedata
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from course_lib.tokenizers.bpe import look_up, split_at

CJK = re.compile(
    "([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f])"
)
"""Chinese characters, among them those of Japanese and Korean. (BERT leaves out U+2B820–2B91F by a slip.)"""


def clean(text: str, lower: bool = True) -> str:
    """The text as BERT reads it: no control characters; Chinese characters apart; no capitals, no accents.

    An accent is a mark of its own (Mn) once é is written as e + ´ (the normal form NFD). Each letter is lowered on its
    own, so that Σ becomes σ, also at the end of a word, where Greek writes ς.
    """
    text = "".join(
        c for c in text if c in "\t\n\r" or not (unicodedata.category(c) in ("Cc", "Cf", "Co") or c == "\ufffd")
    )
    text = CJK.sub(r" \1 ", text)
    if lower:
        text = "".join(c for c in unicodedata.normalize("NFD", text) if unicodedata.category(c) != "Mn")
        text = "".join(map(str.lower, text))
    return text


def is_punctuation(character: str) -> bool:
    """Unicode's punctuation, and all signs of ASCII: $ + < = > ^ ` | ~ too."""
    return unicodedata.category(character).startswith("P") or character in "$+<=>^`|~"


def basic_words(text: str, lower: bool = True) -> list[str]:
    """The cleaned text cut at spaces, punctuation on its own: ``"Don't!"`` → ``["don", "'", "t", "!"]``."""
    apart = (f" {c} " if is_punctuation(c) else c for c in clean(text, lower))
    return "".join(apart).split()


class WordPiece:
    """A word is cut greedily: each time the longest piece in the vocabulary; pieces inside a word begin with ``##``.

    ids: the number of each piece; special: tokens that are never split; longer words than ``longest`` are [UNK].
    """

    def __init__(
        self,
        ids: dict[str, int],
        special: Iterable[str] = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
        lower: bool = True,
        longest: int = 100,
    ):
        self.ids, self.special, self.lower, self.longest = ids, list(special), lower, longest
        missing = [token for token in ("[UNK]", "[CLS]", "[SEP]") if token not in ids]
        if missing:
            raise ValueError(f"A WordPiece vocabulary needs {', '.join(missing)}.")
        self.tokens = {number: token for token, number in ids.items()}

    def __len__(self) -> int:
        return len(self.tokens)

    def split_word(self, word: str) -> list[str]:
        """``"unaffable"`` → ``["una", "##ffa", "##ble"]``; ``["[UNK]"]`` if no cut leads to the end."""
        pieces: list[str] = []
        start = 0
        while start < len(word) <= self.longest:
            prefix = "##" if start else ""
            ends = range(len(word), start, -1)  # the longest piece first
            end = next((end for end in ends if prefix + word[start:end] in self.ids), None)
            if end is None:
                break
            pieces.append(prefix + word[start:end])
            start = end
        return pieces if start == len(word) else ["[UNK]"]

    def tokenise(self, text: str) -> list[str]:
        """The text's pieces. Special tokens may stand in the text: ``"Paris is [MASK]."``."""
        pieces: list[str] = []
        for part in split_at(text, self.special):
            if part in self.special:
                pieces.append(part)
            else:
                for word in basic_words(part, self.lower):
                    pieces += self.split_word(word)
        return pieces

    def encode(self, text: str, second: str | None = None) -> Tensor:
        """The numbers of [CLS] text [SEP], or of [CLS] text [SEP] second [SEP]: (length)."""
        pieces = ["[CLS]", *self.tokenise(text), "[SEP]"]
        if second is not None:
            pieces += [*self.tokenise(second), "[SEP]"]
        return torch.tensor([self.ids[piece] for piece in pieces], dtype=torch.long)

    def encode_all(self, texts: Iterable[str]) -> tuple[Tensor, Tensor]:
        """Numbers (texts, longest), shorter ones filled up at the end with [PAD], and the true lengths (texts)."""
        rows = [self.encode(text) for text in texts]
        filled = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=self.ids.get("[PAD]", 0))
        return filled, torch.tensor([len(row) for row in rows])

    def encode_words(self, words: Iterable[str]) -> tuple[Tensor, Tensor]:
        """The numbers of [CLS] words [SEP], (length), and the place of each word's first piece, (words).

        For tags: one for each word, however many pieces it has.
        """
        ids, places = [self.ids["[CLS]"]], []
        for word in words:
            places.append(len(ids))
            ids += [self.ids[piece] for piece in self.tokenise(word) or ["[UNK]"]]
        return torch.tensor([*ids, self.ids["[SEP]"]]), torch.tensor(places, dtype=torch.long)

    def decode(self, ids: Iterable[int], skip_special: bool = False) -> str:
        """The pieces joined to words, with a space between words and none before . , ! and ?."""
        text = " ".join(look_up(ids, self.tokens, self.special if skip_special else ()))
        return re.sub(r" (##|(?=[.,!?]))", "", text)
