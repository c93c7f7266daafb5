"""What must be made anew for each seed: a call that has not happened yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Fresh:
    """`Fresh(mlp, 10, 10)` calls `mlp(10, 10)` each time it is called.

    Like `functools.partial`, but two equal ones compare equal and print as written, so a setting that holds one can
    be compared, hashed and printed.

    Example:
        >>> Fresh(dict, a=1)
        Fresh(dict, a=1)
        >>> Fresh(dict, a=1)() == {"a": 1} and Fresh(dict, a=1) == Fresh(dict, a=1)
        True
    """

    def __init__(self, make: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        self.make, self.args, self.kwargs = make, args, tuple(kwargs.items())

    def __call__(self) -> Any:
        """Make one."""
        return self.make(*self.args, **dict(self.kwargs))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fresh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.make, self.args, tuple(sorted(self.kwargs))

    def __repr__(self) -> str:
        arguments = [repr(arg) for arg in self.args] + [f"{key}={value!r}" for key, value in self.kwargs]
        return f"Fresh({', '.join([self.make.__qualname__, *arguments])})"
