"""The command line: thin; each command is one public function, in the order in which --help shows them.

Exit codes: 0 done, 1 a run or a gate failed, 2 a mistake in what was asked for, 130 interrupted.
"""

from zhat.cli import demo, reproduce, sweep, runs, audit, decode, check, show, listing  # noqa: F401, I001 - each adds its commands
from zhat.cli.door import app, main

__all__ = ["app", "main"]
