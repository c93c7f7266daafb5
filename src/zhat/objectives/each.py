"""One objective for each of two encoders that are trained side by side."""

from __future__ import annotations

from torch import Tensor, nn

from zhat.dgp.batch import Batch
from zhat.errors import BadInput
from zhat.fresh import Fresh, describe
from zhat.objectives.objective import Objective


class Each(nn.Module):
    r"""The mean of two losses: one of the even rows, one of the odd rows, as `zhat.encoders.Pair` hands them over.

    $$L = \tfrac12 \big(L_1(h_{0}, h_{2}, \dots) + L_2(h_{1}, h_{3}, \dots)\big)$$

    Nothing is shared between the two, so neither member's gradient depends on the other.

    Args:
        objective: the loss, or a `Fresh` one if it owns parameters, a head for instance: each member gets its own.

    Reference: roeder2020, section 5.
    """

    def __init__(self, objective: Objective | Fresh) -> None:
        super().__init__()
        if isinstance(objective, nn.Module):
            raise BadInput(
                f"two models need two heads, but one module came. Give Fresh({type(objective).__name__}, …)."
            )
        made = [objective() if isinstance(objective, Fresh) else objective for _ in range(2)]
        self.plain = tuple(m for m in made if not isinstance(m, nn.Module))
        self.owned = nn.ModuleList([m for m in made if isinstance(m, nn.Module)])

    @property
    def members(self) -> tuple[Objective, ...]:
        """The objective of either model."""
        return (*self.plain, *self.owned)

    @property
    def labels(self) -> int | None:
        """How many labels the heads have rows for; None where there are no heads."""
        return getattr(self.members[0], "labels", None)

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        """The loss of representations `(views, n, k)`; a scalar."""
        one, two = (member(h[:, i::2], _every_other(batch, i)) for i, member in enumerate(self.members))
        return (one + two) / 2

    def extra_repr(self) -> str:
        """Objectives without parameters, which torch does not print by itself."""
        return describe(self.plain[0]) if self.plain else ""


def _every_other(batch: Batch, first: int) -> Batch:
    return Batch(
        x=batch.x[:, first::2],
        z=None if batch.z is None else batch.z[:, first::2],
        label=None if batch.label is None else batch.label[first::2],
    )
