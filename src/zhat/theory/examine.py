"""Which conditions of the theorems hold in rows of latents, or of a representation: measured, with intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special, stats

from zhat import _checks
from zhat.equivalence import AFFINE, ORTHOGONAL, SCALED_PERMUTATION
from zhat.errors import BadInput, TooFewRows
from zhat.results import (
    Answer,
    Examination,
    Family,
    Filled,
    Finding,
    Histogram,
    Prediction,
    Suggestion,
    Truth,
    worst,
)
from zhat.theory import uniformity
from zhat.theory.around import DENSITY, answer, surroundings, where_of
from zhat.theory.departures import Array, Departure
from zhat.theory.filling import centre, spaces_filled

LEAST = 200  # rows
FEWEST_VALUES = 50  # a column with fewer different values is no continuous latent
SURE_OF_SERIES = 1e-6  # p-value of the correlation of neighbouring rows, from which on they are a series


def examine(z: Any, z_next: Any = None, *, name: str = "the rows", seed: int = 0) -> Examination:
    r"""Which conditions of the theorems hold in rows of latents z, or of a representation of them, and by how much.

    It asks which space the rows fill, how uniformly, and how the next rows z' lie around them: the family of the
    conditional and its parameter by likelihood, whether it is centred at the anchor, and the same everywhere and in all
    directions. Each answer is yes, no, or unknown where these rows cannot tell, with a number and its 95% interval. A
    number below which a departure does not matter decides between the answers, because with enough rows every test of
    an exact statement fails: 25% of the density of a marginal, 15% of that of a conditional, 15% of a scale, 0.1
    standard deviations of a shift.

    A model that recovered its latents up to the class of a theorem has a representation that meets the theorem's
    conditions itself, so their failure in a representation is evidence against recovery; their success is not evidence
    for it.

    Args:
        z: latents or a representation, `(n, d)`.
        z_next: the positive of each row, `(n, d)`; None asks about the marginal alone.
        name: of the rows, for messages and pages.
        seed: of the choice of rows where there are more than a fit needs.

    Where neighbouring rows are alike, as in a recorded series, every so-many-th row counts for the marginal; of rows
    that occur several times, one.

    Example:
        >>> import torch
        >>> from zhat.dgp import Sphere, Uniform, VonMisesFisher
        >>> generator = torch.Generator().manual_seed(0)
        >>> z = Uniform(Sphere(3)).sample(4000, generator=generator)
        >>> found = examine(z, VonMisesFisher(20.0).sample(z, generator=generator))
        >>> found["uniform marginal"].holds, found["von Mises-Fisher"].holds
        ('yes', 'yes')
    """
    first, second, notes = _rows(z, z_next)
    both = first if second is None else np.concatenate([first, second])
    spaces = spaces_filled(both)
    counting = _counting(first, notes)
    findings = [finding for space in spaces for finding in _marginal(space, first[counting])]
    findings += _between(spaces, first[counting])
    histograms = [_values(first[counting], space) for space in spaces]
    families: list[Family] = []
    if second is not None:
        for space in spaces:
            columns = list(space.columns)
            around = surroundings(space, first[:, columns], second[:, columns], seed)
            families.append(around.family)
            findings += around.findings
            histograms += around.histograms
    return Examination(
        name=name,
        n=len(first),
        used=len(counting),
        dim=first.shape[1],
        paired=second is not None,
        spaces=spaces,
        families=tuple(families),
        findings=tuple(findings),
        prediction=_theorem(spaces, families, findings) if second is not None else None,
        suggestion=_suggestion(spaces, families),
        histograms=tuple(histograms),
        notes=tuple(notes),
    )


def _rows(z: Any, z_next: Any) -> tuple[Array, Array | None, list[str]]:
    """Checked rows in float64, without columns that say nothing, and what is odd about them."""
    given = _checks.matrix(z, "z")
    first = given.cpu().double().numpy()
    second = None
    if z_next is not None:
        checked = _checks.matrix(z_next, "z_next")
        if checked.shape != given.shape:
            raise BadInput(
                f"`z_next` must have the shape of `z`, because each row is the positive of a row: "
                f"{tuple(checked.shape)} came for {tuple(given.shape)}."
            )
        second = checked.cpu().double().numpy()
    n, d = first.shape
    needed = max(LEAST, 4 * d)
    if n < needed:
        raise TooFewRows(f"examining {d} columns needs at least {needed} rows, but {n} came.", needed=needed)
    notes = []
    size = np.abs(first).max(0)
    _checks.moderate(given, "z")
    still = np.ptp(first, axis=0) <= 1e-7 * size
    if still.any():
        columns = ", ".join(str(c + 1) for c in np.flatnonzero(still)[:8])
        if still.all():
            raise BadInput(f"every column of `z` holds one value only (column {columns}): there is nothing to examine.")
        notes.append(f"column {columns} holds one value only and was left out: is the representation collapsed?")
        first, second = first[:, ~still], None if second is None else second[:, ~still]
    few = [c for c in range(first.shape[1]) if len(np.unique(first[:, c])) < FEWEST_VALUES]
    if few:
        raise BadInput(
            f"column {few[0] + 1} of `z` takes {len(np.unique(first[:, few[0]]))} different values; theorems speak of "
            f" continuous latents, and {FEWEST_VALUES} values are the least that is examined. Leave such columns out."
        )
    rank = np.linalg.matrix_rank((first - first.mean(0)) / first.std(0), tol=1e-5 * math.sqrt(len(first)))
    if rank < first.shape[1]:
        notes.append(
            f"the columns are linearly dependent: they span {rank} of {first.shape[1]} dimensions, so no density exists"
        )
    return first, second, notes


def _counting(z: Array, notes: list[str]) -> Any:
    """Which rows count as draws of their own: of equal rows the first, of a series every so-many-th."""
    _, where = np.unique(z, axis=0, return_index=True)
    rows = np.sort(where)
    if len(rows) < len(z):
        notes.append(f"{len(z) - len(rows):,} rows occur several times and count once for the marginal")
    stride = _stride(z[rows])
    if stride > 1:
        rows = rows[::stride]
        notes.append(
            f"neighbouring rows are alike, as in a series: one row in {stride} counts for the marginal, "
            f"{len(rows):,} in all"
        )
    return rows


def _stride(z: Array) -> int:
    """How far apart rows must be to be draws of their own; 1 where neighbours are no more alike than others."""
    n, d = z.shape
    white = (z - z.mean(0)) / z.std(0)
    first = np.square((white[1:] * white[:-1]).mean(0)).sum() * (n - 1)
    if stats.chi2.sf(first * min(1.0, d / _effective(white)), max(1.0, _effective(white))) > SURE_OF_SERIES:
        return 1
    longest = 1.0
    size = 1 << (2 * n - 1).bit_length()
    for column in np.hstack([white, np.square(white) - 1]).T:
        spectrum = np.abs(np.fft.rfft(column - column.mean(), size)) ** 2
        alike = np.fft.irfft(spectrum, size)[: n // 2]
        alike = alike / alike[0]
        end = np.flatnonzero(alike < 2 / math.sqrt(n))
        longest = max(longest, 1 + 2 * float(alike[1 : end[0] if len(end) else len(alike)].sum()))
    return int(min(math.ceil(2 * longest), max(1, n // 50)))


def _effective(white: Array) -> float:
    """How many columns there are, if columns that are alike count together."""
    moment = white.T @ white / len(white)
    return float(np.trace(moment) ** 2 / np.square(moment).sum())


def _marginal(space: Filled, z: Array) -> list[Finding]:
    part, where = z[:, list(space.columns)], where_of(space)
    if space.shape == "unbounded":
        because = "the columns end in tails, not at walls; a uniform law needs a space of finite volume"
        found = [Finding("uniform marginal", "no", because, where=where)]
    elif space.shape == "unknown":
        because = "these rows cannot tell whether the columns end at walls"
        found = [Finding("uniform marginal", "unknown", because, where=where)]
    else:
        if space.shape == "sphere":
            unit = part / np.linalg.norm(part, axis=1, keepdims=True)
            p_value, size = uniformity.on_sphere(unit)
        elif space.shape == "box":
            p_value, size = uniformity.in_box(part)
        else:
            p_value, size = uniformity.in_ball(part)
        found = [_of_density("uniform marginal", p_value, size, where, "from uniform")]
    if space.shape in ("box", "unbounded", "unknown") and len(space.columns) > 1:
        p_value, size, largest = uniformity.independent(part)
        extra = f"; the largest rank correlation is {largest:.2f}"
        found.append(_of_density("independent coordinates", p_value, size, where, "from independence", extra))
    return found


def _of_density(
    condition: str, p_value: float, size: Departure, where: str, from_what: str, extra: str = ""
) -> Finding:
    holds = answer(size, DENSITY, p_value)
    because = (
        f"the density departs {from_what} by {size.size:.1%} (root mean square), 95% interval "
        f"[{size.low:.1%}, {size.high:.1%}], p = {p_value:.2g}{extra}"
    )
    measure = "departure of the density, root mean square"
    return Finding(condition, holds, because, size.size, size.low, size.high, p_value, measure, where)


def _between(spaces: tuple[Filled, ...], z: Array) -> list[Finding]:
    """Whether the spaces of a product are independent of each other."""
    found = []
    for i, one in enumerate(spaces):
        for other in spaces[i + 1 :]:
            size = uniformity.groups_independent(z[:, list(one.columns)], z[:, list(other.columns)])
            where = f"{where_of(one)} and {where_of(other)}"
            found.append(_of_density("independent groups of columns", size.p_value, size, where, "from independence"))
    return found


def _values(z: Array, space: Filled) -> Histogram:
    """All coordinates of a space, beside what they would be under a uniform law."""
    part, d = z[:, list(space.columns)], len(space.columns)
    low, high = np.array(space.low), np.array(space.high)
    where = where_of(space)
    if space.shape == "box":
        share = ((part - low) / (high - low)).ravel()
        seen, edges = np.histogram(share, 40, (0.0, 1.0), density=True)
        return _pictured(f"coordinates in shares of the box, {where}", edges, seen, np.ones(40), "uniform")
    if space.shape in ("sphere", "ball") and space.radius:
        power = (d - 3) / 2 if space.shape == "sphere" else (d - 1) / 2
        middle = part if space.shape == "sphere" else part - centre(part)
        seen, edges = np.histogram((middle / space.radius).ravel(), 40, (-1.0, 1.0), density=True)
        below = special.betainc(power + 1, power + 1, (edges + 1) / 2)
        return _pictured(
            f"coordinates over the radius, {where}", edges, seen, np.diff(below) / np.diff(edges), "uniform"
        )
    white = ((part - part.mean(0)) / part.std(0)).ravel()
    seen, edges = np.histogram(white, 40, (-4.0, 4.0), density=True)
    middle = 0.5 * (edges[1:] + edges[:-1])
    normal = np.exp(-0.5 * middle**2) / math.sqrt(2 * math.pi)
    return _pictured(f"coordinates in standard deviations, {where}", edges, seen, normal, "normal")


def _pictured(name: str, edges: Array, seen: Array, fitted: Array, law: str) -> Histogram:
    return Histogram(name, tuple(edges.tolist()), tuple(seen.tolist()), tuple(fitted.tolist()), law)


def _theorem(spaces: tuple[Filled, ...], families: list[Family], findings: list[Finding]) -> Prediction:
    """The theorem whose space and family these are, its conditions answered by the findings."""
    notes = (
        "rows cannot answer whether the mixing is injective, whether the encoder ends in a matching space, and whether "
        "the loss is at its minimum",
    )

    def asked(condition: str) -> Answer:
        found = [f for f in findings if f.condition == condition]
        truth: Truth = worst([f.holds for f in found])
        telling = next((f for f in found if f.holds == truth), None)
        return Answer(condition, truth, telling.because if telling else "it was not measured")

    kinds = {space.shape for space in spaces}
    same = ("centred at the anchor", "one concentration everywhere", "one concentration in all directions")
    if kinds == {"sphere"} and len(spaces) == 1:
        wanted = ["uniform marginal", "von Mises-Fisher conditional", *same[0 if len(spaces[0].columns) > 2 else 1 :]]
        if len(spaces[0].columns) == 2:
            wanted = wanted[:3]
        answers = (Answer("latents on a sphere", "yes", f"they fill {spaces[0]}"), *map(asked, wanted))
        return Prediction("Theorem 2", "zimmermann2021", ORTHOGONAL, False, None, answers, notes)
    if kinds <= {"box", "ball", "unknown"} or kinds == {"unbounded"}:
        normal = all(f.name == "normal" for f in families)
        conditions = ["uniform marginal", "conditional of one family", *same]
        if sum(len(s.columns) for s in spaces) > 1:
            conditions.append("steps independent in each column")
        else:
            conditions.remove(same[2])
        body = asked("uniform marginal").holds if kinds <= {"unknown"} else "no" if kinds == {"unbounded"} else "yes"
        said = " times ".join(str(s) for s in spaces)
        answers = (Answer("latents in a convex body", body, f"they fill {said}"), *map(asked, conditions))
        theorem, up_to = ("Theorem 5", AFFINE) if normal else ("Theorem 6", SCALED_PERMUTATION)
        return Prediction(theorem, "zimmermann2021", up_to, True, None, answers, notes)
    return Prediction("", "", None, False, None, ())


def _suggestion(spaces: tuple[Filled, ...], families: list[Family]) -> Suggestion | None:
    """Similarity, temperature and output that match one family on one kind of space."""
    if len(spaces) != 1 or len(families) != 1:
        return None
    space, family = spaces[0], families[0]
    value = family.value
    if value is None:
        return None
    d = len(space.columns)
    if space.shape == "sphere":
        if not family.low:
            return None
        because = f"the concentration is {value:.4g}, and a unit sphere wants its inverse"
        return Suggestion("Dot()", 1 / value, f"Sphere({d})", because)
    p = value
    p = float(next((q for q in (1.0, 2.0, 3.0) if (family.low or 0.0) <= q <= (family.high or q)), p))
    said = f"the exponent is {value:.3g}"
    if p < 1:
        said, p = f"{said}, and 1 is the least for which a norm exists", 1.0
    scale = math.exp(float(np.mean(np.log(family.scales))))
    low, high = min(space.low), max(space.high)
    output = f"Box({d}, {low:.4g}, {high:.4g})" if space.shape == "box" else f"Real({d})"
    because = f"{said}, and the temperature {scale:.3g}^{p:g} leaves the representation as large as the latents"
    return Suggestion(f"NegativeLp({p:.4g})", scale**p, output, because)
