import math
import time

import numpy as np
import pytest
import torch

from zhat.dgp import AtMost, BestOf, Embedding, InvertibleMLP, Linear, Orthogonal, mixing
from zhat.errors import BadInput
from zhat.testing import check_mixing

MIXINGS = [
    InvertibleMLP(),
    InvertibleMLP(layers=2, slope=0.5, condition=AtMost(4.0)),
    Linear(),
    Orthogonal(),
    Embedding(7),
    Embedding(5, mixing=Orthogonal()),
]


@pytest.mark.parametrize("mixing", MIXINGS, ids=repr)
def test_mixings_keep_their_contract(mixing):
    check_mixing(mixing, 4)


def test_the_network_is_the_papers():
    mixer = InvertibleMLP(layers=3, slope=0.2).build(10, torch.Generator().manual_seed(0))
    assert len(mixer.weights) == 3
    assert mixer.slopes == (0.2, 0.2, 1.0)
    for weight in mixer.weights:
        assert torch.allclose(weight.norm(dim=0), torch.ones(10, dtype=torch.float64))  # unit columns
        assert weight.abs().max() < 1
    z = torch.randn(50, 10, dtype=torch.float64)
    by_hand = z
    for i, weight in enumerate(mixer.weights):
        by_hand = by_hand @ weight.T
        by_hand = torch.nn.functional.leaky_relu(by_hand, 0.2) if i < 2 else by_hand
    assert torch.allclose(mixer(z), by_hand)


def test_the_best_of_many_is_the_best_of_all_of_them():
    # The filter may only skip matrices that provably cannot win.
    for dim in (2, 3, 6, 10):
        generator = torch.Generator().manual_seed(dim)
        chosen = BestOf(3 * mixing._BLOCK).choose(mixing._candidates(dim, generator))
        again = mixing._candidates(dim, torch.Generator().manual_seed(dim))
        every = np.concatenate([mixing._may_reach(next(again), math.inf) for _ in range(3)])
        assert np.linalg.cond(chosen.numpy()) == pytest.approx(np.linalg.cond(every).min(), rel=1e-12)


def test_condition_numbers_at_ten_dimensions_are_near_the_papers():
    mixers = [InvertibleMLP().build(10, torch.Generator().manual_seed(s)) for s in range(4)]
    conditions = [float(np.linalg.cond(w.numpy())) for m in mixers for w in m.weights]
    assert 3.2 < np.mean(conditions) < 4.4


def test_building_takes_well_under_a_second():
    Linear().build(10, torch.Generator().manual_seed(99))
    started = time.process_time()
    InvertibleMLP().build(10, torch.Generator().manual_seed(0))
    assert time.process_time() - started < 1.0


def test_orthogonal_preserves_lengths_and_is_uniform_in_sign():
    z = torch.randn(5, 6, dtype=torch.float64)
    mixers = [Orthogonal().build(6, torch.Generator().manual_seed(s)) for s in range(200)]
    assert torch.allclose(mixers[0](z).norm(dim=-1), z.norm(dim=-1))
    signs = torch.stack([m.weights[0][0, 0].sign() for m in mixers])
    assert abs(signs.mean()) < 4 / math.sqrt(200)


def test_an_embedding_has_more_observed_dimensions_and_an_exact_inverse_on_its_image():
    mixer = Embedding(9).build(4, torch.Generator().manual_seed(0))
    assert mixer.observed == 9
    z = torch.randn(30, 4, dtype=torch.float64)
    assert torch.allclose(mixer.inverse(mixer(z)), z, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AtMost(1.0), "`limit` must be above 1, the condition number of a rotation"),
        (
            lambda: AtMost(1.0001).choose(mixing._candidates(12, torch.Generator())),
            "Use a larger limit, or Orthogonal",
        ),
        (lambda: BestOf(0), "`draws` must be a whole number of at least 1"),
        (lambda: InvertibleMLP(layers=0), "`layers` must be a whole number"),
        (lambda: InvertibleMLP(slope=0.0), "`slope` must be above 0"),
        (lambda: Embedding(3).build(4, torch.Generator()), "cannot hold 4 latents without losing some"),
    ],
)
def test_bad_mixings_get_a_sentence(make, message, monkeypatch):
    monkeypatch.setattr(mixing, "_PATIENCE", 2)
    with pytest.raises(BadInput, match=message):
        make()
