"""A still life whose rotations and hues go round: latents on a product of a box and circles."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from zhat.dgp.mixing import Mixer
from zhat.dgp.spaces import Box, Product, Sphere
from zhat.errors import BadInput
from zhat.scenes.objects import Jug, StillLife


@dataclass(frozen=True)
class Periodic:
    """Latents in a box for what has two ends, and on circles for what comes back to its start.

    The place, the second Euler angle and the spotlight's angle have two ends and come first, five numbers from -1 to 1.
    The other two Euler angles and the three hues go round; each is a point of the unit circle, two numbers. The
    second Euler angle stays within half a turn: if all three went round, two triples would be one rotation.

    Args:
        scene: the still life; its latents beyond [-1, 1] must mean more of the same turn, a quarter for each 1.

    Example:
        >>> Periodic().space.dim
        15
    """

    scene: StillLife = Jug()
    ENDS: ClassVar[tuple[int, ...]] = (0, 1, 2, 4, 6)  # latents of the scene, in order
    ROUND: ClassVar[tuple[int, ...]] = (3, 5, 7, 8, 9)

    def __post_init__(self) -> None:
        if not isinstance(self.scene, StillLife):
            raise BadInput(f"`scene` must be a still life such as Jug(), but {self.scene!r} came.")

    @property
    def space(self) -> Product:
        """Where the latents live."""
        return Product(Box(len(self.ENDS), -1.0, 1.0), *[Sphere(2)] * len(self.ROUND))

    @property
    def dim(self) -> int:
        """How many numbers the latents have."""
        return self.space.dim

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""
        said = self.scene.names
        circles = (f"{part} of {said[i]}" for i in self.ROUND for part in ("cos", "sin"))
        return (*(said[i] for i in self.ENDS), *circles)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of a picture."""
        return self.scene.shape

    @property
    def rows_at_once(self) -> int:
        """How many rows a CPU should draw together."""
        return self.scene.rows_at_once

    def find(self) -> None:
        """Raise `MissingData` where the scene reads recorded data that is not there."""
        asked = getattr(self.scene, "find", None)
        if asked is not None:
            asked()

    def build(self, dim: int, generator: torch.Generator) -> Mixer:
        """The renderer behind the angles of the circles."""
        if dim != self.dim:
            raise BadInput(f"Periodic has {self.dim} numbers ({self.space!r}), but {dim} came. Use its `space`.")
        scene = self.scene.build(self.scene.dim, generator)

        def draw(z: Tensor) -> Tensor:
            return scene(self.unrolled(z))

        return draw

    def unrolled(self, z: Tensor) -> Tensor:
        """The latents of the scene, `(…, 15) -> (…, 10)`; a quarter turn is 1."""
        ends, circles = z[..., : len(self.ENDS)], z[..., len(self.ENDS) :].unflatten(-1, (len(self.ROUND), 2))
        angle = torch.atan2(circles[..., 1], circles[..., 0]) * (2 / math.pi)
        order = torch.tensor([*self.ENDS, *self.ROUND], device=z.device).argsort()
        return torch.cat([ends, angle], -1)[..., order]
