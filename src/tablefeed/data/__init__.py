"""Rows in and out of Parquet, and their statistics. Knows no log."""
