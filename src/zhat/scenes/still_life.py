r"""One object over a coloured ground, lit by three lights: the scene of 3DIdent.

Ten latents from -1 to 1 move it: `x, y, z` times 3 is where the object is; `rot_alpha, rot_beta, rot_gamma` times
$\pi / 2$ are the angles by which it is turned about the axes x, y and z, in this order; `spot_theta` times $\pi / 2$ is
where the spotlight stands on its circle; the hues of object, spotlight and ground are the last three times $\pi / 2$.
A sun shines straight down, a small square lamp hangs at a height of 7, and the spotlight follows the object.

A picture is made as follows. `rasterise.splat` finds the triangle that the camera sees at each of 2 x 2 samples of each
pixel, and the triangles that each light sees. The lights' maps are blurred by as much as the light is wide; they are
the shadows on the ground. Each sample of the object and each pixel of the ground is shaded once, and the samples
of a pixel are averaged.

Reference: zimmermann2021, Section 5.3 and Appendix A.2. `docs/scenes.md` compares the pictures with those of Blender.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from zhat.scenes import shading
from zhat.scenes.meshes import Mesh
from zhat.scenes.rasterise import EMPTY, id_bits, splat
from zhat.scenes.views import Frame, parallel, perspective, posed, towards

NAMES = (
    "x",
    "y",
    "z",
    "rot_alpha",
    "rot_beta",
    "rot_gamma",
    "spot_theta",
    "hue_object",
    "hue_spot",
    "hue_background",
)
SPAN = 4.442116650000001  # the longest side of the teapot of 3DIdent, by which heights are measured
GROUND = -SPAN  # height of the ground
CAMERA = 8.0  # the camera stands at (8, 0, 8) and looks at the origin
TANGENT = 25 / 35  # half its field of view: half the width of the sensor over the focal length
LAMP = 7.0  # height of the square lamp
LAMP_SIDE = 1.0
SPOT_RADIUS = 0.5
CONE = math.radians(17.5)  # half the opening angle of the spotlight
BLEND = 0.1  # share of the cone, in cosines, over which it fades
MAP = 64  # side of a shadow map


@dataclass(frozen=True)
class Light:
    """How bright and how soft: the constants that are fitted to pictures of Blender."""

    sun: float = 0.5
    lamp: float = 39.27 / math.pi
    spot: float = 3000 / (4 * math.pi)
    sheen: float = 0.5
    sun_softness: float = 0.1  # radius of the sun's disc, seen from the ground, in radians


LIGHT = Light()


class Stage:
    """The scene with one object: `(…, 10)` latents to pictures `(…, 3, side, side)` of bytes.

    Args:
        mesh: the object, in the size in which it appears.
        side: pixels of a picture, each way.
        light: brightness of the lights.
        block: pictures drawn at a time; None lets the device choose.
    """

    def __init__(self, mesh: Mesh, side: int, light: Light = LIGHT, block: int | None = None) -> None:
        self.side, self.light, self.block = side, light, block
        self.mesh = mesh
        self.reach = mesh.radius
        self._there: dict[torch.device, tuple[Mesh, Ground]] = {}

    def __call__(self, z: Tensor) -> Tensor:
        """Pictures of latents, `(…, 10) -> (…, 3, side, side)`."""
        rows = z.detach().reshape(-1, z.shape[-1]).float()
        block = self.block or 16
        pictures = torch.cat([self._drawn(part) for part in rows.split(block)])
        return pictures.view(*z.shape[:-1], 3, self.side, self.side)

    def _on(self, device: torch.device) -> tuple[Mesh, Ground]:
        if device not in self._there:
            self._there[device] = self.mesh.to(device), Ground(self.side, self.light, device)
        return self._there[device]

    def _drawn(self, z: Tensor) -> Tensor:
        mesh, ground = self._on(z.device)
        pose = Pose(z, self.reach, self.side)
        seen = splat(posed(pose.camera, pose.rotation, pose.location), mesh, 2 * self.side)
        turned, moved = pose.rotation.repeat(3, 1, 1), pose.location.repeat(3, 1)
        shadows = splat(posed(pose.lights.flatten(0, 1), turned, moved), mesh, MAP, inside_out=True)
        shadows = shadows.view(3, len(z), MAP, MAP)
        soft = blurred((shadows != EMPTY).float(), pose.softness(self.light))
        below = ground_colour(pose, ground, soft, self.light)
        return composed(seen, below, object_colour(pose, mesh, seen, shadows, self.light), self.side)


class Pose:
    """Where everything stands, for n pictures.

    Attributes:
        location: of the object, `(n, 3)`.
        rotation: of the object, `(n, 3, 3)`.
        spot: place of the spotlight, `(n, 3)`.
        aim: the direction in which it shines, `(n, 3)`.
        object_hue, spot_hue, ground_hue: linear colours, `(3, n)`.
        camera: view of the world, `(n, 4, 4)`.
        lights: the same for sun, lamp and spotlight, `(3, n, 4, 4)`.
        texel: side of a cell of each light's map, at the object, `(3, n)`.
    """

    def __init__(self, z: Tensor, reach: float, side: int) -> None:
        n, right_angle = len(z), math.pi / 2
        self.reach = reach
        lift = torch.tensor([0.0, 0.0, SPAN / 2], device=z.device)
        self.location = 3 * z[:, :3] + lift
        self.rotation = euler(right_angle * z[:, 3:6])
        theta = right_angle * z[:, 6]
        self.spot = torch.stack([4 * theta.sin(), 4 * theta.cos(), torch.full_like(theta, 6 + SPAN)], 1)
        self.object_hue = shading.hue(right_angle * z[:, 7], 1.0)
        self.spot_hue = shading.hue(right_angle * z[:, 8], 0.8)
        self.ground_hue = shading.hue(right_angle * z[:, 9], 0.6)

        one = torch.ones(n, device=z.device)
        eye = camera_frame(z.device)
        ahead = ((self.location - eye.eye) * eye.forward).sum(1)
        flat = torch.zeros(n, 2, device=z.device)
        self.camera = perspective(
            _for_all(eye, n), flat, TANGENT * one, (ahead - reach).clamp_min(0.1), ahead + reach, 2 * side
        )
        down = _looking_down(z.device)
        sun = parallel(Frame(self.location, *(a.expand(n, 3) for a in down)), reach * one, MAP)
        lamp_eye = torch.tensor([0.0, 0.0, LAMP], device=z.device).expand(n, 3)
        below = (LAMP - self.location[:, 2]).clamp_min(0.5 * reach)
        centre = torch.stack([self.location[:, 0], -self.location[:, 1]], 1) / below[:, None]
        lamp = perspective(
            Frame(lamp_eye, *(a.expand(n, 3) for a in down)),
            centre,
            1.3 * reach / below,
            (below - reach).clamp_min(0.1),
            below + reach,
            MAP,
        )
        frame = towards(self.spot, self.location)
        self.aim = frame.forward
        away = (self.location - self.spot).norm(dim=1)
        tangent = reach / (away * away - reach * reach).clamp_min(0.1).sqrt()
        spot = perspective(frame, flat, tangent, (away - reach).clamp_min(0.1), away + reach, MAP)
        self.lights = torch.stack([sun, lamp, spot])
        self.texel = torch.stack([reach * one, 1.3 * reach * one, tangent * away]) * (2 / MAP)

    def softness(self, light: Light) -> Tensor:
        """Standard deviation of the blur of each light's shadow on the ground, in cells of its map, `(3, n)`."""
        height = self.location[:, 2] - GROUND
        sun = height * light.sun_softness / 2
        lamp = LAMP_SIDE / math.sqrt(12) * height / (LAMP - GROUND)
        spot = SPOT_RADIUS / 2 * height / (6 + SPAN - GROUND)
        return torch.stack([sun, lamp, spot]).clamp_min(0) / self.texel


class Ground:
    """The ground as the camera sees it, once for each pixel; nothing of it depends on the latents.

    Attributes:
        points: `(3, side, side)`.
        view: unit vectors to the camera, `(3, side, side)`.
        diffuse, gloss: weights of both parts of the material.
        sun, lamp: reflected light without shadow, diffuse and glossy part, `(2, side, side)` each.
    """

    def __init__(self, side: int, light: Light, device: torch.device) -> None:
        eye = camera_frame(device)
        rays = pixel_rays(eye, side, device)
        reach = (GROUND - CAMERA) / rays[2]
        self.points = eye.eye[:, None, None] + reach * rays
        self.view = -shading.unit(rays)
        self.up = torch.tensor([0.0, 0.0, 1.0], device=device)[:, None, None]
        self.cos_view = shading.dot(self.up, self.view)
        self.diffuse, self.gloss = shading.weights(self.cos_view, light.sheen)
        self.sun = self._lit(self.up.expand_as(rays), torch.full_like(reach, light.sun))
        there = torch.tensor([0.0, 0.0, LAMP], device=device)[:, None, None] - self.points
        squared = shading.dot(there, there)
        to_lamp = there * torch.rsqrt(squared)
        self.lamp = self._lit(to_lamp, light.lamp * to_lamp[2] / squared)

    def _lit(self, to_light: Tensor, irradiance: Tensor) -> Tensor:
        cosine = shading.dot(self.up, to_light)
        gloss = shading.glossy(self.up, self.view, to_light, self.cos_view, cosine)
        return torch.stack([self.diffuse * irradiance * cosine, self.gloss * irradiance * gloss])


def ground_colour(pose: Pose, ground: Ground, soft: Tensor, light: Light) -> Tensor:
    """Linear colours of the ground in the light and shadow of n pictures, `(3, n, side, side)`."""
    here = ground.points
    lit = [1 - looked_up(soft[i], *located(pose.lights[i], here)) for i in range(3)]
    there = pose.spot.T[:, :, None, None] - here[:, None]
    spot, to_spot = spot_irradiance(there, pose.aim.T[:, :, None, None], light)
    spot = spot * lit[2]
    cosine = to_spot[2]
    up, view = ground.up[:, None], ground.view[:, None]
    gloss = shading.glossy(up, view, to_spot, ground.cos_view, cosine)
    spot_diffuse, spot_gloss = ground.diffuse * spot * cosine, ground.gloss * spot * gloss
    white_diffuse = ground.sun[0] * lit[0] + ground.lamp[0] * lit[1]
    white_gloss = ground.sun[1] * lit[0] + ground.lamp[1] * lit[1]
    hue, spot_hue = pose.ground_hue[:, :, None, None], pose.spot_hue[:, :, None, None]
    return hue * (white_diffuse + spot_hue * spot_diffuse) + white_gloss + spot_hue * spot_gloss


def object_colour(pose: Pose, mesh: Mesh, seen: Tensor, shadows: Tensor, light: Light) -> tuple[Tensor, Tensor]:
    """The samples at which the object is seen, as places in all samples `(k,)`, and their colours `(3, k)`."""
    samples = seen.shape[-1]
    place = (seen.view(-1) != EMPTY).nonzero().squeeze(1)
    picture = place // (samples * samples)
    row = (place // samples) % samples
    column = place % samples
    bits = id_bits(mesh)
    triangle = (seen.view(-1)[place] & ((1 << bits) - 1)).long()

    eye = camera_frame(seen.device)
    rays = rays_at(eye, (column + 0.5) / samples, (row + 0.5) / samples)
    # The point where the ray meets the triangle, in the object's own coordinates: turned back instead of the mesh.
    turn = pose.rotation.permute(1, 2, 0)[:, :, picture]  # (3, 3, k): world from object
    origin = back(turn, (eye.eye - pose.location).T[:, picture])
    direction = back(turn, rays)
    corner = mesh.vertices.T[:, mesh.triangles.T][:, :, triangle]  # (3, corner, k)
    a, e1, e2 = corner[:, 0], corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]
    p = cross(direction, e2)
    determinant = shading.dot(e1, p)
    s = origin - a
    q = cross(s, e1)
    u, v = shading.dot(s, p) / determinant, shading.dot(direction, q) / determinant
    u, v = u.clamp(0, 1), v.clamp(0, 1)
    own = mesh.normals.T[:, mesh.triangles.T][:, :, triangle]
    normal = shading.unit(forth(turn, own[:, 0] * (1 - u - v) + own[:, 1] * u + own[:, 2] * v))
    point = forth(turn, a + u * e1 + v * e2) + pose.location.T[:, picture]

    view = -shading.unit(rays)
    cos_view = shading.dot(normal, view).clamp_min(0.02)
    diffuse, gloss = shading.weights(cos_view, light.sheen)
    above = torch.tensor([0.0, 0.0, 1.0], device=seen.device)[:, None].expand_as(point)
    lamp_there = torch.tensor([0.0, 0.0, LAMP], device=seen.device)[:, None] - point
    squared = shading.dot(lamp_there, lamp_there).clamp_min(0.05)
    to_lamp = lamp_there * torch.rsqrt(squared)
    spot, to_spot = spot_irradiance(pose.spot.T[:, picture] - point, pose.aim.T[:, picture], light)
    arriving = (
        (above, torch.full_like(u, light.sun)),
        (to_lamp, light.lamp * to_lamp[2].clamp_min(0) / squared),
        (to_spot, spot),
    )
    reflected = []
    for i, (to_light, irradiance) in enumerate(arriving):
        cosine = shading.dot(normal, to_light).clamp_min(0)
        lit = irradiance * unshadowed(pose, shadows[i], i, point, picture, bits)
        shine = shading.glossy(normal, view, to_light, cos_view, cosine)
        reflected.append((diffuse * lit * cosine, gloss * lit * shine))
    (sun_d, sun_g), (lamp_d, lamp_g), (spot_d, spot_g) = reflected
    spot_hue = pose.spot_hue[:, picture]
    colour = pose.object_hue[:, picture] * (sun_d + lamp_d + spot_hue * spot_d) + sun_g + lamp_g + spot_hue * spot_g
    return place, colour


def unshadowed(pose: Pose, shadows: Tensor, light: int, point: Tensor, picture: Tensor, bits: int) -> Tensor:
    """The share of a light that reaches points of the object: four cells of its map, weighted by their distance."""
    a, b, w, t = apply(pose.lights[light][picture].permute(1, 2, 0), point)
    x, y, near = a / w - 0.5, b / w - 0.5, t / w
    x0, y0 = x.floor(), y.floor()
    fx, fy = x - x0, y - y0
    flat, first = shadows.reshape(-1), picture * (MAP * MAP)
    level = ((near + BIAS) * (2 ** (31 - bits) - 1)).clamp(0, 2.0 ** (31 - bits) - 1).long()
    lit: Tensor = torch.zeros_like(x)
    for dx in (0, 1):
        for dy in (0, 1):
            column, row = x0 + dx, y0 + dy
            inside = (column >= 0) & (column < MAP) & (row >= 0) & (row < MAP) & (w > 0)
            cell = first + (row.clamp(0, MAP - 1) * MAP + column.clamp(0, MAP - 1)).long()
            free = ~inside | ((flat[cell] >> bits) <= level)
            weight = (fx if dx else 1 - fx) * (fy if dy else 1 - fy)
            lit += weight * free
    return lit


BIAS = 2e-3  # how much nearer than a surface, in the range of a light's map, something must be to shade it


def spot_irradiance(there: Tensor, aim: Tensor, light: Light) -> tuple[Tensor, Tensor]:
    r"""Irradiance from the spotlight before the cosine, and the direction to it.

    The cone has a smooth edge, and the lamp has a radius of r. Both widen the edge; a cubic step of the same variance
    stands for both: at the distance h along the axis it is $\sqrt{5 r^2 + (h \Delta)^2}$ wide, where $\Delta$ is the
    width of the cone's own edge in tangents.

    Args:
        there: from the points to the spotlight, `(3, …)`.
        aim: the direction in which it shines, `(3, …)`.
        light: brightness.
    """
    squared = shading.dot(there, there)
    to_spot = there * torch.rsqrt(squared)
    ahead = -shading.dot(there, aim)
    aside = (squared - ahead * ahead).clamp_min(0).sqrt()
    width = (5 * SPOT_RADIUS**2 + (ahead * EDGE) ** 2).sqrt()
    x = ((ahead * MIDDLE - aside) / width + 0.5).clamp(0, 1)
    share = x * x * (3 - 2 * x) * (ahead > 0)
    return light.spot * share / squared, to_spot


_INNER = math.tan(math.acos(math.cos(CONE) + BLEND * (1 - math.cos(CONE))))
MIDDLE, EDGE = (math.tan(CONE) + _INNER) / 2, math.tan(CONE) - _INNER


def composed(seen: Tensor, ground: Tensor, thing: tuple[Tensor, Tensor], side: int) -> Tensor:
    """The mean of four samples for each pixel, as bytes, `(n, 3, side, side)`."""
    n, samples = len(seen), 2 * side
    place, colour = thing
    picture, rest = place // (samples * samples), place % (samples * samples)
    pixel = picture * side * side + (rest // samples // 2) * side + (rest % samples) // 2
    ground = ground.reshape(3, -1)
    # A pixel is its ground plus, for each sample in which the object is seen, a quarter of the difference.
    out = ground.clone().clamp(0, 1)
    out.index_add_(1, pixel, 0.25 * (colour.clamp(0, 1) - out[:, pixel]))
    return shading.srgb(out.view(3, n, side, side).transpose(0, 1))


def blurred(maps: Tensor, deviation: Tensor) -> Tensor:
    """Maps `(k, n, s, s)` after a Gaussian blur of that deviation in cells, `(k, n)`, as two matrix products."""
    cells = torch.arange(maps.shape[-1], device=maps.device, dtype=maps.dtype)
    squared = (cells[:, None] - cells) ** 2
    kernel = torch.exp(-squared / (2 * (deviation * deviation + 0.25))[..., None, None])
    kernel = kernel / kernel.sum(-2, keepdim=True).amax(
        -1, keepdim=True
    )  # what leaves the map is lost: none is lit twice
    return kernel @ maps @ kernel


def located(view: Tensor, points: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where points `(3, h, w)` are seen in each of n views: column, row and distance ahead, `(n, h, w)` each."""
    a, b, w, _ = (view[:, i, :3] @ points.reshape(3, -1) + view[:, i, 3:] for i in range(4))
    shape = (len(view), *points.shape[1:])
    return (a / w).view(shape), (b / w).view(shape), w.view(shape)


def looked_up(maps: Tensor, x: Tensor, y: Tensor, w: Tensor) -> Tensor:
    """Values of maps `(n, s, s)` between cells, by distance; 0 outside and behind the light."""
    s = maps.shape[-1]
    grid = torch.stack([x, y], -1) * (2 / s) - 1
    grid = torch.where((w > 0)[..., None], grid, -2.0)
    return torch.nn.functional.grid_sample(maps[:, None], grid, align_corners=False)[:, 0]


def camera_frame(device: torch.device) -> Frame:
    """The camera of 3DIdent: 45 degrees down towards the origin."""
    h = math.sqrt(0.5)
    axes = torch.tensor([[CAMERA, 0, CAMERA], [0, 1, 0], [-h, 0, h], [-h, 0, -h]], device=device)
    return Frame(*axes.unbind(0))


def _looking_down(device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Right, up and forward of a light that shines straight down."""
    return tuple(torch.tensor([[1.0, 0, 0], [0, 1.0, 0], [0, 0, -1.0]], device=device).unbind(0))  # type: ignore[return-value]


def _for_all(frame: Frame, n: int) -> Frame:
    return Frame(*(a.expand(n, 3) for a in (frame.eye, frame.right, frame.up, frame.forward)))


def rays_at(eye: Frame, x: Tensor, y: Tensor) -> Tensor:
    """Directions from the camera through places of the picture, from 0 to 1 each, `(…) -> (3, …)`; not of length 1."""
    shape = (3,) + (1,) * x.ndim
    right, up, forward = (a.view(shape) for a in (eye.right, eye.up, eye.forward))
    return forward + TANGENT * ((2 * x - 1) * right + (1 - 2 * y) * up)


def pixel_rays(eye: Frame, side: int, device: torch.device) -> Tensor:
    """Directions from the camera through the middle of each pixel, `(3, side, side)`."""
    middle = (torch.arange(side, device=device) + 0.5) / side
    return rays_at(eye, middle[None, :].expand(side, side), middle[:, None].expand(side, side))


def euler(angles: Tensor) -> Tensor:
    r"""$R_z(\gamma) R_y(\beta) R_x(\alpha)$ of angles `(n, 3)`, `(n, 3, 3)`."""
    (ca, cb, cc), (sa, sb, sc) = angles.cos().unbind(1), angles.sin().unbind(1)
    rows = (
        (cb * cc, sa * sb * cc - ca * sc, ca * sb * cc + sa * sc),
        (cb * sc, sa * sb * sc + ca * cc, ca * sb * sc - sa * cc),
        (-sb, sa * cb, ca * cb),
    )
    return torch.stack([torch.stack(row, -1) for row in rows], -2)


def apply(matrix: Tensor, point: Tensor) -> tuple[Tensor, ...]:
    """M (p, 1) of matrices `(4, 4, k)` and points `(3, k)`, four components."""
    return tuple(shading.dot(matrix[i], point) + matrix[i, 3] for i in range(4))


def forth(turn: Tensor, v: Tensor) -> Tensor:
    """R v, `(3, 3, k), (3, k) -> (3, k)`."""
    return torch.stack([shading.dot(turn[i], v) for i in range(3)])


def back(turn: Tensor, v: Tensor) -> Tensor:
    """R^T v."""
    return torch.stack([shading.dot(turn[:, i], v) for i in range(3)])


def cross(a: Tensor, b: Tensor) -> Tensor:
    """The vector product over the first axis."""
    return torch.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
