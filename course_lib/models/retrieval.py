"""The search among texts that have become vectors (`bert.mean_pool` makes them)."""

from torch import Tensor
from torch.nn import functional as F


def cosine_search(queries: Tensor, documents: Tensor, k: int) -> tuple[Tensor, Tensor]:
    r"""The ``k`` documents nearest in direction, $\cos(q, d) = q^\top d \,/\, \lVert q \rVert \lVert d \rVert$.

    queries (n, d), documents (m, d) → cosines (n, k) and places among the documents (n, k), best first. Exact: every
    query is compared with every document. Of fewer than k documents, all.
    """
    cosines = F.normalize(queries, dim=-1) @ F.normalize(documents, dim=-1).T  # (n, m)
    best = cosines.topk(min(k, len(documents)), dim=-1)
    return best.values, best.indices
