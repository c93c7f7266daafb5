"""zhat demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from zhat.cli.door import Console, app, door


@app.command()
@door
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report, the results and the runs.")] = Path("zhat-demo"),
    seeds: Annotated[int, typer.Option(help="How many seeds to train together.")] = 3,
) -> None:
    """Predict, train, score, report: under a minute on two cores.

    Trains a small contrastive encoder on observations whose latents lie on a sphere and shows, for each class of maps,
    how much of the latents came back. A second start shows the finished result; an interrupted one goes on.
    """
    from zhat import _checks
    from zhat.demo import DEMO
    from zhat.demo import demo as run_demo
    from zhat.progress import Progress
    from zhat.results import across
    from zhat.theory import predict

    _checks.count(seeds, "--seeds")
    console = Console()
    console.print(f"[bold]{DEMO.title}[/bold]")
    console.print(predict(DEMO.process, DEMO.objective, DEMO.encoder).sentence, highlight=False, markup=False)
    with Progress(f"training {seeds} seed{'s' if seeds > 1 else ''}") as progress:
        records = run_demo(out, seeds=tuple(range(seeds)), progress=progress)
    table = Table()
    for name in ("up to", "raw x", "learned h", "95% interval", "chance"):
        table.add_column(name, justify="left" if name == "up to" else "right", no_wrap=True)
    for found in across(records):
        table.add_row(
            f"{found.up_to}{' *' if found.predicted else ''}",
            f"{found.raw_mean:.3f}",
            f"{found.mean:.3f}",
            escape(f"[{found.low:.3f}, {found.high:.3f}]"),
            f"{found.chance:.3f}",
            style="bold" if found.predicted else None,
        )
    console.print(table)
    console.print(_caption(records), style="dim", highlight=False)
    console.print(f"Report: {out / 'report.html'}   Results: {out / 'results.json'}", highlight=False)


def _caption(records: Any) -> str:
    score = records[0].learned.scores[0]
    seeds = f"mean of {len(records)} seeds" if len(records) > 1 else "one seed"
    return (
        f"R² on {score.n} held-out rows, {seeds}. Interval: lowest to highest end\n"
        "of the seeds' 95% intervals. Chance: shuffled rows. * the class theory\npredicts."
    )
