"""zhat list."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from zhat.cli.door import app, door
from zhat.errors import BadInput, UnknownName

ROOMS = {
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
            *("from_log_bilinear", "from_noise_contrastive", "from_metric_learning", "from_contrastive"),
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
    if kind in papers.names():
        _list_paper(papers.paper(kind), device, console)
        return
    if kind is not None and kind not in (*ROOMS, "papers"):
        raise UnknownName("kind", kind, (*ROOMS, "papers", *papers.names()))
    if kind in (None, "papers"):
        shown = Table(title="papers (zhat reproduce)", title_justify="left", show_header=False, box=None)
        for name in papers.names():
            shown.add_row(f"[bold]{name}[/bold]", papers.paper(name).title)
        console.print(shown, highlight=False)
        console.print()
    for name, (module, members) in ROOMS.items():
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
