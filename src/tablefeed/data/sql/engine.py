"""DuckDB in this process: SQL over one batch of rows, in order and without files, network or extensions."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from tablefeed.data.oldest import why_too_old
from tablefeed.data.sql.terms import PythonFunction, stages

if TYPE_CHECKING:
    import duckdb

_CONFIG = {
    "threads": "1",  # a task of Spark's has one core
    "memory_limit": "1GB",  # of one batch's columns; never for a table
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
}

ROWS = "tablefeed_rows"
"""What SQL calls the batch."""


class EngineError(ValueError):
    """DuckDB refuses its input; the message is DuckDB's."""


class Engine:
    """A connection for one thread, which can be used for many expressions."""

    def __init__(self) -> None:
        import duckdb

        if (why := why_too_old(duckdb)) is not None:
            raise EngineError(why)
        self._connection: duckdb.DuckDBPyConnection = duckdb.connect(config=dict(_CONFIG))
        self._connection.execute("SET TimeZone = 'UTC'")
        self._functions: set[str] = set()
        # Closed at the latest when Python ends: if DuckDB still held functions of ours then, that would be reported on
        # stderr.
        weakref.finalize(self, self._connection.close)

    def add(self, functions: Iterable[PythonFunction]) -> None:
        """Registers functions by name; a name that is already registered is kept."""
        from duckdb.func import FunctionNullHandling, PythonUDFType

        for function in functions:
            if function.name in self._functions:
                continue
            self._functions.add(function.name)
            self._connection.create_function(
                function.name,
                function.function,
                [self._connection.type(kind) for kind in function.takes],
                self._connection.type(function.gives),
                type=PythonUDFType.ARROW,
                null_handling=FunctionNullHandling.SPECIAL,
            )

    def run(self, sql: str, rows: pa.Table) -> pa.Table:
        """The result of `sql` over `rows`, which it calls ROWS. Raises EngineError."""
        import duckdb

        try:
            self._connection.register(ROWS, rows)
            try:
                return self._connection.sql(sql).to_arrow_table()
            finally:
                self._connection.unregister(ROWS)
        except duckdb.Error as error:
            # After a fatal or internal error DuckDB refuses all that comes later on this connection.
            if isinstance(error, duckdb.FatalException | duckdb.InternalException):
                _LOCAL.engine = None
            raise EngineError(str(error).partition("\n")[0]) from error


_LOCAL = threading.local()


def engine() -> Engine:
    """The engine of the calling thread. Raises EngineError where DuckDB is not installed or too old."""
    found: Engine | None = getattr(_LOCAL, "engine", None)
    if found is None:
        try:
            found = _LOCAL.engine = Engine()
        except ImportError as error:
            remedy = 'pip install "tablefeed[rules]" where the tasks\' Python runs'
            raise EngineError(f"DuckDB is not installed: {remedy}") from error
    return found


def query(bindings: dict[str, str], values: Mapping[str, str]) -> str:
    """The SQL that gives `values` by name; `bindings` are those of a scope."""
    source = ROWS
    for bound in stages(bindings):
        named = ", ".join(f"{sql} AS {name}" for name, sql in bound.items())
        source = f"(SELECT *, {named} FROM {source})"  # noqa: S608  # names are ours, texts are quoted
    return f"SELECT {', '.join(f'{sql} AS {name}' for name, sql in values.items())} FROM {source}"  # noqa: S608  # ours
