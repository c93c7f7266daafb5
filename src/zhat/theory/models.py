"""The conditions under which two models of one kind agree up to a linear map."""

from __future__ import annotations

from zhat.dgp import Sectors
from zhat.objectives import Each
from zhat.results import Answer
from zhat.theory.conditions import Setting


def compares_models(setting: Setting) -> bool:
    """Whether two models are trained side by side, each with an objective of its own."""
    return isinstance(setting.objective, Each)


def more_labels_than_features(setting: Setting) -> Answer:
    """Differences of label vectors can span the space of features: the diversity condition is not out of reach."""
    name = "diversity: more labels than features"
    labels = setting.objective.labels
    if labels is None:
        return Answer(name, "unknown", "candidates are the rows of a batch, which must be more than the features")
    dim = setting.objective.members[0].dim
    if labels > dim:
        return Answer(name, "yes", f"{labels} labels differ in up to {labels - 1} directions, for {dim} features")
    loose = f"{dim - labels + 1} of {dim} directions of f change no probability"
    return Answer(name, "no", f"{labels} labels differ in at most {labels - 1} directions, so {loose}")


def minimum_exists(setting: Setting) -> Answer:
    """The loss has a minimum at finite weights, and it is p(y|x) itself: then both models can have the same p."""
    name = "the true p(y|x) has the model's form"
    process = setting.process
    if not isinstance(process, Sectors):
        return Answer(name, "unknown", "the process does not say how its labels depend on x")
    if process.harmonics is None and not process.label_noise:
        return Answer(name, "no", "labels follow from x, so the loss has no minimum at finite weights")
    if process.label_noise:
        return Answer(name, "unknown", "with label noise log-probabilities are not bilinear, but may be close to it")
    dim = setting.objective.members[0].dim
    fits = f"log p(y|x) spans {process.rank} directions, for {dim} features"
    return Answer(name, "yes" if dim >= process.rank else "no", fits)
