"""Plain data: what was predicted, measured and recorded. JSON there and back.

Nothing here computes or draws. A result written with `to_json` and read with `from_json` is equal to itself.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from zhat.equivalence import AFFINE, Equivalence
from zhat.errors import BadInput, UnknownName

Truth = Literal["yes", "no", "unknown"]


def describe(up_to: Equivalence, shift: bool) -> str:
    """A class in words; an affine map has its shift already."""
    return f"{up_to} and a shift" if shift and not up_to >= AFFINE else str(up_to)


@dataclass(frozen=True)
class Score:
    """One number with what is needed to believe it.

    Attributes:
        name: the measure, for instance "R2".
        value: the score itself; the mean of `per_latent`.
        up_to: the class of maps the score is blind to.
        shift: whether a constant offset is forgiven as well.
        low: lower end of the 95% bootstrap interval over rows, if one was asked for.
        high: upper end of that interval.
        chance: mean score when the rows of the representation are shuffled, if asked for.
        chance_high: the 95% quantile of those scores.
        n: rows the score was read on.
        n_fit: rows the map was fitted on; equal to `n` and the same rows where nothing was held out.
        held_out: whether the rows read were kept from the fit.
        per_latent: one score for each latent.
    """

    name: str
    value: float
    up_to: Equivalence
    shift: bool
    low: float | None
    high: float | None
    chance: float | None
    chance_high: float | None
    n: int
    n_fit: int
    held_out: bool
    per_latent: tuple[float, ...]

    def __str__(self) -> str:
        text = f"{self.name} {self.value:.4f} up to {describe(self.up_to, self.shift)}"
        if self.low is not None and self.high is not None:
            text += f", 95% interval [{self.low:.4f}, {self.high:.4f}]"
        if self.chance is not None:
            text += f", chance {self.chance:.4f}"
        return text + (f" ({self.n} held-out rows)" if self.held_out else f" ({self.n} rows, in sample)")


@dataclass(frozen=True)
class Profile:
    """One score for each class of maps, tightest first."""

    scores: tuple[Score, ...]

    def __getitem__(self, up_to: Equivalence) -> Score:
        for score in self.scores:
            if score.up_to is up_to:
                return score
        have = ", ".join(score.up_to.name for score in self.scores)
        raise BadInput(f"this profile holds no score up to {up_to.name}; it holds {have}.")

    def __iter__(self) -> Iterator[Score]:
        return iter(self.scores)

    def __str__(self) -> str:
        rows = [("up to", "score", "95% interval", "chance")]
        for s in self.scores:
            interval = "" if s.low is None or s.high is None else f"[{s.low:.4f}, {s.high:.4f}]"
            rows.append((str(s.up_to), f"{s.value:.4f}", interval, "" if s.chance is None else f"{s.chance:.3f}"))
        first, *widths = (max(len(row[i]) for row in rows) for i in range(4))
        lines = [
            row[0].ljust(first) + "".join("  " + cell.rjust(width) for cell, width in zip(row[1:], widths, strict=True))
            for row in rows
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Answer:
    """A condition of a theorem, and whether it holds here."""

    condition: str
    holds: Truth
    because: str

    def __str__(self) -> str:
        return f"{self.holds:<8}{self.condition}: {self.because}"


@dataclass(frozen=True)
class Prediction:
    """What theory says about a process, an objective and an encoder.

    Attributes:
        theorem: its name, for instance "Theorem 2".
        cite: key of the paper in `references.bib`.
        up_to: the class of the conclusion; None where no theorem speaks of this objective.
        shift: whether the conclusion leaves a constant offset free.
        scale: the predicted ratio |h| / |z|, where theory fixes it.
        answers: every condition with its answer.
        notes: what a reader should know besides.
        what: the conclusion in words, before "up to …".
    """

    theorem: str
    cite: str
    up_to: Equivalence | None
    shift: bool
    scale: float | None
    answers: tuple[Answer, ...]
    notes: tuple[str, ...] = ()
    what: str = "Latents are recovered"

    @property
    def holds(self) -> Truth:
        """Whether every condition holds: "no" if one fails, else "unknown" if one is open."""
        truths = {answer.holds for answer in self.answers}
        if self.up_to is None or "no" in truths:
            return "no"
        return "unknown" if "unknown" in truths else "yes"

    @property
    def sentence(self) -> str:
        """The prediction for a reader in a hurry."""
        if self.up_to is None:
            return "No theorem known to zhat speaks of this process and objective."
        up_to = describe(self.up_to, self.shift)
        if self.scale is not None:
            up_to += f", scale {self.scale:.4g}"
        source = f"[{self.cite}, {self.theorem}]"
        if self.holds == "yes":
            return f"{self.what} up to {up_to} {source}: every condition holds."
        failed = [a.condition for a in self.answers if a.holds == "no"]
        if failed:
            verb = "fails" if len(failed) == 1 else "fail"
            return f"No guarantee: {source} would give {up_to}, but {verb} here: {'; '.join(failed)}."
        unknown = [a.condition for a in self.answers if a.holds == "unknown"]
        return f"{self.what} up to {up_to} {source}, provided that: {'; '.join(unknown)}."

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"  {a}" for a in self.answers), *(f"  note: {n}" for n in self.notes)])


@dataclass(frozen=True)
class Spread:
    """Rank and singular values of a matrix with one vector in each row.

    Attributes:
        rank: to rounding.
        of: columns, the rank that is needed.
        smallest: singular value; 0 where there are fewer rows than columns.
        largest: singular value.
        condition: largest over smallest; None where the rank is not full.
    """

    rank: int
    of: int
    smallest: float
    largest: float
    condition: float | None


@dataclass(frozen=True)
class HeadCheck:
    """What the head of a classifier says about identifiability.

    Attributes:
        classes: rows of the head.
        dim: columns, the dimension of the features.
        linear: rank and singular values of the head.
        affine: the same of its rows minus their mean.
        shortest: length of a row.
        longest: length of a row.
        least: rows of data in the rarest class, if labels were given.
        most: rows of data in the most frequent class.
        prediction: what theory says.
    """

    classes: int
    dim: int
    linear: Spread
    affine: Spread
    shortest: float
    longest: float
    least: int | None
    most: int | None
    prediction: Prediction

    @property
    def enough(self) -> bool:
        """Whether there is at least one class more than dimensions."""
        return self.classes >= self.dim + 1

    @property
    def generator(self) -> bool:
        """Whether the rows generate the space affinely."""
        return self.affine.condition is not None

    def __str__(self) -> str:
        said = self.linear.condition
        lines = [
            f"classes            {self.classes}",
            f"dimensions         {self.dim}",
            f"classes > dims     {'yes' if self.enough else f'no: {self.dim + 1} classes are needed'}",
            f"rank               {self.linear.rank} of {self.dim}",
            f"condition number   {'none, the rank is not full' if said is None else f'{said:.4g}'}",
            f"affine generator   {'yes' if self.generator else f'no: rows differ in {self.affine.rank} directions'}",
            f"row lengths        {self.shortest:.4g} to {self.longest:.4g}",
        ]
        if self.affine.condition is not None:
            lines.insert(6, f"affine condition   {self.affine.condition:.4g}")
        if self.least is not None:
            lines.append(f"rows in a class    {self.least} to {self.most}")
        return "\n".join([*lines, str(self.prediction)])


@dataclass(frozen=True)
class Diversity:
    """How well the label vectors of a model meet the diversity condition of roeder2020.

    Attributes:
        labels: labels in a candidate set, the fewest where sets differ.
        dim: M, the dimension of the features.
        rank: of the differences between label vectors, the lowest of all candidate sets; M is needed.
        missing: labels that a candidate set has too few; M + 1 are needed.
        smallest: the margin: smallest singular value of the vectors minus their mean.
        largest: singular value of the same.
        sets: drawn sets of M + 1 labels.
        invertible: how many of them have an invertible L.
        best: the lowest condition number of L among those and the sets chosen to be good.
        typical: the median of the drawn ones that are invertible.
    """

    labels: int
    dim: int
    rank: int
    missing: int
    smallest: float
    largest: float
    sets: int
    invertible: int
    best: float | None
    typical: float | None

    @property
    def holds(self) -> bool:
        """Whether the differences span the whole space."""
        return self.rank == self.dim

    def __str__(self) -> str:
        missing = f"; {self.missing} labels are missing" if self.missing else ""
        lines = [
            f"diversity          {'yes' if self.holds else 'no'}: differences of labels span {self.rank} of {self.dim} "
            f"dimensions{missing}",
            f"margin             smallest singular value {self.smallest:.4g}, largest {self.largest:.4g}",
        ]
        if self.best is None:
            lines.append("condition of L     none: no set of labels has an invertible L")
        else:
            typical = "none" if self.typical is None else f"{self.typical:.4g}"
            lines.append(
                f"condition of L     best {self.best:.4g}, typical {typical}; invertible for {self.invertible} of "
                f"{self.sets} drawn sets of labels"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class ModelPair:
    """The linear map from the features of one model to those of another, by two roads.

    Attributes:
        first: diversity of the first model's head.
        second: diversity of the second model's head.
        condition: the larger condition number of the two L that were used; None where none is invertible.
        from_heads: A, `(M, M)`, from heads alone.
        residual: how far A is from turning all differences of one head into those of the other, relative.
        from_features: B, `(M, M)`, by least squares between features.
        disagreement: |A - B| / |B|, Frobenius norms.
        heads_r2: R2 of the second model's features from A and the first model's, on held-out rows.
        features_r2: the same of B.
        n: held-out rows.
    """

    first: Diversity
    second: Diversity
    condition: float | None
    from_heads: tuple[tuple[float, ...], ...] | None
    residual: float | None
    from_features: tuple[tuple[float, ...], ...] | None
    disagreement: float | None
    heads_r2: float | None
    features_r2: float | None
    n: int | None

    def __str__(self) -> str:
        lines = ["first head", *_indented(str(self.first)), "second head", *_indented(str(self.second))]
        if self.from_heads is None:
            lines.append("map from heads     none: no set of labels has an invertible L in both heads")
        else:
            lines.append(f"map from heads     A = (L1 L2^-1)^T, condition of L at most {self.condition:.4g}")
            lines += [*_matrix(self.from_heads), f"  misses the other labels by {self.residual:.4g} of their size"]
        if self.from_features is not None:
            lines += ["map from features  B, least squares on half of the rows", *_matrix(self.from_features)]
            if self.disagreement is not None:
                lines.append(f"disagreement       |A - B| / |B| = {self.disagreement:.4g}")
            by_heads = "none" if self.heads_r2 is None else f"{self.heads_r2:.4f}"
            lines.append(f"held-out R2        heads {by_heads}, features {self.features_r2:.4f} ({self.n} rows)")
        return "\n".join(lines)


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


def _matrix(rows: tuple[tuple[float, ...], ...], most: int = 6) -> list[str]:
    """The rows of a matrix; of a large one its upper left corner."""
    lines = [
        "  " + " ".join(f"{v:10.4g}" for v in row[:most]) + (" …" if len(row) > most else "") for row in rows[:most]
    ]
    return [*lines, f"  … {len(rows)} rows, {len(rows[0])} columns"] if len(rows) > most else lines


@dataclass(frozen=True)
class Curve:
    """How training went: losses, and whatever was watched, at some steps."""

    steps: tuple[int, ...]
    loss: tuple[float, ...]
    watched_steps: tuple[int, ...] = ()
    watched: tuple[float, ...] = ()
    watched_name: str = ""


@dataclass(frozen=True)
class Picture:
    """The small arrays a page draws: some held-out rows, correlations, the map's singular values.

    Attributes:
        z: latents of some held-out rows, `(rows, d)`.
        z_hat: the representation of the same rows after the best map of class `up_to`, `(rows, d)`.
        up_to: that class.
        correlation: |Pearson correlation| between latents and representation, `(d, k)`.
        singular_values: of the least-squares map from latents to representation.
    """

    z: tuple[tuple[float, ...], ...]
    z_hat: tuple[tuple[float, ...], ...]
    up_to: Equivalence
    correlation: tuple[tuple[float, ...], ...]
    singular_values: tuple[float, ...]


@dataclass(frozen=True)
class Record:
    """One finished run: one world, one encoder, one seed.

    Attributes:
        name: what was run, for a reader.
        seed: of world and encoder.
        settings: process, objective, encoder and budget, each as its repr.
        provenance: versions, device, commit, date.
        seconds: wall time of the training this seed was part of.
        prediction: what theory says.
        raw: scores of the observations themselves; None for a pair of models.
        learned: scores of the representation; for a pair of models, of the second as a map of the first.
        by_paper: the score a paper's table prints, by the paper's own protocol, where the run belongs to one.
        held_out: the same score read on rows the fit has not seen.
        curve: losses over training.
        picture: what a page draws.
        readings: further numbers of the row by name: by the paper's protocol, and ours.
    """

    name: str
    seed: int
    settings: Mapping[str, Any]
    provenance: Mapping[str, Any]
    seconds: float
    prediction: Prediction | None
    raw: Profile | None
    learned: Profile
    curve: Curve
    picture: Picture
    by_paper: Score | None = None
    held_out: Score | None = None
    readings: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Published:
    """A number from a paper: mean and standard deviation as printed, in percent. Never replaced by one of ours."""

    mean: float
    std: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.std:.2f}"


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

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.std:.2f}"


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
class ModelRecord:
    """One trained model of a family whose models are compared with each other; nobody knows its latents.

    Attributes:
        name: of the model.
        title: for a reader.
        seed: of its initial weights and of the rows it saw.
        settings: process, objective, encoder and budget, each as its repr.
        provenance: versions, device, commit, date.
        seconds: wall time of its training.
        curve: losses over training.
        loss: its loss on held-out rows; None for a model that was not trained here.
    """

    name: str
    title: str
    seed: int
    settings: Mapping[str, Any]
    provenance: Mapping[str, Any]
    seconds: float
    curve: Curve
    loss: float | None


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


@dataclass(frozen=True)
class AuditResult:
    """What relates two matrices of embeddings of the same rows.

    Attributes:
        verdict: the tightest class that holds ("identity" … "affine"), or "nonlinear", "unrelated", "cannot tell".
        up_to: that class; None where there is none.
        because: what the verdict rests on, in words.
        a: name of the embeddings mapped from.
        b: name of the embeddings mapped to.
        n: rows in both.
        effective: rows that count: copies once, neighbours that are alike once.
        dim_a: columns of a.
        dim_b: columns of b.
        rank_a: directions in which a varies, to the precision it is stored in.
        rank_b: the same of b.
        ladder: held-out R2 of the best map of each class, tightest first.
        beyond: what no affine map shows: a nonlinear probe, shared neighbours, recall, where they could be read.
        rows_needed: rows that would tell, where these cannot.
        directions: held-out canonical directions that share more than half of their variance.
        spectrum: singular values of the map, largest first.
        condition: largest over smallest of them; None where the map loses directions.
        worst: held-out sampled rows that disagree most: the row or its id, and its error in standard deviations.
        drift_mean: distance of the means over the spread of a; None where dimensions differ.
        drift_covariance: distance of the covariances over the size of that of a; None where dimensions differ.
        notes: what is odd about the rows.
        provenance: versions, date, settings.
        residuals: what the map leaves unexplained, mean squared error over variance: one line for each held-out piece
            of the rows, in it one number for each column of b that varies, or for some neighbouring ones.
        recall: recall@k behind the map for several k.
    """

    verdict: str
    up_to: Equivalence | None
    because: str
    a: str
    b: str
    n: int
    effective: int
    dim_a: int
    dim_b: int
    rank_a: int
    rank_b: int
    ladder: Profile
    beyond: tuple[Score, ...]
    rows_needed: int | None
    directions: int | None
    spectrum: tuple[float, ...]
    condition: float | None
    worst: tuple[tuple[str, float], ...]
    drift_mean: float | None
    drift_covariance: float | None
    notes: tuple[str, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    residuals: tuple[tuple[float, ...], ...] = ()
    recall: tuple[Score, ...] = ()

    @property
    def score(self) -> Score | None:
        """The score of the class found; that of affine maps where the relation is nonlinear."""
        wanted = AFFINE if self.verdict == "nonlinear" else self.up_to
        return next((s for s in self.ladder if s.up_to is wanted), None)

    @property
    def sentence(self) -> str:
        """The verdict for a reader in a hurry."""
        if self.verdict == "cannot tell":
            more = "" if self.rows_needed is None else f" Bring at least {self.rows_needed:,} rows."
            return f"Cannot tell how {self.b} relates to {self.a}: {self.because}.{more}"
        if self.verdict == "unrelated":
            return f"{self.b} and {self.a} are unrelated: {self.because}."
        if self.verdict == "nonlinear":
            return f"{self.b} and {self.a} are related, but by no affine map: {self.because}."
        assert self.up_to is not None, "every other verdict is a class of maps"
        if self.up_to is Equivalence.IDENTITY:
            return f"{self.b} is {self.a}: {self.because}."
        article = "an" if str(self.up_to)[0] in "aio" else "a"
        part = "" if self.score is None or self.score.value >= 0.5 else "in part "
        return f"{self.b} is {part}{self.a} up to {article} {self.up_to} map ({self.up_to.meaning}): {self.because}."

    def __str__(self) -> str:
        return f"{self.sentence}\n{self.ladder}"


@dataclass(frozen=True)
class FactorScore:
    """How well one known factor can be read from a representation by a linear map.

    Attributes:
        name: of the factor.
        type: "real", "circular" or "categorical".
        measure: "R2" (of (cos, sin) for a circular factor), or "balanced accuracy".
        value: on held-out rows; None where there can be no score.
        low: lower end of the 95% bootstrap interval over the rows read.
        high: upper end of that interval.
        chance: mean score of shuffled rows.
        p: share of shuffles that score at least as much, the unshuffled rows counted among them.
        p_corrected: after Holm's correction for the number of factors.
        found: whether `p_corrected` is at most the level and the interval lies above chance, and above 0 for R2.
        classes: names of the classes of a categorical factor.
        period: of a circular factor.
        also: further numbers: accuracy, mean cosine.
        because: why there is no score; empty where there is one.
    """

    name: str
    type: str
    measure: str
    value: float | None
    low: float | None
    high: float | None
    chance: float | None
    p: float | None
    p_corrected: float | None
    found: bool
    classes: tuple[str, ...] = ()
    period: float | None = None
    also: Mapping[str, float] = field(default_factory=dict)
    because: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.name}: no score, {self.because}"
        ends = "" if self.low is None else f", 95% interval [{self.low:.4f}, {self.high:.4f}]"
        return f"{self.name}: {self.measure} {self.value:.4f}{ends}, chance {self.chance:.4f}, p {self.p_corrected:.2g}"


@dataclass(frozen=True)
class DecodeResult:
    """Which known factors a representation holds linearly.

    Attributes:
        h: name of the representation.
        factors: name of the file of factors.
        n: rows in both.
        effective: rows that count: copies once, neighbours that are alike once.
        dim: columns of the representation.
        components: principal components that were read from; None for all directions.
        n_fit: rows the maps were fitted on.
        n_read: rows the scores were read on.
        split: how the two were told apart: "rows" at random, or "pieces" of neighbouring rows.
        scores: one for each factor.
        level: the chance of any false finding among all factors.
        shuffles: how many the p-values rest on.
        coordinates: columns of the representation that `association` shows.
        association: correlation of those with each factor, between 0 and 1, `(factors, coordinates)`.
        types: how the type of each factor was settled, by name.
        notes: what is odd about the rows.
        disentanglement: DCI, MIG and SAP, where they were asked for.
        provenance: versions, date, settings.
    """

    h: str
    factors: str
    n: int
    effective: int
    dim: int
    components: int | None
    n_fit: int
    n_read: int
    split: str
    scores: tuple[FactorScore, ...]
    level: float
    shuffles: int
    coordinates: tuple[int, ...]
    association: tuple[tuple[float, ...], ...]
    types: Mapping[str, str]
    notes: tuple[str, ...]
    disentanglement: Disentanglement | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> FactorScore:
        for score in self.scores:
            if score.name == name:
                return score
        raise UnknownName("factor", name, [score.name for score in self.scores])

    @property
    def sentence(self) -> str:
        """What was found, for a reader in a hurry."""
        found = [s for s in self.scores if s.found]
        known = f"{len(self.scores)} factor{'s' if len(self.scores) != 1 else ''}"
        if not found:
            return f"No linear map reads any of {known} from {self.h} better than chance."
        best, worst = max(found, key=_above_chance), min(found, key=_above_chance)
        ends = f"{best.name}{' best' if len(found) > 1 else ''} ({best.measure} {best.value:.3f})"
        if len(found) > 1:
            ends += f", {worst.name} least ({worst.measure} {worst.value:.3f})"
        return f"{len(found)} of {known} can be read from {self.h} by a linear map: {ends}."

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(str(score) for score in self.scores)])


def _above_chance(score: FactorScore) -> float:
    """The share of the way from chance to 1, which compares measures with one another."""
    floor = max(0.0, score.chance or 0.0)
    return ((score.value or 0.0) - floor) / (1 - floor) if floor < 1 else 0.0


@dataclass(frozen=True)
class Disentanglement:
    """Scores of how far each coordinate holds one factor and each factor lies in one coordinate.

    Attributes:
        disentanglement: D of DCI; 1 where every coordinate serves one factor.
        completeness: C of DCI; 1 where every factor lies in one coordinate.
        informativeness: I of DCI, here the mean held-out score of the factors.
        mig: mutual information gap.
        mig_range: least and largest gap when half and twice as many bins are used.
        sap: separated attribute predictability.
        bins: that mutual information was counted in.
        per_factor: completeness, gap and SAP of each factor, by name.
        warnings: what these numbers assume.
    """

    disentanglement: float
    completeness: float
    informativeness: float
    mig: float
    mig_range: tuple[float, float]
    sap: float
    bins: int
    per_factor: Mapping[str, Mapping[str, float]]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Consistency:
    """How far refits agree up to an affine map.

    Attributes:
        names: of the refits.
        r2: entry (i, j) is the held-out R2 of refit j from refit i; 1 on the diagonal.
        mean: over all pairs, both ways.
        low: lower end of Student's 95% interval over pairs; None for a single pair.
        high: upper end of that interval.
        chance: the same mean with shuffled rows.
        n: rows read.
        n_fit: rows the maps were fitted on.
    """

    names: tuple[str, ...]
    r2: tuple[tuple[float, ...], ...]
    mean: float
    low: float | None
    high: float | None
    chance: float | None
    n: int
    n_fit: int

    @property
    def least(self) -> float:
        """The worst way of the worst pair."""
        return min(value for row in self.r2 for value in row)

    def __str__(self) -> str:
        ends = "" if self.low is None else f", 95% interval over pairs [{self.low:.4f}, {self.high:.4f}]"
        chance = "" if self.chance is None else f", chance {self.chance:.4f}"
        lines = [f"consistency R2 {self.mean:.4f}{ends}{chance} ({self.n} held-out rows)"]
        width = max(8, *(len(name) for name in self.names))
        lines.append(" " * (width + 7) + " ".join(f"{name:>{width}}" for name in self.names))
        for name, row in zip(self.names, self.r2, strict=True):
            lines.append(f"from {name:>{width}}: " + " ".join(f"{value:{width}.4f}" for value in row))
        return "\n".join(lines)


_DECODED = (Consistency, FactorScore, DecodeResult, Disentanglement)


def letter(i: int) -> str:
    """A short name for one of several inputs: A to Z, then A1, B1, …"""
    return chr(ord("A") + i % 26) + (str(i // 26) if i >= 26 else "")


VERDICTS = (*(e.value for e in Equivalence if e <= AFFINE), "nonlinear", "unrelated", "cannot tell")
"""Every verdict of an audit, from the tightest relation to none."""


@dataclass(frozen=True)
class AuditMatrix:
    """Verdicts on every ordered pair of several matrices of embeddings of the same rows.

    Pairs are ordered because a map may lose directions one way and have nothing to lose the other way.

    Attributes:
        names: of the embeddings.
        dims: columns of each.
        n: rows in all of them.
        audits: from the first to each other one, then from the second to each other one, and so on.
        provenance: versions, date, seed.
    """

    names: tuple[str, ...]
    dims: tuple[int, ...]
    n: int
    audits: tuple[AuditResult, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, pair: tuple[int, int]) -> AuditResult:
        """The audit from one of them to another, both counted from 0."""
        a, b = pair
        if a == b or not (0 <= a < len(self.names) and 0 <= b < len(self.names)):
            raise BadInput(f"a pair is two different numbers below {len(self.names)}, but {pair} came.")
        return self.audits[a * (len(self.names) - 1) + b - (b > a)]

    @property
    def sentence(self) -> str:
        """How many pairs have which verdict, the looser one of both directions."""
        m = len(self.names)
        looser = [max((self[i, j].verdict, self[j, i].verdict), key=VERDICTS.index) for i in range(m) for j in range(i)]
        said = ", ".join(f"{looser.count(v)} {v}" for v in VERDICTS if v in looser)
        return f"{len(looser)} pairs of {m} inputs: {said}."

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(a.sentence for a in self.audits)])


@dataclass(frozen=True)
class LayerAudit:
    """Two models on the same data, layer by layer.

    Attributes:
        a: name of the model mapped from.
        b: name of the model mapped to.
        data: name of the data.
        layers: pairs of layers, from the first to the last: names in a and in b.
        audits: of the features of each pair.
        provenance: versions, date, seed.
    """

    a: str
    b: str
    data: str
    layers: tuple[tuple[str, str], ...]
    audits: tuple[AuditResult, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """How many layers have which verdict."""
        found = [audit.verdict for audit in self.audits]
        said = ", ".join(f"{found.count(v)} {v}" for v in VERDICTS if v in found)
        return f"{len(found)} layers of {self.a} and {self.b} on {self.data}: {said}."

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(a.sentence for a in self.audits)])


_JUDGED = (Score, Profile, Answer, Prediction, Spread, HeadCheck, Diversity, ModelPair)
_AUDITED = (AuditResult, AuditMatrix, LayerAudit, *_DECODED)
_RECORDED = (*_JUDGED, *_AUDITED, Curve, Picture, Record)
_COMPARED = (Published, Measured, RowResult, TableResult, SweepResult)
_FAMILY = (ModelRecord, Agreement, WordMap, FamilyResult)
_KINDS: dict[str, type] = {kind.__name__: kind for kind in (*_RECORDED, *_COMPARED, *_FAMILY)}


def to_json(result: Any) -> str:
    """A result as JSON text; every object says its kind."""
    return json.dumps(_encode(result), indent=1, ensure_ascii=False, allow_nan=False)


def from_json(text: str) -> Any:
    """The result that `to_json` wrote."""
    try:
        return _decode(json.loads(text))
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"this is not a result written by zhat: {error}") from error


def _encode(value: Any) -> Any:
    if isinstance(value, Equivalence):
        return {"kind": "Equivalence", "name": value.name}
    if type(value).__name__ in _KINDS:
        return {
            "kind": type(value).__name__,
            **{f.name: _encode(getattr(value, f.name)) for f in fields(value)},
        }
    if isinstance(value, tuple | list):
        return [_encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise BadInput(f"a result must not hold {value}; a failed computation has no score.")
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decode(item) for item in value)
    if not isinstance(value, dict):
        return value
    if value.get("kind") == "Equivalence":
        return Equivalence[value["name"]]
    if value.get("kind") in _KINDS:
        return _KINDS[value["kind"]](**{key: _decode(item) for key, item in value.items() if key != "kind"})
    return {key: _decode(item) for key, item in value.items()}
