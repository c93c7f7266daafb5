"""Training: `train`, how to train as a value, schedules."""

from zhat.training.loop import Run, train
from zhat.training.optimisers import Muon
from zhat.training.recipe import Reached, Recipe
from zhat.training.schedules import Annealed, Constant, Cosine, Plateau

__all__ = ["train", "Run", "Recipe", "Reached", "Constant", "Cosine", "Plateau", "Annealed", "Muon"]
