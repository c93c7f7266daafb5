"""What must be made anew for each seed, and how settings are told apart: by what they say, not where they lie.

`describe` says a setting as text; `reading` makes the setting of the text again, from an allow-list of names.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType
from typing import Any, ParamSpec, TypeVar

from zhat.errors import BadInput

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")
LONGEST = 20_000  # letters of a setting that is read


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


def remembered(make: Callable[Arguments, Made]) -> Callable[Arguments, Made]:
    """A builder whose product knows the call that made it, as its member `made`."""

    @functools.wraps(make)
    def build(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Made:
        product = make(*args, **kwargs)
        product.made = Fresh(build, *args, **kwargs)  # type: ignore[attr-defined]
        return product

    return build


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


def reading(text: str, known: Mapping[str, Callable[..., Any]]) -> Any:
    """The setting that `describe` said: calls of known names, and plain values.

    Nothing is evaluated. The text is parsed, and a name that is not known, an attribute, an operator or any other part
    of Python that is no plain value is refused.

    Args:
        text: such as "Fresh(mlp, 10, 10)".
        known: what may be called, by name; `Fresh` is.

    Example:
        >>> reading("Fresh(dict, a=(1, -2.5))", {"dict": dict})()
        {'a': (1, -2.5)}
    """
    if len(text) > LONGEST:
        raise BadInput(f"a setting has at most {LONGEST:,} letters, but {len(text):,} came.")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, known)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise BadInput(f"{_start(text)} is not a setting that zhat wrote ({type(error).__name__}).") from None


def _value(node: ast.expr, known: Mapping[str, Callable[..., Any]]) -> Any:
    """What a parsed expression stands for."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float | str | None):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _value(node.operand, known)
        if isinstance(number, int | float):
            return -number
    if isinstance(node, ast.Tuple | ast.List):
        values = [_value(each, known) for each in node.elts]
        return tuple(values) if isinstance(node, ast.Tuple) else values
    if isinstance(node, ast.Dict) and None not in node.keys:
        keys = [_value(key, known) for key in node.keys if key is not None]
        return dict(zip(keys, (_value(each, known) for each in node.values), strict=True))
    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and all(word.arg for word in node.keywords):
        name = node.func.id
        if name != "Fresh" and name not in known:
            raise BadInput(f"{name} is not a name that zhat builds from. Known: {', '.join(known)}.")
        args = [_value(each, known) for each in node.args]
        words = {word.arg: _value(word.value, known) for word in node.keywords if word.arg is not None}
        try:
            return Fresh(*args, **words) if name == "Fresh" else known[name](*args, **words)
        except (TypeError, ValueError) as error:
            raise BadInput(f"{_start(ast.unparse(node))} cannot be made: {error}") from None
    raise BadInput(f"{_start(ast.unparse(node))} is neither a plain value nor a call that zhat knows.")


def _start(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
