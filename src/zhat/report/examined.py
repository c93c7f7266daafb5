"""A page about rows that were examined: the verdict, the conditions, histograms beside the fitted densities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from zhat._files import write_whole
from zhat.report import figures
from zhat.report.html import fill
from zhat.results import SAID, Curve, Examination, Histogram, Minimum


def write_examined(
    result: Examination,
    path: Path | str,
    *,
    minimum: Minimum | None = None,
    curve: Curve | None = None,
    costs: Sequence[str] = (),
) -> Path:
    """Write one self-contained HTML page about rows that were examined.

    Args:
        result: of `zhat.theory.examine`.
        path: the file; it is replaced as a whole.
        minimum: the loss of the run beside its floor, where the rows are a run's representation.
        curve: of that run.
        costs: sentences on what a violation costs.
    """
    above = None
    if minimum is not None and curve is not None and len(curve.loss) > 1:
        heights = [max(loss - minimum.floor, 0.0) for loss in curve.loss]
        above = Markup(figures.lines([("run", curve.steps, heights)], "step", "nats above the floor"))
    words = {
        "result": result,
        "said": SAID,
        "pictures": [(Markup(histogram(h)), h.name, h.law) for h in result.histograms],
        "minimum": minimum,
        "curve": above,
        "costs": list(costs),
    }
    return write_whole(path, fill("examined.html", words))


def histogram(shown: Histogram) -> str:
    """Bars of a density and the line of the fitted one."""
    width, height = 460.0, 250.0
    top = max([*shown.seen, *shown.fitted, 1e-12])
    x = figures.Axis(shown.edges[0], shown.edges[-1], 58, width - 20)
    y = figures.Axis(0.0, 1.08 * top, height - 42, 14)
    ticks = {t: f"{t:g}" for t in x.ticks(5)}
    body = figures._frame(x, y, figures.short(shown.name, 60), "density", width, height, ticks)
    for left, right, value in zip(shown.edges, shown.edges[1:], shown.seen, strict=False):
        body.append(
            f'<rect class="bar" x="{x(left):.1f}" y="{y(value):.1f}" width="{max(x(right) - x(left) - 0.5, 0.5):.1f}" '
            f'height="{y(0) - y(value):.1f}"><title>{value:.4g}</title></rect>'
        )
    if shown.fitted:
        middles = [0.5 * (a + b) for a, b in zip(shown.edges, shown.edges[1:], strict=False)]
        points = " ".join(f"{x(m):.1f},{y(v):.1f}" for m, v in zip(middles, shown.fitted, strict=True))
        body.append(f'<polyline class="line s1" points="{points}"/>')
    return figures._svg(width, height, body, shown.name)
