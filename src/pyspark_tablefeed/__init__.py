"""Spark imports every top-level `pyspark_*` module on its first data-source lookup: this must not fail or be slow."""
