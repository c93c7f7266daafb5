"""How z' lies around z: the family, its parameters with intervals, and whether it is the same everywhere.

Every law is turned into numbers that are uniform where it holds (the distribution function at each draw), so that one
set of tests serves spheres, boxes and all of R^d: their shape (is it this family?), their dependence on the anchor (is
it centred there, with one concentration everywhere?) and on the coordinate (the same in all directions?).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from scipy import optimize, special, stats

from zhat.dgp import Around, Laplace, Normal, Sphere
from zhat.results import Family, Filled, Finding, Histogram, Truth
from zhat.theory import departures
from zhat.theory.departures import Array, Departure, departure, legendre, of_column_pairs, of_products
from zhat.theory.filling import centre

Rows = np.ndarray[Any, np.dtype[Any]]
LEVEL = 0.01  # of the tests behind an answer
SHAPE = 0.15  # departures up to here do not count: the density of a conditional, root mean square
SCALE = 0.15  # the logarithm of a scale
SHIFT = 0.1  # a shift, in standard deviations of the step
DENSITY = 0.25  # the density of a marginal, or of pairs of coordinates
ENTRIES = 40_000  # numbers that a fit looks at; more rows are left out at random
SHAPES = 6  # degrees of polynomials that look at the shape
STILL = 0.01  # share of steps that are exactly zero, from which on no density is fitted
RANGE = (0.2, 15.0)  # exponents that are told apart from others
COMPARED = 500  # rows on which laws of a sphere are compared that take an integral for each row
WIDEST = 20  # dimensions up to which they are


@dataclass(frozen=True)
class Surroundings:
    """What was found about z' around z in one space."""

    family: Family
    findings: tuple[Finding, ...]
    histograms: tuple[Histogram, ...]


def answer(found: Departure, matters: float, p_value: float | None = None) -> Truth:
    """Yes, if the departure is surely small; no, if it is surely there; else the rows cannot tell."""
    if found.high <= matters:
        return "yes"
    return "no" if (found.p_value if p_value is None else p_value) < LEVEL else "unknown"


def surroundings(space: Filled, z: Array, z_next: Array, seed: int) -> Surroundings:
    """The conditional in one space, `(n, d)` its columns."""
    step = z_next - z
    still = float((step == 0).mean())
    if still > STILL:
        because = (
            f"{still:.1%} of the steps are exactly zero, which no density explains: were the rows rounded or repeated?"
        )
        return _none(space, len(z), because)
    if space.shape == "sphere":
        return _on_sphere(space, z, z_next, seed)
    if space.shape == "ball":
        room = float(space.radius or 0.0) - np.linalg.norm(z - centre(z), axis=1)
        far = room > np.quantile(np.linalg.norm(step, axis=1), 0.999)
        if int(far.sum()) < 500:
            return _none(space, len(z), "fewer than 500 anchors lie so far from the wall that their steps are whole")
        return _with_exponent(space, z[far], z_next[far], seed)
    return _with_exponent(space, z, z_next, seed)


def where_of(space: Filled) -> str:
    """The columns of a space in words."""
    c = [column + 1 for column in space.columns]
    if len(c) > 2 and c == list(range(c[0], c[-1] + 1)):
        return f"columns {c[0]} to {c[-1]}"
    return f"column {c[0]}" if len(c) == 1 else f"columns {', '.join(map(str, c[:8]))}{', …' if len(c) > 8 else ''}"


def _none(space: Filled, n: int, because: str, holds: Truth = "unknown") -> Surroundings:
    family = Family("none of these" if holds == "no" else "cannot tell", where_of(space), "", None, None, None, (), n)
    condition = "von Mises-Fisher conditional" if space.shape == "sphere" else "conditional of one family"
    return Surroundings(family, (Finding(condition, holds, because, where=where_of(space)),), ())


def _whitened(features: Array) -> Array:
    """Functions of the anchor, centred and uncorrelated, `(n, q)`; those that the others hold are left out."""
    f = features - features.mean(0)
    spread = f.std(0)
    f = f[:, spread > 0] / spread[spread > 0]
    values, vectors = np.linalg.eigh(f.T @ f / len(f))
    keep = values > 1e-6 * values.max()
    white: Array = f @ vectors[:, keep] / np.sqrt(values[keep])
    return white


def _shape(u: Array, scores: Array) -> Departure:
    r"""Whether numbers are uniform although parameters were fitted (Neyman's smooth test, efficient scores).

    Args:
        u: distribution function at each draw, `(m,)`.
        scores: derivatives of the log density by each parameter, `(m, r)`.
    """
    m = len(u)
    functions = np.stack([legendre(u, k) for k in range(1, SHAPES + 1)], 1)
    cross = functions.T @ scores / m
    covariance = np.eye(SHAPES) - cross @ np.linalg.pinv(scores.T @ scores / m) @ cross.T
    values, vectors = np.linalg.eigh(covariance)
    keep = values > 0.02
    mean = vectors[:, keep].T @ functions.mean(0)
    t, q = float(m * (np.square(mean) / values[keep]).sum()), int(keep.sum())
    return departure((t - q) * m, q, m)


# --- spheres


def _on_sphere(space: Filled, z: Array, z_next: Array, seed: int) -> Surroundings:
    n, d = z.shape
    where = where_of(space)
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    y = z_next / np.linalg.norm(z_next, axis=1, keepdims=True)
    fall = 0.5 * np.square(y - z).sum(1)
    error = float(fall.std(ddof=1)) / math.sqrt(n)
    mean = float(fall.mean())
    kappa = concentration(1 - mean, d)
    high = concentration(1 - max(mean - 1.96 * error, mean * 1e-3), d)
    low = concentration(1 - (mean + 1.96 * error), d)
    law = _cosines(d, kappa)
    u = np.interp(np.arccos(np.clip(1 - fall, -1, 1)) if mean > 0.01 else 2 * np.arcsin(np.sqrt(fall / 2)), *law)
    shape = _shape(u, (mean - fall)[:, None])
    spread = _spread_of_cosine(kappa, d)
    varying = of_products((mean - fall)[:, None] / fall.std(), _whitened(np.hstack([z, z * z])))
    varying = varying.scaled(fall.std() / (max(kappa, 1e-9) * spread))  # of the cosine -> of the logarithm of kappa
    findings, p_values = [], [shape.p_value]
    tangent = y - (1 - fall)[:, None] * z
    length = np.linalg.norm(tangent, axis=1, keepdims=True)
    if d > 2 and bool((length > 0).all()):
        w = tangent / length
        drift, turned, peaked = _drift(w, z), _anisotropy(w, z), _towards_axes(w, z)
        p_values += [turned.p_value, peaked]
        findings += [
            _finding(
                "centred at the anchor", drift, SHIFT, where, "steps lean to one side by {:.2g} of their size", "lean"
            ),
            _finding(
                "one concentration in all directions",
                turned,
                SCALE,
                where,
                "the scale differs between directions by {:.1%}, root mean square",
                "log scale between directions",
            ),
        ]
    informative = Finding(
        "a positive says something of its anchor",
        "yes" if low > 0 else "unknown",
        f"the concentration is {kappa:.4g}, 95% interval [{low:.4g}, {high:.4g}]",
        kappa,
        low,
        high,
        None,
        "concentration",
        where,
    )
    everywhere = _finding(
        "one concentration everywhere",
        varying,
        SCALE,
        where,
        "the concentration varies with the anchor by {:.1%}, root mean square",
        "log concentration over anchors",
    )
    p_value = departures.together(p_values)
    matched = answer(shape, SHAPE, p_value)
    name, value, interval, said = "von Mises-Fisher", kappa, (low, high), ""
    if p_value < LEVEL and d <= WIDEST:
        name, said = _likeliest(z, y, kappa, seed)
        matched = "no" if name != "von Mises-Fisher" or matched == "no" else matched
        if name == "von Mises-Fisher" and matched == "no":
            name = "none of these"
    elif matched == "no":
        name = "none of these"
    elif low == 0:
        name = "cannot tell"
    is_or_not = f"the likeliest of those tried is {name}" if said else f"it is {name}"
    family = Finding(
        "von Mises-Fisher conditional",
        matched if low > 0 else "unknown",
        f"{is_or_not}{said}; its cosines depart from those of von Mises-Fisher by {shape.size:.1%}, p = {p_value:.2g}",
        shape.size,
        shape.low,
        shape.high,
        p_value,
        "departure of the density, root mean square",
        where,
    )
    edges = np.linspace(float((1 - fall).min()), 1.0, 41)
    seen = np.histogram(1 - fall, edges, density=True)[0]
    below = np.interp(np.arccos(np.clip(edges, -1, 1)), *law)
    fitted = -np.diff(below) / np.diff(edges)
    picture = Histogram(
        f"cosine of z and z', {where}",
        tuple(edges.tolist()),
        tuple(seen.tolist()),
        tuple(fitted.tolist()),
        f"von Mises-Fisher({kappa:.4g})",
    )
    parameter = ("concentration", value, *interval)
    if name.startswith("projected"):
        parameter = ("", None, None, None)  # type: ignore[assignment] # its scale is no concentration
    return Surroundings(
        Family(name, where, *parameter, (), n), (family, informative, everywhere, *findings), (picture,)
    )


def _finding(
    condition: str, found: Departure, matters: float, where: str, words: str, measure: str, extra: str = ""
) -> Finding:
    because = f"{words.format(found.size)}, 95% interval [{found.low:.3g}, {found.high:.3g}], p = {found.p_value:.2g}"
    return Finding(
        condition,
        answer(found, matters),
        because + extra,
        found.size,
        found.low,
        found.high,
        found.p_value,
        measure,
        where,
    )


def mean_cosine(kappa: float, d: int) -> float:
    r"""$I_{d/2}(\kappa) / I_{d/2-1}(\kappa)$."""
    below = float(special.ive(d / 2 - 1, kappa)) if kappa > 0 else 0.0
    if below > 1e-200:
        return float(special.ive(d / 2, kappa)) / below
    ratio = 0.0  # Gauss's continued fraction: the Bessel functions themselves underflow
    for k in range(int(200 + 2 * kappa), 0, -1):
        ratio = kappa / (2 * (d / 2 - 1 + k) + kappa * ratio)
    return ratio


def concentration(cosine: float, d: int) -> float:
    """The concentration of a von Mises-Fisher law with that mean cosine; 0 where it is not above 0."""
    if cosine <= 0:
        return 0.0
    cosine = min(cosine, 1 - 1e-12)
    start = cosine * (d - cosine**2) / (1 - cosine**2)
    low, high = 0.5 * start, 2 * start
    while mean_cosine(low, d) > cosine:
        low /= 2
    while mean_cosine(high, d) < cosine and high < 1e14:
        high *= 2
    if high > 1e9:
        return (d - 1) / (2 * (1 - cosine))  # the limit of large concentrations; Bessel functions lose their digits
    return float(optimize.brentq(lambda k: mean_cosine(k, d) - cosine, low, high, xtol=1e-10 * start, rtol=1e-12))


def _spread_of_cosine(kappa: float, d: int) -> float:
    """The variance of the cosine."""
    a = mean_cosine(kappa, d)
    if kappa > 1e4 * d:
        return (d - 1) / (2 * kappa**2)
    return max(1 - a * a - (d - 1) / kappa * a, 1e-18) if kappa > 0 else 1 / d


@lru_cache(maxsize=8)
def _cosines(d: int, kappa: float) -> tuple[Array, Array]:
    """Angles between z and z', and the probability of a smaller one."""

    def log_density(angle: Array) -> Array:
        out: Array = -2 * kappa * np.square(np.sin(angle / 2)) + (d - 2) * np.log(np.maximum(np.sin(angle), 1e-300))
        return out

    low, high = 0.0, math.pi
    for _ in range(12):  # narrow down to where there is any probability
        angle = np.linspace(low, high, 2001)
        log = log_density(angle)
        there = np.flatnonzero(log > log.max() - 45)
        low, high = angle[max(there[0] - 1, 0)], angle[min(there[-1] + 1, 2000)]
    angle = np.linspace(low, high, 16001)
    log = log_density(angle)
    density = np.exp(log - log.max())
    below = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    return angle, below / below[-1]


def _sampled_pairs(kernel: Callable[[Rows, Rows], Array], n: int) -> Array:
    """A kernel of rows between some blocks of rows, flat, without the diagonal."""
    size = min(400, n // 2)
    found = []
    for start in range(0, n - 2 * size + 1, max(2 * size, (n - 2 * size) // 4 + 1)):
        first, second = np.arange(start, start + size), np.arange(start + size, start + 2 * size)
        found.append(kernel(first, second).ravel())
    return np.concatenate(found)


def _drift(w: Array, z: Array) -> Departure:
    """Whether unit tangent vectors lean to one side: on the whole, or as a linear function of the anchor."""
    f = np.hstack([np.ones((len(z), 1)), _whitened(z)])
    total = float(np.square(w.T @ f).sum())
    alone = np.square(f).sum(1)
    between = _sampled_pairs(lambda i, j: (w[i] @ w[j].T) * (f[i] @ f[j].T), len(w))
    return departures.of_kernel(total, alone, between, len(w))


def _anisotropy(w: Array, z: Array) -> Departure:
    """Whether unit tangent vectors prefer directions of the surrounding space; in logarithms of the scale."""
    n, d = z.shape
    m = d - 1
    moment = (w.T @ w - (n * np.eye(d) - z.T @ z) / m).ravel()

    def kernel(i: Rows, j: Rows) -> Array:
        wz, zw = np.square(w[i] @ z[j].T), np.square(z[i] @ w[j].T)
        value: Array = np.square(w[i] @ w[j].T) - (2 - wz - zw) / m + (d - 2 + np.square(z[i] @ z[j].T)) / m**2
        return value

    alone = np.full(n, 1 - 1 / m)
    found = departures.of_kernel(float(moment @ moment), alone, _sampled_pairs(kernel, n), n)
    return found.scaled(0.5 * math.sqrt(d))


def _towards_axes(w: Array, z: Array) -> float:
    """The p-value that unit tangent vectors are uniform, from their fourth powers: noise of another norm than 2."""
    m = z.shape[1] - 1
    excess = (w**4).sum(1) - 3 * np.square(1 - z * z).sum(1) / (m * (m + 2))
    return float(2 * stats.norm.sf(abs(excess.mean()) / (excess.std() / math.sqrt(len(excess)))))


def _likeliest(z: Array, y: Array, kappa: float, seed: int) -> tuple[str, str]:
    """The likeliest of von Mises-Fisher and noise that is added and projected, on some rows."""
    from zhat.dgp import VonMisesFisher

    d = z.shape[1]
    rows = np.random.default_rng(seed).permutation(len(z))[:COMPARED]
    space = Sphere(d)
    anchor, target = (torch.from_numpy(space_rows[rows]) for space_rows in (z, y))
    likely = {"von Mises-Fisher": VonMisesFisher(kappa).log_prob(target, anchor).numpy()}
    width = float(np.sqrt(np.square(y - z).mean()))
    few = slice(0, 120)
    for name, family in (("normal", Normal), ("Laplace", Laplace)):

        def cost(log_scale: float, family: type = family) -> float:
            law = Around(family(space, math.exp(log_scale)))
            return -float(law.log_prob(target[few], anchor[few]).mean())

        centre = math.log(width if name == "normal" else width / math.sqrt(2))
        found = optimize.minimize_scalar(
            cost, bounds=(centre - 1, centre + 1.5), method="bounded", options={"xatol": 0.05}
        )
        law = Around(family(space, math.exp(found.x)))
        likely[f"projected {name}"] = law.log_prob(target, anchor).numpy()
    names = sorted(likely, key=lambda name: -likely[name].mean())
    gap = likely[names[0]] - likely[names[1]]
    z_score = gap.mean() / (gap.std() / math.sqrt(len(gap)))
    said = f" (ahead of {names[1]} by {gap.mean():.3g} nats a row on {len(rows):,} rows)"
    return (names[0], said) if z_score > 2 else ("cannot tell", said)


# --- boxes and R^d: independent noise of density exp(-|t / a_c|^p), cut off at the walls


@dataclass(frozen=True)
class _Entries:
    """Steps and how far the walls are, `(m, d)`; infinitely far where there are none."""

    step: Array
    below: Array
    above: Array

    def of(self, rows: Rows) -> _Entries:
        return _Entries(self.step[rows], self.below[rows], self.above[rows])

    @property
    def walled(self) -> bool:
        return bool(np.isfinite(self.above[0, 0]))


def _mass(p: float, x: Array) -> Array:
    """The probability that |t| < x for the density exp(-|t|^p) / 2 Gamma(1 + 1/p)."""
    grid, mass = _mass_table(round(p, 12))
    return np.interp(x, grid, mass)


@lru_cache(maxsize=64)
def _mass_table(p: float) -> tuple[Array, Array]:
    reach = 45.0 ** (1 / p)
    grid = np.concatenate([[0.0], reach * np.linspace(1 / 2000, 1, 2000) ** max(1.0, 1.5 / p)])
    return grid, special.gammainc(1 / p, grid**p)


def _log_density(entries: _Entries, p: float, scales: Array) -> Array:
    out: Array = -np.power(np.abs(entries.step) / scales, p) - np.log(2 * scales) - math.lgamma(1 + 1 / p)
    if entries.walled:
        inside = 0.5 * (_mass(p, entries.below / scales) + _mass(p, entries.above / scales))
        out -= np.log(np.maximum(inside, 1e-300))
    return out


def _distribution(entries: _Entries, p: float, scales: Array) -> Array:
    """The distribution function at each step, given the walls."""
    size = 0.5 * special.gammainc(1 / p, np.power(np.abs(entries.step) / scales, p))
    share: Array = np.where(entries.step < 0, -size, size)
    below: Array | float = 0.5
    above: Array | float = 0.5
    if entries.walled:
        below = 0.5 * _mass(p, entries.below / scales)
        above = 0.5 * _mass(p, entries.above / scales)
    return np.clip((share + below) / (below + above), 0.0, 1.0)


_H = 1e-4


def _scores(entries: _Entries, p: float, scales: Array) -> tuple[Array, Array]:
    """Derivatives of each log density by log p and by the logarithm of its scale, `(m, d)` each."""
    by_p = _log_density(entries, p * math.exp(_H), scales) - _log_density(entries, p * math.exp(-_H), scales)
    by_a = _log_density(entries, p, scales * math.exp(_H)) - _log_density(entries, p, scales * math.exp(-_H))
    return by_p / (2 * _H), by_a / (2 * _H)


def fit_noise(entries: _Entries) -> tuple[float, Array, bool]:
    """The exponent and the scales that make the steps most likely, and whether the search came to rest inside."""
    few = entries.of(np.arange(0, len(entries.step), max(1, entries.step.size // 10_000)))
    size = np.abs(few.step).mean(0)
    if not (size > 0).all():
        return math.nan, size, False

    def cost(x: Array) -> float:
        p = math.exp(min(max(x[0], math.log(RANGE[0]) - 1), math.log(RANGE[1]) + 1))
        return -float(_log_density(few, p, size * math.exp(min(max(x[1], -4), 4))).mean())

    best = optimize.minimize(cost, [math.log(1.5), 0.2], method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-6})
    p, scales = math.exp(best.x[0]), size * math.exp(best.x[1])
    for _ in range(40):
        by_p, by_a = _scores(entries, p, scales)
        info_a = np.square(by_a).sum(0)
        cross, info_p = (by_p * by_a).sum(0), float(np.square(by_p).sum())
        left = info_p - float((cross**2 / info_a).sum())
        move_p = float(by_p.sum() - (cross / info_a * by_a.sum(0)).sum()) / max(left, 1e-300)
        move_a = (by_a.sum(0) - cross * move_p) / info_a
        most = max(abs(move_p), float(np.abs(move_a).max()))
        shrink = min(1.0, 0.3 / most)
        p, scales = p * math.exp(shrink * move_p), scales * np.exp(shrink * move_a)
        if not RANGE[0] < p < RANGE[1]:
            return p, scales, False
        if most < 1e-4:
            return p, scales, True
    return p, scales, False


def _error_of_exponent(entries: _Entries, p: float, scales: Array) -> float:
    """The standard error of log p: a sandwich of curvature and of the spread of the scores of rows."""
    h = 2e-3

    def gradient(log_p: float, log_a: float) -> Array:
        by_p, by_a = _scores(entries, p * math.exp(log_p), scales * math.exp(log_a))
        return np.array([by_p.sum(), by_a.sum()])

    curve = -np.stack([(gradient(h, 0) - gradient(-h, 0)) / (2 * h), (gradient(0, h) - gradient(0, -h)) / (2 * h)], 1)
    by_p, by_a = _scores(entries, p, scales)
    rows = np.stack([by_p.sum(1), by_a.sum(1)], 1)
    inverse = np.linalg.inv(0.5 * (curve + curve.T))
    covariance = inverse @ (rows.T @ rows) @ inverse
    return math.sqrt(max(float(covariance[0, 0]), 0.0))


def _with_exponent(space: Filled, z: Array, z_next: Array, seed: int) -> Surroundings:
    where = where_of(space)
    n, d = z.shape
    most = max(ENTRIES // d, 500)
    if n > most:
        rows = np.sort(np.random.default_rng(seed).permutation(n)[:most])
        z, z_next = z[rows], z_next[rows]
    far = np.full(z.shape, np.inf)
    walled = space.shape == "box"
    low, high = np.array(space.low), np.array(space.high)
    entries = _Entries(z_next - z, z - low if walled else far, high - z if walled else far)
    p, scales, settled = fit_noise(entries)
    if not settled:
        because = f"no exponent between {RANGE[0]:g} and {RANGE[1]:g} makes the steps most likely"
        return _none(space, len(z), because, "unknown" if RANGE[0] < p < RANGE[1] else "no")
    error = _error_of_exponent(entries, p, scales)
    interval = (p * math.exp(-1.96 * error), p * math.exp(1.96 * error))
    sure = (p * math.exp(-3.29 * error), p * math.exp(3.29 * error))
    u = _distribution(entries, p, scales)
    by_p, by_a = _scores(entries, p, scales)
    info = np.square(by_a).mean(0)
    shape = _shape(u.ravel(), np.stack([by_p.ravel(), by_a.ravel()], 1))
    name = _named(p, sure)
    matched = answer(shape, SHAPE)
    if matched == "no":
        name = "none of these"
    told = "unknown" if name == "cannot tell" and matched != "no" else matched
    family = Finding(
        "conditional of one family",
        told,
        f"it is {name}, exponent {p:.3g} [{interval[0]:.3g}, {interval[1]:.3g}]; its density departs from that by "
        f"{shape.size:.1%}, p = {shape.p_value:.2g}",
        shape.size,
        shape.low,
        shape.high,
        shape.p_value,
        "departure of the density, root mean square",
        where,
    )
    white = _whitened(np.hstack([z, z * z]))
    strength = (by_a - by_a.mean(0)).sum(1)
    varying = of_products(strength[:, None] / strength.std(), white).scaled(strength.std() / float(info.sum()))
    drift = of_products(legendre(u, 1), _whitened(z)).scaled(1 / math.sqrt(d))
    mean_side = departures.of_uncorrelated(legendre(u, 1)).scaled(1 / math.sqrt(d))
    drift = max(drift, mean_side, key=lambda found: found.square if found.p_value < LEVEL else -1.0)
    findings = [
        family,
        _finding(
            "centred at the anchor",
            drift,
            SHIFT,
            where,
            "z' is shifted from z by {:.2g} of a step, root mean square over anchors",
            "shift in standard deviations",
        ),
        _finding(
            "one concentration everywhere",
            varying,
            SCALE,
            where,
            "the scale of steps varies with the anchor by {:.1%}, root mean square",
            "log scale over anchors",
        ),
    ]
    if d > 1:
        weight = info * len(z)
        logs = np.log(scales)
        t = float((weight * np.square(logs - (weight * logs).sum() / weight.sum())).sum())
        total = int(weight.sum())
        apart = departure((t - d + 1) * total, d - 1, total)
        findings.append(
            _finding(
                "one concentration in all directions",
                apart,
                SCALE,
                where,
                "the scale differs between columns by {:.1%}, root mean square",
                "log scale between columns",
                f"; {scales.min():.3g} to {scales.max():.3g}",
            )
        )
        one, two = legendre(u, 1), legendre(u, 2)
        both = [of_column_pairs(one), of_column_pairs(two)]
        m = len(z)
        joint = departure(sum(b.square for b in both) * m * (m - 1), d * (d - 1), m)
        largest = float(np.abs(np.corrcoef(u, rowvar=False) - np.eye(d)).max())
        findings.append(
            _finding(
                "steps independent in each column",
                joint,
                DENSITY,
                where,
                "the density of pairs of steps departs from independence by {:.1%}",
                "departure of the density, root mean square",
                f"; the largest rank correlation is {largest:.2f}",
            )
        )
    return Surroundings(
        Family(name, where, "exponent", p, *interval, tuple(float(a) for a in scales), len(z)),
        tuple(findings),
        (_steps(entries, p, scales, where),),
    )


def _named(p: float, sure: tuple[float, float]) -> str:
    """What a law with this exponent is called, given an interval that misses it once in a thousand."""
    holds = [q for q in (1.0, 2.0) if sure[0] <= q <= sure[1] or abs(p / q - 1) < 0.02]
    if len(holds) == 2 or sure[1] / sure[0] > 2:
        return "cannot tell"
    return {1.0: "Laplace", 2.0: "normal"}[holds[0]] if holds else "generalised normal"


def _steps(entries: _Entries, p: float, scales: Array, where: str) -> Histogram:
    t = (entries.step / scales).ravel()
    reach = float(np.quantile(np.abs(t), 0.998))
    edges = np.linspace(-reach, reach, 49)
    middle = 0.5 * (edges[1:] + edges[:-1])
    seen = np.histogram(t, edges)[0] / len(t) / np.diff(edges)
    density = np.exp(-(np.abs(middle) ** p) - math.log(2) - math.lgamma(1 + 1 / p))
    if entries.walled:  # the mixture over anchors, each cut off at its own walls
        some = entries.of(np.arange(0, len(entries.step), max(1, len(entries.step) // 500)))
        below, above = (side / scales for side in (some.below, some.above))
        mass = 0.5 * (_mass(p, below) + _mass(p, above))
        share = [float((((m > -below) & (m < above)) / mass).mean()) for m in middle]
        density = density * np.array(share)
    return Histogram(
        f"steps z' - z, {where}, in units of the fitted scale",
        tuple(edges.tolist()),
        tuple(seen.tolist()),
        tuple(density.tolist()),
        f"exponent {p:.3g}",
    )
