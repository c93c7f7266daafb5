"""Results as JSON text and back: a result that was written and read is equal to itself.

Reading trusts nothing: every field is compared with its annotation, numbers must be finite, and what a result says of
itself twice (how many seeds, how many curves) must agree. Whatever does not fit is one sentence.
"""

from __future__ import annotations

import functools
import json
import math
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from zhat.equivalence import Equivalence
from zhat.errors import BadInput
from zhat.results import audits, examined, papers, runs, scores, theory

Kind = TypeVar("Kind")

_KINDS: dict[str, type] = {
    kind.__name__: kind
    for room in (scores, theory, examined, runs, papers, audits)
    for kind in vars(room).values()
    if isinstance(kind, type) and is_dataclass(kind)
}


def to_json(result: Any) -> str:
    """A result as JSON text; every object says its kind."""
    text = json.dumps(_encode(result), indent=1, ensure_ascii=False, allow_nan=False)
    return "".join(f"\\u{ord(c):04x}" if "\x7f" <= c <= "\x9f" else c for c in text) if _CONTROLS & set(text) else text


_CONTROLS = {
    chr(c) for c in range(0x7F, 0xA0)
}  # what a terminal may take for a command; JSON escapes the others itself


def from_json(text: str) -> Any:
    """The result that `to_json` wrote."""
    try:
        return _decode(json.loads(text, parse_constant=_refused, parse_float=_finite))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"this is not a result written by zhat: {error}") from error


def made(kind: type[Kind], **values: Any) -> Kind:
    """An object of that kind, if every value is what its field is said to be.

    Example:
        >>> made(scores.Profile, scores=())
        Profile(scores=())
    """
    hints = _hints(kind.__name__)
    for name, value in values.items():
        if name not in hints:
            raise BadInput(f"{kind.__name__} has no field {name!r}")
        if not _fits(value, hints[name]):
            raise BadInput(f"{name} of {kind.__name__} must be {_said(hints[name])}, but {_short(value)} came")
    return kind(**values)


def _encode(value: Any) -> Any:
    if isinstance(value, Equivalence):
        return {"kind": "Equivalence", "name": value.name}
    if type(value).__name__ in _KINDS:
        return {
            "kind": type(value).__name__,
            **{f.name: _encode(getattr(value, f.name)) for f in fields(value)},
        }
    if isinstance(value, tuple | list):
        return [_encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        raise BadInput(f"a result must not hold {value}; a failed computation has no score.")
    return value


def _decode(value: Any) -> Any:
    if isinstance(value, str):
        value.encode()  # half of a surrogate pair is no text
        return value
    if isinstance(value, list):
        return tuple(_decode(item) for item in value)
    if not isinstance(value, dict):
        return value
    kind = value.get("kind") if isinstance(value.get("kind"), str) else None  # a mapping may have such a key, too
    if kind == "Equivalence":
        return Equivalence[value["name"]]
    if kind in _KINDS:
        return made(_KINDS[kind], **{_decode(key): _decode(item) for key, item in value.items() if key != "kind"})
    return {_decode(key): _decode(item) for key, item in value.items()}


def _refused(word: str) -> float:
    raise ValueError(f"{word} is no number")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refused(digits)


@functools.cache
def _hints(kind: str) -> dict[str, Any]:
    return get_type_hints(_KINDS[kind])


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what an annotation says."""
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(_fits(value, each) for each in inside)
    if origin is Literal:
        return isinstance(value, str) and value in inside
    if origin is tuple and inside[-1] is Ellipsis:
        return isinstance(value, tuple) and all(_fits(each, inside[0]) for each in value)
    if origin is tuple:
        return isinstance(value, tuple) and len(value) == len(inside) and all(map(_fits, value, inside))
    if origin is not None and issubclass(origin, Mapping):
        pairs = value.items() if isinstance(value, Mapping) else ()
        return isinstance(value, Mapping) and all(isinstance(k, str) and _fits(v, inside[1]) for k, v in pairs)
    if hint in (int, float):
        number = isinstance(value, int if hint is int else int | float) and not isinstance(value, bool)
        return number and -1e308 <= value <= 1e308
    return value is None if hint is type(None) else isinstance(value, hint)


def _said(hint: Any) -> str:
    """An annotation in the words of Python, without the names of our rooms."""
    if isinstance(hint, type) and not get_args(hint):
        return hint.__name__
    return str(hint).replace("typing.", "").replace("collections.abc.", "").replace("zhat.results.", "")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
