"""Measuring: instruments for any network, metrics, costs, probes, heads."""

from course_lib.measure.instruments import (
    bytes_kept,
    gradient_flow,
    influence,
    operations,
    price,
    seconds,
    serial_depth,
    training_memory,
)

__all__ = [
    "bytes_kept",
    "gradient_flow",
    "influence",
    "operations",
    "price",
    "seconds",
    "serial_depth",
    "training_memory",
]
