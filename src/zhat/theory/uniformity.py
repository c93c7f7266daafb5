r"""Tests that rows are uniform on a space, degree by degree, and how far from uniform their density is.

A density p on a space of finite volume with uniform density u is written in functions that are orthonormal under u.
The squared coefficients sum to $\int (p / u - 1)^2 u$, the mean squared relative deviation of the density: a number
that means the same at any n. On a sphere the functions are spherical harmonics, summed over each degree through
Gegenbauer polynomials of inner products; in a box they are Legendre polynomials of one coordinate and products of two.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from zhat.theory.departures import Array, Departure, departure, legendre, of_column_pairs, of_products, of_uncorrelated
from zhat.theory.departures import together as smallest_of
from zhat.theory.filling import centre

DEGREES = 6
BLOCK = 256  # rows compared with each other for the higher degrees of a sphere
BLOCKS = 64  # of them at most


def on_sphere(z: Array, centred: bool = False) -> tuple[float, Departure]:
    """The p-value that directions are uniform, and their departure in degrees 1 and 2 (tilts and stretches).

    Degrees 1 and 2 are sums over all pairs of rows; degrees 3 to 6 over the pairs within at most 64 blocks of 256
    rows.

    Args:
        z: rows of unit length, `(n, d)`.
        centred: whether the mean was taken off before, so that degree 1 says nothing.
    """
    n, d = z.shape
    mean = departure(d * (float(np.square(z.sum(0)).sum()) - n), d, n)
    q = (d - 1) * (d + 2) / 2
    moment = float(np.square(z.T @ z).sum())
    second = departure(q * ((d * moment - n * n) / (d - 1) - n), q, n)
    pairs = (0.0 if centred else mean.square * n * (n - 1)) + second.square * n * (n - 1)
    low_degrees = departure(pairs, q if centred else q + d, n)
    p_values = [second.p_value] if centred else [mean.p_value, second.p_value]
    return smallest_of([*p_values, *_higher_degrees(z)]), low_degrees


def _higher_degrees(z: Array) -> list[float]:
    d = z.shape[1]
    size = min(BLOCK, len(z))
    blocks = [z[i : i + size] for i in range(0, len(z) - size + 1, size)][:BLOCKS]
    sums = np.zeros(DEGREES + 1)
    for rows in blocks:
        cosine = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
        before, now = np.ones_like(cosine), cosine
        for k in range(1, DEGREES):
            before, now = now, ((2 * k + d - 2) * cosine * now - k * before) / (k + d - 2)
            sums[k + 1] += 2 * float(now.sum())
    p_values = []
    for k in range(3, DEGREES + 1):
        q = math.comb(d + k - 1, k) - math.comb(d + k - 3, k - 2)
        t = sums[k] * q / size + q * len(blocks)
        p_values.append(float(stats.chi2.sf(t, q * len(blocks))))
    return p_values


def in_box(z: Array) -> tuple[float, Departure]:
    """The p-value that rows are uniform between the lowest and highest value of each column, and their departure.

    Between its extremes the other values of a uniform column are uniform, whatever its walls are; rows that hold an
    extreme are left out, so the walls need not be known.
    """
    u = between_extremes(z)
    return of_unit_cube(u)


def of_unit_cube(u: Array) -> tuple[float, Departure]:
    """The p-value that rows are uniform in [0, 1]^d, and their departure in degrees 1 and 2."""
    n, d = u.shape
    functions = [legendre(u, k) for k in range(1, DEGREES + 1)]
    alone = [of_uncorrelated(f) for f in functions]
    pairs, q = sum(one.square for one in alone[:2]), 2.0 * d
    p_values = [one.p_value for one in alone]
    if d > 1:
        one, two = functions[:2]
        both = [of_column_pairs(one), of_column_pairs(two), of_column_pairs(one, two)]
        p_values += [each.p_value for each in both]
        pairs, q = pairs + both[0].square, q + d * (d - 1) / 2
    return smallest_of(p_values), departure(pairs * n * (n - 1), q, n)


def between_extremes(z: Array) -> Array:
    """Rows without those that hold the lowest or highest value of a column, as shares of the range of each column."""
    low, high = z.min(0), z.max(0)
    inner = ((z > low) & (z < high)).all(1)
    shares: Array = (z[inner] - low) / (high - low)
    return shares


def in_ball(z: Array) -> tuple[float, Departure]:
    """The p-value that rows are uniform in a ball around their mean, and their departure: of radius and direction."""
    middle = centre(z)
    centred = z - middle
    norm = np.linalg.norm(centred, axis=1)
    d = z.shape[1]
    inner = (norm > 0) & (norm < norm.max())
    share = (norm[inner] / norm.max()) ** d
    p_radius, radius = of_unit_cube(share[:, None])
    p_direction, direction = on_sphere(centred[inner] / norm[inner, None], centred=bool(middle.any()))
    n = int(inner.sum())
    total = (radius.square + direction.square) * n * (n - 1)
    q = 2 + (d - 1) * (d + 2) / 2 + (0 if middle.any() else d)
    return smallest_of([p_radius, p_direction]), departure(total, q, n)


def independent(z: Array) -> tuple[float, Departure, float]:
    """The p-value that columns are independent, their departure, and the largest rank correlation of two columns.

    Columns are replaced by their ranks, so marginals play no part; asked are products of Legendre polynomials of degree
    1 and 2, which also see dependence without correlation.
    """
    n, d = z.shape
    u = (stats.rankdata(z, axis=0) - 0.5) / n
    one, two = legendre(u, 1), legendre(u, 2)
    both = [of_column_pairs(one), of_column_pairs(two), of_column_pairs(one, two)]
    total = sum(each.square for each in both) * n * (n - 1)
    correlation = np.abs(np.corrcoef(u, rowvar=False) - np.eye(d)).max()
    return smallest_of([each.p_value for each in both]), departure(total, 2 * d * (d - 1), n), float(correlation)


def groups_independent(a: Array, b: Array) -> Departure:
    """How far from independent two groups of columns are: products of a column of one with a column of the other."""
    n = len(a)
    functions = []
    for part in (a, b):
        u = (stats.rankdata(part, axis=0) - 0.5) / n
        f = np.concatenate([legendre(u, 1), legendre(u, 2)], 1)
        f = f - f.mean(0)
        values, vectors = np.linalg.eigh(f.T @ f / n)
        keep = values > 1e-6 * values.max()
        functions.append(f @ vectors[:, keep] / np.sqrt(values[keep]))
    return of_products(*functions)
