from importlib import import_module

import numpy as np
import pytest
import torch

from zhat.errors import BadInput, TooFewRows
from zhat.results import from_json, to_json
from zhat.theory import compare_models, diversity


def models(labels=12, dim=4, n=1000, noise=0.0, seed=0):
    """Two models with the same p(y|x), up to noise in the second one's features."""
    rng = np.random.default_rng(seed)
    f, g, a = (rng.standard_normal(shape) for shape in ((n, dim), (labels, dim), (dim, dim)))
    second = f @ a.T + noise * rng.standard_normal((n, dim))
    return (
        g,
        g @ np.linalg.inv(a) + rng.standard_normal(dim),
        f,
        second,
        a,
    )  # one offset for all labels leaves p as it is


def test_m_plus_one_labels_in_general_position_are_diverse_and_m_are_not():
    g = np.random.default_rng(0).standard_normal((6, 5))
    enough, few = diversity(g), diversity(g[:5])
    assert (enough.holds, enough.rank, enough.missing, enough.invertible) == (True, 5, 0, 50)
    assert (few.holds, few.rank, few.missing, few.best, few.sets) == (False, 4, 1, None, 0)
    assert "no: differences of labels span 4 of 5 dimensions; 1 labels are missing" in str(few)
    assert "none: no set of labels has an invertible L" in str(few)


def test_condition_numbers_are_those_of_the_differences():
    g = np.array([[0, 0], [4, 0], [0, 1]])  # one set only, and six orders of it
    by_hand = [
        np.linalg.cond(np.delete(g, i, 0) - g[i])  # differences from each label in turn
        for i in range(3)
    ]
    found = diversity(g.astype(float), sets=200)
    assert found.best == pytest.approx(min(by_hand))
    assert min(by_hand) <= found.typical <= max(by_hand)


def test_a_bad_label_spoils_some_sets_and_the_best_set_avoids_it():
    g = np.random.default_rng(0).standard_normal((20, 3))
    g[1:16] = g[0] + 1e-9 * g[1:16]  # sixteen labels nearly the same
    found = diversity(g.astype(np.float32))
    assert found.holds
    assert (found.invertible, found.typical) == (0, None)  # 65 of 4845 sets are any good
    assert found.best < 20
    assert "typical none; invertible for 0 of 50" in str(found)
    many = diversity(g.astype(np.float32), sets=2000)
    assert 5 < many.invertible < 65 / 4845 * 2000 * 2
    assert many.best <= found.best


def test_candidate_sets_are_judged_one_by_one():
    g = np.random.default_rng(0).standard_normal((20, 3))
    rng = np.random.default_rng(1)
    large = np.stack([rng.permutation(20)[:6] for _ in range(10)])
    assert diversity(g, large).holds
    assert diversity(g, large).labels == 6
    small = np.concatenate([large, [[1, 1, 2, 2, 3, 3]]])  # one x whose candidates are three labels
    assert (diversity(g, small).holds, diversity(g, small).missing) == (False, 1)
    g[:6] = g[0]  # six labels that are one
    assert diversity(g, [[0, 1, 2, 3, 4, 5]]).rank == 0
    assert diversity(g).holds


def test_both_roads_lead_to_the_planted_map():
    g_one, g_two, f_one, f_two, a = models()
    pair = compare_models(g_one, g_two, f_one, f_two)
    assert np.allclose(pair.from_heads, a)
    assert np.allclose(pair.from_features, a)
    assert pair.disagreement < 1e-10
    assert pair.residual < 1e-10
    assert pair.heads_r2 == pytest.approx(1)
    assert pair.features_r2 == pytest.approx(1)
    assert pair.apart < 1e-12 < 0.5 < pair.apart_by_chance
    assert "nats apart" in str(pair)
    assert from_json(to_json(pair)) == pair


def test_models_that_differ_disagree():
    g_one, _, f_one, f_two, _ = models()
    other = models(seed=1)[1]
    pair = compare_models(g_one, other, f_one, f_two)
    assert pair.disagreement > 0.3
    assert pair.residual > 0.3
    assert pair.heads_r2 < 0.5 < pair.features_r2
    assert 0.5 * pair.apart_by_chance < pair.apart
    noisy = compare_models(*models(noise=1.0)[:4])
    assert noisy.residual < 1e-10  # heads know nothing of the noise
    assert 0.2 < noisy.features_r2 < 0.99
    assert noisy.apart > 0.05


def test_a_bias_is_a_column_of_ones_and_a_dead_unit_has_no_r2():
    g_one, g_two, f_one, f_two, a = models()
    shift, bias, ones = np.arange(4.0), np.linspace(-1, 1, 12), np.ones((1000, 1))
    one, two = np.hstack([g_one, bias[:, None]]), np.hstack([g_two, (bias - g_two @ shift)[:, None]])
    pair = compare_models(one, two, np.hstack([f_one, ones]), np.hstack([f_two + shift, ones]))
    assert pair.apart < 1e-12
    assert np.allclose(np.array(pair.from_heads)[:4, :4], a)
    assert np.allclose(np.array(pair.from_heads)[:4, 4], shift)
    assert pair.disagreement < 1e-9
    assert (pair.heads_r2, pair.features_r2) == (pytest.approx(1), pytest.approx(1))
    dead = compare_models(g_one, g_two, f_one, f_two * [1, 1, 1, 0])
    assert dead.features_r2 == pytest.approx(1)


def test_features_may_have_more_axes_before_the_last():
    g_one, g_two, f_one, f_two, _ = models()
    flat = compare_models(g_one, g_two, f_one, f_two)
    assert compare_models(g_one, g_two, f_one.reshape(10, 100, 4), torch.tensor(f_two).reshape(10, 100, 4)) == flat


def test_where_one_of_several_candidate_sets_is_good_it_is_found():
    g = np.random.default_rng(0).standard_normal((6, 2))
    g[:3] = np.outer([1, 2, 3], [1, 1])  # three labels on a line
    for seed in range(5):
        assert diversity(g, [[0, 1, 2], [3, 4, 5]], sets=1, seed=seed).best < 100


def test_probabilities_are_compared_on_rows_from_all_over(monkeypatch):
    g_one, g_two, f_one, f_two, _ = models(n=1000)
    f_two[::3] = 0  # every third row differs
    whole = compare_models(g_one, g_two, f_one, f_two).apart
    monkeypatch.setattr(import_module("zhat.theory.diversity"), "READ", 300)
    part = compare_models(g_one, g_two, f_one, f_two).apart
    assert part == pytest.approx(whole, rel=0.2)
    assert part != whole


def test_without_diversity_there_is_no_map_from_heads():
    g_one, g_two, f_one, f_two, a = models(labels=4)
    pair = compare_models(g_one, g_two, f_one, f_two)
    assert (pair.from_heads, pair.disagreement, pair.heads_r2) == (None, None, None)
    assert np.allclose(pair.from_features, a)
    assert "none: no set of labels has an invertible L in both heads" in str(pair)
    alone = compare_models(*models()[:2])
    assert (alone.from_features, alone.apart) == (None, None)


def test_float32_and_large_maps_are_printed_in_short():
    pair = compare_models(*(torch.tensor(m).float() for m in models(dim=8)[:4]))
    assert pair.disagreement < 1e-3
    assert "… 8 rows, 8 columns" in str(pair)


MISTAKES = [
    (lambda g, w, f, h: diversity(g[:1]), "`head` must hold one row for each of at least 2 labels"),
    (lambda g, w, f, h: diversity(g, [[0.5]]), "`candidates` must hold one set of label indices in each row"),
    (lambda g, w, f, h: diversity(g, [[0, 12]]), "`candidates` must lie between 0 and 11, .* run from 0 to 12"),
    (lambda g, w, f, h: diversity(g, sets=0), "`sets` must be a whole number of at least 1"),
    (lambda g, w, f, h: compare_models(g, w[:, :3]), r"their shapes are \(12, 4\) and \(12, 3\)"),
    (
        lambda g, w, f, h: compare_models(g, w, f, h[:, :3]),
        "`second_features` must have one column for each",
    ),
    (lambda g, w, f, h: compare_models(g, w, f[:, 0], h), r"`first_features` must .* but its shape is \(1000,\)"),
    (
        lambda g, w, f, h: compare_models(g, w, f, h[:-1]),
        "`first_features` has 1000 rows and `second_features` has 999",
    ),
    (lambda g, w, f, h: compare_models(g, w, f, h * np.nan), "`second_features` must be finite"),
    (lambda g, w, f, h: compare_models(g, w, f * np.nan, h), "`first_features` must be finite"),
    (lambda g, w, f, h: compare_models(g, w, f, h * 0), "`second_features` is the same in all"),
]


@pytest.mark.parametrize(("call", "sentence"), MISTAKES)
def test_mistakes_get_a_sentence(call, sentence):
    with pytest.raises(BadInput, match=sentence):
        call(*models()[:4])


def test_too_few_rows_are_refused():
    g_one, g_two, f_one, f_two, _ = models(n=30)
    with pytest.raises(TooFewRows, match="at least 40"):
        compare_models(g_one, g_two, f_one, f_two)
    with pytest.raises(TooFewRows, match="0 rows"):
        compare_models(g_one, g_two, f_one[:0], f_two[:0])
