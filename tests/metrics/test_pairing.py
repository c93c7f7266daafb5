import numpy as np
import torch

from zhat.metrics import Moments
from zhat.metrics import moments as moments_module
from zhat.metrics.pairing import Lengths, halves, shuffled


def matrices(n=300, d=3, k=2):
    generator = torch.Generator().manual_seed(0)
    return (torch.randn(n, c, generator=generator, dtype=torch.float64) + 2 for c in (d, k))


def test_lengths_are_sums_of_squared_lengths_around_the_means():
    z, h = matrices()
    found = Lengths.of(z, h, Moments.of(z, h))
    a, b = ((m - m.mean(0)).square().sum(1) for m in (z, h))
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
