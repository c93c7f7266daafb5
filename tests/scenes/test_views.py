import pytest
import torch

from zhat.scenes.vectors import euler
from zhat.scenes.views import Frame, parallel, perspective, posed, towards

ONE = torch.ones(1)


def seen(view, point):
    a, b, w, t = view[0] @ torch.tensor([*point, 1.0])
    return float(a / w), float(b / w), float(t / w)


def test_a_known_point_is_seen_at_its_known_place():
    # An eye at the origin that looks along y; a point 4 ahead, 1 to the right and 2 above.
    frame = Frame(torch.zeros(1, 3), *(torch.tensor([v]) for v in ([1.0, 0, 0], [0, 0, 1.0], [0, 1.0, 0])))
    view = perspective(frame, torch.zeros(1, 2), ONE, 2 * ONE, 8 * ONE, 100)
    x, y, near = seen(view, (1, 4, 2))
    assert (x, y) == pytest.approx((50 + 50 / 4, 50 - 100 / 4))
    assert near == pytest.approx((1 / 4 - 1 / 8) / (1 / 2 - 1 / 8))
    flat = parallel(frame, 5 * ONE, 100)
    assert seen(flat, (1, 4, 2)) == pytest.approx((60, 30, 0.5 * (1 - 4 / 5)))


def test_an_eye_sees_its_target_in_the_middle():
    frame = towards(torch.tensor([[4.0, 1.0, 9.0]]), torch.tensor([[-2.0, 0.5, 1.0]]))
    axes = torch.stack([frame.right[0], frame.up[0], frame.forward[0]])
    assert torch.allclose(axes @ axes.T, torch.eye(3), atol=1e-6)
    assert torch.allclose(torch.linalg.cross(frame.right, frame.up), -frame.forward, atol=1e-6)
    view = perspective(frame, torch.zeros(1, 2), ONE, ONE, 20 * ONE, 64)
    assert seen(view, (-2.0, 0.5, 1.0))[:2] == pytest.approx((32, 32), abs=1e-4)


def test_a_posed_view_is_the_view_of_the_moved_point():
    generator = torch.Generator().manual_seed(0)
    view, angles, location = (torch.rand(s, generator=generator) for s in ((2, 4, 4), (2, 3), (2, 3)))
    rotation, point = euler(angles), torch.rand(3, generator=generator)
    moved = torch.cat([rotation @ point + location, torch.ones(2, 1)], 1)
    own = posed(view, rotation, location) @ torch.cat([point, ONE])
    assert torch.allclose(own, (view @ moved[..., None])[..., 0], atol=1e-6)
