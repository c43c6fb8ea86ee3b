"""An index finds what a search through all finds, and leaves torch its threads."""

import pytest
import torch
from torch.nn import functional as F

from course_lib.lessons import applying_language_models as lesson
from course_lib.models import retrieval


def test_exact_index_finds_what_cosine_search_finds():
    pytest.importorskip("faiss")
    queries, documents = torch.randn(20, 8), torch.randn(200, 8) * torch.rand(200, 1)
    cosines, places = retrieval.cosine_search(queries, documents, 5)
    found, where = lesson.index(documents).search(F.normalize(queries, dim=-1).numpy(), 5)
    assert (torch.from_numpy(where) == places).all()
    torch.testing.assert_close(torch.from_numpy(found), cosines, atol=1e-5, rtol=1e-5)


def test_graph_index_finds_most():
    pytest.importorskip("faiss")
    queries, documents = torch.randn(50, 8), torch.randn(500, 8)
    _, places = retrieval.cosine_search(queries, documents, 1)
    _, where = lesson.index(documents, neighbours=16).search(F.normalize(queries, dim=-1).numpy(), 1)
    assert (torch.from_numpy(where) == places).float().mean() > 0.8


def test_an_index_leaves_torch_its_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        lesson.index(torch.randn(50, 8), neighbours=4)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
