"""Splits in the hands of IndexTables' own library (tantivy4java), in the JVM of the peer's session.

Its classes are called from here: nothing of Java's is compiled, and none of its calls needs a callback.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tablefeed.model.split import Split

_CACHE_BYTES = 200_000_000
_ALL = 1_000_000
"""More documents than any split of the tests has."""


@dataclass(frozen=True, slots=True)
class Searched:
    """A split that is open, and what it answers."""

    _java: Any  # Any: py4j makes the classes of the JVM up as they are called
    _searcher: Any

    def count(self) -> int:
        """How many documents there are."""
        return self._hits(self._java.split.SplitMatchAllQuery())

    def term(self, field: str, value: str) -> int:
        """How many documents have the term."""
        return self._hits(self._java.split.SplitTermQuery(field, value))

    def between(self, field: str, kind: str, least: str, below: str) -> int:
        """How many have a value from `least` on and below the other."""
        bound = self._java.split.SplitRangeQuery.RangeBound
        query = self._java.split.SplitRangeQuery(field, bound.inclusive(least), bound.exclusive(below), kind)
        return self._hits(query)

    def exist(self, field: str) -> int:
        """How many have a value at all."""
        return self._hits(self._java.split.SplitExistsQuery(field))

    def parsed(self, query: str) -> int:
        """How many a query in words finds."""
        return self._hits(self._searcher.parseQuery(query))

    def total(self, field: str) -> float:
        """The sum of a field's values."""
        everything = self._java.split.SplitMatchAllQuery()
        result = self._searcher.aggregate(everything, "sum", self._java.aggregation.SumAggregation(field))
        return float(result.getAggregation("sum").getSum())

    def words(self, field: str, text: str) -> list[str]:
        """The terms that a text is searched by."""
        return list(self._searcher.tokenize(field, text))

    def rows(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """All documents, the last one first; of a column of values their JSON."""
        hits = self._searcher.search(self._java.split.SplitMatchAllQuery(), _ALL).getHits()
        documents = [self._searcher.doc(hit.getDocAddress()) for hit in hits]
        return [{name: _plain(document.getFirst(name)) for name in names} for document in documents]

    def _hits(self, query: Any) -> int:
        return int(self._searcher.search(query, _ALL).getHits().size())


class Library:
    """The library; what it opens stays open as long as the session."""

    def __init__(self, session: SparkSession) -> None:
        assert session._jvm is not None
        self._jvm: Any = session._jvm  # Any: as above
        self._java = self._jvm.io.indextables.tantivy4java
        config = self._java.split.SplitCacheManager.CacheConfig("tests").withMaxCacheSize(_CACHE_BYTES)
        self._cache = self._java.split.SplitCacheManager.getInstance(config)

    def open(self, path: Path, told: Split) -> Searched:
        """The split at `path`, by what its add tells of it, as IndexTables opens it."""
        metadata = self._java.split.merge.QuickwitSplit.SplitMetadata(
            path.name,
            told.num_records,
            told.uncompressed_size_bytes,
            None,
            None,
            self._jvm.java.util.HashSet(),
            told.delete_opstamp,
            told.merge_count,
            told.footer_start,
            told.footer_end,
            0,
            0,
            told.doc_mapping,
            None,
        )
        return Searched(self._java, self._cache.createSplitSearcher(path.as_uri(), metadata))

    def made(self, folder: Path, field: str, objects: Iterable[str]) -> bytes:
        """A split of the library's own making: a document for each of these JSON objects, under the field `field`."""
        options = self._java.core.JsonObjectOptions.full()
        builder = self._java.core.SchemaBuilder()
        builder.addJsonField(field, options)
        index = self._java.core.Index(builder.build(), str(folder / "index"), False)  # noqa: FBT003 - it is Java's
        writer = index.writer(50_000_000, 1)
        for each in objects:
            writer.addJson(f'{{"{field}": {each}}}')
        writer.commit()
        path = folder / f"{uuid.uuid4()}.split"
        config = self._java.split.merge.QuickwitSplit.SplitConfig("index", "source", "node")
        self._java.split.merge.QuickwitSplit.convertIndexFromPath(str(folder / "index"), str(path), config)
        return path.read_bytes()

    def merged(self, splits: Iterable[Path], into: Path) -> Searched:
        """The split that the library merges them to, open. Fails where it leaves one out."""
        urls = self._jvm.java.util.ArrayList()
        for split in splits:
            urls.add(str(split))
        config = self._java.split.merge.QuickwitSplit.MergeConfig("index", "source", "node")
        metadata = self._java.split.merge.QuickwitSplit.mergeSplits(urls, str(into), config)
        skipped = [str(split) for split in metadata.getSkippedSplitsDetailed()]
        assert skipped == []
        return Searched(self._java, self._cache.createSplitSearcher(into.as_uri(), metadata))


_BYTES = re.compile(r"Bytes\(\[([0-9, ]*)\]\)")


def _plain(value: Any) -> Any:
    """A stored value as the library gives it, as Python has it."""
    if isinstance(value, str):
        if bytes_ := _BYTES.fullmatch(value):
            return bytes(int(byte) for byte in bytes_[1].split(",") if byte)
        return json.loads(value) if value.startswith(("{", "[")) else value
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return datetime.fromisoformat(str(value)).replace(tzinfo=UTC)  # java.time.LocalDateTime
