import math

import pytest
import torch

from zhat import testing
from zhat.errors import BadInput
from zhat.scenes import Room, room


def drawn(z, side=32):
    return Room(side=side).build(6, torch.Generator())(z)


def straight(height):
    """An eye 5 away on the axis x at that height, and a ray towards the middle."""
    return torch.tensor([5.0, 0.0, height])[:, None], torch.tensor([-1.0, 0.0, 0.0])[:, None]


@pytest.mark.parametrize(
    ("solid", "height", "away"),
    [("_cube", 0.7, 4.25), ("_cylinder", 0.8, 4.25), ("_ball", 0.9, 4.1), ("_capsule", 1.0, 4.4)],
)
def test_a_ray_meets_a_solid_at_the_known_distance(solid, height, away):
    hit, normal = getattr(room, solid)(*straight(height))
    assert float(hit) == pytest.approx(away, rel=1e-5)
    assert normal[:, 0].tolist() == pytest.approx([1, 0, 0], abs=1e-5)
    missed, _ = getattr(room, solid)(*straight(3.0))
    assert float(missed) == room.FAR
    behind, _ = getattr(room, solid)(straight(height)[0], -straight(height)[1])
    assert float(behind) == room.FAR


@pytest.mark.parametrize("solid", room.SOLIDS, ids=room.SHAPES)
def test_from_above_a_ray_meets_the_top(solid):
    top = {"_cube": 1.5, "_cylinder": 1.6, "_ball": 1.8, "_capsule": 2.2}[solid.__name__]
    eye, ray = torch.tensor([0.01, 0.02, 4.0])[:, None], torch.tensor([0.0, 0.0, -1.0])[:, None]
    hit, normal = solid(eye, ray)
    assert float(4 - hit) == pytest.approx(top, abs=1e-3)
    assert normal[:, 0].tolist() == pytest.approx([0, 0, 1], abs=0.05)


def test_normals_of_what_is_hit_have_length_one_and_face_the_eye():
    generator = torch.Generator().manual_seed(0)
    target = torch.randn(3, 500, generator=generator) * 0.5 + torch.tensor([0.0, 0.0, 0.8])[:, None]
    eye = torch.tensor([3.0, 2.0, 2.5])[:, None]
    ray = torch.nn.functional.normalize(target - eye, dim=0)
    for solid in room.SOLIDS:
        hit, normal = solid(eye, ray)
        met = hit < room.FAR
        assert met.sum() > 100
        assert torch.allclose(normal.norm(dim=0)[met], torch.ones(int(met.sum())), atol=1e-4)
        assert ((normal * ray).sum(0)[met] <= 1e-4).all()


def test_the_ball_covers_the_disc_that_perspective_gives():
    # Red ball, green floor and walls: count red samples. A ball of radius r at the distance d fills the cap of the
    # angle asin(r / d), whose projection is an ellipse of the area pi T^2 / cos^3 for a small angle from the axis.
    z = torch.tensor([[-0.3, -0.3, -1.0, 0.0, 0.1, 0.0]])
    x = drawn(z, side=128)[0].float()
    share = float((x[0] > x[1]).float().mean())
    distance, height = room.EYE
    d = math.hypot(distance, height - 0.9)
    off = math.atan2(height - 0.9, distance) - math.atan2(height - room.AIM, distance)
    sin = 0.9 / d
    # exact: a cone of half angle a whose axis is t off the view: area = pi sin^2 a cos a / (cos^2 t - sin^2 a)^1.5
    area = math.pi * sin**2 * math.sqrt(1 - sin**2) / (math.cos(off) ** 2 - sin**2) ** 1.5
    assert share == pytest.approx(area / (2 * room.TANGENT) ** 2, rel=0.02)


def test_a_room_is_a_mixing_whose_latents_all_move_the_picture_differently():
    testing.check_mixing(Room(side=16))
    middle = torch.tensor(Room.still)
    moved = middle.repeat(6, 1)
    moved[torch.arange(6), torch.arange(6)] += torch.tensor([0.4, 0.4, 0.4, 0.6, 1.0, -0.6])
    moves = (drawn(moved).float() - drawn(middle[None]).float()).flatten(1)
    assert (moves.abs().mean(1) > 0.5).all()
    directions = torch.nn.functional.normalize(moves, dim=1)
    assert (directions @ directions.T - torch.eye(6)).abs().max() < 0.8


def test_another_number_of_latents_is_refused():
    with pytest.raises(BadInput, match=r"Room is moved by 6 latents \(floor_hue, .*\), but 10 came"):
        Room().build(10, torch.Generator())
