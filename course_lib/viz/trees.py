"""Trees of continuations: what a model may say next, and after each of these words again, with the probabilities."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from course_lib.decoding import Filter, Model
from course_lib.viz import figures


@dataclass
class Node:
    """A token, its probability after what came before, that of the whole path to it, and what may follow."""

    token: str
    p: float = 1.0
    path: float = 1.0
    children: list["Node"] = field(default_factory=list)

    def leaves(self) -> list["Node"]:
        """The ends of all branches, from the top down."""
        return [leaf for child in self.children for leaf in child.leaves()] or [self]

    def depth(self) -> int:
        """Steps from here to the farthest leaf."""
        return max((1 + child.depth() for child in self.children), default=0)


@torch.no_grad()
def grow(
    model: Model,
    ids: Tensor,
    name: Callable[[int], str],
    depth: int = 3,
    branches: int = 3,
    filters: Filter | None = None,
    end: int | None = None,
) -> Node:
    """The ``branches`` most probable tokens after one prompt (1, length), after each of them again, ``depth`` times.

    ``name`` gives a token's text. Branches of probability 0 are left out; after the token ``end`` nothing follows.
    """
    if ids.dim() != 2 or len(ids) != 1:
        raise ValueError(f"A tree grows from one prompt, (1, length); got ids of shape {tuple(ids.shape)}.")
    root = Node("")
    ends = [(root, ids[0])]  # where branches can still grow, and the ids up to there
    for _ in range(depth):
        if not ends:
            break
        texts = torch.stack([text for _, text in ends])
        scores = model(texts)[:, -1].float()
        p = (filters(scores, texts) if filters else scores).softmax(dim=-1)  # (ends, vocabulary)
        grown = []
        for (node, text), chances, tokens in zip(ends, *p.topk(min(branches, p.shape[-1])), strict=True):
            for chance, token in zip(chances.tolist(), tokens, strict=True):
                if chance > 0:
                    child = Node(name(int(token)), chance, node.path * chance)
                    node.children.append(child)
                    if int(token) != end:
                        grown.append((child, torch.cat([text, token[None]])))
        ends = grown
    return root


def draw_tree(
    ax: Axes,
    root: Node,
    paths: Mapping[str, Sequence[str]] | None = None,
    prompt: str = "",
    title: str = "",
    totals: bool = True,
) -> None:
    """From left to right: each branch with its probability, the thicker the likelier; behind each leaf its path's.

    ``paths`` names texts to be marked: {"greedy": ["yes", "yes"]}. ``prompt`` stands at the root. Without ``totals``
    the probabilities of whole paths are left out.
    """
    rows = {id(leaf): -float(row) for row, leaf in enumerate(root.leaves())}
    looks = {name: figures.look(name, index) for index, name in enumerate(paths or {})}
    drawn = set()

    def place(node: Node) -> float:
        """The height of a node: that of its leaf, or the middle of its children."""
        if id(node) not in rows:
            heights = [place(child) for child in node.children]
            rows[id(node)] = (heights[0] + heights[-1]) / 2
        return rows[id(node)]

    def branch(node: Node, x: int, before: list[str]) -> None:
        if before and node.children:  # from behind the word, which hides its beginning, to where the branches part
            ax.plot((x - 0.35, x + 0.1), [place(node)] * 2, color="#b0b0b0", linewidth=1, zorder=0)
        for child in node.children:
            path = [*before, child.token]
            marks = [name for name, tokens in (paths or {}).items() if list(tokens[: len(path)]) == path]
            start, end = (x + 0.1, place(node)), (x + 0.6, place(child))
            look = {"color": "#b0b0b0", "linestyle": "-"}
            for i, name in enumerate(marks or [""]):
                if name:
                    look = {key: looks[name][key] for key in ("color", "linestyle")}
                    look["label"] = name if name not in drawn else None
                    drawn.add(name)
                shift = 0.1 * i
                ys = (start[1] + shift, end[1] + shift)
                ax.plot((start[0], end[0]), ys, linewidth=1 + 5 * child.p, solid_capstyle="round", zorder=1, **look)
            middle = (0.25 * start[0] + 0.75 * end[0], 0.25 * start[1] + 0.75 * end[1])
            white = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            label = {"ha": "center", "va": "center", "fontsize": 10, "zorder": 2}
            ax.text(*middle, f"{child.p:.2f}", bbox=white, **label)
            text = {"ha": "left", "va": "center", "fontsize": 12, "parse_math": False}
            ax.text(x + 0.63, place(child), figures.visible(child.token), bbox=white, **text)
            if totals and not child.children:
                small = np.format_float_positional(child.path, precision=1, fractional=False)  # never 6e-05
                whole = f"{child.path:.2f}" if child.path >= 0.01 else small
                ax.text(depth + 0.2, place(child), whole, color="#555555", **text)
            branch(child, x + 1, path)

    depth = root.depth()
    if prompt:
        ax.text(0.05, place(root), prompt, ha="right", va="center", fontsize=12, parse_math=False)
    branch(root, 0, [])
    ax.set(xlim=(-0.02, depth + 0.6), ylim=(min(rows.values()) - 0.6, 0.6), title=title, xticks=[], yticks=[])
    if totals:
        ax.text(depth + 0.2, 0.75, "whole path", color="#555555", fontsize=10)
    ax.spines[:].set_visible(False)
    ax.grid(False)
    if looks:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=3.2)
