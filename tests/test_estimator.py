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

import zhat
from zhat import Fresh, IdentifiableEncoder
from zhat.dgp import Box, Sphere
from zhat.encoders import residual_mlp
from zhat.errors import BadInput, CorruptRun, UnknownName
from zhat.estimator import _together
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


class Windowed(torch.nn.Module):
    """A network of somebody's own: columns as a short film."""

    def __init__(self, k=3):
        super().__init__()
        self.film = torch.nn.Conv1d(1, 2, 3)
        self.top = torch.nn.Linear(4, k)

    def forward(self, x):
        return self.top(torch.relu(self.film(x[:, None])).flatten(1))


@pytest.mark.parametrize("encoder", [Windowed(), Windowed, Fresh(residual_mlp, 4, 3, widths=(8,))])
def test_a_network_of_ones_own_is_trained(encoder):
    x = series()
    model = IdentifiableEncoder(3, encoder=encoder, **QUICK)
    before = copy.deepcopy(encoder.state_dict()) if isinstance(encoder, torch.nn.Module) else {}
    h = model.fit_transform(x)
    assert np.allclose(np.linalg.norm(h, axis=1), 1)  # infonce lands on the sphere, with any network
    assert np.array_equal(clone(model).fit_transform(x), h)
    if before:
        assert all(torch.equal(before[k], v) for k, v in encoder.state_dict().items())
    assert not np.allclose(
        np.linalg.norm(IdentifiableEncoder(3, encoder=encoder, onto=None, **QUICK).fit_transform(x), axis=1), 1
    )


def test_a_positive_stays_in_its_recording_and_trial():
    x = [series(20), series(30, seed=1), series(10, seed=2)]
    trials = [np.repeat([0, 1], 10), np.repeat([0, 1], 15), np.zeros(10)]
    rows, y, both = _together(x, [np.zeros(20), np.ones(30), np.ones(10)], trials)
    assert rows.shape == (60, 4)
    assert y.sum() == 40
    assert len(np.unique(both)) == 5
    model = IdentifiableEncoder(3, **QUICK)
    joined = model.fit(x, series=trials).transform(x)
    assert [h.shape for h in joined] == [(20, 3), (30, 3), (10, 3)]
    again = IdentifiableEncoder(3, **QUICK).fit(np.concatenate(x), series=both)
    assert np.array_equal(np.concatenate(joined), again.transform(np.concatenate(x)))
    apart = IdentifiableEncoder(3, **QUICK).fit(np.concatenate(x))  # the borders are neighbours here
    assert not np.array_equal(again.losses_, apart.losses_)
    assert np.array_equal(joined[1], model.transform(x[1]))


def test_labels_of_several_recordings_name_positives():
    x = [series(20), series(30, seed=1)]
    y = [np.arange(20) % 3, np.arange(30) % 3]
    h = IdentifiableEncoder(3, pairs="same label", **QUICK).fit(x, y).transform(x)
    whole = IdentifiableEncoder(3, pairs="same label", **QUICK).fit(np.concatenate(x), np.concatenate(y))
    assert np.array_equal(h[1], whole.transform(x[1]))


def test_recordings_are_read_from_files(tmp_path):
    h5py = pytest.importorskip("h5py")
    from scipy.io import savemat

    first, second = series(20), series(30, seed=1)
    savemat(tmp_path / "one.mat", {"spikes": first})
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["spikes"], file["more"] = second, second[:, :2]
    files = [tmp_path / "one.mat", zhat.files.embeddings(tmp_path / "two.h5", key="spikes")]
    model = IdentifiableEncoder(3, **QUICK).fit(files)
    wanted = IdentifiableEncoder(3, **QUICK).fit([first, second])
    assert np.array_equal(model.transform(tmp_path / "one.mat"), wanted.transform(first))
    assert np.array_equal(model.transform(files)[1], wanted.transform(second))
    with pytest.raises(BadInput, match="there is no file"):
        model.transform(tmp_path / "three.mat")


def test_the_positive_may_lie_some_rows_later():
    x = np.repeat(series(20), 2, 0)
    near, far = (IdentifiableEncoder(3, lag=lag, **QUICK).fit(x).losses_ for lag in (1, 3))
    assert not np.array_equal(near, far)


@pytest.mark.parametrize(
    ("how", "x", "fit", "message"),
    [
        ({"encoder": 3}, series(), {}, "`encoder` must be an nn.Module or make one"),
        ({"encoder": dict}, series(), {}, "`encoder` must be or make an nn.Module"),
        ({"encoder": Windowed(5)}, series(), {}, r"it makes \(2, 5\). Make them agree with n_components=3"),
        ({"encoder": torch.nn.Linear(7, 3)}, series(), {}, r"of standardised rows \(n, 4\), but it raises"),
        ({}, [series(), series(m=3)], {}, "recordings must have the same columns, but they have 4, 3 columns"),
        ({}, series(), {"series": [1, 2]}, "`series` must name the trial of each of 60 rows"),
        ({}, [series(), series()], {"series": [[1] * 60, [1] * 59]}, "one value for each row of the recordings"),
        ({}, [series(), series()], {"series": [1] * 60}, "one value for each of 120 rows"),
        ({}, series(), {"series": np.arange(60)}, "no row of `x` has a row of the same series"),
        ({"lag": 0}, series(), {}, "`lag` must be a whole number"),
        ({"lag": 60}, series(), {}, "needs at least 62 rows"),
    ],
)
def test_mistakes_about_recordings_get_a_sentence(how, x, fit, message):
    with pytest.raises(BadInput, match=message):
        IdentifiableEncoder(**({"n_components": 3} | QUICK | how)).fit(x, **fit)


def test_several_recordings_are_no_single_data_frame():
    pytest.importorskip("pandas")
    model = IdentifiableEncoder(3, **QUICK).fit([series(), series()]).set_output(transform="pandas")
    assert list(model.transform(series()).columns) == [f"identifiableencoder{i}" for i in range(3)]
    with pytest.raises(BadInput, match="Transform the recordings one by one"):
        model.transform([series(), series()])


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"objective": "lp", "onto": Box(3), "random_state": np.int64(7), "widths": (np.int64(8),)},
        {"objective": InfoNCE(temperature=0.5), "onto": Sphere(3)},
        {"encoder": Fresh(residual_mlp, 4, 3, widths=(8,))},
        {"encoder": residual_mlp(4, 3, widths=(8,), seed=0), "onto": None},
    ],
)
def test_a_loaded_model_is_the_saved_one(how, tmp_path):
    pd = pytest.importorskip("pandas")
    x = pd.DataFrame(series(), columns=list("abcd"))
    model = IdentifiableEncoder(3, **(QUICK | how)).fit(x)
    assert model.save(tmp_path / "model") == tmp_path / "model"
    again = IdentifiableEncoder.load(tmp_path / "model")
    assert np.array_equal(again.transform(x), model.transform(x))
    assert list(again.feature_names_in_) == list("abcd")
    assert np.array_equal(again.losses_, model.losses_)
    assert again.get_params()["widths"] == (8,)
    if not isinstance(how.get("encoder"), torch.nn.Module):
        assert np.array_equal(clone(again).fit_transform(x), model.transform(x))
    assert [p.suffix for p in (tmp_path / "model").iterdir()] == [".safetensors"]


def test_what_cannot_be_kept_is_named_and_given_again(tmp_path):
    x = series()
    model = IdentifiableEncoder(3, pairs=noisy, **QUICK).fit(x)
    model.save(tmp_path)
    with pytest.warns(UserWarning, match="pairs=noisy could not be kept"):
        assert np.array_equal(IdentifiableEncoder.load(tmp_path).transform(x), model.transform(x))
    assert IdentifiableEncoder.load(tmp_path, pairs=noisy).pairs is noisy
    own = IdentifiableEncoder(3, encoder=Windowed(), **QUICK).fit(x)
    own.save(tmp_path)
    with pytest.raises(BadInput, match=r"is Windowed, which zhat cannot make.*load\(folder, encoder=my_module\)"):
        IdentifiableEncoder.load(tmp_path)
    assert np.array_equal(IdentifiableEncoder.load(tmp_path, encoder=Windowed()).transform(x), own.transform(x))
    with pytest.raises(BadInput, match="do not fit the network"):
        IdentifiableEncoder.load(tmp_path, encoder=torch.nn.Linear(4, 3))


@pytest.mark.parametrize("place", [40, 400, -1])
def test_a_damaged_model_is_refused(tmp_path, place):
    IdentifiableEncoder(3, **QUICK).fit(series()).save(tmp_path)
    path = tmp_path / "estimator.safetensors"
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptRun, match="is damaged"):
        IdentifiableEncoder.load(tmp_path)
    with pytest.raises(BadInput, match="holds no estimator.safetensors"):
        IdentifiableEncoder.load(tmp_path / "nowhere")


def test_a_representation_is_drawn_over_time_and_in_a_plane():
    pytest.importorskip("matplotlib").use("agg")
    x = [series(), series(seed=1)]
    model = IdentifiableEncoder(3, **QUICK).fit(x)
    ax = model.plot(x)
    assert len(ax.lines) == 2 * 3 + 1  # a line for each component of each recording, and the border
    assert [t.get_text() for t in ax.get_yticklabels()] == ["h1", "h2", "h3"]
    assert model.plot(x[0], y=np.arange(60), over="plane").collections[0].get_offsets().shape == (60, 2)
    with pytest.raises(UnknownName, match="no way to draw a representation named 'space'"):
        model.plot(x, over="space")
    with pytest.raises(BadInput, match="`y` must hold one number for each of 60 rows"):
        model.plot(x[0], y=[1], over="plane")
