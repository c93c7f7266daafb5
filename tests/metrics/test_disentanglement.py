import math

import numpy as np
import pytest
import torch
from scipy.linalg import hadamard

from zhat.audit import decode
from zhat.errors import BadInput
from zhat.metrics import Factor, dci, mig, sap
from zhat.metrics.disentanglement import _information
from zhat.results import from_json, to_json


def rows(n=4000, k=3, seed=0):
    random = np.random.default_rng(seed)
    z = random.uniform(size=(n, k))
    return random, z, [Factor.real(f"z{j}", z[:, j]) for j in range(k)]


def test_dci_of_a_hand_computed_matrix():
    importance = torch.tensor([[3.0, 1.0], [0.0, 2.0], [0.0, 0.0]])
    first = 1 + 0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)  # the first coordinate serves both factors
    wanted_d = 4 / 6 * first + 2 / 6 * 1
    second = (
        1 + (1 / 3) * math.log(1 / 3, 3) + (2 / 3) * math.log(2 / 3, 3)
    )  # the second factor lies in two coordinates
    d, c, each = dci(importance)
    assert d == pytest.approx(wanted_d)
    assert each == pytest.approx((1.0, second))
    assert c == pytest.approx((1 + second) / 2)


def test_dci_of_even_importances_is_0_and_of_none_is_0():
    assert dci(torch.ones(4, 3))[:2] == pytest.approx((0.0, 0.0), abs=1e-9)
    assert dci(torch.zeros(4, 3)) == (0.0, 0.0, (0.0, 0.0, 0.0))


def test_information_of_a_hand_computed_table():
    a, b = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert _information(a, b) == pytest.approx(0.0)
    assert _information(a, a) == pytest.approx(math.log(2))
    c = np.array([0, 0, 0, 1])
    wanted = math.log(2) - 0.75 * (-(2 / 3) * math.log(2 / 3) - (1 / 3) * math.log(1 / 3))
    assert _information(a, c) == pytest.approx(wanted)


def test_mig_of_a_hand_computed_code():
    bit = np.tile([0, 0, 1, 1], 100)
    other = np.tile([0, 1, 0, 1], 100)
    factor = [Factor.categorical("bit", bit)]
    assert mig(factor, np.stack([bit, other], 1).astype(float))[0] == pytest.approx(1.0)
    assert mig(factor, np.stack([bit, bit, other], 1).astype(float))[0] == pytest.approx(0.0)


def test_a_code_of_one_coordinate_for_each_factor_scores_1():
    _, z, factors = rows()
    d, c, _ = dci(torch.eye(3))
    assert (d, c) == (1.0, 1.0)
    h = -2 * z[:, [2, 0, 1]] + 1
    assert mig(factors, h, bins=10)[0] > 1 - 3 * 81 / (2 * 4000) / math.log(10)  # what counting overstates
    assert sap(factors, h)[0] > 0.99


def test_a_rotated_code_scores_low_though_it_holds_everything():
    _, z, factors = rows(k=4)
    h = z @ hadamard(4) / 2
    assert mig(factors, h)[0] < 0.02
    assert sap(factors, h)[0] < 0.05
    found = decode(h, {f"z{j}": z[:, j] for j in range(4)}, disentanglement=True)
    assert all(s.value > 0.999 for s in found.scores)
    assert found.disentanglement.disentanglement < 0.01


def test_noise_scores_near_0():
    random, z, factors = rows()
    noise = random.normal(size=(4000, 5))
    assert mig(factors, noise)[0] < 0.02
    assert sap(factors, noise)[0] < 0.005
    found = decode(noise, {f"z{j}": z[:, j] for j in range(3)}, disentanglement=True).disentanglement
    assert found.disentanglement == found.completeness == 0.0
    assert found.informativeness < 0.01


def test_gaps_are_blind_to_reordering_flipping_and_rescaling_and_mig_to_bending():
    random, z, factors = rows()
    h = z + 0.3 * random.normal(size=z.shape)
    moved = h[:, [1, 2, 0]] * [-2.0, 0.1, 30.0] + 4
    assert mig(factors, moved)[0] == pytest.approx(mig(factors, h)[0], abs=0.01)
    assert sap(factors, moved)[0] == pytest.approx(sap(factors, h)[0], abs=1e-9)
    assert mig(factors, np.exp(h))[0] == pytest.approx(mig(factors, h)[0], abs=1e-12)


def test_categories_are_named_by_the_nearest_mean_along_one_coordinate():
    random = np.random.default_rng(0)
    names = random.integers(0, 4, 2000)
    h = np.stack([names * 5.0 + random.normal(size=2000) * 0.1, random.normal(size=2000)], 1)
    assert sap([Factor.categorical("names", names)], h)[0] == pytest.approx(1.0, abs=0.05)


def test_a_decoding_carries_all_three_with_their_warnings():
    random, z, _ = rows(1500)
    angle = random.uniform(0, 360, 1500)
    turn = np.radians(angle)
    h = np.concatenate([z, np.cos(turn)[:, None], np.sin(turn)[:, None]], 1)
    known = {"a": z[:, 0], "b": z[:, 0] + 0.5 * z[:, 1], "angle": angle, "noise": random.normal(size=1500)}
    found = decode(h, known, disentanglement=True)
    said = found.disentanglement
    assert from_json(to_json(found)) == found
    assert set(said.per_factor) == set(known)
    assert said.mig_range[0] <= said.mig <= said.mig_range[1]
    text = "; ".join(said.warnings)
    for words in (
        "a rotated code",
        "depends on how values are cut",
        "a circle needs two coordinates, so angle",
        "noise",
    ):
        assert words in text
    assert "a and b correlate with 0.90" in text
    assert "overstate information by about 0.12 nats" in text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dci(torch.ones(1, 3)), "at least 2 coordinates and 2 factors, but 1 and 3"),
        (lambda: dci(-torch.ones(3, 3)), "must be at least 0"),
        (lambda: mig([Factor.real("a", np.ones(9))], np.ones((9, 2))), "'a' is constant"),
        (lambda: mig([Factor.real("a", np.arange(8))], np.ones((9, 2))), "`h` has 9 rows and 'a' has 8"),
        (lambda: sap([Factor.real("a", np.arange(8))], np.ones((9, 2))), "`h` has 9 rows and 'a' has 8"),
        (
            lambda: decode(np.random.default_rng(0).normal(size=(99, 2)), {"a": np.arange(99)}, disentanglement=True),
            "need at least 2 factors with a score and 2 columns, but there are 1 and 2",
        ),
    ],
)
def test_mistakes_get_a_sentence(call, message):
    with pytest.raises(BadInput, match=message):
        call()
