"""Which of the two formats a table has, and the read rules of that format.

The format provider in the table's metadata says which format it is.
"""

from __future__ import annotations

from enum import StrEnum

from tablefeed.delta import features
from tablefeed.errors import IllegalOptionError
from tablefeed.indextables import names as index_names
from tablefeed.model.actions import Metadata, Protocol


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


def check_readable(protocol: Protocol, metadata: Metadata, *, url: str) -> None:
    """Raises UnsupportedFeatureError, with the feature's name, where a table with these cannot be read."""
    if has_splits(metadata):
        from tablefeed.indextables.log import protocol as index_protocol

        index_protocol.refuse_reading(protocol, url=url)
        index_protocol.refuse_companion(metadata, url=url)
    else:
        features.check_readable(protocol, metadata, url=url)
