from importlib import import_module
from itertools import product
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional as F

from zhat.dgp import Linear, Pairs, Sphere, Uniform, VonMisesFisher
from zhat.encoders import mlp
from zhat.fresh import Fresh
from zhat.kernels import can_normalise, normalised_layer
from zhat.objectives import InfoNCE
from zhat.training import train
from zhat.training.stack import Stack

normalising = pytest.importorskip("zhat.kernels.normalising", reason="triton is not installed")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
HOW = {"momentum": 0.3, "eps": 1e-5, "slope": 0.1}
ROUNDING = 2.0**-24  # of float32

# what is added, the factor, and the relative error allowed: a mean of 1e3 alone is rounded by 1e3 * 2**-24
KINDS = {
    "plain": (0.0, 1.0, 16 * ROUNDING),
    "far from 0": (1e3, 1.0, 4e3 * ROUNDING),
    "tiny": (0.0, 1e-6, 16 * ROUNDING),
    "constant": (1e6 + 0.1, 0.0, 16 * ROUNDING),
}
SHAPES = [(1, 2, 1), (2, 90, 7), (3, 65, 130)]  # one column; less than a tile of columns; two tiles and a bit
LONG = (1, 64 * 64 + 65, 3)  # more blocks of rows than are merged at a time


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def columns(stack, width):
    """Scale, of which one is 0, shift, offset, running mean and running variance, `(stack, width)` each."""
    scale, shift, offset, mean, variance = noise(5, stack, width, seed=1).unbind()
    scale[:, 1 : width // 2 : 5] = 0.0
    return scale, shift, offset, mean, variance.abs()


def by_torch(a, scale, shift, mean, variance):
    """Normalised values of every member, before the bend; running statistics are changed in place."""
    members = zip(a, mean, variance, scale, shift, strict=True)
    return torch.stack([F.batch_norm(*t, True, HOW["momentum"], HOW["eps"]) for t in members])


@pytest.mark.parametrize(("kind", "shape"), [*product(KINDS, SHAPES), ("far from 0", LONG)])
def test_by_hand_is_what_autograd_gives_in_float64(kind, shape):
    stack, rows, width = shape
    middle, spread, slack = KINDS[kind]
    a, up = middle + spread * noise(*shape), noise(*shape, seed=2)
    scale, shift, offset, mean, variance = columns(stack, width)
    at, rate, *after = normalising.moments(a, offset, mean, variance, HOW["momentum"], HOW["eps"])
    h = normalising.normalise_and_bend(a, at, rate, scale, shift, HOW["slope"])
    mine = normalising.unbend_and_restore(up, a, at, rate, scale, shift, HOW["slope"])

    inputs = [t.double().requires_grad_() for t in (a, scale, shift)]
    running = [mean.double(), variance.double()]
    v = by_torch(*inputs, *running)
    wanted = F.leaky_relu(v, HOW["slope"])
    assert (h - wanted).abs().max() <= slack * wanted.abs().max()
    running[0] = running[0] + HOW["momentum"] * offset
    for got, theirs in zip(after, running, strict=True):
        torch.testing.assert_close(got.double(), theirs, rtol=16 * ROUNDING, atol=16 * ROUNDING)

    on_my_side = torch.where(h > 0, v, HOW["slope"] * v)  # a value next to 0 may be rounded across the bend
    gradients = torch.autograd.grad((on_my_side * up).sum(), inputs)
    largest = up.norm() * rows**0.5  # of a sum over rows, by Cauchy and Schwarz
    scales = (scale * rate).abs().max() * up.norm(), largest, largest
    for got, theirs, size in zip(mine, gradients, scales, strict=True):
        assert got.shape == theirs.shape
        assert (got - theirs).norm() <= slack * size


@pytest.mark.gpu
def test_the_same_bits_come_twice():
    a, up, (scale, shift, offset, *running) = noise(2, 300, 70), noise(2, 300, 70, seed=2), columns(2, 70)
    runs = []
    for _ in range(2):
        moments = normalising.moments(a, offset, *running, 0.1, 1e-5)
        runs.append((*moments, *normalising.unbend_and_restore(up, a, *moments[:2], scale, shift, 0.1)))
    assert all(torch.equal(one, other) for one, other in zip(*runs, strict=True))


def test_a_constant_column_has_no_deviation_at_all():
    a = torch.full((1, 200, 3), 1e6 + 0.1, device=DEVICE)
    nothing = torch.zeros(1, 3, device=DEVICE)
    mean, rate, _, variance = normalising.moments(a, nothing, nothing, nothing, 1.0, 1e-5)
    assert torch.equal(mean, a[:, 0])
    assert torch.equal(variance, nothing)
    assert torch.allclose(rate, torch.full_like(rate, 1e-5**-0.5))


def layer(stack=2, rows=90, m=7, width=70):
    x, up = noise(stack, rows, m), noise(stack, rows, width, seed=2)
    weight = noise(stack, width, m, seed=3)
    scale, shift, bias, mean, variance = columns(stack, width)
    return [t.requires_grad_() for t in (x, weight, bias, scale, shift)], [mean, variance], up


def one_layer(x, weight, bias, scale, shift, mean, variance):
    return normalised_layer(x, (weight, bias), (scale, shift), (mean, variance), **HOW)


def test_a_layer_is_what_torch_does_and_its_bias_has_no_gradient():
    tensors, running, up = layer(stack=1)
    h, *after = one_layer(*(t[0] for t in (*tensors, *running)))
    mine = torch.autograd.grad((h * up[0]).sum(), tensors)
    x, weight, bias, scale, shift = (t.double() for t in tensors)
    theirs = [t.double() for t in running]
    a = torch.baddbmm(bias[:, None], x, weight.transpose(1, 2))
    wanted = F.leaky_relu(by_torch(a, scale, shift, *theirs), HOW["slope"])
    assert (h - wanted[0]).norm() < 1e-6 * wanted.norm()
    for got, ours in zip(after, theirs, strict=True):
        torch.testing.assert_close(got.double(), ours[0], rtol=1e-6, atol=1e-6)
    gradients = torch.autograd.grad((wanted * up).sum(), tensors)
    for i, (got, ours) in enumerate(zip(mine, gradients, strict=True)):
        assert got.shape == ours.shape
        if i == 2:
            assert not got.any()
            assert ours.norm() < 1e-6  # float64 until the last step
        else:
            assert (got - ours).norm() < 1e-5 * ours.norm()


def test_a_stack_under_vmap_is_its_members_one_by_one():
    tensors, running, up = layer()
    shared = tensors[0][0]  # rows that all members share have no stack axis

    def loss(x, up, *rest):
        h, mean, variance = one_layer(x, *rest)
        return (h * up).sum(), mean, variance

    for x, dim in ((tensors[0], 0), (shared, None)):
        rest = (*tensors[1:], *running)
        stacked = torch.func.vmap(loss, (dim, *(0,) * 7))(x, up, *rest)
        members = [loss(x if dim is None else x[s], up[s], *(t[s] for t in rest)) for s in range(2)]
        alone = [torch.stack(parts) for parts in zip(*members, strict=True)]
        for together, each in zip(stacked, alone, strict=True):
            torch.testing.assert_close(together, each, rtol=1e-5, atol=1e-5)
        gradients = [torch.autograd.grad(out[0].sum(), tensors) for out in (stacked, alone)]
        for together, each in zip(*gradients, strict=True):
            torch.testing.assert_close(together, each, rtol=1e-4, atol=1e-4)


def take(monkeypatch, by_hand):
    """Send every encoder down one of the two paths, where there is a GPU and where there is none."""
    # not `zhat.encoders.mlp`, which is the function
    monkeypatch.setattr(import_module("zhat.encoders.mlp"), "can_normalise", lambda x: by_hand)


def test_an_encoder_is_the_same_by_hand(monkeypatch):
    x, up = noise(130, 5), noise(130, 3, seed=2)
    results = []
    for by_hand in (False, True):
        take(monkeypatch, by_hand)
        encoder = mlp(5, 3, widths=(20, 70, 20), batch_norm=True, seed=0).to(DEVICE).train()
        h = [encoder(x + i) for i in range(3)]
        gradients = torch.autograd.grad((h[-1] * up).sum(), list(encoder.parameters()))
        results.append((h, gradients, dict(encoder.named_buffers()), encoder.eval()(x)))
    for theirs, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=2e-5)
    assert encoder.norm2.num_batches_tracked == 3


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_seeds_are_trained_by_hand_as_by_torch(monkeypatch, seeds):
    x = noise(len(seeds), 2, 60, 4)
    results = []
    for by_hand in (False, True):
        take(monkeypatch, by_hand)
        encoder = Fresh(mlp, 4, 3, widths=(12, 70), batch_norm=True)
        stack = Stack(encoder, InfoNCE(), seeds, torch.device(DEVICE))
        before = dict(stack.buffers)
        losses = [stack.losses({"x": x + i}) for i in range(2)]
        losses[-1].sum().backward()
        assert all(stack.buffers[name] is before[name] for name in before)
        gradients = {name: p.grad for name, p in stack.parameters.items()}
        results.append((losses, gradients, stack.buffers))
        assert stack.buffers["encoder.norm1.num_batches_tracked"].tolist() == [2] * len(seeds)
    (losses, gradients, buffers), (mine, my_gradients, my_buffers) = results
    torch.testing.assert_close(mine, losses, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(my_gradients, gradients, rtol=1e-4, atol=2e-5)
    torch.testing.assert_close(my_buffers, buffers, rtol=1e-5, atol=1e-6)
    assert (buffers["encoder.norm0.running_mean"] != 0).all()


def test_only_rows_that_the_kernels_take_go_there():
    rows = {"is_cuda": True, "dtype": torch.float32, "ndim": 2, "shape": (4, 3)}
    assert can_normalise(SimpleNamespace(**rows))
    for other in ({"is_cuda": False}, {"dtype": torch.float64}, {"ndim": 3}, {"shape": (1, 3)}):
        assert not can_normalise(SimpleNamespace(**rows | other))
    assert not can_normalise(torch.zeros(4, 3))


def test_autocast_is_left_to_torch(monkeypatch):
    rows = SimpleNamespace(is_cuda=True, dtype=torch.float32, ndim=2, shape=(4, 3))
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda device: device == "cuda")
    assert not can_normalise(rows)


def test_evaluation_never_goes_by_hand(monkeypatch):
    x = noise(6, 4)
    encoder = mlp(4, 3, widths=(8,), batch_norm=True, seed=0).to(DEVICE).eval()
    take(monkeypatch, False)
    wanted = encoder(x)
    take(monkeypatch, True)
    assert torch.equal(encoder(x), wanted)
    assert encoder.norm0.num_batches_tracked == 0


@pytest.mark.gpu
def test_a_recorded_step_is_a_plain_step():
    world = Pairs(Uniform(Sphere(3)), VonMisesFisher(10.0), Linear())
    encoder = Fresh(mlp, 3, 3, widths=(20, 70), batch_norm=True, onto=Sphere(3))
    how = {"seeds": (0, 1), "steps": 12, "batch": 300, "device": "cuda"}
    plain, recorded = (train(encoder, world, InfoNCE(), graph=graph, **how).encoders[1] for graph in (False, True))
    assert recorded.norm1.num_batches_tracked == 12
    for theirs, ours in zip(plain.state_dict().values(), recorded.state_dict().values(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
