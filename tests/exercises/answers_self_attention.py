"""The bank of lesson 03. An answer uses only what the notebook has imported (math, torch, nn, F)."""
# ruff: noqa: F811, F821

import math

import torch
from bank import Bank
from torch import nn
from torch.nn import functional as F

BANK = Bank()
wrong, right = BANK.wrong, BANK.right

# What a mutant of the library's piece changes, as its new line → why it is no mistake.
EQUIVALENT = {
    "3.1": {"scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])": "keys are as long as queries"},
    "3.2": {
        "return (torch.eye(d), margin * math.sqrt(d) * wanted)": "it asks for a shoe as it is, and is what it asks for",
        "return (margin * d * wanted, torch.eye(d))": "more than the margin",
    },
    "3.3": {"scale = math.sqrt(k.shape[-1])": "keys are as long as queries"},
    "3.4": {},
    "3.5": {"length = len(masks[-1])": "all masks have one size"},
    "3.6": {
        **{
            f"weights = F.softmax(q @ k.transpose(-2, -1) / math.sqrt({name}.shape[-1]), dim=-1)": "as wide as q"
            for name in "xkv"
        },
        **{
            f"{order} = (nn.Linear(h_dim, h_dim) for _ in range(3))": "three layers alike"
            for order in (
                "self.Q, self.V, self.K",
                "self.K, self.Q, self.V",
                "self.K, self.V, self.Q",
                "self.V, self.Q, self.K",
                "self.V, self.K, self.Q",
            )
        },
    },
}


# --- 3.1 scaled dot-product attention: right ------------------------------------------------------------------------


@right("3.1", "masked_fill")
def attention(q, k, v, mask=None):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(k.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = F.softmax(scores, dim=-1)
    return torch.matmul(weights, v), weights


@right("3.1", "einsum, where, softmax by hand")
def attention(q, k, v, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", q, k) * q.shape[-1] ** -0.5
    if mask is not None:
        scores = torch.where(mask, scores, torch.full_like(scores, -1e9))
    e = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    weights = e / e.sum(dim=-1, keepdim=True)
    return torch.einsum("...qk,...kv->...qv", weights, v), weights


@right("3.1", "the mask added as 0 and −∞, queries scaled first")
def attention(q, k, v, mask=None):
    scores = (q / q.shape[-1] ** 0.5) @ k.mT
    if mask is not None:
        added = torch.zeros(mask.shape, dtype=scores.dtype, device=scores.device)
        scores = scores + added.masked_fill(mask.logical_not(), -math.inf)
    weights = torch.softmax(scores, -1)
    return weights @ v, weights


@right("3.1", "PyTorch's, asked twice")
def attention(q, k, v, mask=None):
    eye = torch.eye(k.shape[-2], dtype=k.dtype, device=k.device).expand(*k.shape[:-2], -1, -1)
    output = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return output, F.scaled_dot_product_attention(q, k, eye, attn_mask=mask)


@right("3.1", "one query after the other")
def attention(q, k, v, mask=None):
    rows, outputs = [], []
    for i in range(q.shape[-2]):
        scores = (q[..., i : i + 1, :] * k).sum(dim=-1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask[..., i, :], -math.inf)
        rows.append(scores.softmax(dim=-1))
        outputs.append((rows[-1][..., None] * v).sum(dim=-2))
    return torch.stack(outputs, dim=-2), torch.stack(rows, dim=-2)


# --- 3.1 wrong ------------------------------------------------------------------------------------------------------


@wrong("3.1", "no scale", says="The scores are not scaled")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "the output alone", says="Expected output and weights to be returned; got a tensor")
def attention(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


@wrong("3.1", "no transpose", says="transpose the keys, `q @ k.transpose(-2, -1)`")
def attention(q, k, v, mask=None):
    weights = (q @ k / math.sqrt(q.shape[-1])).softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "a mask is always there", says="The mask may be None")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "asks the mask itself", says="write `is None` or `is not None`")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "detached weights", says="no gradient reaches q")
def attention(q, k, v, mask=None):
    scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).detach()
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "no argument for the mask", says="It must take (q, k, v, mask)")
def attention(q, k, v):
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "softmax by hand, no maximum taken off", says="e²⁰⁰ is too large for float32")
def attention(q, k, v, mask=None):
    e = torch.exp(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]))
    if mask is not None:
        e = e * mask
    weights = e / e.sum(dim=-1, keepdim=True)
    return weights @ v, weights


@wrong("3.1", "hidden scores become −50", says="a hidden key has a weight: its score must be lower")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -50.0)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


@wrong("3.1", "a mask in square brackets", says="One mask (queries, keys) may serve a whole batch")
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores[~mask] = -math.inf
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


BANK.edited(
    "3.1",
    """
    masked_softmax(scores, mask) → scores.softmax(dim=2) · count dimensions from the end, `dim=-1`
    k.transpose(-2, -1) → k.transpose(1, 2) · `transpose(-2, -1)`
    q @ k.transpose(-2, -1) → torch.bmm(q, k.transpose(-2, -1)) · `@` and `transpose(-2, -1)` serve them all
    masked_softmax(scores, mask) → masked_softmax(scores, mask) * 2
        · must sum to 1 over the keys, the last dimension; here they sum to 2
    k.transpose(-2, -1) → k.T · Only the last two dimensions of k may change places
    """,
)


@wrong("3.1", "the mask after the softmax, divided anew", says="0 / 0 is left, NaN. The mask acts after the softmax")
def attention(q, k, v, mask=None):
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    if mask is not None:
        weights = weights * mask
        weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ v, weights


@wrong("3.1", "the same, and never divided by 0", says="do not sum to 1. The mask acts after the softmax")
def attention(q, k, v, mask=None):
    weights = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).softmax(dim=-1)
    if mask is not None:
        weights = weights * mask
        weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-9)
    return weights @ v, weights


@wrong("3.1", "scores clamped", says="With scores of about ±200 the weights are others than the softmax's")
def attention(q, k, v, mask=None):
    scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).clamp(-50, 50)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


# --- 3.2 a pair of shoes: right --------------------------------------------------------------------------------------


@right("3.2", "entry by entry")
def partner_weights(colours, margin):
    d = colours + 2
    W_Q, W_K = torch.zeros(d, d), torch.zeros(d, d)
    sharp = margin * d**0.5
    for i in range(colours):
        W_Q[i, i] = sharp
        W_K[i, i] = 1.0
    W_Q[colours, colours + 1] = sharp  # a right shoe asks for a left one
    W_Q[colours + 1, colours] = sharp
    W_K[colours, colours] = 1.0
    W_K[colours + 1, colours + 1] = 1.0
    return W_Q, W_K


@right("3.2", "the key is changed, both sides take a root, more than enough")
def partner_weights(colours, margin):
    d = colours + 2
    root = math.sqrt(2 * margin * math.sqrt(d))
    order = [*range(colours), colours + 1, colours]
    return [root * torch.eye(d), root * torch.eye(d)[order]]


@right("3.2", "the same side is punished")
def partner_weights(colours, margin):
    d = colours + 2
    signs = torch.cat([torch.ones(colours), -torch.ones(2)])
    return torch.diag(signs) * margin * math.sqrt(d), torch.eye(d)


@right("3.2", "blocks")
def partner_weights(colours, margin):
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    W_Q = torch.block_diag(torch.eye(colours), swap) * 10 * margin
    return W_Q, torch.eye(colours + 2)


# --- 3.2 wrong ------------------------------------------------------------------------------------------------------


@wrong("3.2", "raw dot products", says="Each shoe looks at itself")
def partner_weights(colours, margin):
    d = colours + 2
    return margin * math.sqrt(d) * torch.eye(d), torch.eye(d)


@wrong("3.2", "the colour alone", says="Each looks at its own colour, but not always at the other side")
def partner_weights(colours, margin):
    W = torch.diag(torch.cat([torch.ones(colours), torch.zeros(2)]))
    return 10 * margin * W, W


@wrong("3.2", "the side alone", says="colour and side must both count")
def partner_weights(colours, margin):
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    return 10 * margin * torch.block_diag(torch.zeros(colours, colours), swap), torch.eye(colours + 2)


@wrong("3.2", "colours changed round, too", says="Some shoes look at one of another pair")
def partner_weights(colours, margin):
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    return 10 * margin * torch.block_diag(torch.eye(colours).roll(1, dims=0), swap), torch.eye(colours + 2)


@wrong("3.2", "not sharp enough", says="The right shoe wins, but by")
def partner_weights(colours, margin):
    d = colours + 2
    W_Q = torch.eye(d)
    W_Q[colours:] = W_Q[colours:].flip(0)
    return margin * W_Q, torch.eye(d)


@wrong("3.2", "a constant instead of the margin", says="The right shoe wins, but by")
def partner_weights(colours, margin):
    W_Q = 1000 * torch.eye(colours + 2)
    W_Q[colours:] = W_Q[colours:].flip(0)
    return W_Q, torch.eye(colours + 2)


@wrong("3.2", "the margin in both matrices", says="The margin in both matrices is multiplied with itself")
def partner_weights(colours, margin):
    d = colours + 2
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    sharp = margin * math.sqrt(d)
    return sharp * torch.block_diag(torch.eye(colours), swap), sharp * torch.eye(d)


@wrong("3.2", "the first two numbers swapped", says="The first two colours have changed places")
def partner_weights(colours, margin):
    W_Q = torch.eye(colours + 2)
    W_Q[:2] = W_Q[:2].flip(0)
    return 10 * margin * W_Q, torch.eye(colours + 2)


@wrong("3.2", "one matrix", says="Expected two tensors to be returned, W_Q and W_K")
def partner_weights(colours, margin):
    return torch.eye(colours + 2)


@wrong("3.2", "three colours always", says="With 2 colours a shoe has 4 numbers: expected W_Q of shape (4, 4)")
def partner_weights(colours, margin):
    W_Q = torch.eye(5)
    W_Q[3:] = W_Q[3:].flip(0)
    return 10 * margin * W_Q, torch.eye(5)


@wrong("3.2", "no margin", says="It must take (colours, margin); yours takes (colours)")
def partner_weights(colours):
    return torch.eye(colours + 2), torch.eye(colours + 2)


@wrong("3.2", "lists", says="Expected two tensors to be returned, W_Q and W_K")
def partner_weights(colours, margin):
    W = [[0.0] * (colours + 2)] * (colours + 2)
    return W, W


@wrong("3.2", "a list times a number", says="what is multiplied here is not")
def partner_weights(colours, margin):
    W = [[0.0] * (colours + 2)] / margin
    return torch.tensor(W), torch.eye(colours + 2)


@wrong("3.2", "float64", says="Shoes are torch.float32, and W_Q is torch.float64")
def partner_weights(colours, margin):
    W_Q = torch.eye(colours + 2, dtype=torch.float64)
    return W_Q, W_Q


@wrong("3.2", "NumPy", says="These are NumPy arrays")
def partner_weights(colours, margin):
    W_Q = torch.eye(colours + 2).numpy()
    return W_Q, W_Q


# --- 3.3 the gradient by hand: right --------------------------------------------------------------------------------


@right("3.3", "the softmax's derivative as a matrix")
def attention_gradients(q, k, v, grad):
    d = q.shape[-1]
    weights = torch.softmax(q @ k.transpose(-2, -1) / d**0.5, dim=-1)
    jacobian = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]  # (…, queries, keys, keys)
    grad_weights = grad @ v.transpose(-2, -1)
    grad_scores = (jacobian @ grad_weights[..., None])[..., 0]
    grad_q = grad_scores @ k / d**0.5
    grad_k = grad_scores.transpose(-2, -1) @ q / d**0.5
    return grad_q, grad_k, weights.transpose(-2, -1) @ grad


@right("3.3", "einsum, the output taken off")
def attention_gradients(q, k, v, grad):
    p = F.softmax(torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.size(-1)), dim=-1)
    output = p @ v
    inner = torch.einsum("...qe,...ke->...qk", grad, v) - (grad * output).sum(dim=-1)[..., None]
    s = p * inner / math.sqrt(q.size(-1))
    return (
        torch.einsum("...qk,...kd->...qd", s, k),
        torch.einsum("...qk,...qd->...kd", s, q),
        torch.einsum("...qk,...qe->...ke", p, grad),
    )


@right("3.3", "one query after the other")
def attention_gradients(q, k, v, grad):
    root = math.sqrt(q.shape[-1])
    rows, grad_k, grad_v = [], torch.zeros_like(k), torch.zeros_like(v)
    for i in range(q.shape[-2]):
        p = ((k * q[..., i, None, :]).sum(dim=-1) / root).softmax(dim=-1)
        back = (v * grad[..., i, None, :]).sum(dim=-1)
        s = p * (back - (p * back).sum(dim=-1, keepdim=True)) / root
        rows.append((s[..., None] * k).sum(dim=-2))
        grad_k = grad_k + s[..., None] * q[..., i, None, :]
        grad_v = grad_v + p[..., None] * grad[..., i, None, :]
    return torch.stack(rows, dim=-2), grad_k, grad_v


# --- 3.3 wrong ------------------------------------------------------------------------------------------------------


@wrong("3.3", "autograd", says="This asks autograd")
def attention_gradients(q, k, v, grad):
    q, k, v = (x.clone().requires_grad_() for x in (q, k, v))
    output = F.scaled_dot_product_attention(q, k, v)
    return torch.autograd.grad(output, (q, k, v), grad)


@wrong("3.3", "autograd, switched on", says="This asks autograd")
def attention_gradients(q, k, v, grad):
    with torch.enable_grad():
        q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
        ((q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v * grad).sum().backward()
    return q.grad, k.grad, v.grad


@wrong("3.3", "softmax by hand, no maximum taken off", says="e²⁰⁰ is too large for float32")
def attention_gradients(q, k, v, grad):
    root = math.sqrt(q.shape[-1])
    e = torch.exp(q @ k.mT / root)
    p = e / e.sum(dim=-1, keepdim=True)
    back = grad @ v.mT
    s = p * (back - (p * back).sum(dim=-1, keepdim=True)) / root
    return s @ k, s.mT @ q, p.mT @ grad


@wrong("3.3", "two results", says="Expected grad_q, grad_k and grad_v to be returned; got a tuple of 2")
def attention_gradients(q, k, v, grad):
    return q, k


BANK.edited(
    "3.3",
    """
    grad_s @ k, grad_s.mT @ q, p.mT @ grad → p.mT @ grad, grad_s @ k, grad_s.mT @ q
        · The three gradients come in another order
    grad @ v.mT → grad @ v · Write the shape of each tensor beside it: which product
    (q @ k.mT → (q @ k.T · leaves the batch alone
    p * (grad_p - mean) → p.mT * (grad_p - mean) · entry by entry, both sides need the same
    (p * grad_p).sum(dim=-1, keepdim=True) → (p * grad_p).sum(dim=-1) · stays beside its row with `keepdim=True`
    grad_p = grad @ v.mT → grad_p = (grad @ v.mT) ; p * grad_p → p * grad · Write the shape of each tensor beside it
    """,
)


# --- 3.4 causal mask: right -----------------------------------------------------------------------------------------


@right("3.4", "tril")
def causal_mask(queries, keys, device=None):
    return torch.tril(torch.ones(queries, keys, device=device), diagonal=keys - queries).bool()


@right("3.4", "places compared")
def causal_mask(queries, keys, device=None):
    query = torch.arange(queries, device=device) + keys - queries
    return torch.arange(keys, device=device) <= query[:, None]


@right("3.4", "not the upper triangle")
def causal_mask(queries, keys, device=None):
    ahead = torch.ones(queries, keys, dtype=torch.bool, device=device).triu(keys - queries + 1)
    return ~ahead


@right("3.4", "two loops")
def causal_mask(queries, keys, device=None):
    rows = [[j <= i + keys - queries for j in range(keys)] for i in range(queries)]
    return torch.tensor(rows, device=device)


@right("3.4", "the last rows of a square")
def causal_mask(queries, keys, device=None):
    return torch.ones(keys, keys, dtype=torch.bool, device=device).tril()[keys - queries :]


# --- 3.4 wrong ------------------------------------------------------------------------------------------------------


@wrong("3.4", "ones and zeros", says="The mask must hold True and False (torch.bool); got torch.float32")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, device=device).tril(keys - queries)


@wrong("3.4", "0 and −∞", says="This mask is to be added to scores")
def causal_mask(queries, keys, device=None):
    return torch.full((queries, keys), -math.inf, device=device).triu(keys - queries + 1)


@wrong("3.4", "upper triangle", says="This is the upper triangle")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool, device=device).triu(keys - queries)


@wrong("3.4", "one ahead", says="A query sees keys after its own place")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries + 1)


@wrong("3.4", "the first queries", says="the queries are the LAST two of the five tokens")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril()


@wrong("3.4", "a list", says="a list of 4")
def causal_mask(queries, keys, device=None):
    return [[j <= i + keys - queries for j in range(keys)] for i in range(queries)]


@wrong("3.4", "device forgotten", says="not made on the device asked for: hand `device` on")
def causal_mask(queries, keys, device=None):
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


@wrong("3.4", "no device", says="It must take (queries, keys, device)")
def causal_mask(queries, keys):
    return torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)


BANK.edited("3.4", ", device=device).tril(keys - queries) → ).tril(keys - queries, device=device) · `tril` does not")


# --- 3.5 what reaches what: right -----------------------------------------------------------------------------------


@right("3.5", "from the first mask on, as integers")
def reach(masks):
    found = masks[0].int()
    for mask in masks[1:]:
        found = ((mask.int() @ found) > 0).int()
    return found.bool()


@right("3.5", "any over the word between")
def reach(masks):
    found = masks[0]
    for mask in masks[1:]:
        found = (mask[:, :, None] & found[None]).any(dim=1)
    return found


@right("3.5", "loops")
def reach(masks):
    n = masks[0].shape[0]
    found = [{t} for t in range(n)]
    for mask in masks:
        found = [set().union(*(found[u] for u in range(n) if mask[t, u])) for t in range(n)]
    return torch.tensor([[s in row for s in range(n)] for row in found])


@right("3.5", "one long product")
def reach(masks):
    return torch.linalg.multi_dot([m.double() for m in masks[::-1]]) > 0 if len(masks) > 1 else masks[0].clone()


# --- 3.5 wrong ------------------------------------------------------------------------------------------------------


@wrong("3.5", "or", says="The masks are joined with *or*")
def reach(masks):
    seen = masks[0]
    for mask in masks[1:]:
        seen = seen | mask
    return seen


@wrong("3.5", "and", says="The masks are joined with *and*")
def reach(masks):
    seen = masks[0]
    for mask in masks[1:]:
        seen = seen & mask
    return seen


@wrong("3.5", "the last mask", says="This is the last mask alone")
def reach(masks):
    return masks[-1]


@right("3.5", "keeping what is seen, which the diagonal does already")
def reach(masks):
    seen = masks[0]
    for mask in masks[1:]:
        seen = seen | (mask.float() @ seen.float() > 0)
    return seen


@wrong("3.5", "the first mask is changed", says="It changes its input masks in place")
def reach(masks):
    seen = masks[0]
    for mask in masks[1:]:
        seen |= mask.float() @ seen.float() > 0
    return seen


@wrong("3.5", "counts in whole numbers", says="a count of them overflows")
def reach(masks):
    seen = masks[0].long()
    for mask in masks[1:]:
        seen = mask.long() @ seen
    return seen != 0


@wrong("3.5", "counts in bytes", says="a count of them overflows")
def reach(masks):
    seen = masks[0].to(torch.uint8)
    for mask in masks[1:]:
        seen = mask.to(torch.uint8) @ seen
    return seen > 0


@wrong("3.5", "how many ways", says="The result must hold True and False (torch.bool); got torch.float32")
def reach(masks):
    seen = torch.eye(len(masks[0]))
    for mask in masks:
        seen = mask.float() @ seen
    return seen


@wrong("3.5", "True times False", says="make numbers of them first, `.float()`")
def reach(masks):
    seen = masks[0]
    for mask in masks[1:]:
        seen = mask @ seen
    return seen


@wrong("3.5", "one mask", says="`masks` is a list of tensors")
def reach(masks):
    return masks.float() @ masks.float() > 0


@wrong("3.5", "a number and a bool", says="Both sides of a product must be numbers of one type")
def reach(masks):
    seen = torch.eye(len(masks[0]))
    for mask in masks:
        seen = mask @ seen
    return seen > 0


@wrong("3.5", "a row is lost", says="which product has that shape again?")
def reach(masks):
    seen = torch.eye(len(masks[0])) > 0
    for mask in masks:
        seen = mask.float()[:, 1:] @ seen.float() > 0
    return seen


@wrong("3.5", "until nothing changes", says="each mask is one layer, and is used once")
def reach(masks):
    seen = torch.eye(len(masks[0]), dtype=torch.bool)
    while True:
        before = seen
        for mask in masks:
            seen = (mask.float() @ seen.float()) > 0
        if torch.equal(before, seen):
            return seen


# --- 3.6 debug the slide: right -------------------------------------------------------------------------------------


@right("3.6", "as small a change as possible")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)
        self.sigma = 1 / math.sqrt(h_dim)

    def forward(self, x):
        import torch.nn.functional as f

        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = f.softmax(q @ k.mT * self.sigma, dim=-1)
        return self.dropout(weights) @ v


@right("3.6", "PyTorch's attention with its dropout")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))

    def forward(self, x):
        p = 0.1 if self.training else 0.0
        return F.scaled_dot_product_attention(self.Q(x), self.K(x), self.V(x), dropout_p=p)


@right("3.6", "the layer nn.Softmax, dropout as a function")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q = nn.Linear(h_dim, h_dim)
        self.K = nn.Linear(h_dim, h_dim)
        self.V = nn.Linear(h_dim, h_dim)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, hidden):
        scores = torch.matmul(self.Q(hidden), self.K(hidden).transpose(-1, -2)) / hidden.shape[-1] ** 0.5
        weights = F.dropout(self.softmax(scores), p=0.1, training=self.training)
        return torch.matmul(weights, self.V(hidden))


# --- 3.6 wrong: the slide's bugs, one after the other ---------------------------------------------------------------


@wrong("3.6", "bug 1: no super().__init__()", says="A module has to set itself up before it can keep layers")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.dropout(p=0.1)

    def forward(x):
        import nn.functional as f

        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = f.Softmax(q @ k.T)
        return self.dropout(weights) @ v


@wrong("3.6", "bug 7: no dim", says="The softmax of a batch runs over dimension 0, as it does if no `dim` is given")
class SlideAttention(nn.Module):
    def __init__(self, h_dim):
        super().__init__()
        self.Q, self.K, self.V = (nn.Linear(h_dim, h_dim) for _ in range(3))
        self.dropout = nn.Dropout(p=0.1)

    def forward(self, x):
        q, k, v = self.Q(x), self.K(x), self.V(x)
        weights = F.softmax(q @ k.transpose(-2, -1))
        return self.dropout(weights) @ v


BANK.edited(
    "3.6",
    """
    super().__init__() → super().__init__ · before all else, and with its brackets
    super().__init__() → ; self.dropout = nn.Dropout(p=0.1) → self.dropout = nn.Dropout(p=0.1); super().__init__()
        · before all else, and with its brackets
    k.transpose(-2, -1) → k.t() · which dimensions of k have to change places, and which must stay?
    k.transpose(-2, -1) → k.transpose() · `transpose` has to be told which two dimensions change places
    nn.Dropout → nn.dropout · how does PyTorch write the names of classes?
    def forward(self, x → def forward(x · `forward`: It must take (self, x); yours takes (x)
    def forward(self, x → def forward(this, x · A method finds its object under the name of its first argument
    q, k, v = → import nn.functional as f; q, k, v = · not a module that Python can find: whose part is it?
    F.softmax → F.Softmax · There are functions here, not layers
    F.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1) → nn.Softmax(q @ k.transpose(-2, -1))
        · is the layer meant, or the function?
    k.transpose(-2, -1) → k · Queries and keys are rows, both
    k.transpose(-2, -1) → k.T · which dimensions of k have to change places, and which must stay?
    k.transpose(-2, -1) → k.transpose(0, 1) · which dimensions of k have to change places, and which must stay?
    k.transpose(-2, -1) → k.transpose(1, 2) · x may be a single text, without a batch
    nn.Linear(h_dim, h_dim) → nn.Linear(h_dim, h_dim, bias=False) · Expected the parameters Q.weight, Q.bias
    self.dropout(weights) → F.dropout(weights, 0.1) · In evaluation two calls give different results
    self.dropout(weights) → weights · dropout sets some of them to 0
    self.dropout(weights) @ v → self.dropout(weights @ v) · the slide drops weights
    math.sqrt(q.shape[-1]) → math.sqrt(h_dim) · `h_dim` is known in `__init__` only
    p=0.1 → p=0.5 · is p = 0.1?
    """,
)
