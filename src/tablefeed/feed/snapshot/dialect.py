"""The two table formats, as users name them. `open_log.open_log` looks up which one a table has."""

from __future__ import annotations

from enum import StrEnum

from tablefeed.errors import IllegalOptionError
from tablefeed.indextables import names as index_names
from tablefeed.model.actions import Metadata


class TableFormat(StrEnum):
    """The two table formats, as the option `tableFormat` names them."""

    DELTA = "delta"
    INDEXTABLES = "indextables"


def read_table_format(option: str, value: object) -> TableFormat:
    """Gives the format that `value` of `option` names, in any case. Raises IllegalOptionError."""
    if isinstance(value, str) and value.lower() in list(TableFormat):
        return TableFormat(value.lower())
    raise IllegalOptionError(option=option, value=str(value), explain="must be 'delta' or 'indextables'")


def has_splits(metadata: Metadata) -> bool:
    """Says whether the table's data files are splits, as in every IndexTables table."""
    return metadata.format_provider == index_names.PROVIDER
