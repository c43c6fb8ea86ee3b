"""What heads look at, and how much each one matters."""

import torch

from course_lib.measure import heads
from course_lib.models.attention import multi_head
from course_lib.models.bert import Bert, BertShape
from course_lib.models.inside import gated, recorded

SMALL = BertShape(vocabulary=20, d=12, layers=2, heads=3, longest=16)


def close(got, wanted, tolerance=1e-5):
    torch.testing.assert_close(got, wanted, atol=tolerance, rtol=tolerance)


def encoder() -> Bert:
    model = Bert(SMALL).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


def test_pattern_score_by_hand():
    weights = torch.tensor([[[[0.5, 0.3, 0.2], [0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]]])
    gold = torch.tensor([[[False, False, False], [True, False, False], [True, True, False]]])
    close(heads.pattern_score(weights, gold), torch.tensor([(0.7 + 0.3) / 2]))


def test_importance_is_the_gradient_of_the_gates():
    model, examples = encoder(), [torch.randint(20, (1, 5)) for _ in range(3)]

    def loss(gates, ids):
        with gated(model, gates):
            return model(ids)[0, 0, 0]

    found, step = heads.head_importance(loss, torch.ones(2, 3), examples), 1e-2
    for layer, head in ((0, 0), (1, 2)):
        more, less = torch.ones(2, 3), torch.ones(2, 3)
        more[layer, head], less[layer, head] = 1 + step, 1 - step
        with torch.no_grad():
            wanted = sum(abs(loss(more, ids) - loss(less, ids)) for ids in examples) / 3 / (2 * step)
        close(found[layer, head], wanted, 1e-2)


def test_queries_and_keys_give_the_weights():
    model, ids = encoder(), torch.randint(20, (6,))
    queries, keys = heads.queries_and_keys(model, ids)
    assert queries.shape == keys.shape == (2, 3, 6, 4)
    close((queries @ keys.mT / 2).softmax(dim=-1), torch.cat(recorded(model, "attention", ids[None])).detach())
    assert not any(block.attention.qkv._forward_hooks for block in model.stack.blocks)


def test_what_heads_add_is_what_the_layer_gives():
    weights, v, W_o = torch.rand(2, 3, 4, 5).softmax(dim=-1), torch.randn(2, 3, 5, 2), torch.randn(7, 6)
    added = heads.head_contributions(weights, v, W_o)
    assert added.shape == (2, 3, 4, 7)
    close(added.sum(dim=1), (weights @ v).transpose(1, 2).flatten(2) @ W_o.T)


def test_two_heads_by_hand_answer_both_questions():
    symbols = torch.randint(8, (4, 8))
    targets = torch.stack([symbols.roll(1, dims=1), symbols.roll(4, dims=1)], dim=-1)
    W_qkv, W_o = heads.two_heads_by_hand(1, 4, 8)
    x = torch.cat([torch.eye(8)[symbols], torch.eye(8).expand(4, 8, 8)], dim=-1)
    output, weights = multi_head(x, W_qkv, torch.zeros(48), W_o, torch.zeros(16), heads=2)
    assert torch.equal(output.unflatten(-1, (2, 8)).argmax(dim=-1), targets)
    assert weights.amax(dim=-1).min() > 0.99


def test_random_rivals_are_as_many_in_each_layer():
    kept = torch.tensor([[True, True, True, False], [False, False, False, False], [False, True, False, False]])
    drawn = torch.stack([heads.as_many_at_random(kept, seed) for seed in range(400)])
    assert torch.equal(drawn.sum(dim=-1), torch.tensor([3, 0, 1]).expand(400, 3))
    close(drawn.float().mean(dim=0), torch.tensor([0.75, 0, 0.25])[:, None].expand(3, 4), 0.1)
    assert torch.equal(heads.as_many_at_random(kept, 7), heads.as_many_at_random(kept, 7))


def test_one_head_by_hand_names_both():
    W_qkv, W_o, read_out = heads.one_head_by_hand(8)
    symbols = torch.randint(8, (300, 8), generator=torch.Generator().manual_seed(0))
    x = torch.cat([torch.nn.functional.one_hot(symbols, 8), torch.eye(8).expand(300, 8, 8)], dim=-1).float()
    out, _ = multi_head(x, W_qkv, torch.zeros(48), W_o, torch.zeros(16), heads=1)
    named = torch.einsum("bld,asd->blas", out, read_out).argmax(dim=-1)
    assert torch.equal(named, torch.stack([symbols.roll(1, dims=1), symbols.roll(4, dims=1)], dim=-1))
