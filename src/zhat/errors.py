"""The exceptions of zhat, as a tree.

```
ZhatError
├── BadInput (ValueError)        a user's mistake: the command line ends with exit code 2
│   ├── TooFewRows               not enough rows for what was asked; `needed` says how many
│   ├── UnknownName              a name that is not in the list; `known` holds the list
│   ├── NothingFinished          no finished run where nothing is to be trained
│   ├── MissingData              recorded data that is not there; `wanted` says which
│   └── CorruptRun               a run folder that does not hold what it promises
├── MissingExtra (ImportError)   an optional dependency is not installed; exit code 2
└── RunFailed (RuntimeError)     a computation that started well and failed: exit code 1
    └── Diverged                 a loss that is no longer a number
```

A message has three parts: what was expected, what came, what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class ZhatError(Exception):
    """Everything zhat raises on purpose and a caller may want to catch. It may come from another process."""

    def __reduce__(self) -> tuple[Any, ...]:
        """The message and what else it holds: constructors that take other arguments need not be called again."""
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[ZhatError], args: tuple[Any, ...], held: dict[str, Any]) -> ZhatError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(held)
    return error


class BadInput(ZhatError, ValueError):
    """An argument, a file or a name that cannot be used as given."""


class TooFewRows(BadInput):
    """Fewer rows than the question needs; the answer would be noise."""

    def __init__(self, message: str, *, needed: int) -> None:
        super().__init__(message)
        self.needed = needed


class UnknownName(BadInput):
    """A name that is not among the known ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.known = tuple(known)
        super().__init__(f"there is no {kind} named {name!r}. Known: {', '.join(self.known) or 'none'}.")


class NothingFinished(BadInput):
    """A folder that holds no finished run of what was asked for, where nothing is to be trained."""


class MissingData(BadInput):
    """Recorded data that is not in the given folder; `wanted` names it, and where it is published."""

    def __init__(self, message: str, *, wanted: str) -> None:
        super().__init__(message)
        self.wanted = wanted


class CorruptRun(BadInput):
    """A run folder whose files are missing, damaged or contradict each other."""


class MissingExtra(ZhatError, ImportError):
    """An optional dependency that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs `{package}`. Install it with: pip install 'zhat[{extra}]'.")


class RunFailed(ZhatError, RuntimeError):
    """A computation that could not be finished."""


class Diverged(RunFailed):
    """A training run whose loss is no longer a finite number."""
