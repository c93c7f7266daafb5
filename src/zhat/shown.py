"""What every result can do: show itself in a notebook, be drawn, become a data frame, and print within a screen.

Results lie below the rooms that render them, and know no renderer. They ask `renderer`, and the package's own
`__init__`, which stands above all rooms, says there which one answers: `zhat.report`, imported when it is first asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Protocol

from zhat.errors import BadInput, MissingExtra

WIDEST = 60  # letters of one field in a repr
MOST = 4  # members of a tuple in a repr


class Renderer(Protocol):
    """What turns results into pictures."""

    def html(self, result: Any) -> str:
        """A result as part of a page."""

    def draw(self, result: Any, ax: Any) -> Any:
        """A result drawn on axes of matplotlib."""


def _nobody() -> Renderer:
    raise BadInput("nothing renders results here: they were imported without the package zhat around them.")


renderer: Callable[[], Renderer] = _nobody
"""Who renders results; set once, by the package itself."""


class Brief:
    """A dataclass whose repr fits a screen, however much it holds."""

    def __repr__(self) -> str:
        return _brief(self, 1)


class Shown(Brief):
    """A result: it has a table, and notebooks show it as our pages do."""

    def to_frame(self) -> Any:
        """The numbers as a data frame of pandas, one line for each row of the table."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("pandas", "frames", "to_frame") from None
        return pd.DataFrame(list(self._lines()))

    def _lines(self) -> Iterable[Mapping[str, Any]]:
        """The lines of the table, each a value by the name of its column."""
        raise NotImplementedError(f"{type(self).__name__} has no table")

    def _result(self) -> Any:
        """The plain data that is rendered."""
        return self

    def _repr_html_(self) -> str:
        return renderer().html(self._result())


class Drawn(Shown):
    """A result that has a picture."""

    def plot(self, ax: Any = None) -> Any:
        """Draw it with matplotlib; returns the axes.

        Args:
            ax: axes to draw on; None makes a figure.
        """
        return renderer().draw(self._result(), ax)


def _brief(value: Any, depth: int) -> str:
    """A value in some words: fields that differ from their defaults, and long values by their size."""
    if isinstance(value, Brief):
        if depth == 0:
            return f"{type(value).__name__}(…)"
        every: Any = fields(value)  # type: ignore[arg-type]
        told = ((f.name, getattr(value, f.name)) for f in every if not _default(f, getattr(value, f.name)))
        return f"{type(value).__name__}({', '.join(f'{name}={_brief(part, depth - 1)}' for name, part in told)})"
    if isinstance(value, tuple | list):
        many = len(value) > MOST
        inside = ", ".join(_brief(each, 0) for each in (value[: MOST - 1] if many else value))
        whole = f"({inside}, … {len(value)} in all)" if many else f"({inside}{',' if len(value) == 1 else ''})"
        return whole if len(whole) <= 2 * WIDEST else f"({len(value)} in all)"
    if isinstance(value, Mapping):
        return f"{{{', '.join(map(str, value))}}}" if len(value) <= 2 * MOST else f"{{{len(value)} entries}}"
    text = repr(value)
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _default(field: Any, value: Any) -> bool:
    if field.default is not MISSING:
        return bool(value == field.default)
    return field.default_factory is not MISSING and bool(value == field.default_factory())
