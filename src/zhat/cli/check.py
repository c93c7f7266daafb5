"""zhat check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from zhat._files import printable
from zhat.cli.completing import a_paper, of_the_paper
from zhat.cli.door import app, complain, door
from zhat.cli.reproduce import holding
from zhat.errors import BadInput


@app.command()
@door
def check(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[PAPER | ROWS | RUN]",
            help="A paper's key, with --row; a file of latents or a representation; or a finished run's folder.",
            autocompletion=a_paper,
        ),
    ] = None,
    row: Annotated[
        str | None,
        typer.Option(help="A row of that paper, for instance R2.1o.", autocompletion=of_the_paper("row")),
    ] = None,
    head: Annotated[
        list[Path] | None,
        typer.Option(
            help="The weights of a classifier's last layer, (classes, features), as .npy; two for two models."
        ),
    ] = None,
    features: Annotated[
        list[Path] | None,
        typer.Option(
            help="With two heads: what each is multiplied with, (rows, features), as .npy, in the same order."
        ),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="The class of each training row, whole numbers from 0, as .npy.")
    ] = None,
    next_: Annotated[
        Path | None, typer.Option("--next", help="With ROWS: a file with the positive of each row, in the same order.")
    ] = None,
    series: Annotated[
        bool, typer.Option("--series", help="With ROWS in the order of time: the positive of a row is the next one.")
    ] = False,
    report: Annotated[Path | None, typer.Option(help="With ROWS or RUN: write an HTML page.")] = None,
    seed: Annotated[int, typer.Option(help="With ROWS or RUN: of the rows that are drawn or chosen.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Say which theorem applies, which of its conditions hold, and by how much.

    Of rows of latents or of a representation: which space they fill, how uniformly, how positives lie around them, each
    with an interval. ROWS is an .npz with the arrays z and z_next, or any file of embeddings. Of a finished run: the
    same of its representation, its loss beside the lowest possible one, and whether its encoder is injective.

    Of a trained classifier's head: classes, dimensions, rank, condition number, whether its rows generate the space
    affinely. Of two heads: the diversity condition of each and the linear map between the models, from heads alone and,
    with the features of the same rows, from features alone. Of a row of a paper: every condition, judged on its world.
    """
    heads, rows = head or [], features or []
    place = None if what is None or row is not None else Path(what)
    of_rows = place is not None and (place.exists() or place.suffix != "" or len(place.parts) > 1)
    if (next_ is not None or series or report is not None) and not of_rows:
        raise BadInput("--next, --series and --report speak of rows. Give a file of them, for instance pairs.npz.")
    if place is not None and of_rows and not heads and labels is None:
        if _is_run(place):
            if next_ is not None or series:
                raise BadInput(f"{place} is a run, which draws its own positives; leave --next and --series out.")
            _check_run(place, report, seed, json)
        else:
            _check_rows(place, next_, series, report, seed, json)
        return
    if bool(heads) == (what is not None) or (what is None) != (row is None) or (labels is not None and not heads):
        raise BadInput(
            "give --head W.npy (and --labels L.npy), or a paper and --row, for instance: reizinger2024 --row R2.1o; or "
            "a file of latents, for instance pairs.npz; or the folder of a finished run."
        )
    if what is not None and row is not None:
        _check_paper(what, row, json)
    else:
        _check_heads(heads, rows, labels, json)


def _check_paper(key: str, row: str, json: bool) -> None:
    from zhat import papers, theory
    from zhat.results import to_json

    found = papers.paper(key)
    chosen = holding(found.parts, [row])[0].row(row)
    prediction = theory.predict(chosen.process, chosen.objective, chosen.encoder)
    print(to_json(prediction) if json else f"{row}: {chosen.title}\n{prediction}")


def _check_heads(heads: list[Path], rows: list[Path], labels: Path | None, json: bool) -> None:
    import numpy as np

    from zhat import theory
    from zhat.files import read_npy
    from zhat.results import to_json

    if (len(heads), len(rows)) not in ((1, 0), (2, 0), (2, 2)) or (len(heads) == 2 and labels is not None):
        raise BadInput(
            f"{len(heads)} times --head and {len(rows)} times --features came. Give one head (and --labels), two heads"
            ", or two heads and the features of both models for the same rows."
        )
    checked: Any
    if len(heads) == 2:
        checked = theory.compare_models(*(read_npy(path, "one array") for path in (*heads, *rows)))
    else:
        given = [None if path is None else np.array(read_npy(path, "one array")) for path in (heads[0], labels)]
        checked = theory.check_head(*given)
    print(to_json(checked) if json else printable(str(checked)))


def _check_rows(place: Path, next_: Path | None, series: bool, report: Path | None, seed: int, json: bool) -> None:
    from zhat import report as pages
    from zhat import theory
    from zhat.results import to_json

    z, z_next = _rows_of(place, next_, series)
    found = theory.examine(z, z_next, name=place.name, seed=seed)
    print(to_json(found) if json else printable(str(found)))
    if report is not None:
        complain(f"Page: {pages.write_examined(found, report)}")


def _rows_of(place: Path, next_: Path | None, series: bool) -> tuple[Any, Any]:
    """The rows of a file, and their positives where it or another file holds them."""
    import numpy as np

    from zhat.files import embeddings
    from zhat.files.arrays import npz_names

    if series and next_ is not None:
        raise BadInput("--next and --series were both given; the positive of a row is one or the other.")
    names = npz_names(place) if place.suffix == ".npz" else []
    if {"z", "z_next"} <= set(names):
        if next_ is not None or series:
            raise BadInput(f"{place.name} holds z and z_next already; leave --next and --series out.")
        keys: tuple[str | None, ...] = ("z", "z_next")
    else:
        if len(names) > 1 and "z" not in names:
            raise BadInput(
                f"{place.name} must hold the arrays z and z_next, or z alone, but it holds {', '.join(names[:8])}."
            )
        keys = ("z" if "z" in names else None,)
    found = []
    for key in keys:
        source = embeddings(place, key=key)
        found.append(source.block(slice(0, source.rows)))
    if next_ is not None:
        source = embeddings(next_)
        found.append(source.block(slice(0, source.rows)))
    if series:
        found = [found[0][:-1], found[0][1:]]
    arrays = [np.asarray(rows) for rows in found]
    return arrays[0], arrays[1] if len(arrays) > 1 else None


def _is_run(place: Path) -> bool:
    return place.is_dir() and (place / "run.json").is_file()


def _check_run(place: Path, report: Path | None, seed: int, json: bool) -> None:
    """The representation of a run, its loss beside the floor, and whether its encoder is injective."""
    import torch

    from zhat import dgp, randomness, runs, theory
    from zhat import report as pages
    from zhat.fresh import reading
    from zhat.results import to_json
    from zhat.training import load

    record = runs.read(place)
    known = {name: kind for name in dgp.__all__ if isinstance(kind := getattr(dgp, name), type)}
    known |= {"str": str}
    settings = {key: str(record.settings.get(key, "")) for key in ("process", "objective")}
    try:
        world: Any = reading(settings["process"], known)
    except BadInput as error:
        raise BadInput(f"the world of {place} cannot be made again from its settings: {error}") from None
    kept = (place / "encoder.safetensors").exists()
    run = load(place) if kept else None
    objective = run.objectives[0] if run is not None and run.objectives else _objective(settings["objective"])
    batch = int(_field(str(record.settings.get("budget", record.settings.get("recipe", ""))), "batch") or 0) or None
    found: list[Any] = []
    minimum = theory.minimum(
        world, objective, run.encoder if run else None, batch=batch or 512, curve=record.curve, seed=seed
    )
    lines = [record.name, minimum.sentence if not isinstance(minimum, str) else f"No floor of the loss: {minimum}."]
    found += [] if isinstance(minimum, str) else [minimum]
    examined = None
    if run is None:
        lines.append("The run was kept without weights, so its representation cannot be examined.")
    else:
        injective = theory.injectivity(world, run.encoder, seed=seed)
        with torch.no_grad():
            views = world.sample(8192, generator=randomness.generator(seed, "examine"))
            h = torch.stack([run.encoder(dgp.encoder_input(x)) for x in views.x[:2]])
        examined = theory.examine(h[0], h[1] if len(h) > 1 else None, name="the representation", seed=seed)
        lines += [injective.sentence, str(examined)]
        found += [injective, examined]
    print(to_json(found) if json else printable("\n".join(lines)))
    if report is not None:
        if examined is None:
            raise BadInput(f"{place} was kept without weights, so there is nothing to draw. Leave --report out.")
        floor = None if isinstance(minimum, str) else minimum
        complain(f"Page: {pages.write_examined(examined, report, minimum=floor, curve=record.curve)}")


def _objective(text: str) -> Any:
    """The objective that a text names; None where zhat cannot make it."""
    from zhat.fresh import Fresh, reading
    from zhat.training.run import BUILDERS

    try:
        found = reading(text, BUILDERS)
        return found() if isinstance(found, Fresh) else found
    except (BadInput, TypeError):
        return None


def _field(text: str, name: str) -> str | None:
    """A whole number among the arguments of a setting."""
    import re

    found = re.search(rf"Recipe\((?:steps=)?\d+, (?:{name}=)?(\d+)", text)
    return found.group(1) if found else None
