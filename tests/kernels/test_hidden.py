from itertools import pairwise

import pytest
import torch

from zhat.kernels import hidden, hidden_layers

pytest.importorskip("zhat.kernels.bending", reason="triton is not installed")

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
WIDTHS = (7, 70, 130, 20)


def case(seeds=2, rows=90):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(seeds, rows, WIDTHS[0], generator=generator)
    parameters = []
    for a, b in pairwise(WIDTHS):
        parameters += [
            torch.randn(seeds, b, a, generator=generator) / a**0.5,
            torch.randn(seeds, b, generator=generator),
        ]
    up = torch.randn(seeds, rows, WIDTHS[-1], generator=generator)
    return [t.to(DEVICE).requires_grad_() for t in (x, *parameters)], up.to(DEVICE)


def plain(tensors, slope, dtype):
    x, *parameters = (t.to(dtype) for t in tensors)
    for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
        x = torch.nn.functional.leaky_relu(torch.baddbmm(bias[:, None], x, weight.transpose(1, 2)), slope)
    return x


@pytest.mark.parametrize(("dtype", "slack"), [(torch.float32, 1e-5), (torch.float16, 1e-2), (torch.bfloat16, 5e-2)])
def test_by_hand_is_what_autograd_gives(dtype, slack):
    if dtype != torch.float32 and not ON_GPU:
        pytest.skip("products that sum low precision in float32 need a GPU")
    tensors, up = case()
    wanted = plain(tensors, 0.01, torch.float64)
    gradients = torch.autograd.grad((wanted * up).sum(), tensors)
    got = hidden._Hidden.apply(tensors[0], (0.01, dtype), *tensors[1:])[0]
    mine = torch.autograd.grad((got.to(up.dtype) * up).sum(), tensors)
    assert (got.double() - wanted).norm() < slack * wanted.norm()
    for a, b in zip(mine, gradients, strict=True):
        assert a.shape == b.shape
        assert (a.double() - b).norm() < slack * b.norm()


def test_a_stack_under_vmap_is_its_members_one_by_one():
    tensors, up = case()

    def loss(x, up, *parameters):
        return (hidden._Hidden.apply(x[None], (0.1, torch.float32), *(p[None] for p in parameters))[0][0] * up).sum()

    stacked = torch.func.vmap(loss)(tensors[0], up, *tensors[1:])
    alone = torch.stack([loss(tensors[0][s], up[s], *(t[s] for t in tensors[1:])) for s in range(2)])
    assert torch.allclose(stacked, alone, rtol=1e-4)
    for a, b in zip(
        torch.autograd.grad(stacked.sum(), tensors), torch.autograd.grad(alone.sum(), tensors), strict=True
    ):
        assert torch.allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("rows", [90, 2**11])
def test_the_last_layer_is_a_linear_layer_also_under_vmap(rows):
    (_, *parameters), _ = case(rows=rows)
    weight, bias = parameters[-2:]
    h, up = torch.randn(2, rows, WIDTHS[-2], device=DEVICE), torch.randn(2, rows, WIDTHS[-1], device=DEVICE)
    h.requires_grad_()
    wanted = torch.baddbmm(bias[:, None].double(), h.double(), weight.double().transpose(1, 2))
    got = torch.func.vmap(lambda *t: hidden._Last.apply(*(v[None] for v in t))[0])(h, weight, bias)
    assert torch.allclose(got.double(), wanted, atol=1e-5)
    gradients = [torch.autograd.grad((out * up.to(out)).sum(), (h, weight, bias)) for out in (got, wanted)]
    for mine, theirs in zip(*gradients, strict=True):
        assert (mine - theirs).norm() < 1e-5 * theirs.norm()


def test_elsewhere_it_is_what_torch_does():
    tensors, _ = case(seeds=1)
    x, *parameters = (t[0].cpu() for t in tensors)
    got = hidden_layers(x, parameters[::2], parameters[1::2], 0.2)
    assert torch.allclose(got, plain([t.cpu() for t in tensors], 0.2, torch.float32)[0], atol=1e-5)
