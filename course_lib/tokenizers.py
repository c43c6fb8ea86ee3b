"""From text to numbers and back."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn


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
