"""How much of what a file claims of itself is believed, whichever room reads it."""

from __future__ import annotations

MOST_IN_A_LIST = 100_000
"""Columns or row groups of a Parquet file. Arrow takes memory for as many as a footer claims, before it has seen one:
some 700 bytes for each column of a row group, and its own limit is ten times as many."""
