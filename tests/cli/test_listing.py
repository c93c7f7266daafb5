"""`zhat list` shows everything, and shows it legibly."""

from importlib import import_module
from inspect import isclass

import pytest

import zhat
from zhat.cli import listing

ROOMS = ("dgp", "datasets", "scenes", "encoders", "objectives", "training", "metrics", "theory", "audit", "decoding")
APART = {
    "encoder_input",
    "reseeded",
    "Batch",
    "Candidates",
    "Scene",
    "Mesh",
    "traversal",
    "drawn_again",
}  # what others are made of


def test_every_public_member_of_the_rooms_is_listed():
    shown = {name for kind in listing.KINDS for name, _ in listing._members(kind)}
    for room in (*ROOMS, "experiment", "report", "testing"):
        module = import_module(f"zhat.{room}")
        members = {name: getattr(module, name) for name in module.__all__}
        wanted = {n for n, m in members.items() if callable(m) and not (isclass(m) and "_is_protocol" in vars(m))}
        assert wanted - APART <= shown, room
    assert {"residual_mlp", "divergence", "IdentifiableEncoder", "Annealed"} <= shown
    packages = {name for name in zhat.__all__ if name != "__version__"} - {"train", "load", "Fresh", "Progress", "cite"}
    functions = {"score", "consistency", "decode", "Equivalence", "IdentifiableEncoder"}
    assert packages - functions - {"runs", "equivalence"} <= {*ROOMS, "report", "testing"}  # no room is forgotten


def test_formulas_are_shown_as_text():
    said = [text for kind in listing.KINDS for _, text in listing._members(kind)]
    assert all(text and "$" not in text and "\\" not in text for text in said)
    assert listing.legible(r"$\frac1{n} \sum_{i} \lVert \hat z_i \rVert$ costs") == "1/(n) Σ_i ‖ẑ_i‖ costs"
    assert listing.legible("costs 3 $ or so") == "costs 3 $ or so"


def test_a_value_is_described_by_the_string_behind_it():
    found = dict(listing._members("metrics"))
    assert found["r2"].startswith("Share of each latent's variance")
    assert found["spearman"].startswith("Rank correlation")


@pytest.mark.parametrize("kind", ["estimators", "settings", "checks"])
def test_kinds_are_not_empty(kind):
    assert listing._members(kind)
