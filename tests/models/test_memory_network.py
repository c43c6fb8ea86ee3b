"""Memory networks: a hop by its formula, and what may and may not matter."""

import pytest
import torch

from course_lib.models.memory_network import MemoryNetwork, hop, linear_hop, linear_start


def test_one_hop_by_its_formula():
    torch.manual_seed(0)
    q, keys, values = torch.randn(2, 3), torch.randn(2, 4, 3), torch.randn(2, 4, 3)
    new, weights = hop(q, keys, values)
    for b in range(2):
        a = (keys[b] @ q[b]).softmax(0)
        assert torch.allclose(weights[b], a, atol=1e-6)
        assert torch.allclose(new[b], q[b] + a @ values[b], atol=1e-6)
    mask = torch.tensor([[True, True, False, False], [False] * 4])
    new, weights = hop(q, keys, values, mask)
    assert (weights[0, 2:] == 0).all()
    assert torch.equal(new[1], q[1])  # nothing to read: the question stays


def test_a_linear_hop_weighs_by_the_scores_themselves():
    q, keys, values = torch.randn(2, 3), torch.randn(2, 4, 3), torch.randn(2, 4, 3)
    mask = torch.tensor([[True] * 4, [True, False, False, True]])
    new, weights = linear_hop(q, keys, values, mask)
    assert torch.allclose(weights, (keys @ q[..., None])[..., 0] * mask, atol=1e-6)
    assert torch.allclose(new, q + (weights[:, None] @ values)[:, 0], atol=1e-5)
    assert torch.allclose(linear_hop(q, keys, values)[1][0], weights[0])


def test_a_linear_start_ends_with_its_block():
    def turned(*inputs):
        q, weights = hop(*inputs)
        return -q, weights

    torch.manual_seed(0)
    model = MemoryNetwork(words=9, answers=5, d=8, hops=2, facts=6, longest=4, hop=turned)
    facts, question = torch.randint(1, 9, (2, 3, 4)), torch.randint(1, 9, (2, 4))
    before = model(facts, question)
    with linear_start(model):
        assert not torch.allclose(model(facts, question), before, atol=1e-3)
    assert torch.equal(model(facts, question), before)


def test_missing_facts_do_not_count_and_the_order_of_facts_does():
    torch.manual_seed(0)
    model = MemoryNetwork(words=9, answers=5, d=8, hops=2, facts=6, longest=4)
    facts, question = torch.randint(1, 9, (2, 3, 4)), torch.randint(1, 9, (2, 4))
    padded = torch.cat([facts, torch.zeros(2, 2, 4, dtype=torch.long)], dim=1)
    scores, looks = model.look(facts, question)
    more, more_looks = model.look(padded, question)
    assert torch.allclose(scores, more, atol=1e-5)
    assert torch.allclose(more_looks[:, :, 3:], torch.zeros(2, 2, 2))
    assert looks.shape == (2, 2, 3)
    assert torch.equal(model(facts, question), scores)
    assert not torch.allclose(model(facts.flip(1), question), scores, atol=1e-4)


def test_too_many_facts_are_refused():
    model = MemoryNetwork(words=9, answers=5, d=8, hops=1, facts=2, longest=4)
    with pytest.raises(ValueError, match="at most 2 facts of 4 words"):
        model(torch.ones(1, 3, 4, dtype=torch.long), torch.ones(1, 4, dtype=torch.long))
    with pytest.raises(ValueError, match="at least one hop; got 0"):
        MemoryNetwork(9, 5, 8, 0, 2, 4)
