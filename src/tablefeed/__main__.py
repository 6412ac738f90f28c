"""`python -m tablefeed`: the command line."""

from __future__ import annotations

from tablefeed.cli.main import main

if __name__ == "__main__":
    main()
