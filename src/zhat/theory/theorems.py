"""The theorems: what each asks for and what it concludes. Data; the questions are in conditions.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from zhat.dgp import Sphere
from zhat.equivalence import AFFINE, LINEAR, ORTHOGONAL, SCALED_PERMUTATION, SIMILARITY, Equivalence
from zhat.results import Answer
from zhat.theory import conditions as c
from zhat.theory import labelled, models
from zhat.theory.conditions import Setting


@dataclass(frozen=True)
class Theorem:
    """A statement that latents are identified.

    Attributes:
        name: as the paper calls it.
        cite: key of the paper.
        speaks_of: whether the theorem is about such an objective and output at all.
        conditions: questions about a setting.
        conclusion: the class up to which latents are identified when every answer is yes.
        shift: whether the conclusion leaves an offset free.
        scale: the predicted ratio |h| / |z|, where the theorem fixes it.
        notes: what a reader should know besides.
        what: the conclusion in words, before "up to …".
        otherwise: a condition that only the tightness of the conclusion rests on, and what the others give without it.
    """

    name: str
    cite: str
    speaks_of: Callable[[Setting], bool]
    conditions: tuple[Callable[[Setting], Answer], ...]
    conclusion: Equivalence
    shift: bool
    scale: Callable[[Setting], float | None]
    notes: tuple[str, ...] = ()
    what: str = "Latents are recovered"
    otherwise: tuple[Callable[[Setting], Answer], str] | None = None


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
    speaks_of=lambda setting: c.compares_by_norm(setting) and setting.objective.similarity.p == 2,
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
    speaks_of=lambda setting: c.compares_by_norm(setting) and setting.objective.similarity.p != 2,
    conditions=THEOREM_5.conditions,
    conclusion=SCALED_PERMUTATION,
    shift=True,
    scale=c.predicted_stretch,
    notes=(_LIMIT,),
)

# --- reizinger2024: four cases, by what is brought to unit length

_WORLD = (
    labelled.latents_on_unit_sphere,
    c.von_mises_fisher_conditional,
    labelled.vectors_generate_the_space,
    c.injective_mixing,
    labelled.labels_are_uniform,
    labelled.labels_are_true,
    labelled.latents_are_fresh,
    labelled.plain_softmax,
)
_MINIMUM = "the theorem speaks of the minimum of the loss; where classes hardly overlap, training may stop far from it"

CASE_1 = Theorem(
    name="Theorem 1C, case C1",
    cite="reizinger2024",
    speaks_of=partial(labelled.is_case, "C1"),
    conditions=(*_WORLD, labelled.unit_output, labelled.inverse_temperature_fits),
    conclusion=ORTHOGONAL,
    shift=False,
    scale=labelled.unit_scale,
    notes=(_MINIMUM, "rows of the head are the images of their cluster vectors"),
)

CASE_2 = Theorem(
    name="Theorem 1C, case C2",
    cite="reizinger2024",
    speaks_of=partial(labelled.is_case, "C2"),
    conditions=(*_WORLD, labelled.unit_output),
    conclusion=ORTHOGONAL,
    shift=False,
    scale=labelled.unit_scale,
    notes=(
        _MINIMUM,
        "rows of the head are the images of their cluster vectors, times kappa / beta and with one offset",
    ),
)

CASE_3 = Theorem(
    name="Theorem 1C, case C3",
    cite="reizinger2024",
    speaks_of=partial(labelled.is_case, "C3"),
    conditions=(*_WORLD, labelled.vectors_are_diverse, labelled.free_output),
    conclusion=SIMILARITY,
    shift=False,
    scale=labelled.scale_of_free_features,
    notes=(
        _MINIMUM,
        "where every condition is met, rows of the head are the rotated cluster vectors, and the scale is kappa / beta",
    ),
    otherwise=(
        labelled.vectors_are_diverse,
        "latents are recovered up to linear, as in case C4: rows of the head are B v + b with an invertible B that "
        "need not be a rotation, and the representation is (kappa / beta) B^-T z, without an offset",
    ),
)

CASE_4 = Theorem(
    name="Theorem 1C, case C4",
    cite="reizinger2024",
    speaks_of=partial(labelled.is_case, "C4"),
    conditions=(*_WORLD, labelled.free_output),
    conclusion=LINEAR,
    shift=False,
    scale=lambda setting: None,
    notes=(
        _MINIMUM,
        "rows of the head are an affine image of the cluster vectors; with class labels this is Theorem 2 of the paper",
    ),
)

# --- roeder2020: two models, no latents

THEOREM_1 = Theorem(
    name="Theorem 1",
    cite="roeder2020",
    speaks_of=models.compares_models,
    conditions=(models.more_labels_than_features, models.minimum_exists),
    conclusion=LINEAR,
    shift=False,
    scale=lambda setting: None,
    notes=("the theorem speaks of two models with the same p(y|x); training stops before that",),
    what="Two trained models agree",
)

THEOREMS: tuple[Theorem, ...] = (THEOREM_2, THEOREM_5, THEOREM_6, CASE_1, CASE_2, CASE_3, CASE_4, THEOREM_1)
