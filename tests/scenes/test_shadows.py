import torch

from zhat.scenes import shadows
from zhat.scenes.rasterise import EMPTY, steps
from zhat.scenes.views import parallel, towards

DOWN = parallel(towards(torch.zeros(1, 3), torch.tensor([[0.0, 0.0, -1.0]])), torch.ones(1), 64)


def test_a_blur_keeps_the_light_and_spreads_it_as_asked():
    spike = torch.zeros(2, 64, 64)
    spike[:, 32, 32] = 1.0
    deviation = torch.tensor([1.0, 4.0])
    out = shadows.blurred(spike, deviation)
    assert torch.allclose(out.sum((1, 2)), torch.ones(2), atol=1e-4)
    cells = torch.arange(64.0) - 32
    variance = (out.sum(1) * cells**2).sum(1)
    assert torch.allclose(variance, deviation**2 + 0.25, rtol=0.01)
    assert shadows.blurred(torch.ones(1, 64, 64), torch.tensor([3.0])).max() <= 1 + 1e-5


def test_ground_outside_the_map_or_behind_the_light_is_lit():
    points = torch.tensor([[[0.0, 5.0]], [[0.0, 0.0]], [[-1.0, -1.0]]])
    lit = shadows.on_ground(torch.ones(1, 64, 64), DOWN, points)
    assert lit.tolist() == [[[0.0, 1.0]]]
    behind = DOWN.clone()
    behind[:, 2] *= -1
    assert (shadows.on_ground(torch.ones(1, 64, 64), behind, points) == 1).all()


def test_a_point_is_shaded_by_what_is_nearer_to_the_light_and_by_nothing_else():
    bits = 3
    keys = torch.full((1, 64, 64), EMPTY, dtype=torch.int32)
    keys[:, 10:50, 10:50] = (int(0.5 * steps(bits)) << bits) | 5
    point = torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.9], [-0.4, 0.4, -0.4]])  # behind, before, beside
    lit = shadows.on_object(keys, DOWN, torch.zeros(3, dtype=torch.long), point, bits)
    assert lit.tolist() == [0.0, 1.0, 1.0]
