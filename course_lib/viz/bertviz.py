"""BertViz's three views of attention, drawn without internet, each beside a picture that also shows on GitHub.

BertViz asks a web server for require.js, d3 and jQuery; offline its views stay empty, without an error. Here each view
carries d3 and jQuery, read from the installed packages ``mpld3`` and ``XStatic-jQuery``, and needs nothing else.
A view adds about 0.4 MB to the notebook. Reached as ``viz.head_view``, ``viz.model_view``, ``viz.neuron_view``.
"""

import functools
import importlib.util
import json
import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import torch
from IPython.display import HTML, display
from torch import Tensor

from course_lib.models.attention import attention
from course_lib.viz import figures

INVITATION = "Run this cell for the interactive view (BertViz)."  # all that is seen where scripts do not run: GitHub


def head_view(
    attention: Sequence[Tensor] | Tensor,
    tokens: Sequence[str],
    key_tokens: Sequence[str] | None = None,
    layer: int = 0,
    heads: Sequence[int] | None = None,
    alt: str = "",
) -> None:
    """One layer's attention as lines from queries (left) to keys (right), a colour for each head.

    ``attention`` has a tensor (1, heads, queries, keys) for each layer, as ``transformers`` returns it, or is one
    tensor (layers, heads, queries, keys). ``key_tokens`` are the keys' tokens where they differ (cross-attention). The
    picture beside it shows the mean over ``heads`` (default: all).
    """
    import bertviz

    weights, tokens, key_tokens, given = _checked(attention, tokens, key_tokens)
    _within("layer", layer, len(weights))
    chosen = list(range(weights.shape[1]) if heads is None else heads)
    for head in chosen:
        _within("head", head, weights.shape[1])
    _show(bertviz.head_view(**given, layer=layer, heads=chosen, html_action="return"))

    which = f"head {chosen[0]}" if len(chosen) == 1 else f"mean of {len(chosen)} heads"
    _picture(weights[layer, chosen].mean(0), tokens, key_tokens, f"Layer {layer}, {which}", alt)


def model_view(
    attention: Sequence[Tensor] | Tensor,
    tokens: Sequence[str],
    key_tokens: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    alt: str = "",
) -> None:
    """All heads of all ``layers`` (default: every one) as thumbnails; a click enlarges one. See ``head_view``."""
    import bertviz

    weights, tokens, key_tokens, given = _checked(attention, tokens, key_tokens)
    chosen = list(range(len(weights)) if layers is None else layers)
    for layer in chosen:
        _within("layer", layer, len(weights))
    _show(bertviz.model_view(**given, include_layers=chosen, display_mode="light", html_action="return"), width=970)

    heads = weights.shape[1]
    size = figures.WIDTH / max(heads, 6)
    fig, axes = figures.figure(len(chosen), heads, height=size, width=size * heads + 0.4, squeeze=False)
    for row, layer in enumerate(chosen):
        for head in range(heads):
            ax = axes[row, head]
            ax.imshow(weights[layer, head].numpy(), cmap="Blues", vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set(visible=True, color="#bbbbbb")
            if row == 0:
                ax.set_title(f"head {head}" if head == 0 else head, loc="center", fontsize=11)
            if head == 0:
                ax.set_ylabel(f"layer {layer}", fontsize=11)
    figures.show(
        fig, alt or f"Attention weights of {len(chosen)} layers (rows) and {heads} heads (columns), 0 white, 1 blue."
    )


def neuron_view(
    queries: Tensor, keys: Tensor, tokens: Sequence[str], layer: int = 0, head: int = 0, alt: str = ""
) -> None:
    """How each weight comes about: query × key, number by number, their sum, the softmax. Click a token on the left.

    ``queries`` and ``keys``: (layers, heads, tokens, size). Every number goes into the notebook: give the layers that
    matter, ``queries[:2]``.
    """
    from bertviz import neuron_view as bertviz_neuron_view

    if queries.shape != keys.shape or queries.ndim != 4:
        raise ValueError(
            "neuron_view: queries and keys should both be (layers, heads, tokens, size); "
            f"they are {tuple(queries.shape)} and {tuple(keys.shape)}."
        )
    queries, keys = _on_cpu(queries), _on_cpu(keys)
    _, weights = attention(queries, keys, keys)
    weights, tokens, _, _ = _checked(weights, tokens, None)
    _within("layer", layer, weights.shape[0])
    _within("head", head, weights.shape[1])

    # BertViz would run a model and a tokenizer of its own kind; these stand-ins hand it what we have. Of its kinds,
    # "gpt2" leaves the tokens as they are, but takes it that none looks ahead.
    layers = [
        {"attn": weights[i, None], "queries": queries[i, None], "keys": keys[i, None]} for i in range(len(weights))
    ]
    model = _Recorded(layers)
    tokenizer = SimpleNamespace(tokenize=lambda _: tokens, convert_tokens_to_ids=lambda these: [0] * len(these))
    view = bertviz_neuron_view.show(
        model, "gpt2", tokenizer, "recorded", display_mode="light", layer=layer, head=head, html_action="return"
    )
    view.data = view.data.replace('"bidirectional": false', '"bidirectional": true', 1)
    _show(view, width=1020)

    _picture(weights[layer, head], tokens, tokens, f"Layer {layer}, head {head}", alt)


class _Recorded:
    """Looks like one of BertViz's models and returns what was recorded."""

    def __init__(self, layers: list[dict[str, Tensor]]):
        self.layers = layers

    def eval(self) -> None:
        pass

    def __call__(self, token_ids: Tensor) -> tuple[list[dict[str, Tensor]]]:
        return (self.layers,)


def _on_cpu(x: Tensor) -> Tensor:
    """First to the CPU, then double: Apple's GPUs have no float64."""
    return x.detach().cpu().double()


def _checked(attention, tokens, key_tokens) -> tuple[Tensor, list[str], list[str], dict]:
    """Attention as one tensor (layers, heads, queries, keys), the tokens, and both as BertViz's arguments."""
    if len(attention) == 0:
        raise ValueError(
            "There is no attention to draw. With transformers, load the model with attn_implementation='eager' "
            "and call it with output_attentions=True."
        )
    layers = [_on_cpu(layer) for layer in attention]
    if any(layer.ndim == 4 and len(layer) != 1 for layer in layers):
        raise ValueError("The views show one sentence; give a batch of one: [a[:1] for a in attention].")
    layers = [layer[0] if layer.ndim == 4 else layer for layer in layers]
    if any(layer.ndim != 3 or layer.shape != layers[0].shape for layer in layers):
        shapes = ", ".join(str(tuple(layer.shape)) for layer in attention)
        raise ValueError(f"Each layer's attention should be (1, heads, queries, keys), all alike; they are {shapes}.")
    weights = torch.stack(layers)
    if not weights.isfinite().all():
        raise ValueError("The attention has values that are not finite: a row whose keys are all masked gives NaN.")
    tokens = [str(token) for token in tokens]
    keys = tokens if key_tokens is None else [str(token) for token in key_tokens]
    if weights.shape[2:] != (len(tokens), len(keys)):
        raise ValueError(
            f"The attention is {weights.shape[2]} queries × {weights.shape[3]} keys, "
            f"and there are {len(tokens)} and {len(keys)} tokens."
        )
    listed = list(weights[:, None])
    if key_tokens is None:
        return weights, tokens, keys, {"attention": listed, "tokens": tokens}
    return weights, tokens, keys, {"cross_attention": listed, "decoder_tokens": tokens, "encoder_tokens": keys}


def _within(kind: str, index: int, count: int) -> None:
    if not 0 <= index < count:
        raise ValueError(f"{kind} {index} does not exist: there are {count}, counted from 0.")


def _picture(weights: Tensor, tokens: list[str], key_tokens: list[str], title: str, alt: str) -> None:
    """The heat map that stands beside a view."""
    fig, ax = figures.figure(height=min(7.0, 2.2 + 0.28 * len(tokens)))
    figures.heatmap(ax, weights, tokens, key_tokens, title=title, x="keys", y="queries")
    figures.show(fig, alt or f"{title}: attention weights, a row for each query, a column for each key.")


def _show(view: HTML, width: int = 0) -> None:
    """Display a view made by BertViz as one output that loads nothing."""
    display({"text/html": offline(view.data, width), "text/plain": INVITATION}, raw=True)


def offline(html: str, width: int = 0) -> str:
    """BertViz's HTML with its libraries inside: no require.js, nothing left behind on the page.

    ``width``: pixels that the view needs; it is shown a little smaller to fit a notebook, or else scrolls.

    The script waits until its box is on the page: JupyterLab may draw an output before attaching it.
    """
    page, *scripts = html.split('\n<script type="text/javascript">\n')  # a token cannot break this: JSON has no bare \n
    page = re.sub(r"<script .*?</script>", "", page)
    root = re.search(r"bertviz-[0-9a-f]{32}", page)[0]
    script = "\n".join(script.removesuffix("\n</script>\n") for script in scripts)
    script = re.sub(r"; // HACK: \{.*\} is a template marker.*", ";", script)  # a comment in which all data stand again
    # Three decimals draw the same picture and halve the notebook.
    script = re.sub(r"(?<=[\[ -])(\d+\.\d+(?:e-\d+)?)(, |(?=]))", _shortened, script)
    if width:
        page += f"<style>#{root} #vis {{zoom: 0.88}} #{root} svg {{min-width: {width}px; max-width: none}}</style>"
    d3, jquery = libraries()
    script = f"""
(function () {{
  const define = undefined, module = undefined, exports = undefined;
  {d3}
  {jquery}
  const d3 = this.d3, $ = window.jQuery.noConflict(true);
  const requirejs = (names, view) => view($, d3), require = {{ config() {{}} }};
  (function draw() {{
    const box = document.getElementById("box-{root}");
    if (!box) return setTimeout(draw, 100);
    box.innerHTML = {json.dumps(page)};
    {script}
  }})();
}}).call({{}});"""
    script = script.replace("</", r"<\/")  # a token may be “</script>”
    look = 'class="mathjax_ignore" style="background: white; color: black; overflow-x: auto"'  # a token may be “$x$”
    return f'<div id="box-{root}" {look}>{INVITATION}</div>\n<script>{script}</script>'


def _shortened(number: re.Match) -> str:
    return f"{round(float(number[1]), 3):g}" + number[2].strip()


@functools.cache
def libraries() -> tuple[str, str]:
    """The sources of d3 5.x and of jQuery, from the installed packages."""
    d3 = _source("mpld3", "js/d3.v5.min.js", "mpld3")
    return d3, _source("xstatic.pkg.jquery", "data/jquery.min.js", "XStatic-jQuery")


def _source(package: str, path: str, distribution: str) -> str:
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        spec = None
    files = [Path(folder) / path for folder in (spec.submodule_search_locations if spec else [])]
    for file in files:
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise RuntimeError(
        f"BertViz's views need {Path(path).name}, which the package {distribution} carries and which is not "
        f"installed here. Run: pip install {distribution}"
    )
