import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from zhat.dgp import Batch
from zhat.errors import BadInput
from zhat.objectives import Dot, InfoNCE, NegativeLp
from zhat.testing import check_objective

CHOICES = [
    InfoNCE(),
    InfoNCE(NegativeLp(1), temperature=0.5),
    InfoNCE(NegativeLp(2)),
    InfoNCE(NegativeLp(3), include_self_pair=False),
    InfoNCE(NegativeLp(1.5), include_positive=False),
    InfoNCE(against_positive=True),
    InfoNCE(average_negatives=True),
    InfoNCE(alignment_weight=0.3),
]


def views(n=40, d=3, count=2, seed=0):
    return torch.randn(count, n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def loss(objective, h):
    return objective(h, Batch(x=h))


@pytest.mark.parametrize("objective", CHOICES, ids=repr)
def test_objectives_keep_their_contract(objective):
    check_objective(objective, views=2)
    check_objective(objective, views=3)


def official(h, p, tau, alpha=0.5):
    """The official code's arithmetic, written out: negatives are the anchors, rolled; sum, positive included."""
    anchor, positive = h[0], h[1]
    negative = anchor.roll(1, 0)
    if p == 0:
        near = (anchor * positive).sum(-1)
        far = anchor @ negative.T
    else:
        near = -((anchor - positive).abs() ** p).sum(-1)
        far = -((anchor[:, None] - negative[None]).abs() ** p).sum(-1)
    both = torch.cat([far, near[:, None]], 1) / tau
    return (2 * (-alpha * near / tau + (1 - alpha) * torch.logsumexp(both, 1))).mean()


@given(st.sampled_from([0, 1, 2, 3]), st.floats(0.1, 3), st.integers(2, 30), st.integers(0, 50))
def test_by_default_it_is_the_official_codes_formula(p, tau, n, seed):
    h = views(n=n, seed=seed)
    objective = InfoNCE(Dot() if p == 0 else NegativeLp(p), temperature=tau)
    assert float(loss(objective, h)) == pytest.approx(float(official(h, p, tau)), rel=1e-10)


def test_with_fresh_negatives_it_is_the_papers_formula():
    h = views(count=3)
    anchor, positive, fresh = h
    near = (anchor * positive).sum(-1)
    far = (positive[:, None] * fresh[None]).sum(-1)
    by_hand = -(near - torch.logsumexp(torch.cat([near[:, None], far], 1), 1)).mean()
    assert float(loss(InfoNCE(against_positive=True), h)) == pytest.approx(float(by_hand))


def test_against_the_positive_the_other_anchors_are_the_negatives():
    h = views()
    similarity = h[1] @ h[0].T
    by_hand = torch.nn.functional.cross_entropy(similarity, torch.arange(40))
    assert float(loss(InfoNCE(against_positive=True), h)) == pytest.approx(float(by_hand))


def test_collapsed_embeddings_cost_the_logarithm_of_the_number_of_candidates():
    h = torch.ones(2, 30, 4, dtype=torch.float64)
    assert float(loss(InfoNCE(NegativeLp(1)), h)) == pytest.approx(math.log(31))
    assert float(loss(InfoNCE(NegativeLp(1), include_self_pair=False), h)) == pytest.approx(math.log(30))
    assert float(loss(InfoNCE(NegativeLp(1), include_positive=False), h)) == pytest.approx(math.log(30))
    assert float(loss(InfoNCE(average_negatives=True), h)) == pytest.approx(0.0, abs=1e-12)


def test_temperature_is_a_rescaling_of_the_representation():
    h = views()
    assert float(loss(InfoNCE(temperature=0.25), h)) == pytest.approx(float(loss(InfoNCE(), 2 * h)))
    cubic = InfoNCE(NegativeLp(3), temperature=1 / 8)
    assert float(loss(cubic, h)) == pytest.approx(float(loss(InfoNCE(NegativeLp(3)), 2 * h)))


def test_the_self_pair_keeps_the_scale_of_the_representation_finite():
    # zimmermann2021.md, section 4: with it the best scale of a perfect solution is moderate, without it huge.
    from zhat.dgp import Around, Box, Laplace, Uniform

    generator = torch.Generator().manual_seed(0)
    z = Uniform(Box(10)).sample(1024, generator=generator)
    pair = torch.stack([z, Around(Laplace(Box(10), scale=0.05)).sample(z, generator=generator)])
    scales = [1.0, 2.0, 4.0, 8.0, 16.0]
    with_self = [float(loss(InfoNCE(NegativeLp(1)), s * pair)) for s in scales]
    without = [float(loss(InfoNCE(NegativeLp(1), include_self_pair=False), s * pair)) for s in scales]
    assert scales[with_self.index(min(with_self))] in (2.0, 4.0)
    assert scales[without.index(min(without))] >= 8.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: loss(InfoNCE(), torch.ones(1, 5, 2)),
            "compares 2 views of each row .* but .* shape \\(1, 5, 2\\)",
        ),
        (lambda: loss(InfoNCE(), torch.ones(5, 2)), "compares 2 views of each row"),
        (lambda: loss(InfoNCE(), torch.ones(2, 1, 2)), "at least 2 rows in a batch"),
        (lambda: InfoNCE(temperature=0.0), "`temperature` must be above 0"),
        (lambda: InfoNCE(alignment_weight=1.0), "`alignment_weight` must lie between 0 and 1"),
        (lambda: InfoNCE(similarity="dot"), r"must be Dot\(\) or NegativeLp\(p\), but 'dot' came"),
        (lambda: NegativeLp(0.5), "`p` must be at least 1"),
    ],
)
def test_bad_use_gets_a_sentence(make, message):
    with pytest.raises(BadInput, match=message):
        make()
