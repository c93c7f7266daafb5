"""Objectives for labelled rows: tell the label of a row from all other labels, exactly, however many there are."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from zhat import _checks
from zhat.dgp.batch import Batch
from zhat.errors import BadInput
from zhat.kernels import pairwise_logsumexp


class CrossEntropy(nn.Module):
    r"""Softmax cross-entropy over class labels, with a linear head W of its own.

    $$L = \frac1n \sum_i \Big[\log \sum_{j=1}^{N} e^{s_{ij}} - (1-\varepsilon)\, s_{i y_i}
          - \frac{\varepsilon}{N} \sum_j s_{ij}\Big], \qquad s_{ij} = \beta\, w_j \cdot h_i + b_j$$

    The sum over labels is exact. It is streamed: forward keeps one number for each row and backward recomputes the
    rest, so 100,000 labels cost no more memory than W itself. Several views of a row share its label.

    The four cases of reizinger2024, Theorem 1C, are the two switches `unit_features` and `unit_rows`: both (C1),
    features only (C2), rows only (C3), neither (C4, the paper's "unnormalised"). Rows are brought to unit length inside
    the loss, so their gradient is tangent to the sphere; the official code overwrites them before every step.

    Args:
        dim: dimension of the representation.
        labels: N, rows of the head.
        bias: add a trained offset $b_j$ to each label; the theorem has none.
        unit_rows: compare with rows of W brought to unit length.
        unit_features: compare representations brought to unit length. End the encoder on a sphere as well
            (`onto=Sphere(dim)`), so that what is scored is what is compared.
        inverse_temperature: $\beta$.
        learnable: train $\beta$, starting from `inverse_temperature`.
        label_smoothing: $\varepsilon$, the share of the target spread evenly over all labels.

    Reference: reizinger2024, Theorem 2 and section 4.1.

    Example:
        >>> objective = CrossEntropy(5, 100)
        >>> objective.head.shape, objective.case
        (torch.Size([100, 5]), 'C4')
    """

    def __init__(
        self,
        dim: int,
        labels: int,
        *,
        bias: bool = False,
        unit_rows: bool = False,
        unit_features: bool = False,
        inverse_temperature: float = 1.0,
        learnable: bool = False,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        self.dim, self.labels = _checks.count(dim, "dim"), _checks.count(labels, "labels", least=2)
        self.unit_rows, self.unit_features, self.learnable = unit_rows, unit_features, learnable
        if not 0 <= _checks.finite(label_smoothing, "label_smoothing") < 1:
            raise BadInput(f"`label_smoothing` must be at least 0 and below 1, but {label_smoothing} came.")
        self.label_smoothing = float(label_smoothing)
        # Names of their own, so that lr_scale={"rows": …} reaches the head and not the encoder.
        self.rows = nn.Parameter(torch.empty(labels, dim).uniform_(-1, 1) / math.sqrt(dim))  # as nn.Linear does
        self.offsets = nn.Parameter(torch.zeros(labels)) if bias else None
        log_beta = torch.tensor(math.log(_checks.positive(inverse_temperature, "inverse_temperature")))
        if learnable:
            self.log_beta = nn.Parameter(log_beta)
        else:
            self.register_buffer("log_beta", log_beta)

    @property
    def case(self) -> str:
        """The case of reizinger2024, Theorem 1C, by the loss alone: C1, C2, C3 or C4."""
        return self.case_of(self.unit_features, self.unit_rows)

    @staticmethod
    def case_of(unit_features: bool, unit_rows: bool) -> str:
        """The case by what has unit length."""
        cases = {(True, True): "C1", (True, False): "C2", (False, True): "C3", (False, False): "C4"}
        return cases[unit_features, unit_rows]

    @property
    def head(self) -> Tensor:
        """The rows that representations are compared with, `(labels, dim)`."""
        return F.normalize(self.rows, dim=-1) if self.unit_rows else self.rows

    @property
    def inverse_temperature(self) -> float:
        r"""The present $\beta$."""
        return math.exp(float(self.log_beta.detach()))

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        """The loss of representations `(views, n, dim)`; a scalar."""
        name = type(self).__name__
        if batch.label is None:
            raise BadInput(
                f"{name} tells labels apart, but this process has none. Use Clusters(...), or an objective "
                "for unlabelled rows such as InfoNCE."
            )
        if h.shape[-1] != self.dim:
            raise BadInput(
                f"{name} has a head for {self.dim} dimensions, but the encoder ends in {h.shape[-1]}. Make them agree."
            )
        label = batch.label.expand(h.shape[:-1]).reshape(-1)
        h = h.reshape(-1, self.dim)
        h = self.log_beta.exp() * (F.normalize(h, dim=-1) if self.unit_features else h)
        head = self.head.to(h.dtype)
        if self.offsets is not None:  # an offset is the weight of one more coordinate, which is always 1
            head = torch.cat([head, self.offsets[:, None].to(h.dtype)], -1)
            h = torch.cat([h, torch.ones_like(h[:, :1])], -1)
        all_ = pairwise_logsumexp(h, head, power=None, scale=1.0)
        own = (head[label] * h).sum(-1)
        if self.label_smoothing:
            own = (1 - self.label_smoothing) * own + self.label_smoothing * (head.mean(0) * h).sum(-1)
        return (all_ - own).mean()

    def logits(self, h: Tensor) -> Tensor:
        r"""$s_{ij}$ of representations `(n, dim)`, `(n, labels)`; the largest in a row names its label."""
        h = self.log_beta.exp() * (F.normalize(h, dim=-1) if self.unit_features else h)
        return h @ self.head.T if self.offsets is None else h @ self.head.T + self.offsets

    def extra_repr(self) -> str:
        """The arguments."""
        return (
            f"dim={self.dim}, labels={self.labels}, bias={self.offsets is not None}, unit_rows={self.unit_rows}, "
            f"unit_features={self.unit_features}, learnable={self.learnable}, label_smoothing={self.label_smoothing}"
        )


class InstanceDiscrimination(CrossEntropy):
    r"""DIET: cross-entropy in which every instance is a class of its own.

    The loss is that of `CrossEntropy`, with one row of W for each instance; only what the labels mean differs. The
    arguments are the same.

    Reference: reizinger2024, equation (3) and Theorem 1.
    """
