"""Where work runs, from the words of the command line: processes of this machine or a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from zhat.errors import BadInput, MissingExtra, RunFailed

AGAIN = "What is finished is kept: give the same command again, with fewer processes."


@contextmanager
def executor_of(where: str | None, *, after: str = AGAIN, code: Path | None = None) -> Iterator[Any]:
    """Something with `submit`; None where nothing was asked for.

    Args:
        where: `processes:N` or `dask://HOST:PORT`.
        after: what to do when processes have ended before their work was done, as a sentence.
        code: a Python file of the user's that the workers of a cluster need.
    """
    if where is None:
        yield None
        return
    kind, _, rest = where.partition(":")
    if kind == "processes" and rest.isdigit() and int(rest) > 0:
        from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
        from multiprocessing import get_context

        try:
            spawn, n = get_context("spawn"), int(rest)
            with ProcessPoolExecutor(n, mp_context=spawn, initializer=_share_cores, initargs=(n,)) as pool:
                yield pool
        except BrokenExecutor:
            raise RunFailed(
                f"one of {rest} processes ended before its work was done; the system may have stopped it for want of "
                f"memory. {after}"
            ) from None
        except Exception as error:
            if "pickle" not in str(error).lower():
                raise
            raise BadInput(
                f"a setting cannot be sent to other processes: {error}. Functions and classes of your own have "
                "to stand at the top level of the file, under a name; a lambda has none."
            ) from None
    elif kind == "dask" and rest.startswith("//"):
        from concurrent.futures import CancelledError

        try:
            from distributed import Client, KilledWorker
        except ImportError:
            raise MissingExtra("distributed", "dask", "spreading work over a Dask cluster") from None
        try:
            client = Client(f"tcp:{rest}", timeout=10)
        except OSError as error:
            raise BadInput(
                f"no Dask scheduler answers at {rest[2:]} ({error}). Start one with: dask scheduler."
            ) from None
        try:
            with client, client.get_executor() as pool:
                if code is not None:
                    client.upload_file(str(code))
                yield pool
        except KilledWorker as error:
            raise RunFailed(
                f"several workers of {rest[2:]} ended while they did the same piece of work ({error}); the system may "
                f"have stopped them for want of memory. {after}"
            ) from None
        except ModuleNotFoundError as error:
            raise RunFailed(
                f"a worker of {rest[2:]} cannot import {error.name}. Install the same version of zhat where it runs."
            ) from None
        except CancelledError:
            raise RunFailed(f"the Dask scheduler at {rest[2:]} went away before the work was done. {after}") from None
    else:
        raise BadInput(f"--executor must be processes:N or dask://HOST:PORT, but {where!r} came.")


def _share_cores(processes: int) -> None:
    """Give each process its share of the cores; more threads than cores wait for each other most of the time."""
    import os

    import torch

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // processes))
