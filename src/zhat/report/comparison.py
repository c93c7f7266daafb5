"""A table or a figure of a paper beside ours: JSON, Markdown, LaTeX and an HTML page. Renders, never computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup

from zhat._files import make_folder, write_whole
from zhat.citing import cite
from zhat.report import families, figures
from zhat.report.html import fill
from zhat.results import FamilyResult, Measured, RowResult, SweepResult, TableResult, to_json

Tabled = TableResult | SweepResult
Result = Tabled | FamilyResult


def write_comparison(result: Result, folder: Path | str) -> dict[str, Path]:
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
    if isinstance(result, SweepResult) and result.rows:
        texts["svg"] = ("figure.svg", figures.alone(plot(result)))
    if isinstance(result, FamilyResult) and result.agreements:
        texts["svg"] = ("figure.svg", figures.alone(figures.panels(families.plots(result))))
    return {kind: write_whole(folder / name, text) for kind, (name, text) in texts.items()}


def markdown(result: Result) -> str:
    """The result as a Markdown table with its rule and provenance."""
    header, rows = cells(result)
    lines = [
        f"**{result.paper}, {result.label}** ({_about(result)})",
        "",
        result.caption,
        "",
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in rows),
        "",
        summary(result),
        "",
        *([f"Rule. {result.rule}", ""] if isinstance(result, TableResult) else []),
        *(f"- {note}" for note in result.notes),
        "",
        "Provenance. " + "; ".join(f"{key}: {value}" for key, value in result.provenance.items()) + ".",
    ]
    return "\n".join(lines).replace("\n\n\n", "\n\n") + "\n"


_LATEX = {"%": r"\%", "±": r"$\pm$", "_": r"\_", "&": r"\&", "#": r"\#", "²": "$^2$", "–": "--", "|": r"$\mid$"}


def latex(result: Result) -> str:
    """The result as a LaTeX table for the booktabs package."""
    header, rows = cells(result)

    def escaped(text: str) -> str:
        return "".join(_LATEX.get(c, c) for c in text)

    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(result.caption)} {escaped(_about(result))}; \cite{{{result.paper}}}.}}",
        r"\begin{tabular}{l" + "l" * (len(header) - 1) + "}",
        r"\toprule",
        " & ".join(escaped(h) for h in header) + r" \\",
        r"\midrule",
        *(" & ".join(escaped(c) for c in row) + r" \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def cells(result: Result) -> tuple[list[str], list[list[str]]]:
    """Header and rows as text, the same in every format."""
    if isinstance(result, FamilyResult):
        return families.cells(result)
    further = list(dict.fromkeys(name for r in result.rows for name in r.readings))
    if isinstance(result, SweepResult):
        named = result.second_name not in further  # a reading has a column of its own
        header = ["point", result.x_name, *[result.second_name] * named, result.score, "held out", *further]
        rows = [
            [r.name, f"{x:g}", *[f"{s:.3f}"] * named, str(r.learned), _held_out(r.learned), *_readings(r, further)]
            for r, x, s in zip(result.rows, result.x, result.second, strict=True)
        ]
        return header, rows
    bounded = _bounded(result)
    header = [
        "row",
        "setting",
        "published",
        "ours",
        "held out",
        "verdict",
        *further,
        *(["identity (published)", "supervised (published)"] if bounded else []),
    ]
    rows = []
    for r in result.rows:
        published = r.learned.published
        rows.append(
            [
                r.name,
                r.title,
                str(published) if published else "–",
                str(r.learned),
                _held_out(r.learned),
                r.learned.verdict or "not judged",
                *_readings(r, further),
                *([_against(r.identity), _against(r.supervised)] if bounded else []),
            ]
        )
    return header, rows


def summary(result: Result) -> str:
    """One sentence: how many rows have which verdict, or whether the claim holds."""
    missing = result.expected - len(result.rows)
    open_ = f" {missing} of {result.expected} are not finished." if missing else ""
    if not isinstance(result, TableResult):
        if result.holds is None:
            return f"The claim is not judged: {result.claim}.{open_}"
        return f"By our rule the paper's claim {'holds' if result.holds else 'does not hold'}: {result.claim}.{open_}"
    counts = ", ".join(f"{count} {name}" for name, count in result.verdicts.items())
    if not counts:
        return f"{len(result.rows)} rows, not judged: budget {result.budget} only tries the machinery.{open_}"
    further = ", ".join(f"{count} {name}" for name, count in result.reading_verdicts.items())
    further = f" Further numbers of the rows: {further}." if further else ""
    return f"{counts}, of {len(result.rows)} rows.{_by_spread(result)}{further}{open_}"


def _by_spread(result: TableResult) -> str:
    """The rows whose mean is below the published range but for the spread of our own seeds."""
    named = [
        f" {row.name} counts only through the spread of our seeds: {', '.join(f'{v:.2f}' for v in row.learned.values)}."
        for row in result.rows
        if not row.failure and row.learned.rests_on_spread
    ]
    return "".join(named)


def _bounded(result: Tabled) -> bool:
    """Whether rows stand between the observations themselves and a supervised encoder."""
    return not result.rows or any(r.identity is not None or r.supervised is not None for r in result.rows)


def _readings(row: RowResult, names: list[str]) -> list[str]:
    """Ours by the paper's protocol, what was published, held out, and the verdict."""
    cells = []
    for name in names:
        found = row.readings.get(name)
        said = [_against(found)]
        if found is not None and found.held_out != found.values:
            said.append(f"held out {_held_out(found)}")
        if found is not None and found.verdict:
            said.append(found.verdict)
        cells.append(", ".join(said))
    return cells


def _held_out(measured: Measured) -> str:
    mean = sum(measured.held_out) / len(measured.held_out)
    if measured.low is None or measured.high is None:
        return f"{mean:.2f}"
    return f"{mean:.2f} [{measured.low:.2f}, {measured.high:.2f}]"


def _against(measured: Measured | None) -> str:
    if measured is None:
        return "–"
    return f"{measured} ({measured.published})" if measured.published else str(measured)


def _about(result: Result) -> str:
    if isinstance(result, FamilyResult):
        return families.about(result)
    seeds = sorted({len(r.seeds) for r in result.rows})
    count = " or ".join(str(n) for n in seeds) or "no"
    return f"{result.score} in percent: mean ± standard deviation over {count} seeds, budget {result.budget}"


def plot(result: SweepResult) -> str:
    """The figure of a sweep as SVG."""
    beside = [r.readings[result.second_name] for r in result.rows if result.second_name in r.readings]
    seeds = len(beside) == len(result.rows)  # the second quantity is a reading of every seed, in percent
    return figures.sweep(
        result.x,
        [r.learned.values for r in result.rows],
        [reading.mean for reading in beside] if seeds else result.second,
        result.mark,
        names=(
            result.x_name,
            f"{result.score} (%)",
            f"{result.second_name} (%)" if seeds else result.second_name,
            result.mark_name,
        ),
        beside=[reading.values for reading in beside] if seeds else (),
    )


def page(result: Result) -> str:
    """One self-contained HTML page."""
    if isinstance(result, FamilyResult):
        return families.page(result, summary(result))
    header, rows = cells(result)
    bounds = [(r[0], r[1], r[-2], r[-1]) for r in rows] if isinstance(result, TableResult) and _bounded(result) else []
    if bounds:
        header, rows = header[:-2], [row[:-2] for row in rows]
    return fill(
        "comparison.html",
        {
            "result": result,
            "about": _about(result),
            "summary": summary(result),
            "header": header,
            "rows": rows,
            "bounds": bounds,
            "verdict_at": header.index("verdict") if "verdict" in header else -1,
            "plot": Markup(plot(result)) if isinstance(result, SweepResult) and result.rows else None,
            "compared": Markup(_compared(result)) if isinstance(result, TableResult) and result.rows else None,
            "rule": result.rule if isinstance(result, TableResult) else None,
            "bracketed": any(r.learned.low is not None for r in result.rows),
            "details": [_detail(row, result) for row in result.rows],
            "bibtex": cite(result.paper),
        },
    )


def _compared(result: TableResult) -> str:
    return figures.against_published(
        [
            figures.Pair(
                r.name,
                r.learned.values,
                (r.learned.published.mean, r.learned.published.std) if r.learned.published else None,
                r.learned.verdict,
            )
            for r in result.rows
        ],
        f"{result.score} (%)",
    )


def _aligned(row: RowResult) -> str:
    one, two = zip(*row.aligned, strict=True)
    return figures.scatter(one, two, "model 1", "model 2, mapped", "first coordinate")


def _detail(row: RowResult, result: Tabled) -> dict[str, Any]:
    losses = [(f"seed {s}", c.steps, c.loss) for s, c in zip(row.seeds, row.curves, strict=True)]
    seen = [(f"seed {s}", c.watched_steps, c.watched) for s, c in zip(row.seeds, row.curves, strict=True) if c.watched]
    name = row.curves[0].watched_name if row.curves else ""
    return {
        "row": row,
        "values": ", ".join(f"{v:.2f}" for v in row.learned.values),
        "held_out": ", ".join(f"{v:.2f}" for v in row.learned.held_out),
        "loss": Markup(figures.lines(losses, "step", "loss")) if losses else None,
        "watched": Markup(figures.lines(seen, "step", name, y_range=(0, 1))) if seen else None,
        "watched_name": {"affine R2": "Held-out R² up to an affine map"}.get(name, name[:1].upper() + name[1:]),
        "aligned": Markup(_aligned(row)) if row.aligned else None,
        "settings": result.settings.get(row.name, {}),
    }
