"""The theorems: what each asks for and what it concludes. Data; the questions are in conditions.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from zhat.dgp import Sphere
from zhat.equivalence import AFFINE, ORTHOGONAL, SCALED_PERMUTATION, Equivalence
from zhat.results import Answer
from zhat.theory import conditions as c
from zhat.theory.conditions import Setting


@dataclass(frozen=True)
class Theorem:
    """A statement that latents are identified.

    Attributes:
        name: as the paper calls it.
        cite: key of the paper.
        speaks_of: whether the theorem is about an objective at all.
        conditions: questions about a setting.
        conclusion: the class up to which latents are identified when every answer is yes.
        shift: whether the conclusion leaves an offset free.
        scale: the predicted ratio |h| / |z|, where the theorem fixes it.
        notes: what a reader should know besides.
    """

    name: str
    cite: str
    speaks_of: Callable[[Any], bool]
    conditions: tuple[Callable[[Setting], Answer], ...]
    conclusion: Equivalence
    shift: bool
    scale: Callable[[Setting], float | None]
    notes: tuple[str, ...] = ()


_LIMIT = "the theorem speaks of the minimum of the loss in the limit of many negatives; training stops before either"


def _sphere_scale(setting: Setting) -> float | None:
    radius, space = c.predicted_radius(setting), setting.space
    return radius / space.radius if radius is not None and isinstance(space, Sphere) else None


THEOREM_2 = Theorem(
    name="Theorem 2",
    cite="zimmermann2021",
    speaks_of=c.compares_by_dot,
    conditions=(
        c.latents_on_sphere,
        c.uniform_marginal,
        c.von_mises_fisher_conditional,
        c.injective_mixing,
        c.contrasts_with_marginal,
        c.output_on_matching_sphere,
    ),
    conclusion=ORTHOGONAL,
    shift=False,
    scale=_sphere_scale,
    notes=(_LIMIT,),
)

THEOREM_5 = Theorem(
    name="Theorem 5",
    cite="zimmermann2021",
    speaks_of=lambda objective: c.compares_by_norm(objective) and objective.similarity.p == 2,
    conditions=(
        c.latents_in_convex_body,
        c.uniform_marginal,
        c.conditional_matches_similarity,
        c.injective_mixing,
        c.contrasts_with_marginal,
        c.output_in_matching_box,
    ),
    conclusion=AFFINE,
    shift=True,
    scale=c.predicted_stretch,
    notes=(
        _LIMIT,
        "with p = 2 Euclidean distances are preserved up to the scale, so the affine map is a rotation and a shift; "
        "a box as output space leaves only those rotations that map a box onto a box",
    ),
)

THEOREM_6 = Theorem(
    name="Theorem 6",
    cite="zimmermann2021",
    speaks_of=lambda objective: c.compares_by_norm(objective) and objective.similarity.p != 2,
    conditions=THEOREM_5.conditions,
    conclusion=SCALED_PERMUTATION,
    shift=True,
    scale=c.predicted_stretch,
    notes=(_LIMIT,),
)

THEOREMS: tuple[Theorem, ...] = (THEOREM_2, THEOREM_5, THEOREM_6)
