"""Our GGUF reader gives bit for bit what the `gguf` package gives, and its models run in our class."""

import json
import re

import gguf as theirs
import numpy as np
import pytest
import tokenizers
import torch
from comparing import RUN, close, same, seeds

from course_lib import pretrained
from course_lib.data import gguf
from course_lib.data.readers import byte_level_tokenizer

Kind = theirs.GGMLQuantizationType
KINDS = [Kind.F32, Kind.F16, Kind.Q4_0, Kind.Q4_1, Kind.Q8_0]


def written(path, tensors: dict[str, torch.Tensor], kind: Kind = Kind.F32, **settings) -> None:
    """A file made by the package: matrices of this kind, everything else in float32."""
    writer = theirs.GGUFWriter(path, "llama")
    writer.data_alignment = settings.get("general__alignment", 32)
    for name, value in settings.items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string, list: writer.add_array}
        add[type(value)](name.replace("__", "."), value)
    for name, tensor in tensors.items():
        use = kind if tensor.dim() == 2 else Kind.F32
        writer.add_tensor(name, theirs.quantize(tensor.numpy(), use), raw_dtype=use)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("seed", seeds(4))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.compares("gguf.dequantise, random bytes", "the gguf package, bit for bit")
def test_random_bytes_mean_the_same(kind, seed):
    """Any bytes: also scales that are infinite, no number or denormal."""
    _, weights, size, _ = gguf.KINDS[kind]
    data = np.random.default_rng(seed).integers(0, 256, (64, size), dtype=np.uint8)
    with np.errstate(all="ignore"):
        ours = gguf.dequantise(kind, data, (64, weights)).numpy()
        expected = theirs.dequantize(data.view(np.float32) if kind == Kind.F32 else data, kind).astype(np.float32)
    expected = expected.reshape(ours.shape)
    number = ~np.isnan(expected)
    same((np.isnan(ours) == ~number).all(), True, "not a number")
    same((ours.view(np.uint32) == expected.view(np.uint32))[number].all(), True, kind.name)


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.compares("gguf.read_gguf, random files", "the gguf package, bit for bit")
def test_a_file_is_read_as_the_package_reads_it(kind, seed, tmp_path):
    torch.manual_seed(seed)
    path = tmp_path / "a.gguf"
    tensors = {"a": torch.randn(7, 64), "b": torch.randn(33), "c": torch.randn(2, 96), "é": torch.randn(1, 32)}
    values = {
        "general__alignment": 64,
        "x__many": [1, -2, 3],
        "x__words": ["ä", "", "日本"],
        "x__real": 0.25,
        "x__t": "ü",
    }
    written(path, tensors, kind, **values)
    settings, found = gguf.read_gguf(path)
    for name, value in values.items():
        same(settings[name.replace("__", ".")], value, name)
    reader = theirs.GGUFReader(path)
    assert len(found) == len(reader.tensors) == 4
    for tensor in reader.tensors:
        expected = torch.from_numpy(theirs.dequantize(tensor.data, tensor.tensor_type).astype(np.float32))
        same(found[tensor.name], expected, tensor.name)
        error = (found[tensor.name] - tensors[tensor.name]).abs().max() / tensors[tensor.name].abs().max()
        # Q4_0 has the steps −8 … 7 of an eighth of the block's largest: of the other sign, that may lack one step.
        assert error < (0.126 if "Q4" in kind.name else 0.01), "the file does not hold what was put in"


def llama(seed: int):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=50, max_position_embeddings=32, tie_word_embeddings=True,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


SETTINGS = {
    "llama__block_count": 2, "llama__context_length": 32, "llama__embedding_length": 64,
    "llama__feed_forward_length": 96, "llama__attention__head_count": 4, "llama__attention__head_count_kv": 2,
    "llama__attention__layer_norm_rms_epsilon": 1e-6, "llama__rope__freq_base": 10_000.0,
}  # fmt: skip


def in_their_names(model) -> dict[str, torch.Tensor]:
    """llama.cpp's names, and its order of rows in queries and keys: pairs that are turned together are neighbours."""
    names = {ours: name for name, ours in gguf.NAMES.items()}
    tensors = {}
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight":
            continue
        for ours, their_name in names.items():
            name = re.sub(rf"(^|\.){re.escape(ours)}\.", rf"\g<1>{their_name}.", name)
        if "attn_q" in name or "attn_k" in name:
            heads = 4 if "attn_q" in name else 2
            tensor = tensor.unflatten(0, (heads, 2, -1)).transpose(1, 2).reshape(tensor.shape)
        tensors[name.removeprefix("model.")] = tensor.detach().contiguous()
    return tensors


@pytest.mark.parametrize("seed", seeds(2))
@pytest.mark.compares("GPT, from a GGUF file", "transformers' LlamaForCausalLM")
def test_a_llama_in_a_file_runs_in_our_gpt(seed, tmp_path):
    model, path = llama(seed), tmp_path / "tiny.gguf"
    written(path, in_their_names(model), **SETTINGS)
    ids = torch.randint(50, (3, 9))
    close(pretrained.load_gpt(path)(ids), model(ids).logits, "logits")


def test_damaged_files_are_refused_in_one_sentence(tmp_path):
    path, bad = tmp_path / "good.gguf", tmp_path / "bad.gguf"
    written(path, in_their_names(llama(0)), **SETTINGS)
    whole = path.read_bytes()
    cuts = [4, 5, 23, 24, 30, 100, 700, 2000, len(whole) // 2, len(whole) - 1]
    cuts += torch.randint(4, len(whole), (30,), generator=torch.Generator().manual_seed(RUN)).tolist()
    for cut in cuts:
        bad.write_bytes(whole[:cut])
        with pytest.raises(
            ValueError, match=r"^bad.gguf is (damaged or cut off: its list|cut off: [\w.]+ ends at byte)"
        ):
            gguf.read_gguf(bad)
    for content, words in (
        (b"", r"begins with the letters GGUF; bad.gguf begins with b''"),
        (b"PK\3\4" + whole[4:], "begins with b'PK"),
        (whole[:4] + b"\1\0\0\0" + whole[8:], "version 2 or 3; bad.gguf has version 1"),
        (whole[:4] + b"\0\0\0\3" + whole[8:], "has version 50331648"),  # big-endian
        (whole[:8] + b"\xff" * 16 + whole[24:], "bad.gguf is damaged"),
    ):
        bad.write_bytes(content)
        with pytest.raises(ValueError, match=words):
            gguf.read_gguf(bad)


def test_unknown_kinds_and_models_are_refused(tmp_path):
    path = tmp_path / "a.gguf"
    writer = theirs.GGUFWriter(path, "llama")
    writer.add_tensor("odd", np.zeros((2, 210), np.uint8), raw_dtype=Kind.Q6_K)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ValueError, match=r"Expected weights as F32, F16, Q4_0, Q4_1, Q8_0; odd in a.gguf is .* 14"):
        gguf.read_gguf(path)
    for settings, words in (
        ({"general.architecture": "qwen2"}, "type llama, its positions not scaled; got qwen2"),
        ({"general.architecture": "llama", "llama.rope.scaling.type": "yarn"}, "scaled by yarn"),
        ({"general.architecture": "llama"}, "it lacks 'llama.attention.head_count'"),
    ):
        with pytest.raises(ValueError, match=words):
            gguf.llama_state(settings, {})


def test_a_missing_weight_is_named(tmp_path):
    tensors = in_their_names(llama(0))
    del tensors["blk.1.attn_k.weight"]
    tensors["rope_freqs.weight"] = torch.ones(8)
    written(tmp_path / "a.gguf", tensors, **SETTINGS)
    words = r"\(missing: layers.1.self_attn.k_proj.weight. left over: rope_freqs.weight\)"
    with pytest.raises(ValueError, match=words):
        pretrained.load_gpt(tmp_path / "a.gguf")


def test_the_tokenizer_in_the_settings():
    tokens = ["<|end|>", "a", "b", "Ġ", "ab", "Ġab"]
    settings = {
        "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [3, 1, 1, 1, 1, 1],
        "tokenizer.ggml.merges": ["a b", "Ġ ab"],
    }  # fmt: skip
    read = tokenizers.Tokenizer.from_str(json.dumps(byte_level_tokenizer(settings)))
    encoded = read.encode("ab ab<|end|>b")
    assert encoded.tokens == ["ab", "Ġab", "<|end|>", "b"]
    assert read.decode(encoded.ids, skip_special_tokens=False) == "ab ab<|end|>b"
