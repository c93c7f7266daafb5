r"""DCI, MIG and SAP: does each coordinate hold one factor, and each factor lie in one coordinate?

These measures demand more than identifiability up to a linear map: a rotated code that contains every factor perfectly
scores low. They are blind to reordering, flipping and rescaling coordinates. The warnings of the result list what each
assumes, because the same representation can be ranked high by one of them and low by another (locatello2019).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zhat import _checks
from zhat.errors import BadInput
from zhat.metrics.decoding import Factor
from zhat.results import Disentanglement

BINS = 20


def dci(importance: Any) -> tuple[float, float, tuple[float, ...]]:
    r"""Disentanglement and completeness from how important each coordinate is for each factor.

    With $P_{ij} = R_{ij} / \sum_j R_{ij}$ and $\tilde P_{ij} = R_{ij} / \sum_i R_{ij}$ for k coordinates, f factors:

    $$D = \sum_i \rho_i \Big(1 + \sum_j P_{ij} \log_f P_{ij}\Big), \quad
      \rho_i = \frac{\sum_j R_{ij}}{\sum_{ij} R_{ij}},
      \qquad C = \frac1f \sum_j \Big(1 + \sum_i \tilde P_{ij} \log_k \tilde P_{ij}\Big)$$

    A coordinate that serves no factor has no weight; a factor that no coordinate serves has completeness 0.

    Args:
        importance: R, at least 0, `(k, f)`: coefficients of a linear map, or a forest's importances.

    disentanglement_lib weighs factors in C by their share of all importance, as coordinates are in D; here they count
    alike. Where all factors are equally important the two agree.

    Returns:
        D, C, and the completeness of each factor.

    Reference: eastwood2018, section 2.

    Example:
        >>> dci(torch.eye(3))[:2]
        (1.0, 1.0)
    """
    found = _checks.matrix(importance, "importance").double()
    k, f = found.shape
    if k < 2 or f < 2:
        raise BadInput(f"DCI needs at least 2 coordinates and 2 factors, but {k} and {f} came.")
    if float(found.min()) < 0:
        raise BadInput("`importance` must be at least 0. Take the absolute values of coefficients.")
    each = _purity(found.T, k)
    total = found.sum()
    if float(total) == 0:
        return 0.0, 0.0, (0.0,) * f
    disentangled = float((found.sum(1) / total * _purity(found, f)).sum())
    return disentangled, float(each.mean()), tuple(float(c) for c in each)


def _purity(rows: Tensor, base: int) -> Tensor:
    """One minus the entropy of each row as shares, to a base; 0 for a row of zeros."""
    size = rows.sum(1, keepdim=True)
    share = rows / torch.where(size > 0, size, 1.0)
    entropy = -torch.special.xlogy(share, share).sum(1) / math.log(base)
    return torch.where(size[:, 0] > 0, 1 - entropy, 0.0).clamp(0, 1)


def mig(factors: Sequence[Factor], h: Any, *, bins: int = BINS) -> tuple[float, tuple[float, ...]]:
    r"""Mutual information gap: how far the most informative coordinate is ahead of the second.

    $$\mathrm{MIG} = \frac1f \sum_j \frac{I(h_{(1)}; v_j) - I(h_{(2)}; v_j)}{H(v_j)}$$

    Coordinates and real factors are cut into bins with as many rows each (other codes use bins of equal width), so
    bending a coordinate monotonely changes nothing. Information is counted from the joint histogram, which is too
    high by about $(b-1)^2 / 2n$ nats for b bins and n rows.

    Args:
        factors: of the rows.
        h: representation of the same rows, `(n, k)`.
        bins: for each coordinate and real or circular factor with more different values than that.

    Returns:
        The mean gap, and the gap of each factor.

    Reference: chen2018, equation (6).
    """
    rows = _checks.matrix(h, "h").detach().cpu().numpy()
    _checks.count(bins, "bins", least=2)
    codes = [_cut(column, bins) for column in rows.T]
    gaps = []
    for factor in factors:
        value = _factor_codes(factor, bins)
        if len(value) != len(rows):
            raise BadInput(
                f"`h` has {len(rows)} rows and {factor.name!r} has {len(value)}; they are paired row by row."
            )
        entropy = _entropy(np.bincount(value))
        if entropy <= 0:
            raise BadInput(f"the factor {factor.name!r} is constant, so no information gap is defined.")
        shared = sorted((_information(code, value) for code in codes), reverse=True)
        gaps.append((shared[0] - (shared[1] if len(shared) > 1 else 0.0)) / entropy)
    return float(np.mean(gaps)), tuple(float(g) for g in gaps)


def _cut(values: Any, bins: int) -> Any:
    """Bins with as many rows each, `(n,)` whole numbers; few different values are bins themselves."""
    different, codes = np.unique(values, return_inverse=True)
    if len(different) <= bins:
        return codes
    edges = np.sort(values)[np.arange(1, bins) * len(values) // bins]
    return np.searchsorted(np.unique(edges), values, side="right")


def _factor_codes(factor: Factor, bins: int) -> Any:
    if factor.type == "categorical":
        return factor.codes.numpy()
    columns = factor.columns.numpy()
    return _cut(columns[:, 0] if factor.type == "real" else np.arctan2(columns[:, 1], columns[:, 0]), bins)


def _entropy(counts: Any) -> float:
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log(share)).sum())


def _information(a: Any, b: Any) -> float:
    """Mutual information in nats from the joint histogram of two columns of whole numbers."""
    width = int(b.max()) + 1
    both = np.bincount(a * width + b, minlength=(int(a.max()) + 1) * width)
    return max(0.0, _entropy(np.bincount(a)) + _entropy(np.bincount(b)) - _entropy(both))


def sap(factors: Sequence[Factor], h: Any) -> tuple[float, tuple[float, ...]]:
    r"""Separated attribute predictability: how far the best single coordinate is ahead of the second, in score.

    $$\mathrm{SAP} = \frac1f \sum_j \big(S_{(1)j} - S_{(2)j}\big)$$

    $S_{ij}$ is the squared correlation of coordinate i with a real factor (with cosine and sine together for a circular
    one). For a categorical factor it is the balanced accuracy of naming the class with the nearest mean along the
    coordinate, found on every other row and read on the rest, rescaled so that chance is 0; kumar2018 takes the plain
    accuracy of a linear support vector machine.

    Args:
        factors: of the rows.
        h: representation of the same rows, `(n, k)`.

    Returns:
        The mean gap, and the gap of each factor.

    Reference: kumar2018, section 3.
    """
    rows = _checks.matrix(h, "h").detach().cpu().double()
    gaps = []
    for factor in factors:
        if len(factor.columns) != len(rows):
            raise BadInput(f"`h` has {len(rows)} rows and {factor.name!r} has {len(factor.columns)}.")
        scores = _named_right(factor, rows) if factor.type == "categorical" else _explained(factor.columns, rows)
        best = torch.cat([scores, scores.new_zeros(1)]).topk(2).values
        gaps.append(float(best[0] - best[1]))
    return sum(gaps) / len(gaps), tuple(gaps)


def _explained(columns: Tensor, h: Tensor) -> Tensor:
    """Share of the columns' variance that each coordinate explains alone, `(k,)`."""
    z, h = columns - columns.mean(0), h - h.mean(0)
    size = h.square().sum(0)
    share = (z.T @ h).square().sum(0) / size.clamp_min(torch.finfo(torch.float64).tiny) / z.square().sum()
    return torch.where(size > 0, share, 0.0)


def _named_right(factor: Factor, h: Tensor) -> Tensor:
    """Balanced accuracy of the nearest class mean along each coordinate, chance at 0, `(k,)`."""
    codes, classes = factor.codes, len(factor.classes)
    fit, read = torch.arange(0, len(h), 2), torch.arange(1, len(h), 2)
    one_hot = torch.zeros(len(h), classes, dtype=torch.float64)
    one_hot[torch.arange(len(h)), codes] = 1
    count = one_hot[fit].sum(0)
    means = (one_hot[fit].T @ h[fit]) / count.clamp_min(1)[:, None]
    means[count == 0] = math.inf
    out = []
    seen = one_hot[read].sum(0)
    for column, mean in zip(h[read].T, means.T, strict=True):
        right = (column[:, None] - mean).abs().argmin(1) == codes[read]
        recall = (one_hot[read] * right[:, None]).sum(0)[seen > 0] / seen[seen > 0]
        out.append((recall.mean() - 1 / classes) / (1 - 1 / classes))
    return torch.stack(out).clamp_min(0)


def disentanglement(
    factors: Sequence[Factor],
    h: Any,
    importance: Tensor,
    informativeness: float,
    *,
    missing: Sequence[str] = (),
    bins: int = BINS,
) -> Disentanglement:
    """All three with what they assume.

    Args:
        factors: of the rows; at least 2.
        h: representation of the same rows, `(n, k)`, k at least 2.
        importance: of each coordinate for each factor, `(k, f)`.
        informativeness: the mean held-out score of the factors.
        missing: names of factors that could not be read.
        bins: for mutual information.
    """
    d, c, complete = dci(importance)
    gap, gaps = mig(factors, h, bins=bins)
    around = [gap, *(mig(factors, h, bins=b)[0] for b in (max(2, bins // 2), 2 * bins))]
    ahead, aheads = sap(factors, h)
    return Disentanglement(
        disentanglement=d,
        completeness=c,
        informativeness=informativeness,
        mig=gap,
        mig_range=(min(around), max(around)),
        sap=ahead,
        bins=bins,
        per_factor={
            f.name: {"completeness": complete[j], "MIG": gaps[j], "SAP": aheads[j]} for j, f in enumerate(factors)
        },
        warnings=_warnings(factors, len(_checks.matrix(h, "h")), (min(around), max(around)), missing, bins),
    )


def _warnings(
    factors: Sequence[Factor], n: int, around: tuple[float, float], missing: Sequence[str], bins: int
) -> tuple[str, ...]:
    said = [
        "all of them ask for one coordinate for each factor; a rotated code that holds every factor perfectly scores "
        "low",
        "DCI rests on importances, here |standardised coefficients| of the linear map where they are beyond noise; a "
        "forest's or a lasso's give other numbers",
        f"MIG depends on how values are cut into bins: {around[0]:.3f} to {around[1]:.3f} for {max(2, bins // 2)} to "
        f"{2 * bins} bins",
    ]
    bias = (bins - 1) ** 2 / (2 * n)
    if bias > 0.1:
        said.append(f"{n:,} rows in {bins} × {bins} bins overstate information by about {bias:.2f} nats")
    circles = [f.name for f in factors if f.type == "circular"]
    if circles:
        said.append(f"a circle needs two coordinates, so {', '.join(circles)} cannot score well")
    if missing:
        said.append(f"not found, so what they add to these numbers is noise: {', '.join(missing)}")
    tied = _tied(factors)
    if tied is not None:
        said.append(
            f"factors are not independent ({tied[0]} and {tied[1]} correlate with {tied[2]:.2f}), and a coordinate for "
            "one then says something about the other"
        )
    return tuple(said)


def _tied(factors: Sequence[Factor]) -> tuple[str, str, float] | None:
    """The two factors whose columns correlate most, if by more than 0.3."""
    best: tuple[str, str, float] | None = None
    for j, one in enumerate(factors):
        for other in factors[:j]:
            a, b = (f.columns - f.columns.mean(0) for f in (one, other))
            size = torch.outer(a.norm(dim=0), b.norm(dim=0)).clamp_min(torch.finfo(torch.float64).tiny)
            most = float(((a.T @ b) / size).abs().max())
            if most > 0.3 and (best is None or most > best[2]):
                best = (other.name, one.name, most)
    return best
