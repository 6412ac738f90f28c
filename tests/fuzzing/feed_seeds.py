"""The valid texts that fuzzing begins with, and the valid files and messages of the feed."""

from __future__ import annotations

import io
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq

from fuzzing.log_seeds import as_json
from support.logs import TABLE_ID
from tablefeed.feed.rows import state
from tablefeed.feed.rows.folding import Folding
from tablefeed.feed.stream.offset_json import offset_to_json
from tablefeed.model.actions import Version
from tablefeed.model.offset import Barrier, EventTime, Offset
from tablefeed.store.memory import MemoryStore

# --- texts ----------------------------------------------------------------------------------------------------------


def predicates() -> list[bytes]:
    texts = (
        "id = 1 AND s <> 'a' OR NOT b",
        "d >= DATE'2024-01-31' AND at < TIMESTAMP'2024-01-31 12:00:00Z'",
        "id IN (1, 2, -3) OR deep.x BETWEEN 1 AND 3",
        "price <=> 1.50 AND `s` IS NOT NULL AND f > 0.5",
        "TRUE AND (((id > 1)))",
    )
    return [text.encode() for text in texts]


def rules() -> list[bytes]:
    texts = (
        "id > 0 AND length(s) < 10",
        "CASE WHEN f > 1 THEN b ELSE coalesce(price, 1.5BD) > 1 END",
        "s LIKE 'a%' OR s RLIKE '^b+$' OR upper(substring(s, 1, 2)) = concat('A', 'b')",
        "year(d) = 2024 AND d > date_add(current_date(), -7)",
        "CAST(s AS INT) + id * 2 % 3 = 5L",
        "deep.x IS NULL OR abs(deep.x) BETWEEN 1 AND 3",
    )
    return [*(text.encode() for text in texts), *predicates()]


def timestamps() -> list[bytes]:
    texts = (
        "2024-01-31 12:00:00.123456",
        "2024-01-31T12:00:00Z",
        "2024-1-3",
        "2024",
        "+12024-01-01",
        "-0001-12-31 23:59:59 UTC",
        "T12:00+01:30",
        "2024-01-31 12:00:00 Europe/Berlin",
        "2024-W05-3",
        "GMT+5",
        "UTC-3:30",
        "Europe/Berlin",
    )
    return [text.encode() for text in texts]


def patterns() -> list[bytes]:
    texts = (r"part-\d+.*", r"(?i)[a-z&&[^b]]{2,3}+|\Qx.y\E", r"^(a|b)*?c$", r"\p{L}\x41\u00e9", r"(?<n>a)\k<n>")
    return [text.encode() for text in texts]


# --- what the feed keeps and gets -----------------------------------------------------------------------------------


def offsets() -> list[bytes]:
    at = Offset(table_id=TABLE_ID, version=Version(3), file_index=2)
    by_time = replace(at, file_index=0, in_snapshot=True, event_time=EventTime(column="at", before_us=-5))
    passed = replace(at, file_index=0, barrier=Barrier.PASSED)
    return as_json(*(offset_to_json(each) for each in (at, by_time, passed, replace(at, in_snapshot=True))))


def messages() -> list[bytes]:
    source = {"connector": "postgresql", "lsn": 5, "ts_ms": 7}
    row = {"id": 1, "s": "a", "f": 0.5, "d": 19_000, "at": "2024-01-31T12:00:00.5Z", "b": True, "price": 1.25}
    plain = {"before": None, "after": row, "op": "c", "source": source, "ts_ms": 9}
    gone = {"before": {"id": 1}, "after": None, "op": "d", "source": {"connector": "mysql", "file": "b.7", "pos": 3}}
    price = {
        "field": "price",
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2"},
    }
    fields = [{"field": "id", "type": "int64"}, price]
    described = {
        "schema": {"fields": [{"field": name, "type": "struct", "fields": fields} for name in ("before", "after")]},
        "payload": {**plain, "after": {"id": 1, "price": "AfQ="}},
    }
    keys = as_json({"id": 1}, {"schema": {"fields": fields}, "payload": {"id": 1}}, None)
    return [key + b"\n" + value for key, value in zip(keys, as_json(plain, described, gone), strict=True)]


def row_states(how: Folding) -> list[bytes]:
    store = MemoryStore("t")
    rows = pa.Table.from_pylist([{"id": 1}, {"id": 2}], how.state_schema)
    keys = rows.select(how.keys)
    written = state.increment(store, rows.slice(0, 1), keys, how)
    assert written is not None
    packed = store.read(written.path)
    plain = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(packed)), plain, compression="none", use_dictionary=False)
    return [packed, plain.getvalue()]


def consumers() -> list[bytes]:
    return as_json({"format": 1, "consumerId": "a", "version": 3, "expiresAfterDays": 30.0})


def app_ids() -> list[bytes]:
    return [b"a query\n7", "é\U0001f600\x00\n9223372036854775807".encode(), b"\xed\xa0\x80\n1"]
