"""`python -m zhat`: the same as the command `zhat`."""

from zhat.cli import main

if __name__ == "__main__":
    main()
