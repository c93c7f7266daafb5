"""zhat decode."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from zhat.cli.completing import one_of
from zhat.cli.door import Console, app, complain, door
from zhat.errors import BadInput


@app.command()
@door
def decode(
    h: Annotated[
        Path,
        typer.Argument(metavar="H", help="Embeddings: .npy, .npz, .safetensors, .csv, .parquet, .h5, a folder."),
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
    split: Annotated[
        str,
        typer.Option(
            help="rows, pieces of neighbouring rows, or auto.", autocompletion=one_of("rows", "pieces", "auto")
        ),
    ] = "auto",
    key: Annotated[str | None, typer.Option(help="Which array of H, for files that hold several.")] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(help="Join rows by id: a key or column in both files, or twice: a file of ids for each."),
    ] = None,
    gaps: Annotated[
        str,
        typer.Option(
            help="Rows with an empty cell in a table: refuse them, or drop them from both files.",
            autocompletion=one_of("refuse", "drop"),
        ),
    ] = "refuse",
    report: Annotated[Path | None, typer.Option(help="Write an HTML page.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    seed: Annotated[int, typer.Option(help="Of the split and the shuffles.")] = 0,
) -> None:
    """Say which known FACTORS of the rows can be read from embeddings H by a linear map.

    Each factor is fitted on half of the rows and read on the other half, with an interval, a chance level from shuffled
    rows, and a p-value corrected for the number of factors.
    """
    from zhat import decoding
    from zhat import report as pages
    from zhat.results import to_json

    if ids is not None and len(ids) > 2:
        raise BadInput(f"--ids is given once or twice, but {len(ids)} came.")
    wanted = _numbered_names("--require", require)
    result = decoding.decode(
        h,
        factors,
        types=dict(_named("--type", each) for each in type_ or ()),
        periods=_numbered_names("--period", period),
        key=key,
        ids=ids[0] if ids is not None and len(ids) == 1 else ids,
        components=components,
        disentanglement=disentanglement,
        split=split,
        gaps=gaps,
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
        complain(f"Page: {pages.write_decode(result, report)}")
    if wanted:
        complain(f"gate failed: {'; '.join(failed)}" if failed else f"gate passed: {', '.join(wanted)}")
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
