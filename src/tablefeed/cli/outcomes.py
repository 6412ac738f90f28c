"""What a command that writes did, in words or as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from tablefeed.cli.output import print_json
from tablefeed.model.outcome import AlreadyApplied, Committed, Optimized, Replicated
from tablefeed.wording.words import printable, size

if TYPE_CHECKING:
    from tablefeed import Checkpointed, Vacuumed


def print_outcome(done: Committed | AlreadyApplied | Optimized | Replicated, *, as_json: bool) -> None:
    """Prints an outcome. Its name is in the JSON as `outcome`."""
    if as_json:
        print_json({"outcome": type(done).__name__, **asdict(done)})
        return
    match done:
        case Committed(written=False):
            text = f"nothing to commit: the table is at version {done.version}"
        case Committed():
            text = f"committed version {done.version}"
        case AlreadyApplied():
            text = (
                f"already applied: version {done.version} records txn version {done.recorded_txn_version}; "
                "nothing was written"
            )
        case Optimized(version=None):
            text = "nothing to merge"
        case Optimized():
            text = (
                f"committed version {done.version}: {done.files_removed} files ({size(done.bytes_removed)}) became "
                f"{done.files_added} ({size(done.bytes_added)})"
            )
        case Replicated():
            text = (
                f"version {done.version} of the target has the rows of version {done.source_version}: "
                f"{done.commits} commits made, {done.files} files copied"
            )
    typer.echo(text)


def print_checkpointed(done: Checkpointed, *, as_json: bool) -> None:
    """Prints the outcome of a checkpoint."""
    if as_json:
        print_json({"outcome": "Checkpointed", **asdict(done)})
        return
    typer.echo(f"version {done.version} {'has a new checkpoint' if done.written else 'had a checkpoint already'}")
    if done.log_files_deleted:
        typer.echo(f"{done.log_files_deleted} old files of the log were deleted")
    print_waits(done.waits_for)


def print_vacuumed(done: Vacuumed, *, as_json: bool) -> None:
    """Prints the files that vacuum found, with their number on stderr."""
    paths = done.paths.to_pylist()
    if as_json:
        facts = {"dry_run": done.dry_run, "size_bytes": done.size_bytes, "waits_for": done.waits_for}
        print_json({"outcome": "Vacuumed", **facts, "files": len(paths), "paths": paths})
        return
    for path in paths:
        typer.echo(printable(path))
    what = "would be deleted; add --delete" if done.dry_run else "were deleted"
    typer.echo(f"{len(paths)} files ({size(done.size_bytes)}) {what}", err=True)
    print_waits(done.waits_for)


def print_waits(waits_for: tuple[str, ...]) -> None:
    """Says which consumers keep files."""
    if waits_for:
        typer.echo(f"Files are kept for the consumers {printable(', '.join(waits_for))}.", err=True)
