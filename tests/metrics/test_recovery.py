import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from zhat.equivalence import (
    AFFINE,
    COMPONENTWISE,
    IDENTITY,
    INVERTIBLE,
    LINEAR,
    ORTHOGONAL,
    PERMUTATION,
    SCALED_PERMUTATION,
    SIGNED_PERMUTATION,
    SIMILARITY,
)
from zhat.errors import BadInput, TooFewRows
from zhat.metrics import (
    ALIGNABLE,
    Moments,
    Recovery,
    align,
    distance_from_orthogonal,
    linear_r2,
    mcc,
    pearson,
    profile,
    singular_values,
    spearman,
)
from zhat.testing import check_metric

METRICS = [
    *(Recovery(up_to, repeats=0, shuffles=2) for up_to in ALIGNABLE),
    *(Recovery(up_to, shift=True, repeats=0, shuffles=2) for up_to in ALIGNABLE),
    Recovery(AFFINE, holdout=0, repeats=0, shuffles=2),
    Recovery(SCALED_PERMUTATION, agree=pearson, shift=True, repeats=0, shuffles=2),
    Recovery(COMPONENTWISE, agree=spearman, repeats=0, shuffles=2),
]


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_metrics_keep_their_contract_both_ways(metric):
    check_metric(metric)


def test_every_class_with_a_best_map_is_in_the_list():
    assert {metric.up_to for metric in METRICS} == {*ALIGNABLE, COMPONENTWISE}


def data(n=600, d=4, k=4, noise=0.5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.rand(n, d, generator=generator)
    h = torch.tanh(3 * z @ torch.randn(d, k, generator=generator)) + noise * torch.randn(n, k, generator=generator)
    return z, h


def test_in_sample_r2_is_the_papers_scikit_learn_recipe():
    z, h = data(k=6)
    paper = r2_score(z, LinearRegression().fit(h.double(), z.double()).predict(h.double()))
    assert linear_r2(z, h, holdout=0).value == pytest.approx(paper, rel=1e-9)


def test_in_sample_mcc_is_the_papers_recipe():
    z, h = data()
    correlation = np.abs(np.corrcoef(z.T, h.T)[:4, 4:])
    rows, columns = linear_sum_assignment(-correlation)
    assert mcc(z, h, holdout=0).value == pytest.approx(correlation[rows, columns].mean(), rel=1e-6)
    assert mcc(z, h, holdout=0).name == "MCC"


@given(st.integers(0, 1000))
def test_mcc_is_one_for_a_permuted_rescaled_shifted_copy(seed):
    z, _ = data(n=60, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    size = (torch.rand(4, generator=generator) + 0.1) * (1 - 2 * torch.randint(2, (4,), generator=generator))
    h = z[:, torch.randperm(4, generator=generator)] * size + 7
    assert mcc(z, h).value == pytest.approx(1, abs=1e-5)
    assert mcc(z, h.double() ** 3, rank=True).value == pytest.approx(1, abs=1e-5)


def test_with_other_numbers_of_coordinates_latents_left_over_count_nothing():
    z, _ = data(n=2000)
    assert mcc(z, z[:, :2]).value == pytest.approx(0.5, abs=1e-6)
    wide = torch.cat([torch.randn(2000, 5), z], 1)
    assert mcc(z, wide).value == pytest.approx(1, abs=1e-6)
    assert IDENTITY not in [s.up_to for s in profile(z, wide)]


def test_independent_noise_scores_nothing_held_out_where_in_sample_scores_lie():
    generator = torch.Generator().manual_seed(0)
    z, h = torch.randn(2100, 5, generator=generator), torch.randn(2100, 200, generator=generator)
    inside = Recovery(AFFINE, holdout=0, repeats=0)(z[:1010], h[:1010])
    assert inside.value == pytest.approx(0.2, abs=0.03)  # k / (n - 1)
    assert inside.chance == pytest.approx(inside.value, abs=0.03)  # and the chance level says so
    outside = Recovery(AFFINE, repeats=0)(z, h)
    assert outside.value < 0
    assert outside.chance < 0


def test_too_few_rows_are_refused_with_the_number_needed():
    z, h = data(n=100, k=60)
    with pytest.raises(
        TooFewRows, match="100 rows cannot tell a map up to affine .* Bring at least 610 rows"
    ) as caught:
        linear_r2(z, h)
    assert caught.value.needed == 610
    z, h = data(n=610, k=60)
    assert linear_r2(z, h).n == 305
    with pytest.raises(TooFewRows):
        singular_values(z[:10], h[:10])


def test_a_profile_holds_one_score_for_each_class():
    z, _ = data()
    scores = profile(z, z @ torch.linalg.qr(torch.randn(4, 4)).Q, shuffles=3)
    assert [s.up_to for s in scores] == list(ALIGNABLE)
    assert scores[ORTHOGONAL].value == pytest.approx(1, abs=1e-6)
    assert scores[LINEAR].shift is False
    assert scores[AFFINE].shift is True


def test_singular_values_are_those_of_the_planted_map():
    z, _ = data(n=500)
    u, v = (torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(s))).Q for s in (1, 2))
    h = z @ (u @ torch.diag(torch.tensor([3.0, 2.0, 1.0, 0.5])) @ v.T).T + 1
    assert np.allclose(singular_values(z, h), [3, 2, 1, 0.5], atol=1e-5)


def test_distance_from_orthogonal_is_reizingers_mae():
    z, _ = data(n=500)
    q = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(1))).Q
    assert distance_from_orthogonal(z, 10 * z @ q, scale=10.0) == pytest.approx(0, abs=1e-6)
    assert distance_from_orthogonal(z, 8 * z @ q, scale=10.0) == pytest.approx(1 / 8 - 1 / 10, abs=1e-6)
    assert distance_from_orthogonal(z, z[:, :2]) == pytest.approx(0.5, abs=0.3)  # two of four latents are lost


BAD = [
    (torch.randn(50, 2), torch.randn(49, 2), "`h` has 49 rows and `z` has 50; .* Did a data loader drop"),
    (torch.randn(50), torch.randn(50, 2), r"`z` must have the shape \(rows, columns\), but \(50,\) came"),
    (torch.randn(50, 2), torch.randn(50, 2, 2), "`h` must have the shape"),
    (torch.randn(50, 2), torch.randn(50, 0), "`h` has no columns"),
    (
        torch.full((50, 2), torch.nan),
        torch.randn(50, 2),
        "100 of 100 values are NaN or infinite .first at row 0, column 0",
    ),
    (torch.randn(50, 2), torch.tensor([[1.0, 2.0]]).expand(50, 2), "`h` is constant in 2 of 2 columns"),
    (
        torch.cat([torch.randn(50, 1), torch.ones(50, 1)], 1),
        torch.randn(50, 2),
        r"`z` is constant in 1 of 2 columns .column 1",
    ),
    (np.array([["a", "b"]] * 50), torch.randn(50, 2), "`z` must hold real numbers, but its dtype is"),
    (torch.randn(50, 2, dtype=torch.complex64), torch.randn(50, 2), "`z` must hold real numbers in a dense array"),
    (
        [[1.0, 2.0]] * 50,
        torch.randn(50, 2),
        "`z` must be a NumPy array, a torch tensor or a data frame, but a list came",
    ),
]


@pytest.mark.parametrize(("z", "h", "message"), BAD)
def test_bad_arrays_get_a_sentence_and_never_a_score(z, h, message):
    for metric in (linear_r2, mcc):
        with pytest.raises(BadInput, match=message):
            metric(z, h)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Recovery(COMPONENTWISE), "R2 is not blind to bending. Use agree=spearman"),
        (
            lambda: Recovery(ORTHOGONAL, agree=pearson),
            "Pearson is blind to maps up to scaled permutation, so it cannot",
        ),
        (lambda: Recovery(AFFINE, agree=spearman), "Spearman is blind to maps up to componentwise, so it cannot"),
        (lambda: Recovery(INVERTIBLE), "no best map can be fitted up to INVERTIBLE"),
        (lambda: Recovery(AFFINE, holdout=1.0), "`holdout` must be at least 0 and below 1"),
        (lambda: Recovery(AFFINE, repeats=-1), "`repeats` must be a whole number of at least 0"),
        (lambda: distance_from_orthogonal(*data(), scale=0.0), "`scale` must be above 0"),
    ],
)
def test_bad_metrics_get_a_sentence(make, message):
    with pytest.raises(BadInput, match=message):
        make()


def test_a_constant_latent_among_the_rows_read_is_refused():
    z = torch.zeros(40, 1)
    z[0] = 1.0  # varies overall, but for about half of the seeds not among the held-out rows
    seeds = [s for s in range(8) if 0 not in held_out_rows(40, s)]
    assert 0 < len(seeds) < 8
    for seed in seeds:
        with pytest.raises(BadInput, match="constant among the held-out rows"):
            Recovery(AFFINE, seed=seed, repeats=0, shuffles=0)(z, torch.randn(40, 1))


def held_out_rows(n, seed):
    every = torch.arange(n)[:, None].float()
    (_, _), (read, _) = Recovery(AFFINE, seed=seed)._split(every, every)
    return read.flatten().tolist()


def test_arrays_of_every_usual_kind_give_the_same_score():
    z, h = data(n=200)
    expected = linear_r2(z.double(), h.double()).value
    array = h.double().numpy()
    frozen = array.copy()
    frozen.flags.writeable = False
    kinds = [
        array,
        frozen,
        np.asfortranarray(array),
        array[:, ::-1][:, ::-1],
        array.astype(">f8"),
        array.astype(np.longdouble),
    ]
    for kind in kinds:
        assert linear_r2(z.double(), kind).value == pytest.approx(expected, abs=1e-12)
    for kind in (h.half(), h.bfloat16(), array.astype(np.float16)):
        assert linear_r2(z, kind).value == pytest.approx(expected, abs=0.02)
    assert linear_r2(z.double(), np.ma.masked_array(array)).value == pytest.approx(expected, abs=1e-12)
    with pytest.raises(BadInput, match="has masked values"):
        linear_r2(z, np.ma.masked_less(array, 0))
    with pytest.raises(BadInput, match="dense array"):
        linear_r2(z, h.to_sparse())


def test_a_metric_sent_to_another_process_gives_the_same_score():
    metric = Recovery(SCALED_PERMUTATION, agree=pearson, shift=True, repeats=0, shuffles=0)
    for seed in range(20):
        z, h = data(n=60, seed=seed)
        assert pickle.loads(pickle.dumps(metric))(z, h) == metric(z, h)


def test_a_resample_without_variance_does_not_break_the_interval():
    z = torch.zeros(60, 1)
    z[::6] = 1.0
    h = z + 0.1 * torch.randn(60, 1, generator=torch.Generator().manual_seed(0))
    score = linear_r2(z, h)
    assert -1 < score.low <= score.value <= score.high <= 1
    rare = torch.zeros(200, 1)
    rare[:3] = 1.0

    def ten():
        return [Recovery(AFFINE, seed=seed)(rare, rare + 0.1 * torch.randn(200, 1)) for seed in range(10)]

    with pytest.raises(BadInput, match="no interval can be given|constant among the held-out rows"):
        ten()


STANDARD = torch.randn(2000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
FAR = {
    "seconds since 1970": (1.7e9 + 1000 * STANDARD, STANDARD),
    "a mean of 1e7": (STANDARD, STANDARD + 1e7),
    "units from 1e-12 to 1e12": (STANDARD + 0.03, STANDARD * torch.tensor([1e-12, 1e12], dtype=torch.float64)),
    "float32 with a mean of 1e5": (STANDARD, (STANDARD + 1e5).float()),
}


@pytest.mark.parametrize("rank", [False, True])
@pytest.mark.parametrize("which", FAR)
def test_mcc_does_not_mind_offsets_and_units(which, rank):
    z, h = FAR[which]
    score = mcc(z, h, rank=rank)
    assert score.value == pytest.approx(1, abs=1e-4 if h.dtype == torch.float32 else 1e-9)
    assert abs(score.chance) < 4 / math.sqrt(1000)


def test_the_interval_holds_its_own_value_though_rounding_spoils_the_rows():
    score = mcc(STANDARD, (STANDARD + 1e6).float())
    assert score.low <= score.value <= score.high
    assert score.high - score.low < 1e-3


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
@pytest.mark.parametrize("up_to", [c for c in ALIGNABLE if c is not AFFINE], ids=str)
def test_maps_without_an_offset_are_found_behind_one(up_to, offset):
    """B = A M with a mean of A up to 1e8: the map without a shift is exact up to rounding of the data."""
    generator = torch.Generator().manual_seed(1)
    square = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    order, turn = torch.eye(4, dtype=torch.float64)[[2, 0, 3, 1]], torch.linalg.qr(square).Q
    matrix = {
        IDENTITY: torch.eye(4, dtype=torch.float64),
        PERMUTATION: order,
        SIGNED_PERMUTATION: order * torch.tensor([1.0, -1, -1, 1]),
        SCALED_PERMUTATION: order * torch.tensor([0.5, -2, -1, 3]),
        ORTHOGONAL: turn,
        SIMILARITY: 1.7 * turn,
        LINEAR: turn @ torch.diag(torch.tensor([0.5, 1, 2, 3], dtype=torch.float64)) @ turn,
    }[up_to]
    h = torch.randn(1000, 4, generator=generator, dtype=torch.float64) + offset
    z = h @ matrix.T
    score = Recovery(up_to, repeats=0, shuffles=0)(z, h)
    assert 1 - score.value < 1e-14 + (1e-15 * offset) ** 2
    for tighter in ALIGNABLE:
        if tighter < up_to:
            assert Recovery(tighter, repeats=0, shuffles=0)(z, h).value < 0.999


def test_a_constant_column_is_an_offset_for_a_linear_map():
    z = STANDARD + 5
    with_one = torch.cat([STANDARD[:, :1] * 2, STANDARD[:, 1:], torch.full((2000, 1), 7.0, dtype=torch.float64)], 1)
    found = align(Moments.of(z, with_one), LINEAR)
    assert torch.allclose(found(with_one), z)
    shares = torch.cat([STANDARD, 3 - STANDARD.sum(1, keepdim=True)], 1)  # rows that sum to 3
    assert torch.allclose(align(Moments.of(z, shares), LINEAR)(shares), z)


@pytest.mark.parametrize("scale", [2e-155, 1e-150, 1e150])
def test_every_class_is_scored_near_the_ends_of_float64(scale):
    z = torch.randn(400, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = profile(z, scale * z)
    assert found[SCALED_PERMUTATION].value == pytest.approx(1)
    assert found[AFFINE].value == pytest.approx(1)
