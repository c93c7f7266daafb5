"""The command line: thin; each command is one public function.

Exit codes: 0 done, 1 a run or a gate failed, 2 a mistake in what was asked for, 130 interrupted.
"""

from __future__ import annotations

import functools
import io
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
        raw = statistics.fmean(r.raw[score.up_to].value for r in records if r.raw is not None)
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
        f"R² on {score.n} held-out rows, {seeds}. Interval: lowest to highest end\n"
        "of the seeds' 95% bootstrap intervals. Chance: shuffled rows. * the class theory\npredicts."
    )


@app.command()
@_door
def reproduce(
    paper: Annotated[str, typer.Argument(help="The paper's key, for instance zimmermann2021 (see zhat list papers).")],
    table: Annotated[str | None, typer.Option(help="One table only, by its number.")] = None,
    figure: Annotated[str | None, typer.Option(help="One figure only, by its number; a panel as 5a.")] = None,
    row: Annotated[list[str] | None, typer.Option(help="One row only, for instance T1.1; may be repeated.")] = None,
    seeds: Annotated[int | None, typer.Option(help="How many seeds; the budget's number if not given.")] = None,
    budget: Annotated[str, typer.Option(help="smoke (seconds), fast (minutes on a GPU) or paper.")] = "fast",
    device: Annotated[str, typer.Option(help="Where to train: auto, cpu, cuda, cuda:1, …")] = "auto",
    out: Annotated[Path, typer.Option(help="Folder for results and runs.")] = Path("reproduced"),
    resume: Annotated[
        bool, typer.Option(help="Keep what an earlier call finished; --no-resume trains the chosen rows again.")
    ] = True,
    keep_weights: Annotated[bool, typer.Option(help="Keep the trained encoders.")] = True,
    executor: Annotated[
        str | None, typer.Option(help="Spread rows: processes:4, or dask://HOST:PORT (needs zhat[dask]).")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The folder of recorded data; the variable ZHAT_DATA if not given.")
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="Compare these Hugging Face models instead of training: gpt2,gpt2-medium.")
    ] = None,
) -> None:
    """Regenerate a paper's tables and figures, published and measured side by side.

    Writes results.json, table.md, table.tex and report.html to OUT/PAPER/PART/BUDGET, and every run to OUT/runs. An
    interrupted call goes on when it is started again. Without --table or --figure it does everything.
    """
    import torch

    from zhat import experiment, papers
    from zhat.progress import Growing, clock, compared
    from zhat.report import write_comparison
    from zhat.report.comparison import summary

    found = papers.paper(paper)
    if table is not None and figure is not None:
        raise BadInput("--table and --figure were both given. Give one of them, or neither for everything.")
    parts = found.parts if table is None and figure is None else _numbered(found, table, figure)
    if row:
        parts = _holding(parts, row)
    if data is not None:
        _lies_in(data)
    if models is not None:
        parts = _given(parts, models)
    where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    console = Console()
    for part in parts:
        rows = tuple(r.name for r in part.rows if not row or r.name in row)
        needed = part.needed(tuple(part.row(name) for name in rows))
        if not resume:
            experiment.forget(part, needed, budget, out / "runs")
        if isinstance(part, experiment.Family):
            steps = part.steps(needed, budget, seeds)
        else:
            steps = {r.name: r.budget(budget).steps for r in needed}
        asked = [Path(name).name for name in models.split(",")] if models is not None else [*rows] if row else []
        folder = out / paper / part.name / "+".join((budget, *asked))
        result = None
        with _executor(executor) as spread, Growing(f"{paper}, {part.label}", steps, console=console) as growing:
            for result in experiment.reproduce(
                part,
                budget=budget,
                rows=rows,
                seeds=seeds,
                out=out / "runs",
                device=where,
                keep_weights=keep_weights,
                executor=spread,
                progress=growing.training,
                notes=found.notes,
            ):
                growing.grown(result)
                files = write_comparison(result, folder)
        assert result is not None, "a table has at least one row"
        console.print(compared(result))
        console.print(summary(result), highlight=False)
        console.print(f"Training took {clock(result.seconds)}. Page: {files['html']}", highlight=False, soft_wrap=True)


def _numbered(paper: Any, table: str | None, figure: str | None) -> Any:
    return paper.numbered("table", table) if table is not None else paper.numbered("figure", figure)


def _lies_in(data: Path) -> None:
    """Let recorded data be read from this folder, here and in the processes that are started."""
    import os

    from zhat.datasets.place import VARIABLE

    if not data.is_dir():
        raise BadInput(f"--data must be the folder of recorded data, but {data} is none.")
    os.environ[VARIABLE] = str(data.resolve())


def _given(parts: Any, models: str) -> Any:
    """The one figure asked for, drawn of models that the user has."""
    from zhat.experiment import Family

    if len(parts) != 1 or not isinstance(parts[0], Family):
        raise BadInput("--models needs one figure that compares models, for instance: roeder2020 --figure 4.")
    return (parts[0].given([name.strip() for name in models.split(",")]),)


def _holding(parts: Any, rows: list[str]) -> Any:
    """The parts that hold the named rows; a name that no part holds is a mistake."""
    known = [r.name for part in parts for r in part.rows]
    for name in rows:
        if name not in known:
            raise UnknownName("row", name, known)
    return tuple(part for part in parts if any(r.name in rows for r in part.rows))


@contextmanager
def _executor(where: str | None) -> Iterator[Any]:
    """Something with `submit`, from the words of the command line."""
    if where is None:
        yield None
        return
    kind, _, rest = where.partition(":")
    if kind == "processes" and rest.isdigit() and int(rest) > 0:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        with ProcessPoolExecutor(int(rest), mp_context=get_context("spawn")) as pool:
            yield pool
    elif kind == "dask" and rest.startswith("//"):
        try:
            from distributed import Client
        except ImportError:
            raise MissingExtra("distributed", "dask", "spreading rows over a Dask cluster") from None
        try:
            client = Client(f"tcp:{rest}", timeout=10)
        except OSError as error:
            raise BadInput(
                f"no Dask scheduler answers at {rest[2:]} ({error}). Start one with: dask scheduler."
            ) from None
        with client, client.get_executor() as pool:
            yield pool
    else:
        raise BadInput(f"--executor must be processes:N or dask://HOST:PORT, but {where!r} came.")


@app.command()
@_door
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
    from zhat.results import FamilyResult, SweepResult, TableResult, from_json

    if run.is_file():
        result = from_json(run.read_text(encoding="utf-8", errors="replace"))
        if not isinstance(result, TableResult | SweepResult | FamilyResult):
            raise BadInput(f"{run} holds no table or figure of a paper. Give a results.json of zhat reproduce.")
        print(pages.write_comparison(result, out or run.parent)["html"])
        return
    records = [runs.read(folder) for folder in runs.scan(run)]
    if not records:
        raise BadInput(f"{run} holds no finished run. A run is a folder named seed-… with a run.json.")
    if len({repr(r.settings) for r in records}) > 1:
        names = ", ".join(sorted({r.name for r in records}))
        raise BadInput(f"{run} holds runs of several settings ({names}). Give the folder of one of them.")
    print(pages.write(records, out or run / "report.html"))


@app.command()
@_door
def audit(
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="A B [C …]",
            help="Embeddings of the same rows: .npy, .npz, .safetensors, .csv, .parquet, .arrow, or folders of them.",
        ),
    ] = None,
    model: Annotated[
        list[Path] | None,
        typer.Option(help="Instead of inputs, twice: a Hugging Face folder with safetensors weights."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="What both models are shown: .npy of tokens or images, .txt of texts.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Which array, for files that hold several.")] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(help="Join rows by id: a key or column in all files, or a file of ids for each input."),
    ] = None,
    require: Annotated[str | None, typer.Option(help="Fail unless the verdict is this class or a tighter one.")] = None,
    min_: Annotated[float | None, typer.Option("--min", help="Fail if the held-out R2 is below.")] = None,
    gate: Annotated[
        Path | None, typer.Option(help="A TOML file of conditions, instead of --require and --min.")
    ] = None,
    recall: Annotated[
        int | None, typer.Option(help="Report recall@K of a search among old rows behind the map.")
    ] = None,
    adapter: Annotated[Path | None, typer.Option(help="Keep the map from A to B as this .safetensors file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    seed: Annotated[int, typer.Option(help="Of the sample and the chance level.")] = 0,
) -> None:
    """Say up to which class of maps embeddings B are embeddings A.

    Identical, permuted, rotated, linear, affine, only nonlinearly related, unrelated; or that these rows cannot tell,
    and how many would. Each class is fitted on some rows and read on others, with an interval and a chance level.
    More than two inputs give a matrix: every one from every other one; a gate then asks all of them. Two models with
    --data are compared layer by layer.
    """
    from zhat import audit as room

    inputs = inputs or []
    if model or data is not None:
        if model is None or inputs or len(model) != 2 or data is None or any((key, ids, recall is not None, adapter)):
            raise BadInput(
                "models are compared with: zhat audit --model A --model B --data FILE; --require, --min, --gate, "
                "--report, --json and --seed may follow, but no inputs, --key, --ids, --recall or --adapter."
            )
        asked = _gate(gate, require, min_)
        if asked is not None and asked.min_recall is not None:
            raise BadInput("min_recall is asked of embeddings, not of the layers of models.")
        _tell(room.audit_models(model[0], model[1], data, seed=seed), asked, report, json)
        return
    if len(inputs) < 2:
        raise BadInput(f"an audit compares at least two inputs, but {len(inputs)} came: zhat audit A B.")
    if adapter is not None and len(inputs) > 2:
        raise BadInput(f"an adapter goes from one input to another, but {len(inputs)} came. Give two.")
    asked = _gate(gate, require, min_)
    if ids is not None and len(ids) not in (1, len(inputs)):
        raise BadInput(f"--ids is given once, or once for each of {len(inputs)} inputs, but {len(ids)} came.")
    by = ids[0] if ids is not None and len(ids) == 1 else ids
    if len(inputs) == 2:
        found: tuple[room.Examined, ...] = (room.examine(inputs[0], inputs[1], key=key, ids=by, seed=seed),)
    else:
        found = room.examine_all(inputs, key=key, ids=by, seed=seed)
    if recall is not None or (asked is not None and asked.min_recall is not None):
        found = tuple(e if e.result.score is None else e.searched(10 if recall is None else recall) for e in found)
    _tell(found[0].result if len(inputs) == 2 else room.gathered(found), asked, report, json)
    if adapter is not None:
        _complain(f"Adapter: {found[0].adapter().write(adapter)}")


def _gate(file: Path | None, require: str | None, least: float | None) -> Any:
    """The gate that was asked for; None where none was."""
    from zhat import audit as room
    from zhat.audit.gate import equivalence

    if file is not None and (require is not None or least is not None):
        raise BadInput("give either --gate or --require and --min, not both.")
    if file is not None:
        return room.read_gate(file)
    if require is None and least is None:
        return None
    return room.Gate(require=None if require is None else equivalence(require), min=least)


def _tell(result: Any, gate: Any, report: Path | None, json: bool) -> None:
    """Print an audit, write its page, and end with exit code 1 where it fails its gate."""
    from zhat import report as pages
    from zhat.results import AuditResult, to_json

    passed, line = gate(result) if gate is not None else (True, "")
    if json:
        print(to_json(result))
    elif isinstance(result, AuditResult):
        _show_audit(result, Console())
    else:
        _show_audits(result, Console())
    if report is not None:
        _complain(f"Page: {pages.write_audit(result, report)}")
    if line:
        _complain(line)
    if not passed:
        raise typer.Exit(1)


_AT_ONCE = 5  # columns of a matrix that fit into 80 characters


def _show_audits(result: Any, console: Console) -> None:
    """A matrix of verdicts, or one line for each layer."""
    from zhat.results import AuditMatrix, letter

    console.print(f"[bold]{escape(result.sentence)}[/bold]", highlight=False)
    if isinstance(result, AuditMatrix):
        m = len(result.names)
        for first in range(0, m, _AT_ONCE):
            table = Table(box=None, padding=(0, 1))
            table.add_column("from")
            shown = range(first, min(m, first + _AT_ONCE))
            for j in shown:
                table.add_column(f"to {letter(j)}", no_wrap=True)
            for i in range(m):
                table.add_row(letter(i), *("" if i == j else _cell(result[i, j]) for j in shown))
            console.print(table)
        for i, name in enumerate(result.names):
            console.print(f"{letter(i)}  {name}, {result.dims[i]} columns", highlight=False, markup=False)
    else:
        table = Table()
        for name in ("layer", "verdict", "R²", "95% interval"):
            table.add_column(name, justify="left" if name in ("layer", "verdict") else "right")
        for (a, b), audit in zip(result.layers, result.audits, strict=True):
            score = audit.score
            ends = "" if score is None or score.low is None else escape(f"[{score.low:.4f}, {score.high:.4f}]")
            value = "" if score is None else f"{score.value:.4f}"
            table.add_row(escape(a if a == b else f"{a} → {b}"), audit.verdict, value, ends)
        console.print(table)
    console.print(
        f"{result.audits[0].n:,} rows. R² of the class found on held-out rows; of affine maps where the\n"
        "verdict is nonlinear.",
        style="dim",
        highlight=False,
    )
    for note in dict.fromkeys(note for audit in result.audits for note in audit.notes):
        console.print(f"note: {note}", highlight=False, markup=False)


def _cell(audit: Any) -> str:
    word = audit.verdict.replace("d permutation", "d perm.")
    return word if audit.score is None else f"{word}\n{audit.score.value:.4f}"


def _show_audit(result: Any, console: Console) -> None:
    console.print(f"[bold]{escape(result.sentence)}[/bold]", highlight=False)
    shown = [*result.ladder, *result.beyond]
    if shown:
        table = Table()
        for name in ("up to", "score", "95% interval", "chance"):
            table.add_column(name, justify="left" if name == "up to" else "right", no_wrap=True)
        for score in shown:
            here = score.up_to is result.up_to and score.name == "R2"
            table.add_row(
                f"{score.up_to if score.name == 'R2' else score.name}{' *' if here else ''}",
                f"{score.value:.4f}",
                "" if score.low is None else escape(f"[{score.low:.4f}, {score.high:.4f}]"),
                "" if score.chance is None else f"{score.chance:.4f}",
                style="bold" if here else None,
            )
        console.print(table)
        console.print(
            f"R² on {shown[0].n:,} held-out rows of {result.n:,}. Chance: rows paired at random.\n* the verdict.",
            style="dim",
            highlight=False,
        )
    for name, text in _facts(result):
        console.print(f"{name:<12}{text}", highlight=False, markup=False)
    for note in result.notes:
        console.print(f"note: {note}", highlight=False, markup=False)


def _facts(result: Any) -> Iterator[tuple[str, str]]:
    if result.directions is not None:
        yield "directions", f"{result.directions} of {min(result.dim_a, result.dim_b)} agree"
    if result.spectrum:
        condition = "none, it loses directions" if result.condition is None else f"{result.condition:.4g}"
        ends = f"{result.spectrum[0]:.4g} to {result.spectrum[-1]:.4g}"
        yield "map", f"singular values {ends}, condition number {condition}"
    if result.drift_mean is not None:
        yield "drift", f"mean {result.drift_mean:.4g}, covariance {result.drift_covariance:.4g} (relative to A)"
    if result.worst and result.worst[0][1] > 0:
        yield "worst rows", ", ".join(f"{row} ({off:.2g} sd)" for row, off in result.worst[:4])


@app.command()
@_door
def adapt(
    adapter: Annotated[Path, typer.Argument(help="What zhat audit --adapter wrote.")],
    source: Annotated[Path, typer.Argument(metavar="OLD", help="Embeddings to carry over.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The .npy file to write.")],
    key: Annotated[str | None, typer.Option(help="Which array, for files that hold several.")] = None,
    back: Annotated[bool, typer.Option("--back", help="From the new space to the old one.")] = False,
) -> None:
    """Carry embeddings into the other space with the map of an audit, some rows at a time."""
    from zhat import audit as room

    print(room.adapt(room.read_adapter(adapter), source, out, key=key, back=back))


@app.command()
@_door
def decode(
    h: Annotated[
        Path,
        typer.Argument(metavar="H", help="Embeddings: .npy, .npz, .safetensors, .csv, .parquet, a folder."),
    ],
    factors: Annotated[
        Path,
        typer.Argument(metavar="FACTORS", help="One column for each factor: .csv with names, .npy, .npz, .parquet."),
    ],
    type_: Annotated[
        list[str] | None, typer.Option("--type", help="NAME=real, circular or categorical; may be repeated.")
    ] = None,
    period: Annotated[list[str] | None, typer.Option(help="NAME=360, of a circular factor; may be repeated.")] = None,
    require: Annotated[
        list[str] | None, typer.Option(help="NAME=0.9: fail unless its interval lies above; may be repeated.")
    ] = None,
    components: Annotated[
        int | None, typer.Option(help="Read from that many principal components; takes fewer rows.")
    ] = None,
    disentanglement: Annotated[
        bool, typer.Option("--disentanglement", help="DCI, MIG and SAP as well, with their warnings.")
    ] = False,
    split: Annotated[str, typer.Option(help="rows, pieces of neighbouring rows, or auto.")] = "auto",
    key: Annotated[str | None, typer.Option(help="Which array of H, for files that hold several.")] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(help="Join rows by id: a key or column in both files, or twice: a file of ids for each."),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    seed: Annotated[int, typer.Option(help="Of the split, the shuffles and the bootstrap.")] = 0,
) -> None:
    """Say which known FACTORS of the rows can be read from embeddings H by a linear map.

    Each factor is fitted on half of the rows and read on the other half, with an interval, a chance level from shuffled
    rows, and a p-value corrected for the number of factors.
    """
    from zhat import audit as room
    from zhat import report as pages
    from zhat.results import to_json

    if ids is not None and len(ids) > 2:
        raise BadInput(f"--ids is given once or twice, but {len(ids)} came.")
    wanted = _numbered_names("--require", require)
    result = room.decode(
        h,
        factors,
        types=dict(_named("--type", each) for each in type_ or ()),
        periods=_numbered_names("--period", period),
        key=key,
        ids=ids[0] if ids is not None and len(ids) == 1 else ids,
        components=components,
        disentanglement=disentanglement,
        split=split,
        seed=seed,
    )
    failed = []
    for name, least in wanted.items():
        score = result[name]
        low = score.value if score.low is None else score.low
        if low is None or low < least or not score.found:
            is_now = "none was found" if low is None or not score.found else f"is {low:.4f}"
            failed.append(f"{score.measure} of {name} must be at least {least:g}, {is_now}")
    if json:
        print(to_json(result))
    else:
        _show_decoded(result, Console())
    if report is not None:
        _complain(f"Page: {pages.write_decode(result, report)}")
    if wanted:
        _complain(f"gate failed: {'; '.join(failed)}" if failed else f"gate passed: {', '.join(wanted)}")
    if failed:
        raise typer.Exit(1)


def _named(option: str, words: str) -> tuple[str, str]:
    name, equals, value = words.rpartition("=")
    if not equals or not name or not value:
        raise BadInput(f"{option} is given as NAME=VALUE, but {words!r} came.")
    return name, value


def _numbered_names(option: str, given: list[str] | None) -> dict[str, float]:
    found = {}
    for name, value in (_named(option, each) for each in given or ()):
        try:
            found[name] = float(value)
        except ValueError:
            raise BadInput(f"{option} {name}=… takes a number, but {value!r} came.") from None
    return found


def _show_decoded(result: Any, console: Console) -> None:
    console.print(f"[bold]{escape(result.sentence)}[/bold]", highlight=False)
    table = Table()
    table.add_column("factor", overflow="ellipsis", no_wrap=True, max_width=18)
    for name in ("type", "score", "95% interval", "chance", "p"):
        table.add_column(name, justify="left" if name == "type" else "right", no_wrap=True)
    for score in result.scores:
        if score.value is None:
            table.add_row(escape(score.name), score.type, "–", "–", "–", "–", style="dim")
            continue
        table.add_row(
            f"{escape(score.name)}{' *' if score.found else ''}",
            score.type,
            f"{score.value:.3f}",
            "–" if score.low is None else escape(f"[{score.low:.3f}, {score.high:.3f}]"),
            f"{score.chance:.3f}",
            f"{score.p_corrected:.2g}",
            style="bold" if score.found else None,
        )
    console.print(table)
    console.print(
        f"Fitted on {result.n_fit:,} rows, read on {result.n_read:,}: R² (real, circular) or balanced\n"
        "accuracy (categorical). Chance and p: shuffled rows; p is corrected for the\n"
        f"number of factors (Holm). * found: p at most {result.level:g} and interval above chance.",
        style="dim",
        highlight=False,
    )
    if result.disentanglement is not None:
        d = result.disentanglement
        console.print(
            f"DCI         disentanglement {d.disentanglement:.3f}, completeness {d.completeness:.3f}, "
            f"informativeness {d.informativeness:.3f}\n"
            f"MIG         {d.mig:.3f} ({d.bins} bins)\nSAP         {d.sap:.3f}",
            highlight=False,
        )
        for warning in d.warnings:
            console.print(f"warning: {warning}", highlight=False, markup=False)
    for score in result.scores:
        if score.because:
            console.print(f"{score.name}: {score.because}", highlight=False, markup=False)
    for note in result.notes:
        console.print(f"note: {note}", highlight=False, markup=False)


@app.command()
@_door
def check(
    paper: Annotated[
        str | None, typer.Argument(help="A paper's key, with --row: what theory says of that row.")
    ] = None,
    row: Annotated[str | None, typer.Option(help="A row of that paper, for instance R2.1o.")] = None,
    head: Annotated[
        list[Path] | None,
        typer.Option(
            help="The weights of a classifier's last layer, (classes, features), as .npy; two for two models."
        ),
    ] = None,
    features: Annotated[
        list[Path] | None,
        typer.Option(
            help="With two heads: what each is multiplied with, (rows, features), as .npy, in the same order."
        ),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="The class of each training row, whole numbers from 0, as .npy.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Say which theorem applies, which of its conditions hold, and by how much.

    Of a trained classifier's head: classes, dimensions, rank, condition number, whether its rows generate the space
    affinely. Of two heads: the diversity condition of each and the linear map between the models, from heads alone and,
    with the features of the same rows, from features alone. Of a row of a paper: every condition, judged on its world.
    """
    from zhat import papers, theory
    from zhat.results import to_json

    heads, rows = head or [], features or []
    if bool(heads) == (paper is not None) or (paper is None) != (row is None) or (labels is not None and not heads):
        raise BadInput(
            "give --head W.npy (and --labels L.npy), or a paper and --row, for instance: reizinger2024 --row R2.1o."
        )
    if paper is not None and row is not None:
        found = papers.paper(paper)
        chosen = _holding(found.parts, [row])[0].row(row)
        prediction = theory.predict(chosen.process, chosen.objective, chosen.encoder)
        print(to_json(prediction) if json else f"{row}: {chosen.title}\n{prediction}")
        return
    if (len(heads), len(rows)) not in ((1, 0), (2, 0), (2, 2)) or (len(heads) == 2 and labels is not None):
        raise BadInput(
            f"{len(heads)} times --head and {len(rows)} times --features came. Give one head (and --labels), two heads"
            ", or two heads and the features of both models for the same rows."
        )
    checked: Any
    if len(heads) == 2:
        checked = theory.compare_models(
            *(_array(path) for path in heads), *(_array(path, mapped=True) for path in rows)
        )
    else:
        checked = theory.check_head(_array(heads[0]), None if labels is None else _array(labels))
    print(to_json(checked) if json else checked)


def _array(path: Path, *, mapped: bool = False) -> Any:
    """The array in a .npy file, or one that is read from the file as it is used; nothing is unpickled."""
    import numpy as np

    try:
        found = np.load(path, allow_pickle=False, mmap_mode="r" if mapped else None)
    except (ValueError, EOFError) as error:
        raise BadInput(
            f"{path} must hold one array as numpy.save writes it, but it cannot be read ({error})."
        ) from None
    if not isinstance(found, np.ndarray):
        found.close()
        raise BadInput(f"{path} must hold one array, but it is an archive of several. Save one with numpy.save.")
    return found


_ROOMS = {
    "spaces": ("zhat.dgp", ("Real", "Sphere", "Box", "Product")),
    "marginals": ("zhat.dgp", ("Uniform", "Normal", "Laplace", "GeneralizedNormal")),
    "conditionals": ("zhat.dgp", ("VonMisesFisher", "Around")),
    "mixings": ("zhat.dgp", ("InvertibleMLP", "Linear", "Orthogonal", "Embedding")),
    "processes": ("zhat.dgp", ("Pairs", "Clusters", "Sectors")),
    "datasets": (
        "zhat.datasets",
        (
            *("Arrays", "NextRow", "SameLabel", "GivenPairs", "Augmented"),
            *("Corpus", "Windows", "CentreWords", "CIFAR10", "Patches"),
        ),
    ),
    "encoders": ("zhat.encoders", ("mlp", "Pair", "Towers", "ContextSum", "GPT")),
    "objectives": (
        "zhat.objectives",
        (
            *("InfoNCE", "InBatchSoftmax", "CrossEntropy", "InstanceDiscrimination", "Supervised", "Each"),
            *("WordSoftmax", "NegativeSampling", "NextWord"),
        ),
    ),
    "canonical": (
        "zhat.objectives",
        (
            *("Canonical", "AllLabels", "InBatch", "Vocabulary"),
            *("from_arrays", "from_torch", "from_sklearn", "from_huggingface"),
            *("from_log_bilinear", "from_noise_contrastive", "from_metric_learning"),
        ),
    ),
    "metrics": (
        "zhat.metrics",
        (
            *("Recovery", "linear_r2", "mcc", "profile", "singular_values", "distance_from_orthogonal"),
            *(
                "CCA",
                "SVCCA",
                "PWCCA",
                "CKA",
                "Procrustes",
                "similarities",
                "linear_r2_both_ways",
                "consistency",
                "dci",
                "mig",
                "sap",
            ),
        ),
    ),
    "audit": (
        "zhat.audit",
        (
            *("audit", "examine", "audit_all", "examine_all", "audit_models", "embeddings", "adapt", "Adapter", "Gate"),
            "decode",
        ),
    ),
    "estimators": ("zhat", ("IdentifiableEncoder",)),
    "theorems": ("zhat.theory", ()),
    "classes": ("zhat.equivalence", ()),
}


@app.command("list")
@_door
def list_(
    kind: Annotated[
        str | None, typer.Argument(help="One kind only, for instance metrics; or the key of a paper.")
    ] = None,
    device: Annotated[str, typer.Option(help="For a paper: the machine whose time is measured.")] = "auto",
) -> None:
    """Show what there is: spaces, distributions, objectives, metrics, theorems, classes of maps, papers.

    For a paper: its tables and figures, published scores, and how long each budget takes here, measured on a few steps.
    """
    from zhat import papers

    console = Console()
    if kind in papers.names():
        _list_paper(papers.paper(kind), device, console)
        return
    if kind is not None and kind not in (*_ROOMS, "papers"):
        raise UnknownName("kind", kind, (*_ROOMS, "papers", *papers.names()))
    if kind in (None, "papers"):
        shown = Table(title="papers (zhat reproduce)", title_justify="left", show_header=False, box=None)
        for name in papers.names():
            shown.add_row(f"[bold]{name}[/bold]", papers.paper(name).title)
        console.print(shown, highlight=False)
        console.print()
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


def _list_paper(paper: Any, device: str, console: Console) -> None:
    import torch

    from zhat.experiment import Family

    where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    console.print(f"[bold]{paper.key}[/bold]: {paper.title}", highlight=False)
    measured: dict[Any, float | None] = {}
    for part in paper.parts:
        if isinstance(part, Family):
            _list_family(part, console)
            continue
        times: dict[str, dict[str, float | None]] = {}
        needed = part.needed(part.rows)
        with console.status(f"measuring a few steps of {part.label} on {where}"):
            for row in needed:
                for budget in row.budgets:
                    key = (row.encoder, row.objective, budget.batch, budget.precision)
                    if key not in measured:
                        measured[key] = _step_time(row, budget, where)
                    step = measured[key]
                    times.setdefault(row.name, {})[budget.name] = step and step * budget.steps * budget.seeds
        budgets = [budget.name for budget in part.rows[0].budgets]
        table = Table(title=f"{part.label}, {part.score} in percent", title_justify="left")
        table.add_column("row", no_wrap=True)
        table.add_column("setting")
        table.add_column("published", no_wrap=True, justify="right")
        for name in budgets:
            table.add_column(name, no_wrap=True, justify="right")
        for row in needed:
            spent = [_told(times[row.name].get(name)) for name in budgets]
            table.add_row(row.name, escape(row.title), str(row.published or "–"), *spent)
        every = {name: [each.get(name) for each in times.values()] for name in budgets}
        total = ["–" if None in found else _told(sum(t for t in found if t)) for found in every.values()]
        table.add_section()
        table.add_row("", "all", "", *total)
        console.print(table, highlight=False)
    timed = [part for part in paper.parts if not isinstance(part, Family)]
    if not timed:
        return
    seeds = ", ".join(f"{b.name} {b.seeds}" for b in timed[0].rows[0].budgets)
    console.print(
        f"Training time on {where}, one seed's measured step times the seeds of the budget ({seeds});\n"
        "seeds that share a GPU take less. – : recorded data that is not here, or a network too large to try on a CPU.",
        style="dim",
        highlight=False,
    )


def _list_family(part: Any, console: Console) -> None:
    """The models of a figure and how many steps each is trained; they read recorded data, which may not be here."""
    budgets = [budget.name for budget in part.rows[0].budgets]
    table = Table(title=f"{part.label}, {part.score}", title_justify="left")
    for name in ("row", "setting", *budgets):
        table.add_column(name, no_wrap=name in ("row", *budgets), justify="right" if name in budgets else "left")
    for row in part.rows:
        told = [f"{b.seeds} x {b.steps:,} steps" for b in row.budgets]
        table.add_row(row.name, escape(row.title), *told)
    console.print(table, highlight=False)


def _step_time(row: Any, budget: Any, where: str) -> float | None:
    """Seconds of one step; None where it cannot be measured here."""
    import torch

    from zhat.experiment import seconds_per_step

    with torch.device("meta"):  # shapes without memory
        large = sum(p.numel() for p in row.encoder().parameters()) > 2**26
    if large and where == "cpu":
        return None
    try:
        return seconds_per_step(row, budget, seeds=1, device=where)
    except BadInput:
        return None


def _told(seconds: float | None) -> str:
    from zhat.progress import clock

    return "–" if seconds is None else clock(seconds)


def main() -> None:
    """The entry point of the `zhat` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ± or boxes shows question marks, not a traceback
    app()
