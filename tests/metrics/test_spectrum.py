import math

import pytest
import torch

from zhat import _checks
from zhat.errors import BadInput
from zhat.metrics.spectrum import EPS, Spectrum, centred, varies


def scatter(x):
    x = x.double()
    mean = x.mean(0)
    return (x - mean).T @ (x - mean), mean, len(x)


def normal(n, d, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_white_directions_have_unit_scatter_and_the_largest_variance_comes_first():
    s, mean, n = scatter(normal(500, 4) @ normal(4, 4, seed=1))
    for unit in (True, False):
        found = Spectrum.of(s, mean, n, unit=unit)
        assert torch.allclose(found.white.T @ s @ found.white, torch.eye(4, dtype=torch.float64), atol=1e-12)
        assert found.values.tolist() == sorted(found.values.tolist(), reverse=True)


def test_a_column_varies_from_four_roundings_of_its_mean_on():
    mean = torch.tensor([1e9, 1e9, 0.0], dtype=torch.float64)
    spread = torch.tensor([3 * EPS * 1e9, 5 * EPS * 1e9, 1e-150], dtype=torch.float64)
    assert varies(100 * spread.square(), mean, 100).tolist() == [False, True, True]
    rows = torch.tensor([[1e9, 1e9], [1e9, 1e9 + 1e-5]], dtype=torch.float64)
    assert _checks.constant(rows).tolist() == [True, False]


def test_a_difference_of_squares_that_is_rounding_is_nothing():
    x = torch.tensor([3.0, 0.1], dtype=torch.float64)
    n = torch.full_like(x, 1000)
    assert centred(n * x.square(), n * x, n).tolist() == [0.0, 0.0]
    assert centred(n * x.square() * (1 + 1e-10), n * x, n).tolist() == pytest.approx([9e-7, 1e-9], rel=1e-4)


@pytest.mark.parametrize(("eps", "offset", "least"), [(EPS, 0.0, 3e-7), (2.0**-23, 0.0, 5e-7), (2.0**-23, 100.0, 1e-5)])
def test_a_direction_is_empty_below_the_rounding_of_sums_and_of_stored_numbers(eps, offset, least):
    a, b = normal(2000, 2).T
    ranks = [
        Spectrum.of(*scatter(torch.stack([a, a + small * b], 1) + offset), eps=eps).rank
        for small in (least / 3, 3 * least)
    ]
    assert ranks == [1, 2]


def test_units_matter_only_where_they_are_asked_for():
    s, mean, n = scatter(normal(500, 2) * torch.tensor([1e-9, 1.0]))
    assert (Spectrum.of(s, mean, n).rank, Spectrum.of(s, mean, n, unit=False).rank) == (2, 1)


def test_nothing_varies_in_a_constant_matrix():
    assert Spectrum.of(*scatter(torch.full((50, 3), 0.1))).rank == 0


def test_a_whole_number_beyond_float64_is_refused_with_a_sentence():
    with pytest.raises(BadInput, match="`x` must be a finite number"):
        _checks.finite(10**400, "x")
    with pytest.raises(BadInput, match="`x` must be a finite number"):
        _checks.finite(math.inf, "x")


def test_constant_columns_are_part_of_no_direction():
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    wide = torch.zeros(50, 6, dtype=torch.float64)
    wide[:, [0, 2, 5]] = x
    wide[:, 3] = 7.0
    narrow, found = (Spectrum.of((m - m.mean(0)).T @ (m - m.mean(0)), m.mean(0), 50) for m in (x, wide))
    assert found.rank == 3
    assert torch.allclose(found.values, narrow.values)
    assert (found.white[[1, 3, 4]] == 0).all()
    assert torch.allclose(found.white[[0, 2, 5]] @ found.white[[0, 2, 5]].T, narrow.white @ narrow.white.T)
