"""The door itself: one application, one way to turn mistakes into sentences and exit codes."""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Callable
from typing import Annotated, ParamSpec

import typer

from zhat._version import __version__
from zhat.errors import BadInput, MissingExtra, RunFailed

app = typer.Typer(
    name="zhat",
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
        except OSError as error:
            complain(f"zhat: {error.strerror or error}: {error.filename or 'a file'}")
            raise typer.Exit(2) from None
        except KeyboardInterrupt as interruption:
            complain(f"zhat: interrupted; {interruption}" if str(interruption) else "zhat: interrupted")
            raise typer.Exit(130) from None

    return wrapped


def complain(sentence: str) -> None:
    """Say it where errors are said."""
    print(sentence, file=sys.stderr)


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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ± or boxes shows question marks, not a traceback
    app()
