import base64
import io

import numpy as np
import pytest
import torch

from zhat.datasets import NextRow
from zhat.demo import DEMO
from zhat.experiment.samples import png, samples, tiled


def decoded(content):
    image = pytest.importorskip("PIL.Image", reason="Pillow reads the picture back")
    with image.open(io.BytesIO(content)) as picture:
        return torch.from_numpy(np.array(picture.convert("RGB")))


@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_holds_the_points_it_was_given(channels):
    points = torch.randint(256, (7, 5, channels), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    assert torch.equal(decoded(png(points)), points.expand(-1, -1, 3))


def test_images_lie_side_by_side_one_line_for_each_view():
    x = torch.zeros(2, 3, 1, 4, 6)
    x[1, 2] = 1.0
    whole = tiled(x)[..., 0]
    assert whole.shape == (2 * 4 + 2, 3 * 6 + 2 * 2)
    assert whole[:4, :6].max() == 0
    assert whole[6:, 16:].min() == 255
    assert tiled(5 * x - 2).max() == 255
    assert tiled(x.expand(-1, -1, 2, -1, -1)).shape[-1] == 1


def test_only_worlds_of_images_have_samples():
    assert samples(DEMO.process, "cpu") == ""
    masks = torch.rand(20, 1, 8, 8, generator=torch.Generator().manual_seed(0)) > 0.5
    uri = samples(NextRow(masks), "cpu")
    head, _, body = uri.partition(",")
    assert head == "data:image/png;base64"
    assert decoded(base64.b64decode(body)).shape == (18, 98, 3)
