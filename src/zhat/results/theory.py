"""What theory says: predictions with their conditions, classifiers' heads, two models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from zhat.equivalence import Equivalence
from zhat.results.scores import describe
from zhat.shown import Shown

Truth = Literal["yes", "no", "unknown"]


@dataclass(frozen=True)
class Answer:
    """A condition of a theorem, and whether it holds here."""

    condition: str
    holds: Truth
    because: str

    def __str__(self) -> str:
        return f"{self.holds:<8}{self.condition}: {self.because}"


@dataclass(frozen=True, repr=False)
class Prediction(Shown):
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
        instead: what the other conditions still give, where one fails that only the tightness of the conclusion needs.
    """

    theorem: str
    cite: str
    up_to: Equivalence | None
    shift: bool
    scale: float | None
    answers: tuple[Answer, ...]
    notes: tuple[str, ...] = ()
    what: str = "Latents are recovered"
    instead: str = ""

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
            instead = f" {self.instead[0].upper()}{self.instead[1:]}." if self.instead else ""
            return f"No guarantee: {source} would give {up_to}, but {verb} here: {'; '.join(failed)}.{instead}"
        unknown = [a.condition for a in self.answers if a.holds == "unknown"]
        return f"{self.what} up to {up_to} {source}, provided that: {'; '.join(unknown)}."

    def __str__(self) -> str:
        return "\n".join([self.sentence, *(f"  {a}" for a in self.answers), *(f"  note: {n}" for n in self.notes)])

    def _lines(self) -> Iterator[dict[str, Any]]:
        return ({"condition": a.condition, "holds": a.holds, "because": a.because} for a in self.answers)


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
        apart: symmetrised divergence of the two models' probabilities in nats, a mean over rows; 0 is what theory asks
            for. None without features.
        apart_by_chance: the same with rows paired at random: how much probabilities differ from row to row.
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
    apart: float | None = None
    apart_by_chance: float | None = None

    def __str__(self) -> str:
        lines = ["first head", *_indented(str(self.first)), "second head", *_indented(str(self.second))]
        if self.apart is not None:
            chance = "" if self.apart_by_chance is None else f"; rows paired at random: {self.apart_by_chance:.4g}"
            lines.append(f"probabilities      {self.apart:.4g} nats apart{chance}")
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
class ExponentFit:
    """The exponent of a generalised normal distribution, fitted to steps.

    Attributes:
        value: the exponent p: 2 is normal, 1 is Laplace, less is sparser.
        low: lower end of the 95% interval, from resampled groups of steps.
        high: upper end of it.
        scale: the fitted scale a, in the units of the steps.
        n: steps.
        groups: of them.
    """

    value: float
    low: float
    high: float
    scale: float
    n: int
    groups: int

    def __str__(self) -> str:
        return f"exponent {self.value:.2f}, 95% interval [{self.low:.2f}, {self.high:.2f}] ({self.n:,} steps)"
