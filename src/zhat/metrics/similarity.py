r"""How alike two representations are, in one pass over their rows: CCA, SVCCA, PWCCA, CKA, Procrustes, linear R2.

All follow from the joint moments of (z, h), here the two representations. `CCA()(z, h)` reads arrays, memory-mapped
ones a block at a time; `CCA().of(moments)` reads moments that were merged from shards. These measures are read on the
rows they are fitted on, so independent noise does not score 0: the chance level stands beside each, and too few rows
are refused.

**Directions without variance.** A direction that cannot be told from rounding counts as empty (`spectrum` says when),
and a warning says so. Canonical correlations bring columns to unit variance first, so that units do not matter. From
2,000 rows of float64 they are right to 1e-7 up to a condition number of the unit columns of 1e4, to 1e-3 up to 1e6, and
directions beyond about 5e6 are empty (2e6 for float32 around 0; less the larger the means are).
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from zhat import _checks
from zhat.equivalence import AFFINE, SCALED_PERMUTATION, SIMILARITY, Equivalence
from zhat.errors import BadInput, TooFewRows
from zhat.metrics.moments import Moments, blocks
from zhat.metrics.pairing import Lengths, halves, shuffled
from zhat.metrics.recovery import Recovery
from zhat.metrics.spectrum import Spectrum, varies
from zhat.results import Score


class Similarity(ABC):
    """A measure of how alike two representations are, computed from moments."""

    name: ClassVar[str]

    @property
    @abstractmethod
    def up_to(self) -> Equivalence:
        """The class of maps of h that do not move the measure; a constant offset never does."""

    def rows_needed(self, d: int, k: int) -> int:
        """The fewest rows for which a value is given: five for each free coefficient of a pair of directions."""
        return max(10, 5 * (d + k))

    @abstractmethod
    def read(self, moments: Moments, lengths: Lengths | None) -> tuple[float, Tensor]:
        """The value, and what it is made of."""

    @property
    def needs_lengths(self) -> bool:
        """Whether the squared lengths of single rows are needed besides the moments."""
        return False

    def __call__(self, z: Any, h: Any, *, shuffles: int = 5, seed: int = 0) -> Score:
        """The similarity of two representations of the same rows, with its chance level.

        Args:
            z: one representation, `(n, d)`.
            h: the other one, `(n, k)`.
            shuffles: shuffled copies for the chance level; each is one more pass over the rows, 0 leaves it out.
            seed: of the shuffles.
        """
        (score,) = similarities(z, h, measures=(self,), shuffles=shuffles, seed=seed)
        return score

    def of(self, moments: Moments) -> Score:
        """The similarity from moments alone, for rows that came in shards. A chance level needs the rows."""
        if self.needs_lengths:
            raise BadInput(f"{self!r} needs squared lengths of single rows, but moments hold none. Give it the rows.")
        self.refuse_few(moments)
        return self.score(moments, *self.read(moments, None))

    def refuse_few(self, moments: Moments) -> None:
        """Raise `TooFewRows` where noise would look like similarity."""
        d, k = moments.zh.shape
        needed = self.rows_needed(d, k)
        if moments.n < needed:
            raise TooFewRows(
                f"{moments.n} rows cannot tell {self.name} of {d} and {k} dimensions from noise. "
                f"Bring at least {needed} rows; the chance level falls as their number grows.",
                needed=needed,
            )

    def score(self, moments: Moments, value: float, each: Tensor, chance: Sequence[float] = ()) -> Score:
        """What was read of these moments, with its chance level if shuffled rows gave some values."""
        return Score(
            name=self.name,
            value=value,
            up_to=self.up_to,
            shift=True,
            low=None,
            high=None,
            chance=sum(chance) / len(chance) if chance else None,
            chance_high=float(torch.quantile(torch.tensor(chance).double(), 0.95)) if chance else None,
            n=moments.n,
            n_fit=moments.n,
            held_out=False,
            per_latent=tuple(float(v) for v in each),
        )


@dataclass(frozen=True)
class CCA(Similarity):
    r"""Mean canonical correlation: how well the directions of one representation are linear in the other.

    $$\frac1m \sum_i \rho_i, \qquad \rho = \text{singular values of } U^\top V, \quad
      U, V \text{ orthonormal bases of the centred columns}$$

    m is the larger of the two ranks, or the number of columns of the narrower representation where that is less: a
    direction that one has, and the other has a column for but not the direction, counts 0. Where both have full rank
    this is the usual mean. `per_latent` holds the correlations, largest first.

    Blind to: affine maps of either side, up to condition numbers of about 5e6 (`spectrum`). Range [0, 1]; independent
    noise scores about $\sqrt{k/n}$.
    Reference: hotelling1936; roeder2020, section 5.

    Example:
        >>> z = torch.randn(400, 3, generator=torch.Generator().manual_seed(0))
        >>> round(CCA()(z, z @ torch.randn(3, 3) + 1).value, 6)
        1.0
    """

    name: ClassVar[str] = "mean CCA"
    up_to = AFFINE

    def read(self, moments: Moments, lengths: Lengths | None) -> tuple[float, Tensor]:
        """Mean and correlations."""
        white_z, white_h = _both_white(moments)
        rho = _filled(_correlations(white_z.T @ moments.zh @ white_h), white_z, white_h)
        return float(rho.mean()), rho

    def held_out(self, z: Any, h: Any, *, seed: int = 0) -> Score:
        """The same with directions fitted on a random half of the rows and correlations computed on the other.

        Directions that were fitted to noise are not correlated on the other half, so the chance level is 0 at any n.
        """
        fit, read = halves(z, h, seed=seed)
        self.refuse_few(fit)
        _sides(read)
        white_z, white_h = _both_white(fit)
        rho = _filled(canonical_correlations(fit, read, white_z, white_h), white_z, white_h)
        return replace(self.score(read, float(rho.mean()), rho), n_fit=fit.n, held_out=True)


@dataclass(frozen=True)
class SVCCA(Similarity):
    r"""Mean canonical correlation of the first principal components of either side.

    $$\frac1c \sum_{i \le c} \rho_i, \qquad \rho = \text{singular values of } U_c^\top V_c, \quad
      U_c, V_c \text{ the first c left singular vectors}$$

    Args:
        components: c, how many principal components of either side are kept.
        standardised: bring columns to unit variance first, as roeder2020's code does: principal components of the
            correlation matrix.

    Blind to: rotations and one scale of h; `standardised`: reordering and rescaling of single columns. Where the
    variances of components c and c + 1 are equal, the first c are not defined, and neither is the value.
    Reference: raghu2017; roeder2020, Figure 4.
    """

    components: int
    standardised: bool = False
    name: ClassVar[str] = "SVCCA"

    def __post_init__(self) -> None:
        _checks.count(self.components, "components")

    @property
    def up_to(self) -> Equivalence:
        """Similarities; scaled permutations for standardised columns."""
        return SCALED_PERMUTATION if self.standardised else SIMILARITY

    def rows_needed(self, d: int, k: int) -> int:
        """Five for each coefficient of a pair of directions among the components."""
        return max(10, 10 * self.components)

    def read(self, moments: Moments, lengths: Lengths | None) -> tuple[float, Tensor]:
        """Mean and correlations."""
        white = [Spectrum.of(m.hh, m.mean_h, m.n, eps=m.eps_h, unit=self.standardised).white for m in _sides(moments)]
        for matrix, name in zip(white, "zh", strict=True):
            if matrix.shape[1] < self.components:
                raise BadInput(
                    f"SVCCA was asked for {self.components} components, but `{name}` varies in {matrix.shape[1]} "
                    "directions only. Ask for fewer."
                )
        first_z, first_h = (matrix[:, : self.components] for matrix in white)
        rho = _correlations(first_z.T @ moments.zh @ first_h)
        return float(rho.mean()), rho


@dataclass(frozen=True)
class PWCCA(Similarity):
    r"""Canonical correlations weighted by how much of z each direction accounts for.

    $$\frac{\sum_i \alpha_i \rho_i}{\sum_i \alpha_i}, \qquad \alpha_i = \sum_j |\langle u_i, z_j \rangle|, \quad
      u_i \text{ the canonical variates of z, } z_j \text{ its centred columns}$$

    Not symmetric: the first argument weighs. Directions of z beyond those of h count 0, with their principal axes as
    variates. Among directions of equal correlation the variates, and so their weights, are a convention.

    google/svcca's `pwcca.py` applies the canonical coefficients to columns that it has not whitened, adds the means
    back and makes the result orthonormal by QR, so its weights, and its values, differ from these.

    Blind to: affine maps of h, rotations within the columns of h; not to maps of z.
    Reference: morcos2018, which weighs by the side with fewer directions.
    """

    name: ClassVar[str] = "PWCCA"
    up_to = AFFINE

    def read(self, moments: Moments, lengths: Lengths | None) -> tuple[float, Tensor]:
        """Weighted mean and correlations of the directions of z."""
        white_z, white_h = _both_white(moments)
        left, rho, _ = torch.linalg.svd(white_z.T @ moments.zh @ white_h)
        onto = left.T @ white_z.T @ moments.zz  # <u_i, z_j>
        if len(onto) > len(rho):
            _, size, axes = torch.linalg.svd(onto[len(rho) :], full_matrices=False)
            onto = torch.cat([onto[: len(rho)], size[:, None] * axes])
        weight = onto.abs().sum(1)
        rho = torch.cat([rho.clamp(0, 1), rho.new_zeros(len(weight) - len(rho))])
        return float(weight @ rho / weight.sum()), rho


@dataclass(frozen=True)
class CKA(Similarity):
    r"""Linear centred kernel alignment: the angle between the matrices of dot products of rows.

    $$\frac{\lVert Z^\top H \rVert_F^2}{\lVert Z^\top Z \rVert_F \lVert H^\top H \rVert_F},
      \qquad Z, H \text{ centred}$$

    Args:
        debiased: leave the dot product of a row with itself out of all three sums, so that independent noise scores
            about 0 at any n. This needs the sum over rows of $|z_i|^2 |h_i|^2$, which is of fourth order and not
            among the moments: rows are read a second time, which is light beside the moments.

    Blind to: rotations and one scale of either side. Range [0, 1]; debiased values may fall below 0.
    Reference: kornblith2019; song2012, equation (5), for the debiased estimator.
    """

    debiased: bool = False
    name: ClassVar[str] = "linear CKA"
    up_to = SIMILARITY

    @property
    def needs_lengths(self) -> bool:
        """Only the debiased estimator."""
        return self.debiased

    def rows_needed(self, d: int, k: int) -> int:
        """As for the others; debiased, ten."""
        return 10 if self.debiased else super().rows_needed(d, k)

    def read(self, moments: Moments, lengths: Lengths | None) -> tuple[float, Tensor]:
        """The value, alone."""
        trace_z, trace_h = (side.hh.trace() for side in _sides(moments))
        # In units of the traces: squares of scatters are of fourth order, and would leave the range of float64 at 1e77.
        scaled = (moments.zh / trace_z.sqrt() / trace_h.sqrt(), moments.zz / trace_z, moments.hh / trace_h)
        zh, zz, hh = (s.square().sum() for s in scaled)
        if lengths is not None and self.debiased:
            n = moments.n
            # With centred rows the sums of a kernel without its diagonal are minus the squared lengths.
            pair, both = 1 / ((n - 1) * (n - 2)), 1 + 2 / (n - 2)
            zh, zz, hh = (
                s + pair - both * length for s, length in ((zh, lengths.zh), (zz, lengths.zz), (hh, lengths.hh))
            )
            if min(float(zz), float(hh)) <= 0:
                raise BadInput(
                    f"{n} rows are too noisy for a debiased CKA: an unbiased norm came out below 0. Bring more rows."
                )
        value = zh / (zz * hh).sqrt()
        return float(value), value[None]


@dataclass(frozen=True)
class Procrustes(Similarity):
    r"""How well one representation turns into the other by a rotation and one scale.

    $$\frac{\lVert Z^\top H \rVert_*}{\lVert Z \rVert_F \lVert H \rVert_F}, \qquad Z, H \text{ centred},
      \quad \lVert \cdot \rVert_* \text{ the sum of singular values}$$

    Its square is the share of variance that the best rotation with a scale explains. The narrower side is filled up
    with zeros.

    Blind to: rotations and one scale of either side. Range [0, 1].
    Reference: schonemann1966.
    """

    name: ClassVar[str] = "Procrustes"
    up_to = SIMILARITY

    def rows_needed(self, d: int, k: int) -> int:
        """Five for each angle of a rotation, for each direction."""
        return max(10, 5 * math.ceil((d + k) / 2))

    def read(self, moments: Moments, lengths: Lengths | None) -> tuple[float, Tensor]:
        """The value, alone."""
        trace_z, trace_h = (side.hh.trace() for side in _sides(moments))
        value = torch.linalg.svdvals(moments.zh / trace_z.sqrt() / trace_h.sqrt()).sum()
        return min(float(value), 1.0), value.clamp(max=1.0)[None]


def similarities(
    z: Any,
    h: Any,
    *,
    measures: tuple[Similarity, ...] = (CCA(), PWCCA(), CKA(), Procrustes()),
    shuffles: int = 5,
    seed: int = 0,
) -> tuple[Score, ...]:
    """Several measures of two representations, from one pass over the rows and one for each shuffle.

    Args:
        z: one representation, `(n, d)`: an array, a tensor on any device, or a memory-mapped array.
        h: the other one of the same rows, `(n, k)`.
        measures: which ones.
        shuffles: shuffled copies for the chance level; 0 leaves it out.
        seed: of the shuffles.

    Returns:
        One score for each measure, in their order.
    """
    _checks.count(shuffles, "shuffles", least=0)
    z, h = _checks.array(z), _checks.array(h)
    moments = Moments.of(z, h)
    for measure in measures:
        measure.refuse_few(moments)
    lengths = Lengths.of(z, h, moments) if any(measure.needs_lengths for measure in measures) else None
    chance: list[list[float]] = [[] for _ in measures]
    for other, far in shuffled(z, h, moments, lengths, shuffles=shuffles, seed=seed):
        for values, measure in zip(chance, measures, strict=True):
            values.append(measure.read(other, far)[0])
    return tuple(
        m.score(moments, *m.read(moments, lengths), values) for m, values in zip(measures, chance, strict=True)
    )


def linear_r2_both_ways(z: Any, h: Any, *, seed: int = 0) -> tuple[Score, Score]:
    """Held-out R2 of the affine map from h to z, and of the one from z to h, in one pass over the rows.

    Fitted on a random half of the rows, read on the other. Unlike `linear_r2` it holds no rows, so it gives neither
    interval nor chance level; held out, independent noise scores below 0.

    Args:
        z: one representation, `(n, d)`.
        h: the other one of the same rows, `(n, k)`.
        seed: of the halves.

    Blind to: affine maps of the side that is mapped.

    Example:
        >>> z = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
        >>> [round(score.value, 2) for score in linear_r2_both_ways(z, z[:, :1])]  # one way only
        [0.5, 1.0]
    """
    metric = Recovery(AFFINE)
    fit, read = halves(z, h, seed=seed)
    return metric.of(fit, read), metric.of(fit.swapped(), read.swapped())


def principal_components(z: Any, components: int, *, standardised: bool = False) -> Tensor:
    r"""The first left singular vectors of the centred columns, `(n, components)`, float64, orthonormal.

    $\rho$ of `SVCCA(c)` are the singular values of $U_c^\top V_c$. Where many models are compared pair by pair, finding
    the components once for each model costs less.

    Args:
        z: a representation, `(n, d)`.
        components: c.
        standardised: bring columns to unit variance first.
    """
    z = _checks.array(z)
    moments = Moments.of(z, z[:, :1])
    varying(moments.zz, moments.mean_z, moments.n, "z")
    white = Spectrum.of(moments.zz, moments.mean_z, moments.n, eps=moments.eps_z, unit=standardised).white
    if white.shape[1] < components:
        raise BadInput(f"{components} components were asked for, but `z` varies in {white.shape[1]} directions only.")
    return torch.cat([(some - moments.mean_z) @ white[:, :components] for some, _ in blocks(z, z[:, :1])])


def canonical_correlations(fit: Moments, read: Moments, white_z: Tensor, white_h: Tensor) -> Tensor:
    """Correlations, on the held-out rows, of canonical directions fitted on the fitted rows, largest first when fitted.

    Args:
        fit: moments of the rows to find the directions on.
        read: moments of other rows.
        white_z: whitens z of the fitted rows, `(d, rank)`.
        white_h: whitens h, `(k, rank)`.
    """
    left, _, right = torch.linalg.svd(white_z.T @ fit.zh @ white_h, full_matrices=False)
    a, b = (white_z @ left).T, (white_h @ right.T).T  # one direction in each row
    size_a, size_b = (((m @ s) * m).sum(1).clamp_min(0).sqrt() for m, s in ((a, read.zz), (b, read.hh)))
    rho = ((a @ read.zh) * b).sum(1) / (size_a * size_b)
    return torch.where(size_a * size_b > 0, rho.clamp(-1, 1), 0.0)  # 0 where one is constant among the held-out rows


def _filled(rho: Tensor, white_z: Tensor, white_h: Tensor) -> Tensor:
    """Correlations with a 0 for each direction that one side has and the other has a column for."""
    size = min(len(white_z), len(white_h), max(white_z.shape[1], white_h.shape[1]))
    return torch.cat([rho, rho.new_zeros(size - len(rho))])


def _correlations(cross: Tensor) -> Tensor:
    """Singular values of a product of orthonormal bases; rounding may lift one above 1."""
    rho: Tensor = torch.linalg.svdvals(cross).clamp(0, 1)
    return rho


def _both_white(moments: Moments) -> tuple[Tensor, Tensor]:
    """Whitening matrices of z and of h; warns of directions that are dropped though their columns vary."""
    found = []
    for side, name in zip(_sides(moments), "zh", strict=True):
        columns, spectrum = int(side.varies()[1].sum()), side.spectrum()
        if spectrum.rank < columns:
            warnings.warn(
                f"`{name}` has {columns} columns that vary, but {spectrum.rank} directions: the others have less than "
                f"{spectrum.floor / float(spectrum.values[0]):.1g} of the largest variance, which cannot be told from "
                "rounding, and count as empty.",
                stacklevel=2,
            )
        found.append(spectrum.white)
    return found[0], found[1]


def _sides(moments: Moments) -> tuple[Moments, Moments]:
    """Moments with z, and with h, in the place of h; refuses a side that does not vary."""
    varying(moments.zz, moments.mean_z, moments.n, "z")
    varying(moments.hh, moments.mean_h, moments.n, "h")
    return moments.swapped(), moments


def varying(scatter: Tensor, mean: Tensor, n: int, name: str) -> Tensor:
    """Which columns vary, `(d,)`; refuses a matrix in which none does."""
    vary = varies(scatter.diagonal(), mean, n)
    if not bool(vary.any()):
        raise BadInput(
            f"`{name}` is the same in all {n} rows, so it has no direction to compare. Look for a collapsed model."
        )
    return vary
