"""zhat list."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from zhat.cli.door import Console, app, door
from zhat.errors import BadInput, UnknownName

KINDS = {  # a kind is what a room exports from some of its modules; all of them where none is named
    "spaces": ("zhat.dgp", ("spaces",)),
    "marginals": ("zhat.dgp", ("marginals",)),
    "conditionals": ("zhat.dgp", ("conditionals",)),
    "mixings": ("zhat.dgp", ("mixing",)),
    "violations": ("zhat.dgp", ("violating",)),
    "processes": ("zhat.dgp", ("pairs", "clusters", "sectors", "stored", "augmenting")),
    "datasets": ("zhat.datasets", ()),
    "scenes": ("zhat.scenes", ("objects", "periodic", "room", "room_grid", "sprites", "sprite_grid")),
    "encoders": ("zhat.encoders", ()),
    "objectives": ("zhat.objectives", ()),
    "metrics": ("zhat.metrics", ()),
    "audit": ("zhat.audit", ()),
    "theorems": ("zhat.theory", ()),
    "classes": ("zhat.equivalence", ()),
}


@app.command("list")
@door
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
    if device != "auto" and kind not in papers.names():
        raise BadInput("--device says where the time of a paper's rows is measured. Name a paper.")
    if kind in papers.names():
        _list_paper(papers.paper(kind), device, console)
        return
    if kind is not None and kind not in (*KINDS, "papers"):
        raise UnknownName("kind", kind, (*KINDS, "papers", *papers.names()))
    if kind in (None, "papers"):
        _print("papers (zhat reproduce)", [(name, papers.paper(name).title) for name in papers.names()], console)
    for name, (module, _) in KINDS.items():
        if kind in (None, name):
            _print(f"{name} ({module})", _members(name), console)


def _members(kind: str) -> list[tuple[str, str]]:
    """What there is of a kind, each with the first sentence about it."""
    from zhat.equivalence import Equivalence
    from zhat.theory import THEOREMS

    if kind == "classes":
        return [(up_to.name, up_to.meaning) for up_to in Equivalence]
    if kind == "theorems":
        return [(f"{theorem.cite}, {theorem.name}", f"up to {theorem.conclusion}") for theorem in THEOREMS]
    package, modules = KINDS[kind]
    room = import_module(package)
    found = []
    for name in room.__all__:
        member = getattr(room, name)
        home = getattr(member, "__module__", "")
        named = not modules or home.rpartition(".")[2] in modules
        if callable(member) and home.startswith("zhat.") and named and not getattr(member, "_is_protocol", False):
            found.append((name, (member.__doc__ or "").strip().splitlines()[0]))
    return found


def _print(title: str, lines: list[tuple[str, str]], console: Console) -> None:
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, said in lines:
        table.add_row(name, escape(said))
    console.print(table, highlight=False)
    console.print()


def _list_paper(paper: Any, device: str, console: Console) -> None:
    import torch

    from zhat import _checks

    where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else str(_checks.device(device))
    console.print(f"[bold]{paper.key}[/bold]: {paper.title}", highlight=False)
    measured: dict[Any, float | None] = {}
    for part in paper.parts:
        needed, budgets = part.needed(part.rows), [budget.name for budget in part.rows[0].budgets]
        table = Table(title=f"{part.label}, {part.score}", title_justify="left")
        for name in ("row", "setting", "published", *budgets):
            right = name not in ("row", "setting")
            table.add_column(name, no_wrap=name != "setting", justify="right" if right else "left")
        total: dict[str, list[float | None]] = {name: [] for name in budgets}
        with console.status(f"measuring a few steps of {part.label} on {where}"):
            for row in needed:
                spent = {}
                for budget in row.budgets:
                    seconds = None if part.measure is None else _seconds(row, budget, where, measured)
                    total[budget.name].append(seconds)
                    steps = f"{budget.seeds} x {budget.recipe.steps:,} steps"
                    spent[budget.name] = steps if part.measure is None else _told(seconds)
                shown = (spent.get(name, "–") for name in budgets)
                table.add_row(row.name, escape(row.title), str(row.published or "–"), *shown)
        if part.measure is not None:
            table.add_section()
            sums = (None if None in found else sum(t or 0.0 for t in found) for found in total.values())
            table.add_row("", "all", "", *(_told(seconds) for seconds in sums))
        console.print(table, highlight=False)
    seeds = ", ".join(f"{b.name} {b.seeds}" for b in paper.parts[0].rows[0].budgets)
    console.print(
        f"Training time on {where}, one seed's measured step times the seeds of the budget ({seeds});\n"
        "seeds that share a GPU take less. – : recorded data that is not here, or a step too dear for a CPU.",
        style="dim",
        highlight=False,
    )


def _seconds(row: Any, budget: Any, where: str, measured: dict[Any, float | None]) -> float | None:
    """Training time of a row; what a step costs is measured once for equal networks, losses and recipes."""
    from zhat.training import Constant

    key = (row.encoder, row.objective, replace(budget.recipe, steps=1, schedule=Constant(), sharpness=None))
    if key not in measured:
        measured[key] = _step_time(row, budget, where)
    step = measured[key]
    return None if step is None else float(step * budget.recipe.steps * budget.seeds)


def _step_time(row: Any, budget: Any, where: str) -> float | None:
    """Seconds of one step; None where it cannot be measured here."""
    from zhat.experiment import seconds_per_step
    from zhat.experiment.running import parameters

    size, batch = parameters(row), budget.recipe.batch
    dear = getattr(row.process, "rows_at_once", None) or batch
    if where == "cpu" and (size > 2**26 or size * batch > 2**34 or batch > dear):
        return None
    try:
        return seconds_per_step(row, budget, seeds=1, device=where)
    except BadInput:
        return None


def _told(seconds: float | None) -> str:
    from zhat.progress import clock

    return "–" if seconds is None else clock(seconds)
