"""The map from one space of embeddings to another: kept as safetensors, applied to files of any length."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zhat import _checks
from zhat._files import write_whole
from zhat._version import __version__
from zhat.audit.beyond import unit_length
from zhat.equivalence import Equivalence
from zhat.errors import BadInput
from zhat.files import embeddings
from zhat.files.reading import read_bytes
from zhat.files.sealed import sealed, unsealed

_FORMAT = "zhat adapter 2"  # with a checksum; whether rows are to be normalised behind the map is said
_WITHOUT_CHECKSUM = ("zhat adapter 1",)  # of earlier versions, which normalised nothing


@dataclass(frozen=True, eq=False)
class Adapter:
    r"""$\hat t = M (s - \bar s) + c$: old embeddings, the source s, in the coordinates of the new ones, the target t.

    Attributes:
        matrix: M, `(d, k)`.
        centre: $\bar s$, the mean of the old embeddings, `(k,)`.
        offset: c, where the centre goes, `(d,)`.
        inverse: the way back, `(k, d)`; None where the map loses directions.
        up_to: the class of the map.
        r2: held-out, with the map fitted on half of the rows; the map kept is fitted on all of them.
        error: held-out root mean square error, in standard deviations of the target's columns.
        a: name of the source.
        b: name of the target.
        rows: fitted on.
        normalise: whether the new embeddings have unit length, so that mapped ones are brought to it as well; `r2` and
            `error` are those of the map before that.
        normalise_back: the same of the old embeddings and the way back.
    """

    matrix: Tensor
    centre: Tensor
    offset: Tensor
    inverse: Tensor | None
    up_to: Equivalence
    r2: float
    error: float
    a: str
    b: str
    rows: int
    normalise: bool = False
    normalise_back: bool = False

    def __call__(self, source: Tensor) -> Tensor:
        """Old embeddings in the new space, `(n, k) -> (n, d)`."""
        found = (source.double() - self.centre) @ self.matrix.T + self.offset
        return unit_length(found) if self.normalise else found

    def back(self, target: Tensor) -> Tensor:
        """New embeddings in the old space, `(n, d) -> (n, k)`."""
        if self.inverse is None:
            raise BadInput(f"the map from {self.a} to {self.b} loses directions, so there is no way back.")
        found = (target.double() - self.offset) @ self.inverse.T + self.centre
        return unit_length(found) if self.normalise_back else found

    def write(self, path: Path | str) -> Path:
        """Keep the adapter as a safetensors file, whole or not at all."""
        tensors = {"matrix": self.matrix, "centre": self.centre, "offset": self.offset}
        if self.inverse is not None:
            tensors["inverse"] = self.inverse
        about = {
            "format": _FORMAT,
            "zhat": __version__,
            "up_to": self.up_to.name,
            "numbers": json.dumps({"r2": self.r2, "error": self.error, "rows": self.rows}),
            "a": self.a,
            "b": self.b,
            "normalise": json.dumps([self.normalise, self.normalise_back]),
        }
        held = {name: t.detach().cpu().double().contiguous() for name, t in tensors.items()}
        return write_whole(path, sealed(held, about))


def read_adapter(path: Path | str) -> Adapter:
    """The adapter that `write` kept.

    Args:
        path: a safetensors file.
    """
    path = Path(path)
    if not path.is_file():
        raise BadInput(f"there is no adapter {path}. Write one with: zhat audit A B --adapter {path.name}.")
    try:
        tensors, about = unsealed(read_bytes(path, "be an adapter"), must=False)
        if about.get("format") not in ((_FORMAT,) if "sha256" in about else _WITHOUT_CHECKSUM):
            raise ValueError(f"its format is {about.get('format')!r}")
        matrix, centre, offset = tensors["matrix"], tensors["centre"], tensors["offset"]
        inverse = tensors.get("inverse", matrix.T)
        if centre.ndim != 1 or matrix.shape != (*offset.shape, *centre.shape) or inverse.shape != matrix.T.shape:
            raise ValueError(f"a map of shape {tuple(matrix.shape)} does not go from {len(centre)} to {len(offset)}")
        if not all(t.is_floating_point() and bool(torch.isfinite(t).all()) for t in tensors.values()):
            raise ValueError("it holds values that are not finite")
        numbers = json.loads(about["numbers"])
        normalise = json.loads(about.get("normalise", "[false, false]"))
        if not isinstance(normalise, list) or [type(one) for one in normalise] != [bool, bool]:
            raise ValueError(f"whether rows are normalised must be two booleans, but it is {normalise!r}")
        return Adapter(
            matrix.double(),
            centre.double(),
            offset.double(),
            tensors["inverse"].double() if "inverse" in tensors else None,
            Equivalence[about["up_to"]],
            _checks.finite(numbers["r2"], "r2"),
            _checks.finite(numbers["error"], "error"),
            about["a"],
            about["b"],
            _checks.count(numbers["rows"], "rows"),
            *normalise,
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(
            f"{path.name} must be an adapter as zhat audit writes it, but it cannot be read ({error})."
        ) from None


def adapt(adapter: Adapter, source: Any, out: Path | str, *, key: str | None = None, back: bool = False) -> Path:
    """Carry embeddings over into the other space, some rows at a time.

    Args:
        adapter: the map.
        source: what `embeddings` takes.
        out: the `.npy` file to write, float64 for float64 rows and float32 otherwise.
        key: which array of `source`.
        back: from new to old.
    """
    if Path(out).suffix != ".npy":
        raise BadInput(f"the rows are written as .npy, but {out} was named. Name a .npy file.")
    rows = embeddings(source, key=key)
    k, d = (len(adapter.offset), len(adapter.centre)) if back else (len(adapter.centre), len(adapter.offset))
    if rows.dim != k:
        raise BadInput(f"the adapter takes {k} columns, but {rows.name} has {rows.dim}. Is it the other space?")
    carry = adapter.back if back else adapter

    def fill(draft: Path) -> None:
        dtype = np.dtype(np.float64 if rows.precision == "float64" else np.float32)
        header = {"descr": dtype.str, "fortran_order": False, "shape": (rows.rows, d)}
        with draft.open("wb") as file:  # not mapped: on a full disk a mapped file ends the process
            np.lib.format.write_array_header_1_0(file, header)
            for some in rows.blocks():
                with np.errstate(over="ignore"):
                    carried = carry(torch.from_numpy(some)).numpy().astype(dtype)
                if not np.isfinite(carried).all():
                    raise BadInput(f"the adapter takes rows of {rows.name} beyond what {dtype.name} holds.")
                file.write(np.ascontiguousarray(carried).tobytes())

    return write_whole(out, fill)
