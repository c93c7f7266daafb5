r"""Recovery = alignment + agreement: fit the best map of a class on some rows, read the agreement on others."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from zhat import _checks, randomness
from zhat.equivalence import (
    AFFINE,
    COMPONENTWISE,
    IDENTITY,
    LINEAR,
    PERMUTATION,
    SCALED_PERMUTATION,
    SIGNED_PERMUTATION,
    Equivalence,
)
from zhat.errors import BadInput, TooFewRows
from zhat.metrics import uncertainty
from zhat.metrics.agreement import Agreement, pearson, r2, ranks, spearman
from zhat.metrics.alignment import ALIGNABLE, Alignment, align, least_squares, match
from zhat.metrics.moments import Moments
from zhat.metrics.pairing import order, rolled
from zhat.metrics.spectrum import varies
from zhat.results import Profile, Score


@dataclass(frozen=True)
class Recovery:
    r"""How much of the latents comes back, up to a class of maps.

    Args:
        up_to: the class whose best map is fitted.
        agree: how the fitted map is judged. `COMPONENTWISE` fits no curve, only a matching, and so needs an agreement
            that is blind to curves, such as `spearman`.
        holdout: share of the rows kept from the fit and used for reading; 0 fits and reads on all rows, as several
            papers do.
        shift: forgive a constant offset as well (`AFFINE` always does).
        repeats: 0 leaves the 95% interval out (`zhat.metrics.uncertainty` says how it is found). It covers the
            agreement that the map as it was fitted would have on endless rows. It does not cover the population value,
            the agreement of the best map there is, which is higher by what fitting on few rows costs.
        shuffles: shuffled copies for the chance level; 0 leaves it out.
        seed: of the split and the shuffles.

    Blind to: maps in `up_to`, and a constant offset if `shift`.

    Example:
        >>> z = torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
        >>> round(Recovery(up_to=PERMUTATION)(z, z[:, [2, 0, 1]]).value, 3)
        1.0
    """

    up_to: Equivalence
    agree: Agreement = r2
    holdout: float = 0.5
    shift: bool = False
    repeats: int = 200
    shuffles: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= _checks.finite(self.holdout, "holdout") < 1:
            raise BadInput(f"`holdout` must be at least 0 and below 1, but {self.holdout} came.")
        _checks.count(self.repeats, "repeats", least=0)
        _checks.count(self.shuffles, "shuffles", least=0)
        if self.up_to is not COMPONENTWISE and self.up_to not in ALIGNABLE:
            raise BadInput(f"no best map can be fitted up to {self.up_to.name}. Use AFFINE or a tighter class.")
        if self.up_to is COMPONENTWISE and not self.agree.ranked:
            raise BadInput(
                f"up to COMPONENTWISE every coordinate may be bent, but {self.agree.name} is not blind to bending. "
                "Use agree=spearman."
            )
        if not self.agree.blind_to <= self.up_to:
            raise BadInput(
                f"{self.agree.name} is blind to maps up to {self.agree.blind_to}, so it cannot speak of the class "
                f"{self.up_to}. Use agree=r2, or up_to={self.agree.blind_to.name}."
            )

    def __call__(self, z: Any, h: Any) -> Score:
        """The score of a representation.

        Args:
            z: latents, `(n, d)`.
            h: representation of the same rows, `(n, k)`.
        """
        z, h = _checks.paired(z, h)
        self.refuse_few(len(z), z.shape[1], h.shape[1])
        _checks.varying(z, "z")
        _checks.varying(h, "h")
        (z_fit, h_fit), (z_read, h_read) = self._split(z, h)
        fit = Moments.of(z_fit, h_fit)
        read = fit if z_read is z_fit else Moments.of(z_read, h_read)
        score, found = self.of(fit, read), self._align(fit)
        low = high = chance = chance_high = None
        if self.repeats:
            low, high = uncertainty.agreed(self.agree, z_read, found(h_read.double()))
        if self.shuffles:
            how = {"shuffles": self.shuffles, "seed": self.seed}
            fits = list(rolled(fit, z_fit, h_fit, **how))
            reads = fits if read is fit else rolled(read, z_read, h_read, **how)
            scores = [self.agreement(r, self._align(f)).mean() for f, r in zip(fits, reads, strict=True)]
            chance, chance_high = (
                float(torch.stack(scores).mean()),
                float(torch.quantile(torch.stack(scores), 0.95)),
            )
        return replace(score, low=low, high=high, chance=chance, chance_high=chance_high)

    def plain(self, z: Any, h: Any) -> Score:
        """The same value without interval and chance level."""
        return replace(self, repeats=0, shuffles=0)(z, h)

    def held_out(self, z: Any, h: Any) -> Score:
        """The same score read on half of the rows, with the map fitted on the others."""
        return replace(self, holdout=0.5)(z, h)

    def of(self, fit: Moments, read: Moments) -> Score:
        """The score from moments alone, for rows that came in shards; an interval and a chance level need the rows.

        Args:
            fit: moments of the rows to fit on.
            read: moments of the rows to read on; the very same object where nothing is held out.
        """
        n = fit.n if read is fit else fit.n + read.n
        self.refuse_few(n, *read.zh.shape)
        each = self.agreement(read, self._align(fit))
        if not bool(torch.isfinite(each).all()):
            raise BadInput("a latent is constant among the held-out rows, so no score is defined. Use more rows.")
        return Score(
            name=self.agree.name,
            value=float(each.mean()),
            up_to=self.up_to,
            shift=self.shift or self.up_to is AFFINE,
            low=None,
            high=None,
            chance=None,
            chance_high=None,
            n=read.n,
            n_fit=fit.n,
            held_out=read is not fit,
            per_latent=tuple(float(v) for v in each),
        )

    def rows_needed(self, d: int, k: int) -> int:
        """The fewest rows for which a score is given: five for each free coefficient of a latent, and ten to read."""
        free = {LINEAR: k, AFFINE: k + 1}.get(self.up_to, 0)
        if self.up_to not in (LINEAR, AFFINE, IDENTITY, PERMUTATION, SIGNED_PERMUTATION, SCALED_PERMUTATION):
            free = math.ceil(k / 2)  # a rotation has d (d - 1) / 2 free angles for d latents
        fit = max(10, 5 * free)
        if self.holdout == 0:
            return fit
        return max(math.ceil(fit / (1 - self.holdout)), math.ceil(10 / self.holdout))

    def refuse_few(self, n: int, d: int, k: int) -> None:
        """Raise `TooFewRows` where n rows are too few for a map from k to d dimensions."""
        needed = self.rows_needed(d, k)
        if n < needed:
            raise TooFewRows(
                f"{n} rows cannot tell a map up to {self.up_to} from {k} to {d} dimensions from noise. "
                f"Bring at least {needed} rows; several times that for a narrow interval.",
                needed=needed,
            )

    def _split(self, z: Tensor, h: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """The rows to fit on and the rows to read on; the same ones where nothing is held out."""
        if self.holdout == 0:
            rows = (ranks(z), ranks(h)) if self.agree.ranked else (z, h)
            return rows, rows
        mixed = order(len(z), randomness.generator(self.seed, "split"), z.device)
        z, h = z[mixed], h[mixed]
        fit = len(z) - max(1, round(len(z) * self.holdout))
        halves = (z[:fit], h[:fit]), (z[fit:], h[fit:])
        if self.agree.ranked:
            return tuple((ranks(a), ranks(b)) for a, b in halves)  # type: ignore[return-value]
        return halves

    def _align(self, moments: Moments) -> Alignment:
        """The best map of the class."""
        if self.up_to is COMPONENTWISE or (self.up_to is SCALED_PERMUTATION and self.agree == pearson):
            # zimmermann2021's MCC matches by |correlation|, not by explained variance.
            correlation = moments.correlation()
            rows, columns = match(correlation.abs())
            matrix = torch.zeros_like(correlation)
            matrix[rows, columns] = torch.where(correlation[rows, columns] < 0, -1.0, 1.0).to(matrix)
            return Alignment(matrix, torch.zeros_like(moments.mean_z), self.up_to)
        return align(moments, self.up_to, shift=self.shift)

    def agreement(self, moments: Moments, found: Alignment) -> Tensor:
        """How well a map agrees, one value for each latent, from the moments of the held-out rows."""
        n = torch.full_like(moments.mean_z, moments.n)
        zh = (found.matrix * moments.zh).sum(-1)
        hh = ((found.matrix @ moments.hh) * found.matrix).sum(-1)
        zz, mean = torch.where(moments.varies()[0], moments.zz.diagonal(), 0.0), found(moments.mean_h)
        if self.agree.forgives_shift:
            hh = torch.where(varies(hh, mean, moments.n), hh, 0.0)
            return self.agree.formula(n, torch.zeros_like(n), torch.zeros_like(n), zz, zh, hh)
        off = mean - moments.mean_z
        return self.agree.formula(n, torch.zeros_like(n), n * off, zz, zh, hh + n * off.square())


def linear_r2(z: Any, h: Any, *, holdout: float = 0.5, seed: int = 0) -> Score:
    r"""Share of latent variance that an affine map of the representation explains, mean over latents.

    $$R^2 = \frac1d \sum_j \Big(1 - \frac{\sum_i (z_{ij} - \hat z_{ij})^2}{\sum_i (z_{ij} - \bar z_j)^2}\Big),
      \qquad \hat z = A h + b \text{ fitted on the other rows}$$

    Args:
        z: latents, `(n, d)`.
        h: representation of the same rows, `(n, k)`.
        holdout: share of rows kept for reading the score; 0 fits and reads on all rows, as several papers do.
        seed: of split and shuffles.

    The interval covers the R2 that the fitted map would have on endless rows, not that of the best affine map, which
    few rows do not find. The table in docs/metrics.md says how often.

    Blind to: affine maps of `h`.
    Reference: zimmermann2021, Table 1 (there fitted and read on the same rows).

    Example:
        >>> z = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
        >>> round(linear_r2(z, 3 * z + 1).value, 3)
        1.0
    """
    return Recovery(up_to=AFFINE, holdout=holdout, seed=seed)(z, h)


def mcc(z: Any, h: Any, *, rank: bool = False, holdout: float = 0.5, seed: int = 0) -> Score:
    r"""Mean correlation coefficient: match each latent with one coordinate, average the |correlation|.

    $$\mathrm{MCC} = \frac1d \max_\pi \sum_j |\mathrm{corr}(z_j, h_{\pi(j)})|$$

    The matching and its signs are fitted on some rows, and the correlations are computed on others. With more
    coordinates than latents the best ones are used; with fewer, latents left over count as 0.

    Args:
        z: latents, `(n, d)`.
        h: representation of the same rows, `(n, k)`.
        rank: use Spearman's rank correlation, which is also blind to monotone bending of single coordinates.
        holdout: share of rows kept for reading; 0 is zimmermann2021's protocol.
        seed: of split and shuffles.

    Blind to: reordering, flipping, rescaling and shifting single coordinates.
    Reference: zimmermann2021, Table 2 (Pearson) and Table 3 (Spearman); there matched and read on the same rows.

    Example:
        >>> z = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
        >>> round(mcc(z, torch.stack([5 - z[:, 1], 2 * z[:, 0]], 1)).value, 3)
        1.0
    """
    up_to, agree = (COMPONENTWISE, spearman) if rank else (SCALED_PERMUTATION, pearson)
    score = Recovery(up_to=up_to, agree=agree, holdout=holdout, shift=True, seed=seed)(z, h)
    return replace(score, name="rank MCC" if rank else "MCC")


def profile(
    z: Any,
    h: Any,
    *,
    classes: Iterable[Equivalence] | None = None,
    shift: bool = False,
    holdout: float = 0.5,
    repeats: int = 200,
    shuffles: int = 20,
    seed: int = 0,
) -> Profile:
    """One R2 for each class of maps, tightest first.

    Args:
        z: latents, `(n, d)`.
        h: representation of the same rows, `(n, k)`.
        classes: which classes; None takes every class with a best map (without `IDENTITY` where d differs from k).
        shift: forgive a constant offset in every class.
        holdout: share of rows kept for reading.
        repeats: 0 leaves the intervals out.
        shuffles: shuffled copies for the chance level.
        seed: of split and shuffles.
    """
    z, h = _checks.paired(z, h)
    if classes is None:
        classes = [c for c in ALIGNABLE if c is not IDENTITY or z.shape[1] == h.shape[1]]
    how = {"holdout": holdout, "shift": shift, "repeats": repeats, "shuffles": shuffles, "seed": seed}
    return Profile(tuple(Recovery(up_to, **how)(z, h) for up_to in classes))  # type: ignore[arg-type]


def singular_values(z: Any, h: Any, *, shift: bool = True) -> tuple[float, ...]:
    """Singular values of the least-squares map from latents to representation, largest first.

    All equal to s means: a rotation times the scale s, which is what theory predicts for matched spheres.
    """
    values = torch.linalg.svdvals(least_squares(_enough(z, h).swapped(), shift=shift))
    return tuple(float(v) for v in values)


def distance_from_orthogonal(z: Any, h: Any, *, scale: float = 1.0) -> float:
    r"""How far the map from representation to latents is from a rotation times the predicted scale.

    The mean of $|s_j - 1/\text{scale}|$ over the singular values of the map, fitted without offset on all rows. A
    latent that the representation has no room for counts as a singular value of 0.

    Args:
        z: latents, `(n, d)`.
        h: representation of the same rows, `(n, k)`.
        scale: the predicted ratio |h| / |z|.

    Reference: reizinger2024, the MAE of Tables 2 and 5, with scale = kappa / beta.
    """
    matrix = least_squares(_enough(z, h), shift=False)
    values = torch.linalg.svdvals(matrix)
    values = torch.cat([values, values.new_zeros(len(matrix) - len(values))])
    return float((values - 1 / _checks.positive(scale, "scale")).abs().mean())


def _enough(z: Any, h: Any) -> Moments:
    """Moments of enough rows for a linear map in either direction."""
    z, h = _checks.paired(z, h)
    Recovery(LINEAR, holdout=0).refuse_few(len(z), z.shape[1], max(z.shape[1], h.shape[1]))
    _checks.varying(z, "z")
    return Moments.of(z, h)
