import torch

from zhat import testing
from zhat.datasets import KnownFactors, Shapes3D
from zhat.scenes import Room, RoomGrid
from zhat.scenes.room_grid import GRID, latents

FEW = RoomGrid(every_hue=5, every_size=7, every_place=14)


def test_a_drawn_grid_is_a_data_set_with_the_factors_of_shapes3d():
    for name in ("factors", "category", "classes", "periods", "channels"):
        assert getattr(FEW, name) == getattr(Shapes3D, name)
    testing.check_process(KnownFactors(FEW), n=8)


def test_pictures_belong_to_their_codes():
    points, codes = FEW.read(FEW.find())
    assert len(points) == len(codes) == 2**3 * 2 * 4 * 2
    row = 77
    alone = Room().build(6, torch.Generator())(latents(torch.from_numpy(codes[row : row + 1])))
    assert torch.equal(alone[0].permute(1, 2, 0), torch.from_numpy(points[row]))


def test_codes_reach_from_end_to_end_and_shapes_lie_in_the_middle_of_theirs():
    ends = latents(torch.stack([torch.zeros(6, dtype=torch.long), torch.tensor(GRID) - 1]))
    assert ends[0].tolist() == [-1, -1, -1, -1, -0.75, -1]
    assert ends[1].tolist() == [1, 1, 1, 1, 0.75, 1]
