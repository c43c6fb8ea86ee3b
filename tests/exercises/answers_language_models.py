"""The bank of lesson 06. An answer uses only torch, nn and math."""
# ruff: noqa: B905, F811, RET503, RET504, RUF007

import math

import torch
from bank import Bank
from torch import nn

BANK = Bank()
wrong, right = BANK.wrong, BANK.right

WORDS, SAME = "the words of the error are the student's own", "the same device and type"

# What a mutant of the library's piece changes, as its new line → why it is no mistake.
EQUIVALENT: dict[str, dict[str, str]] = {
    "6.1": {},
    "6.2": {
        "def block(x, layers, norms, pre_norm=2):": "every call says which",
        "def block(x, layers, norms, pre_norm=0):": "every call says which",
        "for layer, norm in zip(layers, norms, strict=2):": "the lists are of one length",
        "for layer, norm in zip(layers, norms, strict=0):": "the lists are of one length",
    },
    "6.3": {},
    "6.5": {
        "end = cache.length + v.shape[2]": "there are as many values as keys",
        **{
            f"raise ValueError(f'The cache has room for {{cache.keys.shape[{i}]}} tokens; {{{n}}} are needed.')": WORDS
            for i, n in ((2, "cache"), (2, "k"), (2, "v"), (1, "end"), (3, "end"))
        },
    },
    "6.4": {
        "for x, y in list(zip(inputs.split(256), targets.split(256), strict=True))[::-1]:": "a sum has no order",
        "for x, y in zip(inputs.split(256), targets.split(256), strict=2):": "as many inputs as targets",
        "for x, y in zip(inputs.split(256), targets.split(256), strict=0):": "as many inputs as targets",
        "logits = model(x.to(device)).flatten(0, 1)": "single precision already",
        "total += F.cross_entropy(logits, y.to(device).flatten(), reduction='sum')": "exp takes a tensor of one number",
        "return math.exp(total / inputs.numel())": "as many inputs as targets",
        **{f"logits = model(x.to({t})).flatten(0, 1).float()": SAME for t in ("inputs", "targets", "x", "y")},
        **{
            f"total += F.cross_entropy(logits, y.to({t}).flatten(), reduction='sum').item()": SAME
            for t in ("inputs", "targets", "x", "y")
        },
    },
}


# --- 6.1 a merge of byte-pair encoding: right -----------------------------------------------------------------------


@right("6.1", "with a place")
def merge(tokens, pair, new):
    out, i = [], 0
    while i < len(tokens):
        if i + 1 < len(tokens) and tokens[i] == pair[0] and tokens[i + 1] == pair[1]:
            out.append(new)
            i += 2
        else:
            out.append(tokens[i])
            i += 1
    return out


@right("6.1", "with an iterator")
def merge(tokens, pair, new):
    out, rest = [], list(tokens)
    while rest:
        first = rest.pop(0)
        if rest and (first, rest[0]) == tuple(pair):
            rest.pop(0)
            out += [new]
        else:
            out += [first]
    return out


@right("6.1", "through a tuple")
def merge(tokens, pair, new):
    out = ()
    for token in tokens:
        out = (*out[:-1], new) if out and (out[-1], token) == pair else (*out, token)
    return list(out)


# --- 6.1 wrong ------------------------------------------------------------------------------------------------------


BANK.spoilt(
    "6.1",
    "with a place",
    """
    while i < len(tokens): → while i < len(tokens) - 1: · The last token is lost when it ends no pair
    i + 1 < len(tokens) and → · The last token has no neighbour
    """,
)


@wrong("6.1", "overlapping", says="after a merge, go on *behind* the pair")
def merge(tokens, pair, new):
    out = []
    for i, token in enumerate(tokens):
        if tuple(tokens[i : i + 2]) == tuple(pair):
            out.append(new)
        elif i == 0 or tuple(tokens[i - 1 : i + 1]) != tuple(pair):
            out.append(token)
    return out


@wrong("6.1", "from the right", says="It merges from the right")
def merge(tokens, pair, new):
    out = list(tokens)
    i = len(out) - 2
    while i >= 0:
        if (out[i], out[i + 1]) == tuple(pair):
            out[i : i + 2] = [new]
            i -= 1
        i -= 1
    return out


@wrong("6.1", "a list against a tuple", says="A list never equals a tuple")
def merge(tokens, pair, new):
    out, i = [], 0
    while i < len(tokens):
        joined = tokens[i : i + 2] == pair
        out.append(new if joined else tokens[i])
        i += 2 if joined else 1
    return out


@wrong("6.1", "a tuple", says="got a tuple")
def merge(tokens, pair, new):
    out = ()
    for token in tokens:
        out = (*out[:-1], new) if out and (out[-1], token) == pair else (*out, token)
    return out


@wrong("6.1", "only the new ones", says="Only the new tokens are left")
def merge(tokens, pair, new):
    return [new for a, b in zip(tokens, tokens[1:]) if (a, b) == tuple(pair)]


@wrong("6.1", "in place", says="It changes its input tokens in place: make a new list")
def merge(tokens, pair, new):
    i = 0
    while i < len(tokens) - 1:
        if (tokens[i], tokens[i + 1]) == tuple(pair):
            tokens[i : i + 2] = [new]
        i += 1
    return tokens


@wrong("6.1", "as text", says="text cannot tell where a token ends")
def merge(tokens, pair, new):
    return "".join(str(token) for token in tokens).replace("".join(str(p) for p in pair), str(new))


@wrong("6.1", "never ends", says="is there a loop that never ends?")
def merge(tokens, pair, new):
    i = 0
    while i < len(tokens):
        if (tokens[i], tokens[(i + 1) % len(tokens)]) == tuple(pair):
            i += 2
    return tokens


@wrong("6.1", "a list and a token", says="A list takes one more token by `out.append(token)`")
def merge(tokens, pair, new):
    out = []
    for token in tokens:
        if token == pair[1] and out and out[-1] == pair[0]:
            out[-1] = new
        else:
            out = out + token
    return out


@wrong("6.1", "joined into text", says="Tokens may be numbers too: do not join them into text")
def merge(tokens, pair, new):
    marked = "|".join(tokens).replace("|".join(pair), new)
    return marked.split("|")


@wrong("6.1", "text replaced in a list", says="The tokens are a list, not a text")
def merge(tokens, pair, new):
    return list(tokens.replace(pair[0] + pair[1], new))


# --- 6.2 the block: right -------------------------------------------------------------------------------------------


@right("6.2", "two branches")
def block(x, layers, norms, pre_norm=True):
    for i in range(len(layers)):
        if pre_norm:
            h = norms[i](x)
            h = layers[i](h)
            x = x + h
        else:
            h = layers[i](x)
            x = norms[i](x + h)
    return x


@right("6.2", "pairs taken off")
def block(x, layers, norms, pre_norm=True):
    pairs = list(zip(layers, norms))
    while pairs:
        f, n = pairs.pop(0)
        x = f(n(x)) + x if pre_norm else n(f(x) + x)
    return x


@right("6.2", "identity in one of two places")
def block(x, layers, norms, pre_norm=True):
    for layer, norm in zip(layers, norms):
        before, after = (norm, nn.Identity()) if pre_norm else (nn.Identity(), norm)
        x = after(torch.add(x, layer(before(x))))
    return x


# --- 6.2 wrong ------------------------------------------------------------------------------------------------------


@wrong("6.2", "normed residual path", says="the residual path carries the normed x")
def block(x, layers, norms, pre_norm=True):
    for layer, norm in zip(layers, norms):
        if pre_norm:
            x = norm(x)
            x = x + layer(x)
        else:
            x = norm(x + layer(x))
    return x


@wrong("6.2", "returns in the loop", says="Only the first layer is used")
def block(x, layers, norms, pre_norm=True):
    for layer, norm in zip(layers, norms):
        x = x + layer(norm(x)) if pre_norm else norm(x + layer(x))
        return x


@wrong("6.2", "two layers", says="Only the first two layers are used")
def block(x, layers, norms, pre_norm=True):
    if pre_norm:
        x = x + layers[0](norms[0](x))
        return x + layers[1](norms[1](x))
    x = norms[0](x + layers[0](x))
    return norms[1](x + layers[1](x))


@wrong("6.2", "two layers unpacked", says="There may be any number of layers")
def block(x, layers, norms, pre_norm=True):
    (attend, transform), (first, second) = layers, norms
    for layer, norm in ((attend, first), (transform, second)):
        x = x + layer(norm(x)) if pre_norm else norm(x + layer(x))
    return x


@wrong("6.2", "not called", says="Something is missing its call")
def block(x, layers, norms, pre_norm=True):
    for layer, norm in zip(layers, norms):
        x = x + layer if pre_norm else norm(x + layer)
    return x


@wrong("6.2", "in place", says="It changes its input x in place")
def block(x, layers, norms, pre_norm=True):
    for layer, norm in zip(layers, norms):
        if pre_norm:
            x += layer(norm(x))
        else:
            x = norm(x + layer(x))
    return x


@wrong("6.2", "detached", says="gradient reaches x")
def block(x, layers, norms, pre_norm=True):
    for layer, norm in zip(layers, norms):
        x = x.detach() + layer(norm(x)) if pre_norm else norm(x.detach() + layer(x))
    return x


@wrong("6.2", "the list called", says="A layer and a norm are functions")
def block(x, layers, norms, pre_norm=True):
    for layer in layers:
        x = x + layer(norms(x)) if pre_norm else norms(x + layer(x))
    return x


@wrong("6.2", "pairs from one list", says="go through both with `zip`")
def block(x, layers, norms, pre_norm=True):
    for layer, norm in layers:
        x = x + layer(norm(x)) if pre_norm else norm(x + layer(x))
    return x


# --- 6.3 the loss: right --------------------------------------------------------------------------------------------


@right("6.3", "log-softmax and gather")
def next_token_loss(logits, ids):
    log_p = logits[:, :-1].log_softmax(dim=-1)
    return -log_p.gather(-1, ids[:, 1:, None]).mean()


@right("6.3", "transpose")
def next_token_loss(logits, ids):
    return nn.functional.cross_entropy(logits.transpose(1, 2)[..., :-1], ids[:, 1:])


@right("6.3", "a loop over places")
def next_token_loss(logits, ids):
    losses = [nn.functional.cross_entropy(logits[:, t], ids[:, t + 1]) for t in range(ids.shape[1] - 1)]
    return sum(losses) / len(losses)


@right("6.3", "ignored target")
def next_token_loss(logits, ids):
    targets = torch.full_like(ids, -100)
    targets[:, :-1] = ids[:, 1:]
    return nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


# --- 6.3 wrong ------------------------------------------------------------------------------------------------------


@wrong("6.3", "view of a slice", says="A slice does not lie in one piece")
def next_token_loss(logits, ids):
    return nn.functional.cross_entropy(logits[:, :-1].view(-1, logits.shape[-1]), ids[:, 1:].view(-1))


@wrong("6.3", "log of softmax", says="softmax rounds to 0")
def next_token_loss(logits, ids):
    return -logits[:, :-1].softmax(dim=-1).log().gather(-1, ids[:, 1:, None]).mean()


@wrong("6.3", "log of softmax, kept above 0", says="something on the way cuts it off")
def next_token_loss(logits, ids):
    return -logits[:, :-1].softmax(dim=-1).clamp(min=1e-9).log().gather(-1, ids[:, 1:, None]).mean()


@wrong("6.3", "not flattened", says="flatten batch and length first")
def next_token_loss(logits, ids):
    return nn.functional.cross_entropy(logits[:, :-1], ids[:, 1:])


@wrong("6.3", "only the ids are cut", says="one place is left out of each")
def next_token_loss(logits, ids):
    return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


@wrong("6.3", "a Python number", says="Expected loss to be a tensor")
def next_token_loss(logits, ids):
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).item()


@wrong("6.3", "smoothed", says="Labels are smoothed here")
def next_token_loss(logits, ids):
    return nn.functional.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:], label_smoothing=0.1)


@wrong("6.3", "viewed for a transpose", says="it mixes the scores of different places")
def next_token_loss(logits, ids):
    B, T, V = logits.shape
    return nn.functional.cross_entropy(logits[:, :-1].reshape(B, V, T - 1), ids[:, 1:])


@wrong("6.3", "the other way round", says="The scores come first")
def next_token_loss(logits, ids):
    return nn.functional.cross_entropy(ids[:, 1:].flatten(), logits[:, :-1].flatten(0, 1))


@wrong("6.3", "rows of 0 and 1", says="A target is the token's id")
def next_token_loss(logits, ids):
    came = nn.functional.one_hot(ids[:, 1:], logits.shape[-1])
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), came.flatten(0, 1))


# --- 6.4 perplexity: right ------------------------------------------------------------------------------------------


@right("6.4", "mean of the log-probabilities")
def perplexity_of(model, inputs, targets):
    was = model.training
    model.eval()
    with torch.no_grad():
        log_p = model(inputs).log_softmax(dim=-1).gather(-1, targets[..., None])
    model.train(was)
    return (-log_p.mean()).exp()


@right("6.4", "window by window")
def perplexity_of(model, inputs, targets):
    mode = model.training
    model.train(False)
    total, count = 0.0, 0
    with torch.no_grad():
        for x, y in zip(inputs, targets):
            total += nn.functional.cross_entropy(model(x[None])[0], y, reduction="sum").item()
            count += len(y)
    if mode:
        model.train()
    return math.exp(total / count)


@right("6.4", "inference mode, transposed")
def perplexity_of(model, inputs, targets):
    training = model.training
    with torch.inference_mode():
        loss = nn.functional.cross_entropy(model.eval()(inputs).transpose(1, 2), targets)
    model.train(training)
    return loss.exp().item()


# --- 6.4 wrong ------------------------------------------------------------------------------------------------------


@wrong("6.4", "left in evaluation mode", says="The model came in training mode and is left in evaluation mode")
@torch.no_grad()
def perplexity_of(model, inputs, targets):
    model.eval()
    return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).exp().item()


@wrong("6.4", "math.exp of the sum", says="The sum is too large for exp")
@torch.no_grad()
def perplexity_of(model, inputs, targets):
    total = nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), reduction="sum")
    return math.exp(total.item())


@wrong("6.4", "one of each", says="Expected one number")
@torch.no_grad()
def perplexity_of(model, inputs, targets):
    return nn.functional.cross_entropy(model(inputs).transpose(1, 2), targets, reduction="none").exp()


@wrong("6.4", "with a gradient", says="The result carries a gradient")
def perplexity_of(model, inputs, targets):
    training = model.training
    loss = nn.functional.cross_entropy(model.eval()(inputs).flatten(0, 1), targets.flatten())
    model.train(training)
    return loss.exp()


@wrong("6.4", "detached at the end", says="The model is called with gradients on")
def perplexity_of(model, inputs, targets):
    training = model.training
    logits = model.eval()(inputs).detach()
    model.train(training)
    return torch.exp(nn.functional.cross_entropy(logits.transpose(1, 2), targets)).item()


@wrong("6.4", "gradients off for good", says="Gradients are switched off and stay off")
def perplexity_of(model, inputs, targets):
    training = model.training
    torch.set_grad_enabled(False)
    loss = nn.functional.cross_entropy(model.eval()(inputs).flatten(0, 1), targets.flatten())
    model.train(training)
    return loss.exp().item()


@wrong("6.4", "not flattened", says="flatten windows and length first")
@torch.no_grad()
def perplexity_of(model, inputs, targets):
    return nn.functional.cross_entropy(model(inputs), targets).exp().item()


@wrong("6.4", "only the scores flattened", says="There must be as many scores as targets")
@torch.no_grad()
def perplexity_of(model, inputs, targets):
    return nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets[:, -1]).exp().item()


@wrong("6.4", "a step of training", says="Nothing has to be differentiated here")
@torch.no_grad()
def perplexity_of(model, inputs, targets):
    loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
    loss.backward()
    return loss.exp().item()


# --- 6.5 the cache: right -------------------------------------------------------------------------------------------


@right("6.5", "narrow and copy")
def update_cache(cache, k, v):
    start, new = cache.length, k.size(2)
    if start + new > cache.keys.size(2):
        raise ValueError("no room")
    cache.keys.narrow(2, start, new).copy_(k)
    cache.values.narrow(2, start, new).copy_(v)
    cache.length += new
    return cache.keys.narrow(2, 0, cache.length), cache.values.narrow(2, 0, cache.length)


@right("6.5", "token by token")
def update_cache(cache, k, v):
    if cache.length + k.shape[2] > cache.keys.shape[2]:
        raise ValueError(f"{cache.keys.shape[2]} are too few")
    for i in range(k.shape[2]):
        cache.keys[:, :, cache.length] = k[:, :, i]
        cache.values[:, :, cache.length] = v[:, :, i]
        cache.length += 1
    return cache.keys[:, :, : cache.length], cache.values[:, :, : cache.length]


@right("6.5", "a list of two")
def update_cache(cache, k, v):
    end = cache.length + k.shape[2]
    if end > cache.keys.shape[2]:
        raise ValueError("no room")
    cache.keys[:, :, cache.length : end], cache.values[:, :, cache.length : end] = k, v
    cache.length = end
    return [cache.keys[:, :, :end], cache.values[:, :, :end]]


@right("6.5", "a loop over both")
def update_cache(cache, k, v):
    end = cache.length + k.shape[-2]
    results = []
    for room, new in ((cache.keys, k), (cache.values, v)):
        if end > room.shape[-2]:
            raise ValueError(f"There is room for {room.shape[-2]} tokens.")
        room[..., cache.length : end, :] = new
        results.append(room[..., :end, :])
    cache.length = end
    return tuple(results)


# --- 6.5 wrong ------------------------------------------------------------------------------------------------------


@wrong("6.5", "length forgotten", says="`cache.length` did not change")
def update_cache(cache, k, v):
    end = cache.length + k.shape[2]
    if end > cache.keys.shape[2]:
        raise ValueError("no room")
    cache.keys[:, :, cache.length : end] = k
    cache.values[:, :, cache.length : end] = v
    return cache.keys[:, :, :end], cache.values[:, :, :end]


@wrong("6.5", "always from the start", says="The keys of earlier tokens are lost or moved")
def update_cache(cache, k, v):
    end = cache.length + k.shape[2]
    cache.keys[:, :, : k.shape[2]] = k
    cache.values[:, :, : k.shape[2]] = v
    cache.length = end
    return cache.keys[:, :, :end], cache.values[:, :, :end]


@wrong("6.5", "concatenated", says="with every token all of them are copied")
def update_cache(cache, k, v):
    cache.keys = torch.cat([cache.keys[:, :, : cache.length], k], dim=2)
    cache.values = torch.cat([cache.values[:, :, : cache.length], v], dim=2)
    cache.length += k.shape[2]
    return cache.keys, cache.values


@wrong("6.5", "like a list", says="is a tensor with room for all tokens")
def update_cache(cache, k, v):
    cache.keys.append(k)
    cache.values.append(v)
    return cache.keys, cache.values


@wrong("6.5", "counted before it is refused", says="the cache has changed already")
def update_cache(cache, k, v):
    start = cache.length
    cache.length += k.shape[2]
    if cache.length > cache.keys.shape[2]:
        raise ValueError("no room")
    cache.keys[:, :, start : cache.length] = k
    cache.values[:, :, start : cache.length] = v
    return cache.keys[:, :, : cache.length], cache.values[:, :, : cache.length]


@wrong("6.5", "asserted too early", says="it stopped with AssertionError. Is there")
def update_cache(cache, k, v):
    end = cache.length + k.shape[2]
    assert end < cache.keys.shape[2]
    cache.keys[:, :, cache.length : end], cache.values[:, :, cache.length : end] = k, v
    cache.length = end
    return cache.keys[:, :, :end], cache.values[:, :, :end]


@wrong("6.5", "into the cache itself", says="Write into `cache.keys` and `cache.values`, not into the cache")
def update_cache(cache, k, v):
    end = cache.length + k.shape[2]
    cache[cache.length : end] = k, v
    return cache[:end]


# --- wrong, as edits of the library's pieces ------------------------------------------------------------------------

BANK.edited("6.2", "norm(x + layer(x)) → norm(x + layer(x) / 2) · In post-norm order, LN(x + f(x)), with 2 layers")
BANK.edited(
    "6.3",
    """
    predicted.flatten(0, 1) → predicted.flatten(0, 1) / 2 · loss: 2.19736; expected 2.62852
    came.flatten() → came.flatten().float() · The targets are the ids, whole numbers
    """,
)
BANK.edited(
    "6.4",
    """
    model.eval() → pass · its dropout spoils the measurement
    model.train(training) → model.train() · The model came in evaluation mode and is left in training mode
    with torch.no_grad() → if True · The model is called with gradients on
    """,
)
BANK.edited(
    "6.5",
    """
    cache.keys[:, :, :end], cache.values[:, :, :end] → cache.keys, cache.values · return only the 3 tokens so far
    cache.keys[:, :, :end], cache.values[:, :, :end] → k, v · all tokens so far are asked for, not the new
    cache.keys[:, :, :end], cache.values[:, :, :end] → cache.keys[:, 0, :end], cache.values[:, 0, :end]
        · Expected keys of shape (2, 3, 3, 4) after 3 tokens; got (2, 3, 4)
    return cache.keys[:, :, :end] → return cache.keys[:, :, :end].clone() · What you return is a copy
    return cache.keys[:, :, :end], cache.values[:, :, :end] → · is the `return` missing?
    end] = k → end] = v ; cache.values[:, :, cache.length : end] = v → cache.values[:, :, cache.length : end] = k
        · Keys and values are swapped
    end] = v → end] = k · The keys are stored as values too
    cache.values[:, :, cache.length : end] = v → · The keys are right, but the values are not
    end] = k → end] = k[:, :, -1:] · The new keys do not stand where they should
    cache.keys[:, :, cache.length : end] = k → cache.keys[:, :, cache.length] = k[:, :, 0]
        · Some of the new tokens are not stored
    cache.keys[:, :, cache.length : end] → cache.keys[:, :, cache.length + 1 : end + 1]
        · The first new token goes to place `cache.length` itself
    cache.keys[:, :, cache.length : end] = k → cache.keys[:2, :, cache.length : end] = k[:2]
        · A call with other sizes went well: are sizes fixed?
    end = cache.length + k.shape[2] → end = cache.length + 1
        · The part that you write to is not as long as what you write
    end = cache.length + k.shape[2] → end = cache.length + 1 ;
        end] = k → end] = k[:, :, :1] ; end] = v → end] = v[:, :, :1]
        · After 3 tokens keys hold 1: some of the new are left out
    if end > cache.keys.shape[2] → if False · raise a ValueError that says so
    raise ValueError → raise AssertionError · raise a ValueError that says so
    if end > → if end >= · 4 tokens and 2 more just fit into a room of 6
    if end > → if end >= ;
        raise ValueError(f"The cache has room for {cache.keys.shape[2]} tokens; {end} are needed.") → raise ValueError
        · it stopped with ValueError. Is there a `>=`
    if end > cache.keys.shape[2] → if end > cache.keys.shape[1]
        · although there is room: the room is `cache.keys.shape[2]` tokens
    """,
)
