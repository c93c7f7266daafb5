"""zhat show."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Annotated

import typer

from zhat.cli.completing import A_WORLD
from zhat.cli.door import app, door
from zhat.cli.reproduce import lies_in
from zhat.errors import BadInput, UnknownName


@app.command()
@door
def show(
    world: Annotated[str, typer.Argument(help="jug, room, sprites, or teapot (with --data).", autocompletion=A_WORLD)],
    out: Annotated[Path, typer.Option(help="The PNG file to write.")] = Path("picture.png"),
    side: Annotated[int | None, typer.Option(help="Pixels of each picture, both ways; 64 if not given.")] = None,
    steps: Annotated[int, typer.Option(help="Pictures in a line.")] = 9,
    recovered: Annotated[
        Path | None, typer.Option(help="A finished run on this world: draw what it recovered below what it saw.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of recorded data; the variable ZHAT_DATA if not given.")
    ] = None,
) -> None:
    """Draw what each latent of a rendered world does: one line of pictures for each.

    In a line, one latent goes from -1 to 1 and the others stand still. With --recovered RUN there are two lines:
    pictures that the run was tested on, and the same scene drawn from the latents that the run recovered from them.
    """
    from zhat import runs
    from zhat._files import write_whole
    from zhat.experiment.samples import png, tiled
    from zhat.scenes import SCENES, drawn_again, traversal

    if world not in SCENES:
        raise UnknownName("world", world, SCENES)
    if data is not None:
        lies_in(data)
    kind = SCENES[world]
    if side is not None and "side" not in signature(kind).parameters:
        raise BadInput(f"--side {side}: pictures of {world} have one size only. Leave --side out.")
    scene = kind() if side is None else kind(side=side)
    if recovered is None:
        lines, legend = traversal(scene, steps), f"from top to bottom {', '.join(scene.names)}; each from -1 to 1"
    else:
        picture = runs.read(recovered).picture
        if picture is None:
            raise BadInput(f"{recovered} holds no recovered latents, so there is nothing to draw.")
        lines = drawn_again(scene, picture.z[:steps], picture.z_hat[:steps])
        legend = "above what the network saw, below what is drawn from the latents that it recovered"
    content = png(tiled(lines))
    write_whole(out, lambda path: _put(path, content))
    print(f"{out}: {legend}.")


def _put(path: Path, content: bytes) -> None:
    path.write_bytes(content)
