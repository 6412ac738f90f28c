"""Actions and commits as values: what a codec gives to whoever knows no bytes."""

from __future__ import annotations

from typing import Any

from tablefeed.model.actions import AddFile, Commit, FileAction, RemoveFile, Version


def add(path: str, **more: Any) -> AddFile:
    """An add of a file of ten bytes; `more` are fields of AddFile."""
    fields = {"partition_values": {}, "size_bytes": 10, "modified_ms": 1, "data_change": True, **more}
    return AddFile(path=path, log_path=path, **fields)


def remove(path: str, **more: Any) -> RemoveFile:
    return RemoveFile(path=path, log_path=path, **{"data_change": True, **more})


def commit(version: int, *files: FileAction, **more: Any) -> Commit:
    return Commit(version=Version(version), files=files, **{"committed_at_ms": None, **more})
