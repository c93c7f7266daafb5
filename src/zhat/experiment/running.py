"""Train what is missing, score it, keep it: one folder for each finished seed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from zhat import _checks, randomness, runs
from zhat._files import make_folder
from zhat.dgp import reseeded
from zhat.errors import BadInput, RunFailed
from zhat.experiment.readings import Trained, taken
from zhat.experiment.settings import Budget, Row
from zhat.metrics import Measure
from zhat.objectives import Objective
from zhat.results import Record
from zhat.training import train

Progress = Callable[[int, int, float], None]
Stack = tuple[int, ...]
"""Seeds that are trained as one program."""
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

    Finished seeds are folders `out/<row>/<budget>-<digest>/seed-<k>`. A training that was interrupted goes on where it
    was. Seeds that are trained together are finished together: if some of their folders are missing, the whole stack is
    trained again, or read from its checkpoint, so that a seed's numbers never depend on an interruption.

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
    _checks.device(device)
    row = row.under(budget)
    if len(set(seeds)) != len(seeds):
        raise BadInput(f"`seeds` must be different whole numbers, but {tuple(seeds)} came.")
    home = Path(out) / row.folder(budget)
    planned = stacks(row, budget, seeds, Path(out))
    steps = budget.recipe.steps
    if planned:
        make_folder(home)
        row.against.refuse_few(randomness.build(row.encoder, 0, "encoder"), reseeded(row.process, seeds[0]), budget)
    for i, stack in enumerate(planned):

        def told(done: int, of: int, loss: float, before: int = i * steps) -> None:
            if progress is not None:
                progress(before + done, steps * len(planned), loss)

        _finish(row, budget, stack, home, measure, device, keep_weights, told, checkpoint_every)
    return tuple(runs.read(home / f"seed-{seed}") for seed in seeds)


def _finish(
    row: Row,
    budget: Budget,
    stack: Stack,
    home: Path,
    measure: Measure | None,
    device: torch.device | str,
    keep_weights: bool,
    progress: Progress,
    checkpoint_every: float,
) -> None:
    """Train the seeds of a stack and write their folders; those that are there already are left as they are."""
    against, worlds = row.against, [reseeded(row.process, seed) for seed in stack]
    digest = hashlib.sha256(repr(stack).encode()).hexdigest()[:8]
    checkpoint = home / f"checkpoint-{digest}.safetensors"

    def watch(i: int, encoder: nn.Module, objective: Objective) -> float:
        return against.watch(Trained(encoder, objective, worlds[i], budget.rows, device), budget)

    trained = train(
        row.encoder,
        worlds,
        row.objective,
        budget.recipe.on(device),
        seeds=stack,
        device=device,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        watch=watch if against.watched else None,
        watch_every=max(1, budget.recipe.steps // 10),
        watch_name=against.watched,
        progress=progress,
    )
    about = runs.provenance(device)
    failed: list[str] = []
    every = zip(stack, worlds, trained.encoders, trained.objectives, trained.curves, strict=True)
    for seed, world, encoder, objective, curve in every:
        folder = home / f"seed-{seed}"
        if folder.exists():
            continue
        bare = Record(row.title, seed, row.settings(budget), about, trained.seconds, curve, stack)
        found = Trained(encoder, objective, world, budget.rows, device)
        try:
            record = against.scored(bare, found, row, budget, measure)
            readings = taken(row.readings, found) if measure is not None else {}
        except BadInput as error:
            failed.append(f"seed {seed}: {error}")
            continue
        record = replace(record, readings={**record.readings, **readings})
        runs.write(folder, record, encoder if keep_weights else None, objective)
    if failed:
        raise RunFailed(f"{row.title}: a trained encoder has no score. {' '.join(failed)}")
    checkpoint.unlink(missing_ok=True)


def missing(row: Row, budget: Budget, seeds: Sequence[int], out: Path) -> list[int]:
    """The seeds of a row that `out` holds no finished run of."""
    return [seed for seed in seeds if not (out / row.folder(budget) / f"seed-{seed}").exists()]


def stacks(row: Row, budget: Budget, seeds: Sequence[int], out: Path) -> list[Stack]:
    """The stacks that have to be trained: those that were begun and not finished, then the seeds that nobody began."""
    absent = missing(row, budget, seeds, out)
    begun: dict[Stack, None] = {}
    for folder in runs.scan(out / row.folder(budget)) if absent and (out / row.folder(budget)).is_dir() else ():
        stack = runs.read(folder).stack
        if any(seed in absent for seed in stack):
            begun[stack] = None
    fresh = tuple(seed for seed in absent if not any(seed in stack for stack in begun))
    return [*begun, *apart(row, budget, fresh)]


def apart(row: Row, budget: Budget, seeds: Sequence[int]) -> list[Stack]:
    """These seeds in stacks of the size in which they are trained together."""
    most = budget.recipe.together or max(1, STACKED // parameters(row.under(budget))) if seeds else 1
    return [tuple(seeds[i : i + most]) for i in range(0, len(seeds), most)]


def parameters(row: Row) -> int:
    """How many parameters an encoder of this row has, at least 1; no memory is taken for them."""
    with torch.device("meta"):
        encoder: nn.Module = row.encoder()
    return max(1, sum(p.numel() for p in encoder.parameters()))


def seconds_per_step(row: Row, budget: Budget, *, seeds: int, device: torch.device | str, steps: int = 3) -> float:
    """Wall time of one training step for all seeds together, measured on a few steps after one to warm up."""
    times: list[float] = []

    def note(done: int, total: int, loss: float) -> None:
        times.append(time.perf_counter())

    row = row.under(budget)
    on_gpu = _checks.device(device).type == "cuda"
    first = 64 if on_gpu else 1
    train(
        row.encoder,
        row.process,
        row.objective,
        replace(budget.recipe.on(device), steps=first + steps, until=None),
        seeds=range(seeds),
        device=device,
        watch=lambda i, encoder, objective: 0.0,
        watch_every=first,
        progress=note,
    )
    return (times[-1] - times[0]) / (len(times) - 1) if not on_gpu else (times[-1] - times[-2]) / steps
