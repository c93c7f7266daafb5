"""An encoder that begins as a linear map: nothing is folded, and the network beside it is trained like any other."""

import pytest
import torch

from tests.training.test_optimisers import HEAD, WORLD
from zhat.dgp import Sphere
from zhat.encoders import mlp, residual_mlp
from zhat.errors import BadInput
from zhat.fresh import Fresh
from zhat.training import Muon, train


def test_it_is_a_linear_map_and_the_network_beside_it():
    encoder, x = residual_mlp(5, 5, seed=0), torch.randn(50, 5)
    line, net = encoder.residual.line, encoder.residual.net
    torch.testing.assert_close(encoder(x), x @ line.weight.T + line.bias + net(x))
    assert encoder(x[:, None]).shape == (50, 1, 5)
    torch.testing.assert_close(line.weight.detach() @ line.weight.detach().T, torch.eye(5))
    assert not line.bias.any()


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("dim", [5, 20])
@torch.no_grad()
def test_it_begins_without_folds_where_a_network_alone_has_some(dim, batch_norm):
    x = torch.nn.functional.normalize(torch.randn(3000, dim, generator=torch.Generator().manual_seed(0)), dim=-1)
    apart = torch.cdist(x, x)
    far = apart > apart.median()
    least = {}
    for make in (residual_mlp, mlp):
        h = make(dim, dim, batch_norm=batch_norm, seed=0)(x)
        h = (h - h.mean(0)) / (h - h.mean(0)).norm(dim=-1).mean()
        least[make] = float(torch.cdist(h, h)[far].min())
    assert least[residual_mlp] > 1.1
    assert least[mlp] < 0.6 * least[residual_mlp]


def test_it_lands_on_a_space():
    encoder = residual_mlp(4, 3, widths=(8,), onto=Sphere(3), seed=0)
    torch.testing.assert_close(encoder(torch.randn(20, 4)).norm(dim=-1), torch.ones(20))


def test_a_seed_fixes_the_weights_and_leaves_the_global_state_alone():
    before = torch.random.get_rng_state()
    a, b, c = (residual_mlp(3, 3, widths=(8,), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    for name, tensor in a.state_dict().items():
        assert torch.equal(tensor, b.state_dict()[name])
    assert not torch.equal(a.residual.line.weight, c.residual.line.weight)
    assert not torch.equal(a.residual.net.last.weight, c.residual.net.last.weight)


def test_seeds_train_together_as_they_do_alone():
    how = {"steps": 20, "batch": 64, "muon": Muon()}
    make = Fresh(residual_mlp, 4, 4, widths=(16,))
    together, alone = train(make, WORLD, HEAD, seeds=(0, 3), **how), train(make, WORLD, HEAD, seed=3, **how)
    for name, tensor in alone.encoder.state_dict().items():
        torch.testing.assert_close(together.encoders[1].state_dict()[name], tensor, atol=1e-4, rtol=0)
    begun = residual_mlp(4, 4, widths=(16,), seed=3)
    assert not torch.allclose(alone.encoder.residual.line.weight, begun.residual.line.weight, atol=1e-3)
    assert not torch.allclose(alone.encoder.residual.net.last.weight, begun.residual.net.last.weight, atol=1e-3)


def test_bad_use_gets_a_sentence():
    with pytest.raises(BadInput, match="ends in 3 dimensions, but Sphere"):
        residual_mlp(4, 3, onto=Sphere(4))
    with pytest.raises(BadInput, match="observed"):
        residual_mlp(0, 3)
