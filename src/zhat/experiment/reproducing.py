"""Published beside ours: run the rows of a part of a paper, set the results side by side, and ask its judge."""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from zhat import _checks, randomness, runs
from zhat.errors import BadInput, MissingData, NothingFinished, RunFailed
from zhat.experiment.against import HELD_OUT_LOSS
from zhat.experiment.judges import Evidence, verdict, verdict_of_effect, verdict_of_error
from zhat.experiment.peers import Model
from zhat.experiment.readings import Reading
from zhat.experiment.running import Stack, missing, run, stacks
from zhat.experiment.settings import Budget, Part, Row
from zhat.fresh import Fresh
from zhat.results import Absent, Bar, Measured, PartResult, Published, Record, RowResult, Score

Watcher = Callable[[str, int, int, float], None]
"""Called with the row's name, steps done, steps, and the mean loss."""
Records = Mapping[str, tuple[Record, ...]]
"""The records of finished rows, by name."""


def reproduce(
    part: Part,
    *,
    budget: str | None = None,
    rows: Sequence[str] | None = None,
    seeds: int | None = None,
    out: Path | str = "runs",
    device: torch.device | str = "cpu",
    keep_weights: bool = True,
    executor: Executor | None = None,
    progress: Watcher | None = None,
    notes: tuple[str, ...] = (),
    train: bool = True,
) -> Iterator[PartResult]:
    """Run what is missing and yield the result after each finished row; the last one yielded is complete.

    Args:
        part: a table or a figure of a paper.
        budget: "smoke", "laptop", "fast" or "paper"; None takes the part's default on this device.
        rows: names of rows; None runs all.
        seeds: how many seeds; None takes the budget's number.
        out: where the runs go: `out/<paper>/<part>/<row>/<budget>-<digest>/seed-<k>`.
        device: where to train.
        keep_weights: keep the trained encoders.
        executor: anything with `submit`, as in `concurrent.futures`; its tasks are stacks of seeds of a row.
        progress: called while rows are trained in this process.
        notes: what a reader should know besides.
        train: False trains nothing and yields once, what is finished side by side: for runs gathered from elsewhere.
            A row is shown without its supervised reference where only that is missing.

    Rows whose recorded data are not there are left out, and the result says so (`PartResult.absent`).

    Raises:
        MissingData: if no row that was asked for has its data.
    """
    where = _checks.device(device)
    budget = part.budget_on(where) if budget is None else budget
    chosen = part.rows if rows is None else tuple(part.row(name) for name in rows)
    tasks = part.needed(chosen)
    home = Path(out) / part.paper / part.name
    if part.measure is None and not keep_weights:
        raise BadInput(f"{part.label} compares models by their weights, so they are kept. Leave out --no-keep-weights.")
    count = {r.name: range(_checks.count(r.budget(budget).seeds if seeds is None else seeds, "seeds")) for r in tasks}
    lost = _lost(tasks, budget, count, home)
    tasks = tuple(row for row in tasks if row.name not in lost)
    absent = tuple(row for row in chosen if any(t.name in lost for t in part.needed((row,))))
    if lost and len(absent) == len(chosen):
        raise next(iter(lost.values()))
    if not train:
        tasks = tuple(row for row in tasks if not missing(row, row.budget(budget), count[row.name], home))
        if not part.models and not any((row.same_as or row.name) in (t.name for t in tasks) for row in chosen):
            raise NothingFinished(
                f"{home} holds no finished row of {part.label} at budget {budget} with the seeds asked for. Say how "
                "many there are with --seeds, or train the rows without --no-train."
            )
    finished: dict[str, tuple[Record, ...]] = {}
    said = tuple(Absent(row.name, row.title, row.published, _why(part, row, budget, lost)) for row in absent)

    def result() -> PartResult:
        ready = tuple(r for r in chosen if _has_all(part, r, finished, references=train))
        there = tuple(row for row in chosen if row not in absent)
        found = _assembled(part, there, ready, finished, budget, where, home, notes)
        return replace(found, expected=found.expected + len(absent), absent=said)

    for row, records in _run_all(part, tasks, budget, count, home, where, keep_weights, executor, progress):
        finished[row.name] = records
        if row in chosen and train and len(finished) < len(tasks):
            yield result()
    yield result()


def _lost(tasks: Sequence[Row], budget: str, count: Mapping[str, range], home: Path) -> dict[str, MissingData]:
    """The rows that are not finished and whose recorded data are not there, with what is missing."""
    out = {}
    for row in tasks:
        find = getattr(row.process, "find", None)
        if find is not None and missing(row, row.budget(budget), count[row.name], home):
            try:
                find()
            except MissingData as error:
                out[row.name] = error
    return out


def _why(part: Part, row: Row, budget: str, lost: Mapping[str, MissingData]) -> str:
    """What is missing for a row, and the command that would measure it."""
    reason = next(lost[task.name] for task in part.needed((row,)) if task.name in lost)
    kind = part.label.split()[0].lower()
    command = part.command or f"zhat reproduce {part.paper} --{kind} {part.number}"
    return f"{reason.wanted} With it in FOLDER, this measures the row: {command} --budget {budget} --data FOLDER"


def _has_all(part: Part, row: Row, finished: Records, *, references: bool) -> bool:
    """Whether a row can be shown: it is finished, and so is its supervised reference, if that is asked for."""
    needed = [t.name for t in part.needed((row,))] if references else [row.same_as or row.name]
    return not part.models and all(name in finished for name in needed)


def forget(part: Part, rows: Sequence[Row], budget: str, out: Path | str) -> None:
    """Remove the runs and checkpoints of these rows at a budget, so that they are trained again."""
    for row in rows:
        shutil.rmtree(Path(out) / part.paper / part.name / row.folder(row.budget(budget)), ignore_errors=True)


def _run_all(
    part: Part,
    tasks: Sequence[Row],
    budget: str,
    count: dict[str, range],
    home: Path,
    device: torch.device,
    keep_weights: bool,
    executor: Executor | None,
    progress: Watcher | None,
) -> Iterator[tuple[Row, tuple[Record, ...]]]:
    """Every row with the records of all its seeds, as it is finished; a row that failed is raised after the others."""
    failed: RunFailed | None = None

    def how(row: Row, seeds: Stack) -> dict[str, Any]:
        kept = {"out": home, "device": device, "keep_weights": keep_weights}
        return {"seeds": seeds, "measure": row.measure or part.measure, **kept}

    if executor is None:
        for row in tasks:

            def told(done: int, steps: int, loss: float, name: str = row.name) -> None:
                if progress is not None:
                    progress(name, done, steps, loss)

            try:
                records = run(row, row.budget(budget), **how(row, tuple(count[row.name])), progress=told)
            except RunFailed as error:  # the other rows have nothing to do with it
                failed = failed or error
                continue
            yield row, records
        if failed is not None:
            raise failed
        return
    futures: dict[Future[tuple[Record, ...]], Row] = {}
    waiting: dict[str, int] = {}
    for row in tasks:
        # A row without anything to train is still a task, which reads its folders.
        planned = stacks(row, row.budget(budget), count[row.name], home) or [tuple(count[row.name])]
        waiting[row.name] = len(planned)
        futures |= {executor.submit(run, row, row.budget(budget), **how(row, stack)): row for stack in planned}
    try:
        for future in as_completed(futures):
            row = futures[future]
            try:
                future.result()
            except RunFailed as error:
                failed = failed or error
                continue
            waiting[row.name] -= 1
            if not waiting[row.name]:
                folder = home / row.folder(row.budget(budget))
                yield row, tuple(runs.read(folder / f"seed-{seed}") for seed in count[row.name])
    finally:
        for future in futures:
            future.cancel()
    if failed is not None:
        raise failed


def _assembled(
    part: Part,
    chosen: tuple[Row, ...],
    ready: tuple[Row, ...],
    finished: Records,
    budget: str,
    device: torch.device,
    home: Path,
    notes: tuple[str, ...],
) -> PartResult:
    def models() -> tuple[Model, ...]:
        if part.models:
            assert part.judge.load is not None, "names were taken by `given`"
            found = [part.judge.load(name) for name in part.models]
        else:
            found = [_read(row, r.seed, row.budget(budget), home) for row in ready for r in finished[row.name]]
        for module in (m for model in found for m in (model.encoder, model.objective) if isinstance(m, nn.Module)):
            module.to(device)
        return tuple(found)

    rows = tuple(_row_result(part, row, finished, row.budget(budget)) for row in ready)
    evidence = Evidence(part, chosen, rows, budget, device, models, records=finished)
    judgement = part.judge(evidence)
    rows = tuple(replace(row, readings={**row.readings, **evidence.readings.get(row.name, {})}) for row in rows)
    kept = part.notes or notes
    about = runs.assembled(r.provenance for records in finished.values() for r in records)
    if judgement.agreements:
        about["compared on"] = runs.provenance(device)["device"]
    return PartResult(
        paper=part.paper,
        label=part.label,
        caption=part.caption,
        score=part.score,
        budget=budget,
        rows=rows,
        expected=len(part.models) or len(chosen),
        judgement=judgement,
        seconds=sum(_spent(records) for records in finished.values()),
        settings={
            row.name: row.settings(row.budget(budget))
            for row in (*part.needed(ready), *ready)
            if (row.same_as or row.name) in finished
        },
        provenance=about,
        notes=(*dict.fromkeys(said for row in ready for said in row.budget(budget).about), *kept),
    )


def _read(row: Row, seed: int, budget: Budget, home: Path) -> Model:
    """A finished model, from its folder."""
    folder = home / row.folder(budget) / f"seed-{seed}"
    row = row.under(budget)
    encoder = randomness.build(row.encoder, seed, "encoder")
    encoder.load_state_dict(runs.weights(folder))
    objective = row.objective
    if isinstance(objective, Fresh):
        objective = randomness.build(objective, seed, "objective")
        objective.load_state_dict(runs.weights(folder, "objective"))
    name = row.name if budget.seeds == 1 and seed == 0 else f"{row.name}, seed {seed}"
    return Model(name, encoder.eval(), objective, row, seed=seed)


def _row_result(part: Part, row: Row, finished: Records, budget: Budget) -> RowResult:
    """A row over its seeds, beside what was published."""
    records = finished[row.same_as or row.name]
    judged = budget.judged and budget.bar is None  # beside published numbers
    supervised = None
    if row.supervised in finished:
        reference = finished[row.supervised]
        supervised = _scores(reference, part.row(row.supervised).published, judged=judged)
    identity = None
    if row.identity is not None:
        raw = [replace(r, by_paper=r.raw_by_paper, held_out=r.raw_held_out) for r in records]
        identity = _scores(raw, row.identity, judged=judged)
    shown = records[0].picture
    readings = {reading.name: _read_off(reading, records, judged=judged) for reading in row.readings}
    losses = tuple(r.readings[HELD_OUT_LOSS][0] for r in records if HELD_OUT_LOSS in r.readings)
    if losses:
        readings[HELD_OUT_LOSS] = Measured(None, losses, losses, digits=4)
    return RowResult(
        name=row.name,
        title=row.under(budget).title,
        failure=row.failure,
        prediction=records[0].prediction,
        learned=_learned(row, records, budget.bar, judged=judged),
        identity=identity,
        supervised=supervised,
        curves=tuple(r.curve for r in records),
        seconds=_spent(records),
        seeds=tuple(r.seed for r in records),
        readings=readings,
        aligned=() if shown is None else tuple((z[0], h[0]) for z, h in zip(shown.z, shown.z_hat, strict=True)),
        samples=records[0].samples,
        follows=shown.correlation if shown is not None and records[0].samples else (),
    )


def _spent(records: Sequence[Record]) -> float:
    """Wall time of all trainings; seeds of one stack share one."""
    return sum({record.stack or (record.seed,): record.seconds for record in records}.values())


def _read_off(reading: Reading, records: Sequence[Record], *, judged: bool) -> Measured:
    """A further number of a row, over its seeds."""
    if reading.read is None:
        found = _scores(records, reading.published, judged=judged)
        assert found is not None, "the row has a score"
        return found
    found = _kept(reading.name, records, reading.published, factor=100 if reading.in_percent else 1)
    if reading.published is None or not judged:
        return found
    if not reading.in_percent:
        return replace(found, verdict=verdict_of_error(reading.published, found.values))
    return replace(found, verdict=verdict(reading.published, found.values, failure=reading.failure))


def _learned(row: Row, records: Sequence[Record], bar: Bar | None, *, judged: bool) -> Measured | None:
    """The score of a row: its measure's, or the reading that it shows."""
    if not row.shows:
        found = _scores(records, row.published, judged=judged, failure=row.failure)
    else:
        found = _kept(row.shows, records, row.published)
        if row.published is not None and judged:
            found = replace(found, verdict=verdict(row.published, found.values, failure=row.failure))
    if found is None or bar is None:
        return found
    return replace(found, bar=bar, verdict=verdict_of_effect(bar, found.values))


def _kept(name: str, records: Sequence[Record], published: Published | None, *, factor: float = 100) -> Measured:
    """A reading of every seed, with the interval and the chance level of a known factor of that name."""
    if any(name not in r.readings for r in records):
        raise BadInput(
            f"the runs of {records[0].name!r} hold no {name!r}: they were finished before the table asked for it. "
            "Train them again with --no-resume."
        )
    values, ours = (tuple(factor * r.readings[name][i] for r in records) for i in (0, 1))
    scores = [r.factors[name] for r in records if name in r.factors]
    return Measured(published, values, ours, *_ends(scores, factor), chance=_chance(scores, factor))


def _scores(
    records: Sequence[Record], published: Published | None, *, judged: bool, failure: bool = False
) -> Measured | None:
    """The score of a row over its seeds, in percent; None for models that have none of their own."""
    by_paper = [r.by_paper for r in records if r.by_paper is not None]
    held_out = [r.held_out for r in records if r.held_out is not None]
    if not by_paper:
        return None
    values = _percent(by_paper)
    return Measured(
        published,
        values,
        _percent(held_out),
        *_ends(held_out),
        verdict=verdict(published, values, failure=failure) if published is not None and judged else "",
    )


def _ends(scores: Sequence[Score], factor: float = 100) -> tuple[float | None, float | None]:
    """The lowest and the highest end of the seeds' intervals, where there are any."""
    lows, highs = [s.low for s in scores if s.low is not None], [s.high for s in scores if s.high is not None]
    return factor * min(lows) if lows else None, factor * max(highs) if highs else None


def _chance(scores: Sequence[Score], factor: float) -> float | None:
    found = [s.chance for s in scores if s.chance is not None]
    return factor * statistics.fmean(found) if found else None


def _percent(scores: Sequence[Score]) -> tuple[float, ...]:
    return tuple(100 * score.value for score in scores)
