"""What a library raises over the bytes of a file becomes one sentence."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zhat.errors import BadInput, ZhatError


@contextmanager
def readable(path: Path, must: str) -> Iterator[None]:
    """Say what a file must be where a parser fails inside; our own errors and those of the disk pass."""
    try:
        yield
    except ZhatError:
        raise
    except Exception as error:  # parsers of damaged bytes raise whatever their parts raise
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # EINVAL: a place before the file
            raise
        raise BadInput(f"{path.name} must {must}, but it cannot be read ({first_line(error)}).") from None


def first_line(error: Exception) -> str:
    """The first line of an error's message, or the name of its type."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
