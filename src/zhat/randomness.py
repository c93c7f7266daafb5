"""Where randomness comes from: one seed, one named stream, one generator.

The same seed serves several purposes (the mixing of a world, the weights of an encoder, the rows of a batch).
Naming the purpose keeps their streams apart: mixing 3 shares no draw with encoder 3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from numbers import Integral
from threading import RLock
from typing import Any, TypeVar

import torch

from zhat.errors import BadInput

T = TypeVar("T")
_TURN = RLock()


def stream_seed(seed: Any, stream: str) -> int:
    """The 63-bit seed of a named stream, the same on every machine."""
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise BadInput(f"`seed` is an integer, but {seed!r} came. Give one such as seed=0.")
    digest = hashlib.sha256(f"{int(seed)}/{stream}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator(seed: int, stream: str, device: torch.device | str = "cpu") -> torch.Generator:
    """A torch generator on `device` for the named stream of `seed`."""
    return torch.Generator(device=device).manual_seed(stream_seed(seed, stream))


def build(factory: Callable[[], T], seed: int, stream: str) -> T:
    """Call `factory` under a seeded global state and put the old state back.

    The one place that touches torch's global random state: modules draw their initial weights from it. Threads take
    turns, because they share that state.
    """
    with _TURN, torch.random.fork_rng(devices=[]):
        torch.manual_seed(stream_seed(seed, stream))
        return factory()
