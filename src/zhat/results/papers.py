"""Published beside ours: tables, sweeps, families of models."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from zhat.results.runs import Curve, ModelRecord
from zhat.results.theory import Prediction


@dataclass(frozen=True)
class Published:
    """A number from a paper: mean and standard deviation as printed, in percent. Never replaced by one of ours."""

    mean: float
    std: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.std:.2f}"


POINTS = 0.3
"""How far, in points, our mean may always lie from a published one."""


@dataclass(frozen=True)
class Measured:
    """A cell of a table: what was published and what every seed gave, in percent.

    Attributes:
        published: the paper's number, if it prints one here.
        values: the score of each seed by the paper's own protocol.
        held_out: the same score of each seed, read on rows the fit has not seen.
        low: lowest end of the seeds' 95% bootstrap intervals of the held-out scores.
        high: highest end of them.
        verdict: "reproduced", "exceeded" or "missed"; empty where nothing was published or the budget is not judged.
    """

    published: Published | None
    values: tuple[float, ...]
    held_out: tuple[float, ...]
    low: float | None
    high: float | None
    verdict: str

    @property
    def mean(self) -> float:
        """Mean over seeds, by the paper's protocol."""
        return statistics.fmean(self.values)

    @property
    def std(self) -> float:
        """Standard deviation over seeds; 0 for one seed."""
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

    @property
    def rests_on_spread(self) -> bool:
        """Whether it counts as reproduced only by 2 standard errors of our own: some seeds succeed and others fail."""
        if self.published is None or self.verdict != "reproduced":
            return False
        return self.mean < self.published.mean - max(2 * self.published.std, POINTS)

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.std:.2f}" if len(self.values) > 1 else f"{self.mean:.2f}"


@dataclass(frozen=True)
class RowResult:
    """One row of a table, or one point of a figure.

    Attributes:
        name: the row's name, for instance "T1.1".
        title: for a reader.
        failure: whether the paper shows that this setting fails.
        prediction: what theory says.
        learned: the trained representation.
        identity: the observations themselves.
        supervised: the same encoder trained on the true latents.
        curves: one for each seed.
        seconds: wall time of training all seeds of the row.
        seeds: which.
        readings: further numbers that the table prints, by name; in percent, unless they are errors.
        aligned: for pairs of models, held-out rows of the first pair: the first coordinate of one model, and what an
            affine map of the other makes of it.
    """

    name: str
    title: str
    failure: bool
    prediction: Prediction | None
    learned: Measured
    identity: Measured | None
    supervised: Measured | None
    curves: tuple[Curve, ...]
    seconds: float
    seeds: tuple[int, ...]
    readings: Mapping[str, Measured] = field(default_factory=dict)
    aligned: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class TableResult:
    """A table of a paper, published and measured side by side.

    Attributes:
        paper: key in `references.bib`.
        label: for instance "Table 1".
        caption: what it shows.
        score: the name of the score.
        budget: the name of the budget.
        rows: those that are finished.
        expected: how many rows were asked for.
        seconds: wall time of all trainings, references included.
        settings: of each row, by name.
        provenance: versions, device, commit, date, command.
        rule: how verdicts are given.
        notes: differences from the official code.
    """

    paper: str
    label: str
    caption: str
    score: str
    budget: str
    rows: tuple[RowResult, ...]
    expected: int
    seconds: float
    settings: Mapping[str, Any]
    provenance: Mapping[str, Any]
    rule: str
    notes: tuple[str, ...] = ()

    @property
    def verdicts(self) -> dict[str, int]:
        """How many rows have which verdict."""
        return _counted([row.learned.verdict for row in self.rows])

    @property
    def reading_verdicts(self) -> dict[str, int]:
        """How many of the rows' further numbers have which verdict."""
        return _counted([reading.verdict for row in self.rows for reading in row.readings.values()])


def _counted(verdicts: list[str]) -> dict[str, int]:
    return {name: verdicts.count(name) for name in ("reproduced", "exceeded", "missed") if name in verdicts}


@dataclass(frozen=True)
class SweepResult:
    """A figure of a paper: scores along an axis, with a second quantity and a mark.

    The attributes that `TableResult` has as well mean the same; `rows` are the points.

    Attributes:
        x: values on the axis.
        x_name: what they are.
        mark: a value on the axis worth a line.
        mark_name: what it is.
        second: a second quantity at each x.
        second_name: what it is.
        holds: whether the paper's claim holds here; None while points are missing.
        claim: the claim in words, with our numbers.
    """

    paper: str
    label: str
    caption: str
    score: str
    budget: str
    rows: tuple[RowResult, ...]
    expected: int
    x: tuple[float, ...]
    x_name: str
    mark: float
    mark_name: str
    second: tuple[float, ...]
    second_name: str
    holds: bool | None
    claim: str
    seconds: float
    settings: Mapping[str, Any]
    provenance: Mapping[str, Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Agreement:
    """How alike pairs of models are in one respect.

    Attributes:
        group: what belongs together in a figure, for instance "16 components".
        name: what is compared, for instance "last - 4".
        pairs: the models of each pair.
        values: mean canonical correlation of each pair.
        chance: mean over pairs of what shuffled rows give.
        coefficients: canonical correlations, largest first, averaged over pairs.
        n: rows compared.
        published: the published mean, where there is one.
        by_paper: the average over pairs as the paper takes it, where that differs.
        untrained: the mean over pairs of the same models before training, where that was read.
        apart: symmetrised divergence of the probabilities of each pair in nats, where that was read.
    """

    group: str
    name: str
    pairs: tuple[tuple[str, str], ...]
    values: tuple[float, ...]
    chance: float
    coefficients: tuple[float, ...]
    n: int
    published: float | None = None
    by_paper: float | None = None
    untrained: float | None = None
    apart: tuple[float, ...] = ()

    @property
    def mean(self) -> float:
        """Mean over pairs."""
        return statistics.fmean(self.values)


@dataclass(frozen=True)
class WordMap:
    """Some words in the plane of two models, before and after the second is mapped onto the first.

    Attributes:
        title: of the two models.
        words: which.
        first: where the first model puts them, `(words, 2)`; columns have mean 0 and variance 1 over the vocabulary.
        second: where the second model does.
        mapped: where the second model's lie after the least-squares map onto the first.
    """

    title: str
    words: tuple[str, ...]
    first: tuple[tuple[float, ...], ...]
    second: tuple[tuple[float, ...], ...]
    mapped: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class FamilyResult:
    """A figure of a paper that compares models with each other.

    The attributes that `TableResult` has as well mean the same; `rows` are the models.

    Attributes:
        agreements: what was compared, and how alike it is; empty until all models are finished.
        words: what the figure draws of word models.
        holds: whether the paper's claim holds here; None where that cannot be told.
        claim: the claim in words, with our numbers.
    """

    paper: str
    label: str
    caption: str
    score: str
    budget: str
    rows: tuple[ModelRecord, ...]
    expected: int
    agreements: tuple[Agreement, ...]
    words: tuple[WordMap, ...]
    holds: bool | None
    claim: str
    seconds: float
    settings: Mapping[str, Any]
    provenance: Mapping[str, Any]
    notes: tuple[str, ...] = ()
