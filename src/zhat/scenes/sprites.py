r"""Sprites: a white square, ellipse or heart on black, with the factors of dSprites, drawn by formulas.

The outlines were found by fitting to real pictures of dSprites. In points of a picture of 64 × 64, at scale 1, around
the place of the sprite, with y downwards:

- square: $\max(|x|, |y|) \le 9.6$
- ellipse: $(x / 12.8)^2 + (y / 7.2)^2 \le 1$
- heart: inside the curve $x = 9.6 \sin^3 t$, $y = -1.44 - 0.6625\,(13 \cos t - 5 \cos 2t - 2 \cos 3t - \cos 4t)$

A point is white where its middle lies inside. The square and the ellipse have the sizes 0.3, 0.4 and 0.225 in parts of
the picture; the heart is as wide and as high as the square.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from zhat import _checks
from zhat.errors import BadInput

SIDE = 64
SQUARE = 9.6
ELLIPSE = (12.8, 7.2)
HEART = (9.6, 0.6625, 1.44)  # half the width, stretch and offset of the height
POINTS = 2**24  # points drawn at a time


@dataclass(frozen=True)
class Sprites:
    """Sprites of dSprites as a mixing: five latents from -1 to 1 become a picture of bytes, 0 or 255.

    In this order: the shape (square, ellipse, heart, a third of the interval each), the scale from 0.5 to 1, the
    orientation from 0 to a full turn, and the place from left to right and from top to bottom. Nothing is drawn at
    random, so every seed builds the same.

    Args:
        side: points of a picture, each way; sizes and places grow with it.

    Reference: matthey2017.

    Example:
        >>> draw = Sprites().build(5, torch.Generator())
        >>> draw(torch.zeros(2, 5)).shape
        torch.Size([2, 1, 64, 64])
    """

    side: int = SIDE
    dim: ClassVar[int] = 5
    names: ClassVar[tuple[str, ...]] = ("shape", "scale", "orientation", "posX", "posY")
    still: ClassVar[tuple[float, ...]] = (0.9, 0.6, -0.9, 0.0, 0.0)

    def __post_init__(self) -> None:
        _checks.settle(self, side=_checks.count(self.side, "side", least=8))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of a picture."""
        return 1, self.side, self.side

    def build(self, dim: int, generator: torch.Generator) -> SpriteMixer:
        """What draws the pictures."""
        if dim != self.dim:
            raise BadInput(f"Sprites() draws {self.dim} latents ({', '.join(self.names)}), but {dim} came.")
        return SpriteMixer(self.side)


class SpriteMixer:
    """Draws sprites: `x = mixer(z)`.

    Args:
        side: points of a picture, each way.
    """

    def __init__(self, side: int = SIDE) -> None:
        self.side = side

    def __call__(self, z: Tensor) -> Tensor:
        """Pictures of latents, `(…, 5) -> (…, 1, side, side)` bytes."""
        share = (z.reshape(-1, z.shape[-1]) + 1) / 2
        kind = (3 * share[:, 0]).floor().clamp(0, 2)
        factors = (kind, 0.5 + 0.5 * share[:, 1], 2 * math.pi * share[:, 2], share[:, 3], share[:, 4])
        bits = drawn(*factors, side=self.side)
        return (255 * bits.to(torch.uint8)).reshape(*z.shape[:-1], 1, self.side, self.side)


def drawn(shape: Tensor, scale: Tensor, orientation: Tensor, x: Tensor, y: Tensor, *, side: int = SIDE) -> Tensor:
    """Sprites as bits.

    Args:
        shape: 0 for a square, 1 for an ellipse, 2 for a heart, `(n,)`.
        scale: 1 is the largest of dSprites, `(n,)`.
        orientation: in radians, counted as in dSprites, `(n,)`.
        x: place from 0 (left) to 1, `(n,)`.
        y: place from 0 (top) to 1, `(n,)`.
        side: points of a picture, each way.

    Returns:
        `(n, side, side)`, True where a point is white.
    """
    block = max(1, POINTS // side**2)
    parts = zip(*(given.split(block) for given in (shape, scale, orientation, x, y)), strict=True)
    return torch.cat([_drawn(*part, side=side) for part in parts])


def _drawn(shape: Tensor, scale: Tensor, orientation: Tensor, x: Tensor, y: Tensor, *, side: int) -> Tensor:
    place = (torch.arange(side, device=scale.device, dtype=scale.dtype) + 0.5) * (SIDE / side)
    across, down = place - (16 + 32 * x)[:, None], place - (16 + 32 * y)[:, None]
    cos, sin = (orientation.cos() / scale)[:, None, None], (orientation.sin() / scale)[:, None, None]
    u = cos * across[:, None, :] - sin * down[:, :, None]
    v = sin * across[:, None, :] + cos * down[:, :, None]
    kind, out = shape[:, None, None], torch.empty_like(u, dtype=torch.bool)
    torch.where(kind == 1, (u / ELLIPSE[0]).square() + (v / ELLIPSE[1]).square() <= 1, _in_square(u, v), out=out)
    hearts = (shape == 2).nonzero()[:, 0]
    out[hearts] = _in_heart(u[hearts], v[hearts])
    return out


def _in_square(u: Tensor, v: Tensor) -> Tensor:
    return torch.maximum(u.abs(), v.abs()) <= SQUARE


def _in_heart(u: Tensor, v: Tensor) -> Tensor:
    """A column of the heart lies between the two points of the curve that have its x: at t and at pi - t."""
    width, stretch, offset = HEART
    cube = (u.abs() / width).clamp(max=1)
    sin2 = cube.pow(2 / 3)
    cos = (1 - sin2).clamp_min(0).sqrt()
    # cos 2t, cos 3t and cos 4t in terms of cos t: the even ones are the same at pi - t, the odd ones change their sign
    twice = 1 - 2 * sin2
    even, odd = -5 * twice - (2 * twice.square() - 1), 13 * cos - 2 * cos * (2 * twice - 1)
    height = -(v + offset) / stretch
    return (u.abs() <= width) & (height <= even + odd) & (height >= even - odd)
