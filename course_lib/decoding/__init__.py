"""Decoding: how next-token scores become text."""

from course_lib.decoding.cached import CachedModel, Model
from course_lib.decoding.pieces import (
    HIDDEN,
    Filter,
    Filters,
    draw,
    extend,
    extend_at_random,
    min_p,
    one_filter_each,
    repetition_penalty,
    temperature,
)
from course_lib.decoding.search import (
    beam_search,
    contrastive_search,
    exhaustive,
    greedy,
    log_probability,
    sample,
    walk,
)

__all__ = [
    "CachedModel",
    "Filter",
    "Filters",
    "HIDDEN",
    "Model",
    "beam_search",
    "contrastive_search",
    "draw",
    "exhaustive",
    "extend",
    "extend_at_random",
    "greedy",
    "log_probability",
    "min_p",
    "one_filter_each",
    "repetition_penalty",
    "sample",
    "temperature",
    "walk",
]
