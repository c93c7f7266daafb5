import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from zhat import Fresh, IdentifiableEncoder
from zhat.dgp import Box, Sphere
from zhat.errors import BadInput, UnknownName
from zhat.objectives import InfoNCE, InstanceDiscrimination

QUICK = {"steps": 3, "batch": 16, "widths": (8,), "random_state": 0}


def noisy(rows, generator):
    return rows + 0.1 * torch.randn(rows.shape, generator=generator, device=rows.device)


def series(n=60, m=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, m)).cumsum(0)


@parametrize_with_checks([IdentifiableEncoder(2, steps=2, batch=16, widths=(8,))])
def test_scikit_learn_finds_no_fault(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("how", "fit"),
    [
        ({}, {}),
        ({"objective": "lp", "p": 2.0}, {}),
        ({"objective": "lp", "onto": Box(3)}, {}),
        ({"objective": "instance"}, {}),
        ({"objective": "instance", "pairs": noisy}, {}),
        ({"objective": "cross-entropy"}, {"y": np.arange(60) % 5}),
        ({"pairs": "same label"}, {"y": np.array(list("abc") * 20)}),
        ({"pairs": noisy}, {}),
        ({"pairs": "given"}, {"pairs": series(seed=1)}),
        ({}, {"pairs": np.stack([np.arange(30), np.arange(30) + 30], 1)}),
        ({"objective": InfoNCE(temperature=0.5), "onto": Sphere(3)}, {}),
        ({"objective": Fresh(InstanceDiscrimination, 3, 60), "pairs": "none"}, {}),
    ],
)
def test_every_objective_and_pairing_trains(how, fit):
    model = IdentifiableEncoder(3, **how, **QUICK)
    x = series()
    h = model.fit(x, **fit).transform(x)
    assert h.shape == (60, 3)
    assert np.isfinite(h).all()
    assert len(model.losses_) > 0
    assert list(model.get_feature_names_out()) == [f"identifiableencoder{i}" for i in range(3)]


def test_a_seed_is_a_result_and_another_seed_another():
    x = series()
    first, again, other = (IdentifiableEncoder(3, **(QUICK | {"random_state": s})).fit_transform(x) for s in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)


def test_clones_copies_and_pickles_behave():
    x = series()
    model = IdentifiableEncoder(3, objective="lp", **QUICK)
    assert clone(model).get_params() == model.get_params()
    model.fit(x)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), clone(model).fit(x)):
        assert np.array_equal(other.transform(x), model.transform(x))
    assert not hasattr(clone(model), "encoder_")


def test_units_of_the_columns_do_not_matter():
    x = series()
    plain = IdentifiableEncoder(3, **QUICK).fit_transform(x)
    scaled = IdentifiableEncoder(3, **QUICK).fit_transform(x * [1e-4, 1, 100, 1e4] + 5)
    assert np.allclose(plain, scaled, atol=1e-3)


def test_a_constant_column_and_few_rows_are_no_trouble():
    x = np.concatenate([series(5), np.full((5, 1), 3.0)], 1)
    assert IdentifiableEncoder(2, **(QUICK | {"batch": 1000})).fit_transform(x).shape == (5, 2)


def test_it_works_inside_a_pipeline():
    x, y = load_digits(return_X_y=True)
    how = {"objective": "cross-entropy", "steps": 150, "batch": 256, "widths": (64,), "lr": 3e-3, "random_state": 0}
    model = make_pipeline(StandardScaler(), IdentifiableEncoder(10, **how), LogisticRegression(max_iter=500))
    assert model.fit(x[:1200], y[:1200]).score(x[1200:], y[1200:]) > 0.8


def test_silent_unless_verbose(capfd):
    IdentifiableEncoder(2, **QUICK).fit(series())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("how", "fit", "message"),
    [
        ({"objective": "vae"}, {}, "no objective named 'vae'. Known: infonce, lp, instance, cross-entropy"),
        ({"pairs": "nearest"}, {}, "no pairing named 'nearest'. Known: auto, next row"),
        ({"pairs": "same label"}, {}, "pairs='same label' requires y to be passed"),
        ({"objective": "cross-entropy"}, {}, "objective='cross-entropy' requires y to be passed"),
        ({"objective": "cross-entropy"}, {"y": np.ones(60)}, "at least 2 different labels"),
        ({"objective": "cross-entropy"}, {"y": np.ones((60, 2))}, "one label for each of 60 rows"),
        ({"pairs": "given"}, {}, "belongs to pairs='given', but none came"),
        ({"pairs": "next row"}, {"pairs": series()}, "belongs to pairs='given', but pairing is 'next row'"),
        ({}, {"pairs": series(9)}, "must be numbers of the shape of X"),
        ({}, {"pairs": np.array([[0, 99], [1, 2]])}, "pairs of row numbers from 0 to 59"),
        ({"pairs": "none"}, {}, "infonce compares a row with its positive"),
        ({"onto": "sphere"}, {}, "`onto` must be a space such as Sphere"),
        ({"objective": 3}, {}, "`objective` must be a name or a callable"),
        ({"n_components": 0}, {}, "`n_components` must be a whole number"),
        ({"temperature": 0.0}, {}, "`temperature` must be above 0"),
        ({"batch": 0}, {}, "`batch` must be a whole number"),
        ({"device": "abacus"}, {}, "the device 'abacus' cannot be used here"),
    ],
)
def test_mistakes_get_a_sentence(how, fit, message):
    with pytest.raises((BadInput, UnknownName), match=message):
        IdentifiableEncoder(**({"n_components": 3} | QUICK | how)).fit(series(), **fit)
