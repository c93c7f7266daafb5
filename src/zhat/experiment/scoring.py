"""From an encoder and a world to rows, representations and scores."""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import overload

import torch
from torch import Tensor, nn

from zhat import _checks, randomness
from zhat.dgp import Batch, Process, Sphere, encoder_input
from zhat.dgp.process import refuse_no_process
from zhat.equivalence import AFFINE, Equivalence
from zhat.errors import BadInput
from zhat.metrics import Measure, Moments, align, profile, singular_values
from zhat.results import Picture, Profile, Score, SeedScores
from zhat.theory import predict
from zhat.training import Run

WIDEST = 512  # columns of observations that are scored as they are
PROJECTED = 128  # columns that wider observations, and images, are projected to


@overload
def score(
    encoder: nn.Module,
    world: Process,
    *,
    n: int = ...,
    classes: Sequence[Equivalence] | None = ...,
    holdout: float = ...,
    shift: bool | None = ...,
    seed: int = ...,
    device: torch.device | str = ...,
) -> Profile: ...


@overload
def score(
    encoder: Run,
    world: Process | Sequence[Process],
    *,
    n: int = ...,
    classes: Sequence[Equivalence] | None = ...,
    holdout: float = ...,
    shift: bool | None = ...,
    seed: int = ...,
    device: torch.device | str = ...,
    supervised: Run | nn.Module | None = ...,
) -> SeedScores: ...


def score(
    encoder: nn.Module | Run,
    world: Process | Sequence[Process],
    *,
    n: int = 4096,
    classes: Sequence[Equivalence] | None = None,
    holdout: float = 0.5,
    shift: bool | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
    supervised: Run | nn.Module | None = None,
) -> Profile | SeedScores:
    """Up to which class an encoder recovers the latents of a world: one held-out R2 for each class.

    Args:
        encoder: a module `(rows, …) -> (rows, k)`, or a run, whose seeds are scored one by one.
        world: a process that knows its latents; of a run that was trained on one for each seed, all of them.
        n: rows drawn; half of them are held out.
        classes: which classes; None takes all from `IDENTITY` to `AFFINE`.
        holdout: share of rows kept for reading.
        shift: forgive an offset in every class; None does unless the latents live on a sphere, which has a middle.
        seed: of the rows; they share none with training.
        device: where the encoder lives.
        supervised: of a run: the same network trained on the true latents (`zhat.objectives.Supervised`), a run or a
            module, whose score stands beside as an upper bound.

    Returns:
        One score for each class; of a run, those of all seeds, and of the observations themselves as a lower bound.
    """

    def profiled(network: nn.Module, source: Process) -> Profile:
        z, x = latents_and_observations(source, n, seed, device)
        forgiven = has_no_middle(source) if shift is None else shift
        return profile(z, represent(network, x), classes=classes, shift=forgiven, holdout=holdout, seed=seed)

    if not isinstance(encoder, Run):
        if isinstance(world, Sequence):
            raise BadInput(f"one encoder is scored in one world, but {len(world)} came. Give one of them.")
        if supervised is not None:
            raise BadInput("`supervised` stands beside the scores of a run. Score the supervised network by itself.")
        return profiled(encoder, world)
    worlds = tuple(world) if isinstance(world, Sequence) else (world,)
    if len(worlds) not in (1, len(encoder.seeds)):
        raise BadInput(
            f"`world` holds {len(worlds)} processes for {len(encoder.seeds)} seeds. Give one, or one for each."
        )
    places = [worlds[min(i, len(worlds) - 1)] for i in range(len(encoder.seeds))]
    upper = (supervised,) if isinstance(supervised, nn.Module) else () if supervised is None else supervised.encoders
    return SeedScores(
        seeds=encoder.seeds,
        learned=tuple(profiled(network, place) for network, place in zip(encoder.encoders, places, strict=True)),
        raw=tuple(profiled(Raw(), place) for place in worlds),
        supervised=tuple(profiled(network, place) for network, place in zip(upper, places, strict=False)),
        prediction=predict(worlds[0], encoder.objectives[0], encoder.encoders[0]) if encoder.objectives else None,
    )


def has_no_middle(world: Process) -> bool:
    """Whether the origin of the latents carries no meaning: true unless they are known to live on a sphere."""
    return not isinstance(getattr(world, "space", None), Sphere)


def rows_for_scoring(world: Process, n: int, seed: int, device: torch.device | str, *, seen: bool = False) -> Batch:
    """Fresh draws; of recorded data, rows that were kept from training (`world.held_out`), unless seen ones are meant.

    Seen rows are read without augmentation (`world.plain`). Draws come from a stream that training never uses.
    """
    _checks.count(n, "n")
    refuse_no_process(world)
    source: Process = getattr(world, "plain" if seen else "held_out", None) or world
    return source.sample(n, generator=randomness.generator(seed, "score", device))


def latents_and_observations(
    world: Process, n: int, seed: int, device: torch.device | str, *, seen: bool = False
) -> tuple[Tensor, Tensor]:
    """Rows of the first view for scoring."""
    batch = rows_for_scoring(world, n, seed, device, seen=seen)
    if batch.z is None:
        raise BadInput("this process does not know its latents, so there is nothing to score against.")
    return batch.z[0], batch.x[0]


@torch.no_grad()
def represent(encoder: nn.Module, x: Tensor, *, values: int = 2**21, batch: int = 0) -> Tensor:
    """h = f(x) in evaluation mode, a block of rows at a time, so that a block holds at most so many values.

    Args:
        encoder: a module `(rows, …) -> (rows, k)`; it is left as it is.
        x: observations, `(rows, …)`.
        values: in a block.
        batch: where it is not 0, batch normalisation takes the statistics of blocks of so many rows, as it does in
            training, instead of those it has gathered: some papers forget to switch. A row then depends on others.
    """
    if batch:
        apart = copy.deepcopy(encoder).train()  # gathers statistics of its own
        return torch.cat([apart(encoder_input(rows)) for rows in x.split(batch)])
    block = max(1, min(8192, values // max(1, x[:1].numel())))
    was_training = encoder.training
    encoder.eval()
    try:
        return torch.cat([encoder(encoder_input(rows)) for rows in x.split(block)])
    finally:
        encoder.train(was_training)


class Raw(nn.Module):
    """The observations as they are; images and very wide rows through a fixed random projection."""

    def forward(self, x: Tensor) -> Tensor:
        """`(rows, …) -> (rows, m)`."""
        if is_narrow(x):
            return x
        flat = x.flatten(1)
        generator = randomness.generator(0, "projection")
        directions = torch.randn(flat.shape[1], PROJECTED, generator=generator).to(flat)
        return flat @ directions / math.sqrt(flat.shape[1])


def is_narrow(x: Tensor) -> bool:
    """Whether observations are scored as they are."""
    return x.ndim == 2 and x.shape[1] <= WIDEST


def plain(measure: Measure, z: Tensor, h: Tensor) -> Score:
    """A score without interval and chance level, where the measure can leave them out."""
    found: Score = getattr(measure, "plain", measure)(z, h)
    return found


def held_out(measure: Measure, z: Tensor, h: Tensor) -> Score:
    """A score read on rows the fit has not seen; a measure that fits nothing has only one reading."""
    found: Score = getattr(measure, "held_out", measure)(z, h)
    return found


def averaged(measure: Measure, pairs: Sequence[tuple[Tensor, Tensor]]) -> Score:
    """A score as zimmermann2021 prints it: the mean over several batches of fresh rows."""
    scores = [plain(measure, z, h) for z, h in pairs]
    each = torch.tensor([s.per_latent for s in scores], dtype=torch.float64).mean(0)
    return replace(
        scores[0],
        value=statistics.fmean(s.value for s in scores),
        per_latent=tuple(float(v) for v in each),
        n=sum(s.n for s in scores),
    )


def picture(z: Tensor, h: Tensor, rows: int = 300) -> Picture:
    """What a page draws, from the rows of the score: the map is fitted on one half, drawn rows are of the other."""
    half = len(z) // 2
    moments = Moments.of(z[:half], h[:half])
    z_hat = align(moments, AFFINE)(h[half:].double())
    shown = slice(0, rows)
    return Picture(
        z=numbers(z[half:][shown]),
        z_hat=numbers(z_hat[shown]),
        up_to=AFFINE,
        correlation=numbers(moments.correlation().abs()),
        singular_values=tuple(round(v, 6) for v in singular_values(z, h)),
    )


def numbers(values: Tensor) -> tuple[tuple[float, ...], ...]:
    """A matrix as plain numbers of four digits."""
    return tuple(tuple(round(float(v), 4) for v in row) for row in values.cpu())
