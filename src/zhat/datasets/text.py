"""Recorded text as a process: words as whole numbers, windows of neighbouring ones as observations.

A text is cut into lower-case words and marks of punctuation; the most frequent ones are the vocabulary, all others are
one unknown word, number 0. The end of every document is held out: neighbouring windows overlap, so windows put aside
at random would have been seen in part.
"""

from __future__ import annotations

import json
import lzma
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, repeat
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from zhat import _checks
from zhat.datasets.place import recorded
from zhat.dgp.batch import Batch
from zhat.errors import BadInput

UNKNOWN = "<unknown>"
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*|\d+|[.,;:!?]")


@dataclass(frozen=True)
class Corpus:
    """A text of the recorded data, as numbers of words.

    Attributes:
        file: below the folder of recorded data: plain text, or `.jsonl` with one document in the field `text` of each
            line; either may be packed with xz.
        words: size of the vocabulary, the unknown word included; number 1 is the most frequent word.
        held_out: share of every document, at its end, that training never sees.
        characters: read only so many characters from the beginning; None reads all.

    Example:
        >>> split("“It’s a truth,” said Mr. Darcy.")
        ["it's", 'a', 'truth', ',', 'said', 'mr', '.', 'darcy', '.']
    """

    file: str
    words: int = 8192
    held_out: float = 0.05
    characters: int | None = None

    def __post_init__(self) -> None:
        _checks.count(self.words, "words", least=2)
        if not 0 < _checks.finite(self.held_out, "held_out") < 1:
            raise BadInput(f"`held_out` must be a share between 0 and 1, but {self.held_out} came.")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The word of each number; the unknown word first, then by falling frequency in the training part."""
        return _read(self, recorded(self.file))[0]

    def tokens(self, part: str = "train", device: torch.device | str = "cpu") -> Tensor:
        """The part "train" or "held out" as one row of numbers, `(n,)`; kept on the device once it was asked for."""
        if part not in ("train", "held out"):
            raise BadInput(f"a corpus has the parts 'train' and 'held out', but {part!r} came.")
        return _on(self, recorded(self.file), part, str(device))

    def frequencies(self) -> Tensor:
        """The share of every word in the training part, `(words,)`; words that never occur count as one."""
        count = torch.bincount(self.tokens(), minlength=self.words).clamp_min(1).double()
        return (count / count.sum()).float()

    def held_out_text(self) -> tuple[str, ...]:
        """The held-out ends of the documents as they are written, for models with a vocabulary of their own."""
        return tuple(end for _, end in _documents(self, recorded(self.file)))


def split(text: str) -> list[str]:
    """The words and marks of a text, in order, lower-case."""
    return _WORD.findall(text.lower().replace("’", "'"))


@dataclass(frozen=True)
class Windows:
    """Neighbouring words of a corpus as observations: `x` is `(1, n, length)`, whole numbers, from anywhere in a part.

    Documents follow one another without a mark, so a few windows hold the end of one and the beginning of the next.

    Attributes:
        corpus: the text.
        length: words in a window.
        part: "train" or "held out".
        seed: not used: all seeds read the same text. Which windows are drawn is up to the generator.
    """

    corpus: Corpus
    length: int
    part: str = "train"
    seed: int = 0
    views: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _checks.count(self.length, "length")

    @property
    def held_out(self) -> Self:
        """The same windows of the part that training never sees."""
        return replace(self, part="held out")

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` windows, with replacement."""
        return Batch(x=self._drawn(n, generator)[None])

    def _drawn(self, n: int, generator: torch.Generator) -> Tensor:
        tokens = self.corpus.tokens(self.part, generator.device)
        if len(tokens) < self.length:
            raise BadInput(
                f"{self.corpus.file} has {len(tokens)} words in the part {self.part!r}, fewer than a window of "
                f"{self.length}. Give a longer text, or ask for shorter windows."
            )
        first = torch.randint(len(tokens) - self.length + 1, (n, 1), generator=generator, device=generator.device)
        return tokens[first + torch.arange(self.length, device=generator.device)]


@dataclass(frozen=True)
class CentreWords(Windows):
    """The words around a word as observation, `(1, n, length - 1)`, and the word in the middle as its label."""

    @property
    def labels(self) -> int:
        """How many different labels there are: the size of the vocabulary."""
        return self.corpus.words

    def sample(self, n: int, *, generator: torch.Generator) -> Batch:
        """`n` contexts with their words, with replacement."""
        x, middle = self._drawn(n, generator), self.length // 2
        return Batch(x=torch.cat([x[:, :middle], x[:, middle + 1 :]], 1)[None], label=x[:, middle])


@lru_cache(maxsize=2)
def _documents(corpus: Corpus, path: Path) -> tuple[tuple[str, str], ...]:
    """Each document, cut into what is trained on and its end."""
    with lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8") as file:
        lines = ".jsonl" in path.suffixes
        left = corpus.characters
        found = []
        for text in (json.loads(line)["text"] for line in file) if lines else (file.read(left),):
            kept = text if left is None else text[:left]
            cut = len(kept) - int(len(kept) * corpus.held_out)
            found.append((kept[:cut], kept[cut:]))
            left = None if left is None else left - len(kept)
            if left == 0:
                break
    return tuple(found)


@lru_cache(maxsize=4)
def _read(corpus: Corpus, path: Path) -> tuple[tuple[str, ...], dict[str, Tensor]]:
    """The vocabulary and the numbers of both parts."""
    begins, ends = ([split(text) for text in texts] for texts in zip(*_documents(corpus, path), strict=True))
    count = Counter(chain.from_iterable(begins))
    kept = [word for word, _ in sorted(count.items(), key=lambda item: (-item[1], item[0]))[: corpus.words - 1]]
    number = {word: i for i, word in enumerate(kept, start=1)}
    parts = {
        name: torch.from_numpy(
            np.fromiter(map(number.get, chain.from_iterable(texts), repeat(0)), dtype=np.int64)  # 0 where unknown
        )
        for name, texts in (("train", begins), ("held out", ends))
    }
    return (UNKNOWN, *kept), parts


@lru_cache(maxsize=8)
def _on(corpus: Corpus, path: Path, part: str, device: str) -> Tensor:
    return _read(corpus, path)[1][part].to(device)
