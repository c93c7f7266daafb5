"""What a run leaves behind."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from zhat.equivalence import Equivalence
from zhat.errors import BadInput
from zhat.results.scores import Profile, Score, describe
from zhat.results.theory import Prediction
from zhat.shown import Drawn


@dataclass(frozen=True, repr=False)
class Curve(Drawn):
    """How training went: losses, and whatever was watched, at some steps."""

    steps: tuple[int, ...]
    loss: tuple[float, ...]
    watched_steps: tuple[int, ...] = ()
    watched: tuple[float, ...] = ()
    watched_name: str = ""

    def __post_init__(self) -> None:
        if len(self.steps) != len(self.loss) or len(self.watched_steps) != len(self.watched):
            raise BadInput("a curve must have one value for each step")

    def _lines(self) -> Iterator[dict[str, Any]]:
        seen, losses = (
            dict(zip(*pair, strict=True)) for pair in ((self.watched_steps, self.watched), (self.steps, self.loss))
        )
        for step in sorted(losses.keys() | seen.keys()):
            yield {"step": step, "loss": losses.get(step)} | ({self.watched_name: seen.get(step)} if seen else {})


@dataclass(frozen=True, repr=False)
class Picture(Drawn):
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

    def __post_init__(self) -> None:
        drawn = (self.z, self.z_hat, self.correlation)
        if not all(rows and rows[0] for rows in drawn) or len({len(row) for row in (*self.z, *self.z_hat)}) != 1:
            raise BadInput("a picture must have rows of one length")
        if len(self.z) != len(self.z_hat) or len({len(row) for row in self.correlation}) != 1:
            raise BadInput("a picture must have as many rows of latents as of estimates")

    def _lines(self) -> Iterator[dict[str, Any]]:
        for i, row in enumerate(self.correlation):
            yield {"latent": i + 1} | {f"h{j + 1}": value for j, value in enumerate(row)}


@dataclass(frozen=True)
class Sides:
    """The two sides of a comparison, in the words of a page.

    Attributes:
        question: what the comparison asks.
        truth: what the representation is compared with.
        one: one coordinate of it.
        learned: the representation.
        symbols: of one coordinate of the truth, and of its estimate.
        raw: what the raw scores were read from; empty where there are none.
    """

    question: str = "Did the model recover the latents behind the data?"
    truth: str = "the latents"
    one: str = "latent"
    learned: str = "the representation"
    symbols: tuple[str, str] = ("z", "ẑ")
    raw: str = "raw observations"


@dataclass(frozen=True)
class Counts:
    """What was guessed right of one yes-or-no target, on images that the fit has not seen.

    Attributes:
        images: all of them, fitted or read.
        having: how many of all have the target.
        yes: images read that have it.
        no: images read that do not.
        hits: how many of `yes` are named right.
        rejections: how many of `no` are named right.
    """

    images: int
    having: int
    yes: int
    no: int
    hits: int
    rejections: int

    @property
    def balanced_accuracy(self) -> float:
        """The mean of both shares that are named right; 0.5 by chance."""
        return (self.hits / self.yes + self.rejections / self.no) / 2


@dataclass(frozen=True, repr=False)
class Record(Drawn):
    """One finished run: one world, one encoder, one seed.

    Attributes:
        name: what was run, for a reader.
        seed: of world and encoder.
        settings: process, objective, encoder and budget, each as its repr.
        provenance: versions, device, commit, date.
        seconds: wall time of the training this seed was part of.
        curve: losses over training.
        stack: the seeds that were trained together with this one, itself among them.
        sides: what the representation is compared with.
        prediction: what theory says.
        raw: scores of the observations themselves, where there are any.
        learned: scores of the representation; None for a model that is only compared with its peers.
        picture: what a page draws.
        by_paper: the score a paper's table prints, by the paper's own protocol, where the run belongs to one.
        held_out: the same score read on rows the fit has not seen.
        raw_by_paper: `by_paper` of the observations themselves, where the paper prints it.
        raw_held_out: `held_out` of the observations themselves.
        readings: further numbers of the row by name: by the paper's protocol, and ours.
        factors: known factors read one by one from the representation of held-out rows, with interval and chance, by
            name; each has a reading of the same name.
        counts: of yes-or-no targets, by name: what was guessed right on held-out images.
        samples: some observations as a picture, one line for each view, as a data URI; empty where they are no images.
    """

    name: str
    seed: int
    settings: Mapping[str, Any]
    provenance: Mapping[str, Any]
    seconds: float
    curve: Curve
    stack: tuple[int, ...] = ()
    sides: Sides = Sides()
    prediction: Prediction | None = None
    raw: Profile | None = None
    learned: Profile | None = None
    picture: Picture | None = None
    by_paper: Score | None = None
    held_out: Score | None = None
    raw_by_paper: Score | None = None
    raw_held_out: Score | None = None
    readings: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    samples: str = ""
    factors: Mapping[str, Score] = field(default_factory=dict)
    counts: Mapping[str, Counts] = field(default_factory=dict)

    def __str__(self) -> str:
        said = [f"{self.name}, seed {self.seed}", *([] if self.prediction is None else [self.prediction.sentence])]
        return "\n".join([*said, *([] if self.learned is None else [str(self.learned)])])

    def _lines(self) -> Iterator[dict[str, Any]]:
        if self.learned is None:
            return self.curve._lines()
        raw = {} if self.raw is None else {s.up_to: s.value for s in self.raw}
        return (score.line() | {"raw": raw.get(score.up_to)} for score in self.learned)


@dataclass(frozen=True)
class Across:
    """The scores of one class of maps over the seeds of a setting.

    Attributes:
        up_to: the class.
        name: the class in words, with the shift if one is forgiven.
        raw: held-out R2 of the observations themselves, one for each seed; empty where there are none.
        learned: held-out R2 of the representation, one for each seed.
        low: lowest end of the seeds' 95% intervals.
        high: highest end of them.
        chance: mean over seeds of what shuffled rows give.
        predicted: whether theory predicts this class.
    """

    up_to: Equivalence
    name: str
    raw: tuple[float, ...]
    learned: tuple[float, ...]
    low: float | None
    high: float | None
    chance: float | None
    predicted: bool

    @property
    def raw_mean(self) -> float | None:
        """Mean over seeds; None where there are no raw scores."""
        return statistics.fmean(self.raw) if self.raw else None

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return statistics.fmean(self.learned)

    @property
    def spread(self) -> float | None:
        """Standard deviation over seeds; None for one seed."""
        return statistics.stdev(self.learned) if len(self.learned) > 1 else None


@dataclass(frozen=True, repr=False)
class SeedScores(Drawn):
    """How much every seed of a run recovered, with bounds beside.

    Attributes:
        seeds: which.
        learned: scores of the representation, one profile for each seed.
        raw: of the observations themselves, the lower bound: one for each seed, or one where seeds share a world.
        supervised: of networks trained on the true latents, the upper bound; empty where none were given.
        prediction: what theory says.
    """

    seeds: tuple[int, ...]
    learned: tuple[Profile, ...]
    raw: tuple[Profile, ...]
    supervised: tuple[Profile, ...] = ()
    prediction: Prediction | None = None

    def __post_init__(self) -> None:
        if not self.seeds or len(self.learned) != len(self.seeds) or len(self.raw) not in (1, len(self.seeds)):
            raise BadInput("the scores of a run must hold one profile for each seed")

    def __getitem__(self, up_to: Equivalence) -> Across:
        for rung in self.across:
            if rung.up_to is up_to:
                return rung
        raise BadInput(
            f"there is no score up to {up_to.name}; there are {', '.join(r.up_to.name for r in self.across)}"
        )

    @property
    def across(self) -> tuple[Across, ...]:
        """Class by class over the seeds, tightest first."""
        return over_seeds(self.learned, self.raw, self.prediction)

    @property
    def upper(self) -> dict[Equivalence, float]:
        """The mean upper bound of each class; empty where there is none."""
        return {} if not self.supervised else {a.up_to: a.mean for a in over_seeds(self.supervised, (), None)}

    def __str__(self) -> str:
        upper = self.upper
        head = ("up to", "raw x", "learned h", "sd", "95% interval", "chance", *(["supervised"] if upper else []))
        lines = [head]
        for rung in self.across:
            ends = "" if rung.low is None or rung.high is None else f"[{rung.low:.3f}, {rung.high:.3f}]"
            cells = [
                f"{rung.name}{' *' if rung.predicted else ''}",
                "" if rung.raw_mean is None else f"{rung.raw_mean:.3f}",
            ]
            cells += [f"{rung.mean:.3f}", "" if rung.spread is None else f"{rung.spread:.3f}", ends]
            cells += ["" if rung.chance is None else f"{rung.chance:.3f}"]
            lines.append((*cells, *([f"{upper[rung.up_to]:.3f}"] if upper else [])))
        kept = [i for i in range(len(head)) if any(line[i] for line in lines[1:])]
        wide = {i: max(len(line[i]) for line in lines) for i in kept}
        table = [
            "  ".join(line[i].ljust(wide[i]) if i == 0 else line[i].rjust(wide[i]) for i in kept).rstrip()
            for line in lines
        ]
        star = " * the class theory predicts." if any(rung.predicted for rung in self.across) else ""
        return "\n".join([*table, *textwrap.wrap(self.legend + star, 78)])

    @property
    def legend(self) -> str:
        """What the numbers are."""
        first = self.learned[0].scores[0]
        several = len(self.seeds) > 1
        said = [
            f"{first.name} on {first.n:,} held-out rows{f', mean of {len(self.seeds)} seeds' if several else ''}.",
            f"Interval: {'lowest to highest end of the seeds’ ' if several else ''}95% interval"
            f"{'s' if several else ''} over rows.",
            "raw x: the observations themselves. chance: shuffled rows.",
        ]
        if self.supervised:
            said.append("supervised: networks trained on the true latents.")
        return " ".join(said)

    def _lines(self) -> Iterator[dict[str, Any]]:
        for i, seed in enumerate(self.seeds):
            raw = self.raw[min(i, len(self.raw) - 1)]
            for score in self.learned[i]:
                yield {"seed": seed} | score.line() | {"raw": raw[score.up_to].value}


def across(records: Sequence[Record]) -> tuple[Across, ...]:
    """The scores of some runs of one setting, class by class, tightest first."""
    if records[0].learned is None:
        return ()
    learned = [r.learned for r in records if r.learned is not None]
    return over_seeds(learned, [r.raw for r in records if r.raw is not None], records[0].prediction)


def over_seeds(learned: Sequence[Profile], raw: Sequence[Profile], prediction: Prediction | None) -> tuple[Across, ...]:
    """The scores of some seeds, class by class, tightest first."""
    found = []
    for first in learned[0]:
        here = [profile[first.up_to] for profile in learned]
        ends = [(s.low, s.high) for s in here if s.low is not None and s.high is not None]
        chances = [s.chance for s in here if s.chance is not None]
        found.append(
            Across(
                up_to=first.up_to,
                name=describe(first.up_to, first.shift),
                raw=tuple(s.value for profile in raw for s in profile if s.up_to is first.up_to),
                learned=tuple(s.value for s in here),
                low=min(low for low, _ in ends) if ends else None,
                high=max(high for _, high in ends) if ends else None,
                chance=statistics.fmean(chances) if chances else None,
                predicted=prediction is not None and prediction.holds != "no" and prediction.up_to is first.up_to,
            )
        )
    return tuple(found)
