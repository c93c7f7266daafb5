"""zhat runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from zhat._files import printable
from zhat.cli.completing import a_field
from zhat.cli.door import Console, app, complain, door
from zhat.errors import BadInput

SHOWN = ("paper", "part", "row", "budget", "seed", "score", "held_out", "date", "commit")
NUMBERS = ("score", "held_out", "seconds")


@app.command()
@door
def runs(
    folder: Annotated[Path, typer.Argument(help="A folder that holds finished runs, however deep.")],
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="Only runs that meet it: 'score>=90', 'row=T2.*', seed=0, 'date>=2026-11-01'; may be repeated.",
            autocompletion=a_field,
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(metavar="FIELD", help="Sort by it; -FIELD from the largest down.", autocompletion=a_field),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="FIELDS",
            help="One line for all runs that are alike in these: row, or part,row; mean ± standard deviation.",
            autocompletion=a_field,
        ),
    ] = None,
    show: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="One more column: seconds, device, a class of maps such as orthogonal, a reading; may be repeated.",
            autocompletion=a_field,
        ),
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show what differs between the settings of these runs.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text, with all fields.")] = False,
) -> None:
    """List finished runs, filter them, and compare them.

    Scores are in percent: the score by the protocol of the table, and the same score on held-out rows. Columns that say
    the same of all runs stand above the table. A damaged run is named, and the exit code is 1.
    """
    from zhat.experiment.finished import finished, known, ordered, together
    from zhat.experiment.finished import where as that_meet

    every, damaged = finished(folder)
    if not every and not damaged:
        raise BadInput(f"{folder} holds no finished run. A run is a folder named seed-… with a run.json.")
    found = that_meet(every, where or ())
    more = tuple(known(every, name) for name in show or ())
    groups: Any = ()
    if by is not None:
        names = tuple(name.strip() for name in by.split(","))
        groups = together(found, [known(every, name) for name in names], (*NUMBERS, *more))
        groups = _sorted_groups(groups, sort)
    elif sort is not None:
        found = ordered(found, sort) if found else found
    if json:
        import json as text

        print(
            text.dumps([asdict(each) for each in (groups if by is not None else found)], indent=1, ensure_ascii=False)
        )
    else:
        console = Console()
        if by is not None:
            _show_groups(groups, more, console)
        else:
            _show_runs(found, more, console)
        measures = list(dict.fromkeys(run.measure for run in found if run.measure))
        if measures:
            _print_filled(f"Score: {' or '.join(measures)}, in percent.", console)
        if diff:
            _show_differences(found)
    for sentence in damaged:
        complain(f"zhat: {sentence}")
    if damaged:
        raise typer.Exit(1)


def _sorted_groups(groups: Sequence[Any], sort: str | None) -> Any:
    """Groups in the order of a field they are alike in, or of a mean."""
    if sort is None or not groups:
        return groups
    name = sort.removeprefix("-")
    if name not in groups[0].alike and not any(name in group.means for group in groups):
        raise BadInput(f"--sort {sort}: with --by, sort by one of {', '.join((*groups[0].alike, *groups[0].means))}.")
    have = [group for group in groups if {**group.alike, **group.means}.get(name) is not None]
    have.sort(key=lambda group: {**group.alike, **group.means}[name], reverse=sort.startswith("-"))
    return (*have, *(group for group in groups if group not in have))


def _show_runs(found: Sequence[Any], more: Sequence[str], console: Console) -> None:
    columns = {name: [_cell(run[name], name) for run in found] for name in dict.fromkeys((*SHOWN, *more))}
    said = [
        f"{_title(name)} {cells[0]}"
        for name, cells in columns.items()
        if len(found) > 1 and len(set(cells)) == 1 and cells[0] and name not in more
    ]
    counted = f"{len(found)} run{'s' * (len(found) != 1)}"
    _print_filled(": ".join(filter(None, (counted, ", ".join(said)))), console)
    kept = {
        n: cells for n, cells in columns.items() if any(cells) and (len(found) == 1 or len(set(cells)) > 1 or n in more)
    }
    _print_table(kept, console)


def _show_groups(groups: Sequence[Any], more: Sequence[str], console: Console) -> None:
    columns = {
        name: [_cell(group.alike[name], name) for group in groups] for name in (groups[0].alike if groups else ())
    }
    columns["runs"] = [str(group.runs) for group in groups]
    for name in dict.fromkeys((*NUMBERS, *more)):
        columns[name] = [_spread(group.means.get(name), group.stds.get(name), name) for group in groups]
    _print_table({name: cells for name, cells in columns.items() if any(cells)}, console)


def _print_table(columns: dict[str, list[str]], console: Console) -> None:
    if not columns:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    words = ("paper", "part", "row", "budget", "setting", "date", "commit", "device", "folder", "measure", "zhat")
    for name in columns:
        left = name in words
        table.add_column(_title(name), justify="left" if left else "right", no_wrap=not left, overflow="fold")
    for line in zip(*columns.values(), strict=True):
        table.add_row(*map(escape, line))
    console.print(table, highlight=False)


def _print_filled(text: str, console: Console) -> None:
    console.print(escape(text), highlight=False, style="dim")


def _title(name: str) -> str:
    return name.replace("_", " ")


def _cell(value: Any, name: str) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.1f}" if name == "seconds" else f"{value:.2f}"
    text = str(value)
    return text[:10] if name == "date" else text[:8] if name == "commit" else text


def _spread(mean: float | None, std: float | None, name: str) -> str:
    if mean is None:
        return ""
    digits = 1 if name == "seconds" else 2
    return f"{mean:.{digits}f}" + (f" ± {std:.{digits}f}" if std else "")


def _show_differences(found: Sequence[Any]) -> None:
    """What differs, setting by setting, as it is written."""
    from zhat.experiment.finished import differences

    differing = differences(found)
    if not differing:
        print("These runs have the same settings.")
    for key, values in differing.items():
        print(f"\n{key}")
        for value, rows in values.items():
            named = ", ".join(rows[:6]) + (f" and {len(rows) - 6} more" if len(rows) > 6 else "")
            print(printable(f"  {value}  ({named})"))
