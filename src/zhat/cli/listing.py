"""zhat list."""

from __future__ import annotations

import ast
import math
import re
from importlib import import_module
from inspect import getsource, isclass, isfunction
from itertools import pairwise
from typing import Annotated, Any
from unicodedata import normalize

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from zhat.cli.completing import A_DEVICE, a_kind_or_a_paper
from zhat.cli.door import Console, app, beside, door
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
    "training": ("zhat.training", ()),
    "estimators": ("zhat", ("estimator",)),
    "audit": ("zhat.audit", ()),
    "decoding": ("zhat.decoding", ()),
    "theory": ("zhat.theory", ()),
    "theorems": ("zhat.theory", ()),
    "classes": ("zhat.equivalence", ()),
    "settings": ("zhat.experiment", ()),
    "pages": ("zhat.report", ()),
    "checks": ("zhat.testing", ()),
}


@app.command("list")
@door
def list_(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="One kind only, for instance metrics; or the key of a paper.", autocompletion=a_kind_or_a_paper
        ),
    ] = None,
    device: Annotated[
        str, typer.Option(help="For a paper: the machine whose time is measured.", autocompletion=A_DEVICE)
    ] = "auto",
) -> None:
    """Show what there is: spaces, distributions, objectives, metrics, theorems, papers.

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
            found.append((name, legible(_said(member, name).strip().splitlines()[0])))
    return found


def _said(member: Any, name: str) -> str:
    """The docstring of a class or a function; of a value, the string behind it in its module."""
    if isclass(member) or isfunction(member):
        return member.__doc__ or ""
    body = ast.parse(getsource(import_module(member.__module__))).body
    for line, after in pairwise(body):
        if isinstance(line, ast.Assign) and name in {ast.unparse(target) for target in line.targets}:
            return (
                str(after.value.value) if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            )
    return member.__doc__ or ""


_SIGNS = {"cdot": "·", "sum": "Σ", "odot": "⊙", "dots": "…", "mid": "|", "le": "≤", "propto": "∝", "in": "∈"}
_SIGNS |= {
    "lVert": "‖",
    "rVert": "‖",
    "lvert": "|",
    "rvert": "|",
    "top": "ᵀ",
    "times": "×",
    "circ": "∘",
    "mapsto": "↦",
    "qquad": " ",
}
_SIGNS |= dict(zip(("theta", "lambda", "mu", "sigma", "kappa", "phi", "tau", "epsilon"), "θλμσκφτε", strict=True))
_MARKS = {"hat": "\N{COMBINING CIRCUMFLEX ACCENT}", "bar": "\N{COMBINING MACRON}", "tilde": "\N{COMBINING TILDE}"}


def legible(text: str) -> str:
    r"""A sentence whose formulas are written in TeX, as one reads it in a terminal.

    Example:
        >>> legible(r"the map that minimises $\sum_i \lVert z_i - \hat z_i \rVert^2$")
        'the map that minimises Σ_i ‖z_i - ẑ_i‖^2'
    """

    def formula(found: re.Match[str]) -> str:
        said = re.sub(r"\\(?:text|mathrm|mathbb|operatorname)\{([^{}]*)\}", r"\1", found[1])
        said = re.sub(r"\\frac\s*(\w)\s*\{([^{}]*)\}", r"\1/(\2)", said)
        said = re.sub(r"\\(hat|bar|tilde)\s*\{?(\w)\}?", lambda mark: mark[2] + _MARKS[mark[1]], said)
        said = re.sub(r"\\(lVert|lvert)\s*", lambda sign: _SIGNS[sign[1]], said)
        said = re.sub(r"\s*\\(rVert|rvert)", lambda sign: _SIGNS[sign[1]], said)
        said = re.sub(r"\\([A-Za-z]+)", lambda sign: _SIGNS.get(sign[1], sign[1]), said)
        said = re.sub(r"\\[,;! ]", " ", said)
        said = re.sub(r"(?<![_^])\{([^{}]*)\}", r"\1", said)
        return re.sub(r"[_^]\{([^{} ])\}", lambda index: index[0][0] + index[1], said).replace("  ", " ")

    return normalize("NFC", re.sub(r"\$([^$]*)\$", formula, text))


def _print(title: str, lines: list[tuple[str, str]], console: Console) -> None:
    text = Text(f"{title}\n{beside(lines, console.width, widest=36)}\n")
    text.highlight_regex(r"(?m)^  \S.*?(?=  |$)", "bold")
    text.stylize("italic", 0, len(title))
    console.print(text)


def _list_paper(paper: Any, device: str, console: Console) -> None:
    import torch

    from zhat import _checks
    from zhat.experiment.forecast import Forecast

    where = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else str(_checks.device(device))
    console.print(f"[bold]{paper.key}[/bold]: {paper.title}", highlight=False)
    forecast = Forecast(where)
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
                    seconds = None if part.measure is None else forecast.seconds(row, budget)
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


def _told(seconds: float | None) -> str:
    from zhat.progress import clock

    return "–" if seconds is None or not math.isfinite(seconds) else clock(seconds)
