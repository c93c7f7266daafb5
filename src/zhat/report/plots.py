"""Results on axes of matplotlib: the pictures of our pages, for papers and slides of your own.

matplotlib is imported when something is drawn. Text takes the colours of your style, so pictures fit dark ones as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from itertools import pairwise
from typing import Any

from zhat.errors import BadInput, MissingExtra
from zhat.report import audit, decode, figures
from zhat.results import (
    AuditMatrix,
    AuditResult,
    Consistency,
    Curve,
    DecodeResult,
    LayerAudit,
    PartResult,
    Picture,
    Profile,
    Record,
    Score,
    SeedScores,
    across,
    letter,
    over_seeds,
)

LEARNED, RAW, CHANCE, BAND = "#3f7fdb", "#cf6a2b", "#8a929c", "#3f7fdb"  # legible on light and on dark
SERIES = (LEARNED, RAW, "#2a9d63", "#9460c9", "#b08c1a", "#2195a0")


def axes(ax: Any, width: float, height: float) -> Any:
    """The axes to draw on; a new figure of that size in inches where none were given."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtra("matplotlib", "plots", "plot") from None
    if ax is None:
        return plt.subplots(figsize=(width, height), layout="constrained")[1]
    if not hasattr(ax, "plot") or not hasattr(ax, "get_figure"):
        raise BadInput(f"`ax` must be axes of matplotlib, such as plt.gca(), but a {type(ax).__name__} came.")
    return ax


@singledispatch
def draw(result: Any, ax: Any = None) -> Any:
    """A result on axes; returns them."""
    raise TypeError(f"nothing draws a {type(result).__name__}")


@draw.register
def _score(result: Score, ax: Any = None) -> Any:
    return draw(Profile((result,)), ax)


@draw.register
def _profile(result: Profile, ax: Any = None) -> Any:
    return ladder([figures.rung(one) for one in over_seeds([result], (), None)], result.scores[0].name, ax)


@draw.register
def _seeds(result: SeedScores, ax: Any = None) -> Any:
    return ladder([figures.rung(one) for one in result.across], result.learned[0].scores[0].name, ax)


@draw.register
def _audit(result: AuditResult, ax: Any = None) -> Any:
    if not result.ladder.scores:
        raise BadInput(f"this audit has no scores to draw: {result.sentence}")
    return ladder(audit.rungs_of(result), "R2", ax)


@draw.register
def _decoded(result: DecodeResult, ax: Any = None) -> Any:
    rungs = decode.rungs_of(result)
    if not rungs:
        raise BadInput("no factor has a score, so there is nothing to draw.")
    return ladder(rungs, "score", ax)


@draw.register
def _record(result: Record, ax: Any = None) -> Any:
    return _records((result,), ax)


@draw.register
def _records(result: tuple, ax: Any = None) -> Any:  # type: ignore[type-arg]
    """Scores of some runs where they have any, else their losses."""
    rungs = across(result)
    if rungs:
        return ladder([figures.rung(one) for one in rungs], "R2", ax)
    return curves([(f"seed {r.seed}", r.curve) for r in result], ax)


@draw.register
def _curve(result: Curve, ax: Any = None) -> Any:
    return curves([("loss", result)], ax)


@draw.register
def _picture(result: Picture, ax: Any = None) -> Any:
    d, k = len(result.correlation), len(result.correlation[0])
    named = [str(i + 1) for i in range(d)], [str(j + 1) for j in range(k)]
    ax = matrix(result.correlation, *named, ax, high=1.0, digits=2)
    ax.set(xlabel="coordinate of h", ylabel="latent", title="|correlation|")
    return ax


@draw.register
def _consistency(result: Consistency, ax: Any = None) -> Any:
    ax = matrix(result.r2, result.names, result.names, ax, high=1.0, digits=3)
    ax.set(xlabel="to", ylabel="from", title=f"held-out R2 {result.mean:.3f}")
    return ax


@draw.register
def _matrix(result: AuditMatrix, ax: Any = None) -> Any:
    names = [f"{letter(i)}: {figures.short(name, 18)}" for i, name in enumerate(result.names)]
    m = range(len(names))
    cells = [[math.nan if i == j else _value(result[i, j]) for j in m] for i in m]
    words = [["" if i == j else result[i, j].verdict.replace(" ", "\n") for j in m] for i in m]
    ax = matrix(cells, names, [letter(i) for i in m], ax, high=1.0, digits=3, words=words)
    ax.set(xlabel="to", ylabel="from")
    return ax


@draw.register
def _layers(result: LayerAudit, ax: Any = None) -> Any:
    ax = axes(ax, 6.4, 3.6)
    best = [(result.layers[i], result.audits[i]) for i in result.best]
    names = [a if a == b else f"{a} → {b}" for (a, b), _ in best]
    values = [_value(found) for _, found in best]
    places = range(len(best))
    ax.plot(places, values, "o-", color=LEARNED)
    scored = ((i, found.score) for i, (_, found) in enumerate(best))
    for i, score in scored:
        if score is not None and score.low is not None and score.high is not None:
            ax.plot([i, i], [score.low, score.high], color=LEARNED, alpha=0.45, lw=3)
    ax.set_xticks(places, names, rotation=45 if max(map(len, names)) > 4 else 0, ha="right")
    ax.set(ylabel="held-out R2", ylim=(min(0.0, *values), 1.02), title=f"{result.b} from {result.a}, layer by layer")
    return ax


def _value(found: AuditResult) -> float:
    return math.nan if found.score is None else found.score.value


@draw.register
def _part(result: PartResult, ax: Any = None) -> Any:
    if result.judgement.decoded:
        return _targets(result, ax)
    if result.judgement.agreements:
        return _alike(result, ax)
    rows = [row for row in result.rows if row.learned is not None]
    if not rows:
        raise BadInput(f"{result.label} holds no scored rows, so there is nothing to draw.")
    axis = result.judgement.axis
    if axis is not None:
        return _along(result, ax)
    ax = axes(ax, 7.0, 0.32 * len(rows) + 1.1)
    for i, row in enumerate(rows):
        cell = row.learned
        assert cell is not None
        if cell.published is not None:
            mean, reach = cell.published.mean, cell.published.reach
            ax.plot([mean - reach, mean + reach], [i, i], color=CHANCE, lw=7, alpha=0.35, solid_capstyle="butt")
            ax.plot(mean, i, "|", color=CHANCE, ms=13, mew=2, label="_" if i else "published")
        colour = "#d0453c" if cell.verdict == "missed" else LEARNED
        ax.plot(cell.values, [i] * len(cell.values), "o", color=colour, ms=4.5, label="_" if i else "ours, each seed")
    ax.set_yticks(range(len(rows)), [row.name for row in rows])
    ax.invert_yaxis()
    ax.set(xlabel=f"{result.score} (%)", title=f"{result.paper}, {result.label}")
    ax.legend(frameon=False, fontsize="small")
    return ax


def _targets(result: PartResult, ax: Any) -> Any:
    """How well targets are read from models: filled where found, hollow where not."""
    found = result.judgement.decoded
    names, models = ([*dict.fromkeys(each)] for each in ([d.target for d in found], [d.model for d in found]))
    ax = axes(ax, 7.0, 0.34 * len(names) + 1.2)
    for d in found:
        j, colour = models.index(d.model), SERIES[models.index(d.model) % len(SERIES)]
        y = names.index(d.target) + 0.7 * ((j + 0.5) / len(models) - 0.5)
        if d.measured.low is not None and d.measured.high is not None:
            ax.plot([d.measured.low, d.measured.high], [y, y], color=colour, alpha=0.4, lw=2)
        first = d.target == names[0]
        fill = {"color": colour} if d.found else {"mfc": "none", "mec": colour}
        ax.plot(d.measured.held_out_mean, y, "o", ms=4, label=d.model if first else "_", **fill)
    ax.axvline(50.0, color=CHANCE, ls=":", lw=1.5)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set(xlabel=f"{result.score} (%), held out", title=f"{result.paper}, {result.label}")
    ax.legend(frameon=False, fontsize="small")
    return ax


def _alike(result: PartResult, ax: Any) -> Any:
    """How alike models are: one dot for each pair, a tick for chance."""
    shown = [a for a in result.judgement.agreements if a.shown]
    ax = axes(ax, 7.0, 0.34 * len(shown) + 1.2)
    for i, a in enumerate(shown):
        ax.plot(a.values, [i] * len(a.values), "o", color=LEARNED, ms=4.5, label="_" if i else "pairs of models")
        ax.plot(a.chance, i, "|", color=CHANCE, ms=13, mew=2, label="_" if i else "chance")
    ax.set_yticks(range(len(shown)), [f"{a.group}, {a.what}" for a in shown])
    ax.invert_yaxis()
    ax.set(xlabel=result.score, title=f"{result.paper}, {result.label}")
    ax.legend(frameon=False, fontsize="small")
    return ax


def _along(result: PartResult, ax: Any) -> Any:
    """Scores of every seed along the axis of a figure."""
    axis, ax = result.judgement.axis, axes(ax, 6.4, 4.0)
    assert axis is not None
    cells = [row.learned for row in result.rows if row.learned is not None]
    means = [cell.mean for cell in cells]
    ax.plot(axis.values, means, color=LEARNED)
    for x, cell in zip(axis.values, cells, strict=True):
        ax.plot([x] * len(cell.values), cell.values, "o", color=LEARNED, ms=4.5)
    ax.axvline(axis.mark, color=CHANCE, ls=":", lw=1.5)
    ax.annotate(
        axis.mark_name,
        (axis.mark, 0.03),
        xycoords=("data", "axes fraction"),
        xytext=(5, 0),
        textcoords="offset points",
        fontsize="small",
    )
    ends = (*axis.values, axis.mark)
    if min(ends) > 0 and max(ends) > 8 * min(ends):
        ax.set_xscale("log")
    ax.set(xlabel=axis.name, ylabel=f"{result.score} (%)", title=f"{result.paper}, {result.label}")
    return ax


def ladder(rungs: Sequence[figures.Rung], score: str, ax: Any = None) -> Any:
    """Scores by class: rings for observations, dots for the representation, bars for intervals, ticks for chance.

    Values below 0 are drawn at the left edge: such a map is worse than predicting the mean.
    """
    ax = axes(ax, 6.4, 0.36 * len(rungs) + 1.2)
    left = 0.0
    for i, one in enumerate(rungs):
        if one.predicted:
            ax.axhspan(i - 0.45, i + 0.45, color=BAND, alpha=0.13, lw=0)
        if one.low is not None and one.high is not None:
            ends = [max(left, one.low), max(left, one.high)]
            ax.plot(ends, [i, i], color=LEARNED, lw=4, alpha=0.4, solid_capstyle="round")
        if one.chance is not None:
            ax.plot(max(left, one.chance), i, "|", color=CHANCE, ms=13, mew=2, clip_on=False)
        ax.plot([max(left, v) for v in one.raw], [i] * len(one.raw), "o", mfc="none", mec=RAW, mew=1.6, clip_on=False)
        ax.plot([max(left, v) for v in one.learned], [i] * len(one.learned), "o", color=LEARNED, clip_on=False)
    ax.set_yticks(range(len(rungs)), [one.name for one in rungs])
    ax.set(xlim=(left, 1.0), ylim=(len(rungs) - 0.4, -0.6), xlabel=f"{score}, held out")
    ax.grid(axis="x", alpha=0.3)
    return ax


def curves(named: Sequence[tuple[str, Curve]], ax: Any = None) -> Any:
    """Losses over steps."""
    ax = axes(ax, 6.4, 3.6)
    if not any(curve.loss for _, curve in named):
        raise BadInput("nothing was trained, so there is no loss to draw.")
    for i, (name, curve) in enumerate(named):
        ax.plot(curve.steps, curve.loss, color=SERIES[i % len(SERIES)], label=name, lw=1.6)
    ax.set(xlabel="step", ylabel="loss")
    if 1 < len(named) <= 8:
        ax.legend(frameon=False, fontsize="small")
    return ax


def matrix(
    values: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    ax: Any = None,
    *,
    high: float,
    digits: int,
    words: Sequence[Sequence[str]] | None = None,
) -> Any:
    """A matrix of scores from 0 up, one shade each, with the number where there is room."""
    wide = 0.9 if words is not None else 0.62
    ax = axes(ax, max(3.0, wide * len(columns) + 1.4), max(2.2, wide * 0.8 * len(rows) + 1.0))
    clipped = [[min(high, max(0.0, v)) if v == v else math.nan for v in line] for line in values]
    ax.imshow(clipped, cmap="Blues", vmin=0.0, vmax=high, aspect="auto")
    if max(len(rows), len(columns)) <= 16:
        for i, line in enumerate(values):
            for j, value in enumerate(line):
                said = words[i][j] if words is not None else ""
                number = f"{value:.{digits}f}" if value == value else ""
                colour = "white" if clipped[i][j] > 0.6 * high else "#1c1f24"
                text = "\n".join(part for part in (said, number) if part)
                ax.text(j, i, text, ha="center", va="center", color=colour, fontsize="small")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    return ax


def over_time(values: Any, *, series: Any = None, time: Any = None, names: Sequence[str] = (), ax: Any = None) -> Any:
    """Columns over time, each in a band of its own; a line breaks where a new series begins.

    Args:
        values: `(n, k)`.
        series: which recording each row belongs to, `(n,)`; None takes them as one.
        time: of the rows, `(n,)`; None numbers them.
        names: of the columns.
        ax: axes; None makes a figure.
    """
    n, k = values.shape
    ax = axes(ax, 7.4, 0.75 * k + 1.1)
    moments = list(range(n)) if time is None else [float(t) for t in time]
    breaks = [0, *(i for i in range(1, n) if series is not None and series[i] != series[i - 1]), n]
    for j in range(k):
        column = values[:, j]
        low, high = float(column.min()), float(column.max())
        scale = (high - low) or 1.0
        lifted = [(float(v) - low) / scale * 0.86 + (k - 1 - j) for v in column]
        for a, b in pairwise(breaks):
            ax.plot(moments[a:b], lifted[a:b], color=SERIES[j % len(SERIES)], lw=1.0)
    for i in breaks[1:-1]:
        ax.axvline((moments[i - 1] + moments[i]) / 2, color=CHANCE, lw=0.8, ls=":")
    ax.set_yticks([k - 1 - j + 0.43 for j in range(k)], list(names) or [f"h{j + 1}" for j in range(k)])
    ax.set(xlabel="row" if time is None else "time", ylim=(-0.1, k), xlim=(moments[0], moments[-1]))
    return ax


def in_plane(values: Any, *, colour: Any = None, name: str = "row", ax: Any = None) -> Any:
    """The first two columns, or three, as points coloured by a number of each row.

    Args:
        values: `(n, k)` with k of at least 2.
        colour: a number for each row, `(n,)`; None takes the number of the row.
        name: what the colour says.
        ax: axes; None makes a figure.
    """
    ax = axes(ax, 5.2, 4.2)
    told = range(len(values)) if colour is None else colour
    drawn = ax.scatter(values[:, 0], values[:, 1], c=told, s=5, cmap="viridis", rasterized=True)
    ax.get_figure().colorbar(drawn, ax=ax, label=name)
    ax.set(xlabel="h1", ylabel="h2", aspect="equal", adjustable="datalim")
    return ax
