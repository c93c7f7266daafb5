import pytest
import torch

from zhat.equivalence import COMPONENTWISE
from zhat.metrics import Padded, Recovery, mcc, spearman

RANKS = Recovery(COMPONENTWISE, agree=spearman, holdout=0)


def rows(n=3000, d=3, k=10):
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(n, d, generator=generator)
    h = torch.randn(n, k, generator=generator)
    h[:, [7, 2, 4]] = torch.stack([z[:, 0].exp(), -z[:, 1], z[:, 2] + torch.randn(n, generator=generator)], 1)
    return z, h


def test_padding_changes_little_where_coordinates_are_left_over():
    z, h = rows()
    score = Padded(RANKS)(z, h)
    assert score.per_latent[:2] == pytest.approx((1.0, 1.0))
    assert len(score.per_latent) == 3
    assert score.value == pytest.approx(mcc(z, h, rank=True, holdout=0).value, abs=1e-9)
    assert (score.low, score.chance) == (None, None)


def test_noise_scores_what_three_of_ten_coordinates_give_by_luck():
    generator = torch.Generator().manual_seed(1)
    z, h = torch.randn(1000, 3, generator=generator), torch.randn(1000, 10, generator=generator)
    assert 0 < Padded(RANKS)(z, h).value < 4 / 1000**0.5
    assert Padded(RANKS)(z, h) == Padded(RANKS)(z, h)
    assert Padded(RANKS, seed=1)(z, h) != Padded(RANKS)(z, h)


def test_as_many_latents_as_coordinates_need_no_noise():
    z, _ = rows()
    assert Padded(RANKS)(z, z.flip(1)).value == pytest.approx(1)
    assert Padded(RANKS).up_to is COMPONENTWISE


def test_held_out_is_matched_and_read_on_different_rows():
    score = Padded(RANKS).held_out(*rows())
    assert score.held_out
    assert score.low < score.value < score.high
    assert abs(score.chance) < 0.1
