"""Data file paths between the log and the disk (PROTOCOL.md, "Add File and Remove File", field `path`).

The log keeps a path as a URI: percent-encoded once, relative to the table or absolute. Within tablefeed a path is
decoded: what the store is asked for. Partition directories are a writer's habit that no reader may rely on; ours
are Spark's (`ExternalCatalogUtils.escapePathName`), so that the same values meet in the same directories.
Pure text: no file is looked at.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

HIVE_DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The directory's word for null and for '' (Spark's `ExternalCatalogUtils.DEFAULT_PARTITION_NAME`)."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


def decode_path(log_path: str) -> str:
    """What the store opens for `log_path`: the text percent-decoded exactly once.

    A relative path stays relative. An absolute one is `/...` for `file:/x`, `file:///x` and `/x` alike, so that
    spellings of one file are one text; other schemes keep `scheme://authority` and decode what follows. Escapes
    that spell no UTF-8 name no path: such a text is returned as it is, and never meets another's. Never fails.
    """
    if not _SCHEME.match(log_path):
        return _decode(log_path)
    scheme, _, rest = log_path.partition(":")
    authority, slash, tail = ("", "", rest)
    if rest.startswith("//"):
        authority, slash, tail = rest[2:].partition("/")
        tail = slash + tail
    if scheme.lower() == "file":
        return _decode(tail)
    return f"{scheme}:{'//' if rest.startswith('//') else ''}{authority}{_decode(tail)}"


def _decode(text: str) -> str:
    if "%" not in text:
        return text
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        return text
