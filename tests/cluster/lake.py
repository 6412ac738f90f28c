"""Tables on the store between the machines: what is put into them, what they must have, and which files lie there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fsspec
import pyarrow as pa
from deltalake import DeltaTable

import tablefeed
from cluster.drivers import Job
from support.gateway import Gateway

FED = {"delta.enableChangeDataFeed": "true"}
CHANGED = {"delta.feature.domainMetadata": "supported"}
APPLIES = {"keys": "id", "sequenceBy": "ts", "applyAsDeletes": "op = 'd'", "exceptColumnList": "op"}

Row = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Lake:
    """The tables of a test, in its bucket; checkpoints are in `checkpoints`, on the driver's disk."""

    store: Gateway
    checkpoints: Path
    gate: str = ""

    def url(self, table: str) -> str:
        """The URL of a table."""
        return self.store.url(table)

    def job(self, source: str, target: str, **more: Any) -> Job:
        """The job of a stream between two tables."""
        gated = {"gate": self.gate, "hidden": str(self.checkpoints)} if self.gate else {}
        return {
            "do": "run",
            "source": self.url(source),
            "target": self.url(target),
            "storage": {f"storage.{name}": value for name, value in self.store.options.items()},
            "checkpoint": (self.checkpoints / f"{self.store.bucket}-{target}").as_uri(),
            **gated,
            **more,
        }

    def append(self, table: str, rows: Mapping[str, list[Any]]) -> None:
        """Commits one file."""
        tablefeed.append(self.url(table), pa.table(rows), storage_options=self.store.options)

    def numbers(self, table: str, *, files: int, rows: int, first: int = 0) -> list[Row]:
        """Commits files of rows (id, v), one a commit; gives the rows."""
        made: list[Row] = []
        for file in range(files):
            ids = range(first + file * rows, first + (file + 1) * rows)
            self.append(table, {"id": list(ids), "v": [f"v{i}" for i in ids]})
            made += [(i, f"v{i}") for i in ids]
        return made

    def ledger(self, table: str) -> None:
        """Makes a table with a change feed: inserts, updates and deletes."""
        options = self.store.options
        schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
        tablefeed.create(self.url(table), schema, properties=FED, storage_options=options)
        self.numbers(table, files=4, rows=5)
        tablefeed.update(self.url(table), {"v": "'changed'"}, where="id IN (0, 7, 14)", storage_options=options)
        tablefeed.delete(self.url(table), "id BETWEEN 9 AND 12", storage_options=options)
        self.numbers(table, files=2, rows=5, first=20)

    def events(self, table: str) -> list[Row]:
        """Commits change events out of order; gives the rows that they make."""
        for turn in range(8):
            ids = [(7 * turn + step) % 20 for step in range(12)]
            times = [100 * ((turn * 3 + i) % 4) + turn for i in ids]
            kinds = ["d" if (i + turn) % 5 == 0 else "u" for i in ids]
            self.append(table, {"id": ids, "v": [f"{turn}-{i}" for i in ids], "ts": times, "op": kinds})
        newest: dict[int, Row] = {}
        for id_, value, at, kind in self.rows(table, "id", "v", "ts", "op"):
            newest[id_] = max(newest.get(id_, (id_, "", -1, "")), (id_, value, at, kind), key=lambda row: row[2])
        return [(id_, value, at) for id_, value, at, kind in sorted(newest.values()) if kind != "d"]

    def changed(self, table: str) -> None:
        """Makes an empty table for row changes."""
        schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("ts", pa.int64())])
        tablefeed.create(self.url(table), schema, properties=CHANGED, storage_options=self.store.options)

    def rows(self, table: str, *columns: str) -> list[Row]:
        """The rows of a table, sorted, as tablefeed reads them."""
        found = tablefeed.open_table(self.url(table), storage_options=self.store.options).to_arrow()
        return _sorted(found, columns)

    def rows_by_delta_rs(self, table: str, *columns: str) -> list[Row]:
        """The same as delta-rs reads them."""
        return _sorted(self._delta_rs(table).to_pyarrow_table(), columns)

    def changes_by_delta_rs(self, table: str) -> list[Row]:
        """The rows of the change feed from version 0, sorted, as delta-rs reads them."""
        # From a copy on the disk: delta-rs holds Python's lock here, and the server is a thread of this process.
        with TemporaryDirectory() as folder:
            self._s3().get(f"{self.store.bucket}/{table}/", f"{folder}/", recursive=True)
            feed = pa.table(DeltaTable(folder).load_cdf(starting_version=0).read_all())
        return _sorted(feed, ("id", "v", "_change_type", "_commit_version"))

    def batches(self, table: str, query: str) -> list[int]:
        """The batches of a query that the log has, in the order of the commits."""
        return [txn["version"] for txn in self._actions(table, "txn") if txn["appId"] == query]

    def unnamed_files(self, table: str) -> set[str]:
        """The data files that lie in the table's folder and that neither its newest version nor a domain names."""
        files = {
            file.removeprefix(f"{self.store.bucket}/{table}/")
            for file in self._s3().find(f"{self.store.bucket}/{table}")
        }
        named = {path.partition(f"/{table}/")[2] or path for path in self._delta_rs(table).file_uris()}
        domains = {each["domain"]: each.get("configuration", "") for each in self._actions(table, "domainMetadata")}
        data = {file for file in files if file.endswith((".parquet", ".arrow")) and "_delta_log/" not in file}
        return {file for file in data - named if not any(file in text for text in domains.values())}

    def vacuum(self, table: str) -> None:
        """Deletes what no version needs, however new it is."""
        tablefeed.vacuum(
            self.url(table), retention_hours=0, allow_short_retention=True, storage_options=self.store.options
        )

    def _actions(self, table: str, kind: str) -> list[dict[str, Any]]:  # Any: JSON
        """The actions of one kind in all commits, in their order."""
        s3 = self._s3()
        log = sorted(s3.glob(f"{self.store.bucket}/{table}/_delta_log/*.json"))
        actions = [json.loads(line) for file in log for line in s3.cat_file(file).splitlines()]
        return [action[kind] for action in actions if kind in action]

    def _s3(self) -> Any:  # Any: fsspec has no types
        options = self.store.options
        keys = {"key": options["aws_access_key_id"], "secret": options["aws_secret_access_key"]}
        return fsspec.filesystem("s3", **keys, endpoint_url=options["aws_endpoint_url"], use_listings_cache=False)

    def _delta_rs(self, table: str) -> DeltaTable:
        scheme, options = self.store.delta_rs
        return DeltaTable(f"{scheme}://{self.store.bucket}/{table}", storage_options=options)


def _sorted(table: pa.Table, columns: tuple[str, ...]) -> list[Row]:
    chosen = table.select(columns or table.column_names)
    return sorted(zip(*(column.to_pylist() for column in chosen.columns), strict=True))
