"""Examples in docstrings print what they say."""

import doctest
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch

import zhat

SOURCE = Path(zhat.__file__).parent
MODULES = sorted(
    ".".join(("zhat", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name):
    found = doctest.testmod(import_module(name), extraglobs={"np": np, "torch": torch, "zhat": zhat})
    assert found.attempted > 0
    assert found.failed == 0
