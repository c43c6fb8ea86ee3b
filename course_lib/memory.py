r"""Memory networks: attention that looks several times (Weston et al. 2015; Sukhbaatar et al. 2015).

A question $q$ is compared with the keys of all facts; what is read is added to the question, and the new question is
asked again. Each look is a *hop*: two facts that must be put together need two.

$$a = \text{softmax}(K q) \qquad q \leftarrow q + a V$$
"""

import torch
from torch import Tensor, nn

from course_lib.attention import masked_softmax


def hop(q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """One look into the memory: the new question and what was looked at.

    q (batch, d), keys and values (batch, facts, d), mask (batch, facts): True where there is a fact
    → (batch, d), weights (batch, facts)
    """
    weights = masked_softmax(torch.einsum("bd,bnd->bn", q, keys), mask)
    return q + torch.einsum("bn,bnd->bd", weights, values), weights


class MemoryNetwork(nn.Module):
    """Facts and a question in, an answer out, after some hops.

    A fact is the sum of its words' vectors, each scaled by its place in the sentence, plus a vector for how long ago it
    was told: without the latter, *Joe went to the kitchen, Joe went to the bathroom* would have no order.
    Word 0 fills up short sentences and counts as nothing.
    """

    def __init__(self, words: int, answers: int, d: int, hops: int, facts: int, longest: int):
        """``facts``: the most facts of a story; ``longest``: the most words of a sentence."""
        super().__init__()
        if hops < 1:
            raise ValueError(f"A memory network needs at least one hop; got {hops}.")
        self.hops, self.facts, self.longest = hops, facts, longest
        self.key, self.value, self.question = (nn.Embedding(words, d, padding_idx=0) for _ in range(3))
        self.key_age, self.value_age = nn.Embedding(facts, d), nn.Embedding(facts, d)
        self.between = nn.Linear(d, d, bias=False)  # the question changes its form from hop to hop
        self.answer = nn.Linear(d, answers)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.1)
        for embedding in (self.key, self.value, self.question):
            nn.init.zeros_(embedding.weight[0])
        places = torch.arange(1, longest + 1)[:, None] / longest
        widths = torch.arange(1, d + 1) / d
        self.register_buffer("order", 1 - places - widths * (1 - 2 * places), persistent=False)  # (longest, d)

    def forward(self, facts: Tensor, question: Tensor) -> tuple[Tensor, Tensor]:
        """facts (batch, facts, words), oldest first; question (batch, words) → scores of the answers (batch, answers),
        and the weights of each hop (batch, hops, facts)."""
        if facts.dim() != 3 or facts.shape[1] > self.facts or facts.shape[2] > self.longest:
            raise ValueError(
                f"Expected at most {self.facts} facts of {self.longest} words: (batch, facts, words); "
                f"got {tuple(facts.shape)}."
            )
        there = facts.any(dim=-1)  # (batch, facts)
        age = there.flip(1).cumsum(dim=1).flip(1).sub(1).clamp(min=0)  # 0 is the newest fact
        keys = self._read(self.key, facts) + self.key_age(age)
        values = self._read(self.value, facts) + self.value_age(age)
        q, looks = self._read(self.question, question), []
        for i in range(self.hops):
            q, weights = hop(q if i == 0 else self.between(q), keys, values, there)
            looks.append(weights)
        return self.answer(q), torch.stack(looks, dim=1)

    def _read(self, embedding: nn.Embedding, words: Tensor) -> Tensor:
        """One vector for each sentence: (…, words) → (…, d)."""
        return (embedding(words) * self.order[: words.shape[-1]]).sum(dim=-2)
