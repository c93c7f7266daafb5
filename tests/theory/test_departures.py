import numpy as np
import pytest
from scipy import stats

from zhat.theory.departures import (
    departure,
    legendre,
    of_column_pairs,
    of_kernel,
    of_products,
    of_uncorrelated,
    together,
)


def test_p_values_are_uniform_where_the_mean_is_zero():
    random = np.random.default_rng(0)
    for q, n in ((1, 300), (6, 300), (400, 100)):  # more functions than rows as well
        p = [of_uncorrelated(random.normal(size=(n, q))).p_value for _ in range(300)]
        assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_the_size_and_its_interval_do_not_grow_or_shrink_with_the_rows():
    random = np.random.default_rng(1)
    for n in (500, 5000):
        found = of_uncorrelated(random.normal(size=(n, 20)) + 0.1)
        assert found.low < 0.1 * 20**0.5 < found.high
        assert found.size == pytest.approx(0.1 * 20**0.5, abs=4 / n**0.5)


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    random = np.random.default_rng(2)
    held = [f.low < 0.3 < f.high for f in (of_uncorrelated(random.normal(size=(400, 4)) + 0.15) for _ in range(400))]
    assert abs(np.mean(held) - 0.95) < 4 * (0.95 * 0.05 / 400) ** 0.5


def test_large_statistics_have_intervals_as_well():
    found = departure(1e6, 10, 1000)
    assert 0 < found.low < found.size < found.high


def test_products_and_pairs_of_columns_are_sums_over_pairs_of_rows():
    random = np.random.default_rng(3)
    a, b = random.normal(size=(30, 3)), random.normal(size=(30, 2))
    x = np.einsum("nc,ne->nce", a, b).reshape(30, 6)
    assert of_products(a, b).square == pytest.approx(of_uncorrelated(x).square)
    pairs = np.stack([a[:, 0] * a[:, 1], a[:, 0] * a[:, 2], a[:, 1] * a[:, 2]], 1)
    assert of_column_pairs(a).square == pytest.approx(of_uncorrelated(pairs).square)
    gram = x @ x.T
    found = of_kernel(gram.sum(), np.diag(gram), gram[np.triu_indices(30, 1)], 30)
    assert found.square == pytest.approx(of_uncorrelated(x).square)


def test_the_smallest_of_many_p_values_is_corrected():
    assert together([0.01]) == pytest.approx(0.01)
    assert together([0.01, 0.5, 0.9]) == pytest.approx(1 - 0.99**3)


def test_polynomials_are_orthonormal():
    u = (np.arange(100_000) + 0.5) / 100_000
    functions = np.stack([legendre(u, k) for k in range(1, 7)])
    assert np.allclose(functions @ functions.T / 100_000, np.eye(6), atol=1e-6)
    assert np.allclose(functions.mean(1), 0, atol=1e-6)
