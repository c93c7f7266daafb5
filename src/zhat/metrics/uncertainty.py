r"""Intervals: of a formula in sums over rows, of the mean of a few numbers, of shares, and of resampled rows.

**From influences.** A score S is a formula in sums over n rows. Give each row a weight: the derivative of S with
respect to the weight of row i, times n, is the influence $\psi_i$ of that row (the infinitesimal jackknife). Influences
have mean 0, and S moves about its value for endless rows as their mean would. So its interval is Student's interval of
a mean.

**Heavy tails.** For m normal numbers the standard error has m - 1 degrees of freedom. Where a few numbers hold most of
the variance, as with squares of heavy-tailed rows, it is known less well. With k the kurtosis of the numbers, 3 for
normal ones, the degrees of freedom are taken as $1 / (\frac{1}{m - 1} + \frac{\max(0, k - 3)}{m})$. That is about
$m / k$ for large k: as many as there are rows that hold the variance. `python -m benchmarks.coverage` counts how often
such intervals hold the true value.
"""

from __future__ import annotations

import math
from collections.abc import Callable

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


def around(value: float, influences: Tensor, level: float = 0.95) -> tuple[float, float]:
    """The interval of a score from the influences of its rows, or of groups of rows, `(n,)`."""
    n = len(influences)
    size = float(influences.abs().max()) if n > 1 else 0.0
    if n < 2 or size == 0:
        return (value, value) if n > 1 else (-math.inf, math.inf)
    x = (influences - influences.mean()) / size
    square = float(x.square().mean())
    if square == 0:
        return value, value
    kurtosis = float((x**4).mean()) / square**2
    freedom = 1 / (1 / (n - 1) + max(0.0, kurtosis - 3) / n)
    reach = float(stats.t.ppf((1 + level) / 2, freedom)) * math.sqrt(square / (n - 1)) * size
    return value - reach, value + reach


def influences(formula: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """What each row does to a formula of sums, `(n,)`.

    Args:
        formula: takes sums over rows, `(q,)`, the number of rows among them, and gives one number.
        rows: what each row adds to the sums, `(n, q)`.
    """
    with torch.inference_mode(False), torch.enable_grad():  # whatever mode the caller is in
        sums = rows.detach().sum(0).requires_grad_()
        (slope,) = torch.autograd.grad(formula(sums), sums)
    # what is constant has no slope: the root of its spread, 0, has an infinite one
    found: Tensor = len(rows) * (rows @ torch.nan_to_num(slope, nan=0.0, posinf=0.0, neginf=0.0))
    return found


def agreed(agree: Agreement, z: Tensor, z_hat: Tensor, level: float = 0.95) -> tuple[float, float]:
    """The interval of the mean agreement of some rows; of ranks, z and z_hat are the ranks themselves."""
    rows = agree.contributions(z, z_hat)
    d = z.shape[1]

    def formula(sums: Tensor) -> Tensor:
        return agree.formula(sums[:1].expand(d), *sums[1:].chunk(5)).mean()

    rows = torch.cat([torch.ones_like(rows[:, :1]), rows], 1)
    value = float(formula(rows.sum(0)))
    if not math.isfinite(value):
        raise BadInput("a latent is constant among the rows read, so no interval can be given. Use more rows.")
    low, high = around(value, of_ranks(z, z_hat) if agree.ranked else influences(formula, rows), level)
    return (max(-1.0, low) if agree.forgives_shift else low), min(1.0, high)


def of_ranks(u: Tensor, v: Tensor) -> Tensor:
    r"""Influences of rows on the mean rank correlation of columns, from their ranks, `(n, d), (n, d) -> (n,)`.

    With ranks F and G on [0, 1], $\rho = 12\, E[(F - \frac12)(G - \frac12)]$. A row moves this by its own product, and
    by moving the ranks of the rows above it.
    """
    n = len(u)
    total = torch.zeros(n, dtype=torch.float64, device=u.device)
    for x, y in zip(((u - 0.5) / n - 0.5).double().T, ((v - 0.5) / n - 0.5).double().T, strict=True):
        if x.max() == x.min() or y.max() == y.min():
            continue
        total += 12 * (x * y + _above(x, y) + _above(y, x)) / u.shape[1]
    return total - total.mean()


def _above(x: Tensor, y: Tensor) -> Tensor:
    """The sum of y over the rows whose x is at least that of each row, divided by the number of rows."""
    ordered, order = x.sort(descending=True)
    reached = torch.searchsorted(-ordered, -x, right=True) - 1  # the last of those with an equal x
    found: Tensor = y[order].cumsum(0)[reached] / len(x)
    return found


def shares(right: Tensor, count: Tensor, level: float = 0.95) -> tuple[float, float]:
    r"""The interval of the mean of shares, right out of count for each class, `(k,), (k,)`.

    Wilson's intervals $[l_j, u_j]$ of the shares $s_j$ are joined as those of independent parts of a mean:
    $\bar s - \frac1k \sqrt{\sum_j (s_j - l_j)^2}$ and $\bar s + \frac1k \sqrt{\sum_j (u_j - s_j)^2}$ (newcombe1998).
    They have a length also where all are right.
    """
    q = float(stats.norm.ppf((1 + level) / 2))
    share = right / count
    centre = share + q * q / (2 * count)
    reach = q * (share * (1 - share) / count + q * q / (4 * count.square())).sqrt()
    low, high = ((centre + sign * reach) / (1 + q * q / count) for sign in (-1, 1))
    mean, k = float(share.mean()), len(share)
    return (
        max(0.0, mean - float((share - low).square().sum().sqrt()) / k),
        min(1.0, mean + float((high - share).square().sum().sqrt()) / k),
    )


def student(values: Tensor, level: float = 0.95) -> tuple[float, float]:
    """Student's interval of the mean of independent values; one value alone has none and gives everything."""
    n, mean = len(values), float(values.mean())
    if n < 2:
        return -math.inf, math.inf
    reach = float(stats.t.ppf((1 + level) / 2, n - 1)) * deviation(values) / math.sqrt(n)
    return mean - reach, mean + reach
