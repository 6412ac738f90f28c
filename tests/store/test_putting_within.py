"""Objects that are put beside others: not where those are gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tablefeed.errors import LogError, ObjectNotFoundError, StoreError
from tablefeed.store import LocalStore, Store, Within

Put = Callable[[Store, str, Within], None]


def put_if_absent(store: Store, name: str, within: Within) -> None:
    assert store.put_if_absent(name, b"ours", within=within)


def publish(store: Store, name: str, within: Within) -> None:
    with store.publish(name, within=within) as file:
        file.write(b"ours")


def replace(store: Store, name: str, within: Within) -> None:
    store.replace(name, b"ours", within=within)


def create(store: Store, name: str, within: Within) -> None:
    with store.create(name, within=within) as file:
        file.write(b"ours")


EACH_CHECKED = pytest.mark.parametrize("put", [put_if_absent, publish, replace])
EACH = pytest.mark.parametrize("put", [put_if_absent, publish, replace, create])


class Check:
    """Notes what is seen at each call, and raises at the `at`-th."""

    def __init__(self, store: Store, at: int) -> None:
        self.store, self.at = store, at
        self.seen: list[bool] = []

    def __call__(self) -> None:
        self.seen.append(self.store.exists("log/f"))
        if len(self.seen) == self.at:
            raise LogError("another table", url=self.store.url)


@EACH
def test_what_is_put_within_a_directory_that_is_there_is_there(store: Store, put: Put) -> None:
    store.put_if_absent("log/0.json", b"x")

    put(store, "log/below/f", Within(directory="log"))

    assert store.read("log/below/f") == b"ours"


@EACH_CHECKED
def test_the_check_is_called_right_before_the_object_appears_and_right_after(store: Store, put: Put) -> None:
    store.put_if_absent("log/0.json", b"x")
    check = Check(store, at=3)

    put(store, "log/f", Within(directory="log", check=check))

    assert check.seen == [False, True]


@EACH_CHECKED
@pytest.mark.parametrize("at", [1, 2])
def test_what_the_check_refuses_before_or_after_is_not_there(store: Store, put: Put, at: int) -> None:
    store.put_if_absent("log/0.json", b"x")

    with pytest.raises(LogError, match="another table"):
        put(store, "log/f", Within(directory="log", check=Check(store, at)))

    assert [entry.name for entry in store.list("log")] == ["0.json"]


def test_an_object_that_was_there_before_is_not_deleted_where_the_check_refuses_ours(store: Store) -> None:
    store.put_if_absent("log/0.json", b"x")

    def is_theirs() -> None:
        store.put_if_absent("log/f", b"theirs")
        if calls:
            raise LogError("another table", url=store.url)
        calls.append("before")

    calls = list[str]()
    with suppress(LogError):
        publish(store, "log/f", Within(directory="log", check=is_theirs))

    assert store.read("log/f") == b"theirs"


@EACH_CHECKED
def test_the_name_of_what_appeared_is_given_before_the_check_that_follows(store: Store, put: Put) -> None:
    store.put_if_absent("log/0.json", b"x")
    seen = list[str]()

    put(store, "log/f", Within(directory="log", check=lambda: seen.append("check"), appeared=seen.append))

    assert seen == ["check", "log/f", "check"]


def test_of_an_object_that_was_there_before_no_name_is_given(store: Store) -> None:
    store.put_if_absent("log/f", b"theirs")
    seen = list[str]()

    publish(store, "log/f", Within(directory="log", appeared=seen.append))

    assert seen == []


@EACH
@pytest.mark.parametrize("name", ["log/f", "log/below/f"])
def test_a_directory_that_is_gone_is_not_made_again(tmp_path: Path, put: Put, name: str) -> None:
    store = LocalStore(str(tmp_path))
    store.put_if_absent("log/0.json", b"x")
    shutil.rmtree(tmp_path / "log")

    with pytest.raises(ObjectNotFoundError, match="There is no log at"):
        put(store, name, Within(directory="log"))

    assert list(tmp_path.iterdir()) == []


@EACH
def test_a_directory_that_cannot_be_made_or_opened_is_an_error_of_ours(tmp_path: Path, put: Put) -> None:
    store = LocalStore(str(tmp_path))
    store.put_if_absent("log/below", b"x")

    with pytest.raises(StoreError, match=r"log/below/f at .*: Not a directory"):
        put(store, "log/below/f", Within(directory="log"))


@EACH_CHECKED
@pytest.mark.parametrize("name", ["log/f", "log/below/f"])
def test_nothing_appears_in_a_directory_that_was_made_anew_under_the_same_path(
    tmp_path: Path, put: Put, name: str
) -> None:
    store = LocalStore(str(tmp_path))
    store.put_if_absent("log/0.json", b"x")
    store.put_if_absent("log/below/0", b"x")

    def made_anew() -> None:
        if (tmp_path / "log" / "0.json").exists():
            shutil.rmtree(tmp_path / "log")
            (tmp_path / "log" / "below").mkdir(parents=True)

    with pytest.raises(StoreError):
        put(store, name, Within(directory="log", check=made_anew))

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
