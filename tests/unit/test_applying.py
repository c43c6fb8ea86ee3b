"""What lesson 10 adds: pooling and search, prompts and their probabilities, LoRA, the invented villages, the senses."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_lib import decoding, lora, prompting, retrieval, senses, villages
from course_lib.bert import Bert, BertShape, mean_pool
from course_lib.gpt import GPT, GPTShape
from course_lib.wordpiece import basic_words


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return Bert(BertShape(d=16, layers=2, heads=2, d_ff=32, vocabulary=40, longest=12)).eval()


@pytest.fixture
def lm():
    torch.manual_seed(0)
    return GPT(GPTShape(d=16, layers=2, heads=2, vocabulary=50, longest=64, positions="rotary", activation="swiglu"))


def test_mean_pool_gives_the_encoders_sentence_vectors(encoder):
    ids, lengths = torch.randint(40, (3, 9)), torch.tensor([9, 4, 1])
    pooled = mean_pool(encoder(ids, lengths), torch.arange(9) < lengths[:, None])
    torch.testing.assert_close(F.normalize(pooled, dim=-1), encoder.sentence_vectors(ids, lengths))


def test_mean_pool_without_tokens_is_zero():
    assert torch.equal(mean_pool(torch.randn(2, 3, 4), torch.zeros(2, 3, dtype=torch.bool)), torch.zeros(2, 4))


def test_exact_index_finds_what_cosine_search_finds():
    pytest.importorskip("faiss")
    queries, documents = torch.randn(20, 8), torch.randn(200, 8) * torch.rand(200, 1)
    cosines, places = retrieval.cosine_search(queries, documents, 5)
    found, where = retrieval.index(documents).search(F.normalize(queries, dim=-1).numpy(), 5)
    assert (torch.from_numpy(where) == places).all()
    torch.testing.assert_close(torch.from_numpy(found), cosines, atol=1e-5, rtol=1e-5)


def test_graph_index_finds_most():
    pytest.importorskip("faiss")
    queries, documents = torch.randn(50, 8), torch.randn(500, 8)
    _, places = retrieval.cosine_search(queries, documents, 1)
    _, where = retrieval.index(documents, neighbours=16).search(F.normalize(queries, dim=-1).numpy(), 1)
    assert (torch.from_numpy(where) == places).float().mean() > 0.8


def test_common_start_leaves_a_token_of_each_row():
    rows = [torch.tensor(row) for row in ([1, 2, 3, 4], [1, 2, 5], [1, 2])]
    assert prompting.common_start(rows) == 1
    assert prompting.common_start([torch.tensor([1, 2, 3])] * 2) == 2
    assert prompting.common_start([torch.tensor([1]), torch.tensor([1, 2])]) == 0
    assert prompting.common_start([torch.tensor([1, 2, 3]), torch.tensor([4, 2, 3])]) == 0


@pytest.mark.parametrize("shared", [0, 5])
def test_next_log_p_is_that_of_each_prompt_alone(lm, shared):
    start = torch.arange(shared)
    prompts = [torch.cat([start, torch.randint(50, (n,))]) for n in (3, 7, 1, 4, 6)]
    found = prompting.next_log_p(lm, prompts, batch=2, progress=False)
    alone = torch.stack([lm(row[None])[0, -1].log_softmax(dim=-1) for row in prompts])
    torch.testing.assert_close(found, alone.detach(), atol=1e-5, rtol=1e-4)


def test_next_log_p_refuses_a_table_of_places():
    model = GPT(GPTShape(d=16, layers=1, heads=2, vocabulary=50))
    with pytest.raises(ValueError, match="rotary"):
        prompting.next_log_p(model, [torch.tensor([1, 2])])


def test_lora_starts_as_the_model_and_merges_into_it(lm):
    ids, adapted = torch.randint(50, (2, 6)), copy.deepcopy(lm)
    before = lm(ids).detach()
    lora.adapt(adapted, adapted.stack.blocks[1:], rank=2, alpha=4.0)
    torch.testing.assert_close(adapted(ids), before)
    trained = {name for name, p in adapted.named_parameters() if p.requires_grad}
    assert trained
    assert all(name.startswith("stack.blocks.1.") and name.endswith((".A", ".B")) for name in trained)
    assert sum(isinstance(m, lora.LoRA) for m in adapted.modules()) == 4
    with torch.no_grad():
        for name, p in adapted.named_parameters():
            if name in trained:
                p.normal_()
    changed = adapted(ids).detach()
    assert not torch.allclose(changed, before, atol=1e-3)
    lora.merge(adapted)
    assert not any(isinstance(m, lora.LoRA) for m in adapted.modules())
    torch.testing.assert_close(adapted(ids), changed, atol=1e-4, rtol=1e-4)
    assert {n for n, _ in adapted.named_parameters()} == {n for n, _ in lm.named_parameters()}


def test_lora_needs_only_the_small_matrices():
    layer = lora.LoRA(nn.Linear(100, 50), rank=3, alpha=6)
    assert sum(p.numel() for p in layer.parameters() if p.requires_grad) == 3 * (100 + 50)


def test_villages_are_different_and_hold_their_answers():
    passages, questions = villages.invent(120, seed=1)
    assert len(set(passages)) == 120
    assert len(questions) == 480
    assert all(q.answer in passages[q.place] for q in questions)
    assert villages.invent(5, 1) == villages.invent(5, 1) != villages.invent(5, 2)
    with pytest.raises(ValueError, match="1 to 120"):
        villages.invent(121, 0)


def test_each_sentence_has_its_word_once():
    sentences = [
        (w, s) for source in (senses.SENSES, senses.USES) for w, k in source.items() for v in k.values() for s in v
    ]
    for word, sentence in sentences:
        assert basic_words(sentence, True).count(word) == 1, sentence
    for word in senses.USES:
        for said in senses.PERSONS.values():
            assert sum(basic_words(sentence, True).count(word) for sentence in said) == 1, word


@pytest.mark.parametrize("shared", [0, 5, 9])
def test_complete_writes_what_greedy_writes_for_each_prompt_alone(lm, shared):
    lm.double()  # so that no two scores are nearly equal
    start = torch.arange(shared)
    prompts = [torch.cat([start, torch.randint(50, (n,))]) for n in (3, 17, 1, 4, 6)]
    end = decoding.greedy(lm, prompts[0][None], 4)[0, -1].item()  # so that one text at least is over early
    found = prompting.complete(lm, prompts, new=6, end=end, batch=3)
    for prompt, text in zip(prompts, found, strict=True):
        alone = decoding.greedy(lm, prompt[None], 6, end)[0, len(prompt) :].tolist()
        assert text.tolist() == (alone[: alone.index(end)] if end in alone else alone)
    assert len(found[0]) < 4


@pytest.mark.parametrize("start", [0, 4])
def test_through_is_each_row_alone(lm, start):
    beginning = torch.randn(start, 16)
    rows = [torch.cat([beginning, torch.randn(n, 16)]) for n in (5, 2, 8, 3)]
    found = prompting.through(lm.stack.blocks, rows, start, batch=3, progress=False)
    for row, states in zip(rows, found, strict=True):
        alone = row[None]
        for block in lm.stack.blocks:
            alone, _ = block(alone)
        torch.testing.assert_close(states, alone[0].detach(), atol=1e-5, rtol=1e-4)


def test_an_index_leaves_torch_its_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        retrieval.index(torch.randn(50, 8), neighbours=4)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
