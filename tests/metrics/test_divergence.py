from importlib import import_module

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from zhat.errors import BadInput
from zhat.metrics import divergence

MODULE = import_module("zhat.metrics.divergence")


def model(seed, n=40, labels=7, dim=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, dim)), rng.standard_normal((labels, dim))


def by_hand(one, two):
    """Both Kullback-Leibler divergences row by row, from their definition."""
    p, q = (np.exp(f @ g.T) / np.exp(f @ g.T).sum(1, keepdims=True) for f, g in (one, two))
    return float(np.mean(0.5 * (p * np.log(p / q) + q * np.log(q / p)).sum(1)))


def test_it_is_the_mean_of_both_divergences_for_every_pair():
    models = [model(seed, dim=dim) for seed, dim in enumerate((2, 3, 5))]
    found = divergence(*zip(*models, strict=True))
    assert found.dtype == torch.float64
    assert torch.equal(found, found.T)
    assert torch.equal(found.diagonal(), torch.zeros(3, dtype=torch.float64))
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert found[i, j].item() == pytest.approx(by_hand(models[i], models[j]), rel=1e-10)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), dim=st.integers(1, 5), stretch=st.floats(0.1, 10))
def test_a_linear_map_of_features_that_the_head_undoes_changes_nothing(seed, dim, stretch):
    rng = np.random.default_rng(seed)
    f, g = model(seed, dim=dim)
    a = np.linalg.qr(rng.standard_normal((dim, dim)))[0] * stretch
    moved = f @ a.T, g @ np.linalg.inv(a) + rng.standard_normal(dim)  # one offset for all labels leaves p as it is
    other = model(seed + 1, dim=dim)
    found = divergence([f, moved[0], other[0]], [g, moved[1], other[1]])
    assert found[0, 1] < 1e-12
    assert found[0, 2] == pytest.approx(found[1, 2].item(), rel=1e-8)
    assert found[0, 2] > 1e-3


def test_rows_are_read_in_pieces(monkeypatch):
    models = [model(seed) for seed in (0, 1)]
    whole = divergence(*zip(*models, strict=True))
    monkeypatch.setattr(MODULE, "ROOM", 7 * 2 * 3)  # three rows at a time
    assert torch.allclose(divergence(*zip(*models, strict=True)), whole, rtol=1e-12, atol=0)


def test_certain_models_that_contradict_each_other_are_far_apart_and_finite():
    f = np.full((3, 1), 400.0)
    found = divergence([f, f], [np.array([[1.0], [-1.0]]), np.array([[-1.0], [1.0]])])
    assert found[0, 1].item() == pytest.approx(800)


@pytest.mark.parametrize(
    ("features", "heads", "said"),
    [
        ([], [], "the same rows and labels"),
        ([np.ones((4, 2)), np.ones((5, 2))], [np.ones((3, 2))] * 2, "the same rows and labels"),
        ([np.ones((4, 2))] * 2, [np.ones((3, 2)), np.ones((6, 2))], "the same rows and labels"),
        ([np.ones((0, 2))] * 2, [np.ones((3, 2))] * 2, "at least one"),
        ([np.ones((4, 2))] * 2, [np.ones((3, 3))] * 2, "as many columns"),
        ([np.ones((4, 2))] * 2, [np.ones((3, 2))], "but 2 and 1 came"),
        ([np.full((4, 2), 1e200)] * 2, [np.full((3, 2), 1e200)] * 2, "some scores overflow"),
        ([np.ones((4, 2)), np.full((4, 2), np.nan)], [np.ones((3, 2))] * 2, r"`features\[1\]` must be finite"),
    ],
)
def test_mistakes_get_a_sentence(features, heads, said):
    with pytest.raises(BadInput, match=said):
        divergence(features, heads)
