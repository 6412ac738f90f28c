"""The transcripts, played again with the wheel of this tree. `make new-user` writes them anew."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import requires
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from new_user.player import ROOT, NewUser, build_wheel
from new_user.things import CHANGING, TRANSCRIPTS, TUTORIAL, give_things, script
from tablefeed.cli.commands import COMMANDS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("build", reason="the environment of Spark 4.2 builds no wheel")
    return build_wheel(tmp_path_factory.mktemp("dist"))


def test_the_extra_for_spark_brings_what_pyspark_asks_for_when_it_gives_rows_to_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [Requirement(each) for each in project["optional-dependencies"]["spark"]]

    brought = {
        further.name
        for each in asked
        for further in map(Requirement, requires(each.name) or ())
        if further.marker is None or any(further.marker.evaluate({"extra": extra}) for extra in each.extras)
    }

    assert {"pandas", "pyarrow"} <= brought  # mapInArrow imports both, and installing pyspark alone brings neither


def plays(name: str, wheel: Path, folder: Path) -> None:
    user = NewUser(folder, wheel)
    give_things(name, user.here)
    transcript = (TRANSCRIPTS / f"{name}.txt").read_text(encoding="utf-8")

    assert user.play(script(name), CHANGING.get(name, ())).splitlines() == transcript.splitlines()


@pytest.mark.in_turn
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted({each.stem for each in TRANSCRIPTS.glob("*.txt")} - {"tutorial"}))
def test_a_new_user_sees_what_the_transcript_has(name: str, wheel: Path, tmp_path: Path) -> None:
    plays(name, wheel, tmp_path)


@pytest.mark.spark
@pytest.mark.one_spark
@pytest.mark.timeout(900)
def test_a_new_user_of_the_tutorial_sees_what_the_transcript_has(wheel: Path, tmp_path: Path) -> None:
    plays("tutorial", wheel, tmp_path)


def commands(name: str) -> list[tuple[str, list[str]]]:
    """What is typed in a transcript, each with what is seen."""
    text = (TRANSCRIPTS / f"{name}.txt").read_text(encoding="utf-8")
    entries = re.findall(r"^\$ (.*(?:\n> .*)*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
    return [
        (typed.replace("\n> ", "\n"), [line for line in seen.splitlines() if not line.startswith("# ")])
        for typed, seen in entries
    ]


def test_each_of_sixty_mistakes_has_one_line_that_says_what_is_wrong() -> None:
    *mistakes, _ = (each for each in commands("mistakes") if re.match(r"(\w+='.*' )?tablefeed ", each[0]))

    assert len(mistakes) >= 60
    for typed, seen in mistakes:
        usage, error, code = seen[:-2], seen[-2], seen[-1]
        assert (usage == []) == (code == "[exit 3]"), typed
        assert code == "[exit 3]" or usage[0].startswith("Usage: "), typed
        assert error.startswith("Error: "), typed


def test_each_command_is_used_on_a_real_table() -> None:
    typed = " ".join(line for name in ("flights", "recordings") for line, _ in commands(name))

    assert [name for name in COMMANDS if f"tablefeed {name} " not in typed] == []


def test_the_page_of_the_tutorial_shows_what_its_user_sees() -> None:
    seen = dict(commands("tutorial"))
    shown = {before.text: block.text for before, block in pairwise(TUTORIAL) if block.language == "text"}

    assert len(shown) > 3
    for typed, text in shown.items():
        assert seen[typed.rstrip("\n")] == text.splitlines()


def test_nothing_that_the_user_saw_was_a_traceback() -> None:
    for transcript in TRANSCRIPTS.glob("*.txt"):
        for typed, seen in commands(transcript.stem):
            assert not any(line.startswith("Traceback") for line in seen), typed
