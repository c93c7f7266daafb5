"""The audit: two matrices of embeddings in, a verdict and a map out.

`audit(a, b)` says up to which class of maps `b` is `a`, by held-out fits with intervals and chance levels, or that
these rows cannot tell; `audit_all` says it of every ordered pair of several. `examine` keeps the maps besides; an
`Adapter` carries old embeddings into the new space. `decode(h, factors)` says which known factors of the rows a
matrix of embeddings holds.
"""

from zhat.audit.adapter import Adapter, adapt, read_adapter
from zhat.audit.decoded import decode
from zhat.audit.gate import Gate, read_gate
from zhat.audit.matrix import audit_all, examine_all, gathered
from zhat.audit.models import audit_models
from zhat.audit.reading import Embeddings, embeddings, joined
from zhat.audit.verdict import Examined, audit, examine

__all__ = [
    "audit",
    "examine",
    "audit_all",
    "examine_all",
    "gathered",
    "audit_models",
    "Examined",
    "Embeddings",
    "embeddings",
    "joined",
    "Adapter",
    "adapt",
    "read_adapter",
    "Gate",
    "read_gate",
    "decode",
]
