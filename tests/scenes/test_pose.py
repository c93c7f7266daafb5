import math

import pytest
import torch

from zhat.scenes.pose import GROUND, LAMP, SPAN, SPOT, Pose
from zhat.scenes.shading import Light


def posed(*raw):
    return Pose(torch.tensor([raw]), reach=2.0, samples=128, cells=64)


def test_latents_are_where_the_scene_of_3dident_says():
    pose = posed(0.5, -1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    assert pose.location[0].tolist() == pytest.approx([1.5, -3.0, 3.0 + SPAN / 2])
    assert pose.spot[0].tolist() == pytest.approx([4.0, 0.0, 6 + SPAN], abs=1e-6)
    assert torch.allclose(pose.rotation[0], torch.eye(3))
    assert torch.allclose(pose.aim, torch.nn.functional.normalize(pose.location - pose.spot))
    # Red with saturations 1, 0.8 and 0.6: the colour first, then object, spotlight, ground.
    assert torch.allclose(pose.hues[..., 0], torch.tensor([[1, 1, 1], [0, 0.2, 0.4], [0, 0.2, 0.4]]))


def test_the_origin_is_in_the_middle_of_the_picture_and_the_ground_below_its_upper_edge():
    camera = posed(*[0.0] * 10).camera[0]
    a, b, w, _ = camera @ torch.tensor([0.0, 0.0, 0.0, 1.0])
    assert (a / w, b / w) == pytest.approx((64, 64), abs=1e-4)
    assert w == pytest.approx(math.hypot(8, 8), rel=1e-6)
    # One unit to the right is y = 1: 64 / (25 / 35) / 11.3 samples.
    a, b, w, _ = camera @ torch.tensor([0.0, 1.0, 0.0, 1.0])
    assert a / w - 64 == pytest.approx(64 * 35 / 25 / math.hypot(8, 8), rel=1e-5)


def test_the_object_lies_inside_the_maps_of_all_lights_and_what_the_camera_sees_is_in_range():
    z = 2 * torch.rand(50, 10, generator=torch.Generator().manual_seed(0)) - 1
    pose = Pose(z, reach=2.0, samples=128, cells=64)
    here = torch.cat([pose.location, torch.ones(50, 1)], 1)
    for view, samples in ((pose.camera, 128), *((light, 64) for light in pose.lights)):
        a, b, w, t = (view @ here[..., None])[..., 0].unbind(1)
        assert (w > 0).all()
        assert ((t / w > 0) & (t / w < 1)).all()
        if samples == 64:
            assert ((a / w > 16) & (a / w < 48) & (b / w > 16) & (b / w < 48)).all()


def test_shadows_are_softer_the_higher_the_object_and_the_wider_the_light():
    low, high = posed(*[0.0] * 10), posed(0.0, 0.0, 1.0, *[0.0] * 7)
    assert (high.softness(Light()) > low.softness(Light())).all()
    # The spotlight's edge on the ground is 2 r h / (H - h) wide; magnified back to the object's distance, 2 r h / H.
    h, height = float(low.location[0, 2]) - GROUND, SPOT - GROUND
    assert float(low.softness(Light())[2] * low.cell[2]) == pytest.approx(0.25 * h / height, rel=1e-5)
    assert float(low.softness(Light())[1] * low.cell[1]) == pytest.approx(h / (LAMP - GROUND) / math.sqrt(12), rel=1e-5)
    assert (low.softness(Light(sun_radius=0.0))[0] == 0).all()
