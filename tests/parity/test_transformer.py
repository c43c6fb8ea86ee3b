"""Blocks, stacks and language models equal PyTorch's and transformers' on the same weights, forward and backward."""

from dataclasses import replace

import pytest
import torch
from comparing import RUN, close, seeds
from torch import nn

from course_lib import pretrained
from course_lib.models.attention import padding_mask
from course_lib.models.gpt import GPT, GPTShape
from course_lib.models.inside import recorded
from course_lib.models.transformer import Block, Shape, Stack

CASES = pytest.mark.parametrize("seed", seeds(12))


def drawn(seed: int) -> tuple[Shape, int, int]:
    """A random small shape, a batch size and a length."""
    generator = torch.Generator().manual_seed(seed)
    heads, part, ff, batch, length, flip = torch.randint(1, 5, (6,), generator=generator, device="cpu").tolist()
    torch.manual_seed(seed)
    shape = Shape(
        d=heads * part * 2, heads=heads, d_ff=8 * ff, layers=2, activation="relu" if flip % 2 else "gelu",
        pre_norm=flip > 2,
    )  # fmt: skip
    return shape, batch, length + 2


def copy_attention(ours: nn.Module, theirs: nn.MultiheadAttention) -> None:
    ours.qkv.weight.copy_(theirs.in_proj_weight)
    ours.qkv.bias.copy_(theirs.in_proj_bias.normal_())
    ours.output.load_state_dict(theirs.out_proj.state_dict())


@torch.no_grad()
def copy_block(ours: Block, theirs: nn.Module) -> None:
    copy_attention(ours.attention, theirs.self_attn)
    norms = [ours.attention_norm, ours.feed_forward_norm]
    if ours.shape.cross:
        copy_attention(ours.cross, theirs.multihead_attn)
        norms.insert(1, ours.cross_norm)
    for i, norm in enumerate(norms, start=1):
        theirs_norm = getattr(theirs, f"norm{i}")
        theirs_norm.weight.normal_()
        norm.load_state_dict(theirs_norm.state_dict())
    ours.feed_forward.inner.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.output.load_state_dict(theirs.linear2.state_dict())


def same_gradients(outputs: list[torch.Tensor], inputs: list[torch.Tensor], bound: float = 1e-5) -> None:
    pull = torch.randn_like(outputs[0])
    for out in outputs:
        (out * pull).sum().backward()
    close(inputs[0].grad, inputs[1].grad, "gradient of x", bound)


def same_block_gradients(ours: Block, theirs: nn.Module, bound: float = 1e-5) -> None:
    pairs = [(ours.attention.qkv.weight, theirs.self_attn.in_proj_weight)]
    pairs += [
        (ours.attention_norm.weight, theirs.norm1.weight),
        (ours.feed_forward.inner.weight, theirs.linear1.weight),
    ]
    if ours.shape.cross:
        pairs += [(ours.cross.qkv.weight, theirs.multihead_attn.in_proj_weight)]
    for mine, other in pairs:
        close(mine.grad, other.grad, "gradient of a weight", bound)


def theirs_of(kind: type, shape: Shape) -> nn.Module:
    return kind(
        shape.d, shape.heads, shape.d_ff, dropout=0.0, activation=shape.activation, norm_first=shape.pre_norm,
        batch_first=True,
    )  # fmt: skip


@CASES
@pytest.mark.compares("Block as encoder, pre- and post-norm", "nn.TransformerEncoderLayer")
@pytest.mark.usefixtures("device")
def test_encoder_block_equals_pytorch(seed):
    shape, batch, length = drawn(seed)
    ours, theirs = Block(shape), theirs_of(nn.TransformerEncoderLayer, shape)
    copy_block(ours, theirs)
    x, other = (torch.randn(batch, length, shape.d).requires_grad_() for _ in range(2))
    other.data.copy_(x.data)
    lengths = torch.randint(1, length + 1, (batch,))
    mask = padding_mask(lengths, length)
    out, expected = ours(x, mask), theirs(other, src_key_padding_mask=~mask[:, 0, 0])
    close(out, expected, "output")
    same_gradients([out, expected], [x, other])
    same_block_gradients(ours, theirs)


@CASES
@pytest.mark.compares("Block as decoder, pre- and post-norm", "nn.TransformerDecoderLayer")
@pytest.mark.usefixtures("device")
def test_decoder_block_equals_pytorch(seed):
    shape, batch, length = drawn(seed)
    shape = replace(shape, causal=True, cross=True)
    ours, theirs = Block(shape), theirs_of(nn.TransformerDecoderLayer, shape)
    copy_block(ours, theirs)
    x, other = (torch.randn(batch, length, shape.d).requires_grad_() for _ in range(2))
    other.data.copy_(x.data)
    memory = torch.randn(batch, length + 1, shape.d)
    ahead = nn.Transformer.generate_square_subsequent_mask(length)
    out, expected = ours(x, memory=memory), theirs(other, memory, tgt_mask=ahead, tgt_is_causal=True)
    close(out, expected, "output")
    same_gradients([out, expected], [x, other])
    same_block_gradients(ours, theirs)


@pytest.mark.parametrize("seed", seeds(12, 228343313))
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.compares("two Stacks, in double precision", "nn.Transformer")
def test_encoder_and_decoder_equal_nn_transformer(seed, device):
    """In float32 the rounding of four blocks, there and back, may reach 1e-5 in theirs as in ours."""
    if device.type == "mps":
        pytest.skip("MPS has no double precision.")
    shape, batch, length = drawn(seed)
    theirs = nn.Transformer(
        shape.d, shape.heads, 2, 2, shape.d_ff, 0.0, shape.activation, batch_first=True, norm_first=shape.pre_norm
    )
    encoder, decoder = Stack(shape), Stack(replace(shape, causal=True, cross=True))
    if not shape.pre_norm:  # nn.Transformer always ends in a norm; the 2017 paper has none there
        theirs.encoder.norm, theirs.decoder.norm = None, None
    for stack, their_stack in ((encoder, theirs.encoder), (decoder, theirs.decoder)):
        for block, layer in zip(stack.blocks, their_stack.layers, strict=True):
            copy_block(block, layer)
    encoder.double(), decoder.double(), theirs.double()
    source = torch.randn(batch, length + 1, shape.d, dtype=torch.double).requires_grad_()
    other = source.detach().clone().requires_grad_()
    target = torch.randn(batch, length, shape.d, dtype=torch.double)
    ahead = nn.Transformer.generate_square_subsequent_mask(length, dtype=torch.double)
    memory = encoder(source)
    out = decoder(target, memory=memory)
    expected = theirs(other, target, tgt_mask=ahead, tgt_is_causal=True)
    close(out, expected, "output", 1e-10)
    same_gradients([out, expected], [source, other], 1e-10)
    for stack, their_stack in ((encoder, theirs.encoder), (decoder, theirs.decoder)):
        for block, layer in zip(stack.blocks, their_stack.layers, strict=True):
            same_block_gradients(block, layer, 1e-10)


def configurations(seed: int) -> dict:
    generator = torch.Generator().manual_seed(seed)
    kv, groups, part, length = torch.randint(1, 4, (4,), generator=generator, device="cpu").tolist()
    return {"kv": kv, "heads": kv * groups, "d": kv * groups * part * 4, "length": length + 4}


def same_language_model(load, theirs: nn.Module, length: int) -> None:
    """The weights of theirs, loaded into our GPT, give the same logits and the same gradient."""
    state = {name: tensor for name, tensor in theirs.state_dict().items() if name != "lm_head.weight"}
    ours = load(theirs.config.to_dict(), state, longest=32)
    ids = torch.randint(50, (3, length))
    close(ours(ids), theirs(ids).logits, "logits")
    nn.functional.cross_entropy(ours(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).backward()
    theirs(ids, labels=ids).loss.backward()
    close(ours.embed.weight.grad, theirs.get_input_embeddings().weight.grad, "gradient of the embedding")


@CASES
@pytest.mark.compares("GPT, random weights", "transformers' GPT2LMHeadModel")
@pytest.mark.usefixtures("device")
def test_gpt_equals_gpt2(seed):
    from transformers import GPT2Config, GPT2LMHeadModel

    c = configurations(seed)
    torch.manual_seed(seed)
    config = GPT2Config(n_embd=c["d"], n_layer=2, n_head=c["heads"], vocab_size=50, n_positions=32)
    theirs = GPT2LMHeadModel(config).eval()
    for parameter in theirs.parameters():
        parameter.data.add_(0.05 * torch.randn_like(parameter))
    same_language_model(pretrained.gpt2, theirs, c["length"])


@CASES
@pytest.mark.compares("GPT, random weights", "transformers' LlamaForCausalLM")
@pytest.mark.usefixtures("device")
def test_gpt_equals_llama(seed):
    from transformers import LlamaConfig, LlamaForCausalLM

    c = configurations(seed)
    torch.manual_seed(seed)
    config = LlamaConfig(
        hidden_size=c["d"], intermediate_size=24, num_hidden_layers=2, num_attention_heads=c["heads"],
        num_key_value_heads=c["kv"], vocab_size=50, max_position_embeddings=64, tie_word_embeddings=True,
    )  # fmt: skip
    theirs = LlamaForCausalLM(config).eval()
    same_language_model(pretrained.llama, theirs, c["length"])


@pytest.mark.compares("GPT, SmolLM2's weights", "transformers' LlamaForCausalLM")
def test_gpt_with_the_real_weights_of_smollm2():
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = pretrained.weights("smollm2")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer("The Transformer was described in the paper", return_tensors="pt").input_ids
    with torch.no_grad():
        ours = pretrained.load_gpt(folder, longest=64)(ids)
        theirs = AutoModelForCausalLM.from_pretrained(folder)(ids).logits
    close(ours, theirs, "logits")
    assert torch.equal(ours.argmax(-1), theirs.argmax(-1))


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary", "alibi", "none"])
@pytest.mark.compares("GPT with a cache, each kind of positions", "without")
def test_cache_changes_nothing_and_nothing_leaks(positions):
    torch.manual_seed(RUN)
    model = GPT(GPTShape(d=16, layers=2, heads=4, kv_heads=2, vocabulary=11, longest=12, positions=positions)).eval()
    ids = torch.randint(11, (3, 12))
    whole = model(ids)
    caches = model.make_caches(3)
    parts = [model(piece, caches) for piece in ids.split([5, 1, 1, 5], dim=1)]
    close(torch.cat(parts, dim=1), whole, "logits")
    changed = ids.clone()
    changed[:, 7] = (changed[:, 7] + 1) % 11
    close(model(changed)[:, :7], whole[:, :7], "the past", 1e-6)
    assert not torch.allclose(model(changed)[:, 7:], whole[:, 7:])
    weights = recorded(model, "attention", ids)
    assert [w.shape for w in weights] == [(3, 4, 12, 12)] * 2
    close(weights[0].triu(1), torch.zeros(3, 4, 12, 12), "weights on the future")


SHAPES = {
    "gpt2": GPTShape(d=8, layers=2, heads=2, vocabulary=11, longest=8),
    "llama": GPTShape(
        d=8, layers=2, heads=2, kv_heads=1, vocabulary=11, longest=8, positions="rotary", norm="rms",
        activation="swiglu", bias=False,
    ),
    "2017": GPTShape(d=8, layers=2, heads=2, vocabulary=11, longest=8, positions="sinusoidal", pre_norm=False),
    "bloom": GPTShape(d=8, layers=2, heads=2, vocabulary=11, longest=8, positions="alibi"),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", SHAPES)
def test_one_step_on_the_meta_device(name, dtype):
    """A tensor made on the wrong device fails here, without a GPU."""
    with torch.device("meta"):
        model = GPT(SHAPES[name]).to(dtype)
    ids = torch.zeros(2, 8, dtype=torch.long, device="meta")
    model(ids).float().mean().backward()
    caches = model.make_caches(2)
    assert model(ids[:, :3], caches).shape == (2, 3, 11)
    assert model(ids[:, :1], caches).device.type == "meta"
    assert len(recorded(model, "attention", ids)) == 2


@pytest.mark.parametrize("name", SHAPES)
def test_under_autocast(name):
    torch.manual_seed(RUN)
    model, ids = GPT(SHAPES[name]), torch.randint(11, (2, 8))
    with torch.autocast("cpu", torch.bfloat16):
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    loss.backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.requires_grad)


def test_bad_input_is_refused_in_words():
    model = GPT(SHAPES["gpt2"])
    for ids, words in (
        (torch.zeros(1, 9, dtype=torch.long), "at most 8 tokens; got 9"),
        (torch.zeros(4, dtype=torch.long), r"Expected ids of shape \(batch, length\)"),
        (torch.zeros(0, 3, dtype=torch.long), "neither 0"),
        (torch.zeros(1, 3), "Expected ids to be whole numbers; got torch.float32"),
        (torch.tensor([[0, 11]]), "Expected ids from 0 to 10; got 0 to 11"),
        (torch.tensor([[-1, 3]]), "Expected ids from 0 to 10; got -1 to 3"),
    ):
        with pytest.raises(ValueError, match=words):
            model(ids)
    with pytest.raises(ValueError, match="There is no activation 'sine'"):
        Block(Shape(activation="sine"))
    with pytest.raises(ValueError, match="There is no norm 'batch'"):
        Block(Shape(norm="batch"))
    with pytest.raises(ValueError, match="give it as memory"):
        Stack(Shape(d=8, heads=2, cross=True))(torch.zeros(1, 2, 8))
    with pytest.raises(ValueError, match="There are no positions 'relative'"):
        GPT(GPTShape(positions="relative"))


def test_weights_that_do_not_fit_are_named():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=11, n_positions=8)
    state = {k: v for k, v in GPT2LMHeadModel(config).state_dict().items() if k != "lm_head.weight"}
    state["transformer.wte.weight"] = torch.zeros(12, 8)
    with pytest.raises(ValueError, match=r"of another shape: embed.weight \(12, 8\), expected \(11, 8\)"):
        pretrained.gpt2(config.to_dict(), state, longest=8)
    del state["transformer.wte.weight"], state["transformer.h.0.ln_1.bias"]
    state["transformer.h.0.attn.q_norm.weight"] = torch.zeros(8)
    with pytest.raises(ValueError, match=r"\(missing: h.0.ln_1.bias; wte.weight. left over: h.0.attn.q_norm.weight\)"):
        pretrained.gpt2(config.to_dict(), state, longest=8)


def test_settings_that_our_gpt_lacks_are_refused():
    from transformers import GPT2Config, LlamaConfig

    two, three = GPT2Config(n_embd=8, n_layer=1, n_head=2).to_dict(), LlamaConfig(tie_word_embeddings=True).to_dict()
    for load, config, words in (
        (pretrained.gpt2, two | {"activation_function": "silu"}, "activation gelu or .*; this model has silu"),
        (pretrained.gpt2, two | {"scale_attn_by_inverse_layer_idx": True}, "this model has True"),
        (pretrained.gpt2, two | {"tie_word_embeddings": False}, "tied: True; this model has False"),
        (pretrained.llama, three | {"tie_word_embeddings": False}, "tied: True; this model has False"),
        (pretrained.llama, three | {"rope_parameters": {"rope_type": "llama3"}}, "default; this model has llama3"),
        (pretrained.llama, three | {"head_dim": 64}, "heads of width 128; this model has 64"),
        (pretrained.llama, three | {"hidden_act": "gelu"}, "activation silu; this model has gelu"),
    ):
        with pytest.raises(ValueError, match=words):
            load(config, {}, longest=8)


@pytest.mark.compares("GPT, read from a folder in several files", "transformers' GPT2LMHeadModel")
def test_weights_in_several_files(tmp_path):
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(RUN)
    theirs = GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=2, n_head=2, n_inner=20, vocab_size=50, n_positions=8)).eval()
    theirs.save_pretrained(tmp_path, max_shard_size="2KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    ids = torch.randint(50, (2, 8))
    close(pretrained.load_gpt(tmp_path)(ids), theirs(ids).logits, "logits")
