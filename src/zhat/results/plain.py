"""Results as JSON text and back: a result that was written and read is equal to itself."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from zhat.equivalence import Equivalence
from zhat.errors import BadInput
from zhat.results import audits, papers, runs, scores, theory

_KINDS: dict[str, type] = {
    kind.__name__: kind
    for room in (scores, theory, runs, papers, audits)
    for kind in vars(room).values()
    if isinstance(kind, type) and is_dataclass(kind)
}


def to_json(result: Any) -> str:
    """A result as JSON text; every object says its kind."""
    return json.dumps(_encode(result), indent=1, ensure_ascii=False, allow_nan=False)


def from_json(text: str) -> Any:
    """The result that `to_json` wrote."""
    try:
        return _decode(json.loads(text))
    except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise BadInput(f"this is not a result written by zhat: {error}") from error


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
    if isinstance(value, list):
        return tuple(_decode(item) for item in value)
    if not isinstance(value, dict):
        return value
    kind = value.get("kind") if isinstance(value.get("kind"), str) else None  # a mapping may have such a key, too
    if kind == "Equivalence":
        return Equivalence[value["name"]]
    if kind in _KINDS:
        return _KINDS[kind](**{key: _decode(item) for key, item in value.items() if key != "kind"})
    return {key: _decode(item) for key, item in value.items()}
