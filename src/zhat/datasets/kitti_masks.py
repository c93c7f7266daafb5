"""KITTI Masks: silhouettes of pedestrians that walk through a video, with where they are and how large."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch
from torch import Tensor

from zhat import _checks, randomness
from zhat.datasets.place import recorded
from zhat.dgp.batch import Batch
from zhat.errors import BadInput

SIDE = 64
FOLDER = "kitti_masks"
REBUILT, PUBLISHED = "kitti_masks_rebuilt.npz", "kitti_peds_v2.pickle"
PARTS = ("train", "test", "all")


class Tracks(NamedTuple):
    """Frames of all tracks one after the other, on one device.

    Attributes:
        bits: eight points in a byte, `(frames, 64, 8)`.
        latents: vertical and horizontal centre of mass and area in points, `(frames, 3)`.
        last: for each frame, the number of the last frame of its track, `(frames,)`.
        anchors: frames that are not the last of their track.
    """

    bits: Tensor
    latents: Tensor
    last: Tensor
    anchors: Tensor


@dataclass(frozen=True)
class KITTIMasks:
    """Two frames of one pedestrian's track: an anchor, and a frame up to `longest` frames later.

    Anchors are uniform over all frames that are not the last of their track. The positive comes d frames later, d
    uniform in 1, …, `longest`, or is the last frame of the track if that comes first. Masks are bits,
    `(2, n, 1, 64, 64)`; they lie on the device eight to a byte. Latents are known: the vertical and the horizontal
    centre of mass, and the area.

    Read from `kitti_masks/` in the folder of recorded data (`--data`, or `ZHAT_DATA`): `kitti_masks_rebuilt.npz`, or
    the publisher's `kitti_peds_v2.pickle`. Of the pickle only lists, dicts and numpy arrays are admitted; nothing in it
    is run.

    Args:
        longest: frames between the two at most; a frame takes 0.05 s, so 1 is 0.05 s and 5 is 0.15 s on average.
        part: "train" (nine of ten pedestrians), "test" (the tenth), or "all". In the publisher's file tracks do not say
            whose they are, so every tenth track is held out there.
        seed: without effect, because the masks are recorded; every process has one.

    Reference: klindt2021; zimmermann2021, Table 3 (trained and read on all tracks).
    """

    longest: int = 1
    part: str = "train"
    seed: int = 0

    def __post_init__(self) -> None:
        _checks.count(self.longest, "longest")
        randomness.stream_seed(self.seed, "data")  # refuses what is not a seed
        if self.part not in PARTS:
            raise BadInput(f"`part` must be one of {', '.join(PARTS)}, but {self.part!r} came.")

    @property
    def views(self) -> int:
        """Two: now and a little later."""
        return 2

    @property
    def held_out(self) -> KITTIMasks | None:
        """The same of pedestrians that training never sees; None where training sees all."""
        return replace(self, part="test") if self.part == "train" else None

    def find(self) -> Path:
        """The folder of the masks; raises `MissingData` where there is none."""
        return recorded(FOLDER, published="as kitti_peds_v2.pickle in Zenodo record 3931823")

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` pairs of frames with their latents, on the generator's device."""
        device = generator.device
        tracks = _placed(self.find(), self.part, device)
        drawn = torch.randint(len(tracks.anchors), (_checks.count(n, "n"),), generator=generator, device=device)
        step = torch.randint(1, self.longest + 1, (n,), generator=generator, device=device)
        anchor = tracks.anchors[drawn]
        frames = torch.stack([anchor, torch.minimum(anchor + step, tracks.last[anchor])])
        place = torch.arange(7, -1, -1, dtype=torch.uint8, device=device)
        x = (tracks.bits[frames][..., None] >> place & 1).bool().flatten(-2)
        return Batch(x=x[:, :, None], z=tracks.latents[frames])

    def transitions(self) -> tuple[Tensor, Tensor]:
        """How the latents change `longest` frames later, `(n, 3)`, and the track of each such step, `(n,)`."""
        tracks = _placed(self.find(), self.part, torch.device("cpu"))
        start = torch.arange(len(tracks.last))
        start = start[start + self.longest <= tracks.last]
        return tracks.latents[start + self.longest] - tracks.latents[start], tracks.last[start]


@lru_cache(maxsize=8)
def _placed(folder: Path, part: str, device: torch.device) -> Tracks:
    if device.type != "cpu":
        return Tracks(*(tensor.to(device) for tensor in _placed(folder, part, torch.device("cpu"))))
    bits, latents, lengths, owner = read(folder)
    pedestrian = np.unique(owner, axis=0, return_inverse=True)[1].reshape(-1)
    tenth = pedestrian % 10 == 9
    kept = {"train": ~tenth, "test": tenth, "all": np.ones_like(tenth)}[part]
    frames = np.repeat(kept, lengths)
    ends = np.cumsum(lengths[kept])
    last = torch.from_numpy(np.repeat(ends - 1, lengths[kept]).astype(np.int64))
    anchors = torch.arange(len(last))[torch.arange(len(last)) < last]
    if len(anchors) == 0:
        raise BadInput(f"{folder} holds no track of two frames in part {part!r}.")
    return Tracks(torch.from_numpy(bits[frames]), torch.from_numpy(latents[frames]), last, anchors)


def read(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Bits `(frames, 64, 8)`, latents `(frames, 3)`, lengths of tracks, and whose each is, from the file there is."""
    if (folder / REBUILT).is_file():
        bits, latents, lengths, owner = _rebuilt(folder / REBUILT)
    elif (folder / PUBLISHED).is_file():
        bits, latents, lengths, owner = _published(folder / PUBLISHED)
    else:
        raise BadInput(
            f"{folder} holds neither {REBUILT} nor {PUBLISHED}. The latter is published as Zenodo record 3931823."
        )
    frames = int(lengths.sum()) if len(lengths) else 0
    if bits.shape != (frames, SIDE, SIDE // 8) or latents.shape != (frames, 3) or frames == 0 or lengths.min() < 1:
        raise BadInput(
            f"the masks in {folder} must be {frames} frames of {SIDE} × {SIDE} with three latents each, but they have "
            f"the shapes {bits.shape} (eight points in a byte) and {latents.shape}. Is the file whole?"
        )
    if not np.isfinite(latents).all():
        raise BadInput(f"some latents in {folder} are not finite. Is the file whole?")
    return bits, latents, lengths, owner


def _rebuilt(path: Path) -> tuple[np.ndarray, ...]:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            bits, latents, lengths, meta = (file[k] for k in ("masks_packed", "latents", "lengths", "meta"))
    except Exception as error:  # whatever a damaged archive raises
        raise BadInput(f"{path} cannot be read ({type(error).__name__}: {error}). Is the file whole?") from None
    if meta.shape != (len(lengths), 5):
        raise BadInput(f"`meta` in {path} must describe each of {len(lengths)} tracks, but its shape is {meta.shape}.")
    return bits, latents.astype(np.float32), lengths, meta[:, [0, 1, 3]]  # data set, video, pedestrian


def _published(path: Path) -> tuple[np.ndarray, ...]:
    try:
        with path.open("rb") as file:
            content = _Plain(file).load()
        masks = [np.asarray(track) for track in content["pedestrians"]]
        latents = [np.asarray(track, dtype=np.float32).reshape(-1, 3) for track in content["pedestrians_latents"]]
        lengths = np.array([len(track) for track in masks], dtype=np.int64)
        bits = np.packbits(np.concatenate(masks).astype(bool), axis=-1)
        every = np.concatenate(latents)
    except BadInput:
        raise
    except Exception as error:  # whatever damaged or foreign bytes raise
        raise BadInput(
            f"{path} does not hold lists of masks and latents ({type(error).__name__}: {error}). Is it Zenodo record "
            "3931823, whole?"
        ) from None
    return bits, every, lengths, np.arange(len(lengths))[:, None]


class _Plain(pickle.Unpickler):
    """Reads lists, dicts, numbers and numpy arrays; whatever else a pickle asks for is refused and never run."""

    ADMITTED = frozenset(
        (module, name)
        for package in ("numpy.core.multiarray", "numpy._core.multiarray")
        for module, name in ((package, "_reconstruct"), (package, "scalar"))
    ) | {("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")}

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)

    def find_class(self, module: str, name: str) -> Any:
        """What numpy needs to build an array; a sentence for everything else."""
        if (module, name) not in self.ADMITTED:
            raise BadInput(
                f"the pickle asks for {module}.{name}, which is no list and no array. Nothing of it was run. Is it the "
                "publisher's file?"
            )
        return super().find_class(module, name)
