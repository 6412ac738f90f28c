"""What is wrong with a schema, before it is known whose schema it is: the table's, or that of rows to write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tablefeed.errors import TABLE, SchemaMismatchError
from tablefeed.model.schema import Path

ANY_TYPE = "Cast it to a type that tables have (int64 or string, perhaps), or drop it."
"""What to do about a column of rows whose type no table can have."""


class BadSchemaError(ValueError):
    """The column at `path` is not what a schema may hold. Never leaves the reading of a schema."""

    def __init__(self, reason: str, path: Path, *, error_class: str | None = None) -> None:
        self.reason, self.path, self.error_class = reason, path, error_class
        super().__init__(reason)


class UnknownTypeError(BadSchemaError):
    """The column at `path` has a type that is not in the model; `remedy` is for who writes rows with it."""

    def __init__(self, reason: str, path: Path, *, remedy: str = ANY_TYPE) -> None:
        self.remedy = remedy
        super().__init__(reason, path)


def dotted(path: Path) -> str:
    """Gives `path` as errors name a column; a name that has a dot is between backticks."""
    return ".".join(f"`{name}`" if "." in name else name for name in path)


def refuse_doubles(columns: Iterable[str], path: Path) -> None:
    """Raises BadSchemaError for names that differ only in case ("Schema Serialization Format")."""
    seen: dict[str, str] = {}
    for name in columns:
        if name.lower() in seen:
            both = (dotted((*path, seen[name.lower()])), dotted((*path, name)))
            raise BadSchemaError(
                "two columns {} and {}".format(*both), path, error_class="DELTA_DUPLICATE_COLUMNS_FOUND"
            )
        seen[name.lower()] = name


@contextmanager
def of_rows() -> Iterator[None]:
    """Raises a fault of the schema as SchemaMismatchError: the schema is that of rows to write."""
    try:
        yield
    except UnknownTypeError as unknown:
        raise SchemaMismatchError(
            f"Column {dotted(unknown.path)} of the rows for {TABLE} is {unknown.reason}, which tablefeed cannot "
            f"write. {unknown.remedy}",
            error_class="DELTA_UNSUPPORTED_DATA_TYPES",
        ) from unknown
    except BadSchemaError as bad:
        raise SchemaMismatchError(
            f"The rows for {TABLE} have {bad.reason}. Rename one.", error_class=bad.error_class
        ) from bad
