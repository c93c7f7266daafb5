"""A judge for settings of one's own: which row scores highest, and from which others the seeds can tell it apart."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from scipy import stats

from zhat.experiment.judges import Evidence
from zhat.fresh import describe
from zhat.results import Judged, Judgement, RowResult

LEVEL = 0.95


@dataclass(frozen=True)
class Ranked:
    """The row with the highest mean held-out score, and for each other row whether the seeds tell the two apart.

    Where all rows share one world, seed k of every row runs in the same world, so differences are taken seed by seed.
    The intervals are those of Student's t, corrected by Bonferroni for the number of rows the best one is compared
    with. They do not account for the choice of the best row by the same scores.
    """

    load: ClassVar[None] = None

    def __call__(self, evidence: Evidence) -> Judgement:
        """The order of the rows that are finished."""
        scored = [row for row in evidence.rows if row.learned is not None]
        if len(scored) < 2:
            return Judgement(rule=_rule(1, paired=True))
        ranked = sorted(scored, key=lambda row: -_mean(row))
        best, others = ranked[0], ranked[1:]
        paired = len({describe(row.process) for row in evidence.chosen}) == 1
        claim = (
            f"{best.name} has the highest held-out {evidence.part.score}: {_mean(best):.2f} "
            f"({'one seed' if len(best.seeds) == 1 else f'mean of {len(best.seeds)} seeds'})"
        )
        rule = _rule(len(others), paired=paired)
        claims = tuple(_judged(best, row, evidence.part.score, len(others), rule, paired=paired) for row in others)
        return Judgement(rule=rule[0].upper() + rule[1:] + ".", claim=claim, claims=claims)


def _rule(comparisons: int, *, paired: bool) -> str:
    level = 100 * (1 - (1 - LEVEL) / comparisons)
    how = "taken seed by seed, because rows share their worlds" if paired else "of independent seeds"
    return (
        f"the {level:.4g}% interval of the difference of mean held-out scores lies above 0 (Student's t over seeds, "
        f"differences {how}; 95% for all {comparisons} comparisons together)"
        if comparisons > 1
        else f"the 95% interval of the difference of mean held-out scores lies above 0 (Student's t over seeds, "
        f"differences {how})"
    )


def _mean(row: RowResult) -> float:
    return row.learned.held_out_mean if row.learned is not None else -math.inf


def _judged(best: RowResult, other: RowResult, score: str, comparisons: int, rule: str, *, paired: bool) -> Judged:
    """Whether the seeds tell the best row from another."""
    claim = f"{best.name} recovers more than {other.name}"
    assert best.learned is not None
    assert other.learned is not None
    level, same = 1 - (1 - LEVEL) / comparisons, paired and best.seeds == other.seeds
    low, high = difference(_by_seed(best), _by_seed(other), level=level, paired=same)
    points = _mean(best) - _mean(other)
    if low is None:
        return Judged(claim, rule, None, f"{points:.2f} points of {score}; one seed gives no interval.")
    said = f"{points:.2f} points of {score}, [{low:.2f}, {high:.2f}]."
    return Judged(claim, rule, True if low > 0 else None, said)


def _by_seed(row: RowResult) -> tuple[float, ...]:
    return row.learned.held_out if row.learned is not None else ()


def difference(
    first: Sequence[float], second: Sequence[float], *, level: float = LEVEL, paired: bool = True
) -> tuple[float | None, float | None]:
    """An interval for the difference of two means over seeds; no ends where a side has one seed alone.

    Args:
        first: a score of each seed.
        second: of the other setting; the same seeds in the same order, if `paired`.
        level: of the interval.
        paired: take differences seed by seed; otherwise by Welch's formula.

    Example:
        >>> low, high = difference([3.0, 4.0, 5.0], [1.0, 2.0, 3.0])
        >>> low, high
        (2.0, 2.0)
    """
    if min(len(first), len(second)) < 2:
        return None, None
    if paired:
        each = [a - b for a, b in zip(first, second, strict=True)]
        centre, error, freedom = statistics.fmean(each), statistics.stdev(each) / math.sqrt(len(each)), len(each) - 1.0
    else:
        parts = [statistics.variance(side) / len(side) for side in (first, second)]
        centre, error = statistics.fmean(first) - statistics.fmean(second), math.sqrt(sum(parts))
        below = sum(part**2 / (len(side) - 1) for part, side in zip(parts, (first, second), strict=True))
        freedom = sum(parts) ** 2 / below if below else 1.0
    reach = float(stats.t.ppf(0.5 + level / 2, freedom)) * error
    return centre - reach, centre + reach
