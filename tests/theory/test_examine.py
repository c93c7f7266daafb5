import numpy as np
import pytest
import torch

from zhat.dgp import (
    Around,
    Box,
    GeneralizedNormal,
    Laplace,
    Normal,
    Product,
    Real,
    Sphere,
    Uniform,
    VonMisesFisher,
)
from zhat.errors import BadInput, TooFewRows
from zhat.results import from_json, to_json
from zhat.theory import examine


def world(marginal, conditional, n=4000, seed=0):
    g = torch.Generator().manual_seed(seed)
    z = marginal.sample(n, generator=g)
    return z, conditional.sample(z, generator=g)


def test_a_matched_sphere_meets_every_condition_of_theorem_2():
    found = examine(*world(Uniform(Sphere(5)), VonMisesFisher(20.0), 8000))
    assert {f.condition: f.holds for f in found.findings if f.holds != "yes"} == {}
    assert found.prediction.theorem == "Theorem 2"
    assert found.prediction.holds == "yes"
    (family,) = found.families
    assert family.name == "von Mises-Fisher"
    assert family.low < 20 < family.high
    assert found.suggestion.similarity == "Dot()"
    assert found.suggestion.temperature == pytest.approx(1 / 20, rel=0.1)
    assert from_json(to_json(found)) == found
    assert "recovers latents up to orthogonal" in str(found)


def test_a_rotated_representation_of_another_radius_meets_them_as_well():
    z, near = world(Uniform(Sphere(3)), VonMisesFisher(5.0), 6000)
    turn = 3 * torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(1)))[0]
    found = examine(z @ turn, near @ turn)
    assert found.spaces[0].radius == pytest.approx(3, rel=1e-4)
    (family,) = found.families
    assert abs(family.value - 5) < 4 * (family.high - family.low) / (2 * 1.96)


@pytest.mark.parametrize(
    ("law", "name", "theorem"),
    [
        (Around(Laplace(Box(3), 0.1)), "Laplace", "Theorem 6"),
        (Around(Normal(Box(3), 0.1)), "normal", "Theorem 5"),
        (Around(GeneralizedNormal(Box(3), 3.0, 0.2)), "generalised normal", "Theorem 6"),
    ],
    ids=["Laplace", "normal", "cubic"],
)
def test_a_box_is_told_by_its_exponent(law, name, theorem):
    found = examine(*world(Uniform(Box(3)), law))
    assert found.families[0].name == name
    assert found.prediction.theorem == theorem
    assert "no" not in [f.holds for f in found.findings]
    assert found.suggestion.output == "Box(3, 0, 1)"


def test_unbounded_latents_have_no_uniform_marginal_and_no_theorem():
    found = examine(*world(Normal(Real(2)), Around(Laplace(Real(2), 0.3))))
    assert found["uniform marginal"].holds == "no"
    assert found.prediction.holds == "no"
    assert "does not speak of them: latents in a convex body" in found.sentence


def test_a_product_is_examined_part_by_part():
    space = Product(Sphere(3), Box(2))
    g = torch.Generator().manual_seed(0)
    z = Uniform(space).sample(4000, generator=g)
    ball, box = space.split(z)
    near = torch.cat(
        [VonMisesFisher(9.0).sample(ball, generator=g), Around(Normal(Box(2), 0.1)).sample(box, generator=g)], 1
    )
    found = examine(z, near)
    assert [family.name for family in found.families] == ["von Mises-Fisher", "normal"]
    assert found["independent groups"].holds == "yes"
    assert "No theorem known to zhat" in found.sentence


@pytest.mark.parametrize(
    ("broken", "condition"),
    [
        ("drift", "centred at the anchor"),
        ("scale varies", "one concentration everywhere"),
        ("scales differ", "one concentration in all directions"),
        ("correlated", "steps independent in each column"),
        ("mixture", "conditional of one family"),
    ],
)
def test_each_broken_condition_is_named_and_the_others_are_not(broken, condition):
    g = torch.Generator().manual_seed(3)
    z, step = torch.randn(6000, 3, generator=g), torch.randn(6000, 3, generator=g)
    if broken == "scale varies":
        step = step * (0.4 * z[:, :1]).exp()
    if broken == "scales differ":
        step = step * torch.tensor([1.0, 1.5, 2.0])
    if broken == "correlated":
        step = step + 0.7 * step[:, :1]
        step[:, 0] = step[:, 0] / 1.7 * 1.22
    if broken == "mixture":
        step = torch.where(torch.rand(6000, 3, generator=g) < 0.3, step, 0.3 * step)
    found = examine(z, (0.8 if broken == "drift" else 1.0) * z + 0.5 * step)
    assert found[condition].holds == "no"
    assert found[condition].p_value < 1e-4


def test_a_sphere_with_a_cap_of_high_concentration_is_not_the_same_everywhere():
    g = torch.Generator().manual_seed(0)
    z = Uniform(Sphere(3)).sample(6000, generator=g)
    near = torch.where(
        z[:, :1] > 0, VonMisesFisher(40.0).sample(z, generator=g), VonMisesFisher(10.0).sample(z, generator=g)
    )
    found = examine(z, near)
    assert found["one concentration everywhere"].holds == "no"
    assert found["uniform marginal"].holds == "yes"


def test_noise_that_prefers_axes_is_not_von_mises_fisher():
    found = examine(*world(Uniform(Sphere(3)), Around(Laplace(Sphere(3), 0.1)), 3000))
    assert found["von Mises-Fisher"].holds == "no"
    assert found.families[0].name == "projected Laplace"


def test_without_pairs_the_marginal_alone_is_examined():
    found = examine(world(Uniform(Sphere(3)), VonMisesFisher(1.0))[0])
    assert found.families == ()
    assert found.prediction is None
    assert found["uniform marginal"].holds == "yes"


def test_with_few_rows_it_says_that_it_cannot_tell():
    found = examine(*world(Uniform(Box(10)), Around(Laplace(Box(10), 0.1)), 250))
    assert found["uniform marginal"].holds == "unknown"


def test_a_series_counts_every_so_many_row():
    random = np.random.default_rng(0)
    series = np.zeros((6000, 2))
    for t in range(1, 6000):
        series[t] = 0.95 * series[t - 1] + 0.3 * random.normal(size=2)
    found = examine(series[:-1], series[1:])
    assert found.used < 300
    assert any("as in a series" in note for note in found.notes)
    assert found["centred at the anchor"].holds == "no"  # it is drawn back to the middle
    assert examine(random.normal(size=(3000, 2))).used == 3000


def test_repeated_rows_count_once():
    z, _ = world(Uniform(Sphere(3)), VonMisesFisher(5.0), 1000)
    found = examine(z.repeat(5, 1), torch.cat([VonMisesFisher(5.0).sample(z, generator=_g(i)) for i in range(10, 15)]))
    assert found.used == 1000
    assert any("occur several times" in note for note in found.notes)


def _g(seed):
    return torch.Generator().manual_seed(seed)


def test_positives_that_equal_their_anchors_have_no_family():
    z, _ = world(Uniform(Sphere(3)), VonMisesFisher(5.0), 1000)
    found = examine(z, z)
    assert found.families[0].name == "cannot tell"
    assert "exactly zero" in found["von Mises-Fisher"].because
    assert found.suggestion is None


def test_a_constant_column_is_left_out_and_said():
    z, near = world(Uniform(Box(2)), Around(Normal(Box(2), 0.1)), 1000)
    still = torch.ones(1000, 1)
    found = examine(torch.cat([z, still], 1), torch.cat([near, still], 1))
    assert found.dim == 2
    assert "holds one value only" in found.notes[0]


def test_bad_input_gets_a_sentence():
    z = torch.randn(1000, 2, generator=_g(0))
    with pytest.raises(TooFewRows, match="examining 2 columns needs at least 200 rows, but 50 came"):
        examine(z[:50])
    with pytest.raises(BadInput, match="`z_next` must have the shape of `z`"):
        examine(z, z[:-1])
    with pytest.raises(BadInput, match="`z` must be finite"):
        examine(torch.full((1000, 2), float("nan")))
    with pytest.raises(BadInput, match="every column of `z` holds one value only"):
        examine(torch.ones(1000, 2))
    with pytest.raises(BadInput, match="column 1 of `z` takes 3 different values"):
        examine(torch.randint(3, (1000, 2), generator=_g(0)).double())


def test_findings_are_asked_for_by_name():
    found = examine(torch.randn(1000, 2, generator=_g(0)))
    with pytest.raises(KeyError, match="no condition is called 'colour'"):
        found["colour"]
