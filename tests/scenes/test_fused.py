"""The Triton kernels against plain torch: on a GPU where there is one, in Triton's interpreter elsewhere."""

import pytest
import torch

from tests.scenes.test_rasterise import sphere
from zhat.scenes import Jug, Mesh, rasterise, still_life
from zhat.scenes.meshes import joined
from zhat.scenes.pose import Pose
from zhat.scenes.still_life import Stage
from zhat.scenes.views import posed

fused = pytest.importorskip("zhat.scenes.fused", reason="triton is not installed")
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def lifted(mesh, height):
    return Mesh(mesh.vertices + torch.tensor([0.3, 0.0, height]), mesh.triangles, mesh.normals)


PAIR = joined([lifted(sphere(5, 8), 1.2), lifted(sphere(4, 6).scaled(1.4), -1.2)])  # one shades the other


def latents(n, seed=0):
    return (2 * torch.rand(n, 10, generator=torch.Generator().manual_seed(seed)) - 1).to(DEVICE)


def both(mesh, side, z, monkeypatch):
    drawn = []
    for how in (still_life._Plain, fused):
        monkeypatch.setattr(still_life, "_implementation", lambda z, how=how: how)
        drawn.append(Stage(mesh, side).drawn(z).cpu().int())
    return drawn


@pytest.mark.parametrize("far_side", [False, True])
def test_the_same_triangles_are_seen(far_side):
    mesh, pose = PAIR.to(DEVICE), Pose(latents(2), PAIR.radius, 24, 24)
    views = posed(pose.camera, pose.rotation, pose.location)
    plain, quick = (how.splat(views, mesh, 24, far_side=far_side).cpu() for how in (rasterise, fused))
    assert (plain >= 0).sum() > 20
    assert torch.equal(plain >= 0, quick >= 0)
    bits = rasterise.id_bits(mesh)
    levels = ((plain >> bits) - (quick >> bits)).abs()
    assert levels.max() <= 1e-5 * rasterise.steps(bits)  # sums are rounded in another order
    other = (plain & ((1 << bits) - 1)) != (quick & ((1 << bits) - 1))
    assert other.float().mean() <= 0.005  # a sample on an edge belongs to two triangles


def test_the_same_picture(monkeypatch):
    monkeypatch.setattr(still_life, "CELLS", 16)  # the interpreter is slow
    plain, quick = both(PAIR, 12, latents(3), monkeypatch)
    apart = (plain - quick).abs()
    assert plain.float().std() > 20
    if DEVICE.type == "cpu":
        assert apart.max() <= 1
    else:  # multiplications and additions are fused there: a sample on an edge may fall to the other side
        assert (apart > 1).float().mean() <= 0.02


@pytest.mark.gpu
def test_the_same_jug_on_a_gpu(monkeypatch):
    plain, quick = both(Jug().mesh(), 64, latents(64), monkeypatch)
    apart = (plain - quick).abs()
    assert (apart > 2).float().mean() < 1e-3
    assert apart.float().mean() < 0.05
