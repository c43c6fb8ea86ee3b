r"""An encoder that reads a whole text at once, and small heads that make it serve any task (Devlin 2019).

$$x_i = \text{LN}(\text{token}_i + \text{segment}_i + \text{position}_i), \qquad h = \text{blocks}(x)$$

Pretraining fills blanks (`MaskedLM`) and tells whether one sentence follows the other (`NextSentence`); `Pretraining`
does both in one pass. Fine-tuning puts one new layer on top: `SentenceClassifier`, `Tagger`, `SpanFinder`.
All of them take the same three inputs:

- ids (batch, length): ``[CLS] first sentence [SEP]``, or ``[CLS] first [SEP] second [SEP]``.
- mask: what is text and what is padding. Lengths (batch,), or (batch, length), True (or 1) where there is a token.
- segments (batch, length): 0 for the first sentence, 1 for the second. All 0 if not given.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_lib.data.batches import IGNORED
from course_lib.models.inputs import refuse_unfit_ids, refuse_unfit_numbers
from course_lib.models.tied import TiedLinear
from course_lib.models.transformer import ACTIVATIONS, Shape, Stack, initialise, norm


@dataclass(frozen=True)
class BertShape(Shape):
    """A stack of post-norm blocks, in which every token sees every token. With ``causal``, the left-to-right rival."""

    vocabulary: int = 30_522
    longest: int = 512  # the most tokens it can see
    segments: int = 2
    pooler: bool = True  # checkpoints of models that never use it come without
    pre_norm: bool = False
    epsilon: float = 1e-12


def mean_pool(hidden: Tensor, mask: Tensor) -> Tensor:
    r"""One vector for each text, the mean of its tokens' vectors: $\sum_i m_i h_i / \sum_i m_i$.

    hidden (batch, length, d); mask (batch, length), True at tokens and False at filling → (batch, d). A text without
    any token is the zero vector.
    """
    kept = mask[..., None].to(hidden)  # (batch, length, 1): 1 or 0
    return (hidden * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1)


def true_tokens(ids: Tensor, mask: Tensor | None) -> Tensor:
    """Any kind of mask (see above) as True at tokens and False at filling: (batch, length)."""
    if mask is None:
        return torch.ones_like(ids, dtype=torch.bool)
    return torch.arange(ids.shape[1], device=ids.device) < mask[:, None] if mask.dim() == 1 else mask.bool()


class Bert(nn.Module):
    """The encoder: embeddings → norm → blocks. ``pooled`` sums a text up in one vector."""

    def __init__(self, shape: BertShape):
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocabulary, shape.d)
        self.places = nn.Embedding(shape.longest, shape.d)
        self.segments = nn.Embedding(shape.segments, shape.d)
        self.norm = norm(shape)
        self.dropout = nn.Dropout(shape.dropout)
        self.stack = Stack(shape)
        self.pooler = nn.Linear(shape.d, shape.d) if shape.pooler else None
        initialise(self)

    def forward(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """One vector for each token, which knows its whole text: (batch, length, d)."""
        x, mask = self._embedded(ids, mask, segments)
        return self.stack(x, mask)

    def pooled(self, hidden: Tensor) -> Tensor:
        r"""$\tanh(W h_{\text{[CLS]}} + b)$, one vector for each text: (batch, length, d) → (batch, d)."""
        if self.pooler is None:
            raise ValueError("This encoder has no pooler: its shape says pooler=False.")
        return torch.tanh(self.pooler(hidden[:, 0]))

    def sentence_vectors(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """The mean of each text's token vectors, made 1 long: (batch, d). Sentence encoders such as MiniLM use it."""
        return F.normalize(mean_pool(self(ids, lengths), true_tokens(ids, lengths)), dim=-1)

    def _embedded(self, ids: Tensor, mask: Tensor | None, segments: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The input of the first block, (batch, length, d), and what may be seen, (batch, 1, 1, length)."""
        segments = torch.zeros_like(ids) if segments is None else segments
        self._refuse_unfit(ids, mask, segments)
        length = ids.shape[1]
        places = torch.arange(length, device=ids.device)
        x = self.norm(self.embed(ids) + self.segments(segments) + self.places(places))
        if mask is not None:
            mask = true_tokens(ids, mask)[:, None, None]
        return self.dropout(x), mask

    def _refuse_unfit(self, ids: Tensor, mask: Tensor | None, segments: Tensor) -> None:
        refuse_unfit_ids(ids, self.shape.vocabulary, self.shape.longest)
        batch, length = ids.shape
        if segments.shape != ids.shape:
            raise ValueError(f"Expected a segment for each of the ids {(batch, length)}; got {tuple(segments.shape)}.")
        refuse_unfit_numbers(segments, self.shape.segments, "segments")
        if mask is not None:
            lengths = mask.shape == (batch,) and mask.dtype != torch.bool
            if mask.is_floating_point() or not (lengths or mask.shape == ids.shape):
                raise ValueError(
                    f"Expected as mask whole lengths of shape {(batch,)}, or True and False of shape "
                    f"{(batch, length)}; got {mask.dtype} of shape {tuple(mask.shape)}."
                )
            if lengths:
                refuse_unfit_numbers(mask, length + 1, "lengths")


class WordHead(nn.Module):
    r"""A score for each word of the vocabulary at each place: $E\, \text{LN}(g(W h)) + b$, $E$ the embedding (tied)."""

    def __init__(self, shape: BertShape):
        super().__init__()
        self.dense = nn.Linear(shape.d, shape.d)
        self.activation = ACTIVATIONS[shape.activation]
        self.norm = norm(shape)
        self.bias = nn.Parameter(torch.zeros(shape.vocabulary))
        self.read_out = TiedLinear()
        initialise(self)

    def forward(self, hidden: Tensor, embedding: Tensor) -> Tensor:
        """hidden (batch, length, d), embedding (vocabulary, d) → (batch, length, vocabulary)."""
        return self.read_out(self.norm(self.activation(self.dense(hidden))), embedding, self.bias)


class MaskedLM(nn.Module):
    """Fills blanks: (batch, length, vocabulary)."""

    def __init__(self, encoder: Bert):
        super().__init__()
        self.encoder, self.words = encoder, WordHead(encoder.shape)

    def forward(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return self.words(self.encoder(ids, mask, segments), self.encoder.embed.weight)


class NextSentence(nn.Module):
    """Does the second sentence follow the first (score 0) or come from elsewhere (score 1)? (batch, 2)"""

    def __init__(self, encoder: Bert):
        super().__init__()
        self.encoder, self.follows = encoder, new_layer(encoder, 2)

    def forward(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return self.follows(self.encoder.pooled(self.encoder(ids, mask, segments)))


class Pretraining(nn.Module):
    """Both tasks of BERT's pretraining in one pass: (batch, length, vocabulary) and (batch, 2)."""

    def __init__(self, encoder: Bert):
        super().__init__()
        self.encoder, self.words, self.follows = encoder, WordHead(encoder.shape), new_layer(encoder, 2)

    def forward(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> tuple[Tensor, Tensor]:
        hidden = self.encoder(ids, mask, segments)
        return self.words(hidden, self.encoder.embed.weight), self.follows(self.encoder.pooled(hidden))


class SentenceClassifier(nn.Module):
    """A class for a sentence, or for a pair (``segments`` tells them apart): (batch, classes). One class: a number.

    It reads [CLS], as BERT does; with ``mean`` the mean of the tokens, for encoders that were trained in this way.
    """

    def __init__(self, encoder: Bert, classes: int, mean: bool = False):
        super().__init__()
        self.encoder, self.classify, self.mean = encoder, new_layer(encoder, classes), mean
        self.dropout = nn.Dropout(encoder.shape.dropout)

    def summary(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        """What the new layer reads, one vector for each text: (batch, d)."""
        hidden = self.encoder(ids, mask, segments)
        return mean_pool(hidden, true_tokens(ids, mask)) if self.mean else self.encoder.pooled(hidden)

    def forward(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return self.classify(self.dropout(self.summary(ids, mask, segments)))


class Tagger(nn.Module):
    """A tag for each token: (batch, length, tags)."""

    def __init__(self, encoder: Bert, tags: int):
        super().__init__()
        self.encoder, self.tag = encoder, new_layer(encoder, tags)
        self.dropout = nn.Dropout(encoder.shape.dropout)

    def forward(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> Tensor:
        return self.tag(self.dropout(self.encoder(ids, mask, segments)))


class SpanFinder(nn.Module):
    """Where the answer starts and where it ends: two scores for each token, (batch, length) and (batch, length)."""

    def __init__(self, encoder: Bert):
        super().__init__()
        self.encoder, self.ends = encoder, new_layer(encoder, 2)

    def forward(self, ids: Tensor, mask: Tensor | None = None, segments: Tensor | None = None) -> tuple[Tensor, Tensor]:
        start, end = self.ends(self.encoder(ids, mask, segments)).unbind(dim=-1)
        return start, end


def new_layer(encoder: Bert, outputs: int) -> nn.Linear:
    """The one layer that a task adds."""
    layer = nn.Linear(encoder.shape.d, outputs)
    initialise(layer)
    return layer


def classify(hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    r"""The new layer of a task and its loss: scores $W h + b$, and the mean of $-\log p(\text{target})$.

    hidden (…, d), weight (classes, d), bias (classes), targets (…) → scores (…, classes) and one number. For a sentence
    … is (batch), for its tokens (batch, length). Targets of −100, such as those of padding, do not count.
    """
    scores = hidden @ weight.T + bias
    counted = targets != IGNORED
    log_p = scores[counted].log_softmax(dim=-1)  # (targets that count, classes)
    return scores, -log_p.gather(-1, targets[counted][:, None]).mean()


def best_spans(start: Tensor, end: Tensor, inside: Tensor, longest: int) -> Tensor:
    r"""The answer in each text: its first and last place $i \le j$ with the largest $\text{start}_i + \text{end}_j$.

    start, end and inside (batch, length) → (batch, 2). Both places lie where ``inside`` is True (in the passage, not in
    the question); an answer has at most ``longest`` tokens.
    """
    length = start.shape[1]
    places = torch.arange(length, device=start.device)
    further = places - places[:, None]  # (first, last): how far the last is from the first
    allowed = inside[:, :, None] & inside[:, None, :] & (further >= 0) & (further < longest)
    sums = (start[:, :, None] + end[:, None, :]).masked_fill(~allowed, -torch.inf)  # (batch, first, last)
    best = sums.flatten(1).argmax(dim=1)
    return torch.stack([best // length, best % length], dim=1)


def fine_tune(encoder: nn.Module, layers: int) -> int:
    """Let the upper ``layers`` blocks learn, and freeze the rest; returns how many numbers may change.

    0: all is frozen, and only what is put on top learns. As many as there are: all learns, the embeddings too. In
    between, the pooler learns with the blocks. May be called again with another number.
    """
    blocks = encoder.stack.blocks
    if not 0 <= layers <= len(blocks):
        raise ValueError(f"Expected from 0 to {len(blocks)} layers to fine-tune; got {layers}.")
    encoder.requires_grad_(layers == len(blocks))
    for block in blocks[len(blocks) - layers :]:
        block.requires_grad_(True)
    if encoder.pooler is not None:
        encoder.pooler.requires_grad_(layers > 0)
    return sum(p.numel() for p in encoder.parameters() if p.requires_grad)
