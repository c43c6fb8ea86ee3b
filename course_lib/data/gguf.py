"""GGUF, the file of llama.cpp: a model's settings, its tokenizer and its weights, in blocks of few bits.

Layout: ``GGUF``, the version, the number of tensors and of settings; each setting as name, type and value; each
tensor's name, sizes, type and place; then, from a multiple of the alignment on, the tensors' bytes.

A block of 32 weights shares a scale: ``Q8_0`` keeps each as a whole number of 8 bits and gives back d·q, ``Q4_0``
has 4 bits and d·(q − 8), ``Q4_1`` 4 bits and d·q + m. So a weight takes 8.5, 4.5 or 5 bits instead of 32.
"""

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # for `struct`
TEXT, LIST = 8, 9


def half_floats(blocks: np.ndarray) -> np.ndarray:
    """The 16-bit floats in the bytes: (n, 2·m) → (n, m)."""
    return np.ascontiguousarray(blocks).view("<f2").astype(np.float32)


def nibbles(blocks: np.ndarray) -> np.ndarray:
    """Two numbers of 4 bits in each byte, all the low halves before all the high ones: (n, m) → (n, 2·m)."""
    return np.concatenate([blocks & 15, blocks >> 4], axis=1).astype(np.float32)


# number in the file → name, weights in a block, bytes of a block, and blocks (n, bytes) → weights (n, weights)
KINDS: dict[int, tuple[str, int, int, Callable[[np.ndarray], np.ndarray]]] = {
    0: ("F32", 1, 4, lambda b: np.ascontiguousarray(b).view("<f4")),
    1: ("F16", 1, 2, half_floats),
    2: ("Q4_0", 32, 18, lambda b: half_floats(b[:, :2]) * (nibbles(b[:, 2:]) - 8)),
    3: ("Q4_1", 32, 20, lambda b: half_floats(b[:, :2]) * nibbles(b[:, 4:]) + half_floats(b[:, 2:4])),
    8: ("Q8_0", 32, 34, lambda b: half_floats(b[:, :2]) * b[:, 2:].view(np.int8).astype(np.float32)),
}


def dequantise(kind: int, data: np.ndarray, shape: tuple[int, ...]) -> Tensor:
    """The bytes of a tensor → its weights in float32."""
    _, _, size, weights = KINDS[kind]
    return torch.from_numpy(weights(data.reshape(-1, size)).reshape(shape).copy())


class Bytes:
    """The values of a file, one after the other."""

    def __init__(self, data: np.ndarray):
        self.data, self.at = data, 0

    def take(self, form: str) -> tuple:
        """The next values, in the letters of `struct`."""
        values = struct.unpack_from(f"<{form}", self.data, self.at)
        self.at += struct.calcsize(f"<{form}")
        return values

    def text(self) -> str:
        (length,) = self.take("Q")
        return self.take(f"{length}s")[0].decode("utf-8")

    def value(self, kind: int) -> Any:
        if kind == TEXT:
            return self.text()
        if kind == LIST:
            kind, count = self.take("IQ")
            return [self.text() for _ in range(count)] if kind == TEXT else list(self.take(f"{count}{SCALARS[kind]}"))
        return self.take(SCALARS[kind])[0]


def read_gguf(path: Path | str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The settings of a GGUF file, and its tensors in float32."""
    path = Path(path)
    with path.open("rb") as file:
        start = file.read(4)
    if start != b"GGUF":
        raise ValueError(f"Expected a GGUF file, which begins with the letters GGUF; {path.name} begins with {start}.")
    data = np.memmap(path, np.uint8, mode="r")
    file = Bytes(data)
    try:
        _, version, tensors, settings = file.take("4sIQQ")
        if version not in (2, 3):
            raise ValueError(f"Expected GGUF of version 2 or 3; {path.name} has version {version}.")
        values = {file.text(): file.value(*file.take("I")) for _ in range(settings)}
        places = []
        for _ in range(tensors):
            name, (dimensions,) = file.text(), file.take("I")
            *sizes, kind, place = file.take(f"{dimensions}QIQ")
            places.append((name, tuple(reversed(sizes)), kind, place))  # the file has the innermost size first
        alignment = values.get("general.alignment", 32)
        start = file.at + -file.at % alignment
    except (struct.error, UnicodeDecodeError, KeyError, MemoryError, TypeError, ZeroDivisionError) as error:
        raise ValueError(
            f"{path.name} is damaged or cut off: its list of contents breaks off at byte {file.at}."
        ) from error
    spans = []
    for name, sizes, kind, place in places:  # all are looked at before any is read
        if kind not in KINDS:
            known = ", ".join(name for name, *_ in KINDS.values())
            raise ValueError(f"Expected weights as {known}; {name} in {path.name} is of the kind numbered {kind}.")
        _, weights, size, _ = KINDS[kind]
        first, last = start + place, start + place + math.prod(sizes) // weights * size
        if math.prod(sizes) % weights:
            raise ValueError(f"Expected sizes in blocks of {weights}; {name} in {path.name} has {sizes}.")
        if last > len(data):
            raise ValueError(f"{path.name} is cut off: {name} ends at byte {last}, the file at byte {len(data)}.")
        spans.append((name, kind, first, last, sizes))
    return values, {name: dequantise(kind, data[first:last], sizes) for name, kind, first, last, sizes in spans}


NAMES = {  # llama.cpp's → Hugging Face's
    "token_embd": "embed_tokens", "output_norm": "norm", "output": "lm_head", "blk": "layers",
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip


def llama_state(settings: dict[str, Any], tensors: dict[str, Tensor]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The same model as Hugging Face writes it: its ``config.json``, and the weights under their names there."""
    kind, scaling = settings.get("general.architecture"), settings.get("llama.rope.scaling.type", "none")
    if kind != "llama" or scaling != "none":
        raise ValueError(f"Expected a model of type llama, its positions not scaled; got {kind}, scaled by {scaling}.")
    state = {".".join(NAMES.get(part, part) for part in name.split(".")): w for name, w in tensors.items()}
    try:
        heads = settings["llama.attention.head_count"]
        kv_heads = settings.get("llama.attention.head_count_kv", heads)
        config = {
            "architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "float32",
            "hidden_size": settings["llama.embedding_length"], "num_hidden_layers": settings["llama.block_count"],
            "intermediate_size": settings["llama.feed_forward_length"], "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "max_position_embeddings": settings["llama.context_length"],
            "rms_norm_eps": settings["llama.attention.layer_norm_rms_epsilon"],
            "rope_parameters": {"rope_type": "default", "rope_theta": settings.get("llama.rope.freq_base", 10_000.0)},
            "tie_word_embeddings": "lm_head.weight" not in state, "vocab_size": len(state["embed_tokens.weight"]),
            "bos_token_id": settings.get("tokenizer.ggml.bos_token_id"),
            "eos_token_id": settings.get("tokenizer.ggml.eos_token_id"),
            "pad_token_id": settings.get("tokenizer.ggml.padding_token_id"),
        }  # fmt: skip
    except KeyError as error:
        raise ValueError(f"Expected a GGUF file of a llama model; it lacks {error}.") from None
    for name, w in state.items():  # rotary positions turn neighbours there, the two halves of a head here
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            pairs = w.unflatten(0, (heads if "q_proj" in name else kv_heads, -1, 2))
            state[name] = pairs.transpose(1, 2).reshape(w.shape)
    return config, {name if name.startswith("lm_head") else f"model.{name}": w for name, w in state.items()}
