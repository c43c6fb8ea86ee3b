"""Losses: one number that says how wrong a model's scores are."""

from torch import Tensor, nn

from course_lib.data.batches import IGNORED


def cross_entropy(model: nn.Module, inputs, targets: Tensor) -> Tensor:
    """−log p(target), averaged over the targets that are not −100. Logits (…, classes), targets (…).

    ``inputs`` may be a tuple, such as (source, shifted target): then ``model(*inputs)``.
    """
    logits = model(*inputs) if isinstance(inputs, tuple) else model(inputs)
    if logits.shape[:-1] != targets.shape:
        raise ValueError(
            f"The model gave logits of shape {tuple(logits.shape)}, so the targets should have shape "
            f"{tuple(logits.shape[:-1])}; they have {tuple(targets.shape)}."
        )
    return nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORED)


def smoothed_loss(logits: Tensor, targets: Tensor, epsilon: float) -> Tensor:
    r"""$-(1 - \varepsilon) \log p(y) - \frac{\varepsilon}{V} \sum_v \log p(v)$, over all targets but −100.

    Label smoothing (Szegedy et al. 2016): the target is 1 − ε sure; ε is dealt out evenly over all V classes.
    logits (…, classes), targets (…) → one number
    """
    counted = targets != IGNORED
    log_p = logits[counted].log_softmax(dim=-1)  # (targets, classes)
    right = log_p.gather(-1, targets[counted][:, None])[:, 0]
    return -((1 - epsilon) * right + epsilon * log_p.mean(dim=-1)).mean()


def next_token_loss(logits: Tensor, ids: Tensor) -> Tensor:
    """−log p of each token but the first, given those before it; the mean of all.

    logits (batch, length, vocabulary): scores of the token that comes *after* each of ids (batch, length).
    """
    predicted, came = logits[:, :-1], ids[:, 1:]  # what is said at t is about the token at t + 1
    return nn.functional.cross_entropy(predicted.flatten(0, 1), came.flatten())
