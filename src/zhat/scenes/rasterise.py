r"""Which triangle is seen where: depth buffers of a whole batch of pictures, in plain torch.

A sample at the middle of a cell of the map is covered by a triangle if it lies on the same side of its three edges. Of
all triangles that cover it, the nearest one stays. To find it in one pass, nearness and the number of the triangle are
packed into one whole number, nearness in the upper bits, and the largest number wins:

$$\text{key} = \lfloor \text{nearness} \cdot (2^{31 - k} - 1) \rfloor \, 2^k + \text{triangle},
\qquad 2^k \ge \text{triangles}$$

So the order of the triangles does not matter, and neither does the order in which a GPU handles them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from zhat.errors import BadInput
from zhat.scenes.meshes import Mesh

EMPTY = -1
SEAM = 1e-5  # by how much weights may miss, so that rounding leaves no gap between two triangles
MOST = 2**17  # triangles; more would leave less than 2^14 steps of nearness


def id_bits(mesh: Mesh) -> int:
    """k: how many bits the number of a triangle takes."""
    if len(mesh.triangles) > MOST:
        raise BadInput(f"a mesh may have at most {MOST:,} triangles, but {len(mesh.triangles):,} came. Simplify it.")
    return max(1, (len(mesh.triangles) - 1).bit_length())


def steps(bits: int) -> int:
    """The nearness of 1 in a key whose lower bits name the triangle."""
    return (1 << (31 - bits)) - 1


def splat(views: Tensor, mesh: Mesh, samples: int, *, far_side: bool = False) -> Tensor:
    """The key of the nearest triangle at each sample.

    Args:
        views: of the object's own points, `(n, 4, 4)`.
        mesh: the object.
        samples: side of the map.
        far_side: draw only triangles that face away from the eye. A shadow map of these cannot put a surface into its
            own shadow.

    Returns:
        `(n, samples, samples)`, int32; `EMPTY` where no triangle is seen.
    """
    n, bits = len(views), id_bits(mesh)
    corners = torch.cat([mesh.vertices, torch.ones_like(mesh.vertices[:, :1])], 1)
    a, b, w, t = (views @ corners.T).unbind(1)  # each (n, vertices)
    ahead = w > 1e-3
    w = torch.where(ahead, w, torch.nan)  # comparisons with NaN fail, so such triangles cover nothing
    places = torch.stack([a / w, b / w, t / w]).index_select(2, mesh.triangles.T.reshape(-1))
    x, y, d = places.unflatten(2, (3, -1)).unbind(0)  # each (n, 3, triangles)
    x0, x1, x2 = x.unbind(1)
    y0, y1, y2 = y.unbind(1)
    area = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)  # below 0 if it faces the eye: rows run downwards
    facing = area > 0 if far_side else area != 0
    left, right = _span(x, samples)
    top, bottom = _span(y, samples)
    wide, high = right - left + 1, bottom - top + 1
    which, triangle = (facing & (wide > 0) & (high > 0)).nonzero(as_tuple=True)
    where = which * len(mesh.triangles) + triangle

    def of(values: Tensor) -> Tensor:
        return values.reshape(-1).index_select(0, where)

    # The weights u and v of corners 1 and 2 are linear in the place: u = u0 + ux * column + uy * row.
    x0, y0, d0, d1, d2 = of(x0), of(y0), of(d[:, 0]), of(d[:, 1]), of(d[:, 2])
    x1, y1, x2, y2 = of(x1) - x0, of(y1) - y0, of(x2) - x0, of(y2) - y0
    scale = 1 / (x1 * y2 - x2 * y1)
    ux, uy, vx, vy = y2 * scale, -x2 * scale, -y1 * scale, x1 * scale
    left, top, wide, high = of(left), of(top), of(wide).int(), of(high).int()
    ox, oy = left + 0.5 - x0, top + 0.5 - y0
    u0, v0 = ux * ox + uy * oy, vx * ox + vy * oy
    first = (which * samples + top.long()) * samples + left.long()

    cells = (wide * high).long()
    owner = torch.repeat_interleave(cells)
    start = cells.cumsum(0) - cells
    step = torch.arange(len(owner), device=views.device) - start[owner]
    across = wide[owner]
    row = torch.div(step, across, rounding_mode="floor")
    column = step - row * across
    lines = torch.stack([u0, ux, uy, v0, vx, vy])[:, owner]
    u = lines[0] + lines[1] * column + lines[2] * row
    v = lines[3] + lines[4] * column + lines[5] * row
    covered = ((u >= -SEAM) & (v >= -SEAM) & (u + v <= 1 + SEAM)).nonzero().squeeze(1)
    owner, row, column, u, v = owner[covered], row[covered], column[covered], u[covered], v[covered]
    nearness = d0[owner] + (d1 - d0)[owner] * u + (d2 - d0)[owner] * v
    level = (nearness.clamp(0, 1) * steps(bits)).int()
    key = (level << bits) | triangle[owner].int()
    place = first[owner] + row * samples + column
    out = torch.full((n * samples * samples,), EMPTY, dtype=torch.int32, device=views.device)
    return out.scatter_reduce_(0, place, key, "amax").view(n, samples, samples)


def _span(x: Tensor, samples: int) -> tuple[Tensor, Tensor]:
    """The first and the last sample of the map between the corners of each triangle, `(n, 3, t) -> (n, t)`."""
    low, high = x.aminmax(dim=1)
    return (low - 0.5).ceil().clamp_min(0), (high - 0.5).floor().clamp_max(samples - 1)
