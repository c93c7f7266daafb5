r"""The canonical discriminative form: $p(y \mid x, S) \propto \exp f(x) \cdot g(y)$ over the candidates y in S.

Classifiers, contrastive models and language models are this form with different candidate sets: all labels, the other
rows of a batch, a vocabulary. A bias is one more coordinate of g, with a 1 in f.

Reference: roeder2020, sections 2 and 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from zhat.dgp.batch import Batch
from zhat.errors import BadInput
from zhat.kernels import pairwise_logsumexp


class Candidates(Protocol):
    """A kind of candidate set S: gives the log-probability of each true label."""

    def __call__(self, f: Tensor, g: Tensor, label: Tensor) -> Tensor:
        """`f (n, M)`, `g (labels, M)`, `label (n,)` give `(n,)`."""
        ...


@dataclass(frozen=True)
class AllLabels:
    r"""S is every label: a classifier's softmax.

    $$\log p_i = f_i \cdot g_{y_i} - \log \sum_y e^{f_i \cdot g_y}$$
    """

    def __call__(self, f: Tensor, g: Tensor, label: Tensor) -> Tensor:
        """`f (n, M)`, `g (labels, M)`, `label (n,)` give `(n,)`; exact and streamed, for any number of labels."""
        return (f * g[label]).sum(-1) - pairwise_logsumexp(f, g, power=None, scale=1.0)


@dataclass(frozen=True)
class InBatch:
    r"""S is what the batch holds: CPC, n-pair and other deep metric learning.

    $$\log p_i = f_i \cdot g_{y_i} - \log \sum_j e^{f_i \cdot g_{y_j}}$$

    The sum runs over the rows j of the batch, so a label that came twice counts twice, as in the papers' code.
    """

    def __call__(self, f: Tensor, g: Tensor, label: Tensor) -> Tensor:
        """`f (n, M)`, `g (labels, M)`, `label (n,)` give `(n,)`."""
        own = g[label]
        return (f * own).sum(-1) - pairwise_logsumexp(f, own, power=None, scale=1.0)


@dataclass(frozen=True)
class Vocabulary:
    """S is a vocabulary: a causal or masked language model, one label for each position of a text.

    Args:
        ignore: the label of positions that are not predicted; they get no probability.
    """

    ignore: int = -100

    def __call__(self, f: Tensor, g: Tensor, label: Tensor) -> Tensor:
        """`f (…, M)`, `g (words, M)`, `label (…)` give one value for each position that is predicted."""
        kept = label != self.ignore
        return AllLabels()(f[kept], g, label[kept])


@dataclass(frozen=True, eq=False)
class Canonical:
    """A model in canonical form.

    Attributes:
        features: f, from observations to `(…, M)`.
        head: g, one row for each label, `(labels, M)`.
        candidates: the sets S within which labels are compared.
        biased: whether the last coordinate is a bias: 1 in all features.

    Example:
        >>> model = Canonical(lambda x: x, torch.eye(3))
        >>> round(model.log_prob(torch.zeros(1, 3), torch.tensor([2])).exp().item(), 4)  # three labels alike
        0.3333
    """

    features: Callable[[Any], Tensor]
    head: Tensor
    candidates: Candidates = AllLabels()
    biased: bool = False

    def logits(self, x: Any) -> Tensor:
        """f(x) · g(y) for every label, `(…, labels)`."""
        f = self._checked(x)
        return f @ self.head.to(f).T

    def log_prob(self, x: Any, label: Any) -> Tensor:
        """log p(y | x, S) of the true labels: whole numbers, one for each row of features."""
        f = self._checked(x)
        label = torch.as_tensor(label, device=f.device)
        if label.is_floating_point() or label.dtype == torch.bool or label.shape != f.shape[:-1]:
            raise BadInput(
                f"`label` must hold one whole number for each row of features, {tuple(f.shape[:-1])}, but the shape "
                f"{tuple(label.shape)} and the dtype {label.dtype} came."
            )
        kept = label[label != self.candidates.ignore] if isinstance(self.candidates, Vocabulary) else label
        if kept.numel() and (int(kept.min()) < 0 or int(kept.max()) >= len(self.head)):
            raise BadInput(
                f"`label` must lie between 0 and {len(self.head) - 1}, one for each row of the head, but labels run "
                f"from {int(kept.min())} to {int(kept.max())}."
            )
        return self.candidates(f, self.head.to(f), label)

    def _checked(self, x: Any) -> Tensor:
        f = self.features(x)
        if f.shape[-1] != self.head.shape[1]:
            raise BadInput(
                f"f and g must have the same dimension, but f(x) has the shape {tuple(f.shape)} and g "
                f"{tuple(self.head.shape)}. Give the layer that the features are multiplied with."
            )
        return f


@dataclass(frozen=True)
class InBatchSoftmax:
    r"""Tell the partner of a row from the partners of all other rows: the loss of CPC and n-pair learning.

    $$L = -\frac1n \sum_i \log \frac{e^{f_i \cdot g_i}}{\sum_j e^{f_i \cdot g_j}}, \qquad f \text{ the first view, } g
      \text{ the second}$$

    Reference: roeder2020, section 4 and section 5.2.
    """

    def __call__(self, h: Tensor, batch: Batch) -> Tensor:
        """The loss of representations `(2, n, M)`; a scalar."""
        if h.ndim != 3 or h.shape[0] != 2:
            raise BadInput(
                f"InBatchSoftmax compares 2 views of each row, but representations of shape {tuple(h.shape)} came. "
                "Use Pairs(...), or an objective for labelled rows such as CrossEntropy."
            )
        f, g = h[0], h[1]
        return (pairwise_logsumexp(f, g, power=None, scale=1.0) - (f * g).sum(-1)).mean()
