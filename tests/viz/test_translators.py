"""Drawings of lesson 02: the parts that it speaks of are there."""

import pytest
import torch

from course_lib import viz
from course_lib.viz import translators


@pytest.mark.parametrize("looks_back", [False, True])
def test_a_recurrent_translator(looks_back):
    _, ax = viz.figure()
    translators.recurrent_translator(ax, ["red", "house"], ["casa", "roja"], looks_back)
    written = [text.get_text() for text in ax.texts]
    assert {"red", "house", "casa", "roja", "⟨s⟩", "encoder", "decoder"} <= set(written)
    assert ("query $s_2$" in written) == looks_back
    assert any("gets through" in text for text in written) != looks_back


def test_a_look_in_numbers():
    _, ax = viz.figure()
    states = torch.tensor([[0.0, 2.0], [1.0, -1.0]])
    translators.look_in_numbers(
        ax, ["a", "b"], states, torch.tensor([0.0, 1.5]), [3.0, -1.5], [0.75, 0.25], torch.tensor([0.25, 1.25])
    )
    written = {text.get_text() for text in ax.texts}
    assert {"a", "b", "(0, 2)", "(1, −1)", "3", "−1.5", "0.75", "0.25"} <= written
    assert "context\n$\\sum_j α_j h_j$ = (0.25, 1.2)" in written


def test_the_hops_of_a_memory():
    _, ax = viz.figure()
    translators.memory_hops(ax, ["joe went home", "joe took the milk"], "where is the milk", "home", [1, 0])
    written = {text.get_text() for text in ax.texts}
    assert {"joe went home", "joe took the milk", "home", "keys 1", "values 2", "$q_2$"} <= written
    assert "$q_0$: where is the milk" in written
