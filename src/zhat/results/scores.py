"""One number with what is needed to believe it, and one for each class of maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from zhat.equivalence import AFFINE, Equivalence
from zhat.errors import BadInput
from zhat.shown import Drawn


def describe(up_to: Equivalence, shift: bool) -> str:
    """A class in words; an affine map has its shift already."""
    return f"{up_to} and a shift" if shift and not up_to >= AFFINE else str(up_to)


@dataclass(frozen=True, repr=False)
class Score(Drawn):
    """One number with what is needed to believe it.

    Attributes:
        name: the measure, for instance "R2".
        value: the score itself; the mean of `per_latent`.
        up_to: the class of maps the score is blind to.
        shift: whether a constant offset is forgiven as well.
        low: lower end of the 95% interval over rows, if one was asked for.
        high: upper end of that interval.
        chance: mean score when the rows of the representation are shuffled, if asked for.
        chance_high: the 95% quantile of those scores.
        n: rows the score was read on.
        n_fit: rows the map was fitted on; equal to `n` and the same rows where nothing was held out.
        held_out: whether the rows read were kept from the fit.
        per_latent: one score for each latent.
    """

    name: str
    value: float
    up_to: Equivalence
    shift: bool
    low: float | None
    high: float | None
    chance: float | None
    chance_high: float | None
    n: int
    n_fit: int
    held_out: bool
    per_latent: tuple[float, ...]

    def __str__(self) -> str:
        text = f"{self.name} {self.value:.4f} up to {describe(self.up_to, self.shift)}"
        if self.low is not None and self.high is not None:
            text += f", 95% interval [{self.low:.4f}, {self.high:.4f}]"
        if self.chance is not None:
            text += f", chance {self.chance:.4f}"
        return text + (f" ({self.n} held-out rows)" if self.held_out else f" ({self.n} rows, in sample)")

    def line(self) -> dict[str, Any]:
        """The score as one line of a table."""
        return {
            "up_to": describe(self.up_to, self.shift),
            "measure": self.name,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "chance": self.chance,
            "n": self.n,
            "held_out": self.held_out,
        }

    def _lines(self) -> Iterator[dict[str, Any]]:
        yield self.line()


@dataclass(frozen=True, repr=False)
class Profile(Drawn):
    """One score for each class of maps, tightest first."""

    scores: tuple[Score, ...]

    def __getitem__(self, up_to: Equivalence) -> Score:
        for score in self.scores:
            if score.up_to is up_to:
                return score
        have = ", ".join(score.up_to.name for score in self.scores)
        raise BadInput(f"this profile holds no score up to {up_to.name}; it holds {have}.")

    def __iter__(self) -> Iterator[Score]:
        return iter(self.scores)

    def __str__(self) -> str:
        rows = [("up to", "score", "95% interval", "chance")]
        for s in self.scores:
            interval = "" if s.low is None or s.high is None else f"[{s.low:.4f}, {s.high:.4f}]"
            rows.append((str(s.up_to), f"{s.value:.4f}", interval, "" if s.chance is None else f"{s.chance:.3f}"))
        first, *widths = (max(len(row[i]) for row in rows) for i in range(4))
        lines = [
            row[0].ljust(first) + "".join("  " + cell.rjust(width) for cell, width in zip(row[1:], widths, strict=True))
            for row in rows
        ]
        return "\n".join(lines)

    def _lines(self) -> Iterator[dict[str, Any]]:
        return (score.line() for score in self.scores)
