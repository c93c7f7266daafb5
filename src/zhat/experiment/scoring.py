"""From an encoder and a world to scores."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from zhat import _checks, randomness
from zhat.dgp import Batch, Sphere
from zhat.encoders import Pair
from zhat.equivalence import AFFINE, Equivalence
from zhat.errors import BadInput
from zhat.metrics import CCA, Moments, Recovery, align, profile, singular_values
from zhat.results import Picture, Profile, Score


def score(
    encoder: nn.Module,
    world: Any,
    *,
    n: int = 4096,
    classes: Sequence[Equivalence] | None = None,
    holdout: float = 0.5,
    shift: bool | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Profile:
    """Up to which class an encoder recovers the latents of a world: one held-out R2 for each class.

    Args:
        encoder: a module `(rows, m) -> (rows, k)`.
        world: a process that knows its latents.
        n: rows drawn; half of them are held out.
        classes: which classes; None takes all from `IDENTITY` to `AFFINE`.
        holdout: share of rows kept for reading.
        shift: forgive an offset in every class; None does unless the latents live on a sphere, which has a middle.
        seed: of the rows; they share none with training.
        device: where the encoder lives.
    """
    z, x = latents_and_observations(world, n, seed, device)
    if shift is None:
        shift = has_no_middle(world)
    return profile(z, represent(encoder, x), classes=classes, shift=shift, holdout=holdout, seed=seed)


def has_no_middle(world: Any) -> bool:
    """Whether the origin of the latents carries no meaning: true unless they are known to live on a sphere."""
    return not isinstance(getattr(world, "space", None), Sphere)


def compared(
    encoder: nn.Module, world: Any, n: int, seed: int, device: torch.device | str
) -> tuple[Tensor, Tensor, Tensor]:
    """What a score compares, and the observations: latents and representation, or the two models of a pair.

    Returns:
        z, x, h of `n` rows that training never uses; of a pair, z is the first model's representation and h the
        second's.
    """
    if not isinstance(encoder, Pair):
        z, x = latents_and_observations(world, n, seed, device)
        return z, x, represent(encoder, x)
    return two_models(encoder, world, n, seed, device)


def two_models(
    pair: Pair, world: Any, n: int, seed: int, device: torch.device | str, *, view: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """The first model's representation, the observations, and the second model's, of rows that training never uses."""
    x = held_out_rows(world, n, seed, device).x[view]
    one, two = (represent(member, x) for member in pair.of_view(view))
    return one, x, two


def held_out_rows(world: Any, n: int, seed: int, device: torch.device | str) -> Batch:
    """Fresh draws; of recorded data, rows that were kept from training (`world.held_out`)."""
    _checks.count(n, "n")
    drawn: Batch = getattr(world, "held_out", world).sample(n, generator=randomness.generator(seed, "score", device))
    return drawn


Measure = Recovery | CCA
"""What a table prints: how much of the latents came back, or how alike the two models of a pair are."""


def both_ways(
    measure: Measure, encoder: nn.Module, world: Any, batches: int, rows: int, *, device: torch.device | str
) -> tuple[Score, Score]:
    """A score by the paper's protocol, and the same read on rows that the fit has not seen."""
    if isinstance(measure, CCA):
        return alike(measure, encoder, world, rows=rows, device=device)
    by_paper = averaged(measure, encoder, world, batches=batches, rows=rows, device=device)
    z, x = latents_and_observations(world, 2 * rows, 99, device)
    return by_paper, replace(measure, holdout=0.5)(z, represent(encoder, x))


def alike(
    measure: CCA, encoder: nn.Module, world: Any, *, rows: int, device: torch.device | str, view: int = 0
) -> tuple[Score, Score]:
    """The similarity of the two models of a pair as roeder2020 reads it, with its chance level, and held out."""
    if not isinstance(encoder, Pair):
        raise BadInput(f"{measure!r} compares two models, but the encoder is no Pair. Use Fresh(Pair, Fresh(mlp, …)).")
    one, _, two = two_models(encoder, world, rows, 100, device, view=view)
    return measure(one, two), measure.held_out(one, two)


def averaged(
    measure: Recovery, encoder: nn.Module, world: Any, *, batches: int, rows: int, device: torch.device | str
) -> Score:
    """A score as zimmermann2021 prints it: the mean over several batches of fresh rows."""
    scores = []
    bare = replace(measure, repeats=0, shuffles=0)
    for i in range(batches):
        z, x = latents_and_observations(world, rows, 100 + i, device)
        scores.append(bare(z, represent(encoder, x)))
    each = torch.tensor([s.per_latent for s in scores], dtype=torch.float64).mean(0)
    return replace(
        scores[0],
        value=statistics.fmean(s.value for s in scores),
        per_latent=tuple(float(v) for v in each),
        n=batches * rows,
        n_fit=rows,
    )


def latents_and_observations(world: Any, n: int, seed: int, device: torch.device | str) -> tuple[Tensor, Tensor]:
    """Rows of the first view for scoring, from a stream that training never uses."""
    batch = held_out_rows(world, n, seed, device)
    if batch.z is None:
        raise BadInput("this process does not know its latents, so there is nothing to score against.")
    return batch.z[0], batch.x[0]


@torch.no_grad()
def represent(encoder: nn.Module, x: Tensor, *, block: int = 8192) -> Tensor:
    """h = f(x) in evaluation mode, a block of rows at a time."""
    was_training = encoder.training
    encoder.eval()
    try:
        return torch.cat([encoder(rows) for rows in x.split(block)])
    finally:
        encoder.train(was_training)


def picture(z: Tensor, h: Tensor, rows: int = 300) -> Picture:
    """What a page draws, from the rows of the score: the map is fitted on one half, drawn rows are of the other."""
    half = len(z) // 2
    moments = Moments.of(z[:half], h[:half])
    z_hat = align(moments, AFFINE)(h[half:].double())
    shown = slice(0, rows)
    return Picture(
        z=_numbers(z[half:][shown]),
        z_hat=_numbers(z_hat[shown]),
        up_to=AFFINE,
        correlation=_numbers(moments.correlation().abs()),
        singular_values=tuple(round(v, 6) for v in singular_values(z, h)),
    )


def _numbers(values: Tensor) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(round(float(v), 4) for v in row) for row in values.cpu())
