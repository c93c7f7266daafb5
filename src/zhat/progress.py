"""What a terminal shows while work is under way: a bar with the time left, a table that grows row by row."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from zhat.results import Measured, PartResult


class Progress:
    """A progress bar that training can call.

    Example:
        with zhat.Progress("training") as progress:
            zhat.train(encoder, world, objective, steps=2000, progress=progress)
    """

    def __init__(self, title: str, *, console: Console | None = None) -> None:
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console or Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(title, total=None, loss="")

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def __call__(self, done: int, steps: int, loss: float) -> None:
        """Show that `done` of `steps` steps are behind us."""
        self._bar.update(self._task, completed=done, total=steps, loss=f"{loss:.4g}")


EVERY = 30.0
"""Seconds between lines about a training where there is no terminal."""


class Growing:
    """A table of published and measured scores that grows while rows are trained.

    On a terminal it is drawn anew as it grows; elsewhere one line is printed for each finished row, and while a row is
    trained one every half minute.

    Args:
        title: of the table.
        steps: training steps of each row that will be run, references included, by name.
        console: where to draw.
    """

    def __init__(self, title: str, steps: dict[str, int], *, console: Console) -> None:
        self.title, self.steps, self.console = title, steps, console
        self.started = time.monotonic()
        self.said = self.started  # when the last line was printed, without a terminal
        self.trained = 0  # steps of this process in rows that are done
        self.current: tuple[str, int, int, float] | None = None
        self.result: PartResult | None = None
        self.finished: set[str] = set()
        self.live = Live(console=console, refresh_per_second=4, transient=True, get_renderable=self._drawn)

    def __enter__(self) -> Growing:
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:
            self.live.stop()

    def training(self, name: str, done: int, steps: int, loss: float) -> None:
        """A row is being trained."""
        if self.current is not None and self.current[0] != name:
            self._leave(self.current)
        self.current = (name, done, steps, loss)
        if not self.console.is_terminal and time.monotonic() - self.said >= EVERY:
            self._print(self._line())

    def _print(self, line: str) -> None:
        self.console.print(line, highlight=False, soft_wrap=True)
        self.said = time.monotonic()

    def _leave(self, current: tuple[str, int, int, float]) -> None:
        self.trained += current[1]
        self.finished.add(current[0])

    def grown(self, result: PartResult) -> None:
        """A row is finished."""
        before = set() if self.result is None else {r.name for r in self.result.rows}
        self.result = result
        self.finished |= {r.name for r in result.rows}
        if not self.console.is_terminal:
            for row in result.rows:
                if row.name not in before:
                    said = "finished" if row.learned is None else f"{row.learned} {row.learned.verdict}".strip()
                    self._print(f"{row.name}: {said} ({row.seconds:.0f} s)")

    def _left(self) -> float | None:
        """Seconds until everything is done, at the pace so far."""
        if self.current is None:
            return None
        name, done, steps, _ = self.current
        worked = self.trained + done
        waiting = sum(n for row, n in self.steps.items() if row not in self.finished and row != name)
        elapsed = time.monotonic() - self.started
        return elapsed / worked * (steps - done + waiting) if worked else None

    def _drawn(self) -> Group:
        parts: list[Table | Text] = []
        if self.result is not None:
            parts.append(compared(self.result))
        return Group(*parts, Text(self._line()))

    def _line(self) -> str:
        """What is trained, since when, and how long it will take."""
        line = self.title
        if self.current is not None:
            name, done, steps, loss = self.current
            line = f"{name}: step {done:,} of {steps:,}, loss {loss:.4g}"
        line += f" · {clock(time.monotonic() - self.started)} so far"
        left = self._left()
        return line + (f", about {clock(left)} left" if left is not None else "")


def clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def spoken(seconds: float) -> str:
    """Seconds as one would say them.

    Example:
        >>> [spoken(s) for s in (20, 200, 7000, 400_000)]
        ['20 s', '3 min', '1.9 h', '111 h']
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.{0 if seconds >= 36_000 else 1}f} h"


def _place(x: float) -> str:
    """A value on an axis, whole where it is large."""
    return f"{x:.3g}" if abs(x) < 1000 else f"{x:,.0f}"


_COLOURS = {"reproduced": "green", "exceeded": "green", "missed": "red", "shown": "green", "not shown": "red"}


def compared(result: PartResult) -> Table:
    """Published and measured side by side, within 80 columns; of models, how alike they are."""
    found = result.judgement.agreements
    unit = " in percent" if result.judgement.decoded or any(row.learned for row in result.rows) else ""
    title = f"{result.paper}, {result.label}: {result.score}{unit}, budget {result.budget}"
    if found:
        shown = [a for a in found if a.shown]
        columns = {
            "of": [a.group for a in shown],
            "what": [a.what for a in shown],
            "ours": [f"{a.mean:.3f}" for a in shown],
            "chance": [f"{a.chance:.3f}" for a in shown],
        }
    elif result.judgement.decoded:
        columns = _decoded(result)
    else:
        columns = _columns(result)
    table = Table(title=title)
    for name, cells in columns.items():
        if any(cells):
            left = name in ("row", "verdict", "of", "what", "target")
            table.add_column(name, justify="left" if left else "right", no_wrap=name not in ("of", "what"))
    for line in zip(*(cells for cells in columns.values() if any(cells)), strict=True):
        table.add_row(*line)
    return table


def _decoded(result: PartResult) -> dict[str, list[str]]:
    """One line for each target: held-out scores with a star where found, and what would be found."""
    found = {(d.target, d.model): d for d in result.judgement.decoded}
    targets = result.judgement.targets

    def cells(model: str) -> list[str]:
        each = (found[t.name, model] for t in targets)
        return [f"{d.measured.held_out_mean:.1f}{'*' if d.found else ' '}" for d in each]

    return {
        "target": [t.name for t in targets],
        **{row.name: cells(row.name) for row in result.rows},
        "at 80%": ["never" if t.needed is None else f"{t.needed:.1f}" for t in targets],
    }


def _difference(ours: Measured) -> str:
    """How far ours is from the published mean, where that is what ours is judged by."""
    return f"{ours.mean - ours.published.mean:+.2f}" if ours.published and not ours.bar else ""


def _columns(result: PartResult) -> dict[str, list[str]]:
    """The cells of every row by the name of their column; a column without content is left out."""
    axis, rows = result.judgement.axis, result.rows

    def of(cell: Callable[[Measured], str]) -> list[str]:
        return ["" if row.learned is None else cell(row.learned) for row in rows]

    def verdict(ours: Measured) -> str:
        colour = _COLOURS.get(ours.verdict)
        return f"[{colour}]{ours.verdict}[/{colour}]" if colour else ""

    readings = dict.fromkeys(name for row in rows if row.learned is None for name in row.readings)
    return {
        "row": [row.name for row in rows],
        "x": [] if axis is None else [_place(x) for x in axis.values],
        "published": of(lambda ours: str(ours.published or "")),
        "ours": of(str),
        "bar": of(lambda ours: str(ours.bar or "")),
        "diff": of(lambda ours: _difference(ours) if not axis else ""),
        "held out": of(lambda ours: f"{ours.held_out_mean:.2f}"),
        "verdict": of(verdict),
        **{name: [str(row.readings.get(name, "")) for row in rows] for name in readings},
        "time": [clock(row.seconds) for row in rows],
    }
