import math
import os
from pathlib import Path

import pytest
import torch

from benchmarks import rendering
from tests.scenes.test_rasterise import sphere
from zhat.scenes import Mesh, shadows, still_life
from zhat.scenes.meshes import joined
from zhat.scenes.pose import GROUND, SPAN, Pose, camera, rays
from zhat.scenes.rasterise import EMPTY, splat
from zhat.scenes.shading import Light, srgb, weights
from zhat.scenes.still_life import Ground, Stage
from zhat.scenes.views import posed

MIDDLE = torch.zeros(1, 10)
SUN_ONLY = Light(lamp=0.0, spot=0.0)


def ingredients(mesh, z, side, light, cells=64):
    pose = Pose(z, mesh.radius, 2 * side, cells)
    keys = splat(posed(pose.camera, pose.rotation, pose.location), mesh, 2 * side)
    maps = splat(posed(pose.lights, pose.rotation, pose.location).flatten(0, 1), mesh, cells, far_side=True)
    return pose, keys, maps.view(3, len(z), cells, cells)


def test_a_sphere_in_the_sun_is_as_bright_as_the_formula_says():
    # At a point of a sphere the normal is the radius, so a diffuse surface under a sun from above has the brightness
    # (1 - F1)(1 - (1 - s) F2) / pi * E * n_z; without gloss there is nothing else. The hue of latent 0 is pure red.
    light = Light(lamp=0.0, spot=0.0, gloss=0.0)
    ball, z = sphere(80, 120), MIDDLE
    pose, keys, maps = ingredients(ball, z, 64, light)
    place, colour = still_life.object_colour(pose, ball, keys, torch.full_like(maps, EMPTY), light)
    x, y = (place % 128 + 0.5) / 128, (place // 128 + 0.5) / 128
    frame = camera(z)
    towards = rays(frame, x, y)
    towards = towards / towards.norm(dim=0)
    to_centre = (pose.location[0] - frame.eye)[:, None]
    along = (towards * to_centre).sum(0)
    inside = 1 - ((to_centre**2).sum(0) - along**2)
    clear = inside > 0.05  # not at the silhouette, where a mesh of flat triangles differs most
    point = frame.eye[:, None] + towards * (along - inside.clamp_min(0).sqrt())
    normal = point - pose.location[0][:, None]
    expected = light.sun * normal[2].clamp_min(0) * weights(-(normal * towards).sum(0), light)[0]
    assert (colour[0] - expected)[clear].abs().max() < 0.02 * expected.max()
    assert (colour[1:] == 0).all()


def test_the_shadow_of_a_sphere_under_the_sun_is_a_disc_right_below_it():
    light = Light(lamp=0.0, spot=0.0, sun_radius=0.0)
    ball, side, z = sphere(40, 60), 128, MIDDLE.clone()
    z[0, :2] = torch.tensor([-0.4, 0.3])
    pose, _, maps = ingredients(ball, z, side, light, cells=128)
    soft = shadows.blurred((maps != EMPTY).float(), pose.softness(light))
    ground = Ground(side, light, torch.device("cpu"))
    lit = shadows.on_ground(soft[0], pose.lights[0], ground.points)[0]
    away = (ground.points[:2] - pose.location[0, :2, None, None]).norm(dim=0)
    edge = 1.5 * float(pose.cell[0, 0])
    assert (lit[away < 1 - edge] < 0.05).all()
    assert (lit[away > 1 + edge] > 0.95).all()
    assert (away < 1 - edge).sum() > 20


def test_the_shadow_of_the_lamp_grows_with_the_height_of_the_object():
    # A sphere of radius 1 with its middle d below the lamp fills the angle asin(1 / d). On the ground, D below the
    # lamp, the shadow has the radius D tan asin(1 / d).
    light = Light(lamp_side=0.0)
    ball, side = sphere(40, 60), 128
    ground = Ground(side, light, torch.device("cpu"))
    for height in (-0.5, 0.3):
        z = MIDDLE.clone()
        z[0, 2] = height
        pose, _, maps = ingredients(ball, z, side, light, cells=128)
        soft = shadows.blurred((maps != EMPTY).float(), pose.softness(light))
        lit = shadows.on_ground(soft[1], pose.lights[1], ground.points)[0]
        distance, far = 7.0 - 3 * height - SPAN / 2, 7.0 - GROUND
        radius = far / math.sqrt(distance**2 - 1)
        away = ground.points[:2].norm(dim=0)
        assert (lit[away < 0.9 * radius] < 0.1).all()
        assert (lit[away > 1.1 * radius] > 0.9).all()


def test_the_ground_far_from_everything_is_lit_by_the_sun_alone():
    side = 32
    light = Light(lamp=0.0, spot=0.0, gloss=0.0)
    ground = Ground(side, light, torch.device("cpu"))
    x = Stage(sphere(6, 8), side, light)(MIDDLE)[0]
    corner = ground.diffuse[0, 0] * light.sun  # red of a red ground
    assert int(x[0, 0, 0]) == pytest.approx(int(srgb(corner)), abs=1)
    assert int(x[1, 0, 0]) == pytest.approx(int(srgb(0.4 * corner)), abs=1)


def test_a_part_of_the_object_shades_another():
    # Two spheres, one right below the other: the sun reaches only the upper one, and the edge of the lower one.
    up = torch.tensor([0.0, 0.0, 1.0])
    ball = sphere(30, 40)
    upper = Mesh(ball.vertices + 1.3 * up, ball.triangles, ball.normals)
    lower = Mesh(0.8 * ball.vertices - 1.3 * up, ball.triangles, ball.normals)
    pair = joined([upper, lower])
    pose, keys, maps = ingredients(pair, MIDDLE, 64, SUN_ONLY)
    place, colour = still_life.object_colour(pose, pair, keys, maps, SUN_ONLY)
    of_lower = (keys.view(-1)[place] & 0x1FFF) >= len(ball.triangles)
    assert colour[0, ~of_lower].max() > 0.1
    assert colour[0, of_lower].max() < 0.02


def test_the_inside_of_a_surface_is_dark():
    ball = sphere(20, 30)
    inside_out = Mesh(ball.vertices, ball.triangles.flip(1), -ball.normals)
    pose, keys, maps = ingredients(inside_out, MIDDLE, 64, Light())
    place, colour = still_life.object_colour(pose, inside_out, keys, maps, Light())
    assert len(place) > 100
    assert (colour == 0).all()


def test_the_weights_of_the_samples_around_a_pixel_add_up_to_one():
    shape = (2, 8, 8)
    whole = still_life.filtered(torch.arange(128), torch.ones(1, 128), shape)
    assert torch.allclose(whole[0, :, 1:-1, 1:-1], torch.ones(2, 2, 2), atol=1e-6)
    near, far = still_life.TAPS[1], still_life.TAPS[0]
    # The sample in row 3 and column 4 of the second picture: lower half of pixel row 1, left half of pixel column 2.
    one = still_life.filtered(torch.tensor([64 + 3 * 8 + 4]), torch.ones(1, 1), shape)[0, 1]
    expected = torch.zeros(4, 4)
    expected[1, 2], expected[1, 1], expected[2, 2], expected[2, 1] = near * near, near * far, far * near, far * far
    assert torch.allclose(one, expected)


@pytest.mark.data
def test_pictures_are_those_of_blender():
    # The bars hold on 3,800 pictures (python -m benchmarks.rendering --truth); here are 40 of them.
    pytest.importorskip("PIL.Image", reason="Pillow reads the pictures")
    home = os.environ.get("ZHAT_DATA")
    if not home or not (Path(home) / rendering.FOLDER / "full_4000.webp").exists():
        pytest.skip("threedident_rerender is not among the recorded data")
    found = rendering.truth(home, 40)
    assert found["ssim"]["median"] >= 0.90
    assert found["silhouettes' overlap"]["median"] >= 0.95
    assert found["overlap of the mesh"]["median"] >= 0.95
