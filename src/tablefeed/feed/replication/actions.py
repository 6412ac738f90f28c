"""Turns the actions of a source's log into those of the copy's log. Only values: nothing is read.

Adds, removes and change files, statistics, row ids, the schema with its column mapping, properties and features stay
as they are. Values that belong to the source's own log are changed or left out: the table's id, versions, the time at
which a file was removed, the txns of applications that wrote the source, and the domains of tablefeed. The state of
applied changes is kept, because its files are copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import orjson

from tablefeed.delta import names
from tablefeed.delta.deletion_vectors import BadVectorError, stored_at
from tablefeed.delta.paths import below_root
from tablefeed.delta.properties import TableProperties
from tablefeed.errors import LogError, UnsupportedFeatureError
from tablefeed.feed.commit.entry import with_commit_times
from tablefeed.feed.rows.state import DOMAIN, paths_of
from tablefeed.feed.snapshot.table_log import Snapshot
from tablefeed.model.actions import CdcFile, DomainMetadata, FileAction, Metadata, RemoveFile, Version

_OURS = "tablefeed."
_OF_LOG = (names.IN_COMMIT_TIMESTAMPS_SINCE_VERSION, names.IN_COMMIT_TIMESTAMPS_SINCE_TIME)


def is_copied(domain: DomainMetadata) -> bool:
    """Says whether the domain is copied. Other domains of tablefeed belong to one table alone."""
    return domain.domain == DOMAIN or not domain.domain.startswith(_OURS)


def keeps_times(metadata: Metadata) -> bool:
    """Says whether commits under `metadata` have in-commit timestamps."""
    return TableProperties.of(metadata).keeps_commit_times


def own_metadata(
    metadata: Metadata, base: Snapshot | None, *, table_id: str, version: Version, commit_time_ms: int | None
) -> Metadata:
    """Gives the source's `metadata` for `version` of the copy, which follows `base`."""
    texts = {name: text for name, text in metadata.configuration.items() if name not in _OF_LOG}
    if names.CHECKPOINT_PROTECTION_BEFORE in texts:
        texts[names.CHECKPOINT_PROTECTION_BEFORE] = str(version)  # at most one version too many is protected
    had_times = base is not None and base.properties.keeps_commit_times
    if base is not None and had_times and commit_time_ms is not None:
        texts |= {name: text for name, text in base.metadata.configuration.items() if name in _OF_LOG}
    own = replace(metadata, table_id=table_id, configuration=texts)
    return own if base is None or had_times else with_commit_times(own, version, commit_time_ms)


def own_file(file: FileAction, now_ms: int) -> FileAction:
    """Gives the source's action for the copy. A removed file counts as removed now: VACUUM keeps it from now on."""
    return replace(file, deletion_timestamp_ms=now_ms) if isinstance(file, RemoveFile) else file


def own_info(info: Mapping[str, object] | None, **changed: object) -> dict[str, object]:
    """Gives the source's commitInfo with the fields `changed`; fields that are None there are left out."""
    kept = {name: value for name, value in (info or {}).items() if name not in changed and _can_be_written(value)}
    first = {name: value for name, value in changed.items() if value is not None}
    return {**first, **kept}


def _can_be_written(value: object) -> bool:
    try:
        orjson.dumps(value, default=dict)
    except TypeError:  # a number beyond 64 bits, or half a character
        return False
    return True


def names_of(file: FileAction, root_url: str) -> Iterator[str]:
    """Gives the names, below the root, of the files that an action other than a remove needs. Raises as `own_name`."""
    yield own_name(file.path, root_url)
    if isinstance(file, CdcFile) or file.deletion_vector is None:
        return
    try:
        stored = stored_at(file.deletion_vector)
    except BadVectorError as bad:
        raise LogError(
            f"The deletion vector of {file.path} in the log of {root_url} {bad}. Nothing was copied. Repair the log.",
            url=root_url,
            error_class="DELTA_DELETION_VECTOR_INVALID",
        ) from bad
    if stored is not None:
        yield own_name(stored.path, root_url)


def state_names(domain: DomainMetadata, root_url: str) -> Iterator[str]:
    """Gives the names of the files that a copied domain needs."""
    if domain.domain == DOMAIN and not domain.removed:
        yield from (own_name(path, root_url) for path in paths_of(domain))


def own_name(path: str, root_url: str) -> str:
    """Gives the decoded `path`. Raises UnsupportedFeatureError unless it is a plain name below the table's root."""
    if below_root(path, root_url="") != path or path.partition("/")[0].lower() == names.LOG_DIR:
        raise UnsupportedFeatureError(
            f"The log of {root_url} names the file {path!r}, which is not a relative path below the table, as in a "
            "shallow clone. Such a file cannot be copied under the same path. Nothing was copied. Copy the rows "
            "instead: by_rows=True.",
            url=root_url,
            features=("absolute paths",),
        )
    return path
