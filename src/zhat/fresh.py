"""Objects that are built again for each seed, and the comparison of settings by content instead of by identity."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from types import CodeType, FunctionType
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
        arguments = [describe(arg) for arg in self.args] + [f"{key}={describe(value)}" for key, value in self.kwargs]
        return f"Fresh({', '.join([describe(self.make), *arguments])})"


def describe(thing: Any) -> str:
    """The repr of a setting, the same in every process.

    Functions are named by what they are called; one that has no name of its own (a lambda, or a function inside
    another) carries a digest of its code and of what it closes over, so that two are never taken for one.

    Example:
        >>> describe(lambda h: h.mean()) == describe(lambda h: h.sum())
        False
    """
    if isinstance(thing, FunctionType):
        if "<" not in thing.__qualname__:
            return thing.__qualname__
        closed = [describe(cell.cell_contents) for cell in thing.__closure__ or ()]
        said = repr((_code(thing.__code__), closed, thing.__defaults__))
        return f"{thing.__name__}#{hashlib.sha256(said.encode()).hexdigest()[:8]}"
    if isinstance(thing, type):
        return thing.__qualname__
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(thing))


def _code(code: CodeType) -> tuple[Any, ...]:
    constants = tuple(_code(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts)
    return code.co_code, code.co_names, constants
