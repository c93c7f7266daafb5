import math

import numpy as np
import pytest
import torch
from scipy.signal import lfilter
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.metrics import balanced_accuracy_score, r2_score

from zhat.errors import BadInput
from zhat.metrics import decoding
from zhat.metrics.decoding import Factor, _paired_columns, _Row, _shuffle_tests, decode_rows, holm
from zhat.metrics.pairing import orders


def rows(n=600, k=5, seed=0):
    random = np.random.default_rng(seed)
    h = random.normal(size=(n, k))
    return random, h, torch.from_numpy(random.permutation(n) % 2 == 1)


def decoded(h, factors, held_out, **how):
    return decode_rows(lambda: iter(np.array_split(h, 3)), factors, held_out, **({"shuffles": 99} | how))


def test_a_real_factor_scores_what_least_squares_of_scikit_learn_scores():
    random, h, held_out = rows()
    z = h @ random.normal(size=5) + random.normal(size=600)
    fit, read = ~held_out.numpy(), held_out.numpy()
    wanted = r2_score(z[read], LinearRegression().fit(h[fit], z[fit]).predict(h[read]))
    assert decoded(h, [Factor.real("z", z)], held_out).scores[0].value == pytest.approx(wanted, abs=1e-9)


def test_a_circular_factor_is_regressed_as_cosine_and_sine():
    random, h, held_out = rows()
    angle = np.degrees(np.arctan2(h[:, 0], h[:, 1])) + 20 * random.normal(size=600)
    turn = np.radians(angle)
    u = np.stack([np.cos(turn), np.sin(turn)], 1)
    fit, read = ~held_out.numpy(), held_out.numpy()
    guess = LinearRegression().fit(h[fit], u[fit]).predict(h[read])
    wanted = 1 - ((u[read] - guess) ** 2).sum() / ((u[read] - u[read].mean(0)) ** 2).sum()
    score = decoded(h, [Factor.circular("angle", angle, 360)], held_out).scores[0]
    assert score.value == pytest.approx(wanted, abs=1e-9)
    cosine = ((u[read] * guess).sum(1) / np.linalg.norm(guess, axis=1)).mean()
    assert score.also["mean cosine"] == pytest.approx(cosine, abs=1e-9)
    assert score.period == 360


def test_where_a_circle_starts_does_not_matter():
    _, h, held_out = rows()
    angle = np.arctan2(h[:, 0], h[:, 1])
    scores = [
        decoded(h, [Factor.circular("angle", angle + start, 2 * math.pi)], held_out).scores[0].value
        for start in (0.0, 1.0)
    ]
    assert scores[0] == pytest.approx(scores[1], abs=1e-9)


def test_a_categorical_factor_is_read_by_the_linear_discriminant_with_equal_priors():
    random, h, held_out = rows(900)
    names = np.array(["few", "some", "many"])[np.digitize(h[:, 0] + 0.3 * random.normal(size=900), [-1.2, -0.4])]
    fit, read = ~held_out.numpy(), held_out.numpy()
    model = LinearDiscriminantAnalysis(priors=np.full(3, 1 / 3)).fit(h[fit], names[fit])
    wanted = balanced_accuracy_score(names[read], model.predict(h[read]))
    score = decoded(h, [Factor.categorical("names", names)], held_out).scores[0]
    assert score.value == pytest.approx(wanted, abs=2 / read.sum())
    assert score.also["accuracy"] == pytest.approx((model.predict(h[read]) == names[read]).mean(), abs=2 / read.sum())
    assert score.chance == pytest.approx(1 / 3, abs=0.02)


def test_naming_the_largest_class_every_time_is_worth_no_more_than_chance():
    random, h, held_out = rows()
    names = (random.random(600) < 0.95).astype(int)
    score = decoded(h, [Factor.categorical("names", names)], held_out).scores[0]
    assert score.value < 0.7
    assert not score.found


def test_scores_are_blind_to_affine_maps_of_the_representation():
    random, h, held_out = rows()
    factors = [Factor.real("a", h[:, 0] ** 3), Factor.categorical("b", h[:, 1] > 0)]
    moved = h @ random.normal(size=(5, 5)) * [1e-3, 1, 1, 1, 1e3] + 7
    plain, mapped = decoded(h, factors, held_out), decoded(moved, factors, held_out)
    for a, b in zip(plain.scores, mapped.scores, strict=True):
        assert a.value == pytest.approx(b.value, abs=1e-6)


def test_a_repeated_and_a_constant_column_change_nothing():
    _, h, held_out = rows()
    factors = [Factor.real("a", h[:, 0] ** 3), Factor.categorical("b", h[:, 1] > 0)]
    wide = np.concatenate([h, h[:, :2], np.ones((600, 1))], 1)
    for a, b in zip(decoded(h, factors, held_out).scores, decoded(wide, factors, held_out).scores, strict=True):
        assert a.value == pytest.approx(b.value, abs=1e-6)


def test_principal_components_are_the_directions_of_most_variance():
    random, h, held_out = rows()
    h = h * [10, 5, 1, 1, 1] @ np.linalg.qr(random.normal(size=(5, 5)))[0]
    loud, quiet = np.linalg.svd(h - h.mean(0), full_matrices=False)[0][:, [0, 4]].T
    scores = decoded(h, [Factor.real("loud", loud), Factor.real("quiet", quiet)], held_out, components=2).scores
    assert scores[0].value > 0.99
    assert scores[1].value < 0.1


def test_holm_is_the_textbook_case():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([]) == ()
    assert holm([0.9, 0.9]) == (1.0, 1.0)


def test_p_values_of_noise_are_uniform_and_findings_rare():
    p, found = [], 0
    for seed in range(60):
        random, h, held_out = rows(120, 3, seed)
        factors = [Factor.real("a", random.normal(size=120)), Factor.categorical("b", random.integers(0, 2, 120))]
        scores = decoded(h, factors, held_out, seed=seed).scores
        p += [s.p for s in scores]
        found += any(s.found for s in scores)
    assert min(p) >= 1 / 120  # 60 rows are read: the order as it is and one more, each rolled by 0 to 59 places
    assert abs(np.mean(p) - 0.5) < 4 * math.sqrt(1 / 12 / len(p))
    assert found <= 60 * 0.05 + 3 * math.sqrt(60 * 0.05)


def test_two_unrelated_slow_series_are_not_taken_for_a_finding_when_blocks_are_shuffled():
    alone, together = 0, 0
    for seed in range(16):
        random = np.random.default_rng(seed)
        h, z = lfilter([1], [1, -0.97], random.normal(size=(2, 3200, 3)), axis=1)  # likeness lasts 65 rows
        held_out = torch.from_numpy(np.arange(3200) // 400 % 2 == 1)
        factor = [Factor.real("slow", z[:, 0])]
        alone += decoded(h, factor, held_out).scores[0].p <= 0.05
        together += decoded(h, factor, held_out, block=130).scores[0].p <= 0.05
    assert alone >= 6  # what a plain shuffle would make of them
    assert together <= 16 * 0.05 + 2.5 * math.sqrt(16 * 0.05)


def test_factors_that_cannot_be_scored_say_why_and_leave_the_others_alone():
    _, h, held_out = rows()
    factors = [
        Factor.real("still", np.full(600, 3.0)),
        Factor.categorical("ids", np.arange(600)),
        Factor.real("good", h[:, 0]),
    ]
    still, ids, good = decoded(h, factors, held_out).scores
    assert still.value is None
    assert still.because == "it has the same value in all rows"
    assert "600 classes" in ids.because
    assert "every class needs 5" in ids.because
    assert good.found
    assert good.p_corrected == good.p


def test_intervals_hold_the_score_and_shrink_with_rows():
    widths = []
    for n in (200, 5000):
        random, h, held_out = rows(n)
        score = decoded(h, [Factor.real("z", h[:, 0] + random.normal(size=n))], held_out).scores[0]
        assert score.low < score.value < score.high
        widths.append(score.high - score.low)
    assert widths[1] < widths[0] / 3


@pytest.mark.parametrize("n", [800, 20_000])  # one by one, and in groups
def test_an_interval_is_as_wide_as_the_binomial_says(n):
    random, h, held_out = rows(n)
    score = decoded(h, [Factor.categorical("b", random.integers(0, 2, n))], held_out).scores[0]
    wanted = 2 * 1.96 * math.sqrt(0.25 / (n / 2))
    assert score.high - score.low == pytest.approx(wanted, rel=0.2)


def test_associations_are_correlations():
    random, h, held_out = rows()
    z, group = h[:, 0] + random.normal(size=600), random.integers(0, 3, 600)
    found = decoded(h, [Factor.real("z", z), Factor.categorical("group", group)], held_out).association
    assert found[0, 0] == pytest.approx(abs(np.corrcoef(z, h[:, 0])[0, 1]))
    means = np.array([h[group == g, 1].mean() for g in range(3)])[group]
    assert found[1, 1] == pytest.approx(means.std() / h[:, 1].std())


def test_importances_are_zero_where_coefficients_are_noise():
    random, h, held_out = rows()
    found = decoded(h, [Factor.real("z", h[:, 2] + 0.1 * random.normal(size=600))], held_out).importance
    assert (found[:, 0] > 0).tolist() == [False, False, True, False, False]


def test_a_collapsed_representation_is_refused():
    _, h, held_out = rows()
    with pytest.raises(BadInput, match="every row of the representation is the same"):
        decoded(np.ones_like(h), [Factor.real("z", h[:, 0])], held_out)


def row_of(kind, n, seed):
    random = torch.Generator().manual_seed(seed)
    if kind == "categorical":
        factor = Factor.categorical("f", np.arange(n) % 3)
        return _Row(factor, torch.randint(3, (n,), generator=random), torch.randint(3, (n,), generator=random))
    width = 1 if kind == "real" else 2
    factor = Factor("f", kind, torch.zeros(n, width).double())
    truth, guess = (torch.randn(n, width, generator=random).double() for _ in range(2))
    return _Row(factor, truth, guess)


@pytest.mark.parametrize("kind", ["real", "circular", "categorical"])
@pytest.mark.parametrize("block", [1, 4])
def test_every_roll_of_every_order_is_a_shuffle(kind, block, monkeypatch):
    row, seen = row_of(kind, 24, 1), []
    monkeypatch.setattr(decoding, "orders", lambda *a: seen.append(orders(*a)) or seen[-1])
    monkeypatch.setattr(decoding, "order", lambda n, generator: torch.arange(n))
    (((p, mean),), count) = _shuffle_tests([row], block, 50, 0)
    units = 24 // block
    assert count == units * -(-51 // units) - 1
    truth, guess = _paired_columns(row, torch.arange(24))
    each = [
        float((truth[which].reshape(units, -1).roll(-k, 0) * guess.reshape(units, -1)).sum())
        for which in [torch.arange(24), *seen[0]]
        for k in range(units)
    ]
    assert p == sum(value >= each[0] - 1e-9 for value in each) / len(each)
    assert mean == pytest.approx(sum(each) / len(each), abs=1e-12)


@pytest.mark.parametrize("kind", ["real", "categorical"])
def test_p_values_of_noise_are_uniform(kind):
    p = [_shuffle_tests([row_of(kind, 40, seed)], 1, 99, seed)[0][0][0] for seed in range(300)]
    for level in (0.05, 0.2, 0.5):
        share = sum(each <= level for each in p) / 300
        assert share <= level + 4 * (level * (1 - level) / 300) ** 0.5
        assert kind == "categorical" or share >= level - 4 * (level * (1 - level) / 300) ** 0.5 - 1 / 120
