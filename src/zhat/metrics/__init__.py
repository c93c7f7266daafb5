"""The judge: arrays in, scores out. Nothing here knows a model or a dataset."""

from zhat.metrics.agreement import Agreement, pearson, r2, spearman
from zhat.metrics.alignment import ALIGNABLE, Alignment, align
from zhat.metrics.decoding import Factor
from zhat.metrics.disentanglement import dci, mig, sap
from zhat.metrics.divergence import divergence
from zhat.metrics.measure import Measure
from zhat.metrics.moments import Moments
from zhat.metrics.padded import Padded
from zhat.metrics.recovery import (
    Recovery,
    distance_from_orthogonal,
    linear_r2,
    mcc,
    profile,
    singular_values,
)
from zhat.metrics.refits import consistency
from zhat.metrics.similarity import CCA, CKA, PWCCA, SVCCA, Procrustes, Similarity, linear_r2_both_ways, similarities

__all__ = [
    "Measure",
    "Moments",
    "ALIGNABLE",
    "Alignment",
    "align",
    "Agreement",
    "r2",
    "pearson",
    "spearman",
    "Recovery",
    "Padded",
    "linear_r2",
    "mcc",
    "profile",
    "singular_values",
    "distance_from_orthogonal",
    "Similarity",
    "CCA",
    "SVCCA",
    "PWCCA",
    "CKA",
    "Procrustes",
    "similarities",
    "linear_r2_both_ways",
    "consistency",
    "divergence",
    "Factor",
    "dci",
    "mig",
    "sap",
]
