r"""One store, two models: a share of the rows follows one map, the rest another one or none.

1. **A map that some rows cannot pull.** Least squares is fitted again and again to the half of the sampled rows that it
   explains best (concentration steps of least trimmed squares), from two beginnings: all rows, and, for two maps that
   share the rows evenly, the rows of one sign of $\langle u, r_i \rangle \langle v, s_i \rangle$. Here r are the
   residuals of all rows, u is their first principal direction, s are the whitened rows, and v is the first eigenvector
   of $\sum_i (y_i^2 - \overline{y^2})\, s_i s_i^T$ with $y_i = \langle u, r_i \rangle$: if $r_i = \pm D s_i$, it is
   the direction of $D^T u$.
   Beside the columns of a row, its place in the file and the square of it are regressors, so that a drift is no part.
   Where residuals of neighbouring rows are alike all the same, only rows that lie further apart are looked at.
2. **A gap between two crowds.** Residuals of rows that were fitted are those of a fit without them. The logarithm of
   their size has one mode for one model with noise of any tails, and two where rows follow different maps. A valley is
   a window that holds fewer rows than some window of the same width below it and some window above it. With one mode,
   one of the two is expected to hold no more rows than the valley. The binomial test of that, for the lesser of the
   two and corrected for all windows looked at, must come below 0.1%.
3. **Not only noisier.** The first map must explain less than a tenth of the variance of the rows beyond the valley, or
   a map of their own must explain a tenth more than the first.
4. **Not only elsewhere.** In at least one of the spaces these rows must lie among the others: rows that lie by
   themselves in both are a region where one bent map looks like two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from scipy import stats
from torch import Tensor

from zhat._checks import constant
from zhat.audit.rows import LASTING, likeness_lasts
from zhat.randomness import generator
from zhat.results.audits import HALF, WHOLE

LEVEL = 1e-3 / 2  # there are two beginnings
WIDTHS = (0.15, 0.3, 0.6, 1.2, 2.4)  # of windows, in natural logarithms of a residual
FEWEST = 100
_FOR_EACH = 4  # rows for each coefficient of a column
_STEPS = 8
_ROUNDING = 1e-14  # a squared residual below it, in variances, is none
_COLUMNS = 64  # of the target; more are brought to as many random directions
_SPECTRAL = 512  # columns up to which the even split is looked for
_GAIN = 0.1
_MINGLED = 0.8
_NEAR = 5


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows of two kinds.

    Attributes:
        looked: places of the rows that were looked at, `(l,)`: all, or some where neighbouring residuals are alike.
        rest: which of them are in the smaller part, `(l,)`.
        p: how probable such a valley is where there is one kind of rows, corrected for the search.
    """

    looked: Tensor
    rest: Tensor
    p: float


def share_of(rest: Tensor) -> tuple[float, float, float]:
    """The share of these rows with Wilson's 95% interval."""
    count, m = int(rest.sum()), len(rest)
    ends = stats.binomtest(count, m).proportion_ci(method="wilson")
    return count / m, float(ends.low), float(ends.high)


def parts(source: Tensor, target: Tensor, index: Tensor | None = None) -> Parts | None:
    """The two kinds of rows, or None where there is one kind, or where rows are too few to say.

    Args:
        source: rows to map from, `(m, k)`.
        target: the same rows to map to, `(m, d)`.
        index: where the rows lie in their files, in ascending order, `(m,)`; one after the other if not given.
    """
    s, t = _standardised(source), _standardised(target)
    m, k = s.shape
    if t.shape[1] > _COLUMNS:
        t = t @ torch.linalg.qr(torch.randn(t.shape[1], _COLUMNS, dtype=t.dtype, generator=generator(0, "parts"))).Q
    if m < max(FEWEST, _FOR_EACH * (k + 1)) or not k or not t.shape[1]:
        return None
    when = torch.linspace(-1, 1, m, dtype=s.dtype) if index is None else _standardised(index[:, None].to(s))[:, 0]
    s = torch.cat([s, when[:, None], when[:, None] ** 2, torch.ones(m, 1, dtype=s.dtype)], 1)  # a drift is no part
    first = _left(s, t, torch.ones(m, dtype=torch.bool))
    looked = torch.arange(m)
    lasting = likeness_lasts(first.numpy())
    if lasting > LASTING:
        looked = looked[:: math.ceil(2 * lasting)]
        if len(looked) < max(FEWEST, _FOR_EACH * s.shape[1]):
            return None
        s, t, first, source, target = s[looked], t[looked], first[looked], source[looked], target[looked]
    found = _concentrated(s, t, first.square().sum(-1))
    if found is None and k <= _SPECTRAL and float(first.square().mean()) > 1 - WHOLE:
        found = _concentrated(s, t, _even(s[:, :k], first))
    if found is None or not _differs(s, t, found[0]):
        return None
    rest = _assigned(s, t, found[0])
    return Parts(looked, rest, found[1]) if _mingled(source, rest) or _mingled(target, rest) else None


def _concentrated(s: Tensor, t: Tensor, begin: Tensor) -> tuple[Tensor, float] | None:
    """Two kinds of rows, if there are, from a fit to the half of the rows that are smallest at the beginning."""
    m = len(s)
    kept = _smallest(begin, m // 2 + 1)
    for _ in range(_STEPS):
        sizes = _left(s, t, kept).square().sum(-1)
        kept, before = _smallest(sizes, m // 2 + 1), kept
        if int((kept != before).sum()) <= 0.01 * m:
            break
    found = None
    for _ in range(2):  # the second time from all rows on the near side of the valley
        x = sizes.clamp_min(_ROUNDING).log() / 2
        valley = _valley(x)
        if valley is None:
            break
        near = x <= valley[0]
        found = (~near if int(near.sum()) * 2 >= m else near, valley[1])
        sizes = _left(s, t, near).square().sum(-1)
    return found


def _standardised(rows: Tensor) -> Tensor:
    x = rows[:, ~constant(rows)]
    return (x - x.mean(0)) / x.std(0)


def _left(s: Tensor, t: Tensor, kept: Tensor) -> Tensor:
    """What least squares on some rows leaves of each row; of a row that was fitted, what a fit without it would."""
    x = s[kept]
    gram = x.T @ x
    gram.diagonal().add_(1e-9 * float(gram.diagonal().mean()))
    factor = torch.linalg.cholesky(gram)
    left = t - s @ torch.cholesky_solve(x.T @ t[kept], factor)
    leverage = torch.linalg.solve_triangular(factor, x.T, upper=False).square().sum(0)
    left[kept] = left[kept] / (1 - leverage).clamp_min(1e-3)[:, None]
    return left


def _even(s: Tensor, left: Tensor) -> Tensor:
    """Small for the rows of one of two maps that share the rows evenly: minus the product of the two signs' sizes."""
    centred = s - s.mean(0)
    values, vectors = torch.linalg.eigh(centred.T @ centred / len(s))
    kept = values > 1e-6 * values[-1]
    white = centred @ (vectors[:, kept] / values[kept].sqrt())
    u = torch.linalg.eigh(left.T @ left).eigenvectors[:, -1]
    y = left @ u
    weight = y.square().clamp_max(9 * float(y.square().median()))  # a few wild rows must not decide
    values, vectors = torch.linalg.eigh(white.T @ ((weight - weight.mean())[:, None] * white))
    found: Tensor = -(y * (white @ vectors[:, -1]))
    return found


def _smallest(sizes: Tensor, count: int) -> Tensor:
    kept = torch.zeros(len(sizes), dtype=torch.bool)
    kept[sizes.topk(count, largest=False).indices] = True
    return kept


def _valley(x: Tensor) -> tuple[float, float] | None:
    """Where numbers are few between two crowds, and how probable that is for numbers with one mode."""
    x = x.sort().values
    best, looked = None, 0
    for width in WIDTHS:
        centres = torch.arange(float(x[0]), float(x[-1]) + width, width / 2, dtype=x.dtype)
        if len(centres) < 5:
            continue
        ends = torch.searchsorted(x, centres + width / 2)
        counts = ends - torch.searchsorted(x, centres - width / 2)
        looked += len(centres) ** 2
        below = torch.cummax(counts, 0).values[:-4]
        above = torch.cummax(counts.flip(0), 0).values.flip(0)[4:]
        inside, lesser = counts[2:-2], torch.minimum(below, above)
        p = stats.binom.sf((lesser - 1).numpy(), (lesser + inside).numpy(), 0.5)
        at = int(p.argmin())
        if best is None or float(p[at]) < best[1]:
            best = float(centres[at + 2]), float(p[at])
    if best is None or best[1] * looked > LEVEL:
        return None
    return best[0], best[1] * looked


def _differs(s: Tensor, t: Tensor, rest: Tensor) -> bool:
    """Whether these rows follow no map, or another one than the others."""
    own_mean = t[rest] - t[rest].mean(0)
    spread = float(own_mean.square().sum())
    by_others = 1 - float(_left(s, t, ~rest)[rest].square().sum()) / max(spread, 1e-300)
    if by_others <= _GAIN:
        return True
    if int(rest.sum()) < _FOR_EACH * s.shape[1]:
        return False
    by_own = 1 - float(_left(s, t, rest)[rest].square().sum()) / max(spread, 1e-300)
    return by_own >= by_others + _GAIN


def _assigned(s: Tensor, t: Tensor, rest: Tensor) -> Tensor:
    """Each row with the map that leaves less of it, where the smaller part has rows enough for a map of its own.

    A cut in the residuals of one map puts more rows on one side than on the other by mistake where the crowds overlap.
    """
    for _ in range(_STEPS):
        if min(int(rest.sum()), int((~rest).sum())) < _FOR_EACH * s.shape[1]:
            break
        by_others, by_own = (_left(s, t, mine).square().sum(-1) for mine in (~rest, rest))
        if float(by_own[rest].mean()) > (1 - HALF) * float(t[rest].var(0).sum()):
            break  # these rows follow no map of their own, or weakly
        rest, before = by_own < by_others, rest
        if bool((rest == before).all()):
            break
    return rest if int(rest.sum()) * 2 <= len(rest) else ~rest


def _mingled(rows: Tensor, rest: Tensor) -> bool:
    """Whether the nearest neighbours of these rows are often others."""
    x = _standardised(rows)
    some = torch.nonzero(rest).flatten()
    some = some[torch.linspace(0, len(some) - 1, min(200, len(some))).long()]
    apart = torch.cdist(x[some], x)
    apart[torch.arange(len(some)), some] = math.inf
    near = apart.topk(_NEAR, largest=False).indices
    return float(rest[near].double().mean()) < _MINGLED
