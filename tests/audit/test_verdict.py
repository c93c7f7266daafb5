"""A planted battery: data of a known class, and the verdict that must come back."""

import json

import numpy as np
import pytest
import torch

from zhat.audit import audit, examine
from zhat.equivalence import AFFINE, IDENTITY, LINEAR, ORTHOGONAL, Equivalence
from zhat.errors import BadInput
from zhat.results import from_json, to_json

CLASSES = tuple(e for e in Equivalence if e <= AFFINE)


def rotation(d, random):
    q = np.linalg.qr(random.normal(size=(d, d)))[0]
    if d == 2:  # far from every signed permutation
        q = np.array([[np.cos(0.6), -np.sin(0.6)], [np.sin(0.6), np.cos(0.6)]])
    return q


def matrix(up_to, d, random):
    if up_to is IDENTITY:
        return np.eye(d)
    order = np.eye(d)[np.roll(np.arange(d), 1)]
    signs = np.where(np.arange(d) % 2 == 0, -1.0, 1.0)
    sizes = np.linspace(0.5, 2, d)
    return {
        "permutation": order,
        "signed permutation": order * signs,
        "scaled permutation": order * signs * sizes,
        "orthogonal": rotation(d, random),
        "similarity": 1.7 * rotation(d, random),
        "linear": rotation(d, random) * sizes @ rotation(d, random),
        "affine": rotation(d, random) * sizes @ rotation(d, random),
    }[up_to.value]


def planted(up_to, n, d, noise, seed=0, dtype=np.float64):
    """Rows and their copy under a map of exactly that class; noise as a share of the copy's spread."""
    random = np.random.default_rng([seed, n, d, list(Equivalence).index(up_to)])
    a = (random.normal(size=(n, d)) + 0.5 * random.normal(size=d)).astype(dtype)
    b = a.astype(float) @ matrix(up_to, d, random)
    b = b + (random.normal(size=d) * 2 if up_to is AFFINE else 0)
    if up_to is IDENTITY and noise == 0:
        noise = 1e-7
    return a, (b + noise * b.std() * random.normal(size=(n, d))).astype(dtype)


# Enough rows for an affine map (ten for each coefficient): every class can be told, clean and noisy.
TOLD = [
    (up_to, n, d, noise)
    for up_to in CLASSES
    for n, d, noise in ((2000, 2, 0.0), (2000, 2, 0.2), (800, 8, 0.0), (800, 8, 0.3), (700, 48, 0.2))
]
# Too few for a linear map, but nothing is left to explain: clean copies are told all the same.
TOLD_CLEAN = [(up_to, 4 * 24, 24, 0.0) for up_to in CLASSES] + [(IDENTITY, 77, 64, 0.0)]


def test_the_planted_class_comes_back():
    cases = TOLD + TOLD_CLEAN
    wrong = {}
    for case in cases:
        found = audit(*planted(*case))
        if found.up_to is not case[0]:
            wrong[case] = found.verdict
    assert len(cases) >= 40
    assert len(wrong) <= 0.05 * len(cases), wrong


@pytest.mark.slow
@pytest.mark.parametrize("up_to", CLASSES, ids=str)
@pytest.mark.parametrize(("n", "d", "noise"), [(3000, 256, 0.2), (11000, 1024, 0.1), (32000, 32, 0.5), (8000, 8, 1.0)])
def test_the_planted_class_comes_back_in_more_dimensions_and_rows(up_to, n, d, noise):
    assert audit(*planted(up_to, n, d, noise)).up_to is up_to


@pytest.mark.parametrize("up_to", CLASSES, ids=str)
@pytest.mark.parametrize(("n", "d"), [(58, 48), (96, 48), (38, 16)])
def test_few_rows_never_give_a_class_that_is_not_the_planted_one(up_to, n, d):
    for noise in (0.0, 0.3):
        found = audit(*planted(up_to, n, d, noise))
        assert found.verdict == "cannot tell" or found.up_to is up_to
        if found.verdict == "cannot tell":
            assert found.rows_needed > n
            assert f"at least {found.rows_needed:,} rows" in found.sentence


def independent(repetition, n, d):
    random = np.random.default_rng([repetition, 7])
    return random.normal(size=(n, d)), random.normal(size=(n, d))


@pytest.mark.parametrize(("n", "d", "repetitions"), [(200, 4, 40), (400, 16, 10)])
def test_independent_noise_is_unrelated(n, d, repetitions):
    found = [audit(*independent(i, n, d), seed=i).verdict for i in range(repetitions)]
    assert found.count("unrelated") == repetitions, found


@pytest.mark.slow
def test_a_thousand_independent_pairs_are_unrelated():
    found = [audit(*independent(i, 200 + i % 5 * 50, 2 + i % 9), seed=i).verdict for i in range(1000)]
    assert found.count("unrelated") >= 990, {v: found.count(v) for v in set(found)}


def test_independent_noise_with_too_few_rows_is_not_called_anything():
    found = audit(*independent(0, 100, 80))
    assert found.verdict == "cannot tell"
    assert found.rows_needed == 810


def bent(kind, random):
    a = random.normal(size=(1500, 4))
    if kind == "tanh behind a rotation":
        return a, np.tanh(2 * a @ rotation(4, random))
    if kind == "cubes":
        return a, a**3 @ rotation(4, random)
    if kind == "two layers":
        wide = np.tanh(a @ random.normal(size=(4, 4)))
        return a, np.tanh(wide @ random.normal(size=(4, 4)) * 2)
    if kind == "squares":  # no linear relation at all
        return a, a**2 - 1
    raise KeyError(kind)


@pytest.mark.parametrize("kind", ["tanh behind a rotation", "cubes", "two layers", "squares"])
def test_bent_copies_are_nonlinear(kind):
    found = audit(*bent(kind, np.random.default_rng(3)))
    assert found.verdict == "nonlinear"
    assert found.up_to is None
    assert "by no affine map" in found.sentence


def test_bending_behind_a_linear_map_is_seen_in_many_dimensions():
    random = np.random.default_rng(0)
    a = random.normal(size=(1500, 64))
    assert audit(a, np.tanh(2 * a @ rotation(64, random))).verdict == "nonlinear"


@pytest.mark.parametrize(("share", "said"), [(0.0, False), (0.005, True)])
def test_a_slight_bend_is_said_beside_the_verdict(share, said):
    random = np.random.default_rng(5)
    x = random.normal(size=(4000, 8))
    bend = (x**3 - 3 * x) / np.sqrt(6)  # of unit variance and without a linear part
    found = audit(x, (np.sqrt(1 - share) * x + np.sqrt(share) * bend) @ rotation(8, random))
    assert found.verdict == "orthogonal"
    assert any("bends slightly" in note for note in found.notes) == said


def test_lengths_that_are_drawn_together_are_a_bend_unless_they_are_one():
    random = np.random.default_rng(0)
    a = random.normal(size=(2000, 12))
    length = np.linalg.norm(a, axis=1, keepdims=True)
    assert audit(a, a / length**0.9 @ rotation(12, random)).verdict == "nonlinear"
    unit = audit(a, a / length @ rotation(12, random))  # an adapter brings mapped rows to unit length
    assert unit.up_to is not None


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_signed_permutation_of_columns_of_very_different_spread_is_one(noise):
    for seed in (1, 2):
        random = np.random.default_rng(seed)
        a = random.normal(size=(2000, 8)) * np.geomspace(1, 0.02, 8)
        b = a[:, random.permutation(8)] * random.choice([-1, 1], 8)
        b = b + noise * b.std(0) * random.normal(size=b.shape)
        found = audit(a, b)
        assert found.verdict == "signed permutation"
        assert all(score.chance_high < 1 for score in found.ladder)


def test_bending_before_a_linear_map_is_seen_with_few_rows():
    random = np.random.default_rng(0)
    x = random.normal(size=(480, 16))
    b = (np.sqrt(0.95) * x + np.sqrt(0.05 / 6) * (x**3 - 3 * x)) @ rotation(16, random)
    assert audit(x, b).verdict == "nonlinear"


def test_half_of_the_directions():
    random = np.random.default_rng(1)
    a = random.normal(size=(2000, 10))
    b = np.concatenate([a[:, :5], random.normal(size=(2000, 5))], 1) @ matrix(LINEAR, 10, random)
    found = audit(a, b)
    assert found.directions == 5
    assert found.up_to is LINEAR


def test_the_spectrum_and_condition_are_those_of_the_map():
    a, b = planted(AFFINE, 2000, 8, 0.0)
    found = audit(a, b)
    assert np.allclose(found.spectrum, np.linspace(2, 0.5, 8))
    assert found.condition == pytest.approx(4)


def test_the_rows_that_disagree_most_are_the_spoiled_ones():
    a, b = planted(ORTHOGONAL, 2000, 4, 0.1)
    b[[100, 777, 1500]] += 3
    found = examine(a, b)
    held = {str(int(i)) for i in found.seen.index[found.seen.held_out]} & {"100", "777", "1500"}
    assert held
    assert {row for row, _ in found.result.worst[: len(held)]} == held


def test_drift_is_measured():
    a = np.random.default_rng(0).normal(size=(2000, 4))
    found = audit(a, 2 * a + 1)
    # |mean b - mean a| is 2 = sqrt(4 * 1), the spread of a is 2; covariance 4 times that of a
    assert found.drift_mean == pytest.approx(1, abs=5 / np.sqrt(2000))
    assert found.drift_covariance == pytest.approx(3, abs=1e-6)


def said(found):
    return " / ".join(found.notes)


def test_a_rank_deficient_copy_is_told_and_said():
    random = np.random.default_rng(0)
    a = random.normal(size=(1000, 4)) @ random.normal(size=(4, 12))
    found = audit(a, a @ rotation(12, random))
    assert found.verdict == "orthogonal"
    assert (found.rank_a, found.rank_b) == (4, 4)
    assert "rank-deficient: it varies in 4 of 12" in said(found)


def test_a_map_that_loses_directions_has_no_condition_number():
    random = np.random.default_rng(0)
    a = random.normal(size=(1000, 8))
    found = audit(a, a @ random.normal(size=(8, 3)) @ random.normal(size=(3, 8)))
    assert found.verdict == "linear"
    assert found.condition is None


def test_constant_columns_count_for_nothing_and_are_said():
    a, b = planted(ORTHOGONAL, 1000, 6, 0.1)
    a, b = np.insert(a, 2, 0.0, axis=1), np.insert(b, 2, 0.0, axis=1)
    found = audit(a, b)
    assert found.verdict == "orthogonal"
    assert "constant in 1 of 7 columns" in said(found)


def test_a_collapsed_model_gets_no_good_score():
    a = np.random.default_rng(0).normal(size=(500, 4))
    found = audit(a, np.ones((500, 4)))
    assert found.verdict == "cannot tell"
    assert "every row of b is the same" in found.sentence
    assert "collapsed" in said(found)
    assert audit(np.ones((500, 4)), np.ones((500, 4))).verdict == "identity"


def test_copies_of_rows_are_counted_once():
    random = np.random.default_rng(0)
    rows = random.integers(0, 100, 4000)
    a, b = random.normal(size=(100, 16))[rows], random.normal(size=(100, 16))[rows]
    found = audit(a, b)
    assert found.effective == 100
    assert found.verdict == "cannot tell"
    assert "occur before" in said(found)


def test_copies_of_independent_rows_are_still_unrelated():
    for seed in range(5):
        random = np.random.default_rng(seed)
        rows = random.integers(0, 600, 5000)
        a, b = random.normal(size=(600, 8))[rows], random.normal(size=(600, 8))[rows]
        assert audit(a, b).verdict == "unrelated"


def slow_walk(n, d, stay, random):
    x = random.normal(size=(n, d))
    for i in range(1, n):
        x[i] = stay * x[i - 1] + np.sqrt(1 - stay**2) * x[i]
    return x


def test_independent_films_are_not_related_because_their_frames_are_alike():
    for seed in range(10):
        random = np.random.default_rng(seed)
        found = audit(slow_walk(3000, 3, 0.95, random), slow_walk(3000, 3, 0.95, random))
        assert found.verdict in ("unrelated", "cannot tell")
        assert "neighbouring rows are alike" in said(found)
        assert found.effective < 300


def test_clustered_rows_of_a_rotated_copy_are_told():
    random = np.random.default_rng(0)
    a = np.repeat(random.normal(size=(200, 4)), 20, axis=0) + 0.1 * random.normal(size=(4000, 4))
    b = a @ rotation(4, random) + 0.05 * random.normal(size=(4000, 4))
    found = audit(a, b)
    assert found.verdict == "orthogonal"
    assert "neighbouring rows are alike" in said(found)


def test_heavy_tails_are_said_and_do_not_relate_what_is_not():
    random = np.random.default_rng(0)
    a, b = random.standard_t(1.5, size=(2, 2000, 4))
    found = audit(a, b)
    assert found.verdict in ("unrelated", "cannot tell")  # the variance is infinite: one row may hold most of it
    assert "heavy tails" in said(found)
    assert audit(*random.standard_t(3, size=(2, 2000, 4))).verdict == "unrelated"
    assert audit(a, a @ rotation(4, random)).verdict == "orthogonal"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_rounding_of_stored_numbers_is_not_taken_for_a_looser_class(dtype):
    a, b = planted(ORTHOGONAL, 2000, 8, 0.0)
    assert audit(torch.from_numpy(a).to(dtype), torch.from_numpy(b).to(dtype)).verdict == "orthogonal"


def test_a_large_offset_costs_no_digits():
    a, b = planted(AFFINE, 2000, 4, 0.1)
    assert audit(a + 1e5, b - 3e5).verdict == "affine"


def test_different_dimensions_are_compared_up_to_linear_and_affine():
    random = np.random.default_rng(0)
    a = random.normal(size=(1000, 5))
    found = audit(a, a @ random.normal(size=(5, 9)))
    assert [s.up_to for s in found.ladder] == [LINEAR, AFFINE]
    assert found.verdict == "linear"
    assert found.drift_mean is None


def test_an_audit_survives_json_and_is_the_same_again():
    pair = planted(ORTHOGONAL, 500, 3, 0.1)
    found = audit(*pair)
    assert from_json(to_json(found)) == found
    again = audit(*pair)
    assert again.ladder == found.ladder
    assert str(found).startswith("b is a up to an orthogonal map")


def test_too_few_rows_for_anything_are_refused():
    with pytest.raises(BadInput, match="at least 20 rows"):
        audit(np.eye(5), np.eye(5))


def test_a_relation_that_leaves_a_tenth_is_called_partial_and_one_that_leaves_a_hundredth_is_not():
    random = np.random.default_rng(0)
    a = random.normal(size=(2000, 6))
    turned, noise = a @ rotation(6, random), random.normal(size=(2000, 6))
    assert "b is in part a up to" in audit(a, turned + noise / 3).sentence
    assert "b is a up to" in audit(a, turned + noise / 10).sentence
    wider = audit(a, np.c_[turned, turned[:, :2] + turned[:, 2:4]]).sentence
    assert "invertible" not in wider  # a map from 6 to 8 columns


@pytest.mark.parametrize(
    ("explained", "verdict", "strength"),
    [
        (0.97, "orthogonal", "whole"),
        (0.93, "partly orthogonal", "part"),
        (0.55, "partly orthogonal", "part"),
        (0.45, "weakly related", "weak"),
        (0.1, "weakly related", "weak"),
    ],
)
def test_how_much_a_class_explains_is_part_of_its_name(explained, verdict, strength):
    random = np.random.default_rng(0)
    a = random.normal(size=(4000, 6))
    noise = np.sqrt(1 / explained - 1) * random.normal(size=(4000, 6))
    b = a @ rotation(6, random) + noise
    found = audit(a, b)
    assert (found.verdict, found.strength) == (verdict, strength)
    assert found.up_to is ORTHOGONAL or strength == "weak"
    assert found.explained == found.score.value == pytest.approx(explained, abs=0.02)
    assert f"explains {100 * found.explained:.1f}% of the variance" in found.sentence
    assert ("weakly" in found.sentence, "in part" in found.sentence) == (strength == "weak", strength == "part")


def test_a_weak_bend_is_weakly_related_too():
    random = np.random.default_rng(0)
    a = random.normal(size=(3000, 3))
    found = audit(a, a**2 + 2 * random.normal(size=(3000, 3)))  # a third of the variance is bent
    assert (found.verdict, found.up_to, found.strength) == ("weakly related", None, "weak")
    assert found.bent
    assert found.score.up_to is AFFINE
    assert "only weakly related, and by no affine map" in found.sentence
    clear = audit(a, a**2)
    assert (clear.verdict, clear.strength) == ("nonlinear", "part" if clear.explained < 0.95 else "whole")
    assert clear.explained > max(0.5, clear.score.value)  # that of the probe


def test_results_of_earlier_versions_are_read():
    found = audit(*planted(ORTHOGONAL, 500, 3, 0.1))
    plain = json.loads(to_json(found))
    for name in ("explained", "strength", "gate"):
        del plain[name]
    earlier = from_json(json.dumps(plain))
    assert (earlier.verdict, earlier.score, earlier.strength) == ("orthogonal", found.score, None)
    assert earlier.sentence == found.sentence


def test_a_weak_relation_is_found_and_called_weak():
    random = np.random.default_rng(0)
    a = random.normal(size=(2000, 6))
    found = audit(a, 0.3 * a @ rotation(6, random) + random.normal(size=(2000, 6)))
    assert found.up_to is not None
    assert "only weakly related" in found.sentence
    # a share of 0.09 / 1.09 is explained; four standard errors of a squared correlation
    assert abs(found.score.value - 0.09 / 1.09) < 4 * 2 * np.sqrt(0.083 / (1000 * 6)) + 7 / 1000


def test_a_column_that_is_hardly_ever_used_does_not_keep_others_from_being_unrelated():
    a, b = independent(3, 600, 8)
    b[:, 2] = 0
    b[411, 2] = 1
    assert audit(a, b).verdict == "unrelated"


def test_one_wild_row_does_not_make_a_rotation_nonlinear():
    a, b = planted(ORTHOGONAL, 500, 6, 0.0)
    b[-1] = 1e4
    found = audit(a, b)
    assert found.verdict == "cannot tell"
    assert "a few rows decide" in found.sentence
    assert "heavy tails" in said(found)


@pytest.mark.parametrize("seed", range(8))  # whichever way the rows are cut
def test_two_different_rows_tell_nothing(seed):
    x = np.random.default_rng(seed).normal(size=(4, 6))
    found = audit(np.repeat(x[:2], 250, 0), np.repeat(x[2:], 250, 0))
    assert found.verdict == "cannot tell"
    assert from_json(to_json(found)) == found


@pytest.mark.parametrize("mean", [1e3, 1e6, 1e8])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_a_large_mean_does_not_loosen_the_verdict(mean, noise):
    wrong = {}
    for up_to in CLASSES:
        random = np.random.default_rng(3)
        a = random.normal(size=(800, 4)) + mean * (1 + 0.3 * random.normal(size=4))
        b = a @ matrix(up_to, 4, random)
        if up_to is AFFINE:  # a shift that is small beside the mean would be a linear map with a slight tilt
            b = b + mean * random.normal(size=4)
        left = noise if noise or up_to is not IDENTITY else 1e-7
        found = audit(a, b + left * (b - b.mean(0)).std() * random.normal(size=b.shape))
        if found.up_to is not up_to:
            wrong[up_to.value] = found.verdict
    assert wrong == {}


def test_neighbours_behind_a_map_are_found_around_a_large_mean():
    random = np.random.default_rng(0)
    a = random.normal(size=(1000, 4))
    near, far = (examine(a + mean, (a + mean) @ rotation(4, np.random.default_rng(1))) for mean in (0.0, 2.0**26))
    assert far.recall(10).value == pytest.approx(near.recall(10).value, abs=1e-3)
    assert far.recall(10).value > 0.999


@pytest.mark.parametrize("scale", [1e-120, 1e-60, 1e60, 1e120])
def test_units_do_not_move_a_verdict(scale):
    a, b = planted(ORTHOGONAL, 600, 4, 0.2)
    found, expected = audit(scale * a, scale * b), audit(a, b)
    assert found.verdict == expected.verdict == "orthogonal"
    assert [s.value for s in found.ladder.scores] == pytest.approx([s.value for s in expected.ladder.scores], abs=1e-9)
    assert (found.rank_a, found.directions, found.notes) == (expected.rank_a, expected.directions, expected.notes)


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e-82, 1e77, 1e100, 1e150])
def test_other_units_on_one_side_leave_every_number_finite(scale):
    a, b = planted(LINEAR, 400, 3, 0.0)
    for one, other in ((scale * a, b), (a, scale * b), (scale * a, scale * b), (a * np.array([scale, 1, 1]), b)):
        found = audit(one, other)
        assert found.verdict == "linear"
        assert from_json(to_json(found)) == found  # refuses what is not finite
    with pytest.raises(BadInput, match="leave the range of float64"):
        audit(1e100 * a, 1e-100 * b)


def test_columns_in_other_units_are_no_deficiency():
    random = np.random.default_rng(0)
    a = random.normal(size=(600, 3)) * np.array([1e-9, 1, 1e9])
    found = audit(a, a[:, [2, 0, 1]])
    assert (found.rank_a, found.rank_b, found.notes) == (3, 3, ())


@pytest.mark.parametrize("seed", [0, 9, 14])
def test_few_rows_of_an_exact_copy_get_the_verdict_of_many(seed):
    random = np.random.default_rng(seed)
    x = random.normal(size=(100, 6))
    a, b = (x @ random.uniform(-1, 1, (6, 6)) + random.uniform(-1, 1, 6) for _ in range(2))
    assert audit(a, b).verdict == "affine"  # by the mean over five folds alone it was linear, at an R2 of 0.85
    assert audit(a, a @ random.normal(size=(6, 6))).verdict == "linear"
