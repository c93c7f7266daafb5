"""Recorded data with the same contract as a simulated world: a process that hands over batches."""

from zhat.datasets.arrays import Arrays, Augmented, GivenPairs, NextRow, SameLabel

__all__ = ["Arrays", "NextRow", "SameLabel", "GivenPairs", "Augmented"]
