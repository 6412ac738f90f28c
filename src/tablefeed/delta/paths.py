"""Data file paths between the log and the disk (PROTOCOL.md, "Add File and Remove File", field `path`).

The log keeps a path as a URI: percent-encoded once, relative to the table or absolute. Within tablefeed a path is
decoded: what the store is asked for. Partition directories are a writer's habit that no reader may rely on; ours
are Spark's (`ExternalCatalogUtils.escapePathName`), so that the same values meet in the same directories.
Pure text: no file is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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


def encode_path(path: str) -> str:
    """The log's text for the on-disk relative `path`: what Delta-Spark writes, and `decode_path` gives `path` back.

    Delta-Spark logs `Path.toUri.toString`: Java quotes in a path all of ASCII but `_-!.~'()*@&=+$,;/` and
    alphanumerics, and beyond ASCII control and space characters alone. `:` is quoted here too, though Java would
    leave it: a relative URI that begins with `a:` has a scheme. Names that `partition_directory` makes have none.
    """
    return _QUOTED.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), path)


def partition_directory(partition_values: Iterable[tuple[str, str | None]]) -> str:
    """The relative directory, as on disk, of the columns and serialised values of one partition; '' without any.

    Spark's names: `column=value/...`, both escaped Hive's way, null and '' as `__HIVE_DEFAULT_PARTITION__`.
    """
    return "/".join(
        f"{_hive_escaped(column)}={_hive_escaped(value) if value else HIVE_DEFAULT_PARTITION}"
        for column, value in partition_values
    )


# The space characters of Unicode (Zs, Zl, Zp) and its controls beyond ASCII: java.lang.Character.isSpaceChar and
# isISOControl, by which java.net.URI quotes.
_QUOTED = re.compile(
    r"[\x00-\x7f\x80-\x9f\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000](?<![A-Za-z0-9_\-!.~'()*@&=+$,;/])"
)
_HIVE_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")


def _hive_escaped(text: str) -> str:
    return _HIVE_ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)
