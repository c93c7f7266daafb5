"""Yes-or-no targets read one by one from representations: what a row is compared with, and the judge of such rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy import stats
from torch import nn

from zhat.dgp import Process
from zhat.equivalence import AFFINE
from zhat.errors import BadInput
from zhat.experiment.judges import Evidence
from zhat.experiment.readings import Trained
from zhat.experiment.scoring import represent
from zhat.metrics import Measure, binary
from zhat.metrics.decoding import holm
from zhat.results import Counts, Decoding, Judged, Judgement, Measured, Record, Score, Sides, Target

if TYPE_CHECKING:
    from zhat.experiment.settings import Budget, Row

LEVEL = 0.05
TELLING = 75.0  # percent; a target of which even this much would be missed says nothing where it is not found


@dataclass(frozen=True)
class Targets:
    """Yes-or-no targets of recorded rows, each read from the representation of all of them.

    The process has `targets`, the names of its latents, and `whole()`, all its rows as (features, targets, names). Its
    seed is the split: seed 0 is the first of the paper's.

    Args:
        shuffles: how many fits to shuffled targets the chance level of a split is the mean of.
    """

    shuffles: int = 10
    watched: ClassVar[str] = ""
    sides: ClassVar[Sides] = Sides(
        question="Which known targets can be read from these features?", truth="the targets", one="target", raw=""
    )

    def refuse_few(self, encoder: nn.Module, world: Process, budget: Budget) -> None:
        """Raise `TooFewRows` where a target cannot be on both sides of a split."""
        binary.refuse_rare(world.whole().targets.numpy(), world.targets)  # type: ignore[attr-defined]

    def watch(self, trained: Trained, budget: Budget) -> float:
        """Nothing."""
        return math.nan

    def scored(self, record: Record, trained: Trained, row: Row, budget: Budget, measure: Measure | None) -> Record:
        """Every target by the paper's protocol and by ours, on one split."""
        world = trained.world
        found, names = world.whole(), world.targets  # type: ignore[attr-defined]
        h = represent(trained.encoder, found.features.to(trained.device)).cpu()
        y = found.targets.numpy().astype(bool)
        as_paper = binary.positive_on_average(h.numpy())
        fit, read = binary.split_for_all(y, world.seed)
        guesses = binary.discriminated(h, y, fit, read, shuffles=self.shuffles, seed=world.seed)
        readings, factors, counts = {}, {}, {}
        for i, name in enumerate(names):
            mine, *shuffled = (binary.counts(y[:, i], read, guess[:, i]) for guess in guesses)
            by_paper = binary.balanced_logistic(as_paper, y[:, i], *binary.split(y[:, i], world.seed))
            readings[name] = (by_paper, mine.balanced_accuracy)
            factors[name] = _score(mine, [each.balanced_accuracy for each in shuffled], len(fit))
            counts[name] = mine
        return replace(record, sides=self.sides, readings=readings, factors=factors, counts=counts)


def _score(found: Counts, shuffled: Sequence[float], fitted: int) -> Score:
    low, high = binary.balanced_interval(found)
    return Score(
        name="balanced accuracy",
        value=found.balanced_accuracy,
        up_to=AFFINE,
        shift=True,
        low=low,
        high=high,
        chance=statistics.fmean(shuffled) if shuffled else None,
        chance_high=float(np.quantile(shuffled, 0.95)) if shuffled else None,
        n=found.yes + found.no,
        n_fit=fitted,
        held_out=True,
        per_latent=(found.balanced_accuracy,),
    )


@dataclass(frozen=True)
class TargetsRead:
    """Which targets can be read from which models, and what a paper claims of them.

    Attributes:
        trained: names of rows that are trained networks.
        untrained: names of rows that are not: networks with random weights, pixels.
        plain: a target that trained networks show far above chance.
        of_pixels: targets that untrained networks or pixels show as well.
        order: targets as the paper orders them for a network of its own, hardest first; shown as a rank correlation.
    """

    trained: tuple[str, ...]
    untrained: tuple[str, ...]
    plain: str
    of_pixels: tuple[str, ...]
    order: tuple[str, ...]
    load: ClassVar[None] = None

    def __call__(self, evidence: Evidence) -> Judgement:
        """Every target of every finished model; the claims where all models of the paper's kinds are there."""
        decoded = _decoded(evidence)
        targets = _targets(evidence)
        said = f"Targets above chance, of {len(targets)}: {', '.join(_found(decoded, r.name) for r in evidence.rows)}"
        shown = {row.name for row in evidence.rows}
        if not shown >= {*self.trained, *self.untrained}:
            return Judgement(claim=said, targets=targets, decoded=decoded)
        if evidence.open:
            return Judgement(claim=f"{said}. Claims are not judged: {evidence.open}", targets=targets, decoded=decoded)
        rank = "; ".join(f"{name} {_rank(decoded, name, self.order):.2f}" for name in self.trained)
        return Judgement(
            rule=RULE,
            claim=f"{said}. Rank correlation of the targets with the paper's order, not judged: {rank}",
            claims=(
                self._far(decoded),
                *(self._also(decoded, target) for target in targets if target.name in self.of_pixels),
                self._most(decoded, targets),
            ),
            targets=targets,
            decoded=decoded,
        )

    def _far(self, decoded: Sequence[Decoding]) -> Judged:
        """The plain target is read far above chance from trained networks."""
        found = [d for d in decoded if d.target == self.plain and d.model in self.trained]
        return Judged(
            f"“{self.plain}” is far above chance for trained networks",
            f"for every trained network the 95% interval lies above {TELLING:.0f}%, halfway from chance to certainty",
            all(d.measured.low is not None and d.measured.low > TELLING for d in found),
            "Balanced accuracy: " + "; ".join(_told(d) for d in found) + ".",
        )

    def _also(self, decoded: Sequence[Decoding], target: Target) -> Judged:
        """A target is above chance without training as well."""
        here = [d for d in decoded if d.target == target.name and d.model in self.untrained]
        found = any(d.found for d in here)
        return Judged(
            f"“{target.name}” is above chance without training as well",
            "it is found in an untrained network or in pixels; where it is not found, that counts against the claim "
            f"only if {TELLING:.0f}% would have been found with a probability of 80%",
            True if found else False if _tells(target) else None,
            f"Balanced accuracy: {'; '.join(_told(d) for d in here)}. {_power(target)}.",
        )

    def _most(self, decoded: Sequence[Decoding], targets: Sequence[Target]) -> Judged:
        """Most targets are above chance for trained networks."""
        half = len(targets) / 2
        silent = {t.name for t in targets if not _tells(t)}
        answers: list[bool | None] = []
        said = []
        for name in self.trained:
            found = {d.target for d in decoded if d.model == name and d.found}
            answers.append(True if len(found) > half else None if len(found | silent) > half else False)
            said.append(_found(decoded, name))
        return Judged(
            "Most factors are above chance for trained networks",
            f"every trained network shows more than half of the {len(targets)} targets; targets of which "
            f"{TELLING:.0f}% would not have been found with a probability of 80% count neither way",
            False if False in answers else None if None in answers else True,
            f"Found: {', '.join(said)}. Too rare to tell: {', '.join(sorted(silent)) or 'none'}.",
        )


RULE = (
    "Found: the p-value of held-out guesses, corrected by Holm for all targets and models, is at most 0.05. The "
    "p-value of a split is Fisher's exact test; of several splits it is twice their lower median. The paper's test "
    "compares the mean accuracy over splits with 50% by Student's t at 0.05 / (targets × models); splits share "
    "images, which that test does not know. A claim about targets that are too rare to be found cannot be told."
)


def _decoded(evidence: Evidence) -> tuple[Decoding, ...]:
    """Every target of every finished row, corrected for all of them together."""
    cells = [
        (row.name, target, evidence.records[row.name])
        for row in evidence.rows
        for target in evidence.records[row.name][0].counts
    ]
    p = holm([binary.of_splits([binary.by_shuffling(r.counts[target]) for r in runs]) for _, target, runs in cells])
    return tuple(
        _decoding(model, target, runs, corrected, LEVEL / len(cells))
        for (model, target, runs), corrected in zip(cells, p, strict=True)
    )


def _decoding(model: str, target: str, runs: Sequence[Record], p: float, level: float) -> Decoding:
    values, ours = (tuple(100 * r.readings[target][i] for r in runs) for i in (0, 1))
    scores = [r.factors[target] for r in runs]
    lows, highs, chances = (
        [100 * v for s in scores if (v := getattr(s, end)) is not None] for end in ("low", "high", "chance")
    )
    measured = Measured(
        None,
        values,
        ours,
        statistics.fmean(lows) if lows else None,
        statistics.fmean(highs) if highs else None,
        digits=1,
        chance=statistics.fmean(chances) if chances else None,
    )
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    by_paper = float(stats.ttest_1samp(values, 50.0).pvalue) if spread > 0 else None
    above = measured.mean > 50
    return Decoding(
        model, target, measured, by_paper, by_paper is not None and above and by_paper < level, p, p <= LEVEL
    )


def _targets(evidence: Evidence) -> tuple[Target, ...]:
    """What the images of the first row can tell of each target, at the level of the first step of Holm."""
    runs = evidence.records[evidence.rows[0].name]
    found = runs[0].counts
    level = LEVEL / (len(found) * len(evidence.rows)) / (1 if len(runs) == 1 else 2)
    out = []
    for name, one in found.items():
        least, surely = (binary.needed(one.yes, one.no, level, probability=share) for share in (0.8, 0.95))
        out.append(Target(name, one.images, one.having, least and 100 * least, surely and 100 * surely))
    return tuple(out)


def _tells(target: Target) -> bool:
    return target.needed is not None and target.needed <= TELLING


def _power(target: Target) -> str:
    least = "no accuracy" if target.needed is None else f"at least {target.needed:.0f}%"
    return f"{target.having} of {target.images:,} images have it, so {least} would be found with a probability of 80%"


def _found(decoded: Sequence[Decoding], model: str) -> str:
    mine = [d for d in decoded if d.model == model]
    return f"{model} {sum(d.found for d in mine)} ({sum(d.found_by_paper for d in mine)} by the paper's test)"


def _told(decoding: Decoding) -> str:
    mark = "" if decoding.found else ", not found"
    return f"{decoding.model} {decoding.measured.held_out_mean:.1f}{mark}"


def _rank(decoded: Sequence[Decoding], model: str, order: Sequence[str]) -> float:
    """Rank correlation of a model's accuracies by the paper's protocol with the paper's order."""
    mine = {d.target: d.measured.mean for d in decoded if d.model == model}
    if set(order) != set(mine):
        raise BadInput(f"the paper orders {', '.join(order)}, but {model} was read for {', '.join(mine)}.")
    return float(stats.spearmanr(range(len(order)), [mine[name] for name in order]).statistic)
