"""The names that others rely on: which there are, how they are called, and that they cost nothing until used."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import tablefeed
import tablefeed.spark
from tablefeed import errors
from tablefeed._version import __version__

FUNCTIONS = {
    "open_table": "(url, *, version, timestamp, storage_options)",
    "appends": "(url, *, start_version, end_version, skip_change_commits, ignore_changes, ignore_deletes, columns, "
    "filter, storage_options)",
    "changes": "(url, *, start_version, end_version, start_timestamp, end_timestamp, columns, filter, "
    "deduplication_mode, compute_updates, storage_options)",
    "follow": "(url, *, after, poll_interval_s, consumer_id, storage_options)",
    "append": "(url, data, *, mode, partition_by, cluster_by, table_format, index_as, app_id, txn_version, "
    "merge_schema, overwrite_schema, store_assignment, time_zone, txn_version_collision, replace_where, "
    "partition_overwrite_mode, compression, max_records_per_file, user_metadata, "
    "log_compaction_every, checkpoint_part_size, properties, storage_options)",
    "create": "(url, schema, *, partition_by, cluster_by, properties, constraints, storage_options)",
    "alter": "(url, *, set_properties, unset_properties, add_columns, rename_columns, drop_columns, widen_columns, "
    "set_not_null, drop_not_null, set_defaults, drop_defaults, set_comments, add_constraints, drop_constraints, "
    "enable_features, storage_options)",
    "restore": "(url, *, version, timestamp, storage_options)",
    "delete": "(url, where, *, app_id, txn_version, storage_options)",
    "update": "(url, set, where, *, time_zone, app_id, txn_version, storage_options)",
    "merge": "(url, rows, *, on, matched, not_matched, not_matched_by_source, time_zone, app_id, txn_version, "
    "storage_options)",
    "apply_changes": "(url, changes, *, keys, sequence_by, source, apply_as_deletes, apply_as_truncates, column_list, "
    "except_column_list, ignore_null_updates, ignore_null_updates_column_list, "
    "ignore_null_updates_except_column_list, stored_as_scd_type, track_history_column_list, "
    "track_history_except_column_list, ties, merge_schema, tombstone_gc_threshold_in_seconds, time_zone, app_id, "
    "txn_version, storage_options)",
    "apply_changes_from_snapshot": "(url, snapshots, *, keys, column_list, except_column_list, stored_as_scd_type, "
    "track_history_column_list, track_history_except_column_list, time_zone, storage_options)",
    "replicate": "(source, target, *, app_id, starting_version, until, verify, resync, consumer_id, by_rows, "
    "copy_files, storage_options, target_storage_options)",
    "optimize": "(url, *, where, target_size_bytes, max_deleted_rows_ratio, storage_options, on_progress)",
    "checkpoint": "(url, *, clean_up, storage_options, on_progress)",
    "consumers": "(url, storage_options, *)",
    "vacuum": "(url, *, retention_hours, dry_run, storage_options, allow_short_retention, on_progress)",
}

REQUIRED = {"merge": {"on"}, "apply_changes": {"keys"}, "apply_changes_from_snapshot": {"keys"}}
"""The parameters after the star that must be given."""

TABLE = {
    "url",
    "version",
    "table_id",
    "schema",
    "partition_columns",
    "metadata",
    "protocol",
    "files",
    "to_batches",
    "to_arrow",
    "to_pandas",
    "history",
    "commits",
    "txn_version",
}

_PROGRAM = """
import sys
import tablefeed
print(*sorted(name for name in sys.modules if name.partition(".")[0] in ("pyarrow", "fsspec", "pyspark", "orjson")))
"""


def _call(name: str) -> str:
    """The parameters by name, as they may be given; those after the star may be left out."""
    parameters = inspect.signature(getattr(tablefeed, name)).parameters.values()
    positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    required = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty}
    assert required == REQUIRED.get(name, set())
    return f"({', '.join([*positional, '*', *(p.name for p in parameters if p.kind is p.KEYWORD_ONLY)])})"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_is_called_as_it_always_was(name: str) -> None:
    assert _call(name) == FUNCTIONS[name]


def test_a_table_has_its_members() -> None:
    assert set(dir(tablefeed.Table)) >= TABLE


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    for name in tablefeed.__all__:
        assert inspect.getdoc(getattr(tablefeed, name)), name


def test_the_public_names_are_these_and_in_order() -> None:
    assert tablefeed.__all__ == sorted(tablefeed.__all__)
    assert {
        *FUNCTIONS,
        "Table",
        "Commit",
        "CommitInfo",
        "Committed",
        "AlreadyApplied",
        "Optimized",
        "Progress",
        "ReadPlan",
        "Replicated",
        "Vacuumed",
        "Checkpointed",
        "Consumer",
        "Consumers",
    } <= set(tablefeed.__all__)


def test_the_root_of_all_errors_is_a_public_name() -> None:
    assert tablefeed.TablefeedError is errors.TablefeedError


def test_a_name_that_is_not_there_is_an_attribute_error_like_any_modules() -> None:
    with pytest.raises(AttributeError, match="module 'tablefeed' has no attribute 'no_such_name'"):
        # `make lint` fails if mypy does not see that the name is wrong: the comment would then be needless.
        tablefeed.no_such_name  # type: ignore[attr-defined]  # noqa: B018


def test_names_that_are_not_imported_yet_are_listed_and_so_is_the_version() -> None:
    assert {*tablefeed.__all__, "__version__", "errors"} <= {*dir(tablefeed)}
    assert {*tablefeed.spark.__all__} <= {*dir(tablefeed.spark)}
    assert tablefeed.__version__ == __version__


def test_the_package_imports_nothing_heavy_until_a_name_is_used() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_the_package_says_that_it_is_typed() -> None:
    from importlib.resources import files

    assert files("tablefeed").joinpath("py.typed").is_file()
