"""From a setting to records: train what is missing, score it, keep it.

A `Row` says what is run, a `Budget` for how long; `run` trains all missing seeds of a row as one program and writes one
folder for each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from zhat import _checks, randomness, runs
from zhat.dgp import Sphere
from zhat.equivalence import AFFINE, Equivalence
from zhat.errors import BadInput, UnknownName
from zhat.fresh import Fresh
from zhat.metrics import Moments, Recovery, align, profile, singular_values
from zhat.results import Picture, Profile, Record
from zhat.theory import predict
from zhat.training import Constant, train

Progress = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Budget:
    """How long and how fast to train.

    Attributes:
        name: "smoke", "fast", "paper" or another word; it becomes part of a path.
        steps: optimiser steps.
        batch: rows in each step, for each seed.
        lr: Adam's learning rate.
        schedule: factor of the learning rate, a function of `(step, steps)`.
        lr_scale: factors for parameters by name, as pairs: `(("bound", 100.0),)`.
    """

    name: str
    steps: int
    batch: int
    lr: float
    schedule: Callable[[int, int], float] = Constant()
    lr_scale: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Row:
    """One setting: a process, an encoder and an objective, made anew for each seed.

    Attributes:
        name: short and unique; it becomes part of a path.
        title: for a reader.
        process: the world; seed k runs in `replace(process, seed=k)`.
        encoder: makes an encoder.
        objective: the loss, or a `Fresh` one if it owns parameters.
        budgets: how long to train, by name.
    """

    name: str
    title: str
    process: Any
    encoder: Fresh
    objective: Any
    budgets: tuple[Budget, ...]

    def budget(self, name: str) -> Budget:
        """The budget of that name."""
        for budget in self.budgets:
            if budget.name == name:
                return budget
        raise UnknownName("budget", name, (budget.name for budget in self.budgets))

    def settings(self, budget: Budget) -> dict[str, str]:
        """What determines the result, each as its repr."""
        return {
            "process": repr(self.process),
            "encoder": repr(self.encoder),
            "objective": repr(self.objective),
            "budget": repr(budget),
        }

    def folder(self, budget: Budget) -> str:
        """The path of the results: row, budget, and eight characters that change with the settings."""
        digest = hashlib.sha256(repr(sorted(self.settings(budget).items())).encode()).hexdigest()[:8]
        return f"{self.name}/{budget.name}-{digest}"


def score(
    encoder: nn.Module,
    world: Any,
    *,
    n: int = 4096,
    classes: Sequence[Equivalence] | None = None,
    holdout: float = 0.5,
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
        seed: of the rows; they share none with training.
        device: where the encoder lives.

    An offset is forgiven in every class unless the latents live on a sphere: only a sphere has a middle.
    """
    z, x = latents_and_observations(world, n, seed, device)
    return profile(z, represent(encoder, x), classes=classes, shift=_shift(world), holdout=holdout, seed=seed)


def run(
    row: Row,
    budget: Budget,
    *,
    seeds: Sequence[int],
    out: Path,
    device: torch.device | str = "cpu",
    n: int = 4096,
    progress: Progress | None = None,
    checkpoint_every: float = 60.0,
) -> tuple[Record, ...]:
    """Train and score the seeds of a row that `out` does not hold yet; return the records of all of them.

    Finished seeds are folders `out/<row>/<budget>-<digest>/seed-<k>`; a training that was interrupted goes on where
    it was.

    Args:
        row: what to run.
        budget: for how long.
        seeds: of worlds and encoders.
        out: where the folders go.
        device: where to train.
        n: rows drawn for scoring; half of them are held out.
        progress: called with `(steps done, steps, mean loss)` now and then.
        checkpoint_every: seconds between checkpoints.
    """
    home = Path(out) / row.folder(budget)
    folders = {seed: home / f"seed-{seed}" for seed in seeds}
    if len(folders) != len(seeds):
        raise BadInput(f"`seeds` must be different whole numbers, but {tuple(seeds)} came.")
    missing = [seed for seed, folder in folders.items() if not folder.exists()]
    if missing:
        runs.make_folder(home)
        worlds = [replace(row.process, seed=seed) for seed in missing]
        checkpoint = home / f"checkpoint-{'-'.join(map(str, missing))}.safetensors"

        def watch(i: int, encoder: nn.Module) -> float:
            z, x = latents_and_observations(worlds[i], 2048, 1, device)
            return Recovery(AFFINE, repeats=0, shuffles=0)(z, represent(encoder, x)).value

        trained = train(
            row.encoder,
            worlds,
            row.objective,
            steps=budget.steps,
            batch=budget.batch,
            lr=budget.lr,
            schedule=budget.schedule,
            lr_scale=dict(budget.lr_scale),
            seeds=missing,
            device=device,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            watch=watch,
            watch_name="affine R2",
            progress=progress,
        )
        about = runs.provenance(device)
        for i, seed in enumerate(missing):
            z, x = latents_and_observations(worlds[i], n, 0, device)
            h = represent(trained.encoders[i], x)
            shift = _shift(row.process)
            record = Record(
                name=row.title,
                seed=seed,
                settings=row.settings(budget),
                provenance=about,
                seconds=trained.seconds,
                prediction=predict(row.process, row.objective, row.encoder),
                raw=profile(z, x, shift=shift),
                learned=profile(z, h, shift=shift),
                curve=trained.curves[i],
                picture=_picture(z, h),
            )
            runs.write(folders[seed], record, trained.encoders[i])
        checkpoint.unlink(missing_ok=True)
    return tuple(runs.read(folder) for folder in folders.values())


def latents_and_observations(world: Any, n: int, seed: int, device: torch.device | str) -> tuple[Tensor, Tensor]:
    """Rows of the first view for scoring, from a stream that training never uses."""
    _checks.count(n, "n")
    batch = world.sample(n, generator=randomness.generator(seed, "score", device))
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


def _shift(world: Any) -> bool:
    return not isinstance(world.marginal.space, Sphere)


def _picture(z: Tensor, h: Tensor, rows: int = 300) -> Picture:
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
    return tuple(tuple(round(float(v), 4) for v in row) for row in values)
