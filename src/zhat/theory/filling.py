"""Which space rows fill: a sphere, a box, a ball, all of R^d, or several of them side by side."""

from __future__ import annotations

import math

import numpy as np

from zhat.results import Filled
from zhat.theory.departures import Array

CONSTANT = 1e-4  # a sum of squares that varies by less than this, relative to its terms, is constant to rounding
WALL = -0.5  # tail indices below end at a wall with a positive density, those above end in a tail
ALIKE = 3.5  # standard errors by which tail indices of columns may differ and still be those of one space


def spaces_filled(z: Array) -> tuple[Filled, ...]:
    r"""The spaces that groups of columns fill, `(n, d)`.

    Spheres are exact relations between squares: the vectors w with $\sum_c w_c z_c^2$ constant in all rows. In reduced
    echelon form those of spheres are 1 on the columns of one sphere and 0 elsewhere. Walls show in the spacings of the
    largest and smallest values: the excess of the highest tenth over its threshold has a generalised Pareto law whose
    index is -1 at a wall, near 0 in the tail of a normal or Laplace law, above 0 in heavier tails.
    """
    spheres = _spheres(z)
    taken = {c for columns in spheres for c in columns}
    found = [_filled("sphere", z, columns, _radius(z[:, columns])) for columns in spheres]
    rest = [c for c in range(z.shape[1]) if c not in taken]
    if rest:
        found += _without_spheres(z, rest)
    return tuple(sorted(found, key=lambda space: space.columns))


def _filled(kind: str, z: Array, columns: list[int], radius: float | None = None) -> Filled:
    low, high = z[:, columns].min(0), z[:, columns].max(0)
    if kind == "box":
        low, high = -_walls(-low, high - low, len(z)), _walls(high, high - low, len(z))
    return Filled(kind, tuple(columns), radius, tuple(low.tolist()), tuple(high.tolist()))  # type: ignore[arg-type] # one of the kinds


def centre(z: Array) -> Array:
    """The mean; the origin where the mean is no further from it than chance takes it.

    In many dimensions the rows of a ball lie so near to its wall that the error of a mean would hide the wall.
    """
    n, d = z.shape
    mean = z.mean(0)
    chance = (d + 4 * math.sqrt(2 * d)) * float(z.var(0).mean()) / n
    return np.zeros(d) if float(mean @ mean) < chance else np.asarray(mean)


def _walls(highest: Array, width: Array, n: int) -> Array:
    """The roundest numbers above the highest values that n draws may have come short of."""
    room = 5 * width / n
    walls = highest.copy()
    for c, value in enumerate(highest):
        for digits in range(int(-np.floor(np.log10(width[c]))) - 1, 16):
            wall = np.ceil(value * 10.0**digits) / 10.0**digits
            if wall - value <= room[c]:
                walls[c] = max(wall, value)
                break
    return walls


def _radius(z: Array) -> float:
    return float(np.linalg.norm(z, axis=1).mean())


def _spheres(z: Array) -> list[list[int]]:
    """Groups of at least two columns whose squares sum to a constant."""
    n = len(z)
    squares = np.square(z)
    squares = squares - squares.mean(0)
    spread = np.sqrt(np.square(squares).mean(0))
    if not (spread > 0).all():
        return []
    values, vectors = np.linalg.eigh((squares / spread).T @ (squares / spread) / n)
    null = vectors[:, values < CONSTANT**2].T / spread  # sum_c w_c z_c^2 is constant
    groups = []
    for w in _reduced(null):
        columns = np.flatnonzero(np.abs(w) > 0.02 * np.abs(w).max())
        norms = np.square(z[:, columns]).sum(1)
        if len(columns) > 1 and np.ptp(w[columns]) < 0.01 * abs(w[columns]).max() and norms.std() < 1e-3 * norms.mean():
            groups.append([int(c) for c in columns])
    return groups if len({c for g in groups for c in g}) == sum(map(len, groups)) else []


def _reduced(rows: Array) -> Array:
    """The reduced echelon form, pivots chosen by size."""
    rows = rows.copy()
    for i in range(len(rows)):
        pivot = int(np.abs(rows[i]).argmax())
        if rows[i, pivot] == 0:
            continue
        rows[i] /= rows[i, pivot]
        for j in range(len(rows)):
            if j != i:
                rows[j] -= rows[j, pivot] * rows[i]
    return rows


def _without_spheres(z: Array, columns: list[int]) -> list[Filled]:
    part = z[:, columns]
    k = tail_rows(len(part))
    index = np.array([0.5 * (tail_index(v) + tail_index(-v)) for v in part.T])
    error = _error(-1.0, 2 * k)
    middle, sure = float(index.mean()), _error(-1.0, 2 * k * len(columns))
    norms = np.linalg.norm(part - centre(part), axis=1)
    radial = tail_index(norms)
    if len(columns) > 1 and radial < min(WALL - 2 * _error(-1.0, k), middle) and radial < -0.7:
        return [_filled("ball", z, columns, float(norms.max()))]
    if np.abs(index - middle).max() < ALIKE * error and abs(middle - WALL) > 1.64 * sure:
        kinds = ["box" if middle < WALL else "unbounded"] * len(columns)
    else:
        kinds = ["unknown" if abs(g - WALL) < 1.64 * error else "box" if g < WALL else "unbounded" for g in index]
    found = []
    for kind in ("box", "unbounded", "unknown"):
        mine = [c for c, k in zip(columns, kinds, strict=True) if k == kind]
        if mine:
            found.append(_filled(kind, z, mine))
    return found


def tail_rows(n: int) -> int:
    """How many of the highest values show how a tail ends."""
    return int(min(max(n // 10, 20), 5000))


def tail_index(values: Array) -> float:
    r"""The index of the generalised Pareto law of the excesses over the highest tenth, $2 - \lambda_1 / \lambda_2$.

    $\lambda_1$ is the mean excess, $\lambda_2$ half of Gini's mean difference. Uniform excesses, those at a wall, give
    -1; exponential ones 0.
    """
    k = tail_rows(len(values))
    top = np.sort(np.partition(values, len(values) - k - 1)[-k - 1 :])
    excess = top[1:] - top[0]
    mean = float(excess.mean())
    weights = (2 * np.arange(1, k + 1) - k - 1) / (k * (k - 1))
    half_gini = float((weights * excess).sum())
    return 2 - mean / half_gini if half_gini > 0 else math.nan


def _error(index: float, k: int) -> float:
    """The standard error of that estimate from k excesses."""
    g = index
    return math.sqrt((1 - g) * (2 - g) ** 2 * (1 - g + 2 * g * g) / ((1 - 2 * g) * (3 - 2 * g)) / k)
