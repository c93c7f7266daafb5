"""Blocks of pictures, drawn side by side: on a CPU each block has a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


def drawn(draw: Callable[[T], Tensor], blocks: Sequence[T], device: torch.device) -> list[Tensor]:
    """What `draw` makes of each block, in their order."""
    if device.type != "cpu":
        return [draw(block) for block in blocks]
    with one_thread_each() as threads, ThreadPoolExecutor(threads) as pool:
        return list(pool.map(draw, blocks))


@contextmanager
def one_thread_each() -> Iterator[int]:
    """Let each operation run on one thread, and say how many threads there are for blocks of pictures.

    A picture takes hundreds of small operations. If each of them waits for all threads, a machine with other work to do
    takes fifty times as long (benchmarks/NOTES.md).
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)
