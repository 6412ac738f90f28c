"""Applies a table's rules to written rows: fills columns and checks conditions (Delta-Spark's Constraints).

`tablefeed.data.sql` evaluates the SQL of a rule. `write`, which sees the rows last, checks NOT NULL. No files here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from tablefeed.data.partition import empty_is_null
from tablefeed.data.retype import in_form
from tablefeed.data.sql import (
    Asked,
    EngineError,
    Expression,
    NoColumnError,
    NotExactError,
    Program,
    RowFailedError,
    compile_expressions,
)
from tablefeed.errors import TABLE, BrokenRule, InvalidRowsError, SchemaMismatchError, UnsupportedExpressionError
from tablefeed.model.rules import Check, TableRules, TextLimit
from tablefeed.model.schema import Field, Primitive, Struct

_MOST_SHOWN = 200
"""Characters of a value in an error."""
_GENERATION = "the generation expression"
_GIVEN = Check(name="Generated Column", expression="")
"""The check of a generated column whose values the rows bring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the rules need to know about a write, besides its rows.

    `absent` are the columns, as the schema spells them, that the rows do not bring:
    they are filled. `partition_by` are columns in which an empty text becomes null before rules are evaluated.
    `time_zone` is the session's, None where it is not known. `now_us` is the time of this write in microseconds since
    1970: the value of `current_timestamp()` in defaults and conditions.
    """

    absent: frozenset[str]
    partition_by: tuple[str, ...] = ()
    time_zone: str | None
    now_us: int


class RowRules:
    """Fills and checks batches of a table's schema. Built once, for many batches.

    Raises UnsupportedExpressionError, when built, for a rule that cannot be evaluated exactly as Spark does with ANSI
    mode on, and SchemaMismatchError for a default that its column cannot hold. A batch costs one query for all checks,
    one for all defaults and one for all generated columns.
    """

    def __init__(self, rules: TableRules, schema: Struct, setting: Setting) -> None:
        self._setting, self._schema, self._limits = setting, schema, rules.limits
        # As in Delta-Spark, a generated column may not depend on another one: both are computed at the same time.
        self._ungenerated = Struct(tuple(field for field in schema if field.name not in rules.generated))
        given = [field for field in schema if field.name not in setting.absent]
        self._filling(_GENERATION, given, rules.generated)  # only to refuse an expression that cannot be evaluated
        absent = [field for field in schema if field.name in setting.absent]
        ungenerated = [field for field in absent if field.name not in rules.generated]
        # In this order, because a generated column may name a column with a default.
        self._fillers = [
            *self._filling("the default", ungenerated, rules.defaults),
            *self._filling(_GENERATION, absent, rules.generated),
        ]
        self._checks = [*rules.checks, *_of_given(rules, setting.absent)]
        self._program = self._checking() if self._checks else None

    @property
    def inputs(self) -> frozenset[str]:
        """The columns that the checks name: a batch for checks alone needs no others."""
        return frozenset(() if self._program is None else self._program.inputs.values())

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Gives the rows, in order and in the same schema, with the absent columns filled.

        Raises InvalidRowsError for the first rule that a row breaks, with the row's values of the columns that the rule
        names. A condition that is null breaks the rule, like one that is false. Nulls in NOT NULL columns are not
        checked here.
        """
        batch = empty_is_null(batch, self._setting.partition_by)
        for program, names in self._fillers:
            batch = empty_is_null(self._filled(batch, program, names), self._setting.partition_by)
        if self._program is not None:
            self._check(batch, self._program)
        for limit in self._limits:
            self._check_length(batch, limit)
        return batch

    def _filling(
        self, what: str, fields: Sequence[Field], expressions: Mapping[str, str]
    ) -> list[tuple[Program, list[str]]]:
        """The program that computes those of `fields` that have an expression, with their names, if there are any."""
        fields = [field for field in fields if field.name in expressions]
        if not fields:
            return []
        is_default = what == "the default"
        asked = [(f"{what} of column {f.name}", Asked(text=expressions[f.name], wanted=f.type)) for f in fields]
        schema, now_us = (Struct(()), self._setting.now_us) if is_default else (self._ungenerated, None)
        program = self._compiled(asked, schema, now_us)
        if is_default:
            self._try_defaults(program, fields)
        return [(program, [field.name for field in fields])]

    def _try_defaults(self, program: Program, fields: Sequence[Field]) -> None:
        """Refuses a default that fails: it would fail in each row, so no row is to blame."""
        try:
            program.evaluate(pa.record_batch({"row": pa.nulls(1)}))
        except RowFailedError as error:
            name = next(
                f.name for f, e in zip(fields, program.expressions, strict=True) if e.text == error.text and e.can_fail
            )
            raise SchemaMismatchError(
                f"The rows have no column {name!r}, and its default in {TABLE}, {error.text}, cannot be "
                f"stored there: {error.reason}. Nothing was written: add the column to the rows, or correct "
                "its default.",
            ) from error

    def _checking(self) -> Program:
        rules = [(_said(check), Asked(text=check.expression)) for check in self._checks]
        program = self._compiled(rules, self._schema, self._setting.now_us)
        for (rule, one), expression in zip(rules, program.expressions, strict=True):
            if expression.type != Primitive("boolean"):
                reason = "it is not a condition: its value is not a boolean"
                raise UnsupportedExpressionError(
                    rule=rule,
                    expression=one.text,
                    reason=reason,
                    error_class="DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
                )
        return program

    def _compiled(self, rules: Sequence[tuple[str, Asked]], schema: Struct, now_us: int | None) -> Program:
        zone = self._setting.time_zone
        try:
            return compile_expressions([one for _, one in rules], schema, time_zone=zone, now_us=now_us)
        except NotExactError as error:
            rule = next(rule for rule, one in rules if one.text == error.text)
            raise UnsupportedExpressionError(
                rule=rule,
                expression=error.text,
                reason=str(error),
                error_class=_class_of(rule) if isinstance(error, NoColumnError) else None,
            ) from error

    def _filled(self, batch: pa.RecordBatch, program: Program, names: Sequence[str]) -> pa.RecordBatch:
        made = dict(zip(names, self._evaluated("A column cannot be filled", program, batch), strict=True))
        columns = [
            column if (value := made.get(field.name)) is None else in_form(value, field.type)
            for field, column in zip(batch.schema, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _check(self, batch: pa.RecordBatch, program: Program) -> None:
        held = self._evaluated("A constraint cannot be evaluated", program, batch)
        for check, expression, holds in zip(self._checks, program.expressions, held, strict=True):
            broken = pc.invert(holds.fill_null(False))  # noqa: FBT003  # Arrow's words
            row = pc.index(broken, True).as_py()
            if row >= 0:
                shown = shown_row(batch, row, expression.paths)
                raise InvalidRowsError(
                    f"CHECK constraint {check.name} ({check.expression}) violated by row with values:\n{shown}\n"
                    f"Nothing of this write to {TABLE} was committed: filter these rows out, or correct "
                    "them.",
                    error_class="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
                    broken=BrokenRule(
                        reason=f"CHECK constraint {check.name} ({check.expression}) violated",
                        column=_columns(expression),
                        rows=broken.to_pylist(),
                    ),
                )

    def _evaluated(self, what: str, program: Program, batch: pa.RecordBatch) -> list[pa.Array]:
        try:
            return program.evaluate(batch)
        except RowFailedError as error:
            expression = next((e for e in program.expressions if e.text == error.text), None)
            paths = () if expression is None else expression.paths
            raise InvalidRowsError(
                f"{what}: {error.text} fails ({error.reason}) in the row with values:\n"
                f"{shown_row(batch, error.row, paths)}\n"
                f"Nothing of this write to {TABLE} was committed: filter these rows out, or correct them.",
                broken=BrokenRule(
                    reason=f"{what}: {error.text} fails ({error.reason})",
                    column=None if expression is None else _columns(expression),
                ),
            ) from error
        except EngineError as error:
            raise InvalidRowsError(
                f"The rules of {TABLE} cannot be evaluated on these rows: {error}. Nothing of this write "
                "was committed: correct the rows, or write smaller batches.",
                broken=BrokenRule(reason=f"the rules of the table cannot be evaluated: {error}"),
            ) from error

    def _check_length(self, batch: pa.RecordBatch, limit: TextLimit) -> None:
        for texts in _texts(batch.column(limit.path[0]), limit.path[1:]):
            long = pc.greater(pc.utf8_length(texts), limit.length).fill_null(False)  # noqa: FBT003
            row = pc.index(long, True).as_py()
            if row >= 0:
                raise InvalidRowsError(
                    f'Value "{_value(texts[row])}" exceeds char/varchar type length limitation: {".".join(limit.path)} '
                    f"of {TABLE} is {limit.kind}({limit.length}). Nothing of this write was committed: "
                    "shorten these values, or filter their rows out.",
                    error_class="DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
                    broken=BrokenRule(
                        reason=f"exceeds char/varchar type length limitation: {limit.kind}({limit.length})",
                        column=".".join(limit.path),
                        rows=None if limit.path[1:] else long.to_pylist(),
                    ),
                )


def _columns(expression: Expression) -> str | None:
    return ", ".join(sorted({path[0] for path in expression.paths})) or None


def _of_given(rules: TableRules, absent: frozenset[str]) -> Iterator[Check]:
    """The checks of generated columns whose values the rows bring ("Generated Columns": `<=>`)."""
    for name, expression in rules.generated.items():
        if name not in absent:
            quoted = name.replace("`", "``")
            yield replace(_GIVEN, expression=f"`{quoted}` <=> ({expression})")


def _class_of(rule: str) -> str | None:
    """Delta-Spark's class for a rule that names a column that does not exist."""
    if rule.startswith((_GENERATION, _said(_GIVEN))):
        return "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"
    return "DELTA_INVALID_CHECK_CONSTRAINT_REFERENCES" if rule.startswith("its constraint") else None


def _said(check: Check) -> str:
    return f"its constraint {check.name}"


def shown_row(batch: pa.RecordBatch, row: int, paths: Sequence[tuple[str, ...]]) -> str:
    """The values at `paths` in a row of `batch`, a line each, as errors show them."""
    return "\n".join(f" - {'.'.join(path)} : {_value(_at(batch, row, path))}" for path in sorted(paths))


def _at(batch: pa.RecordBatch, row: int, path: Sequence[str]) -> pa.Scalar:
    found = batch.column(path[0])[row]
    for name in path[1:]:
        names = [field.name for field in found.type]
        # The rule may spell the name in another case than the schema.
        member = names.index(name) if name in names else [known.lower() for known in names].index(name.lower())
        found = found[member] if found.is_valid else pa.scalar(None, found.type[member].type)
    return found


def _value(value: pa.Scalar) -> str:
    try:
        text = "null" if not value.is_valid else str(value.as_py())
    except (OverflowError, ValueError):
        text = f"(a {value.type} that Python has no value for)"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _texts(array: pa.Array, path: Sequence[str]) -> Iterator[pa.Array]:
    """The texts at `path` below a column, without those whose parent is null."""
    if not path:
        yield array
        return
    kind = array.type
    if pa.types.is_struct(kind):
        yield from _texts(pc.struct_field(array, [path[0]]), path[1:])
    elif pa.types.is_map(kind):
        entries = array.drop_null()
        entries = entries.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
        members = pc.struct_field(pc.list_flatten(entries), [0 if path[0] == "key" else 1])
        yield from _texts(members, path[1:])
    else:
        yield from _texts(pc.list_flatten(array), path[1:])
