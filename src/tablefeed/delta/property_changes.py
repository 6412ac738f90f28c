"""The properties of an existing table, set and taken away as by Delta-Spark's SET and UNSET TBLPROPERTIES.

A property that would need rows to be written again is refused by name: ids for rows (`delta.enableRowTracking`), files
for Iceberg, and every change of column mapping but from none to `name`.
"""

from __future__ import annotations

from collections.abc import Iterable

from tablefeed.delta import names
from tablefeed.delta.alteration import Alteration
from tablefeed.delta.features import FEATURES, Rule, implied_features
from tablefeed.delta.new_properties import WRITERS_OWN, checked_properties, is_kept, known_name
from tablefeed.delta.properties import TableProperties
from tablefeed.delta.schema.column_mapping import MappingMode, mapping_mode
from tablefeed.errors import TABLE, ConflictingOptionsError, IllegalOptionError, TableError, UnsupportedFeatureError


def changed_properties(before: TableProperties, wanted: Alteration) -> tuple[dict[str, str], frozenset[str]]:
    """Gives the table's properties after the change, and the features that it asks for. Constraints are not changed.

    Raises IllegalOptionError as `checked_properties`, and for a constraint or an unknown feature, TableError for a
    property to remove that is not there, ConflictingOptionsError for one to set and to remove, UnsupportedFeatureError
    for a change that needs all rows to be written again.
    """
    given = checked_properties(wanted.assigned)
    for name in given:
        if name.startswith(names.CHECK_CONSTRAINT_PREFIX):
            explain = "cannot be set as a property: existing rows must be checked. Use add_constraints"
            raise IllegalOptionError(
                option=name, value=given[name], explain=explain, error_class="DELTA_ADD_CONSTRAINTS"
            )
    after = {**before.texts, **{name: value for name, value in given.items() if is_kept(name)}}
    for name in map(known_name, wanted.removed):
        if name in given:
            options = ("set_properties", "unset_properties")
            raise ConflictingOptionsError(options=options, remedy=f"Both name {name}: leave one out.")
        if name in WRITERS_OWN or name.startswith(names.CHECK_CONSTRAINT_PREFIX):
            remedy = "use drop_constraints" if name not in WRITERS_OWN else "writers set this property themselves"
            raise IllegalOptionError(option="unset_properties", value=name, explain=f"cannot be removed: {remedy}")
        if after.pop(name, None) is None:
            raise TableError(
                f"{TABLE} has no property {name!r} to remove. Nothing was changed. Leave it out.",
                error_class="DELTA_UNSET_NON_EXISTENT_PROPERTY",
            )
    _check_no_rewrite(before, TableProperties(after))
    asked = [name.removeprefix(names.FEATURE_PREFIX) for name in given if name.startswith(names.FEATURE_PREFIX)]
    reader, writer = (int(given.get(name, "1")) for name in (names.MIN_READER_VERSION, names.MIN_WRITER_VERSION))
    return after, _features([*asked, *wanted.features]) | implied_features(reader, writer)


def _features(asked: Iterable[str]) -> frozenset[str]:
    known = {name.lower(): feature for name, feature in FEATURES.items()}
    found = set()
    for name in asked:
        feature = known.get(name.lower())
        if feature is None or feature.name == names.CLUSTERING or feature.name.endswith("-preview"):
            explain = "is no table feature that can be added to an existing table"
            raise IllegalOptionError(
                option="enable_features",
                value=name,
                explain=explain,
                error_class="DELTA_UNSUPPORTED_FEATURES_IN_CONFIG" if feature is None else None,
            )
        if feature.rule is not Rule.HANDLED:
            raise _refused(feature.name, "this version of tablefeed could no longer write the table")
        found.add(feature.name)
    return frozenset(found)


def _check_no_rewrite(before: TableProperties, after: TableProperties) -> None:
    if after.tracks_rows and not before.tracks_rows:
        reason = f"{names.ENABLE_ROW_TRACKING} would need ids for the rows that are there"
        raise _refused(
            names.ROW_TRACKING, f"{reason}. Turn it on with ALTER TABLE in Spark, or make a new table with it"
        )
    if new := [version for version in after.iceberg_versions if version not in before.iceberg_versions]:
        reason = "its files may have to be written again for Iceberg. Turn it on with REORG TABLE in Spark"
        raise _refused(f"icebergCompatV{new[0]}", reason)
    was, now = mapping_mode(before), mapping_mode(after)
    if was is not now and (was, now) != (MappingMode.NONE, MappingMode.NAME):
        raise UnsupportedFeatureError(
            f"The column mapping of {TABLE} cannot be changed from {was} to {now} here. Nothing was changed. Only from "
            "none to name needs no file to be written again; make a new table for another mode.",
            features=("columnMapping",),
            error_class="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
        )


def _refused(feature: str, reason: str) -> UnsupportedFeatureError:
    return UnsupportedFeatureError(
        f"{feature} cannot be turned on for {TABLE}: {reason}. Nothing was changed.", features=(feature,)
    )
