r"""Probes: how much can be read off a network's hidden vectors by a linear map?

A probe is trained on the vectors of a network that stays as it is. If a *linear* probe can name a property of tokens it
has not seen, the property lies open in the vectors; if not, it may be gone, or hidden where no linear map finds it.
"""

import torch
from torch import Tensor
from torch.nn import functional as F


def linear_probe(hidden: Tensor, labels: Tensor, classes: int, penalty: float = 1.0) -> Tensor:
    r"""The weights $W = (X^\top X + \lambda I)^{-1} X^\top Y$ of a ridge regression onto the classes: (d + 1, classes).

    hidden (n, d), labels (n) from 0 to classes − 1. $X$ is ``hidden`` with a column of ones at its end (the bias), $Y$
    has a 1 at each row's class, and $\lambda$, the ``penalty``, keeps the weights small.
    """
    X = torch.cat([hidden, torch.ones_like(hidden[:, :1])], dim=1)  # (n, d + 1)
    Y = F.one_hot(labels, classes).to(X.dtype)  # (n, classes)
    ridge = penalty * torch.eye(X.shape[1], dtype=X.dtype, device=X.device)
    return torch.linalg.solve(X.T @ X + ridge, X.T @ Y)


def probe_accuracy(weights: Tensor, hidden: Tensor, labels: Tensor) -> float:
    """The share of rows whose class the probe names. weights (d + 1, classes), hidden (n, d), labels (n)."""
    weights = weights.to(hidden)  # a probe may have been computed in double
    scores = hidden @ weights[:-1] + weights[-1]  # (n, classes)
    return (scores.argmax(dim=1) == labels).float().mean().item()
