r"""A room with one object: a scene with the factors of Shapes3D, drawn by casting a ray for each sample.

The room has a floor and four walls. The object stands in the middle of the floor: a cube, a cylinder, a ball or a
capsule. The camera walks on an arc around it. All surfaces are diffuse; with the direction $l$ to the light, the normal
$n$, and $s$ = 1 where the light is not blocked by the object, the brightness is
$\text{hue} \cdot (0.45 + 0.55 \, s \max(n \cdot l, 0))$.

Reference: burgess2018 for the factors. The pictures are ours and not those of Shapes3D.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from zhat import _checks
from zhat.errors import BadInput
from zhat.scenes import blocks
from zhat.scenes.shading import hue, srgb
from zhat.scenes.vectors import constant, dot, unit

NAMES = ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation")
SHAPES = ("cube", "cylinder", "ball", "capsule")
HALF = 5.0  # half the side of the room
EYE = (4.3, 2.6)  # the camera's distance from the middle and its height
AIM = 1.1  # the height at which it looks
TANGENT = 0.62  # half its field of view
LIGHT = (0.35, -0.45, 0.82)  # towards the light
AMBIENT = 0.45
ARC = math.radians(30)  # the camera walks so far to either side
FAR = 1e6
ON_CPU, ON_GPU = 16, 1024  # pictures drawn at a time


@dataclass(frozen=True)
class Room:
    """A room with an object, moved by six latents from -1 to 1.

    In this order: the hues of floor, walls and object, from red around nine tenths of the circle; the object's scale
    from 0.75 to 1.25; its shape (cube, cylinder, ball, capsule, a quarter of the interval each); the place of the
    camera on its arc, from -30 to 30 degrees.

    Example:
        >>> draw = Room(side=16).build(6, torch.Generator())
        >>> draw(torch.zeros(2, 6)).shape
        torch.Size([2, 3, 16, 16])
    """

    side: int = 64
    dim: ClassVar[int] = len(NAMES)
    names: ClassVar[tuple[str, ...]] = NAMES
    rows_at_once: ClassVar[int] = 256
    still: ClassVar[tuple[float, ...]] = (-0.4, 0.2, -0.95, 0.2, -0.9, 0.35)

    def __post_init__(self) -> None:
        _checks.settle(self, side=_checks.count(self.side, "side", least=8))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of a picture."""
        return 3, self.side, self.side

    def build(self, dim: int, generator: torch.Generator) -> RoomMixer:
        """What draws the pictures; nothing about it is random, so every seed has the same."""
        if dim != self.dim:
            raise BadInput(
                f"Room is moved by {self.dim} latents ({', '.join(self.names)}), but {dim} came. "
                f"Use a space of {self.dim} dimensions such as Box({self.dim}, -1.0, 1.0)."
            )
        return RoomMixer(self.side)


class RoomMixer:
    """Draws rooms: `x = mixer(z)`, `(…, 6) -> (…, 3, side, side)` bytes."""

    def __init__(self, side: int) -> None:
        self.side = side

    def __call__(self, z: Tensor) -> Tensor:
        """Pictures of latents."""
        rows = z.detach().reshape(-1, z.shape[-1]).float()
        out = torch.empty(len(rows), 3, self.side, self.side, dtype=torch.uint8, device=z.device)
        kinds = (2 * (rows[:, 4] + 1)).floor().clamp(0, 3)
        groups = [
            (kind, which)
            for kind in range(len(SHAPES))
            for which in (kinds == kind).nonzero().squeeze(1).split(ON_GPU if z.is_cuda else ON_CPU)
        ]
        parts = blocks.drawn(lambda group: drawn(rows[group[1]], group[0], self.side), groups, z.device)
        for (_, which), part in zip(groups, parts, strict=True):
            out[which] = part
        return out.view(*z.shape[:-1], 3, self.side, self.side)


@torch.no_grad()
def drawn(z: Tensor, kind: int, side: int) -> Tensor:
    """Pictures of latents with one shape, `(n, 6) -> (n, 3, side, side)`."""
    samples = 2 * side
    place = ((torch.arange(samples, device=z.device) + 0.5) / samples * 2 - 1) * TANGENT
    angle, size = ARC * z[:, 5], 1 + 0.25 * z[:, 3]
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    distance, height = EYE
    eye = torch.stack([distance * cos, distance * sin, torch.full_like(cos, height)])[:, :, None, None]
    down = math.hypot(distance, height - AIM)
    level, dip = distance / down, (height - AIM) / down
    forward = torch.stack([-cos * level, -sin * level, zero - dip])[:, :, None, None]
    right = torch.stack([-sin, cos, zero])[:, :, None, None]
    up = torch.stack([-cos * dip, -sin * dip, zero + level])[:, :, None, None]
    ray = unit(forward + place * right - place[:, None] * up)
    scale = size[:, None, None]

    distance_to_room, normal = _room(eye, ray)
    floor = normal[2] > 0.5
    hit, own = SOLIDS[kind](eye / scale, ray)  # a solid of size 1, seen by an eye that is nearer
    hit = hit * scale
    seen = hit < distance_to_room
    point = eye + ray * torch.where(seen, hit, distance_to_room)
    normal = torch.where(seen, own, normal)
    light = unit(constant(LIGHT, z)[:, None, None, None])
    blocked = SOLIDS[kind]((point + 1e-3 * normal) / scale, light.expand_as(point))[0] < FAR
    cosine = dot(normal, light).clamp_min(0) * ~blocked
    hues = [hue(0.9 * math.pi * (z[:, i] + 1), 0.75)[..., None, None] for i in range(3)]
    colour = torch.where(seen, hues[2], torch.where(floor, hues[0], hues[1]))
    lit = colour * (AMBIENT + (1 - AMBIENT) * cosine)
    return srgb(torch.nn.functional.avg_pool2d(lit.transpose(0, 1), 2))


def _room(eye: Tensor, ray: Tensor) -> tuple[Tensor, Tensor]:
    """How far the floor or a wall is along rays from inside, and the normal there."""
    x, y, z = ray
    to_x = (torch.copysign(torch.full_like(x, HALF), x) - eye[0]) / x
    to_y = (torch.copysign(torch.full_like(y, HALF), y) - eye[1]) / y
    to_floor = torch.where(z < 0, -eye[2] / z, FAR)
    zero = torch.zeros_like(x)
    nearest = torch.minimum(torch.minimum(to_x, to_y), to_floor)
    walls = torch.where(to_x <= to_y, torch.stack([-x.sign(), zero, zero]), torch.stack([zero, -y.sign(), zero]))
    return nearest, torch.where(to_floor <= nearest, torch.stack([zero, zero, zero + 1]), walls)


def _cube(eye: Tensor, ray: Tensor) -> tuple[Tensor, Tensor]:
    """A cube with the side 1.5 on the floor: the last of the three slabs that a ray enters."""
    half = 0.75
    centre = constant((0.0, 0.0, half), ray).view(3, *[1] * (ray.ndim - 1))
    inverse = 1 / torch.where(ray.abs() < 1e-9, 1e-9, ray)
    middle, reach = (centre - eye) * inverse, half * inverse.abs()
    enter, axis = (middle - reach).max(0)
    leave = (middle + reach).amin(0)
    hit = torch.where((enter < leave) & (enter > 0), enter, FAR)
    faces = torch.stack([(axis == i) * -ray[i].sign() for i in range(3)])
    return hit, faces


def _ball(eye: Tensor, ray: Tensor) -> tuple[Tensor, Tensor]:
    """A ball of the radius 0.9 on the floor."""
    return _sphere(eye, ray, 0.9, 0.9)


def _sphere(eye: Tensor, ray: Tensor, radius: float, height: float) -> tuple[Tensor, Tensor]:
    centre = constant((0.0, 0.0, height), ray).view(3, *[1] * (ray.ndim - 1))
    there = eye - centre
    along = dot(there, ray)
    inside = along * along - dot(there, there) + radius * radius
    hit = -along - inside.clamp_min(0).sqrt()
    hit = torch.where((inside > 0) & (hit > 0), hit, FAR)
    return hit, (there + ray * hit) / radius


def _tube(eye: Tensor, ray: Tensor, radius: float, low: float, high: float) -> tuple[Tensor, Tensor]:
    """The wall of an upright tube around the middle, without its ends."""
    a = (ray[0] * ray[0] + ray[1] * ray[1]).clamp_min(1e-9)
    b = eye[0] * ray[0] + eye[1] * ray[1]
    inside = b * b - a * (eye[0] * eye[0] + eye[1] * eye[1] - radius * radius)
    hit = (-b - inside.clamp_min(0).sqrt()) / a
    z = eye[2] + ray[2] * hit
    hit = torch.where((inside > 0) & (hit > 0) & (z >= low) & (z <= high), hit, FAR)
    x, y = eye[0] + ray[0] * hit, eye[1] + ray[1] * hit
    return hit, torch.stack([x / radius, y / radius, torch.zeros_like(x)])


def _cylinder(eye: Tensor, ray: Tensor) -> tuple[Tensor, Tensor]:
    """An upright cylinder, 1.6 high, of the radius 0.75, with a lid."""
    radius, top = 0.75, 1.6
    hit, normal = _tube(eye, ray, radius, 0.0, top)
    lid = (top - eye[2]) / torch.where(ray[2] == 0, 1e-9, ray[2])
    x, y = eye[0] + ray[0] * lid, eye[1] + ray[1] * lid
    above = (lid > 0) & (ray[2] < 0) & (x * x + y * y <= radius * radius) & (lid < hit)
    zero = torch.zeros_like(x)
    return torch.where(above, lid, hit), torch.where(above, torch.stack([zero, zero, zero + 1]), normal)


def _capsule(eye: Tensor, ray: Tensor) -> tuple[Tensor, Tensor]:
    """An upright capsule, 2.2 high, of the radius 0.6: a tube between two balls."""
    radius, low, high = 0.6, 0.6, 1.6
    hit, normal = _tube(eye, ray, radius, low, high)
    for end in (low, high):
        other, theirs = _sphere(eye, ray, radius, end)
        normal = torch.where(other < hit, theirs, normal)
        hit = torch.minimum(hit, other)
    return hit, normal


SOLIDS = (_cube, _cylinder, _ball, _capsule)
