"""Files in, scores out: which known factors of its rows a matrix of embeddings holds linearly."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zhat import _checks, randomness
from zhat.audit.rows import LASTING, likeness_lasts
from zhat.decoding.factors import Columns, columns, typed
from zhat.errors import BadInput, TooFewRows, UnknownName
from zhat.files import Embeddings, Rows, embeddings, joined
from zhat.metrics.decoding import Decoded, Factor, decode_rows
from zhat.metrics.disentanglement import disentanglement as measured
from zhat.results import DecodeResult, Disentanglement
from zhat.runs import stamp

SPLITS = ("auto", "rows", "pieces")
LEVEL = 0.05
SHOWN = 64  # coordinates in the heat map
LONG = 6  # times as long as likeness lasts is a block of neighbouring rows, so that its ends weigh little
PIECES = 64  # of whole blocks, at most
_LOOK = 4096  # rows looked at for likeness of neighbours


def decode(
    h: Any,
    factors: Any,
    *,
    types: Mapping[str, str] | None = None,
    periods: Mapping[str, float] | None = None,
    key: str | None = None,
    ids: Any = None,
    components: int | None = None,
    disentanglement: bool = False,
    split: str = "auto",
    gaps: str = "refuse",
    seed: int = 0,
) -> DecodeResult:
    """Say which known factors can be read from a representation by a linear map, and how well.

    Each factor is fitted on half of the rows and read on the other half, with a 95% interval, a chance level and a
    p-value from shuffled rows that is corrected for the number of factors (Holm).

    Args:
        h: the representation: an array `(rows, k)`, a file or a folder of shards, as `zhat.audit` reads them.
        factors: a `.csv`, `.npy`, `.npz` or `.parquet` file with one column for each factor; or a mapping, a data
            frame, an array.
        types: "real", "circular" or "categorical" by name, where the rule of `zhat.decoding.factors` is not to decide.
        periods: of circular factors, by name.
        key: which array of `h`, for files that hold several.
        ids: joins rows of different order: the name of a key or column in both, or a pair (ids of h, ids of factors).
        components: read from that many principal components only, which takes fewer rows.
        disentanglement: DCI, MIG and SAP as well; for at least two factors and two columns.
        split: "rows" at random; "pieces" of neighbouring rows, for rows that depend on their neighbours; "auto" looks.
        gaps: what to do about rows with an empty cell in a table: "refuse", or "drop" them from both files.
        seed: of the split and the shuffles.

    Raises:
        TooFewRows: where there are fewer than ten rows for each coefficient of a map; it says how many are needed.

    Example:
        >>> h = torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
        >>> found = decode(h, {"position": h[:, 0] - 2 * h[:, 1], "noise": torch.arange(400.0) % 7.5})
        >>> round(found["position"].value, 3), found["noise"].found
        (1.0, False)
    """
    if split not in SPLITS:
        raise UnknownName("split", split, SPLITS)
    source, known = _paired(h, factors, key, ids, gaps)
    listed, said = _typed(known, dict(types or {}), dict(periods or {}))
    width = source.dim
    if components is not None:
        width = min(source.dim, _checks.count(components, "components"))
    fewest = 10 * (width + 1)
    if source.rows < fewest:
        few = max(1, source.rows // 10 - 1)
        raise TooFewRows(
            f"{source.rows:,} rows cannot tell a linear map from {width:,} columns from noise. Bring at least "
            f"{fewest:,} rows, or read from principal components: --components {few}.",
            needed=fewest,
        )
    held_out, block, how, effective, notes = _halves(source, listed, split, seed)
    found = decode_rows(source.blocks, listed, held_out, block=block, components=components, level=LEVEL, seed=seed)
    shown = _strongest(found.association)
    return DecodeResult(
        h=source.name,
        factors=known.name,
        n=source.rows,
        effective=effective,
        dim=source.dim,
        components=None if components is None else width,
        n_fit=int((~held_out).sum()),
        n_read=int(held_out.sum()),
        split=how,
        scores=found.scores,
        level=LEVEL,
        shuffles=found.shuffles,
        coordinates=tuple(shown.tolist()),
        association=tuple(tuple(float(v) for v in row) for row in found.association[:, shown]),
        types=said,
        notes=(*notes, *_left_out(source, known), *_odd(source, found)),
        disentanglement=_disentangled(source, listed, found, seed) if disentanglement else None,
        provenance={**stamp(seed), "precision": source.precision},
    )


def _paired(h: Any, factors: Any, key: str | None, ids: Any, gaps: str) -> tuple[Embeddings, Columns]:
    """Representation and factors with the same rows in the same order."""
    pair = (None, None) if ids is None else (ids, ids) if isinstance(ids, str) else tuple(ids)
    if len(pair) != 2:
        raise BadInput(f"`ids` is one name or a pair, but {len(pair)} came.")
    source = embeddings(h, key=key, ids=pair[0], name="h" if hasattr(h, "shape") else "", gaps=gaps)
    known = columns(factors, ids=pair[1], gaps=gaps)
    numbers = embeddings(np.arange(known.rows, dtype=np.float64)[:, None], name=known.name)
    numbers = replace(numbers, ids=known.ids, kept=known.kept, left_out=known.left_out)
    left, right = joined(source, numbers)
    if right is numbers:
        return left, known
    return left, known.take(right.take(slice(None))[:, 0].astype(np.int64))


def _typed(known: Columns, types: dict[str, str], periods: dict[str, float]) -> tuple[list[Factor], dict[str, str]]:
    for name in (*types, *periods):
        if name not in known.columns:
            raise UnknownName(f"factor in {known.name}", name, known.columns)
    pairs = [typed(n, v, types.get(n), periods.get(n)) for n, v in known.columns.items()]
    return [factor for factor, _ in pairs], {factor.name: why for factor, why in pairs}


def _halves(source: Embeddings, listed: list[Factor], split: str, seed: int) -> tuple[Tensor, int, str, int, list[str]]:
    """Which rows are read, how many neighbours stay together, the name of the split, rows that count, and notes."""
    n = source.rows
    lasting = _lasting(source, listed)
    digests = _digests(source)
    distinct = len(np.unique(digests))
    notes = []
    alike = lasting > LASTING
    pieces = split == "pieces" or (split == "auto" and alike)
    block = 1
    if pieces:
        block = max(2, min(int(np.ceil(LONG * lasting)), n // 4))
        place = np.arange(n) // (block * -(-n // (PIECES * block)))
    else:
        place = torch.randperm(n, generator=randomness.generator(seed, "split")).numpy()
    if alike and pieces:
        notes.append(
            f"neighbouring rows are alike beyond what the factors explain: {n:,} rows count as about "
            f"{int(n / lasting):,}. They were split, shuffled and resampled in pieces. "
            "If the rows were only sorted, say --split rows"
        )
    elif alike:
        notes.append("neighbouring rows are alike beyond what the factors explain, and were split one by one as asked")
    if distinct < n and split != "rows":
        _, first, group = np.unique(digests, return_index=True, return_inverse=True)
        place = place[first[group]]
        notes.append(
            f"{n - distinct:,} of {n:,} rows of {source.name} occur before; copies were kept on one side of the split. "
            "If equal rows are no copies of one thing, say --split rows"
        )
    elif distinct < n:
        notes.append(f"{n - distinct:,} of {n:,} rows of {source.name} occur before; some were fitted and read")
    held_out = torch.from_numpy(np.ascontiguousarray(place % 2 == 1))
    if not bool(held_out.any()) or bool(held_out.all()):
        raise TooFewRows(f"{source.name} holds {distinct} different rows, too few to fit and to read.", needed=20)
    return held_out, block, "pieces" if pieces else "rows", int(min(distinct, n / lasting)), notes


def _lasting(source: Embeddings, listed: list[Factor]) -> float:
    """How many neighbouring rows count as one, after what the factors explain was taken off.

    Rows that are only sorted by their factors are then no longer alike; frames of a film still are.
    """
    rows = source.block(slice(0, min(_LOOK, source.rows))).astype(np.float64)
    rows = rows / max(float(np.abs(rows).max()), np.finfo(np.float64).tiny)  # so that no square leaves the range
    told = torch.cat([f.columns for f in listed], 1)[: len(rows)].numpy()
    told = told[:, : max(1, len(rows) // 4)]
    told = np.concatenate([np.ones((len(rows), 1)), told], 1)
    left = rows - told @ np.linalg.lstsq(told, rows, rcond=None)[0]
    spread = rows.std(0)
    return likeness_lasts(left[:, spread > 0] / spread[spread > 0]) if (spread > 0).any() else 1.0


def _digests(source: Embeddings) -> Rows:
    """A number for each row; equal rows have equal ones."""

    def numbers() -> Iterator[bytes]:
        for block in source.blocks():
            yield from (hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in block + 0.0)

    return np.frombuffer(b"".join(numbers()), dtype=np.uint64) >> np.uint64(1)


def _disentangled(source: Embeddings, listed: list[Factor], found: Decoded, seed: int) -> Disentanglement:
    """DCI from all rows fitted, MIG and SAP from a sample of rows."""
    scored = [j for j, score in enumerate(found.scores) if score.value is not None]
    if len(scored) < 2 or source.dim < 2:
        raise BadInput(
            f"DCI, MIG and SAP need at least 2 factors with a score and 2 columns, but there are {len(scored)} and "
            f"{source.dim}."
        )
    most = max(2000, min(10_000, 10**8 // (source.dim * len(scored))))
    order = torch.randperm(source.rows, generator=randomness.generator(seed, "sample"))[:most].sort().values
    some = [replace(listed[j], columns=listed[j].columns[order]) for j in scored]
    values = [max(0.0, found.scores[j].value or 0.0) for j in scored]
    return measured(
        some,
        source.block(order.numpy()).astype(np.float64),
        found.importance[:, scored],
        sum(values) / len(values),
        missing=[found.scores[j].name for j in scored if not found.scores[j].found],
    )


def _strongest(association: Tensor) -> Tensor:
    """The coordinates a heat map shows: all, or those with the strongest associations, in their order."""
    if association.shape[1] <= SHOWN:
        return torch.arange(association.shape[1])
    return association.amax(0).topk(SHOWN).indices.sort().values


def _left_out(source: Embeddings, known: Columns) -> Iterator[str]:
    for one in (source, known):
        if one.left_out:
            yield f"{one.left_out:,} rows of {one.name} have an empty cell and were left out"


def _odd(source: Embeddings, found: Decoded) -> Iterator[str]:
    still = int((found.association.amax(0) == 0).sum())
    if still and source.dim > still:
        yield f"{still} of {source.dim} columns of {source.name} have nothing to do with any factor, or are constant"
