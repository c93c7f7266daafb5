"""The audit: two matrices of embeddings in, a verdict and a map out.

`audit(a, b)` says up to which class of maps `b` is `a`, by held-out fits with intervals and chance levels, or that
these rows cannot tell; `audit_all` says it of every ordered pair of several. `examine` keeps the maps besides; an
`Adapter` carries old embeddings into the new space. `decode` is that of `zhat.decoding`.
"""

from importlib import import_module
from typing import Any

from zhat.audit.adapter import Adapter, adapt, read_adapter
from zhat.audit.gate import Gate, read_baseline, read_gate
from zhat.audit.matrix import audit_all, examine_all, gathered
from zhat.audit.models import audit_all_models, audit_models
from zhat.audit.verdict import Examined, audit, examine
from zhat.files import Embeddings, embeddings, joined

__all__ = [
    "audit",
    "examine",
    "audit_all",
    "examine_all",
    "gathered",
    "audit_models",
    "audit_all_models",
    "Examined",
    "Embeddings",
    "embeddings",
    "joined",
    "Adapter",
    "adapt",
    "read_adapter",
    "Gate",
    "read_gate",
    "read_baseline",
    "decode",
]


def __getattr__(name: str) -> Any:
    if name == "decode":  # of a room above this one, under the name it has had here
        return import_module("zhat.decoding").decode
    raise AttributeError(f"module 'zhat.audit' has no attribute {name!r}")
