from zhat.encoders import mlp
from zhat.fresh import Fresh


def test_equal_calls_compare_and_hash_equal_and_print_as_written():
    a, b = Fresh(mlp, 3, 3, widths=(8,), slope=0.1), Fresh(mlp, 3, 3, slope=0.1, widths=(8,))
    assert a == b
    assert hash(a) == hash(b)
    assert a != Fresh(mlp, 3, 4, widths=(8,), slope=0.1)
    assert repr(a) == "Fresh(mlp, 3, 3, widths=(8,), slope=0.1)"


def test_each_call_makes_a_new_one():
    make = Fresh(mlp, 3, 3, widths=(8,))
    assert make() is not make()
