"""Further numbers of a row of pairs: how alike two trained models are, in other words than mean CCA."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from zhat.encoders import Pair
from zhat.errors import BadInput
from zhat.experiment.readings import Trained
from zhat.experiment.scoring import alike, two_models
from zhat.metrics import CCA, SVCCA, linear_r2_both_ways
from zhat.results import Score
from zhat.theory import compare_models


@dataclass(frozen=True)
class Alike:
    """Mean CCA of the two models of a pair on rows of one view, for models with a network for each.

    Args:
        view: 0 compares the two f, 1 the two g.

    Reference: roeder2020, Figure 3.
    """

    view: int = 0

    def __call__(self, trained: Trained) -> tuple[float, float]:
        """In sample as in the paper, and held out."""
        by_paper, held_out = _alike(trained, self.view)
        return by_paper.value, held_out.value


@dataclass(frozen=True)
class Chance:
    """Mean CCA of the two models of a pair when the rows of one are shuffled: what few rows give for free."""

    def __call__(self, trained: Trained) -> tuple[float, float]:
        """The same number twice."""
        score, _ = _alike(trained)
        assert score.chance is not None, "CCA shuffles by default"
        return score.chance, score.chance


@dataclass(frozen=True)
class LeastAlike:
    """The smallest canonical correlation of the two models of a pair: the direction they agree on least."""

    def __call__(self, trained: Trained) -> tuple[float, float]:
        """In sample, and held out."""
        by_paper, held_out = (min(score.per_latent) for score in _alike(trained))
        return by_paper, held_out


@dataclass(frozen=True)
class FirstComponents:
    """SVCCA of the two models of a pair.

    Args:
        components: principal components of either model that are compared.
    """

    components: int

    def __call__(self, trained: Trained) -> tuple[float, float]:
        """The same number twice: read on the rows it is fitted on."""
        one, _, two = _models(trained)
        value = SVCCA(self.components)(one, two, shuffles=0).value
        return value, value


@dataclass(frozen=True)
class LinearR2:
    """Held-out R2 of the best affine map from one model of a pair to the other.

    Args:
        of: the model that is predicted, 1 or 2.
    """

    of: int

    def __call__(self, trained: Trained) -> tuple[float, float]:
        """The same number twice: held out in any case."""
        one, _, two = _models(trained)
        value = linear_r2_both_ways(one, two)[self.of - 1].value
        return value, value


@dataclass(frozen=True)
class TwoRoads:
    """How far the linear map between two models from their heads is from the one between their features, |A - B| / |B|.

    Reference: roeder2020, Theorem 1; `zhat.theory.compare_models`.
    """

    def __call__(self, trained: Trained) -> tuple[float, float]:
        """The same number twice."""
        one, _, two = _models(trained)
        first, second = (member.head.detach() for member in trained.objective.members)
        apart = compare_models(first, second, one, two).disagreement
        if apart is None:
            raise BadInput("no set of labels has an invertible L in both heads, so there is no map to compare.")
        return apart, apart


def _alike(trained: Trained, view: int = 0) -> tuple[Score, Score]:
    return alike(CCA(), trained.encoder, trained.world, rows=trained.rows, device=trained.device, view=view)


def _models(trained: Trained) -> tuple[Tensor, Tensor, Tensor]:
    if not isinstance(trained.encoder, Pair):
        raise BadInput("this reading compares two models, but the encoder is no Pair. Use Fresh(Pair, Fresh(mlp, …)).")
    return two_models(trained.encoder, trained.world, trained.rows, 100, trained.device)
