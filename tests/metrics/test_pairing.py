import numpy as np
import pytest
import torch

from zhat.metrics import Moments
from zhat.metrics import moments as moments_module
from zhat.metrics.pairing import Lengths, draws, halves, orders, shuffled, unpaired


def matrices(n=300, d=3, k=2):
    generator = torch.Generator().manual_seed(0)
    return (torch.randn(n, c, generator=generator, dtype=torch.float64) + 2 for c in (d, k))


def test_lengths_are_sums_of_squared_lengths_around_the_means():
    z, h = matrices()
    found = Lengths.of(z, h, Moments.of(z, h))
    a, b = ((m - m.mean(0)).square().sum(1) for m in (z, h))
    a, b = a / a.sum(), b / b.sum()  # in units of the traces
    assert np.allclose([found.zz, found.zh, found.hh], [a @ a, a @ b, b @ b])


def test_a_shuffle_is_a_pairing_of_all_rows_with_all_rows(monkeypatch):
    monkeypatch.setattr(moments_module, "_BLOCK", 32)
    n = 100
    z, h = torch.eye(n, dtype=torch.float64), torch.eye(n, dtype=torch.float64)
    whole = Moments.of(z, h)
    for other, lengths in shuffled(z, h, whole, None, shuffles=3, seed=0):
        assert lengths is None
        paired = (other.zh + 1 / n).round()  # the centred cross product of a permutation matrix
        assert torch.allclose(other.zh, paired - 1 / n)
        assert paired.sum(0).tolist() == paired.sum(1).tolist() == [1.0] * n
        assert paired.trace() < 10  # not the pairing that came
        assert torch.equal(other.zz, whole.zz)


def test_shuffles_are_those_of_the_seed():
    z, h = matrices()
    whole = Moments.of(z, h)
    first, again, other = (next(shuffled(z, h, whole, None, shuffles=1, seed=s))[0].zh for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_halves_hold_every_row_once(monkeypatch):
    monkeypatch.setattr(moments_module, "_BLOCK", 64)
    z, h = matrices(n=301)
    fit, read = halves(z, h, seed=0)
    whole = Moments.of(z, h)
    assert abs(fit.n - read.n) <= 5
    assert (fit + read).n == 301
    assert torch.allclose((fit + read).zh, whole.zh)
    assert not torch.allclose(fit.zh, halves(z, h, seed=1)[0].zh)


@pytest.mark.parametrize(("n", "block"), [(10, 1), (12, 4), (13, 4), (5, 8)])
def test_a_shuffle_loses_and_repeats_no_row(n, block):
    found = orders(n, block, torch.Generator().manual_seed(0), 7)
    assert found.shape == (7, n)
    assert (found.sort(1).values == torch.arange(n)).all()


def test_a_block_keeps_its_neighbours_up_to_one_seam():
    (order,) = orders(12, 4, torch.Generator().manual_seed(0))
    for part in order.reshape(3, 4):
        assert (part.diff() == 1).sum() >= 2


def test_draws_with_replacement_take_n_rows_each_time():
    counts = list(draws(7, 120, torch.Generator().manual_seed(0)))
    assert [len(some) for some in counts] == [50, 50, 20]
    assert all((some.sum(1) == 7).all() for some in counts)
    assert float(torch.cat(counts).mean()) == 1


def test_unpaired_moments_have_the_spread_of_shuffled_ones():
    z, h = matrices(n=400)
    whole = Moments.of(z, h)
    drawn = torch.stack([one.zh for (one,) in unpaired((whole,), shuffles=2000, seed=0)])
    expected = torch.outer(whole.zz.diagonal(), whole.hh.diagonal()) / 399
    assert torch.allclose(drawn.var(0), expected, rtol=6 * (2 / 2000) ** 0.5)
