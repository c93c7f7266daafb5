"""The conditions of the theorems, each a question with the answer yes, no or unknown."""

from __future__ import annotations

import math
from dataclasses import dataclass, is_dataclass
from typing import Any

from torch import nn

from zhat import dgp
from zhat.dgp import (
    Around,
    Box,
    Embedding,
    InvertibleMLP,
    Linear,
    Orthogonal,
    Real,
    Space,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from zhat.encoders import OntoBox, OntoSphere, Residual
from zhat.objectives import Dot, InfoNCE, NegativeLp
from zhat.results import Answer


@dataclass(frozen=True, eq=False)
class Setting:
    """What a theorem is asked about.

    Attributes:
        process: the world.
        objective: the loss.
        encoder: None where it is not known yet.
        trained_scale: whether the loss trains a factor of the representation, so that no radius or width is asked for.
    """

    process: Any
    objective: Any
    encoder: nn.Module | None = None
    trained_scale: bool = False

    @property
    def space(self) -> Space | None:
        """Where the latents live, if the process says so."""
        return getattr(self.process, "space", None)


def _yes(condition: str, because: str) -> Answer:
    return Answer(condition, "yes", because)


def _no(condition: str, because: str) -> Answer:
    return Answer(condition, "no", because)


def _unknown(condition: str, because: str) -> Answer:
    return Answer(condition, "unknown", because)


def latents_on_sphere(setting: Setting) -> Answer:
    """Latents live on a sphere."""
    name = "latents on a sphere"
    if setting.space is None:
        return _unknown(name, "the process does not say where its latents live")
    answer = _yes if isinstance(setting.space, Sphere) else _no if _known(setting.space) else _unknown
    return answer(name, f"they live on {setting.space}")


def latents_in_convex_body(setting: Setting) -> Answer:
    """Latents live in a bounded convex set with an inside."""
    name = "latents in a convex body"
    if setting.space is None:
        return _unknown(name, "the process does not say where its latents live")
    space, parts = setting.space, getattr(setting.space, "parts", (setting.space,))
    if any(isinstance(part, Real) for part in parts):
        return _no(name, f"{space} is not bounded")
    if any(isinstance(part, Sphere) for part in parts):
        return _no(name, f"{space} has no inside")
    answer = _yes if all(isinstance(part, Box) for part in parts) else _unknown
    return answer(name, f"they live on {space}")


def uniform_marginal(setting: Setting) -> Answer:
    """p(z) is uniform."""
    name = "uniform marginal"
    marginal = getattr(setting.process, "marginal", None)
    if marginal is None:
        return _unknown(name, "the process does not name its marginal")
    answer = _yes if isinstance(marginal, Uniform) else _no if _known(marginal) else _unknown
    return answer(name, f"it is {marginal}")


def von_mises_fisher_conditional(setting: Setting) -> Answer:
    """p(z'|z), or p(z|v), is von Mises-Fisher around its anchor, and says something about it."""
    name = "von Mises-Fisher conditional"
    conditional = getattr(setting.process, "conditional", None)
    if conditional is None:
        return _unknown(name, "the process does not name its conditional")
    if isinstance(conditional, VonMisesFisher) and conditional.concentration == 0:
        return _no(name, "its concentration is 0, so a draw says nothing about what it is drawn around")
    answer = _yes if isinstance(conditional, VonMisesFisher) else _no if _known(conditional) else _unknown
    return answer(name, f"it is {conditional}")


def conditional_matches_similarity(setting: Setting) -> Answer:
    r"""p(z'|z) is proportional to $e^{-\lVert z' - z\rVert_p^p / \lambda^p}$ with the p of the loss."""
    name = "conditional of the same norm as the loss"
    conditional = getattr(setting.process, "conditional", None)
    if conditional is None:
        return _unknown(name, "the process does not name its conditional")
    wanted = float(setting.objective.similarity.p)
    if not isinstance(conditional, Around):
        answer = _no if _known(conditional) else _unknown
        return answer(name, f"the loss compares with p = {wanted:g}, but the conditional is {conditional}")
    got = conditional.family.power
    answer = _yes if got == wanted else _no
    return answer(name, f"the conditional falls off with p = {got:g}, the loss compares with p = {wanted:g}")


def contrasts_with_marginal(setting: Setting) -> Answer:
    """The loss is InfoNCE in balance: positives against draws from the marginal, equal weights."""
    name = "InfoNCE with equal weights"
    weight = setting.objective.alignment_weight
    if weight != 0.5:
        return _no(name, f"the alignment weight is {weight}, not 1/2")
    return _yes(name, "positives and negatives weigh alike")


def injective_mixing(setting: Setting) -> Answer:
    """g loses nothing."""
    name = "injective mixing"
    mixing = getattr(setting.process, "mixing", None)
    if isinstance(mixing, InvertibleMLP | Linear | Orthogonal | Embedding):
        return _yes(name, f"{type(mixing).__name__} has an exact inverse")
    return _unknown(name, "zhat cannot tell for this mixing")


def predicted_radius(setting: Setting) -> float | None:
    r"""The radius $\sqrt{\tau\kappa}$ on which the optimal representation lies."""
    conditional = getattr(setting.process, "conditional", None)
    if setting.trained_scale:
        return None
    if isinstance(conditional, VonMisesFisher) and isinstance(setting.objective, InfoNCE):
        return math.sqrt(setting.objective.temperature * conditional.concentration)
    return None


def predicted_stretch(setting: Setting) -> float | None:
    r"""The scale $\tau^{1/p} / \lambda$ by which the optimal representation stretches the latents."""
    conditional = getattr(setting.process, "conditional", None)
    similarity = getattr(setting.objective, "similarity", None)
    if (
        isinstance(conditional, Around)
        and not setting.trained_scale
        and isinstance(similarity, NegativeLp)
        and conditional.family.power == similarity.p
    ):
        return float(setting.objective.temperature ** (1 / similarity.p) / conditional.family.width)
    return None


def output_on_matching_sphere(setting: Setting) -> Answer:
    r"""The encoder ends on a sphere of radius $\sqrt{\tau\kappa}$, in the dimension of the latents."""
    radius = predicted_radius(setting)
    name = "output on the matching sphere"
    if setting.encoder is None:
        wanted = "" if radius is None else f" of radius sqrt(temperature * concentration) = {radius:.4g}"
        return _unknown(name, f"no encoder given; it must end on a sphere{wanted}")
    last = last_module(setting.encoder)
    if not isinstance(last, OntoSphere):
        return output_elsewhere(name, last, "a sphere")
    if setting.space is not None and last.space.dim != setting.space.dim:
        return _no(name, f"it ends in {last.space.dim} dimensions for {setting.space.dim} latents")
    if last.learnable or setting.trained_scale:
        return _yes(name, f"the {'radius' if last.learnable else 'temperature'} is trained")
    if radius is None:
        return _unknown(name, "the right radius follows from the conditional, which is not von Mises-Fisher")
    fits = math.isclose(last.space.radius, radius, rel_tol=1e-6)
    because = f"radius {last.space.radius:.4g}; theory requires sqrt(temperature * concentration) = {radius:.4g}"
    return (_yes if fits else _no)(name, because)


def output_in_matching_box(setting: Setting) -> Answer:
    """The encoder ends in a box that is the latents' box, stretched as theory requires."""
    name = "output in the matching box"
    stretch = predicted_stretch(setting)
    if setting.encoder is None:
        return _unknown(name, "no encoder given; it must end in a box whose bounds can grow")
    last = last_module(setting.encoder)
    if not isinstance(last, OntoBox):
        return output_elsewhere(name, last, "a box")
    space = setting.space
    if isinstance(space, Box):
        if last.space.dim != space.dim:
            return _no(name, f"it ends in {last.space.dim} dimensions for {space.dim} latents")
        if not last.learnable and stretch is not None:
            got, wanted = last.space.high - last.space.low, stretch * (space.high - space.low)
            answer = _yes if math.isclose(got, wanted, rel_tol=1e-6) else _no
            return answer(name, f"its width is {got:.4g}; theory requires {wanted:.4g}")
    if last.learnable or setting.trained_scale:
        return _yes(name, f"the {'bounds are' if last.learnable else 'temperature is'} trained")
    return _unknown(name, "the right width follows from the conditional, which does not match the loss")


def output_elsewhere(name: str, last: nn.Module, wanted: str) -> Answer:
    """What to say of an encoder that does not end where theory requires."""
    if isinstance(last, OntoSphere | OntoBox):
        return _no(name, f"the encoder ends on {last.space}")
    if isinstance(last, nn.Linear):
        return _no(name, f"the encoder ends in a linear layer, so its output is unbounded, not {wanted}")
    return _unknown(name, f"zhat cannot tell where {type(last).__name__} ends")


def last_module(encoder: nn.Module) -> nn.Module:
    """The last module of a sequence that does something."""
    while isinstance(encoder, nn.Sequential):
        parts = [part for part in encoder if not isinstance(part, nn.Identity)]
        if not parts:
            break
        encoder = parts[-1]
    return encoder.line if isinstance(encoder, Residual) else encoder  # two that are added end like one of them


_OURS = tuple(member for member in vars(dgp).values() if isinstance(member, type) and is_dataclass(member))


def _known(thing: object) -> bool:
    """Whether zhat knows what this is; of somebody's own class it cannot say what it is not."""
    return isinstance(thing, _OURS)


def compares_by_dot(setting: Setting) -> bool:
    """Whether the objective is InfoNCE with the dot product."""
    return isinstance(setting.objective, InfoNCE) and isinstance(setting.objective.similarity, Dot)


def compares_by_norm(setting: Setting) -> bool:
    """Whether the objective is InfoNCE with a power of a norm."""
    return isinstance(setting.objective, InfoNCE) and isinstance(setting.objective.similarity, NegativeLp)
