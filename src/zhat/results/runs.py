"""What a run leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from zhat.equivalence import Equivalence
from zhat.results.scores import Profile, Score
from zhat.results.theory import Prediction


@dataclass(frozen=True)
class Curve:
    """How training went: losses, and whatever was watched, at some steps."""

    steps: tuple[int, ...]
    loss: tuple[float, ...]
    watched_steps: tuple[int, ...] = ()
    watched: tuple[float, ...] = ()
    watched_name: str = ""


@dataclass(frozen=True)
class Picture:
    """The small arrays a page draws: some held-out rows, correlations, the map's singular values.

    Attributes:
        z: latents of some held-out rows, `(rows, d)`.
        z_hat: the representation of the same rows after the best map of class `up_to`, `(rows, d)`.
        up_to: that class.
        correlation: |Pearson correlation| between latents and representation, `(d, k)`.
        singular_values: of the least-squares map from latents to representation.
    """

    z: tuple[tuple[float, ...], ...]
    z_hat: tuple[tuple[float, ...], ...]
    up_to: Equivalence
    correlation: tuple[tuple[float, ...], ...]
    singular_values: tuple[float, ...]


@dataclass(frozen=True)
class Record:
    """One finished run: one world, one encoder, one seed.

    Attributes:
        name: what was run, for a reader.
        seed: of world and encoder.
        settings: process, objective, encoder and budget, each as its repr.
        provenance: versions, device, commit, date.
        seconds: wall time of the training this seed was part of.
        prediction: what theory says.
        raw: scores of the observations themselves; None for a pair of models.
        learned: scores of the representation; for a pair of models, of the second as a map of the first.
        by_paper: the score a paper's table prints, by the paper's own protocol, where the run belongs to one.
        held_out: the same score read on rows the fit has not seen.
        curve: losses over training.
        picture: what a page draws.
        readings: further numbers of the row by name: by the paper's protocol, and ours.
    """

    name: str
    seed: int
    settings: Mapping[str, Any]
    provenance: Mapping[str, Any]
    seconds: float
    prediction: Prediction | None
    raw: Profile | None
    learned: Profile
    curve: Curve
    picture: Picture
    by_paper: Score | None = None
    held_out: Score | None = None
    readings: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelRecord:
    """One trained model of a family whose models are compared with each other; nobody knows its latents.

    Attributes:
        name: of the model.
        title: for a reader.
        seed: of its initial weights and of the rows it saw.
        settings: process, objective, encoder and budget, each as its repr.
        provenance: versions, device, commit, date.
        seconds: wall time of its training.
        curve: losses over training.
        loss: its loss on held-out rows; None for a model that was not trained here.
        training_loss: its loss on training rows, where models are ordered by it.
    """

    name: str
    title: str
    seed: int
    settings: Mapping[str, Any]
    provenance: Mapping[str, Any]
    seconds: float
    curve: Curve
    loss: float | None
    training_loss: float | None = None
