"""Spark's own AUTO CDC, called in its JVM: it decides what a micro-batch makes of a target and of its auxiliary table.

Spark merges both by MERGE, for which a table must support row-level operations. Here the two tables are in memory, and
the merges are written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = dict[str, Any]
TARGET, AUXILIARY = "auto_cdc_target", "auto_cdc_auxiliary"


class AutoCdc:
    """A target of one flow. `keys`, `deletes` and the other arguments are those of `create_auto_cdc_flow`."""

    def __init__(
        self,
        session: SparkSession,
        *,
        keys: Sequence[str],
        sequence_by: str,
        deletes: str,
        but: Sequence[str],
        scd_type: int,
        tracked: Sequence[str] | None = None,
    ) -> None:
        self._session, self._keys, self._scd_type = session, keys, scd_type
        self._sequence_by, self._but, self._tracked, self._deletes = sequence_by, but, tracked, deletes
        self._target: dict[Any, Row] = {}
        self._auxiliary: dict[Any, Row] = {}
        self._batch = 0

    def apply(self, events: pa.Table) -> None:
        """Applies one micro-batch."""
        self._batch += 1
        if self._scd_type == 1:
            self._apply_rows(events)
        else:
            self._apply_history(events)

    def rows(self) -> list[Row]:
        """The rows of the target, without what Spark keeps in them for itself."""
        own = self._name("AutoCdcReservedNames", "cdcMetadataColName")
        return [{name: value for name, value in row.items() if name != own} for row in self._target.values()]

    # --- SCD type 1: Scd1BatchProcessor.mergeMicrobatchOntoAuxiliaryTable and mergeMicrobatchOntoTarget ---

    def _apply_rows(self, events: pa.Table) -> None:
        own = self._name("AutoCdcReservedNames", "cdcMetadataColName")
        deleted_at = self._name("Scd1BatchProcessor", "cdcDeleteSequenceFieldName")
        upserted_at = self._name("Scd1BatchProcessor", "cdcUpsertSequenceFieldName")
        kind = events.schema.field(self._sequence_by).type
        stored = pa.schema(
            [
                *(events.schema.field(key) for key in self._keys),
                pa.field(own, pa.struct([(deleted_at, kind), (upserted_at, kind)])),
            ]
        )
        auxiliary = pa.Table.from_pylist(list(self._auxiliary.values()), schema=stored)
        processor = self._classes.Scd1BatchProcessor(self._arguments(), self._sequence_type(events))
        found = processor.reconcileMicrobatch(self._frame(events)._jdf, self._frame(auxiliary)._jdf)
        for row in self._collected(found):
            key, at, gone = self._key(row), _order(row[own][upserted_at]), _order(row[own][deleted_at])
            grave, there = self._auxiliary.get(key), self._target.get(key)
            if gone is not None and (at is None or gone > at):
                if grave is None or gone > _order(grave[own][deleted_at]):
                    self._auxiliary[key] = {name: row[name] for name in stored.names}
            elif grave is not None and at >= _order(grave[own][deleted_at]):
                del self._auxiliary[key]
            held = None if there is None else _order(there[own][upserted_at])
            if held is not None and gone is not None and gone >= held:
                del self._target[key]
            elif gone is None and (held is None or at > held):
                self._target[key] = row

    # --- SCD type 2: Scd2BatchProcessor.mergeRowsIntoAuxiliaryTable and mergeRowsIntoTargetTable ---

    def _apply_history(self, events: pa.Table) -> None:
        own = self._name("AutoCdcReservedNames", "cdcMetadataColName")
        to_auxiliary = self._name("Scd2BatchProcessor", "shouldRouteToAuxTableColName")
        record, start, end = (
            self._name("Scd2BatchProcessor", f"{name}Name") for name in ("recordStartAtField", "startAtCol", "endAtCol")
        )
        kind = events.schema.field(self._sequence_by).type
        fields = [field for field in events.schema if field.name not in self._but]
        fields += [pa.field(start, kind), pa.field(end, kind), pa.field(own, pa.struct([(record, kind)]))]
        deleted_by = pa.field(self._name("Scd2BatchProcessor", "deletedByBatchIdColName"), pa.int64())
        for name, rows, schema in (
            (TARGET, self._target, pa.schema(fields)),
            (AUXILIARY, self._auxiliary, pa.schema([*fields, deleted_by])),
        ):
            self._frame(pa.Table.from_pylist(list(rows.values()), schema=schema)).createOrReplaceTempView(name)
        processor = self._classes.Scd2BatchProcessor(self._arguments(), self._sequence_type(events))
        names = (self._jvm.org.apache.spark.sql.catalyst.TableIdentifier(name) for name in (AUXILIARY, TARGET))
        handler = self._classes.Scd2ForeachBatchHandler(processor, *names)
        result = handler.reconcileMicrobatch(self._frame(events)._jdf, self._batch)
        # All affected rows leave, those that stay come back with the reconciled ones.
        for rows, affected in (
            (self._auxiliary, result.affectedRowsFromAuxiliaryTable()),
            (self._target, result.affectedRowsFromTargetTable()),
        ):
            for row in self._collected(affected):
                del rows[(*self._key(row), _order(row[own][record]))]
        for row in self._collected(result.reconciledAndRoutedDf()):
            is_auxiliary, at, ends = row.pop(to_auxiliary), _order(row[own][record]), _order(row[end])
            if is_auxiliary or ends is None or at < ends:
                rows = self._auxiliary if is_auxiliary else self._target
                assert (*self._key(row), at) not in rows
                rows[(*self._key(row), at)] = row

    # --- Scala ---

    @property
    def _jvm(self) -> Any:  # Any: py4j's
        return self._session._jvm

    @property
    def _classes(self) -> Any:
        return self._jvm.org.apache.spark.sql.pipelines.autocdc

    def _object(self, name: str) -> Any:
        return getattr(getattr(self._classes, f"{name}$"), "MODULE$")

    def _name(self, of: str, constant: str) -> str:
        return str(getattr(self._object(of), constant)())

    def _option(self, value: Any) -> Any:
        return self._jvm.scala.Option.apply(value)

    def _columns(self, names: Sequence[str]) -> Any:
        made = self._jvm.java.util.ArrayList()
        for name in names:
            made.add(self._classes.UnqualifiedColumnName(name))
        return self._jvm.PythonUtils.toSeq(made)

    def _arguments(self) -> Any:
        from pyspark.sql import functions

        def column(text: str) -> Any:
            return functions.expr(text)._jc

        chosen = getattr(self._classes, "ColumnSelection$ExcludeColumns")(self._columns(self._but))
        tracked = None
        if self._tracked is not None:
            tracked = getattr(self._classes, "ColumnSelection$IncludeColumns")(self._columns(self._tracked))
        return self._classes.ChangeArgs(
            self._columns(self._keys),
            column(self._sequence_by),
            self._object(f"ScdType$Type{self._scd_type}"),
            self._option(column(self._deletes)),
            self._option(chosen),
            self._option(tracked),
        )

    def _sequence_type(self, events: pa.Table) -> Any:
        return self._frame(events.slice(0, 0))._jdf.schema().apply(self._sequence_by).dataType()

    def _frame(self, rows: pa.Table) -> DataFrame:
        return self._session.createDataFrame(rows)

    def _collected(self, frame: Any) -> Iterator[Row]:
        from pyspark.sql.classic.dataframe import DataFrame

        yield from DataFrame(frame, self._session).toArrow().to_pylist()

    def _key(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row[key] for key in self._keys)


def _order(sequence: Any) -> Any:
    """A sequence as Python compares it: a struct member by member, text by its bytes."""
    if isinstance(sequence, dict):
        return tuple(map(_order, sequence.values()))
    return sequence.encode() if isinstance(sequence, str) else sequence
