"""Commands that watch: tail follows a table, lag and offsets look at a query's checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import tablefeed
from tablefeed.cli.arguments import AsJson, Columns, StorageOptions, TableName, Where, point, storage
from tablefeed.cli.arguments import names as names_in
from tablefeed.cli.exits import DIFFERENT
from tablefeed.cli.looking import commit_facts, one_line
from tablefeed.cli.output import aligned, first_of, print_json, print_pairs
from tablefeed.cli.rows import values
from tablefeed.errors import ChangeDataError, IllegalOptionError
from tablefeed.wording.words import printable, size

if TYPE_CHECKING:
    from tablefeed import Commit
    from tablefeed.feed.api.query_checkpoint import QueryBatch, QueryCheckpoint

CheckpointName = Annotated[
    str, typer.Argument(metavar="CHECKPOINT", help="The checkpointLocation of a streaming query.")
]
Tables = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="TABLE", help="A table that the query reads; repeat it for a query of several."),
]


def tail(
    *,
    table: TableName,
    first: Annotated[
        str | None, typer.Option("--from", metavar="POINT", help="First version, or a time; default: the next commit.")
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="Print the changed rows, with their change types.")] = False,
    where: Where = None,
    columns: Columns = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, metavar="N", help="End after N commits.")] = None,
    poll_interval: Annotated[
        float, typer.Option("--poll-interval", metavar="SECONDS", help="Pause between two looks at a remote store.")
    ] = 1.0,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Print commits, or the rows that they changed, as they land. Ends with Ctrl-C.

    Example: tablefeed tail /lake/orders --from 40 --rows --json
    """
    if not rows and (where or columns):
        raise typer.BadParameter("needs --rows", param_hint="--where" if where else "--columns")
    options = storage(storage_option)
    commits = tablefeed.follow(
        table, after=_after(table, first, options), poll_interval_s=poll_interval, storage_options=options
    )
    changed = _ChangedRows(table, {"filter": where, "columns": names_in(columns), "storage_options": options})
    for commit in first_of(commits, limit):
        if rows:
            changed.write(commit, as_json=as_json)
        elif as_json:
            print_json(commit_facts(commit))
        else:
            typer.echo(one_line(commit, stat=True))
        sys.stdout.flush()


def _after(table: str, first: str | None, options: dict[str, str]) -> int | None:
    """The version before the first one, which is at or after a time."""
    at = point(first)
    if "version" in at:
        version = int(at["version"])
        newest = tablefeed.open_table(table, storage_options=options).version
        if version > newest + 1:
            explain = f"must be at most {newest + 1}, the next version"
            raise IllegalOptionError(option="first", value=str(version), explain=explain)
        return version - 1
    if not at:
        return None
    from tablefeed.feed.api.follow import version_before

    return version_before(table, str(at["timestamp"]), storage_options=options)


class _ChangedRows:
    """Prints what commits did to rows. Where a commit did not record its changes, they are computed from its files."""

    def __init__(self, table: str, asked: dict[str, Any]) -> None:  # Any: arguments of `changes`
        self._table, self._asked = table, asked
        self._header = list[str]()

    def write(self, commit: Commit, *, as_json: bool) -> None:
        """Prints the rows of `commit`."""
        for batch in self._batches(commit.version):
            if as_json:
                for row in values(batch):
                    print_json(row)
                continue
            rows = [tuple(row.values()) for row in values(batch)]
            for line in aligned(batch.schema.names, rows)[self._header == batch.schema.names :]:
                typer.echo(line)
            self._header = batch.schema.names

    def _batches(self, version: int) -> Iterator[Any]:  # Any: pyarrow has no types
        asked: dict[str, Any] = {"start_version": version, "end_version": version, **self._asked}
        try:
            return iter(tablefeed.changes(self._table, **asked))
        except ChangeDataError:
            return iter(tablefeed.changes(self._table, **asked, deduplication_mode="dropCarryovers"))


def lag(
    *,
    checkpoint: CheckpointName,
    table: Tables = None,
    max_versions: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Exit with 1 if a source is more versions behind.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(min=0, metavar="S", help="Exit with 1 if a source is more seconds behind.")
    ] = None,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Show how far a query is behind its tables, from its checkpoint: the query need not run.

    Example: tablefeed lag /lake/_checkpoints/copy --table /lake/orders --max-seconds 900
    """
    options = storage(storage_option)
    found = _opened(checkpoint, options).lag(table or (), options)
    late = False
    for source, each in found.items():
        late |= max_versions is not None and each.versions_behind > max_versions
        late |= max_seconds is not None and (each.seconds_behind is None or each.seconds_behind > max_seconds)
        if as_json:
            print_json({"source": source, "table": each.url, **{k: v for k, v in asdict(each).items() if k != "url"}})
            continue
        files, outstanding = each.files_outstanding, each.bytes_outstanding
        pairs = [
            ("source", source),
            ("table", each.url),
            ("versions behind", each.versions_behind),
            ("seconds behind", "not known" if each.seconds_behind is None else f"{each.seconds_behind:.1f}"),
            ("files to deliver", "not known" if files is None else files),
            ("bytes to deliver", "not known" if outstanding is None else size(outstanding)),
        ]
        percent = each.snapshot_percent
        print_pairs(pairs if percent is None else [*pairs, ("snapshot", f"{percent:.1f} % delivered")])
    if late:
        raise typer.Exit(DIFFERENT)


offsets = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show, check, reset or convert the offsets in a query's checkpoint.\n\n"
    "Example: tablefeed offsets show /lake/_checkpoints/copy",
)


@offsets.command("show")
def show(
    *,
    checkpoint: CheckpointName,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, metavar="N", help="At most so many batches.")] = 1,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Show where the newest batches end, the last one first.

    Example: tablefeed offsets show /lake/_checkpoints/copy -n 5
    """
    found = _opened(checkpoint, storage(storage_option))
    query_id = found.query_id
    for batch in first_of(found.batches(), limit):
        if as_json:
            print_json({"query_id": query_id, **_batch_facts(batch)})
            continue
        typer.echo(f"batch {batch.batch_id} of query {printable(query_id)}: {'done' if batch.is_done else 'not done'}")
        for end in batch.ends:
            typer.echo(f"  source {end.source}: {printable(end.text or 'no offset yet')}")
            if end.position is not None:
                typer.echo(f"    {printable(end.position)}")


def _batch_facts(batch: QueryBatch) -> dict[str, Any]:
    ends = [{"source": e.source, "offset": e.text, "is_table": e.offset is not None} for e in batch.ends]
    return {"batch": batch.batch_id, "is_done": batch.is_done, "sources": ends}


@offsets.command("check")
def check(
    *, checkpoint: CheckpointName, table: Tables = None, as_json: AsJson = False, storage_option: StorageOptions = None
) -> None:
    """Check that a query can go on: its checkpoint can be read, and the log still has what it has not delivered.

    Exits with 1 where it cannot.

    Example: tablefeed offsets check /lake/_checkpoints/copy --table /lake/orders
    """
    options = storage(storage_option)
    found = _opened(checkpoint, options).problems(table or (), options)
    if as_json:
        print_json({"problems": found})
    else:
        typer.echo("\n".join(" ".join(printable(line).split()) for line in found) or "The query can go on.")
    if found:
        raise typer.Exit(DIFFERENT)


@offsets.command("reset")
def reset(
    *,
    checkpoint: CheckpointName,
    table: Annotated[str, typer.Option("--table", metavar="TABLE", help="The table that the source reads.")],
    to: Annotated[
        str, typer.Option("--to", metavar="VERSION", help="The first version to deliver, or 'latest' for none of them.")
    ],
    source: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="The number of the source, from 0, if several read the table."),
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Write it; without this, only show what would be.")] = False,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Let a stopped query go on from another version: a batch without rows is added to its checkpoint.

    Rows between the two positions are delivered again, or never. Stop the query first.

    Example: tablefeed offsets reset /lake/_checkpoints/copy --table /lake/orders --to 3 --write
    """
    if to != "latest" and not (to.isascii() and to.isdecimal()):
        raise typer.BadParameter(f"{to!r} is no version and not 'latest'", param_hint="--to")
    options = storage(storage_option)
    opened = _opened(checkpoint, options)
    newest = opened.newest()
    version = None if to == "latest" else int(to)
    batch_id, text = opened.reset(table, version=version, source=source, write=write, storage_options=options)
    if as_json:
        print_json({"batch": batch_id, "offset": text, "written": write, "unfinished": not newest.is_done})
        return
    typer.echo(f"batch {batch_id} {'ends' if write else 'would end'} at {text}")
    if not newest.is_done:
        typer.echo(f"Batch {newest.batch_id} was planned and not done: its rows may be in the sink, or not.", err=True)
    if not write:
        typer.echo("Nothing was written. Stop the query, and add --write.", err=True)


@offsets.command("convert")
def convert(
    *,
    checkpoint: CheckpointName,
    to: Annotated[Literal["jar", "tablefeed"], typer.Option(help="Whose source is to read the offsets.")],
    write: Annotated[bool, typer.Option("--write", help="Write it; without this, only show what would be.")] = False,
    as_json: AsJson = False,
    storage_option: StorageOptions = None,
) -> None:
    """Let a stopped query go on with another source, at the same position: the Delta JAR's, or tablefeed's.

    Most checkpoints need it in neither direction. If this one does, a batch without rows is added.

    Example: tablefeed offsets convert /lake/_checkpoints/copy --to jar --write
    """
    from tablefeed.feed.api.query_checkpoint import Reader

    done = _opened(checkpoint, storage(storage_option)).convert(Reader(to), write=write)
    if as_json:
        batch_id, ends = done or (None, ())
        print_json({"batch": batch_id, "offsets": ends, "written": write and done is not None})
        return
    if done is None:
        reader = {"jar": "The Delta JAR", "tablefeed": "tablefeed"}[to]
        typer.echo(f"Nothing to convert: {reader} reads the offsets as they are.")
        return
    batch_id, ends = done
    for source, text in enumerate(ends):
        typer.echo(f"batch {batch_id} {'ends' if write else 'would end'} at {text or 'no offset'} in source {source}")
    if not write:
        typer.echo("Nothing was written. Stop the query, and add --write.", err=True)


def _opened(checkpoint: str, options: dict[str, str]) -> QueryCheckpoint:
    from tablefeed.feed.api.query_checkpoint import QueryCheckpoint

    return QueryCheckpoint(checkpoint, options)
