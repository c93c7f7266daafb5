"""CIFAR-10: 60,000 photographs of 32 × 32 points, in the publisher's binary files or as tiled WebP images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from zhat import _checks
from zhat.datasets.place import recorded
from zhat.errors import BadInput, MissingExtra

SIDE = 32
FOLDER = "cifar10"
ALSO = "cifar-10-batches-bin"  # as the publisher's archive unpacks
FILES = {"train": tuple(f"data_batch_{i}.bin" for i in range(1, 6)), "test": ("test_batch.bin",)}


@dataclass(frozen=True)
class CIFAR10:
    """The images of CIFAR-10, or the first of them, in the order of the publisher.

    Read from `cifar10/` or `cifar-10-batches-bin/` in the folder of recorded data (`--data`, or `ZHAT_DATA`), in one of
    two forms: the publisher's binary files (`data_batch_1.bin` …: a byte for the label, then 1,024 for each of red,
    green and blue), or lossless images `train_00.webp` … that hold 50 images in each line.

    Args:
        split: "train" (50,000 images) or "test" (10,000).
        images: how many of the first images; None takes all.

    Reference: krizhevsky2009.
    """

    split: str = "train"
    images: int | None = None

    def __post_init__(self) -> None:
        if self.split not in FILES:
            raise BadInput(f"`split` must be 'train' or 'test', but {self.split!r} came.")
        if self.images is not None:
            _checks.count(self.images, "images")

    def on(self, device: torch.device | str) -> Tensor:
        """All images on a device, `(n, 32, 32, 3)` bytes; read once, copied there once."""
        every = _placed(_home(), self.split, torch.device(device))
        if self.images is not None and self.images > len(every):
            raise BadInput(
                f"{self.images} images were asked for, but CIFAR-10's split {self.split!r} has {len(every)} here."
            )
        return every[: self.images]


def _home() -> Path:
    try:
        return recorded(FOLDER)
    except BadInput:
        try:
            return recorded(ALSO)
        except BadInput:
            pass
        raise


@lru_cache(maxsize=8)
def _placed(folder: Path, split: str, device: torch.device) -> Tensor:
    if device.type != "cpu":
        return _placed(folder, split, torch.device("cpu")).to(device)
    return torch.from_numpy(read(folder, split))


def read(folder: Path, split: str) -> np.ndarray:
    """The images of a split, `(n, 32, 32, 3)` bytes, from whichever form the folder holds."""
    tiles = sorted(folder.glob(f"{split}_[0-9]*.webp"))
    found = [folder / name for name in FILES[split] if (folder / name).is_file()]
    if len(found) == len(FILES[split]):
        return np.concatenate([_binary(path) for path in found])
    if tiles:
        return np.concatenate([_tiled(path) for path in tiles])
    raise BadInput(
        f"{folder} holds neither {', '.join(FILES[split])} nor {split}_00.webp …. Give the folder with --data that "
        f"holds CIFAR-10's binary version as {FOLDER}/ or {ALSO}/."
    )


def _binary(path: Path) -> np.ndarray:
    """One file of the publisher: rows of a label and three planes of colour."""
    rows = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    size = 1 + 3 * SIDE * SIDE
    if len(rows) == 0 or len(rows) % size:
        raise BadInput(
            f"{path} must hold rows of {size} bytes, but it has {len(rows)}. Is it the binary version, whole?"
        )
    planes = rows.reshape(-1, size)[:, 1:].reshape(-1, 3, SIDE, SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1))


def _tiled(path: Path) -> np.ndarray:
    """One picture of many images, line by line."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("Pillow", "images", "reading WebP images") from None
    with Image.open(path) as picture:
        points = np.asarray(picture.convert("RGB"))
    if math.gcd(points.shape[0], SIDE) != SIDE or math.gcd(points.shape[1], SIDE) != SIDE:
        raise BadInput(f"{path} must be tiled with images of {SIDE} × {SIDE}, but its size is {points.shape[:2]}.")
    lines, columns = points.shape[0] // SIDE, points.shape[1] // SIDE
    tiles = points.reshape(lines, SIDE, columns, SIDE, 3).transpose(0, 2, 1, 3, 4)
    return np.ascontiguousarray(tiles.reshape(-1, SIDE, SIDE, 3))
