import itertools

from zhat.equivalence import (
    AFFINE,
    COMPONENTWISE,
    IDENTITY,
    INVERTIBLE,
    LINEAR,
    ORTHOGONAL,
    PERMUTATION,
    SCALED_PERMUTATION,
    SIGNED_PERMUTATION,
    SIMILARITY,
    Equivalence,
)


def test_the_chains_of_the_drawing_hold():
    chains = [
        (IDENTITY, PERMUTATION, SIGNED_PERMUTATION, ORTHOGONAL, SIMILARITY, LINEAR, AFFINE, INVERTIBLE),
        (SIGNED_PERMUTATION, SCALED_PERMUTATION, LINEAR),
        (SCALED_PERMUTATION, COMPONENTWISE, INVERTIBLE),
    ]
    for chain in chains:
        for tight, loose in itertools.combinations(chain, 2):
            assert tight < loose
            assert loose > tight
            assert not loose <= tight


def test_it_is_a_partial_order():
    for a, b, c in itertools.product(Equivalence, repeat=3):
        assert a <= a
        if a <= b and b <= a:
            assert a is b
        if a <= b and b <= c:
            assert a <= c


def test_some_classes_do_not_compare():
    for a, b in [
        (ORTHOGONAL, COMPONENTWISE),
        (ORTHOGONAL, SCALED_PERMUTATION),
        (SIMILARITY, SCALED_PERMUTATION),
        (AFFINE, COMPONENTWISE),
        (LINEAR, COMPONENTWISE),
    ]:
        assert not a <= b
        assert not b <= a


def test_every_class_says_what_it_allows():
    assert all(len(kind.meaning) > 5 for kind in Equivalence)
    assert repr(AFFINE) == "AFFINE"
    assert str(SIGNED_PERMUTATION) == "signed permutation"
