"""The facts about a data file (a split) that only IndexTables records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The facts of one split, each None where its writer left it out: no fact is in every flavour of the log.

    `footer_start` to `footer_end` are the bytes that a reader opens first. The schema of the index is `doc_mapping`
    (JSON), or `doc_mapping_ref`, the hash under which the table keeps it. `min_values` and `max_values` are text, and
    may be cut short for text columns. The `companion_*` are set for a split that indexes files of another table.
    """

    num_records: int | None = None
    min_values: Mapping[str, str] | None = None
    max_values: Mapping[str, str] | None = None
    footer_start: int | None = None
    footer_end: int | None = None
    uncompressed_size_bytes: int | None = None
    doc_mapping: str | None = None
    doc_mapping_ref: str | None = None
    tags: tuple[str, ...] | None = None
    merge_count: int | None = None
    delete_opstamp: int | None = None
    time_range_start: str | None = None
    time_range_end: str | None = None
    hotcache_start: int | None = None
    hotcache_size_bytes: int | None = None
    companion_source_files: tuple[str, ...] | None = None
    companion_delta_version: int | None = None
    companion_fast_field_mode: str | None = None
