"""zhat sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from zhat.cli.completing import A_DEVICE
from zhat.cli.door import Console, app, complain, door
from zhat.cli.executors import executor_of
from zhat.cli.reproduce import holding, lies_in
from zhat.errors import BadInput, NothingFinished


@app.command()
@door
def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.py", help="A Python file that declares ROWS or PART; it is run.")
    ],
    row: Annotated[list[str] | None, typer.Option(help="One row only; may be repeated.")] = None,
    seeds: Annotated[int | None, typer.Option(help="How many seeds; the budget's number if not given.")] = None,
    budget: Annotated[
        str | None, typer.Option(help="Which budget of the rows; not needed where they have one in common.")
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Train one share of the work, for instance 2/8 on one of 8 machines."),
    ] = None,
    join: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="First copy the finished runs of this folder into OUT; may be repeated."),
    ] = None,
    device: Annotated[
        str, typer.Option(help="Where to train: auto, cpu, cuda, cuda:1, …", autocompletion=A_DEVICE)
    ] = "auto",
    out: Annotated[Path, typer.Option(help="Folder for results and runs.")] = Path("swept"),
    resume: Annotated[
        bool, typer.Option(help="Keep what an earlier call finished; --no-resume trains the chosen rows again.")
    ] = True,
    train: Annotated[
        bool, typer.Option(help="Train what is missing; --no-train sets side by side what OUT holds.")
    ] = True,
    keep_weights: Annotated[bool, typer.Option(help="Keep the trained encoders.")] = True,
    executor: Annotated[
        str | None, typer.Option(help="Spread the work: processes:4, or dask://HOST:PORT (needs zhat[dask]).")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder of recorded data; the variable ZHAT_DATA if not given.")
    ] = None,
) -> None:
    """Train settings of your own from a Python file, and set them side by side.

    The page says which row scores highest, and which others the seeds tell apart from it. Writes results.json,
    table.md, table.tex and report.html to OUT/FILE/PART/BUDGET, and every run to OUT/runs. If it is interrupted, give
    the same command again to resume.
    """
    import torch

    from zhat import _checks, experiment
    from zhat.experiment import sweeping
    from zhat.progress import Growing, clock, compared
    from zhat.report import write_comparison

    part = sweeping.declared(file)
    if row:
        holding((part,), row)
    names = tuple(r.name for r in part.rows if not row or r.name in row)
    how = sweeping.budget_of(part, budget)
    if seeds is not None:
        _checks.count(seeds, "--seeds")
    if data is not None:
        lies_in(data)
    if not (train or resume):
        raise BadInput("--no-resume trains rows again, and --no-train trains none. Give one of them.")
    if shard is not None and not (train and resume):
        raise BadInput("--shard trains a share of what is missing. Leave out --no-train and --no-resume.")
    where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    _checks.device(where)
    console, runs = Console(), out / "runs"
    for source in join or ():
        copied = sweeping.join(source, runs)
        console.print(f"{source}: {copied} runs copied", highlight=False, markup=False, soft_wrap=True)
    work = sweeping.tasks(part, names, how, seeds)
    mine = work if shard is None else sweeping.share(work, shard)
    if not resume:
        experiment.forget(part, part.needed(tuple(part.row(name) for name in names)), how, runs)
    steps: dict[str, int] = {}
    for each, _ in mine:
        steps[each.name] = steps.get(each.name, 0) + each.budget(how).recipe.steps
    folder = out / part.paper / part.name / "+".join((how, *(names if row else ())))
    result: Any = None
    files: dict[str, Path] = {}
    with (
        executor_of(executor, code=file) as spread,
        Growing(f"{part.paper}, {part.label}", steps, console=console) as growing,
    ):
        if shard is not None:
            sweeping.train_share(
                part,
                mine,
                how,
                out=runs,
                device=where,
                keep_weights=keep_weights,
                executor=spread,
                progress=growing.training,
            )
        try:
            for result in experiment.reproduce(
                part,
                budget=how,
                rows=names,
                seeds=seeds,
                out=runs,
                device=where,
                keep_weights=keep_weights,
                executor=spread,
                progress=growing.training,
                train=train and shard is None,
            ):
                growing.grown(result)
                files = write_comparison(result, folder)
        except NothingFinished:
            if shard is None:
                raise
    if shard is not None:
        console.print(f"Share {shard}: {len(mine)} of {len(work)} trainings are done.", highlight=False)
    if result is None:
        complain("No row has all its seeds yet. Each share that ends shows what is complete.")
        return
    console.print(compared(result))
    console.print(result.summary, highlight=False, markup=False)
    for said in result.not_measured:
        console.print(f"Not measured: {said}", highlight=False, markup=False, soft_wrap=True)
    console.print(
        f"Training took {clock(result.seconds)}. Page: {files['html']}", highlight=False, markup=False, soft_wrap=True
    )
