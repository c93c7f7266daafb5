"""A small causal language model: a transformer that reads words from left to right and predicts the next one."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn
from torch.nn import functional as F

from zhat import _checks
from zhat.errors import BadInput


class Block(nn.Module):
    r"""$h \leftarrow h + \text{attend}(\text{norm}(h)), \; h \leftarrow h + \text{mlp}(\text{norm}(h))$."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attend, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.ask, self.answer = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, h: Tensor) -> Tensor:
        """Every place takes from itself and from places before it, `(n, T, width) -> (n, T, width)`."""
        query, key, value = self.ask(h).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        taken = F.scaled_dot_product_attention(query, key, value, is_causal=True)  # (n, heads, T, width / heads)
        out: Tensor = self.answer(taken.transpose(1, 2).flatten(2))
        return out

    def forward(self, h: Tensor) -> Tensor:
        """`(n, T, width) -> (n, T, width)`."""
        h = h + self.attend(self.norm_attend(h))
        out: Tensor = h + self.narrow(F.gelu(self.widen(self.norm_mlp(h))))
        return out


class GPT(nn.Module):
    r"""A causal transformer with the norm in front of each part, learned places, and a head tied to the word table.

    In canonical form f is the last hidden state, after the final norm, and g(y) the row of the word table:
    $p(y \mid x) \propto \exp f(x) \cdot g(y)$ over the vocabulary.

    Args:
        words: size of the vocabulary.
        width: of the hidden states.
        depth: number of blocks.
        heads: of attention; must divide `width`. None takes one for each 64 columns.
        length: the longest text it can read.

    Reference: radford2019; roeder2020, section 5.3.

    Example:
        >>> import torch
        >>> model = GPT(100, width=16, depth=2, heads=2, length=8)
        >>> model(torch.zeros(1, 8, dtype=torch.long)).shape, len(model.hidden_states(torch.zeros(1, 8).long()))
        (torch.Size([1, 8, 100]), 3)
    """

    def __init__(self, words: int, *, width: int, depth: int, heads: int | None = None, length: int = 256) -> None:
        super().__init__()
        _checks.count(words, "words")
        _checks.count(depth, "depth")
        heads = max(1, width // 64) if heads is None else _checks.count(heads, "heads")
        if _checks.count(width, "width") % heads:
            raise BadInput(f"`heads` must divide `width`, but {heads} heads and a width of {width} came.")
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(_checks.count(length, "length"), width)
        self.blocks: Iterable[nn.Module] = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self._start(depth)

    def _start(self, depth: int) -> None:
        """Small initial weights; those that add to the hidden states are smaller the more of them there are."""
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif "norm" not in name:
                adds = name.endswith(("answer.weight", "narrow.weight"))
                nn.init.normal_(parameter, std=0.02 / (2 * depth) ** 0.5 if adds else 0.02)

    def hidden_states(self, x: Tensor) -> list[Tensor]:
        """What enters the first block, then what leaves each block, the last after the final norm; `(n, T, width)`."""
        if x.shape[-1] > self.places.num_embeddings:
            raise BadInput(
                f"this model reads at most {self.places.num_embeddings} words at once, but {x.shape[-1]} came."
            )
        states = [self.words(x) + self.places.weight[: x.shape[-1]]]
        for block in self.blocks:
            states.append(block(states[-1]))
        return [*states[:-1], self.norm(states[-1])]

    def forward(self, x: Tensor) -> Tensor:
        """f(x) · g(y) for every word y, `(n, T)` whole numbers `-> (n, T, words)`."""
        return F.linear(self.hidden_states(x)[-1], self.words.weight)
