r"""One object over a coloured ground, lit by three lights: the scene of 3DIdent, drawn in plain torch.

A picture is made as follows. `rasterise.splat` finds the triangle that the camera sees at each of 2 x 2 samples of each
pixel, and the triangles that each light sees. The lights' maps are blurred by as much as the light is wide; they are
the shadows on the ground. Each sample of the object and each pixel of the ground is shaded once, and the samples of a
pixel are averaged. On a GPU, `zhat.scenes.fused` does the first and the last of these steps.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from zhat.scenes import blocks, rasterise, shadows
from zhat.scenes.meshes import Mesh
from zhat.scenes.pose import GROUND, LAMP, Pose, camera, rays
from zhat.scenes.rasterise import EMPTY, id_bits
from zhat.scenes.shading import Light, from_lamp, from_spot, glossy, srgb, weights
from zhat.scenes.vectors import constant, cross, dot, turned, turned_back, unit
from zhat.scenes.views import posed

CELLS = 64  # side of a light's map, unless the picture is larger
UP = (0.0, 0.0, 1.0)
TAPS = (0.102, 0.398)  # weights of samples 3/4 and 1/4 of a pixel away from its middle, each way; see `filtered`
ON_CPU, ON_GPU = 16, 1024  # pictures drawn at a time: what fits a core's cache, what fills a GPU


class Stage:
    """The scene with one object: `(…, 10)` latents to pictures `(…, 3, side, side)` of bytes.

    Args:
        mesh: the object, in the size in which it appears.
        side: pixels of a picture, each way.
        light: how bright and how wide the lights are.
    """

    def __init__(self, mesh: Mesh, side: int, light: Light | None = None) -> None:
        self.mesh, self.side, self.light = mesh, side, light or Light()
        self.reach, self.cells = mesh.radius, max(CELLS, side)
        self._copies: dict[torch.device, tuple[Mesh, Ground]] = {}

    def __call__(self, z: Tensor) -> Tensor:
        """Pictures of latents, `(…, 10) -> (…, 3, side, side)`."""
        rows = z.detach().reshape(-1, z.shape[-1]).float()
        parts = blocks.drawn(self.drawn, rows.split(ON_GPU if z.is_cuda else ON_CPU), z.device)
        return torch.cat(parts).view(*z.shape[:-1], 3, self.side, self.side)

    @torch.no_grad()
    def drawn(self, z: Tensor) -> Tensor:
        """Pictures of a block of latents, `(n, 10) -> (n, 3, side, side)`."""
        mesh, ground = self._on(z.device)
        how = _implementation(z)
        pose = Pose(z, self.reach, 2 * self.side, self.cells)
        keys = how.splat(posed(pose.camera, pose.rotation, pose.location), mesh, 2 * self.side)
        views = posed(pose.lights, pose.rotation, pose.location).flatten(0, 1)
        maps = how.splat(views, mesh, self.cells, far_side=True).view(3, len(z), self.cells, self.cells)
        soft = shadows.blurred((maps != EMPTY).float(), pose.softness(self.light))
        picture: Tensor = how.picture(pose, mesh, ground, keys, maps, soft, self.light)
        return picture

    def _on(self, device: torch.device) -> tuple[Mesh, Ground]:
        if device not in self._copies:
            self._copies[device] = self.mesh.to(device), Ground(self.side, self.light, device)
        return self._copies[device]


class _Plain:
    """The two steps that `zhat.scenes.fused` has as well."""

    @staticmethod
    def splat(views: Tensor, mesh: Mesh, samples: int, *, far_side: bool = False) -> Tensor:
        return rasterise.splat(views, mesh, samples, far_side=far_side)

    @staticmethod
    def picture(
        pose: Pose, mesh: Mesh, ground: Ground, keys: Tensor, maps: Tensor, soft: Tensor, light: Light
    ) -> Tensor:
        return picture(pose, mesh, ground, keys, maps, soft, light)


def _implementation(z: Tensor) -> Any:
    """The Triton kernels on a GPU, plain torch elsewhere."""
    if z.is_cuda and find_spec("triton") is not None:
        from zhat.scenes import fused

        return fused
    return _Plain


class Ground:
    """The ground as the camera sees it at the middle of each pixel; nothing of it depends on the latents.

    Attributes:
        points: `(3, side, side)`.
        view: unit vectors to the camera, `(3, side, side)`.
        cos_view, diffuse, gloss: cosine of the view and weights of both parts of the material, `(side, side)`.
        sun, lamp: light that is reflected where no shadow falls, diffuse and glossy part, `(2, side, side)` each.
        table: the first two coordinates of the points and all of the above but `cos_view`, `(11, side * side)`.
    """

    def __init__(self, side: int, light: Light, device: torch.device) -> None:
        middle = (torch.arange(side, device=device) + 0.5) / side
        frame = camera(middle)
        towards = rays(frame, middle.expand(side, side), middle[:, None].expand(side, side))
        self.points = frame.eye[:, None, None] + towards * ((GROUND - frame.eye[2]) / towards[2])
        self.view = -unit(towards)
        self.up = constant(UP, middle)[:, None, None]
        self.cos_view = self.view[2]
        self.diffuse, self.gloss = weights(self.cos_view, light)
        self.sun = torch.stack(self.reflected(torch.full_like(self.cos_view, light.sun), self.up.expand_as(towards)))
        lamp, to_lamp = from_lamp(constant((0.0, 0.0, LAMP), middle)[:, None, None] - self.points, light)
        self.lamp = torch.stack(self.reflected(lamp, to_lamp))
        parts = (self.points[:2], self.view, torch.stack([self.diffuse, self.gloss]), self.sun, self.lamp)
        self.table = torch.cat(parts).flatten(1)

    def reflected(self, irradiance: Tensor, to_light: Tensor) -> tuple[Tensor, Tensor]:
        """The diffuse and the glossy part of what comes back, `(…, side, side)`; directions `(3, …, side, side)`."""
        middle = [1] * (to_light.ndim - 3)
        up, view = self.up.view(3, *middle, 1, 1), self.view.view(3, *middle, *self.cos_view.shape)
        cosine = to_light[2]
        shine = glossy(up, view, to_light, self.cos_view, cosine)
        return self.diffuse * irradiance * cosine, self.gloss * irradiance * shine


def picture(pose: Pose, mesh: Mesh, ground: Ground, keys: Tensor, maps: Tensor, soft: Tensor, light: Light) -> Tensor:
    """Light, shadow and colour for what the camera sees, `(n, 3, side, side)` bytes.

    Args:
        pose: where everything stands in n pictures.
        mesh: the object.
        ground: the ground.
        keys: of what the camera sees, `(n, 2 side, 2 side)`.
        maps: keys of what each light sees, `(3, n, s, s)`.
        soft: where each light sees the object, blurred, `(3, n, s, s)`.
        light: how bright.
    """
    below = ground_colour(pose, ground, soft, light)
    place, colour = object_colour(pose, mesh, keys, maps, light)
    thing = filtered(place, torch.cat([colour, torch.ones_like(colour[:1])]), keys.shape)
    return srgb((below * (1 - thing[3]) + thing[:3]).transpose(0, 1))


def filtered(place: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Values at some samples, summed over the pixels around them with the weights `TAPS`.

    The weights are those of Blender's filter, a Blackman-Harris window of three pixels, each way. Its outermost
    samples, a pixel and a quarter away, have a weight of 0.003 and are left out.

    Args:
        place: of the samples among all of them, `(k,)`.
        values: `(c, k)`.
        shape: of all samples, `(n, 2 side, 2 side)`.

    Returns:
        `(c, n, side, side)`; samples that are not named, and those beyond the edge of the picture, count 0.
    """
    n, samples, _ = shape
    wide = samples // 2 + 2  # a frame of one pixel takes what falls beyond the edge
    row = place // samples
    picture = row // samples
    row, column = row - picture * samples, place - row * samples
    out = values.new_zeros(len(values), n * wide * wide)
    for down, weight_down in ((row // 2, TAPS[1]), ((row + 1) // 2 * 2 - row // 2 - 1, TAPS[0])):
        for across, weight in ((column // 2, TAPS[1]), ((column + 1) // 2 * 2 - column // 2 - 1, TAPS[0])):
            pixel = (picture * wide + down + 1) * wide + across + 1
            out.index_add_(1, pixel, weight_down * weight * values)
    return out.view(len(values), n, wide, wide)[..., 1:-1, 1:-1]


def ground_colour(pose: Pose, ground: Ground, soft: Tensor, light: Light) -> Tensor:
    """Linear colours of the ground in light and shadow, `(3, n, side, side)`."""
    lit_by_sun, lit_by_lamp, lit_by_spot = (
        shadows.on_ground(one, view, ground.points) for one, view in zip(soft, pose.lights, strict=True)
    )
    there = pose.spot.T[:, :, None, None] - ground.points[:, None]
    irradiance, to_spot = from_spot(there, pose.aim.T[:, :, None, None], light)
    spot_diffuse, spot_gloss = ground.reflected(irradiance * lit_by_spot, to_spot)
    white_diffuse = ground.sun[0] * lit_by_sun + ground.lamp[0] * lit_by_lamp
    white_gloss = ground.sun[1] * lit_by_sun + ground.lamp[1] * lit_by_lamp
    _, spot_hue, hue = pose.hues[..., None, None].unbind(1)
    return hue * (white_diffuse + spot_hue * spot_diffuse) + white_gloss + spot_hue * spot_gloss


def object_colour(pose: Pose, mesh: Mesh, keys: Tensor, maps: Tensor, light: Light) -> tuple[Tensor, Tensor]:
    """The samples that show the object, as places among all samples `(k,)`, and their linear colours `(3, k)`."""
    samples, bits = keys.shape[-1], id_bits(mesh)
    flat = keys.view(-1)
    place = (flat != EMPTY).nonzero().squeeze(1)
    triangle = flat.index_select(0, place) & ((1 << bits) - 1)
    row = place // samples
    picture = row // samples
    frame = camera(pose.location)
    x, y = (place - row * samples + 0.5) / samples, (row - picture * samples + 0.5) / samples
    towards = rays(frame, x, y)
    rotation = pose.rotation.permute(1, 2, 0).index_select(2, picture)
    location = pose.location.T.index_select(1, picture)

    # Where the ray meets the triangle (Möller and Trumbore), with eye and ray turned into the object's own frame.
    origin = turned_back(rotation, frame.eye[:, None] - location)
    direction = turned_back(rotation, towards)
    corners = mesh.corners.index_select(2, triangle)  # (6, 3, k)
    a = corners[0]
    e1, e2 = corners[1] - a, corners[2] - a
    p, s = cross(direction, e2), origin - a
    determinant = dot(e1, p)  # above 0 if the ray comes from outside
    scale = 1 / determinant
    u = (scale * dot(s, p)).clamp(0, 1)
    v = (scale * dot(direction, cross(s, e1))).clamp(0, 1)
    point = turned(rotation, a + u * e1 + v * e2) + location
    normal = unit(turned(rotation, corners[3] * (1 - u - v) + corners[4] * u + corners[5] * v))

    view = -unit(towards)
    cos_view = dot(normal, view).clamp_min(0.02)  # interpolated normals may point away at the silhouette
    diffuse, gloss = weights(cos_view, light)
    arriving = (
        (torch.full_like(u, light.sun), constant(UP, point)[:, None].expand_as(point)),
        from_lamp(constant((0.0, 0.0, LAMP), point)[:, None] - point, light),
        from_spot(pose.spot.T.index_select(1, picture) - point, pose.aim.T.index_select(1, picture), light),
    )
    reflected = []
    for (irradiance, to_light), one, seen_from in zip(arriving, maps, pose.lights, strict=True):
        cosine = dot(normal, to_light).clamp_min(0)
        lit = irradiance * shadows.on_object(one, seen_from, picture, point, bits) * (determinant > 0)
        reflected.append((diffuse * lit * cosine, gloss * lit * glossy(normal, view, to_light, cos_view, cosine)))
    (sun_d, sun_g), (lamp_d, lamp_g), (spot_d, spot_g) = reflected
    hue, spot_hue, _ = pose.hues.index_select(2, picture).unbind(1)
    return place, hue * (sun_d + lamp_d + spot_hue * spot_d) + sun_g + lamp_g + spot_hue * spot_g
