"""Each way of decoding equals transformers' `generate` on the same weights, or its own definition written naively."""

import pytest
import torch
from comparing import RUN, close, same, seeds
from torch import nn
from torch.nn import functional as F

from course_lib import decoding, pretrained
from course_lib.decoding import (
    Filters,
    beam_search,
    contrastive_search,
    exhaustive,
    greedy,
    log_probability,
    pieces,
    sample,
)
from course_lib.decoding.speculative import acceptance, speculative
from course_lib.fast.next_token import Matrix, NextToken, PackedMatrix
from course_lib.models.gpt import GPT, GPTShape
from course_lib.models.positions import alibi

CASES = pytest.mark.parametrize("seed", seeds(4))
# Llama's norms compute in float32 even in a double model, and near ties may then fall either way: fixed seeds only.
PAIRS = pytest.mark.parametrize(
    ("family", "seed"), [*(("gpt2", seed) for seed in seeds(4)), ("llama", 0), ("llama", 1)]
)
WORDS, LENGTH, NEW = 23, 4, 10


def pair(family: str, seed: int) -> tuple[GPT, nn.Module, torch.Tensor]:
    """A small random model of ours, transformers' with the same weights, and three prompts."""
    from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

    if torch.get_default_device().type == "mps":
        pytest.skip("MPS has no double precision.")
    torch.manual_seed(seed)
    ends = {"bos_token_id": None, "eos_token_id": None, "vocab_size": WORDS}
    if family == "gpt2":
        theirs = GPT2LMHeadModel(GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=32, **ends))
    else:
        theirs = LlamaForCausalLM(
            LlamaConfig(
                hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
                num_key_value_heads=2, max_position_embeddings=32, tie_word_embeddings=True, **ends,
            )
        )  # fmt: skip
    for parameter in theirs.parameters():  # as they start, random models find every token about equally likely
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    theirs = theirs.eval().double()  # so that near ties fall the same way in both
    state = {name: tensor for name, tensor in theirs.state_dict().items() if name != "lm_head.weight"}
    ours = getattr(pretrained, family)(theirs.config.to_dict(), state, longest=32).double()
    return ours, theirs, torch.randint(WORDS, (3, LENGTH))


def generate(theirs: nn.Module, ids: torch.Tensor, end: int | None, **settings):
    return theirs.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=NEW, eos_token_id=end, pad_token_id=end or 0,
        **settings,
    )  # fmt: skip


def uncached(model: nn.Module):
    return lambda ids: model(ids)


def small(seed: int, words: int = 5, **changes) -> GPT:
    """Double, so that cached and uncached fall the same way; weights large enough for clear preferences."""
    torch.manual_seed(seed)
    model = GPT(GPTShape(**{"d": 16, "layers": 2, "heads": 2, "vocabulary": words, "longest": 24} | changes))
    for parameter in model.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return model.double().eval()


class Table:
    """A model that looks at the last token alone. table (vocabulary, vocabulary): probabilities of the next."""

    def __init__(self, table: torch.Tensor):
        self.table = table

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table.log()[ids]


def random_table(words: int, seed: int) -> Table:
    return Table(torch.randn(words, words, generator=torch.Generator().manual_seed(seed)).mul(1.5).softmax(-1))


@PAIRS
@pytest.mark.compares("greedy", "transformers' generate, token for token")
@pytest.mark.usefixtures("device")
def test_greedy_equals_generate(family, seed):
    ours, theirs, ids = pair(family, seed)
    whole = greedy(ours, ids, NEW)
    assert whole.shape == (3, LENGTH + NEW)
    same(whole, generate(theirs, ids, None, do_sample=False), "no end")
    for end in {int(whole[0, LENGTH + 3]), int(whole[1, LENGTH + 6]), int(whole[2, LENGTH])}:
        expected = generate(theirs, ids, end, do_sample=False)
        same(greedy(ours, ids, NEW, end), expected, f"end {end}")
        same(greedy(uncached(ours), ids, NEW, end), expected, f"end {end}, uncached")
    alone = greedy(ours, ids[:1], NEW, int(whole[0, LENGTH]))
    assert alone.shape == (1, LENGTH + 1)  # stops at once


@pytest.mark.parametrize("early_stopping", [False, True, "never"])
@PAIRS
@pytest.mark.compares("beam_search", "transformers' generate, token for token")
@pytest.mark.usefixtures("device")
def test_beam_search_equals_generate(family, seed, early_stopping):
    ours, theirs, ids = pair(family, seed)
    likely = beam_search(ours, ids, NEW, 3)[0][0, 0, LENGTH:]
    for beams, length_penalty, end in (
        (1, 1.0, None), (2, 0.0, int(likely[2])), (3, 1.0, int(likely[0])), (4, 2.0, int(likely[4])),
        (5, -1.0, int(likely[1])), (5, 1.0, None), (5, 0.6, int(likely[3])),
    ):  # fmt: skip
        what = f"{beams} beams, length penalty {length_penalty}, end {end}"
        if beams == 1:  # transformers' generate turns to greedy
            expected = generate(theirs, ids, end, do_sample=False)
            same(beam_search(ours, ids, NEW, 1, length_penalty, early_stopping, end)[0][:, 0], expected, what)
            continue
        expected = generate(
            theirs, ids, end, do_sample=False, num_beams=beams, num_return_sequences=beams, output_scores=True,
            length_penalty=length_penalty, early_stopping=early_stopping, return_dict_in_generate=True,
        )  # fmt: skip
        texts, scores = beam_search(ours, ids, NEW, beams, length_penalty, early_stopping, end)
        same(texts.flatten(0, 1), expected.sequences, what)
        close(scores.flatten(), expected.sequences_scores, what)
        again, _ = beam_search(uncached(ours), ids, NEW, beams, length_penalty, early_stopping, end)
        same(again, texts, f"{what}, uncached")


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.compares("greedy and beam_search to the model's last place", "transformers' generate, token for token")
def test_the_last_new_token_needs_no_place_in_the_model(family):
    """It is written and never read: 32 places are enough for 33 tokens."""
    ours, theirs, _ = pair(family, 0)
    ids = torch.randint(WORDS, (3, ours.shape.longest + 1 - NEW))
    same(greedy(ours, ids, NEW), generate(theirs, ids, None, do_sample=False), "greedy")
    same(greedy(uncached(ours), ids, NEW), greedy(ours, ids, NEW), "uncached")
    expected = generate(theirs, ids, None, do_sample=False, num_beams=3)
    same(beam_search(ours, ids, NEW, 3)[0][:, 0], expected, "3 beams")
    at_random = sample(ours, ids, NEW, generator=torch.Generator().manual_seed(0))
    assert torch.equal(sample(uncached(ours), ids, NEW, generator=torch.Generator().manual_seed(0)), at_random)
    same(
        speculative(ours, ours, ids, NEW, filters=decoding.Filters(temperature=0))[0], greedy(ours, ids, NEW), "drafted"
    )


def left_padded(prompts: list[torch.Tensor], filler: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    ids = nn.utils.rnn.pad_sequence(prompts, True, filler, padding_side="left")
    return ids, torch.tensor([len(prompt) for prompt in prompts])


@PAIRS
@pytest.mark.compares("greedy, sample", "transformers' generate with left padding")
def test_prompts_of_different_length_equal_generate_with_left_padding(family, seed):
    ours, theirs, _ = pair(family, seed)
    prompts = [torch.randint(WORDS, (length,)) for length in (4, 1, 7, 2)]
    ids, lengths = left_padded(prompts)
    mask = (torch.arange(7) >= 7 - lengths[:, None]).long()
    whole = greedy(ours, ids, NEW, lengths=lengths)
    for end in (None, int(whole[0, 9])):
        settings = {"attention_mask": mask, "max_new_tokens": NEW, "eos_token_id": end, "pad_token_id": end or 0}
        expected = theirs.generate(ids, do_sample=False, **settings)
        for model in (ours, lambda ids, skip: ours(ids, skip=skip)):
            same(greedy(model, ids, NEW, end, lengths), expected, f"greedy, end {end}")
        torch.manual_seed(seed)
        expected = theirs.generate(ids, do_sample=True, temperature=0.8, top_k=9, **settings)
        torch.manual_seed(seed)
        found = sample(ours, ids, NEW, Filters(temperature=0.8, top_k=9), end, lengths=lengths)
        same(found, expected, f"sample, end {end}")


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary", "alibi", "none"])
@CASES
def test_prompts_of_different_length_equal_each_alone(seed, positions):
    model = small(seed, words=WORDS, positions=positions)
    prompts = [torch.randint(WORDS, (length,)) for length in (3, 6, 1)]
    ids, lengths = left_padded(prompts, filler=5)
    colder = Filters(repetition_penalty=1.5, temperature=0)  # a filler is no repetition
    for decode in (
        lambda ids, lengths=None: greedy(model, ids, 9, lengths=lengths),
        lambda ids, lengths=None: sample(model, ids, 9, colder, lengths=lengths),
    ):
        together = decode(ids, lengths)
        same(together[:, :6], ids, "the prompts come back as they went in")
        for prompt, row in zip(prompts, together, strict=True):
            same(row[6 - len(prompt) :], decode(prompt[None])[0], f"{len(prompt)} tokens, {positions}")


@CASES
@pytest.mark.compares("temperature, top-k, top-p, min-p, repetition penalty", "transformers' processors")
def test_filters_equal_transformers_processors(seed):
    from transformers import (
        LogitsProcessorList,
        MinPLogitsWarper,
        RepetitionPenaltyLogitsProcessor,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    torch.manual_seed(seed)
    logits, ids = 3 * torch.randn(6, WORDS), torch.randint(WORDS, (6, 9))
    logits[:, 3] = logits[:, 5]  # a tie
    before = logits.clone()
    for value in (0.3, 0.9, 1.7):
        same(decoding.temperature(logits, value), TemperatureLogitsWarper(value)(ids, logits), "temperature")
        theirs = RepetitionPenaltyLogitsProcessor(value)(ids, logits)
        same(decoding.repetition_penalty(logits, ids, value), theirs, "repetition penalty")
    for k in (1, 2, 7, WORDS, WORDS + 5):
        same(pieces.top_k(logits, k), TopKLogitsWarper(k)(ids, logits), f"top k {k}")
    for p in (0.01, 0.1, 0.5, 0.92, 1.0):
        same(pieces.top_p(logits, p), TopPLogitsWarper(p)(ids, logits), f"top p {p}")
        same(decoding.min_p(logits, p), MinPLogitsWarper(p)(ids, logits), f"min p {p}")
    theirs = LogitsProcessorList(
        [
            RepetitionPenaltyLogitsProcessor(1.3), TemperatureLogitsWarper(0.8), TopKLogitsWarper(12),
            TopPLogitsWarper(0.9), MinPLogitsWarper(0.05),
        ]
    )  # fmt: skip
    filters = Filters(repetition_penalty=1.3, temperature=0.8, top_k=12, top_p=0.9, min_p=0.05)
    same(filters(logits, ids).softmax(-1), theirs(ids, logits).softmax(-1), "all together")
    same(logits, before, "the input, which must not change")
    same(decoding.temperature(logits, 0).softmax(-1).argmax(-1), logits.argmax(-1), "temperature 0")
    close(decoding.temperature(logits, 0).softmax(-1).amax(-1), torch.ones(6), "temperature 0")


def test_nucleus_is_the_smallest_set_of_its_probability():
    logits = torch.tensor([[0.1, 0.4, 0.2, 0.3]]).log()
    for p, kept in ((0.35, [1]), (0.45, [1, 3]), (0.75, [1, 2, 3]), (0.95, [0, 1, 2, 3])):
        assert pieces.top_p(logits, p)[0].isfinite().nonzero()[:, 0].tolist() == kept
    assert pieces.top_p(torch.zeros(1, 4), 0.5).isfinite().sum() == 2  # exactly p is enough


@PAIRS
@pytest.mark.compares("sample", "transformers' generate, token for token")
def test_sampling_equals_generate_with_the_same_seed(family, seed):
    ours, theirs, ids = pair(family, seed)
    settings = {"temperature": 0.9, "top_k": 15, "top_p": 0.95, "min_p": 0.02, "repetition_penalty": 1.2}
    for end in (None, 7):
        torch.manual_seed(seed)
        expected = generate(theirs, ids, end, do_sample=True, **settings)
        torch.manual_seed(seed)
        same(sample(ours, ids, NEW, Filters(**settings), end), expected, f"end {end}")
    generators = [torch.Generator().manual_seed(seed) for _ in range(2)]
    one, other = (sample(m, ids, NEW, generator=g) for m, g in zip((ours, uncached(ours)), generators, strict=True))
    same(one, other, "cached and uncached")
    same(sample(ours, ids, NEW, Filters(temperature=0)), greedy(ours, ids, NEW), "temperature 0")
    same(sample(ours, ids, NEW, Filters(top_k=1)), greedy(ours, ids, NEW), "top 1")


@PAIRS
def test_beam_search_at_random_equals_generate_with_the_same_seed(family, seed):
    ours, theirs, ids = pair(family, seed)
    for length_penalty, end in ((1.0, None), (0.0, 7)):
        torch.manual_seed(seed)
        expected = generate(
            theirs, ids, end, do_sample=True, num_beams=3, num_return_sequences=3, length_penalty=length_penalty,
            top_k=0, top_p=1.0,
        )  # fmt: skip
        torch.manual_seed(seed)
        texts, _ = beam_search(ours, ids, NEW, 3, length_penalty, end=end, step=decoding.extend_at_random)
        same(texts.flatten(0, 1), expected, f"length penalty {length_penalty}, end {end}")


def test_rules_side_by_side_act_each_on_its_own_texts():
    logits, ids = torch.randn(6, WORDS), torch.randint(WORDS, (6, 4))
    rules = [Filters(top_k=2), Filters(repetition_penalty=1.5), lambda z, _: -z]
    expected = torch.cat([rule(logits[i : i + 2], ids[i : i + 2]) for rule, i in zip(rules, (0, 2, 4), strict=True)])
    same(decoding.one_filter_each(rules)(logits, ids), expected, "side by side")


def test_greedy_misses_the_most_probable_text():
    """The lectures' tree: the likely first word leads to an unlikely text."""
    start, yes, ok, _ = range(4)
    table = torch.tensor([[0, 0.5, 0.4, 0.1], [0, 0.4, 0.3, 0.3], [0, 0.2, 0.7, 0.1], [0, 0.4, 0.3, 0.3]])
    tree, ids = Table(table), torch.tensor([[start]])
    found = greedy(tree, ids, 2)
    assert found.tolist() == [[start, yes, yes]]
    close(log_probability(tree, found, given=1).exp(), torch.tensor([0.20]), "yes yes")
    texts, scores = exhaustive(tree, ids, 2)
    assert texts[0].tolist() == [start, ok, ok]
    close(scores[0].exp(), torch.tensor(0.28), "ok ok")
    close(scores.exp().sum(), torch.tensor(1.0), "all texts")
    for beams, best in ((1, [yes, yes]), (2, [ok, ok]), (3, [ok, ok])):
        assert beam_search(tree, ids, 2, beams)[0][0, 0].tolist() == [start, *best]


@pytest.mark.parametrize("seed", seeds(4, 1045))  # 1045: two texts have one score, and either may come first
@pytest.mark.compares("beam_search with a wide beam", "exhaustive search")
def test_a_wide_beam_is_exhaustive_search(seed):
    model = small(seed, words=4)
    prompt = torch.randint(4, (1, 3), generator=torch.Generator().manual_seed(seed))
    texts, scores = exhaustive(model, prompt, 3)
    assert texts.shape == (64, 6)
    close(scores.exp().sum(), torch.tensor(1.0), "all texts")
    beam_texts, beam_scores = beam_search(model, prompt, 3, beams=64, length_penalty=0.0)
    same(sorted(beam_texts[0].tolist()), sorted(texts.tolist()), "every text")
    close(beam_scores[0], scores, "scores, best first")
    close(beam_scores[0], log_probability(model, beam_texts[0], given=3), "each text has its own score")
    narrow = [beam_search(model, prompt, 3, beams, 0.0)[1][0, 0] for beams in (1, 16)]
    assert narrow[0] <= scores[0] + 1e-6
    close(narrow[1], scores[0], "16 beams hold all beginnings of 2 tokens")


@pytest.mark.parametrize("pieces", [1, 2, 3])
@CASES
@pytest.mark.parametrize("dtype", [torch.double, torch.float], ids=["double", "float"])
def test_the_quick_way_equals_the_model(seed, pieces, dtype, monkeypatch):
    """Every shape that `NextToken` says it fits, for one text and for several, in one piece and in more.

    In single precision, several rows go through packed matrices where there are such."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: pieces)
    allowed = 1e-12 if dtype is torch.double else 1e-5
    for changes in (
        {}, {"positions": "sinusoidal"}, {"positions": "rotary", "norm": "rms", "activation": "swiglu", "bias": False},
        {"heads": 4, "kv_heads": 2, "positions": "rotary"}, {"heads": 4, "kv_heads": 1}, {"positions": "none"},
    ):  # fmt: skip
        model = small(seed, words=WORDS, **changes).to(dtype)
        assert NextToken.fits(model)
        for batch in (1, 3):
            quick = NextToken(model, batch)
            packed = batch > 1 and dtype is torch.float and torch.backends.mkldnn.is_available()
            assert isinstance(quick.read_out, PackedMatrix if packed else Matrix)
            ids, skip = torch.randint(WORDS, (batch, 8)), torch.randint(4, (batch,))
            for settings in ({}, {"skip": skip}):
                one, other = model.make_caches(batch), model.make_caches(batch)
                for caches in (one, other):
                    model(ids[:, :5], caches, **settings)
                for t in range(5, 8):
                    expected = model(ids[:, t : t + 1], one, **settings)[:, 0]
                    close(quick(ids[:, t], other, **settings), expected, f"{changes}, batch {batch}", allowed)
                    assert other[0].length == t + 1
        x = torch.randn(3, 16, dtype=dtype)
        linear = model.stack.blocks[0].attention.qkv
        close(Matrix(linear.weight, linear.bias)(x), linear(x), "one matrix", allowed)


def test_the_quick_way_is_not_taken_where_it_would_be_another_model():
    model = small(0)
    assert NextToken.fits(model)
    assert not NextToken.fits(uncached(model))
    for changes in ({"pre_norm": False}, {"positions": "alibi"}):
        assert not NextToken.fits(small(0, **changes))
    assert not NextToken.fits(small(0, dropout=0.1).train())
    assert NextToken.fits(small(0, dropout=0.1))

    class Other(nn.Linear):
        pass

    changed = small(0)
    changed.stack.blocks[1].attention.output = Other(16, 16)
    assert not NextToken.fits(changed)
    changed = small(0)
    changed.stack.blocks[1].combine = lambda x, layers, norms, pre_norm: x
    assert not NextToken.fits(changed)
    changed = small(0, positions="none")
    changed.stack.blocks[1].attention.alibi = alibi
    assert not NextToken.fits(changed)
    with model.stack.blocks[0].attention.register_forward_hook(lambda *_: None):
        assert not NextToken.fits(model)
    assert NextToken.fits(model)


def test_what_is_written_can_be_trained_on():
    """The quick way computes in inference mode; its tokens are ordinary ones all the same."""
    model = small(0)
    for texts in (
        greedy(model, torch.zeros(1, 2, dtype=torch.long), 5),
        beam_search(model, torch.ones(1, 2).long(), 5)[0][0],
    ):
        model(texts).sum().backward()
        assert model.embed.weight.grad.abs().sum() > 0


@CASES
@pytest.mark.compares("contrastive_search", "its definition, written naively")
def test_contrastive_search_equals_its_definition(seed):
    model = small(seed, words=WORDS)
    ids = torch.randint(WORDS, (3, 4))

    def state(text: torch.Tensor) -> torch.Tensor:
        seen = []
        with model.stack.register_forward_hook(lambda module, args, output: seen.append(output)):
            model(text[None])
        return seen[0][0]  # (length, d)

    def naive(text: torch.Tensor, k: int, alpha: float) -> torch.Tensor:
        for _ in range(8):
            p = model(text[None])[0, -1].softmax(-1)
            best, chosen = -9.0, None
            for token in p.topk(k).indices:
                h = state(torch.cat([text, token[None]]))
                alike = max(F.cosine_similarity(h[-1], h[j], dim=0) for j in range(len(text)))
                score = (1 - alpha) * p[token] - alpha * alike
                if score > best:
                    best, chosen = score, token
            text = torch.cat([text, chosen[None]])
        return text

    for k, alpha in ((4, 0.6), (2, 0.3), (5, 1.0)):
        with torch.no_grad():
            expected = torch.stack([naive(text, k, alpha) for text in ids])
        found = contrastive_search(model, ids, 8, k, alpha)
        same(found, expected, f"k {k}, alpha {alpha}")
        end = int(found[0, 6])
        stopped = contrastive_search(model, ids[:1], 8, k, alpha, end)[0]
        first = (found[0, 4:] == end).nonzero()[0, 0] + 5
        same(stopped, found[0, :first], "with an end")
    same(contrastive_search(model, ids, 8, 4, 0.0), greedy(model, ids, 8), "alpha 0")
    with pytest.raises(ValueError, match="At least 1 new token"):
        contrastive_search(model, ids, 0)
    assert not model.stack._forward_hooks


@CASES
@pytest.mark.compares("speculative: what is drawn", "the large model's distribution")
def test_speculative_acceptance_gives_exactly_the_large_models_distribution(seed):
    torch.manual_seed(seed)
    p, q = (torch.randn(50, 7, dtype=torch.double).mul(2).softmax(-1) for _ in range(2))
    p[:, 2], q[:, 4] = 0, 0  # what one of them never says
    p, q = p / p.sum(-1, keepdim=True), q / q.sum(-1, keepdim=True)
    chance, residual = acceptance(p, q)
    kept = q * chance  # drafted and accepted, for each token
    close(kept + (1 - kept.sum(-1, keepdim=True)) * residual, p, "distribution", 1e-12)
    chance, residual = acceptance(p, p)
    close(chance, torch.ones_like(p), "a draft that is right is always accepted")
    close(residual, p, "residual", 1e-12)


@pytest.mark.parametrize(
    ("seed", "filters"),
    [(RUN, None), (RUN + 1, None), (RUN, Filters(temperature=0.7, top_k=2, repetition_penalty=1.3))],
)
def test_speculative_decoding_keeps_the_distribution(seed, filters):
    """χ² over all texts of three tokens; a right answer fails by chance once in a million runs."""
    words, rounds, batch = 3, 800, 4  # small batches, since a batch keeps only what all of it accepts
    large, draft, prompt = random_table(words, seed), random_table(words, seed + 1), torch.tensor([[1]])
    texts = torch.cartesian_prod(*[torch.arange(words)] * 3)
    p = torch.ones(len(texts))
    for i in range(3):
        before = torch.cat([prompt.expand(len(texts), 1), texts[:, :i]], dim=1)
        logits = large(before)[:, -1]
        p *= (filters(logits, before) if filters else logits).softmax(-1).gather(1, texts[:, i : i + 1])[:, 0]
    close(p.sum(), torch.tensor(1.0), "all texts")
    generator = torch.Generator().manual_seed(seed)
    places = torch.tensor([9, 3, 1])
    counts = torch.zeros(27)
    for _ in range(rounds):
        out, _ = speculative(large, draft, prompt.expand(batch, 1), 3, 2, filters, generator=generator)
        counts += ((out[:, 1:] * places).sum(1)).bincount(minlength=27)
    expected = p * rounds * batch
    assert counts[expected == 0].sum() == 0
    common = expected >= 5  # χ² wants the rare ones pooled
    observed, expected = (torch.cat([x[common], x[~common].sum()[None]]) for x in (counts, expected))
    if expected[-1] < 5:
        observed, expected = observed[:-1], expected[:-1]
    statistic = ((observed - expected) ** 2 / expected).sum()
    chance = torch.special.gammaincc(torch.tensor((len(expected) - 1) / 2), statistic / 2)
    assert chance > 1e-6, f"χ² {statistic:.1f} (COURSE_TEST_SEED={RUN})"


@pytest.mark.parametrize("ahead", [1, 4])
@CASES
@pytest.mark.compares("speculative at temperature 0", "greedy")
def test_speculative_decoding_at_temperature_0_is_greedy(seed, ahead):
    large, draft = small(seed, words=WORDS), small(seed + 1, words=WORDS, layers=1)
    ids, cold = torch.randint(WORDS, (3, 4)), Filters(temperature=0)
    whole = greedy(large, ids, 12)
    for end in (None, int(whole[0, 6]), int(whole[2, 11])):
        expected = greedy(large, ids, 12, end)
        for model, helper in ((large, draft), (uncached(large), draft), (large, uncached(draft)), (large, large)):
            found, calls = speculative(model, helper, ids, 12, ahead, cold, end)
            same(found, expected, f"end {end}")
            assert calls <= expected.shape[1] - 4
    _, calls = speculative(large, large, ids, 12, ahead, cold)
    assert calls == -(-12 // (ahead + 1))  # a perfect draft: ahead + 1 tokens a call


def test_a_text_that_is_over_holds_no_other_back():
    """After its end, 0, the draft and the large model disagree on the first text; they agree on the second."""
    large, draft = (Table(torch.eye(4)[rows]) for rows in ([1, 0, 3, 2], [0, 0, 3, 2]))
    texts, calls = speculative(large, draft, torch.tensor([[1], [2]]), 12, ahead=3, end=0)
    assert texts.tolist() == [[1] + [0] * 12, [2, 3] * 6 + [2]]
    assert calls == 3


@CASES
@pytest.mark.compares("decoding a batch", "each text alone")
def test_a_batch_equals_its_texts_alone(seed):
    model, ids = small(seed, words=WORDS), torch.randint(WORDS, (4, 5))
    end = int(greedy(model, ids, 9)[0, 9])
    for decode in (
        lambda ids: greedy(model, ids, 9, end),
        lambda ids: beam_search(model, ids, 9, 3, end=end)[0][:, 0],
        lambda ids: contrastive_search(model, ids, 9, end=end),
    ):
        together = decode(ids)
        for text, row in zip(ids, together, strict=True):
            alone = decode(text[None])[0]
            same(row[: len(alone)], alone, "alone")
            assert (row[len(alone) :] == end).all()


def test_in_half_precision_and_without_gradients():
    model = small(0).bfloat16()
    ids = torch.randint(5, (2, 3))
    assert greedy(model, ids, 4).shape == (2, 7)
    assert not beam_search(model, ids, 4)[1].requires_grad
    assert sample(model, ids, 4, Filters(top_p=0.9)).shape == (2, 7)
    assert contrastive_search(model, ids, 4).shape == (2, 7)
    assert speculative(model, model, ids, 4)[0].shape == (2, 7)


def test_bad_input_is_refused_in_words():
    model, ids, z = small(0), torch.zeros(1, 3, dtype=torch.long), torch.zeros(1, 5)
    for call, words in (
        (lambda: greedy(model, ids[:, :0], 3), "Expected ids of shape"),
        (lambda: greedy(model, ids[0], 3), "Expected ids of shape"),
        (lambda: greedy(model, ids.float(), 3), "whole numbers"),
        (lambda: greedy(model, ids, 0), "At least 1 new token"),
        (lambda: greedy(model, ids, 3, lengths=torch.tensor([4])), r"1 lengths from 1 to 3; got \[4\]"),
        (lambda: greedy(model, ids, 3, lengths=torch.tensor([1, 2])), "Expected 1 lengths"),
        (lambda: contrastive_search(model, ids[0], 3), "Expected ids of shape"),
        (lambda: sample(model, ids, 23), r"at most 24 tokens; 3 \+ 23 are asked for"),
        (lambda: contrastive_search(model, ids, 22), r"at most 24 tokens; 3 \+ 22 are asked for"),
        (lambda: beam_search(model, ids, 3, beams=0), "at least 1 beam; got 0"),
        (lambda: beam_search(model, ids, 3, early_stopping="soon"), "True, False or 'never'; got 'soon'"),
        (lambda: contrastive_search(model, ids, 3, k=0), "k must be at least 1; got 0"),
        (lambda: contrastive_search(model, ids, 3, alpha=2), r"alpha must lie in \[0, 1\]; got 2"),
        (lambda: contrastive_search(uncached(model), ids, 3), "a model with a stack"),
        (lambda: speculative(model, model, ids, 3, ahead=0), "drafted ahead; got 0"),
        (lambda: Filters(top_k=0), "top_k must be at least 1; got 0"),
        (lambda: Filters(top_p=0), r"top_p must lie in \(0, 1\]; got 0"),
        (lambda: decoding.min_p(z, 1.5), r"min_p must lie in \(0, 1\]; got 1.5"),
        (lambda: decoding.temperature(z, -1), "temperature must be at least 0; got -1"),
        (lambda: decoding.repetition_penalty(z, ids, 0), "penalty must be above 0; got 0"),
        (lambda: exhaustive(model, ids, 20), r"5\^20 texts are too many"),
        (lambda: exhaustive(model, ids.repeat(2, 1), 2), "Expected one prompt; got 2"),
        (lambda: log_probability(model, ids, 3), "1 to 2 can be given; got 3"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
