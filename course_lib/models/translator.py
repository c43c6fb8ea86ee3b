"""One sentence into another: an RNN, an RNN with attention, and a Transformer, under one interface.

    memory = model.encode(source, lengths)             # once for each sentence
    scores, weights = model.decode(target, memory)     # a score for each next token, after each token of the target

``source`` (batch, source length) is filled up at the end; ``lengths`` (batch) are the true lengths. ``target`` starts
with a start token. ``weights`` (batch, target length, source length) say where the decoder looks; None where it cannot.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from course_lib.models.attention import Alignment, context_vector, padding_mask
from course_lib.models.inputs import refuse_unfit_ids, refuse_unfit_numbers
from course_lib.models.positions import sinusoidal
from course_lib.models.transformer import Shape, Stack


@dataclass
class Encoded:
    """What the encoder hands to the decoder."""

    states: Tensor  # (batch, source length, d): one for each source token
    mask: Tensor  # (batch, source length): True at true tokens
    last: Tensor | None = None  # (1, batch, d): the one vector in which an RNN sums up the sentence


class Translator(nn.Module):
    """What the three have in common."""

    def __init__(self, source_words: int, target_words: int, d: int):
        super().__init__()
        self.d = d
        self.source_embed, self.target_embed = nn.Embedding(source_words, d), nn.Embedding(target_words, d)
        self.output = nn.Linear(d, target_words)

    def forward(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        """Scores of the next token after each token of ``target``: (batch, target length, target words)."""
        refuse_unfit_ids(target, self.target_embed.num_embeddings, what="target")  # before the source is encoded
        return self.decode(target, self.encode(source, lengths))[0]

    def _mask(self, source: Tensor, lengths: Tensor, longest: int | None = None) -> Tensor:
        """Where there is a true token, (batch, source length); what does not fit is refused first."""
        refuse_unfit_ids(source, self.source_embed.num_embeddings, longest, "source")
        if lengths.shape != source.shape[:1]:
            raise ValueError(
                "Expected source (batch, length) and lengths (batch); "
                f"got {tuple(source.shape)} and {tuple(lengths.shape)}."
            )
        refuse_unfit_numbers(lengths, source.shape[1] + 1, "lengths", lowest=1)
        return padding_mask(lengths, source.shape[1])[:, 0, 0]

    def _refuse_unfit_target(self, target: Tensor, memory: Encoded, longest: int | None = None) -> None:
        refuse_unfit_ids(target, self.target_embed.num_embeddings, longest, "target")
        if len(target) != len(memory.states):
            raise ValueError(f"Expected a target for each of {len(memory.states)} sources; got {len(target)}.")


class RNNTranslator(Translator):
    """A GRU reads the source into its last state; a second GRU starts from there and writes (Sutskever et al. 2014).

    With ``attention`` the decoder also looks back at all states of the encoder (Luong et al. 2015): by the general
    score, or by the `Alignment` that is given. ``look`` reads the states. With ``bidirectional`` half of the encoder's
    numbers come from a GRU that reads from the end (Bahdanau et al. 2015).
    """

    def __init__(
        self,
        source_words: int,
        target_words: int,
        d: int,
        attention: bool | Alignment,
        dropout: float = 0.0,
        look: Callable = context_vector,
        bidirectional: bool = False,
    ):
        super().__init__(source_words, target_words, d)
        if bidirectional and d % 2:
            raise ValueError(f"A bidirectional encoder's states are two equal halves: d must be even; got {d}.")
        self.encoder = nn.GRU(d, d // 2 if bidirectional else d, batch_first=True, bidirectional=bidirectional)
        self.decoder = nn.GRU(d, d, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.score = Alignment("general", d, longest=10**6) if attention is True else attention or None
        self.combine = nn.Linear(2 * d, d) if attention else None
        self.look = look

    def encode(self, source: Tensor, lengths: Tensor) -> Encoded:
        mask = self._mask(source, lengths)
        x = self.dropout(self.source_embed(source))
        if self.encoder.bidirectional:  # packed, or the GRU from the end would begin with what is filled up
            packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
            states, ends = self.encoder(packed)
            states, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=x.shape[1])
            return Encoded(states, mask, torch.cat([*ends], dim=-1)[None])
        states, _ = self.encoder(x)
        last = states[torch.arange(len(source), device=source.device), lengths - 1]  # after the last true token
        return Encoded(states, mask, last[None].contiguous())

    def decode(self, target: Tensor, memory: Encoded) -> tuple[Tensor, Tensor | None]:
        self._refuse_unfit_target(target, memory)
        h, _ = self.decoder(self.dropout(self.target_embed(target)), memory.last)  # (batch, target length, d)
        if self.score is None:
            return self.output(self.dropout(h)), None
        context, weights = self.look(h, memory.states, memory.mask[:, None], self.score)
        h = torch.tanh(self.combine(torch.cat([h, context], dim=-1)))
        return self.output(self.dropout(h)), weights


def decoder_block(x: Tensor, memory: Tensor, mask: Tensor, memory_mask: Tensor, block: nn.Module) -> Tensor:
    r"""The decoder's block of 2017 from its pieces: three times $x \leftarrow \text{LN}(x + f(x))$.

    x (batch, target length, d), memory (batch, source length, d) and their masks → (batch, target length, d)

    A post-norm `Block` does the same, and knows dropout, pre-norm and the cache.
    """
    x = block.attention_norm(x + block.attention(x, mask=mask))  # looks at the target itself
    x = block.cross_norm(x + block.cross(x, memory, mask=memory_mask))  # at the source
    return block.feed_forward_norm(x + block.feed_forward(x))


class TransformerTranslator(Translator):
    """Encoder and decoder of "Attention is all you need" (2017), pre-norm or post-norm."""

    def __init__(self, source_words: int, target_words: int, shape: Shape, longest: int = 256):
        super().__init__(source_words, target_words, shape.d)
        self.encoder = Stack(replace(shape, causal=False, cross=False))
        self.decoder = Stack(replace(shape, causal=True, cross=True))
        self.dropout = nn.Dropout(shape.dropout)
        self.register_buffer("places", sinusoidal(longest, shape.d), persistent=False)
        for embedding in (self.source_embed, self.target_embed):
            nn.init.normal_(embedding.weight, std=shape.d**-0.5)  # of length 1, times √d below: as large as the places

    def encode(self, source: Tensor, lengths: Tensor) -> Encoded:
        mask = self._mask(source, lengths, len(self.places))
        states = self.encoder(self._placed(self.source_embed(source)), mask[:, None, None])
        return Encoded(states, mask)

    def decode(self, target: Tensor, memory: Encoded) -> tuple[Tensor, None]:
        self._refuse_unfit_target(target, memory, len(self.places))
        x = self._placed(self.target_embed(target))
        h = self.decoder(x, memory=memory.states, memory_mask=memory.mask[:, None, None])
        return self.output(h), None

    def _placed(self, x: Tensor) -> Tensor:
        return self.dropout(x * self.d**0.5 + self.places[: x.shape[1]])
