import warnings

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from zhat.errors import BadInput, TooFewRows
from zhat.metrics import binary
from zhat.results import Counts


def rows(n=400, k=30, share=0.2, strength=0.0, seed=0):
    """Features and two targets; the first is planted in column 1, the second is noise."""
    rng = np.random.default_rng(seed)
    y = rng.random((n, 2)) < share
    x = rng.normal(size=(n, k)).astype(np.float32) + 0.2
    x[:, 1] += strength * y[:, 0]
    return x, y


@pytest.mark.parametrize("rare", [True, False])
def test_the_papers_protocol_equals_a_plain_loop(rare):
    x, y = rows(strength=1.5)
    x[:, 5] -= 3.0  # a mean below 0
    x[:, 6] = 1.0  # constant
    y = y[:, 0] == rare
    for seed in (0, 3):
        kept = x[:, x.mean(0) > 0]
        kept = kept[:, kept.std(0) > 0]
        z = (kept - kept.mean(0)) / kept.std(0)
        a, b, ya, yb = train_test_split(z, y, test_size=0.3, stratify=y, random_state=42 + seed)
        sides = []
        for part, label in ((a, ya), (b, yb)):
            n = min(label.sum(), (~label).sum())
            sides.append((np.r_[part[~label][:n], part[label][:n]], np.r_[np.zeros(n), np.ones(n)]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = LogisticRegression().fit(*sides[0]).score(*sides[1])
        scaled = binary.positive_on_average(x)
        assert scaled.shape == (400, 28)
        assert binary.balanced_logistic(scaled, y, *binary.split(y, seed)) == pytest.approx(plain)


def test_one_split_for_all_keeps_rare_targets_on_either_side():
    rng = np.random.default_rng(0)
    y = rng.random((1000, 4)) < 0.5
    y[:, 1] = np.arange(1000) < 4
    y[:, 2] = np.arange(1000) % 100 == 7
    y[:3, 3] = True
    for seed in range(5):
        fit, read = binary.split_for_all(y, seed)
        assert sorted([*fit, *read]) == list(range(1000))
        assert len(read) == 300
        assert y[read, 1].sum() == 1
        assert y[read, 2].sum() == 3
    assert not np.array_equal(binary.split_for_all(y, 0)[1], binary.split_for_all(y, 1)[1])
    assert len(binary.split_for_all(np.eye(10, 3, dtype=bool), 0)[1]) == 3  # groups of one row join the others


def plain_ridge(x, y, fit, read):
    """The same discriminant with every leave-one-out fit made anew."""
    a = x[fit].astype(np.float64)
    mean, std = a.mean(0), a.std(0)
    a, b, t = (a - mean) / std, (x[read] - mean) / std, y[fit].astype(float)
    size = np.linalg.svd(a - a.mean(0), compute_uv=False) ** 2

    def fitted(rows, target, at, penalty):
        rows1 = np.c_[rows, np.ones(len(rows))]
        gram = rows1.T @ rows1 + penalty * size.mean() * np.diag([*np.ones(rows.shape[1]), 0])
        return np.c_[at, np.ones(len(at))] @ np.linalg.solve(gram, rows1.T @ target)

    best = (-np.inf,)
    for penalty in binary.PENALTIES:
        left_out = np.arange(len(a))[:, None] != np.arange(len(a))
        alone = np.array([fitted(a[some], t[some], a[~some], penalty)[0] for some in left_out])
        yes, no = alone[t > 0], alone[t == 0]
        within = np.sqrt(np.r_[yes - yes.mean(), no - no.mean()].var())
        best = max(best, ((yes.mean() - no.mean()) / within, (yes.mean() + no.mean()) / 2, penalty))
    return fitted(a, t, b, best[2]) > best[1]


@pytest.mark.parametrize("k", [12, 90])
def test_the_discriminant_equals_one_that_leaves_out_every_row(k):
    x, y = rows(n=80, k=k, strength=1.5)
    fit, read = binary.split_for_all(y, 0)
    found = binary.discriminated(x, y, fit, read)
    assert found.shape == (1, 24, 2)
    for i in (0, 1):
        assert np.array_equal(found[0, :, i].numpy(), plain_ridge(x, y[:, i], fit, read))


def test_a_planted_target_is_found_and_shuffled_ones_are_at_chance():
    x, y = rows(n=2000, k=100, strength=3.0)
    fit, read = binary.split_for_all(y, 0)
    real, *shuffled = binary.discriminated(x, y, fit, read, shuffles=20, seed=1)
    planted, noise = (binary.counts(y[:, i], read, real[:, i]) for i in (0, 1))
    assert planted.balanced_accuracy > 0.85
    assert binary.by_shuffling(planted) < 1e-20
    assert binary.by_shuffling(noise) > 0.01
    chance = [binary.counts(y[:, 0], read, one[:, 0]).balanced_accuracy for one in shuffled]
    sigma = np.sqrt(0.25 / 120 + 0.25 / 480) / 2  # of one of them
    assert abs(np.mean(chance) - 0.5) < 4 * sigma / np.sqrt(20)


def test_units_of_columns_and_constant_columns_do_not_matter():
    x, y = rows(n=200, strength=1.0)
    fit, read = binary.split_for_all(y, 0)
    other = np.c_[x * np.geomspace(1e-3, 1e3, 30) + 5, np.ones(200), x[:, :1]].astype(np.float64)
    other, plain = other[:, :-1], np.asarray(x, dtype=np.float64)
    assert torch.equal(binary.discriminated(other, y, fit, read), binary.discriminated(plain, y, fit, read))
    with pytest.raises(BadInput, match="every row of the representation is the same"):
        binary.discriminated(np.ones((200, 3)), y, fit, read)
    with pytest.raises(BadInput, match="no column of the representation has a mean above 0"):
        binary.positive_on_average(-np.ones((5, 2)))


def test_p_values_are_the_share_of_all_shuffles():
    y = np.array([1, 1, 1, 0, 0, 0, 0, 0], dtype=bool)
    said = torch.tensor([True, True, False, True, False, False, False, False])
    found = binary.counts(y, np.arange(8), said)
    assert found == Counts(images=8, having=3, yes=3, no=5, hits=2, rejections=4)
    rng = np.random.default_rng(0)
    hits = np.array([(y[rng.permutation(8)] & said.numpy()).sum() for _ in range(20_000)])
    share = (hits >= 2).mean()
    assert binary.by_shuffling(found) == pytest.approx(share, abs=4 * np.sqrt(0.25 / 20_000))


def test_twice_the_lower_median_is_a_p_value_for_dependent_splits():
    rng = np.random.default_rng(0)
    common = rng.normal(size=(4000, 1))
    for share in (0.0, 0.5, 0.95):
        p = stats.norm.sf(np.sqrt(share) * common + np.sqrt(1 - share) * rng.normal(size=(4000, 10)))
        found = np.array([binary.of_splits(list(one)) for one in p])
        assert (found <= 0.05).mean() <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 4000)
    assert binary.of_splits([0.03]) == 0.03
    assert binary.of_splits([0.9, 0.8]) == 1.0


@pytest.mark.parametrize(("yes", "share"), [(5, 0.7), (20, 0.6), (200, 0.95)])
def test_intervals_hold_the_true_value_as_often_as_they_say(yes, share):
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(1000):
        found = Counts(2000, yes, yes, 1000, int(rng.binomial(yes, share)), int(rng.binomial(1000, 0.8)))
        low, high = binary.balanced_interval(found)
        inside += low <= (share + 0.8) / 2 <= high
    assert inside / 1000 > 0.95 - 4 * np.sqrt(0.05 * 0.95 / 1000)


@pytest.mark.parametrize(
    ("yes", "no", "accuracy", "level"), [(5, 300, 0.85, 0.01), (40, 200, 0.65, 0.001), (100, 100, 0.6, 0.05)]
)
def test_power_is_how_often_a_target_is_found(yes, no, accuracy, level):
    rng = np.random.default_rng(0)
    hits, rejections = rng.binomial(yes, accuracy, 4000), rng.binomial(no, accuracy, 4000)
    p = stats.hypergeom.sf(hits - 1, yes + no, yes, hits + no - rejections)
    found = (p <= level).mean()
    assert binary.power(accuracy, yes, no, level) == pytest.approx(found, abs=4 * np.sqrt(0.25 / 4000))
    assert binary.power(0.5, yes, no, level) <= level  # no more is found by chance than the level says
    least = binary.needed(yes, no, level, probability=0.8)
    assert binary.power(least, yes, no, level) >= 0.8 > binary.power(least - 2e-4, yes, no, level)
    assert least < binary.needed(yes, no, level, probability=0.95)


def test_too_rare_a_target_gets_a_sentence():
    y = np.zeros((10, 2), dtype=bool)
    y[:5, 0] = y[0, 1] = True
    with pytest.raises(TooFewRows, match="of 'style' there are 1 among 10. Bring more rows."):
        binary.refuse_rare(y, ("class", "style"))
