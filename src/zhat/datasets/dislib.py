"""The data sets of DisLib in their publishers' own files: dSprites, Shapes3D, MPI3D, Cars3D, smallNORB; and COIL-20.

Nothing is unpickled. Images that are larger are resized to 64 × 64 by an antialiased bilinear filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
from torch.nn import functional as F

from zhat.datasets.known_factors import SIDE, Recording
from zhat.datasets.place import recorded
from zhat.errors import BadInput, MissingExtra

NONE: Mapping[str, float] = MappingProxyType({})
TURN: Mapping[str, float] = MappingProxyType({"orientation": 39.0})  # of 40 angles from 0 to 2π, both ends included


@dataclass(frozen=True)
class DSprites:
    """dSprites: 737,280 silhouettes of squares, ellipses and hearts.

    Args:
        subset: "" reads the publisher's file; "random20k" 20,000 images of it drawn at random, and
            "grid_3x6x10x16x16" every fourth orientation and every second position, from files of their own.

    Reference: matthey2017.
    """

    subset: str = ""
    SUBSETS: ClassVar = ("", "random20k", "grid_3x6x10x16x16")
    factors: ClassVar = ("shape", "scale", "orientation", "posX", "posY")
    category: ClassVar = "shape"
    classes: ClassVar = 3
    periods: ClassVar = TURN
    channels: ClassVar = 1

    def __post_init__(self) -> None:
        if self.subset not in self.SUBSETS:
            raise BadInput(f"`subset` must be one of {', '.join(map(repr, self.SUBSETS))}, but {self.subset!r} came.")

    def find(self) -> Path:
        """Where the file lies."""
        if self.subset:
            return recorded(
                f"dsprites/dsprites_{self.subset}.npz",
                published="as a part of dSprites at github.com/colleenjg/neuromatch_ssl_tutorial",
            )
        return recorded(
            "dsprites/dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz",
            published="at github.com/google-deepmind/dsprites-dataset",
        )

    def read(self, path: Path) -> Recording:
        """Bits of all images, and the codes of five factors; the colour is always white."""
        if self.subset:
            return Recording(*_arrays(path, "images_packed", "latents_classes"))
        images, codes = _arrays(path, "imgs", "latents_classes")
        if images.ndim != 3 or codes.ndim != 2 or codes.shape[1] != 6:
            raise BadInput(
                f"{path} must hold images and six factors of each, but the shapes are {images.shape} and "
                f"{codes.shape}. Is it the publisher's file?"
            )
        return Recording(np.packbits(images.astype(bool), axis=-1), codes[:, 1:])


@dataclass(frozen=True)
class Shapes3D:
    """Shapes3D: 480,000 images of a solid in a coloured room. Needs h5py (`zhat[images]`).

    Reference: burgess2018.
    """

    factors: ClassVar = ("floorHue", "wallHue", "objHue", "objSize", "objType", "objAzimuth")
    category: ClassVar = "objType"
    classes: ClassVar = 4
    periods: ClassVar = MappingProxyType({"floorHue": 10.0, "wallHue": 10.0, "objHue": 10.0})
    channels: ClassVar = 3

    def find(self) -> Path:
        """Where the file lies."""
        return recorded("shapes3d/3dshapes.h5", published="at github.com/google-deepmind/3d-shapes")

    def read(self, path: Path) -> Recording:
        """All images, and codes from the values of the factors."""
        try:
            import h5py
        except ImportError:
            raise MissingExtra("h5py", "images", "reading 3dshapes.h5") from None
        try:
            with h5py.File(path, "r") as file:
                images, values = np.asarray(file["images"]), np.asarray(file["labels"], dtype=np.float64)
        except Exception as error:  # whatever a damaged file raises
            raise _unreadable(path, error) from None
        return Recording(images, codes_of(values, path))


@dataclass(frozen=True)
class MPI3D:
    """MPI3D: 1,036,800 images of an object on a robot arm, of a simple simulation or of the real arm.

    Args:
        real: photographs of the arm (`mpi3d_real.npz`), not the simple simulation (`mpi3d_toy.npz`).

    Reference: gondal2019.
    """

    real: bool = False
    GRID: ClassVar = (6, 6, 2, 3, 3, 40, 40)
    factors: ClassVar = ("objCol", "objShape", "objSize", "cameraHeight", "backCol", "posX", "posY")
    category: ClassVar = "objShape"
    classes: ClassVar = 6
    periods: ClassVar = NONE
    channels: ClassVar = 3

    def find(self) -> Path:
        """Where the file lies."""
        name = "mpi3d_real.npz" if self.real else "mpi3d_toy.npz"
        return recorded(f"mpi3d/{name}", published="at github.com/rr-learning/disentanglement_dataset")

    def read(self, path: Path) -> Recording:
        """All images; the file holds the grid of the factors in order."""
        (images,) = _arrays(path, "images")
        return Recording(images.reshape(-1, *images.shape[-3:]), _grid(self.GRID, len(images), path))


@dataclass(frozen=True)
class Cars3D:
    """Cars3D: 183 cars from 24 sides and 4 heights, resized from 128 × 128.

    The cars are counted in the order of `list.txt`, or of their names where there is none.

    Reference: reed2015.
    """

    factors: ClassVar = ("elevation", "azimuth", "object_type")
    category: ClassVar = "object_type"
    classes: ClassVar = 183
    periods: ClassVar = MappingProxyType({"azimuth": 24.0})
    channels: ClassVar = 3

    def find(self) -> Path:
        """Where the folder lies."""
        return recorded(
            "cars3d/cars", published="in www.scottreed.info/files/nips2015-analogy-data.tar.gz, folder data/cars"
        )

    def read(self, path: Path) -> Recording:
        """All images, car by car."""
        points, codes = [], []
        for car, file in enumerate(self._files(path)):
            images = _matlab(file, "im")
            if images.ndim != 5 or images.shape[2] != 3 or images.dtype != np.uint8:
                raise BadInput(
                    f"`im` in {file} must be bytes (height, width, 3, sides, heights), but {images.dtype} of "
                    f"{images.shape} came. Is it the publisher's file?"
                )
            by_view = images.transpose(3, 4, 0, 1, 2)
            points.append(resized(by_view.reshape(-1, *images.shape[:3])))
            azimuth, elevation = np.divmod(np.arange(len(points[-1])), by_view.shape[1])
            codes.append(np.stack([elevation, azimuth, np.full_like(azimuth, car)], 1))
        return Recording(np.concatenate(points), np.concatenate(codes))

    def _files(self, path: Path) -> list[Path]:
        listed = path / "list.txt"
        if listed.is_file():
            names = listed.read_text(encoding="utf-8", errors="replace").split()
            files = [path / f"{name.removesuffix('.mat')}.mat" for name in names]
        else:
            files = sorted(path.glob("*.mat"))
        absent = [file.name for file in files if not file.is_file()]
        if not files or absent:
            raise BadInput(
                f"{path} must hold one .mat file for each car"
                + (f", but {absent[0]} and {len(absent) - 1} others of list.txt are not there" if absent else "")
                + ". Unpack the publisher's archive again."
            )
        return files


@dataclass(frozen=True)
class SmallNORB:
    """smallNORB: 48,600 photographs of 50 toys, resized from 96 × 96; the first of two cameras, both splits in one.

    Reference: lecun2004.
    """

    PARTS: ClassVar = ("5x46789x9x18x6x2x96x96-training", "5x01235x9x18x6x2x96x96-testing")
    factors: ClassVar = ("category", "instance", "elevation", "rotation", "lighting")
    category: ClassVar = "category"
    classes: ClassVar = 5
    periods: ClassVar = MappingProxyType({"rotation": 18.0})
    channels: ClassVar = 1

    def find(self) -> Path:
        """Where the folder lies."""
        return recorded("smallnorb", published="at cs.nyu.edu/~ylclab/data/norb-v1.0-small, each file unpacked")

    def read(self, path: Path) -> Recording:
        """The first camera's image of every pair."""
        points, values = [], []
        for part in self.PARTS:
            images, category, info = (_matrix(path / f"smallnorb-{part}-{kind}.mat") for kind in ("dat", "cat", "info"))
            n = len(images)
            if images.ndim != 4 or category.shape != (n,) or info.shape != (n, 4):
                raise BadInput(
                    f"dat, cat and info of smallnorb-{part} in {path} must speak of the same pairs of images, but "
                    f"their shapes are {images.shape}, {category.shape} and {info.shape}. Is every file whole?"
                )
            points.append(resized(images[:, 0, :, :, None]))
            values.append(np.concatenate([category[:, None], info], 1))
        return Recording(np.concatenate(points), codes_of(np.concatenate(values), path))


@dataclass(frozen=True)
class COIL20:
    """COIL-20: 20 objects on a turntable, 72 photographs of each, 64 × 64.

    Reference: nene1996.
    """

    factors: ClassVar = ("object", "azimuth")
    category: ClassVar = "object"
    classes: ClassVar = 20
    periods: ClassVar = MappingProxyType({"azimuth": 72.0})
    channels: ClassVar = 1

    def find(self) -> Path:
        """Where the file lies."""
        return recorded(
            "coil20/coil20_64.npz",
            published="as 128 × 128 images at www.cs.columbia.edu/CAVE/software/softlib/coil-20.php",
        )

    def read(self, path: Path) -> Recording:
        """All photographs, object by object."""
        (images,) = _arrays(path, "images")
        if images.ndim != 4:
            raise BadInput(f"`images` in {path} must be (objects, angles, 64, 64), but its shape is {images.shape}.")
        grid = images.shape[:2]
        return Recording(images.reshape(-1, *images.shape[2:], 1), _grid(grid, grid[0] * grid[1], path))


def codes_of(values: np.ndarray, path: Path) -> np.ndarray:
    """Whole numbers from 0 for the values of factors on even grids, column by column.

    A code is the distance from the smallest value in steps of the grid, **rounded**: rounding errors of the values must
    not merge neighbours. The official code of reizinger2024 truncates, which leaves 138 of the 183 cars.

    Args:
        values: of every image, `(n, factors)`.
        path: where they come from, for a complaint.

    Example:
        >>> len(np.unique(codes_of(np.arange(183)[:, None] / 182, Path("cars"))))
        183
    """
    if values.ndim != 2 or not np.isfinite(values).all():
        raise BadInput(f"the factors in {path} must be finite numbers, one row for each image. Is the file whole?")
    codes = np.zeros(values.shape, dtype=np.int64)
    for column, given in enumerate(values.T):
        found = np.unique(given)
        steps = np.diff(found)
        steps = steps[steps > 1e-6 * max(1e-300, np.ptp(found))]  # others are rounding
        if len(steps):
            codes[:, column] = np.rint((given - found[0]) / steps.min())
    return codes


def resized(images: np.ndarray, side: int = SIDE) -> np.ndarray:
    """Images of `side` × `side` points, antialiased and bilinear, `(n, h, w, c) -> (n, side, side, c)` bytes."""
    if images.shape[1:3] == (side, side):
        return images
    out = np.empty((len(images), side, side, images.shape[3]), dtype=np.uint8)
    for start in range(0, len(images), 1024):
        some = torch.from_numpy(np.ascontiguousarray(images[start : start + 1024])).permute(0, 3, 1, 2).float()
        small = F.interpolate(some, (side, side), mode="bilinear", antialias=True, align_corners=False)
        out[start : start + 1024] = small.round().clamp(0, 255).byte().permute(0, 2, 3, 1).numpy()
    return out


def _grid(sizes: Sequence[int], n: int, path: Path) -> np.ndarray:
    """The codes of a full grid of factors, the last one fastest."""
    if n != np.prod(sizes):
        raise BadInput(
            f"{path} must hold {np.prod(sizes):,} images, the grid {' × '.join(map(str, sizes))}, but {n:,} came. Is "
            "the file whole?"
        )
    return np.stack(np.unravel_index(np.arange(n), tuple(sizes)), 1)


def _arrays(path: Path, *names: str) -> list[np.ndarray]:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            return [file[name] for name in names]
    except Exception as error:  # whatever a damaged or foreign archive raises
        raise _unreadable(path, error) from None


def _matlab(path: Path, name: str) -> np.ndarray:
    from scipy.io import loadmat

    try:
        return np.asarray(loadmat(path, variable_names=[name])[name])
    except Exception as error:  # whatever a damaged or foreign file raises
        raise _unreadable(path, error) from None


KINDS: dict[int, Any] = {0x1E3D4C51: "<f4", 0x1E3D4C53: "<f8", 0x1E3D4C54: "<i4", 0x1E3D4C55: "u1", 0x1E3D4C56: "<i2"}


def _matrix(path: Path) -> np.ndarray:
    """A file in the binary matrix format of smallNORB: kind, number of axes, three or more lengths, the values."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}). Unpack the publisher's file there.") from None
    kind, axes = np.frombuffer(data[:8].ljust(8, b"\0"), dtype="<i4").tolist()
    if kind not in KINDS or not 0 < axes <= 8:
        raise BadInput(f"{path} is no matrix of smallNORB: it begins with {data[:4].hex()}. Is it unpacked?")
    start = 8 + 4 * max(3, axes)
    shape = tuple(np.frombuffer(data[8 : 8 + 4 * axes].ljust(4 * axes, b"\0"), dtype="<i4").tolist())
    dtype = np.dtype(KINDS[kind])
    wanted = start + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
    if min(shape) < 0 or len(data) != wanted:
        raise BadInput(f"{path} must have {wanted} bytes for a matrix of {shape}, but it has {len(data)}. Is it whole?")
    return np.frombuffer(data[start:], dtype=dtype).reshape(shape)


def _unreadable(path: Path, error: Exception) -> BadInput:
    return BadInput(f"{path} cannot be read ({type(error).__name__}: {error}). Is it the publisher's file, whole?")
