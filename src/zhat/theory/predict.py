"""Which theorem applies, which of its conditions hold, and what it then concludes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

from zhat import randomness
from zhat.equivalence import ORTHOGONAL, SIMILARITY
from zhat.fresh import Fresh
from zhat.objectives import LearnedSimilarity
from zhat.results import Answer, Prediction
from zhat.theory.conditions import Setting
from zhat.theory.theorems import THEOREMS, Theorem


def predict(process: Any, objective: Any, encoder: nn.Module | Callable[[], nn.Module] | None = None) -> Prediction:
    """What theory says about recovering the latents of `process` with `objective`.

    Args:
        process: for instance `Pairs(...)` or `Clusters(...)`; of clusters, the vectors of this very world are judged.
        objective: for instance `InfoNCE(...)`, or a `Fresh` one.
        encoder: a module, or something that makes one. Without it the condition on the output space stays open, and
            of reizinger2024's cases the one is taken that the loss names.

    Returns:
        The conclusion of the theorem that speaks of this objective and output, with every condition answered.

    Example:
        >>> from zhat.dgp import InvertibleMLP, Pairs, Sphere, Uniform, VonMisesFisher
        >>> from zhat.encoders import mlp
        >>> from zhat.objectives import InfoNCE
        >>> world = Pairs(Uniform(Sphere(3)), VonMisesFisher(20.0), InvertibleMLP())
        >>> print(predict(world, InfoNCE(temperature=1 / 20), mlp(3, 3, onto=Sphere(3))).sentence)
        Latents are recovered up to orthogonal, scale 1 [zimmermann2021, Theorem 2]: every condition holds.
    """
    if isinstance(objective, Fresh):
        objective = randomness.build(objective, 0, "predict")
    if encoder is not None and not isinstance(encoder, nn.Module):
        encoder = randomness.build(encoder, 0, "predict")
    trained_scale = isinstance(objective, LearnedSimilarity)
    setting = Setting(process, objective.base if trained_scale else objective, encoder, trained_scale)
    for theorem in THEOREMS:
        if theorem.speaks_of(setting):
            scale = theorem.scale(setting)
            up_to = theorem.conclusion
            if up_to is ORTHOGONAL and scale is not None and abs(scale - 1) > 1e-6:
                up_to = SIMILARITY  # orthogonal up to the predicted radius
            answers = tuple(condition(setting) for condition in theorem.conditions)
            how = {"what": theorem.what, "instead": _what_remains(theorem, answers)}
            return Prediction(theorem.name, theorem.cite, up_to, theorem.shift, scale, answers, theorem.notes, **how)
    return Prediction("", "", None, False, None, ())


def _what_remains(theorem: Theorem, answers: tuple[Answer, ...]) -> str:
    """What the other conditions give where the one fails that only the tightness of the conclusion rests on."""
    if theorem.otherwise is None:
        return ""
    condition, conclusion = theorem.otherwise
    spared = theorem.conditions.index(condition)
    rest = {answer.holds for i, answer in enumerate(answers) if i != spared}
    if answers[spared].holds != "no" or "no" in rest:
        return ""
    return f"{'every other condition holds' if rest == {'yes'} else 'if the open conditions hold'}: {conclusion}"
