"""Whether a table records the changes of its rows (PROTOCOL.md, "Change Data Files", "Writer Requirements")."""

from __future__ import annotations

from collections.abc import Mapping

from tablefeed.delta import names


def records_changes(configuration: Mapping[str, str]) -> bool:
    """Says whether commits to a table with these properties must record which rows they change.

    The property's older name counts where the newer one is not set.
    """
    older = configuration.get(names.ENABLE_CHANGE_DATA_CAPTURE, "false")
    return configuration.get(names.ENABLE_CHANGE_DATA_FEED, older).lower() == "true"
