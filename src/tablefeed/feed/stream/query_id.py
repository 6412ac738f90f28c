"""The id of a streaming query, as its checkpoint has it."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from tablefeed.errors import OffsetError
from tablefeed.store import open_store


def query_id(checkpoint_location: str, storage_options: Mapping[str, str]) -> str:
    """Gives the id that Spark wrote to the checkpoint when the query first started; a restart has the same.

    Raises OffsetError where the checkpoint does not say it, and StoreError.
    """
    text = open_store(checkpoint_location, storage_options).read("metadata")
    try:
        return str(orjson.loads(text)["id"])
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise OffsetError(
            f"The checkpoint {checkpoint_location} does not say the id of its query: its file `metadata` has "
            f"{text!r:.100}. Nothing was committed. Restore the checkpoint, or start with a new one.",
            url=checkpoint_location,
        ) from error
