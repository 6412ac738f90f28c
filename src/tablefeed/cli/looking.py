"""Commands that look at one table: inspect, log, cat, changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, dropwhile
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import tablefeed
from tablefeed.cli.arguments import (
    AsJson,
    At,
    Columns,
    From,
    StorageOptions,
    TableName,
    To,
    Where,
    point,
    span,
    storage,
)
from tablefeed.cli.arguments import names as names_in
from tablefeed.cli.exits import DIFFERENT
from tablefeed.cli.output import aligned, first_of, print_json, print_pairs, print_problems, styled
from tablefeed.cli.rows import Format, Limit, Output, chosen_format, write_rows
from tablefeed.errors import VersionNotFoundError
from tablefeed.wording.words import moment, printable, size

if TYPE_CHECKING:
    from tablefeed import Commit, Table

_COMMITS_FOR_WRITERS = 50


def inspect(
    *,
    table: TableName,
    at: At = None,
    commits: Annotated[
        int, typer.Option("--commits", min=0, metavar="N", help="Take the writers from the newest N commits.")
    ] = _COMMITS_FOR_WRITERS,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Show schema, features, size and writers of a table.

    Exits with 1 where commits cannot be read: it names them, and shows the newest version that can be read.

    Example: tablefeed inspect /lake/orders
    """
    problems = list[str]()
    opened = _opened(table, point(at), storage(storage_option), problems)
    facts = _facts(opened, commits, problems)
    if as_json:
        print_json({"table": table, **facts})
    else:
        _print_facts(table, facts)
    if problems:
        raise typer.Exit(DIFFERENT)


def _opened(table: str, at: dict[str, int | str], options: dict[str, str], problems: list[str]) -> Table:
    """Opens the version that `at` names; where it names none, the newest that can be read."""
    from tablefeed.feed.api.damage import newest_readable

    if at:
        return tablefeed.open_table(table, **at, storage_options=options)  # type: ignore[arg-type]
    return newest_readable(table, storage_options=options, problems=problems)


def _print_facts(table: str, facts: dict[str, Any]) -> None:
    protocol, files = facts["protocol"], facts["files"]
    features = sorted({*protocol["reader_features"], *protocol["writer_features"]})
    print_pairs(
        [
            ("table", table),
            ("name", facts["name"] or "none"),
            ("format", facts["format"]),
            ("id", facts["id"]),
            ("version", facts["version"]),
            ("protocol", f"reader {protocol['min_reader_version']}, writer {protocol['min_writer_version']}"),
            ("features", ", ".join(features) or "none"),
            ("partitioned by", ", ".join(facts["partition_columns"]) or "none"),
            ("rows", "not known" if facts["rows"] is None else f"{facts['rows']:,}"),
            ("files", f"{files['count']:,}, {size(files['size_bytes'])}{_spread(files)}"),
            ("deletion vectors", files["with_deletion_vector"]),
            (
                "columns",
                aligned(("name", "type", "null"), [(c["name"], c["type"], c["nullable"]) for c in facts["columns"]]),
            ),
            ("properties", [f"{name} = {value}" for name, value in facts["properties"].items()]),
            (
                "writers",
                [f"{w['writer']}: {w['commits']} commits, the last {w['last_version']}" for w in facts["writers"]],
            ),
            *([("problems", facts["problems"])] if facts["problems"] else ()),
        ]
    )


def _facts(table: Table, commits: int, problems: list[str]) -> dict[str, Any]:
    from tablefeed.feed.api.numbers import commits_of, writers_in

    metadata, protocol = table.metadata, table.protocol
    return {
        "name": metadata.name,
        "format": {"parquet": "delta"}.get(metadata.format_provider, metadata.format_provider),
        "id": table.table_id,
        "version": table.version,
        "protocol": {
            "min_reader_version": protocol.min_reader_version,
            "min_writer_version": protocol.min_writer_version,
            "reader_features": sorted(protocol.reader_features or ()),
            "writer_features": sorted(protocol.writer_features or ()),
        },
        "partition_columns": list(table.partition_columns),
        "columns": [{"name": f.name, "type": str(f.type), "nullable": f.nullable} for f in table.schema],
        "properties": dict(sorted(metadata.configuration.items())),
        **_sizes(table),
        "writers": writers_in(commits_of(table, commits, problems=problems)),
        "problems": problems,
    }


def _sizes(table: Table) -> dict[str, Any]:
    """The rows and the files. The rows are not known where a file's are not, or where files have deletion vectors."""
    from tablefeed.feed.api.numbers import live_files_of

    found = live_files_of(table).totals
    names = ("size_bytes", "least_bytes", "most_bytes", "with_deletion_vector")
    return {"rows": found["rows"], "files": {"count": found["files"], **{name: found[name] for name in names}}}


def _spread(files: dict[str, Any]) -> str:
    if not files["count"]:
        return ""
    average = size(files["size_bytes"] // files["count"])
    return f" ({size(files['least_bytes'])} to {size(files['most_bytes'])}, {average} on average)"


def log(
    *,
    table: TableName,
    commits: Annotated[
        str | None,
        typer.Argument(
            metavar="[RANGE]", help="A version, or A..B: the commits after A up to B; A or B may be left out."
        ),
    ] = None,
    oneline: Annotated[bool, typer.Option("--oneline", help="One line for each commit.")] = False,
    stat: Annotated[
        bool, typer.Option("--stat", help="Also the files and bytes that each commit added and removed.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=0, metavar="N", help="At most so many commits.")
    ] = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Show the commits of a table, the newest first.

    Exits with 1 where commits cannot be read: it names them, and shows the others.

    Example: tablefeed log /lake/orders 40..57 --stat
    """
    oldest, newest = span(commits)
    options, problems = storage(storage_option), list[str]()
    refused: VersionNotFoundError | None = None
    try:
        opened = _opened(table, {} if newest is None else {"version": newest}, options, problems)
    except VersionNotFoundError as error:  # after a cleanup the log may still have this commit
        if newest is None or newest > error.latest:
            raise
        opened, refused = _opened(table, {}, options, problems), error
    if oldest is not None and oldest > opened.version + 1 and not problems:
        text = f"{commits!r} begins after the newest version, {opened.version}"
        raise typer.BadParameter(text, param_hint="RANGE")
    all_commits = opened.commits(
        limit if oldest is None and refused is None else None,
        on_unreadable=lambda error: problems.append(error.message),
    )
    if refused is not None:
        all_commits = first_of(_up_to(refused, all_commits), limit)
    found = all_commits if oldest is None else _since(all_commits, oldest, limit)
    for commit in found:
        if as_json:
            print_json(commit_facts(commit))
        elif oneline:
            typer.echo(one_line(commit, stat=stat))
        else:
            _print_commit(commit, stat=stat)
    print_problems(problems)
    if problems:
        raise typer.Exit(DIFFERENT)


def _up_to(refused: VersionNotFoundError, commits: Iterator[Commit]) -> Iterator[Commit]:
    """The commits from that of the refused version on; raises the refusal where the log does not have it."""
    found = dropwhile(lambda commit: commit.version > refused.version, commits)
    newest = next(found, None)
    if newest is None or newest.version != refused.version:
        raise refused
    return chain([newest], found)


def _since(commits: Iterator[Commit], oldest: int, limit: int | None) -> Iterable[Commit]:
    def wanted() -> Iterator[Commit]:
        for commit in commits:
            if commit.version < oldest:
                return
            yield commit

    return first_of(wanted(), limit)


def commit_facts(commit: Commit) -> dict[str, Any]:
    """Gives what a commit did, as JSON has it."""
    return {
        "version": commit.version,
        "timestamp": None if commit.committed_at_ms is None else moment(commit.committed_at_ms),
        "timestamp_ms": commit.committed_at_ms,
        "operation": _operation(commit),
        "files_added": len(commit.added),
        "files_removed": len(commit.removed),
        "bytes_added": sum(f.size_bytes for f in commit.added),
        "bytes_removed": sum(f.size_bytes or 0 for f in commit.removed),
        "changes_rows": any(f.data_change for f in commit.added) or any(f.data_change for f in commit.removed),
        "changes_metadata": commit.metadata is not None,
        "changes_protocol": commit.protocol is not None,
        "txns": {txn.app_id: txn.txn_version for txn in commit.txns},
        "info": dict(commit.info or {}),
    }


def _operation(commit: Commit) -> str | None:
    found = (commit.info or {}).get("operation")
    return found if isinstance(found, str) else None


def one_line(commit: Commit, *, stat: bool = False) -> str:
    """Gives a commit as one line."""
    at = "" if commit.committed_at_ms is None else f"{moment(commit.committed_at_ms)} "
    changed = f"  {_stat(commit)}" if stat else ""
    operation = printable(_operation(commit) or "unknown operation")
    return f"{styled(str(commit.version), fg='yellow')} {at}{operation}{changed}"


def _stat(commit: Commit) -> str:
    facts = commit_facts(commit)
    parts = [
        f"{sign}{facts[f'files_{what}']} files ({size(facts[f'bytes_{what}'])})"
        for sign, what in (("+", "added"), ("-", "removed"))
        if facts[f"files_{what}"]
    ]
    parts += [what for what in ("metadata", "protocol") if facts[f"changes_{what}"]]
    return ", ".join(parts) or "no files"


def _print_commit(commit: Commit, *, stat: bool) -> None:
    info = commit.info or {}
    typer.echo(styled(f"version {commit.version}", fg="yellow"))
    at = "unknown" if commit.committed_at_ms is None else moment(commit.committed_at_ms)
    lines = [("Date", at), ("Writer", info.get("engineInfo") or info.get("clientVersion") or "unknown")]
    lines += [("Txn", f"{txn.app_id} {txn.txn_version}") for txn in commit.txns]
    for name, value in lines:
        typer.echo(f"{name + ':':<8}{printable(str(value))}")
    typer.echo(f"\n    {printable(_operation(commit) or 'unknown operation')}")
    if info.get("userMetadata"):
        typer.echo(f"    {printable(str(info['userMetadata']))}")
    if stat:
        typer.echo(f"    {_stat(commit)}")
    typer.echo()


def cat(
    *,
    table: TableName,
    at: At = None,
    where: Where = None,
    columns: Columns = None,
    limit: Limit = None,
    shape: Format = None,
    output: Output = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Print the rows of a table.

    Example: tablefeed cat /lake/orders --where "day >= DATE'2026-01-01'" --columns id,day -o orders.csv
    """
    written = chosen_format(shape, output, as_json=as_json)
    opened = tablefeed.open_table(table, **point(at), storage_options=storage(storage_option))  # type: ignore[arg-type]
    write_rows(opened.to_batches(columns=names_in(columns), filter=where), written, output=output, limit=limit)


def changes(
    *,
    table: TableName,
    first: From = None,
    last: To = None,
    where: Where = None,
    columns: Columns = None,
    deduplication_mode: Annotated[
        Literal["none", "dropCarryovers"] | None,
        typer.Option(help="Compute the changes from the files, for a table that does not record them."),
    ] = None,
    compute_updates: Annotated[
        bool, typer.Option("--compute-updates", help="With a mode: report updates of tracked rows as updates.")
    ] = False,
    limit: Limit = None,
    shape: Format = None,
    output: Output = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Print what commits did to the rows of a table: inserts, deletes and updates.

    Example: tablefeed changes /lake/orders --from 40 --to 57 --format csv
    """
    written = chosen_format(shape, output, as_json=as_json)
    reader = tablefeed.changes(
        table,
        **point(first, "start_"),  # type: ignore[arg-type]  # the names are those of the parameters
        **point(last, "end_"),  # type: ignore[arg-type]
        columns=names_in(columns),
        filter=where,
        deduplication_mode=deduplication_mode,
        compute_updates=compute_updates,
        storage_options=storage(storage_option),
    )
    write_rows(reader, written, output=output, limit=limit)
