"""Train what is missing, score it, keep it: one folder for each finished seed."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from zhat import _checks, randomness, runs
from zhat._files import make_folder
from zhat.encoders import Pair
from zhat.equivalence import AFFINE
from zhat.errors import BadInput, RunFailed, TooFewRows
from zhat.experiment.readings import Trained, both
from zhat.experiment.scoring import Measure, both_ways, compared, has_no_middle, picture
from zhat.experiment.settings import Budget, Row
from zhat.metrics import CCA, Recovery, profile
from zhat.results import Record
from zhat.theory import predict
from zhat.training import train

Progress = Callable[[int, int, float], None]
STACKED = 2**30  # parameters trained in one stack; with gradients and Adam's moments 16 bytes each


def run(
    row: Row,
    budget: Budget,
    *,
    seeds: Sequence[int],
    out: Path,
    measure: Measure | None = None,
    device: torch.device | str = "cpu",
    keep_weights: bool = True,
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
        measure: the score that a paper's table prints, as the paper reads it; it is kept besides the profile, together
            with the same score read on held-out rows and the row's further readings.
        device: where to train.
        keep_weights: keep the trained encoders.
        progress: called with `(steps done, steps, mean loss)` now and then.
        checkpoint_every: seconds between checkpoints.
    """
    on_gpu = _checks.device(device).type == "cuda"
    home = Path(out) / row.folder(budget)
    folders = {seed: home / f"seed-{seed}" for seed in seeds}
    if len(folders) != len(seeds):
        raise BadInput(f"`seeds` must be different whole numbers, but {tuple(seeds)} came.")
    untrained = missing(row, budget, seeds, Path(out))
    if untrained:
        make_folder(home)
        worlds = [replace(row.process, seed=seed) for seed in untrained]
        in_pairs, most = _looked_at(row, budget, worlds[0])
        if len(untrained) > most:
            for i in range(0, len(untrained), most):
                some = untrained[i : i + most]
                run(row, budget, seeds=some, out=out, measure=measure, device=device, keep_weights=keep_weights,
                    progress=progress, checkpoint_every=checkpoint_every)  # fmt: skip
            return tuple(runs.read(folder) for folder in folders.values())
        digest = hashlib.sha256(repr(untrained).encode()).hexdigest()[:8]
        checkpoint = home / f"checkpoint-{digest}.safetensors"

        def watch(i: int, encoder: nn.Module) -> float:
            z, _, h = compared(encoder, worlds[i], budget.rows if in_pairs else 1024, 1, device)
            try:
                if in_pairs:
                    return CCA()(z, h, shuffles=0).value
                return Recovery(AFFINE, repeats=0, shuffles=0)(z, h).value
            except BadInput:  # a representation that has collapsed for the moment has no score
                return math.nan

        trained = train(
            row.encoder,
            worlds,
            row.objective,
            steps=budget.steps,
            batch=budget.batch,
            lr=budget.lr,
            schedule=budget.schedule,
            sharpness=budget.sharpness,
            lr_scale=dict(budget.lr_scale),
            betas=budget.betas,
            muon=budget.muon,
            seeds=untrained,
            device=device,
            precision=budget.precision if on_gpu else "float32",
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            watch=watch,
            watch_every=max(1, budget.steps // 10),
            watch_name="mean CCA" if in_pairs else "affine R2",
            progress=progress,
        )
        about = runs.provenance(device)
        failed: list[str] = []
        every = zip(untrained, worlds, trained.encoders, trained.objectives, trained.curves, strict=True)
        for seed, world, encoder, objective, curve in every:
            z, x, h = compared(encoder, world, budget.profile_rows, 0, device)
            shift = has_no_middle(world)
            try:
                scores, readings = None, {}
                if measure is not None:
                    scores = both_ways(measure, encoder, world, budget.batches, budget.rows, device=device)
                    readings = both(row.readings, Trained(encoder, objective, world, budget.rows, device))
                learned = profile(z, h, shift=shift)
            except BadInput as error:
                failed.append(f"seed {seed}: {error}")
                continue
            record = Record(
                name=row.title,
                seed=seed,
                settings=row.settings(budget),
                provenance=about,
                seconds=trained.seconds,
                prediction=predict(world, row.objective, None if in_pairs else row.encoder),
                raw=None if in_pairs else profile(z, x, shift=shift),
                learned=learned,
                curve=curve,
                picture=picture(z, h),
                by_paper=None if scores is None else scores[0],
                held_out=None if scores is None else scores[1],
                readings=readings,
            )
            runs.write(folders[seed], record, encoder if keep_weights else None, objective)
        if failed:
            raise RunFailed(f"{row.title}: a trained encoder has no score. {' '.join(failed)}")
        checkpoint.unlink(missing_ok=True)
    return tuple(runs.read(folder) for folder in folders.values())


def missing(row: Row, budget: Budget, seeds: Sequence[int], out: Path) -> list[int]:
    """The seeds of a row that `out` holds no finished run of."""
    return [seed for seed in seeds if not (out / row.folder(budget) / f"seed-{seed}").exists()]


def _looked_at(row: Row, budget: Budget, world: object) -> tuple[bool, int]:
    """Say before training, not after it, that the rows for scoring are too few.

    Returns:
        Whether this row trains pairs of models, and how many seeds fit into one stack.
    """
    encoder = randomness.build(row.encoder, 0, "encoder")
    z, x, h = compared(encoder, world, 2, 0, "cpu")
    in_pairs = isinstance(encoder, Pair)
    for width in (h.shape[1],) if in_pairs else (x.shape[1], h.shape[1]):
        Recovery(AFFINE).refuse_few(budget.profile_rows, z.shape[1], width)
    needed = 2 * CCA().rows_needed(z.shape[1], h.shape[1])
    if in_pairs and budget.rows < needed:
        raise TooFewRows(
            f"{budget.rows} rows cannot tell how alike two models of {h.shape[1]} dimensions are. Bring at least "
            f"{needed} rows.",
            needed=needed,
        )
    return in_pairs, max(1, STACKED // max(1, sum(p.numel() for p in encoder.parameters())))


def seconds_per_step(row: Row, budget: Budget, *, seeds: int, device: torch.device | str, steps: int = 3) -> float:
    """Wall time of one training step for all seeds together, measured on a few steps after one to warm up."""
    times: list[float] = []

    def note(done: int, total: int, loss: float) -> None:
        times.append(time.perf_counter())

    on_gpu = _checks.device(device).type == "cuda"
    train(
        row.encoder,
        row.process,
        row.objective,
        steps=(64 if on_gpu else 1) + steps,
        batch=budget.batch,
        lr=budget.lr,
        lr_scale=dict(budget.lr_scale),
        muon=budget.muon,
        seeds=range(seeds),
        device=device,
        precision=budget.precision if on_gpu else "float32",
        watch=lambda i, encoder: 0.0,
        watch_every=64 if on_gpu else 1,
        progress=note,
    )
    return (times[-1] - times[0]) / (len(times) - 1) if not on_gpu else (times[-1] - times[-2]) / steps
