import pytest
import torch

from zhat.dgp import Batch, Box
from zhat.encoders import resnet18
from zhat.errors import BadInput
from zhat.fresh import Fresh
from zhat.objectives import InfoNCE, NegativeLp
from zhat.training import train
from zhat.training.stack import Stack


def count(encoder):
    return sum(p.numel() for p in encoder.parameters())


def test_the_number_of_parameters_is_torchvisions():
    assert count(resnet18((3, 224, 224), 1000, seed=0)) == 11_689_512
    assert count(resnet18((3, 64, 64), 10, seed=0)) == 11_181_642
    assert count(resnet18((3, 224, 224), 10, hidden=100, onto=Box(10), seed=0)) == 11_228_822 + 10


@pytest.mark.parametrize(("side", "small", "left"), [(224, False, 7), (64, False, 2), (32, True, 4)])
def test_images_shrink_by_the_stem_and_three_blocks(side, small, left):
    encoder = resnet18((3, side, side), 10, small=small, seed=0).eval()
    shapes = []
    encoder.averaged.register_forward_pre_hook(lambda module, inputs: shapes.append(tuple(inputs[0].shape)))
    with torch.no_grad():
        assert encoder(torch.rand(2, 3, side, side)).shape == (2, 10)
    assert shapes == [(2, 512, left, left)]


def test_convolutions_begin_kaiming_normal_over_their_outputs():
    encoder = resnet18((3, 64, 64), 10, seed=0)
    weight = encoder.block6.conv2.weight
    assert weight.var().item() == pytest.approx(2 / (512 * 9), rel=5 * (2 / weight.numel()) ** 0.5)


def test_channels_are_standardised_first():
    plain, standard = (
        resnet18((3, 32, 32), 2, seed=0, **how).eval() for how in ({}, {"mean": (1, 2, 3), "std": (4, 5, 6)})
    )
    x = torch.rand(2, 3, 32, 32)
    moved = (x - torch.tensor([1.0, 2, 3])[:, None, None]) / torch.tensor([4.0, 5, 6])[:, None, None]
    assert torch.allclose(standard(x), plain(moved), atol=1e-5)
    assert list(standard.state_dict()) == list(plain.state_dict())


def test_a_seed_alone_is_that_seed_in_a_stack_with_its_running_means(generator):
    make = Fresh(resnet18, (3, 32, 32), 2, hidden=8)
    brightness = torch.rand(2, 1, 4, 1, 1, 1, generator=generator)
    x = brightness + 0.5 * torch.rand(2, 2, 4, 3, 32, 32, generator=generator)  # (seeds, views, n, …)
    stacked = Stack(make, InfoNCE(NegativeLp(2)), (0, 1), torch.device("cpu"))
    losses = stacked.losses({"x": x})
    losses.sum().backward()
    for s in (0, 1):
        alone = Stack(make, InfoNCE(NegativeLp(2)), (s,), torch.device("cpu"))
        loss = alone.losses({"x": x[s : s + 1]})
        loss.sum().backward()
        assert torch.allclose(losses[s], loss[0], rtol=1e-4)
        for name, parameter in alone.parameters.items():
            apart = (parameter.grad[0] - stacked.parameters[name].grad[s]).norm()
            assert apart < 1e-3 * parameter.grad.norm() + 1e-6, name
        for name, buffer in alone.buffers.items():
            assert torch.allclose(buffer[0], stacked.buffers[name][s], rtol=1e-4, atol=1e-5), name
        assert alone.buffers["encoder.norm.num_batches_tracked"] == 1
        assert alone.buffers["encoder.block7.norm2.running_mean"].abs().max() > 0


def test_several_seeds_train_together(generator):
    class Noise:
        views, seed = 2, 0

        def sample(self, n, *, generator):
            return Batch(x=torch.randint(256, (2, n, 3, 32, 32), generator=generator, dtype=torch.uint8))

    run = train(Fresh(resnet18, (3, 32, 32), 2), Noise(), InfoNCE(), steps=1, batch=2, seeds=(0, 1))
    assert all(encoder.norm.num_batches_tracked == 1 for encoder in run.encoders)


def test_bad_use_gets_a_sentence():
    with pytest.raises(BadInput, match="`mean` and `std` must hold 3 numbers each, but \\(1.0,\\) and None came"):
        resnet18((3, 64, 64), 2, mean=(1.0,))
    with pytest.raises(BadInput, match="images of shape \\(3, 64, 64\\), but rows of shape \\(64, 64, 3\\)"):
        resnet18((3, 64, 64), 2)(torch.zeros(2, 64, 64, 3))


def test_without_dim_it_leaves_512_features():
    network = resnet18((1, 64, 64), None, seed=0)
    assert sum(p.numel() for p in network.parameters()) == 11_170_240  # reizinger2024, Table 4: 11.2 M
    assert network(torch.rand(2, 1, 64, 64)).shape == (2, 512)


def test_channels_lie_side_by_side_in_memory_and_values_stay():
    encoder = resnet18((3, 32, 32), 2, small=True, seed=0).eval()
    seen = []
    encoder.conv.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    x = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        h = encoder(x)
        assert seen[0].is_contiguous(memory_format=torch.channels_last)
        encoder.channels_last = torch.nn.Identity()
        assert torch.allclose(encoder(x), h, atol=1e-5)
