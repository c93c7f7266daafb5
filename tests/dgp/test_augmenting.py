"""Augmentations: each step does what its name says, to each picture in its own way."""

import pytest
import torch

from zhat.dgp import CropAndColour
from zhat.errors import BadInput

NOTHING = {"area": (1.0, 1.0), "flip": 0.0, "coloured": 0.0, "grey": 0.0, "blurred": 0.0}
WHOLE = {"area": (1.0, 1.0)}


def only(**how):
    return CropAndColour(**(NOTHING | how))


@pytest.fixture
def x(generator):
    return torch.rand(64, 3, 16, 16, generator=generator)


def test_values_and_shape_stay_and_draws_come_from_the_generator(x):
    before = torch.get_rng_state()
    one, same, other = (CropAndColour()(x, torch.Generator().manual_seed(s)) for s in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert one.shape == x.shape
    assert 0 <= one.min() <= one.max() <= 1


def test_a_flip_turns_pictures_left_to_right_and_a_full_square_crop_keeps_the_rest(generator):
    # Sides of ratio other than 1 are cut at the full size, so some pictures keep a part; a row of equal columns shows
    # the flip alone.
    across = torch.linspace(0, 1, 16).expand(8, 3, 16, 16)
    flipped = only(flip=1.0)(across, generator)
    assert (flipped.diff(dim=3) <= 1e-6).all()
    assert (only()(across, generator).diff(dim=3) >= -1e-6).all()


def test_a_crop_shows_a_part_of_the_picture_enlarged(generator):
    across = torch.linspace(0, 1, 64).expand(400, 3, 64, 64)
    cut = only(area=(0.25, 0.25))(across, generator)[:, 0, 0]
    width = cut[:, -1] - cut[:, 0]  # share of the width that is seen: half of it, times the root of the ratio
    assert 0.5 * (3 / 4) ** 0.5 - 0.03 <= width.min() <= width.max() <= 0.5 * (4 / 3) ** 0.5 + 0.03
    assert (cut[:, 0] < 0.1).any()
    assert (cut[:, -1] > 0.9).any()


def test_grey_pictures_have_no_colour_but_their_luma(x, generator):
    grey = only(grey=1.0, **WHOLE)(torch.ones_like(x) * torch.tensor([1.0, 0.0, 0.0])[:, None, None], generator)
    assert torch.allclose(grey, torch.full_like(grey, 0.299), atol=1e-5)


def test_a_turn_of_the_hue_keeps_the_luma(generator):
    step = only(coloured=1.0, strength=0.3)
    x = torch.full((200, 3, 2, 2), 0.5)
    x[:, 0] += 0.05
    weights = torch.tensor([0.299, 0.587, 0.114])
    luma = (step._coloured(x, generator)[:, :, 0, 0] * weights).sum(1) / (x[:, :, 0, 0] * weights).sum(1)
    # brightness alone moves it: contrast and saturation act around it on an even picture
    assert 1 - 0.24 - 1e-3 <= luma.min() <= luma.max() <= 1 + 0.24 + 1e-3


def test_a_blur_keeps_the_mean_and_spreads_a_point_by_its_deviation(generator):
    point = torch.zeros(50, 3, 64, 64)
    point[:, :, 32, 32] = 1.0
    spread = only(blurred=1.0, blur=(0.8, 0.8))._blurred(point, generator)
    assert torch.allclose(spread.sum((2, 3)), torch.ones(50, 3), atol=1e-5)
    place = torch.arange(64.0) - 32
    variance = (spread.sum(2) * place.square()).sum(-1)
    assert torch.allclose(variance, torch.full_like(variance, 0.64), atol=0.02)  # cut at three points: 3.75 deviations


def test_every_picture_is_augmented_in_its_own_way(generator):
    x = torch.rand(1, 3, 16, 16, generator=generator).expand(32, 3, 16, 16)
    out = CropAndColour()(x, generator).flatten(1)
    assert (torch.cdist(out, out) + torch.eye(32) > 1e-3).all()


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"flip": 1.5}, "`flip` is a probability"),
        ({"area": (0.5, 0.2)}, "`area` must be two shares"),
        ({"blur": (0.0, 1.0)}, "`blur` must be two positive"),
        ({"strength": 2.0}, "`strength` must lie between"),
    ],
)
def test_bad_settings_get_a_sentence(how, sentence):
    with pytest.raises(BadInput, match=sentence):
        CropAndColour(**how)


def test_pictures_of_one_channel_are_refused(generator):
    with pytest.raises(BadInput, match="three channels"):
        CropAndColour()(torch.rand(2, 1, 8, 8), generator)
