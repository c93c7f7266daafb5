"""Verdicts on embeddings: of a pair, of several, of layers; known factors in them; refits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

from zhat.equivalence import AFFINE, Equivalence
from zhat.errors import BadInput, UnknownName
from zhat.results.scores import Profile, Score
from zhat.shown import Drawn

WHOLE = 0.95
"""A map that explains at least this share of the variance gives the verdict its name: "affine"."""

HALF = 0.5
"""From this share to `WHOLE` the verdict is "partly affine"; below it, "weakly related", whatever the class."""


def strength(explained: float) -> str:
    """How much a map explains, in a word: "whole" from 0.95 on, "part" from 0.5 on, "weak" below.

    Args:
        explained: share of the variance on held-out rows (R2).
    """
    return "whole" if explained >= WHOLE else "part" if explained >= HALF else "weak"


@dataclass(frozen=True)
class Condition:
    """One condition of a gate and what came.

    Attributes:
        name: "require", "min", "max_condition", "min_recall", or "baseline" and the score compared.
        asked: the class, or the number that was the limit.
        found: what came; None where nothing did.
        passed: whether the condition holds.
        says: the same in words.
        pair: which pair or layer, where there are several; empty otherwise.
    """

    name: str
    asked: str | float
    found: str | float | None
    passed: bool
    says: str
    pair: str = ""


@dataclass(frozen=True)
class Gated:
    """What a gate asked of an audit, what came, and whether it passed.

    Attributes:
        passed: whether every condition holds.
        line: the outcome in one line, as it is printed.
        conditions: what was asked; of several pairs or layers, one after the other.
        not_asked: what this gate does not look at.
    """

    passed: bool
    line: str
    conditions: tuple[Condition, ...]
    not_asked: tuple[str, ...]


@dataclass(frozen=True)
class Mixture:
    """Two kinds of rows in one pair of files: as if vectors of two models lay in one store.

    Attributes:
        share: of the smaller part, among the sampled rows.
        low: lower end of its 95% interval (Wilson's).
        high: upper end of that interval.
        n: sampled rows looked at.
        rows: sampled rows of the smaller part: numbers, or ids.
        verdicts: on each part alone, the larger one first.
        explained: share of the variance of each part that its own map explains on held-out rows; None without a map.
    """

    share: float
    low: float
    high: float
    n: int
    rows: tuple[str, ...]
    verdicts: tuple[str, str]
    explained: tuple[float | None, float | None]

    @property
    def sentence(self) -> str:
        """The two parts in words."""
        first, second = (
            verdict if share is None else f"{verdict}, {share:.1%} of its variance explained"
            for verdict, share in zip(self.verdicts, self.explained, strict=True)
        )
        return (
            f"{1 - self.share:.1%} of the rows follow one map (that part alone: {first}), and {self.share:.1%} "
            f"[{self.low:.1%}, {self.high:.1%}] do not (that part alone: {second})"
        )


@dataclass(frozen=True, repr=False)
class AuditResult(Drawn):
    """What relates two matrices of embeddings of the same rows.

    Attributes:
        verdict: the tightest class that holds, named by how much it explains: "affine" (at least 95% of the variance
            on held-out rows), "partly affine" (at least half) or "weakly related" (less, of whatever class); or
            "nonlinear", "mixed" (two kinds of rows), "unrelated", "cannot tell". `VERDICTS` lists them all.
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
        searched: recall@k behind the map for the k that was asked for; None where none was.
        explained: share of the variance that the map of the class found explains on held-out rows; where it is
            nonlinear, what the better one of an affine map and a nonlinear probe explains; None where nothing relates.
        strength: that share in a word: "whole", "part" or "weak"; None where nothing relates, and in results of
            versions that did not say it.
        gate: what a gate asked and what came; None where there was none.
        mixed: the two kinds of rows, where a share of them follows one map and the rest another one or none.
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
    searched: Score | None = None
    explained: float | None = None
    strength: str | None = None
    gate: Gated | None = None
    mixed: Mixture | None = None

    @property
    def bent(self) -> bool:
        """Whether there is a relation, but none up to an affine map."""
        return self.up_to is None and self.verdict in ("nonlinear", "weakly related")

    @property
    def score(self) -> Score | None:
        """The score of the class found; that of affine maps where the relation is nonlinear or rows are mixed."""
        wanted = AFFINE if self.bent or self.verdict == "mixed" else self.up_to
        return next((s for s in self.ladder if s.up_to is wanted), None)

    @property
    def partial(self) -> bool:
        """Whether the class found explains less than 95% of the variance: what is related is of that class."""
        return self.up_to is not None and self.score is not None and self.score.value < WHOLE

    @property
    def sentence(self) -> str:
        """The verdict for a reader in a hurry."""
        if self.verdict == "cannot tell":
            more = "" if self.rows_needed is None else f" Bring at least {self.rows_needed:,} rows."
            return f"Cannot tell how {self.b} relates to {self.a}: {self.because}.{more}"
        if self.verdict == "mixed":
            return f"{self.a} and {self.b} hold two kinds of rows, as if of two models: {self.because}."
        if self.verdict == "unrelated":
            return f"{self.b} and {self.a} are unrelated: {self.because}."
        if self.verdict == "weakly related":
            bent = ", and by no affine map" if self.bent else ""
            return f"{self.b} and {self.a} are only weakly related{bent}: {self.because}."
        if self.verdict == "nonlinear":
            return f"{self.b} and {self.a} are related, but by no affine map: {self.because}."
        assert self.up_to is not None, "every other verdict is a class of maps"
        if self.up_to is Equivalence.IDENTITY:
            return f"{self.b} is {'in part ' if self.partial else ''}{self.a}: {self.because}."
        article = "an" if str(self.up_to)[0] in "aio" else "a"
        part = "in part " if self.partial else ""
        meaning = self.up_to.meaning if self.dim_a == self.dim_b else self.up_to.meaning.replace("any invertible", "a")
        return f"{self.b} is {part}{self.a} up to {article} {self.up_to} map ({meaning}): {self.because}."

    def __str__(self) -> str:
        return f"{self.sentence}\n{self.ladder}"

    def _lines(self) -> Iterator[dict[str, Any]]:
        return (score.line() for score in (*self.ladder, *self.beyond, *self.recall))

    def line(self) -> dict[str, Any]:
        """The verdict as one line of a table."""
        score = self.score
        return {
            "verdict": self.verdict,
            "value": None if score is None else score.value,
            "low": None if score is None else score.low,
            "high": None if score is None else score.high,
            "explained": self.explained,
            "directions": self.directions,
        }


def letter(i: int) -> str:
    """A short name for one of several inputs: A to Z, then A1, B1, …"""
    return chr(ord("A") + i % 26) + (str(i // 26) if i >= 26 else "")


_CLASSES = tuple(e.value for e in Equivalence if e <= AFFINE)
VERDICTS = (
    *_CLASSES,
    *(f"partly {name}" for name in _CLASSES),
    "nonlinear",
    "mixed",
    "weakly related",
    "unrelated",
    "cannot tell",
)
"""Every verdict of an audit, from the tightest and strongest relation to none."""


def _counted(verdicts: list[str]) -> str:
    """How often each verdict was given."""
    return ", ".join(f"{verdicts.count(v)} {v}" for v in VERDICTS if v in verdicts)


@dataclass(frozen=True, repr=False)
class AuditMatrix(Drawn):
    """Verdicts on every ordered pair of several matrices of embeddings of the same rows.

    Pairs are ordered because a map may lose directions one way and have nothing to lose the other way.

    Attributes:
        names: of the embeddings.
        dims: columns of each.
        n: rows in all of them.
        audits: from the first to each other one, then from the second to each other one, and so on.
        provenance: versions, date, seed.
        gate: what a gate asked and what came; None where there was none.
    """

    names: tuple[str, ...]
    dims: tuple[int, ...]
    n: int
    audits: tuple[AuditResult, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    gate: Gated | None = None

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
        return f"{len(looser)} pairs of {m} inputs: {_counted(looser)}."

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(a.sentence for a in self.audits)])

    def _lines(self) -> Iterator[dict[str, Any]]:
        pairs = permutations(self.names, 2)
        return ({"from": a, "to": b} | audit.line() for (a, b), audit in zip(pairs, self.audits, strict=True))


@dataclass(frozen=True, repr=False)
class LayerAudit(Drawn):
    """Two models on the same data, layer by layer.

    Attributes:
        a: name of the model mapped from.
        b: name of the model mapped to.
        data: name of the data.
        layers: pairs of layers, from the first to the last: names in a and in b.
        audits: of the features of each pair.
        provenance: versions, date, seed.
        gate: what a gate asked and what came; None where there was none.
    """

    a: str
    b: str
    data: str
    layers: tuple[tuple[str, str], ...]
    audits: tuple[AuditResult, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    gate: Gated | None = None

    @property
    def best(self) -> tuple[int, ...]:
        """For each layer of a, the place of the pair whose map explains most; all pairs where layers are paired."""
        found: dict[str, int] = {}
        for place, ((name, _), audit) in enumerate(zip(self.layers, self.audits, strict=True)):
            if name not in found or (audit.explained or 0) > (self.audits[found[name]].explained or 0):
                found[name] = place
        return tuple(found.values())

    @property
    def sentence(self) -> str:
        """How many layers have which verdict."""
        found = [audit.verdict for audit in self.audits]
        what = "layers" if len(self.best) == len(found) else "pairs of layers"
        return f"{len(found)} {what} of {self.a} and {self.b} on {self.data}: {_counted(found)}."

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(a.sentence for a in self.audits)])

    def _lines(self) -> Iterator[dict[str, Any]]:
        pairs = zip(self.layers, self.audits, strict=True)
        return ({"from": a, "to": b} | audit.line() for (a, b), audit in pairs)


@dataclass(frozen=True)
class ModelMatrix:
    """Several models on the same data, layer by layer: every ordered pair of them.

    Attributes:
        names: of the models.
        pairs: from the first model to each other one, then from the second, and so on.
        provenance: versions, date, seed.
        gate: what a gate asked and what came; None where there was none.
    """

    names: tuple[str, ...]
    pairs: tuple[LayerAudit, ...]
    provenance: Mapping[str, Any] = field(default_factory=dict)
    gate: Gated | None = None

    def __post_init__(self) -> None:
        m = len(self.names)
        if m < 2 or len(self.pairs) != m * (m - 1) or any(not one.audits for one in self.pairs):
            raise BadInput(
                f"{m} models have {m * (m - 1)} ordered pairs, each with a layer at least, but {len(self.pairs)} came."
            )

    @property
    def audits(self) -> tuple[AuditResult, ...]:
        """Those of all layers of all pairs, pair by pair."""
        return tuple(audit for pair in self.pairs for audit in pair.audits)

    @property
    def sentence(self) -> str:
        """How many layers have which verdict."""
        found = [audit.verdict for audit in self.audits]
        return f"{len(found)} comparisons of layers in {len(self.pairs)} ordered pairs of models: {_counted(found)}."

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(pair.sentence for pair in self.pairs)])


@dataclass(frozen=True)
class FactorScore:
    """How well one known factor can be read from a representation by a linear map.

    Attributes:
        name: of the factor.
        type: "real", "circular" or "categorical".
        measure: "R2" (of (cos, sin) for a circular factor), or "balanced accuracy".
        value: on held-out rows; None where there can be no score.
        low: lower end of the 95% interval over the rows read.
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
    value: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    p: float | None = None
    p_corrected: float | None = None
    found: bool = False
    classes: tuple[str, ...] = ()
    period: float | None = None
    also: Mapping[str, float] = field(default_factory=dict)
    because: str = ""

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.name}: no score, {self.because}"
        ends = "" if self.low is None else f", 95% interval [{self.low:.4f}, {self.high:.4f}]"
        return f"{self.name}: {self.measure} {self.value:.4f}{ends}, chance {self.chance:.4f}, p {self.p_corrected:.2g}"


@dataclass(frozen=True, repr=False)
class DecodeResult(Drawn):
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

    def _lines(self) -> Iterator[dict[str, Any]]:
        for s in self.scores:
            line: dict[str, Any] = {"factor": s.name, "type": s.type, "measure": s.measure, "value": s.value}
            line |= {"low": s.low, "high": s.high, "chance": s.chance, "p": s.p, "p_corrected": s.p_corrected}
            yield line | {"found": s.found, "because": s.because}


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


@dataclass(frozen=True, repr=False)
class Consistency(Drawn):
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

    def _lines(self) -> Iterator[dict[str, Any]]:
        for name, row in zip(self.names, self.r2, strict=True):
            for other, value in zip(self.names, row, strict=True):
                if other != name:
                    yield {"from": name, "to": other, "r2": value}
