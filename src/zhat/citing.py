"""How to cite what a run used: BibTeX entries by key, from `references.bib` beside this file."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from zhat.errors import UnknownName


@cache
def _entries() -> dict[str, str]:
    text = resources.files("zhat").joinpath("references.bib").read_text(encoding="utf-8")
    entries = (entry.strip() for entry in re.split(r"\n(?=@)", text) if entry.strip())
    return {re.match(r"@\w+\{([^,]+),", entry).group(1): entry for entry in entries}  # type: ignore[union-attr]


def keys() -> tuple[str, ...]:
    """Every key of `references.bib`."""
    return tuple(_entries())


def cite(*wanted: str) -> str:
    """The BibTeX entries of the given keys, zhat's own first.

    Example:
        >>> print(cite("zimmermann2021").count("@"))
        2
    """
    unknown = [key for key in wanted if key not in _entries()]
    if unknown:
        raise UnknownName("reference", unknown[0], keys())
    return "\n\n".join(_entries()[key] for key in dict.fromkeys(("zhat", *wanted)))
