"""Where recorded data lies: the folder that the environment variable ZHAT_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

from zhat.errors import BadInput

VARIABLE = "ZHAT_DATA"


def recorded(name: str) -> Path:
    """The file or folder of that name in the folder of recorded data.

    Args:
        name: a path below that folder, for instance "text_english_novels/novels95.jsonl.xz".
    """
    home = os.environ.get(VARIABLE)
    if not home:
        raise BadInput(
            f"{name} is recorded data, and nothing says where it lies. Give the folder that holds it with --data, or "
            f"set the environment variable {VARIABLE}."
        )
    path = Path(home) / name
    if not path.exists():
        raise BadInput(f"{path} does not exist. Give the folder that holds {name} with --data, or set {VARIABLE}.")
    return path
