"""The command line: thin; each command is one public function.

Exit codes: 0 done, 1 a run or a gate failed, 2 a mistake in what was asked for, 130 interrupted.
"""

from __future__ import annotations

import functools
import statistics
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from zhat._version import __version__
from zhat.errors import BadInput, MissingExtra, RunFailed, UnknownName

app = typer.Typer(
    name="zhat",
    help="Identifiable representation learning: did the model recover the latents behind the data?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
P = ParamSpec("P")


def _door(command: Callable[P, None]) -> Callable[P, None]:
    """Turn what zhat raises on purpose into a sentence and an exit code."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (BadInput, MissingExtra) as error:
            _complain(f"zhat: {error}")
            raise typer.Exit(2) from None
        except RunFailed as error:
            _complain(f"zhat: {error}")
            raise typer.Exit(1) from None
        except OSError as error:
            _complain(f"zhat: {error.strerror or error}: {error.filename or 'a file'}")
            raise typer.Exit(2) from None
        except KeyboardInterrupt as interruption:
            _complain(f"zhat: interrupted; {interruption}" if str(interruption) else "zhat: interrupted")
            raise typer.Exit(130) from None

    return wrapped


def _complain(sentence: str) -> None:
    print(sentence, file=sys.stderr)


def _version(asked: bool) -> None:
    if asked:
        print(f"zhat {__version__}")
        raise typer.Exit


@app.callback()
def _zhat(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


@app.command()
@_door
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
    prediction = records[0].prediction
    for score in records[0].learned:
        learned = [r.learned[score.up_to] for r in records]
        raw = statistics.fmean(r.raw[score.up_to].value for r in records)
        low = min(s.low for s in learned if s.low is not None)
        high = max(s.high for s in learned if s.high is not None)
        chance = statistics.fmean(s.chance for s in learned if s.chance is not None)
        predicted = prediction is not None and prediction.up_to is score.up_to
        table.add_row(
            f"{score.up_to}{' *' if predicted else ''}",
            f"{raw:.3f}",
            f"{statistics.fmean(s.value for s in learned):.3f}",
            escape(f"[{low:.3f}, {high:.3f}]"),
            f"{chance:.3f}",
            style="bold" if predicted else None,
        )
    console.print(table)
    console.print(_caption(records), style="dim", highlight=False)
    console.print(f"Report: {out / 'report.html'}   Results: {out / 'results.json'}", highlight=False)


def _caption(records: Any) -> str:
    score = records[0].learned.scores[0]
    seeds = f"mean of {len(records)} seeds" if len(records) > 1 else "one seed"
    return (
        f"R² on {score.n} held-out rows, {seeds}. Interval: the widest 95% bootstrap\n"
        "interval over seeds. Chance: shuffled rows. * the class theory predicts."
    )


@app.command()
@_door
def report(
    run: Annotated[Path, typer.Argument(help="The folder of a run, or a folder that holds runs of one setting.")],
    out: Annotated[
        Path | None, typer.Option(help="The page to write; report.html in that folder if not given.")
    ] = None,
) -> None:
    """Write the HTML page of finished runs."""
    from zhat import report as pages
    from zhat import runs

    records = [runs.read(folder) for folder in runs.scan(run)]
    if not records:
        raise BadInput(f"{run} holds no finished run. A run is a folder named seed-… with a run.json.")
    if len({repr(r.settings) for r in records}) > 1:
        names = ", ".join(sorted({r.name for r in records}))
        raise BadInput(f"{run} holds runs of several settings ({names}). Give the folder of one of them.")
    print(pages.write(records, out or run / "report.html"))


_ROOMS = {
    "spaces": ("zhat.dgp", ("Real", "Sphere", "Box", "Product")),
    "marginals": ("zhat.dgp", ("Uniform", "Normal", "Laplace", "GeneralizedNormal")),
    "conditionals": ("zhat.dgp", ("VonMisesFisher", "Around")),
    "mixings": ("zhat.dgp", ("InvertibleMLP", "Linear", "Orthogonal", "Embedding")),
    "processes": ("zhat.dgp", ("Pairs",)),
    "encoders": ("zhat.encoders", ("mlp",)),
    "objectives": ("zhat.objectives", ("InfoNCE", "Supervised")),
    "metrics": (
        "zhat.metrics",
        ("Recovery", "linear_r2", "mcc", "profile", "singular_values", "distance_from_orthogonal"),
    ),
    "theorems": ("zhat.theory", ()),
    "classes": ("zhat.equivalence", ()),
}


@app.command("list")
@_door
def list_(
    kind: Annotated[str | None, typer.Argument(help="One kind only, for instance metrics.")] = None,
) -> None:
    """Show what there is: spaces, distributions, objectives, metrics, theorems, classes of maps."""
    if kind is not None and kind not in _ROOMS:
        raise UnknownName("kind", kind, _ROOMS)
    console = Console()
    for name, (module, members) in _ROOMS.items():
        if kind not in (None, name):
            continue
        room = import_module(module)
        table = Table(
            title=f"{name} ({module})",
            title_justify="left",
            show_header=False,
            box=None,
            padding=(0, 2, 0, 0),
        )
        table.add_column(no_wrap=True, style="bold")
        table.add_column()
        if name == "classes":
            for up_to in room.Equivalence:
                table.add_row(up_to.name, up_to.meaning)
        elif name == "theorems":
            for theorem in room.THEOREMS:
                table.add_row(f"{theorem.cite}, {theorem.name}", f"up to {theorem.conclusion}")
        for member in members:
            doc = (getattr(room, member).__doc__ or "").strip().splitlines()[0]
            table.add_row(member, escape(doc))
        console.print(table, highlight=False)
        console.print()


def main() -> None:
    """The entry point of the `zhat` command."""
    app()
