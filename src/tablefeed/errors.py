"""Every error that tablefeed raises. Each says who, where and what now; none is raised for an expected outcome.

    TablefeedError
    ├── OptionError                 an option or argument: who set it must change it
    │   ├── IllegalOptionError          a value outside the option's domain
    │   ├── UnknownOptionError          a name in no list, with the nearest known one
    │   ├── UnsupportedOptionError      a known name that this version does not do yet
    │   ├── ConflictingOptionsError     two options that exclude each other
    │   ├── IncompleteOptionsError      an option without another that it needs
    │   └── MissingPathError            no path was given
    ├── TableError                  the table in its present state cannot be used this way
    │   ├── TableNotFoundError          no log at the path
    │   ├── UnsupportedFeatureError     the protocol or a feature asks for what is not handled
    │   ├── SchemaMismatchError         rows that do not fit the table's schema or partitioning
    │   ├── InvalidRowsError            rows that break a rule of the table
    │   ├── InvalidEventsError          change events without a key or a place in the order
    │   ├── EqualSequencesError         change events that differ and of which none is newer
    │   ├── ReplicaDiffersError         a copy of a table that is not equal to it
    │   ├── UnsupportedExpressionError  a rule of the table in SQL that is not evaluated as Spark would
    │   └── AppendOnlyError             a removal on an append-only table
    ├── LogError                    the log's bytes or its files are not what the protocol says
    │   ├── CorruptLogError             a log file that cannot be read
    │   ├── LogGapError                 versions missing between others
    │   ├── VersionNotFoundError        a version outside what the log still has
    │   └── TableReplacedError          the table was deleted, made anew or restored meanwhile
    ├── FeedError                   the feed cannot go on from here
    │   ├── OffsetError                 an offset that is not of this feed, or malformed
    │   ├── ChangeRefusedError          a commit that rewrites or deletes rows
    │   ├── ChangeDataError             what a commit changed was not recorded, or is not known
    │   ├── SchemaChangedError          the table's schema left the stream's
    │   ├── MetadataEvolvedError        a stream that tracks metadata stopped on purpose, to be restarted
    │   ├── SchemaLogError              the log of tracked metadata is damaged, or not this stream's
    │   └── DataFileError               a data file that is gone or unreadable
    ├── CommitError                 a commit that did not happen, or whose fate is unknown
    │   ├── ConflictError               another writer's commit excludes ours
    │   └── CommitUnknownError          the store's answer was lost and could not be settled
    └── StoreError                  where the bytes live
        ├── ObjectNotFoundError         no object of that name
        ├── NotExclusiveError           the store cannot promise that only one writer wins
        └── StoreConfigError            options, credentials or a missing extra of a store

Where Delta-Spark has an error class for the case, `error_class` holds it and the text starts with it in brackets.
All survive a pickle round trip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

_END_CHARACTERS = 4_000  # of each end of a text: more than any list of columns that is still read
_LEFT_OUT = " [...] "

TABLE = "<unnamed table>"
"""The url in an error that code raises which does not know the table; `naming` replaces it. Errors quote rows and
names of columns, so it is no text that these have, as HTML has `<table>`."""


class _HasUrl(Protocol):
    @property
    def url(self) -> str: ...


_P = ParamSpec("_P")
_T = TypeVar("_T")
_Located = TypeVar("_Located", bound=_HasUrl)


class TablefeedError(Exception):
    """The root. `message` is the whole text, `error_class` the bracketed class or None.

    What an error quotes can be of any length; its text is not: the middle of a long one is left out.
    """

    error_class: str | None = None

    def __init__(self, message: str, *, error_class: str | None = None) -> None:
        if len(message) > 2 * _END_CHARACTERS + len(_LEFT_OUT):
            message = message[:_END_CHARACTERS] + _LEFT_OUT + message[-_END_CHARACTERS:]
        if error_class is not None:
            self.error_class = error_class
        self.message = f"[{self.error_class}] {message}" if self.error_class else message
        self._arguments: tuple[str, str | None] = (message, error_class)
        super().__init__(self.message)

    def name_table(self, url: str) -> None:
        """Replaces `TABLE` by `url`, in the text and in the field `url`."""
        if TABLE in self._arguments[0]:
            self.reword(lambda text: text.replace(TABLE, url))
        if vars(self).get("url") == TABLE:
            vars(self)["url"] = url

    def reword(self, words: Callable[[str], str]) -> None:
        """Replaces the text, and the options that the error names, by what `words` makes of them."""
        text, error_class = self._arguments
        TablefeedError.__init__(self, words(text), error_class=error_class)
        if "option" in vars(self):
            vars(self)["option"] = words(vars(self)["option"])
        if "options" in vars(self):
            vars(self)["options"] = tuple(words(option) for option in vars(self)["options"])

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        return (_rebuild, (type(self), *self._arguments), dict(self.__dict__))


def _rebuild(kind: type[TablefeedError], message: str, error_class: str | None) -> TablefeedError:
    # __init__ of a subclass takes its own fields; the pickled state restores them after this.
    error = kind.__new__(kind)
    TablefeedError.__init__(error, message, error_class=error_class)
    return error


@contextmanager
def naming(url: str) -> Iterator[None]:
    """Names the table at `url` in the errors of the block, and in their causes, where they have `TABLE` instead.

    The rooms `delta` and `data` read bytes without knowing where these lie. Whoever knows wraps their calls in this,
    a generator its whole loop. Errors that already have a url keep it.
    """
    try:
        yield
    except TablefeedError as error:
        for cause in _with_causes(error):
            cause.name_table(url)
        raise


def naming_its_table(function: Callable[Concatenate[_Located, _P], _T]) -> Callable[Concatenate[_Located, _P], _T]:
    """Names the table in all errors of `function`, whose first argument has its `url`. Not for a generator function."""

    @wraps(function)
    def named(located: _Located, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        with naming(located.url):
            return function(located, *args, **kwargs)

    return named


def _with_causes(error: BaseException) -> list[TablefeedError]:
    # Causes may form a ring: an error that is raised again can become the cause of its own cause.
    met: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and not any(found is seen for seen in met):
        met.append(found)
        found = found.__cause__
    return [each for each in met if isinstance(each, TablefeedError)]


class OptionError(TablefeedError):
    """An option or argument is wrong."""


class IllegalOptionError(OptionError):
    """`option` has a `value` outside its domain; `explain` says what it must be."""

    error_class = "DELTA_ILLEGAL_OPTION"

    def __init__(self, *, option: str, value: str, explain: str, error_class: str | None = None) -> None:
        self.option, self.value = option, value
        super().__init__(f"Invalid value {value!r} for option {option!r}: it {explain}.", error_class=error_class)


class UnknownOptionError(OptionError):
    """`option` is none of the `known` ones; `nearest` is the likeliest meant, or None."""

    def __init__(self, *, option: str, nearest: str | None, known: tuple[str, ...]) -> None:
        self.option, self.nearest, self.known = option, nearest, known
        hint = f"Did you mean {nearest!r}?" if nearest else f"The options are {', '.join(known)}."
        super().__init__(f"Unknown option {option!r}. {hint}")


class UnsupportedOptionError(OptionError):
    """`option` means something that this version does not do; `remedy` says what to do instead."""

    def __init__(self, *, option: str, remedy: str, error_class: str | None = None) -> None:
        self.option = option
        super().__init__(f"Option {option!r} is not supported here. {remedy}", error_class=error_class)


class ConflictingOptionsError(OptionError):
    """`options` cannot be set together."""

    def __init__(self, *, options: tuple[str, ...], remedy: str, error_class: str | None = None) -> None:
        self.options = options
        named = " and ".join(repr(o) for o in options)
        super().__init__(f"Options {named} cannot be combined. {remedy}", error_class=error_class)


class IncompleteOptionsError(OptionError):
    """`given` means nothing without `missing`."""

    def __init__(self, *, given: str, missing: str, error_class: str | None = None) -> None:
        self.given, self.missing, self.options = given, missing, (given, missing)
        super().__init__(f"Option {given!r} needs {missing!r}. Set both or neither.", error_class=error_class)


class MissingPathError(OptionError):
    """No path was given, or one that names no single table."""


class _LocatedError(TablefeedError):
    """An error about the table or the store at `url`. That text has no credentials."""

    def __init__(self, message: str, *, url: str = TABLE, error_class: str | None = None) -> None:
        self.url = url
        super().__init__(message, error_class=error_class)


class TableError(_LocatedError):
    """The table at `url` in its present state cannot be used this way."""


class TableNotFoundError(TableError):
    """There is no table at `url`."""

    error_class = "DELTA_TABLE_NOT_FOUND"


class UnsupportedFeatureError(TableError):
    """The table needs `features` that are not handled; nothing was read or written."""

    def __init__(
        self, message: str, *, url: str = TABLE, features: tuple[str, ...], error_class: str | None = None
    ) -> None:
        self.features = features
        super().__init__(message, url=url, error_class=error_class)


class SchemaMismatchError(TableError):
    """The rows' schema or partitioning does not fit the table's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRule:
    """What is wrong with rows, without their values: `reason`, and the `column` that it is about; None: no one column.

    `rows` says for each row of the batch whether it is one of them; None: not known, but some are.
    """

    reason: str
    column: str | None = None
    rows: Sequence[bool] | None = None


class InvalidRowsError(TableError):
    """A row breaks a rule of the table; nothing of its batch was committed.

    `broken` is that rule, None where it is not one that each row keeps or breaks for itself.
    """

    def __init__(
        self, message: str, *, url: str = TABLE, error_class: str | None = None, broken: BrokenRule | None = None
    ) -> None:
        self.broken = broken
        super().__init__(message, url=url, error_class=error_class)


class InvalidEventsError(TableError):
    """Change events that cannot be applied; nothing was written. `key` and `sequence` are the first one's, or None."""

    def __init__(
        self,
        message: str,
        *,
        url: str = TABLE,
        key: str | None = None,
        sequence: str | None = None,
        error_class: str | None = None,
    ) -> None:
        self.key, self.sequence = key, sequence
        super().__init__(message, url=url, error_class=error_class)


class EqualSequencesError(TableError):
    """Two change events of one `key` have one `sequence` and differ, so none is newer; nothing was written."""

    def __init__(self, message: str, *, url: str = TABLE, key: str, sequence: str) -> None:
        self.key, self.sequence = key, sequence
        super().__init__(message, url=url)


class ReplicaDiffersError(TableError):
    """The copy at `url` is, at `target_version`, not equal to its source at `source_version`."""

    def __init__(self, message: str, *, url: str = TABLE, source_version: int, target_version: int) -> None:
        self.source_version, self.target_version = source_version, target_version
        super().__init__(message, url=url)


class UnsupportedExpressionError(TableError):
    """The table's `rule` is SQL, `expression`, that is not evaluated here exactly as by Spark; nothing was written."""

    def __init__(
        self, *, url: str = TABLE, rule: str, expression: str, reason: str, error_class: str | None = None
    ) -> None:
        self.rule, self.expression = rule, expression
        super().__init__(
            f"{url} cannot be written: {rule}, {expression}, is not evaluated here exactly as by Spark: {reason}. "
            "Write to the table with Spark's own Delta, or change the rule.",
            url=url,
            error_class=error_class,
        )


class AppendOnlyError(TableError):
    """The table allows no removal of rows (`delta.appendOnly`)."""

    error_class = "DELTA_CANNOT_MODIFY_APPEND_ONLY"


class LogError(_LocatedError):
    """The log of the table at `url` is not what the protocol says."""


class CorruptLogError(LogError):
    """`log_file` cannot be read; `line` (from 1) where one line is to blame."""

    def __init__(self, reason: str, *, url: str = TABLE, log_file: str, line: int | None = None) -> None:
        self.log_file, self.line = log_file, line
        where = f"{log_file}, line {line}" if line is not None else log_file
        super().__init__(
            f"The log of {url} cannot be read at {where}: {reason}. Restore the file from a copy. If its writer "
            "died while writing it and no later version exists, you may delete the file.",
            url=url,
        )


class LogGapError(LogError):
    """The log jumps: `expected` is the first missing version, `found` the next one present, None where none is."""

    error_class = "DELTA_VERSIONS_NOT_CONTIGUOUS"

    def __init__(
        self, *, url: str = TABLE, expected: int, found: int | None, remedy: str, error_class: str | None = None
    ) -> None:
        self.expected, self.found = expected, found
        one = found is None or found == expected + 1
        gap = f"version {expected} is missing" if one else f"versions {expected} to {(found or 0) - 1} are missing"
        super().__init__(f"The log of {url} has a gap: {gap}. {remedy}", url=url, error_class=error_class)


class VersionNotFoundError(LogError):
    """`version` does not exist: the log has `earliest` to `latest`."""

    error_class = "DELTA_VERSION_NOT_FOUND"

    def __init__(
        self, *, url: str = TABLE, version: int, earliest: int, latest: int, error_class: str | None = None
    ) -> None:
        self.version, self.earliest, self.latest = version, earliest, latest
        wait = ", or wait until it is committed" if version > latest else ""
        super().__init__(
            f"Version {version} of {url} does not exist: its log holds versions {earliest} to {latest}. "
            f"Choose a version that the log holds{wait}.",
            url=url,
            error_class=error_class,
        )


class TableReplacedError(LogError):
    """The table at `url` was deleted, made again or restored before a file about it could be put into its log."""


class FeedError(_LocatedError):
    """The feed of the table at `url` cannot go on from here."""


class OffsetError(FeedError):
    """An offset is malformed, of another table, or not one this feed can continue."""


class _AtVersionError(FeedError):
    """The feed cannot go on at `version`."""

    def __init__(self, message: str, *, url: str = TABLE, version: int, error_class: str | None = None) -> None:
        self.version = version
        super().__init__(message, url=url, error_class=error_class)


class ChangeRefusedError(_AtVersionError):
    """The commit at `version` deletes or rewrites rows, and no option says what to do with that."""


class ChangeDataError(_AtVersionError):
    """Which rows the commit at `version` changed was not recorded, or does not follow from what was."""


class SchemaChangedError(_AtVersionError):
    """The schema at `version` cannot be read with the schema that the stream was started with."""


class MetadataEvolvedError(_AtVersionError):
    """A stream stopped on purpose: from its restart on it reads with the metadata of `version`, which is tracked."""

    error_class = "DELTA_STREAMING_METADATA_EVOLUTION"


class SchemaLogError(FeedError):
    """The log of tracked metadata at `url` cannot be used by this stream."""


class DataFileError(FeedError):
    """The data file at `path` is gone or cannot be read."""

    def __init__(self, message: str, *, url: str = TABLE, path: str, error_class: str | None = None) -> None:
        self.path = path
        super().__init__(message, url=url, error_class=error_class)


class CommitError(_LocatedError):
    """A commit to the table at `url` did not happen, or its fate is unknown."""


class ConflictError(CommitError):
    """The commit at `winner` by another writer excludes ours; nothing of ours was committed."""

    def __init__(self, message: str, *, url: str, winner: int, error_class: str) -> None:
        self.winner = winner
        super().__init__(message, url=url, error_class=error_class)


class CommitUnknownError(CommitError):
    """The store did not say whether our commit at `version` exists, and reading the log did not settle it."""

    def __init__(self, message: str, *, url: str, version: int) -> None:
        self.version = version
        super().__init__(message, url=url)


class StoreError(_LocatedError):
    """An operation on the store at `url` failed."""


class ObjectNotFoundError(StoreError):
    """There is no object `name` at `url`. `hint` says more."""

    def __init__(self, *, url: str, name: str, hint: str = "") -> None:
        self.name, self.hint = name, hint
        super().__init__(f"There is no {name} at {url}.{hint}", url=url)


class NotExclusiveError(StoreError):
    """The store at `url` cannot promise that of two writers of one name only one wins; nothing was written."""


class StoreConfigError(StoreError):
    """The store at `url` cannot be opened as configured."""
