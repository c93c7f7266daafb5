"""Further numbers of a row of pairs: how alike two trained models are, in other words than mean CCA."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from zhat.errors import BadInput
from zhat.experiment.against import two_models
from zhat.experiment.readings import Trained
from zhat.metrics import CCA, SVCCA, linear_r2_both_ways
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
        pair = _models(trained, self.view)
        return CCA()(*pair, shuffles=0).value, CCA().held_out(*pair).value


@dataclass(frozen=True)
class Chance:
    """Mean CCA of the two models of a pair when the rows of one are shuffled: what few rows give for free."""

    def __call__(self, trained: Trained) -> float:
        """The chance level."""
        chance = CCA()(*_models(trained)).chance
        assert chance is not None, "CCA shuffles by default"
        return chance


@dataclass(frozen=True)
class LeastAlike:
    """The smallest canonical correlation of the two models of a pair: the direction they agree on least."""

    def __call__(self, trained: Trained) -> tuple[float, float]:
        """In sample, and held out."""
        pair = _models(trained)
        return min(CCA()(*pair, shuffles=0).per_latent), min(CCA().held_out(*pair).per_latent)


@dataclass(frozen=True)
class FirstComponents:
    """SVCCA of the two models of a pair.

    Args:
        components: principal components of either model that are compared.
    """

    components: int

    def __call__(self, trained: Trained) -> float:
        """Read on the rows it is fitted on."""
        return SVCCA(self.components)(*_models(trained), shuffles=0).value


@dataclass(frozen=True)
class LinearR2:
    """Held-out R2 of the best affine map from one model of a pair to the other.

    Args:
        of: the model that is predicted, 1 or 2.
    """

    of: int

    def __call__(self, trained: Trained) -> float:
        """Held out in any case."""
        return linear_r2_both_ways(*_models(trained))[self.of - 1].value


@dataclass(frozen=True)
class TwoRoads:
    """How far the linear map between two models from their heads is from the one between their features, |A - B| / |B|.

    Reference: roeder2020, Theorem 1; `zhat.theory.compare_models`.
    """

    def __call__(self, trained: Trained) -> float:
        """The distance between the two maps, relative to the second."""
        one, two = _models(trained)
        first, second = (member.head.detach() for member in trained.objective.members)
        apart = compare_models(first, second, one, two).disagreement
        if apart is None:
            raise BadInput("no set of labels has an invertible L in both heads, so there is no map to compare.")
        return apart


def _models(trained: Trained, view: int = 0) -> tuple[Tensor, Tensor]:
    """What either model makes of the rows that the paper's score is read on."""
    return two_models(trained.encoder, trained.world, trained.rows, 100, trained.device, view=view)
