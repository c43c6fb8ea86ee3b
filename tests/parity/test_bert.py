"""BERT and its heads equal those of transformers on the same weights, forward and backward."""

from dataclasses import replace

import pytest
import torch
from comparing import RUN, close, seeds
from torch import nn

from course_lib import pretrained
from course_lib.data.batches import IGNORED, mask_tokens
from course_lib.models import bert
from course_lib.models.bert import Bert, BertShape
from course_lib.models.inside import recorded

CASES = pytest.mark.parametrize("seed", seeds(6))
CLASSES = 3


def theirs_of(name: str, seed: int) -> nn.Module:
    """A model of transformers of random size, every weight random."""
    import transformers

    generator = torch.Generator().manual_seed(seed)
    heads, part, layers, ff, segments, flip = torch.randint(1, 5, (6,), generator=generator, device="cpu").tolist()
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        hidden_size=heads * part * 4, num_attention_heads=heads, num_hidden_layers=layers, intermediate_size=8 * ff,
        hidden_act=["gelu", "relu", "gelu_new"][seed % 3], vocab_size=40 + flip, type_vocab_size=segments,
        max_position_embeddings=12, layer_norm_eps=[1e-12, 0.01][seed % 2], num_labels=CLASSES,
        attn_implementation="eager",
    )  # fmt: skip
    if name == "BertForQuestionAnswering":
        config.num_labels = 2  # start and end
    model = getattr(transformers, name)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def text_for(config, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Padded ids, which tokens are true (some texts have all), and segments.

    Only padding has the id 0: transformers never moves the embedding of that id, ours does.
    """
    torch.manual_seed(seed)
    batch, length = torch.randint(1, 6, (1,)).item(), torch.randint(1, 13, (1,)).item()
    lengths = torch.randint(1, length + 1, (batch,))
    lengths[0] = length
    mask = torch.arange(length) < lengths[:, None]
    ids = torch.randint(1, config.vocab_size, (batch, length)) * mask
    return ids, mask, torch.randint(config.type_vocab_size, (batch, length))


def backward(*outputs: torch.Tensor) -> None:
    """From a random pull at each output, the same for ours and theirs."""
    torch.manual_seed(RUN)
    sum((out * torch.randn_like(out)).sum() for out in outputs).backward()


def gradient(parameter: nn.Parameter) -> torch.Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def same_gradients(ours: nn.Module, theirs: nn.Module) -> None:
    """Of every weight: the gradients go through the same mapping as the weights."""
    state = {name: gradient(parameter) for name, parameter in theirs.named_parameters()}
    head = None if isinstance(ours, Bert) else type(ours)
    expected = dict(pretrained.bert(theirs.config.to_dict(), state, head).named_parameters())
    largest = max(p.abs().max().item() for p in expected.values())
    for name, parameter in ours.named_parameters():
        close(gradient(parameter) / largest, expected[name] / largest, f"gradient of {name}")


@CASES
@pytest.mark.parametrize("given", ["nothing", "mask", "lengths", "ints"])
@pytest.mark.compares("Bert, random weights", "transformers' BertModel")
@pytest.mark.usefixtures("device")
def test_encoder_equals_transformers(seed, given):
    theirs = theirs_of("BertModel", seed)
    ours = pretrained.bert(theirs.config.to_dict(), theirs.state_dict())
    ids, mask, segments = text_for(theirs.config, seed)
    if given == "nothing":
        ids, mask, segments = ids.clamp(min=1), torch.ones_like(mask), None
    seen = {"nothing": None, "mask": mask, "lengths": mask.sum(1), "ints": mask.long()}[given]
    out = ours(ids, seen, segments)
    expected = theirs(
        ids, attention_mask=mask.long(), token_type_ids=segments, output_hidden_states=True, output_attentions=True
    )
    close(out, expected.last_hidden_state, "hidden states")
    close(ours.pooled(out), expected.pooler_output, "pooled")
    for what, mine, others in (
        ("layer", recorded(ours, "blocks", ids, seen, segments), expected.hidden_states),
        ("weights of layer", recorded(ours, "attention", ids, seen, segments), expected.attentions),
    ):
        assert len(mine) == len(others)
        for i, pair in enumerate(zip(mine, others, strict=True)):
            close(*pair, f"{what} {i}")
    backward(out[mask], ours.pooled(out))
    backward(expected.last_hidden_state[mask], expected.pooler_output)
    same_gradients(ours, theirs)


# For each model of transformers: ours, and the names of its outputs.
HEADS = {
    "BertForMaskedLM": (bert.MaskedLM, ["logits"]),
    "BertForNextSentencePrediction": (bert.NextSentence, ["logits"]),
    "BertForPreTraining": (bert.Pretraining, ["prediction_logits", "seq_relationship_logits"]),
    "BertForSequenceClassification": (bert.SentenceClassifier, ["logits"]),
    "BertForTokenClassification": (bert.Tagger, ["logits"]),
    "BertForQuestionAnswering": (bert.SpanFinder, ["start_logits", "end_logits"]),
}
PER_TEXT = ("BertForNextSentencePrediction", "BertForSequenceClassification")


@CASES
@pytest.mark.parametrize("name", HEADS)
@pytest.mark.compares("BERT's six heads, weights read from a folder", "transformers' BertFor…")
@pytest.mark.usefixtures("device")
def test_heads_equal_transformers(name, seed, tmp_path):
    head, outputs = HEADS[name]
    theirs = theirs_of(name, seed)
    theirs.save_pretrained(tmp_path)
    ours = pretrained.load_bert(tmp_path, head)
    ids, mask, segments = text_for(theirs.config, seed)
    out = ours(ids, mask, segments)
    out = [out] if isinstance(out, torch.Tensor) else list(out)
    expected = theirs(ids, attention_mask=mask.long(), token_type_ids=segments)
    expected = [expected[key] for key in outputs]
    for key, mine, other in zip(outputs, out, expected, strict=True):
        close(mine, other, key)
    if name not in PER_TEXT:  # padding counts for nothing; the first output is the one for each token, spans have two
        per_token = 2 if name == "BertForQuestionAnswering" else 1
        out, expected = ([t[mask] if i < per_token else t for i, t in enumerate(o)] for o in (out, expected))
    backward(*out)
    backward(*expected)
    same_gradients(ours, theirs)


@CASES
@pytest.mark.compares("BERT's pretraining loss", "transformers' BertForPreTraining")
@pytest.mark.usefixtures("device")
def test_losses_of_pretraining_equal_transformers(seed):
    theirs = theirs_of("BertForPreTraining", seed)
    ours = pretrained.bert(theirs.config.to_dict(), theirs.state_dict(), bert.Pretraining)
    ids, mask, segments = text_for(theirs.config, seed)
    inputs, targets = mask_tokens(ids, torch.Generator().manual_seed(seed), 3, theirs.config.vocab_size, {0})
    targets[0, 0] = 5  # at least one
    follows = torch.randint(2, (len(ids),))
    scores, next_scores = ours(inputs, mask, segments)
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
    loss = loss + nn.functional.cross_entropy(next_scores, follows)
    expected = theirs(
        inputs, attention_mask=mask.long(), token_type_ids=segments, labels=targets, next_sentence_label=follows
    ).loss
    close(loss, expected, "loss")
    loss.backward()
    expected.backward()
    same_gradients(ours, theirs)


SENTENCES = [
    "The animal didn't cross the street because it was too tired.",
    "Attention is all you need.",
    "What did the committee decide?",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich, 1917–1944!",
]


@pytest.mark.compares("Bert, MiniLM's weights", "transformers' BertModel")
def test_bert_with_the_real_weights_of_minilm():
    from transformers import AutoTokenizer, BertModel

    folder = pretrained.weights("minilm")
    ours, theirs = pretrained.load_bert(folder), BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for texts in (tokenizer(SENTENCES, padding=True, return_tensors="pt"),
                  tokenizer(SENTENCES[:2], SENTENCES[2:], padding=True, return_tensors="pt")):  # fmt: skip
        ids, mask, segments = texts["input_ids"], texts["attention_mask"], texts["token_type_ids"]
        with torch.no_grad():
            out, weights = ours(ids, mask, segments), recorded(ours, "attention", ids, mask, segments)
            expected = theirs(**texts, output_hidden_states=True, output_attentions=True)
        close(out, expected.last_hidden_state, "hidden states")
        close(ours.pooled(out), expected.pooler_output, "pooled")
        for i, pair in enumerate(zip(weights, expected.attentions, strict=True)):
            close(*pair, f"weights of layer {i}")
        with torch.no_grad():
            layers = recorded(ours, "blocks", ids, mask, segments)
            for i, pair in enumerate(zip(layers, expected.hidden_states, strict=True)):
                close(*pair, f"layer {i}")


SMALL = BertShape(d=8, layers=2, heads=2, vocabulary=11, longest=8)
ALL = {
    "encoder": lambda encoder: encoder,
    "masked": bert.MaskedLM,
    "next": bert.NextSentence,
    "pretraining": bert.Pretraining,
    "sentence": lambda encoder: bert.SentenceClassifier(encoder, 1),
    "tagger": lambda encoder: bert.Tagger(encoder, 5),
    "span": bert.SpanFinder,
}


def summed(out: torch.Tensor | tuple) -> torch.Tensor:
    return sum(part.float().square().mean() for part in (out if isinstance(out, tuple) else (out,)))


def all_on_meta(_: nn.Module, inputs: tuple) -> None:
    assert all(x.device.type == "meta" for x in inputs if isinstance(x, torch.Tensor))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ALL)
def test_one_step_on_the_meta_device(name, dtype):
    """A tensor made on the wrong device fails here, without a GPU."""
    with torch.device("meta"):
        model = ALL[name](Bert(SMALL)).to(dtype)
    for module in model.modules():  # an embedding on the meta device would take ids from elsewhere
        module.register_forward_pre_hook(all_on_meta)
    ids, lengths = torch.zeros(2, 8, dtype=torch.long, device="meta"), torch.ones(2, dtype=torch.long, device="meta")
    for mask in (None, lengths, ids.bool()):
        summed(model(ids, mask)).backward()
    if name == "encoder":
        assert len(recorded(model, "attention", ids, lengths)) == 2
        assert [h.dtype for h in recorded(model, "blocks", ids, lengths)] == [dtype] * 3


@pytest.mark.parametrize("name", ALL)
def test_under_autocast_and_in_bfloat16(name):
    torch.manual_seed(RUN)
    model, ids, lengths = ALL[name](Bert(replace(SMALL, dropout=0.1))), torch.randint(11, (2, 8)), torch.tensor([8, 3])
    with torch.autocast("cpu", torch.bfloat16):
        loss = summed(model(ids, lengths))
    loss.backward()
    assert all(gradient(parameter).isfinite().all() for parameter in model.parameters())
    exact, rough = summed(model.eval()(ids, lengths)), summed(model.to(torch.bfloat16)(ids, lengths))
    close(rough, exact, "bfloat16", 0.05)


def test_the_shape_is_bert_s_unless_told_otherwise():
    from transformers import BertConfig

    shape, config = BertShape(), BertConfig()
    assert (shape.vocabulary, shape.longest) == (config.vocab_size, config.max_position_embeddings)
    assert (shape.segments, shape.epsilon) == (config.type_vocab_size, config.layer_norm_eps)
    assert (shape.activation, shape.pre_norm, shape.causal) == (config.hidden_act, False, False)


@pytest.mark.compares("Bert on a padded batch", "each text alone")
def test_padding_and_other_texts_change_nothing():
    torch.manual_seed(RUN)
    model = Bert(SMALL).eval()
    ids = torch.randint(11, (3, 8))
    lengths = torch.tensor([8, 5, 1])
    together = model(ids, lengths)
    for i, n in enumerate(lengths):
        close(together[i, :n], model(ids[i : i + 1, :n])[0], "a text alone", 1e-6)
    for weights in recorded(model, "attention", ids, lengths):
        close(weights.sum(-1), torch.ones(3, 2, 8), "weights sum to 1", 1e-6)
        assert not weights[1, ..., 5:].any()


def test_causal_sees_no_future_and_the_encoder_does():
    torch.manual_seed(RUN)
    ids = torch.randint(11, (2, 8))
    changed = ids.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 11
    for causal in (False, True):
        model = Bert(replace(SMALL, causal=causal)).eval()
        gap = (model(ids) - model(changed)).abs().amax(-1)
        assert (gap[:, 6:] > 0).all()
        assert bool((gap[:, :5] > 0).all()) is not causal


@pytest.mark.parametrize("pre_norm", [False, True])
def test_last_layer_is_the_output(pre_norm):
    torch.manual_seed(RUN)
    model, ids = Bert(replace(SMALL, pre_norm=pre_norm)).eval(), torch.randint(11, (2, 8))
    layers = recorded(model, "blocks", ids)
    assert len(layers) == SMALL.layers + 1
    close(model.stack.norm(layers[-1]), model(ids), "last layer", 1e-6)


def test_new_heads_leave_the_encoder_as_it_was():
    torch.manual_seed(RUN)
    encoder = Bert(SMALL)
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    for make in ALL.values():
        make(encoder)
    assert all(torch.equal(tensor, before[name]) for name, tensor in encoder.state_dict().items())
    model = bert.MaskedLM(encoder)
    names = [name for name, _ in model.named_parameters() if not name.startswith("encoder.")]
    assert names == ["words.bias", "words.dense.weight", "words.dense.bias", "words.norm.weight", "words.norm.bias"]
    large = Bert(replace(SMALL, vocabulary=5000, d=64, heads=4))
    assert 0.019 < large.embed.weight.std() < 0.021
    assert not large.stack.blocks[0].attention.qkv.bias.any()


SPECIAL = (0, 2, 3, 4)  # [PAD], [CLS], [SEP], [MASK]


def test_mask_tokens_proportions():
    ids = torch.randint(60, (500, 400), generator=torch.Generator().manual_seed(RUN))
    before = ids.clone()
    inputs, targets = mask_tokens(ids, torch.Generator().manual_seed(RUN), 4, 60, SPECIAL)
    assert torch.equal(ids, before), "the input was changed"
    assert inputs.dtype == targets.dtype == ids.dtype
    special, chosen = torch.isin(ids, torch.tensor(SPECIAL)), targets != IGNORED
    assert not (special & chosen).any()
    assert torch.equal(targets[chosen], ids[chosen])
    assert torch.equal(inputs[~chosen], ids[~chosen])

    def share(part: torch.Tensor, expected: float) -> None:  # six standard deviations
        value = part.float().mean().item()
        assert abs(value - expected) < 6 * (expected * (1 - expected) / part.numel()) ** 0.5, (value, expected)

    share(chosen[~special], 0.15)
    share(inputs[chosen] == 4, 0.8)
    share(inputs[chosen] == ids[chosen], 0.1 + 0.1 / 56)  # a random word may be the word itself
    replaced = inputs[chosen & (inputs != 4) & (inputs != ids)]
    assert replaced.unique().tolist() == [i for i in range(60) if i not in SPECIAL]
    for word in (1, 30, 59):
        share(replaced == word, 1 / 56)


def test_mask_tokens_depends_on_the_generator_only():
    ids = torch.randint(5, 60, (20, 30))
    draws = []
    for seed in (7, 7, 8):
        torch.manual_seed(len(draws))
        draws.append(mask_tokens(ids, torch.Generator().manual_seed(seed), 4, 60, SPECIAL))
    assert all(torch.equal(a, b) for a, b in zip(draws[0], draws[1], strict=True))
    assert not torch.equal(draws[0][1], draws[2][1])
    generator = torch.Generator().manual_seed(7)
    first, second = (mask_tokens(ids, generator, 4, 60, SPECIAL)[1] for _ in range(2))
    assert not torch.equal(first, second), "a second epoch must have other blanks"
    inputs, targets = mask_tokens(torch.tensor([2, 0, 4, 3] * 50), generator, 4, 60, SPECIAL)
    assert (targets == IGNORED).all()
    assert torch.equal(inputs, torch.tensor([2, 0, 4, 3] * 50))
    with pytest.raises(ValueError, match="Expected special tokens from 0 to 59; got \\[0, 60\\]"):
        mask_tokens(ids, generator, 60, 60, [0])


def test_bad_input_is_refused_in_words():
    model = Bert(SMALL)
    model.embed.register_forward_pre_hook(lambda *_: pytest.fail("work was done before the input was looked at"))
    ids = torch.zeros(2, 3, dtype=torch.long)
    for inputs, words_ in (
        ((torch.zeros(1, 9, dtype=torch.long),), "at most 8 tokens; got 9"),
        ((torch.zeros(4, dtype=torch.long),), r"Expected ids of shape \(batch, length\)"),
        ((torch.zeros(0, 3, dtype=torch.long),), "neither 0"),
        ((ids + 11,), "Expected ids from 0 to 10; got 11 to 11"),
        ((ids, None, ids[:, :2]), r"Expected a segment for each of the ids \(2, 3\); got \(2, 2\)"),
        ((ids, None, ids + 2), "Expected segments from 0 to 1; got 2 to 2"),
        ((ids.float(),), "Expected ids to be whole numbers; got torch.float32"),
        ((ids, None, ids.bool()), "Expected segments to be whole numbers; got torch.bool"),
        ((ids, None, ids - 1), "Expected segments from 0 to 1; got -1 to -1"),
        ((ids, torch.tensor([3, 3, 3])), r"Expected as mask whole lengths of shape \(2,\)"),
        ((ids, torch.tensor([True, False])), "got torch.bool"),
        ((ids, torch.zeros(2, 3)), "got torch.float32"),
    ):
        for method in (model, bert.Tagger(model, 2)):
            with pytest.raises(ValueError, match=words_):
                method(*inputs)
    with pytest.raises(ValueError, match="no pooler"):
        Bert(replace(SMALL, pooler=False)).pooled(torch.zeros(1, 2, 8))


def checkpoint() -> tuple[dict, dict]:
    theirs = theirs_of("BertForPreTraining", 0)
    return theirs.config.to_dict(), dict(theirs.state_dict())


def test_weights_that_do_not_fit_are_named():
    key = "bert.encoder.layer.0.attention.self.key.weight"
    for name, head, words_ in (
        ("bert.embeddings.LayerNorm.bias", None, r"\(missing: embeddings.LayerNorm.bias\)"),
        ("bert.pooler.dense.bias", None, r"\(missing: pooler.dense.bias\)"),
        (key, None, r"\(missing: encoder.layer.0.attention.self.key.weight\)"),
        ("cls.predictions.bias", bert.MaskedLM, r"\(missing: cls.predictions.bias\)"),
        ("cls.seq_relationship.weight", bert.Pretraining, r"\(missing: cls.seq_relationship.weight\)"),
        ("", bert.Tagger, r"\(missing: classifier.bias; classifier.weight\)"),
        ("", bert.SpanFinder, r"\(missing: qa_outputs.bias; qa_outputs.weight\)"),
    ):
        config, state = checkpoint()
        state.pop(name, None)
        with pytest.raises(ValueError, match=words_):
            pretrained.bert(config, state, head)
    for name, shape, words_ in (
        ("bert.encoder.layer.9.output.dense.weight", (2, 2), r"\(left over: encoder.layer.9.output.dense.weight\)"),
        ("bert.embeddings.word_embeddings.weight", (3, 2), r"shape: encoder.embed.weight \(3, 2\), expected"),
        (key, (3, 2), r"of another shape: encoder.layer.0.attention.self.key.weight \(3, 2\); encoder"),
        ("cls.seq_relationship.weight", (2, 3), r"of another shape: follows.weight \(2, 3\), expected \(2, "),
    ):
        config, state = checkpoint()
        state[name] = torch.zeros(shape)
        with pytest.raises(ValueError, match=words_):
            pretrained.bert(config, state, bert.NextSentence)
    with pytest.raises(ValueError, match=r"missing: embeddings.LayerNorm.bias; .*; and \d+ more\)"):
        pretrained.bert(config, {})


def test_a_head_that_reads_the_whole_text_needs_the_pooler():
    theirs = theirs_of("BertForMaskedLM", 0)
    with pytest.raises(ValueError, match=r"\(missing: cls.seq_relationship.bias; .*; pooler.dense.bias; pooler"):
        pretrained.bert(theirs.config.to_dict(), theirs.state_dict(), bert.NextSentence)


def test_models_that_are_not_bert_are_refused(tmp_path):
    config, state = checkpoint()
    for change, words_ in (
        ({"hidden_act": "silu"}, "Expected the activation gelu or .*; this model has silu"),
        ({"position_embedding_type": "relative_key"}, "positions of type absolute; this model has relative_key"),
        ({"is_decoder": True}, "Expected an encoder"),
        ({"tie_word_embeddings": False}, "tied: True; this model has False"),
    ):
        with pytest.raises(ValueError, match=words_):
            pretrained.bert(config | change, state, bert.MaskedLM)
    with pytest.raises(ValueError, match=r"has no config\.json"):
        pretrained.load_bert(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"Expected a model of type bert; .* holds 'gpt2'"):
        pretrained.load_bert(tmp_path)
    with pytest.raises(ValueError, match=r"Expected a folder with model.safetensors; .* has none"):
        pretrained.load_gpt(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"12345678{}")
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged or cut off"):
        pretrained.load_gpt(tmp_path)


def test_older_files_and_half_precision(tmp_path):
    """The first BERT named its norms' weights gamma and beta, and stored the positions' numbers."""
    from safetensors.torch import save_file
    from transformers import BertModel

    theirs = theirs_of("BertModel", RUN)
    ours = pretrained.bert(theirs.config.to_dict(), theirs.state_dict())
    old = {
        "bert."
        + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in theirs.state_dict().items()
    }
    old |= {"bert.embeddings.position_ids": torch.arange(12)[None], "cls.predictions.bias": torch.zeros(4)}
    ids = torch.randint(1, 40, (2, 5))
    assert torch.equal(pretrained.bert(theirs.config.to_dict(), old)(ids), ours(ids))
    theirs.config.save_pretrained(tmp_path)
    half = {name: tensor.half() for name, tensor in theirs.state_dict().items()}
    save_file(half, tmp_path / "model.safetensors")
    loaded = pretrained.load_bert(tmp_path)
    assert loaded.embed.weight.dtype == torch.float32
    assert not loaded.training
    again = BertModel.from_pretrained(tmp_path, dtype=torch.float32).eval()
    close(loaded(ids), again(ids).last_hidden_state, "hidden states")
