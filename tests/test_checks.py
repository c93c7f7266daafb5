import numpy as np
import pytest
import torch

from zhat import _checks, decode, metrics
from zhat.audit import audit
from zhat.errors import BadInput

Z = np.random.default_rng(0).normal(size=(300, 2))
H = Z @ np.array([[1.0, 2.0], [0.5, -1.0]])


class Frame:
    """A table that knows how to be an array, as data frames do."""

    def __init__(self, values):
        self.values, self.columns, self.shape = values, ["a", "b"], values.shape

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def __getitem__(self, name):
        return self.values[:, self.columns.index(name)]


def frame(kind, values):
    if kind == "ours":
        return Frame(values)
    library = pytest.importorskip(kind, reason=f"{kind} is not installed")
    columns = {"a": values[:, 0], "b": values[:, 1]}
    return library.table(columns) if kind == "pyarrow" else library.DataFrame(columns)


@pytest.mark.parametrize("kind", ["ours", "pandas", "polars", "pyarrow"])
def test_a_data_frame_is_taken_wherever_an_array_is(kind):
    z, h = frame(kind, Z), frame(kind, H)
    for measure in (metrics.linear_r2, metrics.mcc, metrics.CKA(), metrics.CCA(), metrics.Procrustes()):
        assert measure(z, h) == measure(Z, H)
    assert metrics.profile(z, h) == metrics.profile(Z, H)
    assert audit(z, h).ladder == audit(Z, H).ladder
    assert decode(h, z)["a"].value == decode(H, {"a": Z[:, 0]})["a"].value


def test_a_table_of_words_or_with_gaps_gets_a_sentence():
    words = Frame(np.array([["x", 1.0]] * 9, dtype=object))
    with pytest.raises(BadInput, match="its dtype is object. It comes from a table: give its columns of numbers"):
        metrics.linear_r2(words, words)
    gaps = Frame(np.array([[np.nan, 1.0]] * 9))
    with pytest.raises(BadInput, match="9 of 18 values are NaN or infinite .first at row 0, column 0"):
        metrics.linear_r2(gaps, gaps)


def test_a_reversed_single_row_and_a_number_are_no_traceback():
    assert _checks.matrix(Z[:1][::-1], "z").shape == (1, 2)
    with pytest.raises(BadInput, match="must have the shape"):
        metrics.linear_r2(np.array(1.0), Z)


def test_sizes_whose_powers_leave_float64_are_refused():
    for size in (1e-71, 1e71):
        with pytest.raises(BadInput, match="`head` has values of size .*, whose products leave the range of float64"):
            _checks.moderate(torch.tensor([size], dtype=torch.float64), "head")
    for size in (0.0, 1e-69, 1e69):
        _checks.moderate(torch.tensor([size], dtype=torch.float64), "head")
