r"""Byte-pair encoding (Sennrich et al. 2016) on bytes (GPT-2, 2019): the same merges and numbers as Hugging Face's.

Training: cut the text into words, spell each word in bytes, and merge the most frequent pair of neighbours, again and
again: `count_pairs`, `merge`, `learn_merges`. Encoding: the same merges, in the same order, on a new word.

Any text can be encoded and comes back unchanged. The tokens equal those of `tokenizers`; only characters so new that
one of the two Unicode tables does not know them may be cut into words differently.
"""

import heapq
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from pathlib import Path

import regex  # knows Unicode's classes: \p{L} is a letter, \p{N} a digit
import torch
from torch import Tensor

WORDS = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
"""GPT-2's words: endings such as 's; letters, digits or signs, each with the space before; other white space."""


def byte_alphabet() -> list[str]:
    """A visible character for each of the 256 bytes, so that every token can be printed.

    Printable bytes stand for themselves; the other 68 take the characters from number 256 on: a space is Ġ.
    """
    spare = map(chr, range(256, 512))
    return [chr(b) if 33 <= b <= 126 or (161 <= b <= 255 and b != 173) else next(spare) for b in range(256)]


BYTES = byte_alphabet()
BYTE_OF = {character: byte for byte, character in enumerate(BYTES)}


def count_pairs(words: Iterable[Sequence], times: Iterable[int] | None = None) -> Counter:
    """How often each pair of neighbours occurs in the words (lists of tokens), of which each occurs ``times`` times."""
    counts: Counter = Counter()
    for word, n in zip(words, times, strict=True) if times is not None else ((word, 1) for word in words):
        for pair in pairwise(word):
            counts[pair] += n
    return counts


def merge(tokens: Iterable, pair: tuple, new) -> list:
    """The tokens with each ``pair`` of neighbours replaced by ``new``, from left to right: a a a → aa a."""
    first, second = pair
    merged: list = []
    for token in tokens:
        if token == second and merged and merged[-1] == first:
            merged[-1] = new
        else:
            merged.append(token)
    return merged


def learn_merges(words: list[list[int]], times: list[int], tokens: list[str], size: int, least: int) -> dict:
    """Merge the most frequent pair again and again; among equally frequent ones, that with the smallest numbers.

    words[n] are the tokens of the n-th word, which occurs times[n] times; tokens[i] is the text of token i. New tokens
    are added to ``tokens`` until there are ``size``, or until no pair occurs ``least`` times. Gives pair → new token,
    in the order of learning.

    To count all pairs anew after each merge would take minutes. But only the words that hold the merged pair change, so
    each pair on the heap knows its words. A count on the heap may be out of date: then the pair goes back with the new
    one.
    """
    merges: dict[tuple[int, int], int] = {}
    numbers = {token: number for number, token in enumerate(tokens)}
    counts = count_pairs(words, times)
    holders = defaultdict(set)
    for n, word in enumerate(words):
        for pair in pairwise(word):
            holders[pair].add(n)
    heap = [(-counts[pair], pair, where) for pair, where in holders.items()]  # the smallest entry comes off first
    heapq.heapify(heap)
    while heap and len(tokens) < size:
        count, pair, where = heapq.heappop(heap)
        if -count != counts[pair]:
            heapq.heappush(heap, (-counts[pair], pair, where))
            continue
        if -count < least:
            break
        text = tokens[pair[0]] + tokens[pair[1]]
        merges[pair] = new = numbers.setdefault(text, len(tokens))  # it is there already if it is a special token
        if new == len(tokens):
            tokens.append(text)
        formed = defaultdict(set)
        for n in where:
            before, after = words[n], merge(words[n], pair, new)
            words[n] = after
            for old in pairwise(before):
                counts[old] -= times[n]
            for now in pairwise(after):
                counts[now] += times[n]
                if new in now:
                    formed[now].add(n)
        for now, where in formed.items():
            heapq.heappush(heap, (-counts[now], now, where))
    return merges


class BPE:
    """Byte-level byte-pair encoding, as GPT-2's: any text is a row of bytes, and frequent rows of bytes are tokens.

    ids: the number of each token, written in the `byte_alphabet`; merges: the pairs in the order in which they were
    learnt; special: tokens that are never split, such as ``<|endoftext|>``.
    """

    def __init__(self, ids: dict[str, int], merges: Iterable[tuple[str, str]], special: Iterable[str] = ()):
        self.ids, self.merges, self.special = ids, list(merges), list(special)
        self.tokens = {number: token for token, number in ids.items()}
        self.ranks: dict[tuple[int, int], int] = {}  # pair → its place in the order of learning
        parts = set()
        for rank, (first, second) in enumerate(self.merges):
            if not {first, second, first + second} <= ids.keys() or first + second in parts:
                raise ValueError(f"The merge of {first!r} and {second!r} comes too late, or lacks a token.")
            parts |= {first, second}
            self.ranks[ids[first], ids[second]] = rank
        self._known: dict[str, list[int]] = {}  # words met before and their tokens

    @classmethod
    def train(cls, texts: str | Iterable[str], size: int, special: Sequence[str] = (), least: int = 2) -> "BPE":
        """Learn ``size`` tokens: the special ones, the 256 bytes, and merges of pairs that occur ``least`` times.

        Merges never cross the border of a word (`WORDS`), so each different word is kept once, with its frequency.
        """
        if size < 256 + len(special):
            raise ValueError(f"A byte-level vocabulary needs at least {256 + len(special)} tokens; got {size}.")
        words = Counter(chain.from_iterable(map(WORDS.findall, [texts] if isinstance(texts, str) else texts)))
        if not words:
            raise ValueError("There is no text to learn from.")
        tokens = [*special, *sorted(BYTES)]
        if len(set(tokens)) < len(tokens):
            raise ValueError("Special tokens must differ from each other and from single bytes.")
        numbers = {token: number for number, token in enumerate(tokens)}
        rows = [[numbers[byte] for byte in spell(word)] for word in words]
        merges = learn_merges(rows, list(words.values()), tokens, size, max(least, 1))
        pairs = [(tokens[first], tokens[second]) for first, second in merges]
        return cls({token: number for number, token in enumerate(tokens)}, pairs, special)

    def save(self, file: str | Path) -> None:
        """Write it as a ``tokenizer.json``, which `course_lib.tokenizers.load` reads, and `tokenizers` too."""
        whole = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), False)  # taken as they stand
        added = [{"id": self.ids[token], "content": token, "special": True, **whole} for token in self.special]
        by_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        ids = dict(sorted(self.ids.items(), key=lambda item: item[1]))
        model = {"type": "BPE", "vocab": ids, "merges": self.merges}
        parts = {"version": "1.0", "added_tokens": added, "pre_tokenizer": by_bytes, "decoder": by_bytes}
        Path(file).write_text(json.dumps({**parts, "model": model}, ensure_ascii=False, indent=1), encoding="utf-8")

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str) -> Tensor:
        """The numbers of the text's tokens: (length)."""
        ids: list[int] = []
        for part in split_at(text, self.special):
            if part in self.special:
                ids.append(self.ids[part])
            else:
                for word in WORDS.findall(part):
                    if word not in self._known:
                        self._known[word] = self.encode_word(word)
                    ids += self._known[word]
        return torch.tensor(ids, dtype=torch.long)

    def encode_word(self, word: str) -> list[int]:
        """From its bytes on, merge the pair that was learnt first, until none is left that was learnt.

        Bytes that the vocabulary of a real tokenizer lacks are left out, as `tokenizers` does.
        """
        tokens = [self.ids[byte] for byte in spell(word) if byte in self.ids]
        while len(tokens) > 1:
            pair = min(pairwise(tokens), key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if pair not in self.ranks:
                break
            tokens = merge(tokens, pair, self.ids[self.tokens[pair[0]] + self.tokens[pair[1]]])
        return tokens

    def tokenise(self, text: str) -> list[str]:
        """The text's tokens in visible characters: ``"low lower"`` → ``["low", "Ġlow", "er"]``."""
        return [self.tokens[number] for number in self.encode(text).tolist()]

    def decode(self, ids: Iterable[int], skip_special: bool = False) -> str:
        """The text of the numbers. Bytes that are no whole character (half of a cut one) become �."""
        tokens = look_up(ids, self.tokens, self.special if skip_special else ())
        rows = (token.encode() if token in self.special else bytes(BYTE_OF[c] for c in token) for token in tokens)
        return b"".join(rows).decode(errors="replace")


def spell(word: str) -> str:
    """The word's UTF-8 bytes in the `byte_alphabet`: é → Ã©."""
    try:
        return "".join([BYTES[byte] for byte in word.encode()])
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise ValueError(f"The text holds {half!r}, half of a character, which has no bytes.") from None


def split_at(text: str, special: Sequence[str]) -> list[str]:
    """The text cut before and after each special token; the longest first, where one begins with another."""
    if not special:
        return [text]
    pattern = "|".join(re.escape(token) for token in sorted(special, key=len, reverse=True))
    return [part for part in re.split(f"({pattern})", text) if part]


def look_up(ids: Iterable[int], tokens: dict[int, str], skip: Iterable[str] = ()) -> list[str]:
    """The tokens of the numbers, but for those to skip."""
    try:
        found = [tokens[int(number)] for number in ids]
    except KeyError as error:
        raise ValueError(f"There is no token {error}; this tokenizer has {len(tokens)}.") from None
    return [token for token in found if token not in skip]
