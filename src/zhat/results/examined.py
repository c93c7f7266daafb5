"""What rows of latents say about the conditions of theorems: answers with numbers, fitted laws, pictures as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from zhat.results.theory import Prediction, Truth

Shape = Literal["sphere", "box", "ball", "unbounded", "unknown"]

SAID = {"yes": "holds", "no": "does not hold", "unknown": "cannot tell"}
"""How an answer is said of measured rows."""


@dataclass(frozen=True)
class Filled:
    """A space that some columns fill.

    Attributes:
        shape: which space.
        columns: numbers of the columns, from 0.
        radius: of a sphere or a ball.
        low: the lowest value in each column, the walls of a box.
        high: the highest value in each column.
    """

    shape: Shape
    columns: tuple[int, ...]
    radius: float | None
    low: tuple[float, ...]
    high: tuple[float, ...]

    def __str__(self) -> str:
        columns = "1 column" if len(self.columns) == 1 else f"{len(self.columns)} columns"
        if self.shape == "sphere":
            return f"a sphere of radius {self.radius:.4g} in {columns}"
        if self.shape == "ball":
            return f"a ball of radius {self.radius:.4g} in {columns}"
        if self.shape == "box":
            return f"a box in {columns}, from {min(self.low):.4g} to {max(self.high):.4g}"
        return f"all of R^{len(self.columns)}" if self.shape == "unbounded" else f"a space not recognised in {columns}"


@dataclass(frozen=True)
class Finding:
    """A condition, asked of rows.

    Attributes:
        condition: in words.
        holds: yes, no, or unknown where these rows cannot tell.
        because: in words, with the number.
        value: the number; what it is stands in `measure`.
        low: lower end of its 95% interval.
        high: upper end of it.
        p_value: of a test that the condition holds exactly.
        measure: what the number is.
        where: which columns the condition speaks of; empty for all.
    """

    condition: str
    holds: Truth
    because: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    measure: str = ""
    where: str = ""

    def __str__(self) -> str:
        return f"{SAID[self.holds]:<14}{self.condition}{f' ({self.where})' if self.where else ''}: {self.because}"


@dataclass(frozen=True)
class Histogram:
    """Counts as a density, and the density that was fitted or is asked for.

    Attributes:
        name: of the quantity.
        edges: of the bins, one more than bins.
        seen: density in each bin.
        fitted: density at the middle of each bin; empty where none was fitted.
        law: what was fitted or is asked for.
    """

    name: str
    edges: tuple[float, ...]
    seen: tuple[float, ...]
    fitted: tuple[float, ...] = ()
    law: str = ""


@dataclass(frozen=True)
class Family:
    """The conditional that was fitted to one space of the latents.

    Attributes:
        name: "von Mises-Fisher", "Laplace", "normal", "generalised normal", another law of a sphere ("projected
            Laplace"), "none of these", or "cannot tell".
        where: which columns.
        parameter: "concentration" or "exponent"; empty where nothing was fitted.
        value: of the parameter.
        low: lower end of its 95% interval.
        high: upper end of it.
        scales: the scale a of exp(-|t / a|^p) in each column; empty on a sphere.
        n: rows that were fitted.
    """

    name: str
    where: str
    parameter: str
    value: float | None
    low: float | None
    high: float | None
    scales: tuple[float, ...]
    n: int

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        interval = "" if self.low is None else f" [{self.low:.4g}, {self.high:.4g}]"
        scale = f", scale {_span(self.scales)}" if self.scales else ""
        return f"{self.name}, {self.parameter} {self.value:.4g}{interval}{scale}"


def _span(values: tuple[float, ...]) -> str:
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True)
class Suggestion:
    """The objective and output that match a measured conditional.

    Attributes:
        similarity: as Python writes it, for instance `NegativeLp(1.0)`.
        temperature: that makes the representation as large as the latents.
        output: as Python writes it, for instance `Sphere(10)`.
        because: in words.
    """

    similarity: str
    temperature: float
    output: str
    because: str

    def __str__(self) -> str:
        return (
            f"InfoNCE({self.similarity}, temperature={self.temperature:.4g}), output on {self.output}: {self.because}"
        )


@dataclass(frozen=True)
class Examination:
    """What rows of latents, or of a representation, say about the conditions of theorems.

    Attributes:
        name: of the rows.
        n: rows.
        used: rows that count: repeated ones once, of a series every so-many-th.
        dim: columns.
        paired: whether the next rows were given.
        spaces: what the rows fill, one for each group of columns.
        families: the conditional of each space; empty without pairs.
        findings: the conditions.
        prediction: which theorem then speaks; its conditions are those that rows can answer.
        suggestion: objective and output that match; None where none does.
        histograms: for a page.
        notes: what is odd about the rows.
    """

    name: str
    n: int
    used: int
    dim: int
    paired: bool
    spaces: tuple[Filled, ...]
    families: tuple[Family, ...]
    findings: tuple[Finding, ...]
    prediction: Prediction | None
    suggestion: Suggestion | None
    histograms: tuple[Histogram, ...] = ()
    notes: tuple[str, ...] = ()

    def __getitem__(self, condition: str) -> Finding:
        """The first finding whose condition contains these words."""
        for finding in self.findings:
            if condition in finding.condition:
                return finding
        raise KeyError(f"no condition is called {condition!r}; there are {[f.condition for f in self.findings]}")

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        space = " times ".join(str(s) for s in self.spaces)
        uniform = [f.holds for f in self.findings if f.condition == "uniform marginal"]
        how = {"yes": "uniformly", "no": "not uniformly", "unknown": "perhaps uniformly"}[worst(uniform)]
        said = f"The rows fill {space}" + ("" if all(s.shape == "unbounded" for s in self.spaces) else f" {how}")
        if self.families:
            said += "; z' around z is " + " and ".join(str(f) for f in self.families)
        if self.prediction is None:
            return said + "."
        if self.prediction.up_to is None:
            return said + ". No theorem known to zhat speaks of such rows."
        source = f"{self.prediction.theorem} of {self.prediction.cite}"
        failed = [a.condition for a in self.prediction.answers if a.holds == "no"]
        wanted = [a.condition for a in self.prediction.answers if a.holds == "unknown"]
        if failed:
            return f"{said}. {source} does not speak of them: {'; '.join(failed)}."
        if wanted:
            return f"{said}. {source} speaks of them if this holds: {'; '.join(wanted)}."
        return f"{said}. These are the conditions of {source}, which recovers latents up to {self.prediction.up_to}."

    def __str__(self) -> str:
        rows = f"{self.n:,} rows, {self.dim} columns"
        lines = [self.sentence, f"  {rows}" + ("" if self.used == self.n else f"; {self.used:,} of them count")]
        lines += [f"  {finding}" for finding in self.findings]
        if self.suggestion is not None:
            lines.append(f"  suggestion: {self.suggestion}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


@dataclass(frozen=True)
class Minimum:
    """The loss of a trained run beside the lowest that its world and batch allow.

    Attributes:
        floor: no representation has a lower expected loss with batches of this size, in nats.
        error: standard error of the floor, from drawn batches.
        latents: loss of the true latents at the scale that theory predicts, on the same batches; None where it
            predicts none.
        best: the lowest loss of the true latents at that scale or a smaller one.
        loss: of the trained representation on the same batches, or the last losses of the curve; None without either.
        measured: whether `loss` was measured on the same batches.
        batch: rows.
    """

    floor: float
    error: float
    latents: float | None
    best: float | None
    loss: float | None
    measured: bool
    batch: int

    @property
    def above(self) -> float | None:
        """How far the run ended above the floor, in nats."""
        return None if self.loss is None else self.loss - self.floor

    @property
    def sentence(self) -> str:
        """The comparison in one sentence."""
        floor = f"No encoder has an expected loss below {self.floor:.4f} nats (± {1.96 * self.error:.4f})"
        said = f"{floor} in this world with batches of {self.batch:,} rows"
        if self.latents is not None:
            said += f"; the true latents have {self.latents:.4f} at the predicted scale"
        if self.latents is not None and self.best is not None and self.best < self.latents - 1e-3:
            said += f" and {self.best:.4f} at their best scale"
        if self.loss is None or self.above is None:
            return said + "."
        where = "on the same rows" if self.measured else "at the end of its curve"
        return f"{said}; the run has {self.loss:.4f} {where}, {self.above:.4f} nats above the floor."


@dataclass(frozen=True)
class Injectivity:
    """Whether an encoder loses something along its data.

    Attributes:
        smallest: lowest singular value of the Jacobian of the representation by the latents (or by the observations
            where there are none), over rows and directions.
        typical: the median of the largest ones.
        rows: where Jacobians were taken.
        collisions: share of rows whose nearest neighbour in the representation lies far away in latent space (beyond
            the quarter of rows that are nearest there).
        of: rows among which neighbours were looked for.
    """

    smallest: float
    typical: float
    rows: int
    collisions: float
    of: int

    @property
    def sentence(self) -> str:
        """What was found."""
        share = self.smallest / self.typical if self.typical > 0 else 0.0
        return (
            f"Along {self.rows} rows the encoder stretches no direction less than {self.smallest:.3g}, {share:.2g} of "
            f"its typical largest stretch; {self.collisions:.1%} of {self.of:,} rows have a nearest neighbour that is "
            "far away in the latents."
        )


def worst(truths: list[Truth]) -> Truth:
    """No, if one is no; else unknown, if one is open or there is none; else yes."""
    return "no" if "no" in truths else "unknown" if "unknown" in truths or not truths else "yes"
