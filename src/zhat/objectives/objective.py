"""The contract of an objective."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from zhat.dgp.batch import Batch


class Objective(Protocol):
    """What a learner minimises: any callable `(h, batch) -> scalar`, an `nn.Module` if it owns parameters.

    One member is required. An objective may have more, and whoever uses one of these asks first whether it is there:

    - `labels`: how many labels it has rows for; `train` refuses a process with more.
    - `head`: its rows for labels, `(labels, k)`, as they enter the loss; readings and `zhat check` compare them.
    - `noise`: how many standard normal numbers it needs for each row and view, as `batch.noise`. An objective never
      draws by itself, because a seed would then give other results alone than in a stack.
    - `rows`: the rows of a vocabulary, `(words, k)`, and `log_weights(frequencies)`, what it adds to each logit; a
      figure that compares word models uses both.
    """

    def __call__(self, h: Tensor, batch: Batch) -> Tensor:
        """The loss of representations `(views, n, k)` of the batch; a scalar."""
