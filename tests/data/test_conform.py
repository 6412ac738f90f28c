"""What it costs to decide how the columns of a file become those of the table."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from tablefeed.data.conform import Conformer


class Watched:
    """A schema that counts how often its columns are gone through."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema, self.looks = schema, 0

    def __iter__(self) -> Iterator[pa.Field]:
        self.looks += 1
        return iter(self.schema)

    def field(self, name: str) -> pa.Field:
        return self.schema.field(name)


def test_the_columns_of_a_file_are_gone_through_once_however_many_are_wanted() -> None:
    schema = pa.schema([(f"column_{number}", pa.int64()) for number in range(50)])
    found = Watched(schema)

    conform = Conformer(found, schema)

    assert (len(conform.source_names), found.looks) == (50, 1)
