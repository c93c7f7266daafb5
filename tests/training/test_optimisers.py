"""Muon: what its update is, where it applies, and that it goes on from a checkpoint."""

import pytest
import torch
from torch import nn

from zhat.datasets import NextRow
from zhat.dgp import Clusters, InvertibleMLP, Sphere, Uniform, VonMisesFisher
from zhat.encoders import conv, mlp
from zhat.errors import BadInput
from zhat.experiment import Budget, Row
from zhat.fresh import Fresh
from zhat.objectives import CrossEntropy, InfoNCE
from zhat.training import Muon, Recipe, train
from zhat.training.optimisers import make_optimiser, orthogonalised

CPU = torch.device("cpu")
WORLD = Clusters(Uniform(Sphere(4)), VonMisesFisher(10.0), InvertibleMLP(), classes=20, instances=100, by_class=True)
SMALL = Fresh(mlp, 4, 4, widths=(32, 32))
HEAD = Fresh(CrossEntropy, 4, 20)


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 5, 40), (1, 1, 6)])
def test_orthogonalised_keeps_directions_and_levels_sizes(shape):
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    u, s, v = torch.linalg.svd(matrices, full_matrices=False)
    found = orthogonalised((u * s.clamp_min(0.05 * float(s.max()))[:, None]) @ v, rounds=5)
    inside = u.mT @ found @ v.mT
    sizes = inside.diagonal(dim1=-2, dim2=-1)
    assert sizes.min() > 0.6
    assert sizes.max() < 1.3
    torch.testing.assert_close(inside, torch.diag_embed(sizes), atol=1e-10, rtol=0)


def test_size_of_the_gradient_does_not_matter():
    g = torch.randn(2, 6, 9, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(orthogonalised(g), orthogonalised(1e-6 * g))


def test_nothing_moves_without_a_gradient():
    assert torch.equal(orthogonalised(torch.zeros(2, 3, 4)), torch.zeros(2, 3, 4))


@pytest.mark.parametrize("shape", [(2, 6, 3), (2, 3, 6)])
def test_first_update_is_the_orthogonalised_gradient(shape):
    weight = nn.Parameter(torch.randn(shape, generator=torch.Generator().manual_seed(2)))
    before = weight.detach().clone()
    adam = make_optimiser({"encoder.weight": weight}, Recipe(1, muon=Muon(lr=0.1)), CPU, ("encoder.weight",))
    grad = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    weight.grad = grad.clone()
    adam.step()
    k, m = shape[1:]
    turned = orthogonalised(grad) if k <= m else orthogonalised(grad.mT).mT
    torch.testing.assert_close(weight.detach(), before - 0.1 * max(1, k / m) ** 0.5 * turned)


def test_only_matrices_of_the_encoder_are_turned():
    def moved(**how):
        run = train(SMALL, WORLD, HEAD, steps=1, batch=64, schedule=lambda i, n: 1.0, seed=0, **how)
        return run.encoder.state_dict(), run.objectives[0].state_dict()

    plain, head = moved(lr=1e-3)
    turned, same_head = moved(lr=1e-3, muon=Muon(0.1))
    for name in plain:
        assert torch.equal(plain[name], turned[name]) == name.endswith("bias"), name
    assert all(torch.equal(head[name], same_head[name]) for name in head)


def test_a_seed_alone_is_the_seed_among_others():
    how = {"steps": 20, "batch": 64, "muon": Muon()}
    both = train(SMALL, WORLD, HEAD, seeds=(0, 1), **how).encoders[1].state_dict()
    alone = train(SMALL, WORLD, HEAD, seed=1, **how).encoder.state_dict()
    for name in both:
        torch.testing.assert_close(both[name], alone[name], atol=1e-4, rtol=1e-3)


def test_goes_on_from_a_checkpoint(tmp_path):
    how = {"batch": 64, "muon": Muon(), "seed": 0, "steps": 30}
    whole = train(SMALL, WORLD, HEAD, **how)

    def stop(done, steps, loss):
        if done >= 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(SMALL, WORLD, HEAD, **how, checkpoint=tmp_path / "c", checkpoint_every=0.0, progress=stop)
    assert (tmp_path / "c").exists()
    again = train(SMALL, WORLD, HEAD, **how, checkpoint=tmp_path / "c")
    for a, b in zip(whole.encoder.parameters(), again.encoder.parameters(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(BadInput, match="other settings"):
        train(SMALL, WORLD, HEAD, **(how | {"muon": Muon(0.02)}), checkpoint=tmp_path / "c")


def test_learns_faster_than_adam_where_directions_differ_in_size():
    losses = {
        muon: train(SMALL, WORLD, HEAD, steps=120, batch=128, lr=1e-3, muon=muon).curves[0].loss[-10:]
        for muon in (None, Muon())
    }
    assert sum(losses[Muon()]) / 10 < sum(losses[None]) / 10 - 0.03  # 2.88 against 2.94, from 3.00


def test_bad_settings_get_a_sentence():
    with pytest.raises(BadInput, match="momentum"):
        Muon(momentum=1.0)
    with pytest.raises(BadInput, match="lr"):
        Muon(lr=0.0)
    with pytest.raises(BadInput, match="linear layers"):
        make_optimiser({"a": nn.Parameter(torch.ones(1, 2))}, Recipe(1, muon=Muon()), CPU, ())


def test_the_folder_of_a_row_tells_muon_apart_and_others_stay():
    plain, turned, faster = (Budget("fast", Recipe(10, muon=muon)) for muon in (None, Muon(), Muon(0.02)))
    row = Row("r", "title", WORLD, SMALL, HEAD, (plain,))
    assert "muon" not in repr(row.settings(plain)).lower()  # as it was before there was Muon
    assert len({repr(b) for b in (plain, turned, faster)}) == 3
    assert len({row.folder(b) for b in (plain, turned, faster)}) == 3


@pytest.mark.gpu
def test_on_a_gpu_recorded_as_launched():
    how = {"steps": 200, "batch": 256, "muon": Muon(), "seeds": (0, 1), "device": "cuda", "precision": "tf32"}
    recorded, launched = (train(SMALL, WORLD, HEAD, graph=graph, **how) for graph in (True, False))
    for a, b in zip(recorded.curves, launched.curves, strict=True):
        assert a.loss[-1] == pytest.approx(b.loss[-1], abs=5e-2)
        assert a.loss[-1] < a.loss[0] - 0.2
    g = torch.randn(2, 3, 40, 90, generator=torch.Generator().manual_seed(0))
    sizes = torch.linalg.svdvals(orthogonalised(g.cuda()).cpu())
    assert sizes.min() > 0.5
    assert sizes.max() < 1.4


@pytest.mark.parametrize("shape", [(2, 6, 3, 4, 4), (2, 40, 3, 2, 2)])
def test_a_convolution_is_a_matrix_with_a_row_for_each_output_channel(shape):
    weight = nn.Parameter(torch.zeros(shape))
    adam = make_optimiser({"encoder.weight": weight}, Recipe(1, muon=Muon(lr=0.1)), CPU, ("encoder.weight",))
    grad = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    weight.grad = grad.clone()
    adam.step()
    flat = grad.flatten(2)
    k, m = flat.shape[1:]
    turned = orthogonalised(flat) if k <= m else orthogonalised(flat.mT).mT
    torch.testing.assert_close(weight.detach().flatten(2), -0.1 * max(1, k / m) ** 0.5 * turned)


def test_convolutions_of_an_encoder_are_turned():
    world = NextRow(torch.rand(40, 1, 16, 16, generator=torch.Generator().manual_seed(0)))
    small = Fresh(conv, (1, 16, 16), 2, widths=(4, 4), top=8)
    stop = {"steps": 1, "batch": 16, "seed": 0, "schedule": lambda i, n: 1.0}
    plain = train(small, world, InfoNCE(), **stop).encoder.state_dict()
    turned = train(small, world, InfoNCE(), muon=Muon(), **stop).encoder.state_dict()
    for name in plain:
        assert torch.equal(plain[name], turned[name]) == name.endswith("bias"), name
