"""Results inside a notebook: the first part of the page that we write about them, or a picture of matplotlib.

`html` and `draw` are what `zhat.shown` asks for; a result of a new kind is one more function here and one in `plots`.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from markupsafe import Markup

from zhat.report import audit, comparison, decode, figures
from zhat.report.html import fill, page_of
from zhat.report.plots import draw
from zhat.results import (
    Across,
    AuditMatrix,
    AuditResult,
    Consistency,
    Curve,
    DecodeResult,
    LayerAudit,
    PartResult,
    Picture,
    Prediction,
    Profile,
    Record,
    Score,
    SeedScores,
    describe,
    over_seeds,
)

__all__ = ["draw", "html"]


@singledispatch
def html(result: Any) -> str:
    """A result as a part of a page."""
    raise TypeError(f"nothing shows a {type(result).__name__}")


def _cell(template: str, words: dict[str, Any]) -> str:
    return fill(template, words, frame="cell.html")


@html.register
def _score(result: Score) -> str:
    return _scores(over_seeds([Profile((result,))], (), None), str(result), "score", _read(result))


@html.register
def _profile(result: Profile) -> str:
    return _scores(over_seeds([result], (), None), "", "score", _read(result.scores[0]))


@html.register
def _seeds(result: SeedScores) -> str:
    theory = "" if result.prediction is None else result.prediction.sentence
    several = len(result.seeds) > 1
    learned = "representation" + (", one dot for each seed" if several else "")
    return _scores(result.across, "", learned, result.legend, theory=theory, upper=result.upper)


def _scores(
    rungs: tuple[Across, ...],
    title: str,
    learned: str,
    legend: str,
    *,
    theory: str = "",
    upper: dict[Any, float] | None = None,
) -> str:
    words = {
        "title": title,
        "theory": theory,
        "rungs": rungs,
        "upper": upper or {},
        "learned": learned,
        "column": "score" if learned == "score" else "learned",
        "predicted": any(rung.predicted for rung in rungs),
        "legend": legend,
        "ladder": Markup(figures.ladder([figures.rung(one) for one in rungs])),
    }
    return _cell("scores.html", words)


def _read(score: Score) -> str:
    rows = f"{score.n:,} held-out rows" if score.held_out else f"{score.n:,} rows, in sample"
    return f"{score.name} on {rows}. Interval: 95% interval over rows."


@html.register
def _prediction(result: Prediction) -> str:
    return _cell("prediction.html", {"prediction": result})


@html.register
def _picture(result: Picture) -> str:
    first, estimate = zip(*((a[0], b[0]) for a, b in zip(result.z, result.z_hat, strict=True)), strict=True)
    charts = [
        (
            figures.scatter(first, estimate, "z1", "ẑ1", "latent 1"),
            f"After the best {describe(result.up_to, True)} map.",
        ),
        (figures.heatmap(result.correlation, "coordinate of h", "latent"), "|Correlation| of latents and coordinates."),
    ]
    return _cell("picture.html", {"charts": [(Markup(chart), caption) for chart, caption in charts]})


@html.register
def _curve(result: Curve) -> str:
    return _cell("picture.html", {"charts": _curves([("", result)])})


@html.register
def _record(result: Record) -> str:
    return _records((result,))


@html.register
def _records(result: tuple) -> str:  # type: ignore[type-arg]
    """The runs of one setting: their page where they are scored, else how training went."""
    if all(r.learned is not None and r.picture is not None for r in result):
        return _cell("run.html", page_of(result))
    first: Record = result[0]
    named = [(f"seed {r.seed}", r.curve) for r in result]
    seconds = f"{first.seconds:.1f} s"
    words = {
        "title": f"{len(result)} seed{'s' if len(result) > 1 else ''}, trained in {seconds}",
        "charts": _curves(named),
        "curves": [(r.seed, r.curve) for r in result],
        "watched": first.curve.watched_name,
        "about": [*first.settings.items(), *first.provenance.items()],
    }
    return _cell("training.html", words)


def _curves(named: list[tuple[str, Curve]]) -> list[tuple[Markup, str]]:
    """Losses, and what was watched."""
    losses = [(name, c.steps, c.loss) for name, c in named if c.steps]
    seen = [(name, c.watched_steps, c.watched) for name, c in named if c.watched]
    charts = []
    if losses:
        charts.append((Markup(figures.lines(losses, "step", "loss")), "Loss."))
    if seen:
        watched = named[0][1].watched_name
        charts.append((Markup(figures.lines(seen, "step", watched)), f"{watched[:1].upper()}{watched[1:]}."))
    return charts


@html.register
def _part(result: PartResult) -> str:
    return _cell("comparison.html", comparison.words(result))


@html.register
def _audit(result: AuditResult) -> str:
    return _cell("audit.html", audit.words(result))


@html.register
def _matrix(result: AuditMatrix) -> str:
    return _cell("audits.html", audit.words_of_several(result))


@html.register
def _layers(result: LayerAudit) -> str:
    return _cell("audits.html", audit.words_of_several(result))


@html.register
def _decoded(result: DecodeResult) -> str:
    return _cell("decode.html", decode.words(result))


@html.register
def _consistency(result: Consistency) -> str:
    chart = Markup(figures.between(result.r2, result.names))
    return _cell("consistency.html", {"result": result, "chart": chart})
