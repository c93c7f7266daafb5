"""The page of a decoding: which factors were found first, then what that rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup

from zhat._files import write_whole
from zhat.report import figures
from zhat.report.html import fill
from zhat.results import DecodeResult


def write_decode(result: DecodeResult, path: Path | str) -> Path:
    """Write one self-contained HTML page about which factors a representation holds.

    Args:
        result: of `zhat.decode`.
        path: the file; it is replaced as a whole.
    """
    return write_whole(path, fill("decode.html", words(result)))


def words(result: DecodeResult) -> dict[str, Any]:
    """What the page shows."""
    scored = [s for s in result.scores if s.value is not None]
    rungs = rungs_of(result)
    return {
        "result": result,
        "scored": scored,
        "unscored": [s for s in result.scores if s.value is None],
        "ladder": Markup(figures.ladder(rungs)) if rungs else None,
        "heatmap": Markup(
            figures.associations(
                result.association, [s.name for s in result.scores], [c + 1 for c in result.coordinates]
            )
        ),
    }


def rungs_of(result: DecodeResult) -> list[figures.Rung]:
    """The factors that have a score, as lines of a chart."""
    return [
        figures.Rung(figures.short(s.name, 30), (), (s.value,), s.low, s.high, s.chance, s.found)
        for s in result.scores
        if s.value is not None
    ]
