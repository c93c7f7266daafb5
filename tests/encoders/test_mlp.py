from types import SimpleNamespace

import pytest
import torch

from zhat.dgp import Sphere
from zhat.encoders import mlp
from zhat.errors import BadInput


def test_the_default_is_the_papers_network():
    encoder = mlp(10, 10, onto=Sphere(10), seed=0)
    widths = [m.out_features for m in encoder.modules() if isinstance(m, torch.nn.Linear)]
    assert widths == [100, 500, 500, 500, 500, 100, 10]
    assert sum(p.numel() for p in encoder.parameters()) == 854_210
    assert sum(p.numel() for p in mlp(20, 20, seed=0).parameters()) == pytest.approx(3.41e6, rel=0.01)
    assert encoder.hidden.slope == 0.01
    by_hand = x = torch.randn(5, 10)
    for layer in encoder.hidden.layers:
        by_hand = torch.nn.functional.leaky_relu(layer(by_hand), 0.01)
    by_hand = torch.nn.functional.normalize(encoder.last(by_hand), dim=-1)
    assert torch.allclose(encoder(x), by_hand, atol=1e-6)
    assert torch.allclose(encoder(x[None, None]), by_hand, atol=1e-6)


def test_a_seed_fixes_the_weights_and_leaves_the_global_state_alone():
    before = torch.random.get_rng_state()
    a, b, c = mlp(3, 2, widths=(8,), seed=1), mlp(3, 2, widths=(8,), seed=1), mlp(3, 2, widths=(8,), seed=2)
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(a.last.weight, b.last.weight)
    assert not torch.equal(a.last.weight, c.last.weight)


def test_batch_norm_comes_after_each_hidden_layer():
    encoder = mlp(3, 2, widths=(8, 8), batch_norm=True, seed=0)
    names = [type(m).__name__ for m in encoder]
    assert names == ["Linear", "Normalised"] * 2 + ["Last"]
    kept = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    layers = [[f"linear{i}.weight", f"linear{i}.bias", *(f"norm{i}.{k}" for k in kept)] for i in range(2)]
    assert list(encoder.state_dict()) == [*layers[0], *layers[1], "last.weight", "last.bias"]


def test_batch_norm_is_torchs_to_the_last_bit():
    encoder = mlp(3, 2, widths=(8, 6), slope=0.2, batch_norm=True, seed=0)
    by_hand = torch.nn.Sequential()
    for i, width in enumerate((8, 6)):
        by_hand.extend([encoder[2 * i], torch.nn.BatchNorm1d(width), torch.nn.LeakyReLU(0.2)])
    by_hand.append(encoder.last)
    x = torch.randn(20, 3)
    for _ in range(2):
        assert torch.equal(encoder(x), by_hand(x))
    for mine, torchs in zip(encoder.buffers(), by_hand.buffers(), strict=True):
        assert torch.equal(mine, torchs)
    assert torch.equal(encoder.eval()(x), by_hand.eval()(x))
    assert torch.equal(encoder[1:](encoder[0](x)), encoder(x))
    assert "slope=0.2" in repr(encoder)


def test_bad_use_gets_a_sentence():
    with pytest.raises(BadInput, match="ends in 3 dimensions, but Sphere"):
        mlp(4, 3, onto=Sphere(4))
    with pytest.raises(BadInput, match="`widths` must be a whole number"):
        mlp(4, 3, widths=(8.0,))
    with pytest.raises(BadInput, match="no output lands on namespace"):
        mlp(4, 3, onto=SimpleNamespace(dim=3))


def test_without_dim_it_ends_with_the_last_hidden_layer_of_an_image():
    network = mlp((1, 64, 64), None, widths=(512, 512, 512), slope=0.0, batch_norm=True, seed=0)
    assert sum(p.numel() for p in network.parameters()) == 2_626_048  # reizinger2024, Table 4: 2.63 M
    h = network(torch.rand(5, 1, 64, 64))
    assert h.shape == (5, 512)
    assert float(h.detach().min()) == 0.0  # a ReLU comes last
    assert mlp((3, 8, 8), 4, widths=(6,), seed=0)(torch.rand(2, 3, 8, 8)).shape == (2, 4)
    with pytest.raises(BadInput, match="`dim` is None, which ends with the last hidden layer, but `widths` is empty"):
        mlp(3, None, widths=())
