r"""Memory networks: attention that looks several times (Weston et al. 2015; Sukhbaatar et al. 2015).

A question $q$ is compared with the keys of all facts; what is read is added to the question, and the new question is
asked again. Each look is a *hop*: two facts that must be put together need two.

$$a = \text{softmax}(K q) \qquad q \leftarrow q + a V$$
"""

import contextlib
from collections.abc import Callable, Iterator
from itertools import pairwise

import torch
from torch import Tensor, nn

from course_lib.models.attention import masked_softmax
from course_lib.models.inputs import refuse_unfit_ids, refuse_unfit_numbers


def hop(q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """One look into the memory: the new question and what was looked at.

    q (batch, d), keys and values (batch, facts, d), mask (batch, facts): True where there is a fact
    → (batch, d), weights (batch, facts)
    """
    weights = masked_softmax(torch.einsum("bd,bnd->bn", q, keys), mask)
    return q + torch.einsum("bn,bnd->bd", weights, values), weights


def linear_hop(q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A `hop` without its softmax; see `linear_start`."""
    weights = torch.einsum("bd,bnd->bn", q, keys)
    weights = weights if mask is None else weights * mask
    return q + torch.einsum("bn,bnd->bd", weights, values), weights


class MemoryNetwork(nn.Module):
    """Facts and a question in, an answer out, after some hops.

    A fact is the sum of its words' vectors, each scaled by its place in the sentence, plus a vector for how long ago it
    was told: without the latter, *Joe went to the kitchen, Joe went to the bathroom* would have no order.
    There are hops + 1 such readings of the story. Hop i compares with reading i and takes from reading i + 1, so what
    one hop has found is in the language of the next one's keys (the paper's *adjacent* weights). Word 0 fills up short
    sentences and counts as nothing.
    """

    def __init__(
        self,
        words: int,
        answers: int,
        d: int,
        hops: int,
        facts: int,
        longest: int,
        std: float = 0.3,
        hop: Callable = hop,
    ):
        """``facts``: the most facts of a story; ``longest``: the most words of a sentence.

        ``std`` is that of the first weights: with 0.3 a question fits facts that share its words from the start.
        """
        super().__init__()
        if hops < 1:
            raise ValueError(f"A memory network needs at least one hop; got {hops}.")
        self.hops, self.facts, self.longest, self.hop = hops, facts, longest, hop
        self.words = nn.ModuleList(nn.Embedding(words, d, padding_idx=0) for _ in range(hops + 1))
        self.ages = nn.ModuleList(nn.Embedding(facts, d) for _ in range(hops + 1))
        self.answer = nn.Linear(d, answers, bias=False)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=std)
        for embedding in self.words:
            nn.init.zeros_(embedding.weight[0])
        places = torch.arange(1, longest + 1)[:, None] / longest
        widths = torch.arange(1, d + 1) / d
        self.register_buffer("order", 1 - places - widths * (1 - 2 * places), persistent=False)  # (longest, d)

    def forward(self, facts: Tensor, question: Tensor) -> Tensor:
        """Scores of the answers: (batch, answers). Arguments as of `look`."""
        return self.look(facts, question)[0]

    def look(self, facts: Tensor, question: Tensor) -> tuple[Tensor, Tensor]:
        """facts (batch, facts, words), oldest first; question (batch, words) → scores of the answers (batch, answers),
        and the weights of each hop (batch, hops, facts)."""
        refuse_unfit_ids(question, self.words[0].num_embeddings, self.longest, "question")
        if facts.dim() != 3 or facts.shape[1] > self.facts or facts.shape[2] > self.longest or facts.numel() == 0:
            raise ValueError(
                f"Expected at most {self.facts} facts of {self.longest} words: (batch, facts, words); "
                f"got {tuple(facts.shape)}."
            )
        if len(facts) != len(question):
            raise ValueError(f"Expected a question for each of {len(facts)} stories; got {len(question)}.")
        refuse_unfit_numbers(facts, self.words[0].num_embeddings, "words of facts")
        there = facts.any(dim=-1)  # (batch, facts)
        age = there.flip(1).cumsum(dim=1).flip(1).sub(1).clamp(min=0)  # 0 is the newest fact
        readings = [self._read(words, facts) + ages(age) for words, ages in zip(self.words, self.ages, strict=True)]
        q, looks = self._read(self.words[0], question), []
        for keys, values in pairwise(readings):
            q, weights = self.hop(q, keys, values, there)
            looks.append(weights)
        return self.answer(q), torch.stack(looks, dim=1)

    def _read(self, embedding: nn.Embedding, words: Tensor) -> Tensor:
        """One vector for each sentence: (…, words) → (…, d)."""
        return (embedding(words) * self.order[: words.shape[-1]]).sum(dim=-2)


@contextlib.contextmanager
def linear_start(network: MemoryNetwork) -> Iterator[None]:
    """Inside the ``with`` block all hops are linear: a network that starts to learn in this way is less often stuck."""
    hop, network.hop = network.hop, linear_hop
    try:
        yield
    finally:
        network.hop = hop
