"""Fingerprints: which run is this? The same code and the same numbers give the same text, in this process or the next.

So a run that finds a checkpoint can tell whether the cell that wrote it has been changed since.
"""

import dataclasses
import enum
import hashlib
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import PurePath
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

BY_REPR = (type(None), bool, int, float, complex, str, bytes, range, slice, enum.Enum, PurePath, np.generic)
BY_REPR += (torch.dtype, torch.device)
KEPT_BY_TORCH = vars(nn.Module()).keys()  # in every module: the mode; hooks and weights, which are read apart


def fingerprint(thing: Any) -> str:
    """Sixteen letters that change with what ``thing`` is made of.

    - Numbers, texts, tensors, arrays, and tuples, lists, sets and dicts of them: by value.
    - A function of yours: its code with the constants in it, its defaults, what it closes over, and the globals that
      it names, other functions and classes among them, and so on from there. Comments and the names of local variables
      do not count. A function of the course: the same without the globals. One of an installed package: its name.
    - A module of `torch.nn`: its class, its settings (such as dropout), its pieces, the hooks on its way forward, and
      the shapes of its weights, not their values: training changes these.
    - Any other object: its class, and those of its attributes that the function around it names.
    """
    found = hashlib.sha256()
    for part in _parts(thing, frozenset(), {}):
        found.update(part if isinstance(part, bytes) else f"{part}\n".encode())
    return found.hexdigest()[:16]


def _parts(thing: Any, names: frozenset[str], met: dict[int, tuple]) -> Iterator[str | bytes]:
    """What the thing is made of, in a fixed order; ``names`` are those in the code around it, ``met`` what was read."""
    yield f"{type(thing).__module__}.{type(thing).__qualname__}"
    if isinstance(thing, BY_REPR):
        yield repr(thing)
        return
    if id(thing) in met:
        yield f"number {met[id(thing)][0]} again"
        return
    if not isinstance(thing, tuple | frozenset | CodeType):  # of these, equal ones may be one or two in memory
        met[id(thing)] = len(met), thing  # the thing too, so that no other is given its id

    if isinstance(thing, Tensor):
        yield f"{tuple(thing.shape)} {thing.dtype}" + " trained" * thing.requires_grad
        if not (thing.requires_grad or isinstance(thing, nn.Parameter) or thing.is_meta or thing.is_sparse):
            yield thing.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    elif isinstance(thing, np.ndarray):
        yield f"{thing.shape} {thing.dtype}"
        yield repr(thing.tolist()) if thing.dtype.hasobject else thing.tobytes()
    elif isinstance(thing, set | frozenset):
        yield from sorted(fingerprint(each) for each in thing)
    else:
        names = _names(thing.__code__) if isinstance(thing, FunctionType) else names
        for piece in _pieces(thing, names):
            yield from _parts(piece, names, met)


def _pieces(thing: Any, names: frozenset[str]) -> list:
    """What a container, a function, a class, a module or any other object consists of."""
    match thing:
        case tuple() | list():
            return list(thing)
        case dict():
            return [piece for item in thing.items() for piece in item]
        case CodeType():
            return [thing.co_code, thing.co_names, thing.co_consts]
        case FunctionType() if _installed(thing.__module__):  # torch replaces its own at their first call
            return [thing.__module__, thing.__qualname__]
        case FunctionType():
            closed_over = [_content(cell) for cell in thing.__closure__ or ()]
            home = thing.__globals__  # of a decorator, if there is one
            named = {name: home.get(name) for name in sorted(names)} if _yours(home["__name__"]) else {}
            return [thing.__code__, thing.__defaults__, thing.__kwdefaults__, closed_over, named]
        case MethodType():
            return [thing.__func__, thing.__self__]
        case BuiltinFunctionType():
            return [thing.__module__, thing.__qualname__]
        case staticmethod() | classmethod():
            return [thing.__func__]
        case property():
            return [thing.fget]
        case partial():
            return [thing.func, thing.args, thing.keywords]
        case type():
            own = {k: v for k, v in vars(thing).items() if not k.startswith("__") or isinstance(v, FunctionType)}
            return [thing.__module__, thing.__qualname__, *([thing.__bases__, own] if _yours(thing.__module__) else [])]
        case nn.Module():
            settings = {k: v for k, v in vars(thing).items() if k not in KEPT_BY_TORCH}
            settings = {k: v for k, v in settings.items() if not isinstance(v, Tensor | list | dict | set)}  # caches
            buffers = {k: tuple(x.shape) for k, x in thing.named_buffers(recurse=False)}
            weights = dict(thing.named_parameters(recurse=False))
            hooks = [*thing._forward_pre_hooks.values(), *thing._forward_hooks.values()]
            return [type(thing), settings, buffers, weights, hooks, dict(thing.named_children())]
        case ModuleType():
            named = sorted(names & vars(thing).keys()) if _yours(thing.__name__) else ()
            return [thing.__name__, {name: vars(thing)[name] for name in named}]
    if dataclasses.is_dataclass(thing):
        return [type(thing), {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}]
    attributes = getattr(thing, "__dict__", {})
    if not (callable(thing) and _yours(type(thing).__module__)):  # of your own object that is called, all count
        attributes = {name: attributes[name] for name in sorted({"__wrapped__", *names} & attributes.keys())}
    return [type(thing), attributes]


def _installed(module: str | None) -> bool:
    """Is it of Python or of an installed package?"""
    top = (module or "builtins").partition(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return top in sys.stdlib_module_names or ("-packages" in file and top not in ("__main__", "course_lib"))


def _yours(module: str | None) -> bool:
    """Is it of a notebook or a script?"""
    return not _installed(module) and not (module or "").startswith("course_lib.")


def _names(code: CodeType) -> frozenset[str]:
    """The globals and attributes that the code names, and the code in it: lambdas, comprehensions."""
    inside = [_names(each) for each in code.co_consts if isinstance(each, CodeType)]
    return frozenset(code.co_names).union(*inside)


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled
        return None
