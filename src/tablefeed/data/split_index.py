"""Builds the index of a split's rows with Tantivy (wheel `tantivy`, extra `indextables`) in a temporary folder.

The fields are those of indextables/split/index_schema.py. No other module uses the wheel. This one gives the bytes of
the index's files, as IndexTables opens them, under names that are derived from the split's name.
"""

from __future__ import annotations

import hashlib
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.errors import TABLE, InvalidRowsError, StoreConfigError, StoreError
from tablefeed.indextables.split.damage import DamagedSplitError, UnfitValueError, UnsupportedSplitError
from tablefeed.indextables.split.index_schema import Json, encode_managed, encode_meta, fields, is_object
from tablefeed.indextables.split.indexing import Indexed, Indexing
from tablefeed.indextables.split.plain import addresses, json_objects, objects
from tablefeed.indextables.split.sstable import as_sstables
from tablefeed.indextables.split.tantivy_file import decode_marked

_FORMAT = 7
"""The format of the index's files that IndexTables' Tantivy and this reader know."""
_BUFFER_BYTES = 1_000_000_000
"""The size at which Tantivy begins another segment, larger than one split. It is not allocated at once."""
_FIRST_MOMENT = "1677-09-21T00:12:43.145225"
_LAST_MOMENT = "2262-04-11T23:47:16.854775"
"""The range of Tantivy's timestamps, which are 64 bits of nanoseconds."""
_LONGEST_WORD = 255
"""Words of full text with this many bytes or more are not indexed. IndexTables' limit; Tantivy's own is lower."""
_SAMPLE = 1000
"""The number of rows from which the members of objects are determined, as in IndexTables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The files of a one-segment index by name, and sample values of the columns that are stored as objects."""

    files: Mapping[str, bytes]
    objects: Mapping[str, Sequence[Mapping[str, object]]]


def require_tantivy() -> Any:  # Any: its types are not where it is not installed
    """The module. Raises StoreConfigError where it is not installed."""
    try:
        import tantivy  # an extra: reading does not need it
    except ImportError as error:
        raise StoreConfigError(
            f'Splits of {TABLE} are written by tantivy, which is not installed: pip install "tablefeed[indextables]" '
            "where the tasks' Python runs.",
        ) from error
    return tantivy


def index_rows(rows: pa.Table, indexing: Indexing, *, name: str) -> Index:
    """The index of `rows`, in their order, whose types have been checked. `name`: the split's, which names its segment.

    It has the columns that `indexing` does, in its order. The same rows and name give the same files, as far as one
    version of Tantivy goes. Raises InvalidRowsError for a text that is not UTF-8, a timestamp outside of Tantivy's
    range, a map with one key twice and an IP address that is not written in the form in which it is stored,
    StoreConfigError where Tantivy is not installed or writes another format, StoreError where there is no place for the
    files.
    """
    tantivy = require_tantivy()
    listed = fields(rows.schema, indexing)
    names = [field["name"] for field in listed]
    columns = [_column(rows.schema.field(each), rows.column(each).combine_chunks(), indexing) for each in names]
    try:
        # Tantivy deletes files in its own threads, some of them later than this cleanup.
        with tempfile.TemporaryDirectory(prefix="tablefeed-", ignore_cleanup_errors=True) as folder:
            found = _written(tantivy, Path(folder), listed, columns)
    except (OSError, ValueError) as error:  # the second is how the wheel raises Tantivy's errors
        raise StoreError(
            f"A split of {TABLE} cannot be made in the temporary folder: {error}. If its disk is full, free space "
            "there, or set TMPDIR to a folder with more."
        ) from error
    samples = {c.name: [each for each in c.values[:_SAMPLE] if each is not None] for c in columns if c.is_object}
    return Index(files=_renamed(found, listed, rows.num_rows, name), objects=samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """The values of a column, for the document method that `add` names."""

    name: str
    add: str
    values: list[Any]
    is_object: bool


def _column(field: pa.Field, column: pa.Array, indexing: Indexing) -> _Column:
    kind, name = field.type, field.name
    _refuse_other_bytes(field, column)
    try:
        if is_object(field, indexing):
            values = json_objects(column) if kind == pa.string() else objects(column)
            return _Column(name=name, add="add_json", values=values, is_object=True)
        if kind == pa.string() and indexing.of(name) is Indexed.IP:
            return _Column(name=name, add="add_ip_addr", values=addresses(column), is_object=False)
    except UnfitValueError as error:
        raise _unfit(field, str(error)) from error
    if pa.types.is_temporal(kind):
        column = _moments(field, column)
    add = next(method for is_a, method in _METHODS if is_a(kind))
    return _Column(name=name, add=add, values=column.to_pylist(), is_object=False)


_METHODS: Sequence[tuple[Callable[[pa.DataType], bool], str]] = (
    (pa.types.is_integer, "add_integer"),
    (pa.types.is_floating, "add_float"),
    (pa.types.is_boolean, "add_boolean"),
    (pa.types.is_string, "add_text"),
    (pa.types.is_temporal, "add_date"),
    (pa.types.is_binary, "add_bytes"),
)


def _refuse_other_bytes(field: pa.Field, column: pa.Array) -> None:
    """Raises InvalidRowsError for a text that is not UTF-8. Spark's strings may be any bytes, and Tantivy's may not."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        row = next(row for row in range(len(column)) if not _is_utf8(column[row]))
        text = column.cast(pa.binary())[row].as_py() if pa.types.is_string(field.type) else "a text"
        raise _unfit(field, f"{text!s:.80} in row {row} of the split is not UTF-8") from error


def _is_utf8(value: pa.Scalar) -> bool:
    try:
        value.as_py()
    except UnicodeDecodeError:
        return False
    except (ValueError, OverflowError):  # a time that Python does not have
        pass
    return True


def _moments(field: pa.Field, column: pa.Array) -> pa.Array:
    kind = pa.timestamp("us", "UTC")
    first, last = (pa.scalar(text).cast(pa.timestamp("us")).cast(pa.int64()) for text in (_FIRST_MOMENT, _LAST_MOMENT))
    if pa.types.is_date(field.type):
        units = pc.multiply(column.cast(pa.int32()).cast(pa.int64()), 86_400_000_000)
    else:
        units = column.cast(kind).cast(pa.int64())
    outside = pc.or_(pc.less(units, first), pc.greater(units, last))
    if pc.any(outside).as_py():
        raise _unfit(field, f"a value is outside of {_FIRST_MOMENT}Z to {_LAST_MOMENT}Z")
    return units.cast(kind)


def _unfit(field: pa.Field, reason: str) -> InvalidRowsError:
    return InvalidRowsError(
        f"A split of {TABLE} cannot hold the rows' column {field.name}, {field.type}: {reason}. Nothing of this write "
        "was committed: change the value, or filter these rows out.",
    )


def _written(tantivy: Any, folder: Path, listed: Sequence[Json], columns: Sequence[_Column]) -> dict[str, bytes]:
    """The files of the one segment that Tantivy builds from the columns, by suffix."""
    (folder / "meta.json").write_bytes(encode_meta(listed, segment=None, opstamp=0))
    index = tantivy.Index.open(str(folder))
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
    index.register_tokenizer("default", words.filter(tantivy.Filter.remove_long(_LONGEST_WORD)).build())
    writer = index.writer(_BUFFER_BYTES, 1)
    named = [(column.name, column.add) for column in columns]
    for row in zip(*(column.values for column in columns), strict=True):
        document = tantivy.Document()
        for (name, add), value in zip(named, row, strict=True):
            if value is not None:
                getattr(document, add)(name, value)
        writer.add_document(document)
    writer.commit()
    writer.wait_merging_threads()
    files = [path for path in sorted(folder.iterdir()) if path.suffix in _ENDS]
    if len(files) != len(_ENDS):
        raise ValueError(f"it made {len(files)} files of segments, {[path.name for path in files]}")
    return {path.suffix: path.read_bytes() for path in files}


_ENDS = (".fast", ".fieldnorm", ".idx", ".pos", ".store", ".term")


def _renamed(found: Mapping[str, bytes], listed: Sequence[Json], row_count: int, name: str) -> dict[str, bytes]:
    """The files of the index under names derived from the split's, with the terms as IndexTables reads them."""
    segment = uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16])
    try:
        version = decode_marked(found[".term"]).version.get("index_format_version")
        terms = as_sstables(found[".term"])
    except (DamagedSplitError, UnsupportedSplitError, ValueError) as error:
        raise _other_format(f"its terms cannot be read: it {error}") from error
    if version != _FORMAT:
        raise _other_format(f"its index has the format {version}, not {_FORMAT}")
    files = {f"{segment.hex}{end}": terms if end == ".term" else found[end] for end in _ENDS}
    meta = encode_meta(listed, segment=(str(segment), row_count), opstamp=row_count)
    return {**files, "meta.json": meta, ".managed.json": encode_managed([*files, "meta.json"])}


def _other_format(reason: str) -> StoreConfigError:
    return StoreConfigError(
        f"Splits of {TABLE} cannot be written by the tantivy that is installed: {reason}. Install 0.27, which works.",
    )
