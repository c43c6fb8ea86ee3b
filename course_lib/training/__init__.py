"""Training: the loop (`fit`), losses, schedules, optimisers, checkpoints, and a progress bar."""

from course_lib.data.batches import IGNORED
from course_lib.training.loop import History, TrainingDiverged, autocast_dtype, fit, side_by_side
from course_lib.training.losses import cross_entropy, next_token_loss, smoothed_loss
from course_lib.training.optimisers import adamw, clip_gradients
from course_lib.training.schedules import constant, cosine, inverse_sqrt, linear_decay, linear_warmup

__all__ = [
    "IGNORED",
    "History",
    "TrainingDiverged",
    "adamw",
    "autocast_dtype",
    "clip_gradients",
    "constant",
    "cosine",
    "cross_entropy",
    "fit",
    "inverse_sqrt",
    "linear_decay",
    "linear_warmup",
    "next_token_loss",
    "side_by_side",
    "smoothed_loss",
]
