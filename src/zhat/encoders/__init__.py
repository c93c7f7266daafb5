"""The learner's networks: any `nn.Module` `(…, m) -> (…, k)` will do; these are the papers'."""

from zhat.encoders.gpt import GPT
from zhat.encoders.mlp import mlp
from zhat.encoders.outputs import OntoBox, OntoSphere, output
from zhat.encoders.pair import Pair, Towers
from zhat.encoders.residual import Residual, residual_mlp
from zhat.encoders.words import ContextSum

__all__ = ["mlp", "residual_mlp", "Residual", "output", "OntoBox", "OntoSphere", "Pair", "Towers", "ContextSum", "GPT"]
