"""The entry of the command line. It answers `tablefeed --help` itself, without typer, which takes longer to import."""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path

from tablefeed.cli.commands import overview
from tablefeed.cli.exits import DEFECT, ERROR, INTERRUPTED, output_failures

_COMPLETION = "_TABLEFEED_COMPLETE"
"""Set where a shell asks for completions, as typer names it."""


def main() -> None:
    """Runs the command line with the arguments of the process, and exits."""
    _open_closed_streams()
    _hold_all_characters(sys.stdout)
    if sys.argv[1:] == ["--help"] and _COMPLETION not in os.environ:
        with output_failures():
            sys.stdout.write(overview())
        return
    try:
        # Ends the program as Ctrl-C does: what is half-written is deleted.
        signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
        _run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def _open_closed_streams() -> None:
    """Opens the null device for each stream that the caller closed, as by `2>&-`: else another file gets its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - until the process ends


def _hold_all_characters(stdout: object) -> None:
    """Makes output UTF-8, as JSON and CSV are in every locale. A terminal keeps its encoding, and gets escapes."""
    if isinstance(stdout, io.TextIOWrapper):
        stdout.reconfigure(encoding=None if stdout.isatty() else "utf-8", errors="backslashreplace")


def _run() -> None:
    try:
        import typer  # noqa: F401
    except ModuleNotFoundError:
        sys.stderr.write('The command line needs typer and rich. Install them: pip install "tablefeed[cli]"\n')
        raise SystemExit(ERROR) from None
    from tablefeed.cli.app import app

    try:
        app(prog_name="tablefeed")
    except Exception:  # noqa: BLE001  # nobody above has an exit code for it
        import traceback

        traceback.print_exc()
        sys.stderr.write("This is a defect of tablefeed. Please report it with the lines above.\n")
        raise SystemExit(DEFECT) from None
