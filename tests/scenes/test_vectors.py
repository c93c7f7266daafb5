import math

import torch

from zhat.scenes.vectors import cross, euler, turned, turned_back


def test_rotations_turn_about_x_first_then_y_then_z():
    right_angle = math.pi / 2
    x, y, z = torch.eye(3)
    for angles, start, end in (
        ((1, 0, 0), y, z),
        ((0, 1, 0), z, x),
        ((0, 0, 1), x, y),
        ((1, 0, 1), y, z),
        ((1, 1, 0), y, x),
    ):
        turned = euler(right_angle * torch.tensor([angles]).float())[0] @ start
        assert torch.allclose(turned, end, atol=1e-6)


def test_turning_back_undoes_turning_and_keeps_products():
    generator = torch.Generator().manual_seed(0)
    rotation = euler(torch.rand(5, 3, generator=generator)).permute(1, 2, 0)
    a, b = torch.rand(2, 3, 5, generator=generator)
    assert torch.allclose(turned_back(rotation, turned(rotation, a)), a, atol=1e-6)
    turned_cross = turned(rotation, torch.linalg.cross(a, b, dim=0))
    assert torch.allclose(cross(turned(rotation, a), turned(rotation, b)), turned_cross, atol=1e-6)
