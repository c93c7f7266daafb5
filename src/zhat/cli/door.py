"""The door itself: one application, one way to turn mistakes into sentences and exit codes."""

from __future__ import annotations

import functools
import io
import os
import sys
from collections.abc import Callable, Iterable
from typing import Annotated, Any, ParamSpec

import rich.console
import typer
from rich.segment import Segment
from typer.core import TyperGroup

from zhat._files import printable
from zhat._version import __version__
from zhat.errors import BadInput, MissingExtra, RunFailed


class Console(rich.console.Console):
    """A console that shows text and runs none of it."""

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """The pieces of something, cleaned."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(printable(piece.text), piece.style)


class _Careful(TyperGroup):
    """Commands that refuse an empty word, which would be read as the present folder."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "" in args:
            ctx.fail("an empty word came among the arguments. Is a variable of the shell not set?")
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="zhat",
    cls=_Careful,
    help="Identifiable representation learning: did the model recover the latents behind the data?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
P = ParamSpec("P")


def door(command: Callable[P, None]) -> Callable[P, None]:
    """Turn what zhat raises on purpose into a sentence and an exit code."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except (BadInput, MissingExtra) as error:
            complain(f"zhat: {error}")
            raise typer.Exit(2) from None
        except RunFailed as error:
            complain(f"zhat: {error}")
            raise typer.Exit(1) from None
        except (OSError, MemoryError) as error:
            where = f": {error.filename}" if isinstance(error, OSError) and error.filename else ""
            complain(f"zhat: {getattr(error, 'strerror', None) or str(error) or 'out of memory'}{where}")
            raise typer.Exit(2) from None
        except KeyboardInterrupt as interruption:
            complain(f"zhat: interrupted; {interruption}" if str(interruption) else "zhat: interrupted")
            raise typer.Exit(130) from None

    return wrapped


def complain(sentence: str) -> None:
    """Say it where errors are said."""
    print(printable(sentence), file=sys.stderr)


class _Pipe(io.FileIO):
    """An output whose reader may leave (`zhat … | head`): the work goes on, and its exit code is what it would be."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return len(data)


def _version(asked: bool) -> None:
    if asked:
        print(f"zhat {__version__}")
        raise typer.Exit


@app.callback()
def _zhat(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """The entry point of the `zhat` command."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not stream.isatty() and os.name == "posix":
            stream.flush()
            raw = io.BufferedWriter(_Pipe(stream.fileno(), "w", closefd=False))
            line = name == "stderr"
            setattr(sys, name, io.TextIOWrapper(raw, stream.encoding, "replace", line_buffering=line))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ± or boxes shows question marks, not a traceback
    try:
        app()
    except KeyboardInterrupt:  # a second one, or one while rooms are loaded
        complain("zhat: interrupted")
        sys.exit(130)
