"""Some observations of a world of images, as a picture for a page."""

from __future__ import annotations

import base64
import struct
import zlib

import torch
from torch import Tensor

from zhat.dgp import Process, encoder_input
from zhat.experiment.scoring import rows_for_scoring

SHOWN = 10  # rows of a batch, one column each
GAP = 2  # white points between images


def samples(world: Process, device: torch.device | str) -> str:
    """Some rows as a data URI, one line of images for each view; empty where observations are no images."""
    x = rows_for_scoring(world, SHOWN, 0, device).x
    return "" if x.ndim != 5 else f"data:image/png;base64,{base64.b64encode(png(tiled(x))).decode()}"


def tiled(x: Tensor) -> Tensor:
    """Images `(lines, columns, channels, height, width)` side by side, `(height, width, 1 or 3)` bytes.

    One or three channels are shown as they are, others as their mean. Values beyond [0, 1] are brought there.
    """
    points = encoder_input(x.cpu()).float()
    if points.shape[2] not in (1, 3):
        points = points.mean(2, keepdim=True)
    low, high = points.aminmax()
    if low < 0 or high > 1:
        points = (points - low) / (high - low)
    padded = torch.nn.functional.pad(points, (0, GAP, 0, GAP), value=1.0)
    lines, columns, channels, height, width = padded.shape
    whole = padded.permute(0, 3, 1, 4, 2).reshape(lines * height, columns * width, channels)
    return (255 * whole[:-GAP, :-GAP]).round().to(torch.uint8)


def png(points: Tensor) -> bytes:
    """A PNG file of bytes `(height, width, 1 or 3)`."""
    height, width, channels = points.shape
    lines = points.reshape(height, -1)
    above = torch.cat([torch.zeros_like(lines[:1]), lines[:-1]])
    filtered = torch.cat([lines.new_full((height, 1), 2), lines - above], 1)  # 2: bytes minus those of the line above

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    body = zlib.compress(filtered.numpy().tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
