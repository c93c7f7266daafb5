"""What a terminal shows while work is under way: a bar with the time left, a table that grows row by row."""

from __future__ import annotations

import time
from itertools import groupby
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from zhat.results import FamilyResult, RowResult, SweepResult, TableResult


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


class Growing:
    """A table of published and measured scores that grows while rows are trained.

    On a terminal it is drawn anew as it grows; elsewhere one line is printed for each finished row.

    Args:
        title: of the table.
        steps: training steps of each row that will be run, references included, by name.
        console: where to draw.
    """

    def __init__(self, title: str, steps: dict[str, int], *, console: Console) -> None:
        self.title, self.steps, self.console = title, steps, console
        self.started = time.monotonic()
        self.now = ""
        self.trained = 0  # steps of this process in rows that are done
        self.current: tuple[str, int, int, float] | None = None
        self.result: TableResult | SweepResult | FamilyResult | None = None
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

    def _leave(self, current: tuple[str, int, int, float]) -> None:
        self.trained += current[1]
        self.finished.add(current[0])

    def grown(self, result: TableResult | SweepResult | FamilyResult) -> None:
        """A row is finished."""
        before = set() if self.result is None else {r.name for r in self.result.rows}
        self.result = result
        self.finished |= {r.name for r in result.rows}
        if not self.console.is_terminal:
            for row in result.rows:
                if row.name not in before:
                    said = f"{row.learned} {row.learned.verdict}" if isinstance(row, RowResult) else "finished"
                    self.console.print(f"{row.name}: {said} ({row.seconds:.0f} s)", highlight=False)

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
        line = self.title
        if self.current is not None:
            name, done, steps, loss = self.current
            line = f"{name}: step {done:,} of {steps:,}, loss {loss:.4g}"
        line += f" · {clock(time.monotonic() - self.started)} so far"
        left = self._left()
        parts.append(Text(line + (f", about {clock(left)} left" if left is not None else "")))
        return Group(*parts)


def clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _place(x: float) -> str:
    """A value on an axis, whole where it is large."""
    return f"{x:.3g}" if abs(x) < 1000 else f"{x:,.0f}"


_COLOURS = {"reproduced": "green", "exceeded": "green", "missed": "red"}


def compared(result: TableResult | SweepResult | FamilyResult) -> Table:
    """Published and measured side by side, within 80 columns."""
    if isinstance(result, FamilyResult):
        return _agreed(result)
    table = Table(title=f"{result.paper}, {result.label}: {result.score} in percent, budget {result.budget}")
    is_table = isinstance(result, TableResult)
    names = (
        ["row", "published", "ours", "diff", "held out", "verdict"] if is_table else ["point", "x", "ours", "held out"]
    )
    for name in (*names, "time"):
        table.add_column(name, justify="left" if name in ("row", "point", "verdict") else "right", no_wrap=True)
    for i, row in enumerate(result.rows):
        ours, published = row.learned, row.learned.published
        held_out = f"{sum(ours.held_out) / len(ours.held_out):.2f}"
        if isinstance(result, TableResult):
            difference = f"{ours.mean - published.mean:+.2f}" if published else ""
            colour = _COLOURS.get(ours.verdict, "none")
            verdict = f"[{colour}]{ours.verdict}[/{colour}]"
            middle = [str(published or ""), str(ours), difference, held_out, verdict]
        else:
            middle = [_place(result.x[i]), str(ours), held_out]
        table.add_row(row.name, *middle, clock(row.seconds))
    return table


def _agreed(result: FamilyResult) -> Table:
    """How alike the models of a family are; the models themselves while they are not all finished."""
    table = Table(title=f"{result.paper}, {result.label}: {result.score}, budget {result.budget}")
    for name in ("of", "what", "ours", "chance") if result.agreements else ("model", "held-out loss", "time"):
        table.add_column(name, justify="left" if name in ("of", "what", "model") else "right")
    for _, group in groupby(result.agreements, lambda a: a.group):
        found = list(group)
        for a in found[:: 4 if len(found) > 6 else 1]:  # of many layers every fourth
            table.add_row(a.group, a.name, f"{a.mean:.3f}", f"{a.chance:.3f}")
    if not result.agreements:
        for model in result.rows:
            table.add_row(model.name, "" if model.loss is None else f"{model.loss:.3f}", clock(model.seconds))
    return table
