"""The page of an audit: the verdict first, then what it rests on."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from zhat._files import write_whole
from zhat.report import figures
from zhat.report.html import fill
from zhat.results import AuditResult, describe

_BARS = 64  # singular values drawn; more would be a wall


def write_audit(result: AuditResult, path: Path | str) -> Path:
    """Write one self-contained HTML page about an audit.

    Args:
        result: of `zhat.audit.audit`.
        path: the file; it is replaced as a whole.
    """
    rungs = [
        figures.Rung(
            describe(s.up_to, s.shift) if s.name == "R2" else s.name,
            (),
            (s.value,),
            s.low,
            s.high,
            s.chance,
            s.up_to is result.up_to and s.name == "R2",
        )
        for s in (*result.ladder, *result.beyond)
    ]
    step = max(1, -(-len(result.spectrum) // _BARS))
    words = {
        "result": result,
        "rungs": rungs,
        "scores": (*result.ladder, *result.beyond),
        "ladder": Markup(figures.ladder(rungs)) if rungs else None,
        "spectrum": Markup(figures.bars(result.spectrum[::step], None, "singular value")) if result.spectrum else None,
    }
    return write_whole(path, fill("audit.html", words))
