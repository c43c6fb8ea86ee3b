"""Real weights: into a folder, and from there into the course's own models.

``weights("minilm")`` → a folder with ``config.json``, the tokenizer's files and ``model.safetensors``, which any
``from_pretrained(folder)`` of `transformers` reads too. Only safetensors: no pickle, and no code from elsewhere.

``load_gpt(weights("smollm2"))`` → our `GPT` with those weights; ``load_bert(weights("minilm"))`` → our `Bert`. Other
people name their weights otherwise: each function below says which of theirs is which of ours.
"""

import json
from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib import sources
from course_lib.bert import Bert, BertShape
from course_lib.catalogue import WEIGHTS
from course_lib.gpt import GPT, GPTShape

State = dict[str, Tensor]


def weights(name: str) -> Path:
    """The folder of the weights ``name`` (``"minilm"``, ``"smollm2"``); fetched first if need be (see `sources.py`)."""
    if name not in WEIGHTS:
        raise ValueError(f"There are no weights {name!r}; there are {', '.join(WEIGHTS)}.")
    return sources.obtain(WEIGHTS[name])


def load_gpt(folder: Path | str, longest: int = 1024) -> GPT:
    """Our `GPT` with the weights of a folder in GPT-2's or Llama's format; sees at most ``longest`` tokens."""
    from safetensors.torch import load_file

    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    make = {"gpt2": gpt2, "llama": llama}.get(config["model_type"])
    if make is None:
        raise ValueError(f"Expected a model of type gpt2 or llama; {folder} holds {config['model_type']!r}.")
    return make(config, load_file(Path(folder) / "model.safetensors"), longest)


def gpt2(config: dict, state: State, longest: int) -> GPT:
    """GPT-2: pre-norm, learned positions, GELU by its tanh formula. Its matrices are stored transposed."""
    shape = GPTShape(
        d=config["n_embd"], layers=config["n_layer"], heads=config["n_head"], activation="gelu_tanh",
        epsilon=config["layer_norm_epsilon"], vocabulary=config["vocab_size"],
        longest=min(longest, config["n_positions"]),
    )  # fmt: skip
    state = {name.removeprefix("transformer."): tensor for name, tensor in state.items()}
    ours = {"embed.weight": state["wte.weight"], "places.weight": state["wpe.weight"][: shape.longest]}
    ours |= _both("stack.norm", state, "ln_f")
    for i in range(shape.layers):
        block, theirs = f"stack.blocks.{i}", f"h.{i}"
        ours |= _both(f"{block}.attention_norm", state, f"{theirs}.ln_1")
        ours |= _both(f"{block}.feed_forward_norm", state, f"{theirs}.ln_2")
        for name, their_name in (
            ("attention.qkv", "attn.c_attn"), ("attention.output", "attn.c_proj"),
            ("feed_forward.inner", "mlp.c_fc"), ("feed_forward.output", "mlp.c_proj"),
        ):  # fmt: skip
            ours |= _both(f"{block}.{name}", state, f"{theirs}.{their_name}", transposed=True)
    return _filled(GPT(shape), ours)


def llama(config: dict, state: State, longest: int) -> GPT:
    """Llama and its kin: RMSNorm, SwiGLU, rotary positions, grouped queries, no biases."""
    if not config.get("tie_word_embeddings", False):
        raise ValueError("Expected a model whose embedding and read-out share their weights; this one's do not.")
    base = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
    shape = GPTShape(
        d=config["hidden_size"], layers=config["num_hidden_layers"], heads=config["num_attention_heads"],
        kv_heads=config["num_key_value_heads"], d_ff=config["intermediate_size"], activation="swiglu", norm="rms",
        bias=False, epsilon=config["rms_norm_eps"], vocabulary=config["vocab_size"], positions="rotary",
        rotary_base=base, longest=min(longest, config["max_position_embeddings"]),
    )  # fmt: skip
    state = {name.removeprefix("model."): tensor for name, tensor in state.items()}
    ours = {"embed.weight": state["embed_tokens.weight"], "stack.norm.weight": state["norm.weight"]}
    for i in range(shape.layers):
        block, theirs = f"stack.blocks.{i}", f"layers.{i}"
        ours[f"{block}.attention_norm.weight"] = state[f"{theirs}.input_layernorm.weight"]
        ours[f"{block}.feed_forward_norm.weight"] = state[f"{theirs}.post_attention_layernorm.weight"]
        ours[f"{block}.attention.qkv.weight"] = torch.cat([state[f"{theirs}.self_attn.{k}_proj.weight"] for k in "qkv"])
        ours[f"{block}.attention.output.weight"] = state[f"{theirs}.self_attn.o_proj.weight"]
        inner = [state[f"{theirs}.mlp.{part}_proj.weight"] for part in ("gate", "up")]
        ours[f"{block}.feed_forward.inner.weight"] = torch.cat(inner)
        ours[f"{block}.feed_forward.output.weight"] = state[f"{theirs}.mlp.down_proj.weight"]
    return _filled(GPT(shape), ours)


def load_bert(folder: Path | str) -> Bert:
    """Our `Bert` with the weights of a folder in BERT's format; heads in it are left aside."""
    from safetensors.torch import load_file

    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    if config["model_type"] != "bert":
        raise ValueError(f"Expected a model of type bert; {folder} holds {config['model_type']!r}.")
    return bert(config, load_file(Path(folder) / "model.safetensors"))


BERT_NAMES = {  # theirs → ours, in this order
    "LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias",  # the first BERT's names
    "embeddings.word_embeddings": "embed", "embeddings.position_embeddings": "places",
    "embeddings.token_type_embeddings": "segments", "embeddings.LayerNorm": "norm", "pooler.dense": "pooler",
    "encoder.layer": "stack.blocks", "attention.output.LayerNorm": "attention_norm",
    "attention.output.dense": "attention.output", "intermediate.dense": "feed_forward.inner",
    "output.dense": "feed_forward.output", "output.LayerNorm": "feed_forward_norm",
}  # fmt: skip


def bert(config: dict, state: State) -> Bert:
    """BERT and its kin: post-norm, learned positions, segments. Queries, keys and values are stored apart.

    Only the encoder, with its pooler if there is one; a head's weights (``cls.…``, ``classifier.…``) are left aside.
    """
    activations = {"gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "relu": "relu"}
    if config["hidden_act"] not in activations:
        raise ValueError(f"Expected one of the activations {', '.join(activations)}; got {config['hidden_act']!r}.")
    if config.get("position_embedding_type", "absolute") != "absolute" or config.get("is_decoder", False):
        raise ValueError("Expected an encoder with absolute positions; this model is a decoder, or has others.")
    state = {name.removeprefix("bert."): tensor for name, tensor in state.items()}
    shape = BertShape(
        d=config["hidden_size"], layers=config["num_hidden_layers"], heads=config["num_attention_heads"],
        d_ff=config["intermediate_size"], activation=activations[config["hidden_act"]],
        dropout=config["hidden_dropout_prob"], epsilon=config["layer_norm_eps"], vocabulary=config["vocab_size"],
        longest=config["max_position_embeddings"], segments=config["type_vocab_size"],
        pooler=any(name.startswith("pooler.") for name in state),
    )  # fmt: skip
    ours = {}
    for name, tensor in state.items():
        # Older files also store the numbers of the positions: 0, 1, 2, …
        if name.startswith(("embeddings.", "encoder.", "pooler.")) and name != "embeddings.position_ids":
            for theirs, our_name in BERT_NAMES.items():
                name = name.replace(theirs, our_name)
            ours[name] = tensor
    for block in (f"stack.blocks.{i}.attention" for i in range(shape.layers)):
        for part in ("weight", "bias"):
            names = [f"{block}.self.{name}.{part}" for name in ("query", "key", "value")]
            if len({ours[name].shape if name in ours else None for name in names}) == 1 and names[0] in ours:
                ours[f"{block}.qkv.{part}"] = torch.cat([ours.pop(name) for name in names])
    return _filled(Bert(shape), ours)


def _both(ours: str, state: State, theirs: str, transposed: bool = False) -> State:
    """Weight and bias under our name."""
    weight = state[f"{theirs}.weight"]
    return {f"{ours}.weight": weight.T if transposed else weight, f"{ours}.bias": state[f"{theirs}.bias"]}


def _filled(model: nn.Module, state: State) -> nn.Module:
    """The model with exactly these weights; an error names what is missing, left over or misfitting."""
    wanted = dict(model.named_parameters())
    missing, extra = wanted.keys() - state.keys(), state.keys() - wanted.keys()
    misfits = [name for name in wanted.keys() & state.keys() if wanted[name].shape != state[name].shape]
    if missing or extra or misfits:
        raise ValueError(
            f"The weights do not fit the model: missing {sorted(missing)}, left over {sorted(extra)}, "
            f"of another shape {sorted(misfits)}."
        )
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(state[name])
    return model.eval()
