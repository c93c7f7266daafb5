"""Triangle meshes: where the corners are, which three make a triangle, and which way the surface faces there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from zhat.errors import BadInput
from zhat.files.arrays import npz_names, read_npz


@dataclass(frozen=True, eq=False)
class Mesh:
    """A surface made of triangles whose corners run anticlockwise when seen from outside.

    Attributes:
        vertices: corners, `(v, 3)`.
        triangles: three corners each, `(t, 3)`, whole numbers.
        normals: unit vectors that point outwards at the corners, `(v, 3)`. Between corners the surface is shaded with
            interpolated normals, so a mesh of flat triangles looks smooth.
    """

    vertices: Tensor
    triangles: Tensor
    normals: Tensor

    def __post_init__(self) -> None:
        v, t = self.vertices, self.triangles
        if v.ndim != 2 or v.shape[1] != 3 or t.ndim != 2 or t.shape[1] != 3 or self.normals.shape != v.shape:
            raise BadInput(
                "a mesh must have `vertices` (v, 3), `triangles` (t, 3) and `normals` (v, 3), but "
                f"{tuple(v.shape)}, {tuple(t.shape)} and {tuple(self.normals.shape)} came."
            )
        if not len(t) or int(t.min()) < 0 or int(t.max()) >= len(v):
            raise BadInput(f"the triangles of a mesh must name some of its {len(v)} vertices, from 0 to {len(v) - 1}.")
        if not bool(torch.isfinite(v).all() and torch.isfinite(self.normals).all()):
            raise BadInput("the vertices and normals of a mesh must be finite, but some are NaN or infinite.")

    @property
    def radius(self) -> float:
        """The distance of the farthest vertex from the origin, around which the object turns."""
        return float(self.vertices.norm(dim=1).max())

    @cached_property
    def corners(self) -> Tensor:
        """The three corners of each triangle, then the normals there, `(6, 3, t)`."""
        both = torch.cat([self.vertices.T[:, self.triangles.T], self.normals.T[:, self.triangles.T]], 1)
        return both.transpose(0, 1).contiguous()

    def scaled(self, size: float) -> Mesh:
        """The same surface, so many times as large."""
        return Mesh(size * self.vertices, self.triangles, self.normals)

    def to(self, device: torch.device) -> Mesh:
        """The same mesh on a device."""
        return Mesh(self.vertices.to(device), self.triangles.to(device), self.normals.to(device))


def load(path: Path) -> Mesh:
    """A mesh from an npz file with the arrays `vertices`, `triangles` and `normals`."""
    held, wanted = npz_names(path), ("vertices", "triangles", "normals")
    missing = set(wanted) - set(held)
    if missing:
        raise BadInput(
            f"{path} must hold the arrays vertices, triangles and normals of a mesh, but {', '.join(sorted(missing))} "
            f"{'is' if len(missing) == 1 else 'are'} missing. It holds {', '.join(sorted(held)) or 'none'}."
        )
    vertices, triangles, normals = read_npz(path, wanted)
    return Mesh(
        torch.from_numpy(vertices.astype(np.float32)),
        torch.from_numpy(triangles.astype(np.int64)),
        torch.from_numpy(normals.astype(np.float32)),
    )


def smooth(vertices: Tensor, triangles: Tensor) -> Mesh:
    r"""A mesh with normals of its own: at each vertex the sum of its triangles' normals, weighted by their areas.

    $$n_v \propto \sum_{t \ni v} (b_t - a_t) \times (c_t - a_t)$$
    """
    a, b, c = (vertices[triangles[:, i]] for i in range(3))
    face = torch.linalg.cross(b - a, c - a)
    normals = torch.zeros_like(vertices)
    for i in range(3):
        normals.index_add_(0, triangles[:, i], face)
    return Mesh(vertices, triangles, torch.nn.functional.normalize(normals, dim=1))


def joined(parts: list[Mesh]) -> Mesh:
    """Several surfaces as one."""
    first = np.cumsum([0] + [len(part.vertices) for part in parts])
    return Mesh(
        torch.cat([part.vertices for part in parts]),
        torch.cat([part.triangles + int(k) for part, k in zip(parts, first[:-1], strict=True)]),
        torch.cat([part.normals for part in parts]),
    )
