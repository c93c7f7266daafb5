"""`python -m zhat` and the command `zhat`: Ctrl-C ends it with a sentence from its first line on."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """The entry point; whoever interrupts it twice, or while it still loads, gets one sentence."""
    try:
        from zhat.cli import main as run

        run()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("zhat: interrupted", file=sys.stderr)
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to be interrupted


if __name__ == "__main__":
    main()
