"""Training: `train` and the schedules of its learning rate."""

from zhat.training.loop import Run, train
from zhat.training.schedules import Constant, Cosine

__all__ = ["train", "Run", "Constant", "Cosine"]
