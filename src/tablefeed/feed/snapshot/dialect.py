"""What differs between the two logs where the feed asks about a table: Delta's rules, or IndexTables'.

Which it is stands in the table's metadata, as the provider of its files.
"""

from __future__ import annotations

from enum import StrEnum

from tablefeed.delta import features
from tablefeed.errors import IllegalOptionError
from tablefeed.indextables import names as index_names
from tablefeed.model.actions import Metadata, Protocol


class TableFormat(StrEnum):
    """The two kinds of tables, as the option `tableFormat` names them."""

    DELTA = "delta"
    INDEXTABLES = "indextables"


def read_table_format(option: str, value: object) -> TableFormat:
    """Gives the format that `value` of `option` names, in any case. Raises IllegalOptionError."""
    if isinstance(value, str) and value.lower() in list(TableFormat):
        return TableFormat(value.lower())
    raise IllegalOptionError(option=option, value=str(value), explain="must be 'delta' or 'indextables'")


def has_splits(metadata: Metadata) -> bool:
    """Says whether the table's data files are splits: those of an IndexTables table."""
    return metadata.format_provider == index_names.PROVIDER


def check_readable(protocol: Protocol, metadata: Metadata, *, url: str) -> None:
    """Raises UnsupportedFeatureError, by name, for what cannot be read of a table with these."""
    if has_splits(metadata):
        from tablefeed.indextables.log import protocol as index_protocol

        index_protocol.refuse_reading(protocol, url=url)
        index_protocol.refuse_companion(metadata, url=url)
    else:
        features.check_readable(protocol, metadata, url=url)
