"""Intervals: of resampled rows, and of the mean of a few numbers."""

from __future__ import annotations

import math

import torch
from scipy import stats
from torch import Tensor

from zhat import randomness
from zhat.errors import BadInput
from zhat.metrics.agreement import Agreement
from zhat.metrics.pairing import draws


def bootstrap(agree: Agreement, z: Tensor, z_hat: Tensor, *, repeats: int, seed: int) -> Tensor:
    """Mean agreement under resampled rows, `(repeats,)`.

    Rows are drawn with replacement. An agreement is a formula in sums over rows, so each repeat is one row of a matrix
    product with the counts.
    """
    rows = agree.contributions(z, z_hat)
    n, d = z.shape
    values = []
    for counts in draws(n, repeats, randomness.generator(seed, "bootstrap")):
        sums = counts.to(rows.device) @ rows
        values.append(agree.formula(torch.full_like(sums[:, :d], n), *sums.chunk(5, -1)).mean(-1))
    found = torch.cat(values)
    found = found[torch.isfinite(found)]  # a resample may leave a latent constant, and then has no score
    if len(found) < 0.9 * repeats:
        raise BadInput(
            "a latent takes so few values that resampled rows often hold only one of them, so no interval can be "
            "given. Use more rows, or repeats=0."
        )
    return found


def interval(values: Tensor, level: float = 0.95) -> tuple[float, float]:
    """The central interval that holds a share `level` of the values."""
    ends = torch.quantile(
        values, torch.tensor([(1 - level) / 2, (1 + level) / 2], dtype=values.dtype).to(values.device)
    )
    return float(ends[0]), float(ends[1])


def deviation(values: Tensor) -> float:
    """Standard deviation, also where squares of the values leave the range of float64."""
    size = 2.0 ** math.frexp(float(values.abs().max()))[1]  # a power of two costs no digit
    return float((values / size).std()) * size


def student(values: Tensor, level: float = 0.95) -> tuple[float, float]:
    """Student's interval of the mean of independent values; one value alone has none and gives everything."""
    n, mean = len(values), float(values.mean())
    if n < 2:
        return -math.inf, math.inf
    reach = float(stats.t.ppf((1 + level) / 2, n - 1)) * deviation(values) / math.sqrt(n)
    return mean - reach, mean + reach
