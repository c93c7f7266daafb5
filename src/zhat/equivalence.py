"""The classes of maps up to which latents can be identified, as a partial order.

`IDENTITY` is the tightest statement ("the latents came back as they were"), `INVERTIBLE` the loosest
("nothing was lost, but everything may be bent"). `a <= b` asks whether every map of class `a` is also a map
of class `b`:

```
IDENTITY < PERMUTATION < SIGNED_PERMUTATION < ORTHOGONAL < SIMILARITY < LINEAR < AFFINE < INVERTIBLE
                         SIGNED_PERMUTATION < SCALED_PERMUTATION      < LINEAR
                                              SCALED_PERMUTATION < COMPONENTWISE        < INVERTIBLE
```

None of the classes below `AFFINE` contains a translation. Where the origin of the latents carries no meaning
(a box, say), metrics take `shift=True` and allow one constant offset besides.
"""

from __future__ import annotations

from enum import Enum

__all__ = [
    "AFFINE",
    "COMPONENTWISE",
    "IDENTITY",
    "INVERTIBLE",
    "LINEAR",
    "ORTHOGONAL",
    "PERMUTATION",
    "SCALED_PERMUTATION",
    "SIGNED_PERMUTATION",
    "SIMILARITY",
    "Equivalence",
]


class Equivalence(Enum):
    """A class of maps from representation to latents; compare two with `<=`.

    Example:
        >>> Equivalence.PERMUTATION <= Equivalence.LINEAR
        True
        >>> Equivalence.ORTHOGONAL <= Equivalence.COMPONENTWISE
        False
    """

    IDENTITY = "identity"
    PERMUTATION = "permutation"
    SIGNED_PERMUTATION = "signed permutation"
    SCALED_PERMUTATION = "scaled permutation"
    ORTHOGONAL = "orthogonal"
    SIMILARITY = "similarity"
    LINEAR = "linear"
    AFFINE = "affine"
    COMPONENTWISE = "componentwise"
    INVERTIBLE = "invertible"

    @property
    def meaning(self) -> str:
        """What the class allows, in words."""
        return _MEANING[self]

    def __le__(self, other: Equivalence) -> bool:
        return other is self or any(above <= other for above in _JUST_ABOVE[self])

    def __lt__(self, other: Equivalence) -> bool:
        return self is not other and self <= other

    def __ge__(self, other: Equivalence) -> bool:
        return other <= self

    def __gt__(self, other: Equivalence) -> bool:
        return other < self

    def __str__(self) -> str:
        return self.value

    def __repr__(self) -> str:
        return self.name


IDENTITY = Equivalence.IDENTITY
PERMUTATION = Equivalence.PERMUTATION
SIGNED_PERMUTATION = Equivalence.SIGNED_PERMUTATION
SCALED_PERMUTATION = Equivalence.SCALED_PERMUTATION
ORTHOGONAL = Equivalence.ORTHOGONAL
SIMILARITY = Equivalence.SIMILARITY
LINEAR = Equivalence.LINEAR
AFFINE = Equivalence.AFFINE
COMPONENTWISE = Equivalence.COMPONENTWISE
INVERTIBLE = Equivalence.INVERTIBLE

_JUST_ABOVE: dict[Equivalence, tuple[Equivalence, ...]] = {
    IDENTITY: (PERMUTATION,),
    PERMUTATION: (SIGNED_PERMUTATION,),
    SIGNED_PERMUTATION: (ORTHOGONAL, SCALED_PERMUTATION),
    SCALED_PERMUTATION: (LINEAR, COMPONENTWISE),
    ORTHOGONAL: (SIMILARITY,),
    SIMILARITY: (LINEAR,),
    LINEAR: (AFFINE,),
    AFFINE: (INVERTIBLE,),
    COMPONENTWISE: (INVERTIBLE,),
    INVERTIBLE: (),
}

_MEANING: dict[Equivalence, str] = {
    IDENTITY: "the same numbers",
    PERMUTATION: "coordinates may be reordered",
    SIGNED_PERMUTATION: "coordinates may be reordered and flipped",
    SCALED_PERMUTATION: "coordinates may be reordered, flipped and rescaled one by one",
    ORTHOGONAL: "a rotation or reflection",
    SIMILARITY: "a rotation or reflection and one common scale",
    LINEAR: "any invertible matrix",
    AFFINE: "any invertible matrix and a constant offset",
    COMPONENTWISE: "coordinates may be reordered and bent one by one",
    INVERTIBLE: "any invertible map",
}
