"""The scenarios in whose windows processes are killed. Each makes its tables, and takes steps."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import tablefeed
from faults.steps import (
    FED,
    OFTEN,
    V2,
    VECTORS,
    Step,
    a_checkpoint,
    a_target,
    aged,
    all_of,
    append,
    applied,
    cleaned_up,
    copied_before,
    deleted,
    index,
    json_checkpoint,
    keyed_batch,
    left_by_killed_puts,
    lost_to_a_rival,
    makes,
    merged,
    numbers,
    only_commits,
    only_states,
    put_in_pieces_twice,
    read_all,
    registered,
    replicated,
    replicated_by_tasks,
    replicated_from_elsewhere,
    reset_to,
    sidecar_of_nobody,
    sifted_batch,
    source,
    stream,
    table,
    tracked,
    unregistered,
    updated,
    vacuum,
)


def nothing(_root: Path) -> None:
    """Makes no table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Steps on the tables that `prepare` makes."""

    name: str
    steps: tuple[Step, ...]
    prepare: Step = nothing


SCENARIOS = (
    Scenario(
        name="appends make a table, its checkpoints and a compaction",
        steps=(
            append(0, 1, 2, partition_by=["p"], properties=OFTEN),
            append(1, 3),
            append(2, 4, 5, mode="overwrite"),
            append(3, 6, 8, mode="overwrite", replace_where="p = 'p0'"),
            append(4, 9, log_compaction_every=2, checkpoint_part_size=1),
            append(5, 9, log_compaction_every=2),
            lost_to_a_rival(6, 10, rival=11),
            put_in_pieces_twice(7, 12),
        ),
    ),
    Scenario(name="two writers make a table", steps=(lost_to_a_rival(0, 1, rival=2),)),
    Scenario(
        name="a stream copies a table and is its consumer",
        prepare=all_of(a_checkpoint, *(append(n, n, n + 10, to=source, properties=OFTEN) for n in range(3))),
        steps=(lambda root: stream(root, consumerId="reader"),),
    ),
    Scenario(
        name="a stream tracks the schema of its source",
        prepare=all_of(
            a_checkpoint,
            append(0, 1, to=source, properties={"delta.columnMapping.mode": "name"}),
            lambda root: tablefeed.alter(source(root), rename_columns={"p": "q"}),
            lambda root: tablefeed.append(source(root), pa.table({"id": [2], "q": ["two"]})),
        ),
        steps=(tracked, tracked),
    ),
    Scenario(
        name="a stream is reset",
        prepare=all_of(a_checkpoint, *(append(n, n, to=source) for n in range(3)), stream),
        steps=(reset_to(1),),
    ),
    Scenario(
        name="a stream applies change events",
        prepare=a_target(**VECTORS),
        steps=(
            keyed_batch(0, ((1, "a", 1, "u"), (2, "a", 1, "u")), ((3, "a", 1, "u"), (4, None, 1, "d"))),
            keyed_batch(1, ((1, None, 2, "d"), (2, "b", 2, "u")), ((4, "late", 0, "u"), (5, "a", 2, "u"))),
        ),
    ),
    Scenario(
        name="a stream takes out the rows that break a rule",
        prepare=lambda root: tablefeed.create(table(root), numbers(1).schema, constraints={"small": "id < 10"}),
        steps=(sifted_batch(0, 1, 20), sifted_batch(1, 2, 30, 31), sifted_batch(2, 3)),
    ),
    Scenario(
        name="change events are applied, with remembered deletes and a history",
        prepare=a_target(**FED),
        steps=tuple(
            applied(n, (n, "a", n + 1, "u"), (n - 1, None, n + 1, "d"), (n + 50, None, 1, "d")) for n in range(6)
        ),
    ),
    Scenario(
        name="rows of a table with deletion vectors and a change feed change",
        prepare=append(0, *range(1, 9), properties={**VECTORS, **FED}),
        steps=(deleted(1, "id = 2"), updated(2, "id = 3"), merged(3), read_all),
    ),
    Scenario(
        name="rows of a table of copied files and a change feed change",
        prepare=append(0, *range(1, 9), partition_by=["p"], properties=FED),
        steps=(deleted(1, "id = 2"), updated(2, "id = 3"), merged(3), read_all),
    ),
    Scenario(
        name="a table is created, altered and restored",
        steps=(
            makes(0, lambda root: tablefeed.create(table(root), numbers(1).schema, properties=VECTORS)),
            append(0, 1, 2),
            makes(2, lambda root: tablefeed.alter(table(root), set_properties={"delta.appendOnly": "false"})),
            deleted(1, "id = 1"),
            makes(4, lambda root: tablefeed.restore(table(root), version=1)),
        ),
    ),
    Scenario(
        name="small files are folded, and what is not needed goes",
        prepare=all_of(
            *(append(n, n, n + 10, properties=VECTORS) for n in range(5)),
            deleted(9, "id = 3"),
            left_by_killed_puts,
            aged,
        ),
        steps=(
            lambda root: tablefeed.optimize(table(root)),
            registered,
            vacuum,
            unregistered,
            vacuum,
        ),
    ),
    Scenario(
        name="a log is checkpointed and cleaned up",
        prepare=all_of(*(append(n, n, properties=OFTEN) for n in range(6)), left_by_killed_puts, aged),
        steps=(append(7, 7), append(8, 8), cleaned_up),
    ),
    Scenario(
        name="a log with checkpoints of version 2 is cleaned up",
        prepare=all_of(*(append(n, n, properties={**OFTEN, **V2}) for n in range(6)), sidecar_of_nobody, aged),
        steps=(append(7, 7), append(8, 8), cleaned_up),
    ),
    Scenario(
        name="a table is replicated by files",
        prepare=all_of(
            append(0, *range(1, 9), to=source, properties={**VECTORS, **FED}),
            deleted(1, "id = 2", of=source),
            append(2, 20, to=source, mode="overwrite"),
            copied_before,
        ),
        steps=(replicated(until=1, consumer_id="copy"), replicated(verify=True, consumer_id="copy")),
    ),
    Scenario(
        name="a table is replicated by tasks",
        prepare=all_of(append(0, 1, to=source), append(1, 2, to=source)),
        steps=(replicated_by_tasks,),
    ),
    Scenario(
        name="a table is replicated from another store",
        prepare=all_of(append(0, 1, to=source), append(1, 2, to=source)),
        steps=(replicated_from_elsewhere,),
    ),
    Scenario(
        name="a table is replicated by rows",
        prepare=all_of(append(0, 1, 2, to=source), append(1, 3, to=source)),
        steps=(replicated(by_rows=True),),
    ),
    Scenario(
        name="an IndexTables table is made and written to",
        steps=(
            index(0, 1, 2),
            all_of(index(1, 3), index(2, 4)),
            index(3, 5, mode="overwrite"),
            lost_to_a_rival(4, 6, rival=7),
            read_all,
        ),
    ),
    Scenario(
        name="an IndexTables table of states alone is written to",
        prepare=all_of(index(0, 1, 2), index(1, 3), only_states),
        steps=(
            index(2, 4),
            index(3, mode="overwrite"),
            index(4, 5),
            index(4, 5),
            lost_to_a_rival(5, 6, rival=7),
            read_all,
            cleaned_up,
        ),
    ),
    Scenario(
        name="an IndexTables table of commits alone is written to",
        prepare=all_of(index(0, 1, 2), index(1, 3), only_commits),
        steps=(index(2, 4), json_checkpoint(0), index(3, 5), json_checkpoint(1), read_all, cleaned_up),
    ),
    Scenario(
        name="an old IndexTables log is cleaned up",
        prepare=all_of(*(index(n, n) for n in range(6)), aged),
        steps=(cleaned_up,),
    ),
)


def warm_up() -> None:
    """Imports all that a scenario may need, so that no killed process does. Starts no thread."""
    for found in pkgutil.walk_packages(tablefeed.__path__, "tablefeed."):
        with contextlib.suppress(ImportError):  # a store whose package is not installed
            importlib.import_module(found.name)
    for name in ("deltalake", "duckdb", "fastavro", "pyarrow.dataset", "pyarrow.parquet", "sqlglot", "tantivy"):
        importlib.import_module(name)
