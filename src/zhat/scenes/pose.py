r"""Where everything stands in the scene of 3DIdent, given the latents.

Ten latents from -1 to 1 move it: `x, y, z` times 3 is where the object is; `rot_alpha, rot_beta, rot_gamma` times
$\pi / 2$ are the angles by which it is turned about the axes x, y and z, in this order; `spot_theta` times $\pi / 2$ is
where the spotlight stands on its circle; the hues of object, spotlight and ground are the last three times $\pi / 2$.
A sun shines straight down, a small square lamp hangs at a height of 7, and the spotlight follows the object.

Reference: zimmermann2021, Section 5.3 and Appendix A.2.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from zhat.scenes.shading import Light, hue
from zhat.scenes.vectors import constant, euler
from zhat.scenes.views import Frame, parallel, perspective, towards

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
SPOT = 6 + SPAN  # height of the spotlight
ROOM = 1.3  # by how much the lamp's map is wider than the object, which the lamp sees from near


class Pose:
    """Where everything stands in n pictures.

    Args:
        z: latents, `(n, 10)`.
        reach: the largest distance of a point of the object from its own origin.
        samples: side of the camera's map.
        cells: side of the lights' maps.

    Attributes:
        location: of the object, `(n, 3)`.
        rotation: of the object, `(n, 3, 3)`.
        spot: place of the spotlight, `(n, 3)`.
        aim: the direction in which it shines, `(n, 3)`.
        hues: linear colours of the object, the spotlight and the ground, `(3, 3, n)`, the colour first.
        camera: view of the world, `(n, 4, 4)`.
        lights: the same for sun, lamp and spotlight, `(3, n, 4, 4)`.
        cell: side of a cell of each light's map at the distance of the object, `(3, n)`.
    """

    def __init__(self, z: Tensor, reach: float, samples: int, cells: int) -> None:
        right_angle = math.pi / 2
        self.location = 3 * z[:, :3] + constant((0.0, 0.0, SPAN / 2), z)
        self.rotation = euler(right_angle * z[:, 3:6])
        theta = right_angle * z[:, 6]
        self.spot = torch.stack([4 * theta.sin(), 4 * theta.cos(), torch.full_like(theta, SPOT)], 1)
        saturations = (1.0, 0.8, 0.6)
        self.hues = torch.stack([hue(right_angle * z[:, 7 + i], s) for i, s in enumerate(saturations)], 1)

        one, middle = torch.ones_like(theta), torch.zeros_like(z[:, :2])
        frame = camera(z)
        ahead = ((self.location - frame.eye) * frame.forward).sum(1)
        near, far = (ahead - reach).clamp_min(NEAREST), ahead + reach
        self.camera = perspective(frame, middle, TANGENT * one, near, far, samples)

        sun = parallel(_down(self.location), reach * one, cells)
        lamp, lamp_half = self._lamp(reach, cells)
        aimed = towards(self.spot, self.location)
        self.aim = aimed.forward
        away = (self.location - self.spot).norm(dim=1)
        half = reach / (away * away - reach * reach).clamp_min(NEAREST).sqrt()  # the tangent of asin(reach / away)
        spot = perspective(aimed, middle, half, (away - reach).clamp_min(NEAREST), away + reach, cells)
        self.lights = torch.stack([sun, lamp, spot])
        self.cell = torch.stack([reach * one, lamp_half, half * away]) * (2 / cells)

    def _lamp(self, reach: float, cells: int) -> tuple[Tensor, Tensor]:
        """The lamp's view, straight down past the object, and half the width of its map there.

        The object may come so near that the lamp hangs among its parts; then it is seen from half its reach above.
        """
        x, y, z = self.location.unbind(1)
        below = (LAMP - z).clamp_min(0.5 * reach)
        eye = torch.stack([torch.zeros_like(z), torch.zeros_like(z), torch.full_like(z, LAMP)], 1)
        centre = torch.stack([x, -y], 1) / below[:, None]
        near, far = (below - reach).clamp_min(NEAREST), below + reach
        half = torch.full_like(z, ROOM * reach)
        return perspective(_down(eye), centre, half / below, near, far, cells), half

    def softness(self, light: Light) -> Tensor:
        r"""Standard deviation of the blur of each light's shadow on the ground, in cells of its map, `(3, n)`.

        A light of the radius r at the height H throws, from an edge at the height h above the ground, a shadow whose
        edge is $2 r h / (H - h)$ wide. The light's map magnifies by $H / (H - h)$ on the way, so there the edge is
        $2 r h / H$ wide. A disc of the radius r has the deviation r / 2 along a line; a square of the side a
        has $a / \sqrt{12}$.
        """
        height = (self.location[:, 2] - GROUND).clamp_min(0)
        sun = height * light.sun_radius / 2
        lamp = height * light.lamp_side / math.sqrt(12) / (LAMP - GROUND)
        spot = height * light.spot_radius / 2 / (SPOT - GROUND)
        return torch.stack([sun, lamp, spot]) / self.cell


NEAREST = 0.1  # nothing nearer than this is drawn


def camera(like: Tensor) -> Frame:
    """The camera: 45 degrees down towards the origin; fields `(3,)`, on the device of a tensor."""
    h = math.sqrt(0.5)
    return Frame(*constant(((CAMERA, 0, CAMERA), (0, 1, 0), (-h, 0, h), (-h, 0, -h)), like).unbind(0))


def rays(frame: Frame, x: Tensor, y: Tensor) -> Tensor:
    """Directions from the camera through places of the picture, 0 to 1 each way, `(…) -> (3, …)`; not of length 1."""
    right, up, forward = (a.view(3, *[1] * x.ndim) for a in (frame.right, frame.up, frame.forward))
    return forward + TANGENT * ((2 * x - 1) * right + (1 - 2 * y) * up)


def _down(eye: Tensor) -> Frame:
    """A light at `eye` that shines straight down, `(n, 3)`."""
    return Frame(eye, *constant(((1, 0, 0), (0, 1, 0), (0, 0, -1)), eye).unbind(0))
