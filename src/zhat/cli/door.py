"""The door itself: one application, one way to turn mistakes into sentences and exit codes."""

from __future__ import annotations

import functools
import io
import os
import sys
import textwrap
from collections.abc import Callable, Iterable
from typing import Annotated, Any, ParamSpec

import rich.console
import typer
from rich.segment import Segment
from typer.core import TyperCommand, TyperGroup

from zhat._files import printable
from zhat._version import __version__
from zhat.errors import BadInput, MissingExtra, RunFailed

P = ParamSpec("P")


class Console(rich.console.Console):
    """A console that shows text and runs none of it."""

    def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
        """The pieces of something, cleaned."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(printable(piece.text), piece.style)


class _Command(TyperCommand):
    """A command whose help is plain text: paragraphs filled to the width, and a name for what each option takes."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What stands behind the command's name in the line of its usage."""
        arguments = [p for p in self.get_params(ctx) if p.param_type_name == "argument"]
        return ["[OPTIONS]", *(_written(p) if p.required else f"[{_written(p)}]" for p in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments, then the options, each with what it means."""
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            shown = [p for p in self.get_params(ctx) if p.param_type_name == kind]
            records = [(_written(p), record[1]) for p in shown if (record := p.get_help_record(ctx)) is not None]
            if records:
                formatter.write(f"\n{title}:\n{beside(records, formatter.width)}\n")


def beside(records: list[tuple[str, str]], width: int, widest: int = 26) -> str:
    """Names, and beside them what they mean; a word, the name of an option for instance, is never broken."""
    indent = 4 + min(max(len(name) for name, _ in records), widest)
    lines = []
    for name, said in records:
        filled = textwrap.wrap(said, max(20, width - indent), break_on_hyphens=False, break_long_words=False) or [""]
        head = f"  {name}"
        lines += [head] if len(head) > indent - 2 else [head.ljust(indent) + filled.pop(0)]
        lines += [" " * indent + line for line in filled]
    return "\n".join(line.rstrip() for line in lines)


def _written(param: Any) -> str:
    """An argument or an option as one types it: `PAPER`, `--seeds SEEDS`, `--train / --no-train`."""
    if param.param_type_name == "argument":
        return str(param.metavar or param.name.upper())
    names = [", ".join(opts) for opts in (param.opts, param.secondary_opts) if opts]
    if param.is_flag:
        return " / ".join(names)
    longest = max(param.opts, key=len).lstrip("-").replace("-", "_")
    return f"{names[0]} {param.metavar or longest.upper()}"


class _Group(TyperGroup):
    """Commands with whole sentences about them, which refuse an empty word: it would be read as the present folder."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "" in args:
            ctx.fail("an empty word came among the arguments. Is a variable of the shell not set?")
        return super().parse_args(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; its first sentence is what the list of commands says, whatever its length."""
        command = super().get_command(ctx, cmd_name)
        if command is not None and not command.short_help:
            command.short_help = " ".join((command.help or "").split("\n\n")[0].split())
        return command


class _App(typer.Typer):
    """An application all of whose commands help in the same way."""

    def command(  # type: ignore[override]
        self, name: str | None = None, **how: Any
    ) -> Callable[[Callable[P, None]], Callable[P, None]]:
        """Add a command."""
        return super().command(name, cls=_Command, **how)


app = _App(
    name="zhat",
    cls=_Group,
    help="Identifiable representation learning: did the model recover the latents behind the data?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


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
        app(prog_name="zhat")
    except KeyboardInterrupt:  # a second one, or one while rooms are loaded
        complain("zhat: interrupted")
        sys.exit(130)
