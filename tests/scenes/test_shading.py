import colorsys
import math

import pytest
import torch

from zhat.scenes import shading
from zhat.scenes.shading import Light


def test_hues_are_those_of_the_standard_library():
    angles = torch.linspace(-math.pi, 3 * math.pi, 41)
    for saturation in (1.0, 0.6):
        ours = shading.hue(angles, saturation).T
        theirs = torch.tensor([colorsys.hsv_to_rgb((float(a) / (2 * math.pi)) % 1, saturation, 1.0) for a in angles])
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_fresnel_at_normal_and_grazing_incidence():
    for index in (1.25, 1.55):
        at_normal = ((index - 1) / (index + 1)) ** 2
        assert float(shading.fresnel(torch.tensor(1.0), index)) == pytest.approx(at_normal, rel=1e-5)
        assert float(shading.fresnel(torch.tensor(0.0), index)) == pytest.approx(1.0)


def test_at_brewsters_angle_only_one_polarisation_is_reflected():
    # There tan t = index, and the reflectance is half of ((index^2 - 1) / (index^2 + 1))^2.
    index = 1.55
    cosine = torch.tensor(math.cos(math.atan(index)))
    expected = 0.5 * ((index**2 - 1) / (index**2 + 1)) ** 2
    assert float(shading.fresnel(cosine, index)) == pytest.approx(expected, rel=1e-4)


def test_a_rough_mirror_reflects_no_more_than_arrives():
    # Integrate over directions of light: what a white surface reflects of a uniform sky, by a grid of angles.
    theta = (torch.arange(400) + 0.5) / 400 * (math.pi / 2)
    phi = (torch.arange(400) + 0.5) / 400 * (2 * math.pi)
    theta, phi = torch.meshgrid(theta, phi, indexing="ij")
    light = torch.stack([theta.sin() * phi.cos(), theta.sin() * phi.sin(), theta.cos()])
    normal = torch.tensor([0.0, 0.0, 1.0])[:, None, None]
    for angle in (0.0, 1.0):
        view = torch.tensor([math.sin(angle), 0.0, math.cos(angle)])[:, None, None]
        shine = shading.glossy(normal, view, light, view[2], light[2])
        total = float((shine * theta.sin()).sum() * (math.pi / 2 / 400) * (2 * math.pi / 400))
        assert 0.7 < total < 1.0  # masking loses some, and nothing is added


def test_srgb_keeps_black_and_white_and_the_published_middle():
    assert shading.srgb(torch.tensor([0.0, 1.0, 7.0])).tolist() == [0, 255, 255]
    assert shading.srgb(torch.tensor([0.2140])).tolist() == [127]  # 0.5 in sRGB is 0.2140 of the light
    assert shading.srgb(torch.tensor([0.003])).tolist() == [round(255 * 12.92 * 0.003)]


def test_the_spotlight_falls_with_the_square_of_the_distance_and_ends_at_its_cone():
    light, aim = Light(), torch.tensor([0.0, 0.0, -1.0])[:, None]
    near, far = (shading.from_spot(torch.tensor([[0.0], [0.0], [d]]), aim, light)[0] for d in (4.0, 8.0))
    assert float(near) == pytest.approx(light.spot / 16)
    assert float(near / far) == pytest.approx(4)
    aside = 10 * math.tan(light.cone)
    there = torch.tensor([[0.0, aside - 1.0, aside - 0.1, aside + 1.0], [0.0] * 4, [10.0] * 4])
    shares = shading.from_spot(there, aim, light)[0] * (there**2).sum(0) / light.spot
    assert shares[:2].tolist() == pytest.approx([1, 1])
    assert 0.2 < shares[2] < 0.8
    assert shares[3] == 0
    assert float(shading.from_spot(-there[:, :1], aim, light)[0]) == 0  # behind it


def test_the_lamp_shines_down_only():
    light = Light()
    below, above = (shading.from_lamp(torch.tensor([[0.0], [0.0], [d]]), light)[0] for d in (2.0, -2.0))
    assert float(below) == pytest.approx(light.lamp / 4)
    assert float(above) == 0
