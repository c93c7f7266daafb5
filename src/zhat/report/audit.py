"""The page of an audit: the verdict first, then what it rests on."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

from markupsafe import Markup

from zhat._files import write_whole
from zhat.report import figures
from zhat.report.html import fill
from zhat.results import AuditMatrix, AuditResult, LayerAudit, ModelMatrix, describe, letter

_PHONE = 352.0  # pixels beside the margins of a phone
_BARS = 64  # singular values drawn; more would be a wall


def write_audit(result: AuditResult | AuditMatrix | LayerAudit | ModelMatrix, path: Path | str) -> Path:
    """Write one self-contained HTML page about an audit of two or more matrices of embeddings, or models.

    Args:
        result: of `zhat.audit.audit`, `audit_all`, `audit_models` or `audit_all_models`.
        path: the file; it is replaced as a whole.
    """
    if isinstance(result, AuditResult):
        return write_whole(path, fill("audit.html", words(result)))
    return write_whole(path, fill("audits.html", words_of_several(result)))


def words(result: AuditResult) -> dict[str, Any]:
    """What the page of a pair shows."""
    rungs = rungs_of(result)
    step = max(1, -(-len(result.spectrum) // _BARS))
    largest = max((max(line) for line in result.residuals), default=0.0)
    names = [s.name.removeprefix("recall@").split(" by ") for s in result.recall]
    points = [
        (int(name[0]), s.value, s.low, s.high, s.chance or 0.0) for name, s in zip(names, result.recall, strict=True)
    ]
    pieces, columns = "held-out rows, from first to last", f"columns of {result.b}"
    return {
        "result": result,
        "rungs": rungs,
        "scores": (*result.ladder, *result.beyond),
        "ladder": _ladder(rungs),
        "spectrum": Markup(figures.bars(result.spectrum[::step], None, "singular value")) if result.spectrum else None,
        "largest": largest,
        "residuals": Markup(figures.residuals(result.residuals, columns, pieces)) if result.residuals else None,
        "recall": Markup(figures.recall(points)) if points else None,
        "sampled": result.recall[0].n if points else 0,
        "metric": names[0][1] if points and len(names[0]) > 1 else "distance",  # the only one that there was before
    }


def _ladder(rungs: list[figures.Rung]) -> Markup | None:
    """The ladder twice: for a window, and for a phone, where a shrunken one could not be read."""
    if not rungs:
        return None
    wide, narrow = figures.ladder(rungs), figures.ladder(rungs, width=_PHONE)
    return Markup(f'<div class="roomy">{wide}</div><div class="narrow">{narrow}</div>')


def rungs_of(result: AuditResult) -> list[figures.Rung]:
    """The scores of an audit as lines of a chart."""
    return [
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


def words_of_several(result: AuditMatrix | LayerAudit | ModelMatrix) -> dict[str, Any]:
    """What the page of several pairs shows."""
    picture = None
    if isinstance(result, AuditMatrix):
        short = [letter(i) for i in range(len(result.names))]
        cells = [[None if i == j else _cell(result[i, j]) for j in range(len(short))] for i in range(len(short))]
        picture = Markup(figures.verdicts(cells, short))
        inputs = list(zip(short, result.names, result.dims, strict=True))
        heads = [f"{a} → {b}" for a, b in permutations(short, 2)]
    else:
        inputs = []
        pairs = result.pairs if isinstance(result, ModelMatrix) else (result,)
        of = [f"{pair.a} → {pair.b}: " if isinstance(result, ModelMatrix) else "" for pair in pairs]
        heads = [
            f"{which}{a if a == b else f'{a} → {b}'}"
            for which, pair in zip(of, pairs, strict=True)
            for a, b in pair.layers
        ]
    return {
        "result": result,
        "picture": picture,
        "inputs": inputs,
        "rows": f"{result.audits[0].n:,}",
        "audits": [(head, audit, _ladder(rungs_of(audit))) for head, audit in zip(heads, result.audits, strict=True)],
    }


def _cell(audit: AuditResult) -> tuple[str, float | None]:
    return audit.verdict, None if audit.score is None else audit.score.value
