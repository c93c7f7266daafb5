"""Published beside ours: the rows of a part of a paper, and what its judge says of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from zhat.errors import BadInput
from zhat.results.runs import Curve
from zhat.results.theory import Prediction
from zhat.shown import Brief, Drawn

_VERDICTS = ("reproduced", "exceeded", "missed", "shown", "not shown")
POINTS = 0.3
"""How far, in points, our mean may always lie from a published one."""


@dataclass(frozen=True)
class Published:
    """A number from a paper, as printed and in percent. Never replaced by one of ours.

    Attributes:
        mean: over the paper's seeds.
        std: the standard deviation over them.
        rounding: half a unit of the last digit that is printed, where that is coarse: 0.5 for 0.94, which is 94%.
    """

    mean: float
    std: float
    rounding: float = 0.0

    @property
    def reach(self) -> float:
        """How far our mean may lie from the published one, whatever the spread of our seeds."""
        return max(2 * self.std, POINTS, self.rounding)

    def __str__(self) -> str:
        digits = 0 if self.rounding >= 0.5 else 2
        return f"{self.mean:.{digits}f} ± {self.std:.{digits}f}"


@dataclass(frozen=True)
class Bar:
    """What a training that is too short for published numbers has to show, in percent.

    Attributes:
        level: what our mean over seeds has to reach.
        below: the paper shows that this setting fails, so our mean has to stay at `level` or below.

    Example:
        >>> str(Bar(95.0)), Bar(95.0).met(96.2), Bar(75.0, below=True).met(96.2)
        ('≥ 95', True, False)
    """

    level: float
    below: bool = False

    def met(self, mean: float) -> bool:
        """Whether a mean is where the bar wants it."""
        return mean <= self.level if self.below else mean >= self.level

    def __str__(self) -> str:
        return f"{'≤' if self.below else '≥'} {self.level:g}"


@dataclass(frozen=True)
class Measured:
    """A cell of a table: what was published and what every seed gave, in percent unless it is an error or a loss.

    Attributes:
        published: the paper's number, if it prints one here.
        values: the score of each seed by the paper's own protocol.
        held_out: the same score of each seed, read on rows the fit has not seen.
        low: lowest end of the seeds' 95% intervals of the held-out scores.
        high: highest end of them.
        chance: mean over seeds of what shuffled rows score, where that was read.
        verdict: "reproduced", "exceeded" or "missed", with a bar "shown" or "not shown"; empty where there is nothing
            to compare with or the budget is not judged.
        digits: how many to show.
        bar: what the budget asks of this score, where it asks for less than the published number.
    """

    published: Published | None
    values: tuple[float, ...]
    held_out: tuple[float, ...]
    low: float | None = None
    high: float | None = None
    verdict: str = ""
    digits: int = 2
    chance: float | None = None
    bar: Bar | None = None

    def __post_init__(self) -> None:
        if not self.values or not self.held_out:
            raise BadInput("a measured cell must have the score of at least one seed")
        if not 0 <= self.digits <= 12 or (self.low is None) != (self.high is None):
            raise BadInput("a measured cell must show 0 to 12 digits, and both ends of an interval or none")

    @property
    def mean(self) -> float:
        """Mean over seeds, by the paper's protocol."""
        return statistics.fmean(self.values)

    @property
    def held_out_mean(self) -> float:
        """Mean over seeds of the held-out scores."""
        return sum(self.held_out) / len(self.held_out)

    @property
    def std(self) -> float:
        """Standard deviation over seeds; 0 for one seed."""
        return statistics.stdev(self.values) if len(self.values) > 1 else 0.0

    @property
    def rests_on_spread(self) -> bool:
        """Whether it counts as reproduced only by 2 standard errors of our own: some seeds succeed and others fail."""
        if self.published is None or self.verdict != "reproduced":
            return False
        return self.mean < self.published.mean - self.published.reach

    def __str__(self) -> str:
        spread = f" ± {self.std:.{self.digits}f}" if len(self.values) > 1 else ""
        return f"{self.mean:.{self.digits}f}{spread}"


@dataclass(frozen=True, repr=False)
class RowResult(Brief):
    """One row of a table, one point of a figure, or the models of one setting.

    Attributes:
        name: the row's name, for instance "T1.1".
        title: for a reader.
        failure: whether the paper shows that this setting fails.
        prediction: what theory says.
        learned: the trained representation; None for models that are only compared with their peers.
        identity: the observations themselves.
        supervised: the same encoder trained on the true latents.
        curves: one for each seed.
        seconds: wall time of training all seeds of the row.
        seeds: which.
        readings: further numbers of the row, by name.
        aligned: some held-out rows of the first seed: the first coordinate of the truth, and its estimate.
        samples: of images, some observations as a picture, one line for each view, as a data URI.
        follows: of images, |correlation| of each factor with each coordinate of the first seed, `(factors, k)`.
    """

    name: str
    title: str
    failure: bool
    prediction: Prediction | None
    learned: Measured | None
    identity: Measured | None
    supervised: Measured | None
    curves: tuple[Curve, ...]
    seconds: float
    seeds: tuple[int, ...]
    readings: Mapping[str, Measured] = field(default_factory=dict)
    aligned: tuple[tuple[float, float], ...] = ()
    samples: str = ""
    follows: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if len(self.curves) not in (0, len(self.seeds)) or not self.seeds:
            raise BadInput(f"row {self.name} must have one curve for each seed")
        if self.follows and (len({len(row) for row in self.follows}) != 1 or not self.follows[0]):
            raise BadInput(f"row {self.name} must have as many correlations for each factor")


@dataclass(frozen=True)
class Absent:
    """A row that was not measured because its data are not there.

    Attributes:
        name: the row's name.
        title: for a reader.
        published: what the paper prints.
        why: which file is missing, where it is published, and the command that would measure the row.
    """

    name: str
    title: str
    published: Published | None
    why: str


@dataclass(frozen=True, repr=False)
class Axis(Brief):
    """Where the points of a figure stand.

    Attributes:
        name: what the axis shows.
        values: one for each finished row.
        mark: a value on the axis worth a line.
        mark_name: what it is.
        second: a second quantity at each point.
        second_name: what it is; the name of a reading where the rows have one.
    """

    name: str
    values: tuple[float, ...]
    mark: float
    mark_name: str
    second: tuple[float, ...]
    second_name: str

    def __post_init__(self) -> None:
        if len(self.values) != len(self.second):
            raise BadInput("an axis must have as many second quantities as points")


@dataclass(frozen=True, repr=False)
class Agreement(Brief):
    """How alike pairs of models are in one respect.

    Attributes:
        group: what belongs together in a figure, for instance "16 components".
        name: what is compared, for instance "last - 4".
        pairs: the models of each pair.
        values: mean canonical correlation of each pair.
        chance: mean over pairs of what shuffled rows give.
        coefficients: canonical correlations, largest first, averaged over pairs.
        n: rows compared.
        chosen: how these pairs were chosen among more, for instance "the two lowest losses of 16".
        before: of layers, how many lie between this one and the last.
        shown: whether a short table or a chart of curves shows it; of many layers only some are.
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
    chosen: str = ""
    before: int | None = None
    shown: bool = True
    published: float | None = None
    by_paper: float | None = None
    untrained: float | None = None
    apart: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not self.values or len(self.pairs) != len(self.values) or len(self.apart) not in (0, len(self.values)):
            raise BadInput(f"{self.group}, {self.name}, must have one value for each pair of models")

    @property
    def mean(self) -> float:
        """Mean over pairs."""
        return statistics.fmean(self.values)

    @property
    def what(self) -> str:
        """What is compared, and how the pairs were chosen."""
        return f"{self.name}, {self.chosen}" if self.chosen else self.name


@dataclass(frozen=True, repr=False)
class WordMap(Brief):
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

    def __post_init__(self) -> None:
        for places in (self.first, self.second, self.mapped):
            if len(places) != len(self.words) or any(len(place) != 2 for place in places):
                raise BadInput(f"{self.title} must have a place in the plane for each word")


@dataclass(frozen=True)
class Target:
    """A yes-or-no target, and what so many images can tell of it.

    Attributes:
        name: of the target.
        images: how many there are.
        having: how many of them have it.
        needed: the least balanced accuracy that would be found with a probability of 80%, in percent; None where no
            accuracy would be.
        needed_surely: the same with 95%.
    """

    name: str
    images: int
    having: int
    needed: float | None
    needed_surely: float | None


@dataclass(frozen=True)
class Decoding:
    """How well one target is read from one model.

    Attributes:
        model: the row's name.
        target: which.
        measured: accuracy by the paper's protocol and held-out balanced accuracy of every split, in percent, with the
            mean of the splits' intervals over images and the chance level of shuffled labels.
        p_by_paper: of the paper's test that the mean over splits is 50%; None where the splits do not differ.
        found_by_paper: whether the paper's test finds it above chance.
        p: held out, corrected for the number of targets and models.
        found: whether that is at most 0.05.
    """

    model: str
    target: str
    measured: Measured
    p_by_paper: float | None
    found_by_paper: bool
    p: float
    found: bool


@dataclass(frozen=True)
class Judged:
    """One claim of several that a paper makes of a figure.

    Attributes:
        claim: what the paper says.
        rule: when we say that it holds.
        holds: whether it does; None where the data cannot tell.
        why: with our numbers.
    """

    claim: str
    rule: str
    holds: bool | None
    why: str

    @property
    def answer(self) -> str:
        """Whether it holds, in words."""
        return {True: "holds", False: "does not hold", None: "cannot be told"}[self.holds]

    def __str__(self) -> str:
        return f"{self.claim}: {self.answer}. {self.why}"


@dataclass(frozen=True, repr=False)
class Judgement(Brief):
    """What a judge says of a part.

    Attributes:
        rule: how verdicts on single rows are given, where they are.
        claim: what the paper claims, in words with our numbers; or why it is not judged. Empty where it claims nothing.
        holds: whether the claim holds here; None where that cannot be told.
        axis: where the rows stand, for a figure along an axis.
        agreements: how alike models are, for a figure that compares them with each other.
        words: what a figure draws of word models.
        claims: several claims, judged one by one.
        targets: yes-or-no targets that are read from models.
        decoded: how well each of them is read from each model.
    """

    rule: str = ""
    claim: str = ""
    holds: bool | None = None
    axis: Axis | None = None
    agreements: tuple[Agreement, ...] = ()
    words: tuple[WordMap, ...] = ()
    claims: tuple[Judged, ...] = ()
    targets: tuple[Target, ...] = ()
    decoded: tuple[Decoding, ...] = ()

    def __post_init__(self) -> None:
        targets, models = {t.name for t in self.targets}, {d.model for d in self.decoded}
        found = {(d.target, d.model) for d in self.decoded}
        if self.decoded and found != {(t, m) for t in targets for m in models}:
            raise BadInput("every target must be read from every model")


@dataclass(frozen=True, repr=False)
class PartResult(Drawn):
    """A table or a figure of a paper, published and measured.

    Attributes:
        paper: key in `references.bib`.
        label: for instance "Table 1".
        caption: what it shows.
        score: the name of the score.
        budget: the name of the budget.
        rows: those that are finished.
        expected: how many rows were asked for.
        judgement: what the judge says.
        seconds: wall time of all trainings, references included.
        settings: of each row, by name.
        provenance: versions, device, commit, date, command.
        notes: differences from the official code.
        absent: rows that were asked for and whose data are not there.
    """

    paper: str
    label: str
    caption: str
    score: str
    budget: str
    rows: tuple[RowResult, ...]
    expected: int
    judgement: Judgement
    seconds: float
    settings: Mapping[str, Mapping[str, Any]]
    provenance: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    absent: tuple[Absent, ...] = ()

    def __post_init__(self) -> None:
        axis = self.judgement.axis
        if axis is not None and (len(axis.values) != len(self.rows) or not all(row.learned for row in self.rows)):
            raise BadInput(f"{self.label} must have a scored row at every point of its axis")

    @property
    def not_measured(self) -> tuple[str, ...]:
        """One sentence for each reason why rows were not measured, with their names."""
        reasons = dict.fromkeys(row.why for row in self.absent)
        return tuple(f"{', '.join(row.name for row in self.absent if row.why == why)}: {why}" for why in reasons)

    @property
    def verdicts(self) -> dict[str, int]:
        """How many rows have which verdict."""
        return _counted(row.learned for row in self.rows)

    @property
    def reading_verdicts(self) -> dict[str, int]:
        """How many of the rows' further numbers have which verdict."""
        return _counted(reading for row in self.rows for reading in row.readings.values())

    def __str__(self) -> str:
        cells = ((row.name, row.learned) for row in self.rows if row.learned is not None)
        against = (f"  {n:<8} {c}{f' (published {c.published})' if c.published else ''} {c.verdict}" for n, c in cells)
        return "\n".join([f"{self.paper}, {self.label}: {self.summary}", *(line.rstrip() for line in against)])

    def _lines(self) -> Iterator[dict[str, Any]]:
        """Of models compared with each other one line for each respect, of targets one for each reading, else rows."""
        for a in self.judgement.agreements:
            yield {"of": a.group, "what": a.what, "value": a.mean, "chance": a.chance, "n": a.n, "pairs": len(a.values)}
        for d in self.judgement.decoded:
            yield {"target": d.target, "model": d.model, **_cell(d.measured), "p": d.p, "found": d.found}
        if self.judgement.agreements or self.judgement.decoded:
            return
        axis = self.judgement.axis
        for i, row in enumerate(self.rows):
            place = {} if axis is None else {axis.name: axis.values[i]}
            further = {name: reading.mean for name, reading in row.readings.items()}
            line = {"row": row.name, "setting": row.title, **place, **_cell(row.learned), **further}
            yield line | {"seeds": len(row.seeds), "seconds": row.seconds}
        for absent in self.absent:
            yield {"row": absent.name, "setting": absent.title}

    @property
    def summary(self) -> str:
        """One or a few sentences: whether the claim holds, or how many rows have which verdict."""
        said, missing = self.judgement, self.expected - len(self.rows) - len(self.absent)
        open_ = f" {missing} of {self.expected} are not finished." if missing and self.rows else ""
        if self.absent:
            open_ += f" {len(self.absent)} of {self.expected} are not measured, because their data are not here."
        if said.decoded or said.claims:
            each = " ".join(f"({i}) {one}" for i, one in enumerate(said.claims, 1))
            return " ".join(filter(None, (f"{said.claim}." if said.claim else "", each))) + open_
        if said.claim and said.holds is None:
            return f"The claim is not judged: {said.claim}.{open_}"
        if said.claim:
            return f"By our rule the paper's claim {'holds' if said.holds else 'does not hold'}: {said.claim}.{open_}"
        counts = ", ".join(f"{count} {name}" for name, count in self.verdicts.items())
        cells = (cell for row in self.rows for cell in (row.learned, *row.readings.values()))
        if self.rows and not any(cell is not None and cell.published for cell in cells):
            return f"{len(self.rows)} rows of ours, without published numbers.{open_}"
        if not counts:
            return f"{len(self.rows)} rows, not judged: budget {self.budget} is too short for a verdict.{open_}"
        by_spread = "".join(
            f" {row.name} counts only through the spread of our seeds: {', '.join(f'{v:.2f}' for v in cell.values)}."
            for row in self.rows
            if (cell := row.learned) is not None and not row.failure and cell.rests_on_spread
        )
        further = ", ".join(f"{count} {name}" for name, count in self.reading_verdicts.items())
        further = f" Further numbers of the rows: {further}." if further else ""
        return f"{counts}, of {len(self.rows)} rows.{by_spread}{further}{open_}"


def _cell(cell: Measured | None) -> dict[str, Any]:
    """A measured cell as part of a line."""
    if cell is None:
        return {}
    published = {} if cell.published is None else {"published": cell.published.mean, "verdict": cell.verdict}
    return {
        "value": cell.mean,
        "sd": cell.std,
        "held_out": cell.held_out_mean,
        "low": cell.low,
        "high": cell.high,
        "chance": cell.chance,
        **published,
    }


def _counted(cells: Iterable[Measured | None]) -> dict[str, int]:
    verdicts = [cell.verdict for cell in cells if cell is not None]
    return {name: verdicts.count(name) for name in _VERDICTS if name in verdicts}
