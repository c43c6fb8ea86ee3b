"""Real weights: into a folder, and from there into the course's own models.

``weights("minilm")`` → a folder with ``config.json``, the tokenizer's files and ``model.safetensors``, which any
``from_pretrained(folder)`` of `transformers` reads too. Only safetensors and GGUF: no pickle, no code from elsewhere.

``load_gpt(weights("smollm2"))`` → our `GPT` with those weights; ``load_bert(weights("minilm"))`` → our `Bert`, and
``load_bert(folder, MaskedLM)`` → with a head. Other people name their weights otherwise: each function below says which
of theirs is which of ours. What is missing, left over or of another shape is an error that names it. The last two
functions copy the weights of PyTorch's own modules.
"""

import json
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from course_lib.data import gguf, sources
from course_lib.data.catalogue import WEIGHTS
from course_lib.fast.linear import quicken
from course_lib.models.bert import Bert, BertShape, NextSentence, Pretraining, SentenceClassifier, Tagger
from course_lib.models.gpt import GPT, GPTShape
from course_lib.models.recurrent import GRU, Recurrent
from course_lib.models.transformer import Stack, block

State = dict[str, Tensor]


def weights(name: str, otherwise: str | None = None) -> Path:
    """The folder of the weights ``name`` (``"minilm"``, ``"smollm2"``); fetched first if need be (see `sources.py`).

    ``otherwise``: other weights, for where these cannot be had; then one line says so.
    """
    if name not in WEIGHTS:
        raise ValueError(f"There are no weights {name!r}; there are {', '.join(WEIGHTS)}.")
    try:
        return sources.obtain(WEIGHTS[name])
    except sources.MissingData:
        if otherwise is None:
            raise
        print(f"{name} is not on this machine and could not be fetched: going on with {otherwise}.")
        return weights(otherwise)


def load_gpt(path: Path | str, longest: int = 1024, combine: Callable = block) -> GPT:
    """Our `GPT` with the weights of a folder in GPT-2's or Llama's format, or of a ``.gguf`` file of a Llama.

    It sees at most ``longest`` tokens. ``combine``: see `Block`.
    """
    if Path(path).suffix == ".gguf":
        return llama(*gguf.llama_state(*gguf.read_gguf(path)), longest, combine)
    config = read_config(path, "gpt2", "llama")
    return {"gpt2": gpt2, "llama": llama}[config["model_type"]](config, read_state(path), longest, combine)


def read_config(folder: Path | str, *types: str) -> dict:
    """The settings of a model in a folder, if it is one of these types."""
    file = Path(folder) / "config.json"
    if not file.is_file():
        raise ValueError(f"Expected a folder with config.json and model.safetensors; {folder} has no config.json.")
    config = json.loads(file.read_text(encoding="utf-8"))
    if config.get("model_type") not in types:
        raise ValueError(f"Expected a model of type {' or '.join(types)}; {folder} holds {config.get('model_type')!r}.")
    return config


def read_state(folder: Path | str) -> State:
    """The weights in a folder, of one safetensors file or of several."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    files = sorted(Path(folder).glob("model*.safetensors"))
    if not files:
        raise ValueError(f"Expected a folder with model.safetensors; {folder} has none.")
    state = {}
    for file in files:
        try:
            state |= load_file(file)
        except SafetensorError as error:
            raise ValueError(f"{file.name} is damaged or cut off: {error}.") from error
    return state


ACTIVATION_NAMES = {  # theirs → ours
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


def refuse_unless(what: str, got: object, *known: object) -> None:
    """Settings that our models do not have must not be passed over in silence."""
    if got not in known:
        raise ValueError(f"Expected {what} {' or '.join(map(str, known))}; this model has {got}.")


def shortened(names: list[str], most: int = 5) -> str:
    """The first few of the names, and how many more there are."""
    return "; ".join(sorted(names)[:most]) + (f"; and {len(names) - most} more" if len(names) > most else "")


class Names:
    """Their weights under our names; remembers what was missing, and what nobody has taken."""

    def __init__(self, state: State, prefix: str, ignored: tuple[str, ...] = ()):
        self.theirs = {name.removeprefix(prefix): w for name, w in state.items() if not name.endswith(ignored)}
        self.ours: State = {}
        self.missing: list[str] = []
        self.misfits: list[str] = []

    def weight(self, ours: str, *theirs: str, change: Callable[[Tensor], Tensor] = lambda w: w) -> None:
        """Our weight is theirs; of several, one below the other."""
        found = {name: self.theirs.pop(name) for name in theirs if name in self.theirs}
        self.missing += [name for name in theirs if name not in found]
        if len({w.shape[1:] for w in found.values()}) > 1:
            self.misfits += [f"{name} {tuple(w.shape)}" for name, w in found.items()]
        elif len(found) == len(theirs):
            parts = list(found.values())
            self.ours[ours] = change(torch.cat(parts) if len(parts) > 1 else parts[0])

    def layer(self, ours: str, *theirs: str, change: Callable[[Tensor], Tensor] = lambda w: w) -> None:
        """Weight and bias."""
        self.weight(f"{ours}.weight", *(f"{name}.weight" for name in theirs), change=change)
        self.weight(f"{ours}.bias", *(f"{name}.bias" for name in theirs))

    def into(self, model: nn.Module) -> nn.Module:
        """The model with exactly these weights."""
        wanted = dict(model.named_parameters())
        for name, w in self.ours.items():
            if w.shape != wanted[name].shape:
                self.misfits.append(f"{name} {tuple(w.shape)}, expected {tuple(wanted[name].shape)}")
        wrong = {"missing": self.missing, "left over": list(self.theirs), "of another shape": self.misfits}
        if any(wrong.values()):
            found = [f"{what}: {shortened(names)}" for what, names in wrong.items() if names]
            raise ValueError(f"The weights do not fit the model ({'. '.join(found)}).")
        with torch.no_grad():
            for name, parameter in wanted.items():
                parameter.copy_(self.ours[name])
        return quicken(model.eval())


def gpt2(config: dict, state: State, longest: int, combine: Callable = block) -> GPT:
    """GPT-2: pre-norm, learned positions, GELU by its tanh formula. Its matrices are stored transposed."""
    activation = config.get("activation_function", "gelu_new")
    refuse_unless("the activation", activation, *ACTIVATION_NAMES)
    refuse_unless("embedding and read-out tied:", config.get("tie_word_embeddings", True), True)
    refuse_unless("scale_attn_weights", config.get("scale_attn_weights", True), True)
    refuse_unless("scale_attn_by_inverse_layer_idx", config.get("scale_attn_by_inverse_layer_idx", False), False)
    shape = GPTShape(
        d=config["n_embd"], layers=config["n_layer"], heads=config["n_head"], d_ff=config.get("n_inner"),
        activation=ACTIVATION_NAMES[activation], epsilon=config["layer_norm_epsilon"], vocabulary=config["vocab_size"],
        longest=min(longest, config["n_positions"]),
    )  # fmt: skip
    # The read-out is the embedding once more; older files also store the causal mask.
    names = Names(state, "transformer.", ignored=("lm_head.weight", ".attn.bias", ".attn.masked_bias"))
    names.weight("embed.weight", "wte.weight")
    names.weight("places.weight", "wpe.weight", change=lambda w: w[: shape.longest])
    names.layer("stack.norm", "ln_f")
    for i in range(shape.layers):
        ours, theirs = f"stack.blocks.{i}", f"h.{i}"
        names.layer(f"{ours}.attention_norm", f"{theirs}.ln_1")
        names.layer(f"{ours}.attention.qkv", f"{theirs}.attn.c_attn", change=torch.t)
        names.layer(f"{ours}.attention.output", f"{theirs}.attn.c_proj", change=torch.t)
        names.layer(f"{ours}.feed_forward_norm", f"{theirs}.ln_2")
        names.layer(f"{ours}.feed_forward.inner", f"{theirs}.mlp.c_fc", change=torch.t)
        names.layer(f"{ours}.feed_forward.output", f"{theirs}.mlp.c_proj", change=torch.t)
    return names.into(GPT(shape, combine))


def llama(config: dict, state: State, longest: int, combine: Callable = block) -> GPT:
    """Llama and its kin: RMSNorm, SwiGLU, rotary positions, grouped queries, no biases."""
    heads, positions = config["num_attention_heads"], config.get("rope_parameters") or config.get("rope_scaling") or {}
    width = config["hidden_size"] // heads
    refuse_unless("embedding and read-out tied:", config.get("tie_word_embeddings", False), True)
    refuse_unless("the activation", config.get("hidden_act", "silu"), "silu")
    refuse_unless("rotary positions of type", positions.get("rope_type", "default"), "default")
    refuse_unless("heads of width", config.get("head_dim") or width, width)
    shape = GPTShape(
        d=config["hidden_size"], layers=config["num_hidden_layers"], heads=heads,
        kv_heads=config.get("num_key_value_heads"), d_ff=config["intermediate_size"], activation="swiglu", norm="rms",
        bias=False, epsilon=config["rms_norm_eps"], vocabulary=config["vocab_size"], positions="rotary",
        rotary_base=config.get("rope_theta") or positions["rope_theta"],
        longest=min(longest, config["max_position_embeddings"]),
    )  # fmt: skip
    names = Names(state, "model.", ignored=("lm_head.weight", "rotary_emb.inv_freq"))
    names.weight("embed.weight", "embed_tokens.weight")
    names.weight("stack.norm.weight", "norm.weight")
    for i in range(shape.layers):
        for name, theirs in (
            ("attention_norm", ["input_layernorm"]),
            ("attention.qkv", ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]),
            ("attention.output", ["self_attn.o_proj"]),
            ("feed_forward_norm", ["post_attention_layernorm"]),
            ("feed_forward.inner", ["mlp.gate_proj", "mlp.up_proj"]),
            ("feed_forward.output", ["mlp.down_proj"]),
        ):
            names.weight(f"stack.blocks.{i}.{name}.weight", *(f"layers.{i}.{part}.weight" for part in theirs))
    return names.into(GPT(shape, combine))


def load_bert(folder: Path | str, head: type[nn.Module] | None = None) -> nn.Module:
    """Our `Bert` with the weights of a folder in BERT's format; heads in it are left aside.

    With ``head``, a class of `bert.py` such as `MaskedLM` or `Tagger`: that model, with the weights of its head.
    """
    return bert(read_config(folder, "bert"), read_state(folder), head)


BERT_HEADS = {  # ours → theirs
    "words": "cls.predictions", "words.dense": "cls.predictions.transform.dense",
    "words.norm": "cls.predictions.transform.LayerNorm", "follows": "cls.seq_relationship",
    "classify": "classifier", "tag": "classifier", "ends": "qa_outputs",
}  # fmt: skip


def bert(config: dict, state: State, head: type[nn.Module] | None = None) -> nn.Module:
    """BERT and its kin: post-norm, learned positions, segments. Queries, keys and values are stored apart.

    Without ``head`` only the encoder, with its pooler if there is one. Weights of other heads are left aside.
    """
    refuse_unless("the activation", config["hidden_act"], *ACTIVATION_NAMES)
    refuse_unless("positions of type", config.get("position_embedding_type", "absolute"), "absolute")
    refuse_unless("an encoder: is_decoder", config.get("is_decoder", False), False)
    state = {name.removeprefix("bert."): w for name, w in state.items()}
    for old, new in (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")):  # the first BERT's
        state = {name.replace(old, new): w for name, w in state.items()}
    shape = BertShape(
        d=config["hidden_size"], layers=config["num_hidden_layers"], heads=config["num_attention_heads"],
        d_ff=config["intermediate_size"], activation=ACTIVATION_NAMES[config["hidden_act"]],
        dropout=config["hidden_dropout_prob"], epsilon=config["layer_norm_eps"], vocabulary=config["vocab_size"],
        longest=config["max_position_embeddings"], segments=config["type_vocab_size"],
        pooler=head in (NextSentence, Pretraining, SentenceClassifier) or any(n.startswith("pooler.") for n in state),
    )  # fmt: skip
    model = Bert(shape)
    if head in (SentenceClassifier, Tagger):
        outputs = len(state["classifier.bias"]) if "classifier.bias" in state else 1  # `into` will name it as missing
        model = head(model, outputs)
    elif head is not None:
        model = head(model)
    heads = {}
    for name, _ in model.named_parameters():
        layer, _, part = name.rpartition(".")
        if layer in BERT_HEADS:
            heads[name] = f"{BERT_HEADS[layer]}.{part}"
    if "words.bias" in heads:
        refuse_unless("embedding and read-out tied:", config.get("tie_word_embeddings", True), True)
    kept = {
        n: w for n, w in state.items() if n.startswith(("embeddings.", "encoder.", "pooler.")) or n in heads.values()
    }
    names = Names(kept, "", ignored=("embeddings.position_ids",))  # older files store 0, 1, 2, … there
    for ours, theirs in heads.items():
        names.weight(ours, theirs)
    encoder = "encoder." if head else ""
    for ours, theirs in (("embed", "word"), ("places", "position"), ("segments", "token_type")):
        names.weight(f"{encoder}{ours}.weight", f"embeddings.{theirs}_embeddings.weight")
    names.layer(f"{encoder}norm", "embeddings.LayerNorm")
    if shape.pooler:
        names.layer(f"{encoder}pooler", "pooler.dense")
    for i in range(shape.layers):
        for ours, parts in (
            ("attention.qkv", ["attention.self.query", "attention.self.key", "attention.self.value"]),
            ("attention.output", ["attention.output.dense"]),
            ("attention_norm", ["attention.output.LayerNorm"]),
            ("feed_forward.inner", ["intermediate.dense"]),
            ("feed_forward.output", ["output.dense"]),
            ("feed_forward_norm", ["output.LayerNorm"]),
        ):
            names.layer(f"{encoder}stack.blocks.{i}.{ours}", *(f"encoder.layer.{i}.{part}" for part in parts))
    return names.into(model)


@torch.no_grad()
def copy_recurrent_weights(cell: Recurrent, theirs: nn.RNNBase, direction: str = "") -> None:
    """Give ``cell`` the weights of the first layer of PyTorch's `nn.RNN`, `nn.LSTM` or `nn.GRU`.

    PyTorch keeps two biases everywhere; only the GRU needs both. ``direction="_reverse"`` takes the backward half.
    """
    W, U, b, b_U = (
        getattr(theirs, f"{name}_l0{direction}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    cell.W.copy_(W)
    cell.U.copy_(U)
    cell.b.copy_(b if isinstance(cell, GRU) else b + b_U)
    if isinstance(cell, GRU):
        cell.b_U.copy_(b_U)


@torch.no_grad()
def copy_stack_weights(stack: Stack, theirs: nn.TransformerEncoder | nn.TransformerDecoder) -> None:
    """Give a `Stack` the weights of one half of PyTorch's `nn.Transformer`."""
    for ours, layer in zip(stack.blocks, theirs.layers, strict=True):
        attentions, norms = [(ours.attention, layer.self_attn)], [ours.attention_norm, ours.feed_forward_norm]
        if ours.shape.cross:
            attentions.append((ours.cross, layer.multihead_attn))
            norms.insert(1, ours.cross_norm)
        for mine, other in attentions:
            mine.qkv.weight.copy_(other.in_proj_weight)
            mine.qkv.bias.copy_(other.in_proj_bias)
            mine.output.load_state_dict(other.out_proj.state_dict())
        for place, norm in enumerate(norms, start=1):
            norm.load_state_dict(getattr(layer, f"norm{place}").state_dict())
        ours.feed_forward.inner.load_state_dict(layer.linear1.state_dict())
        ours.feed_forward.output.load_state_dict(layer.linear2.state_dict())
