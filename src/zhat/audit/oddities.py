"""What is odd about the rows of two matrices: said in sentences, because every score rests on them."""

from __future__ import annotations

import torch
from torch import Tensor

from zhat.audit.ladder import varying
from zhat.audit.reading import Embeddings
from zhat.audit.rows import LASTING, Seen
from zhat.metrics import Moments

_EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def rank(scatter: Tensor, moments: Moments, precision: str) -> int:
    """Directions whose variance is above the rounding of the stored numbers."""
    values = torch.linalg.eigvalsh(scatter)
    floor = max(4 * len(values) * _EPS["float64"], _EPS[precision] ** 2) * float(values[-1].clamp_min(0))
    return min(int((values > floor).sum()), moments.n - 1) if float(values[-1]) > 0 else 0


def notes(seen: Seen, a: Embeddings, b: Embeddings, rank_a: int, rank_b: int, whole: Moments) -> tuple[str, ...]:
    """Sentences about constant, deficient, collapsed, heavy-tailed, repeated and dependent rows."""
    said = []
    varies_b, varies_a = varying(whole)
    for source, varies, found, scatter, rows in (
        (a, varies_a, rank_a, whole.hh, seen.a),
        (b, varies_b, rank_b, whole.zz, seen.b),
    ):
        still = source.dim - int(varies.sum())
        if still == source.dim:
            said.append(f"{source.name} is collapsed: every row is the same")
            continue
        if still:
            said.append(f"{source.name} is constant in {still} of {source.dim} columns, which count for nothing")
        if found < source.dim - still and seen.distinct > source.dim:
            said.append(f"{source.name} is rank-deficient: it varies in {found} of {source.dim} directions")
        share = float(scatter.trace() ** 2 / scatter.square().sum())
        if source.dim >= 10 and share < 0.1 * source.dim:
            said.append(f"{source.name} is close to collapsed: about {share:.1f} of {source.dim} directions hold it")
        heavy = _heavy(rows)
        if heavy > 20:
            said.append(
                f"{source.name} has heavy tails (kurtosis {heavy:.0f}, 3 for a normal distribution): "
                "a few rows decide, and intervals are wide"
            )
    if seen.distinct < seen.rows:
        said.append(
            f"{seen.rows - seen.distinct:,} of {seen.rows:,} rows occur before in one of the files; "
            "copies were kept on one side of the split and count once"
        )
    if seen.lasting > LASTING:
        said.append(
            f"neighbouring rows are alike (clustered or in time order): {seen.rows:,} rows count as "
            f"{seen.effective:,}, and rows were split in long pieces. "
            "If independent rows were only sorted, shuffle both files alike"
        )
    return tuple(said)


def _heavy(rows: Tensor) -> float:
    """The largest kurtosis of a column."""
    x = rows - rows.mean(0)
    spread = x.square().mean(0)
    kept = spread > 1e-24 * rows.square().mean(0)
    return float(((x**4).mean(0)[kept] / spread[kept] ** 2).amax()) if bool(kept.any()) else 0.0
