"""Recorded data with the same contract as a simulated world: a process that hands over batches."""

from zhat.datasets.cifar10 import CIFAR10
from zhat.datasets.patches import Patches
from zhat.datasets.place import recorded

__all__ = ["recorded", "CIFAR10", "Patches"]
