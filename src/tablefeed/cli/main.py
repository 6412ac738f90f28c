"""The entry of the command line. It answers `tablefeed --help` itself, without typer, which takes longer to import."""

from __future__ import annotations

import os
import sys

from tablefeed.cli.commands import overview

_COMPLETION = "_TABLEFEED_COMPLETE"
"""Set where a shell asks for completions, as typer names it."""


DEFECT = 70
"""The exit code for an error that nobody expected (EX_SOFTWARE of sysexits.h)."""


def main() -> None:
    """Runs the command line with the arguments of the process, and exits."""
    if sys.argv[1:] == ["--help"] and _COMPLETION not in os.environ:
        sys.stdout.write(overview())
        return
    try:
        import typer  # noqa: F401
    except ModuleNotFoundError:
        sys.stderr.write('The command line needs typer and rich. Install them: pip install "tablefeed[cli]"\n')
        raise SystemExit(3) from None
    from tablefeed.cli.app import app

    try:
        app(prog_name="tablefeed")
    except Exception:  # noqa: BLE001  # nobody above has an exit code for it
        import traceback

        traceback.print_exc()
        sys.stderr.write("This is a defect of tablefeed. Please report it with the lines above.\n")
        raise SystemExit(DEFECT) from None
