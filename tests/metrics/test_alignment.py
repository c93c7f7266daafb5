import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from zhat.equivalence import (
    AFFINE,
    COMPONENTWISE,
    IDENTITY,
    LINEAR,
    ORTHOGONAL,
    PERMUTATION,
    SCALED_PERMUTATION,
    SIGNED_PERMUTATION,
    SIMILARITY,
)
from zhat.errors import BadInput
from zhat.metrics import ALIGNABLE, Moments, align


def data(n=200, d=3, k=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, d, generator=generator, dtype=torch.float64)
    mixed = z @ torch.randn(d, k, generator=generator, dtype=torch.float64)
    return z, mixed + 0.5 * torch.randn(n, k, generator=generator, dtype=torch.float64) + 0.3


def error(z, h, up_to, shift=False):
    return float((align(Moments.of(z, h), up_to, shift=shift)(h) - z).square().sum())


@pytest.mark.parametrize("shift", [False, True])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_looser_class_never_fits_worse(shift, k):
    z, h = data(k=k)
    for tight, loose in itertools.product(ALIGNABLE, repeat=2):
        # SCALED_PERMUTATION matches by explained share, not by squared error, so it is left out as the looser one.
        if IDENTITY in (tight, loose) and k != 3:
            continue
        if tight <= loose and loose is not SCALED_PERMUTATION:
            assert error(z, h, loose, shift) <= error(z, h, tight, shift) + 1e-9


def test_a_map_takes_rows_of_any_precision():
    z, h = data()
    best = align(Moments.of(z, h), AFFINE)
    torch.testing.assert_close(best(h.float()), best(h), atol=1e-4, rtol=0)


@given(st.integers(0, 200), st.booleans())
def test_permutations_are_the_best_of_all(seed, signed):
    z, h = data(seed=seed)
    signs = list(itertools.product([1.0, -1.0], repeat=3)) if signed else [(1.0, 1.0, 1.0)]
    best = min(
        float((h[:, list(order)] * torch.tensor(sign, dtype=torch.float64) - z).square().sum())
        for order in itertools.permutations(range(3))
        for sign in signs
    )
    assert error(z, h, SIGNED_PERMUTATION if signed else PERMUTATION) == pytest.approx(best)


def test_rotations_are_stationary_and_orthogonal():
    z, h = data()
    for up_to in (ORTHOGONAL, SIMILARITY):
        matrix = align(Moments.of(z, h), up_to).matrix
        scale = matrix.norm() / 3**0.5
        assert torch.allclose(matrix @ matrix.T / scale**2, torch.eye(3, dtype=torch.float64), atol=1e-10)
        best = float((h @ matrix.T - z).square().sum())
        for _ in range(20):  # no nearby rotation is better
            turn = torch.matrix_exp(0.05 * (lambda a: a - a.T)(torch.randn(3, 3, dtype=torch.float64)))
            assert float((h @ (turn @ matrix).T - z).square().sum()) >= best
    assert error(z, h, SIMILARITY) <= min(error(z, s * h, ORTHOGONAL) for s in (0.3, 0.5, 0.8, 1.2))


@pytest.mark.parametrize(("up_to", "shift"), [(LINEAR, False), (AFFINE, True)])
def test_least_squares_is_torchs(up_to, shift):
    z, h = data(k=5)
    fitted = align(Moments.of(z, h), up_to)
    design = torch.cat([h, torch.ones(len(h), 1, dtype=torch.float64)], 1) if shift else h
    solution = torch.linalg.lstsq(design, z).solution
    assert torch.allclose(fitted.matrix, solution[:5].T, atol=1e-9)
    if shift:
        assert torch.allclose(fitted.offset, solution[5], atol=1e-9)


def test_a_duplicated_or_empty_direction_does_no_harm():
    z, h = data()
    worse = torch.cat([h, h[:, :1], torch.zeros(len(h), 1, dtype=torch.float64)], 1)
    assert error(z, worse, AFFINE) == pytest.approx(error(z, h, AFFINE), rel=1e-9)


def test_small_units_are_not_mistaken_for_empty_directions():
    z, _ = data()
    h = z * torch.tensor([1.0, 1e-9, 1e9], dtype=torch.float64)
    assert error(z, h, LINEAR) < 1e-12


def test_more_or_fewer_coordinates_than_latents():
    z, _ = data(d=4)
    more = torch.cat([torch.randn(200, 2, dtype=torch.float64), z[:, [3, 1, 0, 2]]], 1)
    fewer = z[:, [2, 0]]
    assert error(z, more, PERMUTATION) == 0
    lost = float(z[:, [1, 3]].square().sum())
    for up_to in (PERMUTATION, SIGNED_PERMUTATION, SCALED_PERMUTATION):
        assert error(z, fewer, up_to) == pytest.approx(lost)
    with pytest.raises(BadInput, match="as many coordinates as latents, but there are 2 and 4"):
        error(z, fewer, IDENTITY)


def test_a_rotated_copy_is_found_among_more_coordinates():
    z, _ = data()
    generator = torch.Generator().manual_seed(5)
    noise = 2 * torch.randn(200, 2, generator=generator, dtype=torch.float64)
    turn = torch.linalg.qr(torch.randn(5, 5, generator=generator, dtype=torch.float64)).Q
    for up_to, size in ((ORTHOGONAL, 1.0), (SIMILARITY, 3.0)):
        assert error(z, size * torch.cat([z, noise], 1) @ turn.T, up_to) < 1e-6


def test_a_class_without_a_best_map_is_refused():
    with pytest.raises(BadInput, match="no best map can be fitted up to COMPONENTWISE"):
        error(*data(), COMPONENTWISE)
