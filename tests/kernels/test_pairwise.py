import tracemalloc
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from zhat.kernels import pairwise, pairwise_logsumexp, reference, streamed

POWERS = [None, 1.0, 1.5, 2.0, 3.0]


def relative(a, b):
    return float((a - b).norm() / b.norm().clamp_min(1e-300))


def value_and_gradients(function, tensors, weights, **how):
    tensors = [t.detach().clone().requires_grad_() for t in tensors]
    queries, keys = tensors[0], tensors[-1]
    out = function(queries, queries if len(tensors) == 1 else keys, **how)
    return out.detach(), torch.autograd.grad((out * weights).sum(), tensors)


@given(
    n=st.integers(2, 40),
    m=st.integers(2, 40),
    d=st.integers(1, 7),
    power=st.sampled_from(POWERS),
    size=st.sampled_from([1e-3, 1.0, 20.0]),
    skip=st.booleans(),
    same=st.booleans(),
    seed=st.integers(0, 99),
)
def test_value_and_gradient_are_those_of_the_plain_definition(n, m, d, power, size, skip, same, seed):
    generator = torch.Generator().manual_seed(seed)
    tensors = [size * torch.randn(2, n, d, generator=generator, dtype=torch.float64)]
    if not same:
        tensors.append(size * torch.randn(2, m, d, generator=generator, dtype=torch.float64))
    weights = torch.randn(2, n, generator=generator, dtype=torch.float64)
    how = {"power": power, "scale": 0.7, "skip_diagonal": skip}
    expected, gradients = value_and_gradients(reference.pairwise_logsumexp, tensors, weights, **how)
    got, mine = value_and_gradients(pairwise_logsumexp, tensors, weights, **how)
    assert relative(got, expected) < 1e-10
    for a, b in zip(mine, gradients, strict=True):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-10 * float(b.abs().max()) + 1e-14)


@pytest.mark.parametrize("power", POWERS)
def test_float32_stays_within_its_stated_tolerance(power, generator):
    points = torch.rand(700, 10, generator=generator, dtype=torch.float64) * 5
    weights = torch.ones(700, dtype=torch.float64) / 700
    how = {"power": power, "scale": 1.0}
    expected, gradients = value_and_gradients(reference.pairwise_logsumexp, [points], weights, **how)
    got, mine = value_and_gradients(pairwise_logsumexp, [points.float()], weights.float(), **how)
    assert (got.double() - expected).abs().max() < 1e-5 * max(1.0, float(expected.abs().max()))
    assert relative(mine[0].double(), gradients[0]) < 1e-4


@pytest.mark.parametrize("power", [None, 1.0, 3.0])
def test_blocks_of_rows_meet_without_a_seam(power, generator, monkeypatch):
    monkeypatch.setattr(streamed, "_blocks", lambda rows, keys: [(i, rows[i : i + 7]) for i in range(0, len(rows), 7)])
    points = torch.randn(1, 30, 3, generator=generator, dtype=torch.float64)
    weights = torch.ones(1, 30, dtype=torch.float64)
    for skip in (False, True):
        how = {"power": power, "scale": 1.0, "skip_diagonal": skip}
        expected, gradients = value_and_gradients(reference.pairwise_logsumexp, [points], weights, **how)
        got, mine = value_and_gradients(pairwise_logsumexp, [points], weights, **how)
        assert torch.allclose(got, expected)
        assert torch.allclose(mine[0], gradients[0])


def test_collapsed_points_have_the_logarithm_of_their_number():
    same = torch.ones(50, 4)
    for power in (1.0, 2.0, 3.0):
        assert pairwise_logsumexp(same, same, power=power, scale=1.0)[0] == pytest.approx(
            torch.tensor(50.0).log().item()
        )


@pytest.mark.parametrize("power", POWERS)
def test_a_stack_under_vmap_is_its_members_one_by_one(power, generator):
    queries = torch.randn(3, 11, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    keys = torch.randn(3, 9, 4, generator=generator, dtype=torch.float64, requires_grad=True)

    def between(q, k):
        return pairwise_logsumexp(q, k, power=power, scale=0.5).mean()

    def within(q):
        return pairwise_logsumexp(q, q, power=power, scale=0.5).mean()

    for function, tensors in ((between, (queries, keys)), (within, (queries,))):
        stacked = torch.func.vmap(function)(*tensors)
        alone = torch.stack([function(*(t[s] for t in tensors)) for s in range(3)])
        assert torch.allclose(stacked, alone)
        for a, b in zip(
            torch.autograd.grad(stacked.sum(), tensors),
            torch.autograd.grad(alone.sum(), tensors),
            strict=True,
        ):
            assert torch.allclose(a, b)
    shared = torch.func.vmap(between, in_dims=(0, None))(queries, keys[0])
    assert torch.allclose(shared, torch.stack([between(q, keys[0]) for q in queries]))


def test_second_derivatives_are_refused_not_wrong(generator):
    points = torch.randn(5, 2, generator=generator, dtype=torch.float64, requires_grad=True)
    out = pairwise_logsumexp(points, points, power=None, scale=1.0).sum()
    (gradient,) = torch.autograd.grad(out, points, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        gradient.sum().backward()


def test_memory_is_linear_in_the_rows(generator):
    # torch's allocations are not traced; the largest tensor ever made tells instead.
    sizes = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor):
                sizes.append(out.numel())
            return out

    points = torch.rand(3000, 10, generator=generator, requires_grad=True)
    tracemalloc.start()
    with Watch():
        streamed.forward(points.detach()[None], points.detach()[None], 3.0, 1.0, False)
    tracemalloc.stop()
    assert max(sizes) <= 2**18 + 3000


@pytest.mark.parametrize(("width", "chosen"), [(10, "fused"), (64, "fused"), (65, "streamed"), (513, "streamed")])
def test_wide_rows_on_a_gpu_go_through_matrix_products(width, chosen):
    pytest.importorskip("triton")
    rows = SimpleNamespace(is_cuda=True, dtype=torch.float32, shape=(1, 2, width))
    assert pairwise._implementation(rows).__name__ == f"zhat.kernels.{chosen}"


def test_the_precision_of_the_encoder_does_not_reach_the_loss(monkeypatch):
    seen = []
    monkeypatch.setattr(streamed, "_blocks", lambda rows, keys: seen.append(torch.get_float32_matmul_precision()) or [])
    x = torch.rand(1, 4, 3)
    torch.set_float32_matmul_precision("high")
    try:
        streamed.forward(x, x, None, 1.0, False)
        after = torch.get_float32_matmul_precision()
    finally:
        torch.set_float32_matmul_precision("highest")
    assert seen == ["highest"]
    assert after == "high"


@pytest.mark.gpu
def test_a_classifier_of_wide_features_trains_on_a_gpu():
    x = torch.randn(4096, 513, device="cuda", requires_grad=True)
    head = torch.randn(3, 513, device="cuda", requires_grad=True)
    wanted = torch.logsumexp(x.double() @ head.double().T, 1)
    found = pairwise_logsumexp(x, head, power=None, scale=1.0)
    assert relative(found.double(), wanted) < 1e-6
    exact = torch.autograd.grad(wanted.sum(), (x, head))
    for ours, truth in zip(torch.autograd.grad(found.sum(), (x, head)), exact, strict=True):
        assert relative(ours, truth) < 1e-5
