import pytest
import torch

from zhat.encoders import deconv
from zhat.errors import BadInput


def test_it_is_the_decoder_of_the_official_code():
    net = deconv(10, (1, 64, 64), seed=0)
    sizes = [10 * 256 + 256, 256 * 64 * 16 + 64, 64 * 64 * 16 + 64, 64 * 32 * 16 + 32, 32 * 32 * 16 + 32, 32 * 16 + 1]
    assert sum(p.numel() for p in net.parameters()) == sum(sizes)
    assert net(torch.zeros(3, 10)).shape == (3, 1, 64, 64)


def test_the_seed_decides_the_weights():
    one, same, other = (deconv(3, (3, 16, 32), widths=(4, 4), seed=seed) for seed in (0, 0, 1))
    x = torch.ones(1, 3)
    assert torch.equal(one(x), same(x))
    assert not torch.equal(one(x), other(x))
    assert one(x).shape == (1, 3, 16, 32)


def test_images_that_cannot_be_doubled_into_get_a_sentence():
    with pytest.raises(BadInput, match="multiples of 16, but 60 × 64 was asked for. Use fewer `widths`"):
        deconv(3, (1, 60, 64))
    with pytest.raises(BadInput, match="must be the shape of an image"):
        deconv(3, (64, 64))
