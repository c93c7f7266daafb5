"""Examples in docstrings print what they say."""

import doctest
from importlib import import_module

import numpy as np
import pytest
import torch

MODULES = (
    "zhat.estimator",
    "zhat.datasets.arrays",
    "zhat.metrics.decoding",
    "zhat.metrics.disentanglement",
    "zhat.metrics.refits",
    "zhat.audit.decoded",
    "zhat.audit.factors",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name):
    found = doctest.testmod(import_module(name), extraglobs={"np": np, "torch": torch})
    assert found.attempted > 0
    assert found.failed == 0
