"""The door through which bytes of files come in: regular files only, and one kind of error whatever is wrong with them.

Every reader of zhat works inside `readable`. What a parser raises over damaged bytes, what the disk says, and what is
no file at all (a pipe, a device) becomes a `BadInput` with one sentence.
"""

from __future__ import annotations

import errno
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zhat.errors import BadInput, ZhatError

_NO_FILES = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@contextmanager
def readable(path: Path, must: str, *, folder: bool = False) -> Iterator[None]:
    """Look whether a path is a regular file, and say what it must be where anything fails inside.

    Args:
        path: the file; links are followed.
        must: what it must be, to follow "must": "be a table of numbers".
        folder: whether it may be a folder instead.
    """
    try:
        if not (folder and path.is_dir()):
            _regular(path)
        yield
    except ZhatError:
        raise
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}.") from None
    except Exception as error:  # parsers of damaged bytes raise whatever their parts raise
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            where = tempfile.gettempdir()
            raise BadInput(f"no space is left in {where} to unpack {path.name}. Free some, or set TMPDIR.") from None
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):  # EINVAL: a place before the file
            raise BadInput(f"{path} cannot be read ({error.strerror}).") from None
        raise BadInput(f"{path.name} must {must}, but it cannot be read ({first_line(error)}).") from None


def read_text(path: Path, must: str) -> str:
    """The text of a file in UTF-8; where it cannot be read, the sentence says what it must be."""
    with readable(path, must):
        return path.read_text(encoding="utf-8")


def read_bytes(path: Path, must: str) -> bytes:
    """The bytes of a file; where it cannot be read, the sentence says what it must be."""
    with readable(path, must):
        return path.read_bytes()


def first_line(error: Exception) -> str:
    """The first line of an error's message, or the name of its type."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _regular(path: Path) -> None:
    """Refuse what is no regular file: a pipe may never end, and a device may be endless."""
    kind = stat.S_IFMT(path.stat().st_mode)
    if kind != stat.S_IFREG:
        raise BadInput(f"{path} must be a file, but it is {_NO_FILES.get(kind, 'something else')}.")
