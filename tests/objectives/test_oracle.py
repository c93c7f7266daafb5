import pytest
import torch

from zhat.dgp import Batch
from zhat.errors import BadInput
from zhat.objectives import Supervised
from zhat.testing import check_objective


def test_it_keeps_its_contract():
    check_objective(Supervised(), views=1)


def test_it_is_the_mean_squared_error_of_the_first_view():
    z, h = torch.randn(2, 6, 3), torch.randn(2, 6, 3)
    assert torch.isclose(Supervised()(h, Batch(x=z, z=z)), torch.nn.functional.mse_loss(h[0], z[0]))


def test_bad_use_gets_a_sentence():
    h = torch.randn(1, 6, 3)
    with pytest.raises(BadInput, match="needs the true latents"):
        Supervised()(h, Batch(x=h))
    with pytest.raises(BadInput, match="must end in 4 dimensions, but it ends in 3"):
        Supervised()(h, Batch(x=h, z=torch.randn(1, 6, 4)))


def test_units_bring_latents_to_one_size():
    z = torch.tensor([[[10.0, 200.0], [20.0, 400.0]]])
    assert float(Supervised((10.0, 200.0))(torch.tensor([[[1.0, 1.0], [2.0, 2.0]]]), Batch(x=z, z=z))) == 0.0
    with pytest.raises(BadInput, match="`units` must have one number for each of 2 latents"):
        Supervised((1.0,))(z, Batch(x=z, z=z))
