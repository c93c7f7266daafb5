"""Training: `train`, how to train as a value, schedules."""

from zhat.training.loop import train
from zhat.training.optimisers import Muon
from zhat.training.recipe import Reached, Recipe
from zhat.training.run import Run, load
from zhat.training.schedules import Annealed, Constant, Cosine, Plateau

__all__ = ["train", "load", "Run", "Recipe", "Reached", "Constant", "Cosine", "Plateau", "Annealed", "Muon"]
