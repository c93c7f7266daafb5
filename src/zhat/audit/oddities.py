"""What is odd about the rows of two matrices: said in sentences, because every score rests on them."""

from __future__ import annotations

from torch import Tensor

from zhat._checks import constant
from zhat.audit.rows import LASTING, Seen
from zhat.files import Embeddings
from zhat.metrics import Moments
from zhat.metrics.spectrum import Spectrum

_EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def rank(scatter: Tensor, mean: Tensor, n: int, precision: str) -> int:
    """Directions that can be told from the rounding of the stored numbers, columns brought to unit variance."""
    return min(Spectrum.of(scatter, mean, n, eps=_EPS[precision]).rank, n - 1)


def notes(
    seen: Seen, source: Embeddings, target: Embeddings, rank_source: int, rank_target: int, whole: Moments
) -> tuple[str, ...]:
    """Sentences about constant, deficient, collapsed, heavy-tailed, repeated and dependent rows."""
    said = [
        f"{one.left_out:,} rows of {one.name} have an empty cell and were left out"
        for one in (source, target)
        if one.left_out
    ]
    varies_target, varies_source = whole.varies()
    for one, varies, found, scatter, rows in (
        (source, varies_source, rank_source, whole.hh, seen.source),
        (target, varies_target, rank_target, whole.zz, seen.target),
    ):
        still = one.dim - int(varies.sum())
        if still == one.dim:
            said.append(f"{one.name} is collapsed: every row is the same")
            continue
        if still:
            said.append(f"{one.name} is constant in {still} of {one.dim} columns, which count for nothing")
        if found < one.dim - still and seen.distinct > one.dim:
            said.append(f"{one.name} is rank-deficient: it varies in {found} of {one.dim} directions")
        share = float(1 / (scatter / scatter.trace()).square().sum())
        if one.dim >= 10 and share < 0.1 * one.dim:
            said.append(f"{one.name} is close to collapsed: about {share:.1f} of {one.dim} directions hold it")
        heavy = _heavy(rows)
        if heavy > 20:
            said.append(
                f"{one.name} has heavy tails (kurtosis {heavy:.0f}, 3 for a normal distribution): "
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
    x = (rows - rows.mean(0))[:, ~constant(rows)]
    x = x / x.abs().amax(0)
    return float(((x**4).mean(0) / x.square().mean(0) ** 2).amax()) if x.shape[1] else 0.0
