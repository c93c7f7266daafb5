"""zhat audit and zhat adapt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from zhat._files import printable
from zhat.cli.completing import a_class, one_of
from zhat.cli.door import Console, app, complain, door
from zhat.cli.executors import executor_of
from zhat.errors import BadInput


@app.command()
@door
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
        typer.Option(help="Instead of inputs, twice or more: a Hugging Face folder, or hf:ORG/NAME of its cache."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="What the models are shown: .npy of tokens or images, .txt of texts.")
    ] = None,
    every_layer: Annotated[
        bool, typer.Option("--every-layer", help="Each layer of one model with each of another.")
    ] = False,
    key: Annotated[str | None, typer.Option(help="Which array, for files that hold several.")] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(help="Join rows by id: a key or column in all files, or a file of ids for each input."),
    ] = None,
    gaps: Annotated[
        str,
        typer.Option(
            help="Rows with an empty cell in a table: refuse them, or drop them from all inputs.",
            autocompletion=one_of("refuse", "drop"),
        ),
    ] = "refuse",
    require: Annotated[
        str | None,
        typer.Option(
            help="Fail unless this class, or a tighter one, explains 95% of the variance, or --min.",
            autocompletion=a_class,
        ),
    ] = None,
    min_: Annotated[float | None, typer.Option("--min", help="Fail if the held-out R2 is below.")] = None,
    gate: Annotated[
        Path | None, typer.Option(help="A TOML file of conditions, instead of --require and --min.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Fail if a score is worse than in this earlier --json, beyond both intervals.")
    ] = None,
    recall: Annotated[
        int | None, typer.Option(help="Report recall@K of a search among old rows behind the map.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="What that search orders rows by: cosine, dot or distance (the default).",
            autocompletion=one_of("cosine", "dot", "distance"),
        ),
    ] = None,
    adapter: Annotated[Path | None, typer.Option(help="Keep the map from A to B as this .safetensors file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    executor: Annotated[
        str | None,
        typer.Option(help="Where the pass over the rows runs: processes:N, or dask://HOST:PORT (needs zhat[dask])."),
    ] = None,
    device: Annotated[str, typer.Option(help="Where its sums are taken: cpu or cuda.")] = "cpu",
    seed: Annotated[int, typer.Option(help="Of the sample and the chance level.")] = 0,
) -> None:
    """Say up to which class of maps embeddings B are embeddings A.

    Identical, permuted, rotated, linear, affine, only nonlinearly related, unrelated; or that these rows cannot tell,
    and how many would. Each class is fitted on some rows and read on others, with an interval and a chance level.
    More than two inputs give a matrix: every one from every other one; a gate then asks all of them. Models with
    --data are compared layer by layer, every one with every other one.
    """
    from zhat import audit as room

    inputs = inputs or []
    if model or data is not None:
        if (
            model is None
            or inputs
            or len(model) < 2
            or data is None
            or any((key, ids, recall is not None, metric, adapter, executor, device != "cpu"))
        ):
            raise BadInput(
                "models are compared with: zhat audit --model A --model B [--model C …] --data FILE; --require, --min, "
                "--gate, --baseline, --report, --json, --seed may follow, but no inputs, --key, --ids, --recall, "
                "--metric, --adapter, --executor or --device."
            )
        asked = _gate(gate, require, min_, baseline)
        if asked is not None and asked.min_recall is not None:
            raise BadInput("min_recall is asked of embeddings, not of the layers of models.")
        found_models: Any
        if len(model) == 2:
            found_models = room.audit_models(model[0], model[1], data, every=every_layer, seed=seed)
        else:
            found_models = room.audit_all_models(model, data, every=every_layer, seed=seed)
        if not _tell(found_models, asked, report, json):
            raise typer.Exit(1)
        return
    if len(inputs) < 2:
        raise BadInput(f"an audit compares at least two inputs, but {len(inputs)} came: zhat audit A B.")
    if adapter is not None and len(inputs) > 2:
        raise BadInput(f"an adapter goes from one input to another, but {len(inputs)} came. Give two.")
    asked = _gate(gate, require, min_, baseline)
    if ids is not None and len(ids) not in (1, len(inputs)):
        raise BadInput(f"--ids is given once, or once for each of {len(inputs)} inputs, but {len(ids)} came.")
    by = [None] * len(inputs) if ids is None else ids * len(inputs) if len(ids) == 1 else ids
    read = [room.embeddings(path, key=key, ids=own, gaps=gaps) for path, own in zip(inputs, by, strict=True)]
    with executor_of(executor, after="Give the same command again, with fewer processes.") as pool:
        if len(inputs) == 2:
            found: tuple[room.Examined, ...] = (room.examine(*read, seed=seed, executor=pool, device=device),)
        else:
            found = room.examine_all(read, seed=seed, executor=pool, device=device)
    if recall is not None or metric is not None or (asked is not None and asked.min_recall is not None):
        k, by_metric = 10 if recall is None else recall, "distance" if metric is None else metric
        found = tuple(e if e.result.score is None else e.searched(k, metric=by_metric) for e in found)
    passed = _tell(found[0].result if len(inputs) == 2 else room.gathered(found), asked, report, json)
    if adapter is not None and not passed and found[0].result.score is None:
        complain("Adapter: none, because there is no map to keep")
    elif adapter is not None:
        for path, what, one in _maps(found[0], adapter):
            kept = one.adapter()
            said = ", mapped rows are brought to unit length" if kept.normalise else ""
            complain(f"Adapter{what}: {kept.write(path)}{said}{'' if passed else ', written although the gate failed'}")
    if not passed:
        raise typer.Exit(1)


def _maps(found: Any, path: Path) -> Iterator[tuple[Path, str, Any]]:
    """The file of each map: one, or one for each of two kinds of rows that have one."""
    if not found.parts:
        yield path, "", found
        return
    for one, what, end in zip(found.parts, ("larger", "smaller"), ("", "-rest"), strict=True):
        if one.result.score is not None:
            yield path.with_stem(path.stem + end), f" of the {what} part", one


def _gate(file: Path | None, require: str | None, least: float | None, baseline: Path | None) -> Any:
    """The gate that was asked for; None where none was."""
    from dataclasses import replace

    from zhat import audit as room
    from zhat.audit.gate import equivalence

    if file is not None and (require is not None or least is not None):
        raise BadInput("give either --gate or --require and --min, not both.")
    before = None if baseline is None else room.read_baseline(baseline)
    if file is not None:
        asked = room.read_gate(file)
        return asked if before is None else replace(asked, baseline=before)
    if require is None and least is None and before is None:
        return None
    return room.Gate(require=None if require is None else equivalence(require), min=least, baseline=before)


def _tell(result: Any, gate: Any, report: Path | None, json: bool) -> bool:
    """Print an audit and write its page; whether it passes its gate."""
    from dataclasses import replace

    from zhat import report as pages
    from zhat.results import AuditResult, to_json

    if gate is not None:
        result = replace(result, gate=gate.judge(result))
    if json:
        print(to_json(result))
    elif isinstance(result, AuditResult):
        _show_audit(result, Console())
    else:
        _show_audits(result, Console())
    if report is not None:
        complain(f"Page: {pages.write_audit(result, report)}")
    if result.gate is not None:
        complain(result.gate.line)
    return result.gate is None or result.gate.passed


_AT_ONCE = 5  # columns of a matrix that fit into 80 characters


def _show_audits(result: Any, console: Console) -> None:
    """A matrix of verdicts, or one line for each layer of each pair of models."""
    from zhat.results import AuditMatrix, ModelMatrix, letter

    if isinstance(result, ModelMatrix):
        for pair in result.pairs:
            _show_audits(pair, console)
        console.print(f"[bold]{escape(result.sentence)}[/bold]", highlight=False)
        return
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
        for place in result.best:
            (a, b), audit = result.layers[place], result.audits[place]
            score = audit.score
            ends = "" if score is None or score.low is None else escape(f"[{score.low:.4f}, {score.high:.4f}]")
            value = "" if score is None else f"{score.value:.4f}"
            table.add_row(escape(a if a == b else f"{a} → {b}"), audit.verdict, value, ends)
        console.print(table)
    if not isinstance(result, AuditMatrix) and len(result.best) < len(result.audits):
        console.print(f"Of {len(result.audits)} pairs, the best one for each layer of {result.a}.", style="dim")
    console.print(
        f"{result.audits[0].n:,} rows. R² of the class found on held-out rows; of affine maps where the\n"
        "verdict is nonlinear.",
        style="dim",
        highlight=False,
    )
    for note in dict.fromkeys(note for audit in result.audits for note in audit.notes):
        console.print(f"note: {note}", highlight=False, markup=False)


def _cell(audit: Any) -> str:
    word = audit.verdict.replace("d permutation", "d perm.").replace("ly ", "ly\n")  # within 13 characters
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
            f"R² on {shown[0].n:,} held-out rows of {result.n:,}. Chance: rows paired at random."
            + ("" if result.up_to is None else "\n* the verdict."),
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
    if result.mixed is not None:
        rows = ", ".join(result.mixed.rows[:8])
        more = f" and {len(result.mixed.rows) - 8:,} more" if len(result.mixed.rows) > 8 else ""
        yield "other rows", f"of {result.mixed.n:,} sampled: {rows}{more}"
    if result.worst and result.worst[0][1] > 0:
        yield "worst rows", ", ".join(f"{row} ({off:.2g} sd)" for row, off in result.worst[:4])


@app.command()
@door
def adapt(
    adapter: Annotated[Path, typer.Argument(help="What zhat audit --adapter wrote.")],
    source: Annotated[Path, typer.Argument(metavar="OLD", help="Embeddings to carry over.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The .npy file to write.")],
    key: Annotated[str | None, typer.Option(help="Which array, for files that hold several.")] = None,
    back: Annotated[bool, typer.Option("--back", help="From the new space to the old one.")] = False,
) -> None:
    """Carry embeddings into the other space with the map of an audit, some rows at a time."""
    from zhat import audit as room

    print(printable(str(room.adapt(room.read_adapter(adapter), source, out, key=key, back=back))))
