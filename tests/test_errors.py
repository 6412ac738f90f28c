"""The error tree: drawn as it is, told in one voice, and the same on the other side of a pickle."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tablefeed import errors
from tablefeed.errors import TablefeedError

URL = "s3://lake/orders"

EXAMPLES: dict[str, TablefeedError] = {
    "TablefeedError": errors.TablefeedError("text"),
    "OptionError": errors.OptionError("text", error_class="DELTA_UNKNOWN_READ_LIMIT"),
    "IllegalOptionError": errors.IllegalOptionError(option="maxFilesPerTrigger", value="0", explain="must be positive"),
    "UnknownOptionError": errors.UnknownOptionError(option="maxFile", nearest="maxFilesPerTrigger", known=()),
    "UnsupportedOptionError": errors.UnsupportedOptionError(option="readChangeFeed", remedy="Leave it out."),
    "ConflictingOptionsError": errors.ConflictingOptionsError(options=("a", "b"), remedy="Set one."),
    "IncompleteOptionsError": errors.IncompleteOptionsError(given="txnAppId", missing="txnVersion"),
    "MissingPathError": errors.MissingPathError("No path was given: load(path)."),
    "TableError": errors.TableError("text", url=URL),
    "TableNotFoundError": errors.TableNotFoundError("text", url=URL),
    "UnsupportedFeatureError": errors.UnsupportedFeatureError("text", url=URL, features=("x", "y")),
    "SchemaMismatchError": errors.SchemaMismatchError("text", url=URL, error_class="DELTA_METADATA_MISMATCH"),
    "InvalidRowsError": errors.InvalidRowsError("text", url=URL),
    "InvalidEventsError": errors.InvalidEventsError(
        "text", url=URL, key="id=7", sequence="5", error_class="AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY"
    ),
    "EqualSequencesError": errors.EqualSequencesError("text", url=URL, key="id=7", sequence="5"),
    "ReplicaDiffersError": errors.ReplicaDiffersError("text", url=URL, source_version=7, target_version=3),
    "UnsupportedExpressionError": errors.UnsupportedExpressionError(
        url=URL, rule="its constraint c", expression="hash(x) > 0", reason="hash is not evaluated"
    ),
    "AppendOnlyError": errors.AppendOnlyError("text", url=URL),
    "LogError": errors.LogError("text", url=URL),
    "CorruptLogError": errors.CorruptLogError("cut off", url=URL, log_file="_delta_log/3.json", line=2),
    "LogGapError": errors.LogGapError(url=URL, expected=42, found=45, remedy="Restart."),
    "VersionNotFoundError": errors.VersionNotFoundError(url=URL, version=9, earliest=2, latest=7),
    "TableReplacedError": errors.TableReplacedError("text", url=URL),
    "FeedError": errors.FeedError("text", url=URL),
    "OffsetError": errors.OffsetError("text", url=URL, error_class="DELTA_INVALID_SOURCE_VERSION"),
    "ChangeRefusedError": errors.ChangeRefusedError(
        "text", url=URL, version=3, error_class="DELTA_SOURCE_IGNORE_DELETE"
    ),
    "ChangeDataError": errors.ChangeDataError("text", url=URL, version=3, error_class="DELTA_MISSING_CHANGE_DATA"),
    "MetadataEvolvedError": errors.MetadataEvolvedError("text", url=URL, version=3),
    "SchemaLogError": errors.SchemaLogError("text", url=URL, error_class="DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT"),
    "SchemaChangedError": errors.SchemaChangedError("text", url=URL, version=3, error_class="DELTA_SCHEMA_CHANGED"),
    "DataFileError": errors.DataFileError("text", url=URL, path="part-1.parquet"),
    "CommitError": errors.CommitError("text", url=URL),
    "ConflictError": errors.ConflictError("text", url=URL, winner=4, error_class="DELTA_METADATA_CHANGED"),
    "CommitUnknownError": errors.CommitUnknownError("text", url=URL, version=4),
    "StoreError": errors.StoreError("text", url=URL),
    "ObjectNotFoundError": errors.ObjectNotFoundError(url=URL, name="part-1.parquet"),
    "NotExclusiveError": errors.NotExclusiveError("text", url=URL),
    "StoreConfigError": errors.StoreConfigError("text", url=URL),
}
"""One error of every class, with every field of it set."""

EACH = pytest.mark.parametrize("error", EXAMPLES.values(), ids=EXAMPLES)


def fields(error: TablefeedError) -> dict[str, object]:
    return {name: value for name, value in vars(error).items() if not name.startswith("_")}


def drawn() -> Iterator[tuple[str, str]]:
    """Each class of the docstring's tree with the one it hangs under."""
    above: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"^    ([ │├└─]*)(\w+Error)\b", line):
            depth = len(found[1]) // 4
            above[depth:] = [found[2]]
            yield found[2], above[depth - 1] if depth else "Exception"


def defined() -> dict[str, type[TablefeedError]]:
    kinds = {name: kind for name, kind in vars(errors).items() if inspect.isclass(kind) and not name.startswith("_")}
    return {name: kind for name, kind in kinds.items() if issubclass(kind, TablefeedError)}


def test_the_tree_is_drawn_as_it_is() -> None:
    above = {name: [each.__name__ for each in kind.__mro__[1:]] for name, kind in defined().items()}
    public = {name: next(each for each in kinds if not each.startswith("_")) for name, kinds in above.items()}

    assert dict(drawn()) == public


def test_each_class_of_the_tree_has_its_example_here() -> None:
    assert EXAMPLES.keys() == defined().keys()
    assert {name: type(error).__name__ for name, error in EXAMPLES.items()} == {name: name for name in EXAMPLES}


@EACH
def test_an_error_comes_out_of_a_pickle_or_two_and_of_a_copy_as_it_went_in(error: TablefeedError) -> None:
    pickled = [pickle.loads(pickle.dumps(error, n)) for n in range(pickle.HIGHEST_PROTOCOL + 1)]  # noqa: S301 (our own)
    twice = pickle.loads(pickle.dumps(pickled[-1]))  # noqa: S301

    for again in (*pickled, twice, copy.copy(error), copy.deepcopy(error)):
        assert (type(again), str(again), fields(again)) == (type(error), str(error), fields(error))
        assert again.args == error.args


@EACH
def test_the_text_begins_with_the_class_of_delta_spark_where_there_is_one(error: TablefeedError) -> None:
    said = str(error)

    assert said == error.message
    assert said.startswith(f"[{error.error_class}] ") == (error.error_class is not None)
    assert said.count(error.error_class or "no class") == (error.error_class is not None)


def test_a_class_given_to_one_error_is_not_that_of_the_next() -> None:
    given = errors.TableNotFoundError("text", url=URL, error_class="DELTA_SCHEMA_NOT_SET")

    assert str(given) == "[DELTA_SCHEMA_NOT_SET] text"
    assert str(errors.TableNotFoundError("text", url=URL)) == "[DELTA_TABLE_NOT_FOUND] text"


def test_however_long_what_it_quotes_a_text_says_who_and_what_now_and_is_bounded() -> None:
    long = errors.DataFileError(f"The file {'x' * 10**6} is gone. Restore it.", url=URL, path="x" * 10**6)

    assert len(str(long)) < 10_000
    assert str(long).startswith("The file xxx")
    assert str(long).endswith("xxx is gone. Restore it.")
    again = pickle.loads(pickle.dumps(long))  # noqa: S301
    assert (str(again), again.path) == (str(long), long.path)


def test_every_field_that_a_constructor_takes_can_be_asked_for() -> None:
    for name, kind in defined().items():
        taken = set(inspect.signature(kind).parameters) - {"message", "reason", "explain", "remedy"}
        assert taken <= fields(EXAMPLES[name]).keys() | {"error_class"}, name


@pytest.mark.parametrize("name", ["TableError", "LogError", "FeedError", "CommitError", "StoreError"])
def test_every_error_about_a_table_names_it(name: str) -> None:
    below = [error for error in EXAMPLES.values() if isinstance(error, defined()[name])]

    assert len(below) > 2
    assert all(vars(error)["url"] == URL for error in below)


def test_who_catches_the_root_catches_everything_and_no_class_is_two_things() -> None:
    for kind in defined().values():
        assert kind.__mro__[kind.__mro__.index(TablefeedError) :] == TablefeedError.__mro__
        assert len(kind.__bases__) == 1


def test_a_gap_names_the_versions_that_are_missing() -> None:
    between = errors.LogGapError(url=URL, expected=42, found=45, remedy="Restart.")
    at_the_end = errors.LogGapError(url=URL, expected=42, found=None, remedy="Restart.")

    assert "versions 42 to 44 are missing. Restart." in between.message
    assert "version 42 is missing. Restart." in at_the_end.message


def test_a_log_file_that_cannot_be_read_is_named_with_its_line_where_one_is_to_blame() -> None:
    in_a_line = errors.CorruptLogError("cut off", url=URL, log_file="3.json", line=2)
    as_a_whole = errors.CorruptLogError("no Parquet", url=URL, log_file="3.checkpoint.parquet")

    assert "at 3.json, line 2: cut off" in in_a_line.message
    assert "at 3.checkpoint.parquet: no Parquet. Restore the file" in as_a_whole.message


@pytest.mark.parametrize(
    "of",
    [
        lambda url: errors.TableError(f"{url} cannot be read.", url=url),
        lambda url: errors.LogError(f"The log of {url} is damaged.", url=url, error_class="DELTA_LOG"),
        lambda url: errors.CorruptLogError("cut off", url=url, log_file="3.json", line=2),
        lambda url: errors.UnsupportedFeatureError(f"{url} is too new.", url=url, features=("x",)),
        lambda url: errors.UnsupportedExpressionError(url=url, rule="c", expression="x", reason="no"),
        lambda url: errors.AppendOnlyError(f"The table at {url} is append-only.", url=url),
        lambda url: errors.DataFileError(f"p of {url} is gone.", url=url, path="p"),
        lambda url: errors.StoreConfigError("text", url=url),
        lambda url: errors.IllegalOptionError(option="columns", value="x", explain=f"must be one of {url}"),
    ],
)
def test_an_error_that_does_not_know_its_table_gets_the_url_from_the_caller(
    of: Callable[[str], TablefeedError],
) -> None:
    with pytest.raises(TablefeedError) as caught, errors.naming("s3://other"), errors.naming(URL):
        raise of(errors.TABLE)

    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):  # noqa: S301
        assert (str(error), error.args, fields(error)) == (str(of(URL)), of(URL).args, fields(of(URL)))


def test_a_tag_of_html_that_an_error_quotes_stays() -> None:
    with pytest.raises(errors.InvalidRowsError) as caught, errors.naming(URL):
        raise errors.InvalidRowsError(f"The row '<table>' breaks a rule of {errors.TABLE}.")

    assert str(caught.value) == f"The row '<table>' breaks a rule of {URL}."


def test_the_url_of_an_error_that_has_one_stays() -> None:
    with pytest.raises(errors.LogError) as caught, errors.naming("s3://other"):
        raise errors.LogError(f"The log of {URL} is damaged.", url=URL)

    assert (str(caught.value), caught.value.url) == (f"The log of {URL} is damaged.", URL)


def test_the_table_is_named_in_what_caused_an_error_too() -> None:
    cause = errors.CorruptLogError("cut off", log_file="3.json", line=2)

    with pytest.raises(errors.FeedError) as caught, errors.naming(URL):
        raise errors.FeedError(f"A stream of {URL} stopped: {cause}", url=URL) from cause

    assert (str(cause), cause.url) == (str(errors.CorruptLogError("cut off", url=URL, log_file="3.json", line=2)), URL)
    assert str(caught.value) == f"A stream of {URL} stopped: {cause}"


def test_errors_that_are_each_others_cause_are_named_once() -> None:
    one, other = errors.LogError(f"{errors.TABLE} is damaged."), errors.LogError(f"{errors.TABLE} has no commit.")
    other.__cause__ = one

    with pytest.raises(errors.LogError), errors.naming(URL):
        raise one from other

    assert (str(one), str(other)) == (f"{URL} is damaged.", f"{URL} has no commit.")


def test_a_generator_names_the_table_in_errors_between_what_it_gives() -> None:
    def versions() -> Iterator[int]:
        with errors.naming(URL):
            yield 1
            raise errors.LogError(f"The log of {errors.TABLE} is damaged.")

    found = versions()

    assert next(found) == 1
    with pytest.raises(errors.LogError, match=f"The log of {URL} is damaged") as caught:
        next(found)
    assert caught.value.url == URL


def test_only_code_that_names_the_table_around_itself_leaves_the_url_out() -> None:
    """A url may be left out below the feed. In the feed, in Spark's words and in stores it may not be forgotten."""
    takes_url = {name for name, kind in defined().items() if "url" in inspect.signature(kind).parameters}
    root = Path(errors.__file__).parent
    forgotten = [
        f"{path.relative_to(root)}:{call.lineno}"
        for room in ("feed", "spark", "store")
        for path in sorted((root / room).rglob("*.py"))
        for tree in [ast.parse(path.read_text(encoding="utf-8"))]
        if not {"TABLE", "naming"}
        & {name.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for name in n.names}
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in takes_url
        if "url" not in {keyword.arg for keyword in call.keywords}
    ]

    assert forgotten == []
