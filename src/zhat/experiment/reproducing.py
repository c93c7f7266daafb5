"""Published beside ours: run the rows of a table or the points of a figure and set the results side by side."""

from __future__ import annotations

import math
import shutil
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from zhat import _checks, runs
from zhat.errors import BadInput, NothingFinished
from zhat.experiment.family import Family, compare_family
from zhat.experiment.readings import Reading
from zhat.experiment.running import missing, run
from zhat.experiment.scoring import Measure, both_ways
from zhat.experiment.settings import Budget, Row, Sweep, Table
from zhat.results import POINTS, FamilyResult, Measured, Published, Record, RowResult, Score, SweepResult, TableResult

RULE = (
    "reproduced: our mean lies within the published mean ± the largest of 2 published standard deviations, 2 standard "
    f"errors of ours, and {POINTS} points; exceeded: above that; missed: below that. Where the paper shows a failure, "
    "reproduced means failing as well: our mean is not above that range."
)
ERROR = 0.02
RULE_OF_ERRORS = (
    f" Errors (MAE), which the paper prints with two digits: reproduced within {ERROR} of the published mean, exceeded "
    "below that, missed above."
)

Watcher = Callable[[str, int, int, float], None]
"""Called with the row's name, steps done, steps, and the mean loss."""


def verdict(published: Published, values: Sequence[float], *, failure: bool = False) -> str:
    """How our seeds compare with a published score, in percent; the rule is `RULE`.

    Example:
        >>> verdict(Published(99.42, 0.05), [99.3, 99.4, 99.5])
        'reproduced'
        >>> verdict(Published(58.26, 3.0), [98.0, 97.0], failure=True)
        'missed'
    """
    mean = statistics.fmean(values)
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    slack = max(2 * published.std, 2 * error, POINTS)
    if failure:
        return "reproduced" if mean <= published.mean + slack else "missed"
    if mean > published.mean + slack:
        return "exceeded"
    return "reproduced" if mean >= published.mean - slack else "missed"


def reproduce(
    part: Table | Sweep | Family,
    *,
    budget: str = "fast",
    rows: Sequence[str] | None = None,
    seeds: int | None = None,
    out: Path | str = "runs",
    device: torch.device | str = "cpu",
    keep_weights: bool = True,
    executor: Executor | None = None,
    progress: Watcher | None = None,
    notes: tuple[str, ...] = (),
    train: bool = True,
) -> Iterator[TableResult | SweepResult | FamilyResult]:
    """Run what is missing and yield the result after each finished row; the last one yielded is complete.

    Args:
        part: a table or a figure of a paper.
        budget: "smoke", "fast" or "paper".
        rows: names of rows; None runs all.
        seeds: how many seeds; None takes the budget's number.
        out: where the runs go: `out/<paper>/<part>/<row>/<budget>-<digest>/seed-<k>`.
        device: where to train.
        keep_weights: keep the trained encoders.
        executor: anything with `submit`, as in `concurrent.futures`; rows are its tasks, all seeds of a row are one.
        progress: called while rows are trained in this process.
        notes: what a reader should know besides.
        train: False trains nothing and yields once, what is finished side by side: for runs gathered from elsewhere.
            A row is shown without its supervised reference where only that is missing.
    """
    if isinstance(part, Family):
        if not keep_weights:
            raise BadInput(
                f"{part.label} compares models by their weights, so they are kept. Leave out --no-keep-weights."
            )
        how: dict[str, Any] = {"budget": budget, "rows": rows, "seeds": seeds, "out": out, "device": device}
        yield from compare_family(part, **how, executor=executor, progress=progress, notes=notes, train=train)
        return
    chosen = part.rows if rows is None else tuple(part.row(name) for name in rows)
    tasks = part.needed(chosen)
    home = Path(out) / part.paper / part.name
    finished: dict[str, tuple[Record, ...]] = {}
    count = {r.name: range(_checks.count(r.budget(budget).seeds if seeds is None else seeds, "seeds")) for r in tasks}
    if not train:
        tasks = tuple(row for row in tasks if not missing(row, row.budget(budget), count[row.name], home))
        if not any((row.same_as or row.name) in (t.name for t in tasks) for row in chosen):
            raise NothingFinished(
                f"{home} holds no finished row of {part.label} at budget {budget} with the seeds asked for. Say how "
                "many there are with --seeds, or train the rows without --no-train."
            )
    for row, records in _run_all(tasks, budget, count, home, part.measure, device, keep_weights, executor, progress):
        finished[row.name] = records
        ready = tuple(r for r in chosen if _has_all(part, r, finished, references=train))
        if (row in chosen and train) or len(finished) == len(tasks):
            yield _assemble(part, chosen, ready, finished, budget, device, notes)


def _has_all(part: Table | Sweep, row: Row, finished: dict[str, tuple[Record, ...]], *, references: bool) -> bool:
    """Whether a row can be shown: it is finished, and so is its supervised reference, if that is asked for."""
    needed = [t.name for t in part.needed((row,))] if references else [row.same_as or row.name]
    return all(name in finished for name in needed)


def forget(part: Table | Sweep | Family, rows: Sequence[Row], budget: str, out: Path | str) -> None:
    """Remove the runs and checkpoints of these rows at a budget, so that they are trained again."""
    for row in rows:
        shutil.rmtree(Path(out) / part.paper / part.name / row.folder(row.budget(budget)), ignore_errors=True)


def _run_all(
    tasks: Sequence[Row],
    budget: str,
    count: dict[str, range],
    home: Path,
    measure: Measure,
    device: torch.device | str,
    keep_weights: bool,
    executor: Executor | None,
    progress: Watcher | None,
) -> Iterator[tuple[Row, tuple[Record, ...]]]:
    def how(row: Row) -> dict[str, Any]:
        return {
            "seeds": tuple(count[row.name]),
            "out": home,
            "measure": row.measure or measure,
            "device": device,
            "keep_weights": keep_weights,
        }

    if executor is None:
        for row in tasks:

            def told(done: int, steps: int, loss: float, name: str = row.name) -> None:
                if progress is not None:
                    progress(name, done, steps, loss)

            yield row, run(row, row.budget(budget), **how(row), progress=told)
        return
    futures: dict[Future[tuple[Record, ...]], Row] = {
        executor.submit(run, row, row.budget(budget), **how(row)): row for row in tasks
    }
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        for future in futures:
            future.cancel()


def _assemble(
    part: Table | Sweep,
    chosen: tuple[Row, ...],
    ready: tuple[Row, ...],
    finished: dict[str, tuple[Record, ...]],
    budget: str,
    device: torch.device | str,
    notes: tuple[str, ...],
) -> TableResult | SweepResult:
    rows = tuple(_row_result(part, row, finished, row.budget(budget), device) for row in ready)
    about: dict[str, Any] = {
        "paper": part.paper,
        "label": part.label,
        "caption": part.caption,
        "score": part.score,
        "budget": budget,
        "rows": rows,
        "expected": len(chosen),
        "seconds": sum(_spent(records) for records in finished.values()),
        "settings": {
            row.name: row.settings(row.budget(budget))
            for row in (*part.needed(ready), *ready)
            if (row.same_as or row.name) in finished
        },
        "provenance": runs.assembled(r.provenance for records in finished.values() for r in records),
        "notes": notes,
    }
    if isinstance(part, Table):
        errors = any(not reading.in_percent for row in part.rows for reading in row.readings)
        return TableResult(**about, rule=RULE + (RULE_OF_ERRORS if errors else ""))
    place = {row.name: x for row, x in zip(part.rows, part.x, strict=True)}
    x = tuple(place[row.name] for row in ready)
    scores, second = tuple(r.learned.mean for r in rows), _second(part, ready, rows)
    holds, why = _claimed(part, x, scores, second, budget)
    return SweepResult(
        **about,
        x=x,
        x_name=part.x_name,
        mark=part.mark,
        mark_name=part.mark_name,
        second=second,
        second_name=part.second_name,
        holds=holds,
        claim=why,
    )


def _second(part: Sweep, ready: tuple[Row, ...], rows: tuple[RowResult, ...]) -> tuple[float, ...]:
    """The quantity on the second axis: of the settings, or a reading as a share."""
    if isinstance(part.second, str):
        return tuple(row.readings[part.second].mean / 100 for row in rows)
    return tuple(part.second(row) for row in ready)


def _claimed(
    part: Sweep, x: tuple[float, ...], scores: tuple[float, ...], second: tuple[float, ...], budget: str
) -> tuple[bool | None, str]:
    """Whether the paper's claim holds here, where that can be told, and why."""
    if len(x) < len(part.rows):
        return None, "not all points are finished"
    if not all(row.budget(budget).judged for row in part.rows):
        return None, f"budget {budget} only tries the machinery"
    holds, why = part.claim(x, scores)
    if not isinstance(part.second, str):
        return holds, why
    also, because = part.claim(x, tuple(100 * v for v in second))
    return holds and also, f"{part.score}: {why}; {part.second_name}: {because}"


def _row_result(
    part: Table | Sweep,
    row: Row,
    finished: dict[str, tuple[Record, ...]],
    budget: Budget,
    device: torch.device | str,
) -> RowResult:
    records = finished[row.same_as or row.name]
    identity = supervised = None
    if row.identity is not None:
        scores = [
            identity_score(row.measure or part.measure, replace(row.process, seed=r.seed), budget, str(device))
            for r in records
        ]
        identity = _measured([a for a, _ in scores], [b for _, b in scores], row.identity, judged=budget.judged)
    if row.supervised in finished:
        reference = part.row(row.supervised)
        supervised = _of_records(finished[row.supervised], reference.published, judged=budget.judged)
    return RowResult(
        name=row.name,
        title=row.title,
        failure=row.failure,
        prediction=records[0].prediction,
        learned=_of_records(records, row.published, failure=row.failure, judged=budget.judged),
        identity=identity,
        supervised=supervised,
        curves=tuple(r.curve for r in records),
        seconds=_spent(records),
        seeds=tuple(r.seed for r in records),
        readings={reading.name: _read(reading, records, judged=budget.judged) for reading in row.readings},
        aligned=_aligned(records[0]) if records[0].raw is None else (),
    )


def _spent(records: Sequence[Record]) -> float:
    """Wall time of all trainings; seeds of one stack share one, and say the same number."""
    return sum({record.seconds for record in records})


def _aligned(record: Record) -> tuple[tuple[float, float], ...]:
    """The first coordinate of either model of a pair, after the best affine map."""
    shown = record.picture
    return tuple((one[0], two[0]) for one, two in zip(shown.z, shown.z_hat, strict=True))


def _read(reading: Reading, records: Sequence[Record], *, judged: bool) -> Measured:
    """A further number of a row, over its seeds."""
    if reading.read is None:
        return _of_records(records, reading.published, judged=judged)
    if any(reading.name not in r.readings for r in records):
        raise BadInput(
            f"the runs of {records[0].name!r} hold no {reading.name!r}: they were finished before the table asked for "
            "it. Train them again with --no-resume."
        )
    factor = 100 if reading.in_percent else 1
    values = tuple(factor * r.readings[reading.name][0] for r in records)
    ours = tuple(factor * r.readings[reading.name][1] for r in records)
    judge = verdict if reading.in_percent else verdict_of_error
    told = judge(reading.published, values) if reading.published is not None and judged else ""
    return Measured(reading.published, values, ours, None, None, told)


def verdict_of_error(published: Published, values: Sequence[float]) -> str:
    """How our seeds compare with a published error; the rule is `RULE_OF_ERRORS`."""
    above = statistics.fmean(values) - published.mean
    return "missed" if above > ERROR else "exceeded" if above < -ERROR else "reproduced"


@lru_cache(maxsize=512)
def identity_score(measure: Measure, world: Any, budget: Budget, device: str) -> tuple[Score, Score]:
    """The scores of the observations themselves: the encoder that does nothing."""
    return both_ways(measure, nn.Identity(), world, budget.batches, budget.rows, device=device)


def _of_records(
    records: Sequence[Record], published: Published | None, *, judged: bool, failure: bool = False
) -> Measured:
    by_paper = [r.by_paper for r in records if r.by_paper is not None]
    held_out = [r.held_out for r in records if r.held_out is not None]
    return _measured(by_paper, held_out, published, judged=judged, failure=failure)


def _measured(
    by_paper: Sequence[Score],
    held_out: Sequence[Score],
    published: Published | None,
    *,
    judged: bool,
    failure: bool = False,
) -> Measured:
    values = tuple(100 * s.value for s in by_paper)
    lows, highs = [s.low for s in held_out if s.low is not None], [s.high for s in held_out if s.high is not None]
    return Measured(
        published=published,
        values=values,
        held_out=tuple(100 * s.value for s in held_out),
        low=100 * min(lows) if lows else None,
        high=100 * max(highs) if highs else None,
        verdict=verdict(published, values, failure=failure) if published is not None and judged else "",
    )
