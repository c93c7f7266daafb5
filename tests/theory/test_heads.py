import math

import numpy as np
import pytest
import torch

from zhat.errors import BadInput
from zhat.results import from_json, to_json
from zhat.theory import check_head
from zhat.theory.heads import affine_spread, classes_for_a_rotation, diversity_spread


def head(classes, dim, seed=0):
    return np.random.default_rng(seed).standard_normal((classes, dim))


def answer(check, condition):
    (found,) = (a for a in check.prediction.answers if condition in a.condition)
    return found


def test_a_head_in_general_position_generates_from_one_class_more_than_dimensions():
    enough, few = check_head(head(6, 5)), check_head(head(5, 5))
    assert (enough.classes, enough.dim, enough.enough, enough.generator) == (6, 5, True, True)
    assert (few.enough, few.generator) == (False, False)
    assert few.linear.rank == 5  # five vectors span R^5 linearly, not affinely
    assert few.affine.rank == 4
    assert few.prediction.holds == "no"
    assert "5 classes, 5 dimensions; 6 classes are needed" in str(few.prediction)
    assert "the other 1 dimensions are not determined" in str(few.prediction)


def test_rows_in_a_plane_do_not_generate_however_many_there_are():
    flat = head(100, 5)
    flat[:, 4] = 3.0
    check = check_head(flat)
    assert (check.linear.rank, check.affine.rank, check.generator) == (5, 4, False)
    assert check.affine.condition is None


def test_condition_numbers_are_those_of_the_singular_values():
    stretched = np.concatenate([np.diag([1.0, 2.0, 8.0]), -np.diag([1.0, 2.0, 8.0])])
    check = check_head(stretched)
    assert check.linear.condition == pytest.approx(8)
    assert check.affine.condition == pytest.approx(8)
    assert check.affine.smallest == pytest.approx(math.sqrt(2))


def test_a_float32_head_is_judged_by_float32_rounding():
    rng = np.random.default_rng(0)
    low = (rng.standard_normal((40, 3)) @ rng.standard_normal((3, 8))).astype(np.float32)
    assert check_head(low).linear.rank == 3


def test_balance_is_told_from_labels_and_open_without():
    w = head(6, 3)
    even, none = np.repeat(np.arange(6), 50), check_head(w)
    assert answer(none, "equally frequent").holds == "unknown"
    assert answer(check_head(w, even), "equally frequent").holds == "yes"
    drawn = np.random.default_rng(1).integers(6, size=3000)  # uniform, so counts differ by chance only
    assert answer(check_head(w, drawn), "equally frequent").holds == "yes"
    lopsided = check_head(w, np.concatenate([even, np.zeros(200, dtype=int)]))
    assert (lopsided.least, lopsided.most) == (50, 250)
    assert answer(lopsided, "equally frequent").holds == "no"
    absent = answer(check_head(w, even[even != 4]), "equally frequent")
    assert (absent.holds, absent.because) == ("no", "1 of 6 classes never occur")


def test_what_a_head_cannot_say_stays_unknown():
    prediction = check_head(head(20, 5), np.repeat(np.arange(20), 9)).prediction
    assert prediction.holds == "unknown"
    assert "provided that: latents in clusters on a sphere; the loss is at its minimum" in prediction.sentence
    assert "roeder2020" in str(prediction)


def test_rows_of_unit_length_are_the_third_case():
    w = torch.nn.functional.normalize(torch.tensor(head(20, 5)), dim=-1)
    assert check_head(w).prediction.theorem.endswith("C3")
    assert check_head(2 * w).prediction.theorem.endswith("C4")


def test_a_check_goes_to_json_and_back():
    check = check_head(head(20, 5), np.repeat(np.arange(20), 9))
    assert from_json(to_json(check)) == check


@pytest.mark.parametrize("dim", [2, 3, 5, 10])
def test_diversity_needs_as_many_vectors_as_there_are_quadratic_polynomials_on_the_sphere(dim):
    needed = dim * (dim + 3) // 2
    v = torch.nn.functional.normalize(torch.tensor(head(needed, dim)), dim=-1)
    enough, few = diversity_spread(v), diversity_spread(v[1:])
    assert (enough.rank, enough.of, classes_for_a_rotation(dim)) == (needed, needed, needed)
    assert enough.condition is not None
    assert (few.rank, few.condition) == (needed - 1, None)


def test_diversity_does_not_depend_on_the_basis():
    v = torch.nn.functional.normalize(torch.tensor(head(30, 5)), dim=-1)
    rotation = torch.linalg.qr(torch.tensor(head(5, 5, seed=1))).Q
    here, there = diversity_spread(v), diversity_spread(v @ rotation)
    assert (here.smallest, here.largest) == pytest.approx((there.smallest, there.largest), rel=1e-10)


def test_vectors_with_equal_squares_are_not_diverse_however_many_there_are():
    # Entries +-a: the squares are constant (rank 1), 10 products and 5 values: 16 of 20.
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0], dtype=torch.float64)] * 5) / math.sqrt(5)
    assert len(signs) == 32
    assert affine_spread(signs).rank == 5
    assert diversity_spread(signs).rank == 16


def test_a_head_of_unit_rows_is_told_how_many_classes_fix_a_rotation():
    w = torch.nn.functional.normalize(torch.tensor(head(12, 5)), dim=-1)
    assert "at least d (d + 3) / 2 = 20 different rows; this head has 12" in str(check_head(w))
    assert "d (d + 3) / 2" not in str(check_head(2 * w))


MISTAKES = [
    ((np.ones((1, 5)),), "at least 2 classes, but its shape is"),
    ((np.zeros((4, 5)),), "`head` holds nothing but zeros"),
    ((np.ones(5),), "`head` must have the shape"),
    ((np.full((4, 2), np.nan),), "`head` must be finite"),
    ((head(4, 2), np.array([0.5, 1.0])), "`labels` must hold one whole number for each row"),
    ((head(4, 2), np.array([0, 4])), "`labels` must lie between 0 and 3, .* but they run from 0 to 4"),
]


@pytest.mark.parametrize(("arrays", "sentence"), MISTAKES)
def test_arrays_that_are_no_head_get_a_sentence(arrays, sentence):
    with pytest.raises(BadInput, match=sentence):
        check_head(*arrays)
