import pytest

from zhat.encoders import mlp
from zhat.errors import BadInput
from zhat.fresh import Fresh, describe, reading


def test_equal_calls_compare_and_hash_equal_and_print_as_written():
    a, b = Fresh(mlp, 3, 3, widths=(8,), slope=0.1), Fresh(mlp, 3, 3, slope=0.1, widths=(8,))
    assert a == b
    assert hash(a) == hash(b)
    assert a != Fresh(mlp, 3, 4, widths=(8,), slope=0.1)
    assert repr(a) == "Fresh(mlp, 3, 3, widths=(8,), slope=0.1)"


def test_each_call_makes_a_new_one():
    make = Fresh(mlp, 3, 3, widths=(8,))
    assert make() is not make()


@pytest.mark.parametrize("text", ["Fresh(dict, a=1)", "Fresh(dict, a=(1, -2.5, 'b', None, True), b={'c': [1]})"])
def test_what_was_described_is_read_again(text):
    assert describe(reading(text, {"dict": dict})) == text


@pytest.mark.parametrize(
    "text",
    ["dict.fromkeys('ab')", "(lambda: 1)()", "dict(*(1,))", "dict(**{'a': 1})", "1 + 1", "f'{1}'", "a", "b'1'", "-'a'"],
)
def test_what_is_no_plain_value_is_refused(text):
    with pytest.raises(BadInput, match="neither a plain value nor a call that zhat knows"):
        reading(text, {"dict": dict})


def test_a_text_has_a_length_at_most():
    with pytest.raises(BadInput, match="at most 20,000 letters"):
        reading("1" * 30_000, {})
