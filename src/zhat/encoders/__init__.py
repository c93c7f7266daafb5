"""Encoders: networks of the papers. Any `nn.Module` `(rows, …) -> (rows, k)` can be an encoder."""

from zhat.encoders.conv import conv
from zhat.encoders.deconv import deconv
from zhat.encoders.gpt import GPT
from zhat.encoders.mlp import mlp
from zhat.encoders.outputs import OntoBox, OntoProduct, OntoSphere, output
from zhat.encoders.pair import Pair, Towers
from zhat.encoders.posterior import Posterior
from zhat.encoders.residual import Residual, residual_mlp
from zhat.encoders.resnet import resnet18
from zhat.encoders.words import ContextSum

__all__ = [
    "mlp",
    "residual_mlp",
    "Residual",
    "conv",
    "resnet18",
    "deconv",
    "Posterior",
    "output",
    "OntoBox",
    "OntoSphere",
    "OntoProduct",
    "Pair",
    "Towers",
    "ContextSum",
    "GPT",
]
