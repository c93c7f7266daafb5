import math

import pytest
import torch

from zhat.errors import BadInput
from zhat.scenes import Mesh
from zhat.scenes.meshes import joined
from zhat.scenes.rasterise import EMPTY, MOST, id_bits, splat
from zhat.scenes.views import parallel, perspective, towards


def flat(corners, depth=0.0):
    """One triangle that faces up."""
    points = torch.tensor([[x, y, depth] for x, y in corners])
    up = torch.tensor([[0.0, 0.0, 1.0]]).expand(3, 3)
    return Mesh(points, torch.tensor([[0, 1, 2]]), up)


def from_above(samples, half=1.0):
    """Seen straight from above, along -z; to the right lies -y, because the frame looks that way."""
    frame = towards(torch.tensor([[0.0, 0.0, 0.0]]), torch.tensor([[0.0, 0.0, -1.0]]))
    return parallel(frame, torch.tensor([half]), samples)


def sphere(rings=40, around=60):
    from zhat.scenes.jug import turned

    return turned(lambda s: torch.stack([(math.pi * s).sin(), -(math.pi * s).cos()], 1), rings=rings, around=around)


TRIANGLE = ((-0.7, -0.6), (0.8, -0.5), (0.1, 0.9))


def test_a_triangle_covers_its_area():
    samples = 256
    covered = (splat(from_above(samples), flat(TRIANGLE), samples) != EMPTY).sum().item()
    (ax, ay), (bx, by), (cx, cy) = TRIANGLE
    area = 0.5 * abs((bx - ax) * (cy - ay) - (cx - ax) * (by - ay))
    around = sum(math.dist(p, q) for p, q in ((TRIANGLE[0], TRIANGLE[1]), (TRIANGLE[1], TRIANGLE[2])))
    cell = 2 / samples
    assert abs(covered * cell**2 - area) < around * cell / 4


def test_the_far_side_holds_only_what_faces_away():
    triangle = flat(TRIANGLE)
    away = Mesh(triangle.vertices, triangle.triangles.flip(1), -triangle.normals)
    view = from_above(32)
    assert (splat(view, triangle, 32, far_side=True) == EMPTY).all()
    both_ways = splat(view, triangle, 32)
    assert torch.equal(splat(view, away, 32, far_side=True), both_ways)
    assert torch.equal(splat(view, away, 32), both_ways)


def test_two_triangles_that_share_an_edge_cover_a_square_without_a_gap():
    corners = torch.tensor([[-0.91, -0.83, 0], [0.87, -0.79, 0], [0.93, 0.89, 0], [-0.77, 0.81, 0]])
    square = Mesh(corners, torch.tensor([[0, 1, 2], [0, 2, 3]]), torch.tensor([[0.0, 0, 1]]).expand(4, 3))
    keys = splat(from_above(128), square, 128)
    inside = splat(from_above(128), Mesh(0.95 * corners, square.triangles, square.normals), 128) != EMPTY
    assert (keys[inside] != EMPTY).all()


def test_the_nearer_triangle_is_seen_whatever_the_order():
    low, high = flat(TRIANGLE, -0.5), flat(((-0.2, -0.3), (0.4, -0.3), (0.1, 0.4)), 0.5)
    bits = 1
    for parts, upper in (((low, high), 1), ((high, low), 0)):
        keys = splat(from_above(64), joined(list(parts)), 64)
        alone = splat(from_above(64), high, 64) != EMPTY
        assert (keys[alone] & ((1 << bits) - 1) == upper).all()
        assert ((keys[(keys != EMPTY) & ~alone] & ((1 << bits) - 1)) == 1 - upper).all()


def test_the_order_of_triangles_does_not_matter():
    ball = sphere()
    shuffled = torch.randperm(len(ball.triangles), generator=torch.Generator().manual_seed(0))
    other = Mesh(ball.vertices, ball.triangles[shuffled], ball.normals)
    bits = id_bits(ball)
    a, b = (splat(from_above(64, 1.2), mesh, 64) for mesh in (ball, other))
    assert torch.equal(a >> bits, b >> bits)
    seen = a != EMPTY
    same = (a & ((1 << bits) - 1))[seen] == shuffled[(b & ((1 << bits) - 1))[seen].long()]
    assert same.float().mean() > 0.999  # but for samples on an edge, which belong to both


def test_the_silhouette_of_a_sphere_in_perspective_is_a_disc_of_the_known_size():
    # From the distance d a unit sphere fills the angle asin(1 / d), whose tangent is 1 / sqrt(d^2 - 1).
    distance, half, samples = 3.0, 0.8, 200
    frame = towards(torch.tensor([[0.0, 0.0, distance]]), torch.zeros(1, 3))
    one = torch.ones(1)
    view = perspective(frame, torch.zeros(1, 2), half * one, 2 * one, 4 * one, samples)
    ball = sphere(80, 160)
    covered = (splat(view, ball, samples) != EMPTY).sum().item() * (2 * half / samples) ** 2
    assert covered == pytest.approx(math.pi / (distance**2 - 1), rel=5e-3)


def test_nearness_is_that_of_the_surface():
    distance, samples = 3.0, 64
    frame = towards(torch.tensor([[0.0, 0.0, distance]]), torch.zeros(1, 3))
    one = torch.ones(1)
    view = perspective(frame, torch.zeros(1, 2), 0.01 * one, 2 * one, 4 * one, samples)
    ball = sphere(80, 160)
    level = (splat(view, ball, samples) >> id_bits(ball)) / (2 ** (31 - id_bits(ball)) - 1)
    # The pole is at the distance 2, the smallest: nearness 1. Steps of nearness are 2^-17.
    assert level.max() == pytest.approx(1, abs=1e-3)
    assert level.min() > 0.99


def test_a_batch_equals_its_members_one_by_one():
    ball = sphere(10, 12)
    views = torch.cat([from_above(32, half) for half in (0.7, 1.0, 2.0)])
    together = splat(views, ball, 32)
    assert torch.equal(together, torch.cat([splat(view[None], ball, 32) for view in views]))


def test_what_lies_behind_the_eye_is_not_seen():
    frame = towards(torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([[0.0, 0.0, 2.0]]))
    one = torch.ones(1)
    view = perspective(frame, torch.zeros(1, 2), one, 0.1 * one, 4 * one, 32)
    assert (splat(view, sphere(10, 12).scaled(0.5), 32) == EMPTY).all()


def test_a_mesh_with_too_many_triangles_is_refused():
    big = Mesh(torch.zeros(3, 3), torch.zeros(MOST + 1, 3, dtype=torch.long), torch.zeros(3, 3))
    with pytest.raises(BadInput, match=r"at most 131,072 triangles, but 131,073 came\. Simplify it"):
        id_bits(big)
