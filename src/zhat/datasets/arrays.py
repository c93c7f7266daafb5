"""Your own arrays as a process: rows drawn with replacement, each with a positive that the data name.

Observations `x` are rows of numbers, `(n, m)`, or images, `(n, channels, height, width)`. Images of bytes (`uint8`) or
bits (`bool`) stay so until they reach the encoder. Latents or known factors `z` of the same rows, `(n, d)`, may be
given for scoring. The label of a row is its number among the rows that may be drawn, which makes every row an instance
of its own; `Arrays` and `SameLabel` hand over the labels they are given. Rows are copied to a device once, and drawn
there without waiting for it.

Scores are read on `held_out`, a process of the same kind over rows that training never sees; without it they are read
on the rows that training draws from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zhat import _checks, randomness
from zhat.dgp.batch import Batch, encoder_input
from zhat.dgp.process import Process
from zhat.errors import BadInput, TooFewRows

Augment = Callable[[Tensor, torch.Generator], Tensor]


class _Recorded:
    """Rows that are kept on every device they were asked for on."""

    views = 2

    def __init__(self, seed: int, held_out: Process | None, **rows: Tensor | None) -> None:
        randomness.stream_seed(seed, "data")  # refuses what is not a seed
        self.seed, self.held_out = seed, held_out
        self._rows = {name: tensor for name, tensor in rows.items() if tensor is not None}
        self._kept: dict[torch.device, dict[str, Tensor]] = {}

    def on(self, device: torch.device) -> dict[str, Tensor]:
        """All tensors of this process on a device, copied there the first time."""
        if device not in self._kept:
            self._kept[device] = {name: tensor.to(device) for name, tensor in self._rows.items()}
        return self._kept[device]

    def _batch(self, rows: dict[str, Tensor], views: Sequence[Tensor], label: Tensor) -> Batch:
        """The rows at some places, one list of places for each view."""
        z = torch.stack([rows["z"][places] for places in views]) if "z" in rows else None
        return Batch(x=torch.stack([rows["x"][places] for places in views]), z=z, label=label)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": {}}

    def __repr__(self) -> str:
        digest = hashlib.sha256()
        for name, tensor in self._rows.items():
            digest.update(name.encode() + np.ascontiguousarray(tensor.numpy()).tobytes())
        shape = "×".join(str(s) for s in self._rows["x"].shape)
        kept = "" if self.held_out is None else f", held_out={self.held_out!r}"
        return f"{type(self).__name__}({shape}, seed={self.seed}, digest={digest.hexdigest()[:12]}{kept})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def _drawn(size: int, n: int, generator: torch.Generator) -> Tensor:
    return torch.randint(size, (_checks.count(n, "n"),), generator=generator, device=generator.device)


def _observed(x: Any, name: str, least: int) -> Tensor:
    """Rows of numbers or images on the CPU: bytes and bits as they are, all else as float32."""
    values = _checks.array(x)
    axes = getattr(values, "ndim", None)
    if axes == 4:
        given = torch.as_tensor(values).detach().cpu()
        rows = given if given.dtype in (torch.uint8, torch.bool) else given.float()
        if rows.is_floating_point() and not bool(torch.isfinite(rows).all()):
            raise BadInput(f"`{name}` must be finite, but some of its points are not. Look for NaN or infinity.")
    elif axes == 3:
        raise BadInput(
            f"images are `(n, channels, height, width)`, but `{name}` has the shape {tuple(values.shape)}. For one "
            f"channel, give {name}[:, None]."
        )
    else:
        rows = _checks.matrix(values, name).detach().cpu().float()
    if len(rows) < least:
        raise TooFewRows(f"`{name}` must have at least {least} rows, but {len(rows)} came.", needed=least)
    return rows


def _known(z: Any, n: int) -> Tensor | None:
    """Latents or factors of `n` rows, where they are known."""
    if z is None:
        return None
    rows = _checks.matrix(z, "z").detach().cpu().float()
    if len(rows) != n:
        raise BadInput(f"`z` must have one row for each of {n} rows of `x`, but it has {len(rows)}.")
    return rows


def _codes(label: Any, n: int) -> tuple[Tensor, int]:
    """Labels as whole numbers from 0, and how many there are."""
    given = np.asarray(label.detach().cpu() if isinstance(label, Tensor) else label)
    if given.ndim != 1 or len(given) != n:
        raise BadInput(f"`label` must hold one label for each of {n} rows, but its shape is {given.shape}.")
    classes, codes = np.unique(given, return_inverse=True)
    return torch.from_numpy(codes.astype(np.int64)), len(classes)


class Arrays(_Recorded):
    """Single rows, for objectives that tell labels or instances apart.

    Args:
        x: observations, `(n, m)` or images.
        label: one for each row, `(n,)`; None makes every row an instance of its own.
        z: latents or known factors of the rows, `(n, d)`.
        held_out: rows that training never sees, as a process of the same kind.
        seed: for the contract; draws come from the generator.

    Example:
        >>> Arrays(torch.eye(3)).sample(5, generator=torch.Generator().manual_seed(0)).x.shape
        torch.Size([1, 5, 3])
    """

    views = 1

    def __init__(
        self, x: Any, label: Any = None, *, z: Any = None, held_out: Process | None = None, seed: int = 0
    ) -> None:
        rows = _observed(x, "x", 2)
        codes, self.labels = _codes(label, len(rows)) if label is not None else (None, len(rows))
        super().__init__(seed, held_out, x=rows, z=_known(z, len(rows)), label=codes)

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` rows, on the generator's device."""
        rows = self.on(generator.device)
        chosen = _drawn(len(rows["x"]), n, generator)
        return self._batch(rows, [chosen], rows["label"][chosen] if "label" in rows else chosen)


class NextRow(_Recorded):
    """The positive of a row is the one `lag` places later: rows in time order.

    Args:
        x: observations in time order, `(n, m)` or images.
        lag: how many places later.
        series: names of the recordings that rows belong to, `(n,)`; a positive is of the same recording. None takes all
            rows as one.
        z: latents or known factors of the rows, `(n, d)`.
        held_out: rows that training never sees, as a process of the same kind.
        seed: for the contract; draws come from the generator.

    Example:
        >>> x = torch.arange(6.0)[:, None]
        >>> pair = NextRow(x).sample(4, generator=torch.Generator().manual_seed(0)).x
        >>> (pair[1] - pair[0]).unique()
        tensor([1.])
    """

    def __init__(
        self,
        x: Any,
        *,
        lag: int = 1,
        series: Any = None,
        z: Any = None,
        held_out: Process | None = None,
        seed: int = 0,
    ) -> None:
        lag = _checks.count(lag, "lag")
        rows = _observed(x, "x", lag + 1)
        anchors = torch.arange(len(rows) - lag)
        if series is not None:
            codes, _ = _codes(series, len(rows))
            anchors = anchors[codes[:-lag] == codes[lag:]]
            if len(anchors) == 0:
                raise BadInput(f"no row of `x` has a row of the same series {lag} places later.")
        self.lag, self.labels = lag, len(anchors)
        super().__init__(seed, held_out, x=rows, z=_known(z, len(rows)), anchors=anchors)

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` rows and those that follow them, on the generator's device."""
        rows = self.on(generator.device)
        chosen = _drawn(self.labels, n, generator)
        anchor = rows["anchors"][chosen]
        return self._batch(rows, [anchor, anchor + self.lag], chosen)


class SameLabel(_Recorded):
    """The positive of a row is another row of the same label, each alike; labels with one row are left out.

    Args:
        x: observations, `(n, m)` or images.
        label: one for each row, `(n,)`.
        z: latents or known factors of the rows, `(n, d)`.
        held_out: rows that training never sees, as a process of the same kind.
        seed: for the contract; draws come from the generator.
    """

    def __init__(self, x: Any, label: Any, *, z: Any = None, held_out: Process | None = None, seed: int = 0) -> None:
        rows = _observed(x, "x", 2)
        codes, self.labels = _codes(label, len(rows))
        order = codes.argsort(stable=True)
        count = torch.bincount(codes)
        start = count.cumsum(0) - count
        if not bool((count > 1).any()):
            raise BadInput("no two rows of `x` have the same label, so no row has a positive.")
        order = order[(count > 1)[codes[order]]]
        kept = torch.where(count > 1, count, 0)
        start = kept.cumsum(0) - kept
        known = _known(z, len(rows))
        super().__init__(seed, held_out, x=rows, z=known, label=codes, order=order, count=kept, start=start)

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` rows and others of their labels, on the generator's device."""
        rows = self.on(generator.device)
        place = _drawn(len(rows["order"]), n, generator)
        anchor = rows["order"][place]
        label = rows["label"][anchor]
        count, start = rows["count"][label], rows["start"][label]
        share = torch.rand(n, generator=generator, device=generator.device, dtype=torch.float64)
        step = 1 + torch.minimum((share * (count - 1)).long(), count - 2)  # to one of the others
        other = rows["order"][start + (place - start + step) % count]
        return self._batch(rows, [anchor, other], label)


class GivenPairs(_Recorded):
    """The positive of each row is given.

    Args:
        x: observations, `(n, m)` or images.
        positive: of the same rows and shape.
        z: latents or known factors of the rows and of their positives, `(2, n, d)`.
        held_out: rows that training never sees, as a process of the same kind.
        seed: for the contract; draws come from the generator.
    """

    def __init__(self, x: Any, positive: Any, *, z: Any = None, held_out: Process | None = None, seed: int = 0) -> None:
        rows, others = _observed(x, "x", 2), _observed(positive, "positive", 2)
        if rows.shape != others.shape:
            raise BadInput(
                f"every row of `x` needs one positive of its shape, but the shapes are {tuple(rows.shape)} and "
                f"{tuple(others.shape)}."
            )
        known = None
        if z is not None:
            if len(z) != 2:
                raise BadInput(f"`z` must be latents of rows and of positives, (2, n, d), but {len(z)} came.")
            known = torch.cat([t for side in z if (t := _known(side, len(rows))) is not None])
        self.labels = len(rows)
        super().__init__(seed, held_out, x=torch.cat([rows, others]), z=known)

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` rows and their positives, on the generator's device."""
        rows = self.on(generator.device)
        chosen = _drawn(self.labels, n, generator)
        return self._batch(rows, [chosen, chosen + self.labels], chosen)


class Augmented(_Recorded):
    """Two augmented copies of each row.

    Args:
        x: observations, `(n, m)` or images; bytes and bits become floats before they are augmented.
        augment: makes augmented rows of rows, as many and of the same kind, on the generator's device; its draws come
            from the generator.
        z: latents or known factors of the rows, `(n, d)`; both copies of a row have its latents.
        held_out: rows that training never sees, as a process of the same kind.
        seed: for the contract; draws come from the generator.

    Example:
        >>> noise = lambda x, generator: x + torch.randn(x.shape, generator=generator, device=x.device)
        >>> Augmented(torch.eye(3), noise).sample(5, generator=torch.Generator().manual_seed(0)).x.shape
        torch.Size([2, 5, 3])
    """

    def __init__(
        self, x: Any, augment: Augment, *, z: Any = None, held_out: Process | None = None, seed: int = 0
    ) -> None:
        if not callable(augment):
            raise BadInput(f"`augment` must be callable as augment(rows, generator), but {augment!r} came.")
        rows = _observed(x, "x", 2)
        self.augment, self.labels = augment, len(rows)
        super().__init__(seed, held_out, x=rows, z=_known(z, len(rows)))

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """Two augmented copies of `n` rows, on the generator's device."""
        rows = self.on(generator.device)
        chosen = _drawn(self.labels, n, generator)
        plain = self._batch(rows, [chosen, chosen], chosen)
        one, _ = encoder_input(plain.x)
        views = [self.augment(one, generator) for _ in range(2)]
        for view in views:
            if not isinstance(view, Tensor) or view.shape[0] != n or view.ndim != one.ndim:
                shape = tuple(getattr(view, "shape", ()))
                raise BadInput(f"`augment` must return rows for rows, {tuple(one.shape)}, but {shape} came.")
        return replace(plain, x=torch.stack(views))
