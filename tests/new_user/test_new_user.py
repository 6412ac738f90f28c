"""The transcripts, played again with the wheel of this tree. `make new-user` writes them anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from new_user.player import NewUser, build_wheel
from new_user.things import TRANSCRIPTS, give_things
from tablefeed.cli.commands import COMMANDS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("dist"))


@pytest.mark.in_turn
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", sorted(each.stem for each in TRANSCRIPTS.glob("*.txt")))
def test_a_new_user_sees_what_the_transcript_has(name: str, wheel: Path, tmp_path: Path) -> None:
    user = NewUser(tmp_path, wheel)
    give_things(name, user.here)
    transcript = (TRANSCRIPTS / f"{name}.txt").read_text(encoding="utf-8")

    assert user.play(transcript).splitlines() == transcript.splitlines()


def commands(name: str) -> list[tuple[str, list[str]]]:
    """What is typed in a transcript, each with what is seen."""
    text = (TRANSCRIPTS / f"{name}.txt").read_text(encoding="utf-8")
    blocks = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    seen = ([line for line in block.splitlines() if not line.startswith("# ")] for block in blocks)
    return [(typed, lines) for typed, *lines in seen]


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


def test_nothing_that_the_user_saw_was_a_traceback() -> None:
    for transcript in TRANSCRIPTS.glob("*.txt"):
        for typed, seen in commands(transcript.stem):
            assert not any(line.startswith("Traceback") for line in seen), typed
