"""What the representation of a row is compared with: its latents, known factors, a twin model, or its peers.

A value that owns which rows are drawn, what is watched while training, the scores, and the words of a page.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Protocol

import torch
from torch import Tensor, nn

from zhat import randomness
from zhat.dgp import Process
from zhat.encoders import Pair
from zhat.equivalence import AFFINE
from zhat.errors import BadInput, TooFewRows
from zhat.experiment.readings import Trained
from zhat.experiment.samples import samples
from zhat.experiment.scoring import (
    PROJECTED,
    Raw,
    averaged,
    has_no_middle,
    held_out,
    is_narrow,
    latents_and_observations,
    picture,
    represent,
    rows_for_scoring,
)
from zhat.metrics import CCA, Measure, Recovery, profile
from zhat.objectives import Objective
from zhat.results import Profile, Record, Score, Sides
from zhat.theory import predict

if TYPE_CHECKING:
    from zhat.experiment.settings import Budget, Row


class Against(Protocol):
    """What a representation is compared with."""

    @property
    def watched(self) -> str:
        """What is watched while training; empty where nothing is."""

    def watch(self, trained: Trained, budget: Budget) -> float:
        """The number that is watched, of a seed while it is trained."""

    def refuse_few(self, encoder: nn.Module, world: Process, budget: Budget) -> None:
        """Raise `TooFewRows`, before training, where the budget draws too few rows for a score."""

    def scored(self, record: Record, trained: Trained, row: Row, budget: Budget, measure: Measure | None) -> Record:
        """The record of a trained seed with its scores."""


class _Known:
    """What latents and known factors have in common: rows of the truth beside rows of the representation."""

    watched: ClassVar[str] = "affine R2"
    sides: ClassVar[Sides]
    seen: bool = False
    batch: int = 0

    def refuse_few(self, encoder: nn.Module, world: Process, budget: Budget) -> None:
        """Raise `TooFewRows` where an affine map could not be told from noise."""
        z, x = latents_and_observations(world, 2, 0, "cpu")
        for seen in (Raw(), encoder):
            Recovery(AFFINE).refuse_few(budget.profile_rows, z.shape[1], represent(seen, x).shape[1])

    def watch(self, trained: Trained, budget: Budget) -> float:
        """Held-out R2 up to an affine map."""
        try:
            return Recovery(AFFINE, repeats=0, shuffles=0)(*trained.represented(min(1024, budget.rows), 1)).value
        except BadInput:  # a representation that has collapsed for the moment has no score
            return math.nan

    def scored(self, record: Record, trained: Trained, row: Row, budget: Budget, measure: Measure | None) -> Record:
        """The profile of raw observations and of the representation, and both readings of the measure."""
        world, device = trained.world, trained.device
        z, x = latents_and_observations(world, budget.profile_rows, 0, device)
        h, shift = represent(trained.encoder, x), has_no_middle(world)
        said = self.sides.raw if is_narrow(x) else f"{PROJECTED} random projections of the {self.sides.raw}"
        record = replace(
            record,
            sides=replace(self.sides, raw=said),
            prediction=predict(world, row.objective, row.encoder),
            raw=_of_observations(z, x, shift),
            learned=profile(z, h, shift=shift),
            picture=picture(z, h),
            samples=samples(world, device),
        )
        if measure is None:
            return record
        by_paper, ours = self.both_ways(measure, trained, batches=budget.batches)
        record = replace(record, by_paper=by_paper, held_out=ours)
        if row.identity is None:
            return record
        by_paper, ours = self.both_ways(measure, replace(trained, encoder=Raw()), batches=budget.batches)
        return replace(record, raw_by_paper=by_paper, raw_held_out=ours)

    def both_ways(self, measure: Measure, trained: Trained, *, batches: int = 1) -> tuple[Score, Score]:
        """By the paper's protocol, a mean over batches; and read on rows that the fit has not seen."""
        drawn = [trained.represented(trained.rows, 100 + i, seen=self.seen, batch=self.batch) for i in range(batches)]
        return averaged(measure, drawn), held_out(measure, *trained.represented(2 * trained.rows, 99))


_PROFILES: OrderedDict[tuple[str, bool], Profile] = OrderedDict()
_KEPT = 8


def _of_observations(z: Tensor, x: Tensor, shift: bool) -> Profile:
    """The profile of raw observations; it takes long for images, so rows that read the same ones share it."""
    digest = hashlib.sha256()
    for side in (z, x):
        digest.update(f"{side.dtype}{tuple(side.shape)}".encode() + side.cpu().contiguous().numpy().tobytes())
    key = digest.hexdigest(), shift
    if key not in _PROFILES:
        _PROFILES[key] = profile(z, represent(Raw(), x), shift=shift)
        if len(_PROFILES) > _KEPT:
            _PROFILES.popitem(last=False)
    return _PROFILES[key]


@dataclass(frozen=True)
class Latents(_Known):
    """The latents of a world that knows them; of recorded data, rows that training never sees.

    Args:
        seen: read the paper's score on rows that training draws from, where a world holds others out; all other scores
            are read on held-out rows in any case.
        batch: read the paper's score with the batch statistics of so many rows, as a network that was not switched to
            evaluation does; 0 takes the statistics gathered in training, as all other scores do in any case.
    """

    seen: bool = False
    batch: int = 0
    sides: ClassVar[Sides] = Sides()


@dataclass(frozen=True)
class Factors(_Known):
    """Known factors of recorded data.

    Args:
        seen: read the paper's score on rows that training draws from, as some papers do; all others are read on
            held-out rows in any case.
    """

    seen: bool = False
    sides: ClassVar[Sides] = Sides(
        question="Did the model recover the known factors of the data?", truth="the known factors", one="factor"
    )


@dataclass(frozen=True)
class Also:
    """A reading: another measure of the rows on which a row's score is read, in the same two ways.

    Args:
        measure: the other score.
        against: how the paper's number is read. With `seen=True` it is the only number: there is no other reading of
            rows that training draws from.
    """

    measure: Measure
    against: Latents | Factors = Latents()

    def __call__(self, trained: Trained) -> float | tuple[float, float]:
        """By the paper's protocol, and on rows that the fit has not seen."""
        by_paper, ours = self.against.both_ways(self.measure, trained)
        return by_paper.value if self.against.seen else (by_paper.value, ours.value)


def two_models(
    encoder: nn.Module, world: Process, n: int, seed: int, device: torch.device | str, *, view: int = 0
) -> tuple[Tensor, Tensor]:
    """The representations of either model of a pair, of rows that training never uses."""
    if not isinstance(encoder, Pair):
        raise BadInput(f"two models are compared, but {type(encoder).__name__} is no Pair. Use Fresh(Pair, Fresh(…)).")
    x = rows_for_scoring(world, n, seed, device).x[view]
    one, two = (represent(member, x) for member in encoder.of_view(view))
    return one, two


@dataclass(frozen=True)
class Twin:
    """A second model of the same kind, trained beside the first on draws of its own: the encoder is a `Pair`."""

    watched: ClassVar[str] = "mean CCA"
    sides: ClassVar[Sides] = Sides(
        question="Are two models of the same world the same, up to a class of maps?",
        truth="the first model's features",
        one="coordinate",
        learned="the second model's features",
        symbols=("model 1, ", "model 2 mapped, "),
        raw="",
    )

    def refuse_few(self, encoder: nn.Module, world: Process, budget: Budget) -> None:
        """Raise `TooFewRows` where two independent models would look alike."""
        one, two = two_models(encoder, world, 2, 0, "cpu")
        Recovery(AFFINE).refuse_few(budget.profile_rows, one.shape[1], two.shape[1])
        needed = 2 * CCA().rows_needed(one.shape[1], two.shape[1])
        if budget.rows < needed:
            raise TooFewRows(
                f"{budget.rows} rows cannot tell how alike two models of {two.shape[1]} dimensions are. Bring at least "
                f"{needed} rows.",
                needed=needed,
            )

    def watch(self, trained: Trained, budget: Budget) -> float:
        """Mean CCA of the two models."""
        try:
            rows = two_models(trained.encoder, trained.world, budget.rows, 1, trained.device)
            return CCA()(*rows, shuffles=0).value
        except BadInput:  # a representation that has collapsed for the moment has no score
            return math.nan

    def scored(self, record: Record, trained: Trained, row: Row, budget: Budget, measure: Measure | None) -> Record:
        """The second model as a map of the first, and both readings of the measure."""
        world, device = trained.world, trained.device
        one, two = two_models(trained.encoder, world, budget.profile_rows, 0, device)
        record = replace(
            record,
            sides=self.sides,
            prediction=predict(world, row.objective),
            learned=profile(one, two, shift=has_no_middle(world)),
            picture=picture(one, two),
        )
        if measure is None:
            return record
        one, two = two_models(trained.encoder, world, budget.rows, 100, device)
        return replace(record, by_paper=measure(one, two), held_out=held_out(measure, one, two))


HELD_OUT_LOSS = "held-out loss"


@dataclass(frozen=True)
class Peers:
    """Other models of the same part: each is trained and kept, and the judge of the part compares them.

    The process has a member `held_out`: the same process over rows that training never sees.
    """

    watched: ClassVar[str] = ""

    def refuse_few(self, encoder: nn.Module, world: Process, budget: Budget) -> None:
        """The judge draws its own rows."""

    def watch(self, trained: Trained, budget: Budget) -> float:
        """Nothing."""
        return math.nan

    def scored(self, record: Record, trained: Trained, row: Row, budget: Budget, measure: Measure | None) -> Record:
        """The loss on held-out rows."""
        batch, batches = budget.recipe.batch, budget.batches
        rows: Process = trained.world.held_out  # type: ignore[attr-defined]
        loss = mean_loss(trained.encoder, trained.objective, rows, trained.device, batch=batch, batches=batches)
        return replace(record, readings={HELD_OUT_LOSS: (loss, loss)})


@torch.no_grad()
def mean_loss(
    encoder: nn.Module, objective: Objective, process: Process, device: torch.device | str, *, batch: int, batches: int
) -> float:
    """The loss on rows of a process, the mean over batches, the same ones for every model."""
    generator = randomness.generator(0, "score", device)
    drawn = (process.sample(batch, generator=generator) for _ in range(batches))
    return statistics.fmean(float(objective(encoder(rows.x[0])[None], rows)) for rows in drawn)
