"""Theory: theorems, their conditions, and the prediction for a given setting."""

from zhat.theory.diversity import compare_models, diversity
from zhat.theory.examine import examine
from zhat.theory.heads import check_head
from zhat.theory.minimum import injectivity, minimum
from zhat.theory.predict import predict
from zhat.theory.theorems import THEOREMS, Theorem
from zhat.theory.transitions import fit_exponent

__all__ = [
    "predict",
    "check_head",
    "diversity",
    "compare_models",
    "fit_exponent",
    "examine",
    "minimum",
    "injectivity",
    "Theorem",
    "THEOREMS",
]
