import math
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score

from zhat import testing
from zhat.errors import BadInput, TooFewRows
from zhat.metrics import CCA, CKA, PWCCA, SVCCA, Moments, Procrustes, linear_r2, linear_r2_both_ways, mcc, similarities
from zhat.metrics.similarity import principal_components

KINDS = ("random", "rank-deficient", "ill-conditioned", "other units")


def pair(kind="random", seed=0, n=300, d=5, k=7):
    """Two representations that share some directions, in float64."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n, 3))
    z, h = (shared @ rng.standard_normal((3, c)) + 0.7 * rng.standard_normal((n, c)) for c in (d, k))
    if kind == "rank-deficient":
        z = z[:, :3] @ rng.standard_normal((3, d))
        h[:, -1] = h[:, 0] - h[:, 1]
    if kind == "ill-conditioned":  # condition number 1000 between directions of unit columns
        z = z @ np.linalg.qr(rng.standard_normal((d, d)))[0] * np.geomspace(1, 1e-3, d)
        z = z @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    if kind == "other units":
        h = h * np.geomspace(1e-9, 1e9, k) + 5
    return z + 3, h


# --- the same measures from whole matrices, by orthogonal decompositions instead of moments


def basis(x, unit=True):
    x = x - x.mean(0)
    u, s, _ = np.linalg.svd(x / np.linalg.norm(x, axis=0) if unit else x, full_matrices=False)
    return u[:, s > s[0] * 1e-7]


def whole_cca(z, h):
    u, v = basis(z), basis(h)
    rho = np.linalg.svd(u.T @ v, compute_uv=False)
    return rho.sum() / min(z.shape[1], h.shape[1], max(u.shape[1], v.shape[1]))


def whole_svcca(z, h, unit):
    return np.linalg.svd(basis(z, unit)[:, :2].T @ basis(h, unit)[:, :2], compute_uv=False).mean()


def whole_pwcca(z, h):
    u, v = basis(z), basis(h)
    left, rho, _ = np.linalg.svd(u.T @ v, full_matrices=False)
    weight = np.abs((u @ left).T @ (z - z.mean(0))).sum(1)
    return weight @ rho / weight.sum()


def whole_cka(z, h):
    n = len(z)
    centre = np.eye(n) - 1 / n
    a, b = centre @ z @ z.T @ centre, centre @ h @ h.T @ centre
    return (a * b).sum() / math.sqrt((a * a).sum() * (b * b).sum())


def whole_debiased_cka(z, h):
    n, one = len(z), np.ones(len(z))

    def hsic(a, b):
        third = 2 / (n - 2) * (one @ a @ b @ one)
        return np.trace(a @ b) + (one @ a @ one) * (one @ b @ one) / ((n - 1) * (n - 2)) - third

    a, b = z @ z.T, h @ h.T
    np.fill_diagonal(a, 0)
    np.fill_diagonal(b, 0)
    return hsic(a, b) / math.sqrt(hsic(a, a) * hsic(b, b))


def whole_procrustes(z, h):
    z, h = ((m - m.mean(0)) / np.linalg.norm(m - m.mean(0)) for m in (z, h))
    return np.linalg.norm(z.T @ h, "nuc")


WHOLE = [
    (CCA(), whole_cca),
    (SVCCA(2), lambda z, h: whole_svcca(z, h, unit=False)),
    (SVCCA(2, standardised=True), lambda z, h: whole_svcca(z, h, unit=True)),
    (PWCCA(), whole_pwcca),
    (CKA(), whole_cka),
    (CKA(debiased=True), whole_debiased_cka),
    (Procrustes(), whole_procrustes),
]


# Where one column outweighs all others there are no two principal components.
CASES = [(kind, *both) for kind in KINDS for both in WHOLE if (kind, both[0]) != ("other units", SVCCA(2))]


@pytest.mark.filterwarnings("ignore:.* count as empty")
@pytest.mark.parametrize(("kind", "measure", "whole"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_one_pass_agrees_with_whole_matrices(kind, measure, whole):
    for seed in range(3):
        z, h = pair(kind, seed)
        assert measure(z, h, shuffles=0).value == pytest.approx(whole(z, h), abs=1e-8)


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 6))
def test_one_pass_agrees_for_any_shape(seed, d, k):
    z, h = pair(seed=seed, n=100, d=d, k=k)
    for measure, whole in WHOLE:
        if isinstance(measure, SVCCA) and min(d, k) < 2:
            continue
        if isinstance(measure, PWCCA) and d > k:
            continue  # morcos2018 then weighs by the other side
        assert measure(z, h, shuffles=0).value == pytest.approx(whole(z, h), abs=1e-8)


@pytest.mark.parametrize("measure", [CCA(), PWCCA(), CKA(), CKA(debiased=True), Procrustes()], ids=repr)
def test_measures_keep_the_promise_of_their_class_both_ways(measure):
    testing.check_metric(measure)


def maps(d, seed):
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    size = np.exp(rng.uniform(-1, 1, d)) * rng.choice([-1, 1], d)
    return rotation, size, rng.permutation(d)


@given(st.integers(0, 10_000))
def test_svcca_is_blind_to_similarities_or_standardised_to_units_and_to_nothing_more(seed):
    z, h = pair(seed=seed)
    rotation, size, order = maps(h.shape[1], seed)
    plain, unit = SVCCA(2), SVCCA(2, standardised=True)
    turned, rescaled = 3 * h @ rotation + 1, h[:, order] * size + 1
    values = {m: [m(z, x, shuffles=0).value for x in (h, turned, rescaled)] for m in (plain, unit)}
    assert values[plain][1] == pytest.approx(values[plain][0], abs=1e-8)
    assert values[unit][2] == pytest.approx(values[unit][0], abs=1e-8)
    assert abs(values[plain][2] - values[plain][0]) > 1e-6
    assert abs(values[unit][1] - values[unit][0]) > 1e-6


@given(st.integers(0, 10_000))
def test_cca_is_symmetric_and_blind_on_both_sides_and_pwcca_weighs_by_the_first(seed):
    z, h = pair(seed=seed)
    rotation, size, _ = maps(z.shape[1], seed)
    bent = z @ rotation * size
    assert CCA()(bent, h, shuffles=0).value == pytest.approx(CCA()(h, z, shuffles=0).value, abs=1e-8)
    assert abs(PWCCA()(bent, h, shuffles=0).value - PWCCA()(z, h, shuffles=0).value) > 1e-7


@pytest.mark.filterwarnings("ignore:.* count as empty")
def test_directions_that_one_side_lacks_count_nothing():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((400, 4))
    lost = z[:, [0, 0, 2, 3]]
    assert CCA()(z, lost).value == pytest.approx(0.75, abs=1e-6)
    assert CCA()(lost, lost @ rng.standard_normal((4, 4))).value == pytest.approx(1, abs=1e-6)  # neither has it
    assert CCA()(z, z[:, :2]).value == pytest.approx(1, abs=1e-6)  # the narrower side has no column for it
    assert PWCCA()(z, z[:, :2]).value == pytest.approx(0.5, abs=0.05)
    assert PWCCA()(z[:, :2], z).value == pytest.approx(1, abs=1e-6)


def nearly_flat(small, n=2000, offset=0.0, dtype=np.float64):
    """Two latents, and two columns that differ by a small part of the second."""
    a, b = np.random.default_rng(0).standard_normal((2, n, 1))
    return np.hstack([a, b]), (np.hstack([a, a + small * b]) + offset).astype(dtype)


@pytest.mark.parametrize("measure", [CCA(), PWCCA()], ids=repr)
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize(("small", "within"), [(2e-4, 1e-7), (1e-5, 1e-4), (1e-6, 1e-2)])
def test_canonical_correlations_are_affine_invariant_up_to_the_stated_condition(measure, offset, small, within):
    z, h = nearly_flat(small, offset=offset)
    assert measure(z, h, shuffles=0).value == pytest.approx(1, abs=within)


def test_a_direction_below_rounding_counts_as_empty_and_a_warning_says_so():
    for small, offset, dtype in ((1e-7, 0, np.float64), (1e-7, 0, np.float32), (1e-6, 1e4, np.float32)):
        z, h = nearly_flat(small, offset=offset, dtype=dtype)
        with pytest.warns(UserWarning, match="`h` has 2 columns that vary, but 1 directions.* count as empty"):
            assert CCA()(z, h, shuffles=0).value == pytest.approx(0.5, abs=1e-6)


DEFICIENT = {
    "a duplicate": lambda x: torch.cat([x, x[:, :1]], 1),
    "a sum": lambda x: torch.cat([x, x.sum(1, keepdim=True)], 1),
    "a product": lambda x: x @ torch.randn(4, 6, generator=torch.Generator().manual_seed(1), dtype=x.dtype),
    "a sum around 1000": lambda x: torch.cat([x + 1000, (x + 1000).sum(1, keepdim=True)], 1),
}


@pytest.mark.filterwarnings("ignore:.* count as empty")
@pytest.mark.parametrize("kind", DEFICIENT)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("n", [100, 20_000])
def test_rounding_is_no_direction(kind, dtype, n):
    """Two deficient sides share four directions; what rounding adds to either is neither shared nor counted."""
    x = torch.randn(n, 4, generator=torch.Generator().manual_seed(0), dtype=dtype)
    h = DEFICIENT[kind](x)
    score = CCA()(h.flip(1), h, shuffles=0)
    assert len(score.per_latent) == 4
    assert score.value == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-140, 1e-60, 1e60, 1e140])
@pytest.mark.parametrize("measure", [CCA(), PWCCA(), SVCCA(2), CKA(), CKA(debiased=True), Procrustes()], ids=repr)
def test_the_scale_of_a_side_does_not_matter(measure, scale):
    z, h = pair()
    expected = measure(z, h, shuffles=1)
    found = measure(scale * z, scale * h, shuffles=1)
    assert (found.value, found.chance) == pytest.approx((expected.value, expected.chance), abs=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e160, 1e300])
def test_squares_beyond_float64_get_a_sentence_and_never_a_score(scale):
    z, h = pair()
    for measure in (CCA(), CKA(), Procrustes(), linear_r2, mcc):
        with pytest.raises(BadInput, match=r"the squares of `h` leave the range of float64 .* Rescale"):
            measure(z, scale * h)


def test_noise_scores_its_chance_level_and_debiased_cka_none():
    rng = np.random.default_rng(0)
    z, h = rng.standard_normal((1000, 50)), rng.standard_normal((1000, 50))
    for measure in (CCA(), SVCCA(40), PWCCA(), CKA(), Procrustes()):
        score = measure(z, h, shuffles=10)
        assert score.value == pytest.approx(score.chance, rel=0.15)
        assert score.chance_high >= score.chance
    # Squared canonical correlations of noise have the mean k / (n - 1); so has in-sample R2.
    assert np.mean(np.square(CCA()(z, h).per_latent)) == pytest.approx(50 / 999, rel=0.1)
    assert abs(CKA(debiased=True)(z, h).value) < 0.01 < CKA()(z, h).value


def test_too_few_rows_are_refused_with_the_number_needed():
    z, h = pair(n=59)
    for measure in (CCA(), PWCCA(), CKA()):
        with pytest.raises(
            TooFewRows, match=r"59 rows cannot tell .* of 5 and 7 dimensions .* at least 60 rows"
        ) as caught:
            measure(z, h)
        assert caught.value.needed == 60
        with pytest.raises(TooFewRows):
            measure.of(Moments.of(z, h))
    with pytest.raises(TooFewRows, match="at least 60"):
        SVCCA(6)(z, h)
    with pytest.raises(TooFewRows, match="at least 30"):
        Procrustes()(z[:29], h[:29])
    with pytest.raises(TooFewRows, match="at least 80"):
        linear_r2_both_ways(z, h)


def test_shards_merged_through_moments_are_the_whole():
    z, h = pair()
    parts = sum((Moments.of(z[i : i + 50], h[i : i + 50]) for i in range(50, 300, 50)), Moments.of(z[:50], h[:50]))
    for measure in (CCA(), SVCCA(2), PWCCA(), CKA(), Procrustes()):
        assert measure.of(parts).value == pytest.approx(measure(z, h).value, abs=1e-10)
    with pytest.raises(BadInput, match="needs squared lengths of single rows, but moments hold none"):
        CKA(debiased=True).of(parts)


def test_several_measures_share_their_passes():
    z, h = pair()
    measures = (CCA(), CKA(debiased=True), Procrustes())
    together = similarities(z, h, measures=measures, shuffles=2, seed=3)
    alone = [m(z, h, shuffles=2, seed=3) for m in measures]
    assert [s.name for s in together] == ["mean CCA", "linear CKA", "Procrustes"]
    for one, other in zip(together, alone, strict=True):
        assert (one.value, one.chance) == pytest.approx((other.value, other.chance), abs=1e-12)
    assert [s.name for s in similarities(z, h)] == ["mean CCA", "PWCCA", "linear CKA", "Procrustes"]


def test_r2_both_ways_is_held_out_and_knows_its_direction():
    z, h = pair(n=4000)
    back, forth = linear_r2_both_ways(z, h)
    assert back.held_out
    assert back.n + back.n_fit == 4000
    assert (len(back.per_latent), len(forth.per_latent)) == (5, 7)
    ones = np.ones((4000, 1))
    for score, x, y in ((back, h, z), (forth, z, h)):
        design = np.hstack([x, ones])
        inside = r2_score(y, design @ np.linalg.lstsq(design, y, rcond=None)[0])
        assert score.value == pytest.approx(inside, abs=0.02)
    rng = np.random.default_rng(0)
    noise = linear_r2_both_ways(rng.standard_normal((500, 3)), rng.standard_normal((500, 20)))
    assert noise[0].value < 0


def test_memory_mapped_matrices_are_never_copied_whole(tmp_path):
    rng = np.random.default_rng(0)
    n, d = 150_000, 40
    z = rng.standard_normal((n, d)).astype(np.float32)
    for name in ("z", "h"):
        np.save(tmp_path / f"{name}.npy", z + (name == "h") * rng.standard_normal((n, d)).astype(np.float32))
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("z", "h")]
    whole = [np.array(m) for m in mapped]
    tracemalloc.start()  # sees what NumPy copies; a read-only map would otherwise be copied to be writable
    found = similarities(*mapped, measures=(CCA(), CKA(debiased=True)), shuffles=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < z.nbytes / 3
    expected = similarities(*whole, measures=(CCA(), CKA(debiased=True)), shuffles=1)
    assert [s.value for s in found] == [s.value for s in expected]


def test_a_collapsed_representation_gets_a_sentence_and_never_a_score():
    z, h = pair()
    flat = np.full_like(h, 1e6 + 0.1)
    for measure in (CCA(), SVCCA(2), PWCCA(), CKA(), CKA(debiased=True), Procrustes()):
        with pytest.raises(BadInput, match="`h` is the same in all 300 rows"):
            measure(z, flat)
    half = h.copy()
    half[:, 0] = 1e6 + 0.1  # one constant column says nothing and harms nothing
    assert CCA()(z, half).value == pytest.approx(CCA()(z, h[:, 1:]).value, abs=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda z, h: SVCCA(6)(z, h), "asked for 6 components, but `z` varies in 5 directions only. Ask for fewer"),
        (lambda z, h: SVCCA(0), "`components` must be a whole number of at least 1"),
        (lambda z, h: CCA()(z, h, shuffles=-1), "`shuffles` must be a whole number of at least 0"),
        (lambda z, h: CCA()(z[:200], h), "`h` has 300 rows and `z` has 200"),
        (lambda z, h: CCA()(z.tolist(), h), "`z` must be a NumPy array, a torch tensor or a data frame"),
        (lambda z, h: CCA()(torch.tensor(z)[0], h), "`z` must have the shape"),
    ],
)
def test_mistakes_get_a_sentence(call, message):
    with pytest.raises(BadInput, match=message):
        call(*pair())


@pytest.mark.parametrize("standardised", [False, True])
def test_svcca_is_the_product_of_principal_components(standardised):
    z, h = (torch.from_numpy(m) for m in pair(d=6, k=8))
    u, v = (principal_components(m, 3, standardised=standardised) for m in (z, h))
    assert torch.allclose(u.T @ u, torch.eye(3, dtype=torch.float64), atol=1e-10)
    rho = torch.linalg.svdvals(u.T @ v)
    assert torch.allclose(rho, torch.tensor(SVCCA(3, standardised)(z, h, shuffles=0).per_latent).double(), atol=1e-10)
    with pytest.raises(BadInput, match="7 components were asked for, but `z` varies in 6 directions only"):
        principal_components(z, 7)


def test_held_out_canonical_correlations_of_noise_are_around_zero_and_of_a_copy_one():
    generator = torch.Generator().manual_seed(0)
    z, noise = torch.randn(600, 20, generator=generator), torch.randn(600, 20, generator=generator)
    in_sample, held_out = CCA()(z, noise, shuffles=0), CCA().held_out(z, noise)
    assert in_sample.value > 0.1
    assert abs(held_out.value) < 4 / math.sqrt(300 * 20)
    assert (held_out.held_out, held_out.n, held_out.n_fit) == (True, 300, 300)
    copy = CCA().held_out(z, z @ torch.randn(20, 20, generator=generator) + 1)
    assert copy.value == pytest.approx(1, abs=1e-9)


@pytest.mark.filterwarnings("ignore:.* count as empty")
def test_held_out_canonical_correlations_count_the_directions_of_the_richer_side():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(400, 4, generator=generator)
    flat = torch.cat([z[:, :2], z[:, :2]], 1)  # four columns, two directions
    assert CCA().held_out(z, flat).value == pytest.approx(0.5, abs=1e-9)
    with pytest.raises(TooFewRows, match="cannot tell mean CCA"):
        CCA().held_out(z[:60], flat[:60])


@pytest.mark.parametrize("small", [1e-5, 1e-6])
def test_held_out_correlations_of_ill_conditioned_columns_stay_at_most_one(small):
    z = torch.randn(2000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    h = torch.stack([z[:, 0], z[:, 0] + small * z[:, 1]], 1)
    found = CCA().held_out(z, h)
    assert max(found.per_latent) <= 1
    assert found.value == pytest.approx(1, abs=2e-3)
