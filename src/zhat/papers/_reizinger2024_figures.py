"""Figures 4 to 6 of Reizinger et al. 2024.

The paper gives neither grids nor values: all grids are ours, the claims are the paper's. Heads are free (case C4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import torch

from zhat import randomness
from zhat.dgp import Around, Box, Clusters, GeneralizedNormal, Laplace, Sphere, VonMisesFisher
from zhat.equivalence import AFFINE
from zhat.experiment import Along, HeadToVectors, Part, Reading, Row
from zhat.fresh import Fresh
from zhat.objectives import CrossEntropy, InstanceDiscrimination
from zhat.papers._reizinger2024_settings import BATCH, BRIEF, FREE, KEY, R2_W, budgets, encoder, world
from zhat.training import Recipe


def point(
    name: str,
    title: str,
    process: Clusters,
    *,
    batch: int = BATCH,
    fast_batch: int = 4096,
    brief: Recipe = BRIEF,
    labels: bool = False,
) -> Row:
    """A point of a figure: instance discrimination, or class labels."""
    process = replace(process, by_class=labels)
    kind = CrossEntropy if labels else InstanceDiscrimination
    how_long = budgets(process, batch=batch, fast_batch=fast_batch, brief=brief, plain=True)
    row = Row(name, title, process, encoder(process), Fresh(kind, process.dim, process.labels), how_long)
    return replace(row, readings=(Reading(R2_W, HeadToVectors(AFFINE)),))


@dataclass(frozen=True)
class Monotone:
    """The claim that scores rise (sign 1) or fall (sign -1) along the axis, up to `slack` points between neighbours."""

    what: str
    sign: int
    slack: float = 1.0

    def __call__(self, x: tuple[float, ...], scores: tuple[float, ...]) -> tuple[bool, str]:
        """Whether it holds, and the numbers."""
        steps = [self.sign * (b - a) for a, b in pairwise(scores)]
        holds = min(steps) >= -self.slack and self.sign * (scores[-1] - scores[0]) > self.slack
        return holds, f"R2 goes from {scores[0]:.1f}% to {scores[-1]:.1f}% {self.what}"


def clusters(row: Row) -> Clusters:
    """The world of a point."""
    assert isinstance(row.process, Clusters), "every point of these figures has one"
    return row.process


def size_of_noise(row: Row) -> float:
    r"""The mean size of the noise in one dimension, $s\,\Gamma(2/p) / \Gamma(1/p)$ (Figure 4, right)."""
    conditional = clusters(row).conditional
    assert isinstance(conditional, Around)
    family = conditional.family
    return float(family.width * math.gamma(2 / family.power) / math.gamma(1 / family.power))


def general(p: float, scale: float) -> Clusters:
    """Generalised normal noise on the sphere."""
    return world(Around(GeneralizedNormal(Sphere(5), p=p, scale=scale)))


SHAPES, SCALES = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0), (0.5, 0.7, 1.0, 1.5, 2.0)

FIGURE_4A = Part(
    paper=KEY,
    label="Figure 4a",
    caption="R2 against the shape of generalised normal noise, from Laplace (1) to normal (2), scale 1. Grid of ours.",
    measure=FREE,
    score="R2",
    rows=tuple(point(f"F4a.{i}", f"shape {p:g}, scale 1", general(p, 1.0)) for i, p in enumerate(SHAPES, 1)),
    judge=Along(
        x=SHAPES,
        name="shape",
        mark=2.0,
        mark_name="normal",
        second=size_of_noise,
        second_name="mean size of the noise",
        claim=Monotone("as the shape goes from Laplace to normal", 1),
    ),
)

FIGURE_4B = Part(
    paper=KEY,
    label="Figure 4b",
    caption="R2 against the scale of Laplace noise. Grid of ours.",
    measure=FREE,
    score="R2",
    rows=tuple(point(f"F4b.{i}", f"shape 1, scale {s:g}", general(1.0, s)) for i, s in enumerate(SCALES, 1)),
    judge=Along(
        x=SCALES,
        name="scale",
        mark=1.0,
        mark_name="scale of Table 2",
        second=size_of_noise,
        second_name="mean size of the noise",
        claim=Monotone("as the noise becomes broader", -1),
    ),
)


def sureness(row: Row) -> float:
    """How sure the best classifier is: the mean posterior probability of the true class."""
    process = clusters(row)
    rows = process.sample(4096, generator=randomness.generator(0, "sureness"))
    assert isinstance(process.conditional, VonMisesFisher) and rows.z is not None and rows.label is not None  # noqa: PT018
    logits = process.conditional.concentration * rows.z[0].double() @ process.cluster_vectors.T
    return float(logits.softmax(-1).gather(1, process.classes_of(rows.label)[:, None]).mean())


CONCENTRATIONS = (2.0, 5.0, 10.0, 20.0, 50.0, 100.0)

FIGURE_5A = Part(
    paper=KEY,
    label="Figure 5a",
    caption="R2 against the concentration of clusters, with the posterior probability of the true class. Grid of ours.",
    measure=FREE,
    score="R2",
    rows=tuple(point(f"F5a.{i}", f"vMF({k:g})", world(VonMisesFisher(k))) for i, k in enumerate(CONCENTRATIONS, 1)),
    judge=Along(
        x=CONCENTRATIONS,
        name="concentration",
        mark=10.0,
        mark_name="concentration of Table 2",
        second=sureness,
        second_name="posterior of the true class",
        claim=lambda x, scores: (
            scores[-1] < max(scores) - 5,
            f"R2 is at most {max(scores):.1f}%, and {scores[-1]:.1f}% where clusters are tightest",
        ),
    ),
)

BATCHES = (256, 1024, 4096, 16_384)

FIGURE_5B = Part(
    paper=KEY,
    label="Figure 5b",
    caption="R2 against the batch size for tight clusters, concentration 50. Grid of ours.",
    measure=FREE,
    score="R2",
    rows=tuple(
        point(
            f"F5b.{i}",
            f"vMF(50), batch {b}",
            world(VonMisesFisher(50.0)),
            batch=b,
            fast_batch=b,
            brief=replace(BRIEF, steps=400, batch=b),
        )
        for i, b in enumerate(BATCHES, 1)
    ),
    judge=Along(
        x=tuple(float(b) for b in BATCHES),
        name="batch",
        mark=float(BATCH),
        mark_name="batch of Table 2",
        second=lambda row: row.budget("paper").recipe.batch / (clusters(row).classes or 1),
        second_name="rows for each class",
        claim=Monotone("as batches grow", 1),
    ),
)


def margin(row: Row) -> float:
    """How far cluster vectors are from lying in a hyperplane: the smallest deviation in any direction."""
    vectors = clusters(row).cluster_vectors
    values = torch.linalg.svdvals(vectors - vectors.mean(0))
    return float(values[-1]) / math.sqrt(len(vectors)) if len(vectors) > vectors.shape[1] else 0.0


CLASSES = (5, 10, 11, 20, 50, 100, 500)

FIGURE_5C = Part(
    paper=KEY,
    label="Figure 5c",
    caption="R2 against the number of classes in ten dimensions; below 11 no affine generator system exists. Grid of "
    "ours.",
    measure=FREE,
    score="R2",
    rows=tuple(point(f"F5c.{i}", f"d = 10, {c} classes", world(d=10, classes=c)) for i, c in enumerate(CLASSES, 1)),
    judge=Along(
        x=tuple(float(c) for c in CLASSES),
        name="classes",
        mark=11.0,
        mark_name="dimensions and one",
        second=margin,
        second_name="smallest deviation of cluster vectors",
        claim=lambda x, scores: (
            scores[-1] - scores[0] > 20,
            f"R2 is {scores[0]:.1f}% with {x[0]:g} classes and {scores[-1]:.1f}% with {x[-1]:g}",
        ),
    ),
)


def mean_length(row: Row) -> float:
    """The mean length of latents, which leave the sphere."""
    z = clusters(row).sample(20_000, generator=randomness.generator(0, "length")).z
    assert z is not None
    return float(z[0].norm(dim=-1).mean())


BOUNDS = (1.0, 1.5, 2.0, 2.5, 3.0)

FIGURE_5D = Part(
    paper=KEY,
    label="Figure 5d",
    caption="R2 against the bound of a truncated Laplace conditional of scale 1. Every coordinate of a latent stays "
    "between minus and plus the bound and is not projected. Grid of ours.",
    measure=FREE,
    score="R2",
    rows=tuple(
        point(f"F5d.{i}", f"Laplace(1) within {t:g}", world(Around(Laplace(Box(5, -t, t), scale=1.0))))
        for i, t in enumerate(BOUNDS, 1)
    ),
    judge=Along(
        x=BOUNDS,
        name="bound",
        mark=1.0,
        mark_name="largest coordinate of a cluster vector",
        second=mean_length,
        second_name="mean length of latents",
        claim=Monotone("as the bound grows", -1),
    ),
)


def right_labels(row: Row) -> float:
    """The share of labels that are right."""
    process = clusters(row)
    return float(1 - process.label_noise + process.label_noise / process.labels)


def noise_claim(x: tuple[float, ...], scores: tuple[float, ...]) -> tuple[bool, str]:
    """R2 hardly falls up to a noise of 0.8 and collapses at 1."""
    at = dict(zip(x, scores, strict=True))
    holds = at[0.0] - at[0.8] < 10 and at[0.8] - at[1.0] > 20
    return holds, f"R2 is {at[0.0]:.1f}% without noise, {at[0.8]:.1f}% at 0.8 and {at[1.0]:.1f}% at 1"


NOISES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)


def noise_sweep(panel: str, what: str, labels: bool) -> Part:
    """Label noise, for instances or for classes."""
    return Part(
        paper=KEY,
        label=f"Figure 6{panel}",
        caption=f"R2 against the share of labels that are replaced by uniform ones: {what}. Grid of ours.",
        measure=FREE,
        score="R2",
        rows=tuple(
            point(f"F6{panel}.{i}", f"{what}, noise {r:g}", world(label_noise=r), labels=labels)
            for i, r in enumerate(NOISES, 1)
        ),
        judge=Along(
            x=NOISES,
            name="label noise",
            mark=0.8,
            mark_name="noise up to which the paper finds little loss",
            second=right_labels,
            second_name="share of right labels",
            claim=noise_claim,
        ),
    )


FIGURE_6A = noise_sweep("a", "instance labels", labels=False)
FIGURE_6B = noise_sweep("b", "class labels", labels=True)

FIGURES = (FIGURE_4A, FIGURE_4B, FIGURE_5A, FIGURE_5B, FIGURE_5C, FIGURE_5D, FIGURE_6A, FIGURE_6B)
