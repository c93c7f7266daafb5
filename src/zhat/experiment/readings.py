"""Further numbers that a table prints beside its score: the head against the cluster vectors, the map's scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from zhat.dgp import Clusters, Process, encoder_input
from zhat.equivalence import AFFINE, Equivalence
from zhat.errors import BadInput
from zhat.experiment.scoring import Raw, latents_and_observations, represent
from zhat.metrics import Recovery, distance_from_orthogonal
from zhat.results import Published


@dataclass(frozen=True, eq=False)
class Trained:
    """What a reading is taken from: one seed after its training, or on the way.

    Attributes:
        encoder: the trained encoder.
        objective: the trained objective, with the head it owns.
        world: the process it was trained on.
        rows: how many rows the paper reads its scores on.
        device: where the encoder lives.
    """

    encoder: nn.Module
    objective: Any
    world: Process
    rows: int
    device: torch.device | str
    _represented: dict[tuple[int, int, bool, int], tuple[Tensor, Tensor]] = field(
        default_factory=dict, init=False, repr=False
    )

    def represented(self, n: int, seed: int, *, seen: bool = False, batch: int = 0) -> tuple[Tensor, Tensor]:
        """Latents `(n, d)` and representation `(n, k)` of rows for scoring; readings of the same rows share them.

        Args:
            n: how many rows.
            seed: of the draw.
            seen: rows that training draws from, where others are held out.
            batch: rows whose batch statistics are taken together; 0 takes those gathered in training.
        """
        asked = (n, seed, seen, batch)
        if asked not in self._represented:
            z, x = latents_and_observations(self.world, n, seed, self.device, seen=seen)
            self._represented[asked] = z, represent(self.encoder, x, batch=batch)
        return self._represented[asked]


@dataclass(frozen=True)
class Reading:
    """A further number of a row.

    Attributes:
        name: column of the table, for instance "R2 w".
        read: the number by the paper's protocol, and ours where that differs; None is the row's score, beside another
            published number.
        published: what the paper prints.
        in_percent: whether it is a share, shown in percent and judged like the score; otherwise it is an error, shown
            as it is, and the less the better.
        failure: the paper shows that this number is low; reproducing it means that ours is not higher.
    """

    name: str
    read: Callable[[Trained], float | tuple[float, float]] | None
    published: Published | None = None
    in_percent: bool = True
    failure: bool = False


@dataclass(frozen=True)
class HeadToVectors:
    r"""R2 of the map from rows of the head to cluster vectors, $w_i \mapsto v_{C(i)}$.

    By the paper's protocol half of all labels are fitted and the others read; where a class has several labels, it is
    on both sides. Ours averages the rows of a class and predicts the vectors of a tenth of the classes from the
    others, in turn, so nothing is read that was fitted.

    Args:
        up_to: `AFFINE`, or `LINEAR` for a map without offset.

    Reference: reizinger2024, the columns w of Tables 2 and 5.
    """

    up_to: Equivalence = AFFINE

    def __call__(self, trained: Trained) -> tuple[float, float]:
        """By the paper's protocol, and ours."""
        rows, vectors, classes = _head(trained)
        by_paper = Recovery(self.up_to, repeats=0, shuffles=0)(vectors[classes], rows).value
        means = torch.zeros_like(vectors, dtype=torch.float64).index_add_(0, classes, rows.double())
        counts = torch.bincount(classes, minlength=len(vectors))
        seen = counts > 0
        means = means[seen] / counts[seen, None]
        if self.up_to is AFFINE:
            means = torch.cat([means, torch.ones_like(means[:, :1])], -1)
        return by_paper, _across_folds(vectors[seen], means)


def _across_folds(v: Tensor, w: Tensor) -> float:
    """R2 of least squares, mean over dimensions, each tenth of the rows predicted from the others."""
    fold = torch.arange(len(v)) % min(10, len(v))
    predicted = torch.empty_like(v)
    for k in range(int(fold.max()) + 1):
        fit, read = fold != k, fold == k
        predicted[read] = w[read] @ (torch.linalg.pinv(w[fit]) @ v[fit])
    explained = 1 - (v - predicted).square().sum(0) / (v - v.mean(0)).square().sum(0)
    return float(explained.mean())


@dataclass(frozen=True)
class OffScale:
    r"""Mean distance of the singular values of the map $\tilde z \mapsto z$ from the predicted 1 / scale.

    Args:
        scale: the predicted ratio |h| / |z|, $\kappa / \beta$.
        relative: divide by the prediction 1 / scale; 0.01 at a scale of 10 is then a tenth.

    Reference: reizinger2024, MAE of Tables 2 and 5 (fitted and read on the same rows).
    """

    scale: float
    relative: bool = False

    def __call__(self, trained: Trained) -> tuple[float, float]:
        """On the paper's number of rows, and on twice as many others."""
        factor = self.scale if self.relative else 1.0
        found = []
        for n, seed in ((trained.rows, 100), (2 * trained.rows, 99)):
            z, h = trained.represented(n, seed)
            found.append(factor * distance_from_orthogonal(z, h, scale=self.scale))
        return found[0], found[1]


@dataclass(frozen=True)
class HeadOffScale:
    r"""Mean distance of the singular values of the map $w_i \mapsto v_{C(i)}$ from 1, fitted on all labels.

    Reference: reizinger2024, MAE of Tables 2 and 5, column w.
    """

    def __call__(self, trained: Trained) -> float:
        """The distance; every label is used."""
        rows, vectors, classes = _head(trained)
        return distance_from_orthogonal(vectors[classes], rows)


def _head(trained: Trained) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of the head `(labels, dim)`, cluster vectors `(classes, d)`, and the class of each label, on the CPU."""
    head, world = getattr(trained.objective, "head", None), trained.world
    if head is None or not isinstance(world, Clusters):
        raise BadInput(
            "this reading compares the rows of a head with cluster vectors, but the objective or the process has none. "
            "Use CrossEntropy or InstanceDiscrimination on Clusters(...)."
        )
    labels = torch.arange(world.labels)
    classes = labels if world.by_class else world.classes_of(labels)
    return head.detach().cpu(), world.cluster_vectors, classes


@dataclass(frozen=True)
class Shortest:
    r"""R2 of the observations themselves by least squares, where their columns outnumber the rows.

    Of all maps that fit half of the rows exactly, the shortest is taken, as scikit-learn does, and read on the others:

    $$\hat z = \bar z + (x - \bar x) X^\top (X X^\top)^{+} Z, \qquad X, Z \text{ centred rows that are fitted}$$

    Ours reads random projections of the observations, of which there are fewer than rows.

    Reference: zimmermann2021, Table 4, the column of the identity.
    """

    def __call__(self, trained: Trained) -> tuple[float, float]:
        """By the paper's protocol, and ours."""
        z, x = latents_and_observations(trained.world, trained.rows, 100, trained.device)
        ours = Recovery(AFFINE, repeats=0, shuffles=0)
        n = max(2 * trained.rows, ours.rows_needed(z.shape[1], represent(Raw(), x[:2]).shape[1]))
        z, x, half = z.double(), encoder_input(x).double().flatten(1), len(z) // 2
        fit, mean = x[:half] - x[:half].mean(0), z[:half].mean(0)
        weight = torch.linalg.pinv(fit @ fit.T, hermitian=True, rtol=1e-10) @ (z[:half] - mean)
        guess = mean + (x[half:] - x[:half].mean(0)) @ fit.T @ weight
        truth = z[half:]
        each = 1 - (truth - guess).square().sum(0) / (truth - truth.mean(0)).square().sum(0)
        return float(each.mean()), ours(*replace(trained, encoder=Raw()).represented(n, 0)).value


def taken(readings: tuple[Reading, ...], trained: Trained) -> dict[str, tuple[float, float]]:
    """Every reading that is not the score itself, by its name: by the paper's protocol, and ours."""
    found = {reading.name: reading.read(trained) for reading in readings if reading.read is not None}
    return {name: value if isinstance(value, tuple) else (value, value) for name, value in found.items()}
