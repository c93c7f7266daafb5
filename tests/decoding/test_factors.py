import math

import numpy as np
import pytest

from zhat.decoding.factors import columns, typed
from zhat.errors import BadInput, UnknownName

RULE = [
    ("colour", np.array(["red", "blue", "red"]), "categorical: its values are text"),
    ("class", np.array([0, 1, 2, 1]), "categorical: whole numbers with 3 different values"),
    ("count", np.arange(100), "real: numbers"),
    ("size", np.array([0.5, 0.6, 0.7]), "real: numbers"),
    ("azimuth", np.arange(0, 360, 20), "circular, period 360"),
    ("rotAngle", np.linspace(-180, 179, 30), "circular, period 360"),
    ("phase", np.linspace(0, 6.2, 50), "circular, period 2π"),
    ("orientation", np.linspace(-0.5, 0.5, 50), "real: numbers"),
    ("angle", np.linspace(0, 800, 50), "real: numbers"),
    ("triangles", np.linspace(0, 359, 50), "real: numbers"),
    ("flag", np.array([True, False]), "categorical: whole numbers with 2 different values"),
]


@pytest.mark.parametrize(("name", "values", "wanted"), RULE, ids=[r[0] for r in RULE])
def test_types_follow_the_rule(name, values, wanted):
    factor, why = typed(name, values)
    assert why.startswith(wanted)
    assert factor.type == wanted.split(":")[0].split(",")[0]


def test_a_given_type_or_period_wins():
    assert typed("class", np.array([0, 1, 2]), "real")[0].type == "real"
    assert typed("hour", np.arange(24), period=24)[0].period == 24
    assert typed("way", np.linspace(0, 6, 9), "circular")[0].period == pytest.approx(2 * math.pi)
    assert typed("size", np.array([0.5, 0.6]), "categorical")[0].classes == ("0.5", "0.6")


@pytest.mark.parametrize(
    ("values", "how", "message"),
    [
        (np.array(["a", "b"]), {"kind": "real"}, "its values are text"),
        (np.array([0.0, 1e5]), {"kind": "circular"}, "fit neither 360 nor 2π. Give its period"),
        (np.array([0.0, 1.0]), {"kind": "real", "period": 3.0}, "a period belongs to a circular factor"),
        (np.array([0.0, 1.0]), {"kind": "ordinal"}, "no type of factor named 'ordinal'. Known: real, circular"),
        (np.array([0.0, 1.0]), {"period": -1.0}, "must be above 0"),
    ],
)
def test_types_that_do_not_fit_are_refused(values, how, message):
    with pytest.raises(BadInput, match=message):
        typed("x", values, **how)


def test_every_format_gives_the_same_columns(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    size, colour = np.array([0.5, 1.5, 2.5]), np.array(["red", "blue", "red"])
    (tmp_path / "f.csv").write_text("size, colour\n0.5,red\n1.5,blue\n2.5,red\n")
    np.savez(tmp_path / "f.npz", size=size, colour=colour)
    parquet.write_table(arrow.table({"size": size, "colour": colour.tolist()}), tmp_path / "f.parquet")
    both = np.array(list(zip(size, colour, strict=True)), dtype=[("size", float), ("colour", "U4")])
    np.save(tmp_path / "f.npy", both)
    for name in ("f.csv", "f.npz", "f.parquet", "f.npy"):
        found = columns(tmp_path / name)
        assert list(found.columns) == ["size", "colour"]
        assert found.columns["size"].tolist() == size.tolist()
        assert found.columns["colour"].tolist() == colour.tolist()
    assert columns({"size": size}).rows == 3


def test_a_plain_matrix_has_numbered_factors(tmp_path):
    np.save(tmp_path / "f.npy", np.ones((4, 2)))
    assert list(columns(tmp_path / "f.npy").columns) == ["factor 1", "factor 2"]
    np.savez(tmp_path / "f.npz", pose=np.ones((4, 2)))
    assert list(columns(tmp_path / "f.npz").columns) == ["pose 1", "pose 2"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("f.csv", "", "must name every column"),
        ("f.csv", "a,a\n1,2\n", "each differently"),
        ("f.csv", "1,2\n3,4\n", "must name the factors, but it holds numbers"),
        ("f.csv", "a,b\n1\n", "must have 2 columns, but line 2 has 1"),
        ("f.csv", "a,b\n1,\n", "no value for 'b' in row 0 .*1 of its 1 rows have an empty cell"),
        ("f.csv", "a\n1\nnan\n", "no value for 'a' in row 1"),
        ("f.csv", "a\n1\ninf\n", "must be finite, but row 1 is not"),
        ("f.csv", "a\n", "must hold rows below its first line"),
        ("f.npy", "nonsense", "must hold one array"),
        ("f.npz", "nonsense", "must be an archive"),
        ("f.parquet", "nonsense", "must be a Parquet file"),
        ("f.txt", "nonsense", "factors must be one of .npy, .npz, .csv"),
    ],
)
def test_files_that_cannot_be_read_are_refused_with_a_sentence(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=message):
        columns(tmp_path / name)


def test_nothing_is_unpickled(tmp_path):
    np.save(tmp_path / "f.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "f.npz", a=np.array([{"a": 1}], dtype=object))
    for name in ("f.npy", "f.npz"):
        with pytest.raises(BadInput, match="cannot be read"):
            columns(tmp_path / name)


def test_columns_of_different_length_and_odd_values_are_refused():
    with pytest.raises(BadInput, match="as many rows, but they have: a 2, b 3"):
        columns({"a": [1, 2], "b": [1, 2, 3]})
    with pytest.raises(BadInput, match="must be one column of values, but its shape is"):
        columns({"a": np.ones((3, 2))})
    with pytest.raises(BadInput, match="numbers or text without gaps"):
        columns({"a": np.array(["x", None], dtype=object)})
    with pytest.raises(BadInput, match="holds none"):
        columns({})
    with pytest.raises(UnknownName, match="no column in factors named 'nowhere'"):
        columns({"a": [1, 2]}, ids="nowhere")


def test_rows_with_an_empty_cell_are_left_out_where_that_is_asked_for(tmp_path):
    (tmp_path / "f.csv").write_text("id,size,colour\na,1,red\nb,,red\nc,2,\nd,3,blue\n")
    with pytest.raises(
        BadInput, match="no value for 'size' in row 1 .*2 of its 4 rows have an empty cell. Fill them, or"
    ):
        columns(tmp_path / "f.csv", ids="id")
    found = columns(tmp_path / "f.csv", ids="id", gaps="drop")
    assert {name: values.tolist() for name, values in found.columns.items()} == {
        "size": [1, 3],
        "colour": ["red", "blue"],
    }
    assert (found.ids.tolist(), found.kept.tolist(), found.left_out) == (["a", "d"], [0, 3], 2)
    with pytest.raises(UnknownName, match="no way to treat empty cells named 'fill'"):
        columns(tmp_path / "f.csv", gaps="fill")


def test_a_matrix_of_one_column_keeps_its_name(tmp_path):
    np.savez(tmp_path / "f.npz", size=np.arange(3.0)[:, None], two=np.ones((3, 2)))
    assert list(columns(tmp_path / "f.npz").columns) == ["size", "two 1", "two 2"]


def test_factors_lie_in_containers(tmp_path):
    from scipy.io import savemat

    savemat(tmp_path / "f.mat", {"size": np.arange(3.0)[:, None], "colour": np.array([[1], [2], [1]])})
    assert {name: values.tolist() for name, values in columns(tmp_path / "f.mat").columns.items()} == {
        "size": [0, 1, 2],
        "colour": [1, 2, 1],
    }
