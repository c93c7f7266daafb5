"""Objectives for words: the next word of a text, the word in the middle of a context."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from zhat import _checks
from zhat.dgp.batch import Batch
from zhat.errors import BadInput


@dataclass(frozen=True)
class NextWord:
    r"""Cross-entropy of the next word at every place: $-\frac1{n(T-1)} \sum_{i,t} \log p(x_{i,t+1} \mid x_{i,\le t})$.

    The encoder gives the scores of all words, `(1, n, T, words)`, such as `GPT`.

    Reference: roeder2020, section 4 (autoregressive models).
    """

    def __call__(self, h: Tensor, batch: Batch) -> Tensor:
        """The loss of scores `(1, n, T, words)` for windows `(1, n, T)`; a scalar."""
        if h.shape[:-1] != batch.x.shape or batch.x.is_floating_point():
            raise BadInput(
                f"NextWord compares scores of every word at every place, (1, n, T, words), with windows of whole "
                f"numbers, (1, n, T), but {tuple(h.shape)} and {tuple(batch.x.shape)} came. Use Windows(...) and GPT."
            )
        return F.cross_entropy(h[..., :-1, :].flatten(0, -2), batch.x[..., 1:].flatten())


class WordSoftmax(nn.Module):
    r"""Tell the word that belongs to a context from all words of the vocabulary.

    $$L = -\frac1n \sum_i \log \frac{e^{s(y_i, f_i)}}{\sum_w e^{s(w, f_i)}}, \qquad s(w, f) = f \cdot q_w + b_w$$

    The canonical form with the bias folded in: f gets a coordinate that is always 1, and $g(w) = (q_w, b_w)$.

    Args:
        dim: M.
        words: size of the vocabulary.
        scale: initial rows are uniform in [-scale, scale]; 0.05 is what the code behind roeder2020's Figure 1 takes.
        frequencies: gives the share of every word, `(words,)`; offsets then begin at their logarithm. From 0, vectors
            learn the frequencies before the offsets do, and two trainings end in different minima.

    Reference: roeder2020, sections 2 and 4.
    """

    def __init__(
        self, dim: int, words: int, *, scale: float = 0.05, frequencies: Callable[[], Tensor] | None = None
    ) -> None:
        super().__init__()
        self.dim, self.labels = _checks.count(dim, "dim"), _checks.count(words, "words", least=2)
        self.scale = _checks.positive(scale, "scale")
        self.rows = nn.Parameter(torch.empty(words, dim).uniform_(-scale, scale))
        self.offsets = nn.Parameter(torch.zeros(words) if frequencies is None else frequencies().log())

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        """The loss of representations `(1, n, dim)`; a scalar."""
        f, label = self._checked(h, batch)
        return F.cross_entropy(f @ self.rows.T + self.offsets, label)

    def log_weights(self, frequencies: Tensor) -> Tensor:
        r"""c of the canonical form $p(w \mid x) \propto e^{f(x) \cdot q_w + c_w}$, `(words,)`: the offsets.

        Args:
            frequencies: the share of every word, `(words,)`.
        """
        return self.offsets

    def _checked(self, h: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        if batch.label is None or h.ndim != 3 or len(h) != 1 or h.shape[-1] != self.dim:
            raise BadInput(
                f"{type(self).__name__} compares one view of labelled rows in {self.dim} dimensions, (1, n, "
                f"{self.dim}), but {tuple(h.shape)} {'without labels ' if batch.label is None else ''}came. Use "
                "CentreWords(...) and an encoder that ends in as many dimensions."
            )
        return h[0], batch.label

    def extra_repr(self) -> str:
        """The arguments."""
        return f"dim={self.dim}, words={self.labels}, scale={self.scale}"


class NegativeSampling(WordSoftmax):
    r"""Tell the word that belongs to a context from a few words drawn at random.

    $$L = -\frac1n \sum_i \Big[\log \sigma(s(y_i, f_i)) + \frac1k \sum_{j=1}^{k} \log \sigma(-s(y_{i+j}, f_i))\Big]$$

    Noise words are the words of the k following rows of the batch. Rows are drawn independently, so these are draws
    from the words' frequencies, and no further randomness is needed. The correction by $\log k\, p_{noise}(w)$ that
    would make this noise-contrastive estimation is left out, as in the code behind roeder2020's Figure 1: the minimum
    is then at $s = \log p(w \mid h) - \log p(w)$, not at the canonical form.

    Args:
        dim: M.
        words: size of the vocabulary.
        noise: k.
        scale: of the initial rows.

    Reference: roeder2020, Figure 1 (the notebook); mikolov2013.
    """

    def __init__(self, dim: int, words: int, *, noise: int = 25, scale: float = 0.05) -> None:
        super().__init__(dim, words, scale=scale)
        self.noise = _checks.count(noise, "noise")

    def forward(self, h: Tensor, batch: Batch) -> Tensor:
        """The loss of representations `(1, n, dim)`; a scalar."""
        f, label = self._checked(h, batch)
        n = len(label)
        if n <= self.noise:
            raise BadInput(f"{self.noise} noise words need a batch of at least {self.noise + 1} rows, but {n} came.")
        rows = torch.arange(n, device=f.device)[:, None]
        others = label[(rows + torch.arange(self.noise + 1, device=f.device)) % n]  # the true word first, (n, 1 + k)
        scores = torch.einsum("nm,nkm->nk", f, self.rows[others]) + self.offsets[others]
        return F.softplus(-scores[:, 0]).mean() + F.softplus(scores[:, 1:]).mean()

    def log_weights(self, frequencies: Tensor) -> Tensor:
        """The offsets and the logarithm of the frequencies, by which noise was drawn and not corrected for."""
        return self.offsets + frequencies.to(self.offsets).log()

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{super().extra_repr()}, noise={self.noise}"
