"""The papers: their tables and figures as data. Each module holds one `PAPER`; adding a paper adds one file.

A paper of many figures may keep some of them in a module of its own, whose name begins with an underscore.
`names.json` repeats how tables, rows and budgets are called, because a shell that completes a word cannot wait for
torch; `python -m zhat.papers` writes it.
"""

from __future__ import annotations

import json
import pkgutil
from importlib import import_module, resources
from typing import TYPE_CHECKING

from zhat.errors import UnknownName

if TYPE_CHECKING:
    from zhat.experiment import Paper

__all__ = ["names", "paper"]


def names() -> tuple[str, ...]:
    """The keys of the papers that can be reproduced."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name[0] != "_"))


def paper(name: str) -> Paper:
    """The paper of that key."""
    if name not in names():
        raise UnknownName("paper", name, names())
    found: Paper = import_module(f"zhat.papers.{name}").PAPER
    return found


def words(name: str) -> dict[str, tuple[str, ...]]:
    """What can be asked of a paper, without loading it: its tables, figures, rows and budgets; empty for no paper."""
    known = json.loads(resources.files("zhat.papers").joinpath("names.json").read_text(encoding="utf-8"))
    return {kind: tuple(found) for kind, found in known.get(name, {}).items()}


def gathered(found: Paper) -> dict[str, list[str]]:
    """What `names.json` says of a paper."""
    rows = [row for part in found.parts for row in part.rows]
    return {
        "table": [part.number for part in found.parts if part.label.startswith("Table")],
        "figure": [part.number for part in found.parts if part.label.startswith("Figure")],
        "row": [row.name for row in rows],
        "budget": list(dict.fromkeys(budget.name for row in rows for budget in row.budgets)),
    }
