"""Where latents live: geometry only, no probability.

`dim` is always the length of the last axis: `Sphere(10)` is the nine-dimensional sphere inside R^10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from zhat import _checks
from zhat.errors import BadInput

SLACK = 1e-5  # a float32 point counts as lying on a sphere when its norm is right to this share


@runtime_checkable
class Space(Protocol):
    """What a space knows: its dimension, the nearest point, and whether a point belongs to it."""

    @property
    def dim(self) -> int:
        """Length of the last axis of a point."""

    def project(self, z: Tensor) -> Tensor:
        """The nearest points of the space, `(…, dim) -> (…, dim)`."""

    def contains(self, z: Tensor) -> Tensor:
        """Whether each point lies in the space, to rounding, `(…, dim) -> (…)`."""


@dataclass(frozen=True)
class Real:
    """All of R^d."""

    dim: int

    def __post_init__(self) -> None:
        _checks.settle(self, dim=_checks.count(self.dim, "dim"))

    def project(self, z: Tensor) -> Tensor:
        """Every point is its own nearest point."""
        return z

    def contains(self, z: Tensor) -> Tensor:
        """Whether every coordinate is finite."""
        return torch.isfinite(z).all(-1)


@dataclass(frozen=True)
class Sphere:
    """The sphere {z in R^d : |z| = radius}."""

    dim: int
    radius: float = 1.0

    def __post_init__(self) -> None:
        _checks.settle(
            self, dim=_checks.count(self.dim, "dim", least=2), radius=_checks.positive(self.radius, "radius")
        )

    @property
    def log_volume(self) -> float:
        r"""Logarithm of the surface area, $2 \pi^{d/2} r^{d-1} / \Gamma(d/2)$."""
        return (
            math.log(2.0)
            + 0.5 * self.dim * math.log(math.pi)
            - math.lgamma(0.5 * self.dim)
            + (self.dim - 1) * math.log(self.radius)
        )

    def project(self, z: Tensor) -> Tensor:
        """Rescale every point to the radius; the origin, which has no nearest point, gives NaN."""
        norm: Tensor = torch.linalg.vector_norm(z, dim=-1, keepdim=True)
        return z * (self.radius / norm)

    def contains(self, z: Tensor) -> Tensor:
        """Whether the norm is the radius."""
        norm: Tensor = torch.linalg.vector_norm(z, dim=-1)
        return (norm - self.radius).abs() <= SLACK * self.radius


@dataclass(frozen=True)
class Box:
    """The cube [low, high]^d."""

    dim: int
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        low, high = _checks.finite(self.low, "low"), _checks.finite(self.high, "high")
        _checks.settle(self, dim=_checks.count(self.dim, "dim"), low=low, high=high)
        if not low < high:
            raise BadInput(f"a Box needs `low` below `high`, but low={self.low} and high={self.high} came.")

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume."""
        return self.dim * math.log(self.high - self.low)

    def project(self, z: Tensor) -> Tensor:
        """Clip every coordinate."""
        return z.clamp(self.low, self.high)

    def contains(self, z: Tensor) -> Tensor:
        """Whether every coordinate lies between `low` and `high`."""
        return ((z >= self.low) & (z <= self.high)).all(-1)


@dataclass(frozen=True, init=False)
class Product:
    """Several spaces side by side; a point is the concatenation of one point of each.

    Example:
        >>> Product(Sphere(2), Box(3)).dim
        5
    """

    parts: tuple[Space, ...] = field()

    def __init__(self, *parts: Space) -> None:
        if not parts:
            raise BadInput("a Product needs at least one space, for instance Product(Sphere(3), Box(2)).")
        for part in parts:
            if not isinstance(part, Space):
                raise BadInput(f"a Product is made of spaces, but {part!r} came.")
        object.__setattr__(self, "parts", parts)

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.parts))})"

    @property
    def dim(self) -> int:
        """Sum of the dimensions of the parts."""
        return sum(part.dim for part in self.parts)

    def split(self, z: Tensor) -> tuple[Tensor, ...]:
        """The coordinates of each part, `(…, dim) -> ((…, dim_1), (…, dim_2), …)`."""
        return torch.split(z, [part.dim for part in self.parts], dim=-1)

    def project(self, z: Tensor) -> Tensor:
        """Project each part into its own space."""
        return torch.cat([part.project(p) for part, p in zip(self.parts, self.split(z), strict=True)], -1)

    def contains(self, z: Tensor) -> Tensor:
        """Whether each part lies in its own space."""
        inside = [part.contains(p) for part, p in zip(self.parts, self.split(z), strict=True)]
        return torch.stack(inside).all(0)
