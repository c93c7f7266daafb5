import numpy as np
import pytest
import torch

from tests.scenes.test_rasterise import sphere
from zhat.errors import BadInput
from zhat.scenes import Mesh
from zhat.scenes.meshes import joined, load


def test_smooth_normals_of_a_sphere_are_its_radii():
    ball = sphere(30, 40)
    assert ((ball.normals - ball.vertices).norm(dim=1) < 0.02).all()


def test_triangles_of_a_closed_surface_enclose_its_volume():
    # Signed: the sum of a . (b x c) / 6, positive only if corners run anticlockwise seen from outside.
    a, b, c = (sphere(60, 80).vertices[sphere(60, 80).triangles[:, i]] for i in range(3))
    volume = (a * torch.linalg.cross(b, c)).sum() / 6
    assert float(volume) == pytest.approx(4 / 3 * np.pi, rel=5e-3)


def test_joined_surfaces_keep_their_triangles():
    ball = sphere(4, 5)
    both = joined([ball, ball.scaled(2.0)])
    assert len(both.triangles) == 2 * len(ball.triangles)
    assert torch.equal(both.vertices[both.triangles[-1]], 2 * ball.vertices[ball.triangles[-1]])
    assert both.radius == pytest.approx(2.0)


def test_a_mesh_is_read_from_a_file(tmp_path):
    ball = sphere(4, 5)
    arrays = {"vertices": ball.vertices, "triangles": ball.triangles, "normals": ball.normals}
    np.savez(tmp_path / "ball.npz", **{name: array.numpy() for name, array in arrays.items()})
    read = load(tmp_path / "ball.npz")
    assert torch.equal(read.vertices, ball.vertices)
    assert torch.equal(read.triangles, ball.triangles)
    np.savez(tmp_path / "half.npz", vertices=ball.vertices.numpy())
    with pytest.raises(BadInput, match=r"normals, triangles are missing. It holds vertices"):
        load(tmp_path / "half.npz")


@pytest.mark.parametrize(
    ("vertices", "triangles", "normals", "message"),
    [
        (torch.zeros(3, 2), torch.zeros(1, 3).long(), torch.zeros(3, 2), r"\(3, 2\), \(1, 3\) and \(3, 2\) came"),
        (torch.zeros(3, 3), torch.tensor([[0, 1, 3]]), torch.zeros(3, 3), "3 vertices, from 0 to 2"),
        (torch.full((3, 3), torch.nan), torch.tensor([[0, 1, 2]]), torch.zeros(3, 3), "must be finite"),
    ],
)
def test_what_is_no_mesh_is_refused(vertices, triangles, normals, message):
    with pytest.raises(BadInput, match=message):
        Mesh(vertices, triangles, normals)
