"""A part of a paper beside ours: JSON, Markdown, LaTeX and an HTML page. Renders, never computes."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from zhat._files import make_folder, printable, write_whole
from zhat.citing import cite, keys
from zhat.report import figures
from zhat.report.html import fill
from zhat.results import Absent, Agreement, Axis, Decoding, Measured, PartResult, Prediction, RowResult, to_json


def write_comparison(result: PartResult, folder: Path | str) -> dict[str, Path]:
    """Write `results.json`, `table.md`, `table.tex`, `report.html`, and `figure.svg` for a figure.

    Args:
        result: a table or figure of a paper, published and measured.
        folder: where the files go; each is replaced as a whole.

    Returns:
        The files by their kind: "json", "markdown", "latex", "html" and, for a figure, "svg".
    """
    folder = make_folder(folder)
    texts = {
        "json": ("results.json", to_json(result) + "\n"),
        "markdown": ("table.md", markdown(result)),
        "latex": ("table.tex", latex(result)),
        "html": ("report.html", page(result)),
    }
    charts = figure(result)
    if charts:
        whole = charts[0][0] if len(charts) == 1 else figures.panels(charts)
        texts["svg"] = ("figure.svg", printable(figures.alone(whole)))
    return {kind: write_whole(folder / name, text) for kind, (name, text) in texts.items()}


# --- tables: header and cells as text, the same in every format


@dataclass(frozen=True)
class Grid:
    """A table as text."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def grids(result: PartResult) -> list[Grid]:
    """The tables of a result: its rows, how alike models are, how well targets are read, whichever there are."""
    found = []
    if result.judgement.decoded:
        found.append(decodings(result))
    if result.judgement.agreements:
        found.append(agreements(result))
    if any(row.learned for row in result.rows) or not found:
        found.append(rows(result))
    return found


def rows(result: PartResult) -> Grid:
    """One line for each row; columns without content are left out."""
    axis = result.judgement.axis
    cells = [_cells(row, result, axis, i) for i, row in enumerate(result.rows)]
    header = list(dict.fromkeys(name for each in cells for name in each))
    if axis is None:
        cells += [_unmeasured(row) for row in result.absent]
        header = list(dict.fromkeys([*header, *(name for row in result.absent for name in _unmeasured(row))]))
    further = list(dict.fromkeys(name for row in result.rows for name in row.readings))
    order = [name for name in header if name not in further and name not in _BOUNDS]
    order += [*further, *(name for name in header if name in _BOUNDS)]
    return Grid(tuple(order), tuple(tuple(each.get(name, "–") for name in order) for each in cells))


_BOUNDS = ("identity (published)", "supervised (published)")


def _cells(row: RowResult, result: PartResult, axis: Axis | None, place: int) -> dict[str, str]:
    """The cells of a row by the name of their column."""
    cells = {"row": row.name}
    if axis is None:
        cells["setting"] = row.title
    else:
        cells[axis.name] = f"{axis.values[place]:g}"
        if axis.second_name not in row.readings:  # a reading has a column of its own
            cells[axis.second_name] = f"{axis.second[place]:.3f}"
    ours = row.learned
    if ours is not None:
        if ours.published is not None:
            cells["published"] = str(ours.published)
        elif axis is None and not _has_published(result) and row.prediction is not None:
            cells["theory"] = _predicted(row.prediction)
        cells["ours" if axis is None else result.score] = str(ours)
        cells["held out"] = _held_out(ours)
        if ours.chance is not None:
            cells["chance"] = f"{ours.chance:.{ours.digits}f}"
        if ours.published is not None:
            cells["verdict"] = ours.verdict or "not judged"
        if ours.bar is not None:
            cells |= {"bar": str(ours.bar), "verdict": ours.verdict}
    for name, found in row.readings.items():
        said = [_against(found)]
        if found.held_out != found.values:
            said.append(f"held out {_held_out(found)}")
        cells[name] = ", ".join([*said, *[found.verdict] * bool(found.verdict)])
    for name, bound in zip(_BOUNDS, (row.identity, row.supervised), strict=True):
        if bound is not None:
            cells[name] = _against(bound)
    return cells


def _predicted(prediction: Prediction) -> str:
    """What theory says of a row, in a cell."""
    up_to = "" if prediction.up_to is None else f"up to {prediction.up_to}"
    return {"yes": up_to, "no": "no theorem holds"}.get(prediction.holds, f"{up_to}, if it holds")


def _unmeasured(row: Absent) -> dict[str, str]:
    """The cells of a row whose data are not there."""
    cells = {"row": row.name, "setting": row.title}
    return {**cells, **({} if row.published is None else {"published": str(row.published)}), "ours": "not measured"}


def agreements(result: PartResult) -> Grid:
    """One line for each respect in which models are compared; columns without content are left out."""
    found = result.judgement.agreements
    columns = {
        "models": [a.group for a in found],
        "what": [a.what for a in found],
        result.score: [_mean(a) for a in found],
        "lowest and highest pair": [_range(a.values) if len(a.values) > 1 else "–" for a in found],
        "chance": [f"{a.chance:.4f}" for a in found],
        "rows compared": [f"{a.n:,}" for a in found],
        "nats apart": [_range(a.apart) for a in found],
        "before training": [_number(a.untrained) for a in found],
        "the notebook's average": [_number(a.by_paper) for a in found],
        "published": [_number(a.published, 2) for a in found],
    }
    kept = {name: cells for name, cells in columns.items() if any(cell != "–" for cell in cells)}
    return Grid(tuple(kept), tuple(zip(*kept.values(), strict=True)))


def decodings(result: PartResult) -> Grid:
    """One line for each target, one column for each model."""
    cells = {(d.target, d.model): _decoding(d) for d in result.judgement.decoded}
    models = list(dict.fromkeys(d.model for d in result.judgement.decoded))
    chance: dict[str, list[float]] = {t.name: [] for t in result.judgement.targets}
    for d in result.judgement.decoded:
        chance[d.target] += [] if d.measured.chance is None else [d.measured.chance]
    header = ("target", "images", *models, "chance", "found with 80%", "with 95%")
    lines = tuple(
        (
            *(t.name, f"{t.having:,}"),
            *(cells[t.name, model] for model in models),
            f"{statistics.fmean(chance[t.name]):.1f}" if chance[t.name] else "–",
            *("never" if least is None else f"{least:.1f}" for least in (t.needed, t.needed_surely)),
        )
        for t in result.judgement.targets
    )
    return Grid(header, lines)


def _decoding(found: Decoding) -> str:
    ours, star = found.measured, "*" * found.found
    ends = "" if ours.low is None else f" [{ours.low:.1f}, {ours.high:.1f}]"
    error = "" if len(ours.values) < 2 else f" ± {ours.std / len(ours.values) ** 0.5:.1f}"
    return f"{ours.held_out_mean:.1f}{star}{ends}; {ours.mean:.1f}{error}{'*' * found.found_by_paper}"


def _held_out(measured: Measured) -> str:
    mean = f"{measured.held_out_mean:.{measured.digits}f}"
    return mean if measured.low is None else f"{mean} [{measured.low:.2f}, {measured.high:.2f}]"


def _against(measured: Measured) -> str:
    return f"{measured} ({measured.published})" if measured.published else str(measured)


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


def about(result: PartResult) -> str:
    """What the numbers are, in one line."""
    if result.judgement.agreements:
        pairs = max(len(a.values) for a in result.judgement.agreements)
        over = f"mean ± standard deviation over {pairs} pairs" if pairs > 1 else "one pair"
        return f"{result.score}: {over} of models, budget {result.budget}"
    if result.judgement.decoded:
        splits = max(len(row.seeds) for row in result.rows)
        over = f"mean over {splits} splits" if splits > 1 else "one split"
        both = f"{result.score} and, by the paper's protocol, accuracy, in percent"
        return f"{both}: {over}, budget {result.budget}"
    seeds = " or ".join(str(n) for n in sorted({len(r.seeds) for r in result.rows})) or "no"
    return f"{result.score} in percent: mean ± standard deviation over {seeds} seeds, budget {result.budget}"


READ_SO = (
    "A cell shows held-out balanced accuracy with its interval over images, then accuracy by the paper's protocol ± "
    "its standard error over splits; a star marks what each test finds above chance. “Images” have the target. "
    "“Chance” is the mean balanced accuracy of fits to shuffled targets, over splits and models. The last two columns "
    "say which balanced accuracy would be found in one split with a probability of 80% and of 95%. An interval may lie "
    "above 50 without a star: stars are corrected for the number of targets and models, intervals are not."
)

# --- formats


def markdown(result: PartResult) -> str:
    """The result as Markdown tables with its rule and provenance."""
    lines = [f"**{result.paper}, {result.label}** ({about(result)})", "", result.caption, ""]
    for grid in grids(result):
        lines += ["| " + " | ".join(map(_cell, grid.header)) + " |", "|" + "---|" * len(grid.header)]
        lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in grid.rows]
        lines.append("")
    lines += [result.summary, ""]
    if result.judgement.decoded:
        lines += [READ_SO, ""]
    ruled = result.judgement.claims if result.judgement.decoded else ()  # others share one rule
    lines += [f"{i}. {one.claim}: it holds if {one.rule}." for i, one in enumerate(ruled, 1)]
    if ruled:
        lines.append("")
    lines += [f"- Not measured: {said}" for said in result.not_measured] + [""] * bool(result.absent)
    if result.judgement.rule:
        lines += [f"Rule. {result.judgement.rule}", ""]
    lines += [f"- {note}" for note in result.notes]
    lines += ["", "Provenance. " + "; ".join(f"{key}: {value}" for key, value in result.provenance.items()) + "."]
    text = printable("\n".join(lines)).replace("\n\n\n", "\n\n") + "\n"
    return text.replace("<", "&lt;").replace("](", r"]\(")  # neither tags nor links come from a result


def _cell(text: str) -> str:
    """Text on one line, which ends no cell of a table."""
    return " ".join(text.split()).replace("|", r"\|")


_LATEX = {
    **{"%": r"\%", "±": r"$\pm$", "_": r"\_", "&": r"\&", "#": r"\#", "²": "$^2$", "–": "--", "|": r"$\mid$"},
    **{"\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "~": r"\~{}", "^": r"\^{}"},
}


def latex(result: PartResult) -> str:
    """The result as LaTeX tables for the booktabs package."""

    def escaped(text: str) -> str:
        return "".join(_LATEX.get(c, c) for c in printable(text))

    lines = []
    for grid in grids(result):
        lines += [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escaped(result.caption)} {escaped(about(result))}{_latex_cite(result)}.}}",
            r"\begin{tabular}{" + "l" * len(grid.header) + "}",
            r"\toprule",
            " & ".join(escaped(h) for h in grid.header) + r" \\",
            r"\midrule",
            *(" & ".join(escaped(c) for c in row) + r" \\" for row in grid.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    return "\n".join(lines) + "\n"


def _latex_cite(result: PartResult) -> str:
    cited = ",".join(map(_key, _cited(result)))
    return rf"; \cite{{{cited}}}" if cited else ""


def _key(paper: str) -> str:
    """The key of a paper; whatever a key cannot hold is left out."""
    return re.sub(r"[^\w:.-]", "", paper)


def page(result: PartResult) -> str:
    """One self-contained HTML page."""
    return fill("comparison.html", words(result))


def words(result: PartResult) -> dict[str, Any]:
    """What the page shows."""
    tables = grids(result)
    verdicts = bool(result.judgement.rule) and any(row.learned for row in result.rows)
    return {
        "result": result,
        "axis": result.judgement.axis,
        "about": about(result),
        "grids": tables,
        "charts": [(Markup(chart), caption) for chart, caption in figure(result)],
        "compared": Markup(_compared(result)) if verdicts else None,
        "barred": any(r.learned and r.learned.bar for r in result.rows),
        "bracketed": any(r.learned and r.learned.low is not None for r in result.rows),
        "read_so": READ_SO if result.judgement.decoded else "",
        "apart": any(a.apart for a in result.judgement.agreements),
        "samples": _samples(result),
        "details": [_detail(row, result) for row in result.rows],
        "facts_about": [("training time", f"{result.seconds:.0f} s"), *result.provenance.items()],
        "published": _has_published(result),
        "bibtex": cite(*_cited(result)),
    }


def _has_published(result: PartResult) -> bool:
    """Whether a paper prints any number beside which ours stand."""
    cells = (cell for r in result.rows for cell in (r.learned, r.identity, r.supervised, *r.readings.values()))
    return any(cell is not None and cell.published for cell in cells) or any(row.published for row in result.absent)


def _cited(result: PartResult) -> tuple[str, ...]:
    """The paper, or for settings of one's own the papers whose theorems speak of them."""
    if result.paper in keys():
        return (result.paper,)
    said = (row.prediction.cite for row in result.rows if row.prediction is not None)
    return tuple(dict.fromkeys(key for key in said if key in keys()))


def _samples(result: PartResult) -> list[tuple[str, str]]:
    """Pictures of observations, each once, with the rows that see them."""
    seen: dict[str, list[str]] = {}
    for row in result.rows:
        if row.samples:
            seen.setdefault(row.samples, []).append(row.name)
    return [(picture, ", ".join(names)) for picture, names in seen.items()]


def _detail(row: RowResult, result: PartResult) -> dict[str, Any]:
    losses = [(f"seed {s}", c.steps, c.loss) for s, c in zip(row.seeds, row.curves, strict=True) if c.steps]
    seen = [(f"seed {s}", c.watched_steps, c.watched) for s, c in zip(row.seeds, row.curves, strict=True) if c.watched]
    name = row.curves[0].watched_name if row.curves else ""
    charts = [(figures.lines(losses, "step", "loss"), "Loss of each seed.")] if losses else []
    if seen:
        charts.append(
            (figures.lines(seen, "step", name, y_range=(0, 1)), f"{name[:1].upper()}{name[1:]} while training.")
        )
    if row.aligned:
        truth, estimate = zip(*row.aligned, strict=True)
        said = "First coordinate of the truth against its estimate, on rows the map has not seen."
        charts.append((figures.scatter(truth, estimate, "truth", "estimate", f"seed {row.seeds[0]}"), said))
    if row.follows:
        chart = figures.heatmap(row.follows, "coordinate of the representation", "factor")
        charts.append((chart, f"|Correlation| of every factor with every coordinate, seed {row.seeds[0]}."))
    return {
        "row": row,
        "values": ", ".join(f"{v:.2f}" for v in row.learned.values) if row.learned else "",
        "held_out": ", ".join(f"{v:.2f}" for v in row.learned.held_out) if row.learned else "",
        "readings": {n: ", ".join(f"{v:.{m.digits}f}" for v in m.values) for n, m in row.readings.items()},
        "charts": [(Markup(chart), caption) for chart, caption in charts],
        "settings": list(result.settings.get(row.name, {}).items()),
    }


# --- charts


def figure(result: PartResult) -> list[tuple[str, str]]:
    """The charts of a figure, each with its caption; a table has none."""
    axis = result.judgement.axis
    if axis is not None and result.rows:
        return [_along(result, axis)]
    return [*_words(result), *_curves(result), *_layers(result), *_read(result)]


def _along(result: PartResult, axis: Axis) -> tuple[str, str]:
    """Scores of every seed along an axis."""
    beside = [r.readings[axis.second_name] for r in result.rows if axis.second_name in r.readings]
    of_seeds = len(beside) == len(result.rows)  # the second quantity is a reading of every seed, in percent
    second = f"{axis.second_name} (%)" if of_seeds else axis.second_name
    chart = figures.sweep(
        axis.values,
        [r.learned.values for r in result.rows if r.learned is not None],
        [reading.mean for reading in beside] if of_seeds else axis.second,
        axis.mark,
        names=(axis.name, f"{result.score} (%)", second, axis.mark_name),
        beside=[reading.values for reading in beside] if of_seeds else (),
    )
    return chart, (
        f"Dots: one for each seed, the line goes through their means. Dashed: {axis.second_name} (right axis; rings: "
        f"its seeds, where it has any). The vertical line marks the {axis.mark_name}."
    )


def _words(result: PartResult) -> list[tuple[str, str]]:
    out = []
    for drawn in result.judgement.words:
        for second, when in ((drawn.second, "before the map"), (drawn.mapped, "after the map")):
            caption = f"{drawn.title}: {len(drawn.words)} words, {when}. Dots: first model; rings: second model."
            out.append((figures.words(drawn.words, drawn.first, second, when), caption))
    return out


def _curves(result: PartResult) -> list[tuple[str, str]]:
    """For each group of agreements: how alike by how far apart, and the canonical correlations."""
    out = []
    for group, members in groupby(result.judgement.agreements, lambda a: a.group):
        found = list(members)
        clouds = [a for a in found if len(a.apart) > 2]
        if clouds:
            pairs = [(a.name, a.apart, a.values) for a in clouds]
            chart = figures.points(pairs, "nats between probabilities", result.score, level=clouds[0].chance)
            said = "how alike, by how far apart the probabilities of the two models are"
            out.append((chart, f"{group}, all {len(clouds[0].apart)} pairs: {said}."))
        shown = [a for a in found if a.shown]
        if len(shown[0].coefficients) >= 3:
            series = [(a.what, range(1, len(a.coefficients) + 1), a.coefficients) for a in shown]
            chart = figures.lines(series, "coefficient", "correlation", y_range=(0, 1), level=shown[0].chance)
            out.append((chart, f"{group}: canonical correlations, largest first, averaged over pairs."))
    return out


def _read(result: PartResult) -> list[tuple[str, str]]:
    """How well every target is read from every model, the best read by the first model first."""
    found = result.judgement.decoded
    if not found:
        return []
    models = list(dict.fromkeys(d.model for d in found))
    ranked = sorted(
        result.judgement.targets,
        key=lambda t: -next(d.measured.held_out_mean for d in found if d.target == t.name and d.model == models[0]),
    )
    lines = [
        figures.Read(
            f"{target.name} ({target.having:,})",
            [
                (d.measured.held_out_mean, d.measured.low, d.measured.high, d.found)
                for d in found
                if d.target == target.name
            ],
            target.needed,
        )
        for target in ranked
    ]
    chart = figures.read(lines, models, f"{result.score} (%)", level=50.0)
    return [
        (
            chart,
            "Held-out balanced accuracy with its 95% interval over images. Filled: found above chance; hollow: not "
            "found. In brackets: how many images have the target. The thin upright line: the balanced accuracy that "
            "would be found in one split with a probability of 80%; where there is no line, none would be.",
        )
    ]


def _layers(result: PartResult) -> list[tuple[str, str]]:
    """How alike every layer is, one line for each group."""
    layers = [a for a in result.judgement.agreements if a.before is not None]
    if not layers:
        return []
    groups = [(group, list(members)) for group, members in groupby(layers, lambda a: a.group)]
    means = [(group, [a.before or 0 for a in found], [a.mean for a in found]) for group, found in groups]
    before = [[a.untrained for a in found if a.untrained is not None] for _, found in groups]
    known = all(len(b) == len(found) for b, (_, found) in zip(before, groups, strict=True))
    beside = before if known else []
    chart = figures.lines(means, "layers before the last", result.score, y_range=(0, 1), beside=beside)
    said = " Dotted: before training." if known else ""
    return [(chart, f"{result.score} of every layer, one line for each number of components.{said}")]


def _mark(ours: Measured) -> tuple[float, float] | None:
    """What ours is judged by, and how far it may lie from that: a bar, or the published mean."""
    if ours.bar is not None:
        return ours.bar.level, 0.0
    return (ours.published.mean, ours.published.reach) if ours.published else None


def _compared(result: PartResult) -> str:
    """One line for each row: ours, and the published score or the bar."""
    pairs = [
        figures.Pair(
            row.name,
            row.learned.values,
            _mark(row.learned),
            "missed" if row.learned.verdict == "not shown" else row.learned.verdict,
        )
        for row in result.rows
        if row.learned is not None
    ]
    return figures.against_published(pairs, f"{result.score} (%)")
