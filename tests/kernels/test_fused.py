"""The Triton kernels against the plain definition: on a GPU where there is one, in Triton's interpreter elsewhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zhat.kernels import reference

fused = pytest.importorskip("zhat.kernels.fused", reason="triton is not installed")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def case(n, m, d, size, seed, same):
    generator = torch.Generator().manual_seed(seed)
    x = size * torch.randn(2, n, d, generator=generator, dtype=torch.float64)
    y = x if same else size * torch.randn(2, m, d, generator=generator, dtype=torch.float64)
    return x, y, torch.randn(2, n, generator=generator, dtype=torch.float64)


def expected(x, y, weights, how):
    x = x.clone().requires_grad_()
    y = x if y is x or (y.shape == x.shape and torch.equal(x, y)) else y.clone().requires_grad_()
    out = reference.pairwise_logsumexp(x, y, power=how[0], scale=how[1], skip_diagonal=how[2])
    return out.detach(), torch.autograd.grad((out * weights).sum(), [x] if y is x else [x, y])


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    if DEVICE == "cpu":  # the interpreter is slow; small tiles meet the same edges with fewer pairs
        monkeypatch.setattr(fused, "_forward_tile", lambda d: (4, 16, 1))
        monkeypatch.setattr(fused, "_pull_tile", lambda d: (4, 8, 1))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    n=st.integers(2, 13),
    m=st.integers(2, 37),
    d=st.integers(1, 4),
    power=st.sampled_from([None, 1.0, 1.5, 2.0, 3.0]),
    size=st.sampled_from([1e-3, 1.0, 4.0]),
    skip=st.booleans(),
    same=st.booleans(),
    seed=st.integers(0, 99),
)
def test_value_and_gradient_are_those_of_the_plain_definition(n, m, d, power, size, skip, same, seed):
    x, y, weights = case(n, n if same else m, d, size, seed, same)
    how = (power, 0.7, skip)
    level, gradients = expected(x, y, weights, how)
    a = x.float().to(DEVICE)
    b = a if same else y.float().to(DEVICE)
    out = fused.forward(a, b, *how)
    slack = 1e-5 * max(1.0, float(level.abs().max()))
    assert (out.cpu().double() - level).abs().max() < slack
    side = (level.float().to(DEVICE), weights.float().to(DEVICE))
    if same:
        mine = [fused.pull(a, a, *how, side, side)]
    else:
        mine = [fused.pull(a, b, *how, side, None), fused.pull(b, a, *how, None, side)]
    for got, wanted in zip(mine, gradients, strict=True):
        assert (got.cpu().double() - wanted).norm() < 2e-4 * wanted.norm() + 1e-6


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_ties_pull_nowhere(power):
    # Rows that share a coordinate exactly, as saturated outputs do: the derivative of |0| is taken as 0.
    x = torch.tensor([[[1.0, 0.0], [1.0, 2.0], [1.0, -3.0], [1.0, 0.0]]], dtype=torch.float64)
    weights = torch.ones(1, 4, dtype=torch.float64)
    how = (power, 1.0, False)
    level, (gradient,) = expected(x, x, weights, how)
    a, side = x.float().to(DEVICE), (level.float().to(DEVICE), weights.float().to(DEVICE))
    got = fused.pull(a, a, *how, side, side).cpu().double()
    assert got[..., 0].abs().max() < 1e-6
    assert torch.allclose(got, gradient, atol=1e-5)


def test_far_apart_points_neither_overflow_nor_vanish():
    x = torch.tensor([[[0.0], [100.0], [200.0]]], device=DEVICE)
    out = fused.forward(x, x, 2.0, 1.0, True)  # without the self-pair: -10000 for each
    assert out.cpu()[0].tolist() == pytest.approx([-10000.0, -10000.0 + 0.6931, -10000.0], rel=1e-6)
    assert fused.forward(x, x, None, 1.0, False).cpu()[0, 2] == pytest.approx(40000.0)


@pytest.mark.gpu
def test_a_batch_of_65536_fits():
    from zhat.kernels import pairwise_logsumexp

    torch.cuda.reset_peak_memory_stats()
    points = torch.rand(65_536, 10, device="cuda", requires_grad=True)
    pairwise_logsumexp(points, points, power=1.0, scale=1.0).mean().backward()
    assert torch.isfinite(points.grad).all()
    assert torch.cuda.max_memory_allocated() < 100e6


def test_kernels_compile_for_a_gpu_that_is_not_here():
    # in a process of its own: the interpreter, by which the other tests run the kernels, is chosen at import
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    script = Path(__file__).with_name("compiles_for_hopper.py")
    ran = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "all kernels compile" in ran.stdout
