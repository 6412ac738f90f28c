"""Data file paths between the log and the disk (PROTOCOL.md, "Add File and Remove File", field `path`).

The log keeps a path as a URI: percent-encoded once, relative to the table or absolute. Within tablefeed a path is
decoded: it is what the store opens. No reader may rely on the names of partition directories. Ours are Spark's
(`ExternalCatalogUtils.escapePathName`), so that both writers use the same directory for the same values.
Pure text: no file is opened or listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from tablefeed.errors import LogError
from tablefeed.model.actions import AddFile, RemoveFile

HIVE_DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The directory name for null and for '' (Spark's `ExternalCatalogUtils.DEFAULT_PARTITION_NAME`)."""

ALLOW_ABSOLUTE_PATHS = "allow_absolute_paths"
"""The storage option that says whether a log may name files outside its table."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


def decode_path(log_path: str) -> str:
    """The path that the store opens for `log_path`: the text percent-decoded exactly once.

    A relative path stays relative. `file:/x`, `file:///x` and `/x` all become `/x`, so that one file has one text.
    Other schemes keep `scheme://authority`, and the rest is decoded. A text whose escapes are not UTF-8 is returned
    unchanged. Raises nothing.
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


def file_key(file: AddFile | RemoveFile) -> tuple[str, str | None]:
    """The identity of a file action, as `columns.file_keys`: its decoded path, and its deletion vector's id or None."""
    return decode_path(file.log_path), file.deletion_vector.unique_id if file.deletion_vector else None


def refuse_escape(path: str, *, root_url: str, clones: bool) -> None:
    """Raises LogError, naming the decoded `path`, where the table must not have its file.

    To be called before a file that the log names (a data file, a deletion vector) is opened. A path must be below the
    root. With `clones`, an absolute path of the root's own scheme may also lead elsewhere, without `..`, as the paths
    of a shallow clone do. Only the text is checked: links are not followed.
    """
    if below_root(path, root_url=root_url) is not None or (clones and _is_elsewhere_in_plain_words(path, root_url)):
        return
    raise LogError(
        f"The log of {root_url} names the file {path!r}, which is outside the table; it was not opened. If you trust "
        f"the log and this is intended, set the storage option {ALLOW_ABSOLUTE_PATHS}=true. Otherwise restore the log "
        "from a copy.",
        url=root_url,
    )


def _is_elsewhere_in_plain_words(path: str, root_url: str) -> bool:
    if not _is_absolute(path) or ".." in path.split("/"):
        return False
    place, root_place = _place(path)[0], _place(root_url)[0]
    return place == "" or place.partition(":")[0] == root_place.partition(":")[0]


def below_root(path: str, *, root_url: str) -> str | None:
    """The name of the decoded `path` below the root, without `.` and `..`; None where it is not below the root.

    None also for a relative path that leaves the root and comes back. An absolute path without a scheme is in the
    root's file system, as in Hadoop. `root_url` must not be percent-encoded: a store's own URL is not.
    """
    if not _is_absolute(path):
        segments = _resolved(path)
        return "/".join(segments) if segments else None
    root_place, root_path = _place(root_url)
    place, own_path = _place(path)
    root, segments = _resolved(root_path), _resolved(own_path)
    if place not in ("", root_place) or root is None or segments is None:
        return None
    if root_path and not root_path.startswith("/"):  # a store without directories: memory:orders
        return None
    if segments[: len(root)] != root or len(segments) == len(root):
        return None
    return "/".join(segments[len(root) :])


_SCHEMES_OF_ONE_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "wasbs": "wasb"}
"""Hadoop's other names for a store, as tablefeed.store takes them."""


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or _SCHEME.match(path) is not None


def _place(path: str) -> tuple[str, str]:
    """Splits an absolute path or URL into `scheme://authority`, "" without a scheme, and the path."""
    if not _SCHEME.match(path):
        return "", path
    scheme, _, rest = path.partition(":")
    scheme = _SCHEMES_OF_ONE_STORE.get(scheme.lower(), scheme.lower())
    if not rest.startswith("//"):
        return f"{scheme}:", rest
    authority, slash, tail = rest[2:].partition("/")
    return f"{scheme}://{authority}", slash + tail


def _resolved(path: str) -> list[str] | None:
    """The segments of `path` without empty ones, `.` and `..`; None where `..` leads above its first segment."""
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if not segments:
                return None
            segments.pop()
        elif segment not in ("", "."):
            segments.append(segment)
    return segments


def _decode(text: str) -> str:
    if "%" not in text:
        return text
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        return text


def encode_path(path: str) -> str:
    """The log's text for the relative `path`, as Delta-Spark writes it; `decode_path` gives `path` back.

    Delta-Spark logs `Path.toUri.toString`. There Java quotes every ASCII character but `_-!.~'()*@&=+$,;/` and
    alphanumerics, and above ASCII only control and space characters. Java does not quote `:`. It is quoted here,
    because a relative URI that begins with `a:` would have a scheme. Names of `partition_directory` have no `:`.
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


# The space characters of Unicode (Zs, Zl, Zp) and its controls above ASCII: java.net.URI quotes the characters of
# java.lang.Character.isSpaceChar and isISOControl.
_QUOTED = re.compile(
    r"[\x00-\x7f\x80-\x9f\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000](?<![A-Za-z0-9_\-!.~'()*@&=+$,;/])"
)
_HIVE_ESCAPED = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")


def _hive_escaped(text: str) -> str:
    return _HIVE_ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)
