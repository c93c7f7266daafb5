"""Training: `train` and its schedules."""

from zhat.training.loop import Run, train
from zhat.training.optimisers import Muon
from zhat.training.schedules import Annealed, Constant, Cosine, Plateau

__all__ = ["train", "Run", "Constant", "Cosine", "Plateau", "Annealed", "Muon"]
