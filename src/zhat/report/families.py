"""A figure that compares models with each other: its tables, its plots, its page. Renders, never computes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

from zhat.citing import cite
from zhat.report import figures
from zhat.report.html import fill
from zhat.results import Agreement, FamilyResult

MANY = 6  # lines in one plot; of more, every fourth is shown


def cells(result: FamilyResult) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the comparison as text."""
    published = any(a.published is not None for a in result.agreements)
    pairs = any(len(a.values) > 1 for a in result.agreements)
    header = [
        "models",
        "what",
        result.score,
        *(["lowest and highest pair"] if pairs else []),
        "chance",
        "rows compared",
    ]
    apart = any(a.apart for a in result.agreements)
    header += ["nats apart"] if apart else []
    untrained = any(a.untrained is not None for a in result.agreements)
    header += ["before training"] if untrained else []
    header += ["the notebook's average", "published"] if published else []
    rows = []
    for a in result.agreements:
        ends = [_range(a.values) if len(a.values) > 1 else "–"] if pairs else []
        row = [a.group, a.name, _mean(a), *ends, f"{a.chance:.4f}", f"{a.n:,}"]
        row += [_range(a.apart)] if apart else []
        row += [_number(a.untrained)] if untrained else []
        row += [_number(a.by_paper), _number(a.published, 2)] if published else []
        rows.append(row)
    return header, rows


def about(result: FamilyResult) -> str:
    """What the numbers are, in one line."""
    pairs = max((len(a.values) for a in result.agreements), default=0)
    over = f"mean ± standard deviation over {pairs} pairs" if pairs > 1 else "one pair"
    return f"{result.score}: {over} of models, budget {result.budget}"


def plots(result: FamilyResult) -> list[tuple[str, str]]:
    """The charts of the figure, each with its caption."""
    out = []
    for drawn in result.words:
        for second, when in ((drawn.second, "before the map"), (drawn.mapped, "after the map")):
            caption = f"{drawn.title}: {len(drawn.words)} words, {when}. Dots: first model; rings: second model."
            out.append((figures.words(drawn.words, drawn.first, second, when), caption))
    groups = {group: list(found) for group, found in groupby(result.agreements, lambda a: a.group)}
    for group, found in groups.items():
        clouds = [a for a in found if len(a.apart) > 2]
        if clouds:
            pairs = [(a.name, a.apart, a.values) for a in clouds]
            chart = figures.points(pairs, "nats between probabilities", result.score, level=clouds[0].chance)
            said = "how alike, by how far apart the probabilities of the two models are"
            out.append((chart, f"{group}, all {len(clouds[0].apart)} pairs: {said}."))
        shown = found[:: 4 if len(found) > MANY else 1]
        if len(shown[0].coefficients) < 3:
            continue
        series = [(a.name, range(1, len(a.coefficients) + 1), a.coefficients) for a in shown]
        chart = figures.lines(series, "coefficient", "correlation", y_range=(0, 1), level=shown[0].chance)
        out.append((chart, f"{group}: canonical correlations, largest first, averaged over pairs."))
    many = [(group.removesuffix(" components"), found) for group, found in groups.items() if len(found) > MANY]
    if many:
        means = [(group, range(len(found)), [a.mean for a in found]) for group, found in many]
        before = [[a.untrained for a in found if a.untrained is not None] for _, found in many]
        known = all(len(b) == len(found) for b, (_, found) in zip(before, many, strict=True))
        beside = before if known else []
        chart = figures.lines(means, "layers before the last", result.score, y_range=(0, 1), beside=beside)
        said = " Dotted: before training." if known else ""
        out.append((chart, f"{result.score} of every layer, one line for each number of components.{said}"))
    return out


def page(result: FamilyResult, summary: str) -> str:
    """One self-contained HTML page."""
    header, rows = cells(result)
    curves = [(r.name, r.curve.steps, r.curve.loss) for r in result.rows if r.curve.steps]
    return fill(
        "families.html",
        {
            "result": result,
            "about": about(result),
            "summary": summary,
            "plots": [(Markup(chart), caption) for chart, caption in plots(result)],
            "apart": any(a.apart for a in result.agreements),
            "ordered": any(r.training_loss is not None for r in result.rows),
            "header": header,
            "rows": rows,
            "losses": [Markup(figures.lines([curve], "step", "loss")) for curve in curves],
            "names": [name for name, _, _ in curves],
            "bibtex": cite(result.paper),
        },
    )


def _mean(agreement: Agreement) -> str:
    if len(agreement.values) == 1:
        return f"{agreement.mean:.4f}"
    return f"{agreement.mean:.4f} ± {statistics.stdev(agreement.values):.4f}"


def _range(values: Sequence[float]) -> str:
    if len(values) < 2:
        return _number(values[0] if values else None)
    return f"{min(values):.4f} to {max(values):.4f}"


def _number(value: float | None, digits: int = 4) -> str:
    return "–" if value is None else f"{value:.{digits}f}"
