"""The one place that looks at shapes, finiteness and row counts."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zhat.errors import BadInput

EPS = torch.finfo(torch.float64).eps
ROUNDINGS = 4  # up to so many roundings, a difference is no difference; `metrics.spectrum` says where this leads


def settle(frozen: Any, **values: Any) -> None:
    """Put checked values into a frozen dataclass, so that NumPy scalars become plain numbers."""
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


def positive(value: Any, name: str) -> float:
    """`value`, if it is a finite number above zero."""
    number = finite(value, name)
    if number <= 0:
        raise BadInput(f"`{name}` must be above 0, but {value!r} came.")
    return number


def finite(value: Any, name: str) -> float:
    """`value`, if it is a finite number."""
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:  # a whole number beyond 1e308
        number = math.inf
    if not math.isfinite(number):
        raise BadInput(f"`{name}` must be a finite number, but {value!r} came.")
    return number


def count(value: Any, name: str, *, least: int = 1) -> int:
    """`value`, if it is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise BadInput(f"`{name}` must be a whole number of at least {least}, but {value!r} came.")
    return int(value)


def array(values: Any) -> Any:
    """A data frame, a table or anything else that knows how to be an array as a NumPy array; the rest as it came."""
    if isinstance(values, np.ndarray | Tensor) or not hasattr(values, "__array__"):
        return values
    return np.asarray(values)


def matrix(values: Any, name: str, *, first: int = 0) -> Tensor:
    """`values` as a finite floating-point tensor of shape `(rows, columns)`, on the device it came from.

    Where they are some rows of a larger matrix, `first` is the number of the first one.
    """
    values = array(values)
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "fiub":
            cells = " It comes from a table: give its columns of numbers, without empty cells."
            raise BadInput(
                f"`{name}` must hold real numbers, but its dtype is {values.dtype}."
                + (cells if values.dtype.kind == "O" else "")
            )
        if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
            raise BadInput(f"`{name}` has masked values. Remove those rows or fill them.")
        if values.dtype not in (np.float32, np.float64) or not values.dtype.isnative:
            values = values.astype(np.float64)
        values = np.require(values, requirements=["C", "W"])
        if any(stride < 0 for stride in values.strides):  # a single row that was reversed counts as contiguous
            values = values.copy()
        tensor = torch.from_numpy(values)
    elif isinstance(values, Tensor):
        if values.is_complex() or values.layout != torch.strided:
            raise BadInput(
                f"`{name}` must hold real numbers in a dense array, but it is {values.dtype}, {values.layout}."
            )
        tensor = values.detach()
    else:
        raise BadInput(
            f"`{name}` must be a NumPy array, a torch tensor or a data frame, but a {type(values).__name__} came."
        )
    if tensor.dtype not in (torch.float32, torch.float64):
        tensor = tensor.to(torch.float64)
    if tensor.ndim != 2:
        raise BadInput(
            f"`{name}` must have the shape (rows, columns), but {tuple(tensor.shape)} came. "
            "Flatten each row, or reshape(-1, 1) a single column."
        )
    if tensor.shape[1] == 0:
        raise BadInput(f"`{name}` has no columns; its shape is {tuple(tensor.shape)}.")
    if not bool(torch.isfinite(tensor.sum())):  # one cheap look; only a suspect is searched
        bad = ~torch.isfinite(tensor)
        if bool(bad.any()):
            row, column = (int(i) for i in bad.nonzero()[0])
            raise BadInput(
                f"`{name}` must be finite, but {int(bad.sum())} of {tensor.numel()} values are NaN or infinite "
                f"(first at row {first + row}, column {column}). Remove those rows or repair them."
            )
    return tensor


def paired(z: Any, h: Any, *, first: int = 0, names: tuple[str, str] = ("z", "h")) -> tuple[Tensor, Tensor]:
    """Latents and representation as matrices with the same rows, on the representation's device."""
    z, h = matrix(z, names[0], first=first), matrix(h, names[1], first=first)
    if len(z) != len(h):
        raise BadInput(
            f"`{names[1]}` has {len(h)} rows and `{names[0]}` has {len(z)}; a metric pairs them row by row. "
            "Did a data loader drop the last batch?"
        )
    return z.to(h.device), h


def moderate(values: Tensor, name: str, *, most: float = 1e70) -> Tensor:
    """`values`, if the largest lies between `1 / most` and `most`, so that powers stay in the range of float64."""
    size = float(values.abs().max()) if values.numel() else 0.0
    if size and not 1 / most <= size <= most:
        raise BadInput(
            f"`{name}` has values of size {size:.3g}, whose products leave the range of float64. Change its unit, so "
            f"that the largest lies between {1 / most:g} and {most:g}."
        )
    return values


def constant(values: Tensor, *, least: float = 0.0) -> Tensor:
    """Which columns hold one value only, but for rounding of values of that size, at `least` this one, `(d,)`."""
    low, high = torch.aminmax(values, dim=0)
    size = torch.maximum(low.abs(), high.abs()).clamp_min(least)
    return high - low <= ROUNDINGS * EPS * size


def varying(values: Tensor, name: str) -> None:
    """Refuse columns that hold one value only: a correlation or a variance share with them is 0/0."""
    still = constant(values).nonzero().flatten().tolist() if len(values) else []
    if still:
        columns = ", ".join(str(c) for c in still[:8]) + (", …" if len(still) > 8 else "")
        raise BadInput(
            f"`{name}` is constant in {len(still)} of {values.shape[1]} columns (column {columns}), "
            "so no score is defined there. Drop those columns, or look for a collapsed model."
        )


def device(name: torch.device | str) -> torch.device:
    """The device, if it can be used here."""
    try:
        found = torch.device(name)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(f"the device {str(name)!r} cannot be used here ({reason}). Use 'cpu'.") from None
    return found
