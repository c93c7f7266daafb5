import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import r2_score

from zhat.metrics import agreement
from zhat.metrics.agreement import pearson, r2, spearman


def data(n=300, d=3):
    generator = torch.Generator().manual_seed(1)
    z = torch.randn(n, d, generator=generator, dtype=torch.float64) + 5
    return z, z + torch.randn(n, d, generator=generator, dtype=torch.float64)


def test_they_are_scikit_learns_and_scipys():
    z, h = data()
    assert float(r2(z, h).mean()) == pytest.approx(r2_score(z, h))
    assert np.allclose(pearson(z, h), [stats.pearsonr(z[:, j], h[:, j])[0] for j in range(3)])
    assert np.allclose(spearman(z, h), [stats.spearmanr(z[:, j], h[:, j])[0] for j in range(3)])


def test_ranks_average_ties_as_scipy_does():
    values = torch.tensor([[3.0, 1.0], [1.0, 1.0], [3.0, 2.0], [0.0, 5.0], [3.0, 1.0]], dtype=torch.float64)
    expected = stats.rankdata(values.numpy(), axis=0)
    ranks = agreement.ranks(values).numpy()
    assert np.allclose(ranks - ranks.mean(0), expected - expected.mean(0))


def test_a_constant_prediction_agrees_with_nothing():
    z, _ = data()
    assert pearson(z, torch.zeros_like(z)).tolist() == [0.0, 0.0, 0.0]
    assert float(r2(z, z.mean(0).expand_as(z)).abs().max()) < 1e-12


def test_only_rank_correlation_is_blind_to_bending():
    z, _ = data()
    assert float(spearman(z, z.exp()).min()) == pytest.approx(1)
    assert float(pearson(z, z.exp()).max()) < 0.9
    assert [a.ranked for a in (r2, pearson, spearman)] == [False, False, True]
    assert [a.blind_to.name for a in (r2, pearson, spearman)] == ["IDENTITY", "SCALED_PERMUTATION", "COMPONENTWISE"]
