import math

import pytest
import torch
from scipy import stats

from zhat.dgp import (
    Around,
    Beside,
    Box,
    Correlated,
    Either,
    Folded,
    Halves,
    InvertibleMLP,
    Laplace,
    Mixture,
    Normal,
    Orthogonal,
    Pairs,
    Product,
    Real,
    Sphere,
    Uniform,
    VonMisesFisher,
    violating,
)
from zhat.errors import BadInput
from zhat.testing import check_conditional, check_distribution, check_mixing, check_process

MARGINALS = [
    Correlated(Real(3), 0.6),
    Correlated(Real(2), -0.3, (0.5, 2.0)),
    Correlated(Box(2, -1.0, 2.0), 0.5),
    Mixture((Uniform(Sphere(3)), Normal(Sphere(3), 0.3))),
    Mixture((Normal(Real(2)), Normal(Real(2), 0.5, centre=2.0)), (0.8, 0.2)),
]
PRODUCT = Product(Sphere(2), Box(1))
PLANE = Product(Real(1), Real(1))
CONDITIONALS = [
    (Either((Around(Normal(Real(2), 0.2)), Around(Normal(Real(2), 1.0))), (3.0, 1.0)), Real(2)),
    (Either((VonMisesFisher(2.0), VonMisesFisher(30.0))), Sphere(3)),
    (Halves(VonMisesFisher(3.0), VonMisesFisher(20.0)), Sphere(3)),
    (Halves(Around(Laplace(Box(2), 0.1)), Around(Laplace(Box(2), 0.3)), at=0.5), Box(2)),
    (Beside(PRODUCT, (VonMisesFisher(5.0), Around(Normal(Box(1), 0.2)))), PRODUCT),
    (Beside(PLANE, (Around(Normal(Real(1), 0.2)), Around(Normal(Real(1))))), PLANE),
]


@pytest.mark.parametrize("marginal", MARGINALS, ids=repr)
def test_marginals_keep_their_contract(marginal):
    check_distribution(marginal, n=6_000)


@pytest.mark.parametrize(("conditional", "space"), CONDITIONALS, ids=repr)
def test_conditionals_keep_their_contract(conditional, space):
    check_conditional(conditional, space, n=5_000)


def test_every_member_of_the_room_is_in_a_list():
    tested = {type(m) for m in MARGINALS} | {type(c) for c, _ in CONDITIONALS} | {Folded}
    there = {m for m in vars(violating).values() if isinstance(m, type) and m.__module__ == violating.__name__}
    assert tested == there


def test_coordinates_of_a_correlated_box_are_uniform_each_and_correlated():
    z = Correlated(Box(3), 0.6).sample(20_000, generator=torch.Generator().manual_seed(0)).double()
    assert stats.kstest(z[:, 1].numpy(), "uniform").pvalue > 1e-3
    expected = 6 / math.pi * math.asin(0.3)  # the rank correlation of a Gaussian copula
    assert torch.corrcoef(z.T)[0, 1] == pytest.approx(expected, abs=4 / 20_000**0.5)


def test_a_fold_hides_the_sign_of_the_first_latent_and_has_no_inverse():
    folded = Folded(InvertibleMLP(layers=2))
    check_mixing(folded)
    mixer = folded.build(3, torch.Generator().manual_seed(0))
    z = torch.randn(10, 3, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(mixer(z), mixer(z * torch.tensor([-1.0, 1.0, 1.0])))
    assert not hasattr(mixer, "inverse")


def test_worlds_are_made_of_them():
    check_process(Pairs(Correlated(Box(2), 0.5), Around(Normal(Box(2), 0.1)), Orthogonal()))
    check_process(Pairs(Uniform(PRODUCT), CONDITIONALS[4][0], Folded(Orthogonal())))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Correlated(Real(3), 1.0), "`correlation` must lie between -0.5 and 1, but 1.0 came"),
        (lambda: Correlated(Sphere(3), 0.1), "Correlated takes Real or Box"),
        (lambda: Correlated(Real(3), 0.1, (1.0, 2.0)), "`std` must have one value or 3, but 2 came"),
        (lambda: Correlated(Box(3), 0.1, 2.0), "in a Box every coordinate is uniform"),
        (lambda: Mixture((Uniform(Box(2)),)), "Mixture takes at least two parts, but 1 came"),
        (lambda: Mixture((Uniform(Box(2)), Uniform(Sphere(2)))), "live on one space"),
        (lambda: Either((VonMisesFisher(1.0),) * 2, (1.0,)), "one weight for each part, but 1 came for 2 parts"),
        (lambda: Either((VonMisesFisher(1.0),) * 2, (1.0, 0.0)), "`weights` must be above 0"),
        (lambda: Beside(PRODUCT, (VonMisesFisher(1.0),)), "one conditional for each of its parts"),
        (lambda: Halves(VonMisesFisher(1.0), VonMisesFisher(2.0), at=math.nan), "`at` must be a finite number"),
    ],
)
def test_bad_members_get_a_sentence(make, message):
    with pytest.raises(BadInput, match=message):
        make()
