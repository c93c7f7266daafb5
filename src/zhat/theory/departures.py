r"""How far the mean of a vector is from zero: a test, and a size with an interval that means the same at any n.

A condition is written as $E[X] = 0$ for a vector X of functions of a row that are uncorrelated and have variance 1
where the condition holds. The sum over pairs of different rows $\sum_{i \ne j} X_i \cdot X_j$ is then free of bias:
divided by n (n - 1) it estimates $|E X|^2$, whatever n is, and divided by n it has, with the number of functions q
added, the law $\chi^2_q$ in the limit. Its variance is that of $\chi^2_q$ times 1 - 1/n, also where q is larger than n.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Departure:
    """A test of E X = 0 and the length of E X.

    Attributes:
        p_value: that the sum is as large where the mean is zero.
        square: |E X|^2, without bias; may be below zero.
        low: lower end of the 95% interval of |E X|.
        high: upper end of it.
    """

    p_value: float
    square: float
    low: float
    high: float

    @property
    def size(self) -> float:
        """|E X|; 0 where its square is estimated below zero."""
        return math.sqrt(max(0.0, self.square))

    def scaled(self, factor: float) -> Departure:
        """The same in other units."""
        return Departure(self.p_value, self.square * factor**2, self.low * factor, self.high * factor)


def departure(pairs: float, q: float, n: int, *, scale: float = 1.0) -> Departure:
    r"""The departure from zero, from the sum over all ordered pairs of different rows.

    Args:
        pairs: $\sum_{i \ne j} X_i \cdot X_j$.
        q: the degrees of freedom: how many functions, if these are uncorrelated and have variance 1.
        n: rows.
        scale: of the limit law `scale` times chi-square.
    """
    t = max(pairs / n / scale + q, 0.0)
    low, high = (_noncentral(t, q, tail) for tail in (0.975, 0.025))
    return Departure(
        float(stats.chi2.sf(t, q)), pairs / (n * max(n - 1, 1)), math.sqrt(low * scale / n), math.sqrt(high * scale / n)
    )


def _noncentral(t: float, q: float, tail: float) -> float:
    """The noncentrality for which a noncentral chi-square with q degrees lies below t with this probability."""
    if stats.chi2.cdf(t, q) <= tail:
        return 0.0
    if t < 2000:
        found = float(special.chndtrinc(t, q, tail))
        if math.isfinite(found):
            return max(found, 0.0)
    z = stats.norm.ppf(tail)  # lambda = t - q - z sqrt(2 q + 4 lambda)
    a, b = t - q, z * z
    root = math.sqrt(max(b * b + b * (a + q / 2), 0.0))
    return float(max(0.0, a + 2 * b - math.copysign(2 * root, z)))


def of_uncorrelated(x: Array) -> Departure:
    """The departure of the mean of uncorrelated functions of variance 1, `(n, q)`."""
    return departure(float(np.square(x.sum(0)).sum() - np.square(x).sum()), x.shape[1], len(x))


def of_products(a: Array, b: Array) -> Departure:
    """The same for all products of a column of `a`, `(n, q)`, with a column of `b`, `(n, r)`."""
    total = float(np.square(a.T @ b).sum())
    alone = float((np.square(a).sum(1) * np.square(b).sum(1)).sum())
    return departure(total - alone, a.shape[1] * b.shape[1], len(a))


def of_column_pairs(a: Array, b: Array | None = None) -> Departure:
    """The same for the products of two different columns: c < e of `a`, or every c other than e of `a` and `b`."""
    other = a if b is None else b
    sums = a.T @ other
    squares, others = np.square(a), np.square(other)
    alone = (squares.sum(1) * others.sum(1) - (squares * others).sum(1)).sum()
    total = float(np.square(sums).sum() - np.square(np.diag(sums)).sum() - alone)
    d, half = a.shape[1], 1.0 if b is not None else 0.5
    return departure(total * half, d * (d - 1) * half, len(a))


def of_kernel(total: float, alone: Array, between: Array, n: int) -> Departure:
    r"""The same for functions that are correlated, from inner products of rows.

    The limit law is a weighted sum of chi-squares; it is replaced by one of the same mean and variance.

    Args:
        total: $|\sum_i X_i|^2$.
        alone: $|X_i|^2$ of some rows, as many as there are or a sample.
        between: $X_i \cdot X_j$ of some pairs of different rows.
        n: rows.
    """
    trace, square = float(alone.mean()), float(np.square(between).mean())
    return departure(total - n * trace, trace**2 / square, n, scale=square / trace)


def together(p_values: list[float]) -> float:
    """The chance that the smallest of so many independent p-values is as small as this one."""
    return float(-math.expm1(len(p_values) * math.log1p(-min(min(p_values), 1 - 1e-16))))


def legendre(u: Array, degree: int) -> Array:
    """The polynomial of that degree that has mean 0 and variance 1 for u uniform on [0, 1]."""
    x = 2 * u - 1
    before, now = np.ones_like(x), x
    for k in range(1, degree):
        before, now = now, ((2 * k + 1) * x * now - k * before) / (k + 1)
    values: Array = math.sqrt(2 * degree + 1) * now
    return values
