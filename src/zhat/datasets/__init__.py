"""Recorded data with the same contract as a simulated world: a process that hands over batches."""

from zhat.datasets.arrays import Arrays, Augmented, GivenPairs, NextRow, SameLabel
from zhat.datasets.cifar10 import CIFAR10
from zhat.datasets.dislib import COIL20, MPI3D, Cars3D, DSprites, Shapes3D, SmallNORB
from zhat.datasets.imagenet_x import ImageNetX
from zhat.datasets.kitti_masks import KITTIMasks
from zhat.datasets.known_factors import KnownFactors
from zhat.datasets.loaded import Loaded
from zhat.datasets.patches import Patches
from zhat.datasets.place import recorded
from zhat.datasets.text import CentreWords, Corpus, Windows

__all__ = [
    "Arrays",
    "NextRow",
    "SameLabel",
    "GivenPairs",
    "Augmented",
    "Loaded",
    "recorded",
    "Corpus",
    "Windows",
    "CentreWords",
    "CIFAR10",
    "Patches",
    "KITTIMasks",
    "KnownFactors",
    "DSprites",
    "Shapes3D",
    "MPI3D",
    "Cars3D",
    "SmallNORB",
    "COIL20",
    "ImageNetX",
]
