import pytest
import torch

from zhat.dgp import Batch, Box, Sphere
from zhat.encoders import conv
from zhat.errors import BadInput
from zhat.objectives import InfoNCE, NegativeLp
from zhat.training import train


def count(encoder):
    return sum(p.numel() for p in encoder.parameters())


def test_the_default_is_the_papers_network():
    encoder = conv((1, 64, 64), 10, seed=0)
    assert count(encoder) == 380_362
    assert count(conv((1, 64, 64), 10, onto=Box(10), seed=0)) == 380_372
    x = torch.rand(3, 1, 64, 64)
    h = x
    for i in range(4):
        h = torch.relu(getattr(encoder, f"conv{i}")(h))
    assert h.shape == (3, 64, 4, 4)
    covering = encoder.top.weight.reshape(256, 64, 4, 4)  # the paper's convolution over the 4 × 4 points that are left
    h = torch.relu(torch.nn.functional.conv2d(h, covering, encoder.top.bias)).flatten(1)
    assert torch.allclose(encoder(x), encoder.last(h), atol=1e-5)


def test_weights_begin_kaiming_normal_and_biases_at_zero():
    encoder = conv((1, 64, 64), 10, seed=0)
    for layer, inputs in ((encoder.conv2, 32 * 16), (encoder.top, 64 * 16)):
        n = layer.weight.numel()
        assert layer.weight.var().item() == pytest.approx(2 / inputs, rel=5 * (2 / n) ** 0.5)
        assert layer.bias.abs().max() == 0


@pytest.mark.parametrize("shape", [(1, 32, 32), (3, 28, 28), (2, 16, 40)])
def test_images_of_other_sizes_fit(shape):
    encoder = conv(shape, 3, onto=Sphere(3), seed=0)
    h = encoder(torch.rand(5, *shape))
    assert h.shape == (5, 3)
    assert torch.allclose(h.norm(dim=-1), torch.ones(5), atol=1e-5)


def test_a_seed_fixes_the_weights():
    a, b, c = (conv((1, 16, 16), 2, seed=s) for s in (1, 1, 2))
    assert torch.equal(a.top.weight, b.top.weight)
    assert not torch.equal(a.top.weight, c.top.weight)


class Discs:
    """Soft discs at a place and with a radius that are known; a positive is a disc nearby."""

    views, seed = 2, 0

    def __init__(self, dtype):
        self.dtype = dtype

    def sample(self, n, *, generator):
        z = torch.rand(n, 3, generator=generator)
        z = torch.stack([z, (z + 0.08 * torch.randn(n, 3, generator=generator)).clamp(0, 1)])
        at = torch.linspace(0, 1, 16)
        off = (at[:, None] - z[..., 0, None, None]) ** 2 + (at - z[..., 1, None, None]) ** 2
        x = torch.sigmoid(40 * (0.15 + 0.2 * z[..., 2, None, None] - off.sqrt()))[:, :, None]
        return Batch(x=x.to(self.dtype), z=z)


def test_a_seed_alone_is_that_seed_in_a_stack():
    def make():
        return conv((1, 16, 16), 3, widths=(4, 8), top=16).double()

    how = {"steps": 5, "batch": 16, "lr": 1e-3}
    stacked = train(make, Discs(torch.float64), InfoNCE(NegativeLp(2)), seeds=range(3), **how)
    for s in range(3):
        alone = train(make, Discs(torch.float64), InfoNCE(NegativeLp(2)), seed=s, **how).encoder
        for ours, theirs in zip(stacked.encoders[s].parameters(), alone.parameters(), strict=True):
            assert torch.allclose(ours, theirs, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conv((64, 64), 10), "`observed` must be the shape of an image"),
        (lambda: conv((1, 8, 8), 10), "4 convolutions halve an image of 8 × 8 to nothing. Use fewer `widths`"),
        (lambda: conv((1, 16, 16), 3, onto=Sphere(4)), "ends in 3 dimensions, but Sphere"),
        (lambda: conv((1, 16, 16), 2)(torch.zeros(2, 16, 16, 1)), "images of shape \\(1, 16, 16\\), but rows of shape"),
    ],
)
def test_bad_use_gets_a_sentence(call, message):
    with pytest.raises(BadInput, match=message):
        call()
