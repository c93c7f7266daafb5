"""The conditions of theorems about labelled rows: on clusters, labels, loss and output."""

from __future__ import annotations

import math

from torch import Tensor, nn

from zhat.dgp import Clusters, Sphere, VonMisesFisher
from zhat.encoders import OntoBox, OntoSphere
from zhat.objectives import CrossEntropy
from zhat.results import Answer
from zhat.theory.conditions import Setting, last_module, output_elsewhere
from zhat.theory.heads import affine_spread, classes_for_a_rotation, diversity_spread, generates


def is_case(case: str, setting: Setting) -> bool:
    """Whether this is a softmax over labels with these normalisations, by the loss or by where the encoder ends."""
    objective = setting.objective
    if not isinstance(objective, CrossEntropy):
        return False
    unit_features = objective.unit_features or (setting.encoder is not None and _ends_unit(setting.encoder))
    return objective.case_of(unit_features, objective.unit_rows) == case


def _ends_unit(encoder: nn.Module) -> bool:
    """Whether an encoder ends on the unit sphere."""
    last = last_module(encoder)
    return isinstance(last, OntoSphere) and not last.learnable and math.isclose(last.space.radius, 1.0)


def _occurring(process: Clusters) -> Tensor:
    """The cluster vectors of classes that have an instance."""
    return process.cluster_vectors[process.class_counts > 0]


def latents_on_unit_sphere(setting: Setting) -> Answer:
    """Latents live on the sphere of radius 1."""
    name = "latents on the unit sphere"
    space = setting.space
    if space is None:
        return Answer(name, "unknown", "the process does not say where its latents live")
    fits = isinstance(space, Sphere) and math.isclose(space.radius, 1.0, rel_tol=1e-5)
    return Answer(name, "yes" if fits else "no", f"they live on {space}")


def vectors_generate_the_space(setting: Setting) -> Answer:
    """Every point is an affine combination of the cluster vectors of this very world."""
    if not isinstance(setting.process, Clusters):
        return Answer("cluster vectors generate the space affinely", "unknown", "the process names no cluster vectors")
    return generates(affine_spread(_occurring(setting.process)), "cluster vectors")


def vectors_are_diverse(setting: Setting) -> Answer:
    r"""The cluster vectors leave only rotations free when rows of the head have unit length.

    The other conditions give $w_c = B v_c + b$ and $h = (\kappa / \beta) B^{-\top} z$ with an invertible B. Since
    $v_c^\top v_c = 1$, unit rows mean

    $$|B v_c + b|^2 = 1 \iff v_c^\top S v_c + u^\top v_c = 0, \qquad
      S = B^\top B + (|b|^2 - 1) I, \quad u = 2 B^\top b$$

    for every class: a linear system in the d (d + 1) / 2 entries of S and the d of u. If the rows
    $[\mathrm{svec}(v_c v_c^\top), v_c]$ have rank d (d + 3) / 2, then S = 0 and u = 0, so b = 0 and
    $B^\top B = I$. The rank is attainable: it is the dimension of the polynomials of degree 2 on the sphere. If it is
    lower, the system has a solution (S, u) other than 0. Every small multiple of it gives
    $B^\top B = (1 - t) I + S$ with $t = |b|^2 = u^\top (B^\top B)^{-1} u / 4$: unit rows and the same loss, but no
    rotation. In other words, the unit sphere must be the only quadric that holds all cluster vectors.

    Assumption 2 of the paper asks for rank 2d of $[v_c \odot v_c, v_c]$. This is the same system for diagonal S alone,
    and so enough only for a B whose right singular vectors are the coordinate axes.

    Reference: reizinger2024, Theorem 1C, case C3.
    """
    name = "cluster vectors diverse enough to fix a rotation"
    if not isinstance(setting.process, Clusters):
        return Answer(name, "unknown", "the process names no cluster vectors")
    vectors = _occurring(setting.process)
    classes, dim = vectors.shape
    needed = classes_for_a_rotation(dim)
    if classes < needed:
        return Answer(name, "no", f"{classes} classes occur; at least d (d + 3) / 2 = {needed} are needed")
    found = diversity_spread(vectors)
    if found.condition is None:
        return Answer(name, "no", f"all {classes} lie on a second quadric: rank {found.rank} of the {needed} needed")
    margin = f"smallest singular value {found.smallest:.3g}, largest {found.largest:.3g}"
    return Answer(name, "yes", f"rank {found.rank} of {needed}; {margin}")


def labels_are_uniform(setting: Setting) -> Answer:
    """Every label is equally frequent."""
    name = "labels equally frequent"
    process = setting.process
    if not isinstance(process, Clusters):
        return Answer(name, "unknown", "the process does not say how its labels are drawn")
    counts = process.class_counts
    low, high = int(counts.min()), int(counts.max())
    if not process.by_class:
        return Answer(name, "yes", f"{process.labels} instances are drawn uniformly")
    if low == 0:
        return Answer(name, "no", f"{int((counts == 0).sum())} of {len(counts)} classes never occur")
    if low != high:
        return Answer(name, "no", f"classes have {low} to {high} instances")
    return Answer(name, "yes", f"every class has {low} instance{'s' if low > 1 else ''}")


def labels_are_true(setting: Setting) -> Answer:
    """Labels are not replaced by random ones."""
    name = "labels without noise"
    if not isinstance(setting.process, Clusters):
        return Answer(name, "unknown", "the process does not say")
    noise = setting.process.label_noise
    return Answer(name, "no" if noise else "yes", f"a share of {noise:g} is replaced by uniform labels")


def latents_are_fresh(setting: Setting) -> Answer:
    """Every draw of a label draws its latent anew from the class's conditional."""
    name = "fresh latents for every draw of a label"
    if not isinstance(setting.process, Clusters):
        return Answer(name, "unknown", "the process does not say")
    if setting.process.augmentation is None:
        return Answer(name, "yes", "a label is drawn around its cluster vector each time")
    return Answer(name, "no", "instances are fixed points, and only their augmentations are drawn anew")


def plain_softmax(setting: Setting) -> Answer:
    """One row of the head for each label, no offsets, no smoothing."""
    name = "a plain softmax over the labels"
    objective: CrossEntropy = setting.objective
    if objective.offsets is not None:
        return Answer(name, "no", "the head has a bias, which leaves an offset of the representation free")
    if objective.label_smoothing:
        return Answer(name, "no", f"labels are smoothed by {objective.label_smoothing:g}")
    labels = getattr(setting.process, "labels", None)
    if labels is None:
        return Answer(name, "unknown", "the process does not say how many labels it has")
    fits = labels == objective.labels
    return Answer(name, "yes" if fits else "no", f"{objective.labels} rows for {labels} labels")


def free_output(setting: Setting) -> Answer:
    """The encoder may end anywhere in R^d."""
    name = "free output in the dimension of the latents"
    if setting.encoder is None:
        return Answer(name, "unknown", "no encoder given; it must end in a linear layer")
    last = last_module(setting.encoder)
    if isinstance(last, OntoSphere | OntoBox):
        return Answer(name, "no", f"the encoder ends on {last.space}; leave it free, or end on the unit sphere")
    if not isinstance(last, nn.Linear):
        return Answer(name, "unknown", f"zhat cannot tell where {type(last).__name__} ends")
    return _dimension(name, last.out_features, setting, f"it ends in {last.out_features} dimensions")


def unit_output(setting: Setting) -> Answer:
    """The encoder ends on the unit sphere, so that what is scored is what the loss compares."""
    name = "output on the unit sphere"
    if setting.encoder is None:
        return Answer(name, "unknown", "no encoder given; it must end on the unit sphere")
    last = last_module(setting.encoder)
    if not isinstance(last, OntoSphere):
        return output_elsewhere(name, last, "on a sphere")
    if not _ends_unit(setting.encoder):
        where = "a sphere whose radius is trained" if last.learnable else str(last.space)
        return Answer(name, "no", f"the encoder ends on {where}, while the loss compares unit vectors")
    return _dimension(name, last.space.dim, setting, f"it ends on {last.space}")


def _dimension(name: str, got: int, setting: Setting, because: str) -> Answer:
    wanted = setting.space
    if wanted is not None and wanted.dim != got:
        return Answer(name, "no", f"it ends in {got} dimensions for {wanted.dim} latents")
    return Answer(name, "yes", because)


def inverse_temperature_fits(setting: Setting) -> Answer:
    r"""The inverse temperature is the concentration of the clusters, or can become it: $\beta = \kappa$."""
    name = "inverse temperature equal to the concentration"
    if setting.objective.learnable:
        return Answer(name, "yes", "it is trained")
    conditional = getattr(setting.process, "conditional", None)
    beta = setting.objective.inverse_temperature
    if not isinstance(conditional, VonMisesFisher):
        return Answer(name, "unknown", "the conditional has no concentration")
    fits = math.isclose(beta, conditional.concentration, rel_tol=1e-5)
    return Answer(name, "yes" if fits else "no", f"it is {beta:g}, the concentration {conditional.concentration:g}")


def unit_scale(setting: Setting) -> float | None:
    """1: unit latents become unit representations."""
    return 1.0


def scale_of_free_features(setting: Setting) -> float | None:
    r"""$\kappa / \beta$, if the inverse temperature is fixed and the conditional has a concentration."""
    conditional = getattr(setting.process, "conditional", None)
    if setting.objective.learnable or not isinstance(conditional, VonMisesFisher):
        return None
    return float(conditional.concentration / setting.objective.inverse_temperature)
