r"""How well known factors can be read from a representation by a linear map, factor by factor.

A factor is **real**, **circular** or **categorical**, and is turned into columns: its values, its (cos, sin), or one
column for each class. The joint moments of those columns and the representation on the rows to fit on give every map;
the scores are read on the other rows.

- real: least squares, read as R2;
- circular: least squares of (cos, sin), read as $R^2 = 1 - \sum_i |u_i - \hat u_i|^2 / \sum_i |u_i - \bar u|^2$ with
  $u = (\cos, \sin)$; the mean cosine of the angle between $u$ and $\hat u$ stands beside it;
- categorical: the linear discriminant with one covariance for all classes and equal priors, read as balanced accuracy,
  the mean over classes of the share of its rows that are classified correctly. It does not rise if the largest class is
  always guessed, its chance level is one over the number of classes, and it is what equal priors are best for.

**p-values**: under the hypothesis that representation and factor are independent, the held-out rows of the factor may
be shuffled against the predictions. With s shuffles, c of which score at least as much, $p = (1 + c) / (1 + s)$. This
is exact for one factor, whatever was fitted on the other rows. Holm's correction (holm1979) then holds the probability
of any false positive among all factors below the level, however they depend on one another.

Many factors need many shuffles, because Holm multiplies p by their number. Shuffles come in **cosets**: the rows in a
random order, and that order rolled by every number of places. A fast Fourier transform gives the scores of all rolls of
an order at once. The test stays exact: from the point of view of any of its members, the collection of the unshuffled
order, r random orders and all of their rolls is drawn by the same law, so that under the hypothesis the unshuffled
score is as likely to have any rank among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from zhat import _checks, randomness
from zhat.errors import BadInput
from zhat.metrics.moments import Moments
from zhat.metrics.pairing import order, orders
from zhat.metrics.spectrum import TINY, Spectrum, centred, varies
from zhat.metrics.uncertainty import around, influences, shares
from zhat.results import FactorScore

Blocks = Callable[[], Iterator[Any]]
Ends = tuple[float, float] | tuple[None, None]

LEAST = 5  # rows of a class on either side of the split
TESTED = 4096  # held-out rows that are shuffled
UNITS = 4096  # groups of held-out rows, at most, whose influences an interval is made of


@dataclass(frozen=True, eq=False)
class Factor:
    """A known factor of every row.

    Attributes:
        name: for a reader.
        type: "real", "circular" or "categorical".
        columns: what is regressed, `(n, t)`: the value, (cos, sin), or one column for each class.
        classes: names of the classes; empty for other kinds.
        period: of a circular factor.

    Example:
        >>> Factor.circular("angle", np.array([0.0, 90.0]), 360.0).columns.round(decimals=6).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """

    name: str
    type: str
    columns: Tensor
    classes: tuple[str, ...] = ()
    period: float | None = None

    @classmethod
    def real(cls, name: str, values: Any) -> Factor:
        """A factor whose values are numbers on a line, `(n,)`; kept in standard deviations around the mean."""
        column = _checks.matrix(np.asarray(values, dtype=np.float64)[:, None], name)
        if bool(_checks.constant(column)):
            return cls(name, "real", torch.zeros_like(column))
        away = column - column.mean(0)
        away = away / away.abs().amax()  # so that no square leaves the range of float64
        return cls(name, "real", away / away.square().mean(0).sqrt())

    @classmethod
    def circular(cls, name: str, values: Any, period: float) -> Factor:
        """A factor that comes back to its start after one period, `(n,)`."""
        period = _checks.positive(period, "period")
        turn = _checks.matrix(np.asarray(values, dtype=np.float64)[:, None], name).remainder(period) / period
        turn = turn * (2 * math.pi)
        return cls(name, "circular", torch.cat([turn.cos(), turn.sin()], 1), period=period)

    @classmethod
    def categorical(cls, name: str, values: Any) -> Factor:
        """A factor whose values are names without order, `(n,)`."""
        classes, codes = np.unique(np.asarray(values), return_inverse=True)
        columns = torch.zeros(len(codes), len(classes), dtype=torch.float64)
        columns[torch.arange(len(codes)), torch.from_numpy(codes)] = 1
        return cls(name, "categorical", columns, tuple(str(c) for c in classes))

    @property
    def codes(self) -> Tensor:
        """The number of each row's class, `(n,)`."""
        return self.columns.argmax(1)

    def unscorable(self, held_out: Tensor) -> str:
        """Why there can be no score with this split; empty where there can."""
        if bool(_checks.constant(self.columns, least=1.0).all()):
            return "it has the same value in all rows"
        if self.type != "categorical":
            for rows in (self.columns[held_out], self.columns[~held_out]):
                if bool(_checks.constant(rows, least=1.0).all()):
                    return "it has the same value in all rows of one side of the split"
            return ""
        least = torch.minimum(self.columns[held_out].sum(0), self.columns[~held_out].sum(0))
        if float(least.min()) >= LEAST:
            return ""
        rare = self.classes[int(least.argmin())]
        return (
            f"{len(self.classes):,} classes, and {rare!r} has {int(least.min())} rows on one side of the split; every "
            f"class needs {LEAST} on either side. Join rare classes, or bring more rows"
        )


@dataclass(frozen=True, eq=False)
class Decoded:
    """Scores of all factors, and how each coordinate is related to each factor.

    Attributes:
        scores: one for each factor.
        shuffles: how many the p-values rest on.
        association: correlation of each coordinate with each factor, between 0 and 1, `(factors, k)`: |Pearson| for a
            real factor, the multiple correlation with (cos, sin) or with the classes otherwise.
        importance: |standardised coefficients| of the maps where they are beyond noise, else 0, `(k, factors)`.
    """

    scores: tuple[FactorScore, ...]
    shuffles: int
    association: Tensor
    importance: Tensor


def decode_rows(
    blocks: Blocks,
    factors: Sequence[Factor],
    held_out: Tensor,
    *,
    block: int = 1,
    components: int | None = None,
    level: float = 0.05,
    shuffles: int | None = None,
    seed: int = 0,
) -> Decoded:
    """Fit every factor on some rows of a representation and read it on the others.

    Args:
        blocks: gives the representation from its first row to its last, some rows at a time; called twice.
        factors: of the same rows.
        held_out: which rows are read, `(n,)`.
        block: neighbouring rows that are shuffled and resampled together, for rows that depend on their neighbours.
        components: read from that many principal components of the fitted rows; None takes all directions.
        level: the probability of any false positive among all factors.
        shuffles: for the p-values, at least; None takes 999, or more for many factors.
        seed: of shuffles.
    """
    why = [factor.unscorable(held_out) for factor in factors]
    places = _places(factors)
    kept = [(f, place) for f, place, no in zip(factors, places, why, strict=True) if not no]
    columns = torch.cat([f.columns for f in factors], 1)
    copied = torch.cat([f.columns for f, _ in kept if not f.classes] or [columns[:, :0]], 1)
    mixed = _mixed(copied.shape[1], len(held_out), block, seed)
    (fit, fit_mixed), (read, read_mixed) = _moments(blocks, columns, copied, mixed, held_out)
    linear = _Linear.of(fit, components)
    rows = _predictions(blocks, kept, linear, fit, held_out)
    chances = _refitted([f for f, _ in kept], linear, fit_mixed, read, read_mixed, len(mixed))
    least = shuffles if shuffles is not None else max(999, 40 * len(kept) - 1)
    intervals = _intervals(rows, block, seed)
    tests, count = _shuffle_tests(rows, block, least, seed)
    found = {
        row.factor.name: row.score(ends, p, by_shuffle if chance is None else chance)
        for row, ends, (p, by_shuffle), chance in zip(rows, intervals, tests, chances, strict=True)
    }
    scores = [found.get(f.name) or _unscored(f, no) for f, no in zip(factors, why, strict=True)]
    whole = fit + read
    return Decoded(
        _corrected(scores, level),
        count,
        torch.stack([_association(whole, place, bool(f.classes)) for f, place in zip(factors, places, strict=True)]),
        torch.stack([linear.importance(fit, place) for place in places], 1),
    )


def holm(p: Sequence[float]) -> tuple[float, ...]:
    r"""p-values corrected for their number: $\tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1)\, p_{(j)})$.

    Calling those at most $\alpha$ found, the probability of any false positive is at most $\alpha$, however the tests
    depend on one another.

    Args:
        p: one p-value for each test.

    Reference: holm1979.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        (0.03, 0.06, 0.06)
    """
    order = sorted(range(len(p)), key=lambda i: p[i])
    out, worst = [0.0] * len(p), 0.0
    for place, i in enumerate(order):
        worst = max(worst, min(1.0, (len(p) - place) * p[i]))
        out[i] = worst
    return tuple(out)


def _places(factors: Sequence[Factor]) -> list[slice]:
    """Where the columns of each factor stand."""
    ends = np.cumsum([0, *(f.columns.shape[1] for f in factors)])
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def _mixed(width: int, n: int, block: int, seed: int) -> list[Tensor]:
    """Orders of the rows for the chance level of a fit: fewer for many columns, each of which is one more."""
    generator = randomness.generator(seed, "chance")
    times = max(5, min(20, 96 // width)) if width else 0
    return [orders(n, block, generator)[0] for _ in range(times)]


@dataclass(eq=False)
class _Beside:
    """Sums of columns and of a representation beside them, without products of two columns: linear in their number.

    Attributes:
        centre: the representation around which sums are taken, `(k,)`.
        n: rows.
        z: sums of the columns, `(t,)`.
        zz: sums of their squares, `(t,)`.
        zh: sums of products, `(t, k)`.
        h: sums of the representation, `(k,)`.
    """

    centre: Tensor
    n: int
    z: Tensor
    zz: Tensor
    zh: Tensor
    h: Tensor

    @classmethod
    def around(cls, centre: Tensor, columns: int) -> _Beside:
        """No rows yet."""
        zero = torch.zeros(columns, dtype=torch.float64)
        return cls(centre, 0, zero, zero.clone(), torch.zeros(columns, len(centre)).double(), torch.zeros_like(centre))

    def add(self, z: Tensor, h: Tensor) -> None:
        """Some more rows."""
        dh = h.double() - self.centre
        self.n += len(z)
        self.z += z.sum(0)
        self.zz += z.square().sum(0)
        self.zh.addmm_(z.T, dh)
        self.h += dh.sum(0)

    @property
    def mean(self) -> Tensor:
        """Of the columns, `(t,)`."""
        return self.z / self.n

    @property
    def spread(self) -> Tensor:
        """Sums of squares around the mean, `(t,)`."""
        return (self.zz - self.z.square() / self.n).clamp_min(0)

    @property
    def cross(self) -> Tensor:
        """Sums of products around the means, `(t, k)`."""
        return self.zh - torch.outer(self.z, self.h / self.n)


def _moments(
    blocks: Blocks, columns: Tensor, copied: Tensor, mixed: Sequence[Tensor], held_out: Tensor
) -> tuple[tuple[Moments, _Beside], tuple[Moments, _Beside]]:
    """Of fitted and of held-out rows: moments of all columns, and sums of some in each of several orders."""
    found: dict[bool, Moments] = {}
    beside: dict[bool, _Beside] = {}
    start = 0
    for rows in blocks():
        h = torch.as_tensor(rows)
        here = slice(start, start + len(h))
        for side in (False, True):
            some = held_out[here] == side
            if bool(some.any()):
                part = Moments.of(columns[here][some], h[some])
                found[side] = found[side] + part if side in found else part
                if side not in beside:
                    beside[side] = _Beside.around(part.mean_h, copied.shape[1] * len(mixed))
                if mixed:
                    beside[side].add(torch.cat([copied[order_of[here][some]] for order_of in mixed], 1), h[some])
        start += len(h)
    if len(found) < 2 or start != len(held_out):
        raise BadInput(f"{len(held_out)} rows with some on either side of the split were expected, but {start} came.")
    return (found[False], beside[False]), (found[True], beside[True])


@dataclass(frozen=True, eq=False)
class _Linear:
    """Directions of the representation in which the fitted rows have unit scatter, `(k, r)`: every fit starts here."""

    white: Tensor
    mean: Tensor

    @classmethod
    def of(cls, fit: Moments, components: int | None) -> _Linear:
        """From the fitted rows; directions without variance are left out."""
        # Units do not matter to a fit, so columns are brought to unit size; to principal components they do.
        white = Spectrum.of(fit.hh, fit.mean_h, fit.n, eps=fit.eps_h, unit=components is None).white[:, :components]
        if not white.shape[1]:
            raise BadInput("every row of the representation is the same, so nothing can be read from it.")
        return cls(white, fit.mean_h)

    def regression(self, zh: Tensor) -> Tensor:
        """Coefficients `(k, t)` of the columns whose cross scatter is `(t, k)`."""
        return self.white @ (zh @ self.white).T

    def discriminant(self, fit: Moments, place: slice) -> tuple[Tensor, Tensor]:
        r"""Weights `(k, c)` and offsets `(c,)` of the linear discriminant with equal priors.

        In directions of unit total scatter with class means $m_c$, the scatter within classes is $1 - P^\top P$ with
        rows $\sqrt{n_c}\, m_c$ of P, and its inverse needs only a matrix of the size of the classes.
        """
        share = fit.mean_z[place]
        counts = (share * fit.n).clamp_min(TINY)
        means = (fit.zh[place] @ self.white) / counts[:, None]
        rows = counts.sqrt()[:, None] * means
        values, vectors = torch.linalg.eigh(rows @ rows.T)
        grown = (vectors / (1 - values.clamp(0, 1 - 1e-10))) @ vectors.T
        weights = means + (grown @ (rows @ means.T)).T @ rows
        offsets = -0.5 * (weights * means).sum(1)
        across = self.white @ weights.T
        return across, offsets - self.mean @ across

    def importance(self, fit: Moments, place: slice) -> Tensor:
        """|Standardised coefficients| of a factor's columns, root mean square over them, where beyond noise, `(k,)`."""
        zh, zz = fit.zh[place], fit.zz[place, place].diagonal().clamp_min(0)
        vary = varies(zz, fit.mean_z[place], fit.n)
        if not bool(vary.any()):
            return torch.zeros(fit.hh.shape[0], dtype=torch.float64)
        across = self.regression(zh)[:, vary]
        zz = zz[vary]
        left = (1 - ((zh @ self.white)[vary].square().sum(1) / zz).clamp(0, 1)) * zz
        noise = self.white.square().sum(1)[:, None] * left / max(1, fit.n - self.white.shape[1] - 1)
        far = float(torch.special.ndtri(torch.tensor(1 - 0.005 / across.numel(), dtype=torch.float64)))
        size = fit.hh.diagonal().clamp_min(0)
        real = (across.square() > far**2 * noise).any(1)
        strength = (across.square() * size[:, None] / zz).mean(1).sqrt()
        return torch.where(real, strength, 0.0)


@dataclass(frozen=True, eq=False)
class _Row:
    """A factor with its predictions on the held-out rows."""

    factor: Factor
    truth: Tensor  # (n, t) columns; (n,) codes of a categorical factor
    guess: Tensor  # the same of the predictions

    def contributions(self) -> Tensor:
        """What each row adds to the sums that the score is a formula of, `(n, q)`."""
        if self.factor.type == "categorical":
            one_hot = torch.zeros(len(self.truth), len(self.factor.classes), dtype=torch.float64)
            one_hot[torch.arange(len(self.truth)), self.truth] = 1
            return torch.cat([one_hot, one_hot * (self.truth == self.guess)[:, None]], 1)
        off = (self.truth - self.guess).square().sum(1, keepdim=True)
        size = self.truth.square().sum(1, keepdim=True)
        return torch.cat([torch.ones_like(off), size, off, self.truth], 1)

    def formula(self, sums: Tensor) -> Tensor:
        """The score of sums, `(…, q) -> (…)`."""
        if self.factor.type == "categorical":
            count, right = sums.chunk(2, -1)
            return torch.where(count > 0, right / count.clamp_min(1), math.nan).nanmean(-1)
        n, size, off = sums[..., 0], sums[..., 1], sums[..., 2]
        spread = centred(size, sums[..., 3:].norm(dim=-1), n)
        return torch.where(spread > 0, 1 - off / spread, math.nan)

    def score(self, ends: Ends, p: float, chance: float) -> FactorScore:
        """The score with its interval, chance level and notes."""
        value = float(self.formula(self.contributions().sum(0)))
        also = {}
        if self.factor.type == "categorical":
            also["accuracy"] = float((self.truth == self.guess).double().mean())
        if self.factor.type == "circular":
            length = self.guess.norm(dim=1).clamp_min(TINY)
            also["mean cosine"] = float(((self.truth * self.guess).sum(1) / length).mean())
        return replace(
            _unscored(self.factor, ""), value=value, low=ends[0], high=ends[1], chance=chance, p=p, also=also
        )


def _unscored(factor: Factor, because: str) -> FactorScore:
    measure = "balanced accuracy" if factor.type == "categorical" else "R2"
    return FactorScore(
        name=factor.name,
        type=factor.type,
        measure=measure,
        classes=factor.classes,
        period=factor.period,
        because=because,
    )


def _predictions(
    blocks: Blocks, kept: Sequence[tuple[Factor, slice]], linear: _Linear, fit: Moments, held_out: Tensor
) -> list[_Row]:
    """Predictions of every factor on the held-out rows, in one pass."""
    if not kept:
        return []
    weights, offsets = [], []
    for factor, place in kept:
        if factor.type == "categorical":
            across, offset = linear.discriminant(fit, place)
        else:
            across = linear.regression(fit.zh[place])
            offset = fit.mean_z[place] - linear.mean @ across
        weights.append(across)
        offsets.append(offset)
    matrix, added = torch.cat(weights, 1), torch.cat(offsets)
    local = _places([factor for factor, _ in kept])
    guesses: list[list[Tensor]] = [[] for _ in kept]
    start = 0
    for block in blocks():
        h = torch.as_tensor(block)
        out = h[held_out[start : start + len(h)]].double() @ matrix + added
        for (factor, _), place, some in zip(kept, local, guesses, strict=True):
            some.append(out[:, place].argmax(1) if factor.type == "categorical" else out[:, place])
        start += len(h)
    return [
        _Row(f, (f.codes if f.type == "categorical" else f.columns)[held_out], torch.cat(some))
        for (f, _), some in zip(kept, guesses, strict=True)
    ]


def _refitted(
    factors: Sequence[Factor], linear: _Linear, fit: _Beside, read: Moments, read_mixed: _Beside, times: int
) -> list[float | None]:
    """Mean R2 of fits to shuffled rows; None for categorical factors, whose chance the shuffle test gives."""
    width = sum(f.columns.shape[1] for f in factors if f.type != "categorical")
    if not width:
        return [None] * len(factors)
    across = linear.regression(fit.cross)
    off = fit.mean + (read.mean_h - linear.mean) @ across - read_mixed.mean
    spread = read_mixed.spread
    error = (
        spread - 2 * (read_mixed.cross.T * across).sum(0) + (across * (read.hh @ across)).sum(0) + read.n * off.square()
    )
    error, spread = error.reshape(times, width), spread.reshape(times, width)
    out: list[float | None] = []
    start = 0
    for factor in factors:
        if factor.type == "categorical":
            out.append(None)
            continue
        end = start + factor.columns.shape[1]
        out.append(float((1 - error[:, start:end].sum(1) / spread[:, start:end].sum(1).clamp_min(TINY)).mean()))
        start = end
    return out


def _intervals(rows: Sequence[_Row], block: int, seed: int) -> list[Ends]:
    """95% intervals from the influences of the rows read, or of blocks of them; of categories, from their shares."""
    if not rows:
        return []
    n = len(rows[0].truth)
    size = max(block, -(-n // UNITS))
    mixed = torch.arange(n) if block > 1 else order(n, randomness.generator(seed, "groups"))
    unit = torch.empty(n, dtype=torch.int64)
    unit[mixed] = torch.arange(n) // size
    units = int(unit.max()) + 1
    out: list[Ends] = []
    for row in rows:
        each = row.contributions()
        if units < 2:
            out.append((None, None))
        elif row.factor.type == "categorical":
            count, right = each.sum(0).chunk(2)
            kept = count > 0
            out.append(shares(right[kept] / block, count[kept] / block))
        else:
            sums = torch.zeros(units, each.shape[1], dtype=torch.float64).index_add_(0, unit, each)
            low, high = around(float(row.formula(sums.sum(0))), influences(row.formula, sums))
            out.append((low, min(1.0, high)))
    return out


def _shuffle_tests(rows: Sequence[_Row], block: int, shuffles: int, seed: int) -> tuple[list[tuple[float, float]], int]:
    """For each factor its p-value and the mean score of shuffled rows, on at most `TESTED` rows or 32 blocks.

    Besides, how many shuffles these rest on: whole cosets (see the top of this module), at least as many as asked for.
    """
    if not rows:
        return [], shuffles
    generator = randomness.generator(seed, "shuffle")
    n = len(rows[0].truth)
    wanted = max(TESTED, 32 * block)
    block = min(block, n)
    starts = order(n // block, generator)[: max(1, wanted // block)]  # in a random order, so that rolls are, too
    some = (starts[:, None] * block + torch.arange(block)).flatten()
    units = len(starts)
    cosets = -(-(shuffles + 1) // units)
    first = torch.arange(len(some))[None]
    mixed = torch.cat([first, orders(len(some), block, generator, cosets - 1)]) if cosets > 1 else first
    found = []
    for row in rows:
        truth, guess = _paired_columns(row, some)
        size = float(truth.square().sum().sqrt() * guess.square().sum().sqrt())
        heard = torch.fft.rfft(guess.reshape(units, -1), dim=0).conj()
        above, total, matched = 0, 0.0, 0.0
        for place, order_of in enumerate(mixed):
            said = torch.fft.rfft(truth[order_of].reshape(units, -1), dim=0)
            values = torch.fft.irfft((said * heard).sum(1), n=units)  # one for every roll
            matched = float(values[0]) if place == 0 else matched
            above += int((values >= matched - 1e-9 * size).sum())
            total += float(values.sum())
        found.append((above / (units * cosets), total / (units * cosets)))
    return found, units * cosets - 1


def _paired_columns(row: _Row, some: Tensor) -> tuple[Tensor, Tensor]:
    """Columns of truth and of predictions, `(m, t)`; what of a score depends on their pairing is a sum of products."""
    truth, guess = row.truth[some], row.guess[some]
    if row.factor.type != "categorical":
        return truth, guess
    named = torch.nn.functional.one_hot(truth, len(row.factor.classes)).double()
    guessed = torch.nn.functional.one_hot(guess, len(row.factor.classes)).double()
    count = named.sum(0)
    return named, guessed * torch.where(count > 0, 1 / count.clamp_min(1), 0.0) / (count > 0).sum()


def _corrected(scores: Sequence[FactorScore], level: float) -> tuple[FactorScore, ...]:
    """The scores with p-values after Holm, and whether each factor was found."""
    corrected = iter(holm([s.p for s in scores if s.p is not None]))
    out = []
    for score in scores:
        if score.p is None or score.value is None:
            out.append(score)
            continue
        p = next(corrected)
        floor = score.chance or 0.0
        low = score.value if score.low is None else score.low
        beyond = low > (floor if score.type == "categorical" else max(0.0, floor))
        out.append(replace(score, p_corrected=p, found=beyond and p <= level))
    return tuple(out)


def _association(whole: Moments, place: slice, classes: bool) -> Tensor:
    """The multiple correlation of each coordinate with the columns of a factor, `(k,)`."""
    zz, zh = whole.zz[place, place], whole.zh[place]
    size = whole.hh.diagonal()
    if classes:  # the scatter between classes: their centred sums over their counts
        between = zh.square() / (whole.n * whole.mean_z[place]).clamp_min(TINY)[:, None]
    else:
        between = (Spectrum.of(zz, whole.mean_z[place], whole.n).white.T @ zh).square()
    share = between.sum(0) / size.clamp_min(TINY)
    return torch.where(whole.varies()[1], share, 0.0).clamp(0, 1).sqrt()
