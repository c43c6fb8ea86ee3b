"""BertViz's views: nothing is loaded, a picture stands beside each, clear errors."""

import pytest
import torch
from without_double import WithoutDouble

from course_lib import viz
from course_lib.models import attention as attending
from course_lib.viz import bertviz


@pytest.fixture
def queries_keys():
    return torch.randn(2, 2, 3, 5, 4, generator=torch.Generator().manual_seed(0))  # 2 layers, 3 heads, 5 tokens


@pytest.fixture
def attention(queries_keys):
    queries, keys = queries_keys
    return [layer[None] for layer in attending.attention(queries, keys, keys)[1]]


TOKENS = ["[CLS]", "the", "</script>", "3.14159265", "[SEP]"]


@pytest.mark.parametrize("view", ["head_view", "model_view", "neuron_view"])
def test_a_view_loads_nothing_and_has_a_picture(shown, attention, queries_keys, view):
    arguments = (*queries_keys, TOKENS) if view == "neuron_view" else (attention, TOKENS)
    getattr(viz, view)(*arguments)
    html = shown[0][0]["text/html"]
    assert "<script src" not in html
    assert html.count("</script>") == 1
    assert '"3.14159265"' in html  # tokens are not rounded, weights are
    assert len(html) < 420_000
    assert shown[1][1]["image/png"]["alt"]


def test_cross_attention_has_two_lists_of_tokens(shown, attention):
    viz.head_view([layer[..., :2] for layer in attention], TOKENS, ["le", "chat"], heads=[1], alt="Seen.")
    assert '"right_text": ["le", "chat"]' in shown[0][0]["text/html"]
    assert shown[1][1]["image/png"]["alt"] == "Seen."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: (), "attn_implementation='eager'"),
        (lambda a: [torch.cat([x, x]) for x in a], "batch of one"),
        (lambda a: [x[..., :3] for x in a], "5 queries × 3 keys"),
        (lambda a: [x * torch.nan for x in a], "not finite"),
        (lambda a: [x[0, 0] for x in a], r"\(1, heads, queries, keys\)"),
    ],
)
def test_views_say_what_is_wrong(shown, attention, change, message):
    with pytest.raises(ValueError, match=message):
        viz.head_view(change(attention), TOKENS)
    assert shown == []


def test_views_know_their_layers_and_heads(shown, attention, queries_keys):
    with pytest.raises(ValueError, match="layer 2 does not exist: there are 2"):
        viz.head_view(attention, TOKENS, layer=2)
    with pytest.raises(ValueError, match="head 3 does not exist: there are 3"):
        viz.neuron_view(*queries_keys, TOKENS, head=3)
    assert shown == []


def test_a_missing_library_is_named(monkeypatch):
    bertviz.libraries.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match="pip install mpld3"):
        bertviz.libraries()


def test_views_of_a_gpu_without_float64(shown, attention, queries_keys):
    with pytest.raises(TypeError, match="float64"):
        attention[0].as_subclass(WithoutDouble).double()
    viz.head_view([layer.as_subclass(WithoutDouble) for layer in attention], TOKENS)
    viz.neuron_view(*queries_keys.as_subclass(WithoutDouble), TOKENS)
    assert [kind for data, _ in shown for kind in data if kind.startswith("image")] == ["image/png"] * 2
