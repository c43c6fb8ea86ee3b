"""Every model steps on any device and in any precision: a tensor made in the wrong place or type fails here."""

from dataclasses import replace

import pytest
import torch
from comparing import RUN, close
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from course_lib import decoding
from course_lib.decoding import speculative
from course_lib.models import bert
from course_lib.models.attention import Alignment
from course_lib.models.bert import Bert, BertShape
from course_lib.models.gpt import GPT, GPTShape
from course_lib.models.inside import recorded
from course_lib.models.memory_network import MemoryNetwork
from course_lib.models.recurrent import GRU, LSTM, Bidirectional, Classifier, Elman
from course_lib.models.transformer import Shape
from course_lib.models.translator import RNNTranslator, TransformerTranslator

WORDS, LENGTH, D = 11, 6, 8
LLAMA = GPTShape(
    d=D, layers=2, heads=2, kv_heads=1, vocabulary=WORDS, longest=16, positions="rotary", norm="rms",
    activation="swiglu", bias=False,
)  # fmt: skip
GPTS = {
    "llama": LLAMA,
    "post-norm": GPTShape(d=D, layers=2, heads=2, vocabulary=WORDS, longest=16, pre_norm=False, activation="relu"),
} | {
    kind: GPTShape(d=D, layers=2, heads=2, vocabulary=WORDS, longest=16, positions=kind)
    for kind in ("learned", "sinusoidal", "rotary", "alibi", "none")
}
BERT = BertShape(d=D, layers=2, heads=2, vocabulary=WORDS, longest=16)
HEADS = {
    "encoder": lambda encoder: encoder,
    "MaskedLM": bert.MaskedLM,
    "NextSentence": bert.NextSentence,
    "Pretraining": bert.Pretraining,
    "SentenceClassifier": lambda encoder: bert.SentenceClassifier(encoder, 3),
    "Tagger": lambda encoder: bert.Tagger(encoder, 3),
    "SpanFinder": bert.SpanFinder,
}
SMALL = Shape(d=D, layers=2, heads=2, d_ff=16)


class Sequence(nn.Module):
    """A recurrent layer alone, on vectors."""

    def __init__(self, layer: nn.Module):
        super().__init__()
        self.embed, self.layer = nn.Embedding(WORDS, D), layer

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        out = self.layer(self.embed(ids))
        return out[0] if isinstance(out, tuple) else out


def whole(*shape: int) -> torch.Tensor:
    return torch.randint(1, WORDS, shape)


def text() -> tuple:
    return (whole(3, LENGTH),)


def padded() -> tuple:
    return whole(3, LENGTH), torch.tensor([LENGTH, 2, 1])


def pair() -> tuple:
    return *padded(), whole(3, 4)


# name → how it is made, and its inputs
MODELS = {
    **{f"GPT {name}": (lambda shape=shape: GPT(shape), text) for name, shape in GPTS.items()},
    **{f"BERT {name}": (lambda head=head: head(Bert(BERT)), padded) for name, head in HEADS.items()},
    "BERT left to right": (lambda: Bert(replace(BERT, causal=True)), padded),
    "RNN translator": (lambda: RNNTranslator(WORDS, WORDS, D, attention=False), pair),
    **{
        f"RNN translator, {kind}": (
            lambda kind=kind: RNNTranslator(WORDS, WORDS, D, attention=Alignment(kind, D, longest=LENGTH)),
            pair,
        )
        for kind in Alignment.KINDS
    },
    "Transformer translator": (lambda: TransformerTranslator(WORDS, WORDS, SMALL), pair),
    "Transformer translator, post-norm": (
        lambda: TransformerTranslator(WORDS, WORDS, replace(SMALL, pre_norm=False)), pair,
    ),
    "memory network": (
        lambda: MemoryNetwork(WORDS, 5, D, hops=3, facts=4, longest=5), lambda: (whole(3, 4, 5), whole(3, 5)),
    ),
    **{f"Classifier of {cell.__name__}": (lambda cell=cell: Classifier(cell(D, D), D, WORDS, 3), padded)
       for cell in (Elman, LSTM, GRU)},
    **{f"Classifier of nn.{cell.__name__}":
           (lambda cell=cell: Classifier(cell(D, D, batch_first=True), D, WORDS, 3), padded)
       for cell in (nn.RNN, nn.LSTM, nn.GRU)},
    **{f"Bidirectional {cell.__name__}": (lambda cell=cell: Sequence(Bidirectional(cell, D, D)), text)
       for cell in (Elman, LSTM, GRU)},
}  # fmt: skip
EVERY_MODEL = pytest.mark.parametrize("name", MODELS)


def loss_of(out: torch.Tensor | tuple) -> torch.Tensor:
    return sum(part.float().square().mean() for part in (out if isinstance(out, tuple) else (out,)))


def all_here(module: nn.Module, inputs: tuple) -> None:
    """An embedding would take ids from another device without a word."""
    here = next(module.parameters()).device if any(True for _ in module.parameters()) else None
    assert here is None or all(x.device == here for x in inputs if isinstance(x, torch.Tensor))


def one_step(model: nn.Module, inputs: tuple) -> torch.Tensor:
    for module in model.modules():
        module.register_forward_pre_hook(all_here)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = loss_of(model(*inputs))
    loss.backward()
    optimiser.step()
    return loss


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@EVERY_MODEL
def test_one_step_on_the_meta_device(name, dtype):
    make, inputs = MODELS[name]
    with torch.device("meta"):
        model = make().to(dtype)
        loss = one_step(model, inputs())
    assert loss.device.type == "meta"
    assert {parameter.dtype for parameter in model.parameters()} == {dtype}


@pytest.mark.filterwarnings("ignore:TF32")  # of the switch below, which has nothing to do with it
@EVERY_MODEL
def test_one_step_in_bfloat16_and_under_autocast(name):
    make, inputs = MODELS[name]
    torch.manual_seed(RUN)
    exact, inputs = make(), inputs()
    with torch.no_grad():
        expected = loss_of(exact(*inputs))
    rough = make().bfloat16()
    rough.load_state_dict(exact.state_dict())
    with torch.backends.mkldnn.flags(enabled=False):  # its nn.LSTM wants a processor that computes in bfloat16
        close(one_step(rough, inputs).detach(), expected, "bfloat16", 0.1)
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(exact(*inputs))
        loss.backward()
    close(loss.detach(), expected, "autocast", 0.1)
    assert all(p.grad is None or p.grad.isfinite().all() for model in (exact, rough) for p in model.parameters())


class EveryTensorSaysWhere(TorchFunctionMode):
    """New tensors must name their device: without it they land on the CPU, wherever the model is."""

    FACTORIES = (
        torch.arange, torch.empty, torch.eye, torch.full, torch.linspace, torch.ones, torch.rand, torch.randint,
        torch.randn, torch.randperm, torch.tensor, torch.as_tensor, torch.zeros,
    )  # fmt: skip

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        assert function not in self.FACTORIES or "device" in kwargs, f"{function.__name__} without a device"
        return function(*args, **kwargs)


@EVERY_MODEL
def test_new_tensors_name_their_device(name):
    make, inputs = MODELS[name]
    model, inputs = make(), inputs()
    with EveryTensorSaysWhere():
        model(*inputs)
        if hasattr(model, "stack"):
            for point in ("attention", "blocks"):
                recorded(model, point, *inputs)


WAYS = {
    "greedy": lambda model, ids, end: decoding.greedy(model, ids, 5, end),
    "beam search": lambda model, ids, end: decoding.beam_search(model, ids, 5, 3, end=end),
    "sample": lambda model, ids, end: decoding.sample(
        model, ids, 5, decoding.Filters(repetition_penalty=1.2, temperature=0.8, top_k=5, top_p=0.9, min_p=0.01), end
    ),
    "contrastive search": lambda model, ids, end: decoding.contrastive_search(model, ids, 5, end=end),
    "speculative": lambda model, ids, end: speculative.speculative(model, model, ids, 5, 2, end=end),
    "exhaustive": lambda model, ids, end: decoding.exhaustive(model, ids[:1], 2),
}


@pytest.mark.parametrize("end", [None, 3])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["learned", "llama", "alibi"])
def test_decoding_in_every_precision_names_its_device(way, name, end):
    torch.manual_seed(RUN)
    model, ids = GPT(GPTS[name]).eval(), whole(2, 4)
    for dtype in (torch.float32, torch.bfloat16):
        model.to(dtype)
        with EveryTensorSaysWhere():
            out = WAYS[way](model, ids, end)
        assert (out[0] if isinstance(out, tuple) else out).dtype == ids.dtype


@pytest.mark.parametrize("name", GPTS)
def test_decoding_on_the_meta_device(name):
    with torch.device("meta"):
        model, ids = GPT(GPTS[name]).eval(), whole(2, 4)
        for way in ("greedy", "sample"):  # the others look at values to see whether they are done
            out = WAYS[way](model, ids, None)
            assert (out.shape, out.device.type) == ((2, 9), "meta")
        caches = model.make_caches(2, 8)
        assert model(ids, caches).device.type == model(ids[:, :1], caches).device.type == "meta"
        assert caches[0].keys.device.type == "meta"


@pytest.mark.gpu
@EVERY_MODEL
def test_a_gpu_gives_what_the_cpu_gives(name):
    place = torch.accelerator.current_accelerator(True)
    if place is None:
        pytest.skip("There is no GPU.")
    make, inputs = MODELS[name]
    torch.manual_seed(RUN)
    model, inputs = make(), inputs()
    results = []
    for device in ("cpu", place):
        model.zero_grad()
        loss = loss_of(model.to(device)(*(x.to(device) for x in inputs)))
        loss.backward()
        results.append([loss.detach().cpu(), *(p.grad.cpu() for p in model.parameters() if p.grad is not None)])
    for cpu, gpu in zip(*results, strict=True):
        close(gpu, cpu, "gradient or loss", 1e-4)


@pytest.mark.gpu
@pytest.mark.parametrize("way", WAYS)
def test_decoding_on_a_gpu(way):
    place = torch.accelerator.current_accelerator(True)
    if place is None:
        pytest.skip("There is no GPU.")
    torch.manual_seed(RUN)
    model, ids = GPT(GPTS["llama"]).eval(), whole(2, 4)
    out = WAYS[way](model.to(place), ids.to(place), 3)
    assert (out[0] if isinstance(out, tuple) else out).device.type == place.type


def test_a_loss_on_the_meta_device_too():
    """As lessons do it: scores, targets, cross-entropy."""
    with torch.device("meta"):
        model, ids = GPT(GPTS["learned"]), whole(2, LENGTH)
        F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()).backward()
        assert model.embed.weight.grad.device.type == "meta"
