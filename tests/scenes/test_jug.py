import math

import torch

from zhat.scenes import jug
from zhat.scenes.vectors import euler


def test_the_body_is_closed_and_faces_outwards():
    body = jug.body()
    edges = torch.cat([body.triangles[:, [i, (i + 1) % 3]] for i in range(3)])
    there = {tuple(edge) for edge in edges.tolist()}
    assert len(there) == len(edges)
    assert all((b, a) in there for a, b in there)  # each edge belongs to two triangles, once in each direction
    a, b, c = (body.vertices[body.triangles[:, i]] for i in range(3))
    assert (a * torch.linalg.cross(b, c)).sum() > 0


def test_normals_agree_with_the_triangles():
    for part in (jug.body(), jug.spout(), jug.handle()):
        a, b, c = (part.vertices[part.triangles[:, i]] for i in range(3))
        face = torch.linalg.cross(b - a, c - a)
        along = (face * part.normals[part.triangles].mean(1)).sum(1)
        assert (along > 0).float().mean() > 0.99
        assert torch.allclose(part.normals.norm(dim=1), torch.ones(len(part.normals)), atol=1e-5)


def test_the_walls_of_a_tube_face_away_from_its_middle():
    path = jug._upright(((1.0, 0.0), (2.0, 0.5), (3.0, 0.0)), 0.3)
    places = torch.linspace(0, 1, 9).double()
    tube = jug.swept(path, places, torch.full((9,), 0.2).double(), around=12)
    middle = path(places).float().repeat_interleave(12, 0)
    assert (((tube.vertices - middle) * tube.normals).sum(1) > 0.19).all()


def test_no_rotation_and_no_reflection_maps_the_jug_to_itself():
    points = jug.jug().vertices
    generator = torch.Generator().manual_seed(0)
    angles = torch.cat([math.pi * (2 * torch.rand(12, 3, generator=generator) - 1), math.pi * torch.eye(3)])
    angles = angles[angles.norm(dim=1) > 0.3]
    mirror = torch.diag(torch.tensor([1.0, -1.0, 1.0]))
    turns = torch.cat([euler(angles), mirror @ euler(angles), mirror[None]])
    axis = torch.linspace(0, math.pi, 13)[:-1]  # every upright mirror
    c, s, o = (2 * axis).cos(), (2 * axis).sin(), torch.zeros_like(axis)
    upright = torch.stack([torch.stack([c, s, o], 1), torch.stack([s, -c, o], 1), torch.tensor([[0.0, 0, 1]] * 12)], 1)
    for turn in torch.cat([turns, upright]):
        apart = torch.cdist(points[::40] @ turn.T, points[::2]).min(1).values
        assert apart.max() > 0.3


def test_the_jug_has_so_many_triangles():
    assert 3_000 <= len(jug.jug().triangles) <= 6_000
    assert f"{len(jug.jug().triangles):,} triangles" in jug.jug.__doc__
