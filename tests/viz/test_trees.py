"""Trees of continuations: what they hold, and that what is drawn tells it."""

import matplotlib.pyplot as plt
import pytest
import torch

from course_lib.decoding import Filters
from course_lib.viz import trees

WORDS = ["<s>", "yes", "ok", "</s>"]
FOLLOWS = torch.tensor([[0, 0.5, 0.4, 0.1], [0, 0.4, 0.3, 0.3], [0, 0.2, 0.7, 0.1], [0, 0, 0, 1.0]])


def model(ids):
    return FOLLOWS[ids].log()


def grown(**options):
    return trees.grow(model, torch.tensor([[0]]), WORDS.__getitem__, **{"depth": 2, "end": 3} | options)


def test_the_lectures_tree():
    root = grown()
    assert [child.token for child in root.children] == ["yes", "ok", "</s>"]
    texts = {leaf.path for leaf in root.leaves()}
    assert sum(leaf.path for leaf in root.leaves()) == pytest.approx(1)
    assert max(texts) == pytest.approx(0.28)
    assert root.depth() == 2
    assert root.children[2].children == []  # after the end nothing follows
    assert len(root.leaves()) == 7


def test_few_branches_and_filters():
    assert [child.token for child in grown(branches=1).children] == ["yes"]
    cold = grown(filters=Filters(temperature=0))
    assert [child.p for child in cold.children] == [1.0]  # branches of probability 0 are left out
    assert grown(depth=1, branches=9).depth() == 1
    nucleus = grown(filters=Filters(top_p=0.85), depth=1)
    assert [round(child.p, 3) for child in nucleus.children] == [0.556, 0.444]


def test_only_one_prompt():
    with pytest.raises(ValueError, match=r"one prompt, \(1, length\); got ids of shape \(2, 1\)"):
        trees.grow(model, torch.zeros(2, 1, dtype=torch.long), str)


def test_drawn():
    fig, ax = plt.subplots()
    trees.draw_tree(ax, grown(), {"greedy": ["yes", "yes"], "best": ["ok", "ok"]}, prompt="$ <s>", title="a tree")
    texts = [text.get_text() for text in ax.texts]
    for wanted in ("$ <s>", "yes", "ok", "</s>", "0.50", "0.70", "0.28", "0.20", "0.04"):
        assert wanted in texts
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["greedy", "best"]
    assert ax.get_title(loc="left") == "a tree"
    fig.canvas.draw()
    plt.close(fig)


def test_totals_can_be_left_out():
    fig, ax = plt.subplots()
    trees.draw_tree(ax, grown(), totals=False)
    texts = [text.get_text() for text in ax.texts]
    assert "0.70" in texts
    assert not {"0.28", "whole path"} & set(texts)
    plt.close(fig)


def test_texts_of_tokens_are_made_visible():
    fig, ax = plt.subplots()
    trees.draw_tree(ax, trees.Node("", children=[trees.Node(" a\n", 0.0004, 0.0004), trees.Node("b", 6e-5, 6e-5)]))
    assert {"␣a↵", "0.00", "0.0004", "0.00006"} <= {text.get_text() for text in ax.texts}
    assert ax.get_legend() is None
    plt.close(fig)
