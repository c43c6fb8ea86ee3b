"""What heads look at, how they are removed, and what the lesson on them measures with."""

import matplotlib.pyplot as plt
import pytest
import torch
from torch import nn

from course_lib import heads, tasks, viz
from course_lib.attention import MultiHeadAttention, causal_mask, merge_heads, padding_mask, split_heads
from course_lib.bert import Bert, BertShape
from course_lib.metrics import spearman

SMALL = BertShape(vocabulary=20, d=12, layers=2, heads=3, longest=16)


def close(got, wanted, tolerance=1e-5):
    torch.testing.assert_close(got, wanted, atol=tolerance, rtol=tolerance)


def encoder() -> Bert:
    model = Bert(SMALL).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


def test_merge_undoes_split():
    x = torch.randn(2, 5, 12)
    assert split_heads(x, 3).shape == (2, 3, 5, 4)
    assert torch.equal(split_heads(x, 3)[1, 2], x[1, :, 8:])
    assert torch.equal(merge_heads(split_heads(x, 3)), x)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("mask", [None, causal_mask(6, 6), padding_mask(torch.tensor([6, 2]), 6)], ids=str)
def test_multi_head_equals_pytorchs_and_the_librarys_layer(count, mask):
    theirs, ours = nn.MultiheadAttention(8, count, batch_first=True), MultiHeadAttention(8, count)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter)
    stored = theirs.in_proj_weight, theirs.in_proj_bias, theirs.out_proj.weight, theirs.out_proj.bias
    names = "qkv.weight", "qkv.bias", "output.weight", "output.bias"
    ours.load_state_dict(dict(zip(names, stored, strict=True)))
    x = torch.randn(2, 6, 8)
    out, weights = heads.multi_head(x, *stored, count, mask)
    hidden = None if mask is None else ~mask.expand(2, count, 6, 6).flatten(0, 1)
    for wanted in (
        theirs(x, x, x, attn_mask=hidden, average_attn_weights=False),
        ours(x, mask=mask, want_weights=True),
    ):
        close(out, wanted[0])
        close(weights, wanted[1])


def test_pattern_score_by_hand():
    weights = torch.tensor([[[[0.5, 0.3, 0.2], [0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]]])
    gold = torch.tensor([[[False, False, False], [True, False, False], [True, True, False]]])
    close(heads.pattern_score(weights, gold), torch.tensor([(0.7 + 0.3) / 2]))


def test_word_patterns():
    """[CLS] a b c [SEP], and [CLS] a [SEP] with filling."""
    found = heads.word_patterns(torch.zeros(2, 5, dtype=torch.long), torch.tensor([5, 3]))

    def links(name: str) -> list[list[int]]:
        return found[name].nonzero().tolist()

    assert links("previous word") == [[0, 2, 1], [0, 3, 2]]
    assert links("next word") == [[0, 1, 2], [0, 2, 3]]
    assert links("[CLS]") == [[0, 1, 0], [0, 2, 0], [0, 3, 0], [1, 1, 0]]
    assert links("[SEP]") == [[0, 1, 4], [0, 2, 4], [0, 3, 4], [1, 1, 2]]


def test_preference():
    weights = torch.zeros(2, 3, 4, 4)
    weights[0, 0, 3, 1], weights[0, 1, 3, 2], weights[1, 0, 2, 0], weights[1, 1, 2, 0] = 0.4, 0.5, 0.6, 0.2
    often, much = heads.preference(weights, torch.tensor([3, 2]), torch.tensor([1, 0]), torch.tensor([2, 1]))
    close(often, torch.tensor([1.0, 0.5, 0.0]))
    close(much, torch.tensor([0.5, 0.1, 0.0]))


def test_gates_of_one_change_nothing_and_gates_of_zero_remove_a_head():
    model, ids = encoder(), torch.randint(20, (2, 7))
    plain = model(ids)
    with heads.gated(model, torch.ones(2, 3)):
        close(model(ids), plain)
    gates = torch.ones(2, 3)
    gates[1, 2] = 0
    with heads.gated(model, gates):
        without = model(ids)
    assert (without - plain).abs().max() > 1e-3
    assert torch.equal(model(ids), plain), "afterwards the gates are gone"
    with torch.no_grad():  # the same, done to the weights
        model.stack.blocks[1].attention.output.weight[:, 8:12] = 0
    close(model(ids), without)


def test_gates_are_gone_also_after_an_error():
    model = encoder()
    with pytest.raises(RuntimeError), heads.gated(model, torch.ones(2, 3)):
        raise RuntimeError
    assert not any(block.attention.output._forward_pre_hooks for block in model.stack.blocks)
    with pytest.raises(ValueError, match="a gate for each of 3 heads; got 4"), heads.gated(model, torch.ones(2, 4)):
        pass


def test_importance_is_the_gradient_of_the_gates():
    model, examples = encoder(), [torch.randint(20, (1, 5)) for _ in range(3)]

    def loss(gates, ids):
        with heads.gated(model, gates):
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
    close((queries @ keys.mT / 2).softmax(dim=-1), torch.cat(model.attention_weights(ids[None])).detach())
    assert not any(block.attention.qkv._forward_hooks for block in model.stack.blocks)


def test_sentence_vectors_leave_padding_out():
    model, ids = encoder(), torch.randint(20, (2, 7))
    together, alone = model.sentence_vectors(ids, torch.tensor([7, 3])), model(ids[1:, :3])[0].mean(dim=0)
    close(together[1], alone / alone.norm())
    close(together.norm(dim=-1), torch.ones(2))


def test_spearman():
    x = torch.tensor([3.0, 1.0, 2.0, 2.0, 5.0])
    assert spearman(x, x.exp()) == pytest.approx(1)
    assert spearman(x, -x) == pytest.approx(-1)
    # by hand: ranks 4 1 2.5 2.5 5 and 1 2 3 4 5
    assert spearman(x, torch.arange(5.0)) == pytest.approx(3.5 / (9.5 * 10) ** 0.5)
    with pytest.raises(ValueError, match="Expected two rows of the same length"):
        spearman(x, x[:3])


def test_two_relations():
    symbols, targets = tasks.two_relations(torch.Generator().manual_seed(0), 3, 6)
    for guest in range(6):
        assert torch.equal(targets[:, guest, 0], symbols[:, guest - 1])
        assert torch.equal(targets[:, guest, 1], symbols[:, guest - 3])
    with pytest.raises(ValueError, match="even number of guests"):
        tasks.two_relations(torch.Generator(), 3, 5)


def test_bars():
    fig, ax = plt.subplots()
    viz.bars(ax, {"a": torch.tensor(0.25), "b": 1.0}, chance=0.5)
    assert [bar.get_width() for bar in ax.patches] == [0.25, 1.0]
    assert [text.get_text() for text in ax.texts] == ["0.25", "1.00"]
    assert ax.yaxis_inverted()
    plt.close(fig)
