"""Sprites that are drawn, not read: the grid of dSprites' factors without its files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import torch

from zhat import _checks
from zhat.datasets.known_factors import Recording
from zhat.scenes import sprites

TURN = 39.0  # of 40 angles from 0 to 2π, both ends included


@dataclass(frozen=True)
class SpriteGrid:
    """A stand-in for dSprites: pictures of the same grid of factors, drawn by the formulas of `zhat.scenes.Sprites`.

    The codes are those of dSprites: 6 scales, 40 orientations, 32 places each way. 99.99% of the points of the real
    pictures are equal (`python -m benchmarks.sprites`).

    Args:
        every_orientation: 4 keeps every fourth of the 40 orientations.
        every_place: 2 keeps every second of the 32 places, each way.

    Reference: matthey2017.
    """

    every_orientation: int = 4
    every_place: int = 2
    factors: ClassVar[tuple[str, ...]] = sprites.Sprites.names
    category: ClassVar[str] = "shape"
    classes: ClassVar[int] = 3
    periods: ClassVar[Mapping[str, float]] = MappingProxyType({"orientation": TURN})
    channels: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _checks.count(self.every_orientation, "every_orientation")
        _checks.count(self.every_place, "every_place")

    @property
    def count(self) -> int:
        """How many pictures there are."""
        return math.prod(len(axis) for axis in self._axes())

    def _axes(self) -> tuple[range, ...]:
        place = range(0, 32, self.every_place)
        return range(3), range(6), range(0, 40, self.every_orientation), place, place

    def find(self) -> Path:
        """The file that holds the formulas; nothing else is read."""
        return Path(sprites.__file__)

    def read(self, path: Path) -> Recording:
        """Bits of all pictures, and the codes of five factors."""
        codes = torch.cartesian_prod(*(torch.tensor(axis) for axis in self._axes()))
        packed = []
        for some in codes.split(4096):
            shape, scale, orientation, x, y = some.T.float()
            bits = sprites.drawn(shape, 0.5 + 0.1 * scale, orientation * (2 * math.pi / TURN), x / 31, y / 31)
            packed.append(np.packbits(bits.numpy(), axis=-1))
        return Recording(np.concatenate(packed), codes.numpy())
