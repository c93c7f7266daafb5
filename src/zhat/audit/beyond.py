"""What no affine map shows: bending, seen by a held-out nonlinear probe, and neighbourhoods that agree.

Both look at a sample of rows, because both compare rows with rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from zhat import randomness
from zhat._checks import constant
from zhat.audit.rows import Seen
from zhat.equivalence import INVERTIBLE
from zhat.errors import BadInput, UnknownName
from zhat.metrics import Alignment
from zhat.metrics.pairing import order
from zhat.metrics.uncertainty import around, student
from zhat.results import Score

PROBE = "R2, nonlinear probe"
NEIGHBOURS = 10
METRICS = ("cosine", "dot", "distance")
_UNIT = 0.01
RECALLS = (1, 2, 5, 10, 20, 50, 100)
_ROWS = 1000
_FOLDS = 16


def bending(seen: Seen, found: Alignment) -> tuple[Score, Tensor] | None:
    r"""What a nonlinear map explains, and by how much it beats the given one on the same held-out rows.

    Three probes of what the map leaves. Kernel ridge regression on the source (Gaussian kernel, median distance) is
    fitted to at most 500 of the rows that the map was fitted on, and read on as many held-out rows. A cubic of each
    column's own prediction, with the squared length of the prediction and its product with the column, sees a bend
    behind a linear map and a change of length in any dimension. Squares and cubes of the columns of the source, by
    ridge regression, see a bend before a linear map. These two have few coefficients, so they are fitted to all rows
    but a half of the held-out ones, and read on that half, and the other way round. The probe that is best on the rows
    fitted, by a split of them, is read. Where the target has unit length, the map's predictions are brought to it
    first, as an `Adapter` does.

    Returns:
        The score up to `INVERTIBLE`, and the gain in R2 of each fold of held-out rows; None with too few rows.
    """
    apart = seen.apart()
    fitted, held = (apart[m[apart]] for m in (~seen.held_out, seen.held_out))
    if len(fitted) < 20 or len(held) < 2 * _FOLDS:
        return None
    spread = seen.target[held].var(0)
    kept = ~constant(seen.target[held])
    scale = spread[kept].sqrt()
    guess = found(seen.source)
    if has_unit_length(seen.target):  # what an adapter mends is no bend
        guess = unit_length(guess)
    left = ((seen.target - guess)[:, kept] / scale, guess[:, kept] / scale)
    few, half = _spaced(fitted, _ROWS // 2), len(fitted) // 2
    trials = [(_kernel, few[: len(few) // 2], few[len(few) // 2 :])]
    trials += [(probe, fitted[:half], fitted[half:]) for probe in (_cubic, _additive)]
    errors = [
        _error(p(seen.source, *left, fit, read), left[0][read]).mean() / _size(left[0][read]) for p, fit, read in trials
    ]
    best = trials[int(torch.stack(errors).argmin())][0]
    if best is _kernel:
        held = _spaced(held, _ROWS // 2)
        after = _error(_kernel(seen.source, *left, few, held), left[0][held])
    else:
        one, other = held.chunk(2)
        cuts = ((torch.cat([fitted, other]), one), (torch.cat([fitted, one]), other))
        after = torch.cat([_error(best(seen.source, *left, fit, read), left[0][read]) for fit, read in cuts])
    before = _error(torch.zeros_like(left[0][held]), left[0][held])
    gain = torch.stack([g.mean() for g in (before - after).chunk(_FOLDS)])
    losses = torch.stack([e.mean() for e in after.chunk(_FOLDS)])
    low, high = around(float(losses.mean()), losses)
    score = Score(
        name=PROBE,
        value=1 - float(after.mean()),
        up_to=INVERTIBLE,
        shift=True,
        low=1 - high,
        high=min(1.0, 1 - low),
        chance=None,
        chance_high=None,
        n=len(held),
        n_fit=len(fitted),
        held_out=True,
        per_latent=(),
    )
    return score, gain


def _spaced(rows: Tensor, most: int) -> Tensor:
    """At most so many of the rows, from the first to the last."""
    return rows[torch.linspace(0, len(rows) - 1, min(most, len(rows))).long()]


def _error(guess: Tensor, truth: Tensor) -> Tensor:
    return (truth - guess).square().mean(-1)


def _size(left: Tensor) -> Tensor:
    return left.square().mean()


def _kernel(source: Tensor, left: Tensor, guess: Tensor, fit: Tensor, read: Tensor) -> Tensor:
    """Kernel ridge regression of what is left; the penalty is the best of three by leave-one-out error."""
    x = (source - source[fit].mean(0)) / torch.where(constant(source[fit]), math.inf, source[fit].std(0))
    apart = torch.cdist(x[fit], x[fit]).square()
    width = apart[apart > 0].median() if bool((apart > 0).any()) else torch.ones(())
    values, vectors = torch.linalg.eigh(torch.exp(-apart / width))
    mean = left[fit].mean(0)
    target = vectors.T @ (left[fit] - mean)
    best, weights = math.inf, target
    for penalty in (1e-3, 1e-1, 10.0):
        shrunk = vectors @ (target / (values.clamp_min(0) + penalty)[:, None])
        diagonal = (vectors.square() / (values.clamp_min(0) + penalty)).sum(-1)
        error = float((shrunk / diagonal[:, None]).square().mean())
        if error < best:
            best, weights = error, shrunk
    found: Tensor = torch.exp(-torch.cdist(x[read], x[fit]).square() / width) @ weights + mean
    return found


def _cubic(source: Tensor, left: Tensor, guess: Tensor, fit: Tensor, read: Tensor) -> Tensor:
    """Column by column, what is left as a cubic in the column's own prediction and the squared length of all."""
    centre, spread = guess[fit].mean(0), guess[fit].std(0).clamp_min(1e-12)
    length = guess.square().sum(-1)
    length = (length - length[fit].mean()) / length[fit].std().clamp_min(1e-12)

    def features(rows: Tensor) -> Tensor:
        x = ((guess[rows] - centre) / spread).clamp(-6, 6)
        q = length[rows, None].clamp(-6, 6).expand_as(x)
        return torch.stack([torch.ones_like(x), x, x**2, x**3, q, x * q], -1).transpose(0, 1)  # (columns, rows, 6)

    f = features(fit)
    gram = f.mT @ f + 1e-6 * len(fit) * torch.eye(6, dtype=f.dtype)
    weights = torch.linalg.solve(gram, f.mT @ left[fit].T[..., None])
    found: Tensor = (features(read) @ weights)[..., 0].T
    return found


def _additive(source: Tensor, left: Tensor, guess: Tensor, fit: Tensor, read: Tensor) -> Tensor:
    """What is left by ridge regression on the squares and cubes of the columns of the source."""
    x = (source - source[fit].mean(0)) / torch.where(constant(source[fit]), math.inf, source[fit].std(0))
    x = x.clamp(-6, 6)
    f = torch.cat([x**2 - 1, x**3 - 3 * x], 1)
    f = torch.cat([torch.ones_like(f[:, :1]), f], 1)
    gram = f[fit].T @ f[fit]
    gram.diagonal().add_(0.1 * float(gram.diagonal().mean()))
    found: Tensor = f[read] @ torch.linalg.solve(gram, f[fit].T @ left[fit])
    return found


def neighbours(seen: Seen, *, seed: int) -> Score | None:
    r"""Share of each row's nearest neighbours in the source that are its nearest neighbours in the target as well.

    Blind to: rotations, one common scale, and whatever keeps neighbours together. Chance is $k / (m - 1)$ for k
    neighbours among m rows; its spread is seen by pairing rows at random.
    """
    rows = _spaced(seen.apart(), _ROWS)
    m = len(rows)
    k = min(NEIGHBOURS, (m - 1) // 4)
    if k < 1:
        return None
    near_source, near_target = (_near(x[rows], k) for x in (seen.source, seen.target))
    is_near = torch.zeros(m, m, dtype=torch.bool).scatter_(1, near_target, True)
    values = is_near.gather(1, near_source).sum(-1).double() / k
    generator = randomness.generator(seed, "neighbours")
    by_chance = []
    for _ in range(20):
        other = order(m, generator)
        by_chance.append(is_near[other[:, None], other[near_source]].sum().double() / (k * m))
    chances = torch.stack(by_chance)
    low, high = student(torch.stack([v.mean() for v in values.chunk(_FOLDS)]))
    return Score(
        name=f"shared {k} neighbours",
        value=float(values.mean()),
        up_to=INVERTIBLE,
        shift=True,
        low=low,
        high=high,
        chance=float(chances.mean()),
        chance_high=float(chances.mean()) + 1.645 * float(chances.std()),
        n=m,
        n_fit=0,
        held_out=True,
        per_latent=(),
    )


def _near(x: Tensor, k: int) -> Tensor:
    """The k nearest rows of each row, `(m, k)`."""
    x = (x - x.mean(0)) / x.std().clamp_min(1e-300)
    return _ranked(x, x, k)


def _ranked(queries: Tensor, rows: Tensor, k: int, metric: str = "distance") -> Tensor:
    """The k nearest rows of each query, nearest first, other than the query's own, `(m, k)`."""
    if metric == "cosine":
        queries, rows = unit_length(queries), unit_length(rows)
    apart = torch.cdist(queries, rows) if metric == "distance" else -(queries @ rows.T)
    apart.fill_diagonal_(math.inf)
    return apart.topk(k, largest=False).indices


def unit_length(rows: Tensor) -> Tensor:
    """Rows divided by their length; a row of zeros stays one."""
    found: Tensor = rows / rows.norm(dim=-1, keepdim=True).clamp_min(1e-300)
    return found


def has_unit_length(rows: Tensor) -> bool:
    """Whether every row has length 1 to a hundredth, as vectors that were normalised and stored in few bits have."""
    return rows.shape[-1] > 1 and bool(((rows.norm(dim=-1) - 1).abs() < _UNIT).all())


def recall(seen: Seen, found: Alignment, k: int, metric: str = "distance") -> Score:
    """Share of the k nearest new rows that a search among mapped old rows finds, on held-out sampled rows.

    Each held-out new row is a query; its own row is left out. Where the new rows have unit length, mapped rows are
    brought to it as well, as an `Adapter` does.

    Args:
        seen: what the pass has kept.
        found: the map from old to new.
        k: neighbours asked for.
        metric: what a search orders rows by: "cosine", "dot" (product) or (Euclidean) "distance".
    """
    if metric not in METRICS:
        raise UnknownName("metric", metric, METRICS)
    m = len(_queries(seen))
    if not 1 <= k < m:
        raise BadInput(f"recall@{k} needs more than {k} held-out sampled rows, and k of at least 1; there are {m}.")
    return _recalls(seen, found, (k,), metric)[0]


def recalls(seen: Seen, found: Alignment, metric: str = "distance") -> tuple[Score, ...]:
    """`recall` for k of 1, 2, 5, 10, 20, 50 and 100, as far as there are rows."""
    return _recalls(seen, found, [k for k in RECALLS if k < len(_queries(seen)) // 2], metric)


def _queries(seen: Seen) -> Tensor:
    return _spaced(torch.nonzero(seen.held_out).flatten(), 2 * _ROWS)


def _recalls(seen: Seen, found: Alignment, ks: Sequence[int], metric: str) -> tuple[Score, ...]:
    if not ks:
        return ()
    held = _queries(seen)
    m = len(held)
    new, mapped = seen.target[held], found(seen.source[held])
    if has_unit_length(seen.target):
        mapped = unit_length(mapped)
    if metric == "distance":  # around an offset distances have few digits
        new, mapped = new - new.mean(0), mapped - new.mean(0)
    exact, kept = (_ranked(new, rows, max(ks), metric) for rows in (new, mapped))
    place = torch.full((m, m), m, dtype=torch.int32)  # of each row in the exact search
    place.scatter_(1, exact, torch.arange(max(ks), dtype=torch.int32).expand(m, -1))
    places = place.gather(1, kept)
    scores = []
    for k in ks:
        values = (places[:, :k] < k).sum(-1).double() / k
        low, high = student(torch.stack([v.mean() for v in values.chunk(_FOLDS)]))
        scores.append(
            Score(
                name=f"recall@{k} by {metric}",
                value=float(values.mean()),
                up_to=found.up_to,
                shift=False,
                low=max(0.0, low) if math.isfinite(low) else None,
                high=min(1.0, high) if math.isfinite(high) else None,
                chance=k / (m - 1),
                chance_high=None,
                n=m,
                n_fit=seen.fit.n,
                held_out=True,
                per_latent=(),
            )
        )
    return tuple(scores)
