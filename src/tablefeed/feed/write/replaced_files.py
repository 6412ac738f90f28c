"""Decides which live files the commit of an overwrite replaces whole.

The partition values in the log are parsed and compared as values, not as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from tablefeed.errors import TABLE, LogError
from tablefeed.feed.write.replacement import Replaces, matches
from tablefeed.feed.write.write_rules import Scope
from tablefeed.model.actions import AddFile, CdcFile, FileAction

if TYPE_CHECKING:
    import pyarrow as pa


class ReplacedFiles:
    """Decides which files the commit of `written` replaces, except for a plan with a predicate by row.

    Raises LogError for a file whose partition values in the log are missing or cannot be parsed.
    """

    def __init__(self, planned: Replaces, written: Iterable[AddFile]) -> None:
        self._planned, self._scope = planned, planned.scope
        self._partitions: frozenset[tuple[object, ...]] = frozenset()
        if self._scope is Scope.PARTITIONS:
            self._partitions = frozenset(self._keys(_maps([file.partition_values for file in written])))

    def of(self, files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Gives the files among `files` (`tablefeed.delta.columns.FILE_COLUMNS`) that are replaced."""
        for batch in files:
            yield batch if self._scope is Scope.TABLE else batch.filter(self._among(batch["partition_values"]))

    def reads(self, file: FileAction) -> bool:
        """Whether `file`, which another commit added or removed, is among what this write replaces."""
        if self._scope is Scope.TABLE:
            return True
        if isinstance(file, CdcFile):
            return False
        if file.partition_values is None:
            return True  # a remove may leave out its partition values
        return self.among([file.partition_values])[0]

    def among(self, values: Sequence[Mapping[str, str | None]]) -> list[bool]:
        """Says for each of the partitions with `values`, as in the log, whether it is replaced."""
        return self._among(_maps(values)).to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types

    def _among(self, values: pa.MapArray) -> pa.BooleanArray:
        """Whether each of the partitions is replaced. Equal partitions are judged once."""
        import pyarrow.compute as pc

        from tablefeed.delta.json_texts import texts_of_map

        texts = texts_of_map(values)
        partitions = texts.dictionary_encode()
        first_rows = pc.index_in(partitions.dictionary, value_set=texts)
        return self._judged(values.take(first_rows)).take(partitions.indices)

    def _judged(self, values: pa.MapArray) -> pa.BooleanArray:
        import pyarrow as pa

        if isinstance(self._scope, Scope):
            return pa.array([key in self._partitions for key in self._keys(values)], pa.bool_())
        return matches(pa.RecordBatch.from_pydict(self._columns(values)), self._scope)

    def _keys(self, values: pa.MapArray) -> list[tuple[object, ...]]:
        return list(zip(*(_comparable(column) for column in self._columns(values).values()), strict=True))

    def _columns(self, values: pa.MapArray) -> Mapping[str, pa.Array]:
        import pyarrow.compute as pc

        from tablefeed.feed.scan.pruning import leaf_of, partition_values_of

        columns: dict[str, pa.Array] = {}
        for name, column in self._planned.partitions.items():
            known = partition_values_of(values, leaf_of(column))
            if not pc.all(known.is_known).as_py() and len(known.is_known):
                raise LogError(
                    f"The log of {TABLE} has a file without a valid value of partition column {name!r}, so it is "
                    "not known whether to replace that file. Nothing was committed. Overwrite the whole table.",
                )
            columns[name] = known.values
        return columns


def _maps(values: Sequence[Mapping[str, str | None]]) -> pa.MapArray:
    import pyarrow as pa

    from tablefeed.delta.columns import STRING_MAP

    return pa.array([list(each.items()) for each in values], type=STRING_MAP)


def _comparable(column: pa.Array) -> list[object]:
    """The values as Python objects that are equal where Spark's `<=>` is true: NaN equals NaN, null equals null."""
    import pyarrow as pa

    if pa.types.is_temporal(column.type):
        # Python's dates end with the year 9999.
        column = column.view(pa.int32() if column.type.bit_width == 32 else pa.int64())
    values: list[object] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return ["NaN" if value != value else value for value in values]
    return values
