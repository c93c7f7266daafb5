"""The context of a word as one vector: the encoder of a log-bilinear word model."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from zhat import _checks


class ContextSum(nn.Module):
    r"""$f(w_1, \dots, w_k) = \sum_i c_i \odot r_{w_i}$: a vector for each word, weighed by one for each place.

    Args:
        words: size of the vocabulary.
        dim: dimension of the representation, M.
        places: k, words in a context.
        scale: initial values are uniform in [-scale, scale]; roeder2020's code takes 0.001.

    Reference: roeder2020, Figure 1 (the notebook); mnih2012 for the model.

    Example:
        >>> ContextSum(100, 8)(torch.tensor([[3, 14, 15, 92]])).shape
        torch.Size([1, 8])
    """

    def __init__(self, words: int, dim: int, *, places: int = 4, scale: float = 0.001) -> None:
        super().__init__()
        _checks.count(words, "words")
        _checks.count(dim, "dim")
        _checks.count(places, "places")
        self.scale = _checks.positive(scale, "scale")
        self.context = nn.Parameter(torch.empty(words, dim).uniform_(-scale, scale))
        self.place = nn.Parameter(torch.empty(places, dim).uniform_(-scale, scale))

    def forward(self, x: Tensor) -> Tensor:
        """`(…, places)`, whole numbers, give `(…, dim)`."""
        return (nn.functional.embedding(x, self.context) * self.place).sum(-2)

    def extra_repr(self) -> str:
        """The arguments."""
        (words, dim), places = self.context.shape, len(self.place)
        return f"words={words}, dim={dim}, places={places}, scale={self.scale}"
