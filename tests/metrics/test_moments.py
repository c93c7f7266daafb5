import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from zhat.errors import BadInput
from zhat.metrics import Moments


def matrices(n, d, k, offset=0.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(n, c, generator=generator, dtype=torch.float64) + offset for c in (d, k))


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 5), st.integers(1, 5), st.sampled_from([0.0, 1e6]))
def test_merged_parts_are_the_whole(a, b, d, k, offset):
    z, h = matrices(a + b, d, k, offset)
    whole, parts = Moments.of(z, h), Moments.of(z[:a], h[:a]) + Moments.of(z[a:], h[a:])
    assert parts.n == whole.n
    for name in ("mean_z", "mean_h", "zz", "zh", "hh"):
        mine, theirs = getattr(parts, name), getattr(whole, name)
        assert torch.allclose(mine, theirs, rtol=1e-9, atol=1e-9 * (a + b))


def test_a_large_offset_costs_no_digits():
    z, h = matrices(2000, 3, 2)
    near, far = Moments.of(z, h), Moments.of(z + 1e6, h - 1e6)
    assert torch.allclose(near.zh, far.zh, atol=1e-6)
    parts = sum(
        (Moments.of(z[i : i + 100] + 1e6, h[i : i + 100]) for i in range(100, 2000, 100)),
        Moments.of(z[:100] + 1e6, h[:100]),
    )
    assert torch.allclose(parts.zz, near.zz, atol=1e-5)


def test_they_are_numpys():
    z, h = matrices(500, 3, 4)
    moments = Moments.of(z.numpy(), h.numpy())
    joint = np.cov(np.hstack([z, h]).T)
    assert np.allclose(moments.zh / 499, joint[:3, 3:])
    assert np.allclose(moments.correlation(), np.corrcoef(np.hstack([z, h]).T)[:3, 3:])


def test_float32_rows_are_summed_in_float64():
    z = torch.full((10_000, 1), 0.1)
    z[::2] += 1e-4
    moments = Moments.of(z, z)
    assert moments.zz.dtype == torch.float64
    assert float(moments.zz / 10_000) == pytest.approx(0.25e-8, rel=1e-3)


def test_correlation_with_a_constant_column_is_zero_not_nan():
    z, _ = matrices(50, 2, 1)
    assert Moments.of(z, torch.ones(50, 1)).correlation().tolist() == [[0.0], [0.0]]


def test_moments_of_other_matrices_are_not_merged():
    with pytest.raises(BadInput, match="do not belong to one matrix"):
        Moments.of(*matrices(5, 2, 2)) + Moments.of(*matrices(5, 2, 3))
    with pytest.raises(BadInput, match="at least one row"):
        Moments.of(torch.ones(0, 2), torch.ones(0, 2))


def test_an_offset_is_as_if_it_were_not_there_in_merged_parts():
    """A merge of means that were rounded would add 1e-8 of a standard deviation here."""
    z, h = ((m * 2**20).round() / 2**20 for m in matrices(4096, 3, 2))  # so that nothing is lost by adding the offset
    near, far = (
        sum(
            (Moments.of(z[i : i + 64] + b, h[i : i + 64] - b) for i in range(64, 4096, 64)),
            Moments.of(z[:64] + b, h[:64] - b),
        )
        for b in (0.0, 2.0**27)
    )
    for name in ("zz", "zh", "hh"):
        assert torch.allclose(getattr(near, name), getattr(far, name), rtol=0, atol=1e-10)
