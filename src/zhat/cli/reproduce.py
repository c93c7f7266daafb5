"""zhat reproduce and zhat report."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from zhat._files import printable
from zhat.cli.completing import A_DEVICE, a_paper, of_the_paper
from zhat.cli.door import Console, app, door
from zhat.cli.executors import executor_of
from zhat.errors import BadInput, MissingData, NothingFinished, UnknownName


@app.command()
@door
def reproduce(
    paper: Annotated[
        str,
        typer.Argument(
            help="The paper's key, for instance zimmermann2021 (see zhat list papers).", autocompletion=a_paper
        ),
    ],
    table: Annotated[
        str | None, typer.Option(help="One table only, by its number.", autocompletion=of_the_paper("table"))
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(help="One figure only, by its number; a panel as 5a.", autocompletion=of_the_paper("figure")),
    ] = None,
    row: Annotated[
        list[str] | None,
        typer.Option(help="One row only, for instance T1.1; may be repeated.", autocompletion=of_the_paper("row")),
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="How many seeds; the budget's number if not given.")] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="smoke (seconds), laptop (about a minute a row on two cores), fast (minutes a row on a GPU) or "
            "paper. Not given: fast on a GPU, laptop elsewhere.",
            autocompletion=of_the_paper("budget"),
        ),
    ] = None,
    device: Annotated[
        str, typer.Option(help="Where to train: auto, cpu, cuda, cuda:1, …", autocompletion=A_DEVICE)
    ] = "auto",
    out: Annotated[Path, typer.Option(help="Folder for results and runs.")] = Path("reproduced"),
    resume: Annotated[
        bool, typer.Option(help="Keep what an earlier call finished; --no-resume trains the chosen rows again.")
    ] = True,
    train: Annotated[
        bool, typer.Option(help="Train what is missing; --no-train sets side by side what OUT holds.")
    ] = True,
    keep_weights: Annotated[bool, typer.Option(help="Keep the trained encoders.")] = True,
    executor: Annotated[
        str | None, typer.Option(help="Spread rows: processes:4, or dask://HOST:PORT (needs zhat[dask]).")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder of recorded data; the variable ZHAT_DATA if not given.")
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Models you have, for a figure that takes them: gpt2,gpt2-medium or a.npz,b.npz.")
    ] = None,
) -> None:
    """Regenerate a paper's tables and figures, published and measured side by side.

    Before a training of more than a few minutes it says how long it will take here, and what would be faster.
    Writes results.json, table.md, table.tex and report.html to OUT/PAPER/PART/BUDGET, and every run to OUT/runs. An
    interrupted call goes on when it is started again. Without --table or --figure it does everything.
    """
    import torch

    from zhat import _checks, experiment, papers
    from zhat.experiment.forecast import Forecast
    from zhat.experiment.running import missing
    from zhat.progress import Growing, clock, compared
    from zhat.report import write_comparison

    found = papers.paper(paper)
    if table is not None and figure is not None:
        raise BadInput("--table and --figure were both given. Give one of them, or neither for everything.")
    parts = found.parts if table is None and figure is None else _numbered(found, table, figure)
    if row:
        parts = holding(parts, row)
    if data is not None:
        lies_in(data)
    if models is not None:
        if row:
            raise BadInput("--row names rows of the paper, and --models puts yours in their place. Give one of them.")
        parts = _given(parts, models)
    if seeds is not None:
        _checks.count(seeds, "--seeds")
    if not (train or resume):
        raise BadInput("--no-resume trains rows again, and --no-train trains none. Give one of them.")
    where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    console = Console()
    forecast = Forecast(where)
    empty: list[BadInput] = []
    for part in parts:
        rows = tuple(r.name for r in part.rows if not row or r.name in row)
        chosen = tuple(part.row(name) for name in rows)
        needed = part.needed(chosen)
        name = budget or part.budget_on(where)
        try:
            budgets = {r.name: r.budget(name) for r in needed}
        except UnknownName as unknown:
            empty.append(unknown)
            continue
        if not resume:
            experiment.forget(part, needed, name, out / "runs")
        home = out / "runs" / part.paper / part.name
        steps = {
            r.name: _steps(how, seeds)
            for r, how in zip(needed, budgets.values(), strict=True)
            if missing(r, how, range(how.seeds if seeds is None else seeds), home)
        }
        if train and models is None:
            _foretell(part, chosen, name, seeds, out / "runs", forecast, console)
        asked = (
            [Path(name.strip()).name for name in models.split(",")] if models is not None else [*rows] if row else []
        )
        folder = out / paper / part.name / "+".join((name, *asked))
        result = None
        try:
            with (
                executor_of(executor) as spread,
                Growing(f"{paper}, {part.label}", steps, console=console) as growing,
            ):
                for result in experiment.reproduce(
                    part,
                    budget=name,
                    rows=rows,
                    seeds=seeds,
                    out=out / "runs",
                    device=where,
                    keep_weights=keep_weights,
                    executor=spread,
                    progress=growing.training,
                    notes=found.notes,
                    train=train,
                ):
                    growing.grown(result)
                    files = write_comparison(result, folder)
        except (NothingFinished, MissingData) as nothing:
            empty.append(nothing)
            continue
        assert result is not None, "a table has at least one row"
        console.print(compared(result))
        console.print(result.summary, highlight=False)
        for said in result.not_measured:
            console.print(f"Not measured: {said}", highlight=False, soft_wrap=True)
        console.print(f"Training took {clock(result.seconds)}. Page: {files['html']}", highlight=False, soft_wrap=True)
    if len(empty) == len(parts):
        raise empty[0]
    for reason in empty:
        console.print(f"Left out: {reason}", highlight=False, soft_wrap=True)


LONG = 180.0
"""Seconds of training that are announced."""


def _foretell(
    part: Any, chosen: Any, budget: str, seeds: int | None, out: Path, forecast: Any, console: Console
) -> None:
    """Before a long training: how long it will take on this machine, and what would be faster."""
    from zhat.experiment.settings import LAPTOP
    from zhat.progress import spoken

    def takes(rows: Any, name: str) -> float:
        return float(forecast.left(part, rows, name, seeds, out))

    with console.status(f"measuring a few steps of {part.label} on {forecast.device}"):
        total = takes(chosen, budget)
        if total < LONG:
            return
        faster = []
        if budget != LAPTOP and part.budget_on("cpu") == LAPTOP:
            faster.append(f"--budget {LAPTOP} ({spoken(takes(chosen, LAPTOP))})")
        if len(chosen) > 1:
            each = {row.name: takes((row,), budget) for row in chosen}
            quickest, seconds = min(((n, s) for n, s in each.items() if s), key=lambda one: one[1])
            faster.append(f"one row, such as --row {quickest} ({spoken(seconds)})")
        if forecast.device.type == "cpu":
            faster.append("a GPU")
    time = f"about {spoken(total)}" if math.isfinite(total) else "too long to be measured here"
    said = f" Faster: {'; '.join(faster)}." if faster else ""
    console.print(
        f"{part.label} at budget {budget}: {time} of training on {forecast.device}.{said} If you "
        "interrupt it, the same command resumes.",
        highlight=False,
        soft_wrap=True,
    )


def _numbered(paper: Any, table: str | None, figure: str | None) -> Any:
    return paper.numbered("table", table) if table is not None else paper.numbered("figure", figure)


def lies_in(data: Path) -> None:
    """Let recorded data be read from this folder, here and in the processes that are started."""
    import os

    from zhat.datasets.place import VARIABLE

    if not data.is_dir():
        raise BadInput(f"--data must be the folder of recorded data, but {data} is none.")
    os.environ[VARIABLE] = str(data.resolve())


def _given(parts: Any, models: str) -> Any:
    """The one figure asked for, drawn of models that the user has."""
    if len(parts) != 1:
        raise BadInput("--models needs one figure that takes models, for instance: roeder2020 --figure 4.")
    return (parts[0].given(tuple(name.strip() for name in models.split(","))),)


def _steps(budget: Any, seeds: int | None) -> int:
    """Training steps of a row: as many times as there are stacks of seeds, where their size is known beforehand."""
    count = budget.seeds if seeds is None else seeds
    together = budget.recipe.together or count
    return int(budget.recipe.steps * -(-count // together))


def holding(parts: Any, rows: list[str]) -> Any:
    """The parts that hold the named rows; a name that no part holds is a mistake."""
    known = [r.name for part in parts for r in part.rows]
    for name in rows:
        if name not in known:
            raise UnknownName("row", name, known)
    return tuple(part for part in parts if any(r.name in rows for r in part.rows))


@app.command()
@door
def report(
    run: Annotated[
        Path,
        typer.Argument(help="A run's folder, a folder of runs of one setting, or a results.json of zhat reproduce."),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write, for runs; the folder to write to, for a results.json.")
    ] = None,
) -> None:
    """Write the HTML page of finished runs, or page and tables of a reproduced table or figure."""
    from zhat import report as pages
    from zhat import runs
    from zhat.files.reading import read_text
    from zhat.results import PartResult, from_json

    if run.exists() and not run.is_dir():
        result = from_json(read_text(run, "be a results.json of zhat reproduce"))
        if not isinstance(result, PartResult):
            raise BadInput(f"{run} holds no table or figure of a paper. Give a results.json of zhat reproduce.")
        print(printable(str(pages.write_comparison(result, out or run.parent)["html"])))
        return
    records = [runs.read(folder) for folder in runs.scan(run)]
    if not records:
        raise BadInput(f"{run} holds no finished run. A run is a folder named seed-… with a run.json.")
    if len({repr(r.settings) for r in records}) > 1:
        names = ", ".join(sorted({r.name for r in records}))
        raise BadInput(
            f"{run} holds runs of several settings ({names}), and a page speaks of one. Give the folder of one "
            f"of them, or compare them: zhat runs {run} --by row --diff."
        )
    print(printable(str(pages.write(records, out or run / "report.html"))))
