"""zhat check."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from zhat._files import printable
from zhat.cli.completing import a_paper, of_the_paper
from zhat.cli.door import app, door
from zhat.cli.reproduce import holding
from zhat.errors import BadInput


@app.command()
@door
def check(
    paper: Annotated[
        str | None,
        typer.Argument(help="A paper's key, with --row: what theory says of that row.", autocompletion=a_paper),
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
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Say which theorem applies, which of its conditions hold, and by how much.

    Of a trained classifier's head: classes, dimensions, rank, condition number, whether its rows generate the space
    affinely. Of two heads: the diversity condition of each and the linear map between the models, from heads alone and,
    with the features of the same rows, from features alone. Of a row of a paper: every condition, judged on its world.
    """
    import numpy as np

    from zhat import papers, theory
    from zhat.files import read_npy
    from zhat.results import to_json

    heads, rows = head or [], features or []
    if bool(heads) == (paper is not None) or (paper is None) != (row is None) or (labels is not None and not heads):
        raise BadInput(
            "give --head W.npy (and --labels L.npy), or a paper and --row, for instance: reizinger2024 --row R2.1o."
        )
    if paper is not None and row is not None:
        found = papers.paper(paper)
        chosen = holding(found.parts, [row])[0].row(row)
        prediction = theory.predict(chosen.process, chosen.objective, chosen.encoder)
        print(to_json(prediction) if json else f"{row}: {chosen.title}\n{prediction}")
        return
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
