"""The import arrows of the house (CONTRIBUTING.md) hold, and the checker sees when they do not."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from support.arrows import FEED, HOUSE, MOST_MODULES, read_sources, room_of, violations

_SRC = Path(__file__).parents[2] / "src"


def test_every_import_in_the_house_follows_the_arrows() -> None:
    assert violations(read_sources(_SRC)) == []


def test_every_room_that_the_checker_guards_is_drawn_in_contributing() -> None:
    drawn = (_SRC.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")

    assert [room for room in (*HOUSE, *FEED) if f"`{room}`" not in drawn] == []


def test_every_folder_is_small_enough_to_find_ones_way_in() -> None:
    counts = Counter(path.parent for path in _SRC.rglob("*.py"))

    assert [folder for folder, count in counts.items() if count > MOST_MODULES] == []


def test_every_room_of_feed_says_why_it_exists() -> None:
    sources = read_sources(_SRC)

    assert [room for room in FEED if not ast.get_docstring(ast.parse(sources[f"tablefeed.feed.{room}"]))] == []


def test_the_sources_that_are_read_are_those_of_both_packages() -> None:
    modules = read_sources(_SRC)

    assert {"tablefeed", "tablefeed.errors", "tablefeed.model.offset", "pyspark_tablefeed"} <= modules.keys()


@pytest.mark.parametrize(
    ("module", "source", "said"),
    [
        ("tablefeed.model.x", "import orjson", "imports orjson"),
        ("tablefeed.model.x", "import tablefeed.delta.codec", "imports tablefeed.delta.codec"),
        ("tablefeed.log.x", "from tablefeed import delta", "imports tablefeed.delta"),
        ("tablefeed.log.x", "from ..delta import codec", "imports tablefeed.delta.codec"),
        ("tablefeed.delta.x", "import fsspec", "imports fsspec"),
        ("tablefeed.delta.x", "from tablefeed.store import local", "imports tablefeed.store"),
        ("tablefeed.store.x", "from tablefeed.model.actions import Version", "imports tablefeed.model.actions"),
        ("tablefeed.data.x", "from tablefeed.log import plan", "imports tablefeed.log"),
        ("tablefeed.feed.x", "def f():\n    import pyspark.sql", "imports pyspark.sql"),
        ("tablefeed.feed.x", "from tablefeed.spark import options", "imports tablefeed.spark"),
        ("tablefeed.spark.x", "from tablefeed.delta.codec import parse", "imports tablefeed.delta.codec"),
        ("tablefeed.spark.x", "import orjson", "imports orjson"),
        ("tablefeed.feed.scan.x", "from tablefeed.feed.write.plan import P", "imports tablefeed.feed.write.plan"),
        ("tablefeed.feed.write.x", "from tablefeed.feed.commit import y", "imports tablefeed.feed.commit"),
        ("tablefeed.feed.x", "import tablefeed.feed.snapshot.y", "imports tablefeed.feed.snapshot.y"),
        ("tablefeed.cli.x", "from tablefeed.feed.rows.y import z", "imports tablefeed.feed.rows.y"),
        ("tablefeed.cli.x", "import pyspark", "imports pyspark"),
        ("pyspark_tablefeed", "if TYPE_CHECKING:\n    import pyarrow", "imports pyarrow"),
    ],
)
def test_an_import_against_the_arrows_is_named(module: str, source: str, said: str) -> None:
    house = {"tablefeed.delta": "", "tablefeed.delta.codec": "", "tablefeed.model.actions": ""}

    assert violations({**house, module: source}) == [f"{module} {said}"]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import time", "time"),
        ("from time import monotonic", "time.monotonic"),
        ("from datetime import datetime as dt\ndt.now()", "datetime.datetime.now"),
        ("import datetime\ndatetime.date.today()", "datetime.date.today"),
        ("from pathlib import Path", "pathlib.Path"),
        ("open('x')", "open"),
        ("import uuid\nuuid.uuid4()", "uuid.uuid4"),
        ("import os.path as p", "os.path"),
    ],
)
def test_a_pure_room_that_reaches_for_the_world_is_named(source: str, name: str) -> None:
    assert violations({"tablefeed.model.x": source}) == [f"tablefeed.model.x uses {name}"]


def test_a_pure_room_may_speak_of_dates_and_buffers() -> None:
    source = (
        "import io, uuid\nfrom datetime import UTC, datetime\nio.BytesIO(uuid.UUID(int=1).bytes)\ndatetime(1, 1, 1)"
    )

    assert violations({"tablefeed.delta.x": source}) == []


def test_a_circle_of_modules_is_named() -> None:
    circle = {"tablefeed.log.a": "from tablefeed.log.b import B", "tablefeed.log.b": "import tablefeed.log.a"}

    assert [line.partition(":")[0] for line in violations(circle)] == ["a cycle"]


def test_a_circle_of_rooms_is_named_even_where_no_module_closes_it() -> None:
    circle = {
        "tablefeed.feed.a": "from tablefeed.data.b import B",
        "tablefeed.data.b": "",
        "tablefeed.data.c": "from tablefeed.feed.d import D",
        "tablefeed.feed.d": "",
    }

    assert violations(circle) == ["tablefeed.data.c imports tablefeed.feed.d", "a cycle: feed <- data <- feed"]


def test_a_module_outside_the_rooms_is_named() -> None:
    assert room_of("tablefeed.utils.text") == "utils"
    assert violations({"tablefeed.utils.text": ""}) == ["tablefeed.utils.text is in no room of the house"]
