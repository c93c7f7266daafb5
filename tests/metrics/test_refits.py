import numpy as np
import pytest
import torch

import zhat
from zhat.errors import BadInput, TooFewRows
from zhat.metrics import consistency, linear_r2_both_ways
from zhat.results import from_json, to_json


def refits(n=400, noise=0.0, seed=0):
    random = np.random.default_rng(seed)
    z = random.normal(size=(n, 3))
    return [z @ random.normal(size=(3, 3)) + noise * random.normal(size=(n, 3)) for _ in range(3)]


def test_affine_copies_are_consistent_and_noise_is_not():
    found = consistency(refits())
    assert found.mean == pytest.approx(1.0, abs=1e-9)
    assert found.chance < 0.01
    noise = consistency([np.random.default_rng(s).normal(size=(400, 3)) for s in range(3)])
    assert noise.mean < 0.01
    assert noise.chance == pytest.approx(noise.mean, abs=0.03)
    assert zhat.consistency is consistency


def test_entries_are_both_ways_of_every_pair():
    h = refits(noise=0.5)
    found = consistency(h, seed=3)
    to_first, to_second = linear_r2_both_ways(h[0], h[1], seed=3)
    assert found.r2[1][0] == to_first.value
    assert found.r2[0][1] == to_second.value
    assert [found.r2[i][i] for i in range(3)] == [1.0, 1.0, 1.0]
    off = [found.r2[i][j] for i in range(3) for j in range(3) if i != j]
    assert found.mean == pytest.approx(np.mean(off))
    assert found.low < found.mean < found.high
    assert found.least == min(off)
    assert found.n + found.n_fit == 400


def test_a_narrower_refit_is_read_one_way_only():
    (h, *_) = refits()
    found = consistency([h, h[:, :1]])
    assert found.r2[0][1] == pytest.approx(1.0)
    assert found.r2[1][0] < 0.9
    assert found.low is None


def test_results_survive_json_and_print_a_matrix():
    found = consistency(refits(noise=0.2), names=["a", "b", "c"])
    assert from_json(to_json(found)) == found
    assert str(found).count("from") == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda h: consistency(h[:1]), "at least 2 representations, but 1 came"),
        (lambda h: consistency([h[0], h[1][:99]]), "must have the same rows, but they have 400, 99"),
        (lambda h: consistency(h, names=["a"]), "`names` must hold 3 names"),
        (lambda h: consistency([h[0], np.ones((400, 2))]), r"`representations\[1\]` is constant"),
        (lambda h: consistency([h[0], torch.full((400, 2), torch.nan)]), "must be finite"),
    ],
)
def test_mistakes_get_a_sentence(call, message):
    with pytest.raises(BadInput, match=message):
        call(refits())


def test_too_few_rows_are_refused():
    with pytest.raises(TooFewRows) as error:
        consistency(refits(20))
    assert error.value.needed == 40
