"""Merges rows into a table: updates, deletes and inserts rows, as MERGE INTO does.

The source is in memory, as are the table's rows that it matches. The table's rows are found by the columns that `on`
compares for equality; only files that may have such rows are opened. Conditions and values are SQL over `source` and
`target`, and the first clause of a kind whose condition is true decides about a row, as in Spark's MERGE.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.assignment import Assignment, Policy
from tablefeed.data.retype import in_form
from tablefeed.data.sql import Asked
from tablefeed.delta.commit_info import TableChange
from tablefeed.delta.schema.arrow_schema import from_arrow, to_arrow
from tablefeed.errors import TABLE, InvalidRowsError, SchemaMismatchError
from tablefeed.feed.commit.transaction import Transaction
from tablefeed.feed.rows.apply import as_merge
from tablefeed.feed.rows.columns import counting, in_one_array, others
from tablefeed.feed.rows.events import key_numbers
from tablefeed.feed.rows.expressions import compiled, evaluated, in_plain_types
from tablefeed.feed.rows.keyed import FoundRows, check_keys, check_texts, find, key_ranges, only_equal
from tablefeed.feed.rows.merge_clauses import SOURCE, TARGET, Clause, Delete, Merging, Update, compared
from tablefeed.feed.rows.update import as_spelled
from tablefeed.feed.write.align import align, aligned
from tablefeed.feed.write.change_data import with_change
from tablefeed.feed.write.delta_plan import plan_delta_write
from tablefeed.feed.write.delta_write import write_delta_task
from tablefeed.feed.write.orphans import deleted_on_error
from tablefeed.feed.write.taking_out import counts, taken_out
from tablefeed.feed.write.target_rows import TargetRows
from tablefeed.feed.write.write_plan import DeltaPlan
from tablefeed.log.changes import ChangeType
from tablefeed.log.conflicts import WriteKind
from tablefeed.model.actions import AddFile, Txn
from tablefeed.model.schema import Field, Primitive, Struct, walk


@dataclass(frozen=True, slots=True)
class _Made:
    """The rows that one clause makes, in the columns that it gives, and the indices of the rows that they update.

    `replaces` is None for a clause that inserts.
    """

    rows: pa.Table
    replaces: pa.Array | None


@in_one_array()
def merging(target: TargetRows, asked: Merging, *, txn: Txn | None, now_ms: int) -> Transaction | None:
    """Gives the transaction that merges; None where it changes nothing, and there is no `txn` to record.

    Raises IllegalOptionError for conditions and values that are not evaluated as Spark does, InvalidRowsError where
    several rows of the source match one row of the table, and as `write_delta_task`.
    """
    snapshot = target.snapshot
    work = _Merge(target, asked, now_ms)
    gone = work.decide()
    if not len(gone) and not work.made and txn is None:
        return None
    updates = [made.replaces for made in work.made if made.replaces is not None]
    hits = work.found.hits(gone)
    plan, written = work.plan(snapshot.schema), list[tuple[_Made, tuple[AddFile, ...]]]()
    with deleted_on_error(snapshot.log.store) as paths:
        for number, made in enumerate(work.made):
            plan, rows = work.plan(from_arrow(made.rows.schema)), made.rows
            with_ids = plan
            if made.replaces is not None:
                rows, with_ids = work.found.with_ids(rows, made.replaces), replace(plan, carried=target.id_column)
            files = write_delta_task(with_ids, rows.to_batches(), task=number, now_ms=now_ms, store=snapshot.log.store)
            written.append((made, files))
            paths += (file.path for file in files)
        rewriting = taken_out(
            plan, target, hits, now_ms=now_ms, changes=lambda: work.changes(written, gone), updates=bool(updates)
        )
    updated = sum(map(len, updates))
    inserted = sum(made.rows.num_rows for made in work.made) - updated
    metrics = {
        "numSourceRows": asked.rows.num_rows,
        "numTargetRowsInserted": inserted,
        "numTargetRowsUpdated": updated,
        "numTargetRowsDeleted": len(gone) - updated,
        "numTargetRowsCopied": rewriting.copied_rows,
        "numOutputRows": inserted + updated + rewriting.copied_rows,
        **as_merge(counts(rewriting), sum(len(files) for _, files in written)),
    }
    return Transaction(
        plan=plan,
        files=tuple(file for _, files in written for file in files),
        kind=WriteKind.CHANGE,
        operation=TableChange(name="MERGE", parameters={"predicate": json.dumps([work.on])}, metrics=metrics),
        txn=txn,
        rewriting=rewriting,
        reads=lambda file: target.may_match(file, work.within),
        decided_by=frozenset(hit.file.path for hit in work.found.places),
    )


class _Merge:
    """One merge: the rows that were found, and what the clauses make of them (`made`)."""

    def __init__(self, target: TargetRows, asked: Merging, now_ms: int) -> None:
        self._target, self._asked, self._now_ms = target, asked, now_ms
        self._schema = target.snapshot.schema
        self._source = from_arrow(asked.rows.schema)
        self._rows = in_plain_types(asked.rows, self._source, of="source of the merge")
        self._sides = {TARGET: _in_sql(self._schema), SOURCE: _in_sql(self._source)}
        self.on, pairs = compared(asked.on, self._source, self._schema)
        keys = self._keys(pairs)
        wanted = None if asked.not_matched_by_source else keys.drop_null()
        self.within = None if wanted is None else key_ranges(wanted, target.schema)
        self.found: FoundRows = find(target, wanted, self.within)
        self._left, self._right = self._pairs(keys)
        self.made: list[_Made] = []

    def plan(self, brought: Struct) -> DeltaPlan:
        """Gives the plan of rows with the columns `brought`."""
        snapshot = self._target.snapshot
        rules = self._target.write_rules
        return plan_delta_write(
            snapshot.log, snapshot, brought, kind=WriteKind.CHANGE, rules=rules, now_ms=self._now_ms
        )

    def decide(self) -> pa.Array:
        """Fills `made`; gives the indices of the rows of the table that go, because they are deleted or updated."""
        asked, gone = self._asked, [pa.array([], pa.int64())]
        self._refuse_several()
        pairs: tuple[tuple[Sequence[Clause], pa.Array | None, pa.Array | None], ...] = (
            (asked.matched, self._left, self._right),
            (asked.not_matched, None, others(self._rows.num_rows, self._right)),
            (asked.not_matched_by_source, others(self.found.rows.num_rows, self._left), None),
        )
        for clauses, left, right in pairs:
            rows = self._beside(left, right)
            chosen = self._chosen(clauses, rows)
            for number, clause in enumerate(clauses):
                at = pc.indices_nonzero(pc.equal(chosen, number))
                replaces = None if left is None else left.take(at)
                gone += [] if replaces is None else [replaces]
                self._make(clause, rows.take(at), replaces)
        taken = pc.unique(pa.concat_arrays(gone))
        return taken.take(pc.array_sort_indices(taken))

    def changes(self, written: Sequence[tuple[_Made, tuple[AddFile, ...]]], gone: pa.Array) -> Iterator[pa.RecordBatch]:
        """Gives the rows that changed, with `_change_type`."""
        found = self.found.rows
        replaced = [made.replaces for made, _ in written if made.replaces is not None]
        updated = pa.concat_arrays([pa.array([], pa.int64()), *replaced])
        deleted = gone.filter(pc.invert(pc.is_in(gone, value_set=updated)))
        yield from with_change(found.take(deleted).to_batches(), ChangeType.DELETE)
        for made, files in written:
            after = ChangeType.INSERT
            if made.replaces is not None:
                yield from with_change(found.take(made.replaces).to_batches(), ChangeType.UPDATE_PREIMAGE)
                after = ChangeType.UPDATE_POSTIMAGE
            yield from with_change(self._target.read(files, self._target.schema), after)

    # --- which rows match ---

    def _keys(self, pairs: Sequence[tuple[Field, Field]]) -> pa.Table:
        """Gives the keys of the source in the types of the table, one for each row; null where no row can have it."""
        table = Struct(tuple(ours for _, ours in pairs))
        brought = Struct(tuple(replace(theirs, name=ours.name) for theirs, ours in pairs))
        kinds, alignment = to_arrow(table), align(table, brought, partition_columns=())
        rows = pa.table([self._rows[theirs.name] for theirs, _ in pairs], schema=to_arrow(brought))
        check_texts(table, "on")
        check_keys(rows.schema, kinds)
        keys = aligned(rows.to_batches(), alignment, kinds, Assignment(policy=Policy.LEGACY))
        return only_equal(pa.Table.from_batches(keys, kinds), rows)

    def _pairs(self, keys: pa.Table) -> tuple[pa.Array, pa.Array]:
        """Gives the indices of the rows of the table and of the source that match."""
        names = keys.column_names
        ours, theirs = key_numbers([self.found.rows.select(names), keys], names)
        valid = reduce(pc.and_, [pc.is_valid(keys[name].combine_chunks()) for name in names])
        left = pa.table({"n": ours, "left": counting(len(ours))})
        right = pa.table({"n": theirs, "right": counting(len(theirs))}).filter(valid)
        pairs = left.join(right, "n", join_type="inner").sort_by([("left", "ascending"), ("right", "ascending")])
        at, of = pairs["left"].combine_chunks(), pairs["right"].combine_chunks()
        if isinstance(self._asked.on, str):
            (held,) = self._evaluated([Asked(text=self.on, wanted=_BOOLEAN)], self._beside(at, of))
            keep = pc.fill_null(held, fill_value=False)
            return at.filter(keep), of.filter(keep)
        return at, of

    def _refuse_several(self) -> None:
        """Refuses several source rows for one row of the table. As in Spark, conditions of clauses do not matter."""
        asked = self._asked
        if asked.matched == (Delete(),) or not (asked.matched or asked.not_matched_by_source):
            return
        if len(pc.unique(self._left)) < len(self._left):
            raise InvalidRowsError(
                f"Some rows of {TABLE} match several rows of the source, so it is not clear which source row decides. "
                "Nothing was committed. Give the source at most one row for each row of the table, or add a condition "
                "to `on` that is true for only one of them.",
                error_class="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
            )

    # --- what the clauses do ---

    def _beside(self, left: pa.Array | None, right: pa.Array | None) -> pa.Table:
        """Gives rows of the table and of the source side by side, each as one struct."""
        columns = {}
        for name, rows, at in ((TARGET, self.found.rows, left), (SOURCE, self._rows, right)):
            if at is not None:
                columns[name] = rows.take(at).select(self._sides[name].names).to_struct_array()
        return pa.table(columns)

    def _chosen(self, clauses: Sequence[Clause], rows: pa.Table) -> pa.Array:
        """Gives for each row the number of the first clause whose condition is true; null where there is none."""
        asked = [Asked(text="TRUE" if clause.where is None else clause.where, wanted=_BOOLEAN) for clause in clauses]
        chosen = pa.nulls(rows.num_rows, pa.int64())
        for number, held in reversed(list(enumerate(self._evaluated(asked, rows)))):
            chosen = pc.if_else(pc.fill_null(held, fill_value=False), pa.scalar(number, pa.int64()), chosen)
        return chosen

    def _make(self, clause: Clause, rows: pa.Table, replaces: pa.Array | None) -> None:
        if isinstance(clause, Delete):
            return
        given, argument = (clause.set, "set") if isinstance(clause, Update) else (clause.values, "values")
        columns = self._values(self._texts(given, argument), rows)
        if replaces is not None:
            generated = self._target.generated.difference(columns)
            before = self.found.rows.take(replaces).drop_columns(sorted(generated))
            columns = {name: columns.get(name, before[name]) for name in before.column_names}
        # The SQL was evaluated before, so wrong SQL is refused even if there is no row.
        if rows.num_rows:
            self.made.append(_Made(pa.table(columns), replaces))

    def _texts(self, given: Mapping[str, str] | None, argument: str) -> dict[str, str]:
        if given is None:
            missing = [name for name in self._source.names if name.lower() not in map(str.lower, self._schema.names)]
            if missing:
                raise SchemaMismatchError(
                    f"The source has columns that {TABLE} lacks: {', '.join(missing)}. Nothing was committed. Name the "
                    f"columns to set in {argument}, or drop the others.",
                    error_class="DELTA_MERGE_UNRESOLVED_EXPRESSION",
                )
            given = {name: f"{SOURCE}.`{name.replace('`', '``')}`" for name in self._source.names}
        texts = as_spelled(given, self._schema, option=argument)
        made = self._target.identity
        if any(name in texts for name in made) or (made and argument == "values"):
            raise SchemaMismatchError(
                f"{TABLE} has identity columns ({', '.join(made)}), for which a merge "
                "gives no values. Nothing was committed. Leave them out of set; append new rows instead.",
                error_class="DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
            )
        return texts

    def _values(self, texts: Mapping[str, str], rows: pa.Table) -> dict[str, pa.ChunkedArray]:
        kinds = {field.name: field.type for field in self._schema}
        found = self._evaluated([Asked(text=text, wanted=kinds[name]) for name, text in texts.items()], rows)
        columns = {}
        for name, value in zip(texts, found, strict=True):
            columns[name] = pa.chunked_array([in_form(value, self._target.schema.field(name).type)])
        return columns

    def _evaluated(self, asked: Sequence[Asked], rows: pa.Table) -> list[pa.Array]:
        if not asked:
            return []
        schema = Struct(tuple(Field(side, self._sides[side], nullable=True) for side in rows.column_names))
        program = compiled(asked, schema, option="merge", now_us=self._now_ms * 1000, zone=self._target.zone)
        arrays = [rows[name].combine_chunks() for name in rows.column_names]
        return evaluated(program, pa.RecordBatch.from_arrays(arrays, rows.column_names), doing="merge")


_BOOLEAN = Primitive("boolean")


def _in_sql(schema: Struct) -> Struct:
    """Gives `schema` without columns with variants, which no expression can name."""
    variant = Primitive("variant")
    return Struct(tuple(field for field in schema if all(part.type != variant for part in walk(field.type))))
