"""A bar with the time left, for `train(progress=…)`: the only thing in the package that draws while it works."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


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
