"""A page from records: renders, never computes anything a record does not hold."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from zhat._files import write_whole
from zhat.citing import cite
from zhat.equivalence import AFFINE
from zhat.errors import BadInput
from zhat.report import figures
from zhat.results import Record, Score, describe

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
    return fill("run.html", _page(records))


def fill(template: str, words: dict[str, Any]) -> str:
    """A template of this room, filled; the style is part of the page."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    here = resources.files("zhat.report")
    style = Markup(here.joinpath("style.css").read_text(encoding="utf-8"))
    return environment.from_string(here.joinpath(template).read_text(encoding="utf-8")).render(style=style, **words)


def _page(records: tuple[Record, ...]) -> dict[str, Any]:
    first = records[0]
    prediction = first.prediction
    classes = [s.up_to for s in first.learned]
    rungs = []
    for up_to in classes:
        learned = [r.learned[up_to] for r in records]
        raw = [score for r in records for score in r.raw or () if score.up_to is up_to]
        predicted = prediction is not None and prediction.holds != "no" and prediction.up_to is up_to
        rungs.append(_rung(describe(up_to, learned[0].shift), up_to.meaning, raw, learned, predicted))
    affine = [r.learned[AFFINE].value for r in records]
    curves = [(f"seed {r.seed}", r.curve.steps, r.curve.loss) for r in records]
    watched = [(f"seed {r.seed}", r.curve.watched_steps, r.curve.watched) for r in records if r.curve.watched]
    picture = first.picture
    latents = range(len(picture.z[0]))
    scatters = [
        figures.scatter(
            [row[j] for row in picture.z],
            [row[j] for row in picture.z_hat],
            f"model 1, {j + 1}" if first.raw is None else f"z{j + 1}",
            "model 2, mapped" if first.raw is None else f"ẑ{j + 1}",
            f"{'coordinate' if first.raw is None else 'latent'} {j + 1}",
        )
        for j in latents[:SCATTERS]
    ]
    scale = prediction.scale if prediction is not None and prediction.holds != "no" else None
    return {
        "title": first.name,
        "in_pairs": first.raw is None,
        "seeds": [r.seed for r in records],
        "prediction": prediction,
        "rungs": rungs,
        "measured": _measured(rungs, len(records)),
        "ladder": Markup(figures.ladder([rung["figure"] for rung in rungs])),
        "loss": Markup(figures.lines(curves, "step", "loss")),
        "watched": Markup(figures.lines(watched, "step", first.curve.watched_name, y_range=(0, 1)))
        if watched
        else None,
        "scatters": [Markup(s) for s in scatters],
        "hidden_latents": len(latents) - len(scatters),
        "picture_class": describe(picture.up_to, True),
        "spectrum": Markup(figures.bars(picture.singular_values, scale, "singular value")),
        "scale": scale,
        "heatmap": Markup(figures.heatmap(picture.correlation, *_axes(first))),
        "n": first.learned[AFFINE].n,
        "records": [
            {
                "seed": r.seed,
                "raw": r.raw and r.raw[AFFINE].value,
                "learned": a,
                "loss": r.curve.loss[-1],
            }
            for r, a in zip(records, affine, strict=True)
        ],
        "seconds": first.seconds,
        "settings": first.settings,
        "provenance": first.provenance,
        "bibtex": cite(*([prediction.cite] if prediction is not None and prediction.cite else [])),
    }


def _axes(record: Record) -> tuple[str, str]:
    return ("coordinate of model 2", "of model 1") if record.raw is None else ("coordinate of h", "latent")


def _rung(name: str, meaning: str, raw: list[Score], learned: list[Score], predicted: bool) -> dict[str, Any]:
    values = [s.value for s in learned]
    lows, highs = (
        [s.low for s in learned if s.low is not None],
        [s.high for s in learned if s.high is not None],
    )
    chances = [s.chance for s in learned if s.chance is not None]
    low, high = (min(lows), max(highs)) if lows and highs else (None, None)
    chance = statistics.fmean(chances) if chances else None
    return {
        "name": name,
        "meaning": meaning,
        "raw": statistics.fmean(s.value for s in raw) if raw else None,
        "learned": statistics.fmean(values),
        "spread": statistics.stdev(values) if len(values) > 1 else None,
        "low": low,
        "high": high,
        "chance": chance,
        "predicted": predicted,
        "figure": figures.Rung(name, [s.value for s in raw], values, low, high, chance, predicted),
    }


def _measured(rungs: list[dict[str, Any]], seeds: int) -> str:
    last = rungs[-1]
    over = f"mean of {seeds} seeds" if seeds > 1 else "one seed"
    text = f"up to {last['name']}, held-out R² {last['learned']:.4f} ({over})"
    if last["raw"] is not None:
        text += f"; the observations themselves reach {last['raw']:.4f}"
    for rung in rungs:
        if rung["predicted"] and rung is not last:
            text = f"up to {rung['name']}, held-out R² {rung['learned']:.4f}; {text}"
    return text[0].upper() + text[1:] + "."
