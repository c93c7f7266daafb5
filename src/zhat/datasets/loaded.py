"""A data set of torch as a process: a `Dataset`, a `DataLoader`, or an iterable of batches.

A process draws any number of rows, and the same ones whenever its generator is in the same state. A map-style data set
allows that: the numbers of items are drawn, and the items fetched. An iterable does not: it hands over its rows in an
order of its own. Its rows are therefore read once and kept, and drawn from memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler, default_collate
from torch.utils.data import Dataset as TorchDataset

from zhat import _checks, randomness
from zhat.dgp.batch import Batch
from zhat.dgp.process import Process
from zhat.errors import BadInput, TooFewRows

PARTS = ("x", "label", "z", "")
BYTES = 2**32  # of an iterable that are kept, unless its reader says how many rows to keep
FETCHED = 4096  # items fetched at a time


class Loaded:
    """Rows of a `torch.utils.data.Dataset`, of a `DataLoader`, or of an iterable of batches.

    Of a map-style data set, and of a loader over one, items are drawn with replacement, each alike, by the generator
    of `sample`; transforms that draw from torch's global state repeat with it. A loader's batch size, workers and order
    are not used, its `collate_fn` is. Any other iterable is read once and kept in memory: random transforms in it are
    then frozen, and one that does not end needs `most`.

    Args:
        source: the data set, the loader, or the batches.
        parts: what an item consists of: "x" for observations, "label", "z" for latents or known factors, "" for what
            is left out, in the order of a tuple, or by the key of a mapping. Two "x" are two views of a row. None takes
            one tensor as x, two tensors of one shape as two views, and a tensor with a whole number as x and its label.
        most: rows of an iterable that are kept; None keeps all.
        held_out: rows that training never sees, as a process of the same kind.
        seed: for the contract; draws come from the generator.

    Example:
        >>> from torch.utils.data import TensorDataset
        >>> rows = Loaded(TensorDataset(torch.eye(3), torch.arange(3)))
        >>> batch = rows.sample(5, generator=torch.Generator().manual_seed(0))
        >>> batch.x.shape, batch.label.shape
        (torch.Size([1, 5, 3]), torch.Size([5]))
    """

    rows_at_once = FETCHED

    def __init__(
        self,
        source: TorchDataset[Any] | DataLoader[Any] | Iterable[Any],
        parts: Sequence[str] | Mapping[str, str] | None = None,
        *,
        most: int | None = None,
        held_out: Process | None = None,
        seed: int = 0,
    ) -> None:
        randomness.stream_seed(seed, "data")  # refuses what is not a seed
        self.seed, self.held_out = seed, held_out
        self._collate = default_collate
        self._items: Any = None
        self._kept: list[Tensor] | None = None
        self._on: dict[torch.device, list[Tensor]] = {}  # what is kept, on every device it was asked for on
        dataset: Any = source.dataset if isinstance(source, DataLoader) else source
        if _by_number(dataset):
            if isinstance(source, DataLoader):
                self._collate = _collate_of(source)
            self._items, self.size = dataset, len(dataset)
            if self.size < 2:
                raise TooFewRows(f"a data set must have at least 2 items, but {self.size} came.", needed=2)
            if most is not None:
                raise BadInput(
                    "`most` limits what is kept of an iterable, but this data set is not kept. Leave it out."
                )
            first = self._fetched([0, self.size - 1], 0)
            self.parts = _named(first, parts)
            said = self._chosen(first)
        else:
            self.parts, self._kept = _read(dataset if dataset is source else source, parts, most)
            self.size = len(self._kept[0])
            said = self._kept
        self.views = self.parts.count("x")
        label = None if "label" not in self.parts or self._kept is None else self._kept[self.parts.index("label")]
        self.labels = self.size if "label" not in self.parts else None if label is None else int(label.max()) + 1
        digest = hashlib.sha256()
        for part in said:
            digest.update(part.contiguous().view(torch.uint8).numpy().tobytes())
        kind = type(dataset).__name__
        self._said = f"Loaded({kind}, {self.size} items, {self.parts}, seed={seed}, digest={digest.hexdigest()[:12]})"
        self._batch(said, torch.arange(2) if self._kept is None else torch.arange(self.size))  # says now what is wrong

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` rows, on the generator's device."""
        device = generator.device
        chosen = torch.randint(self.size, (_checks.count(n, "n"),), generator=generator, device=device)
        if self._kept is not None:
            if device not in self._on:
                self._on[device] = [part.to(device) for part in self._kept]
            return self._batch([part[chosen] for part in self._on[device]], chosen)
        turn = int(torch.randint(2**31, (), generator=generator, device=device))
        places = chosen.tolist()
        some = [self._chosen(self._fetched(places[i : i + FETCHED], turn + i)) for i in range(0, len(places), FETCHED)]
        return self._batch([torch.cat(each).to(device) for each in zip(*some, strict=True)], chosen)

    def _fetched(self, places: list[int], turn: int) -> Any:
        """Items by their numbers, collated; a transform that draws from torch draws the same again."""

        def fetch() -> Any:
            if hasattr(self._items, "__getitems__"):
                return self._collate(self._items.__getitems__(places))
            return self._collate([self._items[place] for place in places])

        try:
            return randomness.build(fetch, turn, "items")
        except (RuntimeError, TypeError, KeyError) as error:
            why = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise BadInput(
                f"the items of {type(self._items).__name__} cannot be stacked into a batch ({why}). Give items of "
                "tensors or arrays that all have one shape, or a DataLoader with a collate_fn that makes them so."
            ) from None

    def _chosen(self, items: Any) -> list[Tensor]:
        """The parts of a batch of items, one tensor each, in the order of `parts`; what is left out is empty."""
        return [_tensor(part, name) for part, name in zip(_split(items), self.parts, strict=True)]

    def _batch(self, given: Sequence[Tensor], chosen: Tensor) -> Batch:
        """A batch of some rows."""
        x = [part for part, name in zip(given, self.parts, strict=True) if name == "x"]
        if len({part.shape for part in x}) > 1:
            raise BadInput(f"two views must have one shape, but they have {', '.join(str(tuple(p.shape)) for p in x)}.")
        for part in x:
            if part.ndim < 2:
                raise BadInput(f"a row of observations must be a tensor, but x has the shape {tuple(part.shape)}.")
            if part.is_floating_point() and not bool(torch.isfinite(part).all()):
                raise BadInput("observations must be finite, but some are NaN or infinite. Repair those items.")
        label = next((part for part, name in zip(given, self.parts, strict=True) if name == "label"), None)
        if label is not None and (label.ndim != 1 or label.is_floating_point() or int(label.min()) < 0):
            raise BadInput(
                f"a label must be a whole number from 0 on for each row, but {label.dtype} of shape "
                f"{tuple(label.shape)} came."
            )
        z = next((part for part, name in zip(given, self.parts, strict=True) if name == "z"), None)
        known = None if z is None else z.float().reshape(len(z), -1).expand(len(x), -1, -1)
        return Batch(x=torch.stack(x), z=known, label=chosen if label is None else label.long())

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_on": {}}

    def __repr__(self) -> str:
        return self._said if self.held_out is None else f"{self._said[:-1]}, held_out={self.held_out!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loaded) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def _by_number(dataset: Any) -> bool:
    """Whether items are fetched by their number."""
    if isinstance(dataset, IterableDataset | list | tuple | Tensor | Mapping):
        return False
    return hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")


def _collate_of(loader: DataLoader[Any]) -> Any:
    """How a loader stacks items, if it draws them all alike."""
    if loader.batch_size is None or not isinstance(loader.sampler, RandomSampler | SequentialSampler):
        how = "batches of its own" if loader.batch_size is None else f"a {type(loader.sampler).__name__}"
        raise BadInput(
            f"the loader draws rows by {how}, but a process draws every row alike. Give the data set itself, or its "
            "rows as they come: Loaded(list(loader))."
        )
    return loader.collate_fn


def _split(items: Any) -> list[Any]:
    """The parts of a batch of items."""
    if isinstance(items, Mapping):
        return list(items.values())
    return list(items) if isinstance(items, list | tuple) else [items]


def _named(items: Any, parts: Sequence[str] | Mapping[str, str] | None) -> tuple[str, ...]:
    """What each part of an item is."""
    given = _split(items)
    if parts is None:
        shapes = [tuple(part.shape) if isinstance(part, Tensor) else None for part in given]
        whole = [isinstance(part, Tensor) and not part.is_floating_point() for part in given]
        if len(given) == 1 and not isinstance(items, Mapping):
            return ("x",)
        if len(given) == 2 and not isinstance(items, Mapping) and shapes[0] == shapes[1] and len(shapes[0] or ()) > 1:
            return ("x", "x")
        if len(given) == 2 and not isinstance(items, Mapping) and whole[1] and len(shapes[1] or ()) == 1:
            return ("x", "label")
        has = f"the keys {', '.join(map(str, items))}" if isinstance(items, Mapping) else f"{len(given)} parts"
        raise BadInput(
            f"an item has {has}, and nothing says what each of them is. Say it with `parts`, for instance "
            + ("{'pixels': 'x', 'digit': 'label'}." if isinstance(items, Mapping) else "('x', 'label', 'z').")
        )
    if isinstance(parts, Mapping):
        if not isinstance(items, Mapping) or not parts.keys() <= items.keys():
            has = f"has {', '.join(map(str, items))}" if isinstance(items, Mapping) else "is no mapping"
            raise BadInput(f"`parts` names the keys {', '.join(map(str, parts))}, but an item {has}.")
        named = tuple(parts.get(key, "") for key in items)
    else:
        named = (parts,) if isinstance(parts, str) else tuple(parts)
    if unknown := [name for name in named if name not in PARTS]:
        raise BadInput(f"a part is 'x', 'label', 'z' or '' for what is left out, but {unknown[0]!r} came.")
    if len(named) != len(given):
        raise BadInput(f"an item has {len(given)} parts, but `parts` names {len(named)}.")
    if "x" not in named or max(named.count("label"), named.count("z")) > 1:
        raise BadInput(f"`parts` must name at least one 'x', and at most one 'label' and one 'z', but {named} came.")
    return named


def _tensor(part: Any, name: str) -> Tensor:
    """One part of a batch on the CPU: bytes and bits as they are, other observations as float32."""
    if name == "":
        return torch.empty(0)
    try:
        tensor = torch.as_tensor(part).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise BadInput(f"{name!r} must be numbers, but a {type(part).__name__} came.") from None
    if name == "x" and tensor.dtype not in (torch.uint8, torch.bool):
        return tensor.float()
    return tensor


def _read(
    source: Any, parts: Sequence[str] | Mapping[str, str] | None, most: int | None
) -> tuple[tuple[str, ...], list[Tensor]]:
    """The rows of an iterable of batches, one below the other; what is left out is left out."""
    if isinstance(source, str | bytes | Mapping | Tensor) or not isinstance(source, Iterable):
        raise BadInput(
            f"`source` must be a Dataset, a DataLoader or an iterable of batches, but a {type(source).__name__} came. "
            "An array of rows is a process as Arrays, NextRow or SameLabel."
        )
    if most is not None:
        _checks.count(most, "most", least=2)
    named: tuple[str, ...] = ()
    blocks: list[list[Tensor]] = []
    rows = size = 0
    for items in source:
        named = named or _named(items, parts)
        given = _split(items)
        if len(given) != len(named):
            raise BadInput(f"all batches must have {len(named)} parts, but one has {len(given)}.")
        some = [_tensor(part, name) for part, name in zip(given, named, strict=True) if name]
        if len({len(part) if part.ndim else -1 for part in some}) != 1:
            raise BadInput(f"the parts of a batch must have as many rows, but they have {[len(p) for p in some]}.")
        blocks.append(some)
        rows, size = rows + len(some[0]), size + sum(part.numel() * part.element_size() for part in some)
        if most is not None and rows >= most:
            break
        if most is None and size > BYTES:
            raise BadInput(
                f"the iterable has handed over {rows:,} rows, which take {size / 2**30:.1f} GiB, and has not ended. "
                "Say how many rows to keep with most=…, or give a data set whose items are fetched by their number."
            )
    if rows < 2:
        raise TooFewRows(f"an iterable of batches must hold at least 2 rows, but {rows} came.", needed=2)
    try:
        whole = [torch.cat(each)[:most] for each in zip(*blocks, strict=True)]
    except RuntimeError as error:
        raise BadInput(f"all batches must have rows of one shape ({str(error).splitlines()[0]}).") from None
    return tuple(name for name in named if name), whole
