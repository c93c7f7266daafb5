"""What to make of the rows of a part: verdicts beside published numbers, or a claim along an axis.

A judge is a callable `(evidence) -> Judgement`. Judges that compare trained models with each other are in `peers.py`.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import torch

from zhat.results import POINTS, Axis, Bar, Judgement, Measured, Published, Record, RowResult

if TYPE_CHECKING:
    from zhat.experiment.settings import Part, Row

RULE = (
    "reproduced: our mean lies within the published mean ± the largest of 2 published standard deviations, 2 standard "
    f"errors of ours, and {POINTS} points; exceeded: above that; missed: below that. Where the paper shows a failure, "
    "reproduced means failing as well: our mean is not above that range."
)
ERROR = 0.02
RULE_OF_ERRORS = (
    f" Errors (MAE), which the paper prints with two digits: reproduced within {ERROR} of the published mean, exceeded "
    "below that, missed above."
)
RULE_OF_EFFECTS = (
    "This budget trains too briefly for published numbers and claims none of them; they stand here for orientation. "
    "Each row has a bar instead. Where the paper finds the latents, shown: our mean reaches the bar (≥). Where the "
    "paper shows a failure, shown: our mean stays at the bar or below it (≤). Otherwise: not shown."
)


def verdict(published: Published, values: Sequence[float], *, failure: bool = False) -> str:
    """How our seeds compare with a published score, in percent; the rule is `RULE`.

    Example:
        >>> verdict(Published(99.42, 0.05), [99.3, 99.4, 99.5])
        'reproduced'
        >>> verdict(Published(58.26, 3.0), [98.0, 97.0], failure=True)
        'missed'
    """
    mean = statistics.fmean(values)
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    slack = max(published.reach, 2 * error)
    if failure:
        return "reproduced" if mean <= published.mean + slack else "missed"
    if mean > published.mean + slack:
        return "exceeded"
    return "reproduced" if mean >= published.mean - slack else "missed"


def verdict_of_error(published: Published, values: Sequence[float]) -> str:
    """How our seeds compare with a published error; the rule is `RULE_OF_ERRORS`."""
    above = statistics.fmean(values) - published.mean
    return "missed" if above > ERROR else "exceeded" if above < -ERROR else "reproduced"


def verdict_of_effect(bar: Bar, values: Sequence[float]) -> str:
    """Whether our seeds show the effect of a row, in percent; the rule is `RULE_OF_EFFECTS`.

    Example:
        >>> verdict_of_effect(Bar(90.0), [93.0, 91.0]), verdict_of_effect(Bar(75.0, below=True), [93.0, 91.0])
        ('shown', 'not shown')
    """
    return "shown" if bar.met(statistics.fmean(values)) else "not shown"


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a judge sees.

    Attributes:
        part: the table or figure.
        chosen: the rows that were asked for.
        rows: the results of those that are finished, in the same order.
        budget: the name of the budget.
        device: where models can be compared.
        models: reads the trained models of all finished rows, or those that the user gives.
        records: the runs of every finished row, by name.
        readings: a judge may put further numbers of rows here, by row and name.
    """

    part: Part
    chosen: tuple[Row, ...]
    rows: tuple[RowResult, ...]
    budget: str
    device: torch.device
    models: Callable[[], tuple[Any, ...]]
    readings: dict[str, Mapping[str, Measured]] = field(default_factory=dict)
    records: Mapping[str, tuple[Record, ...]] = field(default_factory=dict)

    @property
    def finished(self) -> bool:
        """Whether every row that was asked for is finished."""
        return len(self.rows) == len(self.chosen) or bool(self.part.models)

    @property
    def open(self) -> str:
        """Why a claim about the rows that were asked for cannot be judged; empty where it can."""
        if not self.finished:
            return "not all rows are finished"
        judged = all(row.budget(self.budget).judged for row in self.chosen)
        return "" if judged else f"budget {self.budget} is too short for a verdict"


class Judge(Protocol):
    """What to make of the rows of a part."""

    @property
    def load(self) -> Callable[[str], Any] | None:
        """Makes a model of a name that the user gives instead of the trained ones; None where that has no meaning."""

    def __call__(self, evidence: Evidence) -> Judgement:
        """The judgement; called after each finished row."""


@dataclass(frozen=True)
class Verdicts:
    """Published numbers: every row has its own verdict by the written rule."""

    load: ClassVar[None] = None

    def __call__(self, evidence: Evidence) -> Judgement:
        """The rule; verdicts stand with the rows."""
        if any(row.learned is not None and row.learned.bar is not None for row in evidence.rows):
            return Judgement(rule=RULE_OF_EFFECTS)
        errors = any(not reading.in_percent for row in evidence.part.rows for reading in row.readings)
        return Judgement(rule=RULE + (RULE_OF_ERRORS if errors else ""))


Claim = Callable[[tuple[float, ...], tuple[float, ...]], tuple[bool, str]]
"""What a paper says of a figure: of `(x, scores)`, whether it holds and why."""


@dataclass(frozen=True)
class Along:
    """A claim along an axis: one setting at several points.

    Attributes:
        x: the value on the axis of each row of the part.
        name: what the axis shows.
        mark: a value on the axis worth a line.
        mark_name: what it is.
        second: a quantity on a second axis: a function of the row, or the name of one of its readings.
        second_name: what it is.
        claim: what the paper says of the figure; where `second` is a reading, that has to hold as well.
    """

    x: tuple[float, ...]
    name: str
    mark: float
    mark_name: str
    second: Callable[[Row], float] | str
    second_name: str
    claim: Claim
    load: ClassVar[None] = None

    def __call__(self, evidence: Evidence) -> Judgement:
        """The axis, and whether the claim holds."""
        place = dict(zip((row.name for row in evidence.part.rows), self.x, strict=True))
        x = tuple(place[row.name] for row in evidence.rows)
        if isinstance(self.second, str):
            second = tuple(row.readings[self.second].mean / 100 for row in evidence.rows)
        else:
            finished = (evidence.part.row(row.name) for row in evidence.rows)
            second = tuple(float(f"{self.second(row):.6g}") for row in finished)  # draws are float32
        axis = Axis(self.name, x, self.mark, self.mark_name, second, self.second_name)
        partial = "" if len(x) == len(self.x) else "not all points are finished"
        if partial or evidence.open:
            return Judgement(claim=partial or evidence.open, axis=axis)
        holds, why = self.claim(x, tuple(row.learned.mean for row in evidence.rows if row.learned is not None))
        if isinstance(self.second, str):
            also, because = self.claim(x, tuple(100 * v for v in second))
            holds, why = holds and also, f"{evidence.part.score}: {why}; {self.second_name}: {because}"
        return Judgement(claim=why, holds=holds, axis=axis)
