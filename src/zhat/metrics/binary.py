r"""How well a yes-or-no target can be read from a representation: by the protocol of a paper, and held out.

**The protocol of reizinger2024** (`balanced_logistic`): scale all rows together, balance either side of the split by
leaving out rows of the larger class, fit a logistic regression, read its accuracy.

**Ours** (`discriminated`): scale by the fitted rows, regress the target on them with a ridge penalty, and say yes
above the middle between the two class means. Penalty and middle come from leave-one-out predictions of the
fitted rows, which ridge regression has in closed form; nothing is chosen on the held-out rows. All rows are used. The
score is balanced accuracy, the mean of the share of yes-rows and of the share of no-rows that are classified correctly;
its chance level is one half whatever the share of yes-rows.

**p-values**: if representation and target are independent, the labels of the held-out rows may be shuffled against the
guesses. The number of hits is then hypergeometric, so all shuffles together are Fisher's exact test. Of several
splits of the same rows the p-values depend on one another; twice their lower median is a p-value whatever that
dependence is (ruger1978).
"""

from __future__ import annotations

import math
import statistics
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from zhat import randomness
from zhat.errors import BadInput, TooFewRows
from zhat.metrics.spectrum import TINY
from zhat.results import Counts

SHARE = 0.3  # of rows that are read
FIRST = 42  # the paper's first split
PENALTIES = tuple(10.0**k for k in np.linspace(-2, 2, 9))  # in units of the mean squared singular value


def split(y: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows to fit on and the rows to read, 70% and 30% of either class; seed 0 is the paper's first split.

    Args:
        y: whether each row has the target, `(n,)`.
        seed: of the split.
    """
    return _split(np.asarray(y, dtype=bool), seed)


def split_for_all(y: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """One split for all targets, so that one decomposition of the fitted rows serves them all.

    Rows are split 70% to 30% within groups of the same rarest target, so that rare targets are on either side.

    Args:
        y: whether each row has each target, `(n, t)`.
        seed: of the split.
    """
    y = np.asarray(y, dtype=bool)
    seldom = np.where(y, y.sum(0), len(y) + 1)
    group = np.where(y.any(1), seldom.argmin(1), -1)
    kinds, count = np.unique(group, return_counts=True)
    alone = np.isin(group, kinds[count < 2])
    if alone.any():  # groups of one row join the most frequent one
        group[alone] = kinds[count.argmax()]
    return _split(group, seed)


def _split(group: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.model_selection import train_test_split

    fit, read = train_test_split(np.arange(len(group)), test_size=SHARE, stratify=group, random_state=FIRST + seed)
    return fit, read


def refuse_rare(y: Any, names: Sequence[str]) -> None:
    """Raise `TooFewRows` for targets that fewer than two rows have, or that fewer than two rows have not.

    Args:
        y: whether each row has each target, `(n, t)`.
        names: of the targets.
    """
    y = np.asarray(y, dtype=bool)
    rare = np.minimum(y.sum(0), (~y).sum(0))
    if (rare < 2).any():
        worst = int(rare.argmin())
        raise TooFewRows(
            f"a target is fitted on some rows and read on others, so at least 2 rows have it and 2 have it not; of "
            f"{names[worst]!r} there are {rare[worst]} among {len(y)}. Bring more rows.",
            needed=2,
        )


def positive_on_average(x: np.ndarray) -> np.ndarray:
    """The columns whose mean is above 0, each with mean 0 and variance 1 over all rows, as reizinger2024 scales them.

    The held-out rows are scaled together with the fitted rows, so a little information about them enters the fit.
    """
    kept = x[:, x.mean(0) > 0]
    kept = kept[:, kept.std(0) > 0]
    if not kept.shape[1]:
        raise BadInput("no column of the representation has a mean above 0, so the paper's protocol leaves none.")
    return np.asarray((kept - kept.mean(0)) / kept.std(0), dtype=np.float32)


def balanced_logistic(x: np.ndarray, y: Any, fit: np.ndarray, read: np.ndarray) -> float:
    """Accuracy of a logistic regression on balanced rows, with scikit-learn's defaults.

    On either side of the split the larger class keeps its first rows, as many as the smaller one has.

    Args:
        x: the representation, scaled, `(n, k)`.
        y: whether each row has the target, `(n,)`.
        fit: numbers of the rows to fit on.
        read: numbers of the rows to read.

    Reference: reizinger2024, Section 4.3.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    y = np.asarray(y, dtype=bool)
    fit, read = _balanced(y, fit), _balanced(y, read)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 100 iterations are the protocol, whether they suffice
        return float(LogisticRegression().fit(x[fit], y[fit]).score(x[read], y[read]))


def _balanced(y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    yes, no = rows[y[rows]], rows[~y[rows]]
    least = min(len(yes), len(no))
    return np.concatenate([no[:least], yes[:least]])


def discriminated(x: Any, y: Any, fit: np.ndarray, read: np.ndarray, *, shuffles: int = 0, seed: int = 0) -> Tensor:
    r"""Guesses of targets on the held-out rows, by ridge discriminants of the fitted rows, `(1 + shuffles, read, t)`.

    $$w = (X^\top X + \lambda)^{-1} X^\top (y - \bar y), \qquad \text{yes if } x \cdot w > \tfrac12 (m_1 + m_0)$$

    with class means $m_1, m_0$ of the leave-one-out values of $x \cdot w$, and $\lambda$ the penalty for which those
    means are furthest apart in units of the spread within classes. One decomposition of X serves every target.

    Args:
        x: the representation, `(n, k)`.
        y: whether each row has each target, `(n, t)`.
        fit: numbers of the rows to fit on.
        read: numbers of the rows to read.
        shuffles: how often the fit is repeated with the targets of the fitted rows in another order.
        seed: of the shuffles.
    """
    rows = torch.as_tensor(x)[torch.from_numpy(fit)].double()
    targets = torch.as_tensor(np.asarray(y, dtype=bool))[torch.from_numpy(fit)].double()
    generator = randomness.generator(seed, "shuffle")
    orders = [torch.randperm(len(rows), generator=generator) for _ in range(shuffles)]
    wanted = torch.cat([targets, *(targets[order] for order in orders)], 1)
    mean, spread = rows.mean(0), rows.std(0, correction=0)
    spread = torch.where(spread > 1e-9 * rows.abs().amax().clamp_min(TINY), spread, math.inf)
    if bool(spread.isinf().all()):
        raise BadInput("every row of the representation is the same, so nothing can be read from it.")
    rows = (rows - mean) / spread
    left, size, back = _decomposed(rows)
    level = wanted.mean(0)
    inside = left.T @ (wanted - level)
    best = torch.full_like(level, -math.inf)
    middle, across = torch.zeros_like(level), torch.zeros_like(inside)
    for penalty in PENALTIES:
        kept = size / (size + penalty * size.mean())
        shrunk = kept[:, None] * inside
        own = 1 / len(rows) + left.square() @ kept  # how much the value of a row owes to its own target
        alone = (left @ shrunk + level - own[:, None] * wanted) / (1 - own).clamp_min(TINY)[:, None]
        apart, between = _apart(alone, wanted)
        better = apart > best
        best = torch.where(better, apart, best)
        middle = torch.where(better, between, middle)
        across = torch.where(better, shrunk, across)
    seen = (torch.as_tensor(x)[torch.from_numpy(read)].double() - mean) / spread
    guesses = seen @ (back @ across) + level > middle
    return guesses.reshape(len(read), 1 + shuffles, -1).transpose(0, 1)


def _decomposed(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Left singular vectors, squared singular values, and the map from rows to left vectors, without null directions.

    The smaller of the two Gram matrices is decomposed.
    """
    wide = rows.shape[1] > rows.shape[0]
    size, vectors = torch.linalg.eigh(rows @ rows.T if wide else rows.T @ rows)
    real = size > 1e-10 * size[-1]
    size, vectors = size[real], vectors[:, real]
    left = vectors if wide else rows @ vectors / size.sqrt()
    back = rows.T @ vectors / size if wide else vectors / size.sqrt()
    return left, size, back


def _apart(values: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """How far apart the means of the two classes are in units of the spread within, and the middle between them."""
    yes, no = wanted.sum(0), (1 - wanted).sum(0)
    above, below = (wanted * values).sum(0) / yes, ((1 - wanted) * values).sum(0) / no
    off = values - torch.where(wanted > 0, above, below)
    within = off.square().mean(0).sqrt().clamp_min(TINY)
    return (above - below) / within, (above + below) / 2


def counts(y: Any, read: np.ndarray, guesses: Tensor) -> Counts:
    """Correct guesses of one target among the held-out rows.

    Args:
        y: whether each row has the target, `(n,)`.
        read: numbers of the held-out rows.
        guesses: for each of them whether the guess is yes, `(read,)`.
    """
    y = np.asarray(y, dtype=bool)
    yes, said = y[read], guesses.numpy().astype(bool)
    return Counts(
        images=len(y),
        having=int(y.sum()),
        yes=int(yes.sum()),
        no=int((~yes).sum()),
        hits=int((yes & said).sum()),
        rejections=int((~yes & ~said).sum()),
    )


def by_shuffling(found: Counts) -> float:
    """The share of all shuffles of the held-out rows with at least as many hits: Fisher's exact test, one-sided.

    Args:
        found: the correct guesses.

    Example:
        >>> found = Counts(images=6, having=3, yes=3, no=3, hits=3, rejections=3)
        >>> round(by_shuffling(found), 6)  # one order of twenty
        0.05
    """
    said = found.hits + found.no - found.rejections
    return float(stats.hypergeom.sf(found.hits - 1, found.yes + found.no, found.yes, said))


def of_splits(p: Sequence[float]) -> float:
    """One p-value from those of several splits of the same rows: twice their lower median, at most 1.

    Reference: ruger1978.

    Example:
        >>> of_splits([0.01, 0.2, 0.03, 0.5])
        0.06
    """
    return p[0] if len(p) == 1 else min(1.0, 2 * statistics.median_low(p))


def balanced_interval(found: Counts, level: float = 0.95) -> tuple[float, float]:
    r"""An interval of balanced accuracy over rows, of use for a handful of yes-rows too.

    Wilson's intervals $[l_j, u_j]$ of the two shares $s_j$ are joined as independent parts of a mean:
    $\bar s \mp \tfrac12 \sqrt{\sum_j (s_j - l_j)^2}$ and the same with $u_j$ (newcombe1998).

    Args:
        found: the correct guesses.
        level: how often such intervals hold the true value.
    """
    z = float(stats.norm.ppf((1 + level) / 2))
    below = above = 0.0
    for right, n in ((found.hits, found.yes), (found.rejections, found.no)):
        share = right / n
        centre, reach = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        low, high = ((centre + sign * reach) / (1 + z * z / n) for sign in (-1, 1))
        below, above = below + (share - low) ** 2, above + (high - share) ** 2
    value = found.balanced_accuracy
    return max(0.0, value - math.sqrt(below) / 2), min(1.0, value + math.sqrt(above) / 2)


def power(accuracy: float, yes: int, no: int, level: float) -> float:
    """The probability of finding a target on held-out rows, given the share of each class classified correctly.

    Args:
        accuracy: the share of either class that is classified correctly, so also the balanced accuracy.
        yes: held-out rows that have the target.
        no: held-out rows that do not.
        level: the target is found where `by_shuffling` is at most this.
    """
    return _power(accuracy, yes, no, _least_hits(yes, no, level))


def needed(yes: int, no: int, level: float, *, probability: float = 0.8) -> float | None:
    """The least balanced accuracy that would be found with this probability; None where not even 1 would be.

    Args:
        yes: held-out rows that have the target.
        no: held-out rows that do not.
        level: the target is found where `by_shuffling` is at most this.
        probability: with which it is to be found.

    Example:
        >>> needed(1, 99, 0.001) is None  # one yes-row is the highest of a hundred by chance once in a hundred times
        True
        >>> needed(100, 100, 0.05) < needed(20, 100, 0.05) < 0.7
        True
    """
    least = _least_hits(yes, no, level)
    if _power(1.0, yes, no, least) < probability:
        return None
    low, high = 0.5, 1.0
    while high - low > 1e-4:
        half = (low + high) / 2
        low, high = (low, half) if _power(half, yes, no, least) >= probability else (half, high)
    return high


@lru_cache(maxsize=256)
def _least_hits(yes: int, no: int, level: float) -> np.ndarray:
    """For each number of false alarms, how many hits are enough; one more than there are yes-rows where none is."""
    alarms = np.arange(no + 1)
    low, high = np.zeros(no + 1, dtype=int), np.full(no + 1, yes + 1)
    while (low < high).any():  # more hits with as many false alarms are always less likely by chance
        half = (low + high) // 2
        enough = stats.hypergeom.sf(half - 1, yes + no, yes, half + alarms) <= level
        high = np.where((low < high) & enough, half, high)
        low = np.where((low < high) & ~enough, half + 1, low)
    return low


def _power(accuracy: float, yes: int, no: int, least: np.ndarray) -> float:
    alarms = stats.binom.pmf(np.arange(no + 1), no, 1 - accuracy)
    return float((alarms * stats.binom.sf(least - 1, yes, accuracy)).sum())
