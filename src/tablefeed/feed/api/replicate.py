"""`tablefeed.replicate`: copies a Delta table commit by commit, and keeps the copy up to date."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tablefeed.errors import IllegalOptionError
from tablefeed.feed.api.replicate_rows import RowReplication
from tablefeed.feed.arguments import check_function, location, store_options, switch, text, whole_number
from tablefeed.feed.commit.transaction import Surroundings
from tablefeed.feed.replication.comparison import check_equal
from tablefeed.feed.replication.replica import Replication
from tablefeed.feed.snapshot.delta_log import DeltaSnapshot
from tablefeed.feed.snapshot.open_log import open_log, open_maintained
from tablefeed.feed.snapshot.table_log import TableLog
from tablefeed.feed.upkeep.after_commit import look_after, surroundings
from tablefeed.feed.upkeep.consumers import Consumers, Reports
from tablefeed.model.actions import Version
from tablefeed.model.outcome import Replicated
from tablefeed.store.address import parse_address, share_a_folder
from tablefeed.store.options import server


def replicate(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    app_id: str = "tablefeed.replicate",
    starting_version: int | None = None,
    until: int | None = None,
    verify: bool = False,
    resync: bool = False,
    consumer_id: str | None = None,
    by_rows: bool = False,
    copy_files: Callable[[Sequence[str]], None] | None = None,
    storage_options: Mapping[str, str] | None = None,
    target_storage_options: Mapping[str, str] | None = None,
) -> Replicated:
    """Copies the commits of the table at `source`, with their files, to the Delta table at `target`.

    The first call creates the target: its first commit is the whole version `starting_version` of the source, by
    default `until`. Each later commit of the source, up to the version `until` (by default the newest), becomes one
    commit of the target, exactly once, even if processes die. Call again to copy later commits. `app_id` names the
    progress in the target. `target_storage_options` are by default `storage_options`. With `consumer_id` the copy is a
    consumer of the source: vacuum and log cleanup of the source keep what is not copied yet (docs/how-to/consumers.md).
    With `by_rows`, and always for an IndexTables table, rows are read and written, and no files are copied.
    `copy_files` is a function that copies the named files from the source's folder to the target's, durably; None: this
    process copies.

    The target must have no other writer: ConflictError if another commit changed it. LogError and DataFileError if the
    source no longer has commits or files that were not copied yet. With `resync`, the version `until` is then copied as
    a whole, in one commit. With `verify`, both tables are read and compared at the end: ReplicaDiffersError. Otherwise
    raises as `open_table` and `append`.
    """
    options = store_options(storage_options)
    to = options
    if target_storage_options is not None:
        to = store_options(target_storage_options, argument="target_storage_options")
    check_function(copy_files, argument="copy_files")
    from_, into = location(source, argument="source"), location(target, argument="target")
    origin, copy = open_log(from_, options), open_maintained(into, to)
    _refuse_overlap(origin, copy)
    newest = origin.load()
    last = newest.version if until is None else whole_number(until, argument="until", least=0)
    first = last if starting_version is None else whole_number(starting_version, argument="starting_version", least=0)
    if last > newest.version:
        raise IllegalOptionError(option="until", value=str(last), explain=f"must be at most {newest.version}")
    if first > last:
        raise IllegalOptionError(option="starting_version", value=str(first), explain=f"must be at most {last}")
    app = text(app_id, argument="app_id")
    verifies, resyncs = switch(verify, argument="verify"), switch(resync, argument="resync")
    reports = None if consumer_id is None else Reports(Consumers(origin), consumer_id, clock=time.monotonic)
    reads_after = reports.reads_after if reports else lambda _version: None
    rows, bounds = switch(by_rows, argument="by_rows"), {"first": Version(first), "until": Version(last)}
    if isinstance(newest, DeltaSnapshot) and not rows:
        files = Replication(newest.log, copy, app, around(), reads_after=reads_after, copy_files=copy_files)
        done = files.run(newest, **bounds, resync=resyncs)
    else:
        rows, run = True, RowReplication(source=origin, target=copy, app_id=app, reads_after=reads_after)
        done = run.run(newest, **bounds, resync=resyncs)
    if verifies:
        tables = origin.load_for_files(done.source_version), copy.load_for_files(done.version)
        check_equal(*tables, by_rows=rows)
    if reports is not None:
        reports.has_read(done.source_version)
    return done


def _refuse_overlap(origin: TableLog, copy: TableLog) -> None:
    """Raises IllegalOptionError where one table is in the folder of the other, on the same server."""
    if not share_a_folder(origin.url, copy.url):
        return
    servers = [server(parse_address(log.url).scheme, log.storage_options, url=log.url) for log in (origin, copy)]
    if None in servers or servers[0] == servers[1]:
        remedy = "; where they are on two servers, name both servers in storage options" if "://" in copy.url else ""
        explain = f"must be another place than the source, neither in its folder nor around it{remedy}"
        raise IllegalOptionError(option="target", value=copy.url, explain=explain)


def around() -> Surroundings:
    """Gives what a commit needs. No checksum is derived from the one before: a commit may add a file that is live."""
    return replace(surroundings(), on_committed=lambda state, _commit, _removed: look_after(state))
