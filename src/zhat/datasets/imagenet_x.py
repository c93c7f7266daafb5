"""ImageNet-X: how ImageNet validation images differ from typical ones of their class, beside their features."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from zhat import _checks, randomness
from zhat.datasets.place import recorded
from zhat.dgp.batch import Batch
from zhat.errors import BadInput
from zhat.files import Rows, embeddings
from zhat.files.arrays import npz_names, read_npz

ANNOTATIONS = "imagenet_x/imagenet_x.npz"
FEATURES = "imagenet_val_features"
FACTORS = (
    "multiple_objects", "background", "color", "brighter", "darker", "style", "larger", "smaller", "object_blocking",
    "person_blocking", "partial_view", "pattern", "pose", "shape", "subcategory", "texture",
)  # fmt: skip
TARGETS = ("class", *FACTORS)
MARKS = {"top": "val_top", "all": "val_multi"}
SOURCE = (
    "The annotations are published in the Python package imagenet-x; features come from any network that is run on the "
    "ImageNet validation images."
)
HALF = 500  # classes on either side of the binary target "class"


class Annotated(NamedTuple):
    """Images with features and annotations.

    Attributes:
        features: `(n, m)`.
        targets: 1 where an image has a target, `(n, 17)`, in the order of `TARGETS`.
        names: of the images, for instance "ILSVRC2012_val_00000293".
    """

    features: Tensor
    targets: Tensor
    names: Rows


@dataclass(frozen=True)
class ImageNetX:
    """Features of annotated ImageNet validation images, with seventeen yes-or-no targets as latents.

    The targets are "class" (whether the number of the class is 500 or more) and the sixteen factors of ImageNet-X:
    in what respect annotators found an image to differ from typical images of its class.

    Read from the folder of recorded data (`--data`, or `ZHAT_DATA`): `imagenet_x/imagenet_x.npz` holds the
    annotations, `imagenet_val_features/` the features of some networks. Features of your own are a file with one
    vector for each image and the names of the images: `names` and `features` in a `.npz` file. Rows are joined by
    name; images without annotations are left out.

    Args:
        features: the name of a file in `imagenet_val_features/` without its ending, or the path of your own file.
        marks: "top" takes the one factor that annotators found most important, as the paper does; "all" takes all
            that they marked.
        prototypes: keep the images that annotators were shown as typical of a class; the paper leaves them out.
        digest: the first 12 characters of the SHA-256 sum of your own file; a file with another one is refused, so
            that results are never those of an older file.
        seed: which split into images to fit on and images to read; the images are the same for every seed.

    Reference: idrissi2023; reizinger2024, Figure 3.
    """

    features: str
    marks: str = "top"
    prototypes: bool = True
    digest: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        randomness.stream_seed(self.seed, "data")  # refuses what is not a seed
        if self.marks not in MARKS:
            raise BadInput(f"`marks` must be one of {', '.join(MARKS)}, but {self.marks!r} came.")

    @property
    def views(self) -> int:
        """One: every image is shown once."""
        return 1

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the columns of `z`."""
        return TARGETS

    def whole(self) -> Annotated:
        """All annotated images."""
        own = Path(self.features).suffix != ""
        if self.digest and self.digest != digest_of(Path(self.features)):
            raise BadInput(f"{self.features} has changed since this process was made. Make the process again.")
        path = Path(self.features) if own else _here(f"{FEATURES}/{self.features}.npz")
        index = None if own else _here(f"{FEATURES}/index.npz")
        return _annotated(path, index, _here(ANNOTATIONS), self.marks, self.prototypes, self.digest)

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` images drawn with replacement, on the generator's device."""
        found = self.whole()
        chosen = torch.randint(len(found.names), (_checks.count(n, "n"),), generator=generator, device=generator.device)
        rows = chosen.cpu()
        x, z = found.features[rows], found.targets[rows]
        return Batch(x=x[None].to(chosen.device), z=z[None].to(chosen.device), label=chosen)


def _here(name: str) -> Path:
    """A file of recorded data; where it is absent, the sentence says where such files come from."""
    try:
        return recorded(name)
    except BadInput as error:
        error.args = (f"{error} {SOURCE}",)
        raise


def digest_of(path: Path) -> str:
    """The first characters of the checksum of a user's file."""
    if not path.is_file():
        raise BadInput(
            f"there is no file {path}. Give a file with `names` of ImageNet validation images and their `features`."
        )
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


@lru_cache(maxsize=2)
def _annotated(path: Path, index: Path | None, about: Path, marks: str, prototypes: bool, digest: str) -> Annotated:
    """Features joined with annotations by the names of the images; `digest` keeps files of one name apart."""
    wanted = ("val_file_name", "val_class", MARKS[marks], "prototypical_file_name", "factor_names")
    names, label, factors, typical, order = _arrays(about, *wanted)
    if sorted(order) != sorted(FACTORS) or factors.shape != (len(names), len(FACTORS)) or len(label) != len(names):
        raise BadInput(
            f"{about} must hold sixteen factors of ImageNet-X for each of {len(names)} images, but their shape is "
            f"{factors.shape}. Is the file whole?"
        )
    vectors, rows = _features(path, index)
    mine, theirs = _bare(rows), _bare(names)
    if len(np.unique(mine)) < len(mine):
        raise BadInput(f"the names in {path} must be unique, but some occur twice. Give one row for each image.")
    keep = np.isin(mine, theirs)
    if not prototypes:
        keep &= ~np.isin(mine, _bare(typical))
    if not keep.any():
        raise BadInput(
            f"no name in {path} is that of an annotated ImageNet validation image such as {theirs[0]}; the first is "
            f"{mine[0]}. Name the rows by their images."
        )
    sort = np.argsort(theirs)
    place = sort[np.searchsorted(theirs, mine[keep], sorter=sort)]
    columns = [list(order).index(name) for name in FACTORS]
    targets = np.concatenate([(label[place] >= HALF)[:, None], factors[place][:, columns] > 0], 1)
    kept = np.asarray(vectors[keep], dtype=np.float32)
    if not np.isfinite(kept).all():
        raise BadInput(f"the features in {path} must be finite, but some are not. Look for NaN or infinity.")
    return Annotated(torch.from_numpy(kept), torch.from_numpy(targets.astype(np.float32)), mine[keep])


def _features(path: Path, index: Path | None) -> tuple[Rows, Rows]:
    """Vectors `(n, m)` and the names of their images."""
    if index is None:
        ids = "names"
        if path.suffix == ".npz" and ids not in npz_names(path):
            raise BadInput(
                f"{path} must hold `names` of images and their `features`, but it holds "
                f"{', '.join(npz_names(path)) or 'nothing'}. Save it with numpy.savez(path, names=…, features=…)."
            )
        found = embeddings(path, key="features" if path.suffix == ".npz" else None, ids=ids)
        assert found.ids is not None, "ids were asked for"
        return found.block(slice(0, found.rows)), found.ids
    (names,), (vectors,) = _arrays(index, "file_name"), _arrays(path, "features")
    if vectors.ndim != 2 or len(vectors) != len(names) or vectors.dtype.kind != "f":
        raise BadInput(
            f"{path} must hold one vector for each of the {len(names)} images of {index.name}, but its shape is "
            f"{vectors.shape} of {vectors.dtype}. Do the two files belong together?"
        )
    return vectors, names


def _arrays(path: Path, *wanted: str) -> list[Rows]:
    """Some arrays of a .npz file; a sentence where one is missing or the file is damaged."""
    have = npz_names(path)
    missing = [name for name in wanted if name not in have]
    if missing:
        raise BadInput(
            f"{path} must hold {', '.join(wanted)}, but {', '.join(missing)} is missing. Is it the right file?"
        )
    return read_npz(path, wanted)


def _bare(names: Rows) -> Rows:
    """Names of images as text, without folders and endings."""
    return np.array([Path(name.decode() if isinstance(name, bytes) else str(name)).stem for name in names])
