"""The functions of Spark's SQL that are evaluated, by their names: each a maker of a term from its arguments' terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tablefeed.data.sql import operators, times
from tablefeed.data.sql.casts import cast
from tablefeed.data.sql.coerce import is_numeric
from tablefeed.data.sql.letters import lower, upper
from tablefeed.data.sql.terms import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOATING,
    INT,
    INTEGRALS,
    LONG,
    NTZ,
    STRING,
    TIMESTAMP,
    VOID,
    Failure,
    PythonFunction,
    Scope,
    Term,
    duck,
    first,
    is_nested,
    spelt,
    strict,
)
from tablefeed.model.schema import Array, DataType, Decimal, Map


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function's call: `part` is its text, for errors."""

    scope: Scope
    part: str
    arguments: Sequence[Term]

    def refuse(self, reason: str) -> Exception:
        """The error of this call for `reason`."""
        return self.scope.refuse(self.part, reason)

    def text(self, index: int) -> Term:
        """An argument as a text."""
        return cast(self.scope, self.arguments[index], STRING)

    def whole(self, index: int) -> Term:
        """An argument as an INT."""
        term = self.arguments[index]
        if term.type not in (*INTEGRALS, STRING, VOID):
            raise self.refuse(f"{spelt(term.type)} is taken for no whole number here")
        return cast(self.scope, term, INT)

    def literal(self, index: int) -> str:
        """An argument that must be a text written out."""
        value = self.arguments[index].literal
        if not isinstance(value, str):
            raise self.refuse("this argument is evaluated as a literal only")
        return value

    def date(self, index: int) -> Term:
        """An argument as a date."""
        return self._time(index, DATE)

    def timestamp(self, index: int) -> Term:
        """An argument as a timestamp."""
        return self._time(index, TIMESTAMP)

    def _time(self, index: int, kind: DataType) -> Term:
        term = self.arguments[index]
        if term.type not in (DATE, TIMESTAMP, NTZ, STRING, VOID):
            raise self.refuse(f"{spelt(term.type)} is no {spelt(kind)}")
        if term.type == NTZ and kind == TIMESTAMP:
            raise self.refuse("of a timestamp_ntz it is not evaluated here")
        return cast(self.scope, term, kind)

    def strict(self, kind: DataType, operands: Sequence[Term], sql: str, failure: Failure | None = None) -> Term:
        """As `terms.strict`."""
        return strict(self.scope, kind, operands, sql, failure)


Maker = Callable[[Call], Term]


def call(scope: Scope, name: str, part: str, arguments: Sequence[Term]) -> Term:
    """Gives the term of a call. Raises NotExactError for a function that is not evaluated, or not so called."""
    known = FUNCTIONS.get(name.lower())
    if known is None:
        raise scope.refuse(part, f"the function {name} is not evaluated here")
    counts, make = known
    if len(arguments) not in counts:
        raise scope.refuse(part, f"{name} is not evaluated with {len(arguments)} arguments")
    return make(Call(scope=scope, part=part, arguments=arguments))


def _if(c: Call) -> Term:
    condition = operators.as_condition(c.scope, c.part, c.arguments[0])
    return operators.case(c.scope, c.part, [(condition, c.arguments[1])], c.arguments[2])


def _coalesce(c: Call) -> Term:
    return operators.coalesced(c.scope, c.part, c.arguments)


def _nullif(c: Call) -> Term:
    same = operators.compare(c.scope, c.part, "=", c.arguments[0], c.arguments[1])
    null = Term(type=c.arguments[0].type, sql=f"NULL::{duck(c.arguments[0].type)}")
    return operators.case(c.scope, c.part, [(same, null)], c.arguments[0])


def _nvl2(c: Call) -> Term:
    there = Term(type=BOOLEAN, sql=f"({c.arguments[0].sql} IS NOT NULL)", fails=c.arguments[0].fails)
    return operators.case(c.scope, c.part, [(there, c.arguments[1])], c.arguments[2])


def _is_null(c: Call) -> Term:
    term = c.arguments[0]
    return Term(type=BOOLEAN, sql=f"({term.sql} IS NULL)", fails=term.fails, stage=term.stage)


def _is_not_null(c: Call) -> Term:
    term = c.arguments[0]
    return Term(type=BOOLEAN, sql=f"({term.sql} IS NOT NULL)", fails=term.fails, stage=term.stage)


def _isnan(c: Call) -> Term:
    term = cast(c.scope, c.arguments[0], DOUBLE) if c.arguments[0].type not in FLOATING else c.arguments[0]
    return Term(type=BOOLEAN, sql=f"coalesce(isnan({term.sql}), false)", fails=term.fails, stage=term.stage)


def _abs(c: Call) -> Term:
    term = c.arguments[0]
    if term.type in INTEGRALS:
        return c.strict(term.type, [term], "TRY(abs({}))", Failure.OVERFLOW)
    if is_numeric(term.type):
        return c.strict(term.type, [term], f"abs({{}})::{duck(term.type)}")
    raise c.refuse(f"{spelt(term.type)} is no number")


def _to_whole(name: str) -> Maker:
    def make(c: Call) -> Term:
        term = c.arguments[0]
        if term.type in INTEGRALS:
            return cast(c.scope, term, LONG)
        if isinstance(term.type, Decimal):
            kind = Decimal(min(term.type.precision - term.type.scale + 1, 38), 0)
            return c.strict(kind, [term], f"TRY_CAST({name}({{}}) AS {duck(kind)})", Failure.OVERFLOW)
        if term.type in FLOATING:
            whole = f"CASE WHEN isnan({{0}}) THEN 0 ELSE TRY_CAST({name}({{0}}) AS BIGINT) END"
            return c.strict(LONG, [term], whole, Failure.OVERFLOW)
        raise c.refuse(f"{spelt(term.type)} is no number")

    return make


def _round(c: Call) -> Term:
    term, digits = c.arguments[0], c.arguments[1].literal if len(c.arguments) > 1 else 0
    if not isinstance(term.type, Decimal) or not isinstance(digits, int) or digits < 0:
        raise c.refuse("it is evaluated for decimals, and to 0 or more literal digits")
    scale = min(digits, term.type.scale)
    whole = term.type.precision - term.type.scale + 1
    kind = Decimal(min(whole + scale, 38), scale)
    return c.strict(kind, [term], f"TRY_CAST({{}} AS {duck(kind)})", Failure.OVERFLOW)


def _sqrt(c: Call) -> Term:
    term = cast(c.scope, c.arguments[0], DOUBLE)
    return c.strict(DOUBLE, [term], "CASE WHEN {0} < 0 THEN 'nan'::DOUBLE ELSE sqrt({0}) END")


def _pmod(c: Call) -> Term:
    rest = operators.calculate(c.scope, c.part, "%", c.arguments[0], c.arguments[1])
    if rest.type not in INTEGRALS:
        raise c.refuse("it is evaluated for whole numbers")
    divisor = cast(c.scope, c.arguments[1], rest.type)
    rest, divisor = c.scope.bound(rest), c.scope.bound(divisor)
    wide = f"({rest.sql}::HUGEINT + {divisor.sql})"
    sql = f"CASE WHEN {rest.sql} < 0 THEN {wide} % {divisor.sql} ELSE {rest.sql} END::{duck(rest.type)}"
    return Term(type=rest.type, sql=sql, fails=rest.fails, stage=max(rest.stage, divisor.stage))


def _calculated(operator: str) -> Maker:
    return lambda c: operators.calculate(c.scope, c.part, operator, c.arguments[0], c.arguments[1])


def _of_texts(kind: DataType, sql: str) -> Maker:
    return lambda c: c.strict(kind, [c.text(i) for i in range(len(c.arguments))], sql)


def _length(c: Call) -> Term:
    if c.arguments[0].type == BINARY:
        return c.strict(INT, [c.arguments[0]], "octet_length({})::INTEGER")
    return c.strict(INT, [c.text(0)], "length({})::INTEGER")


def _octet_length(c: Call) -> Term:
    sql = "octet_length({})::INTEGER" if c.arguments[0].type == BINARY else "strlen({})::INTEGER"
    return c.strict(INT, [c.arguments[0] if c.arguments[0].type == BINARY else c.text(0)], sql)


def _cased(name: str, function: Callable[..., object]) -> Maker:
    def make(c: Call) -> Term:
        python = PythonFunction(name=f"java_{name}", takes=("VARCHAR",), gives="VARCHAR", function=function)
        c.scope.python(python)
        return c.strict(STRING, [c.text(0)], f"java_{name}({{}})", Failure.RANGE)

    return make


def _trimmed(name: str) -> Maker:
    return lambda c: c.strict(STRING, [c.text(0)], f"{name}({{}}, ' ')")


def _substring(c: Call) -> Term:
    """Positions count from 1, and from the end where negative; 0 is 1. What lies before the text counts."""
    text, begin = c.text(0), c.whole(1)
    size = c.whole(2) if len(c.arguments) > 2 else Term(type=INT, sql="2147483647")
    start = "CASE WHEN {1} > 0 THEN {1}::BIGINT - 1 WHEN {1} < 0 THEN length({0}) + {1} ELSE 0 END"
    until = f"least(({start}) + {{2}}, 2147483647)"
    inside = f"greatest({until} - greatest({start}, 0), 0)"
    null = "{1} IS NULL OR {2} IS NULL OR {0} IS NULL"
    some = f"substring({{0}}, greatest({start}, 0) + 1, {inside})"
    sql = f"CASE WHEN {null} THEN NULL WHEN {{2}} <= 0 THEN '' ELSE {some} END"
    return c.strict(STRING, [text, begin, size], sql)


def _left(c: Call) -> Term:
    return c.strict(
        STRING, [c.text(0), c.whole(1)], "CASE WHEN {1} <= 0 AND {0} IS NOT NULL THEN '' ELSE left({0}, {1}) END"
    )


def _right(c: Call) -> Term:
    return c.strict(
        STRING, [c.text(0), c.whole(1)], "CASE WHEN {1} <= 0 AND {0} IS NOT NULL THEN '' ELSE right({0}, {1}) END"
    )


def _concat(c: Call) -> Term:
    if any(is_nested(t.type) or t.type == BINARY for t in c.arguments):
        raise c.refuse("it is evaluated for texts")
    terms = [c.text(i) for i in range(len(c.arguments))]
    return c.strict(STRING, terms, f"({' || '.join('{}' for _ in terms)})")


def _concat_ws(c: Call) -> Term:
    if any(is_nested(t.type) or t.type == BINARY for t in c.arguments):
        raise c.refuse("it is evaluated for texts")
    terms = [c.text(i) for i in range(len(c.arguments))]
    sql = f"concat_ws({', '.join(t.sql for t in terms)})"
    return Term(type=STRING, sql=sql, fails=first(*(t.fails for t in terms)), stage=max(t.stage for t in terms))


def _instr(c: Call) -> Term:
    return c.strict(INT, [c.text(0), c.text(1)], "instr({}, {})::INTEGER")


def _locate(c: Call) -> Term:
    return c.strict(INT, [c.text(1), c.text(0)], "instr({}, {})::INTEGER")


def _padded(name: str) -> Maker:
    def make(c: Call) -> Term:
        size = c.whole(1)
        blank = c.text(2) if len(c.arguments) > 2 else Term(type=STRING, sql="' '", literal=" ")
        if blank.literal in (None, ""):
            raise c.refuse("it is evaluated with what it pads by written out")
        if not isinstance(c.arguments[1].literal, int) or c.arguments[1].literal > _MOST_PADDED:
            raise c.refuse(f"it is evaluated to a literal length of at most {_MOST_PADDED}")
        sql = f"{name}({{}}, greatest({{}}, 0), {{}})"
        return c.strict(STRING, [c.text(0), size, blank], sql)

    return make


_MOST_PADDED = 100_000


def _replace(c: Call) -> Term:
    return c.strict(
        STRING,
        [c.text(0), c.text(1), c.text(2)],
        "CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} ELSE replace({0}, {1}, {2}) END",
    )


def _digest(name: str) -> Maker:
    def make(c: Call) -> Term:
        term = c.arguments[0] if c.arguments[0].type == BINARY else c.text(0)
        return c.strict(STRING, [term], f"{name}({{}})")

    return make


def _sha2(c: Call) -> Term:
    if c.arguments[1].literal not in (0, 256):
        raise c.refuse("it is evaluated for 256 bits")
    term = c.arguments[0] if c.arguments[0].type == BINARY else c.text(0)
    return c.strict(STRING, [term], "sha256({})")


def _size(c: Call) -> Term:
    term = c.arguments[0]
    if not isinstance(term.type, Array | Map):
        raise c.refuse("it is evaluated for arrays and maps")
    sql = "cardinality({})" if isinstance(term.type, Map) else "len({})"
    return c.strict(INT, [term], f"{sql}::INTEGER")


def _array_contains(c: Call) -> Term:
    array, value = c.arguments
    if not isinstance(array.type, Array) or array.type.element != value.type or is_nested(value.type):
        raise c.refuse("it is evaluated for an array and a value of its element type")
    if value.type in (DATE, TIMESTAMP, NTZ):
        raise c.refuse("it is not evaluated for arrays of dates and times")
    found = "list_contains({0}, {1})"
    unknown = "len({0}) > len(list_filter({0}, lambda x: x IS NOT NULL))"
    return c.strict(
        BOOLEAN,
        [array, value],
        f"CASE WHEN {{1}} IS NULL THEN NULL WHEN {found} THEN true WHEN {unknown} THEN NULL ELSE {found} END",
    )


def _date_part(name: str) -> Maker:
    return lambda c: times.date_part(c.scope, name, c.date(0))


def _time_part(name: str) -> Maker:
    def make(c: Call) -> Term:
        term = c.arguments[0]
        return times.time_part(c.scope, name, term if term.type == NTZ else c.timestamp(0))

    return make


def _cast_to(kind: DataType) -> Maker:
    return lambda c: cast(c.scope, c.arguments[0], kind)


def _to_timestamp(c: Call) -> Term:
    if c.arguments[0].type not in (STRING, DATE, TIMESTAMP):
        raise c.refuse(f"of {spelt(c.arguments[0].type)} it is not evaluated here")
    return cast(c.scope, c.arguments[0], TIMESTAMP)


def _to_date(c: Call) -> Term:
    if len(c.arguments) == 2 and c.literal(1) != "yyyy-MM-dd":
        raise c.refuse("it is evaluated without a pattern")
    if len(c.arguments) == 2 and c.arguments[0].type == STRING:
        raise c.refuse("of a text it is evaluated without a pattern")
    return c.date(0)


def _date_add(sign: str) -> Maker:
    def make(c: Call) -> Term:
        days = f"TRY_CAST({{}}::BIGINT {sign} {{}} AS INTEGER)"
        return c.strict(DATE, [c.date(0), c.whole(1)], days, Failure.RANGE)

    return make


def _datediff(c: Call) -> Term:
    return c.strict(INT, [c.date(0), c.date(1)], "TRY_CAST({}::BIGINT - {} AS INTEGER)", Failure.RANGE)


def _make_date(c: Call) -> Term:
    sql = "TRY(make_date({}::BIGINT, {}::BIGINT, {}::BIGINT)) - DATE '1970-01-01'"
    return c.strict(DATE, [c.whole(0), c.whole(1), c.whole(2)], f"({sql})::INTEGER", Failure.RANGE)


def _unix_timestamp(c: Call) -> Term:
    """Whole seconds, and unlike unix_seconds rounded towards 1970."""
    return c.strict(LONG, [c.timestamp(0)], "({} // 1000000)")


def _unix(divisor: int) -> Maker:
    floor = f"(({{0}} - ({{0}} % {divisor} + {divisor}) % {divisor}) // {divisor})"
    return lambda c: c.strict(LONG, [c.timestamp(0)], floor)


def _from_unix(factor: int) -> Maker:
    def make(c: Call) -> Term:
        if c.arguments[0].type not in INTEGRALS:
            raise c.refuse("it is evaluated for whole numbers")
        return c.strict(TIMESTAMP, [c.arguments[0]], f"TRY({{}}::BIGINT * {factor})", Failure.OVERFLOW)

    return make


def _unix_date(c: Call) -> Term:
    return c.strict(INT, [c.date(0)], "{}")


def _hex(c: Call) -> Term:
    term = c.arguments[0]
    if term.type in INTEGRALS:
        return c.strict(STRING, [cast(c.scope, term, LONG)], "to_hex({})")
    return c.strict(STRING, [term if term.type == BINARY else c.text(0)], "hex({})")


def _from_unixtime(c: Call) -> Term:
    if c.arguments[0].type not in INTEGRALS:
        raise c.refuse("it is evaluated for whole numbers")
    moment = c.strict(TIMESTAMP, [cast(c.scope, c.arguments[0], LONG)], "TRY({} * 1000000)", Failure.OVERFLOW)
    return times.formatted(c.scope, moment, "yyyy-MM-dd HH:mm:ss")


def _now(c: Call) -> Term:
    if c.scope.now_us is None:
        raise c.refuse("it is another at every call, so that no rule of a table may hang on it")
    return Term(type=TIMESTAMP, sql=f"{c.scope.now_us}::BIGINT")


def _today(c: Call) -> Term:
    return cast(c.scope, _now(c), DATE)


_ANY = range(1, 1000)
FUNCTIONS: Mapping[str, tuple[Sequence[int], Maker]] = {
    "if": ((3,), _if),
    "coalesce": (_ANY, _coalesce),
    "nvl": ((2,), _coalesce),
    "ifnull": ((2,), _coalesce),
    "nullif": ((2,), _nullif),
    "nvl2": ((3,), _nvl2),
    "isnull": ((1,), _is_null),
    "isnotnull": ((1,), _is_not_null),
    "isnan": ((1,), _isnan),
    "greatest": (range(2, 1000), lambda c: operators.extreme(c.scope, c.part, "greatest", c.arguments)),
    "least": (range(2, 1000), lambda c: operators.extreme(c.scope, c.part, "least", c.arguments)),
    "abs": ((1,), _abs),
    "ceil": ((1,), _to_whole("ceil")),
    "ceiling": ((1,), _to_whole("ceil")),
    "floor": ((1,), _to_whole("floor")),
    "round": ((1, 2), _round),
    "sqrt": ((1,), _sqrt),
    "mod": ((2,), _calculated("%")),
    "pmod": ((2,), _pmod),
    "negative": ((1,), lambda c: operators.negated(c.scope, c.part, c.arguments[0])),
    **dict.fromkeys(("length", "len", "char_length", "character_length"), ((1,), _length)),
    "octet_length": ((1,), _octet_length),
    "upper": ((1,), _cased("upper", upper)),
    "ucase": ((1,), _cased("upper", upper)),
    "lower": ((1,), _cased("lower", lower)),
    "lcase": ((1,), _cased("lower", lower)),
    "trim": ((1,), _trimmed("trim")),
    "btrim": ((1,), _trimmed("trim")),
    "ltrim": ((1,), _trimmed("ltrim")),
    "rtrim": ((1,), _trimmed("rtrim")),
    "substring": ((2, 3), _substring),
    "substr": ((2, 3), _substring),
    "left": ((2,), _left),
    "right": ((2,), _right),
    "concat": (_ANY, _concat),
    "concat_ws": (range(2, 1000), _concat_ws),
    "startswith": ((2,), _of_texts(BOOLEAN, "starts_with({}, {})")),
    "endswith": ((2,), _of_texts(BOOLEAN, "ends_with({}, {})")),
    "contains": ((2,), _of_texts(BOOLEAN, "contains({}, {})")),
    "instr": ((2,), _instr),
    "locate": ((2,), _locate),
    "position": ((2,), _locate),
    "lpad": ((2, 3), _padded("lpad")),
    "rpad": ((2, 3), _padded("rpad")),
    "replace": ((3,), _replace),
    "md5": ((1,), _digest("md5")),
    "sha": ((1,), _digest("sha1")),
    "sha1": ((1,), _digest("sha1")),
    "sha2": ((2,), _sha2),
    "hex": ((1,), _hex),
    "size": ((1,), _size),
    "cardinality": ((1,), _size),
    "array_contains": ((2,), _array_contains),
    **{name: ((1,), _date_part(name)) for name in times.DATE_PARTS},
    **{name: ((1,), _time_part(name)) for name in times.TIME_PARTS},
    "date": ((1,), _cast_to(DATE)),
    "timestamp": ((1,), _cast_to(TIMESTAMP)),
    "int": ((1,), _cast_to(INT)),
    "bigint": ((1,), _cast_to(LONG)),
    "string": ((1,), _cast_to(STRING)),
    "double": ((1,), _cast_to(DOUBLE)),
    "boolean": ((1,), _cast_to(BOOLEAN)),
    "to_date": ((1, 2), _to_date),
    "to_timestamp": ((1,), _to_timestamp),
    "trunc": ((2,), lambda c: times.truncated_date(c.scope, c.date(0), c.literal(1))),
    "date_trunc": ((2,), lambda c: times.truncated_timestamp(c.scope, c.timestamp(1), c.literal(0))),
    "date_format": ((2,), lambda c: _date_format(c)),
    "date_add": ((2,), _date_add("+")),
    "dateadd": ((2,), _date_add("+")),
    "date_sub": ((2,), _date_add("-")),
    "datediff": ((2,), _datediff),
    "date_diff": ((2,), _datediff),
    "add_months": ((2,), lambda c: times.add_months(c.scope, c.date(0), c.whole(1))),
    "make_date": ((3,), _make_date),
    "unix_date": ((1,), _unix_date),
    "date_from_unix_date": ((1,), lambda c: c.strict(DATE, [c.whole(0)], "{}")),
    "unix_timestamp": ((1,), _unix_timestamp),
    "to_unix_timestamp": ((1,), _unix_timestamp),
    "unix_seconds": ((1,), _unix(1_000_000)),
    "unix_millis": ((1,), _unix(1000)),
    "unix_micros": ((1,), _unix(1)),
    "timestamp_seconds": ((1,), _from_unix(1_000_000)),
    "timestamp_millis": ((1,), _from_unix(1000)),
    "timestamp_micros": ((1,), _from_unix(1)),
    "from_unixtime": ((1,), _from_unixtime),
    "current_timestamp": ((0,), _now),
    "now": ((0,), _now),
    "current_date": ((0,), _today),
    "curdate": ((0,), _today),
}


def _date_format(c: Call) -> Term:
    term = c.arguments[0]
    return times.formatted(c.scope, term if term.type == DATE else c.timestamp(0), c.literal(1))
