import pytest
import torch

from zhat.dgp import Batch
from zhat.errors import BadInput
from zhat.objectives import Dot, InfoNCE, LearnedSimilarity, NegativeLp
from zhat.testing import check_objective


def views(n=30, d=3, seed=0):
    return torch.randn(2, n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("similarity", [Dot(), NegativeLp(1), NegativeLp(2), NegativeLp(1.5)], ids=repr)
def test_it_begins_as_its_base_and_keeps_the_contract(similarity):
    for dim in (None, 3):
        objective = LearnedSimilarity(InfoNCE(similarity, 0.5), dim)
        h = views()
        assert objective(h, Batch(x=h)).item() == pytest.approx(objective.base(h, Batch(x=h)).item())
        check_objective(objective)


@pytest.mark.parametrize("similarity", [Dot(), NegativeLp(3)], ids=repr)
def test_one_factor_is_a_temperature(similarity):
    objective, h = LearnedSimilarity(InfoNCE(similarity, 0.5)), views()
    with torch.no_grad():
        objective.log_scale.fill_(0.2)
    direct = InfoNCE(similarity, objective.temperature)
    assert objective(h, Batch(x=h)).item() == pytest.approx(direct(h, Batch(x=h)).item())


def test_one_factor_for_each_coordinate_weighs_the_similarity():
    objective, h = LearnedSimilarity(InfoNCE(NegativeLp(2)), 3), views()
    with torch.no_grad():
        objective.log_scale.copy_(torch.tensor([0.0, 0.5, -0.5]))
    weighed = h * objective.weights.double().sqrt()
    assert objective(h, Batch(x=h)).item() == pytest.approx(objective.base(weighed, Batch(x=h)).item())


def descended(objective, h):
    descent = torch.optim.LBFGS(objective.parameters(), max_iter=12, line_search_fn="strong_wolfe")

    def closure():
        descent.zero_grad()
        loss = objective(h, Batch(x=h))
        loss.backward()
        return loss

    descent.step(closure)
    return objective


def test_on_a_sphere_the_learned_temperature_is_the_inverse_concentration():
    from zhat.dgp import Sphere, Uniform, VonMisesFisher

    g = torch.Generator().manual_seed(0)
    z = Uniform(Sphere(3)).sample(600, generator=g)
    h = torch.stack([z, VonMisesFisher(8.0).sample(z, generator=g)])
    found = descended(LearnedSimilarity(InfoNCE(include_self_pair=False)), h)
    assert found.temperature == pytest.approx(1 / 8, rel=0.15)
    each = descended(LearnedSimilarity(InfoNCE(include_self_pair=False), 3), h).weights
    assert each.max() / each.min() < 1.3  # a sphere that was not stretched wants equal factors


def test_factors_match_noise_whose_scale_differs_between_coordinates():
    g = torch.Generator().manual_seed(0)
    z = torch.rand(700, 2, generator=g)
    scales = torch.tensor([0.05, 0.2])
    near = z + scales * torch.randn(700, 2, generator=g)
    inside = ((near > 0) & (near < 1)).all(1)
    h = torch.stack([z[inside], near[inside]])
    found = descended(LearnedSimilarity(InfoNCE(NegativeLp(2), 0.05, include_self_pair=False), 2), h)
    ratio = float(found.weights[0] / found.weights[1])
    assert ratio == pytest.approx((0.2 / 0.05) ** 2, rel=0.3)


def test_bad_use_gets_a_sentence():
    with pytest.raises(BadInput, match="LearnedSimilarity takes an InfoNCE"):
        LearnedSimilarity(Dot())
    with pytest.raises(BadInput, match="this similarity has 2 factors, but the representation has 3 coordinates"):
        LearnedSimilarity(InfoNCE(), 2)(views(), Batch(x=views()))
