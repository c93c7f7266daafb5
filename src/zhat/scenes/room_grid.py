"""Rooms that are drawn, not read: the grid of Shapes3D's factors without its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import torch

from zhat import _checks
from zhat.datasets.known_factors import Recording
from zhat.scenes import room

GRID = (10, 10, 10, 8, 4, 15)  # hues of floor, walls and object, sizes, shapes, places of the camera


@dataclass(frozen=True)
class RoomGrid:
    """A stand-in for Shapes3D: pictures of the same grid of factors, drawn by `zhat.scenes.Room`.

    The codes are those of Shapes3D; the pictures are ours. By default 10,000 of the 480,000 are drawn, about 20 seconds
    on one core.

    Args:
        every_hue: 2 keeps every second of the ten hues, of floor, walls and object alike.
        every_size: 2 keeps every second of the eight sizes.
        every_place: 3 keeps every third of the fifteen places of the camera.

    Reference: burgess2018.
    """

    every_hue: int = 2
    every_size: int = 2
    every_place: int = 3
    factors: ClassVar[tuple[str, ...]] = ("floorHue", "wallHue", "objHue", "objSize", "objType", "objAzimuth")
    category: ClassVar[str] = "objType"
    classes: ClassVar[int] = 4
    periods: ClassVar[Mapping[str, float]] = MappingProxyType({"floorHue": 10.0, "wallHue": 10.0, "objHue": 10.0})
    channels: ClassVar[int] = 3

    def __post_init__(self) -> None:
        for name in ("every_hue", "every_size", "every_place"):
            _checks.count(getattr(self, name), name)

    def find(self) -> Path:
        """The file that holds the formulas; nothing else is read."""
        return Path(room.__file__)

    def read(self, path: Path) -> Recording:
        """Bytes of all pictures, and the codes of six factors."""
        strides = (self.every_hue, self.every_hue, self.every_hue, self.every_size, 1, self.every_place)
        axes = (torch.arange(0, count, every) for count, every in zip(GRID, strides, strict=True))
        codes = torch.cartesian_prod(*axes)
        pictures = room.Room().build(room.Room.dim, torch.Generator())(latents(codes))
        return Recording(pictures.permute(0, 2, 3, 1).contiguous().numpy(), codes.numpy())


def latents(codes: torch.Tensor) -> torch.Tensor:
    """Latents from -1 to 1 of codes of the grid: evenly spaced, both ends included; shapes in the middle of theirs."""
    count = torch.tensor(GRID)
    spaced = 2 * codes / (count - 1) - 1
    return torch.where(torch.arange(len(GRID)) == 4, (2 * codes + 1) / count - 1, spaced)
