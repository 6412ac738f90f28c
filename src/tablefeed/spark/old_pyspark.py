"""The error for a PySpark that is too old. It imports nothing that such a PySpark may lack."""

from __future__ import annotations

from tablefeed.errors import TablefeedError


def too_old(version: str) -> TablefeedError:
    """Gives the error for PySpark `version`, for whoever looks up `format("tablefeed")`."""
    return TablefeedError(
        f"tablefeed needs PySpark 4.2 or newer, and this is PySpark {version}. Install a newer one, of the same "
        "version as the cluster's Spark: pip install 'pyspark>=4.2'."
    )
