import pytest
import torch
from scipy import stats

from zhat.errors import BadInput, TooFewRows
from zhat.theory import fit_exponent


def drawn(p, n, seed):
    return torch.from_numpy(stats.gennorm(p, loc=3.0, scale=0.2).rvs(n, random_state=seed))


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 4.0])
def test_the_exponent_of_draws_comes_back_with_their_scale(p):
    found = fit_exponent(drawn(p, 40_000, 0))
    assert found.low < p < found.high
    assert found.value == pytest.approx(p, rel=0.05)
    assert found.scale == pytest.approx(0.2, rel=0.1)
    assert found.n == 40_000


def test_it_is_scipys_estimate():
    steps = drawn(0.8, 5000, 1)
    p, _, scale = stats.gennorm.fit(steps.numpy(), floc=float(steps.median()))
    found = fit_exponent(steps)
    assert found.value == pytest.approx(p, abs=2e-3)
    assert found.scale == pytest.approx(scale, rel=1e-2)


def test_units_do_not_matter():
    steps = drawn(0.7, 3000, 2)
    one, other = fit_exponent(steps), fit_exponent(1e6 * steps)
    assert one.value == pytest.approx(other.value, rel=1e-9)
    assert other.scale == pytest.approx(1e6 * one.scale, rel=1e-9)


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    held = [f.low < 1.0 < f.high for f in (fit_exponent(drawn(1.0, 1000, seed)) for seed in range(60))]
    assert 60 * 0.95 - 4 * (60 * 0.95 * 0.05) ** 0.5 <= sum(held) <= 60


def test_steps_of_one_group_that_are_alike_widen_the_interval():
    steps = drawn(1.0, 200, 3).repeat_interleave(20)
    alone, grouped = fit_exponent(steps), fit_exponent(steps, groups=torch.arange(200).repeat_interleave(20))
    assert grouped.groups == 200
    assert grouped.value == pytest.approx(alone.value, rel=1e-9)
    assert grouped.high - grouped.low > 2 * (alone.high - alone.low)


def test_rounded_steps_need_their_resolution():
    steps = (10 * drawn(0.6, 20_000, 4)).round()
    with pytest.raises(BadInput, match="of them equal the median; if they were rounded, say to what with `resolution`"):
        fit_exponent(steps)
    assert fit_exponent(steps, resolution=1.0).value == pytest.approx(0.6, rel=0.15)


def test_bad_input_gets_a_sentence():
    with pytest.raises(TooFewRows, match="an exponent needs at least 100 steps, but 5 came"):
        fit_exponent(torch.randn(5))
    with pytest.raises(BadInput, match="all steps are the same"):
        fit_exponent(torch.ones(200))
    with pytest.raises(BadInput, match="must be a finite row of numbers"):
        fit_exponent(torch.full((200,), float("nan")))
    with pytest.raises(BadInput, match="`groups` must name a group for each of 200 steps"):
        fit_exponent(torch.randn(200), groups=torch.ones(3))
