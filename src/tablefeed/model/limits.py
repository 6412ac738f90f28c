"""Limits for the counts that a file claims for itself, shared by all readers."""

from __future__ import annotations

MOST_IN_A_LIST = 100_000
"""The most columns, or row groups, of a Parquet file. Arrow allocates memory for the number that the footer claims
before it has read one: about 700 bytes for each column of a row group. Arrow's own limit is ten times as high."""
