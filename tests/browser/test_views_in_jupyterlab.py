"""The figures and BertViz's views, as a student's browser draws them."""

import textwrap

import bertviz
import nbformat
import pytest
import torch
from driving import Notebook, wait

from course_lib.data import sources
from course_lib.data.catalogue import WEIGHTS
from course_lib.viz import bertviz as bertviz_offline

pytestmark = pytest.mark.browser

ALT = 'The <b>loss</b> "falls" – it\'s </script> small'
SETUP = """
import torch
from course_lib import viz
viz.style()
tokens = ["[CLS]", "the", "$cat$", "</script>", "sat", "3.14159265"]
queries, keys = torch.randn(2, 2, 3, 6, 8, generator=torch.Generator().manual_seed(0))
attention = [layer[None] for layer in (queries @ keys.transpose(-2, -1)).softmax(-1)]  # 2 layers, 3 heads
"""
FIGURE = f"""
fig, ax = viz.figure()
viz.curves(ax, {{"LSTM": ([1, 2, 3], [3, 2, 1])}}, x="step", y="loss")
viz.show(fig, alt={ALT!r})
"""
FAR = "print('\\n' * 80)"  # so that the views lie far below what is on the screen
SETUP_CELL, FIGURE_CELL, _, HEAD, MODEL, NEURON, CROSS, SPARE = range(8)


@pytest.fixture(scope="module")
def views(browser, jupyterlab):
    """One notebook with a figure and all views, after Run All."""
    notebook = Notebook(browser, jupyterlab)
    path = notebook.write(
        SETUP,
        FIGURE,
        FAR,
        "viz.head_view(attention, tokens, layer=1)",
        "viz.model_view(attention, tokens)",
        "viz.neuron_view(queries, keys, tokens)",
        "viz.head_view([a[..., :2] for a in attention], tokens, ['le', 'chat'])",
        "",
    )
    notebook.open(path).run_all()
    yield notebook
    notebook.close()


def drawn(notebook, index) -> list:
    """The view's own SVG, once it has been drawn."""
    notebook.show(index)
    return wait(lambda: notebook.find(index, "[id^=bertviz-] #vis svg"), 10, f"cell {index} to draw")


def test_a_figure_has_its_alt_text_and_size(views):
    views.show(FIGURE_CELL)
    (image,) = views.find(FIGURE_CELL, "img")
    wait(lambda: image.get_attribute("alt") == ALT, 5, "the alt text")
    assert 700 < image.size["width"] < 950
    assert views.output(FIGURE_CELL).strip() == ""  # the script that sets it leaves nothing to see


@pytest.mark.parametrize(
    ("index", "lines", "options"), [(HEAD, 6 * 6 * 3, 2), (MODEL, 6 * 6 * 6, 0), (NEURON, 6 * 6, 2 + 3), (CROSS, 36, 2)]
)
def test_a_view_is_drawn(views, index, lines, options):
    (svg,) = drawn(views, index)
    assert svg.size["width"] > 300
    assert svg.size["height"] > 100
    assert len(views.find(index, "[id^=bertviz-] svg line, [id^=bertviz-] svg path")) >= lines
    assert len(views.find(index, "[id^=bertviz-] select option")) == options
    assert len([image for image in views.find(index, "img") if image.get_attribute("alt")]) == 1  # the static picture


@pytest.mark.parametrize("index", [HEAD, NEURON])
def test_tokens_are_shown_as_they_are(views, index):
    drawn(views, index)
    text = views.js("return cell(arguments[0]).outputArea.node.querySelector('#vis').textContent", index)
    for token in ("[CLS]", "$cat$", "</script>", "3.14159265"):
        assert token in text


@pytest.mark.parametrize(("index", "layer", "other"), [(HEAD, "1", "0"), (NEURON, "0", "1")])
def test_choosing_another_layer_redraws(views, index, layer, other):
    drawn(views, index)
    picture = "return cell(arguments[0]).outputArea.node.querySelector('#vis').innerHTML"
    before = views.js(picture, index)
    (choice,) = views.find(index, "select#layer")
    assert choice.get_attribute("value") == layer
    choice.find_element("css selector", f"option[value='{other}']").click()
    assert views.js(picture, index) != before
    assert len(drawn(views, index)) == 1


def test_the_neuron_view_expands(views):
    drawn(views, NEURON)
    views.js(
        """const group = cell(arguments[0]).outputArea.node.querySelectorAll('#collapsed #leftText g')[1];
        for (const node of group.querySelectorAll('*'))
            for (const kind of ['mouseover', 'click']) node.dispatchEvent(new MouseEvent(kind, {bubbles: true}))""",
        NEURON,
    )
    (expanded,) = views.find(NEURON, "#expanded")
    assert expanded.get_attribute("visibility") == "visible"
    assert "q × k" in expanded.text


def test_nothing_left_the_machine_and_nothing_failed(views):
    for index in (HEAD, MODEL, NEURON, CROSS):
        drawn(views, index)
    assert views.requests_elsewhere() == []
    assert views.requests  # the log does record
    assert views.errors() == []
    left = views.js(
        "return ['d3', 'jQuery', '$', 'require', 'requirejs', 'define'].filter(name => window[name] !== undefined)"
    )
    assert left == []


@pytest.mark.skipif(not sources.present(WEIGHTS["minilm"]), reason="MiniLM is not in the cache")
def test_the_neuron_view_of_real_weights(views):
    code = """\
        from course_lib import pretrained, tokenizers, viz
        from course_lib.measure import heads
        folder = pretrained.weights("minilm")
        tokenizer, text = tokenizers.load(folder), "The animal was too tired"
        queries, keys = heads.queries_and_keys(pretrained.load_bert(folder), tokenizer.encode(text))
        viz.neuron_view(queries[:2], keys[:2], ["[CLS]", *tokenizer.tokenise(text), "[SEP]"])
    """
    views.set_source(SPARE, textwrap.dedent(code))
    views.run(SPARE)
    assert drawn(views, SPARE)
    assert len(views.find(SPARE, "select option")) == 2 + 12
    assert "animal" in views.output(SPARE)
    assert views.requests_elsewhere() == []


def test_an_answer_can_be_typed_run_and_read(notebook):
    """What the tests of lessons rest on; and that the check above would see a request to another machine."""
    elsewhere = "https://cdnjs.cloudflare.com/ajax/libs/require.js/2.3.6/require.min.js"
    check = "print('right' if answer == 42 else 'wrong')"
    load = f"from IPython.display import HTML; HTML('<script src={elsewhere}></script>')"
    notebook.open(notebook.write("answer = 41", check, load))
    notebook.run_all()
    assert notebook.output(1).strip() == "wrong"
    notebook.set_source(0, "answer = 42")
    notebook.run(0)
    assert notebook.run(1).strip() == "right"
    assert notebook.requests_elsewhere() == [elsewhere]
    assert any("ERR_PROXY_CONNECTION_FAILED" in error for error in notebook.errors())


def test_a_stored_view_that_may_not_run_says_so(notebook):
    """A notebook that came from elsewhere is not trusted: no script of its outputs runs, as on GitHub."""
    html = bertviz_offline.offline(bertviz.head_view([torch.rand(1, 1, 2, 2)], ["a", "b"], html_action="return").data)
    path = notebook.write("1")
    stored = nbformat.read(path, 4)
    stored.cells[0].outputs = [nbformat.v4.new_output("display_data", {"text/html": html})]
    nbformat.write(stored, path)
    notebook.open(path)
    assert notebook.output(0).strip() == bertviz_offline.INVITATION
    assert notebook.find(0, "#vis") == []
    assert notebook.requests_elsewhere() == []
