"""Plain data: what was predicted, measured and recorded. JSON there and back.

Nothing here computes or draws. A result written with `to_json` and read with `from_json` is equal to itself.
"""

from zhat.results.audits import (
    VERDICTS,
    AuditMatrix,
    AuditResult,
    Consistency,
    DecodeResult,
    Disentanglement,
    FactorScore,
    LayerAudit,
    letter,
)
from zhat.results.papers import (
    POINTS,
    Absent,
    Agreement,
    Axis,
    Decoding,
    Judged,
    Judgement,
    Measured,
    PartResult,
    Published,
    RowResult,
    Target,
    WordMap,
)
from zhat.results.plain import from_json, to_json
from zhat.results.runs import Across, Counts, Curve, Picture, Record, Sides, across
from zhat.results.scores import Profile, Score, describe
from zhat.results.theory import Answer, Diversity, ExponentFit, HeadCheck, ModelPair, Prediction, Spread, Truth

__all__ = [
    "describe",
    "Score",
    "Profile",
    "Truth",
    "Answer",
    "Prediction",
    "Spread",
    "HeadCheck",
    "Diversity",
    "ModelPair",
    "ExponentFit",
    "Curve",
    "Picture",
    "Sides",
    "Counts",
    "Record",
    "Across",
    "across",
    "Published",
    "Measured",
    "POINTS",
    "RowResult",
    "Axis",
    "Absent",
    "Agreement",
    "WordMap",
    "Target",
    "Decoding",
    "Judged",
    "Judgement",
    "PartResult",
    "AuditResult",
    "letter",
    "VERDICTS",
    "AuditMatrix",
    "LayerAudit",
    "FactorScore",
    "DecodeResult",
    "Disentanglement",
    "Consistency",
    "to_json",
    "from_json",
]
