"""Scenes as values: a renderer is a mixing, latents in and pictures out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import torch

from zhat import _checks
from zhat.datasets.place import recorded
from zhat.errors import BadInput
from zhat.scenes import jug, meshes
from zhat.scenes.meshes import Mesh
from zhat.scenes.pose import NAMES
from zhat.scenes.still_life import Stage

TEAPOT = "threedident_rerender/teapot.npz"


@dataclass(frozen=True)
class StillLife(ABC):
    """One object over a coloured ground under three lights, moved by ten latents from -1 to 1.

    Attributes:
        dim: how many latents there are.
        names: what they are called.
        shape: of a picture, `(3, side, side)`.
        still: latents at which the object is well seen; `traversal` moves one of them at a time.
        rows_at_once: how many rows training draws together; a picture takes milliseconds on a CPU.
    """

    side: int = 64
    dim: ClassVar[int] = len(NAMES)
    names: ClassVar[tuple[str, ...]] = NAMES
    rows_at_once: ClassVar[int] = 256
    still: ClassVar[tuple[float, ...]] = (0.35, 0.0, -0.1, 0.1, -0.2, -0.4, 0.5, 0.2, -0.55, -0.85)

    def __post_init__(self) -> None:
        _checks.settle(self, side=_checks.count(self.side, "side", least=8))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of a picture."""
        return 3, self.side, self.side

    @abstractmethod
    def mesh(self) -> Mesh:
        """The object, in the size in which it appears."""

    def build(self, dim: int, generator: torch.Generator) -> Stage:
        """The renderer; nothing about it is random, so every seed has the same."""
        if dim != self.dim:
            raise BadInput(
                f"{type(self).__name__} is moved by {self.dim} latents ({', '.join(self.names)}), but {dim} came. "
                f"Use a space of {self.dim} dimensions such as Box({self.dim}, -1.0, 1.0)."
            )
        return _stage(self)


@dataclass(frozen=True)
class Jug(StillLife):
    """A jug with spout and handle, built by formulas; needs no data.

    Example:
        >>> picture = Jug(side=16).build(10, torch.Generator())(torch.zeros(2, 10))
        >>> picture.shape, picture.dtype
        (torch.Size([2, 3, 16, 16]), torch.uint8)
    """

    def mesh(self) -> Mesh:
        """The jug, about as large as the teapot."""
        return jug.jug().scaled(1.25)


@dataclass(frozen=True)
class Teapot(StillLife):
    """The teapot of 3DIdent, from a file with the arrays vertices, triangles and normals.

    Args:
        side: pixels of a picture, each way.
        file: the npz file; None takes threedident_rerender/teapot.npz in the folder of recorded data.

    Reference: zimmermann2021, Section 5.3.
    """

    file: str | None = None

    def find(self) -> Path:
        """The file of the mesh; raises `MissingData` where it is not there."""
        if self.file is None:
            return recorded(TEAPOT, published="with 3DIdent (github.com/brendel-group/cl-ica, tools/3dident)")
        path = Path(self.file)
        if not path.is_file():
            raise BadInput(f"the mesh of the teapot must be an npz file, but {path} is not there. Give another `file`.")
        return path

    def mesh(self) -> Mesh:
        """The teapot in the size of 3DIdent."""
        return meshes.load(self.find()).scaled(1.5)


@lru_cache(maxsize=16)
def _stage(scene: StillLife) -> Stage:
    return Stage(scene.mesh(), scene.side)
