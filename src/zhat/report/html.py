"""A page from records: renders, never computes anything a record does not hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from zhat._files import printable, write_whole
from zhat.citing import cite
from zhat.equivalence import AFFINE
from zhat.errors import BadInput
from zhat.report import figures
from zhat.results import Across, Record, across, describe

SCATTERS = 12  # latents drawn one by one; a page with hundreds of them helps nobody


def write(records: Record | Sequence[Record], path: Path | str) -> Path:
    """Write one self-contained HTML page about some runs of one setting.

    Args:
        records: the runs; they differ in their seed.
        path: the file; it is replaced as a whole.
    """
    return write_whole(path, render(records))


def render(records: Record | Sequence[Record]) -> str:
    """The page as text."""
    records = (records,) if isinstance(records, Record) else tuple(records)
    if not records:
        raise BadInput("a report needs at least one finished run.")
    if any(r.learned is None or r.picture is None for r in records):
        raise BadInput(
            f"{records[0].name!r} holds no score for each class of maps, so it has no page of its own: it was kept by "
            "Run.save, or is compared with its peers, or is read factor by factor. Score what Run.save kept with "
            "zhat.score(zhat.load(folder), world); of a paper's part, give the results.json of zhat reproduce."
        )
    return fill("run.html", page_of(records))


def fill(template: str, words: dict[str, Any], *, frame: str = "page.html") -> str:
    """A template of this room, filled; the style is part of the page.

    Args:
        template: its file.
        words: what it shows.
        frame: what lies around it: "page.html", or "cell.html" for the first part of the page inside a notebook.
    """
    here = resources.files("zhat.report")

    def text(name: str) -> str:
        return here.joinpath(name).read_text(encoding="utf-8")

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=FunctionLoader(text)
    )
    style = text("style.css")
    environment.globals["style"] = Markup(style if frame == "page.html" else inside(style))  # macros see only globals
    return printable(environment.get_template(template).render(frame=frame, **words))


def inside(style: str) -> str:
    """The style of a page for one element of a page that is not ours, in the light or dark of its host."""
    light, dark = (re.sub(r"\s+", " ", block) for block in re.findall(r":root \{(.*?)\}", style, re.S)[:2])
    own = re.sub(r"(?m)^(\s*)(:root|body) \{", r"\1& {", style)
    hosts = {
        light: ('body[data-jp-theme-light="true"]', "body.vscode-light", '[data-theme="light"]', '[theme="light"]'),
        dark: ('body[data-jp-theme-light="false"]', "body.vscode-dark", '[data-theme="dark"]', '[theme="dark"]'),
    }
    told = "".join(f"{', '.join(f'{host} .zhat' for host in each)} {{{colours}}}\n" for colours, each in hosts.items())
    smaller = "margin: 0; padding: .9rem 1.1rem; font-size: 14px; border-radius: 8px;"
    return f".zhat {{\n{own}& {{ {smaller} }} h1 {{ font-size: 1.15rem; }} h2 {{ font-size: 1rem; }}\n}}\n{told}"


def page_of(records: tuple[Record, ...]) -> dict[str, Any]:
    """What the page of some scored runs shows."""
    first = records[0]
    prediction, picture, sides = first.prediction, first.picture, first.sides
    assert first.learned is not None and picture is not None  # noqa: PT018
    rungs = across(records)
    curves = [(f"seed {r.seed}", r.curve.steps, r.curve.loss) for r in records if r.curve.steps]
    watched = [(f"seed {r.seed}", r.curve.watched_steps, r.curve.watched) for r in records if r.curve.watched]
    latents = range(len(picture.z[0]))
    scatters = [
        figures.scatter(
            [row[j] for row in picture.z],
            [row[j] for row in picture.z_hat],
            f"{sides.symbols[0]}{j + 1}",
            f"{sides.symbols[1]}{j + 1}",
            f"{sides.one} {j + 1}",
        )
        for j in latents[:SCATTERS]
    ]
    scale = prediction.scale if prediction is not None and prediction.holds != "no" else None
    ladder = [figures.rung(r) for r in rungs]
    affine = rungs[-1]
    return {
        "title": first.name,
        "sides": sides,
        "records": records,
        "prediction": prediction,
        "rungs": rungs,
        "measured": _measured(rungs, len(records)),
        "ladder": Markup(figures.ladder(ladder)),
        "loss": Markup(figures.lines(curves, "step", "loss")) if curves else None,
        "watched": Markup(figures.lines(watched, "step", first.curve.watched_name, y_range=(0, 1)))
        if watched
        else None,
        "scatters": [Markup(s) for s in scatters],
        "hidden": len(latents) - len(scatters),
        "picture_class": describe(picture.up_to, True),
        "spectrum": Markup(figures.bars(picture.singular_values, scale, "singular value")),
        "scale": scale,
        "heatmap": Markup(figures.heatmap(picture.correlation, f"coordinate of {sides.learned}", sides.one)),
        "n": first.learned[AFFINE].n,
        "seeds": [
            (r.seed, affine.raw[i] if affine.raw else None, affine.learned[i], r.curve.loss[-1:])
            for i, r in enumerate(records)
        ],
        "first": first,
        "about": [
            *first.settings.items(),
            ("seeds", ", ".join(str(r.seed) for r in records)),
            ("training time", f"{first.seconds:.1f} s for all seeds trained together"),
            *first.provenance.items(),
        ],
        "bibtex": cite(*([prediction.cite] if prediction is not None and prediction.cite else [])),
    }


def _measured(rungs: tuple[Across, ...], seeds: int) -> str:
    last = rungs[-1]
    over = f"mean of {seeds} seeds" if seeds > 1 else "one seed"
    text = f"up to {last.name}, held-out R² {last.mean:.4f} ({over})"
    if last.raw_mean is not None:
        text += f"; the observations themselves reach {last.raw_mean:.4f}"
    for rung in rungs:
        if rung.predicted and rung is not last:
            text = f"up to {rung.name}, held-out R² {rung.mean:.4f}; {text}"
    return text[0].upper() + text[1:] + "."
