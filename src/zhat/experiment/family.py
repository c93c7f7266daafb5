"""A figure that compares trained models with each other: train those that are missing, then compare all of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from zhat import _checks, randomness, runs
from zhat._files import make_folder
from zhat.errors import BadInput, NothingFinished
from zhat.experiment.running import missing
from zhat.experiment.settings import Budget, Part, Row
from zhat.fresh import Fresh
from zhat.results import Agreement, Curve, FamilyResult, ModelRecord, WordMap
from zhat.training import train

Watcher = Callable[[str, int, int, float], None]


@dataclass(frozen=True, eq=False)
class Model:
    """A model that can be compared: trained here, or given by the user.

    Attributes:
        name: of the model.
        encoder: in evaluation mode.
        objective: the trained objective; None for a model that was given.
        row: what it was trained from; None for a model that was given.
        tokenize: for a model that was given, a text as the numbers it reads.
        seed: of its initial weights.
    """

    name: str
    encoder: nn.Module
    objective: Any = None
    row: Row | None = None
    tokenize: Callable[[str], list[int]] | None = None
    seed: int = 0


@dataclass(frozen=True)
class Compared:
    """What a comparison found.

    Attributes:
        agreements: how alike the models are, in one respect each.
        holds: whether the paper's claim holds; None where the models it is about are not among those compared.
        claim: the claim in words, with our numbers.
        words: what the figure draws of word models.
        losses: on training rows by the name of the model, where models are ordered by them.
    """

    agreements: tuple[Agreement, ...]
    holds: bool | None
    claim: str
    words: tuple[WordMap, ...] = ()
    losses: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Family(Part):
    """A figure of a paper that compares models with each other.

    Attributes:
        paper: key in `references.bib`.
        label: for instance "Figure 4".
        caption: what the figure shows.
        score: the name of the score.
        rows: one setting for each kind of model; the budget's `seeds` says how many models of it there are. Their
            process has a member `held_out`: the same process over rows that training never sees.
        compare: a function of `(models, budget, device)`.
        graph: record a training step as a CUDA graph where there is a GPU.
        load: makes a model of a name that the user gives instead of the trained ones; None where that has no meaning.
        models: such names.
    """

    paper: str
    label: str
    caption: str
    score: str
    rows: tuple[Row, ...]
    compare: Callable[[tuple[Model, ...], Budget, torch.device], Compared]
    graph: bool = True
    load: Callable[[str], Model] | None = None
    models: tuple[str, ...] = ()

    def needed(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """What has to be trained for the given rows: nothing, if the user gives the models."""
        return () if self.models else rows

    def steps(self, rows: tuple[Row, ...], budget: str, seeds: int | None) -> dict[str, int]:
        """Training steps of each model of the given rows, by the model's name."""
        every = [row.budget(budget) for row in rows]
        return {
            _name(row, seed, b): b.steps
            for row, b in zip(rows, every, strict=True)
            for seed in range(b.seeds if seeds is None else seeds)
        }

    def given(self, models: Sequence[str]) -> Family:
        """The same figure of models that the user has."""
        if self.load is None:
            raise BadInput(f"{self.label} of {self.paper} trains its own models; it cannot be drawn of {models[0]!r}.")
        if len(set(models)) != len(models) or len(models) < 2:
            raise BadInput(f"--models needs at least two different models, but {', '.join(models)} came.")
        return replace(self, models=tuple(models))


def compare_family(
    family: Family,
    *,
    budget: str,
    rows: Sequence[str] | None = None,
    seeds: int | None = None,
    out: Path | str = "runs",
    device: torch.device | str = "cpu",
    executor: Executor | None = None,
    progress: Watcher | None = None,
    notes: tuple[str, ...] = (),
    train: bool = True,
) -> Iterator[FamilyResult]:
    """Train what is missing and yield the result after each finished model; the last one holds the comparison.

    The arguments are those of `reproduce`. Each model is one folder, whole or absent.
    """
    where = _checks.device(device)
    chosen = family.rows if rows is None else tuple(family.row(name) for name in rows)
    home = Path(out) / family.paper / family.name
    wanted = [
        (row, seed)
        for row in family.needed(chosen)
        for seed in range(_checks.count(row.budget(budget).seeds if seeds is None else seeds, "seeds"))
    ]
    untrained = [
        _name(row, seed, row.budget(budget)) for row, seed in wanted if missing(row, row.budget(budget), [seed], home)
    ]
    if untrained and not train:
        raise NothingFinished(
            f"{family.label} compares models, and {home} holds no finished {'; '.join(untrained)}. Say how many there "
            "are with --seeds, or train them without --no-train."
        )
    finished: dict[int, ModelRecord] = {}

    def result(compared: Compared | None, records: tuple[ModelRecord, ...]) -> FamilyResult:
        judged = all(row.budget(budget).judged for row in chosen)
        about = runs.assembled(record.provenance for record in records)
        if compared is not None:
            records = tuple(replace(r, training_loss=compared.losses.get(r.name)) for r in records)
            about["compared on"] = runs.provenance(where)["device"]
        return FamilyResult(
            paper=family.paper,
            label=family.label,
            caption=family.caption,
            score=family.score,
            budget=budget,
            rows=records,
            expected=len(wanted) or len(family.models),
            agreements=() if compared is None else compared.agreements,
            words=() if compared is None else compared.words,
            holds=compared.holds if compared is not None and judged else None,
            claim=_said(compared, budget, judged),
            seconds=sum(r.seconds for r in records),
            settings={row.name: row.settings(row.budget(budget)) for row in family.needed(chosen)},
            provenance=about,
            notes=notes,
        )

    for i, record in _all(family, wanted, budget, home, where, executor, progress):
        finished[i] = record
        if len(finished) < len(wanted):
            yield result(None, tuple(finished[k] for k in sorted(finished)))
    if family.models:
        assert family.load is not None, "names were taken by `given`"
        models = tuple(family.load(name) for name in family.models)
        records = tuple(ModelRecord(m.name, m.name, 0, {}, runs.provenance(where), 0.0, _NONE, None) for m in models)
    else:
        models = tuple(_read(row, seed, row.budget(budget), home) for row, seed in wanted)
        records = tuple(finished[k] for k in sorted(finished))
    for model in models:
        for part in (model.encoder, model.objective):
            if isinstance(part, nn.Module):
                part.to(where)
    yield result(family.compare(models, chosen[0].budget(budget), where), records)


_NONE = Curve((), ())


def _said(compared: Compared | None, budget: str, judged: bool) -> str:
    if compared is None:
        return "not all models are finished"
    return compared.claim if judged else f"budget {budget} only tries the machinery"


def _all(
    family: Family,
    wanted: Sequence[tuple[Row, int]],
    budget: str,
    home: Path,
    device: torch.device,
    executor: Executor | None,
    progress: Watcher | None,
) -> Iterator[tuple[int, ModelRecord]]:
    """The records of all models, each trained if its folder is not there."""
    if executor is None:
        for i, (row, seed) in enumerate(wanted):
            yield i, finish(row, seed, row.budget(budget), home, device, family.graph, progress)
        return
    futures = {
        executor.submit(finish, row, seed, row.budget(budget), home, device, family.graph): i
        for i, (row, seed) in enumerate(wanted)
    }
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


def finish(
    row: Row,
    seed: int,
    budget: Budget,
    home: Path,
    device: torch.device,
    graph: bool = True,
    progress: Watcher | None = None,
) -> ModelRecord:
    """The record of one model; trained first, from its checkpoint if there is one, unless its folder is there."""
    folder = home / row.folder(budget) / f"seed-{seed}"
    name = _name(row, seed, budget)
    if not folder.exists():
        make_folder(folder.parent)
        checkpoint = folder.parent / f"checkpoint-{seed}.safetensors"

        def told(done: int, steps: int, loss: float) -> None:
            if progress is not None:
                progress(name, done, steps, loss)

        trained = train(
            row.encoder,
            row.process,
            row.objective,
            steps=budget.steps,
            batch=budget.batch,
            lr=budget.lr,
            schedule=budget.schedule,
            sharpness=budget.sharpness,
            lr_scale=dict(budget.lr_scale),
            betas=budget.betas,
            muon=budget.muon,
            seed=seed,
            device=device,
            precision=budget.precision if device.type == "cuda" else "float32",
            graph=graph,
            checkpoint=checkpoint,
            progress=told,
        )
        encoder, objective = trained.encoder, trained.objectives[0]
        about = ModelRecord(
            name=name,
            title=row.title,
            seed=seed,
            settings=row.settings(budget),
            provenance=runs.provenance(device),
            seconds=trained.seconds,
            curve=trained.curves[0],
            loss=mean_loss(
                encoder, objective, row.process.held_out, device, batch=budget.batch, batches=budget.batches
            ),
        )
        runs.write(folder, about, encoder, objective)
        checkpoint.unlink(missing_ok=True)
    return runs.read_model(folder)


@torch.no_grad()
def mean_loss(
    encoder: nn.Module, objective: Any, process: Any, device: torch.device, *, batch: int, batches: int
) -> float:
    """The loss on rows of a process, the mean over batches, the same ones for every model."""
    generator = randomness.generator(0, "score", device)
    drawn = (process.sample(batch, generator=generator) for _ in range(batches))
    return statistics.fmean(float(objective(encoder(rows.x[0])[None], rows)) for rows in drawn)


def _read(row: Row, seed: int, budget: Budget, home: Path) -> Model:
    """A finished model, from its folder."""
    folder = home / row.folder(budget) / f"seed-{seed}"
    encoder = randomness.build(row.encoder, seed, "encoder")
    encoder.load_state_dict(runs.weights(folder))
    objective = row.objective
    if isinstance(objective, Fresh):
        objective = randomness.build(objective, seed, "objective")
        objective.load_state_dict(runs.weights(folder, "objective"))
    return Model(_name(row, seed, budget), encoder.eval(), objective, row, seed=seed)


def _name(row: Row, seed: int, budget: Budget) -> str:
    """A model is called like its row; of several of a row, each by its seed."""
    return row.name if budget.seeds == 1 and seed == 0 else f"{row.name}, seed {seed}"
