r"""A jug, built by formulas: a turned body with a foot and a flared rim, a spout, and a handle to its side.

No rotation and no reflection maps the jug to itself, because the handle stands 110 degrees away from the spout.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from zhat.scenes.meshes import Mesh, joined, smooth

Curve = Callable[[Tensor], Tensor]
HANDLE = math.radians(110)  # from the spout, about the upright axis


def jug() -> Mesh:
    """The jug: 5,132 triangles, 3.6 high, standing on the axis z around which its body is turned."""
    return joined([body(), spout(), handle()])


def body() -> Mesh:
    """The body: a closed profile turned about the upright axis. Inside, the jug is filled up to below its neck."""
    knots = torch.tensor(
        [  # radius, height: from the middle of the foot, up the outside, over the rim, down the inside
            [0.0, -1.72],
            [0.62, -1.74],
            [0.78, -1.72],
            [0.80, -1.62],
            [0.74, -1.52],
            [0.95, -1.30],
            [1.30, -0.85],
            [1.45, -0.30],
            [1.36, 0.25],
            [1.05, 0.75],
            [0.76, 1.12],
            [0.72, 1.40],
            [0.86, 1.68],
            [1.00, 1.82],
            [0.98, 1.88],
            [0.90, 1.84],
            [0.74, 1.64],
            [0.60, 1.40],
            [0.60, 1.16],
            [0.48, 1.08],
            [0.0, 1.06],
        ],
        dtype=torch.float64,
    )
    return turned(_through(knots), rings=41, around=40)


def spout() -> Mesh:
    """A bent tube that narrows towards its mouth, with an inner wall."""
    path = _upright(((1.0, -0.55), (1.55, -0.35), (1.85, 0.25), (2.05, 0.95), (2.45, 1.35)), 0.0)
    out, mouth, back = torch.linspace(0, 1, 20).double(), torch.ones(1).double(), torch.linspace(1, 0.75, 6).double()
    taper = _through(torch.tensor([[0.52], [0.40], [0.30], [0.24], [0.22]]).double())
    radii = torch.cat([taper(out), 0.9 * taper(mouth), 0.76 * taper(back)])[:, 0]
    return swept(path, torch.cat([out, mouth, back]), radii, around=20)


def handle() -> Mesh:
    """A loop of a round tube from the shoulder to the belly, to the side of the spout."""
    knots = ((0.92, 0.78), (1.45, 1.12), (2.05, 0.85), (2.15, 0.10), (1.75, -0.55), (1.15, -0.80))
    places = torch.linspace(0, 1, 30).double()
    return swept(_upright(knots, HANDLE), places, 0.17 + 0.06 * (2 * places - 1) ** 4, around=14)


def turned(profile: Curve, rings: int, around: int) -> Mesh:
    r"""The surface $(r(s) \cos \phi, r(s) \sin \phi, h(s))$ of a profile that begins and ends on the axis.

    Args:
        profile: $s \mapsto (r, h)$ for s from 0 to 1, `(k,) -> (k, 2)`; the outside lies to its right.
        rings: how many circles, without the two ends on the axis.
        around: corners of each circle.
    """
    s = torch.linspace(0, 1, rings + 2, dtype=torch.float64)
    r, h = profile(s).unbind(1)
    phi = torch.arange(around, dtype=torch.float64) * (2 * math.pi / around)
    circles = torch.stack(
        [
            r[1:-1, None] * phi.cos(),
            r[1:-1, None] * phi.sin(),
            h[1:-1, None].expand(rings, around),
        ],
        -1,
    )
    ends = torch.stack([torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64), h[[0, -1]]], 1)
    first, last = rings * around, rings * around + 1
    here = torch.arange(around)
    there = (here + 1) % around
    cap = torch.stack([torch.full_like(here, first), there, here], 1)
    lid = torch.stack([torch.full_like(here, last), first - around + here, first - around + there], 1)
    return smooth(torch.cat([circles.reshape(-1, 3), ends]).float(), torch.cat([_wall(rings, around), cap, lid]))


def swept(path: Curve, places: Tensor, radii: Tensor, around: int) -> Mesh:
    r"""The tube $c(s) + r (\cos \phi \, a + \sin \phi \, b(s))$ around a curve in an upright plane; its ends are open.

    Args:
        path: $c$, `(k,) -> (k, 3)`.
        places: the circles' places s on the path; where they go back, the wall is seen from inside.
        radii: of the circles.
        around: corners of each circle.
    """
    c, step = path(places), 1e-4
    along = torch.nn.functional.normalize(path(places + step) - path(places - step), dim=1)
    aside = torch.linalg.cross(path(places.new_tensor([0.5]))[0] - c[0], c.new_tensor([0.0, 0.0, 1.0]))
    a = torch.nn.functional.normalize(aside, dim=0).expand_as(c)
    b = torch.linalg.cross(along, a)
    phi = torch.arange(around, dtype=c.dtype)[:, None] * (2 * math.pi / around)
    points = c[:, None] + radii[:, None, None] * (phi.cos() * a[:, None] + phi.sin() * b[:, None])
    return smooth(points.reshape(-1, 3).float(), _wall(len(places), around))


def _wall(rings: int, around: int) -> Tensor:
    """Two triangles for each cell between neighbouring circles."""
    ring, here = torch.meshgrid(torch.arange(rings - 1), torch.arange(around), indexing="ij")
    there = (here + 1) % around
    a, b = ring * around + here, ring * around + there
    c, d = a + around, b + around
    return torch.stack([torch.stack([a, b, d], -1), torch.stack([a, d, c], -1)], -2).reshape(-1, 3)


def _through(knots: Tensor) -> Curve:
    """The smooth curve through knots `(k, …)` that Catmull and Rom describe, for s from 0 to 1."""
    padded = torch.cat([2 * knots[:1] - knots[1:2], knots, 2 * knots[-1:] - knots[-2:-1]])

    def curve(s: Tensor) -> Tensor:
        place = s.double() * (len(knots) - 1)
        k = place.floor().clamp(0, len(knots) - 2).long()
        u = (place - k)[:, None]
        p0, p1, p2, p3 = (padded[k + i] for i in range(4))
        bend = 2 * p0 - 5 * p1 + 4 * p2 - p3
        twist = 3 * (p1 - p2) + p3 - p0
        return 0.5 * (2 * p1 + (p2 - p0) * u + bend * u**2 + twist * u**3)

    return curve


def _upright(knots: tuple[tuple[float, float], ...], angle: float) -> Curve:
    """The curve through (distance from the axis, height) in the upright plane at that angle about the axis."""
    flat = _through(torch.tensor(knots).double())

    def curve(s: Tensor) -> Tensor:
        away, height = flat(s).unbind(1)
        return torch.stack([away * math.cos(angle), away * math.sin(angle), height], 1)

    return curve
