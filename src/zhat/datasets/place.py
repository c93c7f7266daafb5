"""Where recorded data lies: the folder that the environment variable ZHAT_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

from zhat.errors import MissingData

VARIABLE = "ZHAT_DATA"


def recorded(name: str, *, published: str = "") -> Path:
    """The file or folder of that name in the folder of recorded data.

    Args:
        name: a path below that folder, for instance "text_english_novels/novels95.jsonl.xz".
        published: where it is published, for the sentence of the error.

    Raises:
        MissingData: if it is not there.
    """
    source = f" It is published {published}." if published else ""
    wanted = f"{name} is not among the recorded data.{source}"
    home = os.environ.get(VARIABLE)
    if not home:
        raise MissingData(
            f"{name} is recorded data, and its folder is not known.{source} Give the folder that holds it with "
            f"--data, or set the environment variable {VARIABLE}.",
            wanted=wanted,
        )
    path = Path(home) / name
    if not path.exists():
        raise MissingData(
            f"{path} does not exist.{source} Give the folder that holds {name} with --data, or set {VARIABLE}.",
            wanted=wanted,
        )
    return path
