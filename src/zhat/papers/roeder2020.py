"""Roeder et al. 2020, On Linear Identifiability of Learned Representations: every setting as data."""

from __future__ import annotations

from zhat.experiment import Paper
from zhat.papers._roeder2020_text import FIGURE_1, FIGURE_4, NOTES

PAPER = Paper(
    key="roeder2020",
    title="On Linear Identifiability of Learned Representations",
    figures=(FIGURE_1, FIGURE_4),
    notes=NOTES,
)
