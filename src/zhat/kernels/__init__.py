"""The few loops that decide the speed: the pairwise log-sum-exp, and the hidden layers of stacked perceptrons."""

from zhat.kernels.hidden import hidden_layers, last_layer
from zhat.kernels.normalised import can_normalise, normalised_layer
from zhat.kernels.pairwise import pairwise_logsumexp

__all__ = ["pairwise_logsumexp", "hidden_layers", "last_layer", "can_normalise", "normalised_layer"]
