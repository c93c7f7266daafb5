"""Small charts as inline SVG: no script, no font, no network; colours follow the page's light or dark scheme."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from zhat.results import Across


@dataclass(frozen=True)
class Axis:
    """A linear scale from data to pixels, with round ticks."""

    low: float
    high: float
    start: float
    end: float

    def __post_init__(self) -> None:
        low, high = max(self.low, -1e300), min(self.high, 1e300)  # so that their distance is a number
        if high - low <= 1e-12 * max(abs(low), abs(high), 1e-290):
            low, high = low - max(abs(low), 1.0) / 20, low + max(abs(low), 1.0) / 20
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def __call__(self, value: float) -> float:
        """The pixel of a value, kept inside the axis."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round values inside the range."""
        raw = (self.high - self.low) / about
        unit = 10 ** math.floor(math.log10(raw))
        step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _around(values: Sequence[float], pad: float = 0.05) -> tuple[float, float]:
    low, high = max(min(values), -1e300), min(max(values), 1e300)  # so that their distance is a number
    room = (high - low) * pad or max(abs(low), 1.0) * pad
    return low - room, high + room


def _text(x: float, y: float, text: str, *, kind: str = "tick", anchor: str = "middle", turn: bool = False) -> str:
    rotate = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{rotate}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _svg(width: float, height: float, body: list[str], label: str, *, shrinks: bool = True) -> str:
    size = f"max-width:{width:g}px" if shrinks else f"width:{width:g}px"
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(label)}" '
        f'style="{size}">{"".join(body)}</svg>'
    )


@dataclass(frozen=True)
class Rung:
    """One class of the ladder: values of the seeds before and after learning, the interval, the chance level."""

    name: str
    raw: Sequence[float]
    learned: Sequence[float]
    low: float | None
    high: float | None
    chance: float | None
    predicted: bool


def rung(across: Across) -> Rung:
    """A class of the ladder, from its scores over seeds."""
    a = across
    return Rung(a.name, a.raw, a.learned, a.low, a.high, a.chance, a.predicted)


def ladder(rungs: Sequence[Rung], *, width: float = 920.0) -> str:
    """Scores by class: hollow dots for observations, filled ones for the representation, a tick for chance.

    Values below 0 are drawn at the left edge: such a map is worse than predicting the mean.

    Args:
        rungs: tightest first.
        width: in pixels, at least 300.
    """
    row, top = 34.0, 26.0
    height = top + row * len(rungs) + 30
    name = 226.0 if width > 600 else 134.0
    x = Axis(0.0, 1.0, name + 10, width - 20)
    body = [_line(x(t), top - 8, x(t), height - 28, "grid") for t in x.ticks()]
    body += [_text(x(t), height - 12, f"{t:.1f}") for t in x.ticks()]
    for i, rung in enumerate(rungs):
        y = top + row * (i + 0.5)
        if rung.predicted:
            band = f'x="4" y="{y - row / 2 + 2:.1f}" width="{width - 8}" height="{row - 4}"'
            body.append(f'<rect class="predicted" {band} rx="6"/>')
        body.append(_text(name, y + 4, rung.name, kind="label", anchor="end"))
        if rung.chance is not None:
            body.append(_line(x(rung.chance), y - 9, x(rung.chance), y + 9, "chance"))
        if rung.low is not None and rung.high is not None:
            body.append(_line(x(rung.low), y, x(rung.high), y, "interval"))
        body += [f'<circle class="raw" cx="{x(v):.1f}" cy="{y:.1f}" r="4.5"/>' for v in rung.raw]
        body += [f'<circle class="learned" cx="{x(v):.1f}" cy="{y:.1f}" r="4.5"/>' for v in rung.learned]
    return _svg(width, height, body, "held-out R2 by class of maps")


def lines(
    series: Sequence[tuple[str, Sequence[float], Sequence[float]]],
    x_name: str,
    y_name: str,
    *,
    y_range: tuple[float, float] | None = None,
    level: float | None = None,
    beside: Sequence[Sequence[float]] = (),
) -> str:
    """Curves `(name, x, y)` over a common axis, with a chance level and dotted values of y beside them, if given."""
    width, height = 460.0, 270.0
    xs = [v for _, a, _ in series for v in a]
    ys = [v for _, _, b in series for v in b]
    x = Axis(0.0, max(xs), 58, width - 26)
    y = Axis(*(y_range or _around(ys)), height - 42, 22)
    body = _frame(x, y, x_name, y_name, width, height)
    if level is not None:
        body += [
            _line(x.start, y(level), x.end, y(level), "mark"),
            _text(x.start + 4, y(level) - 5, "chance", anchor="start"),
        ]
    for i, (name, a, b) in enumerate(series):
        points = " ".join(f"{x(u):.1f},{y(v):.1f}" for u, v in zip(a, b, strict=True))
        body.append(f'<polyline class="line s{i % 6}" points="{points}"><title>{escape(name)}</title></polyline>')
    for i, ((_, a, _), b) in enumerate(zip(series, beside, strict=False)):
        points = " ".join(f"{x(u):.1f},{y(v):.1f}" for u, v in zip(a, b, strict=True))
        body.append(f'<polyline class="line dotted s{i % 6}" points="{points}"/>')
    if 1 < len(series) <= 6:
        step = max(58.0, 28 + 6.0 * max(len(name) for name, _, _ in series))
        for i, (name, _, _) in enumerate(series):
            left = x.end - step * (len(series) - i)
            body.append(_line(left, 8, left + 12, 8, f"line s{i % 6}"))
            body.append(_text(left + 16, 12, name, anchor="start"))
    return _svg(width, height, body, f"{y_name} against {x_name}")


def points(
    series: Sequence[tuple[str, Sequence[float], Sequence[float]]], x_name: str, y_name: str, *, level: float
) -> str:
    """At most two clouds `(name, x, y)` over a logarithmic axis, y from 0 to 1: dots and rings; and a chance level."""
    width, height = 460.0, 270.0
    least = min((v for _, a, _ in series for v in a if v > 0), default=1.0)
    logs = [[math.log10(max(v, least)) for v in a] for _, a, _ in series]
    x = Axis(*_around([v for a in logs for v in a]), 58, width - 26)
    y = Axis(0.0, 1.0, height - 42, 22)
    ticks: list[float] = []
    for steps in ((1,), (1, 2, 5), [k / 10 for k in range(10, 100)]):  # finer ones where the axis is short
        if len(ticks) < 2:
            decades = range(math.floor(x.low), math.floor(x.high) + 1)
            ticks = [t for t in (s * 10.0**p for p in decades for s in steps) if x.low <= math.log10(t) <= x.high]
    body = _frame(x, y, x_name, y_name, width, height, {math.log10(t): f"{t:g}" for t in ticks})
    body += [_line(x(math.log10(t)), y.start, x(math.log10(t)), y.end, "grid") for t in ticks]
    body += [
        _line(x.start, y(level), x.end, y(level), "mark"),
        _text(x.start + 4, y(level) - 5, "chance", anchor="start"),
    ]
    step = 28 + 6.0 * max(len(name) for name, _, _ in series)
    for i, ((name, _, b), a) in reversed(list(enumerate(zip(series, logs, strict=True)))):
        kind, left = ("learned", "raw")[i], x.end - step * (len(series) - i)
        body += [f'<circle class="{kind}" cx="{x(u):.1f}" cy="{y(v):.1f}" r="3"/>' for u, v in zip(a, b, strict=True)]
        body += [
            f'<circle class="{kind}" cx="{left + 6:.1f}" cy="8" r="3"/>',
            _text(left + 16, 12, name, anchor="start"),
        ]
    return _svg(width, height, body, f"{y_name} against {x_name}")


@dataclass(frozen=True)
class Read:
    """A target: value, interval and whether it was found for each model, and which value would be found."""

    name: str
    models: Sequence[tuple[float, float | None, float | None, bool]]
    needed: float | None


def read(targets: Sequence[Read], models: Sequence[str], x_name: str, *, level: float) -> str:
    """How well targets are read from models: one band for each target, in it one line for each model.

    Args:
        targets: from above to below.
        models: their names, in the order of the values of a target.
        x_name: of the axis, in percent.
        level: chance.
    """
    width, thick, top = 920.0, 9.0, 34.0
    band = thick * len(models) + 10
    height = top + band * len(targets) + 44
    ends = [v for t in targets for value, low, high, _ in t.models for v in (value, low, high) if v is not None]
    x = Axis(max(0.0, min(ends) - 2), 100.0, 190.0, width - 20)
    body = [_line(x(t), top - 4, x(t), height - 40, "grid") for t in x.ticks(8)]
    body += [_text(x(t), height - 24, f"{t:g}") for t in x.ticks(8)]
    body.append(_line(x(level), top - 4, x(level), height - 40, "mark"))
    for i, target in enumerate(targets):
        upper = top + band * i
        if i:
            body.append(_line(12, upper, width - 20, upper, "grid"))
        body.append(_text(180, upper + band / 2 + 4, target.name, kind="label", anchor="end"))
        if target.needed is not None:
            body.append(_line(x(target.needed), upper + 3, x(target.needed), upper + band - 3, "needed"))
        for j, (value, low, high, found) in enumerate(target.models):
            y = upper + 5 + thick * (j + 0.5)
            if low is not None and high is not None:
                body.append(_line(x(low), y, x(high), y, f"reach s{j % 6}"))
            kind = f"{'full' if found else 'hollow'} s{j % 6}"
            said = f"{escape(models[j])}: {value:.1f}"
            body.append(
                f'<circle class="{kind}" cx="{x(value):.1f}" cy="{y:.1f}" r="3.5"><title>{said}</title></circle>'
            )
    left = x.start
    for j, name in enumerate(models):
        body += [
            f'<circle class="full s{j % 6}" cx="{left + 6:.1f}" cy="12" r="3.5"/>',
            _text(left + 15, 16, short(name, 24), anchor="start"),
        ]
        left += 34 + 6.6 * len(short(name, 24))
    body.append(_text((x.start + x.end) / 2, height - 6, x_name, kind="label"))
    return _svg(width, height, body, f"{x_name} of every target and model")


@dataclass(frozen=True)
class Pair:
    """A row of a table: our seeds beside the published mean, and how far ours may lie from it."""

    name: str
    values: Sequence[float]
    published: tuple[float, float] | None
    verdict: str


def against_published(pairs: Sequence[Pair], x_name: str) -> str:
    """One line for each row: a tick and its range for the published score, a dot for each of our seeds."""
    width, row, top = 920.0, 26.0, 16.0
    height = top + row * len(pairs) + 44
    ends = [v for p in pairs for v in p.values] + [p.published[0] for p in pairs if p.published]
    x = Axis(*_around(ends), 74.0, width - 20)
    body = [_line(x(t), top - 8, x(t), height - 40, "grid") for t in x.ticks(8)]
    body += [_text(x(t), height - 24, f"{t:g}") for t in x.ticks(8)]
    for i, pair in enumerate(pairs):
        y = top + row * (i + 0.5)
        body.append(_text(64, y + 4, pair.name, kind="label", anchor="end"))
        if pair.published:
            mean, reach = pair.published
            body.append(_line(x(mean - reach), y, x(mean + reach), y, "range"))
            body.append(_line(x(mean), y - 8, x(mean), y + 8, "chance"))
        kind = "learned lost" if pair.verdict == "missed" else "learned"
        body += [
            f'<circle class="{kind}" cx="{x(v):.1f}" cy="{y:.1f}" r="4"><title>{v:.2f}</title></circle>'
            for v in pair.values
        ]
    body.append(_text((x.start + x.end) / 2, height - 6, x_name, kind="label"))
    return _svg(width, height, body, f"{x_name}: published and measured")


def sweep(
    x: Sequence[float],
    values: Sequence[Sequence[float]],
    second: Sequence[float],
    mark: float,
    *,
    names: tuple[str, str, str, str],
    beside: Sequence[Sequence[float]] = (),
) -> str:
    """Scores of every seed along an axis, a second quantity on the right axis, and a marked value.

    The axis is logarithmic where values are above 0 and span more than a factor of eight.

    Args:
        x: values on the axis.
        values: scores at each x, one for each seed.
        second: a second quantity at each x, at least 0.
        mark: a value on the axis.
        names: of the axis, the scores, the second quantity and the mark.
        beside: the second quantity of every seed at each x, drawn as rings; left out where it has none.
    """
    width, height = 720.0, 380.0
    ends = (*x, mark)
    logarithmic = min(ends) > 0 and max(ends) > 8 * min(ends)
    place = math.log10 if logarithmic else float
    axis = Axis(*_around([place(v) for v in ends]), 64, width - 62)
    across = [axis(place(v)) for v in x]
    means = [sum(v) / len(v) for v in values]
    left = Axis(min(0.0, *(v for each in values for v in each)), 100.0, height - 52, 20)
    most = 100.0 if beside else max(1.0, *second)  # of seeds it is a score, in percent like the first
    right = Axis(0.0, most, height - 52, 20)
    body = [_line(axis.start, left(t), axis.end, left(t), "grid") for t in left.ticks()]
    body += [_text(axis.start - 8, left(t) + 4, f"{t:g}", anchor="end") for t in left.ticks()]
    body += [_text(axis.end + 8, right(t) + 4, f"{t:g}", anchor="start") for t in right.ticks()]
    said = -math.inf  # where the last number under the axis stands
    for u, pixel in sorted(zip(x, across, strict=True)):
        if pixel - said >= 34:
            body.append(_text(pixel, height - 32, f"{u:.3g}" if u < 1000 else f"{u:,.0f}"))
            said = pixel
    marked = axis(place(mark))
    before = marked > (axis.start + axis.end) / 2
    body.append(_line(marked, 20, marked, height - 52, "mark"))
    for series, scale, kind in ((means, left, "line"), (second, right, "line second")):
        points = " ".join(f"{u:.1f},{scale(v):.1f}" for u, v in zip(across, series, strict=True))
        body.append(f'<polyline class="{kind}" points="{points}"/>')
    for pixel, each in zip(across, beside, strict=False):
        body += [f'<circle class="raw" cx="{pixel:.1f}" cy="{right(v):.1f}" r="3"/>' for v in each]
    for pixel, each in zip(across, values, strict=True):
        body += [
            f'<circle class="learned" cx="{pixel:.1f}" cy="{left(v):.1f}" r="4"><title>{v:.2f}</title></circle>'
            for v in each
        ]
    place_of_name, anchor = (marked - 6, "end") if before else (marked + 6, "start")
    body.append(_text(place_of_name, height - 60, names[3], kind="tick over", anchor=anchor))
    body.append(_text((axis.start + axis.end) / 2, height - 8, names[0], kind="label"))
    body.append(_text(18, height / 2 - 16, names[1], kind="label", turn=True))
    body.append(_text(width - 10, height / 2 - 16, names[2], kind="label", turn=True))
    return _svg(width, height, body, f"{names[1]} against {names[0]}")


_ALONE = """<style>
text { font: 12px sans-serif; fill: #5b6470; } .label { fill: #1c1f24; }
.over { paint-order: stroke; stroke: #ffffff; stroke-width: 5px; } .grid { stroke: #e3e6ea; }
.line { fill: none; stroke-width: 2; stroke: #1f5fbf; } .second { stroke: #b4541a; stroke-dasharray: 5 4; }
.mark { stroke: #8a929c; stroke-width: 1.5; stroke-dasharray: 2 3; } .learned { fill: #1f5fbf; }
.s1 { stroke: #b4541a; } .s2 { stroke: #1a7f4b; } .s3 { stroke: #7a3fb0; } .s4 { stroke: #9a7400; }
.s5 { stroke: #0f7c86; } .dotted { stroke-dasharray: 2 4; } .link { stroke: #c4cad1; }
.s0 { stroke: #1f5fbf; } .reach { stroke-width: 2; opacity: .5; } .hollow { fill: #ffffff; stroke-width: 1.5; }
circle.full { stroke: none; fill: #1f5fbf; } circle.full.s1 { fill: #b4541a; } circle.full.s2 { fill: #1a7f4b; }
circle.full.s3 { fill: #7a3fb0; } circle.full.s4 { fill: #9a7400; } circle.full.s5 { fill: #0f7c86; }
.needed { stroke: #8a929c; }
.frame { fill: none; stroke: #e3e6ea; } .raw { fill: #ffffff; stroke: #b4541a; stroke-width: 2; }
</style><rect width="100%" height="100%" fill="#ffffff"/>"""


def alone(svg: str) -> str:
    """A chart as a file of its own, in the colours of a light page."""
    head, body = svg.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg">{_ALONE}{body}\n'


def words(
    names: Sequence[str], first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], caption: str
) -> str:
    """Words in the plane of two models, `(words, 2)` each: a dot and its name, a ring, and a line between the two."""
    size = 440.0
    points = [*first, *second]
    x = Axis(*_around([p[0] for p in points], 0.1), 14, size - 44)
    y = Axis(*_around([p[1] for p in points], 0.08), size - 14, 40)
    body = [f'<rect class="frame" x="{x.start}" y="{y.end}" width="{size - 28}" height="{y.start - y.end}"/>']
    for name, (a, b), (c, d) in zip(names, first, second, strict=True):
        body.append(_line(x(a), y(b), x(c), y(d), "link"))
        body.append(f'<circle class="raw" cx="{x(c):.1f}" cy="{y(d):.1f}" r="4"><title>{escape(name)}</title></circle>')
        body.append(f'<circle class="learned" cx="{x(a):.1f}" cy="{y(b):.1f}" r="3"/>')
        body.append(_text(x(a) + 6, y(b) + 4, name, anchor="start"))
    body.append(_text(size / 2, 24, caption, kind="label"))
    return _svg(size, size, body, f"words of two models, {caption}")


def panels(charts: Sequence[tuple[str, str]], columns: int = 2) -> str:
    """Several charts as one, side by side and below each other, each with its caption under it."""
    sizes = [[float(v) for v in chart.split('viewBox="0 0 ')[1].split('"')[0].split()] for chart, _ in charts]
    wide, line, top, body = max(w for w, _ in sizes), 16.0, 0.0, []
    for start in range(0, len(charts), columns):
        row = list(zip(charts, sizes, strict=True))[start : start + columns]
        high = max(h for _, (_, h) in row)
        said = [textwrap.wrap(caption, int(wide / 6.5)) for (_, caption), _ in row]
        for i, ((chart, _), (w, h)) in enumerate(row):
            place = f'<svg x="{i * wide:g}" y="{top + high - h:g}" width="{w:g}" height="{h:g}" '
            body.append(chart.replace("<svg ", place, 1))
            body += [
                _text(i * wide + 14, top + high + line * (k + 1), words, anchor="start")
                for k, words in enumerate(said[i])
            ]
        top += high + line * (max(len(lines) for lines in said) + 2)
    return _svg(wide * min(columns, len(charts)), top, body, "the panels of a figure")


def scatter(a: Sequence[float], b: Sequence[float], x_name: str, y_name: str, caption: str) -> str:
    """Points with the diagonal on which they should lie."""
    size = 190.0
    low, high = _around([*a, *b])
    x, y = Axis(low, high, 30, size - 8), Axis(low, high, size - 36, 22)
    body = [f'<rect class="frame" x="{x.start}" y="{y.end}" width="{x.end - x.start}" height="{y.start - y.end}"/>']
    body.append(_line(x(low), y(low), x(high), y(high), "grid"))
    body += [f'<circle class="point" cx="{x(u):.1f}" cy="{y(v):.1f}" r="1.7"/>' for u, v in zip(a, b, strict=True)]
    body += [
        _text(size / 2 + 12, 14, caption, kind="label"),
        _text(size / 2 + 12, size - 6, x_name),
        _text(16, size / 2, y_name, turn=True),
    ]
    body += [_text(x(t), size - 21, f"{t:g}") for t in x.ticks(3)]
    return _svg(size, size, body, f"{y_name} against {x_name}, {caption}")


def bars(values: Sequence[float], reference: float | None, y_name: str) -> str:
    """Bars from 0 with an optional predicted level."""
    width, height = 460.0, 250.0
    top = max([*values, *([] if reference is None else [reference])]) * 1.1
    y = Axis(0.0, top, height - 30, 14)
    step = (width - 70) / len(values)
    every = max(1, math.ceil(len(values) / 16))  # bars with a number under them
    body = [_line(58, y(t), width - 12, y(t), "grid") for t in y.ticks()]
    body += [_text(52, y(t) + 4, f"{t:g}", anchor="end") for t in y.ticks()]
    for i, value in enumerate(values):
        left = 58 + step * (i + 0.15)
        body.append(
            f'<rect class="bar" x="{left:.1f}" y="{y(value):.1f}" width="{0.7 * step:.1f}" '
            f'height="{y(0) - y(value):.1f}" rx="2"><title>{value:.4g}</title></rect>'
        )
        if i % every == 0:
            body.append(_text(58 + step * (i + 0.5), height - 14, str(i + 1)))
    if reference is not None:
        body.append(_line(58, y(reference), width - 12, y(reference), "reference"))
        body.append(_text(width - 14, y(reference) - 6, f"theory {reference:.4g}", kind="label", anchor="end"))
    body.append(_text(14, height / 2, y_name, turn=True))
    return _svg(width, height, body, y_name)


def heatmap(values: Sequence[Sequence[float]], x_name: str, y_name: str) -> str:
    """A matrix of values between 0 and 1, one shade each, with the number where there is room."""
    rows, columns = len(values), len(values[0])
    cell = max(10.0, min(38.0, 380.0 / max(rows, columns)))
    left, top = 46.0, 12.0
    width, height = left + cell * columns + 12, top + cell * rows + 40
    body = []
    for i, line in enumerate(values):
        for j, value in enumerate(line):
            title = f"{y_name} {i + 1}, {x_name} {j + 1}"
            body += _shaded(left + cell * j, top + cell * i, cell, cell, value, title, written=cell >= 26)
    if cell >= 14:
        body += [_text(left - 8, top + cell * (i + 0.5) + 4, str(i + 1), anchor="end") for i in range(rows)]
        body += [_text(left + cell * (j + 0.5), top + cell * rows + 14, str(j + 1)) for j in range(columns)]
    body.append(_text(left + cell * columns / 2, height - 6, x_name, kind="label"))
    body.append(_text(14, top + cell * rows / 2, y_name, kind="label", turn=True))
    return _svg(max(width, 220), height, body, f"absolute correlation of {y_name} and {x_name}")


def associations(values: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[int]) -> str:
    """A matrix of values between 0 and 1 with named rows and numbered columns; every fifth number is written if narrow.

    Args:
        values: one row for each name.
        rows: their names.
        columns: their numbers.
    """
    cell = max(12.0, min(34.0, 640.0 / len(columns)))
    tall = max(22.0, min(34.0, cell))
    left, top = 190.0, 10.0
    width, height = left + cell * len(columns) + 12, top + tall * len(rows) + 40
    every = 1 if cell >= 18 else 5
    body = []
    for i, (name, line) in enumerate(zip(rows, values, strict=True)):
        y = top + tall * i
        body.append(_text(left - 8, y + tall / 2 + 4, short(name, 24), kind="label", anchor="end"))
        for j, value in enumerate(line):
            title = f"{name}, coordinate {columns[j]}"
            body += _shaded(left + cell * j, y, cell, tall, value, title, written=cell >= 28)
    body += [_text(left + cell * (j + 0.5), height - 24, str(c)) for j, c in enumerate(columns) if j % every == 0]
    body.append(_text(left + cell * len(columns) / 2, height - 6, "coordinate of h", kind="label"))
    return _svg(max(width, 330), height, body, "correlation of each factor with each coordinate")


def between(values: Sequence[Sequence[float]], names: Sequence[str]) -> str:
    """A square matrix of scores, from the name at the left to the name above; what lies below 0 has no shade.

    Args:
        values: one row for each name.
        names: of rows and columns.
    """
    said = [short(name, 14) for name in names]
    wide = max(46.0, 12 + 6.6 * max(len(name) for name in said))
    tall, left, top = 32.0, 12 + 6.6 * max(len(name) for name in said), 26.0
    width, height = left + wide * len(said) + 8, top + tall * len(said) + 6
    body = []
    for i, (name, line) in enumerate(zip(said, values, strict=True)):
        y = top + tall * i
        body.append(_text(left - 8, y + tall / 2 + 4, name, kind="label", anchor="end"))
        body.append(_text(left + wide * (i + 0.5), top - 9, name, kind="label"))
        for j, value in enumerate(line):
            shade, box = min(1.0, max(0.0, value)), f'width="{wide - 2:.1f}" height="{tall - 2:.1f}" rx="3"'
            place = f'x="{left + wide * j + 1:.1f}" y="{y + 1:.1f}"'
            body.append(f'<rect class="cell" {place} {box} fill-opacity="{shade:.3f}"/>')
            kind = "on" if shade > 0.55 else "off"
            body.append(_text(left + wide * (j + 0.5), y + tall / 2 + 4, f"{value:.3f}", kind=kind))
    return _svg(width, height, body, "R2 of each from each", shrinks=False)


def _shaded(x: float, y: float, wide: float, tall: float, value: float, title: str, *, written: bool) -> list[str]:
    """A cell of a matrix of values between 0 and 1: its shade, and its number where there is room."""
    box = f'x="{x:.1f}" y="{y:.1f}" width="{wide - 1:.1f}" height="{tall - 1:.1f}"'
    shade = f'<rect class="cell" {box} fill-opacity="{value:.3f}"><title>{escape(title)}: {value:.3f}</title></rect>'
    kind = "on" if value > 0.55 else "off"
    number = _text(x + wide / 2, y + tall / 2 + 4, f"{value:.2f}".lstrip("0"), kind=kind)
    return [shade, number] if written else [shade]


def short(name: str, most: int) -> str:
    """A name of at most so many letters."""
    return name if len(name) <= most else name[: most - 1] + "…"


def verdicts(cells: Sequence[Sequence[tuple[str, float | None] | None]], names: Sequence[str]) -> str:
    """Verdicts on ordered pairs, from the name at the left to the name above: a word, a score and its shade.

    Args:
        cells: word and score between 0 and 1 of each pair; None on the diagonal.
        names: short ones.
    """
    wide, left, top = 92.0, 34.0, 30.0
    longest = max((len(cell[0].split(" ")) for line in cells for cell in line if cell is not None), default=1)
    high = 26.0 + 15 * max(2, longest)
    body = []
    for i, line in enumerate(cells):
        y = top + high * i
        body.append(_text(left - 12, y + high / 2 + 4, names[i], kind="label", anchor="end"))
        body.append(_text(left + wide * (i + 0.5), top - 10, names[i], kind="label"))
        for j, cell in enumerate(line):
            x = left + wide * j
            box = f'x="{x + 1:.1f}" y="{y + 1:.1f}" width="{wide - 2:g}" height="{high - 2:g}" rx="4"'
            if cell is None:
                continue
            word, value = cell
            shade = 0.0 if value is None else min(1.0, max(0.0, value))
            body.append(f'<rect class="frame" {box}/>')
            body.append(f'<rect class="cell" {box} fill-opacity="{shade:.3f}"/>')
            kind = "on" if shade > 0.55 else "off"
            lines = word.split(" ")
            at = y + high / 2 + 4 - 7.5 * (len(lines) - (value is None))
            for k, part in enumerate(lines):
                body.append(_text(x + wide / 2, at + 15 * k, part, kind=kind))
            if value is not None:
                body.append(_text(x + wide / 2, at + 15 * len(lines), f"{value:.3f}", kind=kind))
    return _svg(
        left + wide * len(names) + 4, top + high * len(names) + 4, body, "verdict on each ordered pair", shrinks=False
    )


def residuals(values: Sequence[Sequence[float]], x_name: str, y_name: str) -> str:
    """Where something is left unexplained: rows from above to below, columns from left to right, the darkest most."""
    rows, columns = len(values), len(values[0])
    top = max(max(line) for line in values)
    left, width, height = 34.0, 460.0, 250.0
    wide, high = (width - left - 8) / columns, (height - 44) / rows
    body = []
    for i, line in enumerate(values):
        for j, value in enumerate(line):
            shade = value / top if top > 0 else 0.0
            body.append(
                f'<rect class="cell worst" x="{left + wide * j:.1f}" y="{8 + high * i:.1f}" width="{wide:.2f}" '
                f'height="{high:.2f}" fill-opacity="{shade:.3f}"><title>{value:.3g}</title></rect>'
            )
    body.append(f'<rect class="frame" x="{left}" y="8" width="{wide * columns:.1f}" height="{high * rows:.1f}"/>')
    body.append(_text(left + wide * columns / 2, height - 14, x_name, kind="label"))
    body.append(_text(18, 8 + high * rows / 2, y_name, kind="label", turn=True))
    return _svg(width, height, body, "what the map leaves unexplained")


def recall(points: Sequence[tuple[int, float, float | None, float | None, float]]) -> str:
    """Recall@k over k on a logarithmic axis, with intervals and chance: `(k, value, low, high, chance)`."""
    width, height = 460.0, 250.0
    x = Axis(0.0, max(math.log10(points[-1][0]), 0.1), 66, width - 26)
    y = Axis(0.0, 1.0, height - 44, 16)
    body = [_line(x.start - 12, y(t), x.end + 12, y(t), "grid") for t in y.ticks()]
    body += [_text(x.start - 18, y(t) + 4, f"{t:g}", anchor="end") for t in y.ticks()]
    body += [_text(x(math.log10(k)), height - 26, str(k)) for k, *_ in points]
    for series, kind in ((1, "line"), (4, "line second")):
        path = " ".join(f"{x(math.log10(p[0])):.1f},{y(float(p[series] or 0)):.1f}" for p in points)
        body.append(f'<polyline class="{kind}" points="{path}"/>')
    for k, value, low, high, _ in points:
        at = x(math.log10(k))
        if low is not None and high is not None:
            body.append(_line(at, y(low), at, y(high), "interval"))
        body.append(
            f'<circle class="learned" cx="{at:.1f}" cy="{y(value):.1f}" r="4"><title>{value:.4f}</title></circle>'
        )
    body.append(_text((x.start + x.end) / 2, height - 8, "neighbours asked for", kind="label"))
    body.append(_text(16, (y.start + y.end) / 2, "share found", kind="label", turn=True))
    return _svg(width, height, body, "recall behind the map")


def _frame(
    x: Axis,
    y: Axis,
    x_name: str,
    y_name: str,
    width: float,
    height: float,
    ticks: Mapping[float, str] | None = None,
) -> list[str]:
    """Grid, numbers and names of both axes; numbers under x are round ones, if no others are given."""
    if ticks is None:
        ticks = {t: f"{t:,.0f}" for t in x.ticks(4) if t == round(t)}
    body = [_line(x.start, y(t), x.end, y(t), "grid") for t in y.ticks()]
    body += [_text(x.start - 6, y(t) + 4, f"{t:g}", anchor="end") for t in y.ticks()]
    body += [_text(x(t), height - 24, said) for t, said in ticks.items()]
    body.append(_text((x.start + x.end) / 2, height - 6, x_name, kind="label"))
    body.append(_text(14, (y.start + y.end) / 2, y_name, kind="label", turn=True))
    return body
