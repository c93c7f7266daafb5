"""The papers: their tables and figures as data. Each module holds one `PAPER`; adding a paper adds one file.

A paper of many figures may keep some of them in a module of its own, whose name begins with an underscore.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from zhat.errors import UnknownName
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
